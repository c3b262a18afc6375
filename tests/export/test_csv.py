"""Tables as CSV, read back by the csv module; what a spreadsheet would obey is only text."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tests.export.test_picture import recorded as recorded
from vizggml import ggml
from vizggml.errors import VizggmlError
from vizggml.export.csv import tables, to_csv
from vizggml.timeline.record import record
from vizggml.timeline.sentences import render
from vizggml.timeline.trace import Trace


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_tensors_with_their_numbers(recorded: Trace, tmp_path: Path) -> None:
    assert to_csv(recorded, tmp_path / "t.csv") == 4
    rows = read(tmp_path / "t.csv")
    assert [row["name"] for row in rows] == ["W$_1", "x", "wx", "out"]
    w = rows[0]
    assert [w[k] for k in ("type", "ne0", "ne1", "nb0", "nb1", "nb2", "nbytes")] == [
        "F32",
        "3",
        "2",
        "4",
        "12",
        "24",
        "24",
    ]


def test_tensors_with_their_places(recorded: Trace, tmp_path: Path) -> None:
    """By hand: places of 32 from the bottom; W and x are leafs and stay for the product, wx gives its place to out."""
    to_csv(recorded, tmp_path / "t.csv")
    rows = {row["name"]: row for row in read(tmp_path / "t.csv")}
    fields = ("graph", "plan", "chunk", "offset", "size", "first_use", "last_use", "reuses", "freed_by")
    assert {name: tuple(row[f] for f in fields) for name, row in rows.items()} == {
        "W$_1": ("0", "0", "0", "0", "24", "0", "0", "", "wx"),
        "x": ("0", "0", "0", "32", "12", "0", "0", "", "wx"),
        "wx": ("0", "0", "0", "64", "8", "0", "0", "", "out"),
        "out": ("0", "0", "0", "64", "8", "1", "1", "wx", ""),
    }


def test_every_event_with_its_sentence(recorded: Trace, tmp_path: Path) -> None:
    to_csv(recorded, tmp_path / "e.csv", "events")
    rows = read(tmp_path / "e.csv")
    assert [row["step"] for row in rows] == [str(i) for i in range(len(recorded))]
    assert rows[-1]["event"] == type(list(recorded.events)[-1]).__name__
    assert rows[20]["sentence"] == render(recorded.tracks(), 20)


def test_nodes_and_edges_are_the_graphs(recorded: Trace, tmp_path: Path) -> None:
    to_csv(recorded, tmp_path / "n.csv", "nodes")
    to_csv(recorded, tmp_path / "g.csv", "edges")
    assert [(r["index"], r["name"], r["op"]) for r in read(tmp_path / "n.csv")] == [
        ("0", "wx", "MUL_MAT"),
        ("1", "out", "RELU"),
    ]
    assert [(r["src"], r["dst"], r["slot"]) for r in read(tmp_path / "g.csv")] == [
        ("W$_1", "wx", "0"),
        ("x", "wx", "1"),
        ("wx", "out", "0"),
    ]


def test_a_track_names_tensors_and_says_from_when_to_when(recorded: Trace, tmp_path: Path) -> None:
    to_csv(recorded, tmp_path / "b.csv", "block")
    rows = read(tmp_path / "b.csv")
    assert {row["owner"] for row in rows} >= {"free", "W$_1", "x"}
    assert all(0 <= int(row["from"]) < int(row["to"]) <= len(recorded) for row in rows)
    to_csv(recorded, tmp_path / "last.csv", "block", step=len(recorded) - 1)
    assert 0 < len(read(tmp_path / "last.csv")) < len(rows)


def test_every_table_there_is_can_be_written(recorded: Trace, tmp_path: Path) -> None:
    for name in tables(recorded.tracks()):
        recorded.to_csv(tmp_path / "any.csv", name)
        assert (tmp_path / "any.csv").read_bytes().endswith(b"\r\n")


@pytest.mark.parametrize("name", ["=1+2", "+1", "-1", "@SUM(A1)", '=HYPERLINK("http://x","y")'])
def test_a_formula_is_only_a_name(name: str, tmp_path: Path) -> None:
    """Every cell that begins as a formula would (OWASP, CSV injection) has an apostrophe before it."""
    with record() as trace:
        ggml.Context(mem_size=1 << 16, no_alloc=True).new_tensor("F32", (3,), name=name)
    for table in ("tensors", "events"):
        to_csv(trace, tmp_path / "t.csv", table)
        with (tmp_path / "t.csv").open(encoding="utf-8", newline="") as file:
            cells = [cell for row in csv.reader(file) for cell in row]
        assert not [cell for cell in cells if cell[:1] in "=+-@\t\r" and cell and not cell.lstrip("-").isdigit()]
    to_csv(trace, tmp_path / "t.csv")
    assert read(tmp_path / "t.csv")[0]["name"] == f"'{name}"


def test_quotes_commas_and_breaks_stay_in_their_cell(tmp_path: Path) -> None:
    with record() as trace:
        ggml.Context(mem_size=1 << 16, no_alloc=True).new_tensor("F32", (3,), name='a,"b"\nc é')
    to_csv(trace, tmp_path / "t.csv")
    assert read(tmp_path / "t.csv")[0]["name"] == 'a,"b"\\nc é'


def test_an_unknown_table_is_refused(recorded: Trace, tmp_path: Path) -> None:
    with pytest.raises(VizggmlError, match="table 'pie': there are tensors, nodes, edges, events, node, count"):
        to_csv(recorded, tmp_path / "t.csv", "pie")
