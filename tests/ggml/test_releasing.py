"""The teaching switch: memory is given out while computing, and back when a use count reaches zero."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ggml.test_compute import Attention, recorded
from vizggml.errors import VizggmlError
from vizggml.events import (
    BlockChosen,
    BlockMerged,
    ChunkGrown,
    ComputeBegin,
    ComputeEnd,
    Event,
    NodeBegin,
    NodeEnd,
    NodeSkipped,
    Released,
    TensorAssigned,
    UseCountChanged,
    bus,
)
from vizggml.ggml import ops
from vizggml.ggml.buffer import alloc_ctx_tensors_from_buft, cpu_buffer_type
from vizggml.ggml.cgraph import Graph
from vizggml.ggml.compute import compute_releasing
from vizggml.ggml.context import Context
from vizggml.ggml.tensor import Tensor


def lesson() -> tuple[Graph, dict[str, Tensor]]:
    """relu(W x + b) with W 3x2: three results of 8 bytes."""
    weights = Context(1 << 16)
    W = weights.new_tensor("F32", (3, 2), name="W").set([[1, 2, 3], [4, 5, 6]])
    x = weights.new_tensor("F32", (3,), name="x").set([1, 0, -1])
    b = weights.new_tensor("F32", (2,), name="b").set([5, 1])
    c = Context(1 << 16, no_alloc=True)
    wx = ops.mul_mat(c, W, x).set_name("wx")
    wxb = ops.add(c, wx, b).set_name("wx+b")
    out = ops.relu(c, wxb).set_name("out")
    g = Graph(c, 8)
    g.build_forward_expand(out)
    return g, {"W": W, "x": x, "b": b, "wx": wx, "wx+b": wxb, "out": out}


def kinds(events: list[Event], *wanted: type[Event]) -> list[Event]:
    return [e for e in events if isinstance(e, wanted)]


def test_the_three_allocations_of_the_first_lesson() -> None:
    # the textbook trace, without in-place reuse and without padding: 0, 8, 0, and 16 bytes at the peak
    g, t = lesson()
    with recorded() as events:
        buffer = compute_releasing(g, cpu_buffer_type(1))
    assert buffer.size == 16
    assert t["out"].array().ravel().tolist() == [3, 0]
    assigned = [e for e in events if isinstance(e, TensorAssigned)]
    assert [(e.tensor, e.offset, e.size) for e in assigned] == [
        (t["wx"].id, 0, 8),
        (t["wx+b"].id, 8, 8),
        (t["out"].id, 0, 8),
    ]
    chosen = [e for e in events if isinstance(e, BlockChosen)]
    assert [(e.rule, e.exact) for e in chosen] == [("last block", False), ("last block", False), ("best fit", True)]
    assert [e.size for e in events if isinstance(e, ChunkGrown)] == [8, 16]
    released = [e for e in events if isinstance(e, Released)]
    assert [(e.graph, e.tensor, e.chunk, e.offset, e.size) for e in released] == [
        (g.id, t["wx"].id, 0, 0, 8),
        (g.id, t["wx+b"].id, 0, 8, 8),
    ]


def test_a_release_follows_the_last_use() -> None:
    g, t = lesson()
    with recorded() as events:
        compute_releasing(g, cpu_buffer_type(1))
    ours = (NodeBegin, NodeEnd, UseCountChanged, Released, TensorAssigned)
    names = {tensor.id: name for name, tensor in t.items()}
    assert [(type(e).__name__, names[e.tensor]) for e in events if isinstance(e, ours)] == [  # type: ignore[attr-defined]
        ("TensorAssigned", "wx"),
        ("NodeBegin", "wx"),
        ("NodeEnd", "wx"),
        ("UseCountChanged", "W"),
        ("UseCountChanged", "x"),
        ("TensorAssigned", "wx+b"),
        ("NodeBegin", "wx+b"),
        ("NodeEnd", "wx+b"),
        ("UseCountChanged", "wx"),
        ("Released", "wx"),
        ("UseCountChanged", "b"),
        ("TensorAssigned", "out"),
        ("NodeBegin", "out"),
        ("NodeEnd", "out"),
        ("UseCountChanged", "wx+b"),
        ("Released", "wx+b"),
    ]
    assert all(e.use_count == 0 for e in events if isinstance(e, UseCountChanged))
    begin, end = events[[type(e) for e in events].index(ComputeBegin)], events[-1]
    assert isinstance(begin, ComputeBegin)
    assert (begin.graph, begin.n_nodes, begin.n_threads) == (g.id, 3, 1)
    assert isinstance(end, ComputeEnd)
    merged = next(e for e in events if isinstance(e, BlockMerged))
    released = [e for e in events if isinstance(e, Released)]
    assert merged.cause == released[-1].seq
    assert bus.node == -1


def allocate_inputs(layer: Attention) -> None:
    inputs = Context(1 << 16, no_alloc=True)
    for t in (layer.x, layer.pos, layer.mask):
        place = inputs.new_tensor(t.type, t.ne)
        alloc_ctx_tensors_from_buft(inputs, cpu_buffer_type())
        t.data, t.buffer = place.data, place.buffer


@pytest.mark.parametrize("alignment", [1, 32])
def test_a_layer_gives_what_planned_memory_gives(alignment: int) -> None:
    expected = Attention().allocated().result()
    layer = Attention()
    allocate_inputs(layer)
    layer.filled()
    with recorded() as events:
        buffer = compute_releasing(layer.graph, cpu_buffer_type(alignment))
    np.testing.assert_allclose(layer.out.array(), expected, rtol=1e-6)
    assert layer.out.buffer is buffer
    skipped = [e for e in events if isinstance(e, NodeSkipped)]
    assert [(e.tensor, e.why) for e in skipped] == [
        (n.id, "empty op") for n in layer.graph.nodes if n.op in ("RESHAPE", "PERMUTE")
    ]
    # all is given back but the output, which somebody may read
    assigned = {e.tensor: e for e in events if isinstance(e, TensorAssigned)}
    released = {e.tensor: e for e in events if isinstance(e, Released)}
    assert set(assigned) - set(released) == {layer.out.id}
    for tensor, e in released.items():
        assert (e.chunk, e.offset, e.size) == (assigned[tensor].chunk, assigned[tensor].offset, assigned[tensor].size)
        assert e.offset % alignment == 0


def test_no_two_living_tensors_overlap() -> None:
    layer = Attention()
    allocate_inputs(layer)
    layer.filled()
    living: dict[int, range] = {}
    with recorded() as events:
        compute_releasing(layer.graph)
    for e in events:
        if isinstance(e, TensorAssigned):
            mine = range(e.offset, e.offset + e.size)
            assert not any(max(mine.start, r.start) < min(mine.stop, r.stop) for r in living.values())
            living[e.tensor] = mine
        elif isinstance(e, Released):
            del living[e.tensor]


def test_hooks_and_values() -> None:
    g, t = lesson()
    order: list[tuple[str, str]] = []
    bus.values = lambda tensor: order.append(("values", tensor.name))  # type: ignore[attr-defined]
    try:
        compute_releasing(
            g,
            before_node=lambda n: order.append(("before", n.name)),
            after_node=lambda n: order.append(("after", n.name)),
        )
    finally:
        bus.values = None
    assert order == [(when, name) for name in ("wx", "wx+b", "out") for when in ("before", "values", "after")]
    assert t["out"].array().ravel().tolist() == [3, 0]


def test_a_leaf_without_memory_is_an_error() -> None:
    c = Context(1 << 16, no_alloc=True)
    g = Graph(c, 8)
    g.build_forward_expand(ops.relu(c, c.new_tensor("F32", (3,), name="x")))
    with pytest.raises(VizggmlError, match="leaf 'x' has no memory"):
        compute_releasing(g)
