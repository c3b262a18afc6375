"""The trace file: what is saved is loaded, and what is no trace is one clear line."""

from __future__ import annotations

import re
import time
import tracemalloc
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.timeline.made import trace_of
from vizggml.errors import VizggmlError
from vizggml.events import (
    AllocatorId,
    ContextId,
    GraphId,
    LeafAppended,
    NodeAppended,
    NodeBegin,
    OpRecorded,
    SearchBegin,
    Seq,
    TensorCreated,
    TensorId,
    TensorNamed,
    Tokenized,
    bus,
)
from vizggml.ggml import ops
from vizggml.ggml.cgraph import Graph
from vizggml.ggml.context import Context
from vizggml.ggml.types import REFERENCE_COMMIT
from vizggml.timeline.columns import Columns, read_file, write_file
from vizggml.timeline.record import Recorder
from vizggml.timeline.trace import EXPORTERS, Trace, load_trace


def sample() -> Trace:
    t0, t1 = TensorId(0), TensorId(1)
    return trace_of(
        TensorCreated(t0, ContextId(0), "F32", (3, 2, 1, 1), (4, 12, 24, 24), 24),
        TensorNamed(t0, "W"),
        TensorCreated(t1, ContextId(0), "F32", (2, 1, 1, 1), (4, 8, 8, 8), 8),
        OpRecorded(t1, "MUL_MAT", "MUL_MAT", (), (t0,), False, node=t1),
        LeafAppended(GraphId(0), t0, 0),
        NodeAppended(GraphId(0), t1, 0, cause=Seq(3)),
        SearchBegin(AllocatorId(0), t1, 8, 32),
        Tokenized("ab", (1, 2), ("a", "b")),
    )


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "sample.vgt"
    sample().save(path)
    return path


def test_what_is_saved_is_loaded(saved: Path, tmp_path: Path) -> None:
    loaded = load_trace(saved)
    assert len(loaded) == 8
    assert list(loaded.events) == list(sample().events)
    assert loaded.meta["reference"]["commit"] == REFERENCE_COMMIT
    assert loaded.tracks().to_bytes() == sample().tracks().to_bytes()
    loaded.save(tmp_path / "again.vgt")
    assert (tmp_path / "again.vgt").read_bytes() == saved.read_bytes()


def test_where_the_events_of_a_kind_are() -> None:
    trace = sample()
    assert trace.steps("TensorCreated", "OpRecorded") == [0, 2, 3]
    assert trace.steps() == list(range(8))
    assert trace.sentences("TensorNamed") == ["The tensor is named W."]
    with pytest.raises(VizggmlError, match="event kind 'Tensor' is not one of"):
        trace.steps("Tensor")


def test_an_empty_trace(tmp_path: Path) -> None:
    trace_of().save(tmp_path / "empty.vgt")
    loaded = load_trace(tmp_path / "empty.vgt")
    assert len(loaded) == 0
    assert list(loaded.events) == []
    assert loaded.tracks().n_events == 0


def test_nothing_is_pickled(saved: Path) -> None:
    assert b"VGCOL" in saved.read_bytes()[:8]
    source = Path(load_trace.__code__.co_filename).read_text()
    assert "pickle" not in source


def test_kinds_are_known_by_name_not_by_number(saved: Path) -> None:
    content = read_file(saved, "trace", 2)
    kinds = content.meta["kinds"]
    content.meta["kinds"] = kinds[::-1]
    content.columns["ev.kind"] = np.uint8(len(kinds) - 1) - content.columns["ev.kind"]
    write_file(saved, content)
    assert list(load_trace(saved).events) == list(sample().events)


def change(content: Columns, column: str, value: Any) -> None:
    content.columns[column] = np.array(value, content.columns[column].dtype)


def columns_changed(column: str, value: Any) -> Any:
    return lambda content: change(content, column, value)


def meta_changed(**meta: object) -> Any:
    return lambda content: content.meta.update(meta)


def column_set(column: str, value: Any) -> Any:
    return lambda content: content.columns.__setitem__(column, value)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (meta_changed(kinds=7), "the header has no list of kinds"),
        (meta_changed(kinds=["TensorCreated"]), "the file lists 1"),
        (meta_changed(kinds=["Fancy"] * 200), "events of kind 'Fancy', which this version does not have"),
        (columns_changed("ev.kind", [7] * 7), "column 'ev.node' has 8 rows, its events are 7"),
        (columns_changed("ev.node", [0] * 7), "column 'ev.node' has 7 rows, its events are 8"),
        (columns_changed("ev.cause", [-1, -1, 2, -1, -1, -1, -1, -1]), "event 2 has cause 2"),
        (columns_changed("ev.cause", [-2] * 8), "event 0 has cause -2"),
        (columns_changed("k.TensorNamed.tensor", [2**31 - 1]), "holds tensor 2147483647, but there are only"),
        (columns_changed("k.SearchBegin.tensor", [-2]), "holds id -2, below -1"),
        (columns_changed("k.TensorNamed.tensor", [-1]), "holds -1, which names no tensor"),
        (columns_changed("k.NodeAppended.graph", [-1]), "holds -1, which names no graph"),
        (columns_changed("k.TensorNamed.name", [99]), "holds string 99, the table has"),
        (columns_changed("k.TensorNamed.name", [-2]), "holds string -2"),
        (columns_changed("k.TensorNamed.name", [0, 0]), "has 2 rows, its events are 1"),
        (columns_changed("k.NodeAppended.graph", [1000000]), "holds graph 1000000"),
        (columns_changed("k.OpRecorded.src.ptr", [0, 2]), "does not rise from 0 to the 1 values"),
        (columns_changed("k.OpRecorded.src.ptr", [1, 1]), "does not rise from 0"),
        (columns_changed("k.OpRecorded.src.ptr", [0]), "has no rows"),
        (columns_changed("k.Tokenized.ids.val", []), "does not rise from 0 to the 0 values"),
        (column_set("k.TensorCreated.ne", np.zeros((2, 3), np.int64)), "has shape (2, 3), not (-1, 4)"),
        (column_set("k.TensorNamed.name", np.zeros(1, np.float64)), "is float64, not i4"),
        (column_set("k.Secret.x", np.zeros(1, np.uint8)), "column 'k.Secret.x' is not one of a trace's"),
        (column_set("v.event", np.zeros(1, np.int32)), "column 'v.tensor' has 0 rows"),
        (lambda content: content.columns.pop("k.SearchBegin.size"), "'k.SearchBegin.size' has 0 rows"),
        (lambda content: content.columns.pop("ev.node"), "'ev.node' has 0 rows"),
    ],
)
def test_columns_that_contradict_each_other(saved: Path, damage: Any, message: str) -> None:
    content = read_file(saved, "trace", 2)
    damage(content)
    write_file(saved, content)
    with pytest.raises(VizggmlError, match=re.escape(message)) as error:
        load_trace(saved)
    assert "\n" not in str(error.value)
    assert str(error.value).startswith(f"trace {str(saved)!r}: ")


def test_another_schema(saved: Path) -> None:
    content = read_file(saved, "trace", 2)
    write_file(saved, Columns("trace", 1, content.meta, content.strings, content.columns))
    with pytest.raises(VizggmlError, match="schema 1, this version reads schema 2"):
        load_trace(saved)


def test_a_trace_cut_anywhere_is_refused(saved: Path) -> None:
    data = saved.read_bytes()
    for end in [*range(0, len(data) - 8, 37), len(data) - 9]:
        saved.write_bytes(data[:end])
        with pytest.raises(VizggmlError, match="trace "):
            load_trace(saved)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), min_size=1, max_size=3))
def test_a_damaged_trace_says_so_or_folds(tmp_path: Path, changes: list[tuple[int, int]]) -> None:
    path = tmp_path / "damaged.vgt"
    sample().save(path)
    data = bytearray(path.read_bytes())
    start = 16 + int.from_bytes(data[8:12], "little")
    for where, value in changes:
        data[start + where % (len(data) - start)] = value
    path.write_bytes(data)
    with suppress(VizggmlError):
        assert load_trace(path).tracks().n_events == 8


def test_a_lying_file_costs_no_memory_and_no_time(saved: Path) -> None:
    content = read_file(saved, "trace", 2)
    change(content, "k.NodeAppended.tensor", [2**31 - 2])
    write_file(saved, content)
    tracemalloc.start()
    begin = time.process_time()
    with pytest.raises(VizggmlError):
        load_trace(saved)
    assert time.process_time() - begin < 1
    assert tracemalloc.get_traced_memory()[1] < 100 * saved.stat().st_size
    tracemalloc.stop()


def test_what_can_be_made_of_a_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EXPORTERS, "words", lambda trace, path, loud=False: (len(trace), path, loud))
    assert sample().to_words("x", loud=True) == (8, "x", True)
    with pytest.raises(AttributeError, match="not 'nothing'"):
        sample().to_nothing()
    with pytest.raises(AttributeError, match="no attribute 'colour'"):
        _ = sample().colour


def test_the_same_run_gives_the_same_trace(tmp_path: Path) -> None:
    def run(path: Path) -> bytes:
        recorder = Recorder()
        unsubscribe = bus.subscribe(None, recorder.take)
        context = Context(4096, no_alloc=True)
        view = context.new_view(context.new_tensor("F32", (8,), name="a"), (4,), 16)
        Graph(context, 8).build_forward_expand(ops.relu(context, view))
        context.free()
        unsubscribe()
        recorder.trace.save(path)
        return path.read_bytes()

    assert run(tmp_path / "1.vgt") == run(tmp_path / "2.vgt")


def test_reading_a_hundred_thousand_events_back(tmp_path: Path) -> None:
    events = [NodeBegin(GraphId(0), TensorId(i % 900), 0, i) for i in range(100_000)]
    trace = trace_of(*events)
    trace.save(tmp_path / "long.vgt")
    loaded = load_trace(tmp_path / "long.vgt")
    assert len(loaded) == 100_000
    assert loaded.column("k.NodeBegin.ns")[-1] == 99_999
    assert (tmp_path / "long.vgt").stat().st_size < 35 * 100_000
