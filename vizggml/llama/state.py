"""The state of a context in a file: which tokens it has read, and the cells that hold their keys and values.

The files are llama.cpp's own, little-endian: a session ("ggsn": every cell, with all its sequences) or one sequence
("ggsq"). After magic, version and the tokens come, in a session, the architecture's name; then for each cache the
number of streams, and for each stream

    cells, then of each its position and its sequences
    whether V is transposed, layers
    of each layer's K: its type, the bytes of a row, a row for each cell
    of each layer's V the same; transposed: its type, the bytes of an element, rows, and of each row all cells' elements

A file is read to its end before anything is changed. `llama_context::state_save_file`, src/llama-context.cpp, and
`llama_kv_cache::state_write`, src/llama-kv-cache.cpp.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vizggml.errors import VizggmlError
from vizggml.events import StateLoaded, StateSaved, bus
from vizggml.files import write_whole
from vizggml.ggml.tensor import Memory, Tensor
from vizggml.ggml.types import TYPES_BY_ID
from vizggml.llama.batch import Ubatch
from vizggml.llama.hparams import HParams
from vizggml.llama.kv_cache import POS_MAX, KVCache
from vizggml.llama.kv_cells import EMPTY, is_masked_swa

SESSION_MAGIC, SESSION_VERSION = 0x6767736E, 10
SEQUENCE_MAGIC, SEQUENCE_VERSION = 0x67677371, 3
"""`LLAMA_SESSION_MAGIC`, `LLAMA_STATE_SEQ_MAGIC` and their versions, include/llama.h. The next version of each, which a
newer llama.cpp writes, says after the number of layers how large the matrices are that K and V were rotated by."""
ALL = -1
"""Every sequence."""

FilePath = str | os.PathLike[str]


def save(
    path: FilePath,
    hparams: HParams,
    caches: Sequence[KVCache],
    tokens: Sequence[int],
    seq_id: int = ALL,
    newer: bool = False,
) -> None:
    """Write a session, or one sequence; `newer` as the next version. VizggmlError if the file cannot be written."""
    check_sequence(caches, seq_id)
    magic, version = (SESSION_MAGIC, SESSION_VERSION) if seq_id == ALL else (SEQUENCE_MAGIC, SEQUENCE_VERSION)
    if not all(0 <= token < hparams.n_vocab for token in tokens):
        raise VizggmlError(f"state: a token is not one of 0 to {hparams.n_vocab - 1}")
    parts: list[bytes] = [
        struct.pack("<III", magic, version + newer, len(tokens)),
        np.asarray(tokens, "<i4").tobytes(),
    ]
    if seq_id == ALL:
        name = hparams.architecture.encode()
        parts += [struct.pack("<I", len(name)), name]
    n_cells = 0
    for kv in caches:
        cells = _held(kv, seq_id)
        n_cells += len(cells)
        parts.append(struct.pack("<II", kv.n_stream, len(cells)))
        if len(cells):
            parts += _cells(kv, cells, seq_id)
            parts += _values(kv, cells, newer)
    data = b"".join(parts)
    write_whole(path, data, "state")
    if bus.on:
        bus.emit(StateSaved(seq_id, len(tokens), n_cells, len(data)))


def check_sequence(caches: Sequence[KVCache], seq_id: int) -> None:
    if not ALL <= seq_id < caches[0].n_seq_max:
        raise VizggmlError(f"state: sequence {seq_id} is not one of 0 to {caches[0].n_seq_max - 1} (n_seq_max)")


def _held(kv: KVCache, seq_id: int) -> NDArray[np.intp]:
    """The cells to save: of one sequence only those that a later token can see."""
    cells = kv.cells
    if seq_id == ALL:
        return np.flatnonzero(cells.pos >= 0)
    held = cells.seq[seq_id]
    if kv.n_swa:
        held = held & ~is_masked_swa(kv.n_swa, cells.pos, np.asarray(cells.seq_pos_max(seq_id)))
    return np.flatnonzero(held)


def _cells(kv: KVCache, cells: NDArray[np.intp], seq_id: int) -> Iterator[bytes]:
    """`llama_kv_cache::state_write_meta`, src/llama-kv-cache.cpp."""
    for i in cells.tolist():
        seqs = kv.cells.sequences(i) if seq_id == ALL else [seq_id]
        yield struct.pack(f"<iI{len(seqs)}i", int(kv.cells.pos[i]), len(seqs), *seqs)


def _values(kv: KVCache, cells: NDArray[np.intp], newer: bool) -> Iterator[bytes]:
    """`llama_kv_cache::state_write_data`, src/llama-kv-cache.cpp."""
    yield struct.pack("<II", kv.v_trans, len(kv.k))
    if newer:
        yield struct.pack("<II", *kv.rotations)
    for field in _fields(kv):
        yield field.head
        yield np.ascontiguousarray(field.rows[cells] if not field.transposed else field.rows[:, cells]).tobytes()


@dataclass(frozen=True, slots=True)
class _Field:
    """K or V of a layer: what a file says of it, and its bytes: (cells, row) or, transposed, (rows, cells, element)."""

    name: str
    head: bytes
    rows: NDArray[np.uint8]
    transposed: bool


def _fields(kv: KVCache) -> Iterator[_Field]:
    for t in kv.k:
        yield _field(kv, t)
    for il, t in zip(kv.layers, kv.v, strict=True):
        yield _transposed(kv, t, kv.hparams.n_embd_v_gqa(il)) if kv.v_trans else _field(kv, t)


def _field(kv: KVCache, t: Tensor) -> _Field:
    row = t.type.row_size(t.ne[0])
    return _Field(t.name, struct.pack("<iQ", t.type.id, row), _bytes(t).reshape(kv.n_cells, row), False)


def _transposed(kv: KVCache, t: Tensor, n_embd: int) -> _Field:
    size = t.type.type_size
    rows = _bytes(t).reshape(t.ne[0], kv.n_cells, size)[:n_embd]
    return _Field(t.name, struct.pack("<iII", t.type.id, size, n_embd), rows, True)


def _bytes(t: Tensor) -> Memory:
    if t.data is None:
        raise VizggmlError(f"tensor {t.name!r} has no memory")
    return t.data.memory[t.data.offset : t.data.offset + t.nbytes]


class Reader:
    """The bytes of a state, taken from the front."""

    def __init__(self, path: FilePath) -> None:
        self.name = f"state {os.fspath(path)!r}"
        self.at = 0
        try:
            if not Path(path).is_file():
                raise VizggmlError(f"{self.name}: there is no such file")
            self.data: Memory = np.fromfile(path, np.uint8)
        except (OSError, ValueError) as error:
            raise VizggmlError(f"{self.name}: cannot be read: {error}") from None

    def fail(self, why: str) -> VizggmlError:
        return VizggmlError(f"{self.name}: {why}")

    def take(self, n: int, what: str) -> Memory:
        left = len(self.data) - self.at
        if n > left:
            raise self.fail(f"{what} ({n} bytes) at byte {self.at} end past the file ({len(self.data)} bytes)")
        self.at += n
        return self.data[self.at - n : self.at]

    def number(self, format: str, what: str) -> int:
        (value,) = struct.unpack("<" + format, self.take(struct.calcsize("<" + format), what).tobytes())
        return int(value)

    def expect(self, format: str, what: str, want: int) -> None:
        found = self.number(format, what)
        if found != want:
            raise self.fail(f"{what}: {found}, here {want}")


def load(path: FilePath, hparams: HParams, caches: Sequence[KVCache], seq_id: int = ALL) -> list[int]:
    """Read a session, or one sequence into sequence `seq_id`: its tokens. What the caches hold of it is replaced.

    VizggmlError if it is no such file, is damaged or of another model, cache type or mode; then nothing is changed.
    """
    check_sequence(caches, seq_id)
    reader = Reader(path)
    newer, tokens = _tokens(reader, hparams, seq_id)
    parts = [_cache(reader, kv, seq_id, newer) for kv in caches]
    if reader.at < len(reader.data):
        raise reader.fail(f"{len(reader.data) - reader.at} bytes are left after its end")
    for part in parts:
        part.put(seq_id)
    if bus.on:
        bus.emit(StateLoaded(seq_id, len(tokens), sum(len(part.pos) for part in parts), len(reader.data)))
    return tokens


def _tokens(reader: Reader, hparams: HParams, seq_id: int) -> tuple[bool, list[int]]:
    """Whether it is of the next version, and the tokens: once it is clear that the file is of this kind and model."""
    kind, magic, version = (
        ("session", SESSION_MAGIC, SESSION_VERSION) if seq_id == ALL else ("sequence", SEQUENCE_MAGIC, SEQUENCE_VERSION)
    )
    found = reader.number("I", "magic"), reader.number("I", "version")
    if found[0] != magic:
        raise reader.fail(f"it does not begin as a {kind} does (magic {found[0]:08x}, must be {magic:08x})")
    if found[1] not in (version, version + 1):
        raise reader.fail(f"version {found[1]} of a {kind}, known are {version} and {version + 1}")
    n_tokens = reader.number("I", "the number of tokens")
    tokens = reader.take(4 * n_tokens, f"{n_tokens} tokens").view("<i4")
    if n_tokens and not 0 <= tokens.min() <= tokens.max() < hparams.n_vocab:
        raise reader.fail(f"a token is not one of 0 to {hparams.n_vocab - 1}")
    if seq_id == ALL:
        n = reader.number("I", "the length of the architecture's name")
        name = bytes(reader.take(n, "the architecture's name")).decode("utf-8", "replace")
        if name != hparams.architecture:
            raise reader.fail(f"it is of a {name[:20]!r} model, this is {hparams.architecture!r}")
    return found[1] > version, tokens.tolist()


@dataclass(slots=True)
class _Loaded:
    """What a file holds for one cache."""

    kv: KVCache
    pos: list[int]
    seqs: list[tuple[int, ...]]
    values: list[Memory]

    def put(self, seq_id: int) -> None:
        """Replace a sequence, or all: those go to the first cells. `llama_kv_cache::state_read_meta`."""
        kv, n = self.kv, len(self.pos)
        if seq_id == ALL:
            kv.clear()
        else:
            kv.seq_rm(seq_id, -1, -1)
        if not n:
            return
        seqs = self.seqs if seq_id == ALL else [(seq_id,)] * n
        n_seqs = len({s for cell in seqs for s in cell})
        ubatch = Ubatch((EMPTY,) * n, tuple(self.pos), tuple(seqs), (False,) * n, n_seqs)
        slot = kv.find_slot(ubatch)
        assert slot is not None
        kv.apply_ubatch(slot, ubatch)
        if seq_id == ALL:
            kv.head = 0
        for field, values in zip(_fields(kv), self.values, strict=True):
            if field.transposed:
                field.rows[:, slot] = values.reshape(len(field.rows), n, -1)
            else:
                field.rows[list(slot)] = values.reshape(n, -1)


def _cache(reader: Reader, kv: KVCache, seq_id: int, newer: bool) -> _Loaded:
    reader.expect("I", "streams", kv.n_stream)
    loaded = _Loaded(kv, [], [], [])
    n = reader.number("I", "the number of cells")
    free = kv.n_cells
    if seq_id != ALL:
        free -= int(np.count_nonzero(np.delete(kv.cells.seq, seq_id, axis=0).any(axis=0)))
    if n > free:
        raise reader.fail(f"it has {n} cells, there is room for {free}")
    for i in range(n):
        pos, n_seq = reader.number("i", f"cell {i}"), reader.number("I", f"cell {i}")
        if not 0 <= pos < POS_MAX:
            raise reader.fail(f"cell {i} is at position {pos}")
        if not 1 <= n_seq <= (kv.n_seq_max if seq_id == ALL else 1):
            raise reader.fail(f"cell {i} is of {n_seq} sequences, here there may be {kv.n_seq_max}")
        seqs = tuple(reader.take(4 * n_seq, f"the sequences of cell {i}").view("<i4").tolist())
        if seq_id == ALL and (len(set(seqs)) < n_seq or not 0 <= min(seqs) <= max(seqs) < kv.n_seq_max):
            raise reader.fail(f"cell {i} is of sequences {seqs}, here are 0 to {kv.n_seq_max - 1} (n_seq_max)")
        loaded.pos.append(pos)
        loaded.seqs.append(seqs)
    if n:
        _read_values(reader, kv, n, loaded.values, newer)
    return loaded


def _read_values(reader: Reader, kv: KVCache, n: int, values: list[Memory], newer: bool) -> None:
    """`llama_kv_cache::state_read_data`, src/llama-kv-cache.cpp."""
    if bool(reader.number("I", "whether V is transposed")) != kv.v_trans:
        with_it, here = ("on", "off") if kv.v_trans else ("off", "on")
        raise reader.fail(f"it was saved with flash attention {with_it}, here it is {here}")
    reader.expect("I", "layers", len(kv.k))
    for name, n_rot in zip(("K", "V"), kv.rotations if newer else (), strict=newer):
        reader.expect("I", f"the rotation of {name}", n_rot)
    for field in _fields(kv):
        found = bytes(reader.take(len(field.head), f"the head of {field.name}"))
        if found != field.head:
            raise reader.fail(f"{field.name}: {_says(found)}, here {_says(field.head)}")
        row_bytes = field.rows.size // kv.n_cells
        values.append(reader.take(n * row_bytes, field.name))


def _says(head: bytes) -> str:
    """The head of a layer's K or V in words."""
    (id,) = struct.unpack_from("<i", head)
    size = struct.unpack_from("<Q" if len(head) == 12 else "<I", head, 4)[0]
    return f"{TYPES_BY_ID.get(id, f'type {id}')} in {size} bytes"
