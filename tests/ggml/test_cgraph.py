"""The graph: order, use counts and sizes as in real ggml; what the visit tells."""

from __future__ import annotations

import pytest

from tests.ggml.programs import Ours, Reals, program
from tests.ggml.seen import seen
from tests.oracle import LIB, Real
from vizggml.errors import VizggmlError
from vizggml.events import (
    NO_TENSOR,
    AlreadyVisited,
    ExpandBegin,
    ExpandEnd,
    FlagsSet,
    GraphCreated,
    GraphFreed,
    LeafAppended,
    NodeAppended,
    SlotTaken,
    TensorNamed,
    UseCountChanged,
    VisitEnter,
    bus,
)
from vizggml.ggml import ops
from vizggml.ggml.cgraph import (
    HASH_STEP,
    LEFT_TO_RIGHT,
    RIGHT_TO_LEFT,
    Graph,
    graph_overhead,
    graph_overhead_custom,
    hash_size,
)
from vizggml.ggml.context import Context
from vizggml.ggml.tensor import Tensor
from vizggml.ggml.types import FLAG_COMPUTE, FLAG_PARAM


def affine(ctx: Context) -> list[Tensor]:
    """W, x, b and the three nodes of relu(W x + b), W of 3 columns and 2 rows."""
    w, x, b = (ctx.new_tensor("F32", ne, name) for name, ne in (("W", (3, 2)), ("x", (3,)), ("b", (2,))))
    wx = ops.mul_mat(ctx, w, x).set_name("wx")
    total = ops.add(ctx, wx, b).set_name("wx+b")
    return [w, x, b, wx, total, ops.relu(ctx, total).set_name("out")]


def test_the_first_lesson() -> None:
    """relu(W x + b) is met as out, wx+b, wx, W, x, b and appended as W, x, wx, b, wx+b, out."""
    ctx = Context(1 << 20, no_alloc=True)
    w, x, b, wx, total, out = affine(ctx)
    graph = Graph(ctx, 8)
    with seen() as events:
        graph.build_forward_expand(out)
    assert [e.tensor for e in events.of(VisitEnter)] == [t.id for t in (out, total, wx, w, x, b)]
    appended = [e for e in events if isinstance(e, LeafAppended | NodeAppended)]
    assert [e.tensor for e in appended] == [t.id for t in (w, x, wx, b, total, out)]
    assert [e.index for e in appended] == [0, 1, 0, 2, 1, 2]
    assert [graph.use_count(t) for t in (w, x, wx, b, total, out)] == [1, 1, 1, 1, 1, 0]
    assert [(e.tensor, e.use_count) for e in events.of(UseCountChanged)] == [(t.id, 1) for t in (w, x, wx, b, total)]
    begin, end = events.one(ExpandBegin), events.one(ExpandEnd)
    assert (begin.graph, begin.root) == (graph.id, out.id)
    assert (end.root, end.n_nodes, end.n_leafs, end.cause) == (out.id, 3, 3, begin.seq)
    assert {t.flags for t in (wx, total, out)} == {FLAG_COMPUTE}
    assert {t.flags for t in (w, x, b)} == {0}
    assert [graph.index_of(t) for t in (wx, total, out, w)] == [0, 1, 2, -1]
    assert bus.node == NO_TENSOR


def test_each_event_names_its_node_and_its_cause() -> None:
    ctx = Context(1 << 20, no_alloc=True)
    w, x, b, wx, total, out = affine(ctx)
    with seen() as events:
        Graph(ctx, 8).build_forward_expand(out)
    entered = {e.tensor: e for e in events.of(VisitEnter)}
    assert all(e.node == e.tensor for e in entered.values())
    assert entered[out.id].cause == events.one(ExpandBegin).seq
    assert [entered[t.id].cause for t in (w, x)] == [entered[wx.id].seq] * 2
    assert [entered[t.id].cause for t in (wx, b)] == [entered[total.id].seq] * 2
    assert all(e.cause == entered[e.tensor].seq for e in events.of(NodeAppended))
    assert {e.tensor: e.node for e in events.of(UseCountChanged)} == {
        w.id: wx.id,
        x.id: wx.id,
        wx.id: total.id,
        b.id: total.id,
        total.id: out.id,
    }


def test_a_tensor_is_met_once_and_counted_each_time() -> None:
    ctx = Context(1 << 20, no_alloc=True)
    a = ctx.new_tensor("F32", (4,), "a")
    square = ops.mul(ctx, a, a)
    graph = Graph(ctx, 8)
    with seen() as events:
        graph.build_forward_expand(square)
        graph.build_forward_expand(ops.add(ctx, square, a))
        graph.build_forward_expand(square)
    hits = events.of(AlreadyVisited)
    assert [e.tensor for e in hits] == [a.id, square.id, a.id, square.id]
    slots = {e.tensor: e.slot for e in events.of(VisitEnter)}
    assert all(e.slot == slots[e.tensor] for e in hits)
    assert [e.use_count for e in events.of(UseCountChanged) if e.tensor == a.id] == [1, 2, 3]
    assert [e.n_nodes for e in events.of(ExpandEnd)] == [1, 1, 0]
    assert graph.use_count(a) == 3
    assert graph.use_count(square) == 1


def test_what_has_no_name_gets_ggmls() -> None:
    ctx = Context(1 << 20, no_alloc=True)
    a, p = ctx.new_tensor("F32", (4,)), ctx.new_tensor("F32", (4,)).set_flag(FLAG_PARAM)
    graph = Graph(ctx, 8)
    with seen() as events:
        graph.build_forward_expand(ops.add(ctx, a, p))
    assert [e.name for e in events.of(TensorNamed)] == ["leaf_0", "node_0", "node_1"]
    assert graph.nodes[0] is p
    assert graph.get_tensor("node_0") is p
    assert graph.get_tensor("nobody") is None


def test_an_order_alone_sets_no_compute_flag_until_something_needs_it() -> None:
    ctx = Context(1 << 20, no_alloc=True)
    a = ctx.new_tensor("F32", (4,), "a")
    first = ops.relu(ctx, a)
    second = ops.sqr(ctx, first)
    graph = Graph(ctx, 8)
    graph.build_forward_order(second)
    assert (first.flags, second.flags) == (0, 0)
    with seen() as events:
        graph.build_forward_expand(ops.add(ctx, second, a))
    assert [(e.tensor, e.flags) for e in events.of(FlagsSet)] == [
        (t.id, FLAG_COMPUTE) for t in (graph.nodes[-1], second, first)
    ]
    assert [t.op for t in graph.nodes] == ["UNARY", "SQR", "ADD"]
    assert graph.use_count(first) == 1


def test_select_computes_one_of_several() -> None:
    ctx = Context(1 << 20, no_alloc=True)
    a = ctx.new_tensor("F32", (4,), "a")
    choices = [ops.relu(ctx, a), ops.sqr(ctx, a)]
    graph = Graph(ctx, 8)
    assert graph.build_forward_select(choices, 1) is choices[1]
    assert [t.flags for t in graph.nodes] == [0, FLAG_COMPUTE]
    with pytest.raises(VizggmlError, match="index 2 of 2"):
        graph.build_forward_select(choices, 2)


def test_sizes_are_ggmls() -> None:
    for size in (1, 2, 5, 17, 100, 513, 2048, 8192, 65536, 100000):
        assert graph_overhead_custom(size) == LIB.ggml_graph_overhead_custom(size, False)
        assert graph_overhead_custom(size, True) == LIB.ggml_graph_overhead_custom(size, True)
        assert hash_size(size) == LIB.ggml_hash_size(size)
    assert graph_overhead() == LIB.ggml_graph_overhead()
    assert hash_size(3_000_000_000) == LIB.ggml_hash_size(3_000_000_000)
    ctx, real = Context(1 << 20, no_alloc=True), Real(1 << 20)
    for size in (10, 300):
        with seen() as events:
            graph = Graph(ctx, size)
        real.graph(size)
        assert events.one(GraphCreated).hash_size == graph.hash_size == hash_size(2 * size)
        assert ctx.used_mem == real.used_mem()
    real.free()


def test_a_long_chain_needs_no_recursion() -> None:
    n = 100_000
    ctx = Context(n * 400 + graph_overhead_custom(n + 1), no_alloc=True)
    t = ctx.new_tensor("F32", (1,))
    for _ in range(n):
        t = ops.relu(ctx, t)
    graph = Graph(ctx, n + 1)
    graph.build_forward_expand(t)
    assert len(graph.nodes) == n
    assert graph.nodes[-1] is t
    late = ops.relu(ctx, t)
    for node in graph.nodes:
        node.flags = 0
    graph.build_forward_expand(late)
    assert {node.flags for node in graph.nodes} == {FLAG_COMPUTE}


def test_a_full_graph_says_so() -> None:
    ctx = Context(1 << 20, no_alloc=True)
    graph = Graph(ctx, 2)
    total = affine(ctx)[-2]
    with pytest.raises(VizggmlError, match=r"graph \d+ is full: no room for leaf 'b', its size is 2"):
        graph.build_forward_expand(total)
    graph = Graph(ctx, 2)
    t = ctx.new_tensor("F32", (1,))
    for _ in range(5):
        t = ops.relu(ctx, t)
    with pytest.raises(VizggmlError, match=r"hash set is full \(5 tensors\), no room for ''"):
        graph.build_forward_expand(t)
    assert bus.node == NO_TENSOR
    with pytest.raises(VizggmlError, match="size 0 is below 1"):
        Graph(ctx, 0)


def test_probes_count_the_slots_passed_over() -> None:
    """Three tensors whose hashes are 37 apart meet in a table of 37 slots."""
    ctx = Context(1 << 20, no_alloc=True)
    made = [ctx.new_tensor("F32", (1,)) for _ in range(75)]
    graph = Graph(ctx, 16)
    assert graph.hash_size == 37
    with seen() as events:
        for t in (made[0], made[37], made[74]):
            graph.build_forward_expand(t)
    assert [(e.slot, e.probes) for e in events.of(VisitEnter)] == [(0, 0), (1, 1), (2, 2)]
    a, b, c = (made[i].id for i in (0, 37, 74))
    taken = [(e.graph, e.tensor, e.slot, e.occupant) for e in events.of(SlotTaken)]
    assert taken == [(graph.id, b, 0, a), (graph.id, c, 0, a), (graph.id, c, 1, b)]


def test_probing_goes_on_at_the_beginning_of_the_table() -> None:
    """HASH_STEP is 23: the 8th tensor of a table of 37 belongs into slot 13, the 38th into slot 0, and so on."""
    ctx = Context(1 << 20, no_alloc=True)
    made = [ctx.new_tensor("F32", (1,)) for _ in range(80)]
    graph = Graph(ctx, 16)
    last = next(i for i in range(1, 37) if i * HASH_STEP % 37 == 36)
    with seen() as events:
        for t in (made[0], made[last], made[last + 37]):
            graph.build_forward_expand(t)
    assert [(e.slot, e.probes) for e in events.of(VisitEnter)] == [(0, 0), (36, 0), (1, 2)]
    assert [(e.slot, e.occupant) for e in events.of(SlotTaken)] == [(36, made[last].id), (0, made[0].id)]


@pytest.mark.parametrize("order", [LEFT_TO_RIGHT, RIGHT_TO_LEFT])
def test_both_evaluation_orders_are_ggmls(order: str) -> None:
    differ = 0
    for seed in range(40):
        steps = program(seed)
        # the graphs that are compared are made here, in the order asked for
        roots, steps.roots = steps.roots, []
        ours, reals = Ours(steps), Reals(steps)
        graph, real = Graph(Context(1 << 20, no_alloc=True), 512), Real(1 << 20)
        real_graph = real.graph(512)
        graph.order = order
        real_graph.set_order(int(order == RIGHT_TO_LEFT))
        for root, compute in roots:
            (graph.build_forward_expand if compute else graph.build_forward_order)(ours.tensors[root])
            build = real_graph.build_forward_expand if compute else real_graph.build_forward_order
            build(reals.tensors[root])
        number = {address: i for i, address in enumerate(reals.tensors)}
        place = {t.id: i for i, t in enumerate(ours.tensors)}
        nodes, leafs = [place[t.id] for t in graph.nodes], [place[t.id] for t in graph.leafs]
        assert nodes == [number[t] for t in real_graph.nodes]
        assert leafs == [number[t] for t in real_graph.leafs]
        for t in (*graph.nodes, *graph.leafs):
            assert graph.use_count(t) == real_graph.use_count(reals.tensors[place[t.id]])
        differ += nodes != sorted(nodes)
        reals.free()
        real.free()
    assert differ > 5


def test_a_cycle_is_refused_with_the_way_round() -> None:
    ctx = Context(1 << 20, no_alloc=True)
    a = ctx.new_tensor("F32", (4,), "a")
    first = ops.relu(ctx, a).set_name("first")
    second = ops.sqr(ctx, first).set_name("second")
    out = ops.add(ctx, a, ops.relu(ctx, second).set_name("third")).set_name("out")
    first.src = [second]
    with pytest.raises(VizggmlError, match=r"a tensor needs itself: 'second' <- 'first' <- 'second'$"):
        Graph(ctx, 8).build_forward_expand(out)
    # a cast names itself as its second source
    cast = ops.cast(ctx, a, "F16")
    assert cast.src == [a, cast]
    Graph(ctx, 8).build_forward_expand(cast)
    t = first
    for i in range(50):
        t = ops.relu(ctx, t).set_name(f"n{i}")
    first.src = [t]
    with pytest.raises(VizggmlError, match=r"'n49' <- 'n48' .* <- \(40 more\) <- .* 'n0' <- 'first' <- 'n49'$"):
        Graph(ctx, 100).build_forward_expand(t)
    assert bus.node == NO_TENSOR


def test_a_view_of_a_graph_is_a_run_of_its_nodes_with_the_counts_of_the_whole() -> None:
    ctx, other = Context(1 << 20, no_alloc=True), Context(1 << 12, no_alloc=True)
    w, x, _, wx, total, out = affine(ctx)
    graph = Graph(ctx, 8)
    graph.build_forward_expand(out)
    with seen() as events:
        part = graph.view(other, 1, 3)
    assert (part.nodes, part.leafs, part.size) == ([total, out], [], 2)
    assert [part.use_count(t) for t in (w, x, wx, total, out)] == [1, 1, 1, 1, 0]
    assert part.hash_keys is graph.hash_keys
    # it takes nothing of the arena, and ends with it
    assert (other.used_mem, list(other.graphs)) == (0, [part])
    assert [e.graph for e in events.of(NodeAppended)] == [part.id] * 2
    with seen() as events:
        other.free()
    assert events.one(GraphFreed).graph == part.id
    beside = Graph.beside(ctx, 2)
    beside.add_leaf(w)
    beside.add_node(wx)
    assert (beside.leafs, beside.nodes, beside.use_count(w)) == ([w], [wx], 0)
    assert set(ctx.graphs) == {graph, beside}


def test_adopting_an_order_counts_as_a_visit_does() -> None:
    ctx = Context(1 << 20, no_alloc=True)
    w, x, b, wx, total, out = affine(ctx)
    visited, adopted = Graph(ctx, 8), Graph(ctx, 8)
    visited.build_forward_expand(out)
    with seen() as events:
        adopted.adopt(visited.nodes, visited.leafs)
    assert [adopted.use_count(t) for t in (w, x, wx, b, total, out)] == [1, 1, 1, 1, 1, 0]
    assert [e.tensor for e in events.of(NodeAppended)] == [wx.id, total.id, out.id]
    assert [e.tensor for e in events.of(UseCountChanged)] == [w.id, x.id, wx.id, b.id, total.id]
    with pytest.raises(VizggmlError, match="'wx' is listed twice"):
        Graph(ctx, 8).adopt([wx, wx], [])


def test_a_graph_goes_with_its_context_and_can_be_told_again() -> None:
    ctx = Context(1 << 20, no_alloc=True)
    with seen() as told:
        graph = Graph(ctx, 8)
        graph.build_forward_expand(affine(ctx)[-1])
        ctx.get_tensor("out")
    assert graph in bus.standing
    snapshot = list(graph.snapshot())
    for kind in (GraphCreated, LeafAppended, NodeAppended):
        assert [(e.__class__, *_values(e)) for e in snapshot if isinstance(e, kind)] == [
            (e.__class__, *_values(e)) for e in told.of(kind)
        ]
    assert {(e.tensor, e.slot) for e in snapshot if isinstance(e, VisitEnter)} == {
        (e.tensor, e.slot) for e in told.of(VisitEnter)
    }
    counts = {e.tensor: e.use_count for e in snapshot if isinstance(e, UseCountChanged)}
    assert counts == {t.id: graph.use_count(t) for t in (*graph.nodes, *graph.leafs)}
    with seen() as events:
        ctx.reset()
    assert events.one(GraphFreed).graph == graph.id
    assert graph not in bus.standing


def _values(event: object) -> tuple[object, ...]:
    return tuple(getattr(event, name) for name in event.__slots__)  # type: ignore[attr-defined]
