"""Rows that go where numbers say: SET writes one tensor into another, ADD_ID adds the rows that ids name."""

from __future__ import annotations

import numpy as np

from vizggml.errors import VizggmlError
from vizggml.ggml.kernels.floats import no_kernel, source, thread_rows
from vizggml.ggml.kernels.params import ComputeParams
from vizggml.ggml.tensor import Address, Tensor


def forward_set(params: ComputeParams, dst: Tensor) -> None:
    """`src[0]` with `src[1]` written into it, at the strides and the offset of the parameters.

    `ggml_compute_forward_set`, ggml/src/ggml-cpu/ops.cpp. VizggmlError for what would be written past the end.
    """
    src0, src1 = source(dst, 0), source(dst, 1)
    if src0.type is not dst.type or src1.type is not dst.type or dst.type.name not in ("F32", "I32"):
        raise no_kernel(dst)
    nb1, nb2, nb3, offset = (dst.op_param_i32(i) for i in range(4))
    nb = (dst.type.type_size, nb1, nb2, nb3)
    end = offset + sum((n - 1) * b for n, b in zip(src1.ne, nb, strict=True)) + nb[0]
    if end > dst.nbytes:
        raise VizggmlError(f"set {dst.name!r}: {src1.name!r} would end at byte {end} of {dst.nbytes}")
    if dst.op_param_i32(4) == 0 and params.ith == 0:
        dst.array()[...] = src0.array()
    params.barrier()
    if dst.data is None:
        raise VizggmlError(f"tensor {dst.name!r} has no memory yet: allocate its graph or its context first")
    target = Tensor(dst.type, src1.ne, nb, data=Address(dst.data.memory, dst.data.offset + offset))
    rows = thread_rows(params, src1.ne)
    target.array()[rows] = src1.array()[rows]


def forward_add_id(params: ComputeParams, dst: Tensor) -> None:
    """To each row of `src[0]` the row of `src[1]` that `src[2]` names. `ggml_compute_forward_add_id`, ops.cpp there."""
    src0, src1, ids = source(dst, 0), source(dst, 1), source(dst, 2)
    if {src0.type.name, src1.type.name, dst.type.name} != {"F32"} or ids.type.name != "I32":
        raise no_kernel(dst)
    chosen = ids.array()[0, 0]
    if chosen.size and not 0 <= chosen.min() <= chosen.max() < src1.ne[1]:
        wrong = chosen[(chosen < 0) | (chosen >= src1.ne[1])][0]
        raise VizggmlError(f"add_id {dst.name!r}: there is no row {wrong}, they are 0 to {src1.ne[1] - 1}")
    rows = thread_rows(params, dst.ne)
    added = src1.array()[0, 0][chosen]
    np.add(src0.array()[rows], added[rows[1:]], out=dst.array()[rows])
