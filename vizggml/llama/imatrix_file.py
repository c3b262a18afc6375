"""Importance matrices as llama.cpp keeps them: a GGUF file of sums and counts, and the older form.

For each weight matrix, the squares of all activations that were multiplied with it, summed up column by column, and how
many there were: the mean says how much an error in that column costs. A matrix of experts has one row for each.

The older form (.dat), little-endian: n i32; n times the length of a name i32, the name, n_calls i32, n_values i32, the
means multiplied by n_calls f32; then, perhaps, the number of chunks i32, the length of a text i32, the text's name.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vizggml.errors import VizggmlError
from vizggml.ggml.gguf import GGUF_MAGIC, TensorData, Writable, quoted, read_gguf, write_gguf
from vizggml.ggml.types import GGML_MAX_NAME, TYPES
from vizggml.llama.metadata import Metadata

SUMS, COUNTS = ".in_sum2", ".counts"
DATASETS, CHUNK_COUNT, CHUNK_SIZE = "imatrix.datasets", "imatrix.chunk_count", "imatrix.chunk_size"
MAX_ENTRIES = 1 << 16


@dataclass(slots=True)
class Entry:
    """`sums` (experts, columns): squares added up. `counts` (experts): how many activations."""

    sums: NDArray[np.float32]
    counts: NDArray[np.int64]


@dataclass(slots=True)
class Imatrix:
    """`common_imatrix`, common/imatrix-loader.h. In the older form `counts` are calls, not activations."""

    path: Path
    entries: dict[str, Entry] = field(default_factory=dict)
    datasets: list[str] = field(default_factory=list)
    chunk_count: int = 0
    chunk_size: int = 0
    is_legacy: bool = False

    def importance(self) -> dict[str, NDArray[np.float32]]:
        """The mean of each column's squares, the experts one after the other; 1 for an expert that was never used.

        `load_imatrix`, tools/quantize/quantize.cpp. VizggmlError for a mean that is not a finite number.
        """
        found: dict[str, NDArray[np.float32]] = {}
        for name, entry in self.entries.items():
            counts = entry.counts.astype(np.float32)[:, None]
            with np.errstate(all="ignore"):
                used = np.where(counts > 0, entry.sums / counts, entry.sums if self.is_legacy else np.float32(1))
            if not np.isfinite(used).all():
                raise VizggmlError(f"{self.path.name}: the importance of {quoted(name)} is not all finite")
            found[name] = used.astype(np.float32).ravel()
        return found


def read_imatrix(path: str | Path) -> Imatrix:
    """Read either form. `common_imatrix_load`, common/imatrix-loader.cpp. VizggmlError if it is neither."""
    path = Path(path)
    if not path.is_file():
        raise VizggmlError(f"{path}: {'not a regular file' if path.exists() else 'no such file'}")
    with path.open("rb") as file:
        magic = file.read(4)
    found = _read_gguf(path) if magic == GGUF_MAGIC else _Legacy(path).read()
    if not found.entries:
        raise VizggmlError(f"{path.name}: an importance matrix without an entry")
    return found


def _read_gguf(path: Path) -> Imatrix:
    gguf = read_gguf(path)
    try:
        meta = Metadata(gguf)
        for key in (DATASETS, CHUNK_COUNT, CHUNK_SIZE):
            if key not in gguf.metadata:
                raise meta.fail(f"key '{key}' is missing: not an importance matrix")
        found = Imatrix(path, {}, list(meta.get_strings(DATASETS)), meta.get_u32(CHUNK_COUNT), meta.get_u32(CHUNK_SIZE))
        for name, info in gguf.tensors.items():
            if not name.endswith((SUMS, COUNTS)):
                continue
            what = name.removesuffix(SUMS).removesuffix(COUNTS)
            if what + SUMS not in gguf.tensors or what + COUNTS not in gguf.tensors:
                raise meta.fail(f"tensor {quoted(name)}: sums and counts of {quoted(what)} must be there both")
            if info.type.name != "F32":
                raise meta.fail(f"tensor {quoted(name)} is {info.type}, sums and counts are F32")
            if name.endswith(SUMS):
                values, counts = (np.array(gguf.tensor_bytes(what + part).view(np.float32)) for part in (SUMS, COUNTS))
                found.entries[what] = _entry(meta, what, values, counts)
    finally:
        gguf.close()
    return found


def _entry(meta: Metadata, name: str, values: NDArray[np.float32], counts: NDArray[np.float32]) -> Entry:
    if not len(values) or not len(counts) or len(values) % len(counts):
        raise meta.fail(f"{quoted(name)}: {len(values)} sums are not rows of {len(counts)} counts")
    if not (np.isfinite(counts).all() and (np.abs(counts) < 2**62).all()):
        raise meta.fail(f"{quoted(name)}: a count is not a number of activations")
    return Entry(values.reshape(len(counts), -1), np.rint(counts).astype(np.int64))


class _Legacy:
    """`common_imatrix_load_legacy`: a position in the bytes that never passes their end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.data = path.read_bytes()
        self.pos = 0

    def take(self, n: int, what: str) -> bytes:
        if not 0 <= n <= len(self.data) - self.pos:
            raise VizggmlError(
                f"{self.path.name}: {what}: offset {self.pos} + {n} bytes ends past the file ({len(self.data)} bytes); "
                "an importance matrix is a GGUF file or llama.cpp's older .dat"
            )
        self.pos += n
        return self.data[self.pos - n : self.pos]

    def i32(self, what: str) -> int:
        return int(struct.unpack("<i", self.take(4, what))[0])

    def read(self) -> Imatrix:
        n = self.i32("number of entries")
        if not 1 <= n <= MAX_ENTRIES:
            raise VizggmlError(
                f"{self.path.name}: {n} entries, an importance matrix has 1 to {MAX_ENTRIES}; "
                "it is a GGUF file or llama.cpp's older .dat"
            )
        found = Imatrix(self.path, is_legacy=True)
        for i in range(n):
            name = self.take(self.i32(f"entry {i}"), f"name of entry {i}").split(b"\0")[0].decode("utf-8", "replace")
            calls, n_values = self.i32(f"calls of entry {i}"), self.i32(f"values of entry {i}")
            if n_values < 1:
                raise VizggmlError(f"{self.path.name}: entry {i}, {quoted(name)}, has {n_values} values")
            values = np.frombuffer(self.take(4 * n_values, f"entry {i}"), "<f4").astype(np.float32)
            found.entries[name] = Entry(values[None], np.array([calls], np.int64))
        if self.pos < len(self.data):
            found.chunk_count = self.i32("number of chunks")
            if self.pos < len(self.data):
                text = self.take(self.i32("length of the text's name"), "the text's name")
                found.datasets += [text.split(b"\0")[0].decode("utf-8", "replace")] if text else []
        return found


def write_imatrix(path: str | Path, imatrix: Imatrix) -> None:
    """Write the GGUF form. `IMatrixCollector::save_imatrix`, tools/imatrix/imatrix.cpp."""
    f32, tensors = TYPES["F32"], []
    for name in sorted(imatrix.entries, key=str.encode):
        entry = imatrix.entries[name]
        if len((name + SUMS).encode()) >= GGML_MAX_NAME:
            raise VizggmlError(f"{path}: {quoted(name)} has too long a name for an importance matrix")
        n, columns = entry.sums.shape
        dims = (columns, n) if n > 1 else (columns,)
        tensors.append(TensorData(name + SUMS, f32, dims, entry.sums.astype(np.float32)))
        counts = entry.counts.astype(np.float32)
        tensors.append(TensorData(name + COUNTS, f32, (1, n) if n > 1 else (1,), counts))
    metadata: dict[str, Writable] = {
        "general.type": "imatrix",
        DATASETS: imatrix.datasets,
        CHUNK_COUNT: np.uint32(imatrix.chunk_count),
        CHUNK_SIZE: np.uint32(imatrix.chunk_size),
    }
    write_gguf(path, metadata, tensors)
