"""The GGUF file: metadata, tensor infos and tensor data, read from a map of the file without copying, and written.

A file is a stranger's: each count, length and offset is compared with the bytes that are there before it is used, so a
lying file ends in one VizggmlError and never makes us allocate more than it holds. Layout, all little-endian:

    "GGUF", version u32, n_tensors u64, n_kv u64
    n_kv times       key str, type u32, value          str = length u64 + bytes; array = type u32, n u64, values
    n_tensors times  name str, n_dims u32, ne u64 each, type u32, offset u64
    padding to general.alignment, then the data; an offset counts from here
"""

from __future__ import annotations

import math
import struct
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from vizggml.errors import VizggmlError
from vizggml.events import Dims
from vizggml.ggml.buffer import MappedFile
from vizggml.ggml.context import INT64_MAX
from vizggml.ggml.tensor import Memory
from vizggml.ggml.types import GGML_MAX_DIMS, GGML_MAX_NAME, TYPES_BY_ID, Type, pad

GGUF_MAGIC = b"GGUF"
GGUF_VERSION = 3
GGUF_DEFAULT_ALIGNMENT = 32

MAX_KV = 1 << 16
MAX_TENSORS = 1 << 16
MAX_KEY_BYTES = (1 << 16) - 1
MAX_STRINGS = 1 << 21
"""The most strings in all arrays of one file: finding where they end takes a step for each."""

SCALARS: dict[int, tuple[str, struct.Struct, str]] = {
    0: ("u8", struct.Struct("<B"), "<u1"),
    1: ("i8", struct.Struct("<b"), "<i1"),
    2: ("u16", struct.Struct("<H"), "<u2"),
    3: ("i16", struct.Struct("<h"), "<i2"),
    4: ("u32", struct.Struct("<I"), "<u4"),
    5: ("i32", struct.Struct("<i"), "<i4"),
    6: ("f32", struct.Struct("<f"), "<f4"),
    7: ("bool", struct.Struct("<?"), "?"),
    10: ("u64", struct.Struct("<Q"), "<u8"),
    11: ("i64", struct.Struct("<q"), "<i8"),
    12: ("f64", struct.Struct("<d"), "<f8"),
}
"""`enum gguf_type`, ggml/include/gguf.h: the name, one value, and NumPy's name of it."""
STRING, ARRAY = 8, 9
_u32, _u64 = SCALARS[4][1], SCALARS[10][1]


class StringArray(Sequence[str]):
    """An array of strings in the map: only the place of each is known until it is asked for."""

    def __init__(self, buf: memoryview, starts: array[int], what: str) -> None:
        self._buf = buf
        self._starts = starts
        self._what = what

    def __len__(self) -> int:
        return len(self._starts)

    def raw(self, i: int) -> bytes:
        """The bytes of string `i`."""
        start = self._starts[i]
        return bytes(self._buf[start : start + _u64.unpack_from(self._buf, start - 8)[0]])

    @overload
    def __getitem__(self, i: int) -> str: ...
    @overload
    def __getitem__(self, i: slice) -> list[str]: ...
    def __getitem__(self, i: int | slice) -> str | list[str]:
        if isinstance(i, slice):
            return [self[j] for j in range(*i.indices(len(self)))]
        return _text(self.raw(i), f"{self._what}[{i}]")

    def __iter__(self) -> Iterator[str]:
        buf, length = self._buf, _u64.unpack_from
        try:
            for start in self._starts:
                yield str(buf[start : start + length(buf, start - 8)[0]], "utf-8")
        except UnicodeDecodeError:
            yield from self[self._starts.index(start) :]

    def __repr__(self) -> str:
        shown = [repr(self.raw(i)[:40].decode("utf-8", "replace")) for i in range(min(4, len(self)))]
        return f"[{', '.join(shown)}{f', ... {len(self)} in all' if len(self) > 4 else ''}]"


Value: TypeAlias = bool | int | float | str | NDArray[Any] | StringArray


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """`struct gguf_tensor_info`, ggml/src/gguf.cpp. `offset` counts bytes from the file's `data_offset`."""

    name: str
    type: Type
    ne: Dims
    offset: int
    nbytes: int


@dataclass(slots=True)
class GGUF:
    """`struct gguf_context`, ggml/src/gguf.cpp. Bytes throughout; `types` is each value's type as gguf names it."""

    path: Path
    mapped: MappedFile
    version: int
    metadata: dict[str, Value] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    tensors: dict[str, TensorInfo] = field(default_factory=dict)
    data_offset: int = 0
    alignment: int = GGUF_DEFAULT_ALIGNMENT

    def tensor_bytes(self, name: str) -> Memory:
        """The tensor's bytes in the map, read-only."""
        info = self.tensors[name]
        start = self.data_offset + info.offset
        return self.mapped.memory[start : start + info.nbytes]

    def close(self) -> None:
        """Unmap the file: its tensors' bytes can no longer be read."""
        self.mapped.close()

    def __repr__(self) -> str:
        return f"<GGUF {self.path.name}: {len(self.metadata)} values, {len(self.tensors)} tensors>"


def read_gguf(path: str | Path, *, header_only: bool = False) -> GGUF:
    """Map the file and read all but its tensor data. `gguf_init_from_file`, ggml/src/gguf.cpp.

    With `header_only` the tensor data need not be there, as in a file whose download has only begun.
    VizggmlError if the file is not there, is no GGUF of version 2 or 3, or contradicts itself or its own size.
    """
    path = Path(path)
    if not path.is_file():
        raise VizggmlError(f"{path}: {'not a regular file' if path.exists() else 'no such file'}")
    if path.stat().st_size < 4:
        raise VizggmlError(f"{path}: {path.stat().st_size} bytes is too short for a GGUF file (its magic takes 4)")
    mapped = MappedFile(path)
    try:
        return _Reader(path, mapped).read(header_only)
    except BaseException:
        mapped.close()
        raise


def _text(raw: bytes | memoryview, what: str) -> str:
    try:
        return str(raw, "utf-8")
    except UnicodeDecodeError as e:
        raise VizggmlError(f"{what}: byte {e.start} ({bytes(raw)[e.start]:#04x}) is not UTF-8") from None


def quoted(name: str) -> str:
    """A stranger's text, fit for one line of an error."""
    return repr(name if len(name) <= 80 else name[:77] + "...")


class _Reader:
    """`struct gguf_reader`, ggml/src/gguf.cpp: a position in the map that never passes its end."""

    def __init__(self, path: Path, mapped: MappedFile) -> None:
        self.file = path.name
        self.buf: memoryview = mapped.memory.data
        self.size = len(self.buf)
        self.pos = 0
        self.n_strings = 0
        self.gguf = GGUF(path, mapped, 0)

    def fail(self, message: str) -> VizggmlError:
        return VizggmlError(f"{self.file}: {message}")

    def take(self, n: int, what: str) -> int:
        """Step over `n` bytes; where they begin."""
        start = self.pos
        if n > self.size - start:
            raise self.fail(f"{what}: offset {start} + {n} bytes ends past the file ({self.size} bytes)")
        self.pos = start + n
        return start

    def u32(self, what: str) -> int:
        return int(_u32.unpack_from(self.buf, self.take(4, what))[0])

    def u64(self, what: str) -> int:
        return int(_u64.unpack_from(self.buf, self.take(8, what))[0])

    def string(self, what: str, limit: int | None = None) -> str:
        n = self.u64(f"length of {what}")
        if limit is not None and n > limit:
            raise self.fail(f"{what}: {n} bytes long, the limit is {limit}")
        start = self.take(n, what)
        return _text(self.buf[start : start + n], f"{self.file}: {what}")

    def read(self, header_only: bool) -> GGUF:
        n_tensors, n_kv = self.header()
        for i in range(n_kv):
            self.pair(i)
        self.gguf.alignment = self.alignment()
        for i in range(n_tensors):
            self.info(i)
        data_offset = pad(self.pos, self.gguf.alignment) if n_tensors else self.pos
        if data_offset > self.size and not header_only:
            raise self.fail(
                f"tensor data: would begin at {data_offset} (alignment {self.gguf.alignment}), "
                f"past the file ({self.size} bytes)"
            )
        self.gguf.data_offset = data_offset
        self.check_offsets(header_only)
        return self.gguf

    def header(self) -> tuple[int, int]:
        magic = bytes(self.buf[:4])
        if magic != GGUF_MAGIC:
            raise self.fail(f"magic is {magic!r}, a GGUF file begins with {GGUF_MAGIC!r}")
        self.pos = 4
        version = self.u32("version")
        if version and version & 0xFFFF == 0:
            raise self.fail(f"version {version:#x} is that of a big-endian file, only little-endian is supported")
        if version not in (2, 3):
            raise self.fail(f"version {version} is not supported, only 2 and 3 are")
        self.gguf.version = version
        n_tensors, n_kv = self.u64("number of tensors"), self.u64("number of key-value pairs")
        # The shortest pair is an empty key and a one-byte value; the shortest info an unnamed tensor of no dimensions.
        self.check_count("number of key-value pairs", n_kv, MAX_KV, 8 + 4 + 1)
        self.check_count("number of tensors", n_tensors, MAX_TENSORS, 8 + 4 + 4 + 8)
        return n_tensors, n_kv

    def check_count(self, what: str, n: int, most: int, least_bytes: int) -> None:
        if n > most:
            raise self.fail(f"{what} is {n}, the limit is {most}")
        if n * least_bytes > self.size - self.pos:
            raise self.fail(
                f"{what} is {n}, which takes at least {n * least_bytes} bytes; {self.size - self.pos} are left"
            )

    def pair(self, i: int) -> None:
        """Read one key and its value."""
        key = self.string(f"key {i}", MAX_KEY_BYTES)
        if not key:
            raise self.fail(f"key {i} is empty")
        what = f"key {quoted(key)}"
        if key in self.gguf.metadata:
            raise self.fail(f"{what} appears twice, the second time as pair {i}")
        type = self.u32(f"type of {what}")
        if type == ARRAY:
            self.gguf.metadata[key], self.gguf.types[key] = self.array(what)
        elif type == STRING:
            self.gguf.metadata[key], self.gguf.types[key] = self.string(f"value of {what}"), "str"
        elif type in SCALARS:
            name, one, _ = SCALARS[type]
            self.gguf.metadata[key] = one.unpack_from(self.buf, self.take(one.size, f"value of {what}"))[0]
            self.gguf.types[key] = name
        else:
            raise self.fail(f"{what}: type {type} is not one of GGUF's (0 to 12)")

    def array(self, what: str) -> tuple[Value, str]:
        type, n = self.u32(f"element type of {what}"), self.u64(f"length of {what}")
        if type == ARRAY:
            raise self.fail(f"{what} is an array of arrays, which GGUF readers do not support")
        if type == STRING:
            return self.strings(what, n), f"arr[str,{n}]"
        if type not in SCALARS:
            raise self.fail(f"{what}: element type {type} is not one of GGUF's (0 to 12)")
        name, one, dtype = SCALARS[type]
        start = self.take(n * one.size, f"{what}, {n} values of {name}")
        if name == "bool":
            raw = np.ndarray(n, np.uint8, self.buf, start)
            # NumPy's bool is only ever 0 or 1; a file may hold any byte.
            return (raw.view(np.bool_) if not n or raw.max() <= 1 else raw != 0), f"arr[bool,{n}]"
        return np.ndarray(n, dtype, self.buf, start), f"arr[{name},{n}]"

    def strings(self, what: str, n: int) -> StringArray:
        self.check_count(f"{what}: number of strings", n, MAX_STRINGS - self.n_strings, 8)
        self.n_strings += n
        starts, pos, buf, length = array("Q"), self.pos, self.buf, _u64.unpack_from
        last = self.size - 8
        for _ in range(n):
            if pos > last:
                break
            starts.append(pos + 8)
            pos += 8 + length(buf, pos)[0]
        if len(starts) < n or pos > self.size:
            i = len(starts) - (pos > self.size)
            at = starts[i] if i < len(starts) else pos
            raise self.fail(f"{what}: string {i} of {n}, at offset {at}, ends past the file ({self.size} bytes)")
        self.pos = pos
        return StringArray(buf, starts, f"{self.file}: {what}")

    def alignment(self) -> int:
        key = "general.alignment"
        if key not in self.gguf.metadata:
            return GGUF_DEFAULT_ALIGNMENT
        if self.gguf.types[key] != "u32":
            raise self.fail(f"key '{key}' has type {self.gguf.types[key]}, it must be u32")
        alignment = self.gguf.metadata[key]
        assert isinstance(alignment, int)
        if alignment == 0 or alignment & (alignment - 1):
            raise self.fail(f"key '{key}': {alignment} is not a power of 2")
        return alignment

    def info(self, i: int) -> None:
        """Read one tensor's name, shape, type and offset."""
        name = self.string(f"name of tensor {i}", GGML_MAX_NAME - 1)
        what = f"tensor {quoted(name)}"
        if "\0" in name:
            raise self.fail(f"{what} has a NUL in its name, where ggml would cut it")
        if name in self.gguf.tensors:
            raise self.fail(f"{what} appears twice, the second time as tensor {i}")
        n_dims = self.u32(f"{what}: number of dimensions")
        if n_dims > GGML_MAX_DIMS:
            raise self.fail(f"{what}: {n_dims} dimensions, the limit is {GGML_MAX_DIMS}")
        ne = [self.u64(f"{what}: ne[{j}]") for j in range(n_dims)] + [1] * (GGML_MAX_DIMS - n_dims)
        type_id = self.u32(f"{what}: type")
        type = TYPES_BY_ID.get(type_id)
        if type is None:
            raise self.fail(f"{what}: type {type_id} is not one of ggml's (0 to {max(TYPES_BY_ID)}, with gaps)")
        offset = self.u64(f"{what}: offset")
        rows = 1
        for j, n in enumerate(ne):
            if n > INT64_MAX or rows * n > INT64_MAX:
                raise self.fail(f"{what}: shape {tuple(ne)} overflows at ne[{j}], the limit is {INT64_MAX} elements")
            rows *= n
        if ne[0] % type.blck_size:
            raise self.fail(f"{what}: ne[0] {ne[0]} is not a multiple of {type.blck_size}, the block of {type}")
        nbytes = type.row_size(ne[0]) * ne[1] * ne[2] * ne[3]
        self.gguf.tensors[name] = TensorInfo(name, type, (ne[0], ne[1], ne[2], ne[3]), offset, nbytes)

    def check_offsets(self, header_only: bool) -> None:
        """Each tensor begins where the one before ends, padded: no gap, no overlap, nothing past the file."""
        expected, alignment = 0, self.gguf.alignment
        for info in self.gguf.tensors.values():
            what = f"tensor {quoted(info.name)}"
            if info.offset != expected:
                raise self.fail(
                    f"{what}: offset {info.offset}, expected {expected}: "
                    f"the end of the tensor before, padded to {alignment}"
                )
            end = self.gguf.data_offset + info.offset + info.nbytes
            if end > self.size and not header_only:
                raise self.fail(
                    f"{what}: offset {end - info.nbytes} + {info.nbytes} bytes ends past the file ({self.size} bytes)"
                )
            expected = pad(info.offset + info.nbytes, alignment)


@dataclass(frozen=True, slots=True)
class TensorData:
    """A tensor to write: `data` holds its elements, or the bytes of its blocks, in ggml's order."""

    name: str
    type: Type
    ne: tuple[int, ...]
    data: NDArray[Any]


Writable: TypeAlias = Value | np.generic | Sequence[str] | Sequence[int] | Sequence[float]


def write_gguf(
    path: str | Path,
    metadata: Mapping[str, Writable],
    tensors: Iterable[TensorData] = (),
    *,
    version: int = GGUF_VERSION,
    alignment: int = GGUF_DEFAULT_ALIGNMENT,
) -> None:
    """Write a file that appears whole or not at all. `gguf_write_to_file`, ggml/src/gguf.cpp.

    A Python int is written as u32, or the first of i32, u64, i64 that holds it; a float as f32; a list of ints as i32,
    of floats as f32. NumPy values and arrays keep their type. VizggmlError for what no GGUF can hold.
    """
    path = Path(path)
    tensors = list(tensors)
    if alignment != GGUF_DEFAULT_ALIGNMENT:
        metadata = {**metadata, "general.alignment": np.uint32(alignment)}
    for t in tensors:
        _check(t, f"{path.name}: tensor {quoted(t.name)}")
    head = gguf_head(path.name, metadata, [(t.name, t.type, t.ne) for t in tensors], version, alignment)
    part = path.with_name(path.name + ".part")
    try:
        with part.open("wb") as f:
            f.write(head)
            for t in tensors:
                f.write(bytes(pad(f.tell(), alignment) - f.tell()))
                f.write(np.ascontiguousarray(t.data).data)
            f.write(bytes(pad(f.tell(), alignment) - f.tell() if tensors else 0))
        part.replace(path)
    except OSError as e:
        part.unlink(missing_ok=True)
        raise VizggmlError(f"{path}: cannot be written: {e.strerror}") from None


def gguf_head(
    file: str,
    metadata: Mapping[str, Writable],
    tensors: Sequence[tuple[str, Type, tuple[int, ...]]],
    version: int = GGUF_VERSION,
    alignment: int = GGUF_DEFAULT_ALIGNMENT,
) -> bytes:
    """All that comes before the padding and the tensors' data. `gguf_write_out`, ggml/src/gguf.cpp."""
    head = bytearray(GGUF_MAGIC + _u32.pack(version) + _u64.pack(len(tensors)) + _u64.pack(len(metadata)))
    for key, value in metadata.items():
        head += _packed(key.encode()) + _pack_value(value, f"{file}: key {quoted(key)}")
    offset = 0
    for name, type, ne in tensors:
        head += _packed(name.encode()) + _u32.pack(len(ne)) + b"".join(_u64.pack(n) for n in ne)
        head += _u32.pack(type.id) + _u64.pack(offset)
        offset += pad(type.row_size(ne[0]) * math.prod(ne[1:]), alignment)
    return bytes(head)


def _check(t: TensorData, what: str) -> None:
    if len(t.name.encode()) >= GGML_MAX_NAME:
        raise VizggmlError(f"{what}: a name of {len(t.name.encode())} bytes, the limit is {GGML_MAX_NAME - 1}")
    if not 1 <= len(t.ne) <= GGML_MAX_DIMS:
        raise VizggmlError(f"{what}: {len(t.ne)} dimensions, the limit is {GGML_MAX_DIMS}")
    nbytes = t.type.row_size(t.ne[0]) * math.prod(t.ne[1:])
    if t.data.nbytes != nbytes:
        raise VizggmlError(f"{what}: {t.data.nbytes} bytes given, {t.type} of shape {t.ne} takes {nbytes}")


def _packed(raw: bytes) -> bytes:
    return _u64.pack(len(raw)) + raw


def _pack_value(value: Writable, what: str) -> bytes:
    if isinstance(value, str):
        return _u32.pack(STRING) + _packed(value.encode())
    if isinstance(value, StringArray) or (isinstance(value, (list, tuple)) and value and isinstance(value[0], str)):
        raw = (
            (value.raw(i) for i in range(len(value)))
            if isinstance(value, StringArray)
            else (str(s).encode() for s in value)
        )
        items = b"".join(map(_packed, raw))
        return _u32.pack(ARRAY) + _u32.pack(STRING) + _u64.pack(len(value)) + items
    if isinstance(value, bool):
        array = np.asarray(value)
    elif isinstance(value, int):
        fits = [t for t in ("u4", "i4", "u8", "i8") if np.iinfo(t).min <= value <= np.iinfo(t).max]
        if not fits:
            raise VizggmlError(f"{what}: {value} does not fit in 64 bits")
        array = np.asarray(value, fits[0])
    elif isinstance(value, float) and not isinstance(value, np.generic):
        array = np.asarray(value, "f4")
    else:
        array = np.asarray(value)
        if isinstance(value, (list, tuple)):
            array = array.astype({"i": "i4", "f": "f4"}.get(array.dtype.kind, array.dtype))
    for type_id, (_, _, dtype) in SCALARS.items():
        if array.dtype == np.dtype(dtype) and array.ndim < 2:
            head = (
                _u32.pack(type_id) if array.ndim == 0 else _u32.pack(ARRAY) + _u32.pack(type_id) + _u64.pack(array.size)
            )
            return head + array.astype(dtype).tobytes()
    raise VizggmlError(f"{what}: GGUF has no type for {array.ndim} dimensions of {array.dtype}")
