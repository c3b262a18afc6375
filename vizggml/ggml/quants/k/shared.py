"""What the K types share: groups as columns, and the ways in which small codes lie in bytes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vizggml.ggml.quants.rounding import Floats, columns, nearest_int, total, weigh
from vizggml.ggml.quants.search import whole

QK_K = 256
K_SCALE_SIZE = 12

Groups = Floats
"""Elements (of a group, groups of all super-blocks)."""


def by_block(x: Floats, n_groups: int) -> Floats:
    """A number for each group (groups of all super-blocks) as (groups of one, super-blocks)."""
    return np.ascontiguousarray(x.reshape(-1, n_groups).T)


def sigma2(x: Floats, factor: float) -> Floats:
    """`factor` times the mean of squares of each super-block, added in C's order."""
    squares = total(columns(x * x, QK_K))
    return np.float32(factor) * squares / np.float32(QK_K)


def importance_columns(x: Floats, importance: Floats, size: int, factor: float) -> Groups:
    """What each element's error costs, as columns of groups."""
    each = np.repeat(sigma2(x, factor)[:, None], QK_K, axis=-1)
    return columns(weigh(importance, x, each), size)


def requantize(x: Groups, d: Floats, dm: Floats | None, codes: Groups, low: int, high: int) -> Groups:
    """Codes anew, for the scale `d` and minimum `dm` that the block can keep; those of groups of scale 0 stay."""
    new = whole((x if dm is None else x + dm) / d, low, high)
    return np.where(d != 0, new, codes)


def elements(codes: Groups) -> NDArray[np.uint8]:
    """Columns of groups back to (super-blocks, 256)."""
    return np.ascontiguousarray(codes.T).astype(np.int16).astype(np.uint8).reshape(-1, QK_K)


def pack_crumbs(codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """2-bit codes (..., 256) in 64 bytes: of each 128, byte l has elements l, l + 32, l + 64 and l + 96."""
    q = codes.reshape(*codes.shape[:-1], 2, 4, 32)
    packed = q[..., 0, :] | (q[..., 1, :] << 2) | (q[..., 2, :] << 4) | (q[..., 3, :] << 6)
    return packed.astype(np.uint8).reshape(*codes.shape[:-1], 64)


def crumbs(qs: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The 256 codes of 64 bytes: the other way of `pack_crumbs`."""
    q = qs.reshape(*qs.shape[:-1], 2, 1, 32)
    shifts = np.array([0, 2, 4, 6], np.uint8)[:, None]
    return ((q >> shifts) & np.uint8(3)).reshape(*qs.shape[:-1], QK_K)


def pack_halves(codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """4-bit codes (..., 256) in 128 bytes: of each 64, the first 32 in the low halves, the others in the high ones."""
    q = codes.reshape(*codes.shape[:-1], 4, 2, 32)
    return (q[..., 0, :] | (q[..., 1, :] << np.uint8(4))).reshape(*codes.shape[:-1], 128)


def halves(qs: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The 256 codes of 128 bytes: the other way of `pack_halves`."""
    q = qs.reshape(*qs.shape[:-1], 4, 1, 32)
    return np.concatenate([q & 0x0F, q >> 4], axis=-2).reshape(*qs.shape[:-1], QK_K)


def pack_scales(scales: NDArray[np.uint8], mins: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Eight scales and eight minimums of 6 bits in 12 bytes, `quantize_row_q4_K_ref`, ggml/src/ggml-quants.c.

    Bytes 0 to 3 and 4 to 7 hold the first four scales and minimums; bytes 8 to 11 the four low bits of the others, a
    scale and a minimum each; their two high bits stand in the high bits of bytes 0 to 7.
    """
    s, m = scales, mins
    high = np.uint8(6)
    return np.concatenate(
        [
            s[..., :4] | ((s[..., 4:] >> 4) << high),
            m[..., :4] | ((m[..., 4:] >> 4) << high),
            (s[..., 4:] & 0x0F) | ((m[..., 4:] & 0x0F) << 4),
        ],
        axis=-1,
    )


def unpack_scales(q: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """`get_scale_min_k4`, ggml/src/ggml-quants.c, for all eight: scales and minimums."""
    first, second, third = q[..., :4], q[..., 4:8], q[..., 8:]
    scales = np.concatenate([first & 63, (third & 0x0F) | ((first >> 6) << 4)], axis=-1)
    mins = np.concatenate([second & 63, (third >> 4) | ((second >> 6) << 4)], axis=-1)
    return scales, mins


def six_bits(x: Floats) -> NDArray[np.uint8]:
    """`MIN(63, (uint8_t)nearest_int(x))`."""
    return np.minimum(63, nearest_int(x).astype(np.uint8)).astype(np.uint8)
