"""The types with one scale for 32 elements: Q4_0, Q4_1, Q8_0, Q8_1 (Q5_0 and Q5_1 are in q5.py).

A 4-bit block keeps element j in the low half of byte j and element j + 16 in its high half.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vizggml.ggml.quants.parts import Layout, Parts, as_bytes, fields, one
from vizggml.ggml.quants.rounding import (
    Blocks,
    Floats,
    c_int,
    columns,
    first_of_largest_magnitude,
    first_smallest,
    half,
    in_blocks,
    inverse,
    largest_of_all,
    mean_square,
    roundf,
    weigh,
)
from vizggml.ggml.quants.search import make_qkx_quants, make_qx_quants

QK = 32
BLOCK_Q4_0 = np.dtype([("d", "<f2"), ("qs", "u1", QK // 2)])
BLOCK_Q4_1 = np.dtype([("d", "<f2"), ("m", "<f2"), ("qs", "u1", QK // 2)])
BLOCK_Q8_0 = np.dtype([("d", "<f2"), ("qs", "i1", QK)])
BLOCK_Q8_1 = np.dtype([("d", "<f2"), ("s", "<f2"), ("qs", "i1", QK)])
"""`block_q4_0` and its kin, ggml/src/ggml-common.h. `d` is the scale, `m` the minimum, `s` is d times the sum of qs."""


def nibbles(qs: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The codes of each block from its bytes, in the order of the elements: low halves, then high halves."""
    return np.concatenate([qs & 0x0F, qs >> 4], axis=-1)


def pack_nibbles(codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """4-bit codes (..., n) into n / 2 bytes: the other way of `nibbles`."""
    n = codes.shape[-1] // 2
    return codes[..., :n] | (codes[..., n:] << np.uint8(4))


def upper(codes: NDArray[np.int32], limit: int) -> NDArray[np.uint8]:
    """`MIN(limit, (int8_t)code)` as a uint8."""
    return np.minimum(limit, codes.astype(np.int8)).astype(np.uint8)


def quantize_q4_0(x: Floats) -> Blocks:
    """`quantize_row_q4_0_ref`, ggml/src/ggml-quants.c: the largest magnitude becomes code 0, that is -8."""
    x = in_blocks(x, QK)
    y = np.empty(x.shape[:-1], BLOCK_Q4_0)
    d = first_of_largest_magnitude(x) / np.float32(-8)
    y["d"] = half(d)
    y["qs"] = pack_nibbles(upper(c_int(x * inverse(d)[..., None] + np.float32(8.5)), 15))
    return as_bytes(y)


def quantize_q4_1(x: Floats) -> Blocks:
    """`quantize_row_q4_1_ref`, ggml/src/ggml-quants.c: codes 0 to 15 span the block's minimum to its maximum."""
    x = in_blocks(x, QK)
    y = np.empty(x.shape[:-1], BLOCK_Q4_1)
    low, high = first_smallest(x), -first_smallest(-x)
    d = (high - low) / np.float32(15)
    y["d"], y["m"] = half(d), half(low)
    y["qs"] = pack_nibbles(upper(c_int((x - low[..., None]) * inverse(d)[..., None] + np.float32(0.5)), 15))
    return as_bytes(y)


def weighed_blocks(x: Floats, importance: Floats) -> tuple[Floats, Floats]:
    """Elements and what each one's error costs, as columns of blocks; the mean square is that of the whole row."""
    sigma2 = np.repeat(mean_square(x)[..., None], x.shape[-1], axis=-1)
    return columns(x, QK), columns(weigh(importance, x, sigma2), QK)


def search_scale(x: Floats, importance: Floats, nmax: int) -> tuple[Floats, NDArray[np.uint8]]:
    """Scale (..., blocks) and codes (..., blocks, 32) of a type without minimum, searched with importance."""
    shape = (*x.shape[:-1], x.shape[-1] // QK)
    d, codes = make_qx_quants(nmax, *weighed_blocks(x, importance))
    return d.reshape(shape), codes.T.astype(np.uint8).reshape(*shape, QK)


def search_scale_and_min(x: Floats, importance: Floats, nmax: int) -> tuple[Floats, Floats, NDArray[np.uint8]]:
    """Scale and minimum (..., blocks) and codes (..., blocks, 32), searched with importance."""
    shape = (*x.shape[:-1], x.shape[-1] // QK)
    d, low, codes = make_qkx_quants(nmax, *weighed_blocks(x, importance), -0.9, 0.05, 36)
    return d.reshape(shape), -low.reshape(shape), codes.T.astype(np.uint8).reshape(*shape, QK)


def weighted_q4_0(x: Floats, importance: Floats) -> Blocks:
    """`quantize_row_q4_0_impl`, ggml/src/ggml-quants.c."""
    d, codes = search_scale(x, importance, 8)
    y = np.empty(d.shape, BLOCK_Q4_0)
    y["d"], y["qs"] = half(d), pack_nibbles(codes)
    return as_bytes(y)


def weighted_q4_1(x: Floats, importance: Floats) -> Blocks:
    """`quantize_row_q4_1_impl`, ggml/src/ggml-quants.c."""
    d, low, codes = search_scale_and_min(x, importance, 15)
    y = np.empty(d.shape, BLOCK_Q4_1)
    y["d"], y["m"], y["qs"] = half(d), half(low), pack_nibbles(codes)
    return as_bytes(y)


def _q8_ref(x: Floats) -> tuple[Floats, NDArray[np.int8]]:
    d = largest_of_all(x) / np.float32(127)
    return d, c_int(roundf(x * inverse(d)[..., None])).astype(np.int8)


def quantize_q8_0(x: Floats) -> Blocks:
    """`quantize_row_q8_0_ref`, ggml/src/ggml-quants.c."""
    x = in_blocks(x, QK)
    y = np.empty(x.shape[:-1], BLOCK_Q8_0)
    d, y["qs"] = _q8_ref(x)
    y["d"] = half(d)
    return as_bytes(y)


def quantize_q8_1(x: Floats) -> Blocks:
    """`quantize_row_q8_1_ref`, ggml/src/ggml-quants.c."""
    x = in_blocks(x, QK)
    y = np.empty(x.shape[:-1], BLOCK_Q8_1)
    d, qs = _q8_ref(x)
    y["d"], y["qs"] = half(d), qs
    y["s"] = half(qs.sum(axis=-1, dtype=np.int32).astype(np.float32) * d)
    return as_bytes(y)


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
    d, qs = _q8_cpu(x)
    y["d"], y["qs"] = d, np.clip(qs, -128, 127)
    return as_bytes(y)


def from_float_q8_1(x: Floats) -> Blocks:
    """`quantize_row_q8_1`, ggml/src/ggml-cpu/arch/x86/quants.c."""
    x = in_blocks(x, QK)
    y = np.empty(x.shape[:-1], BLOCK_Q8_1)
    d, qs = _q8_cpu(x)
    y["d"], y["qs"] = d, np.clip(qs, -128, 127)
    y["s"] = d * qs.sum(axis=-1, dtype=np.int32).astype(np.float32)
    return as_bytes(y)


def sums_q8_1(blocks: Blocks) -> Floats:
    """`s` of each block: what the other side's minimum is multiplied by."""
    return fields(blocks, BLOCK_Q8_1)["s"].astype(np.float32)


def parts_q4_0(x: NDArray[np.void]) -> Parts:
    """As `dequantize_row_q4_0`, ggml/src/ggml-quants.c, reads a block."""
    codes = nibbles(x["qs"])
    return Parts(one(x["d"]), None, codes, codes.view(np.int8) - np.int8(8))


def parts_q4_1(x: NDArray[np.void]) -> Parts:
    """As `dequantize_row_q4_1`, ggml/src/ggml-quants.c, reads a block."""
    codes = nibbles(x["qs"])
    return Parts(one(x["d"]), one(x["m"]), codes, codes.view(np.int8))


def parts_q8(x: NDArray[np.void]) -> Parts:
    """As `dequantize_row_q8_0`, ggml/src/ggml-quants.c, reads a block. ggml never turns Q8_1 into floats."""
    return Parts(one(x["d"]), None, x["qs"], x["qs"])


_NIBBLES = "codes, two in a byte: element j in the low half of byte j, element j + 16 in the high half"
LAYOUTS = {
    "Q4_0": Layout(BLOCK_Q4_0, {"d": "scale", "qs": _NIBBLES + "; a code stands for code - 8"}, parts_q4_0),
    "Q4_1": Layout(BLOCK_Q4_1, {"d": "scale", "m": "minimum, added to each element", "qs": _NIBBLES}, parts_q4_1),
    "Q8_0": Layout(BLOCK_Q8_0, {"d": "scale", "qs": "codes, -127 to 127, one in a byte"}, parts_q8),
    "Q8_1": Layout(
        BLOCK_Q8_1,
        {
            "d": "scale",
            "s": "scale times the sum of the codes: what the other side's minimum is multiplied by",
            "qs": "codes, -127 to 127, one in a byte",
        },
        parts_q8,
    ),
}
ENCODERS = {"Q4_0": quantize_q4_0, "Q4_1": quantize_q4_1, "Q8_0": quantize_q8_0, "Q8_1": quantize_q8_1}
WEIGHTED = {"Q4_0": weighted_q4_0, "Q4_1": weighted_q4_1}
