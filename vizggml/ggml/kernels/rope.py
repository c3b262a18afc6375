"""Rotary position embedding: pairs of channels turn by an angle that grows with the position."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from vizggml.errors import VizggmlError
from vizggml.ggml.kernels.floats import Floats, from_f32, no_kernel, optional_source, source, thread_rows, to_f32
from vizggml.ggml.kernels.params import ComputeParams
from vizggml.ggml.tensor import Tensor

F32 = np.float32
ROPE_TYPE_NORMAL = 0
"""Pairs are neighbours: (0, 1), (2, 3), ..."""
ROPE_TYPE_NEOX = 2
"""Pairs are half a rotation apart: (0, n/2), (1, n/2 + 1), ..."""


def yarn_corr_dim(n_dims: int, n_ctx_orig: int, n_rot: float, base: float) -> float:
    """`ggml_rope_yarn_corr_dim`, ggml/src/ggml.c: the channel that makes `n_rot` turns over the original context."""
    turns = float(F32(n_ctx_orig) / (F32(n_rot) * F32(2) * F32(math.pi)))
    with np.errstate(all="ignore"):
        return float(F32(n_dims) * _log(turns) / (F32(2) * _log(base)))


def _log(x: float) -> np.float32:
    """As C has it: no number for what is below 0, minus infinity for 0."""
    return F32(math.log(x)) if x > 0 else F32(-np.inf if x == 0 else np.nan)


def yarn_corr_dims(
    n_dims: int, n_ctx_orig: int, base: float, beta_fast: float, beta_slow: float
) -> tuple[float, float]:
    """`ggml_rope_yarn_corr_dims`, ggml/src/ggml.c. A base of 1 makes them infinite, or no numbers, as there."""
    start = float(np.floor(yarn_corr_dim(n_dims, n_ctx_orig, beta_fast, base)))
    end = float(np.ceil(yarn_corr_dim(n_dims, n_ctx_orig, beta_slow, base)))
    return 0.0 if start < 0 else start, n_dims - 1.0 if end > n_dims - 1 else end


def angles(positions: NDArray[np.int32], dst: Tensor, freq_factors: Floats | None) -> tuple[Floats, Floats]:
    """Cosine and sine for each position and pair, shape (positions, n_dims / 2).

    `ggml_rope_cache_init` and `rope_yarn`, ggml/src/ggml-cpu/ops.cpp. Each pair's angle is the one before times
    `theta_scale`, rounded to F32 each time, as in ggml.
    """
    n_dims, n_ctx_orig = dst.op_param_i32(1), dst.op_param_i32(4)
    freq_base, freq_scale, ext_factor = (F32(dst.op_param_f32(i)) for i in range(5, 8))
    attn_factor, beta_fast, beta_slow = (F32(dst.op_param_f32(i)) for i in range(8, 11))
    theta = np.empty((len(positions), n_dims // 2), F32)
    theta[:, 0] = positions
    theta[:, 1:] = F32(float(freq_base) ** float(F32(-2.0) / F32(n_dims)))
    theta = np.multiply.accumulate(theta, axis=1)
    if freq_factors is not None:
        theta = theta / freq_factors[: n_dims // 2]
    magnitude = attn_factor
    interpolated = freq_scale * theta
    if ext_factor != 0:
        low, high = yarn_corr_dims(n_dims, n_ctx_orig, float(freq_base), float(beta_fast), float(beta_slow))
        y = (np.arange(n_dims // 2, dtype=F32) - F32(low)) / max(F32(0.001), F32(high) - F32(low))
        mix = (F32(1) - np.clip(y, F32(0), F32(1))) * ext_factor
        theta = interpolated * (F32(1) - mix) + theta * mix
        magnitude = magnitude * (F32(1) + F32(0.1) * np.log(F32(1) / freq_scale))
    else:
        theta = interpolated
    return np.cos(theta) * magnitude, np.sin(theta) * magnitude


def forward_rope(params: ComputeParams, dst: Tensor, sin_sign: float = 1.0) -> None:
    """Rotate the first `n_dims` channels of each row, from `n_offs` on; the others are copied.

    `ggml_compute_forward_rope`, ggml/src/ggml-cpu/ops.cpp. The row's position is that of its index in dimension 2.
    """
    src0, pos, factors = source(dst, 0), source(dst, 1), optional_source(dst, 2)
    if src0.type is not dst.type or dst.type.name not in ("F32", "F16") or pos.type.name != "I32":
        raise no_kernel(dst)
    n_dims, mode, n_offs = dst.op_param_i32(1), dst.op_param_i32(2), dst.op_param_i32(15)
    if mode not in (ROPE_TYPE_NORMAL, ROPE_TYPE_NEOX):
        raise VizggmlError(f"node {dst.name!r}: rope mode {mode} has no kernel, only 0 (normal) and 2 (neox) have")
    rows = thread_rows(params, dst.ne)
    cos, sin = angles(pos.array()[0, 0, 0, rows[1]], dst, None if factors is None else factors.array()[0, 0, 0])
    cos, sin = cos[:, None], sin[:, None] * F32(sin_sign)

    out, x = dst.array()[rows], src0.array()[rows]
    if n_dims < dst.ne[0] and not (out.ctypes.data == x.ctypes.data and out.strides == x.strides):
        out[..., :n_offs] = x[..., :n_offs]
        out[..., n_offs + n_dims :] = x[..., n_offs + n_dims :]
    turned, given = out[..., n_offs : n_offs + n_dims], x[..., n_offs : n_offs + n_dims]
    if mode == ROPE_TYPE_NORMAL:
        first, second = slice(0, None, 2), slice(1, None, 2)
    else:
        first, second = slice(0, n_dims // 2), slice(n_dims // 2, None)
    x0, x1 = to_f32(src0.type.name, given[..., first]), to_f32(src0.type.name, given[..., second])
    y0, y1 = x0 * cos - x1 * sin, x0 * sin + x1 * cos
    turned[..., first] = from_f32(dst.type.name, y0)
    turned[..., second] = from_f32(dst.type.name, y1)


def forward_rope_back(params: ComputeParams, dst: Tensor) -> None:
    """The rotation undone. `ggml_compute_forward_rope_back`, ggml/src/ggml-cpu/ops.cpp."""
    forward_rope(params, dst, -1.0)
