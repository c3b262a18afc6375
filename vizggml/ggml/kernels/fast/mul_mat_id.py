"""MUL_MAT_ID, compiled: each expert's rows with the activations sent to it.

A few of these: dot products of packed rows. Many: they are gathered, and multiplied in tiles, see `tiles`.
"""

from __future__ import annotations

import numpy as np
from numba.core import types
from numpy.typing import NDArray

from vizggml.events import bus
from vizggml.ggml.kernels import mul_mat_id as reference
from vizggml.ggml.kernels.chunks import chunk_grid, shared_chunks
from vizggml.ggml.kernels.fast import tiles
from vizggml.ggml.kernels.fast.atomic import fetch_add
from vizggml.ggml.kernels.fast.lanes import (
    FIVE,
    FLOATS,
    INT,
    READ,
    SIX,
    TWO,
    WRITE,
    call_vec_dot,
    compiled,
    put_single,
    single,
)
from vizggml.ggml.kernels.fast.mul_mat import TILE, TILES_FROM, Operand, encoded, operands
from vizggml.ggml.kernels.fast.traits import VEC_DOTS, to_float, vec_dot
from vizggml.ggml.kernels.mul_mat_id import RowGroups, encoded_size
from vizggml.ggml.kernels.params import ComputeParams
from vizggml.ggml.tensor import Memory, Tensor

SUMMED_OTHERWISE = ("F32", "F16", "BF16", "IQ4_NL")
"""ggml takes dot products here, never `tinyBLAS`; of these types they add up in another order than tiles do."""

MAPPING = types.Array(types.int32, 2, "C")


def forward_mul_mat_id(params: ComputeParams, dst: Tensor) -> None:
    """The twin of `kernels.mul_mat_id.forward_mul_mat_id`.

    The textbook's way, and what there is no compiled dot product for, is left to that.
    """
    src0, src1 = operands(dst)
    if params.textbook or src0.type.name not in VEC_DOTS:
        reference.forward_mul_mat_id(params, dst)
        return
    ith, nth = params.ith, params.nth
    chunks = shared_chunks(params.chunks, nth)
    groups = RowGroups.in_scratch(params, dst, encoded_size(params, src0, src1))
    groups.fill(params, dst)
    x = encoded(params, dst, src0, src1)
    params.barrier()
    w, y, dot = Operand.of(src0), Operand.of(dst), vec_dot(src0.type.name)
    decoders = to_float(w.type.name), to_float(x.type.name)
    block = tiles.CODE_BLOCKS.get(w.type.name, (0, 0, 0, 0, 0))
    row_size = x.type.row_size(src0.ne[0])
    for expert in np.flatnonzero(groups.counts).tolist():
        count = int(groups.counts[expert])
        way = _way(w.type.name, count)
        grid = chunk_grid(src0.ne[1], count, nth, None if way == tiles.DOTS else TILE)
        room = 0 if way == tiles.DOTS else tiles.tile_width(count)
        scratch = np.empty(tiles.room_for(way, src0.ne[0], count) + room * tiles.TILE_ROWS, np.float32)
        n_taken = multiply_expert(
            w.memory, w.offset + expert * w.nb[2], w.nb[1], x.memory, x.offset, x.nb[1:3], src1.ne[1],
            y.memory, y.offset, y.nb[1:3], src0.ne[0], groups.rows[expert],
            grid[:6], (ith, nth), groups.counters[expert].ctypes.data, dot,
            (way, room), decoders, block, scratch, np.empty(room * row_size, np.uint8), row_size,
        )  # fmt: skip
        if bus.on:
            chunks.note(expert, grid, nth, ith, n_taken)


def _way(type: str, columns: int) -> int:
    """How the products are summed, of the ways in `tiles`."""
    if columns < TILES_FROM or type in SUMMED_OTHERWISE:
        return tiles.DOTS
    return tiles.CODES if type in tiles.CODE_BLOCKS else tiles.DECODED


@compiled()
def gather(
    x: Memory,
    x_offset: int,
    nb1: tuple[int, int],
    ne11: int,
    mapping: NDArray[np.int32],
    columns: tuple[int, int],
    rows: Memory,
    size: int,
) -> None:
    """The activations of an expert's columns, one behind the other."""
    for column in range(columns[0], columns[1]):
        at = x_offset + mapping[column, 0] % ne11 * nb1[0] + mapping[column, 1] * nb1[1]
        to = (column - columns[0]) * size
        for i in range(size):
            rows[to + i] = x[at + i]


@compiled()
def scatter(
    products: int,
    out: int,
    nb: tuple[int, int],
    mapping: NDArray[np.int32],
    columns: tuple[int, int],
    rows: int,
    n: int,
) -> None:
    """The products (columns, TILE_ROWS) of `n` rows from `rows` on, to where each column belongs."""
    for column in range(columns[0], columns[1]):
        to = out + int(mapping[column, 0]) * nb[0] + int(mapping[column, 1]) * nb[1] + 4 * rows
        at = products + 4 * tiles.TILE_ROWS * (column - columns[0])
        for i in range(n):
            put_single(to + 4 * i, single(at + 4 * i))


@compiled()
def prepare(
    how: tuple[int, int], decoder: int, block: tiles.Block, x: tiles.Rows, n: int, count: int, scratch: int
) -> None:
    if how[0] == tiles.CODES:
        tiles.prepare_codes(block, x, n, count, how[1], scratch)
    else:
        tiles.prepare_decoded(decoder, x, n, count, how[1], scratch)


@compiled()
def multiply_tile(
    how: tuple[int, int],
    decoder: int,
    block: tiles.Block,
    w: tiles.Rows,
    x: tiles.Rows,
    products: int,
    n: int,
    height: int,
    count: int,
    scratch: int,
) -> None:
    """`height` rows of weights by what has been prepared: products (count, TILE_ROWS)."""
    out, rows = (products, 4 * tiles.TILE_ROWS), (0, height)
    if how[0] == tiles.CODES:
        tiles.multiply_codes(block, w, x, out, n, rows, count, how[1], scratch)
    else:
        tiles.multiply_decoded(decoder, w, out, n, rows, count, how[1], scratch)


@compiled(
    INT(
        *(READ, INT, INT, READ, INT, TWO, INT, WRITE, INT, TWO, INT, MAPPING, SIX, TWO, INT, INT),
        *(TWO, TWO, FIVE, FLOATS, WRITE, INT),
    )
)
def multiply_expert(
    w: Memory,
    w_offset: int,
    nb01: int,
    x: Memory,
    x_offset: int,
    nb1: tuple[int, int],
    ne11: int,
    y: Memory,
    y_offset: int,
    nb: tuple[int, int],
    n: int,
    mapping: NDArray[np.int32],
    grid: tuple[int, int, int, int, int, int],
    threads: tuple[int, int],
    counter: int,
    dot: int,
    how: tuple[int, int],
    decoders: tuple[int, int],
    block: tiles.Block,
    scratch: NDArray[np.float32],
    gathered: Memory,
    size: int,
) -> int:
    """The chunks of one thread in the product of one expert, whose columns `mapping` names; how many they were.

    `nb1` and `nb` are the strides of choices and tokens in the activations and in the result. `how` is the way to
    multiply and the columns of a tile, `gathered` has room for so many rows of `size` bytes.
    """
    weights, given, out = w.ctypes.data + w_offset, x.ctypes.data + x_offset, y.ctypes.data + y_offset
    nr0, nr1, nchunk0, nchunk1, dr0, dr1 = grid
    way, room = how
    packed, spare = (gathered.ctypes.data, size), scratch.ctypes.data
    products = spare + 4 * (len(scratch) - room * tiles.TILE_ROWS)
    prepared, n_prepared = -1, 0
    n_taken, chunk = 0, threads[0]
    while chunk < nchunk0 * nchunk1:
        r, c = chunk % nchunk0, chunk // nchunk0
        first, last = dr0 * r, min(nr0, dr0 * (r + 1))
        column, end = dr1 * c, min(nr1, dr1 * (c + 1))
        while way != tiles.DOTS and column < end:
            count = min(end - column, room)
            columns = (column, column + count)
            if prepared != column or n_prepared != count:
                gather(x, x_offset, nb1, ne11, mapping, columns, gathered, size)
                prepare(how, decoders[1], block, packed, n, count, spare)
                prepared, n_prepared = column, count
            for row in range(first, last, tiles.TILE_ROWS):
                height = min(last - row, tiles.TILE_ROWS)
                tile = (weights + row * nb01, nb01)
                multiply_tile(how, decoders[0], block, tile, packed, products, n, height, count, spare)
                scatter(products, out, nb, mapping, columns, row, height)
            column += count
        for row in range(first, last if way == tiles.DOTS else first):
            for column in range(dr1 * c, end):
                choice, token = int(mapping[column, 0]), int(mapping[column, 1])
                at = given + choice % ne11 * nb1[0] + token * nb1[1]
                to = out + choice * nb[0] + token * nb[1] + 4 * row
                put_single(to, call_vec_dot(dot, weights + row * nb01, at, n))
        n_taken += 1
        if threads[1] >= nchunk0 * nchunk1:
            break
        chunk = fetch_add(counter, 1)
    return n_taken
