"""The page of the trace file is enough to read one: its reader and its table, taken from there, against load_trace."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import fields
from html import unescape
from pathlib import Path
from typing import Any

import pytest

import vizggml as vg
from vizggml.timeline.schema import TRACE_COLUMNS
from vizggml.timeline.trace import Trace

sys.path.insert(0, str(Path(__file__).parents[2] / "book"))

from reference import Maker, formats
from reference.formats import INTERVAL, TABLES, TRACKS

ROW = re.compile(r"<tr>\s*<td><code>([kvq]\.[^<]+|ev\.[^<]+)</code></td>\s*<td>(\w\d)[^<]*</td>\s*<td>(.*?)</td>", re.S)
STAMPS = ("seq", "node", "cause")


def plain(html: str) -> str:
    return unescape(re.sub(r"<[^>]+>", "", html))


def table_of(page: str) -> list[tuple[str, str, str]]:
    """Column, dtype and what it holds, from the part of the page that tells every column."""
    first, end = page.index('id="every-column"'), page.index('id="tracks"')
    return ROW.findall(page[first:end])


@pytest.fixture(scope="module")
def page() -> str:
    return next(str(sheet.body) for sheet in Maker().files() if sheet.name == "trace-file.html")


@pytest.fixture(scope="module")
def trace() -> Trace:
    with vg.record(values=True) as trace:
        context = vg.load_model("tiny").context(n_ctx=256, n_threads=2, flash_attn=False, fast=False)
        for _ in context.generate("Once upon", max_tokens=2, temp=0.8, seed=3):
            pass
    return trace


@pytest.fixture(scope="module")
def reader(page: str) -> dict[str, Any]:
    blocks = [plain(block) for block in re.findall(r'<div class="highlight">(.*?)</div>', page, re.S)]
    (code,) = [block for block in blocks if "def read(" in block]
    assert "vizggml" not in code
    found: dict[str, Any] = {}
    exec(compile(code, "trace-file.html", "exec"), found)
    return found


def test_a_reader_made_from_the_page_alone_reads_what_load_trace_reads(
    page: str, reader: dict[str, Any], trace: Trace, tmp_path: Path
) -> None:
    holds = {name: plain(said) for name, _, said in table_of(page)}
    trace.save(tmp_path / "run.vgt")
    header, columns = reader["read"](tmp_path / "run.vgt")
    read = list(reader["events"](header, columns, holds))
    loaded = list(vg.load_trace(tmp_path / "run.vgt").events)
    assert len(read) == len(loaded) > 5000
    for (kind, node, cause, said), event in zip(read, loaded, strict=True):
        own = {f.name: getattr(event, f.name) for f in fields(event) if f.name not in STAMPS}
        assert (kind, node, cause, said) == (type(event).__name__, event.node, event.cause, own)
    assert len({kind for kind, *_ in read}) > 40
    assert header["meta"]["params"]["n_ctx"] == 256


def test_the_table_is_of_every_column_and_its_dtype(page: str) -> None:
    assert {name: dtype for name, dtype, _ in table_of(page)} == TRACE_COLUMNS


def test_the_bytes_of_the_example_are_the_whole_file() -> None:
    example = formats.trace_example()
    assert example.parts[0].data == bytes.fromhex("5647434f4c000001")
    assert int.from_bytes(example.parts[1].data, "little") == example.header_length
    assert example.data_start == (16 + example.header_length + 7) // 8 * 8
    ends = [part.at + len(part.data) for part in example.parts[3:]]
    assert all(at - end in range(8) for at, end in zip([p.at for p in example.parts[4:]], ends, strict=False))
    assert example.size - ends[-1] in range(8)
    ne = next(part.data for part in example.parts if part.says.startswith("`k.TensorCreated.ne`"))
    assert [int.from_bytes(ne[k : k + 8], "little") for k in range(0, 32, 8)] == [3, 2, 1, 1]


def test_every_track_and_table_of_a_run_is_told_with_every_column(trace: Trace) -> None:
    tracks = trace.tracks()
    assert {name: set(tracks.track(name)) - set(INTERVAL) for name in tracks.names} == {
        name: set(columns) for name, (_, columns) in TRACKS.items()
    }
    rest = {name for name in tracks.columns if name.split(".")[0] in TABLES}
    assert rest == {f"{table}.{column}" for table, (_, columns) in TABLES.items() for column in columns}
    others = {name.split(".")[0] for name in tracks.columns} - set(TABLES)
    assert others <= {"t", "k", "v", "blk", "blkf", "blkg", "blke"}
    told = {track.name: {c: dtype for c, dtype, _ in track.columns} for track in formats.tracks()}
    for name, columns in told.items():
        assert columns == {c: formats.short(tracks[f"t.{name}.{c}"].dtype) for c in columns}


def test_the_graph_example_is_placed_as_ggml_places_it() -> None:
    """relu(Wx + b) takes 128 bytes: W 0, x 32, b 64, and 96 three times."""
    answer = json.loads(formats.graph_example().answer)
    assert answer["size"] == 128
    assert [answer["tensors"][str(id)]["offset"] for id in range(6)] == [0, 32, 64, 96, 96, 96]
    document = json.loads(formats.graph_example().text)
    assert [t["name"] for t in document["tensors"]] == ["W", "x", "b", "Wx", "Wx+b", "y"]
