"""`record()`: every event from here to there, as a trace."""

from __future__ import annotations

import threading
from array import array
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from operator import attrgetter
from typing import Any

from vizggml.events import (
    KINDS,
    ContextId,
    DecodeBegin,
    Event,
    ReserveBegin,
    SnapshotBegin,
    SnapshotEnd,
    Standing,
    TensorCreated,
    TensorId,
    bus,
)
from vizggml.ggml.cgraph import Graph
from vizggml.ggml.context import tensor_snapshot
from vizggml.ggml.quants import LAYOUTS
from vizggml.ggml.tensor import Tensor
from vizggml.timeline.schema import ID_TYPES, TRACE_COLUMNS, Field, fields_of
from vizggml.timeline.trace import Trace, new_meta
from vizggml.timeline.values import sample_values

TYPECODES = {"u1": "B", "i4": "i", "u4": "I", "i8": "q", "f4": "f", "f8": "d"}
SETTLE_EVERY = 8192
BLOCKS = 4
"""Blocks kept of each quantized leaf that a node reads, in a recording with values."""

NO_CONTEXT = ContextId(-1)
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
STANDING_ORDER = ("Context", "Buffer", "MappedFile", "Graph", "DynTallocr", "GraphAllocator", "KVCache")
"""Classes in the order in which a snapshot makes them again; others follow by name."""

Put = Callable[[Event], None]


class Dense(dict[Any, int]):
    """Numbers things 0, 1, 2, ... as they first appear; `none` is -1."""

    def __init__(self, none: Any) -> None:
        super().__init__({none: -1})

    def __missing__(self, key: Any) -> int:
        number = self[key] = len(self) - 1
        return number


class Recorder:
    """Takes events from the bus and sorts them into the columns of its trace.

    Taking one is an append; sorting happens in batches, or when the trace is read. Nothing that an event does not hold
    itself is kept.
    """

    def __init__(self) -> None:
        self._columns: dict[str, array[Any]] = {name: array(TYPECODES[d]) for name, d in TRACE_COLUMNS.items()}
        self._ids = {space: Dense(-1) for space in ID_TYPES.values()}
        self._texts = Dense("")
        self._strings: list[str] = []
        self._pending: list[Event] = []
        self._opened: set[int] = set()
        self._settling = threading.RLock()
        self._first_seq = 0
        self._shift: int | None = None
        self._told: dict[str, object] = {}
        self._puts: dict[type[Event], tuple[Put, ...]] = {kind: self._puts_of(i, kind) for i, kind in enumerate(KINDS)}
        self.trace = Trace(new_meta(), self._strings, dict(self._columns))
        self.trace._recorder = self

    def take(self, event: Event) -> None:
        """The sink that the bus calls."""
        pending = self._pending
        pending.append(event)
        if len(pending) >= SETTLE_EVERY:
            self.settle()

    def settle(self) -> None:
        """Sort the events taken so far into the columns."""
        with self._settling:
            n = len(self._pending)
            batch = self._pending[:n]
            del self._pending[:n]
            if batch and self._shift is None and batch[0].seq >= 0:
                self._first_seq = batch[0].seq
                self._shift = len(self._columns["ev.kind"]) - self._first_seq
            puts = self._puts
            for event in batch:
                for put in puts[type(event)]:
                    put(event)

    def take_snapshot(self) -> None:
        """Record what stands, as the events that would have made it."""
        self.take(SnapshotBegin())
        made: set[TensorId] = set()
        for thing in sorted(bus.standing, key=standing_order):
            for event in thing.snapshot():
                if isinstance(event, TensorCreated):
                    made.add(event.tensor)
                self.take(event)
            if isinstance(thing, Graph):
                for event in left_by_contexts(thing, made):
                    self.take(event)
        self.take(SnapshotEnd())
        self.settle()

    def take_values(self, computed: object) -> None:
        """The sink that the bus calls with each node's tensor at its end."""
        assert isinstance(computed, Tensor)
        with self._settling:
            self.settle()
            values = sample_values(computed)
            columns = self._columns
            columns["v.event"].append(len(columns["ev.kind"]))
            columns["v.tensor"].append(self._ids["tensor"][computed.id])
            columns["v.stats"].extend(values.stats)
            columns["v.bins"].extend(values.bins.tolist())
            columns["v.grid"].extend(values.grid.shape)
            if not columns["v.ptr"]:
                columns["v.ptr"].append(0)
            columns["v.val"].frombytes(values.grid.tobytes())
            columns["v.ptr"].append(len(columns["v.val"]))
            for source in computed.src:
                if source is not None and source.type.is_quantized and source.op == "NONE" and source.view_src is None:
                    self._take_blocks(source)

    def _take_blocks(self, leaf: Tensor) -> None:
        """Keep a quantized leaf's first blocks, the first time that a node reads it."""
        tensor = self._ids["tensor"][leaf.id]
        if tensor in self._opened or leaf.type.name not in LAYOUTS:
            return
        self._opened.add(tensor)
        columns = self._columns
        if not columns["q.ptr"]:
            columns["q.ptr"].append(0)
        columns["q.tensor"].append(tensor)
        columns["q.type"].append(self._number(leaf.type.name))
        columns["q.val"].extend(leaf.array()[0, 0, 0, :BLOCKS].ravel().tolist())
        columns["q.ptr"].append(len(columns["q.val"]))

    def describe(self) -> None:
        """Take the parameters of what is at work in this recording; of what merely stands, what that did not say."""
        acting = bus.acting
        if acting is not None and hasattr(acting, "describe"):
            self._told |= acting.describe()
        for thing in sorted(bus.standing, key=standing_order):
            if hasattr(thing, "describe"):
                self.trace.meta.update(thing.describe())
        self.trace.meta.update(self._told)

    def end(self) -> None:
        """Nothing more will come."""
        self.settle()
        self.describe()
        self.trace._recorder = None

    def _puts_of(self, index: int, kind: type[Event]) -> tuple[Put, ...]:
        kinds, nodes, causes = (self._columns[f"ev.{name}"].append for name in ("kind", "node", "cause"))
        tensors = self._ids["tensor"]

        def stamp(event: Event) -> None:
            kinds(index)
            nodes(tensors[event.node])
            cause = event.cause
            causes(cause + (self._shift or 0) if cause >= self._first_seq else -1)

        return (stamp, *(self._put(f"k.{kind.__name__}.{field.name}", field) for field in fields_of(kind)))

    def _put(self, column: str, field: Field) -> Put:
        get = attrgetter(field.name)
        if field.is_list:
            return self._put_list(column, field, get)
        to = self._columns[column]
        append = to.append
        if field.is_id:
            ids = self._ids[field.ftype]
            return lambda event: append(ids[get(event)])
        if field.ftype == "str":
            number = self._number
            return lambda event: append(number(get(event)))
        if field.ftype == "dims":
            return lambda event: to.extend(get(event))
        if field.dtype == "i8":
            return lambda event: append_whole(to, get(event))
        return lambda event: append(get(event))

    def _put_list(self, column: str, field: Field, get: Callable[[Event], Any]) -> Put:
        ptr, val = self._columns[f"{column}.ptr"], self._columns[f"{column}.val"]
        number: Callable[[Any], Any] | None = None
        if field.is_id:
            number = self._ids[field.item].__getitem__
        elif field.item == "str":
            number = self._number

        def put(event: Event) -> None:
            if not ptr:
                ptr.append(0)
            val.extend(map(number, get(event)) if number else get(event))
            ptr.append(len(val))

        return put

    def _number(self, text: str) -> int:
        number = self._texts[text]
        if number == len(self._strings):
            self._strings.append(text)
        return number


def append_whole(to: array[int], value: int) -> None:
    """Append; what is beyond 64 bits becomes the largest (or smallest) that is not."""
    try:
        to.append(value)
    except OverflowError:
        to.append(max(INT64_MIN, min(value, INT64_MAX)))


def standing_order(thing: Standing) -> tuple[int, str, int]:
    name = type(thing).__name__
    rank = STANDING_ORDER.index(name) if name in STANDING_ORDER else len(STANDING_ORDER)
    return rank, name, getattr(thing, "id", 0)


def left_by_contexts(graph: Graph, made: set[TensorId]) -> Iterator[Event]:
    """The tensors of a graph that are in no context which still stands, and so not in `made`, which takes them in.

    A weight or a cache lives on with the graph that reads it, when its model or its context is gone.
    """
    for t in (*graph.leafs, *graph.nodes):
        for one in (t.view_src, t):
            if one is not None and one.id not in made:
                made.add(one.id)
                yield from tensor_snapshot(one, NO_CONTEXT)


_sampling: list[Recorder] = []


def sampling_for(recorder: Recorder) -> Callable[[], None]:
    """Give `recorder` the values too, beside whoever gets them already; the answer ends it."""

    def take_values(computed: object) -> None:
        for one in tuple(_sampling):
            one.take_values(computed)

    def end() -> None:
        _sampling.remove(recorder)
        if not _sampling:
            bus.values = None

    _sampling.append(recorder)
    bus.values = take_values
    return end


@contextmanager
def record(values: bool = False) -> Iterator[Trace]:
    """Record every event emitted inside the `with` block; the trace can be read already while it grows.

    It begins with a snapshot of what stands. With `values`, each node's result is summed up and sampled when the node
    ends, before its memory is reused, and the first blocks of each quantized leaf that a node reads are kept.
    """
    recorder = Recorder()
    recorder.take_snapshot()
    with ExitStack() as at_end:
        at_end.callback(recorder.end)
        at_end.callback(bus.subscribe(None, recorder.take))
        # at the end of the recording the context that decoded may be gone, and so may one that only planned
        for kind in (ReserveBegin, DecodeBegin):
            at_end.callback(bus.subscribe(kind, lambda event: recorder.describe()))
        if values:
            at_end.callback(sampling_for(recorder))
        yield recorder.trace
