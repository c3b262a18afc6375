"""Tables, node states, counts, arenas and splits, from events written by hand."""

from __future__ import annotations

import pytest

from tests.oracle import LIB, Real
from tests.timeline.made import at, rows, trace_of
from vizggml.events import (
    AlreadyVisited,
    ChildrenChanged,
    ComputeBegin,
    ContextCreated,
    ContextFreed,
    ContextId,
    ContextReset,
    CopyInserted,
    Event,
    FlagsSet,
    GallocId,
    GraphCreated,
    GraphFreed,
    GraphId,
    LeafAppended,
    NodeAppended,
    NodeBegin,
    NodeEnd,
    NodesFused,
    NodeSkipped,
    ObjectAppended,
    OpRecorded,
    ParentReused,
    Released,
    SplitOpened,
    StridesChanged,
    TensorAssigned,
    TensorCopied,
    TensorCreated,
    TensorFreed,
    TensorId,
    TensorNamed,
    TensorPlaced,
    UseCountChanged,
    ViewCreated,
    VisitEnter,
)
from vizggml.events.bus import BufferId
from vizggml.ggml.cgraph import Graph
from vizggml.ggml.context import Context
from vizggml.timeline.fold_graph import (
    APPENDED,
    ASSIGNED,
    COMPUTING,
    DONE,
    FREED,
    N_CHILDREN,
    N_VIEWS,
    SKIPPED,
    USE_COUNT,
    VISITED,
)
from vizggml.timeline.record import record
from vizggml.timeline.tracks import Tracks

G, C, GALLOC = GraphId(0), ContextId(0), GallocId(0)
A, B, X = TensorId(0), TensorId(1), TensorId(2)
SHAPE, STRIDES = (3, 2, 1, 1), (4, 12, 24, 24)


def fold(*events: Event) -> Tracks:
    return trace_of(*events).tracks()


def created(t: TensorId, context: ContextId = C) -> TensorCreated:
    return TensorCreated(t, context, "F32", SHAPE, STRIDES, 24)


def text(tracks: Tracks, column: str) -> list[str]:
    return [tracks.string(i) for i in tracks[column].tolist()]


def test_the_tensor_table_holds_what_was_said_last() -> None:
    tracks = fold(
        created(A),
        created(B),
        ViewCreated(B, A, 12, A, 12),
        StridesChanged(B, A, "view", SHAPE, STRIDES, (3, 1, 1, 1), (4, 12, 12, 12)),
        TensorNamed(A, "first"),
        TensorNamed(A, "Kcur-7 (view)"),
        OpRecorded(B, "UNARY", "RELU", (6,), (A, TensorId(-1)), False),
        FlagsSet(B, 2),
        FlagsSet(B, 18),
        OpRecorded(X, "MUL_MAT", "MUL_MAT", (), (A, B), False),
    )
    assert text(tracks, "tensor.name") == ["Kcur-7 (view)", "", ""]
    assert text(tracks, "tensor.type") == ["F32", "F32", ""]
    assert text(tracks, "tensor.op") == ["", "UNARY", "MUL_MAT"]
    assert text(tracks, "tensor.desc") == ["", "RELU", "MUL_MAT"]
    assert tracks["tensor.ne"].tolist() == [[3, 2, 1, 1], [3, 1, 1, 1], [0, 0, 0, 0]]
    assert tracks["tensor.nb"].tolist()[1] == [4, 12, 12, 12]
    assert tracks["tensor.nbytes"].tolist() == [24, 24, 0]
    assert tracks["tensor.view_src"].tolist() == [-1, 0, -1]
    assert tracks["tensor.view_offs"].tolist() == [0, 12, 0]
    assert tracks["tensor.flags"].tolist() == [0, 18, 0]
    assert tracks["tensor.layer"].tolist() == [7, -1, -1]
    assert tracks["tensor.created"].tolist() == [0, 1, -1]
    edges = zip(*(tracks[f"edge.{c}"].tolist() for c in ("src", "dst", "slot")), strict=True)
    assert list(edges) == [(0, 1, 0), (0, 2, 0), (1, 2, 1)]


@pytest.mark.parametrize(
    ("name", "layer"),
    [
        ("blk.12.attn_q.weight", 12),
        ("cache_k_l3", 3),
        ("cache_v_l29", 29),
        ("ffn_out-0", 0),
        ("Qcur-5 (reshaped)", 5),
        ("cache_k_l4 (view)", 4),
        ("output_norm.weight", -1),
        ("node_3", -1),
        ("inp_tokens", -1),
        ("gpt-2 model", -1),
        ("x-99999999999999999999", -1),
        ("", -1),
    ],
)
def test_the_layer_is_in_the_name(name: str, layer: int) -> None:
    assert fold(created(A), TensorNamed(A, name))["tensor.layer"].tolist() == [layer]


def test_tensors_with_data_in_an_arena_have_memory_of_their_own() -> None:
    other = ContextId(1)
    tracks = fold(ContextCreated(C, 512, False), ContextCreated(other, 512, True), created(A), created(B, other))
    assert tracks["tensor.external"].tolist() == [1, 0]


def test_a_graph_is_its_nodes_in_order() -> None:
    tracks = fold(
        GraphCreated(G, C, 8, 11),
        NodeAppended(G, B, 0),
        GraphCreated(GraphId(1), C, 8, 11),
        LeafAppended(GraphId(1), A, 0),
        NodeAppended(GraphId(1), X, 0),
        NodeAppended(G, A, 1),
    )
    assert tracks["graph.ptr"].tolist() == [0, 2, 3]
    assert tracks["graph.node"].tolist() == [B, A, X]
    assert tracks["graph.leaf_ptr"].tolist() == [0, 0, 1]
    assert tracks["graph.leaf"].tolist() == [A]
    assert tracks["graph.created"].tolist() == [0, 2]


def test_the_states_of_a_node() -> None:
    tracks = fold(
        created(A),
        VisitEnter(G, A, 3, 0),
        AlreadyVisited(G, A, 3),
        NodeAppended(G, A, 0),
        TensorAssigned(GALLOC, A, 0, 0, 0, 24),
        TensorFreed(GALLOC, A, 0, 0, 0, 24, A),
        TensorPlaced(A, BufferId(0), 0, 24, False),
        ComputeBegin(G, 1, 2),
        NodeBegin(G, A, 0, 5),
        NodeBegin(G, A, 1, 6),
        NodeEnd(G, A, 0, 9),
        NodeEnd(G, A, 1, 9),
        ComputeBegin(G, 1, 2),
        NodeSkipped(G, A, "empty op"),
        ContextReset(C, 400, 1),
    )
    assert rows(tracks, "node") == [
        (1, 3, A, VISITED),
        (3, 4, A, APPENDED),
        (4, 5, A, ASSIGNED),
        (5, 6, A, FREED),
        (6, 8, A, ASSIGNED),
        (8, 10, A, COMPUTING),
        (10, 12, A, DONE),
        (12, 13, A, ASSIGNED),
        (13, 14, A, SKIPPED),
    ]


def test_a_fused_node_is_computed_along() -> None:
    tracks = fold(NodesFused(G, A, (B,)), NodeBegin(G, A, 0, 0), NodeEnd(G, A, 0, 1))
    assert rows(tracks, "node") == [(0, 2, B, COMPUTING), (1, 2, A, COMPUTING), (2, 3, A, DONE), (2, 3, B, DONE)]


def test_taking_over_and_releasing() -> None:
    tracks = fold(ParentReused(GALLOC, A, B, 0, 0, 0, 8), Released(G, A, 0, 0, 8))
    assert rows(tracks, "node") == [(0, 1, A, ASSIGNED), (1, 2, A, FREED)]


def test_counts() -> None:
    tracks = fold(
        created(A),
        UseCountChanged(G, A, 1),
        UseCountChanged(G, A, 2),
        ChildrenChanged(GALLOC, A, 1, 0),
        ChildrenChanged(GALLOC, A, 1, 1),
        ChildrenChanged(GALLOC, A, 0, 1),
        ContextFreed(C, 0, 0),
    )
    assert rows(tracks, "count") == [
        (1, 2, A, USE_COUNT, 1),
        (2, 6, A, USE_COUNT, 2),
        (3, 5, A, N_CHILDREN, 1),
        (3, 4, A, N_VIEWS, 0),
        (4, 6, A, N_VIEWS, 1),
        (5, 6, A, N_CHILDREN, 0),
    ]


def test_the_arena_fills_and_empties() -> None:
    tracks = fold(
        ContextCreated(C, 4096, True),
        ObjectAppended(C, "TENSOR", 32, 336, 0),
        ObjectAppended(C, "TENSOR", 400, 336, 0),
        ContextReset(C, 736, 2),
        ObjectAppended(C, "GRAPH", 32, 64, 4),
        ContextFreed(C, 96, 1),
    )
    assert rows(tracks, "arena") == [
        (0, 1, 0, 0, 0, 4096, 1),
        (1, 2, 0, 368, 1, 4096, 1),
        (2, 3, 0, 736, 2, 4096, 1),
        (3, 4, 0, 0, 0, 4096, 1),
        (4, 5, 0, 96, 1, 4096, 1),
    ]
    objects = [(a, b, *rest) for a, b, _, _, *rest in rows(tracks, "object")]
    assert objects == [(1, 3, 32, 336, 0, -1, -1), (2, 3, 400, 336, 0, -1, -1), (4, 5, 32, 64, 4, -1, -1)]


@pytest.mark.parametrize("no_alloc", [True, False])
def test_the_objects_of_an_arena_lie_where_ggmls_do(no_alloc: bool) -> None:
    """Two tensors, a graph of 10 nodes, a tensor: recorded as they come, and found standing by a recording after."""
    real = Real(1 << 16, no_alloc)
    base = LIB.ggml_get_mem_buffer(real.ctx)
    addresses = [real.new_tensor("F32", (3, 2), "W"), real.new_tensor("F32", (3,), "x")]
    real.graph(10)
    addresses.append(real.new_tensor("F32", (5,), "y"))
    used = real.used_mem()
    real.free()
    with record() as trace:
        ctx = Context(1 << 16, no_alloc)
        ctx.new_tensor("F32", (3, 2), "W")
        ctx.new_tensor("F32", (3,), "x")
        g = Graph(ctx, 10)
        ctx.new_tensor("F32", (5,), "y")
    with record() as late:
        ctx.new_tensor("F32", (1,), "z")
    for tracks, n_objects in ((trace.tracks(), 4), (late.tracks(), 5)):
        (arena,) = [r for r in range(len(tracks["t.arena.a"])) if is_open(tracks, r) and named(tracks, r, "y")]
        context = tracks["t.arena.context"][arena]
        found = tracks.at("object", tracks.n_events - 1)
        mine = found["context"] == context
        offsets, tensors = found["offset"][mine].tolist(), found["tensor"][mine].tolist()
        names = [tracks.string(int(tracks["tensor.name"][t])) if t >= 0 else "" for t in tensors]
        assert len(offsets) == n_objects
        assert [o for o, t in zip(offsets, tensors, strict=True) if t >= 0][:3] == [a - base for a in addresses]
        assert names[:4] == ["W", "x", "", "y"]
        assert [graph >= 0 for graph in found["graph"][mine].tolist()[:4]] == [False, False, True, False]
        assert offsets[3] + found["size"][mine][3] == used
        assert tracks["t.arena.mem_size"][arena] == 1 << 16
    assert g.size == 10


def is_open(tracks: Tracks, arena_row: int) -> bool:
    return int(tracks["t.arena.b"][arena_row]) == tracks.n_events


def named(tracks: Tracks, arena_row: int, name: str) -> bool:
    """Whether the context of that row holds a tensor of that name."""
    objects = tracks.track("object")
    tensors = objects["tensor"][objects["context"] == tracks["t.arena.context"][arena_row]]
    return any(tracks.string(int(tracks["tensor.name"][t])) == name for t in tensors.tolist() if t >= 0)


def test_splits_stand_until_the_graph_is_split_again_or_gone() -> None:
    tracks = fold(
        SplitOpened(G, 0, "CPU", 0, 0),
        SplitOpened(G, 1, "GPU", 5, 1),
        SplitOpened(G, 0, "CPU", 2, 0),
        GraphFreed(G),
    )
    backends = [tracks.string(i) for i in tracks["t.split.backend"].tolist()]
    assert backends == ["CPU", "GPU", "CPU"]
    assert [r[:4] + r[5:] for r in rows(tracks, "split")] == [
        (0, 2, 0, 0, 0, 0),
        (1, 2, 0, 1, 5, 1),
        (2, 3, 0, 0, 2, 0),
    ]
    assert at(tracks, "split", 3) == []


def test_copies_stand_from_where_they_are_planned_until_the_graph_is_gone() -> None:
    tracks = fold(
        CopyInserted(G, 1, A, X, "GPU"),
        SplitOpened(G, 0, "CPU", 0, 0),
        TensorCopied(G, 1, A, X, "CPU", "GPU", 24),
        GraphFreed(G),
    )
    planned, copied = rows(tracks, "copy")
    backend = tracks.strings.index("GPU")
    assert planned == (0, 2, 0, 1, 0, 2, backend, -1)
    assert copied == (2, 3, 0, 1, 0, 2, backend, 24)


def test_a_graph_is_part_of_the_one_of_which_it_is_a_split() -> None:
    part = GraphId(1)
    tracks = fold(
        GraphCreated(G, C, 8, 17),
        *(NodeAppended(G, t, k) for k, t in enumerate((A, B, X))),
        SplitOpened(G, 0, "CPU", 0, 0),
        SplitOpened(G, 1, "GPU", 1, 1),
        GraphCreated(part, C, 2, 0),
        *(NodeAppended(part, t, k) for k, t in enumerate((B, X))),
    )
    assert tracks["graph.part_of"].tolist() == [-1, 0]
