"""Reductions along rows: SUM, SUM_ROWS, MEAN, CUMSUM, ARGMAX, ARGSORT, TOP_K."""

from __future__ import annotations

import numpy as np

from vizggml.ggml.kernels.floats import FLOAT_TYPES, from_f32, no_kernel, source, thread_rows, to_f32
from vizggml.ggml.kernels.params import ComputeParams
from vizggml.ggml.tensor import Tensor

F32 = np.float32
SORT_ORDER_ASC = 0


def _needs_f32(dst: Tensor, to: str) -> Tensor:
    src0 = source(dst, 0)
    if src0.type.name != "F32" or dst.type.name != to:
        raise no_kernel(dst)
    return src0


def forward_sum(params: ComputeParams, dst: Tensor) -> None:
    """All elements. `ggml_compute_forward_sum`, ggml/src/ggml-cpu/ops.cpp."""
    src0 = source(dst, 0)
    if src0.type.name not in FLOAT_TYPES or dst.type is not src0.type:
        raise no_kernel(dst)
    if params.ith == 0:
        total = to_f32(src0.type.name, src0.array()).sum(dtype=np.float64)
        dst.array()[...] = from_f32(dst.type.name, np.array(total, F32))


def forward_sum_rows(params: ComputeParams, dst: Tensor) -> None:
    """`ggml_compute_forward_sum_rows`, ggml/src/ggml-cpu/ops.cpp."""
    rows = thread_rows(params, dst.ne)
    dst.array()[rows] = _needs_f32(dst, "F32").array()[rows].sum(axis=-1, keepdims=True, dtype=np.float64)


def forward_mean(params: ComputeParams, dst: Tensor) -> None:
    """`ggml_compute_forward_mean`, ggml/src/ggml-cpu/ops.cpp."""
    src0, rows = _needs_f32(dst, "F32"), thread_rows(params, dst.ne)
    total = src0.array()[rows].sum(axis=-1, keepdims=True, dtype=np.float64).astype(F32)
    dst.array()[rows] = total / F32(src0.ne[0])


def forward_cumsum(params: ComputeParams, dst: Tensor) -> None:
    """`ggml_compute_forward_cumsum`, ggml/src/ggml-cpu/ops.cpp."""
    rows = thread_rows(params, dst.ne)
    np.add.accumulate(_needs_f32(dst, "F32").array()[rows], axis=-1, out=dst.array()[rows])


def forward_argmax(params: ComputeParams, dst: Tensor) -> None:
    """Where each row is largest, the last such place. `ggml_compute_forward_argmax`, ggml/src/ggml-cpu/ops.cpp."""
    src0 = _needs_f32(dst, "I32")
    if params.ith == 0:
        dst.array()[0, 0, 0] = src0.ne[0] - 1 - src0.array()[0, 0, :, ::-1].argmax(axis=-1)


def forward_argsort(params: ComputeParams, dst: Tensor) -> None:
    """`ggml_compute_forward_argsort`, ggml/src/ggml-cpu/ops.cpp. Equal elements keep their order (ggml: any order)."""
    src0, rows = _needs_f32(dst, "I32"), thread_rows(params, dst.ne)
    values = src0.array()[rows]
    keys = values if dst.op_param_i32(0) == SORT_ORDER_ASC else -values
    dst.array()[rows] = np.argsort(keys, axis=-1, kind="stable")


def forward_top_k(params: ComputeParams, dst: Tensor) -> None:
    """The k largest of each row, in no promised order. `ggml_compute_forward_top_k`, ggml/src/ggml-cpu/ops.cpp."""
    src0, rows = _needs_f32(dst, "I32"), thread_rows(params, dst.ne)
    order = np.argsort(-src0.array()[rows], axis=-1, kind="stable")
    dst.array()[rows] = order[..., : dst.ne[0]]
