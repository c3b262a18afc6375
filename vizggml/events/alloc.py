"""The events of planning memory: free lists, the graph allocator, the compute plan.

Sizes and offsets are bytes. `ne` and `nb` are in ggml's order, `ne[0]` fastest. An id of -1 means none.
"""

from __future__ import annotations

from vizggml.events.bus import AllocatorId, Event, GallocId, GraphId, TensorId, event


@event("free list", "ggml_dyn_tallocr_reset, ggml/src/ggml-alloc.c", "vizggml/ggml/tallocr.py: DynTallocr.reset")
class AllocatorReset(Event):
    """The free lists begin again: every chunk is one free block."""

    allocator: AllocatorId


@event("free list", "ggml_dyn_tallocr_alloc, ggml/src/ggml-alloc.c", "vizggml/ggml/tallocr.py: DynTallocr.alloc")
class SearchBegin(Event):
    """A place in planned memory is looked for. `size` is `asked` rounded up to the alignment."""

    allocator: AllocatorId
    tensor: TensorId
    asked: int
    size: int


@event("free list", "ggml_dyn_tallocr_alloc, ggml/src/ggml-alloc.c", "vizggml/ggml/tallocr.py: DynTallocr.alloc")
class BlockConsidered(Event):
    """A free block was looked at.

    `phase` is best fit or last block; `verdict` best so far, too small, larger than the best or not better.

    `reuse_factor` counts in the second phase only: below 0, the bytes that the chunk must grow.
    """

    allocator: AllocatorId
    phase: str
    chunk: int
    block: int
    offset: int
    size: int
    reuse_factor: int
    verdict: str


@event("free list", "ggml_dyn_tallocr_alloc, ggml/src/ggml-alloc.c", "vizggml/ggml/tallocr.py: DynTallocr.alloc")
class BlockChosen(Event):
    """The free block that the tensor gets, or its front.

    `rule` is best fit, last block or new chunk (where none has room); `exact` if all of the block is used.
    """

    allocator: AllocatorId
    tensor: TensorId
    chunk: int
    block: int
    offset: int
    size: int
    rule: str
    exact: bool
    reuse_factor: int


@event("free list", "ggml_dyn_tallocr_alloc, ggml/src/ggml-alloc.c", "vizggml/ggml/tallocr.py: DynTallocr.alloc")
class BlockSplit(Event):
    """The tensor took the front of a block. `offset`, `size` are what is left of the block after `taken` bytes."""

    allocator: AllocatorId
    chunk: int
    block: int
    offset: int
    size: int
    taken: int


@event(
    "free list",
    "ggml_dyn_tallocr_remove_block, ggml/src/ggml-alloc.c",
    "vizggml/ggml/tallocr.py: DynTallocr.remove_block",
)
class BlockRemoved(Event):
    """An exact fit used the whole block up."""

    allocator: AllocatorId
    chunk: int
    block: int
    offset: int
    size: int


@event(
    "free list",
    "ggml_dyn_tallocr_free_bytes, ggml/src/ggml-alloc.c",
    "vizggml/ggml/tallocr.py: DynTallocr.free_bytes",
)
class BlockMerged(Event):
    """Freed bytes joined their neighbour; `side` is previous, next or both. `offset`, `size` are the merged block's."""

    allocator: AllocatorId
    chunk: int
    block: int
    offset: int
    size: int
    side: str
    freed_offset: int
    freed_size: int


@event(
    "free list",
    "ggml_dyn_tallocr_insert_block, ggml/src/ggml-alloc.c",
    "vizggml/ggml/tallocr.py: DynTallocr.insert_block",
)
class BlockInserted(Event):
    """Freed bytes with no free neighbour became a block of their own."""

    allocator: AllocatorId
    chunk: int
    block: int
    offset: int
    size: int


@event("free list", "ggml_dyn_tallocr_alloc, ggml/src/ggml-alloc.c", "vizggml/ggml/tallocr.py: DynTallocr.alloc")
class ChunkGrown(Event):
    """The chunk's high-water mark rose: so much memory will be allocated for it."""

    allocator: AllocatorId
    chunk: int
    size_before: int
    size: int


@event(
    "free list",
    "ggml_dyn_tallocr_new_chunk, ggml/src/ggml-alloc.c",
    "vizggml/ggml/tallocr.py: DynTallocr.new_chunk",
)
class ChunkOpened(Event):
    """One more piece of memory is planned. `size` is the room of the chunk's one free block."""

    allocator: AllocatorId
    chunk: int
    size: int


@event(
    "galloc",
    "ggml_gallocr_reserve_n_impl, ggml/src/ggml-alloc.c",
    "vizggml/ggml/gallocr.py: GraphAllocator.reserve_n",
)
class ReserveBegin(Event):
    """The memory of a graph is planned.

    `why` is asked, node count, leaf count, tensor size or backend: `needed` where `had` was planned.

    `tensor` is the first that does not fit, if it is one; of a backend, the two numbers are its place in the order.
    """

    galloc: GallocId
    graph: GraphId
    why: str
    tensor: TensorId
    had: int
    needed: int


@event(
    "galloc",
    "ggml_gallocr_reserve_n_impl, ggml/src/ggml-alloc.c",
    "vizggml/ggml/gallocr.py: GraphAllocator.reserve_n",
)
class ReserveEnd(Event):
    """Bytes of each chunk of all buffers, and whether a buffer was allocated anew."""

    galloc: GallocId
    graph: GraphId
    sizes: tuple[int, ...]
    realloc: bool


@event(
    "galloc",
    "ggml_gallocr_alloc_graph_impl, ggml/src/ggml-alloc.c",
    "vizggml/ggml/gallocr.py: GraphAllocator.alloc_graph_impl",
)
class ChildrenChanged(Event):
    """How often the tensor, or a view of it, is still to be read: at 0 it is freed."""

    galloc: GallocId
    tensor: TensorId
    n_children: int
    n_views: int


@event(
    "galloc",
    "ggml_gallocr_allocate_node, ggml/src/ggml-alloc.c",
    "vizggml/ggml/gallocr.py: GraphAllocator.allocate_node",
)
class ParentReused(Event):
    """The node takes over the memory of a source that nothing else reads."""

    galloc: GallocId
    tensor: TensorId
    parent: TensorId
    buffer_id: int
    chunk: int
    offset: int
    size: int


@event(
    "galloc",
    "ggml_gallocr_allocate_node, ggml/src/ggml-alloc.c",
    "vizggml/ggml/gallocr.py: GraphAllocator.allocate_node",
)
class ParentRefused(Event):
    """The node cannot be written over this source.

    `why` is external, output, layout, children, views, op cannot or reuse off.
    """

    galloc: GallocId
    tensor: TensorId
    parent: TensorId
    why: str


@event(
    "galloc",
    "ggml_gallocr_free_extra_space, ggml/src/ggml-alloc.c",
    "vizggml/ggml/gallocr.py: GraphAllocator.free_extra_space",
)
class ExtraTailFreed(Event):
    """The node is smaller than the source whose memory it took over: the rest is free."""

    galloc: GallocId
    tensor: TensorId
    parent: TensorId
    chunk: int
    offset: int
    size: int


@event(
    "galloc",
    "ggml_gallocr_allocate_node, ggml/src/ggml-alloc.c",
    "vizggml/ggml/gallocr.py: GraphAllocator.allocate_node",
)
class TensorAssigned(Event):
    """The plan has a place for the tensor."""

    galloc: GallocId
    tensor: TensorId
    buffer_id: int
    chunk: int
    offset: int
    size: int


@event("galloc", "ggml_gallocr_free_node, ggml/src/ggml-alloc.c", "vizggml/ggml/gallocr.py: GraphAllocator.free_node")
class TensorFreed(Event):
    """The place of a tensor that nothing reads any more is free again.

    `by` is the node whose computation was the last use.
    """

    galloc: GallocId
    tensor: TensorId
    buffer_id: int
    chunk: int
    offset: int
    size: int
    by: TensorId


@event("galloc", "ggml_gallocr_free_node, ggml/src/ggml-alloc.c", "vizggml/ggml/gallocr.py: GraphAllocator.free_node")
class OutputKept(Event):
    """Nothing reads the tensor any more, but it is an output: its memory is kept."""

    galloc: GallocId
    tensor: TensorId


@event(
    "galloc",
    "ggml_gallocr_alloc_graph, ggml/src/ggml-alloc.c",
    "vizggml/ggml/gallocr.py: GraphAllocator.alloc_graph",
)
class AllocGraphBegin(Event):
    """The tensors of a graph are to get their addresses, by the plan that stands if it fits."""

    galloc: GallocId
    graph: GraphId


@event(
    "galloc",
    "ggml_gallocr_alloc_graph, ggml/src/ggml-alloc.c",
    "vizggml/ggml/gallocr.py: GraphAllocator.alloc_graph",
)
class AllocGraphEnd(Event):
    """Every tensor of the graph has its address."""

    galloc: GallocId
    graph: GraphId
    reserved: bool


@event("plan", "ggml_graph_plan, ggml/src/ggml-cpu/ggml-cpu.c", "vizggml/ggml/cplan.py: graph_plan")
class NodePlanned(Event):
    """How many threads a node gets, and how much scratch memory.

    `terms` is the formula with its numbers; `work_size` what this node needs, before the padding between threads.
    """

    graph: GraphId
    tensor: TensorId
    n_tasks: int
    work_size: int
    terms: str


@event("plan", "ggml_graph_plan, ggml/src/ggml-cpu/ggml-cpu.c", "vizggml/ggml/cplan.py: graph_plan")
class PlanMaximum(Event):
    """This node needs more scratch than any before it."""

    graph: GraphId
    tensor: TensorId
    work_size: int


@event("plan", "ggml_graph_plan, ggml/src/ggml-cpu/ggml-cpu.c", "vizggml/ggml/cplan.py: graph_plan")
class PlanEnd(Event):
    """The scratch memory is what the most demanding node needs, and room between the threads."""

    graph: GraphId
    n_threads: int
    work_size: int
    padding: int
