"""MUL_MAT_ID: a matrix product for each expert, with the rows of activations that were sent to it.

Which expert a row goes to, the ids say. They are first sorted by expert, into the scratch, so that each expert's rows
are one product, cut into chunks like any other; each expert has a counter of its own to take them from.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vizggml.errors import VizggmlError
from vizggml.events import bus
from vizggml.ggml.kernels.chunks import chunk_grid, chunks_of, shared_chunks
from vizggml.ggml.kernels.floats import source
from vizggml.ggml.kernels.mul_mat import (
    Range,
    activation_type,
    activations,
    encode_activations,
    operands,
    row_blocks,
    weights,
)
from vizggml.ggml.kernels.params import ComputeParams
from vizggml.ggml.tensor import Tensor
from vizggml.ggml.types import CACHE_LINE_SIZE, pad


@dataclass(slots=True)
class RowGroups:
    """What the scratch holds behind the encoded activations: rows by expert.

    `counts` (experts,) is how many rows each has, `rows` (experts, used x tokens, 2) which they are, each as (number of
    the choice, token), and `counters` (experts, 8) holds in each first number the next chunk of that expert.
    """

    counts: NDArray[np.int64]
    rows: NDArray[np.int32]
    counters: NDArray[np.int64]

    @staticmethod
    def in_scratch(params: ComputeParams, dst: Tensor, encoded: int) -> RowGroups:
        """Where ggml puts them, `encoded` bytes being taken. VizggmlError if the scratch is too small."""
        wdata, n_as, ids = params.wdata, source(dst, 0).ne[2], source(dst, 2)
        base = 0 if wdata is None else wdata.ctypes.data
        counts = pad(base + encoded, 8) - base
        rows = counts + 8 * n_as
        n_rows = n_as * ids.ne[0] * ids.ne[1]
        counters = pad(base + rows + 8 * n_rows, CACHE_LINE_SIZE) - base
        end = counters + CACHE_LINE_SIZE * n_as
        if wdata is None or wdata.nbytes < end:
            available = 0 if wdata is None else wdata.nbytes
            raise VizggmlError(f"mul_mat_id {dst.name!r}: needs {end} bytes of scratch, the plan has {available}")
        return RowGroups(
            wdata[counts : counts + 8 * n_as].view(np.int64),
            wdata[rows : rows + 8 * n_rows].view(np.int32).reshape(n_as, -1, 2),
            wdata[counters:end].view(np.int64).reshape(n_as, -1),
        )

    def fill(self, params: ComputeParams, dst: Tensor) -> None:
        """Thread 0 sorts the rows, each thread sets its share of the counters."""
        self.counters[params.ith :: params.nth, 0] = params.nth
        if params.ith > 0:
            return
        ids, n_as = source(dst, 2).array()[0, 0], len(self.counts)
        if ids.size and not 0 <= ids.min() <= ids.max() < n_as:
            wrong = ids[(ids < 0) | (ids >= n_as)][0]
            raise VizggmlError(f"mul_mat_id {dst.name!r}: there is no expert {wrong}, they are 0 to {n_as - 1}")
        self.counts[:] = np.bincount(ids.ravel(), minlength=n_as)
        # by expert, for each of them in the order of tokens
        order = np.argsort(ids, axis=None, kind="stable")
        experts = ids.ravel()[order]
        place = np.arange(len(order)) - (np.cumsum(self.counts) - self.counts)[experts]
        self.rows[experts, place, 0] = order % ids.shape[1]
        self.rows[experts, place, 1] = order // ids.shape[1]


def encoded_size(params: ComputeParams, src0: Tensor, src1: Tensor) -> int:
    """Bytes that the encoded activations take in the scratch."""
    type = None if params.textbook else activation_type(src0, src1)
    return 0 if type is None else type.row_size(src1.nelements)


def forward_mul_mat_id(params: ComputeParams, dst: Tensor) -> None:
    """`ggml_compute_forward_mul_mat_id`, ggml/src/ggml-cpu/ggml-cpu.c.

    `src[0]` holds a matrix of ne01 rows for each expert, `src[1]` the activations (ne10, 1 or as many as are chosen,
    tokens), `src[2]` the chosen experts (chosen, tokens), and `dst` (ne01, chosen, tokens) gets the products.
    """
    src0, src1 = operands(dst)
    chunks = shared_chunks(params.chunks, params.nth)
    groups = RowGroups.in_scratch(params, dst, encoded_size(params, src0, src1))
    groups.fill(params, dst)
    encode_activations(params, dst, src0, src1)
    for expert in np.flatnonzero(groups.counts).tolist():
        grid = chunk_grid(src0.ne[1], int(groups.counts[expert]), params.nth)
        counter = groups.counters[expert]
        n_taken = 0
        for rows, columns in chunks_of(grid, chunks, params.ith, params.nth, counter):
            _one_chunk(params, dst, expert, groups.rows[expert], rows, columns)
            n_taken += 1
        if bus.on:
            chunks.note(expert, grid, params.nth, params.ith, n_taken)


def _one_chunk(
    params: ComputeParams, dst: Tensor, expert: int, mapping: NDArray[np.int32], rows: Range, columns: Range
) -> None:
    """`ggml_compute_forward_mul_mat_id_one_chunk`, ggml/src/ggml-cpu/ggml-cpu.c."""
    src0, src1 = source(dst, 0), source(dst, 1)
    choices, tokens = mapping[columns[0] : columns[1]].T
    if not len(choices):
        return
    x, sums = activations(params, src0, src1, (0, tokens, choices % src1.ne[1]))
    out = dst.array()[0]
    for first, last in row_blocks(src0, rows):
        w, mins = weights(params, src0, 0, expert, first, last)
        y = x @ w.T
        if mins is not None and sums is not None:
            y += sums @ mins.T
        out[tokens, choices, first:last] = y


__all__ = ["RowGroups", "encoded_size", "forward_mul_mat_id"]
