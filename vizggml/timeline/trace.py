"""A trace: every event of a recording in columns of plain typed arrays, and the file it is kept in."""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from vizggml.errors import VizggmlError
from vizggml.events import KINDS, Event
from vizggml.ggml.types import REFERENCE_COMMIT, REFERENCE_VERSION
from vizggml.timeline.columns import DTYPES, Column, Columns, read_file, write_file
from vizggml.timeline.schema import KIND_INDEX, KIND_NAMES, SCHEMA, TRACE_COLUMNS, WIDTHS, Field, fields_of
from vizggml.timeline.trace_check import check_trace

if TYPE_CHECKING:
    from vizggml.timeline.fold import Fold
    from vizggml.timeline.record import Recorder
    from vizggml.timeline.tracks import Tracks

EXPORTERS: dict[str, Callable[..., Any]] = {}
"""What can be made of a trace, by name: `trace.to_NAME(...)` calls it with the trace. `vizggml.export` fills it."""


def new_meta() -> dict[str, Any]:
    """The meta of a trace that begins now."""
    reference = {"commit": REFERENCE_COMMIT, "version": REFERENCE_VERSION}
    return {"reference": reference, "model": "", "params": {}, "kinds": list(KIND_NAMES)}


class Trace:
    """The events of one recording.

    Ids are dense, in the order in which they first appear: the same run gives the same trace. `meta` holds the
    reference commit, the model's name and the parameters. A trace still being recorded may be read at any time.
    """

    def __init__(self, meta: dict[str, Any], strings: list[str], columns: dict[str, array[Any] | Column]) -> None:
        self.meta = meta
        self.strings = strings
        self._columns = columns
        self._recorder: Recorder | None = None
        self._fold: Fold | None = None
        self._tracks: Tracks | None = None

    def __len__(self) -> int:
        self.settle()
        return len(self._columns["ev.kind"])

    def __repr__(self) -> str:
        return f"<Trace of {len(self)} events>"

    def settle(self) -> None:
        """Bring in what has been recorded and not yet sorted into columns."""
        if self._recorder is not None:
            self._recorder.settle()

    def column(self, name: str, start: int = 0) -> Column:
        """A column from item `start` on. Names are as in the file; dims lie flat, four items a row."""
        found = self._columns.get(name)
        if found is None:
            return np.zeros(0, DTYPES[TRACE_COLUMNS[name]])
        part = found[start:]
        return part if isinstance(part, np.ndarray) else np.array(part, DTYPES[TRACE_COLUMNS[name]])

    def rows(self, kind: str, start: int = 0) -> list[list[Any]]:
        """The columns of one kind from its row `start` on, as lists: strings as indices, dims and lists as tuples."""
        return [self._values(f"k.{kind}.{field.name}", field, start) for field in fields_of(KINDS[KIND_INDEX[kind]])]

    def _values(self, name: str, field: Field, start: int) -> list[Any]:
        if field.is_list:
            ptr = self.column(f"{name}.ptr", start).tolist() or [0]
            val = self.column(f"{name}.val", ptr[0]).tolist()
            return [tuple(val[a - ptr[0] : b - ptr[0]]) for a, b in pairwise(ptr)]
        if field.ftype == "dims":
            return [tuple(row) for row in self.column(name, 4 * start).reshape(-1, 4).tolist()]
        values: list[Any] = self.column(name, start).tolist()
        return values

    @property
    def events(self) -> Iterator[Event]:
        """The events again, as they were emitted but for their dense ids."""
        n = len(self)
        rows = [
            zip(*map(self._as_emitted, fields_of(kind), self.rows(kind.__name__)), strict=True)
            if fields_of(kind)
            else None
            for kind in KINDS
        ]
        stamps = [self.column(f"ev.{name}")[:n].tolist() for name in ("kind", "node", "cause")]
        for seq, (kind, node, cause) in enumerate(zip(*stamps, strict=True)):
            of_kind = rows[kind]
            values = next(of_kind) if of_kind is not None else ()
            yield KINDS[kind](*values, seq=seq, node=node, cause=cause)

    def _as_emitted(self, field: Field, values: list[Any]) -> list[Any]:
        if field.ftype == "str":
            return [self.string(v) for v in values]
        if field.ftype == "strs":
            return [tuple(self.string(v) for v in row) for row in values]
        return [bool(v) for v in values] if field.ftype == "bool" else values

    def string(self, index: int) -> str:
        """The text at `index` of the string table; -1 is the empty one."""
        return self.strings[index] if index >= 0 else ""

    def tracks(self) -> Tracks:
        """The trace folded into tracks. Events that were folded before are not folded again."""
        from vizggml.timeline.fold import Fold

        n = len(self)
        if self._tracks is None or self._tracks.n_events != n:
            self._fold = self._fold or Fold(self)
            self._tracks = self._fold.tracks()
        return self._tracks

    def steps(self, *kinds: str) -> list[int]:
        """The numbers of the events of the kinds named (of all events for none), in order.

        VizggmlError for a kind that is not in the vocabulary.
        """
        for kind in kinds:
            if kind not in KIND_INDEX:
                raise VizggmlError(f"event kind {kind!r} is not one of the {len(KIND_NAMES)}, such as {KIND_NAMES[0]}")
        self.settle()
        wanted = {KIND_INDEX[kind] for kind in kinds or KIND_NAMES}
        return [step for step, kind in enumerate(self.column("ev.kind").tolist()) if kind in wanted]

    def sentences(self, *kinds: str) -> list[str]:
        """What happened, one sentence an event, of the kinds named as `steps` takes them, in order."""
        from vizggml.timeline.sentences import render

        steps, tracks = self.steps(*kinds), self.tracks()
        return [render(tracks, step) for step in steps]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the trace file, whole or not at all."""
        self.settle()
        columns = {name: self.column(name) for name in TRACE_COLUMNS if len(self._columns.get(name, ()))}
        shaped = {name: c.reshape(-1, WIDTHS[name]) if name in WIDTHS else c for name, c in columns.items()}
        write_file(path, Columns("trace", SCHEMA, self.meta, self.strings, shaped))

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if not name.startswith("to_"):
            raise AttributeError(f"a trace has no attribute {name!r}")
        if name[3:] not in EXPORTERS:
            known = ", ".join(sorted(EXPORTERS)) or "nothing before vizggml.export is imported"
            raise AttributeError(f"a trace can be made {known}, not {name[3:]!r}")
        return lambda *args, **options: EXPORTERS[name[3:]](self, *args, **options)


def load_trace(path: str | os.PathLike[str]) -> Trace:
    """Read a trace file. VizggmlError if it is not one, is cut short, contradicts itself or has another schema."""
    content = read_file(path, "trace", SCHEMA)
    check_trace(content, f"trace {os.fspath(path)!r}")
    columns = {name: column.reshape(-1) for name, column in content.columns.items()}
    columns.setdefault("ev.kind", np.zeros(0, np.uint8))
    return Trace(content.meta, content.strings, dict(columns))
