"""A pool of threads that persist between graphs and meet at a barrier after each node.

The caller is thread 0. The others wait for a node that is wide enough for them: first they poll, looking again and
again whether there is work, then they sleep on a lock of their own and have to be woken. They report back by another
lock; so a node on one thread costs no synchronization. Kernels release Python's lock in NumPy and Numba, which is where
threads run side by side.
"""

from __future__ import annotations

import _thread
import os
import threading
import time
import weakref
from collections.abc import Callable
from types import TracebackType

import numpy as np

from vizggml.errors import VizggmlError
from vizggml.ggml.kernels.chunks import Chunks

Job = Callable[[int], None]
GGML_MAX_N_THREADS = 512
GGML_DEFAULT_POLL = 50
MAX_POLL = 100

POLL_ROUNDS = 1024
"""Looks for each step of `poll` in compiled code; in ggml they are 128 times as many."""

WaitFor = Callable[[int, int, int], int]
"""`wait_for(address, seen, n_rounds)`: look up to `n_rounds` times whether the int64 there is no longer `seen`."""


def _wake(lock: _thread.LockType) -> None:
    """Let whoever sleeps on `lock` go on, now or when it comes. Only ever one thread wakes by a lock."""
    if lock.locked():
        lock.release()


class _Worker:
    """What one sleeping thread shares with its pool. The thread holds only this, so that a pool can be collected.

    The locks only wake: what is to be done, and what is done, the numbers `wanted` and `completed` say. So a wake-up
    too many does no harm, and one that an interrupt swallowed is not waited for. `signal` is `wanted` again, for who
    polls without holding Python's lock.
    """

    __slots__ = (
        "address", "asleep", "barrier", "completed", "done", "error", "finished", "go", "ith", "job", "poll",
        "signal", "wait_for", "wanted", "was_polling",
    )  # fmt: skip

    def __init__(self, ith: int, poll: int) -> None:
        self.ith = ith
        self.poll = poll
        self.wait_for: WaitFor | None = None
        self.signal = np.zeros(1, np.int64)
        self.address = self.signal.ctypes.data
        self.asleep = False
        self.was_polling = False
        self.go = _thread.allocate_lock()
        self.done = _thread.allocate_lock()
        self.go.acquire()
        self.done.acquire()
        self.job: Job | None = None
        self.barrier: threading.Barrier | None = None
        self.error: BaseException | None = None
        self.wanted = 0
        self.completed = 0
        self.finished = 0

    def start(self, job: Job | None, barrier: threading.Barrier | None, number: int) -> None:
        self.job, self.barrier, self.error = job, barrier, None
        self.was_polling = self.poll > 0 and not self.asleep
        self.wanted = self.signal[0] = number
        if self.asleep:
            _wake(self.go)

    def await_work(self) -> int:
        """Poll, then sleep; the number of what is wanted. `ggml_graph_compute_check_for_work`, ggml-cpu.c."""
        if self.poll and self.wait_for is not None:
            self.wait_for(self.address, self.completed, POLL_ROUNDS * self.poll)
        else:
            for _ in range(self.poll):
                if self.wanted != self.completed:
                    break
                time.sleep(0)
        while self.wanted == self.completed:
            self.asleep = True
            if self.wanted == self.completed:
                self.go.acquire()
            self.asleep = False
        return self.wanted

    def run(self) -> None:
        while True:
            number = self.await_work()
            job = self.job
            if job is None:
                return
            try:
                job(self.ith)
            except BaseException as error:
                self.error = error
                if self.barrier is not None:
                    self.barrier.abort()
            self.job = job = None
            self.finished = time.perf_counter_ns()
            self.completed = number
            _wake(self.done)

    def wait(self) -> BaseException | None:
        """Return when the job is done; an interrupt that came meanwhile is handed back, to be raised afterwards."""
        interrupt: BaseException | None = None
        while self.completed != self.wanted:
            try:
                self.done.acquire()
            except BaseException as raised:
                interrupt = raised
        return interrupt


def _stop(workers: list[_Worker]) -> None:
    for worker in workers:
        worker.start(None, None, -1)
    workers.clear()


class ThreadPool:
    """`n_threads` - 1 threads, and the caller. `struct ggml_threadpool`, ggml/src/ggml-cpu/ggml-cpu.c.

    `poll` is that of `struct ggml_threadpool_params`: 0 to 100, how long a thread that is done looks for work before it
    sleeps; with 0 it sleeps at once. None takes ggml's 50 where processors are left over, else 0: two threads that poll
    on two processors decode more slowly as soon as anybody else works there. It differs from ggml's in three ways.
    It is shorter: 50 is a third of a second in ggml, here 3 ms, as the next node comes sooner or not soon. Without
    compiled kernels it is `poll` short looks, as each of them takes Python's lock from who computes. And it comes
    before each node that is shared: ggml's threads wait so for a graph only, and between nodes never sleep.

    `close()` (or the `with` statement, or collecting the pool) ends the threads. One caller at a time.
    """

    def __init__(self, n_threads: int, poll: int | None = None) -> None:
        if poll is None:
            poll = GGML_DEFAULT_POLL if n_threads < (os.cpu_count() or 1) else 0
        if not 0 <= poll <= MAX_POLL:
            raise VizggmlError(f"thread pool: poll {poll} is not between 0 and {MAX_POLL}")
        if not 1 <= n_threads <= GGML_MAX_N_THREADS:
            raise VizggmlError(f"thread pool: n_threads {n_threads} is not between 1 and {GGML_MAX_N_THREADS}")
        self.n_threads = n_threads
        self.poll = poll
        self.waits: list[int] = []
        """After `run`: the nanoseconds that each thread waited at the barrier for the last one."""
        self.ends: list[int] = []
        """After `run`: when each thread was done, by `time.perf_counter_ns`."""
        self.chunks = Chunks(n_threads)
        """From which the threads of a matrix product take their chunks; it starts anew with each node."""
        self._workers = [_Worker(ith, poll) for ith in range(1, n_threads)]
        self._barriers: dict[int, threading.Barrier] = {}
        self._number = 0
        self._running = False
        for worker in self._workers:
            threading.Thread(target=worker.run, name=f"vizggml-{worker.ith}", daemon=True).start()
        self._finalizer = weakref.finalize(self, _stop, self._workers)

    def poll_compiled(self, wait_for: WaitFor) -> None:
        """Let the threads poll by a compiled function, which does not hold Python's lock."""
        for worker in self._workers:
            worker.wait_for = wait_for

    @property
    def polling(self) -> list[bool]:
        """After `run`: whether each thread but the caller was still polling when the node came; others were asleep."""
        return [worker.was_polling for worker in self._workers]

    def barrier(self, n: int) -> Callable[[], None]:
        """A function that returns when `n` threads have called it: `ggml_barrier`, inside a node."""
        found = self._barriers.get(n)
        if found is None:
            found = self._barriers[n] = threading.Barrier(n)
        meet = found.wait

        def wait() -> None:
            meet()

        return wait

    def run(self, job: Job, n: int) -> None:
        """`job(ith)` on threads 0 to `n` - 1; returns when all are done.

        What a thread raises is raised here, the lowest thread's first; the others, should they wait at an inner
        barrier, are let go.
        """
        if n > self.n_threads:
            raise VizggmlError(f"thread pool: a node wants {n} threads, the pool has {self.n_threads}")
        workers = self._workers[: n - 1]
        if len(workers) < n - 1:
            raise VizggmlError("thread pool: it is closed")
        if self._running:
            self._settle()
        self._running = True
        self._number += 1
        self.chunks.restart(n)
        barrier = self._barriers.get(n)
        error: BaseException | None = None
        try:
            for worker in workers:
                worker.start(job, barrier, self._number)
            job(0)
        except BaseException as raised:
            error = raised
            self._settle()
        ends = [time.perf_counter_ns()]
        for worker in workers:
            error = worker.wait() or error
            ends.append(worker.finished)
        self.ends = ends
        last = max(ends)
        self.waits = [last - end for end in ends]
        errors = [e for e in (error, *(worker.error for worker in workers)) if e is not None]
        if errors and barrier is not None:
            barrier.reset()
        self._running = False
        if errors:
            # a thread that was let go at a broken barrier only says that another one failed
            raise next((e for e in errors if not isinstance(e, threading.BrokenBarrierError)), errors[0])

    def _settle(self) -> None:
        """After a failure or an interrupt, wherever it struck: no thread works any more, every barrier is whole."""
        for barrier in self._barriers.values():
            barrier.abort()
        for worker in self._workers:
            _wake(worker.go)
            interrupt = worker.wait()
            if interrupt is not None:
                raise interrupt
        for barrier in self._barriers.values():
            barrier.reset()

    def close(self) -> None:
        """End the threads. `ggml_threadpool_free`, ggml/src/ggml-cpu/ggml-cpu.c."""
        self._finalizer()

    def __enter__(self) -> ThreadPool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
