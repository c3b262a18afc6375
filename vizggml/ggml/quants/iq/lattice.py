"""The search that IQ2 and IQ3 share: a scale and codebook points for groups of magnitudes, ggml/src/ggml-quants.c.

Sub-blocks are columns. Elements are (dim, points of a sub-block, sub-blocks): each codebook point covers `dim` of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vizggml.errors import VizggmlError
from vizggml.ggml.quants.iq.grid import Grid, Indices
from vizggml.ggml.quants.k.shared import QK_K, by_block, sigma2
from vizggml.ggml.quants.rounding import Floats, c_max, columns, half, nearest_int, weigh
from vizggml.ggml.quants.search import whole

F = np.float32


def in_points(x: Floats, dim: int) -> Floats:
    """Columns (elements of a sub-block, sub-blocks) as (dim, points, sub-blocks)."""
    return np.ascontiguousarray(x.reshape(len(x) // dim, dim, -1).swapaxes(0, 1))


def total_of_points(terms: Floats) -> Floats:
    """The sum over all elements of a sub-block, in their order."""
    sums = np.zeros(terms.shape[-1], np.float32)
    for k in range(terms.shape[1]):
        for i in range(terms.shape[0]):
            sums += terms[i, k]
    return sums


def costs(x: Floats, importance: Floats | None, size: int, factor: float) -> Floats:
    """What each element's error costs, as columns of sub-blocks; without importance its square."""
    if importance is None:
        return columns(x * x, size)
    each = np.repeat(sigma2(x, factor)[:, None], QK_K, axis=-1)
    return columns(weigh(importance, x, each), size)


def magnitudes(x: Floats, w: Floats, *, even: bool) -> tuple[Floats, NDArray[np.uint8]]:
    """Magnitudes, and the signs of each 8 elements as a byte (groups of 8 in a sub-block, sub-blocks).

    With `even`, each 8 have an even number of minus signs, so that seven bits tell all eight: where it is odd, the
    element that costs least changes its sign, and its magnitude is negative.
    """
    groups, costs = x.reshape(-1, 8, x.shape[-1]), w.reshape(-1, 8, w.shape[-1])
    minus = ~(groups >= 0)
    size = np.where(minus, -groups, groups)
    if even:
        odd = minus.sum(axis=1) % 2 == 1
        price = costs * groups * groups
        cheapest, least = np.zeros(odd.shape, np.int64), price[:, 0].copy()
        for i in range(1, 8):
            less = price[:, i] < least
            np.copyto(least, price[:, i], where=less)
            np.copyto(cheapest, i, where=less)
        flip = odd[:, None] & (np.arange(8)[:, None] == cheapest[:, None])
        size, minus = np.where(flip, -size, size), minus ^ flip
    signs = np.packbits(minus, axis=1, bitorder="little")[:, 0]
    return size.reshape(x.shape), signs & np.uint8(127) if even else signs


def c_largest(x: Floats) -> Floats:
    """The largest of each column as `MAX` finds it."""
    top: Floats = x[0]
    for value in x[1:]:
        top = c_max(top, value)
    return top


@dataclass
class Found:
    """Scale of each sub-block, rank in the codebook of each point (points, sub-blocks), which lay in the codebook."""

    scale: Floats
    rank: Indices
    on_grid: NDArray[np.bool_]


class Search:
    """Magnitudes `x` and costs `w` of sub-blocks, to be put on a grid whose code l stands for 2 l + 1."""

    def __init__(self, grid: Grid, x: Floats, w: Floats) -> None:
        self.grid = grid
        self.x, self.w = in_points(x, grid.dim), in_points(w, grid.dim)
        self.root, self.wx = np.sqrt(self.w), self.w * self.x
        self.levels = 2 * np.arange(grid.base, dtype=np.float32) + 1

    def ranks(self, inverse: Floats, scale: Floats, where: NDArray[np.bool_] | None = None) -> Indices:
        """The codebook's points for a scale. Ranks outside it become the best near one, or only those `where` asks."""
        codes = whole(F(0.5) * (inverse * self.x - F(1)), 0, self.grid.base - 1)
        rank = self.grid.rank[self.grid.number(codes)]
        outside = rank < 0 if where is None else (rank < 0) & where
        columns_of = np.broadcast_to(scale, rank.shape)[outside]
        near = self.grid.best(rank[outside], self.x[:, outside], self.root[:, outside], columns_of, self.levels)
        self.outside = rank < 0
        rank[outside] = near
        return rank

    def sums(self, rank: Indices) -> tuple[Floats, Floats]:
        """Sums of weight x value x level, and of weight x level squared."""
        q = self.levels[self.grid.codes][:, rank]
        return total_of_points(self.wx * q), total_of_points(self.w * q * q)

    def run(self, top: Floats, scale: Floats, steps: int, step: float, *, on_grid: bool = True) -> Found:
        """Try 2 * steps + 1 scales that put `top` near the highest level, and keep the best.

        `on_grid` is what is said of points if none is better than nothing.
        """
        shape = self.x.shape[1:]
        best, rank, inside = np.zeros_like(scale), np.zeros(shape, np.int32), np.full(shape, on_grid)
        highest = F(2 * self.grid.base - 1)
        for i in range(-steps, steps + 1):
            inverse = (highest + F(i) * F(step)) / top
            trial = self.ranks(inverse, F(1) / inverse)
            sumqx, sumq2 = self.sums(trial)
            better = (sumq2 > 0) & (sumqx * sumqx > best * sumq2)
            scale = np.where(better, sumqx / sumq2, scale)
            best = np.where(better, scale * sumqx, best)
            np.copyto(rank, trial, where=better)
            np.copyto(inside, ~self.outside, where=better)
        return Found(scale, rank, inside)

    def settle(self, found: Found, again: NDArray[np.bool_]) -> None:
        """Points `again` (points, sub-blocks) for the scale that was found, and the scale of least squares for them."""
        some = again.any(axis=0) & (found.scale > 0)
        again = again & some
        rank = self.ranks(F(1) / found.scale, found.scale, again)
        np.copyto(found.rank, rank, where=again)
        sumqx, sumq2 = self.sums(found.rank)
        found.scale = np.where(some & (sumq2 > 0), sumqx / sumq2, found.scale)


def positive(grid: Grid, found: Found, signs: NDArray[np.uint8], flip: int) -> NDArray[np.uint8]:
    """Scales are kept without sign: a negative one turns, and so do the signs of its elements."""
    signs = np.where(found.scale < 0, signs ^ np.uint8(flip), signs)
    found.scale = np.where(found.scale < 0, -found.scale, found.scale)
    if np.isnan(found.scale).any():
        raise VizggmlError(f"type {grid.name}: a block holds values or importance too large, or not finite")
    return signs


def join(a: Indices | NDArray[np.uint8], n: int) -> NDArray[np.int64]:
    """Numbers (points of a sub-block, sub-blocks) as (blocks, points)."""
    return np.ascontiguousarray(a.T).reshape(-1, n).astype(np.int64)


def spread(
    zero: NDArray[np.bool_], scale: Floats, rank: Indices, signs: NDArray[np.uint8]
) -> tuple[Floats, Indices, NDArray[np.uint8]]:
    """What was found for sub-blocks that are not zero, with the others among them."""
    scales, n = np.zeros(len(zero), np.float32), len(zero)
    ranks, all_signs = np.zeros((len(rank), n), np.int32), np.zeros((len(signs), n), np.uint8)
    scales[~zero], ranks[:, ~zero], all_signs[:, ~zero] = scale, rank, signs
    return scales, ranks, all_signs


def with_scale(scales: Floats, n_groups: int) -> NDArray[np.bool_]:
    """Which blocks have a sub-block whose scale is not 0."""
    found: NDArray[np.bool_] = np.not_equal(scales.reshape(-1, n_groups), 0).max(axis=-1)
    return found


def four_bit_scales(scales: Floats, n_groups: int, fudge: float) -> tuple[NDArray[np.float16], NDArray[np.uint8]]:
    """The block's scale, and those of its sub-blocks (blocks, n_groups) as 2 l + 1 times a 31st of the largest."""
    of_block = by_block(scales, n_groups)
    top = c_largest(of_block)
    d = top / F(31)
    codes = np.clip(nearest_int(F(0.5) * (F(1) / d * of_block - F(1))), 0, 15).astype(np.uint8)
    some = top != 0
    return half(np.where(some, d * F(fudge), F(0))), np.where(some, codes, np.uint8(0)).T
