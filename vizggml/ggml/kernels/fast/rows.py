"""What the compiled kernels do to rows of floats in memory."""

from __future__ import annotations

import math

import numpy as np

from vizggml.ggml.kernels.fast.lanes import (
    LANES,
    add,
    compiled,
    exp,
    fma_by,
    fma_single,
    half,
    largest,
    load_f16,
    load_f32,
    plus,
    put_half,
    put_single,
    single,
    store_f16,
    store_f32,
    times,
    total,
)


@compiled()
def zero_f32(y: int, n: int) -> None:
    for i in range(n):
        put_single(y + 4 * i, np.float32(0))


@compiled()
def copy_f32(x: int, n: int, y: int) -> None:
    for i in range(n):
        put_single(y + 4 * i, single(x + 4 * i))


@compiled()
def widen_f16(x: int, n: int, y: int) -> None:
    for i in range(n):
        put_single(y + 4 * i, half(x + 2 * i))


@compiled()
def scale_f32(y: int, s: np.float32, n: int) -> None:
    """`ggml_vec_scale_f32`, ggml/src/ggml-cpu/vec.h."""
    i = 0
    while i + LANES <= n:
        store_f32(y + 4 * i, times(load_f32(y + 4 * i), s))
        i += LANES
    while i < n:
        put_single(y + 4 * i, single(y + 4 * i) * s)
        i += 1


@compiled()
def scale_f16(y: int, s: np.float32, n: int) -> None:
    """`ggml_vec_scale_f16`, ggml/src/ggml-cpu/vec.h."""
    i = 0
    while i + LANES <= n:
        store_f16(y + 2 * i, times(load_f16(y + 2 * i), s))
        i += LANES
    while i < n:
        put_half(y + 2 * i, half(y + 2 * i) * s)
        i += 1


@compiled()
def mad_f32(y: int, x: int, s: np.float32, n: int) -> None:
    """`ggml_vec_mad_f32`, ggml/src/ggml-cpu/vec.h: y += x * s."""
    i = 0
    while i + LANES <= n:
        store_f32(y + 4 * i, fma_by(load_f32(x + 4 * i), s, load_f32(y + 4 * i)))
        i += LANES
    while i < n:
        put_single(y + 4 * i, single(y + 4 * i) + single(x + 4 * i) * s)
        i += 1


@compiled()
def mad_f16(y: int, x: int, s: np.float32, n: int) -> None:
    """`ggml_vec_mad_f16`, ggml/src/ggml-cpu/vec.h: y += x * s, kept in F16."""
    i = 0
    while i + LANES <= n:
        store_f16(y + 2 * i, fma_by(load_f16(x + 2 * i), s, load_f16(y + 2 * i)))
        i += LANES
    while i < n:
        put_half(y + 2 * i, half(y + 2 * i) + half(x + 2 * i) * s)
        i += 1


@compiled()
def gemm(c: int, c_width: int, a: int, a_width: int, b: int, b_width: int, m: int, k: int, n: int) -> None:
    """`simd_gemm`, ggml/src/ggml-cpu/simd-gemm.h: c (m, n) += a (m, k) @ b (k, n), rows `*_width` floats apart."""
    i = 0
    while i + 4 <= m:
        j = 0
        while j + 2 * LANES <= n:
            gemm_4_by_32(c + 4 * (i * c_width + j), c_width, a + 4 * i * a_width, a_width, b + 4 * j, b_width, k)
            j += 2 * LANES
        for row in range(i, i + 4):
            gemm_row(c + 4 * row * c_width, a + 4 * row * a_width, b, b_width, j, k, n)
        i += 4
    while i < m:
        gemm_row(c + 4 * i * c_width, a + 4 * i * a_width, b, b_width, 0, k, n)
        i += 1


@compiled()
def gemm_4_by_32(c: int, c_width: int, a: int, a_width: int, b: int, b_width: int, k: int) -> None:
    """Four rows by two vectors, in registers: each number of `a` is used twice, each vector of `b` four times."""
    up, step = 4 * c_width, 4 * a_width
    l0, l1, l2, l3 = load_f32(c), load_f32(c + up), load_f32(c + 2 * up), load_f32(c + 3 * up)
    c += 64
    r0, r1, r2, r3 = load_f32(c), load_f32(c + up), load_f32(c + 2 * up), load_f32(c + 3 * up)
    for p in range(k):
        left, right = load_f32(b), load_f32(b + 64)
        s0, s1 = single(a + 4 * p), single(a + step + 4 * p)
        s2, s3 = single(a + 2 * step + 4 * p), single(a + 3 * step + 4 * p)
        l0, r0 = fma_by(left, s0, l0), fma_by(right, s0, r0)
        l1, r1 = fma_by(left, s1, l1), fma_by(right, s1, r1)
        l2, r2 = fma_by(left, s2, l2), fma_by(right, s2, r2)
        l3, r3 = fma_by(left, s3, l3), fma_by(right, s3, r3)
        b += 4 * b_width
    store_f32(c, r0)
    store_f32(c + up, r1)
    store_f32(c + 2 * up, r2)
    store_f32(c + 3 * up, r3)
    c -= 64
    store_f32(c, l0)
    store_f32(c + up, l1)
    store_f32(c + 2 * up, l2)
    store_f32(c + 3 * up, l3)


@compiled()
def gemm_row(c: int, a: int, b: int, b_width: int, j: int, k: int, n: int) -> None:
    """What is left of one row, from column j on: vectors, then single numbers."""
    while j + LANES <= n:
        acc = load_f32(c + 4 * j)
        for p in range(k):
            acc = fma_by(load_f32(b + 4 * (p * b_width + j)), single(a + 4 * p), acc)
        store_f32(c + 4 * j, acc)
        j += LANES
    while j < n:
        sum_ = single(c + 4 * j)
        for p in range(k):
            sum_ = fma_single(single(a + 4 * p), single(b + 4 * (p * b_width + j)), sum_)
        put_single(c + 4 * j, sum_)
        j += 1


@compiled()
def mask_row(mask: int, slope: np.float32, n: int, out: int) -> np.float32:
    """n values of an F16 mask times the head's slope, as float32, and the largest of them."""
    top = np.float32(-np.inf)
    i = 0
    while i + LANES <= n:
        biases = times(load_f16(mask + 2 * i), slope)
        store_f32(out + 4 * i, biases)
        top = max(top, largest(biases))
        i += LANES
    while i < n:
        bias = slope * half(mask + 2 * i)
        put_single(out + 4 * i, bias)
        top = max(top, bias)
        i += 1
    return top


@compiled()
def exp_row(x: int, n: int, top: np.float32) -> np.float64:
    """Each of n floats at x becomes exp(it - top); their sum. `ggml_vec_soft_max_f32`, ggml/src/ggml-cpu/vec.cpp."""
    sum_ = np.float64(0)
    i = 0
    while i + LANES <= n:
        weights = exp(plus(load_f32(x + 4 * i), -top))
        store_f32(x + 4 * i, weights)
        sum_ += np.float64(total(weights))
        i += LANES
    while i < n:
        weight = np.float32(math.exp(single(x + 4 * i) - top))
        put_single(x + 4 * i, weight)
        sum_ += np.float64(weight)
        i += 1
    return sum_


@compiled()
def soften_row(
    x: int, bias: int, n: int, scale: np.float32, softcap: np.float32, M: np.float32
) -> tuple[np.float32, np.float64]:
    """Scores at x scaled, capped, biased (0: no bias) and turned into exp(score - largest so far), in place.

    The new largest and the sum of this row's weights; all weights are 0 where nothing was seen.
    """
    top = M
    i = 0
    while i + LANES <= n and softcap == 0:
        scores = times(load_f32(x + 4 * i), scale)
        if bias:
            scores = add(scores, load_f32(bias + 4 * i))
        store_f32(x + 4 * i, scores)
        top = max(top, largest(scores))
        i += LANES
    while i < n:
        s = single(x + 4 * i) * scale
        if softcap != 0:
            s = softcap * np.float32(math.tanh(s))
        if bias:
            s += single(bias + 4 * i)
        put_single(x + 4 * i, s)
        top = max(top, s)
        i += 1
    if top == -np.inf:
        for i in range(n):
            put_single(x + 4 * i, np.float32(0))
        return top, np.float64(0)
    return top, exp_row(x, n, top)
