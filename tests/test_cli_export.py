"""`vizggml view`: what is written is what the name ends in, and an option that does not fit is told so."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image
from pypdf import PdfReader

from tests.export.test_picture import recorded as recorded
from vizggml.timeline.trace import Trace


def view(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "vizggml", "view", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def file(recorded: Trace, tmp_path: Path) -> Path:
    recorded.save(tmp_path / "run.vgt")
    return tmp_path / "run.vgt"


def test_the_suffix_says_what_is_written(file: Path, recorded: Trace) -> None:
    def write(name: str, *options: object) -> Path:
        done = view(file, "-o", file.parent / name, *options)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith(str(file.parent / name))
        return file.parent / name

    assert Image.open(write("map.png", "--pane", "map", "--step", 60)).width == 1440
    assert "step 60 of 74" in PdfReader(write("x.pdf", "--pane", "free", "--step", 60)).pages[0].extract_text()
    assert Image.open(write("map.gif", "--from", 40, "--to", 70, "--fps", 10)).info["duration"] == 100
    with write("n.csv", "--table", "nodes").open(newline="") as rows:
        assert [row["name"] for row in csv.DictReader(rows)] == ["wx", "out"]
    assert len(json.loads(write("p.json").read_text())["traceEvents"]) > len(recorded)
    assert write("g.dot").read_text().startswith("digraph {")
    assert "prefers-color-scheme" not in write("s.svg", "--theme", "dark").read_text()
    assert write("p.html", "--pane", "map", "--pane", "events", "--no-browser").stat().st_size > 10_000


def test_without_a_step_the_fullest_is_drawn_and_named(file: Path, recorded: Trace) -> None:
    """By the blocks alone: the last step at which the most bytes have an owner."""
    tracks = recorded.tracks()
    held = []
    for step in range(len(tracks)):
        blocks = tracks.at("block", step)
        held.append(int(blocks["size"][blocks["owner"] >= 0].sum()))
    fullest = max(range(len(held)), key=lambda step: (held[step], step))
    assert fullest < len(tracks) - 1
    words = "where the most memory is held; --step draws another"
    assert view(file, "-o", file.parent / "x.png").stdout.endswith(f"x.png: step {fullest}, {words}\n")
    done = view(file, "-o", file.parent / "x.pdf", "--pane", "map")
    assert done.stdout.endswith(f"x.pdf: map, step {fullest}, {words}\n")
    assert f"step {fullest} of {len(tracks) - 1}" in PdfReader(file.parent / "x.pdf").pages[0].extract_text()
    assert ": tokens, step 74, the last; " in view(file, "-o", file.parent / "x.svg", "--pane", "tokens").stdout


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("x.mp4", (), "the name must end in .html or .svg or .png or .pdf or .gif or .csv or .dot or .json"),
        ("x.csv", ("--pane", "map"), "--pane does not go with .csv: it is for .html, .svg, .png, .pdf, .gif"),
        ("x.gif", ("--step", 3), "--step does not go with .gif: it is for .html, .svg, .png, .pdf, .csv"),
        ("x.png", ("--table", "nodes"), "--table does not go with .png: it is for .csv"),
        ("x.png", ("--pane", "map", "--pane", "graph"), "--pane: .png draws one pane, not 2"),
        ("x.png", ("--step", 75), "step 75: the trace has steps 0 to 74"),
        ("x.html", ("--pane", "pie"), "pane 'pie': there are tokens, graph"),
        ("x.csv", ("--table", "pie"), "table 'pie': there are tensors, nodes"),
        ("x.gif", ("--from", 9, "--to", 3), "steps 9 to 3: the first comes after the last"),
    ],
)
def test_what_does_not_fit_is_one_line(file: Path, name: str, options: tuple[object, ...], says: str) -> None:
    done = view(file, "-o", file.parent / name, *options)
    assert (done.returncode, done.stdout) == (1, "")
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert [p.name for p in file.parent.iterdir()] == ["run.vgt"]
