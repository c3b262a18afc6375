"""Buffers: the memory that tensors are placed in.

A buffer type says how to get memory and how to align it; a buffer is a piece of such memory. A tensor that is placed
knows its buffer and the address in it. `MappedFile` is memory that is a file: nothing is read until it is used.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vizggml.errors import VizggmlError
from vizggml.events import (
    BufferAllocated,
    BufferFreed,
    BufferId,
    Event,
    MmapOpened,
    PagesResident,
    PlacementPass,
    TensorPlaced,
    bus,
)
from vizggml.ggml.context import Context
from vizggml.ggml.tensor import Address, Memory, Tensor
from vizggml.ggml.types import CACHE_LINE_SIZE, TENSOR_ALIGNMENT, pad

SIZE_MAX = 2**64 - 1
_ids = itertools.count()


class BufferType:
    """`ggml_backend_buffer_type`, ggml/src/ggml-backend-impl.h.

    Every tensor begins at a multiple of `alignment` bytes, a power of two; no buffer is larger than `max_size`.
    `is_host` says that the CPU reads and writes such buffers.
    """

    def __init__(
        self, name: str, alignment: int = TENSOR_ALIGNMENT, max_size: int = SIZE_MAX, is_host: bool = False
    ) -> None:
        if alignment < 1 or alignment & (alignment - 1):
            raise VizggmlError(f"buffer type {name}: alignment {alignment} is not a power of two")
        if max_size < 1:
            raise VizggmlError(f"buffer type {name}: max_size {max_size} is below 1")
        self.name = name
        self.alignment = alignment
        self.max_size = max_size
        self.is_host = is_host

    def __repr__(self) -> str:
        return f"<BufferType {self.name}: alignment {self.alignment}>"

    @property
    def free(self) -> int:
        """The bytes that are still to be had. `ggml_backend_dev_memory`, ggml/src/ggml-backend.cpp."""
        return SIZE_MAX

    def get_alloc_size(self, t: Tensor) -> int:
        """The bytes that `t` takes here. `ggml_backend_buft_get_alloc_size`, ggml/src/ggml-backend.cpp."""
        return t.nbytes

    def alloc_buffer(self, size: int, usage: str = "any") -> Buffer:
        """Memory of `size` bytes, all zero. `usage` is any, weights or compute.

        `ggml_backend_buft_alloc_buffer`, ggml/src/ggml-backend.cpp.
        """
        try:
            raw = np.zeros(size + CACHE_LINE_SIZE, np.uint8)
        except (MemoryError, ValueError):
            raise VizggmlError(f"buffer of type {self.name}: the system has no {size} bytes") from None
        start = -raw.ctypes.data % CACHE_LINE_SIZE
        return Buffer(self, raw[start : start + size], usage)

    def buffer_freed(self, size: int) -> None:
        """A buffer of this type gave its memory back."""


@functools.cache
def cpu_buffer_type(alignment: int = TENSOR_ALIGNMENT) -> BufferType:
    """`ggml_backend_cpu_buffer_type`, ggml/src/ggml-backend.cpp. Another alignment than ggml's is for teaching."""
    return BufferType("CPU", alignment, is_host=True)


class Buffer:
    """Memory for tensors: `size` bytes of `memory`. `ggml_backend_buffer`, ggml/src/ggml-backend-impl.h."""

    def __init__(self, buft: BufferType, memory: Memory, usage: str = "any") -> None:
        self.id = BufferId(next(_ids))
        self.buft = buft
        self.memory = memory
        self.size = memory.nbytes
        self.usage = usage
        bus.standing.add(self)
        if bus.on:
            bus.emit(BufferAllocated(self.id, buft.name, self.size, usage))

    def __repr__(self) -> str:
        return f"<Buffer {self.id} {self.buft.name}: {self.size} bytes, {self.usage}>"

    def tensor_alloc(self, t: Tensor, offset: int) -> None:
        """Place `t` at `offset`. `ggml_backend_tensor_alloc`, ggml/src/ggml-backend.cpp.

        VizggmlError if `t` has memory already, is a view, or would end past the buffer.
        """
        if t.buffer is not None or t.data is not None or t.view_src is not None:
            raise VizggmlError(f"tensor {t.name!r} has memory already: it cannot be placed in buffer {self.id}")
        size = self.buft.get_alloc_size(t)
        if offset < 0 or offset + size > self.size:
            raise VizggmlError(
                f"tensor {t.name!r}: offset {offset} + {size} bytes ends past buffer {self.id} ({self.size} bytes)"
            )
        t.buffer = self
        t.data = Address(self.memory, offset)
        if bus.on:
            bus.emit(TensorPlaced(t.id, self.id, offset, size, False))

    def free(self) -> None:
        """Give the memory back. `ggml_backend_buffer_free`, ggml/src/ggml-backend.cpp. Placed tensors keep pointing."""
        if bus.on:
            bus.emit(BufferFreed(self.id, self.size))
        bus.standing.discard(self)
        self.buft.buffer_freed(self.size)
        self.memory = np.zeros(0, np.uint8)
        self.size = 0

    def snapshot(self) -> Iterator[Event]:
        yield BufferAllocated(self.id, self.buft.name, self.size, self.usage)


def view_init(t: Tensor) -> None:
    """Place a view where its source lies. `ggml_backend_view_init`, ggml/src/ggml-backend.cpp."""
    src = t.view_src
    if src is None or src.buffer is None or src.data is None:
        raise VizggmlError(f"tensor {t.name!r}: its view source has no buffer yet")
    t.buffer = src.buffer
    t.data = src.data + t.view_offs
    if bus.on:
        bus.emit(TensorPlaced(t.id, t.buffer.id, t.data.offset, t.nbytes, True))


def alloc_ctx_tensors_from_buft(ctx: Context, buft: BufferType, usage: str = "any") -> list[Buffer]:
    """Place every tensor of `ctx` that has no memory, one after the other, in as few buffers as `max_size` allows.

    `ggml_backend_alloc_ctx_tensors_from_buft`, ggml/src/ggml-alloc.c. The list is empty if all had memory. VizggmlError
    where the memory does not suffice; then none of them is placed.
    """
    buffers: list[Buffer] = []
    try:
        for index, (tensors, size) in enumerate(_ranges(ctx, buft)):
            if bus.on:
                seq = bus.emit(PlacementPass(ctx.id, buft.name, index, tensors[0].id, tensors[-1].id, size))
                with bus.because(seq):
                    buffers.append(_alloc_tensor_range(tensors, buft, size, usage))
            else:
                buffers.append(_alloc_tensor_range(tensors, buft, size, usage))
    except VizggmlError:
        for t in ctx.tensors:
            if t.buffer is not None and t.buffer in buffers:
                t.buffer, t.data = None, None
        for buffer in buffers:
            buffer.free()
        raise
    return buffers


def alloc_ctx_tensors_from_buft_size(ctx: Context, buft: BufferType) -> int:
    """The bytes that it would take. `ggml_backend_alloc_ctx_tensors_from_buft_size`, ggml/src/ggml-alloc.c."""
    return sum(size for _, size in _ranges(ctx, buft))


def _ranges(ctx: Context, buft: BufferType) -> Iterator[tuple[list[Tensor], int]]:
    """The tensors of each buffer, and its size."""
    tensors: list[Tensor] = []
    size = 0
    for t in ctx.tensors:
        this_size = 0
        if t.data is None and t.view_src is None:
            this_size = pad(buft.get_alloc_size(t), buft.alignment)
        if size > 0 and size + this_size > buft.max_size:
            yield tensors, size
            tensors, size = [], 0
        tensors.append(t)
        size += this_size
    if size > 0:
        yield tensors, size


def _alloc_tensor_range(tensors: list[Tensor], buft: BufferType, size: int, usage: str) -> Buffer:
    """`alloc_tensor_range`, ggml/src/ggml-alloc.c."""
    try:
        buffer = buft.alloc_buffer(size, usage)
    except VizggmlError as error:
        raise VizggmlError(f"{error}; {_too_many(tensors, buft)}") from None
    offset = 0
    for t in tensors:
        if t.view_src is None and t.data is None:
            buffer.tensor_alloc(t, offset)
            offset += pad(buft.get_alloc_size(t), buft.alignment)
        elif t.view_src is not None and t.buffer is None and t.view_src.buffer is not None:
            view_init(t)
    return buffer


def _too_many(tensors: list[Tensor], buft: BufferType) -> str:
    """Which tensors a buffer that cannot be had is for, and how many of them there would be room for."""
    own = [t for t in tensors if t.view_src is None and t.data is None]
    free, fit, nbytes = min(buft.free, buft.max_size), 0, 0
    for t in own:
        size = pad(buft.get_alloc_size(t), buft.alignment)
        if nbytes + size > free:
            break
        fit, nbytes = fit + 1, nbytes + size
    named = f"{len(own)} tensors, {own[0].name!r} to {own[-1].name!r}" if len(own) > 1 else f"tensor {own[0].name!r}"
    return f"it is for {named}, of which the first {fit} ({nbytes} bytes) would fit"


@dataclass(frozen=True, slots=True)
class Residency:
    """How many pages of a mapping, out of `of`, are in this process's memory; `shared` of them in another's, too."""

    pages: int
    of: int
    page_size: int
    shared: int = 0


class MappedFile:
    """A file as memory, read-only: `llama_mmap`, src/llama-mmap.cpp. Pages are read when something touches them.

    The mapping has an id among the buffers; the buffers made over it have their own.
    """

    def __init__(self, path: str | Path) -> None:
        self.id = BufferId(next(_ids))
        self.path = Path(path)
        try:
            with self.path.open("rb") as file:
                file.seek(0, 2)
                self.size = file.tell()
                # an empty file cannot be mapped
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if self.size else None
        except OSError as error:
            raise VizggmlError(f"{path}: cannot be opened: {error.strerror or error}") from None
        self.memory: Memory = np.frombuffer(self._map if self._map is not None else b"", np.uint8)
        bus.standing.add(self)
        if bus.on:
            bus.emit(MmapOpened(self.id, str(self.path), self.size))

    def buffer(self, first: int = 0, last: int | None = None, buft_name: str = "CPU_Mapped") -> Buffer:
        """A buffer of weights over the bytes from `first` up to `last`.

        `ggml_backend_cpu_buffer_from_ptr`, ggml/src/ggml-backend.cpp.
        """
        end = self.size if last is None else last
        if not 0 <= first <= end <= self.size:
            raise VizggmlError(f"{self.path}: bytes {first} to {end} are not in the file ({self.size} bytes)")
        return Buffer(BufferType(buft_name, is_host=True), self.memory[first:end], "weights")

    def residency(self) -> Residency:
        """The pages that this process has touched (and those the system mapped along), from /proc/self/smaps.

        VizggmlError where the system has no such file.
        """
        start = int(self.memory.ctypes.data)
        resident = shared = 0
        inside = False
        try:
            with Path("/proc/self/smaps").open() as smaps:
                for line in smaps:
                    head, _, rest = line.partition(" ")
                    if "-" in head and ":" not in head:
                        inside = start <= int(head.split("-")[0], 16) < start + max(self.size, 1)
                    elif inside and head == "Rss:":
                        resident += int(rest.split()[0]) * 1024
                    elif inside and head in ("Shared_Clean:", "Shared_Dirty:"):
                        shared += int(rest.split()[0]) * 1024
        except OSError:
            raise VizggmlError(f"{self.path}: this system has no /proc/self/smaps to ask for residency") from None
        page = mmap.PAGESIZE
        found = Residency(resident // page, -(-self.size // page), page, shared // page)
        if bus.on:
            bus.emit(PagesResident(self.id, found.pages, found.of, page))
        return found

    def resident(self, first: int, last: int) -> Residency:
        """Of the bytes from `first` up to `last`, the pages in this process's memory, from /proc/self/pagemap.

        A page at an end counts although other bytes are in it, too. VizggmlError where the system has no such file.
        """
        page = mmap.PAGESIZE
        if not 0 <= first <= last <= self.size:
            raise VizggmlError(f"{self.path}: bytes {first} to {last} are not in the file ({self.size} bytes)")
        begin, end = first // page, -(-last // page)
        start = int(self.memory.ctypes.data) // page
        try:
            with Path("/proc/self/pagemap").open("rb", buffering=0) as pagemap:
                pagemap.seek((start + begin) * 8)
                entries = np.frombuffer(pagemap.read((end - begin) * 8), np.uint64)
        except OSError:
            raise VizggmlError(f"{self.path}: this system has no /proc/self/pagemap to ask for residency") from None
        return Residency(int(np.count_nonzero(entries >> np.uint64(63))), end - begin, page)

    def drop(self) -> None:
        """Give this process's pages back, as the system may whenever it needs room; a touch brings one again."""
        if self._map is not None and hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)

    def close(self) -> None:
        """Let go of the mapping; the system unmaps it once no array points into it."""
        bus.standing.discard(self)
        self.memory = np.zeros(0, np.uint8)
        if self._map is not None:
            with contextlib.suppress(BufferError):
                self._map.close()
            self._map = None

    def snapshot(self) -> Iterator[Event]:
        yield MmapOpened(self.id, str(self.path), self.size)
