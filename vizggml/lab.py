"""The chapters, laid where a person works: a copy each, and never over what they changed."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

from vizggml.errors import VizggmlError

MANIFEST = ".vizggml-chapters.json"
TOUR = "00-tour.ipynb"


@dataclass
class Laid:
    """What `lay` did: names of chapters by what happened to them."""

    new: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)


def shipped_chapters() -> list[Path]:
    """The chapters that came with this installation: inside the wheel, or beside the package in a checkout."""
    package = Path(__file__).parent
    for folder in (package / "data" / "notebooks", package.parent / "notebooks"):
        chapters = sorted(folder.glob("[0-9][0-9]-*.ipynb"))
        if chapters:
            return [*chapters, *sorted(folder.glob("zh/[0-9][0-9]-*.ipynb"))]
    raise VizggmlError(f"chapters: none in {package / 'data' / 'notebooks'}: the installation is not whole")


def lay(folder: Path) -> Laid:
    """Copy the chapters into `folder`, the Chinese ones into `zh/` in it.

    A chapter whose cells are still as they were laid is brought up to date; one in which the person wrote is left
    alone. That it was run is no change: outputs come again. What was laid is remembered by hash in a small file in the
    folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    manifest_path = folder / MANIFEST
    try:
        known = json.loads(manifest_path.read_text())
    except (OSError, ValueError):
        known = {}
    laid = Laid()
    for chapter in shipped_chapters():
        name = f"zh/{chapter.name}" if chapter.parent.name == "zh" else chapter.name
        fresh, target = chapter.read_bytes(), folder / name
        if not target.exists():
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(fresh)
            laid.new.append(name)
        elif (held := written(target.read_bytes())) == written(fresh):
            pass
        elif known.get(name) in (_hash(held), _hash(target.read_bytes())):
            target.write_bytes(fresh)
            laid.updated.append(name)
        else:
            laid.kept.append(name)
            continue
        known[name] = _hash(written(fresh))
    manifest_path.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
    return laid


def written(notebook: bytes) -> bytes:
    """What a person writes in a notebook: the kind and the text of each cell, and files attached to it.

    Outputs, counts and metadata are left out. What is no notebook is all of it written.
    """
    try:
        cells = json.loads(notebook)["cells"]
        texts = [[cell["cell_type"], "".join(cell["source"]), cell.get("attachments", {})] for cell in cells]
    except (ValueError, TypeError, KeyError, AttributeError):
        return notebook
    return json.dumps(texts, sort_keys=True).encode("utf-8", "surrogatepass")


def jupyter_command(folder: Path, *, browser: bool, port: int | None) -> list[str]:
    """The command line that opens JupyterLab on the tour, with this folder's own tabs; it asks nobody for news."""
    command = [
        sys.executable,
        "-m",
        "jupyterlab",
        f"--ServerApp.root_dir={folder}",
        f"--LabApp.default_url=/lab/workspaces/vizggml-{_hash(bytes(folder.resolve()))[:8]}/tree/{TOUR}",
        "--LabApp.news_url=None",
    ]
    if not browser:
        command.append("--no-browser")
    if port is not None:
        command.append(f"--port={port}")
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command.append("--allow-root")
    return command


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
