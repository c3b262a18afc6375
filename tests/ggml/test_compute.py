"""Dispatch: what is computed, what is skipped, what is said about it; real addresses; failing kernels."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.oracle_graph import mirrored
from vizggml.errors import VizggmlError
from vizggml.events import (
    BarrierWait,
    ChunksTaken,
    ComputeBegin,
    ComputeEnd,
    Event,
    NodeBegin,
    NodeEnd,
    NodesFused,
    NodeSkipped,
    WorkTaken,
    bus,
)
from vizggml.ggml import ops, tape
from vizggml.ggml.buffer import alloc_ctx_tensors_from_buft, cpu_buffer_type
from vizggml.ggml.cgraph import Graph
from vizggml.ggml.compute import graph_compute
from vizggml.ggml.context import Context
from vizggml.ggml.cplan import Plan, graph_plan
from vizggml.ggml.gallocr import GraphAllocator
from vizggml.ggml.kernels import KERNELS
from vizggml.ggml.kernels.params import ComputeParams
from vizggml.ggml.tape import TapeKey, record_tape
from vizggml.ggml.tensor import Tensor
from vizggml.ggml.threadpool import ThreadPool


@contextmanager
def recorded() -> Iterator[list[Event]]:
    events: list[Event] = []
    unsubscribe = bus.subscribe(None, events.append)
    try:
        yield events
    finally:
        unsubscribe()


@pytest.fixture
def everything_is_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tape, "MIN_PARALLEL_WORK", 0)


class Attention:
    """A small attention layer: views, permutes, in-place candidates, a mask, a norm with its weight, an output."""

    def __init__(self, seed: int = 1, n_tokens: int = 5, n_head: int = 2, head: int = 32) -> None:
        width = n_head * head
        rng = np.random.default_rng(seed)
        self.weights_ctx = c = Context(1 << 20, no_alloc=True)
        names = ("wq", "wk", "wv", "wo")
        weights = {name: c.new_tensor("F32", (width, width), name=name) for name in names}
        weights["norm"] = c.new_tensor("F32", (width,), name="norm")
        alloc_ctx_tensors_from_buft(c, cpu_buffer_type(), "weights")
        for t in weights.values():
            t.set(rng.standard_normal(t.nelements, np.float32) / np.sqrt(width))

        self.ctx = c = Context(1 << 20, no_alloc=True)
        self.x = x = c.new_tensor("F32", (width, n_tokens), name="x").set_input()
        self.pos = pos = c.new_tensor("I32", (n_tokens,), name="pos").set_input()
        self.mask = mask = c.new_tensor("F32", (n_tokens, n_tokens), name="mask").set_input()
        self.normed = cur = ops.mul(c, ops.rms_norm(c, x, 1e-5), weights["norm"])
        q, k, v = (
            ops.reshape_3d(c, ops.mul_mat(c, weights[w], cur), head, n_head, n_tokens) for w in ("wq", "wk", "wv")
        )
        q, k = ops.rope(c, q, pos, head, 2), ops.rope(c, k, pos, head, 2)
        q, k = ops.permute(c, q, 0, 2, 1, 3), ops.permute(c, k, 0, 2, 1, 3)
        kq = ops.soft_max_ext(c, ops.mul_mat(c, k, q), mask, head**-0.5, 0.0)
        kqv = ops.mul_mat(c, ops.cont(c, ops.permute(c, v, 1, 2, 0, 3)), kq)
        merged = ops.cont_2d(c, ops.permute(c, kqv, 0, 2, 1, 3), width, n_tokens)
        self.out = ops.add(c, ops.mul_mat(c, weights["wo"], merged), x).set_name("out").set_output()
        self.graph = Graph(c, 64)
        self.graph.build_forward_expand(self.out)
        self.inputs = {
            "x": rng.standard_normal((n_tokens, width), np.float32),
            "pos": np.arange(n_tokens),
            "mask": np.where(np.tri(n_tokens, dtype=bool), 0, -np.inf),
        }

    def allocated(self) -> Attention:
        self.galloc = GraphAllocator(cpu_buffer_type())
        self.galloc.alloc_graph(self.graph)
        return self.filled()

    def filled(self) -> Attention:
        for t in (self.x, self.pos, self.mask):
            t.set(self.inputs[t.name])
        return self

    def theirs(self, t: Tensor) -> NDArray[np.float32]:
        with mirrored(self.graph) as ggml:
            ggml.compute(2)
            return ggml.array(t).copy()

    def result(self, **how: object) -> NDArray[np.float32]:
        self.filled()
        graph_compute(self.graph, graph_plan(self.graph, 1), fast=False, **how)  # type: ignore[arg-type]
        return np.array(self.out.array())


def test_a_graph_gives_what_real_ggml_gives() -> None:
    layer = Attention().allocated()
    expected = layer.theirs(layer.out)
    np.testing.assert_allclose(layer.result(), expected, rtol=2e-5, atol=2e-6)
    np.testing.assert_allclose(layer.result(textbook=True), expected, rtol=2e-5, atol=2e-6)


@pytest.mark.usefixtures("everything_is_wide")
@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_threads_do_not_change_a_bit(n_threads: int) -> None:
    layer = Attention().allocated()
    alone = layer.result()
    layer.filled()
    plan = graph_plan(layer.graph, n_threads)
    for _ in range(3):
        layer.filled()
        graph_compute(layer.graph, plan, fast=False)
        np.testing.assert_allclose(layer.out.array(), alone, rtol=1e-5, atol=1e-6)


def last_uses(g: Graph) -> dict[int, int]:
    """For each tensor that owns bytes, the last node that reads or writes them, through views or not."""
    last: dict[int, int] = {}
    for i, node in enumerate(g.nodes):
        for t in (node, *node.src):
            if t is not None:
                root = t if t.view_src is None else t.view_src
                last[root.id] = i
    for t in (*g.nodes, *g.leafs):
        if t.flags & 2:
            last[t.id] = len(g.nodes)
    return last


def poisoner(g: Graph, buffer: NDArray[np.uint8]) -> Callable[[Tensor], None]:
    """Fills, before each node, every byte of `buffer` that holds nothing that is still needed."""
    last = last_uses(g)
    owners = [t for t in (*g.leafs, *g.nodes) if t.view_src is None and t.data is not None]

    def poison(node: Tensor) -> None:
        i = g.index_of(node)
        keep = np.zeros(buffer.nbytes, bool)
        for t in owners:
            born = g.index_of(t)
            if t.data is not None and t.data.memory is buffer and born < i and last.get(t.id, -1) >= i:
                keep[t.data.offset : t.data.offset + t.nbytes] = True
        buffer[~keep] = 0xFF

    return poison


def compute_buffer(layer: Attention) -> NDArray[np.uint8]:
    assert layer.out.data is not None
    return layer.out.data.memory


def test_addresses_are_real_so_poison_elsewhere_changes_nothing() -> None:
    layer = Attention().allocated()
    expected = layer.result()
    layer.filled()
    poison = poisoner(layer.graph, compute_buffer(layer))
    assert np.array_equal(layer.result(before_node=poison), expected)


def test_addresses_are_real_so_overlapping_live_tensors_breaks_the_result() -> None:
    layer = Attention().allocated()
    expected = layer.result()
    q, k = (t for t in layer.graph.nodes if t.op == "ROPE")
    assert q.data is not None
    k.data = q.data
    for t in layer.graph.nodes:
        if t.view_src is k:
            t.data = k.data
    assert not np.allclose(layer.result(), expected)


def test_empty_ops_and_nodes_without_the_compute_flag_are_skipped() -> None:
    c = Context(1 << 16)
    x = c.new_tensor("F32", (4,), name="x").set([1, 2, 3, 4])
    unwanted = ops.scale(c, x, 10.0)
    wanted = ops.add(c, ops.view_1d(c, x, 4, 0), x)
    nothing = ops.add(c, c.new_tensor("F32", (0,)), c.new_tensor("F32", (0,)))
    g = Graph(c, 16)
    g.build_forward_order(unwanted)
    g.build_forward_expand(wanted)
    g.build_forward_expand(nothing)
    unwanted.set([7, 7, 7, 7])
    with recorded() as events:
        graph_compute(g, graph_plan(g, 1), fast=False)
    assert unwanted.array().ravel().tolist() == [7, 7, 7, 7]
    assert wanted.array().ravel().tolist() == [2, 4, 6, 8]
    assert [(e.tensor, e.why, e.node) for e in events if isinstance(e, NodeSkipped)] == [
        (unwanted.id, "no compute flag", unwanted.id),
        (wanted.src[0].id, "empty op", wanted.src[0].id),  # type: ignore[union-attr]
        (nothing.id, "empty tensor", nothing.id),
    ]


def test_events_of_one_thread() -> None:
    layer = Attention().allocated()
    g = layer.graph
    plan = graph_plan(g, 1)
    with recorded() as events:
        graph_compute(g, plan, fast=False, fuse=False)
    first, last = events[0], events[-1]
    assert isinstance(first, ComputeBegin)
    assert (first.graph, first.n_nodes, first.n_threads) == (g.id, len(g.nodes), 1)
    assert isinstance(last, ComputeEnd)
    computed = [n.id for n in g.nodes if n.op not in tape.EMPTY_OPS]
    begins = [e for e in events if isinstance(e, NodeBegin)]
    ends = [e for e in events if isinstance(e, NodeEnd)]
    assert [e.tensor for e in begins] == [e.tensor for e in ends] == [e.node for e in begins] == computed
    assert all(e.thread == 0 for e in (*begins, *ends))
    assert [e.cause for e in ends] == [e.seq for e in begins]
    times = [t for begin, end in zip(begins, ends, strict=True) for t in (begin.ns, end.ns)]
    assert times == sorted(times)
    assert times[-1] <= last.ns
    assert not [e for e in events if isinstance(e, BarrierWait)]
    assert bus.node == -1


@pytest.mark.usefixtures("everything_is_wide")
def test_a_parallel_node_is_told_after_the_barrier_in_thread_order() -> None:
    layer = Attention().allocated()
    g = layer.graph
    with ThreadPool(3) as pool:
        plan = graph_plan(g, 3, pool)
        with recorded() as events:
            graph_compute(g, plan, fast=False)
    wide = next(n for n in g.nodes if n.op == "MUL_MAT")
    told = [e for e in events if isinstance(e, NodeBegin | NodeEnd | BarrierWait) and e.tensor == wide.id]
    assert [(type(e), e.thread) for e in told] == [
        (kind, thread) for kind in (NodeBegin, NodeEnd, BarrierWait) for thread in range(3)
    ]
    begins = {e.thread: e for e in told if isinstance(e, NodeBegin)}
    ends = {e.thread: e for e in told if isinstance(e, NodeEnd)}
    waits = {e.thread: e for e in told if isinstance(e, BarrierWait)}
    latest = max(e.ns for e in ends.values())
    for thread in range(3):
        assert begins[thread].ns <= ends[thread].ns
        assert waits[thread].ns == latest - ends[thread].ns
        assert ends[thread].cause == waits[thread].cause == begins[thread].seq


@pytest.mark.usefixtures("everything_is_wide")
@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("fast", [False, True])
def test_a_matrix_product_tells_its_chunks(n_threads: int, fast: bool) -> None:
    """64 x 5 on one thread: ceil(64 / 16) = 4 chunks, 4 >= 4; on two 4 < 8, so each has a share of the 64 rows.

    Compiled, in tiles of 32 rows, there are 2 chunks only.
    """
    layer = Attention().allocated()
    g = layer.graph
    plan = graph_plan(g, n_threads)
    with recorded() as events:
        for _ in range(2):
            layer.filled()
            graph_compute(g, plan, fast=fast)
    node = next(n for n in g.nodes if n.op == "MUL_MAT")
    alone = (1, 64, 5, False, (1,)) if fast else (4, 16, 5, True, (4,))
    shapes = alone if n_threads == 1 else (2, 32, 5, False, (1, 1))
    begins = [e for e in events if isinstance(e, NodeBegin) and e.tensor == node.id and e.thread == 0]
    told = [e for e in events if isinstance(e, ChunksTaken) and e.tensor == node.id]
    assert [(e.graph, e.expert, e.n_chunks, e.rows, e.columns, e.handed_out, e.taken) for e in told] == [
        (g.id, -1, *shapes)
    ] * 2
    assert [(e.node, e.cause) for e in told] == [(node.id, begin.seq) for begin in begins]
    assert {e.tensor for e in events if isinstance(e, ChunksTaken)} == {n.id for n in g.nodes if n.op == "MUL_MAT"}


@pytest.mark.usefixtures("everything_is_wide")
def test_who_slept_was_woken_and_who_polled_was_not() -> None:
    layer = Attention().allocated()
    for poll in (0, 100):
        with ThreadPool(3, poll) as pool:
            plan = graph_plan(layer.graph, 3, pool)
            record_tape(plan, TapeKey(False, False, True))
            if poll:
                # who polls does not stop polling: the first look is still under way when work comes
                pool.poll_compiled(lambda address, seen, n_rounds: looked(address, seen))
            pool.run(lambda ith: None, 3)
            with recorded() as events:
                graph_compute(layer.graph, plan, fast=False)
        begins = [e for e in events if isinstance(e, NodeBegin) and e.thread > 0]
        told = [e for e in events if isinstance(e, WorkTaken)]
        assert [(e.graph, e.tensor, e.thread, e.cause) for e in told] == [
            (layer.graph.id, e.tensor, e.thread, e.seq) for e in begins
        ]
        assert begins
        assert {e.polling for e in told} == {poll > 0}


def looked(address: int, seen: int) -> int:
    """As compiled polling, without an end."""
    number = ctypes.c_int64.from_address(address)
    while number.value == seen:
        time.sleep(0)
    return 0


@pytest.mark.usefixtures("everything_is_wide")
def test_a_trace_is_the_same_twice_but_for_times() -> None:
    layer = Attention().allocated()
    plan = graph_plan(layer.graph, 2)

    def told() -> list[tuple[object, ...]]:
        with recorded() as events:
            graph_compute(layer.graph, plan, fast=False)
        return [(type(e), e.seq, e.node, e.cause, getattr(e, "tensor", 0), getattr(e, "thread", 0)) for e in events]

    assert told() == told()


def test_a_norm_and_its_weight_are_fused_as_ggml_fuses_them() -> None:
    layer = Attention().allocated()
    norm, mul = layer.normed.src[0], layer.normed
    assert norm is not None
    with recorded() as events:
        graph_compute(layer.graph, graph_plan(layer.graph, 1), fast=False)
    (fused,) = [e for e in events if isinstance(e, NodesFused)]
    assert (fused.graph, fused.tensor, fused.fused, fused.node) == (layer.graph.id, norm.id, (mul.id,), norm.id)
    assert mul.id not in [e.tensor for e in events if isinstance(e, NodeBegin)]
    np.testing.assert_allclose(layer.result(), layer.result(fuse=False), rtol=1e-6)


@pytest.mark.parametrize("spoiled", ["used twice", "output", "other shape", "F16 weight", "view", "not the next"])
def test_what_prevents_fusion(spoiled: str) -> None:
    c = Context(1 << 16)
    x = c.new_tensor("F32", (4, 1 if spoiled == "other shape" else 3), name="x").set(
        np.arange(4 if spoiled == "other shape" else 12)
    )
    norm = (ops.rms_norm_inplace if spoiled == "view" else ops.rms_norm)(c, x, 1e-5)
    weight = c.new_tensor("F32", (4, 3) if spoiled == "other shape" else (4,), name="w")
    weight.set(np.ones(weight.nelements))
    mul = ops.mul(c, weight, norm) if spoiled == "other shape" else ops.mul(c, norm, weight)
    out = mul
    if spoiled == "used twice":
        out = ops.add(c, mul, norm)
    if spoiled == "output":
        norm.set_output()
    if spoiled == "F16 weight":
        mul.src[1] = c.new_tensor("F16", (4,), name="w16")
    g = Graph(c, 16)
    if spoiled == "not the next":
        g.build_forward_expand(norm)
        g.build_forward_expand(ops.scale(c, x, 2.0))
    g.build_forward_expand(out)
    assert not tape.can_fuse(g, g.index_of(norm))


def test_hooks_see_every_computed_node_by_itself_and_its_value() -> None:
    layer = Attention().allocated()
    before: list[int] = []
    after: dict[int, NDArray[np.float32]] = {}

    def keep(t: Tensor) -> None:
        after[t.id] = np.array(t.array())

    layer.result(before_node=lambda t: before.append(t.id), after_node=keep)
    computed = [n for n in layer.graph.nodes if n.op not in tape.EMPTY_OPS]
    assert before == list(after) == [n.id for n in computed]
    norm = layer.normed.src[0]
    assert norm is not None
    x = layer.inputs["x"]
    np.testing.assert_allclose(after[norm.id][0, 0], x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5), rtol=1e-5)


def test_values_are_handed_over_at_the_end_of_each_node() -> None:
    layer = Attention().allocated()
    seen: list[tuple[object, bool]] = []
    with recorded() as events:
        bus.values = lambda t: seen.append((t, isinstance(events[-1], NodeEnd) and events[-1].tensor == t.id))  # type: ignore[attr-defined]
        try:
            layer.result()
        finally:
            bus.values = None
    assert seen == [(n, True) for n in layer.graph.nodes if n.op not in tape.EMPTY_OPS]


def graph_of_one(op: str, type: str = "F32") -> tuple[Graph, Tensor]:
    c = Context(1 << 16)
    node = c.new_tensor(type, (4,), name="odd")
    node.op, node.src = op, [c.new_tensor(type, (4,), name="x")]
    g = Graph(c, 8)
    g.build_forward_expand(node)
    return g, node


def test_an_op_without_a_kernel_says_so_before_anything_is_computed() -> None:
    g, _ = graph_of_one("POOL_2D")
    with pytest.raises(VizggmlError, match=r"node 'odd': op POOL_2D has no kernel \(F32 to F32\)"):
        graph_compute(g, graph_plan(g, 1), fast=False)


def test_a_type_without_a_kernel_names_op_node_and_type() -> None:
    g, _ = graph_of_one("SQR", "I32")
    with recorded() as events, pytest.raises(VizggmlError, match="node 'odd': op SQR has no kernel for I32 to I32"):
        graph_compute(g, graph_plan(g, 1), fast=False)
    assert bus.node == -1
    assert not [e for e in events if isinstance(e, ComputeEnd)]


def test_a_plan_of_another_graph_is_refused() -> None:
    one, two = Attention().allocated(), Attention().allocated()
    with pytest.raises(VizggmlError, match=f"graph {one.graph.id}: the plan was made for graph {two.graph.id}"):
        graph_compute(one.graph, graph_plan(two.graph, 1))


@pytest.mark.usefixtures("everything_is_wide")
@pytest.mark.parametrize("watched", [False, True])
@pytest.mark.parametrize("where", [0, 1])
def test_a_kernel_that_fails_on_any_thread_reaches_the_caller(
    monkeypatch: pytest.MonkeyPatch, where: int, watched: bool
) -> None:
    def broken(params: ComputeParams, dst: Tensor) -> None:
        if params.ith == where:
            raise VizggmlError(f"thread {params.ith} gave up")
        params.barrier()

    layer = Attention().allocated()
    plan = graph_plan(layer.graph, 2)
    with monkeypatch.context() as patch:
        patch.setitem(KERNELS, "CONT", broken)
        for _ in range(2):
            with pytest.raises(VizggmlError, match=f"thread {where} gave up"):
                graph_compute(layer.graph, plan, fast=False, before_node=(lambda t: None) if watched else None)
    plan.tapes.clear()
    alone = layer.result()
    layer.filled()
    graph_compute(layer.graph, plan, fast=False)
    np.testing.assert_allclose(layer.out.array(), alone, rtol=1e-5, atol=1e-6)


def steps_of(plan: Plan) -> dict[str, list[int]]:
    widths: dict[str, list[int]] = {}
    for step in record_tape(plan, TapeKey(False, False, True)).steps:
        widths.setdefault(step.node.op, []).append(step.width)
    return widths


def test_small_nodes_stay_on_one_thread_and_no_node_gets_more_than_its_tasks() -> None:
    small = steps_of(graph_plan(Attention().allocated().graph, 2))
    assert {w for widths in small.values() for w in widths} <= {0, 1}
    large = steps_of(graph_plan(Attention(n_tokens=300, n_head=4, head=64).allocated().graph, 2))
    assert large["MUL_MAT"] == [2] * 6
    assert large["SOFT_MAX"] == [2]
    assert large["RESHAPE"] == [0] * 3


def test_the_tape_is_recorded_once() -> None:
    layer = Attention().allocated()
    plan = graph_plan(layer.graph, 1)
    graph_compute(layer.graph, plan, fast=False)
    (first,) = plan.tapes.values()
    graph_compute(layer.graph, plan, fast=False)
    assert list(plan.tapes.values()) == [first]
    graph_compute(layer.graph, plan, fast=False, textbook=True)
    assert len(plan.tapes) == 2


def test_fast_kernels_when_they_are_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tape, "fast_kernels", dict)
    assert not tape.fast_wanted(None)
    assert not tape.fast_wanted(False)
    with pytest.raises(VizggmlError, match="Numba is not installed"):
        tape.fast_wanted(True)
    monkeypatch.setattr(tape, "fast_kernels", lambda: KERNELS)
    assert tape.fast_wanted(None)
    monkeypatch.setenv("VIZGGML_FAST", "0")
    assert not tape.fast_wanted(None)
    assert tape.fast_wanted(True)


def test_a_fast_kernel_takes_the_place_of_its_twin(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = Attention().allocated()
    calls: list[str] = []

    def twin(params: ComputeParams, dst: Tensor) -> None:
        calls.append(dst.op)
        KERNELS[dst.op](params, dst)

    monkeypatch.setattr(tape, "fast_kernels", lambda: {"SOFT_MAX": twin})
    graph_compute(layer.graph, graph_plan(layer.graph, 1))
    assert calls == ["SOFT_MAX"]
