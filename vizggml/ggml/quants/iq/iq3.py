"""IQ3_XXS and IQ3_S: 4 elements take their magnitudes from a codebook of 256 or 512 points. 3.0625 and 3.4375 bits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vizggml.ggml.quants.iq.grid import GRIDS, Grid
from vizggml.ggml.quants.iq.iq2 import eight_signs, grid_parts, nibble_pairs
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
from vizggml.ggml.quants.parts import Layout, Parts, as_bytes
from vizggml.ggml.quants.rounding import Blocks, Floats, columns

BLOCK_IQ3_XXS = np.dtype([("d", "<f2"), ("qs", "u1", 64), ("scales_and_signs", "<u4", 8)])
BLOCK_IQ3_S = np.dtype([("d", "<f2"), ("qs", "u1", 64), ("qh", "u1", 8), ("signs", "u1", 32), ("scales", "u1", 4)])
"""`block_iq3_xxs`, `block_iq3_s`, ggml/src/ggml-common.h. The C record keeps both fields of IQ3_XXS in `qs`."""

LEVELS_XXS = np.array([4, 12, 20, 28, 36, 44, 52, 62], np.int8)
LEVELS_S = np.array([1, 3, 5, 7, 9, 11, 13, 15], np.int8)
EPS_IQ3_XXS = np.float32(1e-8)


def parts_iq3_xxs(x: NDArray[np.void]) -> Parts:
    """As `dequantize_row_iq3_xxs`, ggml/src/ggml-quants.c, reads a block."""
    words = x["scales_and_signs"]
    seven = (words[..., None] >> np.arange(0, 28, 7, dtype=np.uint32)) & 127
    half_up = np.float32(0.5) + (words >> 28).astype(np.float32)
    scales = x["d"].astype(np.float32)[..., None] * half_up * np.float32(0.5)
    return grid_parts("IQ3_XXS", LEVELS_XXS, scales, x["qs"], eight_signs(seven.reshape(*x.shape, 32)))


def parts_iq3_s(x: NDArray[np.void]) -> Parts:
    """As `dequantize_row_iq3_s`, ggml/src/ggml-quants.c, reads a block."""
    ninth = np.unpackbits(np.ascontiguousarray(x["qh"]), axis=-1, bitorder="little")
    odd = 2 * nibble_pairs(x["scales"]).astype(np.float32) + 1
    rank = x["qs"] | (ninth.astype(np.uint16) << 8)
    return grid_parts("IQ3_S", LEVELS_S, x["d"].astype(np.float32)[..., None] * odd, rank, x["signs"])


def _by_thirty_two(
    grid: Grid, x: Floats, w: Floats, steps: int, *, even: bool
) -> tuple[Floats, NDArray[np.int64], NDArray[np.int64]]:
    """Scales of sub-blocks of 32, ranks of each 4 (blocks, 64) and signs of each 8 (blocks, 32)."""
    sizes, signs = magnitudes(columns(x, 32), w, even=even)
    top = c_largest(sizes)
    zero: NDArray[np.bool_] = np.less(top, EPS_IQ3_XXS) if even else np.equal(top, 0)
    search = Search(grid, sizes[:, ~zero], w[:, ~zero])
    top = top[~zero]
    found = search.run(top, top / np.float32(15), steps, 0.2, on_grid=even)
    search.settle(found, again(found.on_grid, all_of_them=not even))
    own = positive(grid, found, signs[:, ~zero], 127 if even else 255)
    scale, rank, signs = spread(zero, found.scale, found.rank, own)
    return scale, join(rank, 64), join(signs, 32)


def again(on_grid: NDArray[np.bool_], *, all_of_them: bool) -> NDArray[np.bool_]:
    """Which points are looked for once more: those that lay outside, or all of a sub-block in which one did."""
    outside = ~on_grid
    return np.broadcast_to(outside.any(axis=0), outside.shape) if all_of_them else outside


def quantize_iq3_xxs(x: Floats, importance: Floats | None = None) -> Blocks:
    """`quantize_row_iq3_xxs_impl`, ggml/src/ggml-quants.c: (blocks, 256) to bytes."""
    scale, rank, signs = _by_thirty_two(GRIDS["IQ3_XXS"], x, costs(x, importance, 32, 2), 15, even=True)
    y = np.zeros(len(x), BLOCK_IQ3_XXS)
    y["d"], codes = four_bit_scales(scale, 8, 1.0125)
    some = with_scale(scale, 8)[:, None]
    words = (signs.reshape(-1, 8, 4) << np.arange(0, 28, 7)).sum(axis=-1) | (codes.astype(np.int64) << 28)
    y["qs"], y["scales_and_signs"] = np.where(some, rank, 0), np.where(some, words, 0)
    return as_bytes(y)


def quantize_iq3_s(x: Floats, importance: Floats | None = None) -> Blocks:
    """`quantize_row_iq3_s_impl`, ggml/src/ggml-quants.c."""
    scale, rank, signs = _by_thirty_two(GRIDS["IQ3_S"], x, costs(x, importance, 32, 2), 9, even=False)
    y = np.zeros(len(x), BLOCK_IQ3_S)
    y["d"], codes = four_bit_scales(scale, 8, 1.033)
    y["scales"] = codes[:, ::2] | (codes[:, 1::2] << 4)
    y["qs"], y["signs"] = rank & 255, signs
    y["qh"] = np.packbits(rank >> 8 != 0, axis=-1, bitorder="little")
    return as_bytes(y)


LAYOUTS = {
    "IQ3_XXS": Layout(
        BLOCK_IQ3_XXS,
        {
            "d": "scale of the block",
            "qs": "for each 4 elements, the rank in the codebook",
            "scales_and_signs": "a word for each 32 elements: four times seven signs (the eighth makes the minus signs "
            "even) and a scale l of 4 bits, (2 l + 1) / 4 of the block's",
        },
        parts_iq3_xxs,
    ),
    "IQ3_S": Layout(
        BLOCK_IQ3_S,
        {
            "d": "scale of the block",
            "qs": "for each 4 elements, eight low bits of the rank in the codebook",
            "qh": "the ninth bit of the ranks, eight of them in a byte",
            "signs": "for each 8 elements, a bit for each that is negative",
            "scales": "eight scales of 4 bits, one for each 32 elements: scale l is 2 l + 1 times the block's",
        },
        parts_iq3_s,
    ),
}
