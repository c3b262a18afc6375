"""The live set of a plan: by hand, from events and from places, and the same as liveness finds it from the graph."""

from __future__ import annotations

import numpy as np
import pytest

import vizggml as vg
from tests.ggml.programs import Ours, program
from tests.timeline.made import rows
from tests.timeline.test_fold import event, first_lesson, run_first_lesson
from tests.timeline.test_fold_memory import (
    AL,
    GALLOC,
    NONE,
    OPENED,
    C,
    G,
    X,
    Y,
    Z,
    assigned,
    chain,
    fold,
    placed,
)
from vizggml.events import (
    AllocGraphEnd,
    BlockInserted,
    BufferId,
    ExtraTailFreed,
    FlagsSet,
    GraphCreated,
    ParentReused,
    ReserveBegin,
    ReserveEnd,
    SnapshotBegin,
    SnapshotEnd,
    TensorAssigned,
    TensorFreed,
    TensorPlaced,
)
from vizggml.ggml.buffer import BufferType
from vizggml.ggml.compute import compute_releasing
from vizggml.ggml.context import Context
from vizggml.ggml.gallocr import GraphAllocator
from vizggml.ggml.liveness import graph_liveness
from vizggml.timeline.record import record
from vizggml.timeline.tracks import Tracks

BEGIN = ReserveBegin(GALLOC, G, "asked", NONE, 0, 0)
END = ReserveEnd(GALLOC, G, (64,), True)


def live(tracks: Tracks, plan: int = 0) -> list[tuple[int, ...]]:
    """Position, bytes and bound of each row of a plan."""
    return [row[3:] for row in rows(tracks, "live") if row[2] == plan]


def test_the_first_lesson() -> None:
    """W, x, b and the product: 128 bytes with their padding; then b and a sum; then the result."""
    tracks = run_first_lesson().tracks()
    assert live(tracks) == [(0, 128, 128), (1, 64, 128), (2, 32, 128)]


def test_it_grows_with_planning() -> None:
    """x and y are 32 bytes each; x goes, z takes over from y. The rows stand from when planning comes to the node."""
    before = len(chain())
    tracks = fold(
        *chain(),
        BEGIN,
        *OPENED,
        *assigned(X, 0, X),
        *assigned(Y, 32, Y),
        TensorFreed(GALLOC, X, 0, 0, 0, 24, Y, node=Y),
        BlockInserted(AL, 0, 0, 0, 32),
        ParentReused(GALLOC, Z, Y, 0, 0, 32, 24, node=Z),
        END,
        ReserveBegin(GALLOC, G, "tensor size", X, 24, 48),
        TensorAssigned(GALLOC, X, 0, 0, 0, 48, node=X),
    )
    first, reused = event(tracks, "TensorAssigned"), event(tracks, "ParentReused")
    again = event(tracks, "ReserveBegin", 1)
    assert before < first < reused < again
    assert rows(tracks, "live") == [
        (first, again, 0, 0, 64, 64),
        (reused, again, 0, 1, 32, 64),
        # nothing says here that x was padded
        (again + 1, again + 2, 1, 0, 32, 32),
    ]


def test_a_free_tail_no_longer_counts() -> None:
    """y takes 8 of the 32 bytes of x and gives them back; then z has 32."""
    tracks = fold(
        *chain(),
        BEGIN,
        *OPENED,
        *assigned(X, 0, X),
        ParentReused(GALLOC, Y, X, 0, 0, 0, 8, node=Y),
        ExtraTailFreed(GALLOC, Y, X, 0, 8, 24, node=Y),
        TensorFreed(GALLOC, Y, 0, 0, 0, 8, Y, node=Y),
        *assigned(Z, 32, Z),
        END,
    )
    assert live(tracks) == [(0, 8, 8), (1, 32, 32)]


def test_an_input_counts_from_the_start() -> None:
    """z is an input: it has its place before y is planned, though it is named as the second node."""
    tracks = fold(
        *chain(), FlagsSet(Z, 1), BEGIN, *OPENED, *assigned(Z, 0, Z), *assigned(X, 32, X), *assigned(Y, 64, Y), END
    )
    assert live(tracks) == [(0, 96, 96), (1, 96, 96)]
    assert tracks["t.life.first"].tolist() == [0, 0, 0]


def test_a_plan_known_from_its_places() -> None:
    """x 0 to 0, y 0 to 0 and then z in its place: the same, 32 bytes each with the padding."""
    expected = [(0, 64, 64), (1, 32, 64)]
    assert live(fold(*chain(), *placed(), AllocGraphEnd(GALLOC, G, False))) == expected
    snapshot = fold(SnapshotBegin(), GraphCreated(G, C, 8, 11), *chain(), *placed(), SnapshotEnd(), SnapshotBegin())
    assert live(snapshot) == expected


def test_a_leaf_that_the_first_node_takes_over_counts_once() -> None:
    """x, y and z one after the other at the same place: 32 bytes throughout, with the padding."""
    one_place = [TensorPlaced(t, BufferId(0), 0, 24, False) for t in (X, Y, Z)]
    tracks = fold(*chain(), *placed()[:1], *one_place, AllocGraphEnd(GALLOC, G, False))
    assert live(tracks) == [(0, 32, 32), (1, 32, 32)]


def test_while_memory_is_given_and_taken_in_computing() -> None:
    """The teaching switch, 8 bytes a result, leafs apart: one result, two while wx+b is made, two for the last."""
    c = Context(1 << 16, no_alloc=True)
    graph = first_lesson(c)
    own = BufferType("CPU", 8).alloc_buffer(256)
    for i, leaf in enumerate(graph.leafs):
        own.tensor_alloc(leaf, 64 * i)
        leaf.set(np.ones(leaf.nelements))
    with record() as trace:
        compute_releasing(graph, BufferType("CPU", 1))
    assert live(trace.tracks()) == [(0, 8, 8), (1, 16, 16), (2, 16, 16)]


@pytest.mark.parametrize("in_place", [True, False])
def test_random_graphs(in_place: bool) -> None:
    for seed in range(60):
        graph = Ours(program(seed)).graph
        if not graph.nodes:
            continue
        buft = BufferType("CPU", 32 if seed % 2 else 64)
        with record() as trace:
            GraphAllocator(buft, in_place=in_place).reserve_n_size(graph)
        found = graph_liveness(graph, buft, in_place=in_place)
        tracks = trace.tracks()
        plan = int(tracks["t.live.plan"].max(initial=-1))
        if plan < 0:
            assert found.bound == 0
            continue
        track = live(tracks, plan)
        assert [position for position, _, _ in track] == list(range(len(graph.nodes))), seed
        assert [held for _, held, _ in track] == list(found.live), seed
        assert track[-1][2] == found.bound


def test_a_decode_step_of_the_tiny_model() -> None:
    """Planned before the recording and met in it: its places tell as much as the graph does."""
    context = vg.load_model("tiny").context(n_ctx=64, n_threads=1)
    stream = context.generate("Once", max_tokens=4, temp=0)
    next(stream)
    with record() as trace:
        next(stream)
    tracks = trace.tracks()
    n_nodes = int(tracks["t.live.position"].max()) + 1
    plans = [p for p in set(tracks["t.live.plan"].tolist()) if len(live(tracks, p)) == n_nodes]
    result = context.gf_res_prev_active
    assert result is not None
    graph = result.gf
    assert len(graph.nodes) == n_nodes
    found = graph_liveness(graph)
    assert [held for _, held, _ in live(tracks, plans[-1])] == list(found.live)
