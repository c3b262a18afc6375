"""The teaching switch: memory given out while computing, and given back when a use count reaches zero.

ggml plans all memory before it computes anything. Textbooks show the other way, which this is: a node gets its bytes
when it is about to be computed, and a source loses its own as soon as nobody needs it any more. Nothing is reused in
place, so each decision can be seen by itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from vizggml.errors import VizggmlError
from vizggml.events import (
    NO_TENSOR,
    ComputeBegin,
    ComputeEnd,
    GallocId,
    NodeBegin,
    NodeEnd,
    NodeSkipped,
    Released,
    TensorAssigned,
    UseCountChanged,
    bus,
)
from vizggml.ggml.buffer import Buffer, BufferType, cpu_buffer_type, view_init
from vizggml.ggml.cplan import graph_plan
from vizggml.ggml.tallocr import DynTallocr
from vizggml.ggml.tape import Step, TapeKey, record_tape
from vizggml.ggml.tensor import Tensor
from vizggml.ggml.types import FLAG_OUTPUT, pad

if TYPE_CHECKING:
    from vizggml.ggml.cgraph import Graph

NO_GALLOC = GallocId(-1)
Hook = Callable[[Tensor], None]


class _Run:
    """One run: what is left of each tensor's use count, and where each tensor was put.

    Without a `buffer` it is a rehearsal: places are given out and taken back, but no tensor is put there.
    """

    def __init__(self, g: Graph, buft: BufferType, buffer: Buffer | None) -> None:
        self.g = g
        self.buft = buft
        self.buffer = buffer
        self.tallocr = DynTallocr(buft.alignment)
        self.tallocr.reset()
        self.left = {t.id: g.use_count(t) for t in (*g.leafs, *g.nodes)}
        self.n_views: dict[int, int] = {}
        for n in g.nodes:
            if n.view_src is not None:
                self.n_views[n.view_src.id] = self.n_views.get(n.view_src.id, 0) + 1
        self.placed: dict[int, tuple[int, int]] = {}

    def size(self, t: Tensor) -> int:
        return pad(self.buft.get_alloc_size(t), self.buft.alignment)

    def assign(self, t: Tensor) -> None:
        """Memory for `t`: its own, or its source's if it is a view."""
        if t.data is not None:
            return
        if t.view_src is not None:
            if self.buffer is not None:
                view_init(t)
            return
        chunk, offset = self.placed[t.id] = self.tallocr.alloc(self.buft.get_alloc_size(t), t)
        if self.buffer is not None:
            self.buffer.tensor_alloc(t, offset)
        if bus.on:
            event = TensorAssigned(NO_GALLOC, t.id, 0, chunk, offset, self.size(t))
            bus.emit(event, cause=self.tallocr.told_choice)

    def used(self, t: Tensor) -> None:
        """One use of `t` is over."""
        self.left[t.id] -= 1
        if bus.on:
            bus.emit(UseCountChanged(self.g.id, t.id, self.left[t.id]), node=t.id)
        self.release_if_unused(t)

    def release_if_unused(self, t: Tensor) -> None:
        """Give the memory of `t` back if it has no use and no view left; a view lets go of its source."""
        if self.left.get(t.id, 0) > 0 or self.n_views.get(t.id, 0) > 0 or t.flags & FLAG_OUTPUT:
            return
        if t.view_src is not None:
            self.n_views[t.view_src.id] -= 1
            self.release_if_unused(t.view_src)
            return
        place = self.placed.pop(t.id, None)
        if place is None:
            return
        if bus.on:
            seq = bus.emit(Released(self.g.id, t.id, *place, self.size(t)))
            with bus.because(seq):
                self.tallocr.free_bytes(place, self.size(t))
        else:
            self.tallocr.free_bytes(place, self.size(t))

    def finish(self, node: Tensor) -> None:
        """After a node: each of its sources has one use less."""
        for src in node.src:
            if src is not None:
                self.used(src)


def peak_size(g: Graph, buft: BufferType) -> int:
    """The bytes that a run will need at once: it is rehearsed, and nobody hears of it."""
    on, bus.on = bus.on, False
    try:
        run = _Run(g, buft, None)
        for node in g.nodes:
            run.assign(node)
            run.finish(node)
    finally:
        bus.on = on
    return sum(chunk.max_size for chunk in run.tallocr.chunks)


def compute_releasing(
    g: Graph,
    buft: BufferType | None = None,
    *,
    textbook: bool = False,
    before_node: Hook | None = None,
    after_node: Hook | None = None,
) -> Buffer:
    """Compute `g` on one thread, allocating as it goes; the buffer that the nodes were in.

    Leafs must have memory already. Nodes without memory get it from a free list with `buft`'s alignment (1 shows the
    offsets of a textbook) and lose it when their last use is over, but for outputs and for nodes that nobody uses: read
    a result in `after_node`, or after the run if nothing was placed over it. VizggmlError for a leaf without memory.
    """
    for leaf in g.leafs:
        if leaf.data is None:
            raise VizggmlError(f"leaf {leaf.name!r} has no memory: give it some and its values before computing")
    plan = graph_plan(g, 1)
    tape = record_tape(plan, TapeKey(textbook, False, False))
    buft = buft or cpu_buffer_type()
    buffer = buft.alloc_buffer(peak_size(g, buft), "compute")
    run = _Run(g, buft, buffer)
    begin = time.perf_counter_ns()
    if bus.on:
        bus.emit(ComputeBegin(g.id, len(g.nodes), 1))
    try:
        for step in tape.steps:
            bus.node = step.node.id
            run.assign(step.node)
            if not step.skip:
                _compute(g, step, begin, before_node, after_node)
            elif bus.on:
                bus.emit(NodeSkipped(g.id, step.node.id, step.skip))
            run.finish(step.node)
    finally:
        bus.node = NO_TENSOR
    if bus.on:
        bus.emit(ComputeEnd(g.id, time.perf_counter_ns() - begin))
    return buffer


def _compute(g: Graph, step: Step, begin: int, before_node: Hook | None, after_node: Hook | None) -> None:
    node = step.node
    if before_node is not None:
        before_node(node)
    if bus.on:
        seq = bus.emit(NodeBegin(g.id, node.id, 0, time.perf_counter_ns() - begin))
        step.run(0)
        bus.emit(NodeEnd(g.id, node.id, 0, time.perf_counter_ns() - begin), cause=seq)
    else:
        step.run(0)
    if bus.values is not None:
        bus.values(node)
    if after_node is not None:
        after_node(node)
