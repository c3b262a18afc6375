"""The fold of where things are: buffers, placements, the blocks of the chunks, and the plan's lifetimes.

The blocks of a chunk follow the free list while memory is planned. While a planned graph is computed they follow the
plan: what lies where at the node that is being computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from vizggml.ggml.types import FLAG_INPUT
from vizggml.timeline.fold_graph import GraphFold, Handler, small
from vizggml.timeline.live import LiveSets
from vizggml.timeline.plan import MAX_CHUNKS, Life, Plan, lives_of_placement
from vizggml.timeline.track import Track

FREE = -1
UNKNOWN = -2
"""In place of an owner: nobody, and somebody from before the recording, for whom there is no row in the track."""
ENDLESS_FROM = 2**61
NO_ALLOCATOR = -1
NO_NAME = -1
"""For all of a mapped file."""

Tiles = dict[int, tuple[int, int]]
"""By offset: size and owner."""


class Blocks:
    """The blocks of all chunks: they tile each chunk, so a block is named by where it begins."""

    def __init__(self, track: Track) -> None:
        self.track = track
        self.chunks: dict[tuple[int, int], Tiles] = {}

    def set(self, i: int, allocator: int, chunk: int, offset: int, size: int, owner: int) -> None:
        if owner == FREE and size >= ENDLESS_FROM:
            size = -1
        tiles = self.chunks.get((allocator, chunk))
        if tiles is None:
            tiles = self.chunks[allocator, chunk] = {}
        tiles[offset] = size, owner
        if owner == UNKNOWN:
            self.track.clear(i, (allocator, chunk, offset))
            return
        self.track.set(i, (allocator, chunk, offset), allocator, small(chunk), offset, size, owner)

    def clear(self, i: int, allocator: int, chunk: int, offset: int) -> None:
        self.chunks[allocator, chunk].pop(offset, None)
        self.track.clear(i, (allocator, chunk, offset))

    def clear_allocator(self, i: int, allocator: int) -> None:
        for key in [key for key in self.chunks if key[0] == allocator]:
            for offset in self.chunks.pop(key):
                self.track.clear(i, (*key, offset))

    def at(self, allocator: int, chunk: int, offset: int) -> tuple[int, int]:
        """Size and owner of the block that begins there."""
        return self.chunks.get((allocator, chunk), {}).get(offset, (0, FREE))

    def show(self, i: int, allocator: int, chunk: int, wanted: Tiles) -> None:
        """From event `i` on the chunk is tiled like this."""
        tiles = self.chunks.setdefault((allocator, chunk), {})
        for offset in tiles.keys() - wanted.keys():
            self.clear(i, allocator, chunk, offset)
        for offset, (size, owner) in sorted(wanted.items() - tiles.items()):
            self.set(i, allocator, chunk, offset, size, owner)

    def give_back(
        self, i: int, allocator: int, chunk: int, offset: int, size: int, freed: int, freed_size: int
    ) -> None:
        """`freed_size` bytes at `freed` are now part of the free block at `offset`."""
        tiles = self.chunks.setdefault((allocator, chunk), {})
        start = freed if freed in tiles else max((start for start in tiles if start < freed), default=freed)
        held, owner = tiles.get(start, (0, FREE))
        rest = start + held - (freed + freed_size)
        if start < freed < start + held:
            self.set(i, allocator, chunk, start, freed - start, owner)
        elif start == freed != offset:
            self.clear(i, allocator, chunk, freed)
        after = freed + freed_size
        if owner != FREE and rest > 0:
            self.set(i, allocator, chunk, after, rest, owner)
        elif after in tiles and after < offset + size:
            self.clear(i, allocator, chunk, after)
        self.set(i, allocator, chunk, offset, size, FREE)


class MemoryFold:
    """Folds the events of buffers, free lists and the graph allocator."""

    def __init__(self, text: Callable[[int], str], graph: GraphFold) -> None:
        self.text = text
        self.graph = graph
        self.external: set[int] = set()
        self.buffer = Track("buffer", {"buffer": "i", "size": "d", "usage": "i", "buft": "i"})
        self.place = Track("place", {"tensor": "i", "buffer": "i", "offset": "d", "size": "d"})
        self.block = Track("block", {"allocator": "i", "chunk": "i", "offset": "d", "size": "d", "owner": "i"})
        self.chunk = Track("chunk", {"allocator": "i", "chunk": "i", "size": "d"})
        columns = {"plan": "i", "tensor": "i", "chunk": "i", "offset": "d", "size": "d", "first": "i", "last": "i"}
        self.life = Track("life", {**columns, "reuses": "i", "freed_by": "i", "allocator": "i"})
        self.live = LiveSets()
        why = {"why": "i", "tensor": "i", "had": "d", "needed": "d", "size": "d", "anew": "i"}
        self.reserve = Track("reserve", {"galloc": "i", "graph": "i", **why})
        self.pages = Track("pages", {"buffer": "i", "name": "i", "offset": "d", "pages": "d", "of": "d"})
        planned = self.life, self.live.track, self.reserve
        self.tracks = (self.buffer, self.place, self.pages, self.block, self.chunk, *planned)
        self.blocks = Blocks(self.block)
        self.n_plans = 0
        self.plan: Plan | None = None
        self.planned: dict[int, Plan] = {}
        self.computing: Plan | None = None
        self.usage: dict[int, str] = {}
        self._asked: dict[int, int] = {}
        self._chosen: dict[int, int] = {}
        self._last_allocator = NO_ALLOCATOR
        self._allocator_of: dict[tuple[int, int], int] = {}
        self._in_buffer: dict[int, set[int]] = {}
        self._in_context: dict[int, set[int]] = {}
        self._snapshot = False
        self._graphs_of_snapshot: list[int] = []

    def handlers(self) -> dict[str, Handler]:
        return {
            "SnapshotBegin": self.snapshot_begin,
            "SnapshotEnd": self.snapshot_end,
            "GraphCreated": self.graph_created,
            "ContextReset": self.context_gone,
            "ContextFreed": self.context_gone,
            "TensorCreated": self.tensor_created,
            "BufferAllocated": self.buffer_allocated,
            "BufferFreed": self.buffer_freed,
            "TensorPlaced": self.tensor_placed,
            "WeightsPlaced": self.weights_placed,
            "PagesResident": self.pages_resident,
            "LayerResident": self.layer_resident,
            "AllocatorReset": self.allocator_reset,
            "SearchBegin": self.search_begin,
            "BlockChosen": self.block_chosen,
            "BlockSplit": self.block_split,
            "BlockRemoved": self.block_removed,
            "BlockMerged": self.block_merged,
            "BlockInserted": self.block_inserted,
            "ChunkGrown": self.chunk_grown,
            "ChunkOpened": self.chunk_opened,
            "ReserveBegin": self.reserve_begin,
            "ReserveEnd": self.reserve_end,
            "ParentReused": self.parent_reused,
            "TensorAssigned": self.tensor_assigned,
            "ExtraTailFreed": self.extra_tail_freed,
            "TensorFreed": self.tensor_freed,
            "Released": self.released,
            "AllocGraphEnd": self.alloc_graph_end,
            "ComputeBegin": self.compute_begin,
            "NodeBegin": self.node_begin,
            "NodeSkipped": self.node_skipped,
            "ComputeEnd": self.compute_end,
        }

    # buffers and placements

    def snapshot_begin(self, i: int, node: int) -> None:
        self._snapshot, self._graphs_of_snapshot = True, []

    def graph_created(self, i: int, node: int, graph: int, *rest: int) -> None:
        if self._snapshot:
            self._graphs_of_snapshot.append(graph)

    def snapshot_end(self, i: int, node: int) -> None:
        """A graph that stands with its memory was planned before the recording: its plan is where its tensors are."""
        self._snapshot = False
        for graph in self._graphs_of_snapshot:
            self._plan_from_placement(i, graph, -1)

    def context_gone(self, i: int, node: int, context: int, *rest: int) -> None:
        for tensor in self._in_context.pop(context, ()):
            self._unplace(i, tensor)

    def tensor_created(self, i: int, node: int, tensor: int, context: int, *rest: object) -> None:
        if context in self.graph.in_arena:
            self.external.add(tensor)

    def buffer_allocated(self, i: int, node: int, buffer: int, buft: int, size: int, usage: int) -> None:
        self.usage[buffer] = self.text(usage)
        self.buffer.set(i, buffer, buffer, size, usage, buft)

    def buffer_freed(self, i: int, node: int, buffer: int, size: int) -> None:
        self.buffer.clear(i, buffer)
        for tensor in list(self._in_buffer.pop(buffer, ())):
            self.place.clear(i, tensor)

    def _unplace(self, i: int, tensor: int) -> None:
        self._in_buffer.get(int(self.place.value(tensor, "buffer")), set()).discard(tensor)
        self.place.clear(i, tensor)

    def tensor_placed(self, i: int, node: int, tensor: int, buffer: int, offset: int, size: int, view: int) -> None:
        self._unplace_elsewhere(tensor, buffer)
        self.place.set(i, tensor, tensor, buffer, offset, size)
        self._in_buffer.setdefault(buffer, set()).add(tensor)
        self._in_context.setdefault(self.graph.tensors.context[tensor] if tensor >= 0 else -1, set()).add(tensor)
        if not view and self.usage.get(buffer) != "compute":
            self.external.add(tensor)

    def _unplace_elsewhere(self, tensor: int, buffer: int) -> None:
        before = int(self.place.value(tensor, "buffer"))
        if before not in (-1, buffer):
            self._in_buffer.get(before, set()).discard(tensor)

    def weights_placed(
        self, i: int, node: int, tensor: int, buffer: int, offset: int, size: int, file_offset: int, backend: int
    ) -> None:
        self.tensor_placed(i, node, tensor, buffer, offset, size, 0)

    def pages_resident(self, i: int, node: int, buffer: int, pages: int, of: int, page_size: int) -> None:
        self.pages.set(i, (buffer, NO_NAME), buffer, NO_NAME, 0, pages, of)

    def layer_resident(self, i: int, node: int, buffer: int, name: int, offset: int, pages: int, of: int) -> None:
        self.pages.set(i, (buffer, name), buffer, name, offset, pages, of)

    # the free list

    def allocator_reset(self, i: int, node: int, allocator: int) -> None:
        self.blocks.clear_allocator(i, allocator)
        self.chunk.clear_all(i, [k for k in self.chunk.open if isinstance(k, tuple) and k[0] == allocator])
        self._last_allocator = allocator

    def chunk_opened(self, i: int, node: int, allocator: int, chunk: int, size: int) -> None:
        self.chunk.set(i, (allocator, chunk), allocator, small(chunk), 0)
        self.blocks.set(i, allocator, chunk, 0, size, FREE)

    def chunk_grown(self, i: int, node: int, allocator: int, chunk: int, size_before: int, size: int) -> None:
        self.chunk.set(i, (allocator, chunk), allocator, small(chunk), size)

    def search_begin(self, i: int, node: int, allocator: int, tensor: int, asked: int, size: int) -> None:
        self._asked[allocator] = size

    def block_chosen(self, i: int, node: int, allocator: int, tensor: int, *rest: int) -> None:
        self._chosen[allocator] = tensor if tensor >= 0 else UNKNOWN
        self._last_allocator = allocator

    def block_split(
        self, i: int, node: int, allocator: int, chunk: int, block: int, offset: int, size: int, taken: int
    ) -> None:
        if taken:
            self.blocks.set(i, allocator, chunk, offset - taken, taken, self._chosen.pop(allocator, UNKNOWN))
        self.blocks.set(i, allocator, chunk, offset, size, FREE)

    def block_removed(self, i: int, node: int, allocator: int, chunk: int, block: int, offset: int, size: int) -> None:
        self.blocks.set(i, allocator, chunk, offset, size, self._chosen.pop(allocator, UNKNOWN))

    def block_merged(
        self,
        i: int,
        node: int,
        allocator: int,
        chunk: int,
        block: int,
        offset: int,
        size: int,
        side: int,
        freed_offset: int,
        freed_size: int,
    ) -> None:
        self.blocks.give_back(i, allocator, chunk, offset, size, freed_offset, freed_size)

    def block_inserted(self, i: int, node: int, allocator: int, chunk: int, block: int, offset: int, size: int) -> None:
        self.blocks.give_back(i, allocator, chunk, offset, size, offset, size)

    # the plan

    def reserve_begin(
        self, i: int, node: int, galloc: int, graph: int, why: int, tensor: int, had: int, needed: int
    ) -> None:
        self.reserve.set(i, galloc, galloc, graph, why, tensor, had, needed, 0, 0)
        if self._snapshot and not self.graph.graphs.nodes[graph]:
            # the graph it was made for is gone: nothing that stands has a place in it
            self.plan = None
            return
        self._new_plan(i, graph, galloc)

    def _new_plan(self, i: int, graph: int, galloc: int) -> Plan:
        self.life.clear_all(i)
        self.live.begin(i)
        position = self.graph.graphs.position[graph] if graph >= 0 else {}
        self.plan = Plan(self.n_plans, graph, galloc, position)
        self.n_plans += 1
        if graph >= 0:
            self.planned[graph] = self.plan
        return self.plan

    def tensor_assigned(
        self, i: int, node: int, galloc: int, tensor: int, buffer_id: int, chunk: int, offset: int, size: int
    ) -> None:
        if galloc >= 0 and not self._snapshot:
            self._allocator_of[galloc, buffer_id] = self._last_allocator
        plan = self.plan
        if plan is None and self._snapshot:
            return
        if plan is None or plan.finished:
            plan = self._new_plan(i, self.computing.graph if self.computing else -1, galloc)
        allocator = self._allocator_of.get((galloc, buffer_id), self._last_allocator)
        plan.allocators[buffer_id] = allocator
        if buffer_id == min(plan.allocators):
            plan.allocator = allocator
        held = self._asked.get(allocator, 0)
        chunk += buffer_id * MAX_CHUNKS
        # the graph allocator places all inputs before the first node
        is_input = galloc >= 0 and tensor >= 0 and self.graph.tensors.flags[tensor] & FLAG_INPUT
        at = 0 if is_input else plan.at(node)
        self._live(i, plan, Life(tensor, chunk, offset, size, at, plan.n_nodes - 1, held=held))
        self.live.take(i, plan, at, held or size)

    def _live(self, i: int, plan: Plan, life: Life) -> None:
        plan.lives[life.tensor] = life
        life.row = self.life.set(
            i,
            (plan.number, life.tensor),
            plan.number,
            life.tensor,
            small(life.chunk),
            life.offset,
            life.size,
            life.first,
            life.last,
            life.reuses,
            life.freed_by,
            plan.allocators.get(life.chunk // MAX_CHUNKS, plan.allocator),
        )

    def _end_life(self, life: Life | None, last: int, freed_by: int) -> None:
        if life is not None:
            life.last, life.freed_by = max(life.first, last), freed_by
            self.life.amend(life.row, "last", life.last)
            self.life.amend(life.row, "freed_by", freed_by)

    def parent_reused(
        self,
        i: int,
        node: int,
        galloc: int,
        tensor: int,
        parent: int,
        buffer_id: int,
        chunk: int,
        offset: int,
        size: int,
    ) -> None:
        if self.plan is None and self._snapshot:
            return
        plan = self.plan or self._new_plan(i, -1, galloc)
        at = plan.at(node)
        before = plan.lives.get(parent)
        self._end_life(before, at - 1, tensor)
        allocator = self._allocator_of.get((galloc, buffer_id), NO_ALLOCATOR)
        held, owner = self.blocks.at(allocator, chunk, offset)
        where = chunk + buffer_id * MAX_CHUNKS
        self._live(i, plan, Life(tensor, where, offset, size, at, plan.n_nodes - 1, reuses=parent, held=held))
        self.live.take(i, plan, at, (held or size) - ((before.held or before.size) if before is not None else 0))
        if owner == parent:
            self.blocks.set(i, allocator, chunk, offset, held, tensor)

    def extra_tail_freed(
        self, i: int, node: int, galloc: int, tensor: int, parent: int, chunk: int, offset: int, size: int
    ) -> None:
        life = self.plan.lives.get(tensor) if self.plan is not None else None
        if self.plan is not None and life is not None:
            life.held -= size
            self.live.take(i, self.plan, life.first, -size)

    def tensor_freed(self, i: int, node: int, galloc: int, tensor: int, *rest: int) -> None:
        self._freed(i, tensor, rest[-1])

    def _freed(self, i: int, tensor: int, by: int) -> None:
        life = self.plan.lives.get(tensor) if self.plan is not None else None
        if self.plan is not None and life is not None:
            self._end_life(life, self.plan.at(by), by)
            self.live.give_back(i, self.plan, self.plan.at(by), life.held or life.size)

    def released(self, i: int, node: int, graph: int, tensor: int, chunk: int, offset: int, size: int) -> None:
        self._freed(i, tensor, node)

    def reserve_end(self, i: int, node: int, galloc: int, graph: int, sizes: tuple[int, ...], realloc: int) -> None:
        held = self.reserve.open.get(galloc)
        if held is not None:
            self.reserve.amend(held[0], "size", sum(sizes))
            self.reserve.amend(held[0], "anew", realloc)
        self.reserve.clear(i + 1, galloc)
        self._finish_plan(i)

    def _finish_plan(self, i: int) -> None:
        if self.plan is not None and not self.plan.finished:
            self.plan.finished = True
            self.live.reach(i, self.plan, self.plan.n_nodes - 1)

    def alloc_graph_end(self, i: int, node: int, galloc: int, graph: int, reserved: int) -> None:
        """The plan of another graph serves this one: the same places, other tensors."""
        if graph not in self.planned:
            self._plan_from_placement(i, graph, galloc)

    def _plan_from_placement(self, i: int, graph: int, galloc: int) -> None:
        compute = {buffer for buffer, usage in self.usage.items() if usage == "compute"}
        allocators = {b: a for (g, b), a in self._allocator_of.items() if g == galloc}
        lives = lives_of_placement(self.graph, graph, self.place, compute, len(allocators))
        if not lives:
            return
        plan = self._new_plan(i, graph, galloc)
        plan.finished = True
        plan.allocators = allocators
        known = self._allocator_of.get((galloc, 0))
        plan.allocator = self._allocator_behind(lives) if known is None else known
        for life in lives:
            self._live(i, plan, life)
        self.live.whole(i, plan)

    def _allocator_behind(self, lives: list[Life]) -> int:
        """The allocator that planned the buffers in which these tensors lie, told by its chunks' sizes.

        No event of a recording begun later says which it was. Of several that fit, the last.
        """
        buffers = sorted({int(self.place.value(life.tensor, "buffer")) for life in lives})
        sizes = [self.buffer.value(buffer, "size") for buffer in buffers]
        chunks: dict[int, list[float]] = {}
        for _, (allocator, _, size) in self.chunk.open.values():
            chunks.setdefault(int(allocator), []).append(size)
        return max((a for a, planned in chunks.items() if planned == sizes), default=self._last_allocator)

    # computing by the plan

    def compute_begin(self, i: int, node: int, graph: int, n_nodes: int, n_threads: int) -> None:
        plan = self.planned.get(graph) or self._plan_of_whole(graph)
        if plan is None:
            self._plan_from_placement(i, graph, -1)
            plan = self.planned.get(graph)
        if plan is None:
            # nothing was planned: what is placed from here on is placed while computing
            self.computing = Plan(-1, graph, -1, self.graph.graphs.position[graph] if graph >= 0 else {})
            return
        self.computing = plan
        nodes = self.graph.graphs.nodes[graph]
        plan.begin_compute()
        self._show(i, plan, plan.advance(plan.at(nodes[0]) if nodes else 0), fresh=True)

    def _plan_of_whole(self, graph: int) -> Plan | None:
        """The plan by which a graph is computed that is one split of a planned graph."""
        nodes = self.graph.graphs.nodes[graph] if graph >= 0 else ()
        for plan in reversed(self.planned.values()):
            if nodes and all(tensor in plan.position for tensor in nodes):
                return plan
        return None

    def node_begin(self, i: int, node: int, graph: int, tensor: int, thread: int, ns: int) -> None:
        self._advance(i, graph, tensor)

    def node_skipped(self, i: int, node: int, graph: int, tensor: int, why: int) -> None:
        self._advance(i, graph, tensor)

    def _advance(self, i: int, graph: int, tensor: int) -> None:
        plan = self.computing
        if plan is not None and plan.number >= 0 and (plan.graph == graph or tensor in plan.position):
            self._show(i, plan, plan.advance(plan.at(tensor)))

    def compute_end(self, i: int, node: int, graph: int, ns: int) -> None:
        self.computing = None
        self._finish_plan(i)

    def _show(self, i: int, plan: Plan, chunks: Iterable[int], fresh: bool = False) -> None:
        """Draw the chunks that changed anew: what lives there now, and the gaps between."""
        for allocator in {plan.allocator, *plan.allocators.values()} if fresh else ():
            self.blocks.clear_allocator(i, allocator)
        for number in chunks:
            buffer, chunk = divmod(number, MAX_CHUNKS)
            allocator = plan.allocators.get(buffer, plan.allocator)
            size = max(int(self.chunk.value((allocator, chunk), "size", 0)), plan.chunk_ends[number])
            self.chunk.set(i, (allocator, chunk), allocator, small(chunk), size)
            self.blocks.show(i, allocator, chunk, plan.tiles(number, size))
