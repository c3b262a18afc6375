"""Packed rows into floats: the twins of ggml's `dequantize_row_*`.

Each takes the address of a row, the number of elements, and where the floats go.
"""

from __future__ import annotations

import numpy as np

from vizggml.ggml.kernels.fast.codes import put_five_floats, put_level_floats, put_signed_five_floats
from vizggml.ggml.kernels.fast.dots import q6_k_place
from vizggml.ggml.kernels.fast.lanes import (
    LANES,
    brain,
    byte,
    half,
    high_nibbles,
    high_signed,
    load_bf16,
    load_f16,
    load_f32,
    load_i8,
    low_nibbles,
    low_signed,
    plus,
    put_single,
    single,
    six_bits,
    store_f32,
    times,
    widen,
)


def to_float_f32(x: int, n: int, out: int) -> None:
    i = 0
    while i + LANES <= n:
        store_f32(out + 4 * i, load_f32(x + 4 * i))
        i += LANES
    while i < n:
        put_single(out + 4 * i, single(x + 4 * i))
        i += 1


def to_float_f16(x: int, n: int, out: int) -> None:
    i = 0
    while i + LANES <= n:
        store_f32(out + 4 * i, load_f16(x + 2 * i))
        i += LANES
    while i < n:
        put_single(out + 4 * i, half(x + 2 * i))
        i += 1


def to_float_bf16(x: int, n: int, out: int) -> None:
    i = 0
    while i + LANES <= n:
        store_f32(out + 4 * i, load_bf16(x + 2 * i))
        i += LANES
    while i < n:
        put_single(out + 4 * i, brain(x + 2 * i))
        i += 1


def to_float_q4_0(x: int, n: int, out: int) -> None:
    for _ in range(n // 32):
        d = half(x)
        store_f32(out, times(widen(low_signed(x + 2)), d))
        store_f32(out + 64, times(widen(high_signed(x + 2)), d))
        x += 18
        out += 128


def to_float_q4_1(x: int, n: int, out: int) -> None:
    for _ in range(n // 32):
        d, low = half(x), half(x + 2)
        store_f32(out, plus(times(widen(low_nibbles(x + 4)), d), low))
        store_f32(out + 64, plus(times(widen(high_nibbles(x + 4)), d), low))
        x += 20
        out += 128


def to_float_q5_0(x: int, n: int, out: int) -> None:
    for _ in range(n // 32):
        put_signed_five_floats(out, x + 6, half(x), np.float32(0))
        x += 22
        out += 128


def to_float_q5_1(x: int, n: int, out: int) -> None:
    for _ in range(n // 32):
        put_five_floats(out, x + 8, half(x), half(x + 2))
        x += 24
        out += 128


def to_float_iq4_nl(x: int, n: int, out: int) -> None:
    for _ in range(n // 32):
        put_level_floats(out, x + 2, half(x), np.float32(0))
        x += 18
        out += 128


def to_float_q8_0(x: int, n: int, out: int) -> None:
    for _ in range(n // 32):
        d = half(x)
        store_f32(out, times(widen(load_i8(x + 2)), d))
        store_f32(out + 64, times(widen(load_i8(x + 18)), d))
        x += 34
        out += 128


def to_float_q8_1(x: int, n: int, out: int) -> None:
    for _ in range(n // 32):
        d = half(x)
        store_f32(out, times(widen(load_i8(x + 4)), d))
        store_f32(out + 64, times(widen(load_i8(x + 20)), d))
        x += 36
        out += 128


def to_float_q6_k(x: int, n: int, out: int) -> None:
    for _ in range(n // 256):
        for part in range(16):
            ql, qh, low_shift, high_shift = q6_k_place(x, part)
            scale = half(x + 208) * np.float32(byte(x + 192 + part))
            store_f32(out, times(widen(six_bits(ql, low_shift, qh, high_shift)), scale))
            out += 64
        x += 210


def to_float_q8_k(x: int, n: int, out: int) -> None:
    for _ in range(n // 256):
        for part in range(16):
            store_f32(out, times(widen(load_i8(x + 4 + 16 * part)), single(x)))
            out += 64
        x += 292
