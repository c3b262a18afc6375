"""The graph allocator: the same offsets and sizes as real ggml, and why."""

from __future__ import annotations

import gc
import weakref

import pytest

from tests.ggml.seen import Seen, seen
from tests.ggml.test_cgraph import affine
from tests.oracle import Real, allocated, graph_json, set_sources, tensor_fields
from vizggml.errors import VizggmlError
from vizggml.events import (
    NO_SEQ,
    NO_TENSOR,
    AllocatorReset,
    AllocGraphBegin,
    AllocGraphEnd,
    BlockChosen,
    BlockMerged,
    BufferAllocated,
    BufferFreed,
    ChildrenChanged,
    ExtraTailFreed,
    OutputKept,
    ParentRefused,
    ParentReused,
    ReserveBegin,
    ReserveEnd,
    SearchBegin,
    TensorAssigned,
    TensorFreed,
    TensorPlaced,
    bus,
)
from vizggml.ggml import ops
from vizggml.ggml.buffer import BufferType, alloc_ctx_tensors_from_buft, cpu_buffer_type
from vizggml.ggml.cgraph import Graph
from vizggml.ggml.context import Context
from vizggml.ggml.gallocr import GraphAllocator
from vizggml.ggml.graph_file import parse_graph, report_of
from vizggml.ggml.op_record import view_tensor
from vizggml.ggml.tensor import Tensor


def context() -> Context:
    return Context(1 << 20, no_alloc=True)


def expanded(ctx: Context, *outputs: Tensor) -> Graph:
    graph = Graph(ctx, 64)
    for t in outputs:
        graph.build_forward_expand(t)
    return graph


def offset(t: Tensor) -> int:
    assert t.data is not None
    return t.data.offset


def test_the_first_lesson() -> None:
    """relu(W x + b) in 128 bytes: W 0, x 32, b 64, and the three results one after the other at 96."""
    ctx = context()
    tensors = affine(ctx)
    galloc = GraphAllocator(cpu_buffer_type())
    with seen() as events:
        assert galloc.alloc_graph(expanded(ctx, tensors[-1]))
    assert [offset(t) for t in tensors] == [0, 32, 64, 96, 96, 96]
    assert galloc.get_buffer_size() == 128
    w, x, b, wx, total, out = (t.id for t in tensors)
    assert [(e.tensor, e.offset, e.size) for e in events.of(TensorAssigned)] == [
        (w, 0, 24),
        (x, 32, 12),
        (b, 64, 8),
        (wx, 96, 8),
    ]
    assert [(e.tensor, e.parent, e.offset, e.size) for e in events.of(ParentReused)] == [
        (total, wx, 96, 8),
        (out, total, 96, 8),
    ]
    assert [(e.tensor, e.by, e.offset, e.node) for e in events.of(TensorFreed)] == [
        (w, wx, 0, wx),
        (x, wx, 32, wx),
        (b, total, 64, total),
    ]


def weights_apart() -> tuple[Context, list[Tensor]]:
    """W, x and b in a buffer of their own, and the three results that are to be planned."""
    own = context()
    w, x, b = (own.new_tensor("F32", ne, name) for name, ne in (("W", (3, 2)), ("x", (3,)), ("b", (2,))))
    alloc_ctx_tensors_from_buft(own, cpu_buffer_type())
    ctx = context()
    wx = ops.mul_mat(ctx, w, x)
    total = ops.add(ctx, wx, b)
    return ctx, [w, x, b, wx, total, ops.relu(ctx, total)]


def test_the_teaching_trace() -> None:
    """Without reuse and padding: 0, 8 and 0 again; from the end, from the end, an exact best fit; 16 bytes at most."""
    ctx, tensors = weights_apart()
    galloc = GraphAllocator(cpu_buffer_type(8), in_place=False)
    with seen() as events:
        galloc.alloc_graph(expanded(ctx, tensors[-1]))
    assert [offset(t) for t in tensors[3:]] == [0, 8, 0]
    assert galloc.get_buffer_size() == 16
    assert events.one(ReserveEnd).sizes == (16,)
    assert [(e.rule, e.exact) for e in events.of(BlockChosen)] == [
        ("last block", False),
        ("last block", False),
        ("best fit", True),
    ]
    assert {e.why for e in events.of(ParentRefused) if e.tensor != tensors[3].id} == {"reuse off"}
    assert {e.why for e in events.of(ParentRefused) if e.tensor == tensors[3].id} == {"op cannot"}


def refusals(events: Seen, t: Tensor) -> list[tuple[int, str]]:
    return [(e.parent, e.why) for e in events.of(ParentRefused) if e.tensor == t.id]


def test_why_a_parent_is_not_reused() -> None:
    own, ctx = context(), context()
    outside = own.new_tensor("F32", (8,))
    alloc_ctx_tensors_from_buft(own, cpu_buffer_type())
    a = ctx.new_tensor("F32", (8,), "a")
    external = ops.relu(ctx, outside)
    kept = ops.sqr(ctx, a).set_output()
    output = ops.sqrt(ctx, kept)
    row = ops.sqr(ctx, ctx.new_tensor("F32", (4,)))
    layout = ops.add(ctx, ops.relu(ctx, ctx.new_tensor("F32", (4, 2))), row)
    twice = ops.sqr(ctx, ctx.new_tensor("F32", (8,)))
    children = ops.add(ctx, twice, twice)
    seen_into = ops.sqr(ctx, ctx.new_tensor("F32", (8,)))
    window = ops.view_1d(ctx, seen_into, 4, 0)
    views = ops.relu(ctx, seen_into)
    of_view = ops.relu(ctx, window)
    product = ops.mul_mat(ctx, ctx.new_tensor("F32", (8, 2)), a)
    graph = expanded(ctx, external, output, layout, children, window, views, of_view, product)
    with seen() as events:
        GraphAllocator(cpu_buffer_type()).reserve(graph)
    assert refusals(events, external) == [(outside.id, "external")]
    assert refusals(events, output) == [(kept.id, "output")]
    # the first source is reused, so the second is not asked; the row alone has another layout
    assert refusals(events, layout) == []
    assert refusals(events, children) == [(twice.id, "children")] * 2
    assert refusals(events, views) == [(seen_into.id, "views")]
    assert refusals(events, of_view) == [(window.id, "external")]
    assert refusals(events, product) == [(s.id, "op cannot") for s in product.src if s is not None]
    left = ctx.new_tensor("F32", (4, 2)).set_input()
    alloc = ops.add(ctx, left, ops.sqr(ctx, ctx.new_tensor("F32", (4,))))
    with seen() as events:
        GraphAllocator(cpu_buffer_type()).reserve(expanded(ctx, ops.add(ctx, left, alloc), alloc))
    assert refusals(events, alloc) == [(left.id, "children"), (alloc.src[1].id, "layout")]  # type: ignore[union-attr]


def test_inputs_are_placed_before_any_result() -> None:
    """The input is needed last; still it lies before the result that is computed first."""
    ctx = context()
    late = ctx.new_tensor("F32", (8,), "late").set_input()
    p = ops.sqr(ctx, ctx.new_tensor("F32", (8,), "a"))
    inner = ops.sqr(ctx, ops.cont(ctx, p)).set_input()
    out = ops.add(ctx, inner, late)
    graph = Graph(ctx, 8)
    graph.adopt([p, *[s for s in inner.src if s], inner, out], [s for s in p.src if s])
    with seen() as events:
        GraphAllocator(cpu_buffer_type()).reserve(graph)
    order = [e.tensor for e in events.of(TensorAssigned)]
    assert order[:3] == [graph.leafs[0].id, inner.id, late.id]
    assert p.id in [e.tensor for e in events.of(ParentReused)]


def test_an_output_is_never_freed_and_a_view_keeps_its_source() -> None:
    ctx = context()
    a = ops.sqr(ctx, ctx.new_tensor("F32", (8,))).set_output()
    source = ops.cont(ctx, a)
    window = ops.view_1d(ctx, source, 4, 16)
    out = ops.sum(ctx, window)
    with seen() as events:
        galloc = GraphAllocator(cpu_buffer_type())
        galloc.reserve(expanded(ctx, out))
    kept = events.one(OutputKept)
    assert (kept.galloc, kept.tensor, kept.node) == (galloc.id, a.id, source.id)
    freed = {e.tensor: e.by for e in events.of(TensorFreed)}
    assert a.id not in freed
    assert freed[source.id] == out.id
    assert galloc.is_own(a)


def test_children_and_views_are_counted_up_and_down() -> None:
    ctx = context()
    a = ops.sqr(ctx, ctx.new_tensor("F32", (8,), "x"))
    window = ops.view_1d(ctx, a, 4, 0)
    out = ops.sum(ctx, window)
    with seen() as events:
        GraphAllocator(cpu_buffer_type()).reserve(expanded(ctx, out))
    changes = [(e.tensor, e.n_children, e.n_views) for e in events.of(ChildrenChanged)]
    x = a.src[0]
    assert x is not None
    assert changes == [
        (x.id, 1, 0),
        (a.id, 0, 1),
        (a.id, 1, 1),
        (window.id, 1, 0),
        (x.id, 0, 0),
        (a.id, 0, 1),
        (window.id, 0, 0),
        (a.id, 0, 0),
    ]


class Generous(BufferType):
    """Some results take more bytes than they have: as with a backend that needs room to compute in."""

    def get_alloc_size(self, t: Tensor) -> int:
        return t.nbytes + {"CONT": 128, "SQR": 256}.get(t.op, 0)


def test_the_tail_that_a_smaller_result_leaves_is_freed() -> None:
    ctx = context()
    a = ops.cont(ctx, ctx.new_tensor("F32", (8,)))
    out = ops.relu(ctx, a)
    with seen() as events:
        GraphAllocator(Generous("roomy")).reserve(expanded(ctx, out))
    tail = events.one(ExtraTailFreed)
    assert (tail.tensor, tail.parent, tail.chunk, tail.offset, tail.size) == (out.id, a.id, 0, 32 + 32, 128)
    merged = next(e for e in events.of(BlockMerged) if e.cause == tail.seq)
    assert (merged.freed_offset, merged.freed_size) == (64, 128)
    b = ops.relu(ctx, ctx.new_tensor("F32", (8,)))
    with pytest.raises(VizggmlError, match="288 bytes do not fit where 'node_0' has 32"):
        GraphAllocator(Generous("roomy")).reserve(expanded(ctx, ops.sqr(ctx, b)))


def test_each_event_names_the_one_that_led_to_it() -> None:
    """W is freed since nobody reads it any more, which came of placing wx, which came of the search's choice."""
    ctx = context()
    with seen() as events:
        GraphAllocator(cpu_buffer_type()).reserve(expanded(ctx, affine(ctx)[-1]))
    by_seq = {e.seq: e for e in events}
    freed = events.of(TensorFreed)[0]
    unused = by_seq[freed.cause]
    assert isinstance(unused, ChildrenChanged)
    assert (unused.tensor, unused.n_children, unused.n_views) == (freed.tensor, 0, 0)
    placed = by_seq[unused.cause]
    assert isinstance(placed, TensorAssigned)
    assert placed.tensor == freed.by
    chosen = by_seq[placed.cause]
    assert isinstance(chosen, BlockChosen)
    assert chosen.tensor == placed.tensor
    search = by_seq[chosen.cause]
    assert isinstance(search, SearchBegin)
    assert by_seq[search.cause] is events.one(ReserveBegin)


def test_freeing_is_the_cause_of_what_the_free_list_does() -> None:
    ctx = context()
    with seen() as events:
        galloc = GraphAllocator(cpu_buffer_type())
        graph = expanded(ctx, affine(ctx)[-1])
        galloc.reserve(graph)
    reserve = events.one(ReserveBegin)
    assert (reserve.galloc, reserve.graph, reserve.why, reserve.tensor) == (galloc.id, graph.id, "asked", NO_TENSOR)
    freed = {e.seq for e in events.of(TensorFreed)}
    assert {e.cause for e in events.of(BlockMerged)} <= freed
    assert {e.cause for e in events.of(SearchBegin)} == {reserve.seq}
    assert {e.node for e in events.of(SearchBegin)} == {t.id for t in (*graph.leafs, graph.nodes[0])}
    assert events.one(AllocatorReset).cause == reserve.seq
    assert (bus.cause, bus.node) == (NO_SEQ, NO_TENSOR)


def chain(n: int, size: int = 8, leafs: int = 1) -> Graph:
    ctx = context()
    t = ctx.new_tensor("F32", (size,), "first")
    for _ in range(leafs - 1):
        t = ops.add(ctx, t, ctx.new_tensor("F32", (size,)))
    while len(expanded(ctx, t).nodes) < n:
        t = ops.sqr(ctx, t)
    return expanded(ctx, t)


def test_a_plan_serves_until_a_graph_differs() -> None:
    galloc = GraphAllocator(cpu_buffer_type())
    with seen() as events:
        first = chain(3)
        galloc.alloc_graph(first)
    begin, end = events.one(AllocGraphBegin), events.one(AllocGraphEnd)
    reserve = events.one(ReserveBegin)
    assert (begin.galloc, begin.graph, end.reserved, end.cause) == (galloc.id, first.id, True, begin.seq)
    assert (reserve.why, reserve.had, reserve.needed, reserve.cause) == ("node count", 0, 3, begin.seq)
    assert events.one(ReserveEnd).realloc
    assert events.one(BufferAllocated).usage == "compute"
    with seen() as events:
        galloc.alloc_graph(chain(3, 4))
    assert not events.one(AllocGraphEnd).reserved
    assert not events.of(ReserveBegin)
    assert [e.offset for e in events.of(TensorPlaced)] == [0, 0, 0, 0]
    larger = chain(3, 16)
    with seen() as events:
        galloc.alloc_graph(larger)
    reserve = events.one(ReserveBegin)
    first_misfit = larger.nodes[0]
    assert (reserve.why, reserve.tensor, reserve.had, reserve.needed) == ("tensor size", first_misfit.id, 32, 64)
    assert (events.one(BufferFreed).size, events.one(BufferAllocated).size) == (32, 64)
    with seen() as events:
        galloc.alloc_graph(chain(3, 8, leafs=3))
    reserve = events.one(ReserveBegin)
    assert (reserve.why, reserve.had, reserve.needed) == ("leaf count", 1, 3)
    with seen() as events:
        galloc.alloc_graph(chain(4, 8))
    assert (events.one(ReserveBegin).why, events.one(ReserveBegin).needed) == ("node count", 4)
    # 64 bytes stand from before and 32 are needed
    assert not events.one(ReserveEnd).realloc
    assert not events.of(BufferAllocated)


def test_a_tensor_that_had_memory_when_planned_needs_a_new_plan() -> None:
    ctx, tensors = weights_apart()
    galloc = GraphAllocator(cpu_buffer_type())
    galloc.alloc_graph(expanded(ctx, tensors[-1]))
    inside = context()
    again = expanded(inside, affine(inside)[-1])
    misfit = galloc.needs_realloc(again)
    assert misfit is not None
    assert (misfit.why, misfit.had, misfit.needed) == ("tensor size", 0, 24)


def test_several_buffer_types_are_reserved_by_hand() -> None:
    ctx = context()
    first, second = BufferType("first"), BufferType("second")
    a = ctx.new_tensor("F32", (8,))
    b = ops.sqr(ctx, a)
    graph = expanded(ctx, ops.cont(ctx, b))
    galloc = GraphAllocator([first, second, first])
    assert not galloc.alloc_graph(graph)
    assert galloc.reserve_n_size(graph, [0, 1], [0]) == [32, 32, 32]
    assert galloc.get_buffer_size(0) == 0
    galloc.reserve_n(graph, [0, 1], [2])
    assert galloc.alloc_graph(graph)
    assert [t.buffer.buft.name for t in (a, b, graph.nodes[1]) if t.buffer] == ["first", "first", "second"]
    # the third shares the first's memory, which is counted once
    assert [galloc.get_buffer_size(i) for i in range(3)] == [32, 32, 0]
    assert galloc.buffers[0] is galloc.buffers[2]
    with pytest.raises(VizggmlError, match="buffer id 3 is not one of 3"):
        galloc.get_buffer_size(3)
    with pytest.raises(VizggmlError, match="buffer id 5 is not one of 3"):
        galloc.reserve_n(chain(2), [5, 5], [5])
    with seen() as events:
        galloc.free()
    assert [e.size for e in events.of(BufferFreed)] == [32, 32]
    with pytest.raises(VizggmlError, match="no memory is reserved for it"):
        galloc.init_tensor(ctx.new_tensor("F32", (4,), "late"), galloc.leaf_allocs[0])


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_a_node_without_an_op_keeps_its_sources_until_it_stands(kept: int) -> None:
    """Five copies in a row; after the fourth a dependency on the first `kept`: as real ggml places them."""
    real, ctx = Real(), context()
    reals, ours = [real.new_tensor("F32", (8,))], [ctx.new_tensor("F32", (8,))]
    for _ in range(5):
        reals.append(real.op("cont", reals[-1]))
        ours.append(ops.cont(ctx, ours[-1]))
    graph, real_graph = Graph(ctx, 16), real.graph(16)
    graph.build_forward_expand(ours[4])
    real_graph.build_forward_expand(reals[4])
    if kept:
        keep, real_keep = view_tensor(ctx, ours[1]), real.op("view_tensor", reals[1])
        keep.src = list(ours[1 : 1 + kept])
        set_sources(real_keep, reals[1 : 1 + kept])
        graph.add_node(keep)
        real_graph.add_node(real_keep)
    graph.build_forward_expand(ours[5])
    real_graph.build_forward_expand(reals[5])
    report = report_of(parse_graph(graph_json(real_graph)))
    galloc = GraphAllocator(cpu_buffer_type())
    galloc.alloc_graph(graph)
    with allocated(real_graph) as buft:
        places = [buft.place_of(tensor_fields(r)) for r in reals]
        assert [(0, offset(t)) for t in ours] == places
        assert galloc.get_buffer_size() == sum(buft.sizes()) == report["size"]
    assert galloc.get_buffer_size() == {0: 64, 1: 96, 2: 128}[kept]
    real.free()


def test_planning_keeps_no_tensor_alive() -> None:
    ctx = context()
    graph = expanded(ctx, affine(ctx)[-1])
    galloc = GraphAllocator(cpu_buffer_type())
    galloc.alloc_graph(graph)
    gone = weakref.ref(graph.nodes[0])
    ctx.free()
    del graph, ctx
    gc.collect()
    assert gone() is None
