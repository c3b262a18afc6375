"""Blocks, chunks, placements and lifetimes, from events written by hand and from the allocators."""

from __future__ import annotations

from tests.timeline.made import SIZE_MAX_HALF, at, rows, trace_of
from vizggml.events import (
    AllocatorId,
    AllocatorReset,
    AllocGraphEnd,
    BlockChosen,
    BlockInserted,
    BlockMerged,
    BlockRemoved,
    BlockSplit,
    BufferAllocated,
    BufferFreed,
    BufferId,
    ChunkGrown,
    ChunkOpened,
    ComputeBegin,
    ComputeEnd,
    ContextCreated,
    ContextFreed,
    ContextId,
    Event,
    ExtraTailFreed,
    FlagsSet,
    GallocId,
    GraphCreated,
    GraphId,
    LayerResident,
    LeafAppended,
    NodeAppended,
    NodeBegin,
    NodeSkipped,
    OpRecorded,
    PagesResident,
    ParentReused,
    Released,
    ReserveBegin,
    ReserveEnd,
    SearchBegin,
    SnapshotBegin,
    SnapshotEnd,
    TensorAssigned,
    TensorCreated,
    TensorFreed,
    TensorId,
    TensorPlaced,
    ViewCreated,
    WeightsPlaced,
)
from vizggml.timeline.tracks import Tracks

AL, GALLOC, G, C, NONE = AllocatorId(0), GallocId(0), GraphId(0), ContextId(0), TensorId(-1)
W, X, Y, Z = (TensorId(i) for i in range(4))
FREE = -1


def fold(*events: Event) -> Tracks:
    return trace_of(*events).tracks()


def take(t: TensorId, size: int, offset: int, left: int, rule: str = "last block", exact: bool = False) -> list[Event]:
    """The events of one allocation: `left` is what the free block has then."""
    chosen = BlockChosen(AL, t, 0, 0, offset, size + left, rule, exact, 0)
    if exact:
        return [SearchBegin(AL, t, size, size), chosen, BlockRemoved(AL, 0, 0, offset, size)]
    return [SearchBegin(AL, t, size, size), chosen, BlockSplit(AL, 0, 0, offset + size, left, size)]


OPENED = [AllocatorReset(AL), ChunkOpened(AL, 0, SIZE_MAX_HALF)]


def blocks(tracks: Tracks, i: int) -> list[tuple[int, int, int]]:
    """Offset, size and owner of every block at event `i`, by offset."""
    return sorted((offset, size, owner) for _, _, offset, size, owner in at(tracks, "block", i))


def test_the_teaching_trace() -> None:
    """Three allocations of 8 bytes: 0 and 8 from the end, the first freed, 0 again by exact fit. 16 bytes in all."""
    tracks = fold(
        *OPENED,
        *take(W, 8, 0, SIZE_MAX_HALF - 8),
        ChunkGrown(AL, 0, 0, 8),
        *take(X, 8, 8, SIZE_MAX_HALF - 16),
        ChunkGrown(AL, 0, 8, 16),
        BlockInserted(AL, 0, 0, 0, 8),
        *take(Y, 8, 0, 0, "best fit", exact=True),
    )
    assert blocks(tracks, 1) == [(0, -1, FREE)]
    assert blocks(tracks, 3) == [(0, -1, FREE)]
    assert blocks(tracks, 4) == [(0, 8, W), (8, -1, FREE)]
    assert blocks(tracks, 9) == [(0, 8, W), (8, 8, X), (16, -1, FREE)]
    assert blocks(tracks, 10) == [(0, 8, FREE), (8, 8, X), (16, -1, FREE)]
    assert blocks(tracks, 12) == [(0, 8, FREE), (8, 8, X), (16, -1, FREE)]
    assert blocks(tracks, 13) == [(0, 8, Y), (8, 8, X), (16, -1, FREE)]
    assert rows(tracks, "chunk") == [(1, 5, 0, 0, 0), (5, 9, 0, 0, 8), (9, 14, 0, 0, 16)]


def three_taken() -> list[Event]:
    events = [*OPENED]
    for k, t in enumerate((W, X, Y)):
        events += take(t, 32, 32 * k, SIZE_MAX_HALF - 32 * (k + 1))
    return events


def test_merging_with_the_block_before() -> None:
    tracks = fold(*three_taken(), BlockInserted(AL, 0, 0, 0, 32), BlockMerged(AL, 0, 0, 0, 64, "previous", 32, 32))
    assert blocks(tracks, tracks.n_events - 1) == [(0, 64, FREE), (64, 32, Y), (96, -1, FREE)]


def test_merging_with_the_block_after() -> None:
    tracks = fold(*three_taken(), BlockMerged(AL, 0, 0, 64, SIZE_MAX_HALF - 64, "next", 64, 32))
    assert blocks(tracks, tracks.n_events - 1) == [(0, 32, W), (32, 32, X), (64, -1, FREE)]


def test_merging_with_both() -> None:
    tracks = fold(
        *three_taken(),
        BlockInserted(AL, 0, 0, 0, 32),
        BlockMerged(AL, 0, 1, 64, SIZE_MAX_HALF - 64, "next", 64, 32),
        BlockMerged(AL, 0, 0, 0, SIZE_MAX_HALF, "both", 32, 32),
    )
    assert blocks(tracks, tracks.n_events - 1) == [(0, -1, FREE)]


def test_the_tail_of_a_taken_over_block_is_free() -> None:
    events = [*three_taken(), TensorAssigned(GALLOC, Y, 0, 0, 64, 32)]
    tracks = fold(
        *events,
        ParentReused(GALLOC, Z, W, 0, 0, 0, 8),
        ExtraTailFreed(GALLOC, Z, W, 0, 8, 24),
        BlockInserted(AL, 0, 0, 8, 24),
    )
    last = tracks.n_events - 1
    assert blocks(tracks, last - 2)[0] == (0, 32, Z)
    assert blocks(tracks, last) == [(0, 8, Z), (8, 24, FREE), (32, 32, X), (64, 32, Y), (96, -1, FREE)]


def test_a_tensor_of_no_bytes_takes_no_block() -> None:
    tracks = fold(*OPENED, *take(W, 0, 0, SIZE_MAX_HALF))
    assert blocks(tracks, tracks.n_events - 1) == [(0, -1, FREE)]


def test_a_free_list_that_stood_before_the_recording() -> None:
    """As an allocator tells what it holds: all but the end is taken, then the gaps. Who took it is not known."""
    tracks = fold(
        *OPENED,
        BlockChosen(AL, NONE, 0, 0, 0, SIZE_MAX_HALF, "new chunk", False, 0),
        BlockSplit(AL, 0, 0, 128, SIZE_MAX_HALF - 128, 128),
        BlockInserted(AL, 0, 0, 0, 32),
        BlockInserted(AL, 0, 1, 64, 32),
    )
    assert blocks(tracks, tracks.n_events - 1) == [(0, 32, FREE), (64, 32, FREE), (128, -1, FREE)]


def test_a_standing_plan_is_shown_where_it_was_planned() -> None:
    """Two allocators stand; the graph lies in a buffer of 64 bytes, the size of the first one's chunk."""
    other = AllocatorId(1)
    tracks = fold(
        SnapshotBegin(),
        GraphCreated(G, C, 8, 11),
        *chain(),
        *placed(),
        *OPENED,
        ChunkGrown(AL, 0, 0, 64),
        AllocatorReset(other),
        ChunkOpened(other, 0, SIZE_MAX_HALF),
        ChunkGrown(other, 0, 0, 96),
        SnapshotEnd(),
        ComputeBegin(G, 2, 1),
        NodeBegin(G, Z, 0, 0),
    )
    assert at(tracks, "block", tracks.n_events - 1) == [(1, 0, 0, -1, FREE), (0, 0, 0, 32, FREE), (0, 0, 32, 32, Z)]


def test_a_reset_forgets_every_chunk() -> None:
    other = AllocatorId(1)
    tracks = fold(
        *three_taken(), ChunkOpened(AL, 1, 64), AllocatorReset(other), ChunkOpened(other, 0, 64), AllocatorReset(AL)
    )
    assert at(tracks, "block", tracks.n_events - 1) == [(1, 0, 0, 64, FREE)]
    assert at(tracks, "chunk", tracks.n_events - 1) == [(1, 0, 0)]


def test_buffers_and_places() -> None:
    weights, compute = BufferId(0), BufferId(1)
    tracks = fold(
        ContextCreated(C, 4096, True),
        TensorCreated(W, C, "F32", (2, 1, 1, 1), (4, 8, 8, 8), 8),
        TensorCreated(X, C, "F32", (2, 1, 1, 1), (4, 8, 8, 8), 8),
        TensorCreated(Y, C, "F32", (2, 1, 1, 1), (4, 8, 8, 8), 8),
        BufferAllocated(weights, "CPU_Mapped", 100, "weights"),
        BufferAllocated(compute, "CPU", 64, "compute"),
        WeightsPlaced(W, weights, 32, 8, 4128, "CPU"),
        TensorPlaced(X, compute, 0, 8, False),
        TensorPlaced(Y, weights, 36, 4, True),
        BufferFreed(compute, 64),
        ContextFreed(C, 0, 3),
    )
    assert rows(tracks, "place") == [(6, 10, W, 0, 32, 8), (7, 9, X, 1, 0, 8), (8, 10, Y, 0, 36, 4)]
    assert [(a, b, size) for a, b, _, size, *_ in rows(tracks, "buffer")] == [(4, 11, 100), (5, 9, 64)]
    assert [tracks.string(i) for i in tracks["t.buffer.usage"].tolist()] == ["weights", "compute"]
    assert tracks["tensor.external"].tolist() == [1, 0, 0]


def chain() -> list[Event]:
    """x is a leaf; y = f(x), z = g(y), both nodes."""
    return [
        OpRecorded(Y, "UNARY", "RELU", (), (X,), False),
        OpRecorded(Z, "UNARY", "RELU", (), (Y,), False),
        FlagsSet(Z, 2),
        LeafAppended(G, X, 0),
        NodeAppended(G, Y, 0),
        NodeAppended(G, Z, 1),
    ]


def assigned(t: TensorId, offset: int, node: TensorId) -> list[Event]:
    return [*take(t, 32, offset, SIZE_MAX_HALF), TensorAssigned(GALLOC, t, 0, 0, offset, 24, node=node)]


LIFE = ("plan", "tensor", "chunk", "offset", "size", "first", "last", "reuses", "freed_by")


def lives(tracks: Tracks) -> list[dict[str, int]]:
    return [dict(zip(LIFE, row[2:-1], strict=True)) for row in rows(tracks, "life")]


def test_lifetimes_of_a_reserve() -> None:
    tracks = fold(
        *chain(),
        ReserveBegin(GALLOC, G, "asked", NONE, 0, 0),
        *OPENED,
        *assigned(X, 0, X),
        *assigned(Y, 32, Y),
        TensorFreed(GALLOC, X, 0, 0, 0, 24, Y, node=Y),
        BlockInserted(AL, 0, 0, 0, 32),
        ParentReused(GALLOC, Z, Y, 0, 0, 32, 24, node=Z),
        ReserveEnd(GALLOC, G, (64,), True),
    )
    x, y, z = lives(tracks)
    assert x == dict(zip(LIFE, (0, X, 0, 0, 24, 0, 0, -1, Y), strict=True))
    assert y == dict(zip(LIFE, (0, Y, 0, 32, 24, 0, 0, -1, Z), strict=True))
    assert z == dict(zip(LIFE, (0, Z, 0, 32, 24, 1, 1, Y, -1), strict=True))
    assert blocks(tracks, tracks.n_events - 1) == [(0, 32, FREE), (32, 32, Z), (64, -1, FREE)]


def test_a_new_plan_replaces_the_old_one() -> None:
    tracks = fold(
        *chain(),
        ReserveBegin(GALLOC, G, "asked", NONE, 0, 0),
        TensorAssigned(GALLOC, X, 0, 0, 0, 24, node=X),
        ReserveEnd(GALLOC, G, (64,), True),
        ReserveBegin(GALLOC, G, "tensor size", X, 24, 48),
        TensorAssigned(GALLOC, X, 0, 0, 0, 48, node=X),
    )
    assert rows(tracks, "life") == [
        (7, 9, 0, X, 0, 0, 24, 0, 1, -1, -1, -1),
        (10, 11, 1, X, 0, 0, 48, 0, 1, -1, -1, -1),
    ]


def placed() -> list[Event]:
    """x at 0, y at 32, z where y is."""
    compute = BufferId(0)
    return [
        BufferAllocated(compute, "CPU", 64, "compute"),
        TensorPlaced(X, compute, 0, 24, False),
        TensorPlaced(Y, compute, 32, 24, False),
        TensorPlaced(Z, compute, 32, 24, False),
    ]


PLACED = [
    dict(zip(LIFE, (0, X, 0, 0, 24, 0, 0, -1, Y), strict=True)),
    dict(zip(LIFE, (0, Y, 0, 32, 24, 0, 0, -1, Z), strict=True)),
    dict(zip(LIFE, (0, Z, 0, 32, 24, 1, 1, Y, -1), strict=True)),
]


def test_a_graph_placed_by_the_plan_of_another_has_lifetimes_too() -> None:
    tracks = fold(*chain(), *placed(), AllocGraphEnd(GALLOC, G, False))
    assert lives(tracks) == PLACED


def test_a_graph_that_stood_before_the_recording_has_lifetimes() -> None:
    tracks = fold(SnapshotBegin(), GraphCreated(G, C, 8, 11), *chain(), *placed(), SnapshotEnd(), SnapshotBegin())
    assert lives(tracks) == PLACED
    assert rows(tracks, "life")[0][:2] == (12, 14)


def test_a_view_keeps_its_source_alive() -> None:
    view = TensorId(4)
    tracks = fold(
        OpRecorded(Y, "UNARY", "RELU", (), (X,), False),
        OpRecorded(view, "VIEW", "VIEW", (), (Y,), False),
        ViewCreated(view, Y, 0, Y, 0),
        OpRecorded(Z, "UNARY", "RELU", (), (view,), False),
        *(NodeAppended(G, t, k) for k, t in enumerate((Y, view, Z))),
        *placed()[:3],
        TensorPlaced(Z, BufferId(0), 0, 24, False),
        TensorPlaced(view, BufferId(0), 32, 24, True),
        AllocGraphEnd(GALLOC, G, False),
    )
    assert [(life["tensor"], life["first"], life["last"]) for life in lives(tracks)] == [(Y, 0, 2), (Z, 2, 2)]


def test_while_computing_the_blocks_follow_the_plan() -> None:
    tracks = fold(
        *chain(),
        *OPENED,
        *placed(),
        AllocGraphEnd(GALLOC, G, False),
        ComputeBegin(G, 2, 1),
        NodeBegin(G, Y, 0, 0),
        NodeBegin(G, Z, 0, 5),
        ComputeEnd(G, 9),
        ComputeBegin(G, 2, 1),
        NodeSkipped(G, Y, "no compute flag"),
        NodeSkipped(G, Z, "no compute flag"),
        AllocatorReset(AL),
    )
    begin = 13
    for start in (begin, begin + 4):
        assert blocks(tracks, start) == [(0, 32, X), (32, 32, Y)]
        assert blocks(tracks, start + 1) == [(0, 32, X), (32, 32, Y)]
        assert blocks(tracks, start + 2) == [(0, 32, FREE), (32, 32, Z)]
    assert blocks(tracks, begin + 3) == [(0, 32, FREE), (32, 32, Z)]
    assert blocks(tracks, begin + 7) == []


def test_placing_while_computing() -> None:
    """The teaching way: no plan stands before, and places are given back while computing."""
    tracks = fold(
        *chain(),
        ComputeBegin(G, 2, 1),
        *OPENED,
        *take(Y, 8, 0, SIZE_MAX_HALF - 8),
        TensorAssigned(GallocId(-1), Y, 0, 0, 0, 8, node=Y),
        NodeBegin(G, Y, 0, 0, node=Y),
        *take(Z, 8, 8, SIZE_MAX_HALF - 16),
        TensorAssigned(GallocId(-1), Z, 0, 0, 8, 8, node=Z),
        NodeBegin(G, Z, 0, 0, node=Z),
        Released(G, Y, 0, 0, 8, node=Z),
        BlockInserted(AL, 0, 0, 0, 8),
        ComputeEnd(G, 9),
    )
    y, z = lives(tracks)
    assert (y["first"], y["last"], y["freed_by"]) == (0, 1, Z)
    assert (z["first"], z["last"], z["freed_by"]) == (1, 1, -1)
    assert blocks(tracks, tracks.n_events - 1) == [(0, 8, FREE), (8, 8, Z), (16, -1, FREE)]


def test_a_reserve_says_why_and_stands_to_its_last_event() -> None:
    tracks = fold(
        *chain(),
        ReserveBegin(GALLOC, G, "tensor size", X, 24, 48),
        TensorAssigned(GALLOC, X, 0, 0, 0, 48, node=X),
        ReserveEnd(GALLOC, G, (64, 32), True),
        ComputeBegin(G, 1, 1),
    )
    begin = tracks.n_events - 4
    why = tracks.strings.index("tensor size")
    assert rows(tracks, "reserve") == [(begin, begin + 3, 0, G, why, X, 24, 48, 96, 1)]


def test_each_buffer_of_a_plan_has_its_own_chunks() -> None:
    """Chunk 0 of the second buffer has the number 16, and while it is computed the second allocator shows it."""
    other = AllocatorId(1)
    tracks = fold(
        *chain(),
        ReserveBegin(GALLOC, G, "asked", NONE, 0, 0),
        AllocatorReset(AL),
        AllocatorReset(other),
        *OPENED,
        *assigned(X, 0, X),
        BlockChosen(other, Y, 0, 0, 0, 32, "last block", False, 0, node=Y),
        TensorAssigned(GALLOC, Y, 1, 0, 0, 24, node=Y),
        ReserveEnd(GALLOC, G, (32, 32), True),
        ComputeBegin(G, 1, 1),
        NodeBegin(G, Y, 0, 1),
    )
    assert [(life["tensor"], life["chunk"], life["offset"]) for life in lives(tracks)] == [(X, 0, 0), (Y, 16, 0)]
    assert tracks["t.life.allocator"].tolist() == [AL, other]
    held = [row for row in at(tracks, "block", tracks.n_events - 1) if row[4] >= 0]
    assert [(row[0], row[1], row[4]) for row in held] == [(0, 0, X), (1, 0, Y)]


def test_pages_stand_until_they_are_asked_for_again() -> None:
    tracks = fold(
        PagesResident(BufferId(0), 5, 20, 4096),
        LayerResident(BufferId(0), "blk.0", 8192, 3, 4),
        LayerResident(BufferId(0), "blk.0", 8192, 4, 4),
    )
    name = tracks.strings.index("blk.0")
    assert rows(tracks, "pages") == [
        (0, 3, 0, -1, 0, 5, 20),
        (1, 2, 0, name, 8192, 3, 4),
        (2, 3, 0, name, 8192, 4, 4),
    ]
