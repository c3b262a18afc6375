"""MUL_MAT: every row of the weights times every row of the activations.

ggml does not multiply weights by floats. It first encodes the activations in the type that the weights' dot product
takes (`vec_dot_type`: Q8_1 for Q4_1, F16 for F16, ...), into the scratch of the plan, and multiplies blocks by blocks.
Sums of products of small integers are exact in F32, so decoding both sides and multiplying in F32 gives the same
numbers, but for the order of additions.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from vizggml.errors import VizggmlError
from vizggml.events import bus
from vizggml.ggml import quants
from vizggml.ggml.kernels.chunks import ALL_EXPERTS, chunk_grid, chunks_of, shared_chunks
from vizggml.ggml.kernels.hadamard import forward_fwht, is_hadamard
from vizggml.ggml.kernels.params import ComputeParams
from vizggml.ggml.quants.floats import bf16_values
from vizggml.ggml.quants.legacy import sums_q8_1
from vizggml.ggml.quants.rounding import Floats
from vizggml.ggml.tensor import Tensor
from vizggml.ggml.types import TYPES, Type

MAX_DECODED = 1 << 18
"""Weights kept decoded: their floats take 1 MiB, however large the matrix."""

Range = tuple[int, int]
Plane = tuple[int, int, int, int]
"""Of the activations: (i13, i12), and the first and last row in it."""
Rows = tuple[int, int, slice] | tuple[int, NDArray[np.int32], NDArray[np.int32]]
"""Which rows, as an index of NumPy's first three axes."""
Decoded = tuple[Floats, Floats | None]
"""Rows as floats; and where ggml multiplies them apart, their blocks' minimums or sums."""


def forward_mul_mat(params: ComputeParams, dst: Tensor) -> None:
    """`ggml_compute_forward_mul_mat`, ggml/src/ggml-cpu/ggml-cpu.c.

    `src[0]` (weights) has rows of ne00 elements, `src[1]` (activations) too, and `dst` holds at (i0, i1) the product of
    weight row i0 and activation row i1. Weights are repeated over dimensions 2 and 3. VizggmlError if a type has no dot
    product, rows are not contiguous, or the scratch is too small.
    """
    src0, src1 = operands(dst)
    if is_hadamard(params, dst):
        forward_fwht(params, dst)
        return
    chunks = shared_chunks(params.chunks, params.nth)
    encode_activations(params, dst, src0, src1)
    grid = chunk_grid(dst.ne[0], dst.nrows, params.nth)
    product = _Product(params, dst, src0, src1)
    n_taken = 0
    for rows, columns in chunks_of(grid, chunks, params.ith, params.nth):
        product.compute(rows, columns)
        n_taken += 1
    if bus.on:
        chunks.note(ALL_EXPERTS, grid, params.nth, params.ith, n_taken)


class _Product:
    """What one thread computes of a product, and what it has decoded on the way.

    Chunks come column by column, so the activations of the last one are likely to be needed again, and so are the
    weights if there are few of them.
    """

    def __init__(self, params: ComputeParams, dst: Tensor, src0: Tensor, src1: Tensor) -> None:
        self.params = params
        self.dst, self.src0, self.src1 = dst, src0, src1
        self._weights: dict[tuple[int, int, Range], Decoded] = {}
        self._n_kept = 0
        self._columns = (0, 0)
        self._planes: list[tuple[Plane, Decoded]] = []

    def compute(self, rows: Range, columns: Range) -> None:
        """One chunk. `ggml_compute_forward_mul_mat_one_chunk`, ggml/src/ggml-cpu/ggml-cpu.c."""
        if columns != self._columns:
            self._columns = columns
            self._planes = [
                (plane, activations(self.params, self.src0, self.src1, (*plane[:2], slice(*plane[2:]))))
                for plane in _planes(self.src1, columns)
            ]
        r2, r3 = self.src1.ne[2] // self.src0.ne[2], self.src1.ne[3] // self.src0.ne[3]
        out = self.dst.array()
        for (i13, i12, c0, c1), (x, sums) in self._planes:
            for first, last in row_blocks(self.src0, rows):
                weights, mins = self.weights(i13 // r3, i12 // r2, (first, last))
                y = x @ weights.T
                if mins is not None and sums is not None:
                    y += sums @ mins.T
                out[i13, i12, c0:c1, first:last] = y

    def weights(self, i03: int, i02: int, rows: Range) -> Decoded:
        found = self._weights.get((i03, i02, rows))
        if found is None:
            found = weights(self.params, self.src0, i03, i02, *rows)
            if self._n_kept + found[0].size > MAX_DECODED:
                self._weights.clear()
                self._n_kept = 0
            self._weights[i03, i02, rows] = found
            self._n_kept += found[0].size
        return found


def operands(dst: Tensor) -> tuple[Tensor, Tensor]:
    src0, src1 = dst.src[0], dst.src[1]
    if src0 is None or src1 is None:
        raise VizggmlError(f"mul_mat {dst.name!r}: needs two sources")
    if not src0.type.vec_dot_type:
        raise VizggmlError(f"mul_mat {dst.name!r}: type {src0.type} of {src0.name!r} has no dot product")
    for t in (src0, src1):
        if t.nb[0] != t.type.type_size:
            raise VizggmlError(
                f"mul_mat {dst.name!r}: rows of {t.name!r} are not contiguous "
                f"(nb[0] is {t.nb[0]}, must be {t.type.type_size})"
            )
    return src0, src1


def activation_type(src0: Tensor, src1: Tensor) -> Type | None:
    """The type in which activations go into the scratch; None if they are taken where they lie."""
    vec_dot_type = TYPES[src0.type.vec_dot_type]
    if src1.type is vec_dot_type:
        return None
    if src1.type.name == "F32" or (vec_dot_type.name == "F32" and src1.type.name in ("F16", "BF16")):
        return vec_dot_type
    raise VizggmlError(f"mul_mat: {src0.type} weights take F32 or {vec_dot_type} activations, not {src1.type}")


def encode_activations(params: ComputeParams, dst: Tensor, src0: Tensor, src1: Tensor) -> None:
    """Encode every row of `src1` into the scratch: thread `ith` its share of the blocks of each. Then all wait."""
    type = None if params.textbook else activation_type(src0, src1)
    if type is not None:
        scratch = _scratch(params, dst, src1, type)
        n_blocks = src1.ne[0] // type.blck_size
        first, last = n_blocks * params.ith // params.nth, n_blocks * (params.ith + 1) // params.nth
        elements = slice(first * type.blck_size, last * type.blck_size)
        for i13, i12 in np.ndindex(src1.ne[3], src1.ne[2]):
            x = _floats(src1, (i13, i12, slice(None)))[:, elements]
            scratch[i13, i12, :, first:last] = quants.from_float(type, np.ascontiguousarray(x))
    params.barrier()


def _scratch(params: ComputeParams, dst: Tensor, src1: Tensor, type: Type) -> NDArray[np.uint8]:
    """The encoded rows in `wdata`, packed: shape (ne13, ne12, ne11, blocks, type_size)."""
    shape = (src1.ne[3], src1.ne[2], src1.ne[1], src1.ne[0] // type.blck_size, type.type_size)
    needed = type.row_size(src1.ne[0]) * src1.nrows
    available = 0 if params.wdata is None else params.wdata.nbytes
    if params.wdata is None or available < needed:
        raise VizggmlError(f"mul_mat {dst.name!r}: needs {needed} bytes of scratch, the plan has {available}")
    return params.wdata[:needed].reshape(shape)


def _floats(t: Tensor, rows: Rows) -> Floats:
    """Rows of a tensor as float32 (rows, ne0)."""
    a = t.array()[rows]
    if t.type.name == "BF16":
        return bf16_values(a)
    return quants.decode(t.type, a) if t.type.is_quantized else a.astype(np.float32, copy=False)


def _planes(src1: Tensor, columns: Range) -> Iterator[Plane]:
    """The planes of activations in which `columns`, counted through all planes, lie, and the rows in each of them."""
    ne1 = src1.ne[1]
    for plane in range(columns[0] // ne1, -(-columns[1] // ne1)):
        c0, c1 = max(columns[0] - plane * ne1, 0), min(columns[1] - plane * ne1, ne1)
        yield plane // src1.ne[2], plane % src1.ne[2], c0, c1


def row_blocks(src0: Tensor, rows: Range) -> Iterator[Range]:
    step = max(1, MAX_DECODED // max(1, src0.ne[0]))
    for first in range(rows[0], rows[1], step):
        yield first, min(first + step, rows[1])


def activations(params: ComputeParams, src0: Tensor, src1: Tensor, rows: Rows) -> Decoded:
    """Rows of activations as their encoded bytes say, and for Q8_1 the sums that meet the weights' minimums."""
    type = None if params.textbook else activation_type(src0, src1)
    if type is None or params.wdata is None:
        x = _floats(src1, rows)
        return x, sums_q8_1(src1.array()[rows]) if src1.type.name == "Q8_1" and not params.textbook else None
    n_bytes = type.row_size(src1.ne[0]) * src1.nrows
    shape = (src1.ne[3], src1.ne[2], src1.ne[1], src1.ne[0] // type.blck_size, type.type_size)
    blocks = params.wdata[:n_bytes].reshape(shape)[rows]
    return quants.decode(type, blocks), sums_q8_1(blocks) if type.name == "Q8_1" else None


def weights(params: ComputeParams, src0: Tensor, i03: int, i02: int, first: int, last: int) -> Decoded:
    """Rows of weights decoded. Minimums come apart where ggml multiplies them by the activations' sums."""
    if src0.type.name in ("Q4_1", "Q5_1") and not params.textbook:
        return quants.scaled_and_mins(src0.type, src0.array()[i03, i02, first:last])
    return _floats(src0, (i03, i02, slice(first, last))), None
