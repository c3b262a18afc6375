"""A plan of memory as the fold sees it: which tensor lies where, for which part of the execution order."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from vizggml.ggml.types import FLAG_OUTPUT, TENSOR_ALIGNMENT, pad
from vizggml.timeline.fold_graph import GraphFold
from vizggml.timeline.track import Track, Values

NONE = -1
MAX_CHUNKS = 16
"""`GGML_VBUFFER_MAX_CHUNKS`, ggml/src/ggml-alloc.c: chunk c of a plan's buffer b has the number b * 16 + c here."""


@dataclass(slots=True)
class Life:
    """A tensor's place, and how long it is kept.

    `first` and `last` are positions, both inside; `held` is `size` with its padding; `row` is its row in the track.
    """

    tensor: int
    chunk: int
    offset: int
    size: int
    first: int
    last: int
    reuses: int = NONE
    freed_by: int = NONE
    row: int = NONE
    held: int = 0


@dataclass(slots=True)
class Plan:
    """One plan. `position` is the execution order of its graph; `allocator` the free list it was made with.

    Over several buffers each has its own: `allocators`, by the buffer's place.

    While its graph is computed, `advance` follows which of its tensors are live.
    """

    number: int
    graph: int
    galloc: int
    position: dict[int, int]
    allocator: int = NONE
    allocators: dict[int, int] = field(default_factory=dict)
    finished: bool = False
    lives: dict[int, Life] = field(default_factory=dict)
    chunk_ends: dict[int, int] = field(default_factory=dict)
    _begins: dict[int, list[Life]] = field(default_factory=dict)
    _ends: dict[int, list[Life]] = field(default_factory=dict)
    _live: dict[int, dict[int, Life]] = field(default_factory=dict)
    _at: int = NONE

    @property
    def n_nodes(self) -> int:
        return max(1, len(self.position))

    def at(self, node: int) -> int:
        """The position of `node`; 0 for what is placed before the first node is."""
        return self.position.get(node, 0)

    def begin_compute(self) -> None:
        begins, ends = defaultdict(list), defaultdict(list)
        for life in self.lives.values():
            end = life.offset + max(life.size, life.held)
            self.chunk_ends[life.chunk] = max(end, self.chunk_ends.get(life.chunk, 0))
            begins[life.first].append(life)
            ends[life.last + 1].append(life)
        self._begins, self._ends, self._live, self._at = dict(begins), dict(ends), {}, NONE

    def advance(self, position: int) -> set[int]:
        """Go on to `position`; the chunks in which something begins or ends to live."""
        changed: set[int] = set()
        for at in range(self._at + 1, position + 1):
            for life in self._ends.get(at, ()):
                live = self._live.setdefault(life.chunk, {})
                if live.get(life.offset) is life:
                    del live[life.offset]
                    changed.add(life.chunk)
            for life in self._begins.get(at, ()):
                self._live.setdefault(life.chunk, {})[life.offset] = life
                changed.add(life.chunk)
        self._at = max(self._at, position)
        return changed

    def tiles(self, chunk: int, size: int) -> dict[int, tuple[int, int]]:
        """The chunk from end to end: by offset, the size and the owner of each block, free ones among them."""
        tiles: dict[int, tuple[int, int]] = {}
        end = 0
        live = sorted(self._live.get(chunk, {}).items())
        limits = [*(offset for offset, _ in live[1:]), size][: len(live)]
        for (offset, life), limit in zip(live, limits, strict=True):
            if offset > end:
                tiles[end] = (offset - end, NONE)
            end = max(offset + life.size, min(offset + life.held, limit))
            tiles[offset] = (end - offset, life.tensor)
        if size > end:
            tiles[end] = (size - end, NONE)
        return tiles


def lives_of_placement(
    fold: GraphFold, graph: int, place: Track, compute: set[int], n_allocators: int = 1
) -> list[Life]:
    """The lifetimes that the places of a graph's tensors in the `compute` buffers imply, in order of their beginnings.

    A tensor lives from its node to the last node that reads it or a view of it; outputs live to the end. Where a node
    lies at its source's place, and nobody needs the source later, it reuses the source.
    """
    lives = _placed(fold, graph, place, compute, n_allocators)
    tensors, nodes = fold.tensors, fold.graphs.nodes[graph]
    for at, node in enumerate(nodes):
        for src in (*tensors.src[node], tensors.view_src[node]):
            read = lives.get(tensors.owner(src))
            if read is not None and at >= read.last:
                read.last, read.freed_by = at, node
    for life in lives.values():
        if tensors.flags[life.tensor] & FLAG_OUTPUT or life.freed_by == NONE:
            life.last, life.freed_by = max(0, len(nodes) - 1), NONE
    for life in lives.values():
        for src in tensors.src[life.tensor]:
            taken = lives.get(src)
            if taken is not None and life.reuses == NONE and _takes_over(life, taken):
                life.reuses = src
                taken.last, taken.freed_by = max(taken.first, life.first - 1), life.tensor
    return sorted(lives.values(), key=lambda life: life.first)


def _takes_over(life: Life, parent: Life) -> bool:
    return (parent.chunk, parent.offset, parent.last) == (life.chunk, life.offset, life.first)


def _placed(fold: GraphFold, graph: int, place: Track, compute: set[int], n_allocators: int) -> dict[int, Life]:
    """Where each of the graph's tensors lies, but for views and what has memory of its own.

    A buffer is a chunk; where there are as many as allocators, the first chunk of each.
    """
    rows: dict[int, Values] = {}
    for tensor in (*fold.graphs.leafs[graph], *fold.graphs.nodes[graph]):
        if fold.tensors.view_src[tensor] < 0 and place.value(tensor, "buffer") in compute:
            rows[tensor] = place.open[tensor][1]
    buffers = sorted({int(buffer) for _, buffer, *_ in rows.values()})
    lives: dict[int, Life] = {}
    for tensor, (_, buffer, offset, size) in rows.items():
        first = fold.graphs.position[graph].get(tensor, 0)
        held = pad(int(size), TENSOR_ALIGNMENT)
        chunk = buffers.index(int(buffer)) * (MAX_CHUNKS if len(buffers) == n_allocators else 1)
        lives[tensor] = Life(tensor, chunk, int(offset), int(size), first, first, held=held)
    return lives
