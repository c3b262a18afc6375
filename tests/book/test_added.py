"""The worked examples of the page on adding something: put into a copy of the project, their tests pass there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "book"))

from reference.added import EXAMPLES, Piece, pieces

ROOT = Path(__file__).parents[2]
COPIED = ("vizggml", "tests", "assets")
TESTS = (
    "tests/ggml/test_ops.py::test_one_builder[diag]",
    "tests/ggml/kernels/test_mask.py::test_diag",
    "tests/llama/test_context.py::test_logits_are_llama_cpps_on_other_shapes",
    "tests/llama/test_graph.py::test_graphs_and_buffers_of_random_shapes_are_the_wheels",
    "tests/ggml/test_buffer.py::test_closing_a_mapping_is_told_once",
    "tests/timeline/test_fold_memory.py::test_a_file_that_is_not_mapped_has_no_pages",
    "tests/timeline/test_sentences.py",
    "tests/timeline/test_schema.py",
    "tests/views/test_details.py::test_copies_are_told_with_their_bytes_once_they_are_made",
    "tests/views/test_pictures.py::test_every_pane_and_detail_of_the_player_has_one",
)

CHOSEN = "not (other_shapes or random_shapes) or qwen2 or random_shapes and (1 or 7)"
"""Of the tests that compare whole models, those of the example and two drawn shapes."""


def test_every_piece_fits_and_the_tests_that_it_names_pass(tmp_path: Path) -> None:
    ignored = shutil.ignore_patterns("node_modules", "__pycache__", "shots", "book", ".*_cache")
    for folder in COPIED:
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=ignored)
    shutil.copytree(ROOT / "book" / "reference", tmp_path / "book" / "reference")
    for file in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / file, tmp_path / file)
    for example in EXAMPLES:
        for piece in pieces(example):
            piece.put(tmp_path)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", CHOSEN, *TESTS]
    done = subprocess.run(
        command, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert "skipped" not in done.stdout


def test_a_piece_whose_line_is_gone_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\ny = 2\nx = 1\n")
    with pytest.raises(ValueError, match="'z = 3' is there 0 times"):
        Piece("a.py", "after", "z = 3", "", "w = 4\n").put(tmp_path)
    with pytest.raises(ValueError, match="'x = 1' is there 2 times"):
        Piece("a.py", "after", "x = 1", "", "w = 4\n").put(tmp_path)
    Piece("a.py", "after", "x = 1", "last", "w = 4\n").put(tmp_path)
    Piece("a.py", "instead of", "y = 2", "", "y = 3\n").put(tmp_path)
    Piece("a.py", "before", "x = 1", "first", "v = 0\n").put(tmp_path)
    assert (tmp_path / "a.py").read_text() == "v = 0\nx = 1\ny = 3\nx = 1\nw = 4\n"
