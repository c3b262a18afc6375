"""`vizggml diff` as a person types it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.llama.building import golden
from tests.test_cli import failed, vizggml
from tests.timeline.test_diff import lesson, planned
from vizggml.timeline.diff import diff
from vizggml.timeline.trace import load_trace
from vizggml.views.compare import opening
from vizggml.views.memory import memory_at


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("traces")
    paths = folder / "plain.vgt", folder / "doubled.vgt"
    for path, scaled in zip(paths, (False, True), strict=True):
        planned(lesson(scaled=scaled)).save(path)
    return paths


def test_it_prints_what_differs_and_writes_the_page(traces: tuple[Path, Path], tmp_path: Path) -> None:
    done = vizggml("diff", *traces, "-o", tmp_path / "diff.html")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("1 node more, the same peak, 128 B\n")
    assert "plain" in done.stdout
    assert (tmp_path / "diff.html").stat().st_size > 10_000


def test_the_json_has_the_figures(traces: tuple[Path, Path]) -> None:
    said = json.loads(vizggml("diff", *traces, "--json").stdout)
    assert said["labels"] == ["plain", "doubled"]
    pair = said["pairs"][said["main"]]
    assert (pair["a"]["nodes"], pair["b"]["nodes"], pair["counts"]["added"]) == (3, 4, 1)
    assert [change["name"] for change in pair["changes"]] == ["twice"]


def test_what_is_wrong_is_one_line(traces: tuple[Path, Path], tmp_path: Path) -> None:
    assert "No such file" in failed(vizggml("diff", traces[0], tmp_path / "none.vgt"))
    assert "the name must end in .html" in failed(vizggml("diff", *traces, "-o", tmp_path / "diff.txt"))
    (tmp_path / "bad.vgt").write_bytes(b"VGCOL\0\0\1" + bytes(40))
    assert "bad.vgt" in failed(vizggml("diff", traces[0], tmp_path / "bad.vgt"))


def test_two_plans_are_compared_and_nothing_is_run(tmp_path: Path) -> None:
    """326 and 286 nodes: tests/goldens/llama_buffers.json."""
    for fa in ("off", "on"):
        shape = ("--shape", "minimind-64m", "--type", "F16", "-c", "512", "-fa", fa)
        done = vizggml("plan", *shape, "--trace", tmp_path / f"{fa}.vgt")
        assert done.returncode == 0, done.stderr
    said = vizggml("diff", tmp_path / "off.vgt", tmp_path / "on.vgt").stdout
    assert said.startswith("flash attention off -> on: 40 nodes fewer, peak 21.01 -> 18.51 MiB\n")
    assert re.search(r"nodes +326 +286 +-40", said)
    assert failed(vizggml("plan", "tiny", "--trace", "x.txt")).endswith("must end in .vgt")
    of = {"model": "minimind", "n_ctx": 512, "n_ubatch": 512}
    on, off = (r["compute"] for r in golden("llama_buffers.json") if of.items() <= r.items())
    assert re.search(rf"in bytes +{off:,} +{on:,} +{on - off:+,}", said)
    # 8 heads of 512 x 512 scores of 4 bytes in each of 8 layers, the probabilities over them
    assert re.search(r"removed +kq +0 to 7 \(8\) +MUL_MAT +-8 MiB ", said)
    assert "in place over kq" in said
    assert re.search(r"\d+ more: --all lists them, --json has every tensor in \.pairs\[0\]\.changes", said)
    every = vizggml("diff", tmp_path / "off.vgt", tmp_path / "on.vgt", "--all").stdout
    assert " more: " not in every
    assert len(every.splitlines()) > len(said.splitlines())


def test_a_comparison_opens_where_both_are_fullest(tmp_path: Path) -> None:
    """Memory is then taken up to the end of each chunk."""
    paths = tmp_path / "a.vgt", tmp_path / "b.vgt"
    for path, fa in zip(paths, ("off", "on"), strict=True):
        vizggml("plan", "--shape", "minimind-64m", "-c", 256, "-fa", fa, "--trace", path)
    found = diff(*map(load_trace, paths))
    for tracks, step in ((found.a, opening(found)), (found.b, found.to_b(opening(found)))):
        (bar,) = (bar for bar in memory_at(tracks, step) if bar.blocks)
        assert max(block.offset + block.size for block in bar.blocks if block.owner >= 0) == bar.size
