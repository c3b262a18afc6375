"""Q5_0 and Q5_1: 32 elements, 5 bits each. Four bits lie as in Q4_0; the fifth of element j is bit j of `qh`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vizggml.ggml.quants.legacy import QK, nibbles, pack_nibbles, search_scale, search_scale_and_min, upper
from vizggml.ggml.quants.parts import Layout, Parts, as_bytes, one
from vizggml.ggml.quants.rounding import (
    Blocks,
    Floats,
    c_int,
    first_of_largest_magnitude,
    first_smallest,
    half,
    in_blocks,
    inverse,
)

BLOCK_Q5_0 = np.dtype([("d", "<f2"), ("qh", "u1", 4), ("qs", "u1", QK // 2)])
BLOCK_Q5_1 = np.dtype([("d", "<f2"), ("m", "<f2"), ("qh", "u1", 4), ("qs", "u1", QK // 2)])
"""`block_q5_0`, `block_q5_1`, ggml/src/ggml-common.h."""


def _put_codes(y: NDArray[np.void], codes: NDArray[np.uint8]) -> Blocks:
    y["qs"] = pack_nibbles(codes & np.uint8(0x0F))
    y["qh"] = np.packbits((codes >> 4) & 1, axis=-1, bitorder="little")
    return as_bytes(y)


def _codes(x: NDArray[np.void]) -> NDArray[np.uint8]:
    fifth = np.unpackbits(np.ascontiguousarray(x["qh"]), axis=-1, bitorder="little")
    return nibbles(x["qs"]) | (fifth << np.uint8(4))


def quantize_q5_0(x: Floats) -> Blocks:
    """`quantize_row_q5_0_ref`, ggml/src/ggml-quants.c: the largest magnitude becomes code 0, that is -16."""
    x = in_blocks(x, QK)
    y = np.empty(x.shape[:-1], BLOCK_Q5_0)
    d = first_of_largest_magnitude(x) / np.float32(-16)
    y["d"] = half(d)
    return _put_codes(y, upper(c_int(x * inverse(d)[..., None] + np.float32(16.5)), 31))


def quantize_q5_1(x: Floats) -> Blocks:
    """`quantize_row_q5_1_ref`, ggml/src/ggml-quants.c: codes 0 to 31 span the block's minimum to its maximum."""
    x = in_blocks(x, QK)
    y = np.empty(x.shape[:-1], BLOCK_Q5_1)
    low, high = first_smallest(x), -first_smallest(-x)
    d = (high - low) / np.float32(31)
    y["d"], y["m"] = half(d), half(low)
    return _put_codes(y, c_int((x - low[..., None]) * inverse(d)[..., None] + np.float32(0.5)).astype(np.uint8))


def weighted_q5_0(x: Floats, importance: Floats) -> Blocks:
    """`quantize_row_q5_0_impl`, ggml/src/ggml-quants.c."""
    d, codes = search_scale(x, importance, 16)
    y = np.empty(d.shape, BLOCK_Q5_0)
    y["d"] = half(d)
    return _put_codes(y, codes)


def weighted_q5_1(x: Floats, importance: Floats) -> Blocks:
    """`quantize_row_q5_1_impl`, ggml/src/ggml-quants.c."""
    d, low, codes = search_scale_and_min(x, importance, 31)
    y = np.empty(d.shape, BLOCK_Q5_1)
    y["d"], y["m"] = half(d), half(low)
    return _put_codes(y, codes)


def parts_q5_0(x: NDArray[np.void]) -> Parts:
    """As `dequantize_row_q5_0`, ggml/src/ggml-quants.c, reads a block."""
    codes = _codes(x)
    return Parts(one(x["d"]), None, codes, codes.view(np.int8) - np.int8(16))


def parts_q5_1(x: NDArray[np.void]) -> Parts:
    """As `dequantize_row_q5_1`, ggml/src/ggml-quants.c, reads a block."""
    codes = _codes(x)
    return Parts(one(x["d"]), one(x["m"]), codes, codes.view(np.int8))


_QH = "the fifth bit of each code: that of element j is bit j"
_QS = "the four low bits of each code: element j in the low half of byte j, element j + 16 in the high half"
LAYOUTS = {
    "Q5_0": Layout(BLOCK_Q5_0, {"d": "scale", "qh": _QH, "qs": _QS + "; a code stands for code - 16"}, parts_q5_0),
    "Q5_1": Layout(BLOCK_Q5_1, {"d": "scale", "m": "minimum, added to each element", "qh": _QH, "qs": _QS}, parts_q5_1),
}
ENCODERS = {"Q5_0": quantize_q5_0, "Q5_1": quantize_q5_1}
WEIGHTED = {"Q5_0": weighted_q5_0, "Q5_1": weighted_q5_1}
