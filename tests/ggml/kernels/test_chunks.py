"""The chunks of a matrix product: by hand, and as real ggml cuts them, seen by what it asks its dot product for."""

from __future__ import annotations

import ctypes
import mmap
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from numba import njit

from tests import oracle_kernels
from tests.ggml.kernels.operands import mul_mat, run, tensor
from tests.oracle_quants import LIB
from vizggml.errors import VizggmlError
from vizggml.events import Event, bus
from vizggml.ggml.kernels import KERNELS, chunks
from vizggml.ggml.kernels.chunks import ALL_EXPERTS, Chunks, Grid, chunk_grid
from vizggml.ggml.kernels.fast import FAST
from vizggml.ggml.kernels.fast import mul_mat as fast
from vizggml.ggml.kernels.fast.atomic import fetch_add
from vizggml.ggml.kernels.params import ComputeParams
from vizggml.ggml.tensor import Tensor
from vizggml.ggml.types import TYPES

BY_HAND = [
    # nr0, nr1, nth: nchunk0, nchunk1, dr0, dr1, handed out
    ((576, 1, 2), (9, 1, 64, 1, True)),  # one column: chunks of 64, 9 >= 2 x 4
    ((192, 1, 2), (2, 1, 96, 1, False)),  # 3 chunks < 8: a share of rows for each thread
    ((49152, 1, 2), (768, 1, 64, 1, True)),
    ((1, 1000, 3), (1, 16, 1, 63, True)),  # one row: ceil(1000 / 64) = 16 chunks of ceil(1000 / 16)
    ((100, 2, 1), (7, 1, 15, 2, True)),  # ceil(100 / 16) = 7 chunks, of ceil(100 / 7) = 15
    ((40, 40, 2), (3, 3, 14, 14, True)),  # 9 >= 8
    ((40, 40, 3), (1, 3, 40, 14, False)),  # 9 < 12; as many rows as columns: columns are shared
    ((41, 40, 3), (3, 1, 14, 40, False)),
    ((5, 3, 4), (4, 1, 2, 3, False)),  # the last share is empty: 2, 2, 1, 0
]


@pytest.mark.parametrize(("product", "want"), BY_HAND)
def test_the_grid_by_hand(product: tuple[int, int, int], want: tuple[int, int, int, int, bool]) -> None:
    assert chunk_grid(*product) == Grid(*product[:2], *want)


def test_what_a_chunk_holds() -> None:
    grid = chunk_grid(100, 40, 1)
    assert (grid.nchunk0, grid.nchunk1, grid.dr0, grid.dr1) == (7, 3, 15, 14)
    assert grid.chunk(0) == ((0, 15), (0, 14))
    assert grid.chunk(6) == ((90, 100), (0, 14))
    assert grid.chunk(7) == ((0, 15), (14, 28))
    assert grid.chunk(20) == ((90, 100), (28, 40))
    assert chunk_grid(5, 3, 4).chunk(3) == ((5, 5), (0, 3))


VEC_DOT = ctypes.CFUNCTYPE(
    None,
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_int,
)
LIB.ggml_get_type_traits_cpu.restype = ctypes.c_void_p
LIB.ggml_get_type_traits_cpu.argtypes = (ctypes.c_int,)
READ, WRITE = 1, 2


@contextmanager
def listening(type: str) -> Iterator[list[tuple[int, int, int]]]:
    """(thread, weight row's address, column's address) of each call of real ggml's dot product of `type`, in order.

    The pointer lies in `struct ggml_type_traits_cpu`, whose page is made writable for the while.
    """
    calls: list[tuple[int, int, int]] = []

    def hear(n: int, s: int, bs: int, x: int, bx: int, y: int, by: int, nrc: int) -> None:
        calls.append((threading.get_ident(), x, y))

    heard = VEC_DOT(hear)
    at = LIB.ggml_get_type_traits_cpu(TYPES[type].id) + ctypes.sizeof(ctypes.c_void_p)
    page, slot = at & -mmap.PAGESIZE, ctypes.c_void_p.from_address(at)
    libc = ctypes.CDLL(None, use_errno=True)
    protect = lambda how: libc.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(2 * mmap.PAGESIZE), how)  # noqa: E731
    assert protect(READ | WRITE) == 0
    before = slot.value
    slot.value = ctypes.cast(heard, ctypes.c_void_p).value
    try:
        yield calls
    finally:
        slot.value = before
        assert protect(READ) == 0


def product(n_rows: int, n_columns: int, planes: int = 1) -> Tensor:
    rng = np.random.default_rng(1)
    w = tensor("Q4_1", rng.normal(size=(1, planes, n_rows, 32)))
    return mul_mat(w, tensor("F32", rng.normal(size=(1, planes, n_columns // planes, 32))))


def heard(dst: Tensor, nth: int) -> list[tuple[int, int, int]]:
    """(thread, row, column) of every product that real ggml computes of a Q4_1 matrix, in its order."""
    w = dst.src[0]
    assert w is not None
    assert w.data is not None
    with listening("Q4_1") as calls:
        oracle_kernels.compute(dst, nth)
    first = min(y for _, _, y in calls)
    rows = [(x - w.data.memory.ctypes.data - w.data.offset) // w.nb[1] % w.ne[1] for _, x, _ in calls]
    return [(t, row, (y - first) // 36) for (t, _, y), row in zip(calls, rows, strict=True)]


def blocks(rows: tuple[int, int], columns: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """`ggml_compute_forward_mul_mat_one_chunk`: 16 by 16 within a chunk, columns outside."""
    for c in range(*columns, 16):
        for r in range(*rows, 16):
            for column in range(c, min(c + 16, columns[1])):
                for row in range(r, min(r + 16, rows[1])):
                    yield row, column


@pytest.mark.parametrize(
    ("n_rows", "n_columns", "planes"),
    [(100, 2, 1), (300, 1, 1), (192, 1, 1), (1, 300, 1), (40, 40, 1), (17, 34, 1), (5, 3, 1), (33, 60, 6), (70, 70, 1)],
)
def test_real_ggml_goes_through_the_same_chunks(n_rows: int, n_columns: int, planes: int) -> None:
    """On one thread, in exactly this order; on three, each chunk on one thread, or each share on its own."""
    dst = product(n_rows, n_columns, planes)
    grid = chunk_grid(n_rows, n_columns, 1)
    want = [pair for i in range(grid.n_chunks) for pair in blocks(*grid.chunk(i))]
    assert [(row, column) for _, row, column in heard(dst, 1)] == want

    shared = chunk_grid(n_rows, n_columns, 3)
    by_thread: dict[int, list[tuple[int, int]]] = {}
    for thread, row, column in heard(dst, 3):
        by_thread.setdefault(thread, []).append((row, column))
    whose = {pair: thread for thread, pairs in by_thread.items() for pair in pairs}
    assert len(whose) == sum(map(len, by_thread.values())) == n_rows * n_columns
    cut = [list(blocks(*shared.chunk(i))) for i in range(shared.n_chunks)]
    threads = [{whose[pair] for pair in chunk} for chunk in cut if chunk]
    assert all(len(who) == 1 for who in threads)
    if not shared.handed_out:
        assert len(set.union(*threads)) == len(threads)
        assert sorted(by_thread.values()) == sorted(chunk for chunk in cut if chunk)


class Recorded:
    """While somebody listens, kernels say how many chunks they took."""

    def __enter__(self) -> None:
        self.unsubscribe = bus.subscribe(Event, lambda event: None)

    def __exit__(self, *error: object) -> None:
        self.unsubscribe()


def taken(kernel: object, dst: Tensor, nth: int) -> tuple[Grid, list[int]]:
    kept: list[Chunks] = []

    def keep(params: ComputeParams, node: Tensor) -> None:
        assert params.chunks is not None
        kept.append(params.chunks)
        kernel(params, node)  # type: ignore[operator]

    with Recorded():
        run(keep, dst, nth=nth)
    assert len({id(c) for c in kept}) == 1
    return kept[0].taken[ALL_EXPERTS]


@pytest.mark.parametrize("kernels", [KERNELS, FAST])
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_all_chunks_are_taken_once(kernels: dict[str, object], nth: int) -> None:
    for n_rows, n_columns in ((100, 2), (5, 3), (300, 1)):
        grid, counts = taken(kernels["MUL_MAT"], product(n_rows, n_columns), nth)
        assert grid == chunk_grid(n_rows, n_columns, nth)
        assert sum(counts) == grid.n_chunks
        assert len(counts) == nth
        if not grid.handed_out:
            assert counts == [1] * nth


def test_many_columns_are_compiled_in_larger_chunks() -> None:
    """Tiles of 32 by 128, by the same rule."""
    grid, counts = taken(FAST["MUL_MAT"], product(300, 200), 2)
    assert fast.TILE == (32, 128)
    assert grid == Grid(300, 200, 10, 2, 30, 100, True)
    assert sum(counts) == 20


@pytest.mark.parametrize(("n_rows", "n_columns"), [(300, 200), (40, 7), (64, 1), (30, 300)])
@pytest.mark.parametrize("name", ["F32", "Q8_0", "Q4_1", "Q6_K"])
def test_how_it_is_cut_changes_no_bit(name: str, n_rows: int, n_columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    w = tensor(name, rng.normal(size=(1, 1, n_rows, 256)))
    dst = mul_mat(w, tensor("F32", rng.normal(size=(1, 1, n_columns, 256))))
    whole = run(FAST["MUL_MAT"], dst)
    for nth in (1, 3):
        for size in ((7, 5), (16, 130), (1000, 1)):
            monkeypatch.setattr(fast, "TILE", size)
            np.testing.assert_array_equal(run(FAST["MUL_MAT"], dst, nth=nth), whole)


@njit(nogil=True)
def add_often(counter: int, n: int) -> int:
    last = 0
    for _ in range(n):
        last = max(last, fetch_add(counter, 1))
    return last


def test_no_two_threads_get_the_same_number() -> None:
    counter = Chunks(2)
    add_often(counter.address, 0)
    largest = [0, 0]

    def work(i: int) -> None:
        largest[i] = add_often(counter.address, 300_000)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(largest) == 600_001
    assert counter.take() == 600_002
    counter.restart(5)
    assert (counter.take(), counter.take()) == (5, 6)


@pytest.mark.parametrize("kernels", [KERNELS, FAST])
def test_threads_without_a_common_counter_are_refused(kernels: dict[str, object]) -> None:
    with pytest.raises(VizggmlError, match="2 threads need a counter that they share"):
        kernels["MUL_MAT"](ComputeParams(0, 2, np.zeros(1 << 16, np.uint8)), product(5, 3))  # type: ignore[operator]
    assert chunks.shared_chunks(None, 1).take() == 1
