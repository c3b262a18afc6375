"""Q1_0 and Q2_0: one or two bits an element and one scale. 1.125 and 2.25 bits an element."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vizggml.ggml.quants.parts import Layout, Parts, as_bytes, one
from vizggml.ggml.quants.rounding import Blocks, Floats, c_int, columns, half, largest_magnitude, roundf, total

BLOCK_Q1_0 = np.dtype([("d", "<f2"), ("qs", "u1", 16)])
BLOCK_Q2_0 = np.dtype([("d", "<f2"), ("qs", "u1", 16)])
"""`block_q1_0`, `block_q2_0`, ggml/src/ggml-common.h."""

QK1_0, QK2_0 = 128, 64


def quantize_q1_0(x: Floats) -> Blocks:
    """`quantize_row_q1_0_ref`, ggml/src/ggml-quants.c: the mean magnitude, and the signs. (blocks, 128) to bytes."""
    y = np.empty(len(x), BLOCK_Q1_0)
    y["d"] = half(total(columns(np.abs(x), QK1_0)) / np.float32(QK1_0))
    y["qs"] = np.packbits(x >= 0, axis=-1, bitorder="little")
    return as_bytes(y)


def quantize_q2_0(x: Floats) -> Blocks:
    """`quantize_row_q2_0_ref`, ggml/src/ggml-quants.c: the largest magnitude is the scale. (blocks, 64) to bytes."""
    y = np.empty(len(x), BLOCK_Q2_0)
    d = largest_magnitude(columns(x, QK2_0))[1]
    inverse = np.where(d > 0, np.float32(1) / d, np.float32(0))
    codes = np.clip(c_int(roundf(x * inverse[:, None])) + 1, 0, 3).reshape(-1, 16, 4)
    y["d"], y["qs"] = half(d), (codes << np.arange(0, 8, 2)).sum(axis=-1)
    return as_bytes(y)


def parts_q1_0(x: NDArray[np.void]) -> Parts:
    """As `dequantize_row_q1_0`, ggml/src/ggml-quants.c, reads a block."""
    codes = np.unpackbits(np.ascontiguousarray(x["qs"]), axis=-1, bitorder="little")
    return Parts(one(x["d"]), None, codes, 2 * codes.view(np.int8) - np.int8(1))


def parts_q2_0(x: NDArray[np.void]) -> Parts:
    """As `dequantize_row_q2_0`, ggml/src/ggml-quants.c, reads a block."""
    codes = ((x["qs"][..., None] >> np.arange(0, 8, 2, dtype=np.uint8)) & np.uint8(3)).reshape(*x.shape, QK2_0)
    return Parts(one(x["d"]), None, codes, codes.view(np.int8) - np.int8(1))


LAYOUTS = {
    "Q1_0": Layout(
        BLOCK_Q1_0,
        {"d": "scale: the mean magnitude", "qs": "one bit an element: 1 stands for +1, 0 for -1"},
        parts_q1_0,
    ),
    "Q2_0": Layout(
        BLOCK_Q2_0,
        {"d": "scale: the largest magnitude", "qs": "codes of 2 bits, in the order of the elements; code - 1 is meant"},
        parts_q2_0,
    ),
}
