"""Which of a model's weights this process has in memory: a decode step pulls its layers in, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from vizggml.events import LayerResident, bus
from vizggml.ggml.buffer import MappedFile, Residency
from vizggml.ggml.gguf import GGUF
from vizggml.ggml.tensor import Tensor
from vizggml.llama.context import Context


def layer_residency(gguf: GGUF) -> dict[str, Residency]:
    """The pages of each layer's weights ("blk.0", ...), and of every other tensor by its name.

    VizggmlError where the system does not tell.
    """
    return {key: gguf.mapped.resident(first, last) for key, (first, last) in _ranges(gguf).items()}


def _ranges(gguf: GGUF) -> dict[str, tuple[int, int]]:
    ranges: dict[str, tuple[int, int]] = {}
    for name, info in gguf.tensors.items():
        key = ".".join(name.split(".")[:2]) if name.startswith("blk.") else name
        first = gguf.data_offset + info.offset
        low, high = ranges.get(key, (first, first))
        ranges[key] = min(low, first), max(high, first + info.nbytes)
    return ranges


def tell_layers(gguf: GGUF, told: dict[str, int]) -> None:
    """Say which layers have other pages in memory than those in `told`, and keep what was said there."""
    if not bus.on:
        return
    for name, (first, last) in _ranges(gguf).items():
        found = gguf.mapped.resident(first, last)
        if told.get(name) != found.pages:
            told[name] = found.pages
            bus.emit(LayerResident(gguf.mapped.id, name, first, found.pages, found.of))


@contextmanager
def pages_watched(ctx: Context, mapped: MappedFile, gguf: GGUF | None = None) -> Iterator[None]:
    """While a decode runs inside, ask for residency whenever a layer and the output are done: PagesResident events.

    With the `gguf` that is mapped also which layer's pages came: before it a LayerResident event for each that changed.
    Nodes are then computed one by one, as with any hook. Nothing is asked while nobody listens.
    """
    before = ctx.after_node
    told: dict[str, int] = {}
    if gguf is not None:
        tell_layers(gguf, told)

    def after_node(t: Tensor) -> None:
        if before is not None:
            before(t)
        if bus.on and (t.name.startswith("l_out-") or t.name == "result_output"):
            if gguf is not None:
                tell_layers(gguf, told)
            mapped.residency()

    ctx.after_node = after_node
    try:
        yield
    finally:
        ctx.after_node = before
