"""Liveness: from when to when each tensor of a graph is needed, and so what no plan of its memory can do without.

The graph allocator decides where a tensor lies while it lives; how long it lives the graph alone decides. So the
largest set of tensors that live at once is a lower bound for every allocator: what one takes above it is its own doing.

A position is a place in the execution order, 0 for the first node. All is counted as the allocator counts: leafs and
inputs live from the start, views live nowhere and keep their source alive, what nobody reads is a result and stays to
the end, as outputs do, and tensors with memory of their own are not counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, TypedDict

from vizggml.errors import VizggmlError
from vizggml.events import TensorId
from vizggml.ggml.buffer import BufferType, cpu_buffer_type
from vizggml.ggml.gallocr import CAN_INPLACE, GraphAllocator
from vizggml.ggml.tensor import Tensor
from vizggml.ggml.types import FLAG_INPUT, FLAG_OUTPUT, pad

if TYPE_CHECKING:
    from vizggml.ggml.cgraph import Graph
    from vizggml.ggml.graph_file import AllocReport

Places = Mapping[TensorId, tuple[tuple[int, int], int]]
"""Where an allocator put each tensor: its buffer and chunk, and the offset."""


def is_external(t: Tensor) -> bool:
    """Whether the tensor has memory that no graph allocator gave it."""
    root = t.view_src or t
    if root.buffer is not None:
        return root.buffer.usage != "compute"
    return root.data is not None


class LiveReport(TypedDict):
    """Padded bytes: the lower bound, and with no reuse. `peak_node` is the first node with that much live."""

    bound: int
    no_reuse: int
    peak_node: int | None


@dataclass(slots=True)
class Life:
    """A tensor's first and last use, both positions, and both inside.

    `size` is its bytes, `held` the same padded to the alignment. With `taken` the node at `died`, its last reader,
    takes over the place: there the two count as one, and the node's life `reuses` this tensor.
    """

    tensor: Tensor
    born: int
    died: int
    size: int
    held: int
    taken: bool = False
    reuses: Tensor | None = None

    def lives_at(self, position: int) -> bool:
        """Whether it holds a place of its own while the node at `position` is computed."""
        return self.born <= position <= self.died - self.taken


@dataclass(frozen=True, slots=True)
class Liveness:
    """The lives of a graph, in order of birth, and what lives at each node.

    `live` are the bytes at each position, padded to the alignment as they lie in memory; `live_unpadded` the tensors'
    own. Without nodes there is one position, for what lives from the start.
    """

    graph: Graph
    alignment: int
    lives: tuple[Life, ...]
    live: tuple[int, ...]
    live_unpadded: tuple[int, ...]

    @property
    def bound(self) -> int:
        """The largest live set, padded: no allocator that aligns its places takes less."""
        return max(self.live)

    @property
    def bound_unpadded(self) -> int:
        """The largest live set in the tensors' own bytes: nothing that holds them takes less."""
        return max(self.live_unpadded)

    @property
    def bound_at(self) -> int:
        """The first position at which the padded live set is largest."""
        return self.live.index(self.bound)

    @property
    def no_reuse(self) -> int:
        """Padded bytes if every tensor had a place of its own, from the first to the last."""
        return sum(life.held for life in self.lives)

    @property
    def no_reuse_unpadded(self) -> int:
        """Bytes of all results with a place each, as they are, without rounding up to the alignment."""
        return sum(life.size for life in self.lives)

    def at(self, position: int) -> list[Life]:
        """What lives while the node at `position` is computed, the largest first."""
        return sorted((life for life in self.lives if life.lives_at(position)), key=lambda life: -life.size)

    def reached(self, places: Places) -> Reached:
        """What a plan makes of these lives. VizggmlError if it has no place for one of them."""
        return _reached(self, places)


@dataclass(frozen=True, slots=True)
class Reached:
    """A plan beside the bound. `peak` is the bytes that its chunks take together.

    `heights` is, at each position, how far up the chunks reach with what lives there. At `position` they first reach
    highest; `standing` are the lives there, the largest first, with their chunk and offset.
    """

    peak: int
    position: int
    heights: tuple[int, ...]
    standing: tuple[tuple[Life, tuple[int, int], int], ...]
    bound: int

    @property
    def above_bound(self) -> int:
        """Bytes that the plan takes and the largest live set does not need."""
        return self.peak - self.bound

    @property
    def holes(self) -> int:
        """Bytes below the height, at the peak, in which nothing lives."""
        return self.heights[self.position] - sum(life.held for life, _, _ in self.standing)

    @property
    def fragmentation(self) -> float:
        """The part of the height that is holes at the peak: 0 where all below it is in use."""
        height = self.heights[self.position]
        return self.holes / height if height else 0.0


def graph_liveness(graph: Graph, buft: BufferType | None = None, *, in_place: bool = True) -> Liveness:
    """First and last use of each tensor that a graph allocator over `buft` places (None: the CPU's).

    With `in_place` a node that may take over its parent's place, by the rules of `ggml_gallocr_allocate_node`,
    ggml/src/ggml-alloc.c, counts as one with it.
    """
    buft = buft or cpu_buffer_type()
    last = max(0, len(graph.nodes) - 1)
    lives = {life.tensor.id: life for life in _born(graph, buft)}
    reads = _reads(graph, lives)
    for id, life in lives.items():
        read = reads.get(id)
        life.died = last if read is None or life.tensor.flags & FLAG_OUTPUT else read[-1]
    if in_place:
        _take_over(graph, lives, reads)
    born = tuple(sorted(lives.values(), key=lambda life: life.born))
    return Liveness(
        graph,
        buft.alignment,
        born,
        _live_set(born, [life.held for life in born], last + 1),
        _live_set(born, [life.size for life in born], last + 1),
    )


def _met(graph: Graph) -> Iterator[tuple[int, Tensor]]:
    """Each tensor in the order in which the allocator asks for its place, and the position; some more than once."""
    for leaf in graph.leafs:
        yield 0, leaf
    for node in graph.nodes:
        for t in (node, *node.src):
            if t is not None and t.flags & FLAG_INPUT:
                yield 0, t
    for position, node in enumerate(graph.nodes):
        for src in node.src:
            if src is not None:
                yield position, src
        yield position, node


def _born(graph: Graph, buft: BufferType) -> list[Life]:
    found: dict[TensorId, Life] = {}
    for position, t in _met(graph):
        if t.id not in found and t.view_src is None and not is_external(t):
            size = buft.get_alloc_size(t)
            found[t.id] = Life(t, position, position, size, pad(size, buft.alignment))
    return list(found.values())


def _reads(graph: Graph, lives: Mapping[TensorId, Life]) -> dict[TensorId, list[int]]:
    """At which positions each life is read, itself or through a view; without an entry it is to stay.

    It stays if nobody reads it, or one of its views: then that view is a result.
    """
    reads: dict[TensorId, list[int]] = {}
    read_views: set[TensorId] = set()
    for position, node in enumerate(graph.nodes):
        for src in node.src:
            if src is None:
                continue
            if src.view_src is not None:
                read_views.add(src.id)
            root = src.view_src or src
            if root.id in lives:
                reads.setdefault(root.id, []).append(position)
    for node in graph.nodes:
        # a view without an op stands in the order only to say until when its sources must live
        if node.view_src is not None and node.op != "NONE" and node.id not in read_views:
            reads.pop(node.view_src.id, None)
    return reads


def _take_over(graph: Graph, lives: Mapping[TensorId, Life], reads: Mapping[TensorId, Sequence[int]]) -> None:
    """Mark whose place goes to its last reader: of a node's parents the first that allows it."""
    for position, node in enumerate(graph.nodes):
        life = lives.get(node.id)
        if life is None or life.born != position or node.op not in CAN_INPLACE:
            continue
        for src in node.src:
            parent = lives.get(src.id) if src is not None else None
            if parent is not None and _may_take(node, position, parent, reads):
                parent.taken, life.reuses = True, parent.tensor
                break


def _may_take(node: Tensor, position: int, parent: Life, reads: Mapping[TensorId, Sequence[int]]) -> bool:
    t = parent.tensor
    if t.flags & FLAG_OUTPUT or node.type is not t.type or node.ne != t.ne or node.nb != t.nb:
        return False
    read = reads.get(t.id, ())
    # read here once, not through a view as well, and nowhere later
    return bool(read) and read[-1] == position and (len(read) == 1 or read[-2] != position)


def _live_set(lives: Sequence[Life], sizes: Sequence[int], n: int) -> tuple[int, ...]:
    """The sum of `sizes` of what lives at each of `n` positions."""
    change = [0] * (n + 1)
    for life, size in zip(lives, sizes, strict=True):
        change[life.born] += size
        change[life.died + 1 - life.taken] -= size
    return tuple(accumulate(change[:n]))


def places_planned(galloc: GraphAllocator) -> Places:
    """The places of the last plan of a graph allocator. Buffers that share one allocator are one."""
    shared = [galloc.buf_tallocs.index(talloc) for talloc in galloc.buf_tallocs]
    return {id: ((shared[hn.buffer_id], hn.chunk), hn.offset) for id, hn in galloc.hash_values.items() if hn.placed}


def places_reported(report: AllocReport, tensors: Mapping[int, Tensor]) -> Places:
    """The places of an `alloc_report`; `tensors` are the graph file's by its ids."""
    return {tensors[int(id)].id: ((0, at["chunk"]), at["offset"]) for id, at in report["tensors"].items()}


def live_report(found: Liveness, tensors: Mapping[int, Tensor]) -> LiveReport:
    """The same as JSON, ids as in the graph file; padded bytes."""
    nodes = found.graph.nodes
    at = nodes[found.bound_at].id if nodes else None
    id = next((id for id, t in tensors.items() if t.id == at), None)
    return {"bound": found.bound, "no_reuse": found.no_reuse, "peak_node": id}


def _reached(found: Liveness, places: Places) -> Reached:
    n = len(found.live)
    ends: dict[tuple[int, int], int] = {}
    begins: list[list[Life]] = [[] for _ in range(n)]
    for life in found.lives:
        if life.tensor.id not in places:
            raise VizggmlError(f"liveness: tensor {life.tensor.name!r} has no place in the plan")
        chunk, offset = places[life.tensor.id]
        ends[chunk] = max(ends.get(chunk, 0), offset + life.held)
        begins[life.born].append(life)
    heights: list[int] = []
    live: list[Life] = []
    for position in range(n):
        live = [life for life in (*live, *begins[position]) if life.lives_at(position)]
        tops: dict[tuple[int, int], int] = {}
        for life in live:
            chunk, offset = places[life.tensor.id]
            tops[chunk] = max(tops.get(chunk, 0), offset + life.held)
        heights.append(sum(tops.values()))
    at = heights.index(max(heights))
    standing = tuple((life, *places[life.tensor.id]) for life in found.at(at))
    return Reached(sum(ends.values()), at, tuple(heights), standing, found.bound)
