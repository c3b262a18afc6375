"""Q2_K: 16 groups of 16 elements; a scale and a minimum of 4 bits each, codes of 2 bits. 2.625 bits an element."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vizggml.ggml.quants.k.shared import (
    QK_K,
    by_block,
    crumbs,
    elements,
    importance_columns,
    pack_crumbs,
    requantize,
)
from vizggml.ggml.quants.parts import Layout, Parts, as_bytes
from vizggml.ggml.quants.rounding import Blocks, Floats, columns, half, largest_above_zero, nearest_int, total
from vizggml.ggml.quants.search import make_qkx_quants, make_qp_quants

BLOCK_Q2_K = np.dtype([("scales", "u1", QK_K // 16), ("qs", "u1", QK_K // 4), ("d", "<f2"), ("dmin", "<f2")])
"""`block_q2_K`, ggml/src/ggml-common.h."""


def _four_bits(y: NDArray[np.void], field: str, x: Floats) -> NDArray[np.uint8]:
    """Scales (16, super-blocks) as multiples of a 15th of the largest, which goes into `field`."""
    top = largest_above_zero(x)
    some = top > 0
    y[field] = half(np.where(some, top / np.float32(15), np.float32(0)))
    codes = nearest_int(np.float32(15) / top * x).astype(np.uint8)
    return np.where(some, codes, np.uint8(0)).T


def _finish(y: NDArray[np.void], x: Floats, codes: Floats) -> Blocks:
    """Codes for the scales and minimums that the block keeps."""
    d = y["d"].astype(np.float32)[:, None] * (y["scales"] & 0x0F).astype(np.float32)
    dm = y["dmin"].astype(np.float32)[:, None] * (y["scales"] >> 4).astype(np.float32)
    y["qs"] = pack_crumbs(elements(requantize(x, d.ravel(), dm.ravel(), codes, 0, 3)))
    return as_bytes(y)


def quantize_q2_k(x: Floats) -> Blocks:
    """`quantize_row_q2_K_ref`, ggml/src/ggml-quants.c: (super-blocks, 256) to bytes."""
    y = np.zeros(len(x), BLOCK_Q2_K)
    groups = columns(x, 16)
    scales, mins, codes = make_qkx_quants(3, groups, np.abs(groups), -0.5, 0.1, 15, use_mad=True)
    s, m = _four_bits(y, "d", by_block(scales, 16)), _four_bits(y, "dmin", by_block(mins, 16))
    y["scales"] = s | (m << np.uint8(4))
    return _finish(y, groups, codes)


def weighted_q2_k(x: Floats, importance: Floats) -> Blocks:
    """`quantize_row_q2_K_impl`, ggml/src/ggml-quants.c."""
    y = np.zeros(len(x), BLOCK_Q2_K)
    groups, weights = columns(x, 16), importance_columns(x, importance, 16, 1)
    scales, mins, codes = make_qkx_quants(3, groups, weights, -0.9, 0.05, 36)
    sw = by_block(total(weights), 16)
    d, s = make_qp_quants(15, by_block(scales, 16), sw)
    dmin, m = make_qp_quants(15, by_block(mins, 16), sw)
    y["d"], y["dmin"] = half(d), half(dmin)
    y["scales"] = s.T.astype(np.uint8) | (m.T.astype(np.uint8) << np.uint8(4))
    return _finish(y, groups, codes)


def parts_q2_k(x: NDArray[np.void]) -> Parts:
    """As `dequantize_row_q2_K`, ggml/src/ggml-quants.c, reads a block."""
    d, dmin = x["d"].astype(np.float32)[..., None], x["dmin"].astype(np.float32)[..., None]
    codes = crumbs(x["qs"])
    mins = dmin * (x["scales"] >> 4).astype(np.float32)
    return Parts(d * (x["scales"] & 0x0F).astype(np.float32), -mins, codes, codes.view(np.int8))


LAYOUT = Layout(
    BLOCK_Q2_K,
    {
        "scales": "one byte for each 16 elements: scale in the low half, minimum in the high half",
        "qs": "codes, four in a byte: of each 128 elements, byte l has elements l, l + 32, l + 64 and l + 96",
        "d": "scale of the scales",
        "dmin": "scale of the minimums, which are taken off each element",
    },
    parts_q2_k,
)
