"""What the compiled kernels do to rows of floats in memory."""

from __future__ import annotations

import math

import numpy as np

from vizggml.ggml.kernels.fast.lanes import (
    LANES,
    compiled,
    exp,
    fma_by,
    half,
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
    j = 0
    while j + LANES <= n:
        i = 0
        while i + 4 <= m:
            at, up = c + 4 * (i * c_width + j), 4 * c_width
            left, step = a + 4 * i * a_width, 4 * a_width
            c0, c1 = load_f32(at), load_f32(at + up)
            c2, c3 = load_f32(at + 2 * up), load_f32(at + 3 * up)
            for p in range(k):
                right = load_f32(b + 4 * (p * b_width + j))
                c0 = fma_by(right, single(left + 4 * p), c0)
                c1 = fma_by(right, single(left + step + 4 * p), c1)
                c2 = fma_by(right, single(left + 2 * step + 4 * p), c2)
                c3 = fma_by(right, single(left + 3 * step + 4 * p), c3)
            store_f32(at, c0)
            store_f32(at + up, c1)
            store_f32(at + 2 * up, c2)
            store_f32(at + 3 * up, c3)
            i += 4
        while i < m:
            at = c + 4 * (i * c_width + j)
            c0 = load_f32(at)
            for p in range(k):
                c0 = fma_by(load_f32(b + 4 * (p * b_width + j)), single(a + 4 * (i * a_width + p)), c0)
            store_f32(at, c0)
            i += 1
        j += LANES
    while j < n:
        for i in range(m):
            sum_ = single(c + 4 * (i * c_width + j))
            for p in range(k):
                sum_ += single(a + 4 * (i * a_width + p)) * single(b + 4 * (p * b_width + j))
            put_single(c + 4 * (i * c_width + j), sum_)
        j += 1


@compiled()
def soften_row(
    x: int, bias: int, n: int, scale: np.float32, softcap: np.float32, M: np.float32
) -> tuple[np.float32, np.float32]:
    """Scores at x scaled, capped, biased (0: no bias) and turned into exp(score - largest so far), in place.

    The new largest and the sum of this row's weights; all weights are 0 where nothing was seen.
    """
    top = M
    for i in range(n):
        s = single(x + 4 * i) * scale
        if softcap != 0:
            s = softcap * np.float32(math.tanh(s))
        if bias:
            s += single(bias + 4 * i)
        put_single(x + 4 * i, s)
        top = max(top, s)
    if top == -np.inf:
        for i in range(n):
            put_single(x + 4 * i, np.float32(0))
        return top, np.float32(0)
    sum_ = np.float32(0)
    i = 0
    while i + LANES <= n:
        weights = exp(plus(load_f32(x + 4 * i), -top))
        store_f32(x + 4 * i, weights)
        sum_ += total(weights)
        i += LANES
    while i < n:
        weight = np.float32(math.exp(single(x + 4 * i) - top))
        put_single(x + 4 * i, weight)
        sum_ += weight
        i += 1
    return top, sum_
