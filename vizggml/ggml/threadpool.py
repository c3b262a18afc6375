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

Job = Callable[[int], None]
GGML_MAX_N_THREADS = 512


class _Worker:
    """What one sleeping thread shares with its pool. The thread holds only this, so that a pool can be collected."""

    __slots__ = ("barrier", "done", "error", "finished", "go", "ith", "job")

    def __init__(self, ith: int) -> None:
        self.ith = ith
        self.go = _thread.allocate_lock()
        self.done = _thread.allocate_lock()
        self.go.acquire()
        self.done.acquire()
        self.job: Job | None = None
        self.barrier: threading.Barrier | None = None
        self.error: BaseException | None = None
        self.finished = 0

    def run(self) -> None:
        while True:
            self.go.acquire()
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
            self.done.release()


def _stop(workers: list[_Worker]) -> None:
    for worker in workers:
        worker.job = None
        worker.go.release()
    workers.clear()


def _wait(lock: _thread.LockType) -> BaseException | None:
    """Acquire `lock` whatever happens; an interrupt that came meanwhile is handed back, to be raised afterwards."""
    interrupt: BaseException | None = None
    while True:
        try:
            lock.acquire()
            return interrupt
        except BaseException as raised:
            interrupt = raised


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
        self._workers = [_Worker(ith) for ith in range(1, n_threads)]
        self._barriers: dict[int, threading.Barrier] = {}
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
        barrier = self._barriers.get(n)
        for worker in workers:
            worker.job, worker.barrier = job, barrier
            worker.go.release()
        error: BaseException | None = None
        try:
            job(0)
        except BaseException as raised:
            error = raised
            if barrier is not None:
                barrier.abort()
        ends = [time.perf_counter_ns()]
        for worker in workers:
            error = _wait(worker.done) or error
            ends.append(worker.finished)
        self.ends = ends
        last = max(ends)
        self.waits = [last - end for end in ends]
        errors = [e for e in (error, *(worker.error for worker in workers)) if e is not None]
        if errors:
            if barrier is not None:
                barrier.reset()
            for worker in workers:
                worker.error = None
            # a thread that was let go at a broken barrier only says that another one failed
            raise next((e for e in errors if not isinstance(e, threading.BrokenBarrierError)), errors[0])

    def close(self) -> None:
        """End the threads. `ggml_threadpool_free`, ggml/src/ggml-cpu/ggml-cpu.c."""
        self._finalizer()

    def __enter__(self) -> ThreadPool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
