"""Make the chapters: run each notebooks/NN-*.py and its twin in zh/, and write the .ipynb, outputs as still pictures.

    python book/build.py                      # all chapters
    python book/build.py 05                   # those whose name begins so, in both languages
    python book/build.py --figures pictures   # and every figure as an SVG file in that folder

What a widget shows is kept as its still picture; widget state is never saved.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).resolve().parent
NOTEBOOKS = HERE.parent / "notebooks"
LANGUAGES = {"en": NOTEBOOKS, "zh": NOTEBOOKS / "zh"}
WIDGET = "application/vnd.jupyter.widget-view+json"
KEPT = "vg-kept"
"""Of the HTML that a player leaves for when there is no kernel: a frame, heavy, and here the picture stands for it."""


def chapters(prefix: str = "", language: str = "en") -> list[Path]:
    return sorted(LANGUAGES[language].glob(f"{prefix or '[0-9][0-9]'}*-*.py"))


def execute(source: Path, timeout: int = 300) -> Any:
    """The chapter as a notebook, run from its folder; an error in a cell is raised."""
    notebook = jupytext.read(source)
    where = {"metadata": {"path": str(source.parent)}}
    # what a cell prints is one output, however the kernel came to send it
    NotebookClient(notebook, timeout=timeout, coalesce_streams=True, resources=where).execute()
    return notebook


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
            cell.outputs = [without_this_machine(output) for output in cell.outputs if not is_kept(output)]
            for output in cell.outputs:
                output.get("data", {}).pop(WIDGET, None)
    return notebook


def write_figures(notebook: Any, name: str, folder: Path) -> int:
    """Every SVG among the outputs, as `<name>-<number>.svg`; how many."""
    folder.mkdir(parents=True, exist_ok=True)
    data = [o.get("data", {}) for c in notebook.cells if c.cell_type == "code" for o in c.outputs]
    figures = [d["image/svg+xml"] for d in data if "image/svg+xml" in d]
    for number, figure in enumerate(figures, 1):
        text = figure if isinstance(figure, str) else "".join(figure)
        (folder / f"{name}-{number}.svg").write_text(text, "utf-8")
    return len(figures)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prefix", nargs="?", default="", help="how the names begin")
    parser.add_argument("--figures", type=Path, help="a folder for the figures")
    chosen = parser.parse_args()
    for language in LANGUAGES:
        for source in chapters(chosen.prefix, language):
            notebook = still(execute(source))
            target = source.with_suffix(".ipynb")
            nbformat.write(notebook, target)
            told = f"{target.relative_to(NOTEBOOKS)}: {target.stat().st_size:,} bytes"
            if chosen.figures:
                name = source.stem if language == "en" else f"{source.stem}-{language}"
                told += f", {write_figures(notebook, name, chosen.figures)} figures"
            print(told)


if __name__ == "__main__":
    main()
