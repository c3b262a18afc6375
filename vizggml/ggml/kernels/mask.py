"""The causal mask as an op of its own."""

from __future__ import annotations

import numpy as np

from vizggml.ggml.kernels.floats import no_kernel, source, thread_rows
from vizggml.ggml.kernels.params import ComputeParams
from vizggml.ggml.tensor import Tensor


def forward_diag_mask(params: ComputeParams, dst: Tensor, value: float) -> None:
    """Elements `i > n_past + row` become `value`. `ggml_compute_forward_diag_mask_f32`, ggml/src/ggml-cpu/ops.cpp."""
    src0 = source(dst, 0)
    if src0.type.name != "F32" or dst.type.name != "F32":
        raise no_kernel(dst)
    n_past = dst.op_param_i32(0)
    rows = thread_rows(params, dst.ne)
    beyond = np.arange(dst.ne[0]) > n_past + np.arange(dst.ne[1])[:, None]
    out = dst.array()[rows]
    out[...] = src0.array()[rows]
    np.copyto(out, np.float32(value), where=beyond[rows[2]])


def forward_diag_mask_inf(params: ComputeParams, dst: Tensor) -> None:
    """`ggml_compute_forward_diag_mask_inf`, ggml/src/ggml-cpu/ops.cpp."""
    forward_diag_mask(params, dst, -np.inf)


def forward_diag_mask_zero(params: ComputeParams, dst: Tensor) -> None:
    """`ggml_compute_forward_diag_mask_zero`, ggml/src/ggml-cpu/ops.cpp."""
    forward_diag_mask(params, dst, 0.0)
