"""How the threads share a matrix product: it is cut into chunks, and who is done takes the next one.

A thread that the machine slows down takes fewer chunks, so that the others do not wait for it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vizggml.errors import VizggmlError

CHUNK_SIZE = 16
"""Rows of the weights, and of the activations, in a chunk."""

CHUNK_SIZE_OF_ONE = 64
"""The same where either has only one row."""

CHUNKS_PER_THREAD = 4
"""With fewer chunks than this for each thread it is not worth the while: every thread gets one share."""

ALL_EXPERTS = -1

Size = tuple[int, int]
Range = tuple[int, int]


class Grid(NamedTuple):
    """`nchunk0` by `nchunk1` chunks, each of `dr0` rows of the weights by `dr1` columns of the result.

    `handed_out`: whoever is done takes the next chunk. Otherwise there is one share for each thread.
    """

    nr0: int
    nr1: int
    nchunk0: int
    nchunk1: int
    dr0: int
    dr1: int
    handed_out: bool

    @property
    def n_chunks(self) -> int:
        return self.nchunk0 * self.nchunk1

    def chunk(self, i: int) -> tuple[Range, Range]:
        """Rows and columns of chunk `i`; one at the end may be empty."""
        first0, first1 = self.dr0 * (i % self.nchunk0), self.dr1 * (i // self.nchunk0)
        return (
            (min(first0, self.nr0), min(first0 + self.dr0, self.nr0)),
            (min(first1, self.nr1), min(first1 + self.dr1, self.nr1)),
        )


@lru_cache(4096)
def chunk_grid(nr0: int, nr1: int, nth: int, size: Size | None = None) -> Grid:
    """The chunks of a product of `nr0` weight rows and `nr1` columns on `nth` threads.

    `ggml_compute_forward_mul_mat`, ggml/src/ggml-cpu/ggml-cpu.c, on a machine that is not NUMA. `size` (rows, columns)
    is for a kernel that works in larger tiles; None takes ggml's 16, or 64 where there is only one row or column.
    """
    if size is None:
        chunk_size = CHUNK_SIZE_OF_ONE if nr0 == 1 or nr1 == 1 else CHUNK_SIZE
        size = chunk_size, chunk_size
    nchunk0, nchunk1 = -(-nr0 // size[0]), -(-nr1 // size[1])
    handed_out = nchunk0 * nchunk1 >= nth * CHUNKS_PER_THREAD
    if not handed_out:
        nchunk0, nchunk1 = (nth, 1) if nr0 > nr1 else (1, nth)
    return Grid(nr0, nr1, nchunk0, nchunk1, -(-nr0 // nchunk0), -(-nr1 // nchunk1), handed_out)


class Chunks:
    """The counter from which threads take chunks: `current_chunk` of `struct ggml_threadpool`.

    Each thread begins with the chunk of its own number, so the first to be taken is `nth`. ggml's thread 0 sets the
    counter before the barrier of the kernel; here whoever hands out the node does it by `restart`, as not every kernel
    needs a barrier. Compiled kernels add to the number at `address` by an atomic instruction.
    """

    def __init__(self, nth: int = 1) -> None:
        self._next = np.array([nth], np.int64)
        self._lock = threading.Lock()
        self.address = self._next.ctypes.data
        self.taken: dict[int, tuple[Grid, list[int]]] = {}
        """By expert (or ALL_EXPERTS): how the product was cut, and how many chunks each thread took. For events."""

    def restart(self, nth: int) -> None:
        self._next[0] = nth

    def take(self, counter: NDArray[np.int64] | None = None) -> int:
        """The number of the next chunk, which is nobody else's; from another `counter` where there are several."""
        counter = self._next if counter is None else counter
        with self._lock:
            chunk = int(counter[0])
            counter[0] = chunk + 1
        return chunk

    def note(self, expert: int, grid: Grid, nth: int, ith: int, n_taken: int) -> None:
        self.taken.setdefault(expert, (grid, [0] * nth))[1][ith] = n_taken


def shared_chunks(chunks: Chunks | None, nth: int) -> Chunks:
    """The counter of a node, or a new one for a thread that is alone. VizggmlError if several threads have none."""
    if nth == 1:
        chunks = chunks or Chunks()
        chunks.restart(1)
    elif chunks is None:
        raise VizggmlError(f"matrix product: {nth} threads need a counter that they share, to take chunks from")
    return chunks


def chunks_of(
    grid: Grid, chunks: Chunks, ith: int, nth: int, counter: NDArray[np.int64] | None = None
) -> Iterator[tuple[Range, Range]]:
    """The chunks that thread `ith` gets: its own, then the next ones that nobody has taken."""
    i = ith
    while i < grid.n_chunks:
        yield grid.chunk(i)
        if nth >= grid.n_chunks:
            return
        i = chunks.take(counter)


__all__ = ["ALL_EXPERTS", "Chunks", "Grid", "chunk_grid", "chunks_of", "shared_chunks"]
