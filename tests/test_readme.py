"""What README shows is so: its Python runs, its commands exist and answer what it says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from vizggml.cli import app

README = (Path(__file__).parents[1] / "README.md").read_text("utf-8")
PYTHON = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
WALK = re.search(r"^## Two minutes\n(.*?)^## ", README, re.DOTALL | re.MULTILINE)
SHOWN = re.findall(r"^ {4}(\S.+)$", WALK[1] if WALK else "", re.MULTILINE)
COMMANDS = [line.split("  #")[0].strip() for line in SHOWN if line.startswith("vizggml ")]
ANSWERS = [set(line.split()) for line in SHOWN if not line.startswith("vizggml ")]
"""Of the walk through two minutes, what is typed and what is answered, as words: a terminal sets them in columns."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "150")
    return tmp_path


def test_the_python_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    here: dict[str, object] = {}
    for block in PYTHON:
        exec(block, here)
    said = capsys.readouterr().out
    assert "flash attention off -> on: 20 nodes fewer" in said
    assert "[[[[0. 2.]]]]" in said
    assert (folder / "run.html").stat().st_size > 100_000


def test_the_two_minutes(folder: Path) -> None:
    said: list[set[str]] = []
    for command in COMMANDS:
        answer = CliRunner().invoke(app, shlex.split(command)[1:])
        assert answer.exit_code == 0, answer.output
        said.append(set(answer.output.split()))
    assert len(COMMANDS) == 4
    assert len(ANSWERS) == 4
    for words in ANSWERS:
        assert any(words <= answer for answer in said), words
    assert (folder / "diff.html").exists()


def test_every_command_of_the_table_exists() -> None:
    named = set(re.findall(r"^\| `vizggml (\w+)", README, re.MULTILINE))
    registered = {c.name or (c.callback.__name__ if c.callback else "") for c in app.registered_commands}
    assert named <= registered
    assert {"lab", "run", "trace", "plan", "diff"} <= named
