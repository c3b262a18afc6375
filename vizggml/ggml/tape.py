"""The compiled run of a plan: which kernel computes which node on how many threads, decided once and used at every run.

What ggml decides anew at each node of each run (is the op empty, does the flag say compute, can it be fused, which
kernel) is decided here when the plan is first run, so that a decode step under graph reuse only calls kernels.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, cast

from vizggml.errors import VizggmlError
from vizggml.ggml.cplan import Plan
from vizggml.ggml.kernels import FUSED, KERNELS, FusedKernel, Kernel
from vizggml.ggml.kernels.chunks import Chunks
from vizggml.ggml.kernels.params import ComputeParams, alone
from vizggml.ggml.tensor import Tensor, same_shape
from vizggml.ggml.threadpool import ThreadPool, WaitFor
from vizggml.ggml.types import FLAG_COMPUTE, FLAG_OUTPUT

if TYPE_CHECKING:
    from vizggml.ggml.cgraph import Graph

EMPTY_OPS = frozenset(("NONE", "RESHAPE", "VIEW", "PERMUTE", "TRANSPOSE"))
"""`ggml_op_is_empty`, ggml/src/ggml-impl.h: they say where bytes are and compute nothing."""

MIN_PARALLEL_WORK = 256 * 1024
"""Multiply-adds (or elements written, for other ops) below which a node stays on one thread: to wake a thread
from Python takes as long as to compute them."""


def nothing() -> None:
    """The work of a node that is skipped."""


@dataclass(slots=True, eq=False)
class Step:
    """One node of the tape: `work` with one of `args` for each thread, or nothing, for the reason `skip`.

    `fused` is the node that is computed along.
    """

    node: Tensor
    skip: str = ""
    fused: Tensor | None = None
    work: Callable[..., None] = nothing
    args: tuple[tuple[object, ...], ...] = ()

    @property
    def width(self) -> int:
        """The threads that share the node."""
        return len(self.args)

    @property
    def chunks(self) -> Chunks | None:
        """The counter from which the threads of the node take their chunks."""
        params = self.args[0][0] if self.args else None
        return params.chunks if isinstance(params, ComputeParams) else None

    def run(self, ith: int) -> None:
        """The share of thread `ith`."""
        self.work(*self.args[ith])


@dataclass(slots=True, eq=False)
class Tape:
    """`steps` are the nodes in order; `calls` is the same run with nobody watching."""

    steps: list[Step]
    calls: list[Callable[[], None]]
    pool: ThreadPool | None


@dataclass(frozen=True, slots=True)
class TapeKey:
    """What one tape of a plan was made for."""

    textbook: bool
    fast: bool
    fuse: bool


def fast_wanted(fast: bool | None) -> bool:
    """`fast`, or if None: whether Numba is installed and VIZGGML_FAST is not 0. VizggmlError if asked for in vain."""
    if fast is None:
        return os.environ.get("VIZGGML_FAST") != "0" and bool(fast_kernels())
    if fast and not fast_kernels():
        raise VizggmlError("fast kernels: Numba is not installed (pip install 'vizggml[fast]')")
    return fast


def fast_kernels() -> Mapping[str, Kernel]:
    """The compiled twins by op, none if Numba is not there."""
    try:
        from vizggml.ggml.kernels.fast import FAST
        from vizggml.ggml.kernels.fast.small import SMALL
    except ImportError:
        return {}
    return {**SMALL, **FAST}


def fast_fused_kernels() -> Mapping[tuple[str, str], FusedKernel]:
    """The compiled twins of fused kernels; only where there are `fast_kernels`."""
    from vizggml.ggml.kernels.fast.small import SMALL_FUSED

    return SMALL_FUSED


def fast_wait_for() -> WaitFor:
    """How a thread polls in compiled code; only where there are `fast_kernels`."""
    from vizggml.ggml.kernels.fast.waiting import wait_for

    return wait_for


def can_fuse(g: Graph, i: int) -> bool:
    """Whether node `i`, an RMS_NORM, and the MUL after it can be computed in one pass.

    `ggml_can_fuse`, ggml/src/ggml-impl.h, and `ggml_cpu_try_fuse_ops`, ggml/src/ggml-cpu/ggml-cpu.c.
    """
    if i + 1 >= len(g.nodes):
        return False
    node, mul = g.nodes[i], g.nodes[i + 1]
    if (node.op, mul.op) not in FUSED or not node.flags & mul.flags & FLAG_COMPUTE:
        return False
    if g.use_count(node) != 1 or node.view_src is not None or node.flags & FLAG_OUTPUT:
        return False
    if node not in mul.src[:2] or not same_shape(node, mul):
        return False
    weight, src = (mul.src[1] if mul.src[0] is node else mul.src[0]), node.src[0]
    if weight is None or src is None:
        return False
    f32 = src.type.name == mul.type.name == weight.type.name == "F32"
    return f32 and weight.ne[0] == node.ne[0] and weight.nb[0] == 4


def node_work(node: Tensor) -> int:
    """Multiply-adds of a matrix product or of attention, else the elements that the node writes."""
    if node.op in ("MUL_MAT", "MUL_MAT_ID") and node.src[0] is not None:
        return node.nelements * node.src[0].ne[0]
    if node.op == "FLASH_ATTN_EXT" and node.src[1] is not None:
        return 2 * node.nelements * node.src[1].ne[1]
    return node.nelements


def node_width(node: Tensor, n_tasks: int) -> int:
    """Threads that share the node: `n_tasks`, or 1 where there is too little to share."""
    return n_tasks if n_tasks > 1 and node_work(node) >= MIN_PARALLEL_WORK else 1


def skip_reason(node: Tensor) -> str:
    """Why the node is not computed, "" if it is. `ggml_graph_compute_thread`, ggml/src/ggml-cpu/ggml-cpu.c."""
    if node.op in EMPTY_OPS:
        return "empty op"
    if not node.flags & FLAG_COMPUTE:
        return "no compute flag"
    return "empty tensor" if node.is_empty else ""


class _Recorder:
    """Makes the steps of one tape."""

    def __init__(self, plan: Plan, key: TapeKey, pool: ThreadPool | None) -> None:
        self.plan = plan
        self.pool = pool
        self.kernels = {**KERNELS, **fast_kernels()} if key.fast else KERNELS
        self.fused = {**FUSED, **fast_fused_kernels()} if key.fast else FUSED
        self.fuse = key.fuse
        self.textbook = key.textbook
        self._params: dict[int, tuple[ComputeParams, ...]] = {}

    def params(self, width: int) -> tuple[ComputeParams, ...]:
        """What each of `width` threads is told."""
        found = self._params.get(width)
        if found is None:
            plan = self.plan
            barrier = self.pool.barrier(width) if self.pool is not None and width > 1 else alone
            wdata = plan.work_data if plan.work_size else None
            chunks = self.pool.chunks if self.pool is not None and width > 1 else Chunks()
            found = self._params[width] = tuple(
                ComputeParams(ith, width, wdata, self.textbook, barrier, plan.flash_tile, chunks)
                for ith in range(width)
            )
        return found

    def steps(self) -> list[Step]:
        steps: list[Step] = []
        fused: Tensor | None = None
        for i, node in enumerate(self.plan.graph.nodes):
            if node is fused:
                continue
            skip = skip_reason(node)
            if skip:
                steps.append(Step(node, skip))
                continue
            fused = self.plan.graph.nodes[i + 1] if self.fuse and can_fuse(self.plan.graph, i) else None
            params = self.params(min(node_width(node, self.plan.n_tasks[i]), self.plan.n_threads))
            if fused is not None:
                both = self.fused_kernel(node, fused)
                steps.append(Step(node, "", fused, both, tuple((p, node, fused) for p in params)))
            else:
                steps.append(Step(node, "", None, self.kernel(node), tuple((p, node) for p in params)))
        return steps

    def fused_kernel(self, node: Tensor, fused: Tensor) -> FusedKernel:
        return self.fused[node.op, fused.op]

    def kernel(self, node: Tensor) -> Kernel:
        kernel = self.kernels.get(node.op)
        if kernel is None:
            types = ", ".join("none" if src is None else src.type.name for src in node.src)
            raise VizggmlError(f"node {node.name!r}: op {node.op} has no kernel ({types or 'nothing'} to {node.type})")
        return kernel


def record_tape(plan: Plan, key: TapeKey) -> Tape:
    """The tape of `plan`; the same one for the same key. VizggmlError if an op has no kernel."""
    found = plan.tapes.get(key)
    if found is not None:
        return cast(Tape, found)
    pool = plan.threadpool
    if pool is None and plan.n_threads > 1:
        pool = plan.threadpool = ThreadPool(plan.n_threads)
    if key.fast and pool is not None:
        pool.poll_compiled(fast_wait_for())
    steps = _Recorder(plan, key, pool).steps()
    calls: list[Callable[[], None]] = []
    for step in steps:
        if step.skip:
            continue
        if step.width > 1 and pool is not None:
            calls.append(partial(pool.run, step.run, step.width))
        else:
            calls.append(partial(step.work, *step.args[0]))
    tape = Tape(steps, calls, pool)
    plan.tapes[key] = tape
    return tape
