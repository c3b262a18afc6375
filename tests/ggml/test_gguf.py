"""The GGUF reader and writer against the `gguf` package, real ggml, and files that lie."""

from __future__ import annotations

import ctypes
import os
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import xllamacpp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vizggml.errors import VizggmlError
from vizggml.events import Event, MmapOpened, bus
from vizggml.ggml.gguf import GGUF, StringArray, TensorData, read_gguf, write_gguf
from vizggml.ggml.types import TYPES, TYPES_BY_ID, Type
from vizggml.llama.models import resolve_model

U8, I8, U16, I16, U32, I32, F32, BOOL, STR, ARR, U64, I64, F64 = range(13)


def s(text: str | bytes) -> bytes:
    raw = text.encode() if isinstance(text, str) else text
    return struct.pack("<Q", len(raw)) + raw


def kv(key: str | bytes, type: int, value: bytes) -> bytes:
    return s(key) + struct.pack("<I", type) + value


def arr(type: int, n: int, values: bytes) -> bytes:
    return struct.pack("<IQ", type, n) + values


def info(name: str | bytes, ne: tuple[int, ...], type: int = 0, offset: int = 0, n_dims: int | None = None) -> bytes:
    dims = struct.pack("<I", len(ne) if n_dims is None else n_dims) + struct.pack(f"<{len(ne)}Q", *ne)
    return s(name) + dims + struct.pack("<IQ", type, offset)


def image(
    pairs: list[bytes],
    infos: list[bytes],
    data: bytes = b"",
    *,
    version: int = 3,
    magic: bytes = b"GGUF",
    n_kv: int | None = None,
    n_tensors: int | None = None,
    alignment: int = 32,
) -> bytes:
    """A file from its parts; the counts may lie."""
    head = magic + struct.pack("<I", version)
    head += struct.pack("<Q", len(infos) if n_tensors is None else n_tensors)
    head += struct.pack("<Q", len(pairs) if n_kv is None else n_kv)
    head += b"".join(pairs) + b"".join(infos)
    return head + bytes(-len(head) % alignment) + data


VALID = image(
    [
        kv("general.architecture", STR, s("llama")),
        kv("a.u8", U8, b"\x07"),
        kv("a.f32", F32, struct.pack("<f", 1.5)),
        kv("a.bools", ARR, arr(BOOL, 3, b"\x01\x00\x02")),
        kv("a.strings", ARR, arr(STR, 2, s("one") + s("zwei ü"))),
        kv("a.ints", ARR, arr(I32, 2, struct.pack("<2i", -1, 5))),
    ],
    [info("x", (4, 2)), info("y", (32,), 8, 32), info("z", (1, 1, 1, 3), 1, 96)],
    bytes(range(104)),
)


def read_bytes(raw: bytes, folder: Path) -> GGUF:
    path = folder / "hostile.gguf"
    path.write_bytes(raw)
    return read_gguf(path)


def touch_all(file: GGUF) -> None:
    """Use everything that a file claims to hold."""
    for value in file.metadata.values():
        if isinstance(value, StringArray):
            assert len(list(value)) == len(value)
        elif isinstance(value, np.ndarray):
            assert value.tobytes() is not None
    for name, tensor in file.tensors.items():
        assert file.tensor_bytes(name).tobytes() is not None
        assert tensor.offset % file.alignment == 0


def refusal(act: Callable[[], object]) -> str:
    """The error that `act` ends in, "" if in none."""
    try:
        act()
    except VizggmlError as error:
        return str(error)
    return ""


def test_a_small_file_by_hand(tmp_path: Path) -> None:
    file = read_bytes(VALID, tmp_path)
    assert file.version == 3
    assert file.metadata["general.architecture"] == "llama"
    assert file.metadata["a.u8"] == 7
    assert file.metadata["a.f32"] == 1.5
    assert list(file.metadata["a.bools"]) == [True, False, True]  # type: ignore[arg-type]
    assert list(file.metadata["a.strings"]) == ["one", "zwei ü"]  # type: ignore[arg-type]
    assert list(file.metadata["a.ints"]) == [-1, 5]  # type: ignore[arg-type]
    assert file.types["a.strings"] == "arr[str,2]"
    assert [(t.name, t.type.name, t.ne, t.offset, t.nbytes) for t in file.tensors.values()] == [
        ("x", "F32", (4, 2, 1, 1), 0, 32),
        ("y", "Q8_0", (32, 1, 1, 1), 32, 34),
        ("z", "F16", (1, 1, 1, 3), 96, 6),
    ]
    assert bytes(file.tensor_bytes("z")) == bytes(range(96, 102))
    assert not file.tensor_bytes("z").flags.writeable


def test_version_2_is_read(tmp_path: Path) -> None:
    assert read_bytes(VALID[:4] + struct.pack("<I", 2) + VALID[8:], tmp_path).version == 2


def test_scalar_arrays_are_views_of_the_map(tmp_path: Path) -> None:
    file = read_bytes(VALID, tmp_path)
    ints = file.metadata["a.ints"]
    assert isinstance(ints, np.ndarray)
    assert np.shares_memory(ints, file.mapped.memory)


def test_the_map_is_an_event(tmp_path: Path) -> None:
    seen: list[Event] = []
    stop = bus.subscribe(MmapOpened, seen.append)
    read_bytes(VALID, tmp_path)
    stop()
    assert [(e.size, Path(e.path).name) for e in seen if isinstance(e, MmapOpened)] == [(len(VALID), "hostile.gguf")]


Q = struct.pack
HOSTILE: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "0 bytes is too short"),
    "magic": (image([], [], magic=b"GGML"), r"magic is b'GGML'"),
    "version 1": (image([], [], version=1), "version 1 is not supported, only 2 and 3"),
    "version 4": (image([], [], version=4), "version 4 is not supported"),
    "big-endian": (image([], [], version=0x03000000), "big-endian"),
    "header cut": (VALID[:15], r"number of tensors: offset 8 \+ 8 bytes ends past the file \(15 bytes\)"),
    "n_kv huge": (image([], [], n_kv=2**63), rf"number of key-value pairs is {2**63}, the limit is 65536"),
    "n_kv beyond the file": (image([], [], n_kv=9), r"number of key-value pairs is 9, which takes at least 117 bytes"),
    "n_tensors huge": (image([], [], n_tensors=2**64 - 1), rf"number of tensors is {2**64 - 1}, the limit is 65536"),
    "key length": (image([Q("<Q", 2**62)], [bytes(9)]), rf"key 0: {2**62} bytes long, the limit is 65535"),
    "key beyond the file": (image([Q("<Q", 5000)], [bytes(9)]), r"key 0: offset 32 \+ 5000 bytes ends past the file"),
    "key empty": (image([kv("", U8, b"\0")], []), "key 0 is empty"),
    "key not UTF-8": (image([kv(b"k\xff", U8, b"\0")], []), r"key 0: byte 1 \(0xff\) is not UTF-8"),
    "key twice": (image([kv("k", U8, b"\0")] * 2, []), "key 'k' appears twice, the second time as pair 1"),
    "value type": (image([kv("k", 13, b"\0")], []), r"key 'k': type 13 is not one of GGUF's"),
    "value cut": (image([kv("k", U64, b"\0")], [], alignment=1), "value of key 'k': offset .* ends past the file"),
    "value not UTF-8": (image([kv("k", STR, s(b"\xc3("))], []), "value of key 'k': byte 0 .* is not UTF-8"),
    "string value huge": (image([kv("k", STR, Q("<Q", 2**40))], []), rf"value of key 'k': offset .* {2**40} bytes"),
    "element type": (image([kv("k", ARR, arr(99, 1, b"\0"))], []), "key 'k': element type 99"),
    "array of arrays": (image([kv("k", ARR, arr(ARR, 1, arr(U8, 1, b"\0")))], []), "key 'k' is an array of arrays"),
    "array length": (image([kv("k", ARR, arr(U64, 2**61, b""))], []), rf"key 'k', {2**61} values of u64: offset"),
    "array wraps": (image([kv("k", ARR, arr(U64, 2**64 - 1, b""))], []), rf"{2**64 - 1} values of u64"),
    "strings count": (image([kv("k", ARR, arr(STR, 2**40, b""))], []), rf"number of strings is {2**40}, the limit"),
    "strings beyond": (image([kv("k", ARR, arr(STR, 9, b""))], []), "number of strings is 9, which takes at least 72"),
    "string in array": (
        image([kv("k", ARR, arr(STR, 2, s("a") + Q("<Q", 2**60)))], [], bytes(40)),
        "key 'k': string 1 of 2, at offset .*, ends past the file",
    ),
    "alignment 0": (image([kv("general.alignment", U32, Q("<I", 0))], []), "general.alignment': 0 is not a power of 2"),
    "alignment 24": (image([kv("general.alignment", U32, Q("<I", 24))], []), "24 is not a power of 2"),
    "alignment type": (image([kv("general.alignment", U64, Q("<Q", 32))], []), "has type u64, it must be u32"),
    "alignment huge": (
        image([kv("general.alignment", U32, Q("<I", 2**31))], [info("x", (0,))]),
        rf"tensor data: would begin at {2**31} \(alignment {2**31}\), past the file",
    ),
    "tensor name long": (image([], [info("n" * 64, (1,))], bytes(32)), "tensor 0: 64 bytes long, the limit is 63"),
    "tensor name twice": (image([], [info("x", (1,))] * 2, bytes(64)), "tensor 'x' appears twice, .* as tensor 1"),
    "tensor name not UTF-8": (image([], [info(b"\x80", (1,))], bytes(64)), "name of tensor 0: byte 0"),
    "tensor name with NUL": (image([], [info("a\0b", (1,))], bytes(64)), r"tensor 'a\\x00b' has a NUL in its name"),
    "dims": (image([], [info("x", (1,) * 5)], bytes(64)), "tensor 'x': 5 dimensions, the limit is 4"),
    "dims huge": (image([], [info("x", (1,), n_dims=2**32 - 1)], bytes(64)), rf"{2**32 - 1} dimensions, the limit"),
    "ne negative": (image([], [info("x", (2**64 - 1,))], bytes(64)), r"tensor 'x': shape .* overflows at ne\[0\]"),
    "ne overflow": (image([], [info("x", (2**32, 2**32))], bytes(64)), r"overflows at ne\[1\], the limit is"),
    "ne overflow past zero": (image([], [info("x", (2**40, 2**40, 0))], bytes(64)), r"overflows at ne\[1\]"),
    "type removed": (image([], [info("x", (32,), 4)], bytes(64)), "tensor 'x': type 4 is not one of ggml's"),
    "type unknown": (image([], [info("x", (32,), 2**31)], bytes(64)), rf"tensor 'x': type {2**31} is not one"),
    "half a block": (image([], [info("x", (33,), 8)], bytes(64)), r"33 is not a multiple of 32, the block of Q8_0"),
    "offset unaligned": (image([], [info("x", (1,), offset=4)], bytes(64)), "tensor 'x': offset 4, expected 0"),
    "offset overlaps": (image([], [info("x", (16,)), info("y", (1,), offset=32)], bytes(99)), "offset 32, expected 64"),
    "offset gap": (image([], [info("x", (1,)), info("y", (1,), offset=64)], bytes(99)), "offset 64, expected 32"),
    "offset wraps": (image([], [info("x", (1,), offset=2**64 - 32)], bytes(64)), rf"offset {2**64 - 32}, expected 0"),
    "data cut": (image([], [info("x", (16,))], bytes(63)), r"'x': offset 64 \+ 64 bytes ends past the file \(127"),
    "data huge": (image([], [info("x", (2**40,))], bytes(64)), rf"tensor 'x': offset 64 \+ {2**42} bytes ends past"),
    "no data": (image([], [info("x", (1,))], alignment=1), "tensor data: would begin at 64 .* past the file"),
    "terminal text": (
        image([kv("k\n\x1b[2J'", 13, b"")], [], alignment=1),
        r"key \"k\\n\\x1b\[2J'\": type 13",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_file_ends_in_one_line(what: str, tmp_path: Path) -> None:
    raw, message = HOSTILE[what]
    tracemalloc.start()
    with pytest.raises(VizggmlError, match=message) as caught:
        read_bytes(raw, tmp_path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert "\n" not in str(caught.value)
    assert peak < 100_000


def test_a_missing_file_a_folder_and_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, message in (
        (tmp_path / "no.gguf", "no such file"),
        (tmp_path, "not a regular"),
        (tmp_path / "pipe", "not"),
    ):
        with pytest.raises(VizggmlError, match=message):
            read_gguf(path)


@pytest.mark.parametrize("length", range(0, len(VALID) - 2, 3))
def test_every_truncation_is_refused(length: int, tmp_path: Path) -> None:
    with pytest.raises(VizggmlError):
        read_bytes(VALID[:length], tmp_path)


def test_a_million_strings_without_bytes_take_no_more_than_their_places(tmp_path: Path) -> None:
    n = 1 << 20
    raw = image([kv("k", ARR, arr(STR, n, bytes(8 * n)))], [])
    tracemalloc.start()
    strings = read_bytes(raw, tmp_path).metadata["k"]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert isinstance(strings, StringArray)
    assert len(strings) == n
    assert strings[n - 1] == ""
    assert peak < 8 * len(raw)


def test_an_array_of_strings_is_a_sequence(tmp_path: Path) -> None:
    words = [f"w{i}" for i in range(9)]
    write_gguf(tmp_path / "w.gguf", {"few": words[:2], "many": words})
    file = read_gguf(tmp_path / "w.gguf")
    few, many = file.metadata["few"], file.metadata["many"]
    assert isinstance(few, StringArray)
    assert isinstance(many, StringArray)
    assert (few[0], many[-1], many[2:4], list(many)) == ("w0", "w8", ["w2", "w3"], words)
    assert (repr(few), repr(many)) == ("['w0', 'w1']", "['w0', 'w1', 'w2', 'w3', ... 9 in all]")
    with pytest.raises(IndexError):
        few[2]


def test_a_string_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    raw = image([kv("k", ARR, arr(STR, 2, s("ok") + s(b"\xff")))], [])
    strings = read_bytes(raw, tmp_path).metadata["k"]
    assert isinstance(strings, StringArray)
    assert strings.raw(1) == b"\xff"
    with pytest.raises(VizggmlError, match=r"key 'k'\[1\]: byte 0 \(0xff\) is not UTF-8"):
        list(strings)
    with pytest.raises(VizggmlError, match=r"key 'k'\[1\]"):
        strings[1]


mutations = st.lists(
    st.one_of(
        st.tuples(st.just("byte"), st.integers(0, len(VALID) - 1), st.integers(0, 255)),
        st.tuples(st.just("u32"), st.integers(0, len(VALID) - 4), st.sampled_from([0, 1, 8, 9, 2**31, 2**32 - 1])),
        st.tuples(
            st.just("u64"),
            st.integers(0, len(VALID) - 8),
            st.sampled_from([0, 1, 2**16, 2**31, 2**32, 2**62, 2**63 - 1, 2**63, 2**64 - 32, 2**64 - 1]),
        ),
        st.tuples(st.just("cut"), st.integers(0, len(VALID)), st.integers(0, 64)),
        st.tuples(st.just("repeat"), st.integers(0, len(VALID)), st.integers(1, 64)),
    ),
    min_size=1,
    max_size=4,
)


def mutated(raw: bytes, changes: list[tuple[str, int, int]]) -> bytes:
    for how, at, value in changes:
        if how == "byte":
            raw = raw[:at] + bytes([value]) + raw[at + 1 :]
        elif how == "u32":
            raw = raw[:at] + struct.pack("<I", value) + raw[at + 4 :]
        elif how == "u64":
            raw = raw[:at] + struct.pack("<Q", value) + raw[at + 8 :]
        elif how == "cut":
            raw = raw[:at] + raw[at + value :]
        else:
            raw = raw[: at + value] + raw[at:]
    return raw


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(mutations)
def test_a_mutated_file_loads_whole_or_not_at_all(tmp_path: Path, changes: list[tuple[str, int, int]]) -> None:
    raw = mutated(VALID, changes)
    refused = refusal(lambda: read_bytes(raw, tmp_path))
    assert "\n" not in refused
    if not refused:
        file = read_gguf(tmp_path / "hostile.gguf")
        unreadable = refusal(lambda: touch_all(file))
        assert not unreadable or "is not UTF-8" in unreadable
        ours = [(t.name, t.type.id, t.offset) for t in file.tensors.values()]
        assert real_ggml_reads(tmp_path / "hostile.gguf") == ours


class InitParams(ctypes.Structure):
    """`struct gguf_init_params`, ggml/include/gguf.h."""

    _fields_ = (("no_alloc", ctypes.c_bool), ("ctx", ctypes.c_void_p))


LIB = ctypes.CDLL(str(next(Path(xllamacpp.__file__).parent.glob("*.so"))))
LIB.gguf_init_from_file.restype = ctypes.c_void_p
LIB.gguf_init_from_file.argtypes = (ctypes.c_char_p, InitParams)
LIB.gguf_get_n_tensors.restype = ctypes.c_int64
LIB.gguf_get_tensor_name.restype = ctypes.c_char_p
LIB.gguf_get_tensor_offset.restype = ctypes.c_size_t
for name in ("gguf_get_n_tensors", "gguf_free"):
    getattr(LIB, name).argtypes = (ctypes.c_void_p,)
for name in ("gguf_get_tensor_name", "gguf_get_tensor_type", "gguf_get_tensor_offset"):
    getattr(LIB, name).argtypes = (ctypes.c_void_p, ctypes.c_int64)
LogCallback = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
quiet = LogCallback(lambda level, text, data: None)


def real_ggml_reads(path: Path) -> list[tuple[str, int, int]] | None:
    """The tensors as real ggml reads them, None if it refuses the file."""
    LIB.ggml_log_set(quiet, None)
    ctx = LIB.gguf_init_from_file(str(path).encode(), InitParams(True, None))
    if not ctx:
        return None
    found = [
        (
            LIB.gguf_get_tensor_name(ctx, i).decode("utf-8", "replace"),
            LIB.gguf_get_tensor_type(ctx, i),
            LIB.gguf_get_tensor_offset(ctx, i),
        )
        for i in range(LIB.gguf_get_n_tensors(ctx))
    ]
    LIB.gguf_free(ctx)
    return found


def test_smollm2_as_the_gguf_package_reads_it() -> None:
    path = resolve_model("smollm2")
    ours, theirs = read_gguf(path), gguf.GGUFReader(path)
    values = {k: f.contents() for k, f in theirs.fields.items() if not k.startswith("GGUF.")}
    assert list(ours.metadata) == list(values)
    for key, value in values.items():
        mine: Any = ours.metadata[key]
        assert (list(mine) if isinstance(value, list) else mine) == value
    assert ours.data_offset == theirs.data_offset
    assert [(t.name, t.type.id, t.nbytes, t.offset + ours.data_offset) for t in ours.tensors.values()] == [
        (t.name, int(t.tensor_type), int(t.n_bytes), int(t.data_offset)) for t in theirs.tensors
    ]
    for t in theirs.tensors[:40]:
        assert np.array_equal(ours.tensor_bytes(t.name), t.data.reshape(-1).view(np.uint8))


def test_what_the_gguf_package_writes(tmp_path: Path) -> None:
    path = tmp_path / "theirs.gguf"
    w = gguf.GGUFWriter(str(path), "llama")
    w.add_uint8("u8", 255)
    w.add_int8("i8", -128)
    w.add_uint16("u16", 65535)
    w.add_int16("i16", -32768)
    w.add_int32("i32", -(2**31))
    w.add_uint64("u64", 2**64 - 1)
    w.add_int64("i64", -(2**63))
    w.add_float64("f64", 0.1)
    w.add_bool("yes", True)
    w.add_array("floats", [1.0, 2.0, 0.5])
    w.add_array("words", ["", "ä", "x" * 1000])
    w.add_custom_alignment(64)
    w.add_tensor("a", np.arange(6, dtype=np.float32).reshape(2, 3))
    w.add_tensor("b", gguf.quants.quantize(np.ones((2, 64), np.float32), gguf.GGMLQuantizationType.Q4_0), raw_dtype=2)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    file = read_gguf(path)
    expected = {"u8": 255, "i8": -128, "u16": 65535, "i16": -32768, "i32": -(2**31), "u64": 2**64 - 1}
    expected |= {"i64": -(2**63), "f64": 0.1, "yes": True}
    assert {key: file.metadata[key] for key in expected} == expected
    assert list(file.metadata["floats"]) == [1.0, 2.0, 0.5]  # type: ignore[arg-type]
    assert file.metadata["words"][1:] == ["ä", "x" * 1000]  # type: ignore[index]
    assert file.alignment == 64
    assert (file.tensors["a"].ne, file.tensors["b"].ne) == ((3, 2, 1, 1), (64, 2, 1, 1))
    assert file.tensors["b"].offset == 64
    assert file.tensor_bytes("a").view(np.float32).tolist() == [0, 1, 2, 3, 4, 5]


def our_file(path: Path, **options: int) -> None:
    blocks = np.arange(2 * 34, dtype=np.uint8)
    write_gguf(
        path,
        {
            "general.architecture": "llama",
            "n": 7,
            "minus": -7,
            "big": 2**40,
            "eps": 1e-5,
            "flag": True,
            "half": np.float64(0.5),
            "ids": [3, 2, 1],
            "scores": [0.25, 0.5],
            "types": np.array([1, 2], np.int8),
            "words": ["a", "bé"],
        },
        [
            TensorData("m", TYPES["F32"], (3, 2), np.arange(6, dtype=np.float32)),
            TensorData("q", TYPES["Q8_0"], (32, 2), blocks),
        ],
        **options,
    )


@pytest.mark.parametrize("options", [{}, {"version": 2}, {"alignment": 128}])
def test_the_gguf_package_and_ggml_read_what_we_write(tmp_path: Path, options: dict[str, int]) -> None:
    path = tmp_path / "ours.gguf"
    our_file(path, **options)
    theirs = gguf.GGUFReader(path)
    fields = {k: (f.types, f.contents()) for k, f in theirs.fields.items()}
    kind = gguf.GGUFValueType
    assert fields["n"] == ([kind.UINT32], 7)
    assert fields["minus"] == ([kind.INT32], -7)
    assert fields["big"] == ([kind.UINT64], 2**40)
    assert fields["eps"] == ([kind.FLOAT32], np.float32(1e-5))
    assert fields["flag"] == ([kind.BOOL], True)
    assert fields["half"] == ([kind.FLOAT64], 0.5)
    assert fields["ids"] == ([kind.ARRAY, kind.INT32], [3, 2, 1])
    assert fields["scores"] == ([kind.ARRAY, kind.FLOAT32], [0.25, 0.5])
    assert fields["types"] == ([kind.ARRAY, kind.INT8], [1, 2])
    assert fields["words"] == ([kind.ARRAY, kind.STRING], ["a", "bé"])
    assert theirs.tensors[0].data.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert theirs.tensors[1].data.reshape(-1).tolist() == list(range(68))
    step = options.get("alignment", 32)
    assert real_ggml_reads(path) == [("m", 0, 0), ("q", 8, step)]


def test_our_file_comes_back(tmp_path: Path) -> None:
    our_file(tmp_path / "a.gguf")
    a = read_gguf(tmp_path / "a.gguf")
    again = [TensorData(t.name, t.type, t.ne, a.tensor_bytes(t.name)) for t in a.tensors.values()]
    values = {k: np.float32(v) if a.types[k] == "f32" else v for k, v in a.metadata.items() if k != "half"}
    write_gguf(tmp_path / "a.gguf", values, again)  # over the file that is mapped
    b = read_gguf(tmp_path / "a.gguf")
    assert b.types == {k: t for k, t in a.types.items() if k != "half"}
    assert [bytes(b.tensor_bytes(n)) for n in b.tensors] == [bytes(a.tensor_bytes(n)) for n in a.tensors]


@pytest.mark.parametrize(
    ("values", "tensors", "message"),
    [
        ({"n": 2**64}, [], "key 'n': 18446744073709551616 does not fit in 64 bits"),
        ({"n": np.complex64(1)}, [], "key 'n': GGUF has no type for 0 dimensions of complex64"),
        ({}, [TensorData("x", TYPES["F32"], (3,), np.zeros(2, np.float32))], "tensor 'x': 8 bytes given, F32 of .* 12"),
        ({}, [TensorData("x" * 64, TYPES["F32"], (1,), np.zeros(1, np.float32))], "64 bytes, the limit is 63"),
        ({}, [TensorData("x", TYPES["F32"], (1,) * 5, np.zeros(1, np.float32))], "5 dimensions, the limit is 4"),
    ],
)
def test_what_no_file_can_hold(tmp_path: Path, values: Any, tensors: list[TensorData], message: str) -> None:
    with pytest.raises(VizggmlError, match=message):
        write_gguf(tmp_path / "no.gguf", values, tensors)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("type", TYPES_BY_ID.values(), ids=str)
def test_every_type_of_ggml_is_sized_as_ggml_sizes_it(tmp_path: Path, type: Type) -> None:
    nbytes = type.row_size(type.blck_size * 3)
    write_gguf(
        tmp_path / "t.gguf",
        {},
        [TensorData(n, type, (type.blck_size * 3,), np.zeros(nbytes, np.uint8)) for n in "ab"],
    )
    found = real_ggml_reads(tmp_path / "t.gguf")
    assert found == [("a", type.id, 0), ("b", type.id, read_gguf(tmp_path / "t.gguf").tensors["b"].offset)]
