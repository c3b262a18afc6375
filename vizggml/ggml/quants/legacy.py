"""The types with one scale for 32 elements: Q4_0, Q4_1, Q8_0, Q8_1.

A 4-bit block keeps element j in the low half of byte j and element j + 16 in its high half.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vizggml.ggml.quants.rounding import (
    Blocks,
    Floats,
    c_int,
    first_of_largest_magnitude,
    first_smallest,
    in_blocks,
    inverse,
    roundf,
)

QK = 32
BLOCK_Q4_0 = np.dtype([("d", "<f2"), ("qs", "u1", QK // 2)])
BLOCK_Q4_1 = np.dtype([("d", "<f2"), ("m", "<f2"), ("qs", "u1", QK // 2)])
BLOCK_Q8_0 = np.dtype([("d", "<f2"), ("qs", "i1", QK)])
BLOCK_Q8_1 = np.dtype([("d", "<f2"), ("s", "<f2"), ("qs", "i1", QK)])
"""`block_q4_0` and its kin, ggml/src/ggml-common.h. `d` is the scale, `m` the minimum, `s` is d times the sum of qs."""


def fields(blocks: Blocks, dtype: np.dtype[np.void]) -> NDArray[np.void]:
    """The blocks' bytes as records of `dtype`, shape (..., blocks)."""
    return blocks.view(dtype)[..., 0]


def _bytes(records: NDArray[np.void]) -> Blocks:
    return records.view(np.uint8).reshape(*records.shape, records.dtype.itemsize)


def nibbles(qs: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The 32 codes of each block from its 16 bytes, in the order of the elements."""
    return np.concatenate([qs & 0x0F, qs >> 4], axis=-1)


def _pack_nibbles(codes: NDArray[np.int32]) -> NDArray[np.uint8]:
    small = np.minimum(15, codes.astype(np.int8)).astype(np.uint8)
    low, high = small[..., : QK // 2], small[..., QK // 2 :]
    return low | (high << np.uint8(4))


def quantize_q4_0(x: Floats) -> Blocks:
    """`quantize_row_q4_0_ref`, ggml/src/ggml-quants.c: the largest magnitude becomes code 0, that is -8."""
    x = in_blocks(x, QK)
    y = np.empty(x.shape[:-1], BLOCK_Q4_0)
    with np.errstate(over="ignore", invalid="ignore"):
        d = first_of_largest_magnitude(x) / np.float32(-8)
        y["d"] = d
        y["qs"] = _pack_nibbles(c_int(x * inverse(d)[..., None] + np.float32(8.5)))
    return _bytes(y)


def quantize_q4_1(x: Floats) -> Blocks:
    """`quantize_row_q4_1_ref`, ggml/src/ggml-quants.c: codes 0 to 15 span the block's minimum to its maximum."""
    x = in_blocks(x, QK)
    y = np.empty(x.shape[:-1], BLOCK_Q4_1)
    with np.errstate(over="ignore", invalid="ignore"):
        low, high = first_smallest(x), -first_smallest(-x)
        d = (high - low) / np.float32(15)
        y["d"], y["m"] = d, low
        y["qs"] = _pack_nibbles(c_int((x - low[..., None]) * inverse(d)[..., None] + np.float32(0.5)))
    return _bytes(y)


def _q8_ref(x: Floats) -> tuple[Floats, NDArray[np.int8]]:
    d = np.abs(x).max(axis=-1) / np.float32(127)
    return d, c_int(roundf(x * inverse(d)[..., None])).astype(np.int8)


def quantize_q8_0(x: Floats) -> Blocks:
    """`quantize_row_q8_0_ref`, ggml/src/ggml-quants.c."""
    x = in_blocks(x, QK)
    y = np.empty(x.shape[:-1], BLOCK_Q8_0)
    with np.errstate(over="ignore", invalid="ignore"):
        y["d"], y["qs"] = _q8_ref(x)
    return _bytes(y)


def quantize_q8_1(x: Floats) -> Blocks:
    """`quantize_row_q8_1_ref`, ggml/src/ggml-quants.c."""
    x = in_blocks(x, QK)
    y = np.empty(x.shape[:-1], BLOCK_Q8_1)
    with np.errstate(over="ignore", invalid="ignore"):
        d, qs = _q8_ref(x)
        y["d"], y["qs"] = d, qs
        y["s"] = qs.sum(axis=-1, dtype=np.int32).astype(np.float32) * d
    return _bytes(y)


def _q8_cpu(x: Floats) -> tuple[Floats, NDArray[np.int32]]:
    amax = np.abs(x).max(axis=-1)
    d = amax / np.float32(127)
    scale = np.divide(np.float32(127), amax, out=np.zeros_like(amax), where=amax != 0)
    return d, c_int(np.rint(x * scale[..., None]))


def from_float_q8_0(x: Floats) -> Blocks:
    """`quantize_row_q8_0`, ggml/src/ggml-cpu/arch/x86/quants.c: how activations are encoded while computing.

    It multiplies by 127 / amax and rounds halves to even, where `quantize_q8_0` multiplies by 1 / d and rounds them
    away from zero.
    """
    x = in_blocks(x, QK)
    y = np.empty(x.shape[:-1], BLOCK_Q8_0)
    with np.errstate(over="ignore", invalid="ignore"):
        d, qs = _q8_cpu(x)
    with np.errstate(over="ignore"):
        y["d"], y["qs"] = d, np.clip(qs, -128, 127)
    return _bytes(y)


def from_float_q8_1(x: Floats) -> Blocks:
    """`quantize_row_q8_1`, ggml/src/ggml-cpu/arch/x86/quants.c."""
    x = in_blocks(x, QK)
    y = np.empty(x.shape[:-1], BLOCK_Q8_1)
    with np.errstate(over="ignore", invalid="ignore"):
        d, qs = _q8_cpu(x)
        y["d"], y["qs"] = d, np.clip(qs, -128, 127)
        y["s"] = d * qs.sum(axis=-1, dtype=np.int32).astype(np.float32)
    return _bytes(y)


def _scaled(codes: NDArray[np.int8], d: NDArray[np.float16]) -> Floats:
    y = np.multiply(codes, d.astype(np.float32)[..., None], dtype=np.float32)
    return y.reshape(*y.shape[:-2], -1)


def dequantize_q4_0(blocks: Blocks) -> Floats:
    """`dequantize_row_q4_0`, ggml/src/ggml-quants.c."""
    x = fields(blocks, BLOCK_Q4_0)
    return _scaled(nibbles(x["qs"]).view(np.int8) - np.int8(8), x["d"])


def split_q4_1(blocks: Blocks) -> tuple[Floats, Floats]:
    """Code times scale for each element (..., ne0), and the minimum of each block (..., blocks)."""
    x = fields(blocks, BLOCK_Q4_1)
    return _scaled(nibbles(x["qs"]).view(np.int8), x["d"]), x["m"].astype(np.float32)


def dequantize_q4_1(blocks: Blocks) -> Floats:
    """`dequantize_row_q4_1`, ggml/src/ggml-quants.c."""
    scaled, mins = split_q4_1(blocks)
    return scaled + np.repeat(mins, QK, axis=-1)


def dequantize_q8_0(blocks: Blocks) -> Floats:
    """`dequantize_row_q8_0`, ggml/src/ggml-quants.c."""
    x = fields(blocks, BLOCK_Q8_0)
    return _scaled(x["qs"], x["d"])


def dequantize_q8_1(blocks: Blocks) -> Floats:
    """Code times scale; ggml itself never turns Q8_1 back into floats, it only multiplies with it."""
    x = fields(blocks, BLOCK_Q8_1)
    return _scaled(x["qs"], x["d"])


def sums_q8_1(blocks: Blocks) -> Floats:
    """`s` of each block: what the other side's minimum is multiplied by."""
    return fields(blocks, BLOCK_Q8_1)["s"].astype(np.float32)


def parts_q4_0(blocks: Blocks) -> tuple[Floats, Floats, NDArray[np.generic]]:
    """Scales, minimums and codes of each block, as a person reads them."""
    x = fields(blocks, BLOCK_Q4_0)
    d = x["d"].astype(np.float32)
    return d, np.float32(-8) * d, nibbles(x["qs"])


def parts_q4_1(blocks: Blocks) -> tuple[Floats, Floats, NDArray[np.generic]]:
    x = fields(blocks, BLOCK_Q4_1)
    return x["d"].astype(np.float32), x["m"].astype(np.float32), nibbles(x["qs"])


def parts_q8_0(blocks: Blocks) -> tuple[Floats, Floats, NDArray[np.generic]]:
    x = fields(blocks, BLOCK_Q8_0)
    return x["d"].astype(np.float32), np.zeros(x.shape, np.float32), x["qs"]


def parts_q8_1(blocks: Blocks) -> tuple[Floats, Floats, NDArray[np.generic]]:
    x = fields(blocks, BLOCK_Q8_1)
    return x["d"].astype(np.float32), np.zeros(x.shape, np.float32), x["qs"]
