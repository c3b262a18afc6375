"""What the page of a comparison shows: sentences, figures, changes by graph, and which event answers which."""

from __future__ import annotations

from typing import Any

import numpy as np

from vizggml.timeline.columns import Columns, pack
from vizggml.timeline.diff import Diff, PairDiff
from vizggml.timeline.diff_plan import KINDS, Group, grouped
from vizggml.timeline.diff_words import figure_rows, headline
from vizggml.timeline.schema import SCHEMA
from vizggml.views.memory import fullest_step

KEY_FIGURES = 5
FIRST_FIGURES = ("nodes", "peak", "KV cache", "lower bound", "without reuse", "scratch", "splits", "compute buffer")
"""Figures from the most telling to the least: those that differ come first."""


def comparison(found: Diff) -> bytes:
    """The container of a comparison, as the page takes it: meta is what it says, the columns which events pair."""
    columns = {
        "event.a": found.events.a,
        "event.b": found.events.b,
        "twin.a": np.array(found.twin_a, np.int32),
        "twin.b": np.array(found.twin_b, np.int32),
    }
    return pack(Columns("comparison", SCHEMA, meta(found), [], columns))


def meta(found: Diff) -> dict[str, Any]:
    """What is said of the comparison, as plain values."""
    main = found.main
    return {
        "labels": list(found.labels),
        "differ": bool(found),
        "params": [list(param) for param in found.params],
        "summary": headline(found),
        "figures": key_figures(found),
        "main": found.pairs.index(main) if main is not None else -1,
        "kinds": list(KINDS),
        "pairs": [_pair(pair) for pair in found.pairs],
    }


def opening(found: Diff) -> int:
    """The step of A that a comparison opens at: where A holds the most memory; after its snapshot if it holds none."""
    return fullest_step(found.a) if (found.a["t.block.owner"] >= 0).any() else found.a.opening


def key_figures(found: Diff) -> list[list[str]]:
    """Title, in A, in B, difference: the few that tell most."""
    rows = {row[0]: list(row) for row in figure_rows(found, found.main)}
    if rows.get("peak", ["", "", "", ""])[1:3] == rows.get("compute buffer", [""] * 4)[1:3]:
        rows.pop("compute buffer", None)
    known = [rows[title] for title in FIRST_FIGURES if title in rows]
    chosen = sorted(known, key=lambda row: row[3] in ("same", ""))[:KEY_FIGURES]
    return [row for row in known if row in chosen]


def _pair(pair: PairDiff) -> dict[str, Any]:
    return {
        "role": pair.role,
        "graphs": [pair.a, pair.b],
        "counts": {kind: n for kind in KINDS if (n := pair.count(kind))},
        "rows": [_row(group) for group in grouped(pair.changes)],
    }


def _row(group: Group) -> dict[str, Any]:
    first = group.first
    return {
        "kinds": list(first.kinds),
        "name": group.name,
        "layers": group.layers,
        "op": first.op,
        "details": group.details,
        "bytes": group.each,
        "members": [[change.a, change.b] for change in group.members],
    }
