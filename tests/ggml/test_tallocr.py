"""The free list: one scenario a test, by hand after ggml-alloc.c; every decision an event."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ggml.seen import Seen, seen
from vizggml.errors import VizggmlError
from vizggml.events import (
    NO_SEQ,
    NO_TENSOR,
    AllocatorReset,
    BlockChosen,
    BlockConsidered,
    BlockInserted,
    BlockMerged,
    BlockRemoved,
    BlockSplit,
    ChunkGrown,
    ChunkOpened,
    SearchBegin,
    bus,
)
from vizggml.ggml.context import Context
from vizggml.ggml.tallocr import ENDLESS, MAX_CHUNKS, MAX_FREE_BLOCKS, DynTallocr


def free_blocks(talloc: DynTallocr, chunk: int = 0) -> list[tuple[int, int]]:
    return [(block.offset, block.size) for block in talloc.chunks[chunk].free_blocks]


def considered(events: Seen) -> list[tuple[str, int, int, str]]:
    return [(e.phase, e.chunk, e.block, e.verdict) for e in events.of(BlockConsidered)]


def holes(*sizes: int, max_chunk_size: int = ENDLESS) -> DynTallocr:
    """An allocator with free blocks of these sizes, 8 taken bytes after each."""
    talloc = DynTallocr(8, max_chunk_size)
    taken = []
    for size in sizes:
        taken.append((talloc.alloc(size), size))
        talloc.alloc(8)
    for addr, size in taken:
        talloc.free_bytes(addr, size)
    return talloc


def test_the_teaching_trace() -> None:
    """Three results of 8 bytes, each needing the one before: 0, 8, and 0 again, 16 bytes in all."""
    talloc = DynTallocr(8)
    with seen() as events:
        first = talloc.alloc(8)
        second = talloc.alloc(8)
        talloc.free_bytes(first, 8)
        third = talloc.alloc(8)
    assert [first, second, third] == [(0, 0), (0, 8), (0, 0)]
    assert talloc.chunks[0].max_size == 16
    assert [(e.rule, e.exact) for e in events.of(BlockChosen)] == [
        ("last block", False),
        ("last block", False),
        ("best fit", True),
    ]


def test_a_search_says_what_it_is_for_and_is_the_cause_of_what_follows() -> None:
    t = Context(1 << 12, no_alloc=True).new_tensor("F32", (3,))
    talloc = DynTallocr(32)
    with seen() as events:
        talloc.alloc(t.nbytes, t)
    search = events.one(SearchBegin)
    assert (search.allocator, search.tensor, search.asked, search.size, search.cause) == (
        talloc.id,
        t.id,
        12,
        32,
        NO_SEQ,
    )
    assert {e.cause for e in events if e is not search} == {search.seq}
    assert events.one(BlockChosen).tensor == t.id
    assert bus.cause == NO_SEQ


def test_the_first_chunk_opens_is_split_and_grows() -> None:
    talloc = DynTallocr(16)
    with seen() as events:
        talloc.alloc(20)
    opened, chosen, split, grown = events[1:]
    assert opened == ChunkOpened(talloc.id, 0, ENDLESS, seq=1, cause=0)
    assert chosen == BlockChosen(talloc.id, NO_TENSOR, 0, 0, 0, ENDLESS, "last block", False, -32, seq=2, cause=0)
    assert split == BlockSplit(talloc.id, 0, 0, 32, ENDLESS - 32, 32, seq=3, cause=0)
    assert grown == ChunkGrown(talloc.id, 0, 0, 32, seq=4, cause=0)


def test_best_fit_takes_the_smallest_that_is_large_enough() -> None:
    talloc = holes(64, 16, 32, 48)
    with seen() as events:
        assert talloc.alloc(24) == (0, 64 + 8 + 16 + 8)
    assert considered(events) == [
        ("best fit", 0, 0, "best so far"),
        ("best fit", 0, 1, "too small"),
        ("best fit", 0, 2, "best so far"),
        ("best fit", 0, 3, "larger than the best"),
    ]
    chosen = events.one(BlockChosen)
    assert (chosen.block, chosen.size, chosen.rule, chosen.exact) == (2, 32, "best fit", False)
    split = events.one(BlockSplit)
    assert (split.block, split.offset, split.size, split.taken) == (2, 120, 8, 24)
    assert not events.of(ChunkGrown)


def test_of_equal_blocks_the_last_wins() -> None:
    talloc = holes(32, 32, 32)
    with seen() as events:
        assert talloc.alloc(32) == (0, 80)
    assert [e.verdict for e in events.of(BlockConsidered)] == ["best so far"] * 3
    removed = events.one(BlockRemoved)
    assert (removed.block, removed.offset, removed.size) == (2, 80, 32)
    assert not events.of(BlockSplit)
    assert free_blocks(talloc)[:2] == [(0, 32), (40, 32)]


def test_the_best_size_starts_anew_with_each_chunk() -> None:
    """Chunk 0 has a hole of just 16 bytes, chunk 1 one of 40: the last chunk with any that fits wins."""
    talloc = DynTallocr(8, 64)
    small, _, large = talloc.alloc(16), talloc.alloc(48), talloc.alloc(40)
    talloc.alloc(8)
    talloc.free_bytes(small, 16)
    talloc.free_bytes(large, 40)
    # 16 bytes are left at the end of chunk 1, so its hole is not the last block; chunk 0 has no block but the hole
    talloc.chunks[0].free_blocks.append(type(talloc.chunks[0].free_blocks[0])(1024, 8))
    with seen() as events:
        assert talloc.alloc(16) == (1, 0)
    assert considered(events) == [("best fit", 0, 0, "best so far"), ("best fit", 1, 0, "best so far")]


def test_the_last_block_is_asked_only_when_no_other_fits() -> None:
    talloc = holes(16)
    with seen() as events:
        assert talloc.alloc(16) == (0, 0)
        assert talloc.alloc(16) == (0, 24)
    assert [e.rule for e in events.of(BlockChosen)] == ["best fit", "last block"]
    assert considered(events)[-1] == ("last block", 0, 0, "best so far")


def test_a_last_block_that_need_not_grow_is_better_than_one_that_must() -> None:
    """Chunk 0 would have to grow by 24 bytes, chunk 1 has 40 of its bytes unused."""
    talloc = DynTallocr(8, 64)
    talloc.alloc(40)
    held = talloc.alloc(56)
    talloc.free_bytes(held, 56)
    talloc.alloc(16)
    with seen() as events:
        assert talloc.alloc(24) == (1, 16)
    assert [(e.chunk, e.reuse_factor, e.verdict) for e in events.of(BlockConsidered)] == [
        (0, -24, "best so far"),
        (1, 16, "best so far"),
    ]
    chosen = events.one(BlockChosen)
    assert (chosen.rule, chosen.reuse_factor) == ("last block", 16)
    assert not events.of(ChunkGrown)


def test_of_two_that_need_not_grow_the_one_that_wastes_less() -> None:
    talloc = DynTallocr(8, 64)
    a, b = talloc.alloc(64), talloc.alloc(64)
    talloc.free_bytes(a, 64)
    talloc.free_bytes(b, 64)
    assert talloc.alloc(32) == (0, 0)
    with seen() as events:
        assert talloc.alloc(24) == (0, 32)
    assert [(e.chunk, e.reuse_factor, e.verdict) for e in events.of(BlockConsidered)] == [
        (0, 8, "best so far"),
        (1, 40, "not better"),
    ]


def test_a_chunk_that_is_full_opens_another() -> None:
    talloc = DynTallocr(8, 64)
    talloc.alloc(48)
    with seen() as events:
        assert talloc.alloc(24) == (1, 0)
        assert talloc.alloc(16) == (0, 48)
        assert talloc.alloc(200) == (2, 0)
    assert considered(events)[:2] == [("last block", 0, 0, "too small"), ("last block", 0, 0, "best so far")]
    assert [(e.chunk, e.size) for e in events.of(ChunkOpened)] == [(1, 64), (2, 200)]
    assert [e.rule for e in events.of(BlockChosen)] == ["new chunk", "last block", "new chunk"]
    assert [(e.chunk, e.size_before, e.size) for e in events.of(ChunkGrown)] == [(1, 0, 24), (0, 48, 64), (2, 0, 200)]
    assert [(e.chunk, e.size) for e in events.of(BlockRemoved)] == [(0, 16), (2, 200)]


def test_the_last_of_16_chunks_is_endless() -> None:
    talloc = DynTallocr(8, 8)
    for c in range(MAX_CHUNKS):
        assert talloc.alloc(8) == (c, 0)
    assert free_blocks(talloc, MAX_CHUNKS - 1) == [(8, ENDLESS - 8)]
    assert talloc.alloc(1 << 40) == (MAX_CHUNKS - 1, 8)
    with pytest.raises(VizggmlError, match=r"no block of .* bytes, and the limit is 16 chunks"):
        talloc.alloc(2 * ENDLESS)
    assert bus.cause == NO_SEQ


@pytest.mark.parametrize(
    ("freed", "side", "block", "merged"),
    [
        ([0, 1], "previous", 0, (0, 32)),
        ([1, 0], "next", 0, (0, 32)),
        ([0, 2, 1], "both", 0, (0, 48)),
        ([0, 4, 3], "next", 1, (48, 32)),
    ],
)
def test_freed_bytes_join_their_neighbours(freed: list[int], side: str, block: int, merged: tuple[int, int]) -> None:
    talloc = DynTallocr(8)
    addrs = [talloc.alloc(16) for _ in range(6)]
    for i in freed[:-1]:
        talloc.free_bytes(addrs[i], 16)
    with seen() as events:
        talloc.free_bytes(addrs[freed[-1]], 16)
    found = events.one(BlockMerged)
    assert (found.side, found.block, (found.offset, found.size)) == (side, block, merged)
    assert (found.freed_offset, found.freed_size) == (16 * freed[-1], 16)
    assert merged in free_blocks(talloc)


def test_freed_bytes_without_a_neighbour_are_inserted_in_order() -> None:
    talloc = DynTallocr(8)
    addrs = [talloc.alloc(16) for _ in range(6)]
    with seen() as events:
        for i in (4, 0, 2):
            talloc.free_bytes(addrs[i], 10)
    assert [(e.block, e.offset, e.size) for e in events.of(BlockInserted)] == [(0, 64, 16), (0, 0, 16), (1, 32, 16)]
    assert free_blocks(talloc) == [(0, 16), (32, 16), (64, 16), (96, ENDLESS - 96)]


def test_more_than_256_free_blocks_are_refused() -> None:
    talloc = DynTallocr(8)
    addrs = [talloc.alloc(8) for _ in range(2 * MAX_FREE_BLOCKS + 2)]
    for addr in addrs[: 2 * MAX_FREE_BLOCKS - 2 : 2]:
        talloc.free_bytes(addr, 8)
    assert len(free_blocks(talloc)) == MAX_FREE_BLOCKS
    with pytest.raises(VizggmlError, match="chunk 0 is out of free blocks, the limit is 256"):
        talloc.free_bytes(addrs[2 * MAX_FREE_BLOCKS - 2], 8)


def test_a_reset_forgets_all() -> None:
    talloc = holes(16, 32)
    with seen() as events:
        talloc.reset()
    assert events.one(AllocatorReset).allocator == talloc.id
    assert talloc.chunks == []
    assert talloc.alloc(8) == (0, 0)


def rebuilt(talloc: DynTallocr) -> list[tuple[list[tuple[int, int]], int]]:
    """The free lists and sizes that the snapshot's events lead to."""
    chunks: list[tuple[list[tuple[int, int]], int]] = []
    for e in talloc.snapshot():
        if isinstance(e, ChunkOpened):
            chunks.append(([(0, e.size)], 0))
        elif isinstance(e, BlockSplit):
            chunks[e.chunk][0][e.block] = (e.offset, e.size)
        elif isinstance(e, BlockRemoved):
            del chunks[e.chunk][0][e.block]
        elif isinstance(e, BlockInserted):
            chunks[e.chunk][0].insert(e.block, (e.offset, e.size))
        elif isinstance(e, ChunkGrown):
            chunks[e.chunk] = (chunks[e.chunk][0], e.size)
    return chunks


@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 90), st.integers(0, 1 << 30)), max_size=60),
    st.sampled_from([8, 32]),
    st.sampled_from([64, 256, ENDLESS]),
)
def test_nothing_overlaps_and_the_free_list_stays_sorted(
    steps: list[tuple[bool, int, int]], alignment: int, max_chunk: int
) -> None:
    talloc = DynTallocr(alignment, max_chunk)
    live: list[tuple[tuple[int, int], int]] = []
    for take, size, which in steps:
        if take or not live:
            live.append((talloc.alloc(size + 1), size + 1))
        else:
            talloc.free_bytes(*live.pop(which % len(live)))
        for c, chunk in enumerate(talloc.chunks):
            spans = [(b.offset, b.size) for b in chunk.free_blocks]
            assert spans == sorted(spans)
            # neighbours are merged, so two free blocks never touch
            assert all(a + n < b for (a, n), (b, _) in itertools.pairwise(spans))
            spans += [(at[1], -(-n // alignment) * alignment) for at, n in live if at[0] == c]
            spans.sort()
            assert all(a + n <= b for (a, n), (b, _) in itertools.pairwise(spans))
    assert rebuilt(talloc) == [
        ([(b.offset, b.size) for b in chunk.free_blocks], chunk.max_size) for chunk in talloc.chunks
    ]
