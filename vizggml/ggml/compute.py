"""Computing a graph: every node in order, each by its kernel, on the threads of the plan."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from vizggml.errors import VizggmlError
from vizggml.events import (
    NO_TENSOR,
    BarrierWait,
    ChunksTaken,
    ComputeBegin,
    ComputeEnd,
    NodeBegin,
    NodeEnd,
    NodesFused,
    NodeSkipped,
    Seq,
    WorkTaken,
    bus,
)
from vizggml.ggml.cplan import Plan
from vizggml.ggml.releasing import compute_releasing
from vizggml.ggml.tape import Step, Tape, TapeKey, fast_wanted, record_tape
from vizggml.ggml.tensor import Tensor

if TYPE_CHECKING:
    from vizggml.ggml.cgraph import Graph

Hook = Callable[[Tensor], None]


def graph_compute(
    g: Graph,
    plan: Plan,
    *,
    textbook: bool = False,
    fast: bool | None = None,
    fuse: bool = True,
    before_node: Hook | None = None,
    after_node: Hook | None = None,
) -> None:
    """Compute every node of `g` that has the compute flag. `ggml_graph_compute`, ggml/src/ggml-cpu/ggml-cpu.c.

    `textbook` multiplies matrices in F32 instead of in ggml's `vec_dot_type`. `fast` takes the compiled kernels (None:
    if Numba is installed and VIZGGML_FAST is not 0). `fuse` computes RMS_NORM and its MUL in one pass, as ggml does;
    but with a hook, or with somebody who records values, each node is computed by itself. `before_node` and
    `after_node` are called with each computed node. VizggmlError for an op or a type without a kernel; what a kernel
    raises on any thread is raised here.
    """
    if plan.graph is not g:
        raise VizggmlError(f"graph {g.id}: the plan was made for graph {plan.graph.id}")
    hooked = before_node is not None or after_node is not None
    alone = hooked or bus.values is not None
    tape = record_tape(plan, TapeKey(textbook, fast_wanted(fast), fuse and not alone))
    if not bus.on and not alone:
        for call in tape.calls:
            call()
        return
    _compute_watched(g, plan, tape, before_node, after_node)


def _compute_watched(g: Graph, plan: Plan, tape: Tape, before_node: Hook | None, after_node: Hook | None) -> None:
    """The same run with events, hooks and values. Thread 0 emits what the others did, after the barrier."""
    begin = time.perf_counter_ns()
    if bus.on:
        bus.emit(ComputeBegin(g.id, len(g.nodes), plan.n_threads))
    try:
        for step in tape.steps:
            node = step.node
            bus.node = node.id
            if step.skip:
                if bus.on:
                    bus.emit(NodeSkipped(g.id, node.id, step.skip))
                continue
            if before_node is not None:
                before_node(node)
            if bus.on and step.fused is not None:
                bus.emit(NodesFused(g.id, node.id, (step.fused.id,)))
            if step.width > 1:
                _run_wide(g, tape, step, begin)
            else:
                _run_alone(g, step, begin)
            if bus.values is not None:
                bus.values(node)
            if after_node is not None:
                after_node(node)
    finally:
        bus.node = NO_TENSOR
    if bus.on:
        bus.emit(ComputeEnd(g.id, time.perf_counter_ns() - begin))


def _run_alone(g: Graph, step: Step, begin: int) -> None:
    if not bus.on:
        step.run(0)
        return
    node = step.node
    seq = bus.emit(NodeBegin(g.id, node.id, 0, time.perf_counter_ns() - begin))
    with bus.because(seq):
        step.run(0)
    end = time.perf_counter_ns() - begin
    _tell_chunks(g, step, seq)
    bus.emit(NodeEnd(g.id, node.id, 0, end), cause=seq)


def _run_wide(g: Graph, tape: Tape, step: Step, begin: int) -> None:
    pool, node, width = tape.pool, step.node, step.width
    assert pool is not None
    if not bus.on:
        pool.run(step.run, width)
        return
    begins = [0] * width

    def timed(ith: int) -> None:
        begins[ith] = time.perf_counter_ns()
        step.run(ith)

    pool.run(timed, width)
    seqs = [bus.emit(NodeBegin(g.id, node.id, ith, ns - begin)) for ith, ns in enumerate(begins)]
    for ith, polling in enumerate(pool.polling[: width - 1], 1):
        bus.emit(WorkTaken(g.id, node.id, ith, polling), cause=seqs[ith])
    _tell_chunks(g, step, seqs[0])
    for ith, ns in enumerate(pool.ends):
        bus.emit(NodeEnd(g.id, node.id, ith, ns - begin), cause=seqs[ith])
    for ith, ns in enumerate(pool.waits):
        bus.emit(BarrierWait(g.id, node.id, ith, ns), cause=seqs[ith])


def _tell_chunks(g: Graph, step: Step, cause: Seq) -> None:
    """How a matrix product was shared, from the counter that its threads took their chunks from."""
    chunks = step.chunks
    if chunks is None or not chunks.taken:
        return
    for expert, (grid, taken) in chunks.taken.items():
        what = (grid.n_chunks, grid.dr0, grid.dr1, grid.handed_out, tuple(taken))
        bus.emit(ChunksTaken(g.id, step.node.id, expert, *what), cause=cause)
    chunks.taken.clear()


__all__ = ["compute_releasing", "graph_compute"]
