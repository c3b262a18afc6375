"""A codebook as a set of points of a lattice, and for every other point its nearest ones."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from vizggml.errors import VizggmlError
from vizggml.ggml.quants.iq import codebooks
from vizggml.ggml.quants.rounding import FLT_MAX, Floats, total

Indices = NDArray[np.int32]


@dataclass(frozen=True)
class Grid:
    """Points of `dim` coordinates 0 to base - 1. `n_near`: how many different distances count as near.

    `iq2xs_init_impl`, `iq3xs_init_impl`, ggml/src/ggml-quants.c.
    """

    name: str
    packed: str
    base: int
    dim: int
    n_near: int

    @cached_property
    def points(self) -> Indices:
        """The numbers of the codebook's points in the lattice, ascending."""
        bits = np.unpackbits(np.frombuffer(base64.b85decode(self.packed), np.uint8), bitorder="little")
        return np.flatnonzero(bits).astype(np.int32)

    @cached_property
    def codes(self) -> NDArray[np.uint8]:
        """Coordinates (dim, points)."""
        return self._coordinates(self.points)

    @cached_property
    def rank(self) -> Indices:
        """For every point of the lattice its rank in the codebook, or -1 - r if it is the r-th of those outside."""
        inside = np.zeros(self.base**self.dim, bool)
        inside[self.points] = True
        ranks: Indices = np.where(inside, np.cumsum(inside) - 1, -np.cumsum(~inside)).astype(np.int32)
        return ranks

    @cached_property
    def near(self) -> tuple[NDArray[np.uint16], Indices]:
        """For each point outside: the ranks of its near points, nearest first, and how many they are."""
        outside = np.flatnonzero(self.rank < 0)
        lists = [self._near(part) for part in np.array_split(outside, max(1, len(outside) // 512))]
        widest = max(ranks.shape[1] for ranks, _ in lists)
        padded = [np.pad(ranks, ((0, 0), (0, widest - ranks.shape[1]))) for ranks, _ in lists]
        return np.concatenate(padded), np.concatenate([counts for _, counts in lists])

    def _near(self, outside: NDArray[np.int64]) -> tuple[NDArray[np.uint16], Indices]:
        away = self._coordinates(outside).astype(np.int16)[:, :, None] - self.codes.astype(np.int16)[:, None, :]
        far = np.square(away).sum(axis=0, dtype=np.int16)
        order = np.argsort(far, axis=-1, kind="stable")
        far = np.take_along_axis(far, order, axis=-1)
        shell = np.cumsum(np.diff(far, axis=-1, prepend=far[:, :1]) > 0, axis=-1)
        counts = (shell < self.n_near).sum(axis=-1, dtype=np.int32)
        return order[:, : counts.max()].astype(np.uint16), counts

    def _coordinates(self, points: NDArray[np.integer]) -> NDArray[np.uint8]:
        return np.stack([points // self.base**i % self.base for i in range(self.dim)]).astype(np.uint8)

    def number(self, codes: Floats) -> NDArray[np.int32]:
        """The numbers of points (dim, ...) in the lattice."""
        powers = np.float32(self.base) ** np.arange(self.dim, dtype=np.float32)
        found: NDArray[np.int32] = np.tensordot(powers, codes, axes=1).astype(np.int32)
        return found

    def best(self, rank: Indices, x: Floats, w: Floats, scale: Floats, levels: Floats) -> Indices:
        """Ranks in the codebook for points outside it: of the near ones, that whose error costs least.

        `iq2_find_best_neighbour`, `iq3_find_best_neighbour`, `iq1_find_best_neighbour2`, ggml/src/ggml-quants.c, for
        all groups at once. `rank` (groups) is negative, as `rank` gives it; `x` and `w` (dim, groups); `levels` (what
        the codes 0, 1, ... stand for, or that for each group: (codes, groups)).
        """
        ranks, counts = self.near
        row = -1 - rank
        order = np.argsort(-counts[row], kind="stable")
        row, x, w, scale = row[order], x[:, order], w[:, order], scale[order]
        each = levels.ndim > 1
        levels = levels[:, order] if each else levels[self.codes]
        found = np.full(len(row), -1, np.int32)
        least = np.full(len(row), FLT_MAX)
        ascending = -counts[row]
        for j in range(int(-ascending[0]) if len(row) else 0):
            n = int(np.searchsorted(ascending, -j))
            candidate = ranks[row[:n], j]
            q = np.take_along_axis(levels[:, :n], self.codes[:, candidate], 0) if each else levels[:, candidate]
            off = scale[:n] * q - x[:, :n]
            d2 = total(w[:, :n] * off * off)
            better = d2 < least[:n]
            np.copyto(least[:n], d2, where=better)
            np.copyto(found[:n], candidate.astype(np.int32), where=better)
        if (found < 0).any():
            raise VizggmlError(f"type {self.name}: a block holds values or importance too large, or not finite")
        result = np.empty_like(found)
        result[order] = found
        return result


GRIDS = {
    "IQ2_XXS": Grid("IQ2_XXS", codebooks.IQ2_XXS, 3, 8, 2),
    "IQ2_XS": Grid("IQ2_XS", codebooks.IQ2_XS, 3, 8, 2),
    "IQ2_S": Grid("IQ2_S", codebooks.IQ2_S, 3, 8, 1),
    "IQ1_S": Grid("IQ1_S", codebooks.IQ1_S, 3, 8, 3),
    "IQ3_XXS": Grid("IQ3_XXS", codebooks.IQ3_XXS, 8, 4, 2),
    "IQ3_S": Grid("IQ3_S", codebooks.IQ3_S, 8, 4, 3),
}
"""IQ1_M takes the codebook of IQ1_S."""
