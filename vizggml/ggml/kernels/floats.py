"""What the small kernels share: elements as F32, a thread's share of the rows, the error for a type with no kernel."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from vizggml.errors import VizggmlError
from vizggml.events import Dims
from vizggml.ggml.kernels.params import ComputeParams
from vizggml.ggml.quants.floats import bf16_bits, bf16_values
from vizggml.ggml.tensor import Tensor

Floats = NDArray[np.float32]
Rows = tuple[slice, slice, slice]

WHOLE = slice(None)
ALL_ROWS: Rows = (WHOLE, WHOLE, WHOLE)
FLOAT_TYPES = ("F32", "F16", "BF16")


def source(dst: Tensor, i: int) -> Tensor:
    """`dst.src[i]`, which the op must have."""
    src = dst.src[i] if i < len(dst.src) else None
    if src is None:
        raise VizggmlError(f"node {dst.name!r}: op {dst.op_desc} needs a source {i}, it has none")
    return src


def optional_source(dst: Tensor, i: int) -> Tensor | None:
    """`dst.src[i]`, None where the op has none."""
    return dst.src[i] if i < len(dst.src) else None


def no_kernel(dst: Tensor) -> VizggmlError:
    """The error for a combination of types that the op has no kernel for."""
    types = ", ".join("none" if src is None else src.type.name for src in dst.src)
    return VizggmlError(f"node {dst.name!r}: op {dst.op_desc} has no kernel for {types} to {dst.type}")


def thread_range(params: ComputeParams, n: int) -> slice:
    """The share of thread `ith` in `n` rows. `get_thread_range`, ggml/src/ggml-cpu/common.h."""
    per_thread = (n + params.nth - 1) // params.nth
    first = min(per_thread * params.ith, n)
    return slice(first, min(first + per_thread, n))


def thread_rows(params: ComputeParams, ne: Dims) -> Rows:
    """The share of thread `ith` in the rows of a tensor, as an index of NumPy's first three axes.

    ggml numbers the rows of all dimensions through and cuts that list; here the dimension with the most rows is cut, so
    that a share is a rectangle. Rows do not depend on each other, so the results are the same.
    """
    if params.nth == 1:
        return ALL_ROWS
    if ne[1] >= ne[2] and ne[1] >= ne[3]:
        return (WHOLE, WHOLE, thread_range(params, ne[1]))
    if ne[2] >= ne[3]:
        return (WHOLE, thread_range(params, ne[2]), WHOLE)
    return (thread_range(params, ne[3]), WHOLE, WHOLE)


def to_f32(type_name: str, values: NDArray[Any]) -> Floats:
    """Elements of F32 (as they are), F16 or BF16 (widened) as F32."""
    if type_name == "F32":
        return cast(Floats, values)
    return bf16_values(values) if type_name == "BF16" else values.astype(np.float32)


def from_f32(type_name: str, values: Floats) -> NDArray[Any]:
    """F32 as elements of F32, F16 or BF16, rounded to the nearest, ties to even."""
    if type_name == "F32":
        return values
    with np.errstate(over="ignore"):
        return bf16_bits(values) if type_name == "BF16" else values.astype(np.float16)
