"""How C turns a float into an integer, so that codes come out the same to the bit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Blocks = NDArray[np.uint8]
"""Quantized rows as bytes, shape (..., blocks of a row, type_size)."""

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
    """The signed value of the largest magnitude in each block (the last axis), the first of equals; +0 if all are 0."""
    at = np.argmax(np.abs(x), axis=-1, keepdims=True)
    return np.take_along_axis(x, at, axis=-1)[..., 0] + np.float32(0)


def first_smallest(x: Floats) -> Floats:
    """The least value of each block, the first of equals: -0 and 0 are equal, and keep their sign."""
    at = np.argmin(x, axis=-1, keepdims=True)
    return np.take_along_axis(x, at, axis=-1)[..., 0]


def in_blocks(x: Floats, size: int) -> Floats:
    """Rows (..., ne0) as (..., ne0 / size, size)."""
    return x.reshape(*x.shape[:-1], x.shape[-1] // size, size)
