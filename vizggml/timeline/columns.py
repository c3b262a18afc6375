"""The container that traces and tracks are kept in: a JSON header, then plain typed arrays. No pickle.

    8 bytes    magic
    4 bytes    length of the header, little endian; 4 bytes 0
    header     UTF-8 JSON: kind, schema, meta, strings, columns {name: {dtype, shape, offset}}
    columns    each at a multiple of 8 from where the data begins, which is itself at a multiple of 8

A file is a stranger: every length, shape and offset is held against the bytes that are there before it is used.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vizggml.errors import VizggmlError
from vizggml.files import write_whole

MAGIC = b"VGCOL\0\0\1"
ALIGNMENT = 8
HEADER_START = 16
DTYPES = {"u1": "<u1", "i4": "<i4", "u4": "<u4", "i8": "<i8", "f4": "<f4", "f8": "<f8"}
MAX_DIMS = 2

Column = NDArray[Any]


@dataclass(slots=True)
class Columns:
    """What a container holds. `kind` is trace or tracks; `strings` is what the i4 columns of text index."""

    kind: str
    schema: int
    meta: dict[str, Any]
    strings: list[str]
    columns: dict[str, Column]


def pack(content: Columns) -> bytes:
    """The container as bytes. Equal contents give equal bytes."""
    offset = 0
    entries: dict[str, dict[str, object]] = {}
    parts: list[bytes] = []
    for name, column in content.columns.items():
        dtype = f"{column.dtype.kind}{column.dtype.itemsize}"
        if dtype not in DTYPES:
            raise VizggmlError(f"column {name!r}: dtype {column.dtype} is not one of {', '.join(DTYPES)}")
        raw = np.ascontiguousarray(column, DTYPES[dtype]).tobytes()
        entries[name] = {"dtype": dtype, "shape": list(column.shape), "offset": offset}
        padding = -len(raw) % ALIGNMENT
        parts += (raw, bytes(padding))
        offset += len(raw) + padding
    header = {
        "kind": content.kind,
        "schema": content.schema,
        "meta": content.meta,
        "strings": content.strings,
        "columns": entries,
    }
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    start = MAGIC + len(text).to_bytes(4, "little") + bytes(4)
    return b"".join([start, text, bytes(-len(start + text) % ALIGNMENT), *parts])


def unpack(data: bytes | memoryview, kind: str, schema: int, name: str) -> Columns:
    """Read a container; the columns are views of `data`. VizggmlError, naming `name`, for anything that is not one."""
    view = memoryview(data)
    header, data_start = _header(view, name)
    if header.get("kind") != kind:
        raise VizggmlError(f"{name}: holds {_short(header.get('kind'))}, not {kind!r}")
    if header.get("schema") != schema or isinstance(header.get("schema"), bool):
        raise VizggmlError(f"{name}: schema {_short(header.get('schema'))}, this version reads schema {schema}")
    meta, strings, entries = header.get("meta"), header.get("strings"), header.get("columns")
    if not isinstance(meta, dict) or not isinstance(entries, dict):
        raise VizggmlError(f"{name}: the header has no meta or no columns")
    if not isinstance(strings, list) or not all(isinstance(s, str) for s in strings):
        raise VizggmlError(f"{name}: the string table is not a list of strings")
    room = view[data_start:]
    columns = {column: _column(room, column, entry, name) for column, entry in entries.items()}
    return Columns(kind, schema, meta, strings, columns)


def _header(view: memoryview, name: str) -> tuple[dict[str, Any], int]:
    if len(view) < HEADER_START:
        raise VizggmlError(f"{name}: {len(view)} bytes, a container has at least {HEADER_START}")
    if view[:8] != MAGIC:
        raise VizggmlError(f"{name}: begins with {bytes(view[:8])!r}, not with {MAGIC!r}")
    length = int.from_bytes(view[8:12], "little")
    end = HEADER_START + length
    if end > len(view):
        raise VizggmlError(f"{name}: a header of {length} bytes ends past the file ({len(view)} bytes)")
    try:
        header = json.loads(bytes(view[HEADER_START:end]))
    except (ValueError, RecursionError) as error:
        raise VizggmlError(f"{name}: the header of {length} bytes is not JSON ({type(error).__name__})") from None
    if not isinstance(header, dict):
        raise VizggmlError(f"{name}: the header is a {type(header).__name__}, not an object")
    return header, end + -end % ALIGNMENT


def _column(room: memoryview, column: str, entry: object, name: str) -> Column:
    where = f"{name}: column {_short(column)}"
    if not isinstance(entry, dict):
        raise VizggmlError(f"{where}: described by {_short(entry)}, not by an object")
    dtype, shape, offset = entry.get("dtype"), entry.get("shape"), entry.get("offset")
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise VizggmlError(f"{where}: dtype {_short(dtype)} is not one of {', '.join(DTYPES)}")
    if not isinstance(shape, list) or not 1 <= len(shape) <= MAX_DIMS or not all(_is_count(n) for n in shape):
        raise VizggmlError(f"{where}: shape {_short(shape)} is not 1 to {MAX_DIMS} numbers from 0")
    if not isinstance(offset, int) or not _is_count(offset) or offset % ALIGNMENT:
        raise VizggmlError(f"{where}: offset {_short(offset)} is not a multiple of {ALIGNMENT} from 0")
    items = 1
    for n in shape:
        items *= n
    nbytes = items * np.dtype(DTYPES[dtype]).itemsize
    if offset + nbytes > len(room):
        raise VizggmlError(f"{where}: offset {offset} + {nbytes} bytes ends past the file's data ({len(room)} bytes)")
    if not items:
        if max(shape) > len(room):
            raise VizggmlError(f"{where}: shape {shape} is empty but larger than the file's data ({len(room)} bytes)")
        return np.zeros(shape, DTYPES[dtype])
    return np.frombuffer(room, DTYPES[dtype], items, offset).reshape(shape)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def read_file(path: str | os.PathLike[str], kind: str, schema: int) -> Columns:
    """Read a container from a file. VizggmlError if there is none or it is not one."""
    try:
        data = Path(path).read_bytes()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise VizggmlError(f"{kind} {os.fspath(path)!r}: {why}") from None
    return unpack(data, kind, schema, f"{kind} {os.fspath(path)!r}")


def write_file(path: str | os.PathLike[str], content: Columns) -> None:
    """Write a container whole or not at all: under another name in the same folder, then put in place."""
    write_whole(path, pack(content), content.kind)


def require(columns: Mapping[str, Column], column: str, dtype: str, shape: tuple[int, ...], name: str) -> Column:
    """The column of that name, held to its dtype and shape (-1: any length)."""
    found = columns.get(column)
    if found is None:
        raise VizggmlError(f"{name}: column {column!r} is missing")
    if found.dtype != np.dtype(DTYPES[dtype]):
        raise VizggmlError(f"{name}: column {column!r} is {found.dtype}, not {dtype}")
    if found.ndim != len(shape) or any(want not in (-1, got) for want, got in zip(shape, found.shape, strict=True)):
        raise VizggmlError(f"{name}: column {column!r} has shape {found.shape}, not {shape}")
    return found
