"""Any table of a trace as CSV (RFC 4180, UTF-8), which a spreadsheet opens without obeying what a name says."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from vizggml.errors import VizggmlError
from vizggml.export.tables import Drawable, figured
from vizggml.files import write_whole
from vizggml.timeline.sentences import render, tensor_name
from vizggml.timeline.tracks import Tracks
from vizggml.views.details import DETAILS
from vizggml.views.labels import visible
from vizggml.views.memory import check_step

Cell: TypeAlias = str | int | float
Table: TypeAlias = tuple[Sequence[str], Iterator[Sequence[Cell]]]

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes for the beginning of a formula."""

TENSORS = {"tensor", "owner", "reuses", "freed_by", "copy", "by"}
TEXTS = {"usage", "buft", "backend", "piece", "condition", "had", "needs", "name", "why", "rule"}


def tables(tracks: Tracks) -> list[str]:
    """The names of the tables there are: of the trace, of its tracks, and the player's details, which need a step."""
    return [*WHOLE, *tracks.names, *(name for name in DETAILS if name not in tracks.names)]


def to_csv(source: Drawable, path: str | os.PathLike[str], table: str = "tensors", *, step: int | None = None) -> int:
    """Write a table: tensors, nodes, edges, events, a track, or a detail at `step` (None: the last); its rows.

    Text that a spreadsheet would take for a formula gets an apostrophe before it. VizggmlError for an unknown table.
    """
    tracks = figured(source)
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\r\n")
    head, rows = read_table(tracks, table, step)
    writer.writerow(head)
    n = 0
    for row in rows:
        writer.writerow([harmless(cell) if isinstance(cell, str) else cell for cell in row])
        n += 1
    write_whole(path, out.getvalue().encode("utf-8", "replace"), "table")
    return n


def harmless(text: str) -> str:
    """`text` on one line, what cannot be seen made visible, and never a formula."""
    shown = visible(text)
    return f"'{shown}" if shown.startswith(FORMULA) else shown


def read_table(tracks: Tracks, table: str, step: int | None = None) -> Table:
    """The head and the rows of a table; a track holds its rows from step `from` to before step `to`."""
    if table in WHOLE:
        return WHOLE[table](tracks)
    if table in tracks.names and step is None:
        return _track(tracks, table, range(len(tracks[f"t.{table}.a"])))
    step = check_step(tracks, step)
    if table in tracks.names:
        return _track(tracks, table, tracks.open_at(table, step).tolist())
    if table in DETAILS:
        detail = DETAILS[table]
        heads = [column.head or ("field", "value")[k] for k, column in enumerate(detail.columns)]
        return heads, (row.cells for row in detail.rows(tracks, step))
    raise VizggmlError(f"table {table!r}: there are {', '.join(tables(tracks))}")


def _track(tracks: Tracks, name: str, rows: Iterable[int]) -> Table:
    columns = {c: v for c, v in tracks.track(name).items() if c not in ("ck", "ckrow")}
    head = [{"a": "from", "b": "to"}.get(c, c) for c in columns]
    readers = [_reader(tracks, name, c) for c in columns]
    values = [v.tolist() for v in columns.values()]
    return head, ([read(column[r]) for read, column in zip(readers, values, strict=True)] for r in rows)


def _reader(tracks: Tracks, track: str, column: str) -> Any:
    """What makes a cell of a value: names of tensors, texts, whole numbers where they are whole."""
    counted = track == "reserve" and column in ("had", "needs")
    if (column in TEXTS and not counted) or (track, column) == ("reuse", "owner"):
        return tracks.string
    if column in TENSORS:
        free = "free" if column == "owner" else ""
        return lambda t: tensor_name(tracks, t) if t >= 0 else free
    return _number


def _number(value: float) -> Cell:
    return int(value) if float(value).is_integer() else value


def _tensors(tracks: Tracks) -> Table:
    columns = tracks.columns
    plans, graphs = _plans(tracks), _graphs(tracks)

    def rows() -> Iterator[Sequence[Cell]]:
        for t in range(len(columns["tensor.name"])):
            texts = [tracks.string(int(columns[f"tensor.{c}"][t])) for c in ("name", "type", "op", "desc")]
            ne, nb = (columns[f"tensor.{c}"][t].astype("i8").tolist() for c in ("ne", "nb"))
            source = int(columns["tensor.view_src"][t])
            more = tensor_name(tracks, source) if source >= 0 else "", int(columns["tensor.view_offs"][t])
            of_tensor = (
                t,
                *texts,
                *ne,
                *nb,
                int(columns["tensor.nbytes"][t]),
                *more,
                int(columns["tensor.layer"][t]),
                graphs.get(t, ""),
            )
            for planned in plans.get(t, [("",) * len(PLANNED)]):
                yield *of_tensor, *planned

    dims = [f"ne{k}" for k in range(4)] + [f"nb{k}" for k in range(4)]
    return [
        "tensor",
        "name",
        "type",
        "op",
        "desc",
        *dims,
        "nbytes",
        "view_src",
        "view_offs",
        "layer",
        "graph",
        *PLANNED,
    ], rows()


PLANNED = ("plan", "chunk", "offset", "size", "first_use", "last_use", "reuses", "freed_by")


def _plans(tracks: Tracks) -> dict[int, list[tuple[Cell, ...]]]:
    """What each plan says of a tensor: its place, the first and the last node that uses it; views have none."""
    life = tracks.track("life")
    found: dict[int, list[tuple[Cell, ...]]] = {}
    fields = ("tensor", "plan", "chunk", "offset", "size", "first", "last", "reuses", "freed_by")
    for t, plan, *numbers, reuses, freed_by in zip(*(life[f].astype("i8").tolist() for f in fields), strict=True):
        names = (tensor_name(tracks, other) if other >= 0 else "" for other in (reuses, freed_by))
        found.setdefault(t, []).append((plan, *numbers, *names))
    return found


def _graphs(tracks: Tracks) -> dict[int, int]:
    """The first graph that each tensor is in, as node or leaf."""
    found: dict[int, int] = {}
    for ptr, members in (("graph.ptr", "graph.node"), ("graph.leaf_ptr", "graph.leaf")):
        starts, tensors = tracks[ptr].tolist(), tracks[members].tolist()
        for graph in range(len(starts) - 1):
            for t in tensors[starts[graph] : starts[graph + 1]]:
                found.setdefault(t, graph)
    return found


def _nodes(tracks: Tracks) -> Table:
    def rows() -> Iterator[Sequence[Cell]]:
        ptr, node = tracks["graph.ptr"].tolist(), tracks["graph.node"].tolist()
        for graph in range(len(ptr) - 1):
            for index, t in enumerate(node[ptr[graph] : ptr[graph + 1]]):
                desc = tracks.string(int(tracks["tensor.desc"][t]))
                yield graph, index, t, tensor_name(tracks, t), desc, int(tracks["tensor.nbytes"][t])

    return ["graph", "index", "tensor", "name", "op", "nbytes"], rows()


def _edges(tracks: Tracks) -> Table:
    columns = zip(*(tracks[f"edge.{c}"].tolist() for c in ("src", "dst", "slot")), strict=True)
    return ["src", "dst", "slot"], ((tensor_name(tracks, s), tensor_name(tracks, d), slot) for s, d, slot in columns)


def _events(tracks: Tracks) -> Table:
    def rows() -> Iterator[Sequence[Cell]]:
        kinds = [kind["name"] for kind in tracks.meta["kinds"]]
        columns = (tracks[f"ev.{c}"].tolist() for c in ("kind", "node", "cause"))
        for step, (kind, node, cause) in enumerate(zip(*columns, strict=True)):
            about = tensor_name(tracks, node) if node >= 0 else ""
            yield step, kinds[kind], about, cause if cause >= 0 else "", render(tracks, step)

    return ["step", "event", "node", "cause", "sentence"], rows()


WHOLE = {"tensors": _tensors, "nodes": _nodes, "edges": _edges, "events": _events}
