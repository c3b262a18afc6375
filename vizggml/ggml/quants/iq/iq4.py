"""IQ4_NL and IQ4_XS: codes of 4 bits stand for 16 levels that lie closer near zero. 4.5 and 4.25 bits an element."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vizggml.ggml.quants.iq.iq2 import nibble_pairs
from vizggml.ggml.quants.k.shared import QK_K, by_block
from vizggml.ggml.quants.legacy import QK, nibbles, pack_nibbles
from vizggml.ggml.quants.parts import Layout, Parts, as_bytes, one
from vizggml.ggml.quants.rounding import Blocks, Floats, columns, half, inverse, largest_magnitude, nearest_int, total
from vizggml.ggml.quants.search import GROUP_MAX_EPS

BLOCK_IQ4_NL = np.dtype([("d", "<f2"), ("qs", "u1", QK // 2)])
BLOCK_IQ4_XS = np.dtype([("d", "<f2"), ("scales_h", "<u2"), ("scales_l", "u1", QK_K // 64), ("qs", "u1", QK_K // 2)])
"""`block_iq4_nl`, `block_iq4_xs`, ggml/src/ggml-common.h."""

LEVELS = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.int8)
"""`kvalues_iq4nl`, ggml/src/ggml-common.h."""
VALUES = LEVELS.astype(np.float32)


def best_index(x: Floats) -> NDArray[np.intp]:
    """`best_index_int8`, ggml/src/ggml-quants.c: the code of the nearest level, of two equally near the upper."""
    above = np.clip(np.searchsorted(VALUES, x, side="right"), 1, 15)
    nearer = np.where(x - VALUES[above - 1] < VALUES[above] - x, above - 1, above)
    return np.where(x <= VALUES[0], 0, np.where(x >= VALUES[15], 15, nearer))


def _fit(x: Floats, wx: Floats, w: Floats, inverse_scale: Floats) -> tuple[NDArray[np.intp], Floats, Floats]:
    codes = best_index(inverse_scale * x)
    q = VALUES[codes]
    return codes, total(w * q * x), total(w * q * q)


def search(x: Floats, w: Floats, ntry: int) -> tuple[Floats, NDArray[np.intp]]:
    """Scales of sub-blocks (columns), and the codes of the first attempt.

    The first loop of `quantize_row_iq4_nl_impl`, ggml/src/ggml-quants.c: the largest magnitude gets the first level,
    then up to `ntry` above and below it.
    """
    top, amax = largest_magnitude(x)
    first = (-top if ntry > 0 else top) / VALUES[0]
    codes, sumqx, sumq2 = _fit(x, w, w, np.float32(1) / first)
    d = np.where(sumq2 > 0, sumqx / sumq2, np.float32(0))
    best = d * sumqx
    for itry in range(-ntry, ntry + 1):
        _, sumqx, sumq2 = _fit(x, w, w, (np.float32(itry) + VALUES[0]) / top)
        better = (sumq2 > 0) & (sumqx * sumqx > best * sumq2)
        d = np.where(better, sumqx / sumq2, d)
        best = np.where(better, d * sumqx, best)
    zero = amax < GROUP_MAX_EPS
    return np.where(zero, np.float32(0), d), np.where(zero, 0, codes)


def weights(x: Floats, importance: Floats | None) -> Floats:
    """What each element of (blocks, elements) costs, as columns of 32."""
    if importance is None:
        return columns(x * x, QK)
    sigma2 = total(columns(x * x, x.shape[-1])) * (np.float32(2) / np.float32(x.shape[-1]))
    return columns(importance * np.sqrt(sigma2[:, None] + x * x), QK)


def quantize_iq4_nl(x: Floats, importance: Floats | None = None) -> Blocks:
    """`quantize_iq4_nl`, ggml/src/ggml-quants.c: (blocks, 32) to bytes."""
    y = np.empty(len(x), BLOCK_IQ4_NL)
    d, _ = search(columns(x, QK), weights(x, importance), 7)
    y["d"], y["qs"] = half(d), pack_nibbles(best_index(inverse(d)[:, None] * x).astype(np.uint8))
    return as_bytes(y)


def from_float_iq4_nl(x: Floats) -> Blocks:
    """`quantize_row_iq4_nl_ref`, ggml/src/ggml-quants.c, which the CPU backend uses: one attempt, and its codes.

    ggml leaves the codes of an all-zero block as they were; here they are 0.
    """
    y = np.empty(len(x), BLOCK_IQ4_NL)
    d, codes = search(columns(x, QK), weights(x, None), -1)
    y["d"], y["qs"] = half(d), pack_nibbles(codes.T.astype(np.uint8))
    return as_bytes(y)


def quantize_iq4_xs(x: Floats, importance: Floats | None = None) -> Blocks:
    """`quantize_iq4_xs`, ggml/src/ggml-quants.c: (blocks, 256) to bytes."""
    y = np.zeros(len(x), BLOCK_IQ4_XS)
    scales, _ = search(columns(x, QK), weights(x, importance), 7)
    of_block = by_block(scales, 8)
    d = -largest_magnitude(of_block)[0] / np.float32(32)
    small = np.clip(nearest_int(inverse(d) * of_block), -32, 31)
    back = inverse(d * small.astype(np.float32)).T[..., None]
    codes = best_index(back * x.reshape(-1, 8, QK)).astype(np.uint8)
    six = (small + 32).T.astype(np.uint16)
    y["d"] = half(d)
    y["scales_l"] = (six[:, ::2] & 0x0F) | ((six[:, 1::2] & 0x0F) << 4)
    y["scales_h"] = ((six >> 4) << np.arange(0, 16, 2, dtype=np.uint16)).sum(axis=-1)
    y["qs"] = pack_nibbles(codes).reshape(-1, 128)
    return as_bytes(y)


def parts_iq4_nl(x: NDArray[np.void]) -> Parts:
    """As `dequantize_row_iq4_nl`, ggml/src/ggml-quants.c, reads a block."""
    codes = nibbles(x["qs"])
    return Parts(one(x["d"]), None, codes, LEVELS[codes])


def parts_iq4_xs(x: NDArray[np.void]) -> Parts:
    """As `dequantize_row_iq4_xs`, ggml/src/ggml-quants.c, reads a block."""
    high = (x["scales_h"][..., None] >> np.arange(0, 16, 2, dtype=np.uint16)) & 3
    six = nibble_pairs(x["scales_l"]).astype(np.int16) | (high.astype(np.int16) << 4)
    codes = nibbles(x["qs"].reshape(*x.shape, 8, 16)).reshape(*x.shape, QK_K)
    scales = x["d"].astype(np.float32)[..., None] * (six - 32).astype(np.float32)
    return Parts(scales, None, codes, LEVELS[codes])


_QS = "codes, two in a byte: of each 32 elements, element j in a low half, element j + 16 in the high half"
LAYOUTS = {
    "IQ4_NL": Layout(
        BLOCK_IQ4_NL, {"d": "scale", "qs": _QS + "; a code stands for one of 16 uneven levels"}, parts_iq4_nl
    ),
    "IQ4_XS": Layout(
        BLOCK_IQ4_XS,
        {
            "d": "scale of the scales",
            "scales_h": "two high bits of eight scales of 6 bits, less 32",
            "scales_l": "four low bits of the scales, two in a byte",
            "qs": _QS + "; a code stands for one of 16 uneven levels",
        },
        parts_iq4_xs,
    ),
}
