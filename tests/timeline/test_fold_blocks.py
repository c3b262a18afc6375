"""Blocks of quantized tensors in a trace, opened in its tracks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from vizggml import ggml
from vizggml.errors import VizggmlError
from vizggml.ggml import quants
from vizggml.ggml.quants import open_block
from vizggml.timeline.columns import read_file, write_file
from vizggml.timeline.record import record
from vizggml.timeline.schema import SCHEMA
from vizggml.timeline.trace import Trace, load_trace
from vizggml.timeline.tracks import Tracks

X = np.sin(np.arange(8 * 64, dtype=np.float32)).reshape(8, 64)


def part(tracks: Tracks, name: str, row: int, column: str) -> list[object]:
    ptr = tracks[f"blk.{name}.ptr"]
    found: list[object] = tracks[column][ptr[row] : ptr[row + 1]].tolist()
    return found


def multiplied(values: bool) -> tuple[Trace, bytes]:
    """W x, twice, with W as Q4_1; and the bytes of W."""
    c = ggml.Context(1 << 20)
    w, x = c.new_tensor("Q4_1", (64, 8), "W"), c.new_tensor("F32", (64, 1), "x")
    raw = quants.quantize("Q4_1", X)
    w.array()[...] = raw.reshape(w.array().shape)
    x.array()[...] = 1
    g = ggml.Graph(c)
    g.build_forward_expand(ggml.add(c, ggml.mul_mat(c, w, x), ggml.mul_mat(c, w, x)))
    with record(values) as trace:
        ggml.graph_compute(g, ggml.graph_plan(g, n_threads=1))
    return trace, raw.tobytes()


def test_the_leafs_first_blocks_are_kept_once_with_values() -> None:
    trace, raw = multiplied(True)
    tracks = trace.tracks()
    # a row of 64 is two blocks of 20 bytes
    assert tracks["blk.block"].tolist() == [0, 1]
    assert {tracks.string(tracks["tensor.name"][t]) for t in tracks["blk.tensor"]} == {"W"}
    assert bytes(tracks["blk.data.val"]) == raw[:40]
    assert tracks["blk.event"].tolist() == [-1, -1]
    assert {tracks.string(k) for k in tracks["blk.how"]} == {"read"}
    for row in range(2):
        block = open_block("Q4_1", raw[20 * row : 20 * row + 20])
        fields = [part(tracks, "field", row, f"blkf.{column}") for column in ("name", "start", "stop")]
        assert [tracks.string(i) for i in fields[0]] == ["d", "m", "qs"]  # type: ignore[arg-type]
        assert fields[1:] == [[0, 2, 4], [2, 4, 20]]
        assert part(tracks, "group", row, "blkg.scale") == block.scales.tolist()
        assert part(tracks, "group", row, "blkg.min") == block.mins.tolist()
        assert part(tracks, "element", row, "blke.code") == block.codes.tolist()
        assert part(tracks, "element", row, "blke.value") == block.values.tolist()
        assert np.isnan(part(tracks, "element", row, "blke.original")).all()


def test_without_values_there_are_none() -> None:
    assert not [name for name in multiplied(False)[0].tracks().columns if name.startswith("blk")]


def test_blocks_that_are_encoded_bring_their_originals() -> None:
    costs = np.linspace(1, 3, 64, dtype=np.float32)
    with record() as trace:
        raw = quants.quantize("Q5_0", X, costs)
    tracks = trace.tracks()
    assert tracks["blk.block"].tolist() == [0, 1]
    assert tracks["blk.event"].tolist() == [len(tracks) - 2, len(tracks) - 1]
    assert bytes(part(tracks, "data", 1, "blk.data.val")) == raw[0, 22:44].tobytes()  # type: ignore[arg-type]
    assert part(tracks, "element", 1, "blke.original") == X[0, 32:].tolist()
    assert part(tracks, "element", 1, "blke.importance") == costs[32:].tolist()
    assert "{importance" not in trace.sentences("RowsEncoded")[0]
    assert trace.sentences("RowsEncoded")[0].endswith("there is an importance matrix.")


def test_they_are_in_the_file(tmp_path: Path) -> None:
    trace, raw = multiplied(True)
    trace.save(tmp_path / "run.vgt")
    assert bytes(load_trace(tmp_path / "run.vgt").tracks()["blk.data.val"]) == raw[:40]


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("q.ptr", [0, 41], "column 'q.ptr' does not rise from 0 to the 40 values"),
        ("q.type", [999], "column 'q.type' holds a string that is not in the table"),
        ("q.tensor", [9999], "column 'q.tensor' holds tensor 9999"),
        ("q.tensor", [0, 0], "column 'q.type' has 1 rows"),
    ],
)
def test_a_file_that_lies_is_refused(column: str, value: list[int], message: str, tmp_path: Path) -> None:
    path = tmp_path / "run.vgt"
    multiplied(True)[0].save(path)
    content = read_file(path, "trace", SCHEMA)
    content.columns[column] = np.array(value, content.columns[column].dtype)
    write_file(path, content)
    with pytest.raises(VizggmlError, match=message):
        load_trace(path)


def test_bytes_that_are_no_blocks_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "run.vgt"
    multiplied(True)[0].save(path)
    content = read_file(path, "trace", SCHEMA)
    content.strings.append("Q9_9")
    content.columns["q.type"] = np.array([len(content.strings) - 1], np.int32)
    write_file(path, content)
    assert "blk.tensor" not in load_trace(path).tracks().columns
