"""MUL_MAT, compiled. A few columns: dot products of packed rows. Many: rows decoded and given to BLAS."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vizggml.errors import VizggmlError
from vizggml.ggml import types
from vizggml.ggml.kernels.fast.lanes import (
    DIMS,
    INT,
    MATRIX,
    NONE,
    READ,
    WRITE,
    call_from_float,
    call_to_float,
    call_vec_dot,
    compiled,
    put_single,
)
from vizggml.ggml.kernels.fast.traits import VEC_DOTS, from_float, to_float, vec_dot
from vizggml.ggml.kernels.params import ComputeParams
from vizggml.ggml.tensor import Memory, Tensor
from vizggml.ggml.types import Type

GEMM_FROM = 8
"""Columns of a plane from which on decoding the weights for BLAS is faster."""

DECODED_AT_A_TIME = 1 << 18
"""Weights decoded for BLAS at a time: 1 MiB of floats."""

ENCODED_BY_EACH = 1 << 16
"""Activations up to which every thread encodes them all: the same bytes, and nobody waits for anybody."""

Dims = tuple[int, int, int, int]


def forward_mul_mat(params: ComputeParams, dst: Tensor) -> None:
    """The twin of `kernels.mul_mat.forward_mul_mat`."""
    src0, src1 = dst.src[0], dst.src[1]
    if src0 is None or src1 is None or src0.type.name not in VEC_DOTS:
        raise VizggmlError(f"mul_mat {dst.name!r}: no compiled kernel for {src0 and src0.type} weights")
    if src0.nb[0] != src0.type.type_size or src1.nb[0] != src1.type.type_size:
        raise VizggmlError(f"mul_mat {dst.name!r}: rows are not contiguous (nb[0] {src0.nb[0]}, {src1.nb[0]})")
    if params.textbook:
        _by_gemm(params, dst, src0, src1, Operand.of(src1), split=False)
        return
    given = _encoded(params, dst, src0, src1)
    if src1.ne[1] >= GEMM_FROM:
        _by_gemm(params, dst, src0, src1, given, split=given.type.name == "Q8_1")
    else:
        _by_dots(params, dst, src0, src1, given)


class Operand:
    """Where rows lie: as a tensor, or encoded in the scratch."""

    __slots__ = ("memory", "nb", "offset", "type")

    def __init__(self, type: Type, memory: Memory, offset: int, nb: Dims) -> None:
        self.type = type
        self.memory = memory
        self.offset = offset
        self.nb = nb

    @staticmethod
    def of(t: Tensor) -> Operand:
        if t.data is None:
            raise VizggmlError(f"tensor {t.name!r} has no memory yet: allocate its graph or its context first")
        return Operand(t.type, t.data.memory, t.data.offset, t.nb)


def _encoded(params: ComputeParams, dst: Tensor, src0: Tensor, src1: Tensor) -> Operand:
    """Activations in the weights' dot-product type: where they lie, or encoded into the scratch by all threads."""
    type = types.TYPES[src0.type.vec_dot_type]
    x = Operand.of(src1)
    if src1.type is type:
        return x
    widen = type.name == "F32" and src1.type.name in ("F16", "BF16")
    if src1.type.name != "F32" and not widen:
        raise VizggmlError(f"mul_mat: {src0.type} weights take F32 or {type} activations, not {src1.type}")
    ne = src1.ne
    row = type.row_size(ne[0])
    needed = row * ne[1] * ne[2] * ne[3]
    wdata = params.wdata
    if wdata is None or wdata.nbytes < needed:
        available = 0 if wdata is None else wdata.nbytes
        raise VizggmlError(f"mul_mat {dst.name!r}: needs {needed} bytes of scratch, the plan has {available}")
    n_rows = ne[1] * ne[2] * ne[3]
    shared = params.nth > 1 and n_rows * ne[0] > ENCODED_BY_EACH
    first, last = (
        (n_rows * params.ith // params.nth, n_rows * (params.ith + 1) // params.nth) if shared else (0, n_rows)
    )
    encoder, decoder = (0, to_float(src1.type.name)) if widen else (from_float(type.name), 0)
    encode_rows(encoder, decoder, x.memory, x.offset, x.nb, ne, first, last, wdata, row)
    if shared:
        params.barrier()
    return Operand(type, wdata, 0, (type.type_size, row, row * ne[1], row * ne[1] * ne[2]))


@compiled(NONE(INT, INT, READ, INT, DIMS, DIMS, INT, INT, WRITE, INT))
def encode_rows(
    encoder: int,
    decoder: int,
    x: Memory,
    offset: int,
    nb: Dims,
    ne: Dims,
    first: int,
    last: int,
    out: Memory,
    row_size: int,
) -> None:
    """Rows first..last of activations at `offset` of x, encoded (or decoded, without an encoder) into `out`, packed."""
    for row in range(first, last):
        i3, i2, i1 = row // (ne[1] * ne[2]), row // ne[1] % ne[2], row % ne[1]
        at = x.ctypes.data + offset + i1 * nb[1] + i2 * nb[2] + i3 * nb[3]
        target = out.ctypes.data + row * row_size
        if encoder:
            call_from_float(encoder, at, ne[0], target)
        else:
            call_to_float(decoder, at, ne[0], target, 0)


def _share(params: ComputeParams, dst: Tensor) -> tuple[int, int, int, int]:
    """First and last weight row, first and last column of this thread: the longer dimension is split."""
    n_rows, n_columns = dst.ne[0], dst.ne[1] * dst.ne[2] * dst.ne[3]
    each = -(-max(n_rows, n_columns) // params.nth)
    first = each * params.ith
    if n_rows > n_columns:
        return min(n_rows, first), min(n_rows, first + each), 0, n_columns
    return 0, n_rows, min(n_columns, first), min(n_columns, first + each)


def _by_dots(params: ComputeParams, dst: Tensor, src0: Tensor, src1: Tensor, x: Operand) -> None:
    w, y = Operand.of(src0), Operand.of(dst)
    r0, r1, c0, c1 = _share(params, dst)
    dot_rows(
        vec_dot(w.type.name), w.memory, w.offset, w.nb, src0.ne, x.memory, x.offset, x.nb, src1.ne,
        y.memory, y.offset, y.nb, r0, r1, c0, c1,
    )  # fmt: skip


@compiled(NONE(INT, READ, INT, DIMS, DIMS, READ, INT, DIMS, DIMS, WRITE, INT, DIMS, INT, INT, INT, INT))
def dot_rows(
    dot: int,
    w: Memory,
    w_offset: int,
    nb0: Dims,
    ne0: Dims,
    x: Memory,
    x_offset: int,
    nb1: Dims,
    ne1: Dims,
    y: Memory,
    y_offset: int,
    nb: Dims,
    r0: int,
    r1: int,
    c0: int,
    c1: int,
) -> None:
    """Weight rows r0..r1 by columns c0..c1, columns counted through all planes. A weight row meets its plane's columns
    one after the other, while it is at hand."""
    r2, r3 = ne1[2] // ne0[2], ne1[3] // ne0[3]
    column = c0
    while column < c1:
        plane = column // ne1[1]
        i3, i2 = plane // ne1[2], plane % ne1[2]
        last = min(c1, (plane + 1) * ne1[1])
        weights = w.ctypes.data + w_offset + i2 // r2 * nb0[2] + i3 // r3 * nb0[3]
        given = x.ctypes.data + x_offset + i2 * nb1[2] + i3 * nb1[3]
        out = y.ctypes.data + y_offset + i2 * nb[2] + i3 * nb[3]
        for row in range(r0, r1):
            for i in range(column - plane * ne1[1], last - plane * ne1[1]):
                value = call_vec_dot(dot, weights + row * nb0[1], given + i * nb1[1], ne0[0])
                put_single(out + 4 * row + i * nb[1], value)
        column = last


def _by_gemm(params: ComputeParams, dst: Tensor, src0: Tensor, src1: Tensor, x: Operand, *, split: bool) -> None:
    """Rows of weights decoded a block at a time. With `split`, minimums and sums are further elements of each row."""
    w = Operand.of(src0)
    r0, r1, c0, c1 = _share(params, dst)
    n = src0.ne[0]
    width = n + n // 32 if split else n
    step = max(1, DECODED_AT_A_TIME // max(1, width))
    r2, r3 = src1.ne[2] // src0.ne[2], src1.ne[3] // src0.ne[3]
    n1 = src1.ne[1]
    for i03, i02 in np.ndindex(src0.ne[3], src0.ne[2]):
        planes = []
        for i13 in range(i03 * r3, (i03 + 1) * r3):
            for i12 in range(i02 * r2, (i02 + 1) * r2):
                before = (i13 * src1.ne[2] + i12) * n1
                first, last = max(c0 - before, 0), min(c1 - before, n1)
                if first < last:
                    at = x.offset + i12 * x.nb[2] + i13 * x.nb[3]
                    planes.append((i13, i12, first, last, _decoded(x, at, first, last, n, width)))
        if not planes:
            continue
        for row in range(r0, r1, step):
            end = min(row + step, r1)
            weights = _decoded(w, w.offset + i02 * w.nb[2] + i03 * w.nb[3], row, end, n, width).T
            for i13, i12, first, last, given in planes:
                np.matmul(given, weights, out=dst.array()[i13, i12, first:last, row:end])


def _decoded(x: Operand, offset: int, first: int, last: int, n: int, width: int) -> NDArray[np.float32]:
    out = np.empty((last - first, width), np.float32)
    decode_rows(to_float(x.type.name), x.memory, offset, x.nb[1], first, n, out)
    return out


@compiled(NONE(INT, READ, INT, INT, INT, INT, MATRIX))
def decode_rows(decoder: int, x: Memory, offset: int, nb1: int, first: int, n: int, out: NDArray[np.float32]) -> None:
    """Rows of n elements from row `first` on, as many as `out` has; beyond n its rows hold minimums or sums."""
    width = out.shape[1]
    for i in range(out.shape[0]):
        target = out.ctypes.data + 4 * width * i
        minimums = target + 4 * n if width > n else 0
        call_to_float(decoder, x.ctypes.data + offset + (first + i) * nb1, n, target, minimums)
