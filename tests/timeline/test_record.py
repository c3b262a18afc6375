"""Recording: what is in a trace, in which numbering, and what it does not keep."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import numpy as np
import pytest

from tests.timeline.made import trace_of
from vizggml.events import (
    AllocatorId,
    BlockSplit,
    BufferAllocated,
    BufferId,
    CacheId,
    CellSet,
    ContextId,
    Event,
    GraphId,
    LeafAppended,
    LogitsReady,
    OpRecorded,
    SearchBegin,
    Seq,
    SnapshotBegin,
    SnapshotEnd,
    TensorCreated,
    TensorId,
    TensorNamed,
    Tokenized,
    UseCountChanged,
    bus,
)
from vizggml.ggml.cgraph import Graph
from vizggml.ggml.context import Context
from vizggml.ggml.ops import relu
from vizggml.timeline import record as record_module
from vizggml.timeline.record import record


def placed(n: int) -> BufferAllocated:
    return BufferAllocated(BufferId(n), "CPU", n, "any")


def tail(trace: record_module.Trace, n: int) -> list[Event]:
    return list(trace.events)[-n:]


def test_events_come_back_as_they_were_emitted() -> None:
    events = [
        TensorCreated(TensorId(0), ContextId(0), "F32", (3, 2, 1, 1), (4, 12, 24, 24), 24),
        OpRecorded(TensorId(1), "MUL_MAT", "MUL_MAT", (-1, 2), (TensorId(0), TensorId(-1)), False),
        OpRecorded(TensorId(2), "NONE", "NONE", (), (), True),
        Tokenized("né", (4, 5), ("n", "é")),
        LogitsReady(3, (7,), ("x",), (0.5,), 1.0),
        TensorNamed(TensorId(1), ""),
    ]
    read = list(trace_of(*events).events)
    for number, (got, given) in enumerate(zip(read, events, strict=True)):
        assert type(got) is type(given)
        assert got.seq == number
        for field in type(given).__annotations__:
            assert getattr(got, field) == getattr(given, field)


def test_ids_are_dense_in_the_order_of_their_first_appearance() -> None:
    trace = trace_of(
        TensorNamed(TensorId(900), "a", node=TensorId(70)),
        UseCountChanged(GraphId(12), TensorId(70), 1, node=TensorId(900)),
        TensorNamed(TensorId(5), "b"),
        BufferAllocated(BufferId(12), "CPU", 8, "any"),
        renumber=True,
    )
    read = list(trace.events)
    assert [e.node for e in read] == [0, 1, -1, -1]
    assert read[0].tensor == 1  # type: ignore[attr-defined]
    assert (read[1].graph, read[1].tensor) == (0, 0)  # type: ignore[attr-defined]
    assert read[2].tensor == 2  # type: ignore[attr-defined]
    assert read[3].buffer == 0  # type: ignore[attr-defined]


def test_a_cause_is_the_number_of_an_event_of_the_trace() -> None:
    before = bus.subscribe(None, lambda event: None)
    try:
        old = bus.emit(TensorNamed(TensorId(0), "before"))
        with record() as trace:
            with bus.because(old):
                bus.emit(TensorNamed(TensorId(0), "not in the trace"))
            seq = bus.emit(SearchBegin(AllocatorId(0), TensorId(1), 5, 32))
            bus.emit(BlockSplit(AllocatorId(0), 0, 0, 32, 96, 32), cause=seq)
    finally:
        before()
    first, second, third = tail(trace, 3)
    assert first.cause == -1
    assert third.cause == second.seq == len(trace) - 2


def test_a_recording_begins_with_what_stands() -> None:
    context = Context(4096, no_alloc=True)
    context.new_tensor("F32", (3, 2), name="W")
    with record() as trace:
        context.new_tensor("F32", (2,), name="late")
    events = list(trace.events)
    assert isinstance(events[0], SnapshotBegin)
    end = next(e.seq for e in events if isinstance(e, SnapshotEnd))
    named = {e.name: e.seq for e in events if isinstance(e, TensorNamed)}
    assert named["W"] < end < named["late"]
    context.free()


def test_a_snapshot_names_what_outlived_its_context() -> None:
    """The weight is in a context that is gone; the graph that reads it stands, and so do the weight's bytes."""
    weights = Context(1 << 16)
    graph = Graph(Context(1 << 18))
    graph.build_forward_expand(relu(graph.ctx, weights.new_tensor("F32", (3, 2), "W")))
    del weights
    gc.collect()
    with record() as trace:
        pass
    events = list(trace.events)
    leaf = next(e.tensor for e in reversed(events) if isinstance(e, LeafAppended))
    assert [(e.ne, e.nbytes) for e in events if isinstance(e, TensorCreated) and e.tensor == leaf] == [
        ((3, 2, 1, 1), 24)
    ]
    assert [e.name for e in events if isinstance(e, TensorNamed) and e.tensor == leaf] == ["W"]


class Thing:
    """Something that stands; which event it makes says who it is."""

    def __init__(self, id: int) -> None:
        self.id = id

    def snapshot(self) -> Iterator[Event]:
        yield TensorNamed(TensorId(self.id), f"{type(self).__name__} {self.id}")


def test_a_snapshot_goes_by_class_and_then_by_id() -> None:
    classes = [
        type(name, (Thing,), {}) for name in ("KVCache", "GraphAllocator", "Graph", "Buffer", "Context", "Other")
    ]
    things = [c(id) for c in classes for id in (10**6 + 1, 10**6)]
    for thing in things:
        bus.standing.add(thing)
    with record() as trace:
        pass
    names = [e.name for e in trace.events if isinstance(e, TensorNamed)]
    made = [n for n in names if n.rpartition(" ")[2] in ("1000000", "1000001")]
    order = ("Context", "Buffer", "Graph", "GraphAllocator", "KVCache", "Other")
    assert made == [f"{c} {id}" for c in order for id in (10**6, 10**6 + 1)]


def test_what_stands_can_say_which_model_it_is() -> None:
    class Described(Thing):
        def describe(self) -> dict[str, object]:
            return {"model": "tiny", "params": {"n_ctx": 64}}

    thing = Described(1)
    bus.standing.add(thing)
    with record() as trace:
        pass
    assert trace.meta["model"] == "tiny"
    assert trace.meta["params"] == {"n_ctx": 64}


def test_a_trace_can_be_read_while_it_grows() -> None:
    with record() as trace:
        begin = len(trace)
        bus.emit(TensorNamed(TensorId(0), "a"))
        assert len(trace) == begin + 1
        bus.emit(TensorNamed(TensorId(0), "b"))
        assert [e.name for e in tail(trace, 2)] == ["a", "b"]  # type: ignore[attr-defined]
        assert trace.tracks().n_events == begin + 2
    bus.emit(TensorNamed(TensorId(0), "nobody listens"))
    assert len(trace) == begin + 2
    assert not bus.on


def test_batches_are_sorted_in_as_they_fill(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_module, "SETTLE_EVERY", 3)
    events = [CellSet(CacheId(0), cell, 10 + cell, 0) for cell in range(10)]
    assert [e.pos for e in trace_of(*events).events] == list(range(10, 20))  # type: ignore[attr-defined]


def test_recording_stops_when_the_block_fails() -> None:
    recording = record()
    trace = recording.__enter__()
    bus.emit(TensorNamed(TensorId(0), "a"))
    assert recording.__exit__(KeyError, KeyError("inside"), None) is not True
    assert not bus.on
    assert isinstance(tail(trace, 1)[0], TensorNamed)


def test_a_number_beyond_64_bits_becomes_the_largest() -> None:
    (event,) = trace_of(BlockSplit(AllocatorId(0), 0, 0, 2**70, -(2**70), 1)).events
    assert (event.offset, event.size, event.taken) == (2**63 - 1, -(2**63), 1)  # type: ignore[attr-defined]


def test_recording_keeps_no_tensor_alive() -> None:
    with record(values=True) as trace:
        context = Context(4096)
        tensor = context.new_tensor("F32", (3,), name="t").set([1, 2, 3])
        assert bus.values is not None
        bus.values(tensor)
        trace.tracks()
        alive = weakref.ref(tensor)
        memory = weakref.ref(context.mem_buffer)
        del tensor, context
        gc.collect()
        assert alive() is None
        assert memory() is None
    assert trace.column("v.tensor").tolist() == [trace.column("k.TensorNamed.tensor")[-1]]


def test_values_are_taken_when_they_are_told() -> None:
    context = Context(4096)
    tensor = context.new_tensor("F32", (4,)).set([3.0, -1.0, np.inf, 4.0])
    half = context.new_tensor("BF16", (2,)).set(np.array([0x3F80, 0xC000], np.uint16))
    with record(values=True) as trace:
        assert bus.values is not None
        begin = len(trace)
        bus.values(tensor)
        bus.emit(TensorNamed(TensorId(tensor.id), "later"))
        bus.values(half)
    assert bus.values is None
    stats = trace.tracks()["v.stats"]
    assert stats[0].tolist() == [-1, 4, 2, pytest.approx(np.sqrt(26 / 3)), 1]
    assert stats[1].tolist() == [-2, 1, -0.5, pytest.approx(np.sqrt(2.5)), 0]
    assert trace.column("v.event").tolist() == [begin, begin + 1]
    assert trace.tracks()["v.grid"].tolist() == [[1, 4], [1, 2]]
    assert trace.column("v.ptr").tolist() == [0, 4, 6]
    assert trace.column("v.val").tolist() == [3, -1, np.inf, 4, 1, -2]
    context.free()


def test_what_began_under_an_earlier_recording_is_no_cause() -> None:
    """As when a thread computes while another begins to record."""
    with record():
        for n in range(40):
            began = bus.emit(placed(n))
        inside = bus.because(Seq(3))
        inside.__enter__()
        deeper = bus.because(began)
        deeper.__enter__()
    with record() as trace:
        bus.emit(placed(1), cause=began)
        deeper.__exit__(None, None, None)
        for n in range(10):
            bus.emit(placed(n))
        inside.__exit__(None, None, None)
        bus.emit(placed(2))
    assert {e.cause for e in tail(trace, 12)} == {-1}


def test_each_recording_gets_the_values_that_it_asked_for() -> None:
    tensor = Context(4096).new_tensor("F32", (4,), "x")

    def told() -> None:
        if bus.values is not None:
            bus.values(tensor)

    with record(values=True) as outer, record(values=True) as inner:
        told()
    assert (len(outer.column("v.tensor")), len(inner.column("v.tensor"))) == (1, 1)
    first, second = record(values=True), record(values=True)
    one, two = first.__enter__(), second.__enter__()
    first.__exit__(None, None, None)
    told()
    second.__exit__(None, None, None)
    assert bus.values is None
    assert (len(one.column("v.tensor")), len(two.column("v.tensor"))) == (0, 1)
