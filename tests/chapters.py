"""The chapters as the tests run them: each once a session, whoever asks.

At its end what a reader is to change is run again, as by one who comes back to it after all cells have run.
"""

from __future__ import annotations

import re
import sys
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "book"))

import build as build
import jupytext
import pages as pages

import book as book


def ran(source: Path) -> Any:
    """The chapter's notebook with its outputs, for the caller to change."""
    return deepcopy(_ran(source)[0])


def ran_again(source: Path) -> list[tuple[Any, Any]]:
    """The code cells under "Change this", as they ran the first time and the second."""
    return deepcopy(_ran(source)[1])


@cache
def _ran(source: Path) -> tuple[Any, list[tuple[Any, Any]]]:
    notebook = jupytext.read(source)
    cells = notebook.cells
    changed = to_change(cells)
    notebook.cells = [*cells, *deepcopy(changed)]
    notebook = build.execute(source, notebook=notebook)
    notebook.cells, again = notebook.cells[: len(cells)], notebook.cells[len(cells) :]
    return notebook, list(zip(changed, again, strict=True))


def to_change(cells: list[Any]) -> list[Any]:
    """The code cells between a heading that asks for a change and the next heading."""
    found, within = [], False
    for cell in cells:
        headings = re.findall(r"^#+ (.*)", cell.source, re.MULTILINE) if cell.cell_type == "markdown" else []
        if headings:
            within = headings[-1].startswith(("Change this", "改一改"))
        if within and cell.cell_type == "code":
            found.append(cell)
    return found
