"""`vizggml lab` lays chapters and never overwrites what a person changed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from vizggml import lab


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "shipped"
    folder.mkdir()
    (folder / "00-tour.ipynb").write_text("tour, first edition")
    (folder / "05-galloc.ipynb").write_text("galloc, first edition")
    monkeypatch.setattr(lab, "shipped_chapters", lambda: sorted(folder.glob("*.ipynb")))
    return folder


def test_the_chapters_that_ship_begin_with_the_tour() -> None:
    names = [path.name for path in lab.shipped_chapters()]
    assert names[0] == "00-tour.ipynb"
    assert "05-galloc.ipynb" in names


def test_lays_once(shipped: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    assert lab.lay(work).new == ["00-tour.ipynb", "05-galloc.ipynb"]
    assert (work / "00-tour.ipynb").read_text() == "tour, first edition"
    again = lab.lay(work)
    assert (again.new, again.updated, again.kept) == ([], [], [])


def test_a_new_edition_replaces_what_was_not_touched(shipped: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    lab.lay(work)
    (work / "05-galloc.ipynb").write_text("mine")
    for name in ("00-tour", "05-galloc"):
        (shipped / f"{name}.ipynb").write_text("second edition")
    laid = lab.lay(work)
    assert (laid.updated, laid.kept) == (["00-tour.ipynb"], ["05-galloc.ipynb"])
    assert (work / "05-galloc.ipynb").read_text() == "mine"
    assert (work / "00-tour.ipynb").read_text() == "second edition"


def notebook(*sources: str, outputs: list[object] | None = None, count: int | None = None) -> str:
    cells = [
        {"cell_type": "code", "source": [s], "outputs": outputs or [], "execution_count": count, "metadata": {}}
        for s in sources
    ]
    return json.dumps({"cells": cells, "metadata": {"kernelspec": {"name": f"python{count}"}}, "nbformat": 4})


def test_a_chapter_that_was_only_run_is_brought_up_to_date(shipped: Path, tmp_path: Path) -> None:
    work, tour, galloc = tmp_path / "work", "00-tour.ipynb", "05-galloc.ipynb"
    for name in (tour, galloc):
        (shipped / name).write_text(notebook("1 + 1"))
    lab.lay(work)
    ran = notebook("1 + 1", outputs=[{"output_type": "execute_result", "data": {"text/plain": "2"}}], count=7)
    (work / tour).write_text(ran)
    again = lab.lay(work)
    assert (again.updated, again.kept) == ([], [])
    assert (work / tour).read_text() == ran
    (work / galloc).write_text(notebook("1 + 2", count=7))
    for name in (tour, galloc):
        (shipped / name).write_text(notebook("1 + 1", "second edition"))
    laid = lab.lay(work)
    assert (laid.updated, laid.kept) == ([tour], [galloc])
    assert (work / tour).read_text() == notebook("1 + 1", "second edition")
    assert (work / galloc).read_text() == notebook("1 + 2", count=7)


def test_a_file_that_was_there_before_is_kept(shipped: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "00-tour.ipynb").write_text("written by hand")
    (work / lab.MANIFEST).write_text("{ not json")
    assert lab.lay(work).kept == ["00-tour.ipynb"]
    assert (work / "00-tour.ipynb").read_text() == "written by hand"


def test_jupyter_opens_the_tour(tmp_path: Path) -> None:
    command = lab.jupyter_command(tmp_path, browser=False, port=8899)
    (opened,) = [option for option in command if "default_url" in option]
    assert re.fullmatch(r"--LabApp.default_url=/lab/workspaces/vizggml-[0-9a-f]{8}/tree/00-tour.ipynb", opened)
    assert "--LabApp.news_url=None" in command
    assert f"--ServerApp.root_dir={tmp_path}" in command
    assert "--no-browser" in command
    assert "--port=8899" in command
