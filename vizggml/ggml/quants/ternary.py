"""TQ1_0 and TQ2_0: every element is -1, 0 or 1 times one scale for 256. 1.6875 and 2.0625 bits an element."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vizggml.ggml.quants.k.shared import QK_K, crumbs, pack_crumbs
from vizggml.ggml.quants.parts import Layout, Parts, as_bytes, one
from vizggml.ggml.quants.rounding import Blocks, Floats, half, inverse, largest_of_all, roundf

BLOCK_TQ1_0 = np.dtype([("qs", "u1", 48), ("qh", "u1", 4), ("d", "<f2")])
BLOCK_TQ2_0 = np.dtype([("qs", "u1", QK_K // 4), ("d", "<f2")])
"""`block_tq1_0`, `block_tq2_0`, ggml/src/ggml-common.h."""

RUNS = ((0, 32, 5), (32, 48, 5), (48, 52, 4))
"""Bytes first to last, and how many elements each holds: byte m of a run of n holds elements m, m + n, m + 2 n, ..."""


def _trits(x: Floats) -> tuple[Floats, NDArray[np.uint8]]:
    """Scales of (blocks, 256), and `lroundf(x / d) + 1`; what no long can hold becomes 1."""
    d = largest_of_all(x)
    near = roundf(x * inverse(d)[:, None])
    return d, (np.where(np.abs(near) < 128, near, 0).astype(np.int8) + 1).astype(np.uint8)


def quantize_tq1_0(x: Floats) -> Blocks:
    """`quantize_row_tq1_0_ref`, ggml/src/ggml-quants.c: (blocks, 256) to bytes.

    Five codes are the digits of a number in base 3, below 243; a byte holds it as a fraction of 256, rounded up, so
    that multiplying by 3 pushes out one digit after the other.
    """
    y = np.zeros(len(x), BLOCK_TQ1_0)
    d, trits = _trits(x)
    y["d"] = half(d)
    packed, start = [], 0
    for first, last, n in RUNS:
        digits = trits[:, start : start + n * (last - first)].reshape(len(x), n, last - first)
        start += n * (last - first)
        number = np.zeros((len(x), last - first), np.uint8)
        for i in range(5):
            number = number * np.uint8(3) + (digits[:, i] if i < n else np.uint8(0))
        packed.append((number.astype(np.uint16) * 256 + 242) // 243)
    y["qs"], y["qh"] = np.concatenate(packed[:2], axis=-1), packed[2]
    return as_bytes(y)


def quantize_tq2_0(x: Floats) -> Blocks:
    """`quantize_row_tq2_0_ref`, ggml/src/ggml-quants.c: (blocks, 256) to bytes."""
    y = np.zeros(len(x), BLOCK_TQ2_0)
    d, trits = _trits(x)
    y["d"], y["qs"] = half(d), pack_crumbs(trits & np.uint8(3))
    return as_bytes(y)


def parts_tq1_0(x: NDArray[np.void]) -> Parts:
    """As `dequantize_row_tq1_0`, ggml/src/ggml-quants.c, reads a block."""
    q = np.concatenate([x["qs"], x["qh"]], axis=-1)
    digits = []
    for first, last, n in RUNS:
        for i in range(n):
            pushed = q[..., first:last] * np.uint8(3**i)
            digits.append((pushed.astype(np.uint16) * 3 >> 8).astype(np.uint8))
    codes = np.concatenate(digits, axis=-1)
    return Parts(one(x["d"]), None, codes, codes.view(np.int8) - np.int8(1))


def parts_tq2_0(x: NDArray[np.void]) -> Parts:
    """As `dequantize_row_tq2_0`, ggml/src/ggml-quants.c, reads a block."""
    codes = crumbs(x["qs"])
    return Parts(one(x["d"]), None, codes, codes.view(np.int8) - np.int8(1))


LAYOUTS = {
    "TQ1_0": Layout(
        BLOCK_TQ1_0,
        {
            "qs": "five codes in a byte, as the digits of a fraction in base 3: of the first 160 elements, byte m has "
            "m, m + 32, ...; of the next 80, byte 32 + m has every 16th from m",
            "qh": "four codes in a byte, in the same way, for the last 16 elements",
            "d": "scale; a code stands for code - 1",
        },
        parts_tq1_0,
    ),
    "TQ2_0": Layout(
        BLOCK_TQ2_0,
        {
            "qs": "codes, four in a byte: of each 128 elements, byte l has elements l, l + 32, l + 64 and l + 96",
            "d": "scale; a code stands for code - 1",
        },
        parts_tq2_0,
    ),
}
