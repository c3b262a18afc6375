"""Buffers: where a context's tensors go, as in real ggml; files as memory."""

from __future__ import annotations

import os
import random
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests import oracle
from tests.ggml.seen import seen
from tests.oracle import LIB, Real, tensor_fields
from vizggml.errors import VizggmlError
from vizggml.events import (
    NO_SEQ,
    BufferAllocated,
    BufferFreed,
    MmapOpened,
    PagesResident,
    PlacementPass,
    TensorPlaced,
    bus,
)
from vizggml.ggml import ops
from vizggml.ggml.buffer import (
    SIZE_MAX,
    BufferType,
    MappedFile,
    alloc_ctx_tensors_from_buft,
    alloc_ctx_tensors_from_buft_size,
    cpu_buffer_type,
    view_init,
)
from vizggml.ggml.context import Context
from vizggml.ggml.gguf import read_gguf


def test_a_buffer_is_aligned_memory() -> None:
    with seen() as events:
        buffer = cpu_buffer_type().alloc_buffer(100, "compute")
    assert buffer.size == buffer.memory.nbytes == 100
    assert buffer.memory.ctypes.data % 64 == 0
    assert not buffer.memory.any()
    assert events.one(BufferAllocated) == BufferAllocated(buffer.id, "CPU", 100, "compute", seq=0)
    assert [*buffer.snapshot()] == [BufferAllocated(buffer.id, "CPU", 100, "compute")]
    assert buffer in bus.standing
    with seen() as events:
        buffer.free()
    assert events.one(BufferFreed) == BufferFreed(buffer.id, 100, seq=0)
    assert (buffer.size, buffer in bus.standing) == (0, False)


def test_one_cpu_buffer_type_for_each_alignment() -> None:
    assert cpu_buffer_type() is cpu_buffer_type()
    assert cpu_buffer_type(8) is not cpu_buffer_type()
    assert (cpu_buffer_type().alignment, cpu_buffer_type().max_size) == (32, SIZE_MAX)
    for alignment in (0, 12, -8):
        with pytest.raises(VizggmlError, match=f"alignment {alignment} is not a power of two"):
            BufferType("CPU", alignment)
    with pytest.raises(VizggmlError, match="max_size 0 is below 1"):
        BufferType("CPU", 32, 0)
    with pytest.raises(VizggmlError, match=r"the system has no \d+ bytes"):
        cpu_buffer_type().alloc_buffer(1 << 62)


def test_placing_a_tensor() -> None:
    ctx = Context(1 << 12, no_alloc=True)
    a = ctx.new_tensor("F32", (4,), "a")
    view = ops.view_1d(ctx, a, 2, 8)
    buffer = cpu_buffer_type().alloc_buffer(48)
    with pytest.raises(VizggmlError, match="view source has no buffer yet"):
        view_init(view)
    with pytest.raises(VizggmlError, match=r"tensor 'a': offset 40 \+ 16 bytes ends past buffer \d+ \(48 bytes\)"):
        buffer.tensor_alloc(a, 40)
    with seen() as events:
        buffer.tensor_alloc(a, 32)
        view_init(view)
    assert [(e.tensor, e.buffer, e.offset, e.size, e.view) for e in events.of(TensorPlaced)] == [
        (a.id, buffer.id, 32, 16, False),
        (view.id, buffer.id, 40, 8, True),
    ]
    a.set([1, 2, 3, 4])
    assert view.array().ravel().tolist() == [3, 4]
    assert buffer.memory[32:48].view(np.float32).tolist() == [1, 2, 3, 4]
    for t in (a, view):
        with pytest.raises(VizggmlError, match="has memory already"):
            buffer.tensor_alloc(t, 0)


@pytest.mark.parametrize("max_size", [SIZE_MAX, 4096, 512])
def test_the_tensors_of_a_context_lie_where_real_ggml_puts_them(max_size: int) -> None:
    rng = random.Random(max_size)
    ctx, real = Context(1 << 16, no_alloc=True), Real(1 << 16)
    ours, reals = [], []
    for i in range(40):
        ne = (rng.randint(1, 20), rng.randint(1, 5))
        ours.append(ctx.new_tensor("F32", ne, f"t{i}"))
        reals.append(real.new_tensor("F32", ne, f"t{i}"))
        if rng.random() < 0.3:
            ours.append(ops.view_1d(ctx, ours[-1], 1, 0))
            reals.append(real.op("view_1d", reals[-1], 1, 0))
    buft, real_buft = BufferType("CPU", 32, max_size), oracle.BufferType(32, max_size)
    size = alloc_ctx_tensors_from_buft_size(ctx, buft)
    assert size == LIB.ggml_backend_alloc_ctx_tensors_from_buft_size(real.ctx, real_buft.address)
    with seen() as events:
        buffers = alloc_ctx_tensors_from_buft(ctx, buft, "weights")
    held = LIB.ggml_backend_alloc_ctx_tensors_from_buft(real.ctx, real_buft.address)
    assert [b.size for b in buffers] == real_buft.sizes()
    for t, r in zip(ours, reals, strict=True):
        assert t.buffer is not None
        assert t.data is not None
        assert (buffers.index(t.buffer), t.data.offset) == real_buft.place_of(tensor_fields(r)), t
    passes = events.of(PlacementPass)
    assert [(p.index, p.size, p.context) for p in passes] == [(i, b.size, ctx.id) for i, b in enumerate(buffers)]
    assert (passes[0].first, passes[-1].last) == (ours[0].id, ours[-1].id)
    assert [e.cause for e in events.of(BufferAllocated)] == [p.seq for p in passes]
    assert len(events.of(TensorPlaced)) == len(ours)
    assert bus.cause == NO_SEQ
    assert alloc_ctx_tensors_from_buft(ctx, buft) == []
    LIB.ggml_backend_buffer_free(held)
    real.free()


def test_a_file_as_memory(tmp_path: Path) -> None:
    page = os.sysconf("SC_PAGE_SIZE")
    content = np.arange(page * 64, dtype=np.uint64).view(np.uint8)[: page * 64 - 100]
    path = tmp_path / "weights.bin"
    path.write_bytes(content.tobytes())
    with seen() as events:
        mapped = MappedFile(path)
        buffer = mapped.buffer(page, 3 * page)
        whole = mapped.buffer()
    opened = events.one(MmapOpened)
    assert (opened.buffer, opened.path, opened.size) == (mapped.id, str(path), len(content))
    assert [*mapped.snapshot()] == [MmapOpened(mapped.id, str(path), len(content))]
    assert [(e.buft, e.size, e.usage) for e in events.of(BufferAllocated)] == [
        ("CPU_Mapped", 2 * page, "weights"),
        ("CPU_Mapped", len(content), "weights"),
    ]
    t = Context(1 << 12, no_alloc=True).new_tensor("F32", (16,))
    buffer.tensor_alloc(t, 64)
    assert np.array_equal(t.array().ravel().view(np.uint8), content[page + 64 : page + 128])
    assert not t.array().flags.writeable
    assert np.shares_memory(whole.memory, mapped.memory)
    with pytest.raises(VizggmlError, match=r"weights\.bin: bytes 0 to \d+ are not in the file"):
        mapped.buffer(0, len(content) + 1)
    del t, buffer, whole
    mapped.close()
    assert mapped not in bus.standing
    assert mapped.memory.nbytes == 0


def test_only_pages_that_were_touched_are_resident(tmp_path: Path) -> None:
    """One read near the front maps some pages around it, not the whole of 4 MiB."""
    path = tmp_path / "weights.bin"
    path.write_bytes(bytes(4 << 20))
    mapped = MappedFile(path)
    page = os.sysconf("SC_PAGE_SIZE")
    with seen() as events:
        before = mapped.residency()
    assert events.one(PagesResident) == PagesResident(mapped.id, 0, (4 << 20) // page, page, seq=0)
    int(mapped.memory[10])
    after = mapped.residency()
    assert 0 == before.pages < after.pages < after.of == (4 << 20) // page
    int(mapped.memory.sum())
    assert mapped.residency().pages == after.of
    mapped.close()


def test_pages_that_are_dropped_come_back_with_what_was_in_them(tmp_path: Path) -> None:
    path = tmp_path / "weights.bin"
    path.write_bytes(b"\7" * (1 << 20))
    mapped = MappedFile(path)
    assert int(mapped.memory.sum()) == 7 << 20
    assert mapped.residency().pages == mapped.residency().of
    mapped.drop()
    assert mapped.residency().pages == 0
    assert int(mapped.memory[-1]) == 7
    assert mapped.residency().pages > 0
    mapped.close()
    mapped.drop()


def test_the_pages_of_a_range(tmp_path: Path) -> None:
    path, page = tmp_path / "weights.bin", os.sysconf("SC_PAGE_SIZE")
    part = 4 << 20  # the kernel may map along what shares a huge page of 2 MiB with the byte that is read
    path.write_bytes(bytes(4 * part))
    mapped = MappedFile(path)
    int(mapped.memory[15 << 20])
    parts = [mapped.resident(i * part, (i + 1) * part) for i in range(4)]
    assert [p.pages > 0 for p in parts] == [False, False, False, True]
    assert sum(p.pages for p in parts) == mapped.residency().pages
    assert {(p.of, p.page_size) for p in parts} == {(part // page, page)}
    assert (mapped.resident(page - 1, page + 1).of, mapped.resident(0, 0).of) == (2, 0)
    mapped.close()


TOUCH = """
import mmap, sys
with open(sys.argv[1], "rb") as file:
    memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
print(sum(memory[::4096]), flush=True)
sys.stdin.read()
"""


def test_two_processes_share_the_pages_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "weights.bin"
    path.write_bytes(bytes(1 << 20))
    mapped = MappedFile(path)
    int(mapped.memory.sum())
    alone = mapped.residency()
    assert (alone.pages, alone.shared) == (alone.of, 0)
    with subprocess.Popen(
        [sys.executable, "-c", TOUCH, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"0\n"
        together = mapped.residency()
        other.communicate()
    assert (together.pages, together.shared) == (alone.of, alone.of)
    assert mapped.residency().shared == 0
    mapped.close()


def test_a_sparse_file_of_100_gib_opens_without_being_read(tmp_path: Path) -> None:
    """A model file with one tensor of nearly all its bytes: opening it touches its header, and reading the last row
    only the pages there."""
    path, size = tmp_path / "large.gguf", 100 << 30
    rows = (size - 4096) // 4096
    name = b"huge.weight"
    header = struct.pack("<4sIQQQ", b"GGUF", 3, 1, 0, len(name)) + name + struct.pack("<IQQIQ", 2, 1024, rows, 0, 0)
    with path.open("wb") as file:
        file.write(header)
        file.truncate(size)
    gguf = read_gguf(path)
    opened = gguf.mapped.residency()
    assert opened.of == size // opened.page_size
    assert opened.pages <= 32
    info = gguf.tensors["huge.weight"]
    ctx = Context(1 << 12, no_alloc=True)
    t = ctx.new_tensor(info.type, info.ne[:2], info.name)
    gguf.mapped.buffer(gguf.data_offset, gguf.data_offset + info.nbytes).tensor_alloc(t, 0)
    assert not t.array()[0, 0, -1].any()
    assert gguf.mapped.residency().pages <= 64
    assert gguf.mapped.resident(1 << 30, 2 << 30).pages == 0


def test_files_that_cannot_be_mapped(tmp_path: Path) -> None:
    with pytest.raises(VizggmlError, match=r"none\.bin: cannot be opened: No such file or directory"):
        MappedFile(tmp_path / "none.bin")
    with pytest.raises(VizggmlError, match="cannot be opened"):
        MappedFile(tmp_path)
    empty = tmp_path / "empty.bin"
    empty.touch()
    mapped = MappedFile(empty)
    assert (mapped.size, mapped.memory.nbytes) == (0, 0)
    assert mapped.buffer().size == 0
    mapped.close()
