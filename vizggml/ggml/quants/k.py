"""The K family, 256 elements a block: Q6_K (decode) and Q8_K, the type its other side is taken in."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vizggml.ggml.quants.legacy import fields
from vizggml.ggml.quants.rounding import Blocks, Floats, first_of_largest_magnitude, in_blocks, nearest_int

QK_K = 256
BLOCK_Q6_K = np.dtype([("ql", "u1", QK_K // 2), ("qh", "u1", QK_K // 4), ("scales", "i1", QK_K // 16), ("d", "<f2")])
BLOCK_Q8_K = np.dtype([("d", "<f4"), ("qs", "i1", QK_K), ("bsums", "<i2", QK_K // 16)])
"""`block_q6_K`, `block_q8_K`, ggml/src/ggml-common.h. `bsums` holds the sum of each 16 codes."""


def codes_q6_k(ql: NDArray[np.uint8], qh: NDArray[np.uint8]) -> NDArray[np.int8]:
    """The 256 codes of each block, -32 to 31: four low bits from `ql`, two high bits from `qh`.

    Each half of a block (128 elements) takes 64 bytes of `ql` and 32 of `qh`: elements 0..31 and 64..95 share the first
    32 bytes of `ql` (low half, high half), elements 32..63 and 96..127 the last 32; byte l of `qh` has the bits of
    elements l, l + 32, l + 64 and l + 96, two each.
    """
    low = ql.reshape(*ql.shape[:-1], 2, 2, 32)
    high = qh.reshape(*qh.shape[:-1], 2, 32)
    four = np.concatenate([low & 0x0F, low >> 4], axis=-2)
    two = np.stack([(high >> shift) & 3 for shift in (0, 2, 4, 6)], axis=-2)
    codes: NDArray[np.int8] = (four | (two << 4)).view(np.int8) - np.int8(32)
    return codes.reshape(*ql.shape[:-1], QK_K)


def dequantize_q6_k(blocks: Blocks) -> Floats:
    """`dequantize_row_q6_K`, ggml/src/ggml-quants.c: scale times the 16 elements' own scale, then times the code."""
    x = fields(blocks, BLOCK_Q6_K)
    scales = x["d"].astype(np.float32)[..., None] * x["scales"].astype(np.float32)
    codes = codes_q6_k(x["ql"], x["qh"]).reshape(*scales.shape, 16)
    y: Floats = np.multiply(codes, scales[..., None], dtype=np.float32)
    return y.reshape(*x.shape[:-1], -1)


def quantize_q8_k(x: Floats) -> Blocks:
    """`quantize_row_q8_K_ref`, ggml/src/ggml-quants.c: the value of the largest magnitude becomes -127.

    ggml leaves the sums of an all-zero block as they were; here they are 0.
    """
    x = in_blocks(x, QK_K)
    y = np.zeros(x.shape[:-1], BLOCK_Q8_K)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        largest = first_of_largest_magnitude(x)
        some = largest != 0
        iscale = np.float32(-127) / largest
        codes = np.minimum(127, nearest_int(iscale[..., None] * x)).astype(np.int8)
        y["d"] = np.where(some, np.float32(1) / iscale, np.float32(0))
    y["qs"] = np.where(some[..., None], codes, np.int8(0))
    y["bsums"] = y["qs"].reshape(*y.shape, 16, 16).sum(axis=-1, dtype=np.int32)
    return y.view(np.uint8).reshape(*y.shape, BLOCK_Q8_K.itemsize)


def dequantize_q8_k(blocks: Blocks) -> Floats:
    """`dequantize_row_q8_K`, ggml/src/ggml-quants.c."""
    x = fields(blocks, BLOCK_Q8_K)
    y: Floats = np.multiply(x["qs"], x["d"].astype(np.float32)[..., None], dtype=np.float32)
    return y.reshape(*x.shape[:-1], -1)


def parts_q6_k(blocks: Blocks) -> tuple[Floats, Floats, NDArray[np.generic]]:
    """Scales, minimums (none) and codes of each block, as a person reads them."""
    x = fields(blocks, BLOCK_Q6_K)
    return x["d"].astype(np.float32), np.zeros(x.shape, np.float32), codes_q6_k(x["ql"], x["qh"])


def parts_q8_k(blocks: Blocks) -> tuple[Floats, Floats, NDArray[np.generic]]:
    x = fields(blocks, BLOCK_Q8_K)
    return x["d"].astype(np.float32), np.zeros(x.shape, np.float32), x["qs"]
