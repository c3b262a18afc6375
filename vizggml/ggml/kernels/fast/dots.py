"""Dot products of packed rows, straight from their bytes: the twins of ggml's `ggml_vec_dot_*`.

Each takes the address of a row of weights, of a row of their `vec_dot_type`, and the number of elements.
"""

from __future__ import annotations

import numpy as np

from vizggml.ggml.kernels.fast.lanes import (
    LANES,
    add,
    brain,
    byte,
    compiled,
    dot_small,
    fma,
    fma_by,
    half,
    high_nibbles,
    high_signed,
    load_bf16,
    load_f16,
    load_f32,
    load_i8,
    low_nibbles,
    low_signed,
    madd,
    madd_by,
    single,
    six_bits,
    to_f32,
    total,
    zeros,
    zeros_i32,
)


def dot_f32(w: int, y: int, n: int) -> np.float32:
    """`ggml_vec_dot_f32`, ggml/src/ggml-cpu/vec.cpp: n elements at w by n at y."""
    even, odd = zeros(), zeros()
    i = 0
    while i + 2 * LANES <= n:
        even = fma(load_f32(w + 4 * i), load_f32(y + 4 * i), even)
        odd = fma(load_f32(w + 4 * i + 64), load_f32(y + 4 * i + 64), odd)
        i += 2 * LANES
    rest = np.float32(0)
    while i < n:
        rest += single(w + 4 * i) * single(y + 4 * i)
        i += 1
    return total(add(even, odd)) + rest


def dot_f16(w: int, y: int, n: int) -> np.float32:
    """`ggml_vec_dot_f16`, ggml/src/ggml-cpu/vec.cpp."""
    even, odd = zeros(), zeros()
    i = 0
    while i + 2 * LANES <= n:
        even = fma(load_f16(w + 2 * i), load_f16(y + 2 * i), even)
        odd = fma(load_f16(w + 2 * i + 32), load_f16(y + 2 * i + 32), odd)
        i += 2 * LANES
    rest = np.float32(0)
    while i < n:
        rest += half(w + 2 * i) * half(y + 2 * i)
        i += 1
    return total(add(even, odd)) + rest


def dot_bf16(w: int, y: int, n: int) -> np.float32:
    """`ggml_vec_dot_bf16`, ggml/src/ggml-cpu/vec.cpp."""
    even, odd = zeros(), zeros()
    i = 0
    while i + 2 * LANES <= n:
        even = fma(load_bf16(w + 2 * i), load_bf16(y + 2 * i), even)
        odd = fma(load_bf16(w + 2 * i + 32), load_bf16(y + 2 * i + 32), odd)
        i += 2 * LANES
    rest = np.float32(0)
    while i < n:
        rest += brain(w + 2 * i) * brain(y + 2 * i)
        i += 1
    return total(add(even, odd)) + rest


def dot_q4_0(w: int, y: int, n: int) -> np.float32:
    """`ggml_vec_dot_q4_0_q8_0`, ggml/src/ggml-cpu/quants.c: codes minus 8 by codes, times both scales."""
    acc = zeros()
    for _ in range(n // 32):
        products = dot_small(low_signed(w + 2), load_i8(y + 2), high_signed(w + 2), load_i8(y + 18))
        acc = fma_by(products, half(w) * half(y), acc)
        w += 18
        y += 34
    return total(acc)


def dot_q4_1(w: int, y: int, n: int) -> np.float32:
    """`ggml_vec_dot_q4_1_q8_1`, ggml/src/ggml-cpu/quants.c: the block's minimum meets the other side's sum."""
    acc = zeros()
    minimums = np.float32(0)
    for _ in range(n // 32):
        products = dot_small(low_nibbles(w + 4), load_i8(y + 4), high_nibbles(w + 4), load_i8(y + 20))
        acc = fma_by(products, half(w) * half(y), acc)
        minimums += half(w + 2) * half(y + 2)
        w += 20
        y += 36
    return total(acc) + minimums


def dot_q8_0(w: int, y: int, n: int) -> np.float32:
    """`ggml_vec_dot_q8_0_q8_0`, ggml/src/ggml-cpu/quants.c."""
    acc = zeros()
    for _ in range(n // 32):
        products = madd(load_i8(w + 18), load_i8(y + 18), madd(load_i8(w + 2), load_i8(y + 2), zeros_i32()))
        acc = fma_by(to_f32(products), half(w) * half(y), acc)
        w += 34
        y += 34
    return total(acc)


def dot_q6_k(w: int, y: int, n: int) -> np.float32:
    """`ggml_vec_dot_q6_K_q8_K`, ggml/src/ggml-cpu/quants.c: sixteen codes share a scale of their own."""
    acc = zeros()
    for _ in range(n // 256):
        sums = zeros_i32()
        for part in range(16):
            ql, qh, low_shift, high_shift = q6_k_place(w, part)
            codes = six_bits(ql, low_shift, qh, high_shift)
            products = madd(codes, load_i8(y + 4 + 16 * part), zeros_i32())
            sums = madd_by(products, byte(w + 192 + part), sums)
        acc = fma_by(to_f32(sums), half(w + 208) * single(y), acc)
        w += 210
        y += 292
    return total(acc)


@compiled()
def q6_k_place(w: int, part: int) -> tuple[int, int, int, int]:
    """Where codes 16 * part .. of a Q6_K block are: the addresses of their low and high bits, and the shifts."""
    upper, quarter, sixteen = part // 8, part // 2 % 4, part % 2
    ql = w + 64 * upper + 32 * (quarter % 2) + 16 * sixteen
    return ql, w + 128 + 32 * upper + 16 * sixteen, 4 * (quarter // 2), 2 * quarter
