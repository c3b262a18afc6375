"""A pool of threads that persist between graphs and meet at a barrier after each node.

The caller is thread 0. The others sleep on a lock of their own, are woken for a node that is wide enough for them, and
report back by another lock; so a node on one thread costs no synchronization. Kernels release Python's lock in NumPy
and Numba, which is where threads run side by side.
"""

from __future__ import annotations

import _thread
import threading
import time
import weakref
from collections.abc import Callable
from types import TracebackType

from vizggml.errors import VizggmlError
from vizggml.ggml.kernels.chunks import Chunks

Job = Callable[[int], None]
GGML_MAX_N_THREADS = 512


def _wake(lock: _thread.LockType) -> None:
    """Let whoever sleeps on `lock` go on, now or when it comes. Only ever one thread wakes by a lock."""
    if lock.locked():
        lock.release()


class _Worker:
    """What one sleeping thread shares with its pool. The thread holds only this, so that a pool can be collected.

    The locks only wake: what is to be done, and what is done, the numbers `wanted` and `completed` say. So a wake-up
    too many does no harm, and one that an interrupt swallowed is not waited for.
    """

    __slots__ = ("barrier", "completed", "done", "error", "finished", "go", "ith", "job", "wanted")

    def __init__(self, ith: int) -> None:
        self.ith = ith
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
        self.wanted = number
        _wake(self.go)

    def run(self) -> None:
        while True:
            self.go.acquire()
            number = self.wanted
            if number == self.completed:
                continue
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
    """`struct ggml_threadpool`, ggml/src/ggml-cpu/ggml-cpu.c: `n_threads` - 1 threads, and the caller.

    `close()` (or the `with` statement, or collecting the pool) ends the threads. One caller at a time.
    """

    def __init__(self, n_threads: int) -> None:
        if not 1 <= n_threads <= GGML_MAX_N_THREADS:
            raise VizggmlError(f"thread pool: n_threads {n_threads} is not between 1 and {GGML_MAX_N_THREADS}")
        self.n_threads = n_threads
        self.waits: list[int] = []
        """After `run`: the nanoseconds that each thread waited at the barrier for the last one."""
        self.ends: list[int] = []
        """After `run`: when each thread was done, by `time.perf_counter_ns`."""
        self.chunks = Chunks(n_threads)
        """From which the threads of a matrix product take their chunks; it starts anew with each node."""
        self._workers = [_Worker(ith) for ith in range(1, n_threads)]
        self._barriers: dict[int, threading.Barrier] = {}
        self._number = 0
        self._running = False
        for worker in self._workers:
            threading.Thread(target=worker.run, name=f"vizggml-{worker.ith}", daemon=True).start()
        self._finalizer = weakref.finalize(self, _stop, self._workers)

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
