"""MUL_MAT, compiled. A few columns: dot products of packed rows. Many: tiles of rows, see `tiles`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vizggml.errors import VizggmlError
from vizggml.events import bus
from vizggml.ggml import types
from vizggml.ggml.kernels import mul_mat as reference
from vizggml.ggml.kernels.chunks import ALL_EXPERTS, chunk_grid, shared_chunks
from vizggml.ggml.kernels.fast import tiles
from vizggml.ggml.kernels.fast.atomic import fetch_add
from vizggml.ggml.kernels.fast.lanes import (
    DIMS,
    FIVE,
    FLOATS,
    INT,
    NONE,
    READ,
    SIX,
    TWO,
    WRITE,
    call_from_float,
    call_to_float,
    call_vec_dot,
    compiled,
    put_single,
)
from vizggml.ggml.kernels.fast.traits import VEC_DOTS, from_float, to_float, vec_dot
from vizggml.ggml.kernels.hadamard import forward_fwht, is_hadamard
from vizggml.ggml.kernels.params import ComputeParams
from vizggml.ggml.tensor import Memory, Tensor
from vizggml.ggml.types import Type

TILES_FROM = 6
"""Columns of a plane from which on unpacking the weights is faster than a dot product for each."""

TILE = (tiles.TILE_ROWS, tiles.TILE_COLUMNS)
"""The chunks of what is multiplied in tiles: ggml's, of 16 rows and columns, would be unpacked for too few products."""

ENCODED_BY_EACH = 1 << 16
"""Activations up to which every thread encodes them all: the same bytes, and nobody waits for anybody."""

Dims = tuple[int, int, int, int]


def forward_mul_mat(params: ComputeParams, dst: Tensor) -> None:
    """The twin of `kernels.mul_mat.forward_mul_mat`, which computes what there is no compiled dot product for."""
    src0, src1 = operands(dst)
    if is_hadamard(params, dst):
        forward_fwht(params, dst)
        return
    if src0.type.name not in VEC_DOTS:
        reference.forward_mul_mat(params, dst)
        return
    if params.textbook:
        _multiply(params, dst, src0, src1, Operand.of(src1), 0)
    else:
        given = encoded(params, dst, src0, src1)
        _multiply(params, dst, src0, src1, given, vec_dot(src0.type.name))


def operands(dst: Tensor) -> tuple[Tensor, Tensor]:
    """Weights and activations. VizggmlError where their rows have gaps."""
    src0, src1 = dst.src[0], dst.src[1]
    if src0 is None or src1 is None:
        raise VizggmlError(f"mul_mat {dst.name!r}: needs two sources")
    for t in (src0, src1):
        if t.nb[0] != t.type.type_size:
            raise VizggmlError(
                f"mul_mat {dst.name!r}: rows of {t.name!r} are not contiguous "
                f"(nb[0] is {t.nb[0]}, must be {t.type.type_size})"
            )
    return src0, src1


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


def encoded(params: ComputeParams, dst: Tensor, src0: Tensor, src1: Tensor) -> Operand:
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
            call_to_float(decoder, at, ne[0], target)


def _way(params: ComputeParams, src0: Tensor, src1: Tensor) -> int:
    """How the products are summed, of the ways in `tiles`: as ggml's kernel for so many columns does."""
    if params.textbook:
        return tiles.DECODED
    columns, type = src1.ne[1], src0.type
    if type.name in ("F32", "F16"):
        by_sgemm = src1.type.name != type.vec_dot_type or src1.is_contiguous()
        return tiles.FLOATS if by_sgemm and columns > 1 and src0.ne[0] % 16 == src0.ne[1] % 4 == 0 else tiles.DOTS
    if columns < TILES_FROM:
        return tiles.DOTS
    return tiles.CODES if type.name in tiles.CODE_BLOCKS else tiles.DECODED


def _multiply(params: ComputeParams, dst: Tensor, src0: Tensor, src1: Tensor, x: Operand, dot: int) -> None:
    w, y = Operand.of(src0), Operand.of(dst)
    way = _way(params, src0, src1)
    decoders = (to_float(w.type.name), to_float(x.type.name))
    block = tiles.CODE_BLOCKS[w.type.name] if way == tiles.CODES else (0, 0, 0, 0, 0)
    scratch = np.empty(tiles.room_for(way, src0.ne[0], src1.ne[1]), np.float32)
    ith, nth = params.ith, params.nth
    chunks = shared_chunks(params.chunks, nth)
    grid = chunk_grid(dst.ne[0], dst.nrows, nth, None if way == tiles.DOTS else TILE)
    n_taken = multiply(
        w.memory, w.offset, w.nb, src0.ne, x.memory, x.offset, x.nb, src1.ne, y.memory, y.offset, y.nb,
        grid[:6], (ith, nth), chunks.address, way, dot, decoders, block, scratch,
    )  # fmt: skip
    if bus.on:
        chunks.note(ALL_EXPERTS, grid, nth, ith, n_taken)


@compiled()
def dot_rows(
    dot: int, w: int, w_nb1: int, x: int, x_nb1: int, y: int, y_nb1: int, n: int, rows: tuple[int, int], columns: int
) -> None:
    """A weight row meets its columns one after the other, while it is at hand."""
    for row in range(rows[0], rows[1]):
        for i in range(columns):
            put_single(y + 4 * row + i * y_nb1, call_vec_dot(dot, w + row * w_nb1, x + i * x_nb1, n))


@compiled(
    INT(READ, INT, DIMS, DIMS, READ, INT, DIMS, DIMS, WRITE, INT, DIMS, SIX, TWO, INT, INT, INT, TWO, FIVE, FLOATS)
)
def multiply(
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
    grid: tuple[int, int, int, int, int, int],
    threads: tuple[int, int],
    counter: int,
    way: int,
    dot: int,
    decoders: tuple[int, int],
    block: tiles.Block,
    scratch: NDArray[np.float32],
) -> int:
    """The chunks of one thread, columns counted through all planes; how many they were.

    `grid` is that of `chunks.Grid`, `threads` are ith and nth, and `counter` is the address of the next chunk's number.
    """
    r2, r3 = ne1[2] // ne0[2], ne1[3] // ne0[3]
    n, spare = ne0[0], scratch.ctypes.data
    nr0, nr1, nchunk0, nchunk1, dr0, dr1 = grid
    room = tiles.tile_width(ne1[1])
    prepared, n_prepared = -1, 0
    n_taken, chunk = 0, threads[0]
    while chunk < nchunk0 * nchunk1:
        rows = (min(nr0, dr0 * (chunk % nchunk0)), min(nr0, dr0 * (chunk % nchunk0 + 1)))
        column, end = dr1 * (chunk // nchunk0), min(nr1, dr1 * (chunk // nchunk0 + 1))
        while column < end:
            plane = column // ne1[1]
            i3, i2 = plane // ne1[2], plane % ne1[2]
            i1 = column - plane * ne1[1]
            count = min(end, (plane + 1) * ne1[1]) - column
            weights = (w.ctypes.data + w_offset + i2 // r2 * nb0[2] + i3 // r3 * nb0[3], nb0[1])
            given = (x.ctypes.data + x_offset + i2 * nb1[2] + i3 * nb1[3] + i1 * nb1[1], nb1[1])
            out = (y.ctypes.data + y_offset + i2 * nb[2] + i3 * nb[3] + i1 * nb[1], nb[1])
            if way == tiles.DOTS:
                dot_rows(dot, *weights, *given, *out, n, rows, count)
            else:
                count = min(count, room)
                ready = prepared == column and n_prepared == count
                prepared, n_prepared = column, count
                if way == tiles.CODES:
                    if not ready:
                        tiles.prepare_codes(block, given, n, count, room, spare)
                    tiles.multiply_codes(block, weights, given, out, n, rows, count, room, spare)
                elif way == tiles.FLOATS:
                    if not ready:
                        tiles.prepare_floats(decoders[1], given, n, count, spare)
                    tiles.multiply_floats(decoders[0], weights, out, n, rows, count, spare)
                else:
                    if not ready:
                        tiles.prepare_decoded(decoders[1], given, n, count, room, spare)
                    tiles.multiply_decoded(decoders[0], weights, out, n, rows, count, room, spare)
            column += count
        n_taken += 1
        if threads[1] >= nchunk0 * nchunk1:
            break
        chunk = fetch_add(counter, 1)
    return n_taken
