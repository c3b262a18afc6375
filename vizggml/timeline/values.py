"""What is kept of a node's values: five figures, a histogram and a grid of means.

The budget: a grid of at most 64 columns and 64 rows and 2,048 cells, and 32 bins, so that a node takes 190 to 8,400
bytes. A step of one token costs some 0.4 MB over the 936 nodes of SmolLM2, a prompt of 64 tokens some 7 MB.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vizggml.errors import VizggmlError
from vizggml.ggml.quants import decode
from vizggml.ggml.tensor import Tensor

MAX_SIDE = 64
MAX_CELLS = 2048
N_BINS = 32


@dataclass(frozen=True, slots=True)
class Values:
    """`stats`: minimum, maximum, mean, root of the mean square of the finite values, and how many are not finite.

    `bins` counts the finite values in equal steps from the minimum to the maximum, the maximum in the last. `grid` has
    a row for each run of the tensor's rows (dimensions 1 to 3 as one) and a column for each run along dimension 0: the
    mean of its finite values, or its first value where none is finite. Of n in k runs, run j begins at j * n // k.
    """

    stats: tuple[float, float, float, float, float]
    bins: NDArray[np.uint32]
    grid: NDArray[np.float32]


def sample_values(t: Tensor) -> Values:
    """Sum up a tensor's values. Blocks that nobody here can decode are taken as the bytes that they are."""
    rows = _rows(t)
    finite = np.isfinite(rows)
    n_bad = rows.size - int(np.count_nonzero(finite))
    good = (rows[finite] if n_bad else rows.ravel()).astype(np.float64)
    grid = _grid(rows, finite, n_bad)
    if not len(good):
        return Values((0.0, 0.0, 0.0, 0.0, float(n_bad)), np.zeros(N_BINS, np.uint32), grid)
    low, high = float(good.min()), float(good.max())
    stats = low, high, float(good.mean()), float(np.sqrt(np.mean(good * good))), float(n_bad)
    return Values(stats, _bins(good, low, high), grid)


def _rows(t: Tensor) -> NDArray[np.generic]:
    """The values as a matrix: dimension 0 across, the others down."""
    array = t.array()
    if t.type.name == "BF16":
        array = (array.astype(np.uint32) << 16).view(np.float32)
    elif t.type.is_quantized:
        try:
            array = decode(t.type, np.ascontiguousarray(array))
        except VizggmlError:
            array = array.reshape(*array.shape[:3], -1)
    n0 = array.shape[-1]
    return np.ascontiguousarray(array).reshape(array.size // n0 if n0 else 0, n0)


def _bins(good: NDArray[np.float64], low: float, high: float) -> NDArray[np.uint32]:
    width = (high - low) / N_BINS
    if width <= 0 or not np.isfinite(width):
        return np.bincount([0], weights=[len(good)], minlength=N_BINS).astype(np.uint32)
    which = np.minimum(((good - low) / width).astype(np.int64), N_BINS - 1)
    return np.bincount(which, minlength=N_BINS).astype(np.uint32)


def runs(n: int, k: int) -> NDArray[np.int64]:
    """Where each of `k` runs of `n` things begins."""
    return np.arange(k, dtype=np.int64) * n // max(1, k)


def grid_shape(n_rows: int, n_columns: int) -> tuple[int, int]:
    """Rows and columns of the grid: as many as there are, within the budget; dimension 0 comes first."""
    columns = min(n_columns, MAX_SIDE)
    return min(n_rows, MAX_SIDE, MAX_CELLS // max(1, columns)), columns


def _grid(rows: NDArray[np.generic], finite: NDArray[np.bool_], n_bad: int) -> NDArray[np.float32]:
    shape = grid_shape(*rows.shape)
    if shape == rows.shape or not rows.size:
        return rows.astype(np.float32)
    down, across = runs(rows.shape[0], shape[0]), runs(rows.shape[1], shape[1])
    sums = _sum_runs(np.where(finite, rows, 0) if n_bad else rows, down, across)
    counts = _sum_runs(finite, down, across)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        means = (sums / counts).astype(np.float32)
    first = rows[np.ix_(down, across)].astype(np.float32)
    return np.where(counts > 0, means, first)


def _sum_runs(a: NDArray[np.generic], down: NDArray[np.int64], across: NDArray[np.int64]) -> NDArray[np.float64]:
    along = np.add.reduceat(a, across, axis=1, dtype=np.float64)
    return np.asarray(np.add.reduceat(along, down, axis=0))
