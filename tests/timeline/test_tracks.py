"""Reading tracks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.timeline.made import trace_of
from vizggml.errors import VizggmlError
from vizggml.events import ContextId, GraphId, OpRecorded, TensorCreated, TensorId, TensorNamed, Tokenized, VisitEnter
from vizggml.ggml.context import Context
from vizggml.llama.model import load_model
from vizggml.timeline.columns import read_file
from vizggml.timeline.record import record
from vizggml.timeline.tracks import Tracks


@pytest.fixture(scope="module")
def tracks() -> Tracks:
    t = TensorId(0)
    return trace_of(
        TensorCreated(t, ContextId(0), "F32", (3, 2, 1, 1), (4, 12, 24, 24), 24),
        TensorNamed(t, "W"),
        OpRecorded(t, "ADD", "ADD", (), (TensorId(1), TensorId(2)), False),
        Tokenized("ab", (4, 5), ("a", "b")),
        VisitEnter(GraphId(0), t, 1, 0),
    ).tracks()


def test_fields(tracks: Tracks) -> None:
    assert tracks.field("TensorCreated", "ne", 0) == [3, 2, 1, 1]
    assert tracks.field("TensorCreated", "nbytes", 0) == 24
    assert tracks.string(tracks.field("TensorNamed", "name", 0)) == "W"
    assert tracks.field("OpRecorded", "src", 0) == [1, 2]
    assert [tracks.string(i) for i in tracks.field("Tokenized", "pieces", 0)] == ["a", "b"]
    assert tracks.string(-1) == ""


def test_what_holds_at_an_event(tracks: Tracks) -> None:
    assert tracks.at("node", 3)["tensor"].tolist() == []
    assert {c: v.tolist() for c, v in tracks.at("node", 4).items()} == {
        "a": [4],
        "b": [5],
        "tensor": [0],
        "status": [1],
    }
    assert tracks.open_at("node", 4).tolist() == [0]
    assert len(tracks) == tracks.n_events == 5


def test_a_file_of_tracks(tracks: Tracks, tmp_path: Path) -> None:
    tracks.save(tmp_path / "x.tracks")
    content = read_file(tmp_path / "x.tracks", "tracks", 2)
    assert content.meta == tracks.meta
    read = Tracks.from_bytes((tmp_path / "x.tracks").read_bytes())
    assert read.strings == tracks.strings
    with pytest.raises(VizggmlError, match="tracks: 3 bytes"):
        Tracks.from_bytes(b"abc")


def test_a_reader_begins_after_the_snapshot() -> None:
    """What stood before the recording comes first, between its two marks; the reader begins behind them."""
    standing = Context(mem_size=1 << 16, no_alloc=True)
    standing.new_tensor("F32", (4,), name="stood")
    with record() as trace:
        standing.new_tensor("F32", (4,), name="came")
    kinds = [type(event).__name__ for event in trace.events]
    assert trace.tracks().opening == kinds.index("SnapshotEnd") + 1 > 2
    assert kinds[trace.tracks().opening] == "ObjectAppended"


def test_a_recorded_run_opens_where_its_plan_begins() -> None:
    """At the first place that is looked for; at the decode, where all was planned before; a lesson at its beginning."""
    model = load_model("tiny")
    with record() as whole:
        context = model.context(n_ctx=256, n_ubatch=16, n_threads=1, fast=False)
        context.decode([1])
    with record() as midway:
        context.decode([2])
    with record() as lesson:
        Context(mem_size=1 << 16, no_alloc=True).new_tensor("F32", (4,), name="x")
    for trace, kind in ((whole, "SearchBegin"), (midway, "DecodeBegin")):
        tracks = trace.tracks()
        kinds = [type(event).__name__ for event in trace.events]
        assert tracks.start == kinds.index(kind, tracks.opening)
    assert lesson.tracks().start == lesson.tracks().opening
