"""Q3_K: 16 groups of 16 elements; scales of 6 bits, codes of 3 bits, no minimums. 3.4375 bits an element."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vizggml.ggml.quants.k.shared import (
    K_SCALE_SIZE,
    QK_K,
    by_block,
    crumbs,
    elements,
    importance_columns,
    pack_crumbs,
    requantize,
)
from vizggml.ggml.quants.parts import Layout, Parts, as_bytes
from vizggml.ggml.quants.rounding import Blocks, Floats, columns, half, largest_magnitude, nearest_int, total
from vizggml.ggml.quants.search import make_q3_quants, make_qx_quants

BLOCK_Q3_K = np.dtype(
    [("hmask", "u1", QK_K // 8), ("qs", "u1", QK_K // 4), ("scales", "u1", K_SCALE_SIZE), ("d", "<f2")]
)
"""`block_q3_K`, ggml/src/ggml-common.h."""


def pack_sixteen(scales: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Sixteen scales of 6 bits in 12 bytes: low four bits of 0..7 and 8..15 in bytes 0..7, high two bits in 8..11."""
    high = (scales >> 4).reshape(-1, 4, 4)
    top = high[:, 0] | (high[:, 1] << 2) | (high[:, 2] << 4) | (high[:, 3] << 6)
    low = (scales[:, :8] & 0x0F) | ((scales[:, 8:] & 0x0F) << 4)
    return np.concatenate([low, top], axis=-1)


def unpack_sixteen(q: NDArray[np.uint8]) -> NDArray[np.int8]:
    """The sixteen scales, -32 to 31."""
    low = np.concatenate([q[..., :8] & 0x0F, q[..., :8] >> 4], axis=-1)
    high = np.concatenate([(q[..., 8:] >> shift) & 3 for shift in (0, 2, 4, 6)], axis=-1)
    scales: NDArray[np.int8] = (low | (high << 4)).view(np.int8) - np.int8(32)
    return scales


def _finish(y: NDArray[np.void], x: Floats, codes: Floats) -> Blocks:
    """Codes for the scales that the block keeps: two bits in `qs`, the third in `hmask`."""
    d = y["d"].astype(np.float32)[:, None] * unpack_sixteen(y["scales"]).astype(np.float32)
    new = elements(requantize(x, d.ravel(), None, codes - np.float32(4), -4, 3) + np.float32(4))
    y["qs"] = pack_crumbs(new & np.uint8(3))
    y["hmask"] = np.packbits(new.reshape(-1, 8, 32) > 3, axis=1, bitorder="little").reshape(-1, 32)
    return as_bytes(y)


def quantize_q3_k(x: Floats) -> Blocks:
    """`quantize_row_q3_K_ref`, ggml/src/ggml-quants.c: (super-blocks, 256) to bytes."""
    y = np.zeros(len(x), BLOCK_Q3_K)
    groups = columns(x, 16)
    scales, codes = make_q3_quants(4, groups)
    of_block = by_block(scales, 16)
    top, _ = largest_magnitude(of_block)
    iscale = np.float32(-32) / top
    some = top != 0
    small = np.clip(nearest_int(iscale * of_block).astype(np.int8), -32, 31) + np.int8(32)
    y["scales"] = np.where(some[:, None], pack_sixteen(small.T.astype(np.uint8)), np.uint8(0))
    y["d"] = half(np.where(some, np.float32(1) / iscale, np.float32(0)))
    return _finish(y, groups, codes)


def weighted_q3_k(x: Floats, importance: Floats) -> Blocks:
    """`quantize_row_q3_K_impl`, ggml/src/ggml-quants.c."""
    y = np.zeros(len(x), BLOCK_Q3_K)
    groups, weights = columns(x, 16), importance_columns(x, importance, 16, 2)
    scales, codes = make_qx_quants(4, groups, weights)
    d, s = make_qx_quants(32, by_block(scales, 16), by_block(total(weights), 16))
    y["scales"] = pack_sixteen(s.T.astype(np.uint8))
    y["d"] = half(d)
    return _finish(y, groups, codes)


def parts_q3_k(x: NDArray[np.void]) -> Parts:
    """As `dequantize_row_q3_K`, ggml/src/ggml-quants.c, reads a block."""
    scales = x["d"].astype(np.float32)[..., None] * unpack_sixteen(x["scales"]).astype(np.float32)
    third = np.unpackbits(x["hmask"][..., None, :], axis=-2, bitorder="little").reshape(*x.shape, QK_K)
    codes = crumbs(x["qs"]) | (third << np.uint8(2))
    return Parts(scales, None, codes, codes.view(np.int8) - np.int8(4))


LAYOUT = Layout(
    BLOCK_Q3_K,
    {
        "hmask": "the third bit of each code: that of element j is bit j / 32 of byte j % 32",
        "qs": "two low bits of each code: of each 128 elements, byte l has elements l, l + 32, l + 64 and l + 96",
        "scales": "sixteen scales of 6 bits, less 32: low four bits in bytes 0 to 7, high two bits in bytes 8 to 11",
        "d": "scale of the scales; a code stands for code - 4",
    },
    parts_q3_k,
)
