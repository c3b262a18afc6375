"""What a model will take, to the byte, before any of it is loaded: weights, KV cache, output and compute buffers.

Everything is made as for running, graphs and reservations, over buffer types that count and get no memory. No weight is
read: a file's header is enough, or a shape that has no file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from types import MappingProxyType
from typing import TypedDict

import numpy as np

from vizggml.errors import VizggmlError
from vizggml.events import Event, ParentReused, TensorAssigned, TensorFreed, TensorId, bus
from vizggml.ggml.buffer import Buffer, BufferType
from vizggml.ggml.cgraph import Graph
from vizggml.ggml.gguf import TensorInfo, read_gguf
from vizggml.ggml.tensor import Tensor
from vizggml.ggml.types import TENSOR_ALIGNMENT, pad
from vizggml.llama.cparams import ContextParams, CParams
from vizggml.llama.hparams import HParams
from vizggml.llama.loader import TensorTable, Weights, make_weights, mapping_range
from vizggml.llama.models import resolve_model
from vizggml.llama.reserve import Reservation
from vizggml.llama.shapes import ShapeTable, hparams_of, shape_named, table_of, tensor_shapes

MAPPED, REPACK = "CPU_Mapped", "CPU_REPACK"
REPACKED = ("Q4_0", "Q4_K", "Q2_K", "IQ4_NL", "MXFP4")
REPACKED_ROWS = 8


class CountingBufferType(BufferType):
    """A buffer type whose buffers have a size and no memory."""

    def alloc_buffer(self, size: int, usage: str = "any") -> Buffer:
        return Buffer(self, np.broadcast_to(np.zeros(1, np.uint8), size), usage)


class CountingBackend:
    """A backend that is planned for and never computes. It reads the weights that `near` it."""

    def __init__(self, name: str, *near: BufferType) -> None:
        self.name = name
        self.buft: BufferType = CountingBufferType(name)
        self.near = (self.buft, *near)

    def supports_op(self, t: Tensor) -> bool:
        return True

    def supports_buft(self, buft: BufferType) -> bool:
        return buft in self.near

    def offload_op(self, t: Tensor) -> bool:
        return False

    def graph_optimize(self, graph: Graph, add_alloc_dep: Callable[[Tensor, Tensor], None]) -> None:
        """It keeps the order."""

    def copy_tensor(self, src: Tensor, dst: Tensor) -> None:
        raise VizggmlError(f"backend {self.name}: it plans for {dst.name!r} and copies nothing")

    def compute(self, graph: Graph) -> None:
        raise VizggmlError(f"backend {self.name}: it plans graph {graph.id} and does not compute")


class Standing(TypedDict):
    """A tensor that has its place in the compute buffer at a moment."""

    name: str
    op: str
    type: str
    ne: list[int]
    offset: int
    size: int


class Buffers(TypedDict):
    """Bytes: weights by buffer type, each KV buffer, the output buffer, the compute buffer."""

    model: dict[str, int]
    kv: list[int]
    output: int
    compute: int


class Answer(TypedDict):
    """The JSON answer of `vizggml plan`."""

    architecture: str
    nodes: int
    splits: int
    buffers: Buffers
    peak: list[Standing]


@dataclass(slots=True)
class Peak:
    """What the allocator's own events tell: who holds a place in each chunk, and who did when it was fullest."""

    live: dict[TensorId, tuple[int, int, int, int]] = field(default_factory=dict)
    high: dict[tuple[int, int], int] = field(default_factory=dict)
    standing: dict[int, list[tuple[TensorId, int, int]]] = field(default_factory=dict)

    @contextmanager
    def watch(self) -> Iterator[Peak]:
        stops = [bus.subscribe(kind, self.on) for kind in (TensorAssigned, ParentReused, TensorFreed)]
        try:
            yield self
        finally:
            for stop in stops:
                stop()

    def on(self, event: Event) -> None:
        match event:
            case TensorFreed():
                self.live.pop(event.tensor, None)
            case ParentReused():
                self.live.pop(event.parent, None)
                self.live[event.tensor] = (event.buffer_id, event.chunk, event.offset, event.size)
            case TensorAssigned():
                self.live[event.tensor] = (event.buffer_id, event.chunk, event.offset, event.size)
                end, chunk = event.offset + pad(event.size, TENSOR_ALIGNMENT), (event.buffer_id, event.chunk)
                if end > self.high.get(chunk, 0):
                    self.high[chunk] = end
                    self.standing[event.buffer_id] = [
                        (t, offset, size) for t, (b, _, offset, size) in self.live.items() if b == event.buffer_id
                    ]


class Planned(Reservation):
    """A reservation that also knows what stands at the peak of the largest of its graphs, `peaks` by backend."""

    largest = (-1, 0, 0)
    peaks: Mapping[int, list[Standing]] = MappingProxyType({})

    def sched_reserve(self) -> None:
        super().sched_reserve()
        with Peak().watch() as peak:
            super().graph_reserve(*self.largest[1:])
        gf = self.sched.graph
        assert gf is not None
        tensors = {t.id: t for t in (*gf.leafs, *gf.nodes)}
        tensors |= {src.id: src for t in gf.nodes for src in t.src if src is not None}
        self.peaks = {
            backend: [standing(tensors[t], offset, size) for t, offset, size in sorted(found, key=_at)]
            for backend, found in peak.standing.items()
        }

    def graph_reserve(self, n_tokens: int, n_outputs: int) -> None:
        super().graph_reserve(n_tokens, n_outputs)
        total = sum(map(sum, self.sched.galloc.chunk_sizes()))
        self.largest = max(self.largest, (total, n_tokens, n_outputs))


def _at(found: tuple[TensorId, int, int]) -> int:
    return found[1]


def standing(t: Tensor, offset: int, size: int) -> Standing:
    return Standing(name=t.name, op=t.op, type=t.type.name, ne=list(t.ne), offset=offset, size=size)


@dataclass(frozen=True, slots=True)
class Plan:
    """The bytes that llama.cpp will take. `peak` is what stands in the compute buffer when it is fullest.

    `copied` is how much of the file's range that is mapped are matrices that were copied out of it.
    """

    architecture: str
    nodes: int
    splits: int
    model: dict[str, int]
    kv: list[int]
    output: int
    compute: int
    peak: list[Standing]
    copied: int = 0

    @property
    def mapped(self) -> int:
        """Bytes of the file's range that is mapped: its pages come as they are read, and can be dropped."""
        return self.model.get(MAPPED, 0)

    @property
    def allocated(self) -> int:
        """Bytes that are allocated: all but the weights that are mapped from the file."""
        return sum(self.model.values()) - self.mapped + sum(self.kv) + self.output + self.compute

    def answer(self) -> Answer:
        """What `vizggml plan --json` prints."""
        return Answer(
            architecture=self.architecture,
            nodes=self.nodes,
            splits=self.splits,
            buffers=Buffers(model=self.model, kv=self.kv, output=self.output, compute=self.compute),
            peak=self.peak,
        )


def plan_file(name: str | Path, params: ContextParams) -> Plan:
    """Plan for a GGUF file (or "tiny", "smollm2"), from its header alone. VizggmlError as from loading it."""
    return plan(*file_model(name), params)


def file_model(name: str | Path) -> tuple[HParams, TensorTable]:
    """The numbers and the tensors of a file."""
    gguf = read_gguf(resolve_model(name), header_only=True)
    try:
        return HParams.from_gguf(gguf), ShapeTable(gguf.path, gguf.tensors)
    finally:
        gguf.close()


def plan_shape(name: str, mixture: str, params: ContextParams) -> Plan:
    """Plan for a shape that has no file, quantized as llama.cpp's quantizer would.

    VizggmlError for a shape or a mixture that is not known.
    """
    return plan(*shape_model(name, mixture), params)


def shape_model(name: str, mixture: str) -> tuple[HParams, TensorTable]:
    """The numbers and the tensors of a named shape."""
    shape = shape_named(name)
    hparams = hparams_of(name, shape)
    return hparams, table_of(name, hparams, tensor_shapes(shape), mixture)


def plan(hparams: HParams, table: TensorTable, params: ContextParams) -> Plan:
    """Plan for the CPU: what `llama_model_load_from_file` and `llama_init_from_model`, src/llama.cpp, allocate."""
    cparams = CParams.resolve(params, hparams)
    weights = make_weights(table, hparams)
    copied = place_weights(weights, table.tensors)
    backend = CountingBackend("CPU", *(buffer.buft for buffer in weights.buffers))
    planned = Planned(hparams, weights, cparams, [backend], backend.buft)
    planned.sched_reserve()
    return Plan(
        architecture=hparams.architecture,
        nodes=len(planned.gf_res_reserve.gf.nodes),
        splits=planned.sched.n_splits,
        model={buffer.buft.name: buffer.size for buffer in weights.buffers},
        kv=[buffer.size for buffer in planned.memory.buffers],
        output=planned.output_size(cparams.n_seq_max),
        compute=planned.sched.get_buffer_size(backend),
        peak=planned.peaks.get(0, []),
        copied=copied,
    )


def is_repacked(t: Tensor) -> bool:
    """Whether a matrix that is only multiplied is laid out anew, on x86 with AVX-512.

    `ggml_repack_get_optimal_repack_type`, `extra_buffer_type::supports_op`, ggml/src/ggml-cpu/repack.cpp.
    """
    return t.type.name in REPACKED and t.ne[1] % REPACKED_ROWS == 0


def is_product(name: str) -> bool:
    """Whether a weight is the first operand of a matrix product: `llm_tensor_info_for`, src/llama-arch.cpp."""
    what, _, kind = name.rpartition(".")
    what = what.rpartition(".")[2]
    looked_up = what in ("token_embd", "rope_freqs", "rope_factors_long", "rope_factors_short")
    return kind == "weight" and not what.endswith("norm") and not looked_up


def place_weights(weights: Weights, infos: Mapping[str, TensorInfo]) -> int:
    """Give each tensor its buffer; how many bytes of the map are copied out of it.

    `create_tensor`, src/llama-model-loader.cpp; `load_tensors`, src/llama-model.cpp.

    What stays as the file has it lies in one range of the map, from the first such tensor to the last; repacked
    matrices are copied out of it. A tied output that is repacked is there beside the embedding that stays.
    """
    copies = [t for name, t in weights.tensors.items() if is_product(name) and is_repacked(t)]
    stay = [t for t in weights.tensors.values() if t not in copies]
    moved = [infos[t.name] for t in copies]
    copied = 0
    if weights.output in stay and is_repacked(weights.output):
        weights.output = duplicate(weights, weights.output)
        copies.append(weights.output)
    if stay:
        first, last = mapping_range(infos[t.name] for t in stay)
        buffer = CountingBufferType(MAPPED).alloc_buffer(last - first, "weights")
        for t in stay:
            buffer.tensor_alloc(t, infos[t.name].offset - first)
        weights.buffers.append(buffer)
        copied = sum(info.nbytes for info in moved if first <= info.offset < last)
    if copies:
        weights.buffers.append(place_all(copies, CountingBufferType(REPACK)))
    return copied


def duplicate(weights: Weights, t: Tensor) -> Tensor:
    """The same tensor a second time, for another buffer."""
    return weights.context.new_tensor(t.type, t.ne, t.name)


def place_all(tensors: Sequence[Tensor], buft: BufferType) -> Buffer:
    """One buffer for all, each padded. `alloc_tensor_range`, ggml/src/ggml-alloc.c."""
    sizes = [pad(buft.get_alloc_size(t), buft.alignment) for t in tensors]
    buffer = buft.alloc_buffer(sum(sizes), "weights")
    for t, offset in zip(tensors, accumulate(sizes, initial=0), strict=False):
        buffer.tensor_alloc(t, offset)
    return buffer
