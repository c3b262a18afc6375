"""Q4_K and Q5_K: 8 groups of 32 elements; a scale and a minimum of 6 bits each, codes of 4 or 5 bits.

The two share everything but the fifth bit. 4.5 and 5.5 bits an element.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vizggml.ggml.quants.k.shared import (
    K_SCALE_SIZE,
    QK_K,
    by_block,
    elements,
    halves,
    importance_columns,
    pack_halves,
    pack_scales,
    requantize,
    six_bits,
    unpack_scales,
)
from vizggml.ggml.quants.parts import Layout, Parts, as_bytes
from vizggml.ggml.quants.rounding import Blocks, Floats, columns, half, largest_above_zero, total
from vizggml.ggml.quants.search import make_qkx_quants, make_qp_quants

_HEAD = [("d", "<f2"), ("dmin", "<f2"), ("scales", "u1", K_SCALE_SIZE)]
BLOCK_Q4_K = np.dtype([*_HEAD, ("qs", "u1", QK_K // 2)])
BLOCK_Q5_K = np.dtype([*_HEAD, ("qh", "u1", QK_K // 8), ("qs", "u1", QK_K // 2)])
"""`block_q4_K`, `block_q5_K`, ggml/src/ggml-common.h."""


def _put_head(y: NDArray[np.void], scales: Floats, mins: Floats) -> None:
    """Scales and minimums (8, super-blocks) as multiples of a 63rd of the largest."""
    top, top_min = largest_above_zero(scales), largest_above_zero(mins)
    inv_scale = np.where(top > 0, np.float32(63) / top, np.float32(0))
    inv_min = np.where(top_min > 0, np.float32(63) / top_min, np.float32(0))
    y["scales"] = pack_scales(six_bits(inv_scale * scales).T, six_bits(inv_min * mins).T)
    y["d"], y["dmin"] = half(top / np.float32(63)), half(top_min / np.float32(63))


def _search_head(y: NDArray[np.void], scales: Floats, mins: Floats, sw: Floats) -> None:
    """Scales and minimums (8, super-blocks) as the multiples that cost least. A code beyond 6 bits loses its head."""
    d, s = make_qp_quants(63, scales, sw)
    dmin, m = make_qp_quants(63, mins, sw)
    y["d"], y["dmin"] = half(d), half(dmin)
    y["scales"] = pack_scales(s.T.astype(np.uint8), m.T.astype(np.uint8))


def _scales_and_mins(x: NDArray[np.void]) -> tuple[Floats, Floats]:
    scales, mins = unpack_scales(x["scales"])
    d, dmin = x["d"].astype(np.float32)[..., None], x["dmin"].astype(np.float32)[..., None]
    return d * scales.astype(np.float32), dmin * mins.astype(np.float32)


def _finish(y: NDArray[np.void], x: Floats, codes: Floats, nmax: int) -> Blocks:
    """Codes for the scales and minimums that the block keeps."""
    d, dm = _scales_and_mins(y)
    new = elements(requantize(x, d.ravel(), dm.ravel(), codes, 0, nmax))
    y["qs"] = pack_halves(new & np.uint8(0x0F))
    if nmax > 15:
        y["qh"] = np.packbits(new.reshape(-1, 8, 32) > 15, axis=1, bitorder="little").reshape(-1, 32)
    return as_bytes(y)


def _quantize(y: NDArray[np.void], x: Floats, nmax: int, rmin: float, nstep: int) -> Blocks:
    groups = columns(x, 32)
    av_x = np.sqrt(total(groups * groups) / np.float32(32))
    scales, mins, codes = make_qkx_quants(nmax, groups, av_x + np.abs(groups), rmin, 0.1, nstep)
    _put_head(y, by_block(scales, 8), by_block(mins, 8))
    return _finish(y, groups, codes, nmax)


def _weighted(y: NDArray[np.void], x: Floats, importance: Floats, nmax: int) -> Blocks:
    groups, weights = columns(x, 32), importance_columns(x, importance, 32, 2)
    scales, mins, codes = make_qkx_quants(nmax, groups, weights, -0.9, 0.05, 36)
    _search_head(y, by_block(scales, 8), by_block(mins, 8), by_block(total(weights), 8))
    return _finish(y, groups, codes, nmax)


def quantize_q4_k(x: Floats) -> Blocks:
    """`quantize_row_q4_K_ref`, ggml/src/ggml-quants.c: (super-blocks, 256) to bytes."""
    return _quantize(np.zeros(len(x), BLOCK_Q4_K), x, 15, -1, 20)


def weighted_q4_k(x: Floats, importance: Floats) -> Blocks:
    """`quantize_row_q4_K_impl`, ggml/src/ggml-quants.c."""
    return _weighted(np.zeros(len(x), BLOCK_Q4_K), x, importance, 15)


def quantize_q5_k(x: Floats) -> Blocks:
    """`quantize_row_q5_K_ref`, ggml/src/ggml-quants.c."""
    return _quantize(np.zeros(len(x), BLOCK_Q5_K), x, 31, -0.5, 15)


def weighted_q5_k(x: Floats, importance: Floats) -> Blocks:
    """`quantize_row_q5_K_impl`, ggml/src/ggml-quants.c."""
    return _weighted(np.zeros(len(x), BLOCK_Q5_K), x, importance, 31)


def parts_q4_k(x: NDArray[np.void]) -> Parts:
    """As `dequantize_row_q4_K`, ggml/src/ggml-quants.c, reads a block."""
    scales, mins = _scales_and_mins(x)
    codes = halves(x["qs"])
    return Parts(scales, -mins, codes, codes.view(np.int8))


def parts_q5_k(x: NDArray[np.void]) -> Parts:
    """As `dequantize_row_q5_K`, ggml/src/ggml-quants.c, reads a block."""
    scales, mins = _scales_and_mins(x)
    fifth = np.unpackbits(x["qh"][..., None, :], axis=-2, bitorder="little").reshape(*x.shape, QK_K)
    codes = halves(x["qs"]) | (fifth << np.uint8(4))
    return Parts(scales, -mins, codes, codes.view(np.int8))


_MEANING = {
    "d": "scale of the scales",
    "dmin": "scale of the minimums, which are taken off each element",
    "scales": "eight scales and eight minimums of 6 bits, one of each for 32 elements",
}
_QS = "codes, two in a byte: of each 64 elements, the first 32 in the low halves, the others in the high halves"
LAYOUT_Q4_K = Layout(BLOCK_Q4_K, {**_MEANING, "qs": _QS}, parts_q4_k)
LAYOUT_Q5_K = Layout(
    BLOCK_Q5_K,
    {
        **_MEANING,
        "qh": "the fifth bit of each code: that of element j is bit j / 32 of byte j % 32",
        "qs": "four low bits of each code: of each 64 elements, the first 32 in the low halves of the bytes",
    },
    parts_q5_k,
)
