"""Importance as the pinned llama.cpp computes it (goldens/record_imatrix.py), and its files."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from tests.llama.building import GOLDENS, golden
from tests.llama.imatrix_made import CASES, make, shown
from vizggml.errors import VizggmlError
from vizggml.ggml.gguf import TensorData, write_gguf
from vizggml.ggml.types import F16, F32
from vizggml.llama.imatrix import compute_imatrix, read_text
from vizggml.llama.imatrix_file import Entry, Imatrix, read_imatrix, write_imatrix
from vizggml.llama.model import load_model

RECORDED: dict[str, Any] = golden("llama_imatrix.json.gz")


@pytest.mark.parametrize("case", CASES)
def test_the_sums_are_llama_cpps(case: str, tmp_path: Path) -> None:
    """Equal to the bit where the goldens were recorded (x86 with AVX-512)."""
    recorded = RECORDED[case]
    model = load_model(make(tmp_path, case))
    if case != "experts":
        tokens = model.vocab.tokenize(read_text(GOLDENS / "text.txt"))
        assert len(tokens) == recorded["n_tokens"]
        assert tokens[: len(recorded["first"])] == recorded["first"]
        assert (model.vocab.special["bos"] if model.vocab.add_bos else -1) == recorded["bos"]
    bos = recorded["bos"] if recorded["bos"] >= 0 else None
    found = compute_imatrix(model, recorded["first"], bos=bos, **CASES[case])
    assert sorted(found.entries) == list(recorded["entries"])
    for name, entry in found.entries.items():
        counts, sums = recorded["entries"][name]
        assert entry.counts.tolist() == counts
        np.testing.assert_allclose(shown(entry.sums), sums, rtol=1e-3, err_msg=name)
    assert (found.chunk_count, found.chunk_size) == (CASES[case]["n_chunks"], CASES[case]["n_ctx"])


def matrix(path: Path) -> Imatrix:
    dense = Entry(np.array([[2, 4, 6]], np.float32), np.array([2]))
    experts = Entry(np.arange(6, dtype=np.float32).reshape(2, 3), np.array([4, 0]))
    return Imatrix(path, {"blk.1.x.weight": experts, "blk.0.y.weight": dense}, ["a.txt", "b.txt"], 3, 16)


def test_a_written_file_is_what_others_read(tmp_path: Path) -> None:
    path = tmp_path / "imatrix.gguf"
    write_imatrix(path, matrix(path))
    read = gguf.GGUFReader(path)
    assert {t.name: (t.shape.tolist(), t.data.ravel().tolist()) for t in read.tensors} == {
        "blk.0.y.weight.in_sum2": ([3], [2, 4, 6]),
        "blk.0.y.weight.counts": ([1], [2]),
        "blk.1.x.weight.in_sum2": ([3, 2], [0, 1, 2, 3, 4, 5]),
        "blk.1.x.weight.counts": ([1, 2], [4, 0]),
    }
    fields = {name: f.contents() for name, f in read.fields.items() if not name.startswith("GGUF.")}
    assert fields == {
        "general.type": "imatrix",
        "imatrix.datasets": ["a.txt", "b.txt"],
        "imatrix.chunk_count": 3,
        "imatrix.chunk_size": 16,
    }


def test_it_is_read_back_and_the_means_are_worked_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "imatrix.gguf"
    write_imatrix(path, matrix(path))
    found = read_imatrix(path)
    assert (found.datasets, found.chunk_count, found.chunk_size, found.is_legacy) == (["a.txt", "b.txt"], 3, 16, False)
    means = {name: x.tolist() for name, x in found.importance().items()}
    # an expert that was never used counts as 1 in every column
    assert means == {"blk.0.y.weight": [1, 2, 3], "blk.1.x.weight": [0, 0.25, 0.5, 1, 1, 1]}


def legacy(entries: list[tuple[bytes, int, list[float]]], tail: bytes = b"") -> bytes:
    out = struct.pack("<i", len(entries))
    for name, calls, values in entries:
        out += struct.pack("<i", len(name)) + name + struct.pack("<ii", calls, len(values))
        out += struct.pack(f"<{len(values)}f", *values)
    return out + tail


def test_the_older_form_is_read(tmp_path: Path) -> None:
    path = tmp_path / "imatrix.dat"
    path.write_bytes(legacy([(b"blk.0.y.weight", 4, [2, 8]), (b"z", 0, [5])], struct.pack("<ii", 9, 5) + b"a.txt"))
    found = read_imatrix(path)
    assert (found.is_legacy, found.chunk_count, found.datasets) == (True, 9, ["a.txt"])
    assert {name: x.tolist() for name, x in found.importance().items()} == {"blk.0.y.weight": [0.5, 2], "z": [5]}
    path.write_bytes(legacy([(b"z", 1, [5])]))
    assert read_imatrix(path).importance()["z"].tolist() == [5]


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "number of entries: offset 0 . 4 bytes ends past the file .0 bytes."),
        (b"\x00\x00\x00\x00", "0 entries, an importance matrix has 1 to 65536"),
        (b"once upon a time", "[0-9]+ entries, an importance matrix has 1 to 65536"),
        (legacy([(b"z", 1, [5])])[:-1], "entry 0: offset 17 . 4 bytes ends past the file"),
        (legacy([(b"z", 1, [])]), "entry 0, 'z', has 0 values"),
        (struct.pack("<iii", 1, 2**31 - 1, 0), "name of entry 0: offset 8 . 2147483647 bytes ends past"),
        (struct.pack("<ii", 1, -5), "name of entry 0: offset 8 . -5 bytes ends past"),
    ],
)
def test_what_is_no_importance_matrix(raw: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "x.dat"
    path.write_bytes(raw)
    with pytest.raises(VizggmlError, match=f"^x.dat: {message}"):
        read_imatrix(path)


KEYS = {"imatrix.datasets": ["a"], "imatrix.chunk_count": 1, "imatrix.chunk_size": 1}
SUMS = TensorData("z.in_sum2", F32, (3,), np.ones(3, np.float32))


@pytest.mark.parametrize(
    ("keys", "tensors", "message"),
    [
        ({}, [SUMS], "key 'imatrix.datasets' is missing: not an importance matrix"),
        (KEYS, [SUMS], "tensor 'z.in_sum2': sums and counts of 'z' must be there both"),
        (KEYS, [TensorData("z.counts", F16, (3,), np.ones(3, np.float16))], "tensor 'z.counts': sums and"),
        (
            KEYS,
            [SUMS, TensorData("z.counts", F32, (2,), np.ones(2, np.float32))],
            "'z': 3 sums are not rows",
        ),
        (
            KEYS,
            [SUMS, TensorData("z.counts", F32, (1,), np.array([np.inf], np.float32))],
            "'z': a count is not a number of activations",
        ),
        (KEYS, [], "an importance matrix without an entry"),
    ],
)
def test_what_contradicts_itself(keys: dict[str, Any], tensors: list[TensorData], message: str, tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    write_gguf(path, keys, tensors)
    with pytest.raises(VizggmlError, match=f"^x.gguf: {message}"):
        read_imatrix(path)


def test_sums_that_are_not_finite_are_no_importance(tmp_path: Path) -> None:
    bad = Imatrix(tmp_path / "x", {"z": Entry(np.array([[np.nan]], np.float32), np.array([1]))})
    with pytest.raises(VizggmlError, match=r"^x: the importance of 'z' is not all finite$"):
        bad.importance()
