"""Q8_K: the type in which activations meet nearly all types of 256. One scale, codes of 8 bits, their sums."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vizggml.ggml.quants.k.shared import QK_K
from vizggml.ggml.quants.parts import Layout, Parts, as_bytes, one
from vizggml.ggml.quants.rounding import Blocks, Floats, first_of_largest_magnitude, in_blocks, nearest_int

BLOCK_Q8_K = np.dtype([("d", "<f4"), ("qs", "i1", QK_K), ("bsums", "<i2", QK_K // 16)])
"""`block_q8_K`, ggml/src/ggml-common.h. `bsums` holds the sum of each 16 codes."""


def quantize_q8_k(x: Floats) -> Blocks:
    """`quantize_row_q8_K_ref`, ggml/src/ggml-quants.c: the value of the largest magnitude becomes -127.

    ggml leaves the sums of an all-zero block as they were; here they are 0.
    """
    x = in_blocks(x, QK_K)
    y = np.zeros(x.shape[:-1], BLOCK_Q8_K)
    largest = first_of_largest_magnitude(x)
    some = largest != 0
    iscale = np.float32(-127) / largest
    codes = np.minimum(127, nearest_int(iscale[..., None] * x)).astype(np.int8)
    y["d"] = np.where(some, np.float32(1) / iscale, np.float32(0))
    y["qs"] = np.where(some[..., None], codes, np.int8(0))
    y["bsums"] = y["qs"].reshape(*y.shape, 16, 16).sum(axis=-1, dtype=np.int32)
    return as_bytes(y)


def parts_q8_k(x: NDArray[np.void]) -> Parts:
    """As `dequantize_row_q8_K`, ggml/src/ggml-quants.c, reads a block."""
    return Parts(one(x["d"]), None, x["qs"], x["qs"])


LAYOUT = Layout(
    BLOCK_Q8_K,
    {
        "d": "scale, a float of 32 bits",
        "qs": "codes, -127 to 127, one in a byte",
        "bsums": "the sum of each 16 codes: what the other side's minimums are multiplied by",
    },
    parts_q8_k,
)
