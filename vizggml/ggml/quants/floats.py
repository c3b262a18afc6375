"""F32, F16 and BF16: one element is one block, its bytes little-endian."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vizggml.ggml.quants.rounding import Blocks, Floats


def _bytes(x: NDArray[np.generic]) -> Blocks:
    x = np.ascontiguousarray(x)
    return x.view(np.uint8).reshape(*x.shape, x.dtype.itemsize)


def encode_f32(x: Floats) -> Blocks:
    return _bytes(x.astype("<f4"))


def decode_f32(blocks: Blocks) -> Floats:
    return np.ascontiguousarray(blocks).view("<f4")[..., 0].astype(np.float32)


def encode_f16(x: Floats) -> Blocks:
    """`ggml_fp32_to_fp16_row`, ggml/src/ggml.c: halves to even, beyond 65504 to infinity."""
    with np.errstate(over="ignore"):
        return _bytes(x.astype("<f2"))


def decode_f16(blocks: Blocks) -> Floats:
    """`ggml_fp16_to_fp32_row`, ggml/src/ggml.c."""
    return np.ascontiguousarray(blocks).view("<f2")[..., 0].astype(np.float32)


def bf16_bits(x: Floats) -> NDArray[np.uint16]:
    """`ggml_compute_fp32_to_bf16`, ggml/src/ggml-impl.h: the upper half, halves to even, NaN kept quiet."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> 16) & np.uint32(1))) >> 16
    return np.where(np.isnan(x), (bits >> 16) | np.uint32(64), rounded).astype(np.uint16)


def bf16_values(bits: NDArray[np.uint16]) -> Floats:
    """`ggml_compute_bf16_to_fp32`, ggml/src/ggml-impl.h."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def encode_bf16(x: Floats) -> Blocks:
    """`ggml_fp32_to_bf16_row_ref`, ggml/src/ggml.c."""
    return _bytes(bf16_bits(x).astype("<u2"))


def decode_bf16(blocks: Blocks) -> Floats:
    """`ggml_bf16_to_fp32_row`, ggml/src/ggml.c."""
    return bf16_values(np.ascontiguousarray(blocks).view("<u2")[..., 0])
