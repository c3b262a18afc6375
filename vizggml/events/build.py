"""The events of building: arena, tensors, graph, buffers.

Sizes and offsets are bytes. `ne` and `nb` are in ggml's order, `ne[0]` fastest. An id of -1 means none.
"""

from __future__ import annotations

from vizggml.events.bus import BufferId, ContextId, Dims, Event, GraphId, TensorId, event


@event("snapshot", "", "vizggml/timeline/record.py: record")
class SnapshotBegin(Event):
    """What stands when the recording begins follows, in the events that would have made it."""


@event("snapshot", "", "vizggml/timeline/record.py: record")
class SnapshotEnd(Event):
    """That was all that stood: what follows is told as it happens."""


@event("arena", "ggml_init, ggml/src/ggml.c", "vizggml/ggml/context.py: Context")
class ContextCreated(Event):
    """An arena was opened: one piece of memory for the records of tensors and graphs."""

    context: ContextId
    mem_size: int
    no_alloc: bool


@event("arena", "ggml_new_object, ggml/src/ggml.c", "vizggml/ggml/context.py: Context.new_object")
class ObjectAppended(Event):
    """A record was appended to the arena.

    `offset` is where the content begins, after the 32-byte object header; `size` includes `padding`.
    """

    context: ContextId
    object_type: str
    offset: int
    size: int
    padding: int


@event("arena", "ggml_reset, ggml/src/ggml.c", "vizggml/ggml/context.py: Context.reset")
class ContextReset(Event):
    """The arena forgot its objects and kept its memory."""

    context: ContextId
    used_mem: int
    n_objects: int


@event("arena", "ggml_free, ggml/src/ggml.c", "vizggml/ggml/context.py: Context.free")
class ContextFreed(Event):
    """The arena's memory was given back, and with it every object in it."""

    context: ContextId
    used_mem: int
    n_objects: int


@event("arena", "ggml_new_object, ggml/src/ggml.c", "vizggml/ggml/context.py: Context.new_object")
class ContextOverflow(Event):
    """The object did not fit; nothing was appended."""

    context: ContextId
    needed: int
    available: int


@event("tensor", "ggml_new_tensor_impl, ggml/src/ggml.c", "vizggml/ggml/context.py: Context.new_tensor")
class TensorCreated(Event):
    """A tensor was recorded in the arena. Whether it has bytes is another matter."""

    tensor: TensorId
    context: ContextId
    type: str
    ne: Dims
    nb: Dims
    nbytes: int


@event("tensor", "ggml_new_tensor_impl, ggml/src/ggml.c", "vizggml/ggml/context.py: Context.new_tensor")
class ViewCreated(Event):
    """The tensor has no bytes of its own and looks into another's.

    `asked_src`, `asked_offs` are what the caller named; `view_src`, `view_offs` what the chain was flattened to.
    """

    tensor: TensorId
    view_src: TensorId
    view_offs: int
    asked_src: TensorId
    asked_offs: int


@event(
    "tensor",
    "ggml_reshape, ggml_view_2d, ggml_permute, ggml_transpose, ggml/src/ggml.c",
    "vizggml/ggml/ops_view.py: view, reshape, permute, transpose",
)
class StridesChanged(Event):
    """The same bytes read in another order; `how` is view, reshape, permute or transpose."""

    tensor: TensorId
    src: TensorId
    how: str
    ne_before: Dims
    nb_before: Dims
    ne: Dims
    nb: Dims


@event("tensor", "ggml_add, ggml_mul_mat, ... (the builders), ggml/src/ggml.c", "vizggml/ggml/op_record.py: record_op")
class OpRecorded(Event):
    """A deferred builder wrote the operation into the tensor; nothing is computed yet. An empty `src` slot is -1."""

    tensor: TensorId
    op: str
    desc: str
    op_params: tuple[int, ...]
    src: tuple[TensorId, ...]
    in_place: bool


@event("tensor", "ggml_set_name, ggml/src/ggml.c", "vizggml/ggml/tensor.py: Tensor.set_name")
class TensorNamed(Event):
    """The tensor got a name, or another one."""

    tensor: TensorId
    name: str


@event("tensor", "ggml_set_input, ggml_set_output, ggml/src/ggml.c", "vizggml/ggml/tensor.py: Tensor.set_flag")
class FlagsSet(Event):
    """The tensor is an input, an output, ... now.

    `flags` is ggml's bit set: INPUT 1, OUTPUT 2, PARAM 4, LOSS 8, COMPUTE 16.
    """

    tensor: TensorId
    flags: int


@event("graph", "ggml_new_graph_custom, ggml/src/ggml.c", "vizggml/ggml/cgraph.py: Graph")
class GraphCreated(Event):
    """An empty graph was recorded in the arena."""

    graph: GraphId
    context: ContextId
    size: int
    hash_size: int


@event("graph", "ggml_reset, ggml/src/ggml.c", "vizggml/ggml/cgraph.py: Graph.freed")
class GraphFreed(Event):
    """The graph went with the context that held it."""

    graph: GraphId


@event("graph", "ggml_build_forward_expand, ggml/src/ggml.c", "vizggml/ggml/cgraph.py: Graph.build_forward_expand")
class ExpandBegin(Event):
    """A tensor, and all that it is computed from, is to be in the graph."""

    graph: GraphId
    root: TensorId


@event("graph", "ggml_build_forward_expand, ggml/src/ggml.c", "vizggml/ggml/cgraph.py: Graph.build_forward_expand")
class ExpandEnd(Event):
    """How many nodes and leafs the expansion added."""

    graph: GraphId
    root: TensorId
    n_nodes: int
    n_leafs: int


@event("graph", "ggml_visit_parents_graph, ggml/src/ggml.c", "vizggml/ggml/cgraph.py: Graph.visit_parents")
class VisitEnter(Event):
    """The depth-first visit meets `tensor` for the first time; it goes to hash `slot` after `probes` collisions."""

    graph: GraphId
    tensor: TensorId
    slot: int
    probes: int


@event("graph", "ggml_hash_find, ggml/src/ggml-impl.h", "vizggml/ggml/cgraph.py: Graph.visit_parents")
class SlotTaken(Event):
    """A collision: the hash `slot` where `tensor` belongs is that of `occupant`, so the next one is tried."""

    graph: GraphId
    tensor: TensorId
    slot: int
    occupant: TensorId


@event("graph", "ggml_visit_parents_graph, ggml/src/ggml.c", "vizggml/ggml/cgraph.py: Graph.visit_parents")
class AlreadyVisited(Event):
    """The visit meets a tensor that the graph has: nothing is added."""

    graph: GraphId
    tensor: TensorId
    slot: int


@event("graph", "ggml_visit_parents_graph, ggml/src/ggml.c", "vizggml/ggml/cgraph.py: Graph.visit_parents")
class LeafAppended(Event):
    """A tensor that no op computes joined the graph."""

    graph: GraphId
    tensor: TensorId
    index: int


@event("graph", "ggml_visit_parents_graph, ggml/src/ggml.c", "vizggml/ggml/cgraph.py: Graph.visit_parents")
class NodeAppended(Event):
    """A tensor that an op computes joined the graph, after all that it reads."""

    graph: GraphId
    tensor: TensorId
    index: int


@event("graph", "ggml_visit_parents_graph, ggml/src/ggml.c", "vizggml/ggml/cgraph.py: Graph.visit_parents")
class UseCountChanged(Event):
    """One more node reads the tensor, or, when memory is released while computing, one less."""

    graph: GraphId
    tensor: TensorId
    use_count: int


@event(
    "buffers",
    "ggml_backend_buft_alloc_buffer, ggml/src/ggml-backend.cpp",
    "vizggml/ggml/buffer.py: BufferType.alloc_buffer",
)
class BufferAllocated(Event):
    """Memory for the bytes of tensors. `usage` is any, weights or compute."""

    buffer: BufferId
    buft: str
    size: int
    usage: str


@event("buffers", "ggml_backend_buffer_free, ggml/src/ggml-backend.cpp", "vizggml/ggml/buffer.py: Buffer.free")
class BufferFreed(Event):
    """The buffer's memory was given back."""

    buffer: BufferId
    size: int


@event(
    "buffers",
    "ggml_backend_alloc_ctx_tensors_from_buft, ggml/src/ggml-alloc.c",
    "vizggml/ggml/buffer.py: alloc_ctx_tensors_from_buft",
)
class PlacementPass(Event):
    """One range of a context's tensors that goes into one buffer."""

    context: ContextId
    buft: str
    index: int
    first: TensorId
    last: TensorId
    size: int


@event("buffers", "ggml_backend_tensor_alloc, ggml/src/ggml-backend.cpp", "vizggml/ggml/buffer.py: Buffer.tensor_alloc")
class TensorPlaced(Event):
    """The tensor got its memory: `offset` in `buffer`. A view is placed where its source is."""

    tensor: TensorId
    buffer: BufferId
    offset: int
    size: int
    view: bool


@event("buffers", "llama_mmap::llama_mmap, src/llama-mmap.cpp", "vizggml/ggml/buffer.py: MappedFile")
class MmapOpened(Event):
    """A file was mapped: its bytes can be read at once, its pages arrive when they are touched."""

    buffer: BufferId
    path: str
    size: int


@event("buffers", "llama_mmap, src/llama-mmap.cpp", "vizggml/ggml/buffer.py: MappedFile.residency")
class PagesResident(Event):
    """Pages of the mapping that this process has touched."""

    buffer: BufferId
    pages: int
    of: int
    page_size: int


@event("buffers", "llama_mmap, src/llama-mmap.cpp", "vizggml/llama/residency.py: tell_layers")
class LayerResident(Event):
    """Of one layer's weights, or of another tensor, the pages in memory; `file_offset` is where it begins."""

    buffer: BufferId
    name: str
    file_offset: int
    pages: int
    of: int
