"""The free-list allocator: where in a buffer the next tensor goes.

It hands out addresses, not memory. A chunk is the plan of one buffer: a list of free blocks, sorted by offset so that a
freed block's neighbours are next to it in the list. The last block of a chunk has all the room that the chunk may still
grow into, so using it may make the chunk larger: it is asked only when no block before it is large enough.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field

from vizggml.errors import VizggmlError
from vizggml.events import (
    NO_SEQ,
    NO_TENSOR,
    AllocatorId,
    AllocatorReset,
    BlockChosen,
    BlockConsidered,
    BlockInserted,
    BlockMerged,
    BlockRemoved,
    BlockSplit,
    ChunkGrown,
    ChunkOpened,
    Event,
    SearchBegin,
    Seq,
    TensorId,
    bus,
)
from vizggml.ggml.buffer import SIZE_MAX
from vizggml.ggml.tensor import Tensor
from vizggml.ggml.types import pad

MAX_FREE_BLOCKS = 256
MAX_CHUNKS = 16
"""`MAX_FREE_BLOCKS`, `GGML_VBUFFER_MAX_CHUNKS`, ggml/src/ggml-alloc.c."""

ENDLESS = SIZE_MAX // 2
"""The most room that a chunk can have: far more than any memory."""

Addr = tuple[int, int]
"""`struct buffer_address`: chunk, offset."""

_ids = itertools.count()


@dataclass(slots=True)
class FreeBlock:
    """`struct free_block`, ggml/src/ggml-alloc.c."""

    offset: int
    size: int


@dataclass(slots=True)
class Chunk:
    """`struct tallocr_chunk`, ggml/src/ggml-alloc.c. `max_size` is the highest byte ever used: the buffer's size."""

    free_blocks: list[FreeBlock] = field(default_factory=list)
    max_size: int = 0


class DynTallocr:
    """`ggml_dyn_tallocr`, ggml/src/ggml-alloc.c.

    Every size is rounded up to `alignment`. A chunk ends at `max_chunk_size`, unless one tensor alone is larger, or it
    is the last of 16.
    """

    def __init__(self, alignment: int, max_chunk_size: int = ENDLESS) -> None:
        self.id = AllocatorId(next(_ids))
        self.alignment = alignment
        self.max_chunk_size = min(max_chunk_size, ENDLESS)
        self.chunks: list[Chunk] = []
        self.told_choice: Seq = NO_SEQ
        """The event of the last choice, for what follows from it."""
        bus.standing.add(self)

    def reset(self) -> None:
        """Forget everything. `ggml_dyn_tallocr_reset`, ggml/src/ggml-alloc.c."""
        self.chunks = []
        if bus.on:
            bus.emit(AllocatorReset(self.id))

    def alloc(self, size: int, tensor: Tensor | None = None) -> Addr:
        """The chunk and offset of `size` bytes. `ggml_dyn_tallocr_alloc`, ggml/src/ggml-alloc.c.

        First the smallest block that is large enough, the last blocks left out; then the last blocks; then a new chunk.
        """
        asked, size = size, pad(size, self.alignment)
        tensor_id = NO_TENSOR if tensor is None else tensor.id
        cause = bus.cause
        if bus.on:
            bus.cause = bus.emit(SearchBegin(self.id, tensor_id, asked, size))
        try:
            rule, found = "best fit", self.best_fit(size)
            if found is None:
                rule, found = "last block", self.last_block(size)
            if found is None:
                # with no chunk yet, the block is the last one of the first
                rule = "new chunk" if self.chunks else "last block"
                found = (self.new_chunk(size), 0)
            return self.take(*found, size, rule, tensor_id)
        finally:
            bus.cause = cause

    def best_fit(self, size: int) -> Addr | None:
        """The chunk and index of the block to use, the last block of each chunk left out.

        The best size starts anew with each chunk: among chunks the last that has any block large enough wins. Of equal
        blocks in one chunk, too, the last.
        """
        found: Addr | None = None
        for c, chunk in enumerate(self.chunks):
            best_size = SIZE_MAX
            for i in range(len(chunk.free_blocks) - 1):
                block = chunk.free_blocks[i]
                if size <= block.size <= best_size:
                    found, best_size = (c, i), block.size
                    verdict = "best so far"
                else:
                    verdict = "too small" if block.size < size else "larger than the best"
                if bus.on:
                    bus.emit(BlockConsidered(self.id, "best fit", c, i, block.offset, block.size, 0, verdict))
        return found

    def last_block(self, size: int) -> Addr | None:
        """The chunk and index of the last block that makes its chunk grow least, or wastes least of what it has.

        The reuse factor is what would stay unused of the chunk's present size; below 0, what the chunk must grow by.
        """
        found: Addr | None = None
        best_reuse: int | None = None
        for c, chunk in enumerate(self.chunks):
            if not chunk.free_blocks:
                continue
            i = len(chunk.free_blocks) - 1
            block = chunk.free_blocks[i]
            reuse = chunk.max_size - block.offset - size
            better_reuse = best_reuse is None or (best_reuse < 0 and reuse > best_reuse)
            better_fit = best_reuse is not None and 0 <= reuse < best_reuse
            if block.size < size:
                verdict = "too small"
            elif better_reuse or better_fit:
                found, best_reuse, verdict = (c, i), reuse, "best so far"
            else:
                verdict = "not better"
            if bus.on:
                bus.emit(BlockConsidered(self.id, "last block", c, i, block.offset, block.size, reuse, verdict))
        return found

    def new_chunk(self, min_size: int) -> int:
        """Open a chunk with one free block. `ggml_dyn_tallocr_new_chunk`, ggml/src/ggml-alloc.c.

        VizggmlError if there are 16 already and the last cannot take `min_size`.
        """
        c = len(self.chunks)
        if c >= MAX_CHUNKS:
            raise VizggmlError(
                f"allocator {self.id}: no block of {min_size} bytes, and the limit is {MAX_CHUNKS} chunks"
            )
        size = ENDLESS if c == MAX_CHUNKS - 1 else max(min_size, self.max_chunk_size)
        self.chunks.append(Chunk([FreeBlock(0, size)]))
        if bus.on:
            bus.emit(ChunkOpened(self.id, c, size))
        return c

    def take(self, c: int, i: int, size: int, rule: str, tensor: TensorId) -> Addr:
        """Cut `size` bytes off the front of block `i` of chunk `c`."""
        chunk = self.chunks[c]
        block = chunk.free_blocks[i]
        offset = block.offset
        if bus.on:
            reuse = 0 if rule == "best fit" else chunk.max_size - offset - size
            exact = block.size == size
            chosen = BlockChosen(self.id, tensor, c, i, offset, block.size, rule, exact, reuse)
            self.told_choice = bus.emit(chosen)
        block.offset += size
        block.size -= size
        if block.size == 0:
            self.remove_block(c, i, offset, size)
        elif bus.on:
            bus.emit(BlockSplit(self.id, c, i, block.offset, block.size, size))
        if offset + size > chunk.max_size:
            before, chunk.max_size = chunk.max_size, offset + size
            if bus.on:
                bus.emit(ChunkGrown(self.id, c, before, chunk.max_size))
        return c, offset

    def remove_block(self, c: int, i: int, offset: int, size: int) -> None:
        """Block `i` was used up. `ggml_dyn_tallocr_remove_block`, ggml/src/ggml-alloc.c."""
        del self.chunks[c].free_blocks[i]
        if bus.on:
            bus.emit(BlockRemoved(self.id, c, i, offset, size))

    def insert_block(self, c: int, offset: int, size: int) -> None:
        """A free block of its own, in its place by offset. `ggml_dyn_tallocr_insert_block`, ggml/src/ggml-alloc.c.

        VizggmlError if the chunk has 256 already.
        """
        blocks = self.chunks[c].free_blocks
        if len(blocks) >= MAX_FREE_BLOCKS:
            raise VizggmlError(f"allocator {self.id}: chunk {c} is out of free blocks, the limit is {MAX_FREE_BLOCKS}")
        i = 0
        while i < len(blocks) and blocks[i].offset < offset:
            i += 1
        blocks.insert(i, FreeBlock(offset, size))
        if bus.on:
            bus.emit(BlockInserted(self.id, c, i, offset, size))

    def free_bytes(self, addr: Addr, size: int) -> None:
        """Give `size` bytes at `addr` back, joined with the free blocks that touch them.

        `ggml_dyn_tallocr_free_bytes`, ggml/src/ggml-alloc.c.
        """
        size = pad(size, self.alignment)
        c, offset = addr
        blocks = self.chunks[c].free_blocks
        for i, block in enumerate(blocks):
            if block.offset + block.size == offset:
                block.size += size
                side = "previous"
                if i + 1 < len(blocks) and block.offset + block.size == blocks[i + 1].offset:
                    block.size += blocks.pop(i + 1).size
                    side = "both"
            elif offset + size == block.offset:
                # a block that ends where the freed bytes begin would have come earlier in the list
                block.offset = offset
                block.size += size
                side = "next"
            else:
                continue
            if bus.on:
                bus.emit(BlockMerged(self.id, c, i, block.offset, block.size, side, offset, size))
            return
        self.insert_block(c, offset, size)

    def snapshot(self) -> Iterator[Event]:
        yield AllocatorReset(self.id)
        for c, chunk in enumerate(self.chunks):
            last = chunk.free_blocks[-1] if chunk.free_blocks else FreeBlock(chunk.max_size, 0)
            room = last.offset + last.size
            yield ChunkOpened(self.id, c, room)
            if last.offset:
                exact = last.size == 0
                yield BlockChosen(self.id, NO_TENSOR, c, 0, 0, room, "new chunk", exact, 0)
                if exact:
                    yield BlockRemoved(self.id, c, 0, 0, room)
                else:
                    yield BlockSplit(self.id, c, 0, last.offset, last.size, last.offset)
            yield ChunkGrown(self.id, c, 0, chunk.max_size)
            for i, block in enumerate(chunk.free_blocks[:-1]):
                yield BlockInserted(self.id, c, i, block.offset, block.size)
