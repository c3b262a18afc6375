"""Rows by index: GET_ROWS reads them as F32, SET_ROWS writes them in the type of the destination."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vizggml.errors import VizggmlError
from vizggml.ggml.kernels.floats import FLOAT_TYPES, no_kernel, source, thread_range, to_f32
from vizggml.ggml.kernels.params import ComputeParams
from vizggml.ggml.quants import DECODERS, FROM_FLOAT, decode, from_float
from vizggml.ggml.quants.floats import bf16_bits
from vizggml.ggml.tensor import Tensor


def check_indices(dst: Tensor, indices: NDArray[Any], n_rows: int) -> None:
    """VizggmlError if an index is not one of `n_rows` rows (ggml aborts)."""
    if indices.min() < 0 or indices.max() >= n_rows:
        bad = indices[(indices < 0) | (indices >= n_rows)].flat[0]
        raise VizggmlError(f"node {dst.name!r}: {dst.op} of row {bad}, the tensor has {n_rows}")


def forward_get_rows(params: ComputeParams, dst: Tensor) -> None:
    """dst[i12, i11, i10] = src0[i12, i11, src1[i12, i11, i10]]. `ggml_compute_forward_get_rows`, ggml-cpu/ops.cpp."""
    src0, src1 = source(dst, 0), source(dst, 1)
    name = src0.type.name
    ok = dst.type is src0.type if name == "I32" else dst.type.name == "F32" and name in DECODERS
    if not ok or src1.type.name != "I32":
        raise no_kernel(dst)
    share = thread_range(params, src1.ne[0])
    indices = src1.array()[0, :, :, share]
    if not indices.size:
        return
    check_indices(dst, indices, src0.ne[1])
    i12, i11 = np.ogrid[: src1.ne[2], : src1.ne[1]]
    found = src0.array()[i12[..., None], i11[..., None], indices]
    if src0.type.is_quantized:
        found = decode(src0.type, found)
    elif name in FLOAT_TYPES:
        found = to_f32(name, found)
    dst.array()[:, :, share] = found


def forward_set_rows(params: ComputeParams, dst: Tensor) -> None:
    """dst[i3, i2, src1[i3, i2, i]] = src0[i3, i2, i]. `ggml_compute_forward_set_rows`, ggml/src/ggml-cpu/ops.cpp.

    src1 (I64 or I32) is repeated over dimensions 2 and 3 of src0. Quantized destinations take whole rows, encoded.
    """
    src0, src1 = source(dst, 0), source(dst, 1)
    if src0.type.name not in ("F32", "F16") or src1.type.name not in ("I64", "I32") or dst.type.name not in FROM_FLOAT:
        raise no_kernel(dst)
    share = thread_range(params, src0.ne[1])
    indices = src1.array()[0, :, :, share]
    if not indices.size:
        return
    check_indices(dst, indices, dst.ne[1])
    values = src0.array()[:, :, share]
    i3, i2 = np.ogrid[: src0.ne[3], : src0.ne[2]]
    at = (i3[..., None], i2[..., None], indices[i3 % src1.ne[2], i2 % src1.ne[1]])
    dst.array()[at] = _encoded(src0, dst, values)


def _encoded(src0: Tensor, dst: Tensor, values: NDArray[Any]) -> NDArray[Any]:
    if src0.type is dst.type:
        return values
    floats = to_f32(src0.type.name, values)
    if dst.type.name == "F32":
        return floats
    if dst.type.name == "F16":
        with np.errstate(over="ignore"):
            return floats.astype(np.float16)
    return bf16_bits(floats) if dst.type.name == "BF16" else from_float(dst.type, floats)
