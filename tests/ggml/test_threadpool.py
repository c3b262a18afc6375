"""The pool: who runs what, the barrier, and what happens when a thread fails."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from vizggml.errors import VizggmlError
from vizggml.ggml.kernels.fast.waiting import wait_for
from vizggml.ggml.threadpool import ThreadPool


def pool_threads() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name.startswith("vizggml-")]


@pytest.mark.parametrize("n_threads", [1, 2, 4])
def test_each_thread_does_its_share_once(n_threads: int) -> None:
    with ThreadPool(n_threads) as pool:
        for n in range(1, n_threads + 1):
            seen: list[int] = []
            pool.run(seen.append, n)
            assert sorted(seen) == list(range(n))


def test_the_caller_is_thread_0_and_the_others_persist() -> None:
    with ThreadPool(3) as pool:
        ran: dict[int, set[int]] = {0: set(), 1: set(), 2: set()}
        for _ in range(20):
            pool.run(lambda ith: ran[ith].add(threading.get_ident()), 3)
        assert ran[0] == {threading.get_ident()}
        assert len(ran[1]) == len(ran[2]) == 1
        assert len(ran[0] | ran[1] | ran[2]) == 3


def test_run_returns_when_all_are_done() -> None:
    with ThreadPool(4) as pool:
        done = [0] * 4

        def count(ith: int) -> None:
            for _ in range(1000):
                done[ith] += 1

        for i in range(1, 20):
            pool.run(count, 4)
            assert done == [1000 * i] * 4


def test_waits_are_measured_to_the_last_thread() -> None:
    with ThreadPool(2) as pool:
        gate = threading.Event()

        def work(ith: int) -> None:
            if ith == 1:
                gate.wait()
            else:
                gate.set()

        pool.run(work, 2)
        assert len(pool.ends) == len(pool.waits) == 2
        assert pool.waits == [max(pool.ends) - end for end in pool.ends]
        assert 0 in pool.waits


def test_a_barrier_inside_a_node() -> None:
    with ThreadPool(3) as pool:
        barrier = pool.barrier(3)
        first: list[int] = []
        late: list[int] = []

        def work(ith: int) -> None:
            first.append(ith)
            barrier()
            late.append(len(first))

        for _ in range(10):
            pool.run(work, 3)
        assert late == [n for n in range(3, 33, 3) for _ in range(3)]
        assert pool.barrier(3) is not None


def failing(where: set[int], barrier: Callable[[], None]) -> Callable[[int], None]:
    def work(ith: int) -> None:
        if ith in where:
            raise VizggmlError(f"thread {ith} failed")
        barrier()

    return work


@pytest.mark.parametrize("where", [{0}, {1}, {2}, {0, 2}, {1, 2}])
def test_what_a_thread_raises_reaches_the_caller_and_nobody_hangs(where: set[int]) -> None:
    with ThreadPool(3) as pool:
        barrier = pool.barrier(3)
        for _ in range(3):
            with pytest.raises(VizggmlError, match=f"thread {min(where)} failed"):
                pool.run(failing(where, barrier), 3)
            seen: list[int] = []

            def meet(ith: int, seen: list[int] = seen) -> None:
                barrier()
                seen.append(ith)

            pool.run(meet, 3)
            assert sorted(seen) == [0, 1, 2]


def test_an_interrupt_of_the_caller_waits_for_the_others() -> None:
    with ThreadPool(2) as pool:
        finished: list[int] = []

        def work(ith: int) -> None:
            if ith == 0:
                raise KeyboardInterrupt
            finished.append(ith)

        with pytest.raises(KeyboardInterrupt):
            pool.run(work, 2)
        assert finished == [1]
        pool.run(finished.append, 2)
        assert sorted(finished) == [0, 1, 1]


class Swallowing:
    """A lock whose next waiter is interrupted when it has it already."""

    def __init__(self, lock: Any) -> None:
        self.lock = lock
        self.left = 1

    def acquire(self) -> None:
        self.lock.acquire()
        if self.left:
            self.left -= 1
            raise KeyboardInterrupt

    def release(self) -> None:
        self.lock.release()

    def locked(self) -> bool:
        return bool(self.lock.locked())


def test_a_wake_up_that_an_interrupt_swallowed_is_not_waited_for() -> None:
    gate = threading.Event()

    def work(ith: int) -> None:
        if ith:
            gate.wait(10)
        else:
            gate.set()

    with ThreadPool(2) as pool:
        worker = pool._workers[0]
        worker.done = Swallowing(worker.done)  # type: ignore[assignment]
        for _ in range(20):
            gate.clear()
            with suppress(KeyboardInterrupt):
                pool.run(work, 2)
        finished: list[int] = []
        pool.run(finished.append, 2)
        assert sorted(finished) == [0, 1]


def test_a_run_that_was_cut_off_is_over_before_the_next() -> None:
    order: list[str] = []
    gate = threading.Event()

    def late(ith: int) -> None:
        gate.wait(10)
        order.append("late")

    with ThreadPool(2) as pool:
        pool._running = True
        pool._workers[0].start(late, None, 7)
        threading.Timer(0.01, gate.set).start()
        pool.run(lambda ith: order.append("next"), 2)
    assert order == ["late", "next", "next"]


@pytest.mark.parametrize("poll", [0, 1, 100])
def test_with_any_poll_each_thread_does_its_share_once(poll: int) -> None:
    with ThreadPool(3, poll) as pool:
        for way in (None, wait_for):
            if way is not None:
                pool.poll_compiled(way)
            done: list[int] = []
            for _ in range(200):
                pool.run(done.append, 3)
            assert sorted(done) == [0] * 200 + [1] * 200 + [2] * 200
            assert len(pool.polling) == 2
            assert poll or pool.polling == [False, False]


@pytest.mark.parametrize(("n_processors", "want"), [(2, 0), (3, 0), (4, 50), (None, 0)])
def test_by_default_it_polls_as_ggml_where_processors_are_left_over(
    n_processors: int | None, want: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: n_processors)
    asked: list[int] = []
    with ThreadPool(3) as pool:
        assert pool.poll == want
        pool.poll_compiled(lambda address, seen, n_rounds: asked.append(n_rounds) or 0)
        for _ in range(3):
            pool.run(lambda ith: None, 3)
    assert set(asked) == ({want * 1024} if want else set())


def test_compiled_polling_ends_when_the_number_changes_or_the_looks_are_over() -> None:
    number = np.array([7], np.int64)
    at = number.ctypes.data
    assert wait_for(at, 6, 1000) == 0
    assert wait_for(at, 7, 1000) == 1000
    assert wait_for(at, 7, 0) == 0
    looks: list[int] = []
    waiting = threading.Thread(target=lambda: looks.append(wait_for(at, 7, 1 << 40)))
    waiting.start()
    number[0] = 8
    waiting.join(10)
    assert looks
    assert looks[0] < 1 << 40


def test_limits() -> None:
    for poll in (-1, 101):
        with pytest.raises(VizggmlError, match=f"poll {poll} is not between 0 and 100"):
            ThreadPool(2, poll)
    for n in (0, 513):
        with pytest.raises(VizggmlError, match=f"n_threads {n} is not between 1 and 512"):
            ThreadPool(n)
    with ThreadPool(2) as pool, pytest.raises(VizggmlError, match="wants 3 threads, the pool has 2"):
        pool.run(lambda ith: None, 3)
    with pytest.raises(VizggmlError, match="it is closed"):
        pool.run(lambda ith: None, 2)


def test_a_forgotten_pool_ends_its_threads() -> None:
    gc.collect()
    before = set(pool_threads())
    pool = ThreadPool(4)
    mine = [t for t in pool_threads() if t not in before]
    assert len(mine) == 3
    del pool
    gc.collect()
    for t in mine:
        t.join(10)
    assert not any(t.is_alive() for t in mine)


def test_closing_twice() -> None:
    pool = ThreadPool(2)
    mine = pool_threads()[-1]
    pool.close()
    pool.close()
    mine.join(10)
    assert not mine.is_alive()
