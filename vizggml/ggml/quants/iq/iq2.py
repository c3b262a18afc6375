"""IQ2_XXS, IQ2_XS, IQ2_S: 8 elements take their magnitudes from a codebook of 256, 512 or 1024 points.

Codes 0, 1, 2 stand for 8, 25, 43; a sub-block's scale is (2 l + 1) / 8 of the block's. 2.0625, 2.3125 and 2.5625 bits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vizggml.ggml.quants.iq.grid import GRIDS, Grid
from vizggml.ggml.quants.iq.lattice import (
    Search,
    c_largest,
    costs,
    four_bit_scales,
    join,
    magnitudes,
    positive,
    spread,
    with_scale,
)
from vizggml.ggml.quants.k.shared import sigma2
from vizggml.ggml.quants.parts import Layout, Parts, as_bytes
from vizggml.ggml.quants.rounding import Blocks, Floats, columns
from vizggml.ggml.quants.search import GROUP_MAX_EPS, make_qp_quants

BLOCK_IQ2_XXS = np.dtype([("d", "<f2"), ("qs", "<u4", (8, 2))])
BLOCK_IQ2_XS = np.dtype([("d", "<f2"), ("qs", "<u2", 32), ("scales", "u1", 8)])
BLOCK_IQ2_S = np.dtype([("d", "<f2"), ("qs", "u1", 32), ("signs", "u1", 32), ("qh", "u1", 8), ("scales", "u1", 8)])
"""`block_iq2_xxs`, `_xs`, `_s`, ggml/src/ggml-common.h; in C the signs of IQ2_S are the latter half of qs."""

LEVELS = np.array([8, 25, 43], np.int8)
EPS_IQ2_S = np.float32(1e-8)


def eight_signs(seven: NDArray[np.integer]) -> NDArray[np.integer]:
    """`ksigns_iq2xs`: the eighth sign makes the number of minus signs even."""
    parity = seven ^ (seven >> 4)
    parity = parity ^ (parity >> 2)
    parity = (parity ^ (parity >> 1)) & 1
    return seven | (parity << 7)


def signed(levels: NDArray[np.int8], signs: NDArray[np.integer]) -> NDArray[np.int8]:
    """Magnitudes (..., groups, 8) with the signs of each group (..., groups); as (..., elements)."""
    minus = (signs[..., None] >> np.arange(8, dtype=signs.dtype)) & 1
    return np.where(minus == 1, -levels, levels).reshape(*levels.shape[:-2], -1)


def nibble_pairs(q: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Bytes as low half, high half, low half, ..."""
    return np.stack([q & 0x0F, q >> 4], axis=-1).reshape(*q.shape[:-1], -1)


def grid_parts(
    name: str, values: NDArray[np.int8], scales: Floats, rank: NDArray[np.integer], signs: NDArray[np.integer]
) -> Parts:
    """Scales of sub-blocks, ranks (..., points), signs of each 8."""
    codes = np.moveaxis(GRIDS[name].codes[:, rank], 0, -1)
    levels = values[codes].reshape(*signs.shape, 8)
    return Parts(scales, None, codes.reshape(*rank.shape[:-1], -1), signed(levels, signs), rank)


def _scales(d: NDArray[np.generic], codes: NDArray[np.integer]) -> Floats:
    half_up = np.float32(0.5) + codes.astype(np.float32)
    return d.astype(np.float32)[..., None] * half_up * np.float32(0.25)


def parts_iq2_xxs(x: NDArray[np.void]) -> Parts:
    """As `dequantize_row_iq2_xxs`, ggml/src/ggml-quants.c, reads a block."""
    ranks, rest = x["qs"][..., 0], x["qs"][..., 1]
    rank = (ranks[..., None] >> np.arange(0, 32, 8, dtype=np.uint32)) & 255
    seven = (rest[..., None] >> np.arange(0, 28, 7, dtype=np.uint32)) & 127
    flat = (*x.shape, 32)
    return grid_parts(
        "IQ2_XXS", LEVELS, _scales(x["d"], rest >> 28), rank.reshape(flat), eight_signs(seven.reshape(flat))
    )


def parts_iq2_xs(x: NDArray[np.void]) -> Parts:
    """As `dequantize_row_iq2_xs`, ggml/src/ggml-quants.c, reads a block."""
    q = x["qs"]
    return grid_parts("IQ2_XS", LEVELS, _scales(x["d"], nibble_pairs(x["scales"])), q & 511, eight_signs(q >> 9))


def parts_iq2_s(x: NDArray[np.void]) -> Parts:
    """As `dequantize_row_iq2_s`, ggml/src/ggml-quants.c, reads a block."""
    high = (x["qh"][..., None] >> np.array([0, 2, 4, 6], np.uint8)) & 3
    rank = x["qs"] | (high.reshape(*x.shape, 32).astype(np.uint16) << 8)
    return grid_parts("IQ2_S", LEVELS, _scales(x["d"], nibble_pairs(x["scales"])), rank, x["signs"])


def weighted_iq2_xxs(x: Floats, importance: Floats) -> Blocks:
    """`quantize_row_iq2_xxs_impl`, ggml/src/ggml-quants.c: (blocks, 256) to bytes."""
    grid = GRIDS["IQ2_XXS"]
    w = costs(x, importance, 32, 1)
    sizes, signs = magnitudes(columns(x, 32), w, even=True)
    first, _ = make_qp_quants(grid.base + 1, sizes, w)
    top = first * np.float32(grid.base)
    zero = np.asarray((c_largest(sizes) < GROUP_MAX_EPS) | (top <= 0))
    search = Search(grid, sizes[:, ~zero], w[:, ~zero])
    found = search.run(top[~zero], first[~zero], 6, 0.1)
    search.settle(found, np.ones(found.rank.shape, bool))
    own = positive(grid, found, signs[:, ~zero], 127)
    scale, rank, signs = spread(zero, found.scale, found.rank, own)
    y = np.zeros(len(x), BLOCK_IQ2_XXS)
    y["d"], codes = four_bit_scales(scale, 8, 1)
    points, seven = join(rank, 32).reshape(-1, 8, 4), join(signs, 32).reshape(-1, 8, 4)
    words = (points << np.arange(0, 32, 8)).sum(axis=-1)
    rest = (seven << np.arange(0, 28, 7)).sum(axis=-1) | (codes.astype(np.int64) << 28)
    some = with_scale(scale, 8)[:, None, None]
    y["qs"] = np.where(some, np.stack([words, rest], axis=-1), 0)
    return as_bytes(y)


def _by_sixteen(
    grid: Grid, x: Floats, w: Floats, eps: np.float32, *, even: bool
) -> tuple[Floats, NDArray[np.int64], NDArray[np.int64]]:
    """Scales of sub-blocks of 16, and the ranks and signs of each 8 (blocks, 32)."""
    sizes, signs = magnitudes(columns(x, 16), w, even=even)
    top = c_largest(sizes)
    zero: NDArray[np.bool_] = np.less(top, eps)
    search = Search(grid, sizes[:, ~zero], w[:, ~zero])
    top = top[~zero]
    found = search.run(top, top / np.float32(5), 9, 0.1)
    search.settle(found, ~found.on_grid)
    own = positive(grid, found, signs[:, ~zero], 127 if even else 255)
    scale, rank, signs = spread(zero, found.scale, found.rank, own)
    return scale, join(rank, 32), join(signs, 32)


def weighted_iq2_xs(x: Floats, importance: Floats) -> Blocks:
    """`quantize_row_iq2_xs_impl`, ggml/src/ggml-quants.c."""
    scale, rank, signs = _by_sixteen(GRIDS["IQ2_XS"], x, costs(x, importance, 16, 1), GROUP_MAX_EPS, even=True)
    y = np.zeros(len(x), BLOCK_IQ2_XS)
    y["d"], codes = four_bit_scales(scale, 16, 1)
    y["scales"] = codes[:, ::2] | (codes[:, 1::2] << 4)
    some = with_scale(scale, 16)
    y["qs"] = np.where(some[:, None], rank | (signs << 9), 0)
    return as_bytes(y)


def quantize_iq2_s(x: Floats, importance: Floats | None = None) -> Blocks:
    """`quantize_row_iq2_s_impl`, ggml/src/ggml-quants.c."""
    if importance is None:
        w = columns(np.float32(0.25) * sigma2(x, 2)[:, None] + x * x, 16)
    else:
        w = costs(x, importance, 16, 2)
    scale, rank, signs = _by_sixteen(GRIDS["IQ2_S"], x, w, EPS_IQ2_S, even=False)
    y = np.zeros(len(x), BLOCK_IQ2_S)
    y["d"], codes = four_bit_scales(scale, 16, 0.9875)
    y["scales"] = codes[:, ::2] | (codes[:, 1::2] << 4)
    y["qs"], y["signs"] = rank & 255, signs
    y["qh"] = ((rank >> 8).reshape(-1, 8, 4) << np.arange(0, 8, 2)).sum(axis=-1)
    return as_bytes(y)


_SCALES = "sixteen scales of 4 bits, one for each 16 elements: scale l is (2 l + 1) / 8 of the block's"
LAYOUTS = {
    "IQ2_XXS": Layout(
        BLOCK_IQ2_XXS,
        {
            "d": "scale of the block",
            "qs": "two words for each 32 elements: four ranks in the codebook, a byte each; then four times seven "
            "signs (the eighth makes the minus signs even) and a scale l of 4 bits, (2 l + 1) / 8 of the block's",
        },
        parts_iq2_xxs,
    ),
    "IQ2_XS": Layout(
        BLOCK_IQ2_XS,
        {
            "d": "scale of the block",
            "qs": "for each 8 elements: rank in the codebook (9 bits), then seven signs; the eighth makes them even",
            "scales": _SCALES,
        },
        parts_iq2_xs,
    ),
    "IQ2_S": Layout(
        BLOCK_IQ2_S,
        {
            "d": "scale of the block",
            "qs": "for each 8 elements, eight low bits of the rank in the codebook",
            "signs": "for each 8 elements, a bit for each that is negative",
            "qh": "two high bits of the ranks, four of them in a byte",
            "scales": _SCALES,
        },
        parts_iq2_s,
    ),
}
