"""How C rounds, compares and adds, so that codes come out the same to the bit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Blocks = NDArray[np.uint8]
"""Quantized rows as bytes, shape (..., blocks of a row, type_size)."""

FLT_MAX = np.finfo(np.float32).max
INT32_MIN = np.int32(-(2**31))


def c_int(x: Floats) -> NDArray[np.int32]:
    """`(int)x`: cut towards zero. What an int32 cannot hold, infinities and NaN become INT32_MIN, as on x86."""
    fits = np.abs(x) < np.float32(2**31)
    return np.where(fits, np.where(fits, x, 0).astype(np.int32), INT32_MIN)


def roundf(x: Floats) -> Floats:
    """C's `roundf`: to the nearest whole number, halves away from zero."""
    whole = np.trunc(x)
    return whole + np.where(np.abs(x - whole) >= np.float32(0.5), np.copysign(np.float32(1), x), np.float32(0))


def nearest_int(x: Floats) -> NDArray[np.int32]:
    """`nearest_int`, ggml/src/ggml-quants.c: halves to even, by adding 1.5 * 2**23 and reading the low 23 bits.

    Meant for |x| below 2**22; beyond that the low bits say nothing, and they are kept the same nothing.
    """
    bits = (x + np.float32(12582912)).view(np.int32)
    return (bits & 0x007FFFFF) - 0x00400000


def inverse(d: Floats) -> Floats:
    """1/d, or 0 where d is 0."""
    return np.divide(np.float32(1), d, out=np.zeros_like(d), where=d != 0)


def first_of_largest_magnitude(x: Floats) -> Floats:
    """The signed value of the largest magnitude in each block (the last axis), the first of equals; 0 without one."""
    magnitude = np.abs(x)
    magnitude = np.where(magnitude > 0, magnitude, np.float32(0))
    at = np.argmax(magnitude, axis=-1, keepdims=True)
    found = np.take_along_axis(magnitude, at, axis=-1) > 0
    return np.where(found, np.take_along_axis(x, at, axis=-1), np.float32(0))[..., 0]


def first_smallest(x: Floats) -> Floats:
    """The least value of each block, the first of equals (-0 and 0 are equal, and keep their sign), at most FLT_MAX."""
    finite = np.where(x < FLT_MAX, x, FLT_MAX)
    at = np.argmin(finite, axis=-1, keepdims=True)
    return np.take_along_axis(finite, at, axis=-1)[..., 0]


def largest_of_all(x: Floats) -> Floats:
    """The largest magnitude of each block as `MAX` finds it: what came before a NaN is forgotten."""
    largest = np.zeros(x.shape[:-1], np.float32)
    for j in range(x.shape[-1]):
        largest = c_max(largest, np.abs(x[..., j]))
    return largest


def in_blocks(x: Floats, size: int) -> Floats:
    """Rows (..., ne0) as (..., ne0 / size, size)."""
    return x.reshape(*x.shape[:-1], x.shape[-1] // size, size)


def columns(x: Floats, size: int) -> Floats:
    """Rows (..., ne0) as (size, groups): element j of every group lies side by side, and a loop over j is C's loop."""
    return np.ascontiguousarray(x.reshape(-1, size).T)


def total(terms: Floats) -> Floats:
    """The sum over the first axis, added in C's order from 0: NumPy's own sum adds in pairs and rounds otherwise."""
    sums = np.zeros(terms.shape[1:], np.float32)
    for term in terms:
        sums += term
    return sums


def c_max(a: Floats, b: Floats) -> Floats:
    """`MAX(a, b)`, which is b where they do not compare."""
    return np.where(a > b, a, b)


def largest_magnitude(x: Floats) -> tuple[Floats, Floats]:
    """Of (n, groups): the signed value of the largest magnitude, first of equals, and the magnitude; 0 without one."""
    signed, largest = np.zeros(x.shape[1:], np.float32), np.zeros(x.shape[1:], np.float32)
    for value in x:
        magnitude = np.abs(value)
        more = magnitude > largest
        np.copyto(signed, value, where=more)
        np.copyto(largest, magnitude, where=more)
    return signed, largest


def largest_above_zero(x: Floats) -> Floats:
    """Of (n, groups): the largest value of each group, or 0."""
    largest = np.zeros(x.shape[1:], np.float32)
    for value in x:
        np.copyto(largest, value, where=value > largest)
    return largest


def half(x: Floats) -> NDArray[np.float16]:
    """`GGML_FP32_TO_FP16`, ggml/src/ggml-impl.h: NaN loses what it carried, but its sign."""
    y = x.astype(np.float16)
    nan = np.isnan(x)
    if nan.any():
        y[nan] = np.where(np.signbit(x[nan]), np.uint16(0xFE00), np.uint16(0x7E00)).view(np.float16)
    return y


def mean_square(x: Floats) -> Floats:
    """The mean of squares over the last axis, added in C's order."""
    squares: Floats = np.add.accumulate(x * x, axis=-1, dtype=np.float32)[..., -1]
    return squares / np.float32(x.shape[-1])


def weigh(importance: Floats, x: Floats, sigma2: Floats) -> Floats:
    """What an element's error costs: its column's importance, more for elements that stand out of their row."""
    return importance * np.sqrt(sigma2 + x * x)
