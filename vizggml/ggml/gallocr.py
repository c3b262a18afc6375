"""The graph allocator: one plan of memory for a whole graph, made before anything is computed.

It walks the nodes in execution order, gives each the place where the free-list allocator puts it, and takes the place
back once the last node that needs it has been planned. A node may take over the place of a parent that nobody else
needs. Views are never placed: they lie where their source does.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from vizggml.errors import VizggmlError
from vizggml.events import (
    NO_SEQ,
    NO_TENSOR,
    AllocGraphBegin,
    AllocGraphEnd,
    ChildrenChanged,
    ExtraTailFreed,
    GallocId,
    OutputKept,
    ParentRefused,
    ParentReused,
    ReserveBegin,
    ReserveEnd,
    Seq,
    TensorAssigned,
    TensorFreed,
    TensorId,
    bus,
)
from vizggml.ggml.buffer import Buffer, BufferType, view_init
from vizggml.ggml.cgraph import Graph
from vizggml.ggml.tallocr import DynTallocr
from vizggml.ggml.tensor import Tensor
from vizggml.ggml.types import FLAG_INPUT, FLAG_OUTPUT, pad

CAN_INPLACE = frozenset(
    """
    FILL SCALE DIAG_MASK_ZERO DIAG_MASK_INF ADD ADD_ID ADD1 SUB MUL DIV SQR SQRT LOG UNARY ROPE ROPE_BACK SILU_BACK
    RMS_NORM RMS_NORM_BACK CLAMP SOFT_MAX SOFT_MAX_BACK
    """.split()
)
"""The ops whose result may lie where a source lies. `ggml_op_can_inplace`, ggml/src/ggml-alloc.c."""


@dataclass(slots=True)
class HashNode:
    """`struct hash_node`, ggml/src/ggml-alloc.c: what is known of a tensor while planning.

    `allocated` while the tensor holds its place. `placed` says that it was given one, of `size` bytes, `reuses` from
    which parent it took it over, if any.
    """

    n_children: int = 0
    n_views: int = 0
    buffer_id: int = 0
    chunk: int = 0
    offset: int = 0
    allocated: bool = False
    placed: bool = False
    size: int = 0
    reuses: TensorId = NO_TENSOR


class TensorAlloc(NamedTuple):
    """`struct tensor_alloc`, ggml/src/ggml-alloc.c. `size_max` 0: a view, or memory of its own."""

    buffer_id: int
    chunk: int
    offset: int
    size_max: int


_ids = itertools.count()

NOT_OURS = TensorAlloc(-1, -1, -1, 0)


class Misfit(NamedTuple):
    """Why the plan does not serve a graph: `needed` where `had` was planned, of `tensor` if it is one tensor."""

    why: str
    tensor: TensorId
    had: int
    needed: int


ASKED = Misfit("asked", NO_TENSOR, 0, 0)


class GraphAllocator:
    """`ggml_gallocr_new_n`, ggml/src/ggml-alloc.c: plans over one or several buffer types.

    With `in_place` off no node takes over a parent's place: a switch for teaching, not in ggml.
    """

    def __init__(self, bufts: BufferType | Sequence[BufferType], *, in_place: bool = True) -> None:
        self.id = GallocId(next(_ids))
        self.bufts = [bufts] if isinstance(bufts, BufferType) else list(bufts)
        self.in_place = in_place
        self.buf_tallocs: list[DynTallocr] = []
        for i, buft in enumerate(self.bufts):
            first = self.bufts.index(buft)
            shared = self.buf_tallocs[first] if first < i else DynTallocr(buft.alignment, buft.max_size)
            self.buf_tallocs.append(shared)
        self.buffers: list[list[Buffer] | None] = [None] * len(self.bufts)
        self.hash_values: defaultdict[TensorId, HashNode] = defaultdict(HashNode)
        self.node_allocs: list[tuple[TensorAlloc, list[TensorAlloc]]] = []
        self.leaf_allocs: list[TensorAlloc] = []

    def __repr__(self) -> str:
        return f"<GraphAllocator {self.id}: {', '.join(b.name for b in self.bufts)}>"

    def reserve(self, graph: Graph) -> None:
        """Plan `graph` and get the memory that it needs. `ggml_gallocr_reserve`, ggml/src/ggml-alloc.c."""
        self.reserve_n(graph)

    def reserve_n(
        self,
        graph: Graph,
        node_buffer_ids: Sequence[int] | None = None,
        leaf_buffer_ids: Sequence[int] | None = None,
        misfit: Misfit = ASKED,
    ) -> None:
        """The same, with a buffer type for each node and leaf. `ggml_gallocr_reserve_n`, ggml/src/ggml-alloc.c.

        `misfit` is why the last plan does not serve, to be told. VizggmlError if the memory is not to be had.
        """
        self._reserve(graph, node_buffer_ids, leaf_buffer_ids, False, misfit)

    def reserve_n_size(
        self, graph: Graph, node_buffer_ids: Sequence[int] | None = None, leaf_buffer_ids: Sequence[int] | None = None
    ) -> list[int]:
        """Only plan: the bytes of each buffer. `ggml_gallocr_reserve_n_size`, ggml/src/ggml-alloc.c."""
        self._reserve(graph, node_buffer_ids, leaf_buffer_ids, True, ASKED)
        return [sum(sizes) for sizes in self.chunk_sizes()]

    def chunk_sizes(self) -> list[list[int]]:
        """The bytes that the plan needs: of each buffer, of each of its chunks."""
        return [[chunk.max_size for chunk in talloc.chunks] for talloc in self.buf_tallocs]

    def _reserve(
        self,
        graph: Graph,
        node_buffer_ids: Sequence[int] | None,
        leaf_buffer_ids: Sequence[int] | None,
        no_alloc: bool,
        misfit: Misfit,
    ) -> None:
        """`ggml_gallocr_reserve_n_impl`, ggml/src/ggml-alloc.c."""
        cause = bus.cause
        if bus.on:
            bus.cause = bus.emit(ReserveBegin(self.id, graph.id, *misfit))
        try:
            for talloc in dict.fromkeys(self.buf_tallocs):
                talloc.reset()
            self.alloc_graph_impl(graph, node_buffer_ids, leaf_buffer_ids)
            self._keep_plan(graph)
            realloc = self._alloc_buffers(graph, no_alloc)
            if bus.on:
                sizes = tuple(size for i in self._own_buffers() for size in self.chunk_sizes()[i])
                bus.emit(ReserveEnd(self.id, graph.id, sizes, realloc))
        finally:
            bus.cause = cause
            bus.node = NO_TENSOR

    def alloc_graph_impl(
        self, graph: Graph, node_buffer_ids: Sequence[int] | None, leaf_buffer_ids: Sequence[int] | None
    ) -> None:
        """Decide where everything goes. `ggml_gallocr_alloc_graph_impl`, ggml/src/ggml-alloc.c."""
        self.hash_values.clear()
        for i, leaf in enumerate(graph.leafs):
            bus.node = leaf.id
            self.allocate_node(leaf, leaf_buffer_ids[i] if leaf_buffer_ids else 0)
        self._count_and_place_inputs(graph, node_buffer_ids)
        for i, node in enumerate(graph.nodes):
            buffer_id = node_buffer_ids[i] if node_buffer_ids else 0
            bus.node = node.id
            for parent in node.src:
                if parent is not None:
                    self.allocate_node(parent, buffer_id)
            placed = self.allocate_node(node, buffer_id)
            for parent in node.src:
                if parent is not None:
                    self._release_parent(parent, node, placed)

    def _count_and_place_inputs(self, graph: Graph, node_buffer_ids: Sequence[int] | None) -> None:
        """Count children and views, and place all inputs before any result, so that none is overwritten."""
        values = self.hash_values
        for i, node in enumerate(graph.nodes):
            buffer_id = node_buffer_ids[i] if node_buffer_ids else 0
            bus.node = node.id
            # a node without an op stands in the order only to say until when its sources must live
            if node.view_src is not None and node.op != "NONE":
                values[node.view_src.id].n_views += 1
                if bus.on:
                    self._children_changed(node.view_src)
            if node.flags & FLAG_INPUT:
                self.allocate_node(node, buffer_id)
            for src in node.src:
                if src is not None:
                    values[src.id].n_children += 1
                    if bus.on:
                        self._children_changed(src)
                    if src.flags & FLAG_INPUT:
                        self.allocate_node(src, buffer_id)

    def _children_changed(self, t: Tensor, cause: Seq = NO_SEQ) -> Seq:
        hn = self.hash_values[t.id]
        told = ChildrenChanged(self.id, t.id, hn.n_children, hn.n_views)
        return bus.emit(told, cause=cause if cause != NO_SEQ else None)

    def _release_parent(self, parent: Tensor, node: Tensor, placed: Seq) -> None:
        """`node` has been planned, which event `placed` told: one use of `parent` less."""
        hn = self.hash_values[parent.id]
        hn.n_children -= 1
        told = self._children_changed(parent, placed) if bus.on else NO_SEQ
        if hn.n_children or hn.n_views:
            return
        view_src = parent.view_src
        if view_src is None:
            if hn.allocated:
                self.free_node(parent, node, told)
            return
        src_hn = self.hash_values[view_src.id]
        src_hn.n_views -= 1
        if bus.on:
            told = self._children_changed(view_src, told)
        if src_hn.n_views == 0 and src_hn.n_children == 0 and src_hn.allocated:
            self.free_node(view_src, node, told)

    def is_own(self, t: Tensor) -> bool:
        """Whether the allocator has placed `t` and not yet freed its place.

        `ggml_gallocr_is_own`, ggml/src/ggml-alloc.c.
        """
        return self.hash_values[t.id].allocated

    def is_allocated(self, t: Tensor) -> bool:
        """Whether `t` has memory: bytes, a buffer, or a place of this allocator.

        `ggml_gallocr_is_allocated`, ggml/src/ggml-alloc.c.
        """
        return t.data is not None or t.buffer is not None or self.is_own(t)

    def allocate_node(self, node: Tensor, buffer_id: int) -> Seq:
        """Give `node` a place unless it has one, or is a view. `ggml_gallocr_allocate_node`, ggml/src/ggml-alloc.c.

        The answer is the event that tells where, if one was emitted.
        """
        if node.view_src is not None or self.is_allocated(node):
            return NO_SEQ
        if not 0 <= buffer_id < len(self.bufts):
            raise VizggmlError(f"tensor {node.name!r}: buffer id {buffer_id} is not one of {len(self.bufts)}")
        hn = self.hash_values[node.id]
        hn.allocated = hn.placed = True
        reused, told = self._reuse_parent(node, hn)
        if reused:
            return told
        hn.buffer_id = buffer_id
        hn.size = self.bufts[buffer_id].get_alloc_size(node)
        hn.chunk, hn.offset = self.buf_tallocs[buffer_id].alloc(hn.size, node)
        if not bus.on:
            return NO_SEQ
        chosen = self.buf_tallocs[buffer_id].told_choice
        return bus.emit(TensorAssigned(self.id, node.id, buffer_id, hn.chunk, hn.offset, hn.size), cause=chosen)

    def _reuse_parent(self, node: Tensor, hn: HashNode) -> tuple[bool, Seq]:
        """Let `node` take over the place of the first parent that allows it; the event that tells so."""
        for parent in node.src:
            if parent is None:
                continue
            why = self._refusal(node, parent)
            if why:
                if bus.on:
                    bus.emit(ParentRefused(self.id, node.id, parent.id, why))
                continue
            p_hn = self.hash_values[parent.id]
            hn.buffer_id, hn.chunk, hn.offset = p_hn.buffer_id, p_hn.chunk, p_hn.offset
            hn.size = self.bufts[hn.buffer_id].get_alloc_size(node)
            hn.reuses = parent.id
            p_hn.allocated = False
            told = NO_SEQ
            if bus.on:
                event = ParentReused(self.id, node.id, parent.id, hn.buffer_id, hn.chunk, hn.offset, hn.size)
                told = bus.emit(event)
            self.free_extra_space(node, parent)
            return True, told
        return False, NO_SEQ

    def _refusal(self, node: Tensor, parent: Tensor) -> str:
        """Why `node` cannot lie where `parent` lies; empty if it can.

        A view never counts as allocated, so a parent that is a view is refused as external.
        """
        if node.op not in CAN_INPLACE:
            return "op cannot"
        if not self.in_place:
            return "reuse off"
        p_hn = self.hash_values[parent.id]
        if not p_hn.allocated:
            return "external"
        if parent.flags & FLAG_OUTPUT:
            return "output"
        if node.type is not parent.type or node.ne != parent.ne or node.nb != parent.nb:
            return "layout"
        if p_hn.n_children != 1:
            return "children"
        return "views" if p_hn.n_views else ""

    def free_extra_space(self, node: Tensor, parent: Tensor) -> None:
        """`node` needs less than `parent` had: the tail is free.

        `ggml_gallocr_free_extra_space`, ggml/src/ggml-alloc.c.
        """
        hn, p_hn = self.hash_values[node.id], self.hash_values[parent.id]
        talloc = self.buf_tallocs[p_hn.buffer_id]
        parent_size, node_size = pad(p_hn.size, talloc.alignment), pad(hn.size, talloc.alignment)
        if node_size > parent_size:
            raise VizggmlError(
                f"tensor {node.name!r}: {hn.size} bytes do not fit where {parent.name!r} has {p_hn.size}"
            )
        if parent_size > node_size:
            offset, size = p_hn.offset + node_size, parent_size - node_size
            cause = bus.cause
            if bus.on:
                bus.cause = bus.emit(ExtraTailFreed(self.id, node.id, parent.id, p_hn.chunk, offset, size))
            talloc.free_bytes((p_hn.chunk, offset), size)
            bus.cause = cause

    def free_node(self, t: Tensor, by: Tensor, unused: Seq) -> None:
        """Take the place of `t` back, unless it is an output. `ggml_gallocr_free_node`, ggml/src/ggml-alloc.c.

        `unused` is the event that told that nobody needs it after `by`.
        """
        if t.flags & FLAG_OUTPUT:
            if bus.on:
                bus.emit(OutputKept(self.id, t.id), cause=unused)
            return
        hn = self.hash_values[t.id]
        cause = bus.cause
        if bus.on:
            event = TensorFreed(self.id, t.id, hn.buffer_id, hn.chunk, hn.offset, hn.size, by.id)
            bus.cause = bus.emit(event, cause=unused)
        self.buf_tallocs[hn.buffer_id].free_bytes((hn.chunk, hn.offset), hn.size)
        bus.cause = cause
        hn.allocated = False

    def _keep_plan(self, graph: Graph) -> None:
        """Note for each node, source and leaf where it goes: all that the next graph of this shape will need."""
        self.node_allocs = [
            (self._tensor_alloc(node), [NOT_OURS if src is None else self._tensor_alloc(src) for src in node.src])
            for node in graph.nodes
        ]
        self.leaf_allocs = [self._tensor_alloc(leaf) for leaf in graph.leafs]

    def _tensor_alloc(self, t: Tensor) -> TensorAlloc:
        if t.view_src is not None or t.data is not None:
            return NOT_OURS
        hn = self.hash_values[t.id]
        size = hn.size if hn.placed else self.bufts[hn.buffer_id].get_alloc_size(t)
        return TensorAlloc(hn.buffer_id, hn.chunk, hn.offset, size)

    def _own_buffers(self) -> list[int]:
        """The buffers that do not share their allocator with an earlier one."""
        return [i for i, talloc in enumerate(self.buf_tallocs) if self.buf_tallocs.index(talloc) == i]

    def _alloc_buffers(self, graph: Graph, no_alloc: bool) -> bool:
        """Replace the buffers that are too small for the plan; whether any was."""
        changed = False
        for i in self._own_buffers():
            sizes = self.chunk_sizes()[i]
            standing = self.buffers[i]
            if standing is not None and all(
                size <= (standing[c].size if c < len(standing) else 0) for c, size in enumerate(sizes)
            ):
                continue
            changed = True
            for buffer in standing or ():
                buffer.free()
            self._set_buffers(i, None)
            if not no_alloc:
                self._set_buffers(i, [self._alloc_chunk(graph, i, c, size) for c, size in enumerate(sizes)])
        return changed

    def _set_buffers(self, i: int, buffers: list[Buffer] | None) -> None:
        for j, talloc in enumerate(self.buf_tallocs):
            if talloc is self.buf_tallocs[i]:
                self.buffers[j] = buffers

    def _alloc_chunk(self, graph: Graph, i: int, c: int, size: int) -> Buffer:
        """The memory of one chunk. VizggmlError with what it was for, if there is none."""
        try:
            return self.bufts[i].alloc_buffer(size, "compute")
        except VizggmlError as error:
            placed = [(t, self.hash_values[t.id]) for t in (*graph.leafs, *graph.nodes)]
            there = [(hn.size, t.name) for t, hn in placed if hn.placed and (hn.buffer_id, hn.chunk) == (i, c)]
            largest = sorted(there, key=lambda entry: -entry[0])[:3]
            named = ", ".join(f"{name!r} ({nbytes} bytes)" for nbytes, name in largest)
            raise VizggmlError(
                f"{error}; it is chunk {c} of the plan of graph {graph.id}, whose largest tensors are {named}"
            ) from None

    # using the plan

    def needs_realloc(self, graph: Graph) -> Misfit | None:
        """Why the plan does not serve `graph`, if so. `ggml_gallocr_needs_realloc`, ggml/src/ggml-alloc.c."""
        if len(self.node_allocs) != len(graph.nodes):
            return Misfit("node count", NO_TENSOR, len(self.node_allocs), len(graph.nodes))
        if len(self.leaf_allocs) != len(graph.leafs):
            return Misfit("leaf count", NO_TENSOR, len(self.leaf_allocs), len(graph.leafs))
        for node, (dst, srcs) in zip(graph.nodes, self.node_allocs, strict=True):
            misfit = self._misfit(node, dst)
            for j, src in enumerate(node.src):
                if misfit is None and src is not None:
                    misfit = self._misfit(src, srcs[j] if j < len(srcs) else NOT_OURS)
            if misfit is not None:
                return misfit
        return None

    def _misfit(self, t: Tensor, planned: TensorAlloc) -> Misfit | None:
        """`ggml_gallocr_node_needs_realloc`, ggml/src/ggml-alloc.c (whose answer is the other way round)."""
        if t.data is not None or t.view_src is not None:
            return None
        needed = self.bufts[max(planned.buffer_id, 0)].get_alloc_size(t)
        if planned.buffer_id >= 0 and planned.size_max >= needed:
            return None
        return Misfit("tensor size", t.id, planned.size_max, needed)

    def alloc_graph(self, graph: Graph) -> bool:
        """Place the tensors of `graph` where the plan says, planning anew first if it does not fit.

        `ggml_gallocr_alloc_graph`, ggml/src/ggml-alloc.c. False if the plan does not fit and there are several buffers:
        then `reserve_n` must be called first.
        """
        cause = bus.cause
        if bus.on:
            bus.cause = bus.emit(AllocGraphBegin(self.id, graph.id))
        try:
            misfit = self.needs_realloc(graph)
            if misfit is not None:
                if len(self.bufts) > 1:
                    return False
                self._reserve(graph, None, None, False, misfit)
            for leaf, planned in zip(graph.leafs, self.leaf_allocs, strict=True):
                self.init_tensor(leaf, planned)
            for node, (dst, srcs) in zip(graph.nodes, self.node_allocs, strict=True):
                for j, src in enumerate(node.src):
                    if src is not None:
                        self.init_tensor(src, srcs[j] if j < len(srcs) else NOT_OURS)
                self.init_tensor(node, dst)
            if bus.on:
                bus.emit(AllocGraphEnd(self.id, graph.id, misfit is not None))
        finally:
            bus.cause = cause
        return True

    def init_tensor(self, t: Tensor, planned: TensorAlloc) -> None:
        """Place one tensor, unless it has its memory. `ggml_gallocr_init_tensor`, ggml/src/ggml-alloc.c."""
        if t.view_src is not None:
            # a source without a buffer has its bytes in a context's arena, and the view pointed there from the start
            if t.buffer is None and t.view_src.buffer is not None:
                view_init(t)
        elif t.data is None:
            buffers = self.buffers[planned.buffer_id] if planned.buffer_id >= 0 else None
            if buffers is None:
                raise VizggmlError(f"tensor {t.name!r}: no memory is reserved for it")
            buffers[planned.chunk].tensor_alloc(t, planned.offset)

    def get_buffer_size(self, buffer_id: int = 0) -> int:
        """Bytes of the memory held. `ggml_gallocr_get_buffer_size`, ggml/src/ggml-alloc.c.

        0 for a buffer that shares an earlier one's memory, so that nothing is counted twice.
        """
        if not 0 <= buffer_id < len(self.bufts):
            raise VizggmlError(f"buffer id {buffer_id} is not one of {len(self.bufts)}")
        buffers = self.buffers[buffer_id] if buffer_id in self._own_buffers() else None
        return sum(buffer.size for buffer in buffers or ())

    def free(self) -> None:
        """Give the memory back. `ggml_gallocr_free`, ggml/src/ggml-alloc.c."""
        for i in self._own_buffers():
            for buffer in self.buffers[i] or ():
                buffer.free()
        self.buffers = [None] * len(self.bufts)
