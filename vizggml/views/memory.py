"""What a memory map and a memory timeline show, as plain values: read off the tracks, drawn elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vizggml.errors import VizggmlError
from vizggml.timeline.plan import MAX_CHUNKS
from vizggml.views.tables import Tracks

UNKNOWN = -2
"""In place of an owner: taken, and the trace does not tell by what."""
PADDING = 256
"""Bytes behind the last tensor of a chunk that are its padding: no alignment in use is larger."""


@dataclass(frozen=True)
class Block:
    """A piece of a chunk: `owner` is a tensor, -1 where it is free, UNKNOWN where nothing tells whose it is."""

    offset: int
    size: int
    owner: int


@dataclass(frozen=True)
class Bar:
    """A chunk at one step: its blocks by offset. `size` is the chunk's, as far as it has grown.

    With a `name` it is a buffer that nobody plans: of weights, or of a context's tensors.
    """

    allocator: int
    chunk: int
    size: int
    blocks: tuple[Block, ...]
    name: str = ""


@dataclass(frozen=True)
class Life:
    """A tensor's place in a plan, from position `first` to position `last` of the execution order, both inside."""

    tensor: int
    chunk: int
    offset: int
    size: int
    first: int
    last: int
    reuses: int


@dataclass(frozen=True)
class Plan:
    """One plan: lifetimes with `offset` counted over all chunks, and where the highest byte is first taken.

    `size` is that of the chunks together. `peak` is the highest byte taken, padding included; a plan made for a larger
    batch leaves it below `size`. `live` is how much lives at each position, and `bound` the most of it: no plan of the
    graph takes less. 0 where the tracks do not tell.
    """

    plan: int
    lives: tuple[Life, ...]
    chunk_ends: tuple[int, ...]
    n_positions: int
    size: int
    peak: int
    peak_at: int
    live: tuple[int, ...] = ()

    @property
    def bound(self) -> int:
        return max(self.live, default=0)

    def standing(self) -> list[Life]:
        """What is live where the peak is reached, the largest first."""
        alive = [life for life in self.lives if life.first <= self.peak_at <= life.last]
        return sorted(alive, key=lambda life: (-life.size, life.offset))


def last_step(tracks: Tracks) -> int:
    return max(0, int(tracks.meta["n_events"]) - 1)


def check_step(tracks: Tracks, step: int | None) -> int:
    """`step`, or the last one for None. VizggmlError outside the trace."""
    last = last_step(tracks)
    if step is None:
        return last
    if not 0 <= step <= last:
        raise VizggmlError(f"step {step}: the trace has steps 0 to {last}")
    return step


def fullest_step(tracks: Tracks) -> int:
    """The last step at which the most bytes are held: what a still shows when nobody says which. The last, for none."""
    columns = tracks.columns
    held = columns["t.block.owner"] >= 0
    if not held.any():
        return last_step(tracks)
    n = int(tracks.meta["n_events"])
    change = np.zeros(n + 1)
    np.add.at(change, columns["t.block.a"][held], columns["t.block.size"][held])
    np.add.at(change, columns["t.block.b"][held], -columns["t.block.size"][held])
    level = np.cumsum(change)[:n]
    return n - 1 - int(np.argmax(level[::-1]))


def memory_at(tracks: Tracks, step: int) -> list[Bar]:
    """The chunks of all allocators at `step`."""
    columns = tracks.columns
    sizes: dict[tuple[int, int], int] = {}
    for row in tracks.open_at("chunk", step).tolist():
        key = (int(columns["t.chunk.allocator"][row]), int(columns["t.chunk.chunk"][row]))
        sizes[key] = int(columns["t.chunk.size"][row])
    blocks: dict[tuple[int, int], list[Block]] = {key: [] for key in sizes}
    for row in tracks.open_at("block", step).tolist():
        key = (int(columns["t.block.allocator"][row]), int(columns["t.block.chunk"][row]))
        offset, size = int(columns["t.block.offset"][row]), int(columns["t.block.size"][row])
        end = sizes.get(key, offset) if size < 0 else offset + size
        owner = int(columns["t.block.owner"][row])
        if owner < 0:
            end = min(end, sizes.get(key, end))
        if end > offset:
            blocks.setdefault(key, []).append(Block(offset, end - offset, owner))
    return [
        Bar(key[0], key[1], sizes.get(key, 0), tuple(_whole(held, sizes.get(key, 0))))
        for key, held in sorted(blocks.items())
    ]


def buffers_at(tracks: Tracks, step: int) -> list[Bar]:
    """The buffers at `step` that hold tensors and are not for computing."""
    columns, strings = tracks.columns, tracks.strings
    blocks: dict[int, list[Block]] = {}
    for row in tracks.open_at("place", step).tolist():
        offset, size, tensor = (int(columns[f"t.place.{name}"][row]) for name in ("offset", "size", "tensor"))
        blocks.setdefault(int(columns["t.place.buffer"][row]), []).append(Block(offset, size, tensor))
    bars = []
    for row in tracks.open_at("buffer", step).tolist():
        buffer, size = int(columns["t.buffer.buffer"][row]), int(columns["t.buffer.size"][row])
        name = f"{strings[int(columns['t.buffer.buft'][row])]} buffer"
        if buffer in blocks and strings[int(columns["t.buffer.usage"][row])] != "compute":
            bars.append(Bar(-1, buffer, size, tuple(sorted(blocks[buffer], key=lambda block: block.offset)), name))
    return bars


def _whole(told: list[Block], size: int) -> list[Block]:
    """The blocks by offset; what none of them tells of is held by tensors from before the recording."""
    blocks, end = [], 0
    for block in sorted(told, key=lambda block: block.offset):
        if end < block.offset <= size:
            blocks.append(Block(end, block.offset - end, UNKNOWN))
        blocks.append(block)
        end = max(end, block.offset + block.size)
    if told and end < size:
        blocks.append(Block(end, size - end, UNKNOWN))
    return blocks


def plan_ids(tracks: Tracks) -> list[int]:
    """The plans of memory that a trace holds, by their numbers."""
    return [int(p) for p in np.unique(tracks.columns["t.life.plan"])]


def plan_at(tracks: Tracks, step: int) -> int:
    """The last plan begun at or before `step`, else the first one there is; -1 when the trace holds none."""
    plans, begun = tracks.columns["t.life.plan"], tracks.columns["t.life.a"]
    if not len(plans):
        return -1
    before = plans[begun <= step]
    return int(before.max() if len(before) else plans.min())


def read_plan(tracks: Tracks, plan: int) -> Plan:
    """The lifetimes of the `plan`-th reserve. VizggmlError when there is none."""
    if plan not in plan_ids(tracks):
        raise VizggmlError(f"plan {plan}: the trace has {len(plan_ids(tracks))} (0 is the first)")
    columns = tracks.columns
    rows = np.flatnonzero(columns["t.life.plan"] == plan)
    fields = ("tensor", "chunk", "offset", "size", "first", "last", "reuses")
    read = list(zip(*(columns[f"t.life.{f}"][rows].astype(np.int64).tolist() for f in fields), strict=True))
    ends = _chunk_sizes(tracks, int(columns["t.life.a"][rows].max()), _allocators(tracks, rows))
    for _, chunk, offset, size, *_ in read:
        ends[chunk] = max(ends.get(chunk, 0), offset + size)
    base, at = {}, 0
    for chunk in sorted(ends):
        base[chunk] = at
        at += ends[chunk]
    lives = tuple(Life(t, c, base[c] + offset, size, a, max(a, b), r) for t, c, offset, size, a, b, r in read)
    top = max(lives, key=lambda life: (life.offset + life.size, -life.first))
    chunk_ends = tuple(base[chunk] + ends[chunk] for chunk in sorted(ends))
    n_positions = 1 + max(life.last for life in lives)
    peak = top.offset + top.size
    reached = at if at - peak < PADDING else peak
    return Plan(plan, lives, chunk_ends, n_positions, at, reached, top.first, _live_sets(tracks, plan))


def _live_sets(tracks: Tracks, plan: int) -> tuple[int, ...]:
    """What lives at each position, as far as the plan was followed; nothing from tracks without a live set."""
    columns = tracks.columns
    if "t.live.plan" not in columns:
        return ()
    rows = np.flatnonzero(columns["t.live.plan"] == plan)
    order = np.argsort(columns["t.live.position"][rows], kind="stable")
    return tuple(columns["t.live.bytes"][rows[order]].astype(np.int64).tolist())


def _allocators(tracks: Tracks, rows: NDArray[np.intp]) -> dict[int, int]:
    """The allocator of each buffer of a plan, by the buffer's number, as its lifetimes tell."""
    columns = tracks.columns
    buffers = columns["t.life.chunk"][rows].astype(np.int64) // MAX_CHUNKS
    return dict(zip(buffers.tolist(), columns["t.life.allocator"][rows].tolist(), strict=True))


def _chunk_sizes(tracks: Tracks, step: int, allocators: dict[int, int]) -> dict[int, int]:
    """How large the chunks of a plan are at `step`, by their number in the plan."""
    columns = tracks.columns
    sizes: dict[int, int] = {}
    for row in tracks.open_at("chunk", step).tolist():
        for buffer, allocator in allocators.items():
            if columns["t.chunk.allocator"][row] == allocator and columns["t.chunk.size"][row]:
                sizes[buffer * MAX_CHUNKS + int(columns["t.chunk.chunk"][row])] = int(columns["t.chunk.size"][row])
    return sizes
