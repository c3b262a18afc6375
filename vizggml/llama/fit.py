"""Two memories and one model: which layers go where, and what is left.

The first memory gets as many layers as it holds, from layer 0 on, with the token embedding; the second the rest, with
the inputs, the output and the logits. Each is a backend of its own, so that the scheduler cuts the graph between them
and each has its compute buffer, with the copies of what crosses. If one holds everything, the other stays empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TypedDict

from vizggml.errors import VizggmlError
from vizggml.ggml.buffer import BufferType
from vizggml.ggml.tensor import Tensor
from vizggml.ggml.types import TENSOR_ALIGNMENT, TYPES, pad
from vizggml.llama.cparams import ContextParams, CParams
from vizggml.llama.hparams import HParams
from vizggml.llama.kv_cache_iswa import cells_of_layer
from vizggml.llama.loader import TensorTable, Weights, make_weights
from vizggml.llama.plan import CountingBackend, Planned, duplicate, place_all

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


class Share(TypedDict):
    """What one memory of `size` bytes holds. `layers` are those from the first up to the second, not included."""

    size: int
    layers: tuple[int, int]
    model: int
    kv: int
    output: int
    compute: int
    left: int


class FitAnswer(TypedDict):
    """`Fit`, as JSON has it."""

    memories: list[Share]
    splits: int
    copies: int


@dataclass(frozen=True, slots=True)
class Fit:
    """`splits` is how many runs of nodes the graph is cut into, `copies` how many tensors cross between them."""

    shares: list[Share]
    splits: int
    copies: int

    def answer(self) -> FitAnswer:
        """What `vizggml plan --fit --json` adds."""
        return FitAnswer(memories=self.shares, splits=self.splits, copies=self.copies)


def memory_sizes(text: str) -> tuple[int, int]:
    """ "15G,12G" in bytes. VizggmlError if it is not two sizes."""
    found = [_size(part.strip()) for part in text.split(",")]
    if len(found) != 2:
        raise VizggmlError(f"fit {text!r}: two sizes are needed, such as 15G,12G")
    return found[0], found[1]


def _size(text: str) -> int:
    number, unit = (text[:-1], text[-1].upper()) if text and not text[-1].isdigit() else (text, "")
    try:
        n = float(number) * UNITS[unit]
        if n >= 1:
            return int(n)
    except (ValueError, KeyError, OverflowError):
        pass
    raise VizggmlError(f"fit: {text!r} is not a size; 15G, 512M and 1000 are")


def fit(hparams: HParams, table: TensorTable, params: ContextParams, sizes: tuple[int, int]) -> Fit:
    """The most layers into the first memory. VizggmlError with what is lacking if the rest does not fit the second."""
    cparams = CParams.resolve(params, hparams)
    totals = list(accumulate(unit_bytes(hparams, make_weights(table, hparams), cparams), initial=0))
    n = max(n for n, total in enumerate(totals) if total <= sizes[0])
    found = _shared(hparams, table, cparams, sizes, n)
    while n and found.shares[0]["left"] < 0:
        # the compute buffer is nearly the same however many layers there are
        lacking = -found.shares[0]["left"]
        goal = totals[n] - lacking
        n = max(m for m in range(n) if totals[m] <= max(goal, 0))
        found = _shared(hparams, table, cparams, sizes, n)
    short = -found.shares[1]["left"]
    if short > 0:
        need = sizes[1] + short
        raise VizggmlError(
            f"{hparams.architecture} of {hparams.n_layer} layers does not fit: with {_words(found.shares[0])} in the "
            f"first memory the second needs {need} bytes, it has {sizes[1]}: {short} too few"
        )
    return found


def _words(share: Share) -> str:
    first, end = share["layers"]
    return f"layers {first} to {end - 1}" if end > first else "no layer"


def unit_of(name: str, n_layer: int) -> int:
    """A weight's layer; the embedding goes with layer 0, the output after the last."""
    if name.startswith("blk."):
        return int(name.split(".")[1])
    return n_layer if name.startswith(("output", "cls")) else 0


def unit_bytes(hparams: HParams, weights: Weights, cparams: CParams) -> list[int]:
    """Bytes of the weights and the cache of each layer, then of the output; a tied one counts in layer 0 only."""
    row = TYPES[cparams.type_k].row_size, TYPES[cparams.type_v].row_size
    found = [
        cells_of_layer(hparams, cparams, il) * (row[0](hparams.n_embd_k_gqa(il)) + row[1](hparams.n_embd_v_gqa(il)))
        for il in range(hparams.n_layer)
    ]
    found.append(0)
    for name, t in weights.tensors.items():
        found[unit_of(name, hparams.n_layer)] += pad(t.nbytes, TENSOR_ALIGNMENT)
    return found


def _shared(hparams: HParams, table: TensorTable, cparams: CParams, sizes: tuple[int, int], n: int) -> Fit:
    """The plan with `n` units in the first memory."""
    backends = [CountingBackend("memory 0"), CountingBackend("memory 1")]
    weights = make_weights(table, hparams)
    place_in_two(weights, hparams.n_layer, n, [backend.buft for backend in backends])
    n_layers = min(n, hparams.n_layer)
    kv_bufts = [backends[int(il >= n)].buft for il in range(hparams.n_layer)]
    # a backend that has no layer would still be given the inputs
    used = [b for b, units in zip(backends, (n, hparams.n_layer + 1 - n), strict=True) if units]
    planned = Planned(hparams, weights, cparams, used, kv_bufts)
    planned.sched_reserve()
    shares: list[Share] = []
    for i, (backend, size) in enumerate(zip(backends, sizes, strict=True)):
        model = sum(b.size for b in weights.buffers if b.buft is backend.buft)
        kv = sum(b.size for b in planned.memory.buffers if b.buft is backend.buft)
        output = planned.output_size(cparams.n_seq_max) if i == int(n <= hparams.n_layer) else 0
        compute = planned.sched.get_buffer_size(backend) if backend in used else 0
        layers = (0, n_layers) if i == 0 else (n_layers, hparams.n_layer)
        left = size - model - kv - output - compute
        shares.append(Share(size=size, layers=layers, model=model, kv=kv, output=output, compute=compute, left=left))
    return Fit(shares, planned.sched.n_splits, sum(len(split.copies) for split in planned.sched.splits))


def place_in_two(weights: Weights, n_layer: int, n: int, bufts: Sequence[BufferType]) -> None:
    """Weights of units below `n` in the first buffer type, the others in the second; a tied output is in both."""
    parts: tuple[list[Tensor], list[Tensor]] = ([], [])
    for name, t in weights.tensors.items():
        parts[int(unit_of(name, n_layer) >= n)].append(t)
    if weights.output in parts[0] and n <= n_layer:
        weights.output = duplicate(weights, weights.output)
        parts[1].append(weights.output)
    weights.buffers += [place_all(part, buft) for part, buft in zip(parts, bufts, strict=True) if part]
