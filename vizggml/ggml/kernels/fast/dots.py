"""Dot products of packed rows, straight from their bytes: the twins of ggml's `ggml_vec_dot_*`.

Each takes the address of a row of weights, of a row of their `vec_dot_type`, and the number of elements.
"""

from __future__ import annotations

import numpy as np

from vizggml.ggml.kernels.fast.codes import five_products, level_products, signed_five_products
from vizggml.ggml.kernels.fast.lanes import (
    LANES,
    add,
    add_8,
    brain,
    byte,
    byte_products,
    compiled,
    fma,
    fma_8,
    fma_bf16,
    fma_by,
    fma_single,
    half,
    load_f16,
    load_f32,
    load_i8,
    madd,
    madd_by,
    nibble_products,
    signed_nibble_products,
    single,
    six_bits,
    to_f32,
    total,
    total_8,
    total_i32_8,
    zeros,
    zeros_8,
    zeros_i32,
)


def dot_f32(w: int, y: int, n: int) -> np.float32:
    """`ggml_vec_dot_f32`, ggml/src/ggml-cpu/vec.cpp: n elements at w by n at y; four sums, as ggml's on AVX-512."""
    a, b, c, d = zeros(), zeros(), zeros(), zeros()
    i = 0
    while i + 4 * LANES <= n:
        u, v = w + 4 * i, y + 4 * i
        a = fma(load_f32(u), load_f32(v), a)
        b = fma(load_f32(u + 64), load_f32(v + 64), b)
        c = fma(load_f32(u + 128), load_f32(v + 128), c)
        d = fma(load_f32(u + 192), load_f32(v + 192), d)
        i += 4 * LANES
    acc = total(add(add(a, c), add(b, d)))
    while i < n:
        acc = fma_single(single(w + 4 * i), single(y + 4 * i), acc)
        i += 1
    return acc


def dot_f16(w: int, y: int, n: int) -> np.float32:
    """`ggml_vec_dot_f16`, ggml/src/ggml-cpu/vec.cpp."""
    a, b, c, d = zeros(), zeros(), zeros(), zeros()
    i = 0
    while i + 4 * LANES <= n:
        u, v = w + 2 * i, y + 2 * i
        a = fma(load_f16(u), load_f16(v), a)
        b = fma(load_f16(u + 32), load_f16(v + 32), b)
        c = fma(load_f16(u + 64), load_f16(v + 64), c)
        d = fma(load_f16(u + 96), load_f16(v + 96), d)
        i += 4 * LANES
    acc = np.float64(total(add(add(a, c), add(b, d))))
    while i < n:
        acc += np.float64(half(w + 2 * i) * half(y + 2 * i))
        i += 1
    return np.float32(acc)


def dot_bf16(w: int, y: int, n: int) -> np.float32:
    """`ggml_vec_dot_bf16`, ggml/src/ggml-cpu/vec.cpp: neighbours' products, two sums, as with AVX512_BF16."""
    a, b = zeros(), zeros()
    i = 0
    while i + 4 * LANES <= n:
        a = fma_bf16(w + 2 * i, y + 2 * i, a)
        b = fma_bf16(w + 2 * i + 64, y + 2 * i + 64, b)
        i += 4 * LANES
    acc = np.float64(total(a)) + np.float64(total(b))
    while i < n:
        acc += np.float64(brain(w + 2 * i) * brain(y + 2 * i))
        i += 1
    return np.float32(acc)


def dot_q4_0(w: int, y: int, n: int) -> np.float32:
    """`ggml_vec_dot_q4_0_q8_0`, ggml/src/ggml-cpu/arch/x86/quants.c: codes minus 8 by codes, times both scales."""
    acc = zeros_8()
    for _ in range(n // 32):
        acc = fma_8(signed_nibble_products(w + 2, y + 2), half(w) * half(y), acc)
        w += 18
        y += 34
    return total_8(acc)


def dot_q4_1(w: int, y: int, n: int) -> np.float32:
    """`ggml_vec_dot_q4_1_q8_1`, ggml/src/ggml-cpu/arch/x86/quants.c: the block's minimum meets the other's sum."""
    acc = zeros_8()
    minimums = np.float32(0)
    for _ in range(n // 32):
        acc = fma_8(nibble_products(w + 4, y + 4), half(w) * half(y), acc)
        minimums = fma_single(half(w + 2), half(y + 2), minimums)
        w += 20
        y += 36
    return total_8(acc) + minimums


def dot_q8_0(w: int, y: int, n: int) -> np.float32:
    """`ggml_vec_dot_q8_0_q8_0`, ggml/src/ggml-cpu/arch/x86/quants.c."""
    acc = zeros_8()
    for _ in range(n // 32):
        acc = fma_8(byte_products(w + 2, y + 2), half(w) * half(y), acc)
        w += 34
        y += 34
    return total_8(acc)


def dot_q5_0(w: int, y: int, n: int) -> np.float32:
    """`ggml_vec_dot_q5_0_q8_0`, ggml/src/ggml-cpu/arch/x86/quants.c: codes minus 16 by codes, times both scales."""
    acc = zeros_8()
    for _ in range(n // 32):
        acc = fma_8(signed_five_products(w + 6, y + 2), half(w) * half(y), acc)
        w += 22
        y += 34
    return total_8(acc)


def dot_q5_1(w: int, y: int, n: int) -> np.float32:
    """`ggml_vec_dot_q5_1_q8_1`, ggml/src/ggml-cpu/arch/x86/quants.c: the block's minimum meets the other's sum."""
    acc = zeros_8()
    minimums = np.float32(0)
    for _ in range(n // 32):
        acc = fma_8(five_products(w + 8, y + 4), half(w) * half(y), acc)
        minimums = fma_single(half(w + 2), half(y + 2), minimums)
        w += 24
        y += 36
    return total_8(acc) + minimums


def dot_iq4_nl(w: int, y: int, n: int) -> np.float32:
    """`ggml_vec_dot_iq4_nl_q8_0`, ggml/src/ggml-cpu/arch/x86/quants.c: pairs of blocks in two sums, the last alone."""
    a, b = zeros_8(), zeros_8()
    for _ in range(n // 64):
        a = fma_8(level_products(w + 2, y + 2), half(w) * half(y), a)
        b = fma_8(level_products(w + 20, y + 36), half(w + 18) * half(y + 34), b)
        w += 36
        y += 68
    acc = total_8(add_8(a, b))
    if n % 64:
        acc += half(w) * half(y) * np.float32(total_i32_8(level_products(w + 2, y + 2)))
    return acc


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
