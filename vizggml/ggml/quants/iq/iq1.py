"""IQ1_S and IQ1_M: 8 elements are a codebook point of -1, 0, 1, all moved by an eighth up or down.

1.5625 and 1.75 bits an element.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vizggml.errors import VizggmlError
from vizggml.ggml.quants.iq.grid import GRIDS, Indices
from vizggml.ggml.quants.iq.lattice import c_largest, costs, in_points, join, total_of_points
from vizggml.ggml.quants.k.shared import QK_K, by_block
from vizggml.ggml.quants.parts import Layout, Parts, as_bytes
from vizggml.ggml.quants.rounding import FLT_MAX, Blocks, Floats, columns, half, nearest_int, total

BLOCK_IQ1_S = np.dtype([("d", "<f2"), ("qs", "u1", QK_K // 8), ("qh", "<u2", QK_K // 32)])
BLOCK_IQ1_M = np.dtype([("qs", "u1", QK_K // 8), ("qh", "u1", QK_K // 16), ("scales", "<u2", QK_K // 64)])
"""`block_iq1_s`, `block_iq1_m`, ggml/src/ggml-common.h."""

F = np.float32
DELTA = F(0.125)
UP, DOWN = np.array([-1, 0, 1], np.float32) + DELTA, np.array([-1, 0, 1], np.float32) - DELTA
"""What codes 0, 1, 2 stand for in a group that is moved up, and in one that is moved down."""


def _parts(d: Floats, odd: NDArray[np.integer], rank: NDArray[np.integer], down: NDArray[np.bool_]) -> Parts:
    """Scales 2 odd + 1 of sub-blocks, ranks of each 8, and which of these are moved down."""
    codes = np.moveaxis(GRIDS["IQ1_S"].codes[:, rank], 0, -1)
    levels = np.where(down[..., None], DOWN[codes], UP[codes])
    shape = (*rank.shape[:-1], -1)
    return Parts(d * (2 * odd + 1).astype(np.float32), None, codes.reshape(shape), levels.reshape(shape), rank)


def parts_iq1_s(x: NDArray[np.void]) -> Parts:
    """As `dequantize_row_iq1_s`, ggml/src/ggml-quants.c, reads a block."""
    qh = x["qh"].astype(np.int32)
    high = (qh[..., None] >> np.arange(0, 12, 3)) & 7
    rank = x["qs"] | (high.reshape(*x.shape, 32) << 8)
    down = np.repeat(qh & 0x8000 != 0, 4, axis=-1)
    return _parts(x["d"].astype(np.float32)[..., None], (qh >> 12) & 7, rank, down)


def block_scales(x: NDArray[np.void]) -> Floats:
    """The scales of blocks of IQ1_M: their bits lie in the upper four bits of four words."""
    digits = x["scales"].astype(np.int32) >> 12
    bits: NDArray[np.uint16] = (digits << np.arange(0, 16, 4)).sum(axis=-1).astype(np.uint16)
    return bits.view(np.float16).astype(np.float32)


def parts_iq1_m(x: NDArray[np.void]) -> Parts:
    """As `dequantize_row_iq1_m`, ggml/src/ggml-quants.c, reads a block."""
    words = x["scales"].astype(np.int32)
    odd = (words[..., None] >> np.arange(0, 12, 3)) & 7
    halves = (x["qh"].astype(np.int32)[..., None] >> np.array([0, 4])).reshape(*x.shape, 32) & 15
    return _parts(block_scales(x)[..., None], odd.reshape(*x.shape, 16), x["qs"] | ((halves & 7) << 8), halves & 8 != 0)


class Splits:
    """Sub-blocks (columns) sorted, and every way to split each into the codes 0, 1, 2: the best is kept."""

    def __init__(self, x: Floats, w: Floats) -> None:
        self.size, n = x.shape
        self.order = np.argsort(x, axis=0, kind="stable")
        self.x, self.w = (np.take_along_axis(a, self.order, axis=0) for a in (w * x, w))
        self.best = np.full(n, -FLT_MAX)
        self.scale = np.zeros(n, np.float32)
        self.i1, self.i2, self.which = (np.full(n, -1, np.int32) for _ in range(3))

    def offer(self, i1: int, i2: int, which: int, sumqx: Floats, sumq2: Floats) -> None:
        """A split at i1 and i2, with the `which`-th way to move the groups up or down."""
        better = (sumq2 > 0) & (sumqx * sumqx > self.best * sumq2)
        if not better.any():
            return
        scale = sumqx / sumq2
        np.copyto(self.scale, scale, where=better)
        np.copyto(self.best, scale * sumqx, where=better)
        for kept, now in ((self.i1, i1), (self.i2, i2), (self.which, which)):
            np.copyto(kept, now, where=better)

    def codes(self) -> NDArray[np.int8]:
        """The codes of the best split, in the order of the elements; of a negative scale they are turned."""
        at = np.arange(self.size)[:, None]
        sorted_codes = (at >= self.i1).astype(np.int8) + (at >= self.i2)
        codes = np.empty_like(sorted_codes)
        np.put_along_axis(codes, self.order, sorted_codes, axis=0)
        return np.where(self.scale < 0, np.int8(2) - codes, codes)


def _prefix(terms: Floats) -> Floats:
    """Sums of the first 0, 1, ... terms."""
    zero = np.zeros((1, terms.shape[1]), np.float32)
    return np.concatenate([zero, np.add.accumulate(terms, axis=0, dtype=np.float32)])


def split_iq1_s(x: Floats, w: Floats) -> Splits:
    """All 561 splits of 32, moved up (0) or down (1), as in `quantize_row_iq1_s_impl`, ggml/src/ggml-quants.c."""
    splits = Splits(x, w)
    sumx, sumw = _prefix(splits.x), _prefix(splits.w)
    n = splits.size
    for i1 in range(n + 1):
        for i2 in range(i1, n + 1):
            x0, x1, x2 = sumx[i1] - sumx[0], sumx[i2] - sumx[i1], sumx[n] - sumx[i2]
            w0, w1, w2 = sumw[i1] - sumw[0], sumw[i2] - sumw[i1], sumw[n] - sumw[i2]
            for which, v in enumerate((UP, DOWN)):
                sumqx = x0 * v[0] + x1 * v[1] + x2 * v[2]
                sumq2 = w0 * v[0] * v[0] + w1 * v[1] * v[1] + w2 * v[2] * v[2]
                splits.offer(i1, i2, which, sumqx, sumq2)
    return splits


def split_iq1_m(x: Floats, w: Floats) -> Splits:
    """All splits of 16, each half of 8 moved up or down: `which` is 2 (first down) + (second down).

    As in `quantize_row_iq1_m_impl`, ggml/src/ggml-quants.c: neighbouring codes differ by 1, so that a sum over three
    groups is that over all times the last level, less two sums of first terms.
    """
    splits = Splits(x, w)
    latter = splits.order >= 8
    px = [_prefix(np.where(latter == h, splits.x, F(0))) for h in (False, True)]
    pw = [_prefix(np.where(latter == h, splits.w, F(0))) for h in (False, True)]
    n = splits.size
    steps = [(v[2], v[0] * v[0] - v[1] * v[1], v[1] * v[1] - v[2] * v[2]) for v in (UP, DOWN)]
    for i1 in range(n + 1):
        for i2 in range(i1, n + 1):
            qx = [[px[h][n] * last - (px[h][i1] + px[h][i2]) for last, _, _ in steps] for h in (0, 1)]
            q2 = [[pw[h][n] * last * last + pw[h][i1] * c1 + pw[h][i2] * c2 for last, c1, c2 in steps] for h in (0, 1)]
            for which in range(4):
                a, b = which >> 1, which & 1
                splits.offer(i1, i2, which, qx[0][a] + qx[1][b], q2[0][a] + q2[1][b])
    return splits


def _on_grid(
    x: Floats, w: Floats, codes: NDArray[np.int8], scale: Floats, down: NDArray[np.bool_]
) -> tuple[Indices, Floats]:
    """Ranks (points, sub-blocks), and the scales, corrected where a point had to move. `down` (points, sub-blocks)."""
    grid = GRIDS["IQ1_S"]
    points, costs_of = in_points(x, 8), in_points(w, 8)
    rank = grid.rank[grid.number(in_points(codes.astype(np.float32), 8))]
    outside = rank < 0
    levels = np.where(down, DOWN[:, None, None], UP[:, None, None])
    where = np.broadcast_to(scale, rank.shape)[outside]
    rank[outside] = grid.best(rank[outside], points[:, outside], costs_of[:, outside], where, levels[:, outside])
    q = np.take_along_axis(levels, grid.codes[:, rank], 0)
    sumqx, sumq2 = total_of_points(costs_of * q * points), total_of_points(costs_of * q * q)
    corrected = outside.any(axis=0) & (sumqx > 0) & (sumq2 > 0)
    return rank, np.where(corrected, sumqx / sumq2, scale)


def _quantize(
    x: Floats, w: Floats, splits: Splits, eps: float, down: NDArray[np.bool_]
) -> tuple[Floats, Indices, NDArray[np.bool_]]:
    """Scales, ranks and zero sub-blocks for splits that were found. `down`: which points are moved down."""
    zero = np.less(c_largest(np.abs(x)), F(eps)) | (splits.which < 0)
    some = ~zero
    scales, ranks = np.zeros(len(zero), np.float32), np.zeros((len(down), len(zero)), np.int32)
    found = _on_grid(x[:, some], w[:, some], splits.codes()[:, some], np.abs(splits.scale[some]), down[:, some])
    ranks[:, some], scales[some] = found
    if np.isnan(scales).any():
        raise VizggmlError("type IQ1_S or IQ1_M: a block holds values or importance too large, or not finite")
    return scales, ranks, zero


def weighted_iq1_s(x: Floats, importance: Floats) -> Blocks:
    """`quantize_row_iq1_s_impl`, ggml/src/ggml-quants.c: (blocks, 256) to bytes."""
    groups, w = columns(x, 32), costs(x, importance, 32, 2)
    splits = split_iq1_s(groups, w)
    moved_down = (splits.which == 1) ^ (splits.scale < 0)
    scales, rank, zero = _quantize(groups, w, splits, 1e-12, np.broadcast_to(moved_down, (4, len(moved_down))))
    of_block = by_block(scales, 8)
    top = c_largest(of_block)
    d = top / F(15)
    small = np.clip(nearest_int(F(0.5) * (F(1) / d * of_block - F(1))), 0, 7).T
    shifts = by_block((moved_down & ~zero).astype(np.float32), 8).T.astype(np.int64)
    ranks = join(rank, 32)
    y = np.zeros(len(x), BLOCK_IQ1_S)
    y["d"] = half(d * F(1.125))
    y["qs"] = ranks & 255
    high = ((ranks >> 8).reshape(-1, 8, 4) << np.arange(0, 12, 3)).sum(axis=-1)
    y["qh"] = high | np.where(top[:, None] != 0, (small | (shifts << 3)) << 12, 0)
    return as_bytes(y)


def quantize_iq1_m(x: Floats, importance: Floats | None = None) -> Blocks:
    """`quantize_row_iq1_m_impl`, ggml/src/ggml-quants.c: (blocks, 256) to bytes."""
    groups, w = columns(x, 16), costs(x, importance, 16, 2)
    splits = split_iq1_m(groups, w)
    which = np.where(splits.scale < 0, np.int32(3) - splits.which, splits.which)
    down = np.stack([which >> 1, which & 1]) == 1
    scales, rank, zero = _quantize(groups, w, splits, 1e-7, down)
    down = down & ~zero
    of_block = by_block(scales, 16)
    top = c_largest(of_block)
    d, some = top / F(15), top != 0
    small = np.clip(nearest_int(F(0.5) * (F(1) / d * of_block - F(1))), 0, 7)
    d = np.where(some, _fitted(groups, w, rank, down, small, d), F(0))
    return _pack_iq1_m(join(rank, 32), join(down, 32), np.where(some, small, 0).T, half(d * F(1.1125)), some)


def _fitted(
    x: Floats, w: Floats, rank: Indices, down: NDArray[np.bool_], small: NDArray[np.int32], d: Floats
) -> Floats:
    """The block's scale of least squares, once all else is decided."""
    levels = np.where(down, DOWN[:, None, None], UP[:, None, None])
    q = np.take_along_axis(levels, GRIDS["IQ1_S"].codes[:, rank], 0) * (2 * small.T.ravel() + 1).astype(np.float32)
    costs_of = in_points(w, 8)
    terms = costs_of * q * in_points(x, 8), costs_of * q * q
    sumqx, sumq2 = (total(columns(a.swapaxes(0, 1).reshape(16, -1).T, QK_K)) for a in terms)
    return np.where(sumq2 > 0, sumqx / sumq2, d)


def _pack_iq1_m(
    rank: NDArray[np.int64],
    down: NDArray[np.int64],
    small: NDArray[np.int32],
    d: NDArray[np.float16],
    some: NDArray[np.bool_],
) -> Blocks:
    y = np.zeros(len(rank), BLOCK_IQ1_M)
    y["qs"] = rank & 255
    half_bytes = (rank >> 8) | np.where(some[:, None], down << 3, 0)
    y["qh"] = half_bytes[:, ::2] | (half_bytes[:, 1::2] << 4)
    bits = d.view(np.uint16).astype(np.int64)[:, None] >> np.arange(0, 16, 4) & 15
    y["scales"] = (small.reshape(-1, 4, 4).astype(np.int64) << np.arange(0, 12, 3)).sum(axis=-1) | (bits << 12)
    return as_bytes(y)


LAYOUTS = {
    "IQ1_S": Layout(
        BLOCK_IQ1_S,
        {
            "d": "scale of the block",
            "qs": "for each 8 elements, eight low bits of the rank in the codebook",
            "qh": "a word for each 32 elements: four times three high bits of the ranks, a scale l of 3 bits (2 l + 1 "
            "times the block's), and a bit that moves them down by an eighth, not up",
        },
        parts_iq1_s,
    ),
    "IQ1_M": Layout(
        BLOCK_IQ1_M,
        {
            "qs": "for each 8 elements, eight low bits of the rank in the codebook",
            "qh": "for each 8 elements, half a byte: three high bits of the rank, and a bit that moves them down by an "
            "eighth, not up",
            "scales": "four words: four scales l of 3 bits each (2 l + 1 times the block's, for 16 elements), and in "
            "the upper four bits a quarter of the bits of the block's scale",
        },
        parts_iq1_m,
    ),
}
