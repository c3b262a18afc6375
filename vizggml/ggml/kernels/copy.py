"""Copies: DUP, CPY and CONT with conversion between types, CONCAT, REPEAT."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vizggml.ggml.kernels.floats import FLOAT_TYPES, from_f32, no_kernel, source, thread_rows, to_f32
from vizggml.ggml.kernels.params import ComputeParams
from vizggml.ggml.quants import DECODERS, FROM_FLOAT, decode, from_float
from vizggml.ggml.tensor import Tensor


def converted(dst: Tensor, values: NDArray[Any]) -> NDArray[Any]:
    """`values`, elements or blocks of src0's type, in the type of `dst`."""
    src, to = source(dst, 0).type, dst.type
    if src is to:
        return values
    if (src.name, to.name) == ("I32", "F32"):
        return values.astype(np.float32)
    if (src.name, to.name) == ("F32", "I32"):
        with np.errstate(invalid="ignore"):
            return values.astype(np.int32)
    if src.name in FLOAT_TYPES:
        floats = to_f32(src.name, values)
        if to.name in FLOAT_TYPES:
            return from_f32(to.name, floats)
        if to.is_quantized and to.name in FROM_FLOAT:
            return from_float(to, floats)
    elif src.is_quantized and src.name in DECODERS and to.name == "F32":
        return decode(src, values)
    raise no_kernel(dst)


def forward_dup(params: ComputeParams, dst: Tensor) -> None:
    """Copy element by element, in order, into the shape and type of `dst`: DUP, CPY and CONT.

    `ggml_compute_forward_dup`, ggml/src/ggml-cpu/ops.cpp. Equal types are copied as they are, blocks whole; other
    pairs go through F32.
    """
    src0 = source(dst, 0)
    rows = thread_rows(params, dst.ne)
    out = dst.array()
    values = src0.array()
    if not out[rows].size:
        return
    if src0.ne == dst.ne:
        out[rows] = converted(dst, values[rows])
        return
    if src0.type.is_quantized == dst.type.is_quantized:
        out[rows] = converted(dst, values.reshape(out.shape)[rows])
    elif dst.type.is_quantized:
        out[rows] = converted(dst, values.reshape(dst.ne[::-1])[rows])
    else:
        out[rows] = converted(dst, values).reshape(out.shape)[rows]


def forward_concat(params: ComputeParams, dst: Tensor) -> None:
    """src0, then src1, along dimension `op_params[0]`. `ggml_compute_forward_concat`, ggml/src/ggml-cpu/ops.cpp."""
    src0, src1 = source(dst, 0), source(dst, 1)
    if src0.type is not dst.type or src1.type is not dst.type:
        raise no_kernel(dst)
    dim = dst.op_param_i32(0)
    out, a, b = dst.array(), src0.array(), src1.array()
    axis = 3 - dim
    begin, end = [slice(None)] * out.ndim, [slice(None)] * out.ndim
    begin[axis], end[axis] = slice(0, a.shape[axis]), slice(a.shape[axis], None)
    for part, values, src in ((out[tuple(begin)], a, src0), (out[tuple(end)], b, src1)):
        rows = thread_rows(params, src.ne)
        part[rows] = values[rows]


def forward_repeat(params: ComputeParams, dst: Tensor) -> None:
    """src0 again and again until `dst` is full. `ggml_compute_forward_repeat`, ggml/src/ggml-cpu/ops.cpp."""
    src0 = source(dst, 0)
    if src0.type is not dst.type or dst.type.name not in ("F32", "F16", "BF16", "I32", "I16"):
        raise no_kernel(dst)
    rows = thread_rows(params, dst.ne)
    out, values = dst.array(), src0.array()
    out[rows] = np.tile(values, [n // have for n, have in zip(out.shape, values.shape, strict=True)])[rows]
