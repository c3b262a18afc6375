"""MUL_MAT_ID, compiled: dot products of packed rows, of each expert's rows with the activations sent to it."""

from __future__ import annotations

import numpy as np
from numba.core import types
from numpy.typing import NDArray

from vizggml.events import bus
from vizggml.ggml.kernels import mul_mat_id as reference
from vizggml.ggml.kernels.chunks import chunk_grid, shared_chunks
from vizggml.ggml.kernels.fast.atomic import fetch_add
from vizggml.ggml.kernels.fast.lanes import INT, READ, SIX, TWO, WRITE, call_vec_dot, compiled, put_single
from vizggml.ggml.kernels.fast.mul_mat import Operand, encoded, operands
from vizggml.ggml.kernels.fast.traits import VEC_DOTS, vec_dot
from vizggml.ggml.kernels.mul_mat_id import RowGroups, encoded_size
from vizggml.ggml.kernels.params import ComputeParams
from vizggml.ggml.tensor import Memory, Tensor

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
    for expert in np.flatnonzero(groups.counts).tolist():
        grid = chunk_grid(src0.ne[1], int(groups.counts[expert]), nth)
        n_taken = multiply_expert(
            w.memory, w.offset + expert * w.nb[2], w.nb[1], x.memory, x.offset, x.nb[1:3], src1.ne[1],
            y.memory, y.offset, y.nb[1:3], src0.ne[0], groups.rows[expert],
            grid[:6], (ith, nth), groups.counters[expert].ctypes.data, dot,
        )  # fmt: skip
        if bus.on:
            chunks.note(expert, grid, nth, ith, n_taken)


@compiled(INT(READ, INT, INT, READ, INT, TWO, INT, WRITE, INT, TWO, INT, MAPPING, SIX, TWO, INT, INT))
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
) -> int:
    """The chunks of one thread in the product of one expert, whose columns `mapping` names; how many they were.

    `nb1` and `nb` are the strides of choices and tokens in the activations and in the result.
    """
    weights, given, out = w.ctypes.data + w_offset, x.ctypes.data + x_offset, y.ctypes.data + y_offset
    nr0, nr1, nchunk0, nchunk1, dr0, dr1 = grid
    n_taken, chunk = 0, threads[0]
    while chunk < nchunk0 * nchunk1:
        r, c = chunk % nchunk0, chunk // nchunk0
        for row in range(dr0 * r, min(nr0, dr0 * (r + 1))):
            for column in range(dr1 * c, min(nr1, dr1 * (c + 1))):
                choice, token = int(mapping[column, 0]), int(mapping[column, 1])
                at = given + choice % ne11 * nb1[0] + token * nb1[1]
                to = out + choice * nb[0] + token * nb[1] + 4 * row
                put_single(to, call_vec_dot(dot, weights + row * nb01, at, n))
        n_taken += 1
        if threads[1] >= nchunk0 * nchunk1:
            break
        chunk = fetch_add(counter, 1)
    return n_taken
