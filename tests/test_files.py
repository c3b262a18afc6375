"""Files are written whole or not at all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from vizggml.errors import VizggmlError
from vizggml.files import write_whole


def test_what_was_there_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "x.html"
    path.write_text("old")
    write_whole(path, b"new")
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_leaves_what_was_there(tmp_path: Path) -> None:
    """The limit on the size of a file stands in for the disk."""
    path = tmp_path / "x.html"
    path.write_text("old")
    code = (
        "import resource, signal, sys; from vizggml.files import write_whole;"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096));"
        "write_whole(sys.argv[1], bytes(10000), 'page')"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True)
    assert f"VizggmlError: page '{path}': cannot be written: File too large" in done.stderr
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    with pytest.raises(VizggmlError, match="it is a folder"):
        write_whole(tmp_path, b"")
