"""The container: its bytes, and what it refuses."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vizggml.errors import VizggmlError
from vizggml.timeline.columns import MAGIC, Columns, pack, read_file, require, unpack, write_file


def small() -> Columns:
    columns = {"a": np.array([1, 2, 3], np.uint8), "b": np.array([[0.5, 1.5]], np.float64)}
    return Columns("tracks", 1, {"n": 3}, ["Ω"], columns)


def container(header: object, data: bytes = bytes(64)) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    start = MAGIC + len(text).to_bytes(4, "little") + bytes(4) + text
    return start + bytes(-len(start) % 8) + data


def header(**columns: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "tracks", "schema": 1, "meta": {}, "strings": [], "columns": columns}


def test_the_bytes_are_as_documented() -> None:
    data = pack(small())
    assert data[:8] == b"VGCOL\0\0\1"
    length = int.from_bytes(data[8:12], "little")
    read = json.loads(data[16 : 16 + length])
    assert read["columns"] == {
        "a": {"dtype": "u1", "shape": [3], "offset": 0},
        "b": {"dtype": "f8", "shape": [1, 2], "offset": 8},
    }
    start = (16 + length + 7) // 8 * 8
    assert data[start : start + 8] == b"\1\2\3\0\0\0\0\0"
    assert np.frombuffer(data, "<f8", 2, start + 8).tolist() == [0.5, 1.5]
    assert len(data) == start + 24


def test_what_is_packed_is_unpacked() -> None:
    read = unpack(pack(small()), "tracks", 1, "x")
    assert (read.meta, read.strings) == ({"n": 3}, ["Ω"])
    assert read.columns["a"].tolist() == [1, 2, 3]
    assert read.columns["b"].tolist() == [[0.5, 1.5]]


def test_a_dtype_without_a_name_is_refused() -> None:
    with pytest.raises(VizggmlError, match="column 'c': dtype complex128"):
        pack(Columns("tracks", 1, {}, [], {"c": np.zeros(1, np.complex128)}))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "0 bytes, a container has at least 16"),
        (b"GGUF\0\0\0\0" + bytes(8), "begins with b'GGUF"),
        (MAGIC + b"\xff\xff\xff\xff" + bytes(4), "a header of 4294967295 bytes ends past the file (16 bytes)"),
        (container(b"{"), "is not JSON"),
        (container(b"[" * 100000), "is not JSON"),
        (container(b"9" * 5000), "is not JSON"),
        (container([]), "the header is a list"),
        (container({"kind": "trace"}), "holds 'trace', not 'tracks'"),
        (container({"kind": "tracks", "schema": 2}), "schema 2, this version reads schema 1"),
        (container({"kind": "tracks", "schema": True}), "schema True"),
        (container({"kind": "tracks", "schema": 1}), "no meta or no columns"),
        (container({**header(), "strings": [1]}), "not a list of strings"),
        (container(header(a=7)), "described by 7"),  # type: ignore[arg-type]
        (container(header(a={"dtype": "O", "shape": [1], "offset": 0})), "dtype 'O' is not one of"),
        (container(header(a={"dtype": "u1", "shape": [-1], "offset": 0})), "shape [-1]"),
        (container(header(a={"dtype": "u1", "shape": [1, 1, 1], "offset": 0})), "shape [1, 1, 1]"),
        (container(header(a={"dtype": "u1", "shape": [1.5], "offset": 0})), "shape [1.5]"),
        (container(header(a={"dtype": "u1", "shape": [1], "offset": 4})), "offset 4 is not a multiple of 8"),
        (container(header(a={"dtype": "u1", "shape": [1], "offset": -8})), "offset -8"),
        (
            container(header(a={"dtype": "u1", "shape": [65], "offset": 0})),
            "0 + 65 bytes ends past the file's data (64",
        ),
        (container(header(a={"dtype": "f8", "shape": [2**62, 2**62], "offset": 0})), "ends past the file's data"),
        (container(header(a={"dtype": "f8", "shape": [0, 2**62], "offset": 0})), "empty but larger"),
        (container(header(a={"dtype": "f8", "shape": [1], "offset": 2**70})), "ends past the file's data"),
    ],
)
def test_a_lying_container_is_one_line(data: bytes, message: str) -> None:
    with pytest.raises(VizggmlError, match=re.escape(message)) as error:
        unpack(data, "tracks", 1, "the file")
    assert str(error.value).startswith("the file: ")
    assert "\n" not in str(error.value)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_a_damaged_container_loads_or_says_so(data: st.DataObject) -> None:
    good = bytearray(pack(small()))
    for _ in range(data.draw(st.integers(1, 4))):
        good[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(good)))
    with suppress(VizggmlError):
        unpack(bytes(good[:cut]), "tracks", 1, "x")


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "x.vgt"
    write_file(path, small())
    before = path.read_bytes()
    broken = Columns("tracks", 1, {"bad": object()}, [], {})
    with pytest.raises(TypeError):
        write_file(path, broken)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    assert read_file(path, "tracks", 1).strings == ["Ω"]


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(VizggmlError, match="No such file"):
        write_file(tmp_path / "no" / "x.vgt", small())
    with pytest.raises(VizggmlError, match="No such file"):
        read_file(tmp_path / "x.vgt", "tracks", 1)


@pytest.mark.parametrize(
    ("column", "dtype", "shape", "message"),
    [
        ("c", "u1", (-1,), "column 'c' is missing"),
        ("a", "i4", (-1,), "column 'a' is uint8, not i4"),
        ("a", "u1", (4,), "has shape (3,), not (4,)"),
        ("a", "u1", (-1, 4), "has shape (3,), not (-1, 4)"),
    ],
)
def test_a_column_is_held_to_its_form(column: str, dtype: str, shape: tuple[int, ...], message: str) -> None:
    assert require(small().columns, "b", "f8", (-1, 2), "x").shape == (1, 2)
    with pytest.raises(VizggmlError, match=re.escape(message)):
        require(small().columns, column, dtype, shape, "x")
