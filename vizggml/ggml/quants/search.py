"""The searches for the scale (and minimum) of a group that cost least, ggml/src/ggml-quants.c.

Every function takes groups as columns, shape (elements of a group, groups), and works on all groups at once; each sum
is added in C's order. Codes come back as floats of whole numbers.
"""

from __future__ import annotations

import numpy as np

from vizggml.ggml.quants.rounding import Floats, c_max, largest_magnitude, nearest_int, total

GROUP_MAX_EPS = np.float32(1e-15)
"""A group whose largest magnitude is below this is taken as zero."""

F = np.float32


def whole(x: Floats, low: int, high: int) -> Floats:
    """`nearest_int(x)`, kept within low and high."""
    return np.clip(nearest_int(x), low, high).astype(np.float32)


def make_qx_quants(nmax: int, x: Floats, weights: Floats | None = None) -> tuple[Floats, Floats]:
    """`make_qx_quants` with rmse_type 1: scale of each group, and codes 0 to 2 nmax - 1, of which nmax stands for 0.

    The largest magnitude is first given code 0, then codes around that are tried.
    """
    top, amax = largest_magnitude(x)
    w = x * x if weights is None else weights
    wx = w * x
    scale = best = np.zeros_like(top)
    codes = np.zeros_like(x)
    for step in (0, *range(-9, 0), *range(1, 10)):
        trial = whole(-(F(nmax) + F(0.1) * F(step)) / top * x, -nmax, nmax - 1)
        sumlx, suml2 = total(wx * trial), total(w * trial * trial)
        if step == 0:
            codes = trial
            scale = np.where(suml2 != 0, sumlx / suml2, F(0))
            best = scale * sumlx
            continue
        better = (suml2 > 0) & (sumlx * sumlx > best * suml2)
        np.copyto(codes, trial, where=better)
        scale = np.where(better, sumlx / suml2, scale)
        best = np.where(better, scale * sumlx, best)
    zero = amax < GROUP_MAX_EPS
    return np.where(zero, F(0), scale), np.where(zero, F(0), codes + F(nmax))


def make_q3_quants(nmax: int, x: Floats) -> tuple[Floats, Floats]:
    """`make_q3_quants` with do_rmse: one code after the other is moved where that makes the squared error less."""
    top, amax = largest_magnitude(x)
    codes = whole(F(-nmax) / top * x, -nmax, nmax - 1)
    w = x * x
    wx = w * x
    sumlx, suml2 = total(wx * codes), total(w * codes * codes)
    for _ in range(5):
        changed = False
        for i, old in enumerate(codes):
            slx, sl2 = sumlx - wx[i] * old, suml2 - w[i] * old * old
            new = whole(x[i] * sl2 / slx, -nmax, nmax - 1)
            moved = (slx > 0) & (new != old)
            slx, sl2 = slx + wx[i] * new, sl2 + w[i] * new * new
            moved &= (sl2 > 0) & (slx * slx * suml2 > sumlx * sumlx * sl2)
            codes[i] = np.where(moved, new, old)
            sumlx, suml2 = np.where(moved, slx, sumlx), np.where(moved, sl2, suml2)
            changed = changed or bool(moved.any())
        if not changed:
            break
    zero = amax < GROUP_MAX_EPS
    scale = np.where((suml2 > 0) & ~zero, sumlx / suml2, F(0))
    return scale, np.where(zero, F(0), codes + F(nmax))


def make_qkx_quants(
    nmax: int, x: Floats, w: Floats, rmin: float, rdelta: float, nstep: int, *, use_mad: bool = False
) -> tuple[Floats, Floats, Floats]:
    """`make_qkx2_quants` and `make_qkx3_quants`: scale, minimum (as it is taken off: 0 or more) and codes 0 to nmax.

    Codes are tried for nstep + 1 spreads around the group's own; for each, the scale and minimum of least squares.
    `use_mad` measures the error by magnitude, not by square.
    """
    low, high = x[0].copy(), x[0].copy()
    for value in x[1:]:
        np.copyto(low, value, where=value < low)
        np.copyto(high, value, where=value > high)
    np.copyto(low, F(0), where=low > 0)
    sum_w, sum_x = w[0].copy(), w[0] * x[0]
    for weight, value in zip(w[1:], x[1:], strict=True):
        sum_w += weight
        sum_x += weight * value
    flat = high == low

    def cost(scale: Floats, low: Floats, codes: Floats) -> Floats:
        off = scale * codes + low - x
        return total(w * (np.abs(off) if use_mad else off * off))

    minimum = low
    iscale = F(nmax) / (high - low)
    scale = F(1) / iscale
    codes = whole(iscale * (x - low), 0, nmax)
    best = cost(scale, low, codes)
    for step in range(nstep + 1):
        iscale = (F(rmin) + F(rdelta) * F(step) + F(nmax)) / (high - minimum)
        trial = whole(iscale * (x - minimum), 0, nmax)
        wl = w * trial
        sum_l, sum_l2, sum_xl = total(wl), total(wl * trial), total(wl * x)
        det = sum_w * sum_l2 - sum_l * sum_l
        this_scale = (sum_w * sum_xl - sum_x * sum_l) / det
        this_min = (sum_l2 * sum_x - sum_l * sum_xl) / det
        above = this_min > 0
        this_scale = np.where(above, sum_xl / sum_l2, this_scale)
        this_min = np.where(above, F(0), this_min)
        error = cost(this_scale, this_min, trial)
        better = (det > 0) & (error < best)
        np.copyto(codes, trial, where=better)
        best = np.where(better, error, best)
        scale = np.where(better, this_scale, scale)
        minimum = np.where(better, this_min, minimum)
    codes = np.where(flat, F(0), codes)
    return np.where(flat, F(0), scale), -np.where(flat, low, minimum), codes


def _byte(codes: Floats) -> Floats:
    """A whole number as a uint8 keeps it."""
    return np.mod(codes, F(256))


def make_qp_quants(nmax: int, x: Floats, w: Floats) -> tuple[Floats, Floats]:
    """`make_qp_quants`: scale and codes 0 to nmax of values that are not negative (one that is wraps, as in C)."""
    top = np.zeros(x.shape[1:], np.float32)
    for value in x:
        top = c_max(top, value)
    zero = top < GROUP_MAX_EPS

    def cost(scale: Floats, codes: Floats) -> Floats:
        off = x - scale * codes
        return total(w * off * off)

    iscale = F(nmax) / top
    best = cost(F(1) / iscale, _byte(nearest_int(iscale * x).astype(np.float32)))
    for step in (-4, -3, -2, -1, 1, 2, 3, 4):
        trial = (F(0.1) * F(step) + F(nmax)) / top
        error = cost(F(1) / trial, np.minimum(nearest_int(trial * x), nmax).astype(np.float32))
        iscale = np.where(error < best, trial, iscale)
        best = np.where(error < best, error, best)
    codes = np.minimum(nearest_int(iscale * x), nmax).astype(np.float32)
    wx = w * x
    sumlx, suml2 = total(wx * codes), total(w * codes * codes)
    codes = _byte(codes)
    for _ in range(5):
        changed = False
        for i, old in enumerate(codes):
            slx, sl2 = sumlx - wx[i] * old, suml2 - w[i] * old * old
            new = np.minimum(nearest_int(x[i] * sl2 / slx), nmax).astype(np.float32)
            moved = (slx > 0) & (sl2 > 0) & (new != old)
            slx, sl2 = slx + wx[i] * new, sl2 + w[i] * new * new
            moved &= slx * slx * suml2 > sumlx * sumlx * sl2
            codes[i] = np.where(moved, _byte(new), old)
            sumlx, suml2 = np.where(moved, slx, sumlx), np.where(moved, sl2, suml2)
            changed = changed or bool(moved.any())
        if not changed:
            break
    scale = np.where((suml2 > 0) & ~zero, sumlx / suml2, F(0))
    return scale, np.where(zero, F(0), codes)
