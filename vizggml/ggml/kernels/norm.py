"""Normalization kernels: RMS norm, alone and fused with its weight, layer norm, L2 norm, group norm."""

from __future__ import annotations

import numpy as np

from vizggml.ggml.kernels.elementwise import repeated
from vizggml.ggml.kernels.floats import Floats, Rows, no_kernel, source, thread_range, thread_rows
from vizggml.ggml.kernels.params import ComputeParams
from vizggml.ggml.tensor import Tensor

F32 = np.float32


def _rows_f32(dst: Tensor, rows: Rows) -> Floats:
    src0 = source(dst, 0)
    if src0.type.name != "F32" or dst.type.name != "F32":
        raise no_kernel(dst)
    return src0.array()[rows]


def rms_scale(x: Floats, eps: float) -> Floats:
    """1 / sqrt(mean of squares + eps) of each row; the squares are F32, their sum F64, as in ggml."""
    mean = ((x * x).sum(axis=-1, keepdims=True, dtype=np.float64) / x.shape[-1]).astype(F32)
    root: Floats = np.sqrt(mean + F32(eps))
    return F32(1) / root


def forward_rms_norm(params: ComputeParams, dst: Tensor) -> None:
    """`ggml_compute_forward_rms_norm`, ggml/src/ggml-cpu/ops.cpp."""
    rows = thread_rows(params, dst.ne)
    x = _rows_f32(dst, rows)
    np.multiply(x, rms_scale(x, dst.op_param_f32(0)), out=dst.array()[rows])


def forward_rms_norm_mul(params: ComputeParams, norm: Tensor, mul: Tensor) -> None:
    """RMS_NORM and the MUL after it in one pass: what `norm` would hold is never written.

    `ggml_compute_forward_rms_norm_mul_fused`, ggml/src/ggml-cpu/ops.cpp.
    """
    rows = thread_rows(params, norm.ne)
    x = _rows_f32(norm, rows)
    weight = source(mul, 1) if mul.src[0] is norm else source(mul, 0)
    w = repeated(weight.array(), (norm.ne[3], norm.ne[2], norm.ne[1], norm.ne[0]))[rows]
    np.multiply(x * rms_scale(x, norm.op_param_f32(0)), w, out=mul.array()[rows])


def forward_norm(params: ComputeParams, dst: Tensor) -> None:
    """`ggml_compute_forward_norm`, ggml/src/ggml-cpu/ops.cpp."""
    rows = thread_rows(params, dst.ne)
    x = _rows_f32(dst, rows)
    n = x.shape[-1]
    centred = x - x.sum(axis=-1, keepdims=True, dtype=np.float64).astype(F32) / F32(n)
    variance = np.square(centred).sum(axis=-1, keepdims=True) / F32(n)
    np.multiply(centred, F32(1) / np.sqrt(variance + F32(dst.op_param_f32(0))), out=dst.array()[rows])


def forward_l2_norm(params: ComputeParams, dst: Tensor) -> None:
    """`ggml_compute_forward_l2_norm`, ggml/src/ggml-cpu/ops.cpp."""
    rows = thread_rows(params, dst.ne)
    x = _rows_f32(dst, rows)
    norm = np.sqrt((x * x).sum(axis=-1, keepdims=True, dtype=np.float64).astype(F32))
    np.multiply(x, F32(1) / np.maximum(norm, F32(dst.op_param_f32(0))), out=dst.array()[rows])


def forward_group_norm(params: ComputeParams, dst: Tensor) -> None:
    """Groups of channels (`ne[2]`) brought to mean 0 and variance 1.

    `ggml_compute_forward_group_norm`, ggml/src/ggml-cpu/ops.cpp.
    """
    src0 = source(dst, 0)
    if src0.type.name != "F32" or dst.type.name != "F32":
        raise no_kernel(dst)
    n_groups, eps, one = dst.op_param_i32(0), F32(dst.op_param_f32(1)), F32(1)
    each = -(-src0.ne[2] // n_groups)
    for group in range(*thread_range(params, n_groups).indices(n_groups)):
        channels = slice(group * each, min((group + 1) * each, src0.ne[2]))
        x = src0.array()[:, channels]
        if not x.size:
            continue
        count = x[0].size
        mean = (x.sum(axis=(1, 2, 3), keepdims=True, dtype=np.float64) / count).astype(F32)
        centred = x - mean
        squares = np.square(centred).sum(axis=(1, 2, 3), keepdims=True, dtype=np.float64)
        variance = (squares / count).astype(F32)
        np.multiply(centred, one / np.sqrt(variance + eps), out=dst.array()[:, channels])
