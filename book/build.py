"""Make the chapters: run each notebooks/NN-*.py and its twin in zh/, and write the .ipynb, outputs as still pictures.

    python book/build.py                      # all chapters
    python book/build.py 05                   # those whose name begins so, in both languages
    python book/build.py --figures pictures   # no notebooks: every figure, as an SVG file in that folder

What a widget shows is kept as its still picture; widget state is never saved.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from players import Kept
from rich.console import Console
from rich.text import Text

HERE = Path(__file__).resolve().parent
NOTEBOOKS = HERE.parent / "notebooks"
LANGUAGES = {"en": NOTEBOOKS, "zh": NOTEBOOKS / "zh"}
WIDGET = "application/vnd.jupyter.widget-view+json"
SVG = "image/svg+xml"
KEPT = "vg-kept"
"""Of the HTML that a player leaves for when there is no kernel: a frame, heavy, and here the picture stands for it."""
PROLOG = re.compile(r"^\s*<\?xml.*?\?>|<!DOCTYPE.*?>|<metadata>.*?</metadata>", re.DOTALL)
"""What plots begin with: the day they were drawn, and where SVG is defined."""
COLOURED = re.compile(r"\x1b\[[0-9;]*m")


class ChapterError(Exception):
    """A chapter did not run to its end: which cell, where it stands in the text, and what Python said."""


def chapters(prefix: str = "", language: str = "en") -> list[Path]:
    return sorted(LANGUAGES[language].glob(f"{prefix or '[0-9][0-9]'}*-*.py"))


def execute(source: Path, timeout: int = 300, notebook: Any = None) -> Any:
    """The chapter as a notebook, run from its folder, or `notebook` in its place. ChapterError if a cell fails."""
    notebook = notebook or jupytext.read(source)
    reached = [0]
    client = NotebookClient(
        notebook,
        timeout=timeout,
        store_widget_state=False,
        extra_arguments=["--log-level=ERROR"],
        resources={"metadata": {"path": str(source.parent)}},
        on_cell_start=lambda cell, cell_index: reached.__setitem__(0, cell_index),
    )
    try:
        client.execute()
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
        raise ChapterError(failure(source, notebook.cells[reached[0]], reached[0], error)) from None
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = together(cell.outputs)
    return notebook


def failure(source: Path, cell: Any, number: int, error: Exception) -> str:
    """Where it happened, as an editor finds it; the cell; what Python said."""
    head, found, _ = source.read_text("utf-8").partition(cell.source)
    line = f":{head.count(chr(10)) + 1}" if found else ""
    errors = [output for output in cell.outputs if output.output_type == "error"]
    if errors:
        said = COLOURED.sub("", "\n".join(errors[-1].traceback))
    elif isinstance(error, CellTimeoutError):
        said = "it did not end in time"
    else:
        said = "its kernel died: out of memory, or a crash in compiled code"
    code = "\n".join(f"    {text}" for text in cell.source.splitlines())
    name = source.relative_to(NOTEBOOKS.parent) if source.is_relative_to(NOTEBOOKS.parent) else source
    return f"{name}{line}: cell {number} failed\n\n{code}\n\n{said}"


def together(outputs: list[Any]) -> list[Any]:
    """What a cell prints between two displays as one output, complaints apart; plots with no date in them."""
    joined: list[Any] = []
    streams: dict[str, Any] = {}
    for output in outputs:
        if output.output_type != "stream":
            streams = {}
        elif output.name in streams:
            streams[output.name].text += output.text
            continue
        else:
            streams[output.name] = output
        if SVG in output.get("data", {}):
            output.data[SVG] = PROLOG.sub("", output.data[SVG]).strip()
        joined.append(output)
    return joined


def complaints(notebook: Any) -> list[str]:
    """What the chapter wrote to stderr. A reader does not see it."""
    texts = [
        (number, output.text)
        for number, cell in enumerate(notebook.cells)
        if cell.cell_type == "code"
        for output in cell.outputs
        if output.get("name") == "stderr"
    ]
    return [f"cell {number} wrote to stderr: {text.strip().splitlines()[-1]}" for number, text in texts if text.strip()]


def is_kept(output: Any) -> bool:
    return KEPT in output.get("data", {}).get("text/html", "")


def without_this_machine(value: Any) -> Any:
    """Outputs as on any machine: a path in the checkout, or in what is installed, begins there."""
    if isinstance(value, str):
        for root in (HERE.parent, Path(sys.prefix)):
            value = value.replace(f"{root}/", "")
        return value
    if isinstance(value, list):
        return [without_this_machine(item) for item in value]
    if isinstance(value, dict):
        return type(value)({key: without_this_machine(item) for key, item in value.items()})
    return value


def still(notebook: Any) -> Any:
    """Drop what only a running kernel can show, and what changes from run to run or from machine to machine."""
    notebook.metadata.pop("widgets", None)
    notebook.metadata.pop("language_info", None)
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number:02d}"
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            shown = [o for o in cell.outputs if not is_kept(o) and o.get("name") != "stderr"]
            cell.outputs = [without_this_machine(output) for output in shown]
            for output in cell.outputs:
                output.get("data", {}).pop(WIDGET, None)
    return notebook


def figures(notebook: Any) -> list[tuple[str, str]]:
    """Every SVG among the outputs with what it shows: a pane that is alone, "step" for several, or "figure"."""
    found = []
    for cell in notebook.cells:
        outputs = cell.outputs if cell.cell_type == "code" else []
        for output, after in pairwise([*outputs, None]):
            data = output.get("data", {})
            if SVG in data:
                panes = Kept(after.data["text/html"]).panes if after is not None and is_kept(after) else []
                shown = panes[0] if len(panes) == 1 else "step" if WIDGET in data else "figure"
                found.append((shown, data[SVG]))
    return found


def write_figures(notebook: Any, name: str, folder: Path) -> list[Path]:
    """The notebook's figures as `<name>-<number>-<what it shows>.svg`."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for number, (shown, figure) in enumerate(figures(notebook), 1):
        written.append(folder / f"{name}-{number}-{shown}.svg")
        written[-1].write_text(f"{figure}\n", "utf-8")
    return written


class Progress:
    """Lines on the console, one a chapter: what it is, its seconds, what came of it."""

    def __init__(self, total: int) -> None:
        self.console = Console(highlight=False, soft_wrap=True)
        self.total, self.done, self.began = total, 0, time.monotonic()

    @contextmanager
    def chapter(self, source: Path, language: str) -> Iterator[list[str]]:
        """While it runs its name turns; what is put in the list that this gives is told in its line."""
        told: list[str] = []
        name, began = Text(f"{source.stem} {language}"), time.monotonic()
        with self.console.status(Text(f"{self.done + 1} of {self.total}  ").append_text(name)):
            try:
                yield told
            except ChapterError as error:
                self.console.print(Text(f"{source.stem} {language}: failed\n", "bold red"))
                self.console.print(Text(str(error)))
                sys.exit(1)
        self.done += 1
        head = f"{self.done:>3}/{self.total}  {source.stem:<18} {language}  {time.monotonic() - began:5.1f} s"
        self.console.print(Text("  ".join([head, *told])))

    def warn(self, lines: list[str]) -> None:
        for line in lines:
            self.console.print(Text(f"         {line}", "yellow"))

    def end(self, words: str) -> None:
        minutes, seconds = divmod(round(time.monotonic() - self.began), 60)
        self.console.print(Text(f"{words} ({minutes} min {seconds} s)"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prefix", nargs="?", default="", help="how the names begin")
    parser.add_argument("--figures", type=Path, help="a folder for the figures; notebooks stay as they are")
    chosen = parser.parse_args()
    sources = [(language, source) for language in LANGUAGES for source in chapters(chosen.prefix, language)]
    if not sources:
        sys.exit(f"no chapter's name begins with {chosen.prefix!r}")
    progress, drawn = Progress(len(sources)), 0
    for language, source in sources:
        with progress.chapter(source, language) as told:
            notebook = execute(source)
            warnings = complaints(notebook)
            if chosen.figures:
                name = source.stem if language == "en" else f"{source.stem}-{language}"
                written = write_figures(notebook, name, chosen.figures)
                told.append(f"{len(written)} figures")
                drawn += len(written)
            else:
                target = source.with_suffix(".ipynb")
                nbformat.write(still(notebook), target)
                told.append(f"{target.stat().st_size / 1024:,.0f} KiB")
        progress.warn(warnings)
    progress.end(f"{drawn} figures in {chosen.figures}" if chosen.figures else f"{len(sources)} notebooks")


if __name__ == "__main__":
    main()
