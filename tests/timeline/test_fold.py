"""The fold as a whole: on real runs, in pieces, and what must hold at every event."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.timeline.made import at, rows
from vizggml.events import KINDS, bus
from vizggml.ggml import ops
from vizggml.ggml.buffer import cpu_buffer_type
from vizggml.ggml.cgraph import Graph
from vizggml.ggml.compute import compute_releasing, graph_compute
from vizggml.ggml.context import Context
from vizggml.ggml.cplan import graph_plan
from vizggml.ggml.gallocr import GraphAllocator
from vizggml.timeline.fold import Fold
from vizggml.timeline.record import Recorder, record
from vizggml.timeline.schema import KIND_NAMES
from vizggml.timeline.sentences import SENTENCES, render
from vizggml.timeline.trace import Trace
from vizggml.timeline.tracks import Tracks


def first_lesson(c: Context) -> Graph:
    """relu(W x + b), W 3x2."""
    w, x, b = (c.new_tensor("F32", ne, name) for ne, name in (((3, 2), "W"), ((3,), "x"), ((2,), "b")))
    wx = ops.mul_mat(c, w, x).set_name("wx")
    out = ops.relu(c, ops.add(c, wx, b).set_name("wx+b")).set_name("out").set_output()
    graph = Graph(c, 32)
    graph.build_forward_expand(out)
    return graph


def run_first_lesson() -> Trace:
    """Built, planned, placed and computed, with nothing else in the trace."""
    recorder = Recorder()
    unsubscribe = bus.subscribe(None, recorder.take)
    c = Context(1 << 16, no_alloc=True)
    graph = first_lesson(c)
    galloc = GraphAllocator(cpu_buffer_type())
    galloc.alloc_graph(graph)
    for leaf in graph.leafs:
        leaf.set(np.ones(leaf.nelements))
    graph_compute(graph, graph_plan(graph, n_threads=1), fast=False)
    c.free()
    galloc.free()
    unsubscribe()
    return recorder.trace


@pytest.fixture(scope="module")
def lesson() -> Trace:
    return run_first_lesson()


def named(tracks: Tracks, tensors: list[int]) -> list[str]:
    return [tracks.string(int(tracks["tensor.name"][t])) for t in tensors]


def event(tracks: Tracks, kind: str, nth: int = 0) -> int:
    """The number of the nth event of a kind; from the end, below 0."""
    return int(np.flatnonzero(tracks["ev.kind"] == KIND_NAMES.index(kind))[nth])


def test_the_first_lesson_takes_128_bytes_as_ggml_places_it(lesson: Trace) -> None:
    """Figures of real ggml, alignment 32: W 0, x 32, b 64, and 96 three times."""
    tracks = lesson.tracks()
    life = tracks.track("life")
    assert named(tracks, life["tensor"].tolist()) == ["W", "x", "b", "wx", "wx+b", "out"]
    assert life["offset"].tolist() == [0, 32, 64, 96, 96, 96]
    assert named(tracks, life["reuses"].tolist()[4:]) == ["wx", "wx+b"]
    assert life["first"].tolist() == [0, 0, 0, 0, 1, 2]
    assert life["last"].tolist() == [0, 0, 1, 0, 1, 2]
    assert at(tracks, "chunk", event(tracks, "ReserveEnd")) == [(0, 0, 128)]
    assert at(tracks, "buffer", event(tracks, "ComputeBegin"))[0][1] == 128


def test_the_first_lesson_has_use_counts_1_1_1_1_1_0(lesson: Trace) -> None:
    tracks = lesson.tracks()
    standing = at(tracks, "count", event(tracks, "ExpandEnd"))
    counts = dict.fromkeys(["W", "x", "wx", "b", "wx+b", "out"], 0)
    for tensor, which, value in standing:
        assert which == 0
        counts[named(tracks, [tensor])[0]] = value
    assert list(counts.values()) == [1, 1, 1, 1, 1, 0]


def test_what_is_in_memory_at_each_node(lesson: Trace) -> None:
    tracks = lesson.tracks()
    seen = []
    for nth in range(3):
        held = at(tracks, "block", event(tracks, "NodeBegin", nth))
        seen.append([(offset, named(tracks, [t])[0]) for _, _, offset, _, t in sorted(held) if t >= 0])
    assert seen == [[(0, "W"), (32, "x"), (64, "b"), (96, "wx")], [(64, "b"), (96, "wx+b")], [(96, "out")]]


def test_everything_ends_with_what_held_it(lesson: Trace) -> None:
    tracks = lesson.tracks()
    last = tracks.n_events - 1
    for track in ("arena", "buffer", "place", "node", "count"):
        assert at(tracks, track, last) == []


def check_tiling(tracks: Tracks, i: int) -> None:
    """At any event the blocks of a chunk follow each other from 0 on, without gap or overlap."""
    chunks: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for allocator, chunk, offset, size, _ in at(tracks, "block", i):
        chunks.setdefault((allocator, chunk), []).append((offset, size))
    for blocks in chunks.values():
        blocks.sort()
        assert blocks[0][0] == 0
        assert all(offset + size == after for (offset, size), (after, _) in pairwise(blocks))


def test_blocks_tile_their_chunk_at_every_event(lesson: Trace) -> None:
    tracks = lesson.tracks()
    for i in range(tracks.n_events):
        check_tiling(tracks, i)


def same(a: Tracks, b: Tracks) -> None:
    assert a.columns.keys() == b.columns.keys()
    for name, column in a.columns.items():
        assert column.dtype == b.columns[name].dtype
        assert np.array_equal(column, b.columns[name]), name
    assert a.meta == b.meta


@settings(max_examples=12, deadline=None)
@given(st.lists(st.integers(0, 130), max_size=4))
def test_a_trace_folded_in_pieces_is_the_trace_folded_at_once(cuts: list[int]) -> None:
    source = run_first_lesson()
    events = list(source.events)
    recorder = Recorder()
    done = 0
    for cut in sorted(cuts):
        for e in events[done:cut]:
            recorder.take(e)
        done = max(done, cut)
        assert recorder.trace.tracks().n_events == min(done, len(events))
    for e in events[done:]:
        recorder.take(e)
    same(recorder.trace.tracks(), Fold(source).tracks())


def test_a_folded_segment_is_not_folded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder()
    trace = recorder.trace
    for e in run_first_lesson().events:
        recorder.take(e)
    first = trace.tracks()
    assert trace.tracks() is first
    fold = trace._fold
    assert fold is not None
    assert fold.n_folded == len(trace)
    recorder.take(KINDS[KIND_NAMES.index("SnapshotEnd")]())
    counted: list[int] = []
    monkeypatch.setattr("vizggml.timeline.fold.dispatch", lambda handlers, kinds, *rest: counted.append(len(kinds)))
    assert trace.tracks().n_events == first.n_events + 1
    assert set(counted) == {1}


def test_event_columns(lesson: Trace) -> None:
    tracks = lesson.tracks()
    events = list(lesson.events)
    seen: dict[int, int] = {}
    for i, e in enumerate(events):
        kind = int(tracks["ev.kind"][i])
        assert KINDS[kind] is type(e)
        assert tracks["ev.node"][i] == e.node
        assert tracks["ev.cause"][i] == e.cause
        assert tracks["ev.row"][i] == seen.setdefault(kind, 0)
        seen[kind] += 1
    assert tracks["k.TensorCreated.ne"].shape == (6, 4)
    assert {str(c.dtype) for c in tracks.columns.values()} <= {"uint8", "int32", "uint32", "float32", "float64"}


def test_a_size_without_an_end_is_minus_one(lesson: Trace) -> None:
    assert lesson.column("k.ChunkOpened.size").tolist() == [2**63 - 1]
    assert lesson.tracks()["k.ChunkOpened.size"].tolist() == [-1]


def test_meta_says_all_that_a_reader_needs(lesson: Trace) -> None:
    meta = lesson.tracks().meta
    assert meta["n_events"] == len(lesson)
    assert [k["name"] for k in meta["kinds"]] == list(KIND_NAMES)
    chosen = meta["kinds"][KIND_NAMES.index("BlockChosen")]
    assert chosen["ggml"] == "ggml_dyn_tallocr_alloc, ggml/src/ggml-alloc.c"
    assert chosen["sentence"] == SENTENCES["BlockChosen"]
    assert ["offset", "offset"] in chosen["fields"]
    tracks = (
        "node count arena object split copy buffer place pages block chunk life live reserve "
        "scratch thread reuse token candidate eval cache cell kv slot route"
    ).split()
    assert sorted(meta["tracks"]) == sorted(tracks)


def test_tracks_go_through_bytes(lesson: Trace) -> None:
    tracks = lesson.tracks()
    same(tracks, Tracks.from_bytes(tracks.to_bytes()))


def test_the_teaching_trace_reads_as_it_should() -> None:
    """Three 8-byte allocations at 0, 8, 0 and a 16-byte peak: from the end, from the end, best fit exact."""
    c = Context(1 << 16)
    graph = first_lesson(c)
    for leaf in graph.leafs:
        leaf.set(np.ones(leaf.nelements))
    graph.nodes[0].data = graph.nodes[1].data = graph.nodes[2].data = None
    with record() as trace:
        compute_releasing(graph, cpu_buffer_type(alignment=1))
    tracks = trace.tracks()
    sentences = [
        render(tracks, i) for i in range(tracks.n_events) if tracks["ev.kind"][i] == KIND_NAMES.index("BlockChosen")
    ]
    assert sentences == [
        "wx goes to offset 0 of chunk 0, its free end: no gap before it is large enough.",
        "wx+b goes to offset 8 of chunk 0, its free end: no gap before it is large enough.",
        "out goes to offset 0 of chunk 0: best fit exact, a free block of just 8 B.",
    ]
    assert [row[5] for row in rows(tracks, "life")][-3:] == [0, 8, 0]
    assert at(tracks, "chunk", tracks.n_events - 1)[-1][2] == 16
    c.free()


def test_a_recording_begun_while_the_graph_stands_opens_like_any_other() -> None:
    c = Context(1 << 16, no_alloc=True)
    graph = first_lesson(c)
    galloc = GraphAllocator(cpu_buffer_type())
    galloc.alloc_graph(graph)
    for leaf in graph.leafs:
        leaf.set(np.ones(leaf.nelements))
    plan = graph_plan(graph, n_threads=1)
    graph_compute(graph, plan, fast=False)
    with record() as trace:
        graph_compute(graph, plan, fast=False)
    tracks = trace.tracks()
    begin = event(tracks, "NodeBegin", 1)
    held = [row for row in at(tracks, "block", begin) if row[-1] >= 0]
    assert len({allocator for allocator, *_ in held}) == 1
    owners = {named(tracks, [t])[0]: offset for _, _, offset, _, t in held}
    assert owners == {"b": 64, "wx+b": 96}
    nodes = tracks["graph.node"][tracks["graph.ptr"][-2] :].tolist()
    states = {named(tracks, [t])[0]: state for t, state in at(tracks, "node", begin) if t in nodes}
    assert (states["wx"], states["wx+b"], states["out"]) == (5, 4, 3)
    assert at(tracks, "eval", begin)[0][0] == 0
    galloc.free()
    c.free()
