"""Importance from a text: how large the activations are that each weight matrix is multiplied with.

`IMatrixCollector`, tools/imatrix/imatrix.cpp. A hook looks at every matrix product before it is computed and adds up,
column by column, the squares of the activations. The text goes through the model in chunks of `n_ctx` tokens, each with
an empty cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vizggml.errors import VizggmlError
from vizggml.ggml.gguf import quoted
from vizggml.ggml.tensor import Tensor
from vizggml.llama.imatrix_file import Entry, Imatrix
from vizggml.llama.model import Model

MIN_ROWS = 16
"""A product of fewer rows says too little: llama.cpp leaves it out, but for experts."""

Progress = Callable[[int, int], None]


class Collector:
    """Adds up squares. `before_node` is a hook for a context; a matrix is taken if its name begins with "blk."."""

    def __init__(self, chunk_size: int, process_output: bool = False) -> None:
        self.chunk_size = chunk_size
        self.process_output = process_output
        self.entries: dict[str, Entry] = {}
        self.last_chunk = 0

    def before_node(self, t: Tensor) -> None:
        """`IMatrixCollector::collect_imatrix`, tools/imatrix/imatrix.cpp."""
        if t.op not in ("MUL_MAT", "MUL_MAT_ID"):
            return
        weights, x = t.src[0], t.src[1]
        assert weights is not None
        assert x is not None
        if t.op == "MUL_MAT_ID":
            entry = self._experts(weights, x, t.src[2])
        elif x.ne[1] >= MIN_ROWS and x.type.name == "F32" and self._wanted(weights.name):
            entry = self._dense(weights, x)
        else:
            return
        if not np.isfinite(entry.sums).all():
            raise VizggmlError(f"tensor {quoted(weights.name)}: its activations are not all finite")
        self.last_chunk = max(self.last_chunk, int(entry.counts.max()) // self.chunk_size)

    def _wanted(self, name: str) -> bool:
        return name.startswith("blk.") or (self.process_output and name == "output.weight")

    def _entry(self, name: str, n: int, columns: int) -> Entry:
        entry = self.entries.get(name)
        if entry is None:
            entry = self.entries[name] = Entry(np.zeros((n, columns), np.float32), np.zeros(n, np.int64))
        return entry

    def _dense(self, weights: Tensor, x: Tensor) -> Entry:
        rows = x.array().reshape(-1, x.ne[0])
        entry = self._entry(weights.name, 1, x.ne[0])
        entry.sums[0] = added(entry.sums[0], rows)
        entry.counts[0] += len(rows)
        return entry

    def _experts(self, weights: Tensor, x: Tensor, ids: Tensor | None) -> Entry:
        """`ids` (tokens, slots) names the expert that each slot of a token goes to."""
        assert ids is not None
        entry = self._entry(weights.name, weights.ne[2], x.ne[0])
        chosen, activations = ids.array()[0, 0], x.array()[0]
        slots = np.arange(chosen.shape[1]) % x.ne[1]
        for expert in np.unique(chosen).tolist():
            slot, token = np.nonzero(expert == chosen.T)
            entry.sums[expert] = added(entry.sums[expert], activations[token, slots[slot]])
            entry.counts[expert] += len(slot)
        return entry


def added(sums: NDArray[np.float32], rows: NDArray[np.generic]) -> NDArray[np.float32]:
    """The sums and the squares of the rows, one row after the other in F32."""
    x = np.ascontiguousarray(rows, np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(np.add.reduce(np.concatenate([sums[None], x * x]), axis=0, dtype=np.float32))


def compute_imatrix(
    model: Model,
    tokens: Sequence[int],
    *,
    n_ctx: int = 512,
    n_ubatch: int = 512,
    flash_attn: bool = True,
    n_threads: int = 2,
    n_chunks: int | None = None,
    process_output: bool = False,
    bos: int | None = None,
    progress: Progress | None = None,
) -> Imatrix:
    """The importance of a model's matrices for `tokens`. `compute_imatrix`, tools/imatrix/imatrix.cpp.

    Each chunk of `n_ctx` tokens begins with `bos` in place of its first token, if there is one. VizggmlError for fewer
    than two chunks of tokens. `progress` is told the chunks done and their number.
    """
    if len(tokens) < 2 * n_ctx:
        raise VizggmlError(
            f"the text has {len(tokens)} tokens: at least {2 * n_ctx}, two chunks of {n_ctx}, are needed"
        )
    most = len(tokens) // n_ctx
    n = most if n_chunks is None else min(n_chunks, most)
    collector = Collector(n_ctx, process_output)
    context = model.context(
        n_ctx=n_ctx, n_batch=n_ctx, n_ubatch=min(n_ubatch, n_ctx), flash_attn=flash_attn, n_threads=n_threads
    )
    context.before_node = collector.before_node
    for i in range(n):
        chunk = list(tokens[i * n_ctx : (i + 1) * n_ctx])
        if bos is not None:
            chunk[0] = bos
        context.memory.clear()
        context.decode(chunk, range(len(chunk)))
        if progress is not None:
            progress(i + 1, n)
    return Imatrix(Path(), collector.entries, [], collector.last_chunk, n_ctx)


def read_text(path: str | Path) -> str:
    """The text of a file, without a newline at its end. VizggmlError if it is not there or no UTF-8."""
    try:
        raw = Path(path).read_bytes()
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise VizggmlError(f"{path}: byte {error.start} ({raw[error.start]:#04x}) is not UTF-8") from None
    except OSError as error:
        raise VizggmlError(f"{path}: cannot be read: {error.strerror or error}") from None
    return text.removesuffix("\n")


def imatrix_of_text(model: Model, path: str | Path, *, n_ctx: int = 512, **options: object) -> Imatrix:
    """The importance of a model's matrices for the text in a file; options as in `compute_imatrix`."""
    vocab = model.vocab
    tokens = vocab.tokenize(read_text(path))
    bos = vocab.special["bos"] if vocab.add_bos else None
    found = compute_imatrix(model, tokens, n_ctx=n_ctx, bos=bos, **options)  # type: ignore[arg-type]
    found.datasets.append(str(path))
    return found
