"""Activations encoded in the type that a dot product takes, byte for byte as the reference encodes them.

Each takes the address of a row of float32, the number of elements, and where the blocks go.
"""

from __future__ import annotations

import math

import numpy as np

from vizggml.ggml.kernels.fast.lanes import (
    LANES,
    bits,
    compiled,
    largest_magnitude,
    load_f32,
    put_byte,
    put_half,
    put_short,
    put_single,
    rounded,
    single,
    store_f16,
    store_i8,
    times,
    total_i32,
)


@compiled()
def encode_q8(x: int, n: int, out: int, qs: int) -> None:
    """Blocks whose codes begin at byte `qs`: 2 in Q8_0, 4 in Q8_1, with a sum before them."""
    for _ in range(n // 32):
        lower, upper = load_f32(x), load_f32(x + 64)
        amax = max(largest_magnitude(lower), largest_magnitude(upper))
        d = amax / np.float32(127)
        scale = np.float32(127) / amax if amax != 0 else np.float32(0)
        put_half(out, d)
        if math.isfinite(scale):
            low, high = rounded(times(lower, scale)), rounded(times(upper, scale))
            store_i8(out + qs, low)
            store_i8(out + qs + 16, high)
            if qs == 4:
                put_half(out + 2, d * np.float32(total_i32(low) + total_i32(high)))
        else:
            # too small to have an inverse: what the reference's conversion of infinity gives
            for i in range(32):
                put_byte(out + qs + i, -128)
            if qs == 4:
                put_half(out + 2, np.float32(0))
        x += 128
        out += 32 + qs


def from_float_q8_0(x: int, n: int, out: int) -> None:
    """`quantize_row_q8_0`, ggml/src/ggml-cpu/arch/x86/quants.c."""
    encode_q8(x, n, out, 2)


def from_float_q8_1(x: int, n: int, out: int) -> None:
    """`quantize_row_q8_1`, ggml/src/ggml-cpu/arch/x86/quants.c."""
    encode_q8(x, n, out, 4)


def from_float_q8_k(x: int, n: int, out: int) -> None:
    """`quantize_row_q8_K_ref`, ggml/src/ggml-quants.c."""
    for _ in range(n // 256):
        amax, largest = np.float32(0), np.float32(0)
        for i in range(256):
            value = single(x + 4 * i)
            if abs(value) > amax:
                amax, largest = abs(value), value
        iscale = np.float32(-127) / largest if amax != 0 else np.float32(0)
        usable = amax != 0 and math.isfinite(iscale)
        put_single(out, np.float32(1) / iscale if amax != 0 else np.float32(0))
        for i in range(0, 256, LANES):
            codes = rounded(times(load_f32(x + 4 * i), iscale if usable else np.float32(0)))
            store_i8(out + 4 + i, codes)
            put_short(out + 260 + i // 8, total_i32(codes))
        x += 1024
        out += 292


def from_float_f32(x: int, n: int, out: int) -> None:
    """Activations that stay as they are."""
    for i in range(n):
        put_single(out + 4 * i, single(x + 4 * i))


def from_float_f16(x: int, n: int, out: int) -> None:
    """`ggml_cpu_fp32_to_fp16`, ggml/src/ggml-cpu/ggml-cpu.c."""
    i = 0
    while i + LANES <= n:
        store_f16(out + 2 * i, load_f32(x + 4 * i))
        i += LANES
    while i < n:
        put_half(out + 2 * i, single(x + 4 * i))
        i += 1


def from_float_bf16(x: int, n: int, out: int) -> None:
    """`ggml_cpu_fp32_to_bf16`, ggml/src/ggml-cpu/ggml-cpu.c."""
    for i in range(n):
        b = bits(single(x + 4 * i))
        if b & 0x7FFFFFFF > 0x7F800000:
            put_short(out + 2 * i, b >> 16 | 64)
        else:
            put_short(out + 2 * i, b + 0x7FFF + (b >> 16 & 1) >> 16)
