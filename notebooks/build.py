"""Make the chapters: run each notebooks/NN-*.py and write its .ipynb, with outputs as still pictures.

    python notebooks/build.py            # all chapters
    python notebooks/build.py 05         # those whose name begins so

What a widget shows is kept as its still picture; widget state is never saved.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).parent
WIDGET = "application/vnd.jupyter.widget-view+json"


def chapters(prefix: str = "") -> list[Path]:
    return sorted(HERE.glob(f"{prefix or '[0-9][0-9]'}*-*.py"))


def execute(source: Path, timeout: int = 300) -> Any:
    """The chapter as a notebook, run from its folder; an error in a cell is raised."""
    notebook = jupytext.read(source)
    NotebookClient(notebook, timeout=timeout, resources={"metadata": {"path": str(HERE)}}).execute()
    return notebook


def still(notebook: Any) -> Any:
    """Drop what only a running kernel can show, and what changes from run to run."""
    notebook.metadata.pop("widgets", None)
    notebook.metadata.pop("language_info", None)
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number:02d}"
        cell.metadata.pop("execution", None)
        for output in cell.get("outputs", []):
            output.get("data", {}).pop(WIDGET, None)
    return notebook


def main() -> None:
    for source in chapters(sys.argv[1] if len(sys.argv) > 1 else ""):
        target = source.with_suffix(".ipynb")
        nbformat.write(still(execute(source)), target)
        print(f"{target.name}: {target.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
