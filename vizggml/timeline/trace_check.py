"""Whether a trace file's columns agree with each other, so that nothing that reads a trace must doubt it."""

from __future__ import annotations

import numpy as np

from vizggml.errors import VizggmlError
from vizggml.events import KINDS
from vizggml.timeline.columns import Column, Columns, require
from vizggml.timeline.schema import ID_TYPES, KIND_INDEX, KIND_NAMES, TRACE_COLUMNS, WIDTHS, Field, fields_of

NAMED = frozenset(
    f"k.{name}"
    for name in """
    TensorCreated.tensor ViewCreated.tensor StridesChanged.tensor OpRecorded.tensor TensorNamed.tensor FlagsSet.tensor
    TensorPlaced.tensor WeightsPlaced.tensor GraphCreated.graph LeafAppended.graph LeafAppended.tensor
    NodeAppended.graph NodeAppended.tensor AllocGraphEnd.graph ReserveBegin.graph ComputeBegin.graph
    """.split()
)
"""Fields that say what the event is about: here, -1 for none is no answer."""


def check_trace(content: Columns, name: str) -> None:
    """Hold every column to its dtype and length, every index to what it points into. VizggmlError naming `name`.

    Kinds are renumbered from the file's own list to this version's.
    """
    unknown = next((column for column in content.columns if column not in TRACE_COLUMNS), None)
    if unknown is not None:
        raise VizggmlError(f"{name}: column {unknown[:60]!r} is not one of a trace's")
    for column, found in content.columns.items():
        shape = (-1, WIDTHS[column]) if column in WIDTHS else (-1,)
        require(content.columns, column, TRACE_COLUMNS[column], shape, name)
        if found.dtype.kind == "f" and column == "v.event":
            raise VizggmlError(f"{name}: column {column!r} is not whole numbers")
    n = len(content.columns.get("ev.kind", ()))
    for column in ("ev.node", "ev.cause"):
        _length(content, column, n, name)
    _renumber_kinds(content, name)
    counts = np.bincount(content.columns["ev.kind"], minlength=len(KINDS)) if n else np.zeros(len(KINDS), int)
    ids = Ids(name)
    ids.add("tensor", "ev.node", content.columns.get("ev.node"))
    for kind, rows in zip(KINDS, counts.tolist(), strict=True):
        for field in fields_of(kind):
            _check_field(content, f"k.{kind.__name__}.{field.name}", field, rows, ids, name)
    _check_cause(content, n, name)
    _check_values(content, n, ids, name)
    _check_blocks(content, ids, name)
    ids.check()


class Ids:
    """The ids of each numbering. Dense ids cannot be larger than the number of places where one stands."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.places = dict.fromkeys(ID_TYPES.values(), 0)
        self.largest = dict.fromkeys(ID_TYPES.values(), (-1, ""))

    def add(self, space: str, column: str, found: Column | None) -> None:
        if found is None or not len(found):
            return
        low, high = int(found.min()), int(found.max())
        if low < -1:
            raise VizggmlError(f"{self.name}: column {column!r} holds id {low}, below -1")
        self.places[space] += len(found)
        self.largest[space] = max(self.largest[space], (high, column))

    def check(self) -> None:
        for space, (largest, column) in self.largest.items():
            if largest >= self.places[space]:
                raise VizggmlError(
                    f"{self.name}: column {column!r} holds {space} {largest}, "
                    f"but there are only {self.places[space]} ids of that sort"
                )


def _length(content: Columns, column: str, length: int, name: str) -> None:
    got = len(content.columns.get(column, ()))
    if got != length:
        raise VizggmlError(f"{name}: column {column!r} has {got} rows, its events are {length}")


def _renumber_kinds(content: Columns, name: str) -> None:
    kinds = content.meta.get("kinds")
    if not isinstance(kinds, list) or not all(isinstance(k, str) for k in kinds):
        raise VizggmlError(f"{name}: the header has no list of kinds")
    found = content.columns.get("ev.kind")
    if found is None or not len(found):
        return
    largest = int(found.max())
    if largest >= len(kinds):
        raise VizggmlError(f"{name}: an event has kind {largest}, the file lists {len(kinds)}")
    unknown = [kinds[k] for k in np.unique(found).tolist() if kinds[k] not in KIND_INDEX]
    if unknown:
        raise VizggmlError(f"{name}: events of kind {unknown[0][:60]!r}, which this version does not have")
    table = np.array([KIND_INDEX.get(kind, 0) for kind in kinds[: largest + 1]], np.uint8)
    content.columns["ev.kind"] = table[found]
    content.meta["kinds"] = list(KIND_NAMES)


def _check_field(content: Columns, column: str, field: Field, rows: int, ids: Ids, name: str) -> None:
    values = column
    if field.is_list:
        values = f"{column}.val"
        _check_ptr(content, f"{column}.ptr", values, rows, name)
    else:
        _length(content, column, rows, name)
    found = content.columns.get(values)
    if found is None or not len(found):
        return
    if field.is_id:
        if column in NAMED and int(found.min()) < 0:
            raise VizggmlError(f"{name}: column {column!r} holds {int(found.min())}, which names no {field.ftype}")
        ids.add(field.item, values, found)
    elif field.item == "str":
        low, high = int(found.min()), int(found.max())
        if low < -1 or high >= len(content.strings):
            wrong = low if low < -1 else high
            raise VizggmlError(f"{name}: column {values!r} holds string {wrong}, the table has {len(content.strings)}")


def _check_ptr(content: Columns, column: str, values: str, rows: int, name: str) -> None:
    ptr = content.columns.get(column)
    n_values = len(content.columns.get(values, ()))
    if ptr is None or len(ptr) <= 1:
        if rows or n_values:
            raise VizggmlError(f"{name}: column {column!r} has no rows, its events are {rows}")
        return
    _length(content, column, rows + 1, name)
    if int(ptr[0]) != 0 or int(ptr[-1]) != n_values or bool((ptr[1:] < ptr[:-1]).any()):
        raise VizggmlError(f"{name}: column {column!r} does not rise from 0 to the {n_values} values")


def _check_cause(content: Columns, n: int, name: str) -> None:
    if not n:
        return
    cause = content.columns["ev.cause"]
    wrong = np.flatnonzero((cause < -1) | (cause >= np.arange(n)))
    if len(wrong):
        event = int(wrong[0])
        raise VizggmlError(f"{name}: event {event} has cause {int(cause[event])}, which is not an earlier event")


def _check_values(content: Columns, n: int, ids: Ids, name: str) -> None:
    event = content.columns.get("v.event")
    rows = 0 if event is None else len(event)
    _length(content, "v.tensor", rows, name)
    for column in ("v.stats", "v.bins", "v.grid"):
        _length(content, column, rows, name)
    _check_ptr(content, "v.ptr", "v.val", rows, name)
    if event is None or not rows:
        return
    ids.add("tensor", "v.tensor", content.columns["v.tensor"])
    if int(event.min()) < 0 or int(event.max()) > n or bool((event[1:] < event[:-1]).any()):
        raise VizggmlError(f"{name}: column 'v.event' does not rise within the {n} events")
    grid, ptr = content.columns["v.grid"].astype(np.int64), content.columns["v.ptr"].astype(np.int64)
    if int(grid.min()) < 0 or bool((grid.prod(axis=1) != np.diff(ptr)).any()):
        raise VizggmlError(f"{name}: column 'v.grid' does not agree with the cells in 'v.val'")


def _check_blocks(content: Columns, ids: Ids, name: str) -> None:
    """The bytes of leafs; whether they are blocks of their type is seen when they are opened."""
    tensors = content.columns.get("q.tensor")
    rows = 0 if tensors is None else len(tensors)
    _length(content, "q.type", rows, name)
    _check_ptr(content, "q.ptr", "q.val", rows, name)
    if not rows:
        return
    ids.add("tensor", "q.tensor", tensors)
    types = content.columns["q.type"]
    if int(types.min()) < 0 or int(types.max()) >= len(content.strings):
        raise VizggmlError(f"{name}: column 'q.type' holds a string that is not in the table of {len(content.strings)}")
