"""Q6_K: 16 groups of 16 elements; scales of 8 bits, codes of 6 bits, no minimums. 6.5625 bits an element."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vizggml.ggml.quants.k.shared import QK_K, by_block, elements, requantize
from vizggml.ggml.quants.parts import Layout, Parts, as_bytes
from vizggml.ggml.quants.rounding import Blocks, Floats, columns, half, largest_magnitude, nearest_int
from vizggml.ggml.quants.search import GROUP_MAX_EPS, make_qx_quants

BLOCK_Q6_K = np.dtype([("ql", "u1", QK_K // 2), ("qh", "u1", QK_K // 4), ("scales", "i1", QK_K // 16), ("d", "<f2")])
"""`block_q6_K`, ggml/src/ggml-common.h."""


def _pack(y: NDArray[np.void], codes: NDArray[np.uint8]) -> None:
    """Four low bits into `ql`, two high bits into `qh`, in the order that `codes_q6_k` describes."""
    q = codes.reshape(-1, 2, 4, 32)
    low, high = q & np.uint8(0x0F), q >> np.uint8(4)
    y["ql"] = (low[:, :, :2] | (low[:, :, 2:] << 4)).reshape(-1, 128)
    y["qh"] = (high[:, :, 0] | (high[:, :, 1] << 2) | (high[:, :, 2] << 4) | (high[:, :, 3] << 6)).reshape(-1, 64)


def codes_q6_k(ql: NDArray[np.uint8], qh: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The 256 codes of each block, 0 to 63: four low bits from `ql`, two high bits from `qh`.

    Each half of a block (128 elements) takes 64 bytes of `ql` and 32 of `qh`: elements 0..31 and 64..95 share the first
    32 bytes of `ql` (low half, high half), elements 32..63 and 96..127 the last 32; byte l of `qh` has the bits of
    elements l, l + 32, l + 64 and l + 96, two each.
    """
    low = ql.reshape(*ql.shape[:-1], 2, 2, 32)
    high = qh.reshape(*qh.shape[:-1], 2, 32)
    four = np.concatenate([low & 0x0F, low >> 4], axis=-2)
    two = np.stack([(high >> shift) & 3 for shift in (0, 2, 4, 6)], axis=-2)
    codes: NDArray[np.uint8] = four | (two << 4)
    return codes.reshape(*ql.shape[:-1], QK_K)


def quantize_q6_k(x: Floats, importance: Floats | None = None) -> Blocks:
    """`quantize_row_q6_K_ref` and `quantize_row_q6_K_impl`, ggml/src/ggml-quants.c: (super-blocks, 256) to bytes."""
    y = np.zeros(len(x), BLOCK_Q6_K)
    groups = columns(x, 16)
    scales, codes = make_qx_quants(32, groups, None if importance is None else columns(importance, 16))
    of_block = by_block(scales, 16)
    top, magnitude = largest_magnitude(of_block)
    iscale = np.float32(-128) / top
    y["d"] = half(np.float32(1) / iscale)
    y["scales"] = np.minimum(127, nearest_int(iscale * of_block)).astype(np.int8).T
    d = y["d"].astype(np.float32)[:, None] * y["scales"].astype(np.float32)
    _pack(y, elements(requantize(groups, d.ravel(), None, codes - np.float32(32), -32, 31) + np.float32(32)))
    y[magnitude < GROUP_MAX_EPS] = 0
    return as_bytes(y)


def parts_q6_k(x: NDArray[np.void]) -> Parts:
    """As `dequantize_row_q6_K`, ggml/src/ggml-quants.c, reads a block."""
    scales = x["d"].astype(np.float32)[..., None] * x["scales"].astype(np.float32)
    codes = codes_q6_k(x["ql"], x["qh"])
    return Parts(scales, None, codes, codes.view(np.int8) - np.int8(32))


LAYOUT = Layout(
    BLOCK_Q6_K,
    {
        "ql": "four low bits of each code: of each 128 elements, 64 bytes with two codes each",
        "qh": "two high bits of each code: of each 128 elements, byte l has elements l, l + 32, l + 64 and l + 96",
        "scales": "one signed scale for each 16 elements",
        "d": "scale of the scales; a code stands for code - 32",
    },
    parts_q6_k,
)
