"""The one fold: a trace's events, once, into tracks.

Each group of tracks has a folder with a handler for every kind of event that it answers to. A handler is called with
the event's number, its node and its fields. A trace that has grown is folded on from where the last fold stopped: rows
that were open then are open still.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from vizggml.events import KINDS, Event
from vizggml.timeline.columns import DTYPES, Column
from vizggml.timeline.fold_blocks import BlockFold
from vizggml.timeline.fold_cache import CacheFold
from vizggml.timeline.fold_graph import GraphFold, Handler
from vizggml.timeline.fold_memory import ENDLESS_FROM, MemoryFold
from vizggml.timeline.fold_run import RunFold
from vizggml.timeline.schema import KIND_INDEX, KIND_NAMES, VALUE_COLUMNS, WIDTHS, columns_of, fields_of
from vizggml.timeline.sentences import SENTENCES
from vizggml.timeline.track import Track
from vizggml.timeline.tracks import Tracks

if TYPE_CHECKING:
    from vizggml.timeline.trace import Trace


class Fold:
    """The state of folding one trace. `tracks()` folds what is new and answers all of it."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.n_folded = 0
        self.graph = GraphFold(trace.string)
        self.memory = MemoryFold(trace.string, self.graph)
        self.run = RunFold(trace.string)
        self.cache = CacheFold(trace.string)
        self.blocks = BlockFold(trace.string)
        self._rows_folded = [0] * len(KINDS)

    @property
    def _tracks(self) -> tuple[Track, ...]:
        return (*self.graph.tracks, *self.memory.tracks, *self.run.tracks, *self.cache.tracks)

    def tracks(self) -> Tracks:
        """The tracks of all events there are by now."""
        with collector_paused():
            return self._make_tracks(len(self.trace))

    def _make_tracks(self, n: int) -> Tracks:
        self._fold_to(n)
        columns = event_columns(self.trace, n)
        columns |= self.graph.tensors.columns(self.trace.strings, self.memory.external)
        columns |= self.graph.graphs.columns()
        columns |= self.cache.columns(self.graph.tensors, self.trace.strings)
        strides: dict[str, dict[str, int]] = {}
        for track in self._tracks:
            finished, stride = track.finished(n)
            columns |= {f"t.{track.name}.{name}": column for name, column in finished.items()}
            strides[track.name] = {"stride": stride}
        columns |= value_columns(self.trace)
        strings = list(self.trace.strings)
        self.blocks.read(self.trace)
        columns |= self.blocks.columns(strings)
        return Tracks(self._meta(n, strides), strings, columns)

    def _meta(self, n: int, strides: dict[str, dict[str, int]]) -> dict[str, Any]:
        meta = {key: self.trace.meta.get(key) for key in ("reference", "model", "params")}
        kinds = [
            {
                "name": kind.__name__,
                "area": kind.AREA,
                "ggml": kind.GGML,
                "ours": kind.OURS,
                "sentence": SENTENCES[kind.__name__],
                "fields": [[field.name, field.ftype] for field in fields_of(kind)],
            }
            for kind in KINDS
        ]
        return {"n_events": n, **meta, "kinds": kinds, "tracks": strides}

    def _fold_to(self, n: int) -> None:
        start = self.n_folded
        if start == n:
            return
        kinds = self.trace.column("ev.kind", start)[: n - start]
        nodes = self.trace.column("ev.node", start)[: n - start]
        counts = np.bincount(kinds, minlength=len(KINDS)).tolist()
        self._make_room([kind for kind, count in zip(KINDS, counts, strict=True) if count], nodes)
        every_handlers = [folder.handlers() for folder in (self.graph, self.memory, self.run, self.cache, self.blocks)]
        rows = {
            name: self.trace.rows(name, first)
            for name, first, count in zip(KIND_NAMES, self._rows_folded, counts, strict=True)
            if count and any(name in handlers for handlers in every_handlers)
        }
        for handlers in every_handlers:
            dispatch(handlers, kinds, nodes, rows, start)
        self._rows_folded = [a + b for a, b in zip(self._rows_folded, counts, strict=True)]
        self.n_folded = n

    def _make_room(self, kinds: list[type[Event]], nodes: Column) -> None:
        """Tables as long as the largest id that the new events hold."""
        largest = {"tensor": int(nodes.max(initial=-1)), "graph": -1}
        for kind in kinds:
            first = self._rows_folded[KIND_INDEX[kind.__name__]]
            for field in fields_of(kind):
                if field.item in largest:
                    name = f"k.{kind.__name__}.{field.name}"
                    ids = self.trace.column(f"{name}.val") if field.is_list else self.trace.column(name, first)
                    largest[field.item] = max(largest[field.item], int(ids.max(initial=-1)))
        self.graph.tensors.grow(largest["tensor"] + 1)
        self.graph.graphs.grow(largest["graph"] + 1)


@contextmanager
def collector_paused() -> Iterator[None]:
    """Folding makes many small tuples and no cycles: the collector would look through them in vain."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def dispatch(
    handlers: dict[str, Handler], kinds: Column, nodes: Column, rows: dict[str, list[list[Any]]], start: int
) -> None:
    """Call the handlers with the events of their kinds, in order."""
    wanted = np.zeros(len(KINDS), bool)
    wanted[[KIND_INDEX[name] for name in handlers]] = True
    chosen = np.flatnonzero(wanted[kinds])
    by_kind: list[Handler | None] = [None] * len(KINDS)
    fields: list[Any] = [None] * len(KINDS)
    for name, handler in handlers.items():
        if name in rows:
            by_kind[KIND_INDEX[name]] = handler
            fields[KIND_INDEX[name]] = zip(*rows[name], strict=True) if rows[name] else None
    numbers = zip((chosen + start).tolist(), kinds[chosen].tolist(), nodes[chosen].tolist(), strict=True)
    for i, kind, node in numbers:
        handler = by_kind[kind]
        assert handler is not None
        handler(i, node, *(next(fields[kind]) if fields[kind] is not None else ()))


def event_columns(trace: Trace, n: int) -> dict[str, Column]:
    """The events' own columns as tracks keep them: what is whole 64-bit numbers in a trace is f8."""
    kinds = trace.column("ev.kind")[:n]
    order = np.argsort(kinds, kind="stable")
    counts = np.bincount(kinds, minlength=len(KINDS))
    row = np.empty(n, np.uint32)
    row[order] = np.arange(n) - np.repeat(np.cumsum(counts) - counts, counts)
    columns: dict[str, Column] = {
        "ev.kind": kinds,
        "ev.node": trace.column("ev.node")[:n],
        "ev.cause": trace.column("ev.cause")[:n],
        "ev.row": row,
    }
    for kind, count in zip(KINDS, counts.tolist(), strict=True):
        for name, dtype in columns_of(kind).items() if count else ():
            column = trace.column(name)
            if name in WIDTHS:
                column = column.reshape(-1, WIDTHS[name])
            if name.endswith(".ptr"):
                column = column[: count + 1]
            elif not name.endswith(".val"):
                column = column[:count]
            columns[name] = as_f8(column) if dtype == "i8" else column
    return columns


def as_f8(column: Column) -> Column:
    """As doubles; what is so large that it means no limit is -1."""
    return np.where(column >= ENDLESS_FROM, -1, column).astype(DTYPES["f8"])


def value_columns(trace: Trace) -> dict[str, Column]:
    """The values that were asked for, as the trace keeps them."""
    if not len(trace.column("v.event")):
        return {}
    columns = {name: trace.column(name) for name in VALUE_COLUMNS}
    return {n: column.reshape(-1, WIDTHS[n]) if n in WIDTHS else column for n, column in columns.items()}
