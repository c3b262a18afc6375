"""MXFP4 and NVFP4: elements are floats of 4 bits (E2M1), scales floats of 8 bits. 4.25 and 4.5 bits an element."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vizggml.ggml.quants.legacy import nibbles, pack_nibbles
from vizggml.ggml.quants.parts import Layout, Parts, as_bytes, one
from vizggml.ggml.quants.rounding import Blocks, Floats, c_int

BLOCK_MXFP4 = np.dtype([("e", "u1"), ("qs", "u1", 16)])
BLOCK_NVFP4 = np.dtype([("d", "u1", 4), ("qs", "u1", 32)])
"""`block_mxfp4`, `block_nvfp4`, ggml/src/ggml-common.h."""

QK_MXFP4, QK_NVFP4, QK_NVFP4_SUB = 32, 64, 16
LEVELS = np.array([0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12], np.int8)
"""`kvalues_fp4`, ggml/src/ggml-common.h: what E2M1 says, doubled. Scales are halved in turn."""

F = np.float32


def e8m0_half(e: NDArray[np.uint8]) -> Floats:
    """`ggml_e8m0_to_fp32_half`, ggml/src/ggml-impl.h: 2 ** (e - 128)."""
    bits = np.where(e < 2, np.uint32(0x00200000) << e, (e.astype(np.uint32) - 1) << 23)
    return bits.astype(np.uint32).view(np.float32)


def _ue4m3_table() -> Floats:
    """`ggml_ue4m3_to_fp32`, ggml/src/ggml-impl.h, of all bytes: half of what exponent and mantissa say."""
    byte = np.arange(256)
    exponent, mantissa = (byte >> 3) & 15, (byte & 7).astype(np.float32)
    raw = np.where(exponent == 0, np.ldexp(mantissa, -9), np.ldexp(1 + mantissa / F(8), exponent - 7))
    raw[[0, 0x7F]] = 0
    return (raw * 0.5).astype(np.float32)


UE4M3 = _ue4m3_table()


def to_ue4m3(x: Floats) -> NDArray[np.uint8]:
    """`ggml_fp32_to_ue4m3`, ggml/src/ggml-impl.h."""
    x = np.where(x > 448, F(448), x)
    bits = x.view(np.uint32).astype(np.int64)
    exponent = ((bits >> 23) & 0xFF) - 127 + 7
    mantissa = ((bits >> 20) & 7) + ((bits >> 19) & 1)
    exponent_up, mantissa_up = exponent + (mantissa > 7), np.where(mantissa > 7, 0, mantissa)
    normal = np.where(exponent_up >= 15, 0x7E, (exponent_up << 3) | mantissa_up)
    small = np.minimum(c_int(x * F(512) + F(0.5)), 7)
    found = np.where(exponent <= 0, np.where(small < 1, 0, small), normal)
    return np.where(x > 0, found, 0).astype(np.uint8)


def best_index(x: Floats, d: Floats) -> NDArray[np.uint8]:
    """`best_index_mxfp4`, ggml/src/ggml-quants.c: the first of the levels that are nearest; `d` has one axis less."""
    scale = d[..., None]
    least = np.abs(F(LEVELS[0]) * scale - x)
    codes = np.zeros(x.shape, np.uint8)
    for code in range(1, 16):
        away = np.abs(F(LEVELS[code]) * scale - x)
        nearer = away < least
        np.copyto(least, away, where=nearer)
        np.copyto(codes, np.uint8(code), where=nearer)
    return codes


def _largest(x: Floats) -> Floats:
    """The largest magnitude over the last axis; NaN is passed over."""
    largest: Floats = np.fmax.reduce(np.abs(x), axis=-1, initial=F(0))
    return largest


def quantize_mxfp4(x: Floats) -> Blocks:
    """`quantize_row_mxfp4_ref`, ggml/src/ggml-quants.c: (blocks, 32) to bytes."""
    y = np.zeros(len(x), BLOCK_MXFP4)
    amax = _largest(x)
    log2 = np.log2(amax.astype(np.float64)).astype(np.float32)
    y["e"] = np.where(amax > 0, c_int(np.floor(log2) - F(2) + F(127)).astype(np.uint8), np.uint8(0))
    y["qs"] = pack_nibbles(best_index(x, e8m0_half(y["e"])))
    return as_bytes(y)


def quantize_nvfp4(x: Floats) -> Blocks:
    """`quantize_row_nvfp4_ref`, ggml/src/ggml-quants.c: (blocks, 64) to bytes."""
    y = np.zeros(len(x), BLOCK_NVFP4)
    groups = x.reshape(-1, 4, QK_NVFP4_SUB)
    y["d"] = to_ue4m3(_largest(groups) / F(6))
    y["qs"] = pack_nibbles(best_index(groups, UE4M3[y["d"]])).reshape(-1, 32)
    return as_bytes(y)


def parts_mxfp4(x: NDArray[np.void]) -> Parts:
    """As `dequantize_row_mxfp4`, ggml/src/ggml-quants.c, reads a block."""
    codes = nibbles(x["qs"])
    return Parts(one(e8m0_half(x["e"])), None, codes, LEVELS[codes])


def parts_nvfp4(x: NDArray[np.void]) -> Parts:
    """As `dequantize_row_nvfp4`, ggml/src/ggml-quants.c, reads a block."""
    codes = nibbles(x["qs"].reshape(*x.shape, 4, 8)).reshape(*x.shape, QK_NVFP4)
    return Parts(UE4M3[x["d"]], None, codes, LEVELS[codes])


_CODES = "a code is a float of 4 bits: sign, two bits of exponent, one of mantissa"
LAYOUTS = {
    "MXFP4": Layout(
        BLOCK_MXFP4,
        {
            "e": "scale as an exponent of 2: a level, twice what the code says, is multiplied by 2 ** (e - 128)",
            "qs": "codes, two in a byte: element j in the low half of byte j, element j + 16 in the high half; "
            + _CODES,
        },
        parts_mxfp4,
    ),
    "NVFP4": Layout(
        BLOCK_NVFP4,
        {
            "d": "four scales, one for each 16 elements: floats of four bits of exponent and three of mantissa",
            "qs": "codes, two in a byte: of each 16 elements, j in a low half, j + 8 in the high half; " + _CODES,
        },
        parts_nvfp4,
    ),
}
