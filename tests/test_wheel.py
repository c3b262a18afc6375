"""What an installed wheel holds: unpacked far from the checkout, it runs the tiny model and lays the chapters."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(folder / "site")
    return folder / "site"


def python(unpacked: Path, cwd: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": str(unpacked)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_tiny_model_travels_inside(unpacked: Path, tmp_path: Path) -> None:
    facts = json.loads(python(unpacked, tmp_path, "-m", "vizggml", "info", "tiny", "--json"))
    assert facts["file"] == str(unpacked / "vizggml" / "data" / "tiny.gguf")
    story = json.loads(python(unpacked, tmp_path, "-m", "vizggml", "run", "tiny", "-n", "3", "--temp", "0", "--json"))
    goldens = json.loads((REPOSITORY / "tests" / "goldens" / "tiny.json").read_text())
    assert story["tokens"] == goldens[0]["tokens"][:3]


def test_the_chapters_travel_inside(unpacked: Path, tmp_path: Path) -> None:
    code = "import pathlib; from vizggml.lab import lay, shipped_chapters; print(shipped_chapters()[0].parent)"
    code += "; print(lay(pathlib.Path('work')).new)"
    where, new = python(unpacked, tmp_path, "-c", code).splitlines()
    assert where == str(unpacked / "vizggml" / "data" / "notebooks")
    written = (
        sorted((REPOSITORY / "notebooks").glob("[0-9]*.py")),
        sorted((REPOSITORY / "notebooks" / "zh").glob("[0-9]*.py")),
    )
    assert new == str([f"{p.stem}.ipynb" for p in written[0]] + [f"zh/{p.stem}.ipynb" for p in written[1]])


def test_the_player_and_the_types_travel_inside(unpacked: Path) -> None:
    assert (unpacked / "vizggml" / "widgets" / "player.bundle.js").stat().st_size > 50_000
    assert (unpacked / "vizggml" / "py.typed").exists()
