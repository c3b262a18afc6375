"""Liveness: by hand, against a count that asks at each node for each tensor whether it is needed, and the allocator."""

from __future__ import annotations

import random

import pytest

from tests.ggml.programs import Ours, program
from tests.ggml.seen import Seen, seen
from tests.ggml.test_cgraph import affine
from vizggml.errors import VizggmlError
from vizggml.events import ParentReused, TensorAssigned, TensorFreed, TensorId
from vizggml.ggml import ops
from vizggml.ggml.buffer import BufferType, alloc_ctx_tensors_from_buft, cpu_buffer_type
from vizggml.ggml.cgraph import Graph
from vizggml.ggml.context import Context
from vizggml.ggml.gallocr import GraphAllocator
from vizggml.ggml.graph_file import graph_json, parse_graph, report_of
from vizggml.ggml.liveness import Liveness, graph_liveness, is_external, live_report, places_planned, places_reported
from vizggml.ggml.tensor import Tensor
from vizggml.ggml.types import FLAG_INPUT, FLAG_OUTPUT, pad


def expanded(ctx: Context, *outputs: Tensor) -> Graph:
    graph = Graph(ctx, 64)
    for t in outputs:
        graph.build_forward_expand(t)
    return graph


def spans(found: Liveness) -> dict[str, tuple[int, int, int]]:
    """By name: born, died, padded bytes."""
    return {life.tensor.name: (life.born, life.died, life.held) for life in found.lives}


def planned(graph: Graph, alignment: int = 32) -> GraphAllocator:
    galloc = GraphAllocator(BufferType("CPU", alignment))
    galloc.reserve_n_size(graph)
    return galloc


def test_the_first_lesson() -> None:
    """relu(W x + b): W and x are read by node 0, b by node 1; the sums take over the product's 8 bytes.

    Node 0 needs 24 + 12 + 8 + 8 bytes, each padded to 32: 128. Nodes 1 and 2 need b and one result, and one result.
    """
    ctx = Context(1 << 20, no_alloc=True)
    w, x, b, wx, total, out = affine(ctx)
    graph = expanded(ctx, out)
    found = graph_liveness(graph)
    lives = [(life.tensor, life.born, life.died, life.size, life.held) for life in found.lives]
    assert lives == [(w, 0, 0, 24, 32), (x, 0, 0, 12, 32), (b, 0, 1, 8, 32), (wx, 0, 1, 8, 32), *lives[4:]]
    assert lives[4:] == [(total, 1, 2, 8, 32), (out, 2, 2, 8, 32)]
    assert [life.reuses for life in found.lives] == [None, None, None, None, wx, total]
    assert found.live == (128, 64, 32)
    assert found.live_unpadded == (52, 16, 8)
    assert (found.bound, found.bound_unpadded, found.bound_at) == (128, 52, 0)
    assert (found.no_reuse, found.no_reuse_unpadded) == (6 * 32, 24 + 12 + 4 * 8)
    apart = graph_liveness(graph, in_place=False)
    assert apart.live == (128, 96, 64)
    assert [life.taken for life in apart.lives] == [False] * 6


def test_what_the_allocator_makes_of_it() -> None:
    """128 bytes, reached at node 0 with four tensors; nothing is lost."""
    ctx = Context(1 << 20, no_alloc=True)
    w, x, b, wx, _, out = affine(ctx)
    graph = expanded(ctx, out)
    reached = graph_liveness(graph).reached(places_planned(planned(graph)))
    assert (reached.peak, reached.position, reached.bound, reached.above_bound) == (128, 0, 128, 0)
    assert reached.heights == (128, 128, 128)
    assert [(life.tensor, chunk, offset) for life, chunk, offset in reached.standing] == [
        (w, (0, 0), 0),
        (x, (0, 0), 32),
        (b, (0, 0), 64),
        (wx, (0, 0), 96),
    ]
    assert (reached.holes, reached.fragmentation) == (0, 0.0)


def test_a_diamond() -> None:
    """a splits into two matrix products that are added: a must live until the second is made."""
    ctx = Context(1 << 20, no_alloc=True)
    w = ctx.new_tensor("F32", (16, 16), "w")
    alloc_ctx_tensors_from_buft(ctx, cpu_buffer_type(), "weights")
    a = ctx.new_tensor("F32", (16,), "a").set_input()
    left = ops.mul_mat(ctx, w, a).set_name("left")
    right = ops.mul_mat(ctx, w, a).set_name("right")
    out = ops.add(ctx, left, right).set_name("out")
    found = graph_liveness(expanded(ctx, out))
    # w has memory of its own
    assert spans(found) == {"a": (0, 1, 64), "left": (0, 2, 64), "right": (1, 2, 64), "out": (2, 2, 64)}
    # at the sum: left, whose place it takes, and right
    assert found.live == (128, 192, 128)
    assert (found.bound, found.bound_at, found.no_reuse) == (192, 1, 256)
    assert [life.tensor.name for life in found.at(2)] == ["right", "out"]


def test_views_keep_their_source() -> None:
    """t -> transpose -> view of that -> cont: t lives until the cont, though it is last read itself by node 1."""
    ctx = Context(1 << 20, no_alloc=True)
    x = ctx.new_tensor("F32", (4, 4), "x")
    t = ops.sqr(ctx, ops.cont(ctx, x).set_name("copy")).set_name("t")
    turned = ops.transpose(ctx, t).set_name("turned")
    flat = ops.reshape_1d(ctx, ops.cont(ctx, x).set_name("other"), 16).set_name("flat")
    graph = expanded(ctx, flat, ops.cont(ctx, turned).set_name("end"))
    assert [n.name for n in graph.nodes] == ["other", "flat", "copy", "t", "turned", "end"]
    found = graph_liveness(graph)
    # nobody reads flat, a view of other: it is a result, and other stays; t is sqr in the place of copy
    assert spans(found) == {
        "x": (0, 2, 64),
        "other": (0, 5, 64),
        "copy": (2, 3, 64),
        "t": (3, 5, 64),
        "end": (5, 5, 64),
    }
    assert found.live == (128, 128, 192, 128, 128, 192)


def test_an_output_stays() -> None:
    """The same chain twice, the middle an output once: then it stays, and is not taken over."""
    live = {}
    for output in (False, True):
        ctx = Context(1 << 20, no_alloc=True)
        a = ops.cont(ctx, ctx.new_tensor("F32", (8,), "x")).set_name("a")
        if output:
            a.set_output()
        found = graph_liveness(expanded(ctx, ops.cont(ctx, ops.relu(ctx, a))))
        assert spans(found)["a"] == (0, 2 if output else 1, 32)
        live[output] = found.live
    assert live == {False: (64, 32, 64), True: (64, 64, 96)}


def test_inputs_live_from_the_start() -> None:
    """A node that is an input has its place before anything is computed: an earlier node must not lie there."""
    ctx = Context(1 << 20, no_alloc=True)
    a = ops.cont(ctx, ctx.new_tensor("F32", (8,), "x"))
    b = ops.cont(ctx, ctx.new_tensor("F32", (8,), "y")).set_name("b").set_input()
    found = graph_liveness(expanded(ctx, ops.mul_mat(ctx, a, b)))
    assert spans(found)["b"] == (0, 2, 32)


def test_a_view_without_an_op_is_no_result() -> None:
    """It stands in the order, as a scheduler adds it, only to keep its sources: t is needed no longer than x."""
    ctx = Context(1 << 20, no_alloc=True)
    x = ctx.new_tensor("F32", (8,), "x")
    t = ops.cont(ctx, x).set_name("t")
    graph = expanded(ctx, ops.cont(ctx, t), ops.cont(ctx, x).set_name("late"))
    view = ctx.new_view(t, (8,))
    view.src = [x]
    graph.add_node(view)
    found = graph_liveness(graph)
    with seen() as events:
        planned(graph)
    assert list(found.live) == followed(graph, events, 32) == [64, 96, 96, 96]
    assert spans(found)["t"] == (0, 1, 32)


def test_a_node_that_is_an_input_takes_nothing_over() -> None:
    """It had its place before. Nor does a node whose parent has other strides, though the same shape."""
    for change in ("input", "strides", ""):
        ctx = Context(1 << 20, no_alloc=True)
        a = ops.cont(ctx, ctx.new_tensor("F32", (4, 2), "x"))
        r = ops.relu(ctx, a)
        if change == "input":
            r.set_input()
        elif change == "strides":
            a.nb = (4, 32, 64, 64)
        graph = expanded(ctx, r)
        found = graph_liveness(graph)
        with seen() as events:
            planned(graph)
        assert [life.tensor for life in found.lives if life.taken] == ([] if change else [a])
        assert list(found.live) == followed(graph, events, 32)


def test_a_hole_is_seen() -> None:
    """x 0, y 32 and z 64, freed in this order, leave holes into which a larger tensor does not fit."""
    ctx = Context(1 << 20, no_alloc=True)
    small, large = ctx.new_tensor("F32", (8, 1), "small"), ctx.new_tensor("F32", (8, 2), "large")
    a = ops.cont(ctx, small).set_name("a")
    b = ops.cont(ctx, large).set_name("b")
    graph = expanded(ctx, a, ops.mul_mat(ctx, b, b).set_name("c"))
    # leafs: small 0, large 32 to 96; a at 96 stays; small is free: 32 bytes, and b needs 64: at 128 up to 192;
    # large is free, 96 bytes together with small's: c lies at 0
    found = graph_liveness(graph)
    assert found.live == (128, 160, 128)
    reached = found.reached(places_planned(planned(graph)))
    assert (reached.peak, reached.position, reached.holes, reached.above_bound) == (192, 1, 32, 32)
    assert reached.fragmentation == 32 / 192
    assert [(life.tensor.name, offset) for life, _, offset in reached.standing] == [
        ("large", 32),
        ("b", 128),
        ("a", 96),
    ]


def test_a_graph_of_leafs_alone() -> None:
    ctx = Context(1 << 20, no_alloc=True)
    found = graph_liveness(expanded(ctx, ctx.new_tensor("F32", (8,)), ctx.new_tensor("F32", (9,))))
    assert (found.live, found.bound, found.no_reuse) == ((96,), 96, 96)
    assert live_report(found, {}) == {"bound": 96, "no_reuse": 96, "peak_node": None}
    empty = graph_liveness(expanded(ctx))
    assert (empty.live, empty.reached({}).fragmentation) == ((0,), 0.0)


def test_another_graphs_plan_is_refused() -> None:
    ctx = Context(1 << 20, no_alloc=True)
    found = graph_liveness(expanded(ctx, ops.relu(ctx, ctx.new_tensor("F32", (8,), "x"))))
    with pytest.raises(VizggmlError, match="tensor 'x' has no place in the plan"):
        found.reached({})


def needed(graph: Graph, t: Tensor, position: int) -> bool:
    """Whether `t`'s bytes must be there while the node at `position` is computed, asked of the graph anew each time."""
    nodes = graph.nodes
    if t not in graph.leafs and not t.flags & FLAG_INPUT and position < nodes.index(t):
        return False
    family = [v for v in (*nodes, *graph.leafs) if v is t or v.view_src is t]
    if t.flags & FLAG_OUTPUT or any(not any(v in n.src for n in nodes) for v in family):
        return True
    return any(v in n.src for v in family for n in nodes[position:]) or (t in nodes and nodes.index(t) == position)


def by_hand(graph: Graph, alignment: int) -> list[int]:
    """The padded live set at each node, no place taken over."""
    owners = [t for t in (*graph.leafs, *graph.nodes) if t.view_src is None and not is_external(t)]
    return [
        sum(pad(t.nbytes, alignment) for t in owners if needed(graph, t, position))
        for position in range(len(graph.nodes))
    ]


def followed(graph: Graph, events: Seen, alignment: int) -> list[int]:
    """The padded bytes that the allocator holds when it has placed each node, from what it says itself."""
    sizes: dict[TensorId, int] = {}
    live = 0
    most = [0] * len(graph.nodes)
    changes = [0] * len(graph.nodes)
    order = {t.id: i for i, t in enumerate(graph.nodes)}
    after = [0] * (len(graph.nodes) + 1)
    for e in events:
        if isinstance(e, (TensorAssigned, ParentReused)):
            sizes[e.tensor] = pad(e.size, alignment)
            at = 0 if e.node not in order or _is_input(graph, e.tensor) else order[e.node]
            changes[at] += sizes[e.tensor] - (sizes[e.parent] if isinstance(e, ParentReused) else 0)
        elif isinstance(e, TensorFreed):
            after[order[e.by]] -= sizes[e.tensor]
    for position in range(len(graph.nodes)):
        live += changes[position]
        most[position] = live
        live += after[position]
    return most


def _is_input(graph: Graph, id: TensorId) -> bool:
    return any(t.id == id and t.flags & FLAG_INPUT for t in graph.nodes)


@pytest.mark.parametrize("block", range(4))
def test_random_graphs(block: int) -> None:
    for seed in range(40 * block, 40 * block + 40):
        alignment, max_size = random.Random(seed).choice(((8, None), (32, None), (64, 1024)))
        graph = Ours(program(seed)).graph
        buft = BufferType("CPU", alignment) if max_size is None else BufferType("CPU", alignment, max_size)
        if not graph.nodes:
            continue
        assert list(graph_liveness(graph, buft, in_place=False).live) == by_hand(graph, alignment), seed
        for in_place in (True, False):
            found = graph_liveness(graph, buft, in_place=in_place)
            galloc = GraphAllocator(buft, in_place=in_place)
            with seen() as events:
                sizes = galloc.reserve_n_size(graph)
            assert list(found.live) == followed(graph, events, alignment), seed
            reused = {e.tensor: e.parent for e in events.of(ParentReused)}
            assert {x.tensor.id: x.reuses.id for x in found.lives if x.reuses is not None} == reused
            reached = found.reached(places_planned(galloc))
            assert reached.peak == sum(sizes)
            assert found.bound_unpadded <= found.bound <= max(reached.heights) <= reached.peak
            assert reached.holes >= 0
            assert all(height >= live for height, live in zip(reached.heights, found.live, strict=True))


def test_the_same_from_a_graph_file_and_after_the_memory_is_there() -> None:
    for seed in range(20):
        graph = Ours(program(seed)).graph
        file = parse_graph(graph_json(graph))
        report = report_of(file)
        found = graph_liveness(file.graph)
        reached = found.reached(places_reported(report, file.tensors))
        assert reached.peak == report["size"]
        before = graph_liveness(graph)
        GraphAllocator(cpu_buffer_type()).alloc_graph(graph)
        assert graph_liveness(graph).live == before.live == found.live
        answer = live_report(found, file.tensors)
        assert (answer["bound"], answer["no_reuse"]) == (found.bound, found.no_reuse)
        node = answer["peak_node"]
        assert node is None or file.tensors[node] is file.graph.nodes[found.bound_at]
