"""Recordings of the tiny model: begun with the context, and begun in the middle while the graph is used again."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest

from tests.timeline.made import at
from vizggml.events import SnapshotEnd
from vizggml.llama.model import Model, load_model
from vizggml.timeline.record import record
from vizggml.timeline.schema import KIND_INDEX
from vizggml.timeline.sentences import render
from vizggml.timeline.trace import Trace
from vizggml.timeline.tracks import Tracks

PROMPT = "Once upon a time"


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    loaded = load_model("tiny")
    yield loaded
    loaded.close()


@pytest.fixture(scope="module")
def whole(model: Model) -> Trace:
    with record() as trace:
        list(model.context(n_ctx=256, n_threads=1).generate(PROMPT, max_tokens=3, temp=0))
    return trace


@pytest.fixture(scope="module")
def middle(model: Model) -> Trace:
    generated = model.context(n_ctx=256, n_threads=1).generate(PROMPT, max_tokens=6, temp=0)
    for _ in range(3):
        next(generated)
    with record() as trace:
        list(generated)
    return trace


def events_of(tracks: Tracks, kind: str) -> list[int]:
    return np.flatnonzero(tracks["ev.kind"] == KIND_INDEX[kind]).tolist()


def check_blocks(tracks: Tracks, events: range) -> None:
    """The blocks of a chunk never overlap."""
    for i in events:
        chunks: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for allocator, chunk, offset, size, _ in at(tracks, "block", i):
            chunks.setdefault((allocator, chunk), []).append((offset, 2**62 if size < 0 else size))
        for blocks in chunks.values():
            blocks.sort()
            assert all(offset + size <= after for (offset, size), (after, _) in pairwise(blocks))


def check_lives(tracks: Tracks) -> None:
    """In no plan do two tensors that live at the same position share a byte, but for one that takes its source over."""
    life = tracks.track("life")
    for plan in np.unique(life["plan"]):
        rows = np.flatnonzero(life["plan"] == plan)
        chunk, begin, size, first, last = (life[c][rows] for c in ("chunk", "offset", "size", "first", "last"))
        same_bytes = (begin[:, None] < (begin + size)[None]) & (begin[None] < (begin + size)[:, None])
        same_time = (first[:, None] <= last[None]) & (first[None] <= last[:, None])
        clash = same_bytes & same_time & (chunk[:, None] == chunk[None])
        assert np.array_equal(clash, np.eye(len(rows), dtype=bool))


@pytest.mark.parametrize("which", ["whole", "middle"])
def test_memory_is_never_in_two_hands(which: str, request: pytest.FixtureRequest) -> None:
    tracks = request.getfixturevalue(which).tracks()
    check_blocks(tracks, range(0, tracks.n_events, 29))
    check_lives(tracks)


@pytest.mark.parametrize("which", ["whole", "middle"])
def test_while_computing_the_map_shows_where_the_node_lies(which: str, request: pytest.FixtureRequest) -> None:
    tracks = request.getfixturevalue(which).tracks()
    for i in events_of(tracks, "NodeBegin")[::3]:
        tensor = int(tracks["ev.node"][i])
        view = int(tracks["tensor.view_src"][tensor])
        owner = view if view >= 0 else tensor
        if tracks["tensor.external"][owner]:
            continue
        lies = next(offset for t, _, offset, _ in at(tracks, "place", i) if t == owner)
        held = [offset for _, _, offset, _, t in at(tracks, "block", i) if t == owner]
        assert held == [lies]


def test_the_tokens_of_a_whole_run(whole: Trace, model: Model) -> None:
    tracks = whole.tracks()
    tokens = at(tracks, "token", tracks.n_events - 1)
    prompt = model.vocab.tokenize(PROMPT)
    assert [row[0] for row in tokens][: len(prompt)] == prompt
    assert [row[2] for row in tokens] == list(range(len(prompt) + 3))
    assert [row[3] for row in tokens] == [0] * len(prompt) + [1] * 3
    assert [row[5] for row in tokens][len(prompt) :] == [0, 1, 2]
    evaluations = at(tracks, "eval", tracks.n_events - 1)
    assert len(evaluations) == 1
    assert evaluations[0][0] == 2
    assert whole.meta["model"] == "tiny.gguf"
    assert whole.meta["params"]["n_ctx"] == 256


def test_cells_and_writes(whole: Trace, model: Model) -> None:
    tracks = whole.tracks()
    n_read = len(model.vocab.tokenize(PROMPT)) + 2
    last = tracks.n_events - 1
    assert [(cell, pos) for _, cell, pos, *_ in at(tracks, "cell", last)] == [(k, k) for k in range(n_read)]
    written = at(tracks, "kv", last)
    n_layer = model.hparams.n_layer
    assert sum(n for *_, n, _ in written) == 2 * n_layer * n_read
    assert {layer for _, layer, *_ in written} == set(range(n_layer))


def test_a_recording_in_the_middle_opens_with_what_stands(middle: Trace) -> None:
    tracks = middle.tracks()
    begin = next(e.seq for e in middle.events if isinstance(e, SnapshotEnd))
    graphs = np.diff(tracks["graph.ptr"].astype(int)).tolist()
    assert max(graphs) > 100
    assert events_of(tracks, "NodeAppended")[-1] < begin
    assert len(at(tracks, "life", begin)) > 20
    assert len(at(tracks, "cell", begin)) >= 6
    assert len(at(tracks, "arena", begin)) >= 3
    names = {tracks.string(int(n)) for n in tracks["tensor.name"]}
    assert {"blk.0.attn_q.weight", "Qcur-0", "cache_k_l0", "result_output"} <= names


def test_a_recording_in_the_middle_steps_like_any_other(middle: Trace) -> None:
    tracks = middle.tracks()
    evaluations = [at(tracks, "eval", i)[-1] for i in events_of(tracks, "ComputeEnd")]
    assert [row[0] for row in evaluations] == [0, 1, 2]
    assert {row[4] for row in evaluations} == {1}
    assert len({row[1] for row in evaluations}) == 1
    assert not events_of(tracks, "ExpandBegin")
    for i in events_of(tracks, "ComputeEnd"):
        graph = evaluations[0][1]
        ptr = tracks["graph.ptr"].astype(int)
        nodes = set(tracks["graph.node"][ptr[graph] : ptr[graph + 1]].tolist())
        assert {state for t, state in at(tracks, "node", i) if t in nodes} <= {5, 7}
    assert all(render(tracks, i) for i in range(0, tracks.n_events, 7))


def test_recording_changes_no_token(model: Model, whole: Trace) -> None:
    tracks = whole.tracks()
    sampled = [row[0] for row in at(tracks, "token", tracks.n_events - 1) if row[3]]
    plain = [t.id for t in model.context(n_ctx=256, n_threads=1).generate(PROMPT, max_tokens=3, temp=0)]
    assert sampled == plain
