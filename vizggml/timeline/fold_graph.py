"""The fold of what is built: the static tables, the state of each node, counts, arenas, splits."""

from __future__ import annotations

import re
from array import array
from collections import deque
from collections.abc import Callable
from itertools import pairwise

import numpy as np

from vizggml.ggml.types import TYPES
from vizggml.timeline.columns import Column
from vizggml.timeline.track import Track

VISITED, APPENDED, ASSIGNED, COMPUTING, DONE, FREED, SKIPPED = range(1, 8)
USE_COUNT, N_CHILDREN, N_VIEWS = range(3)
NOT_COPIED = -1
Shape = tuple[int, int, int, int]
NO_SHAPE: Shape = (0, 0, 0, 0)
LAYER_NAME = re.compile(r"^blk\.(\d+)\.|^cache_[kv]_l(\d+)|-(\d+)(?= \(|$)")

Handler = Callable[..., None]


class Tensors:
    """The tensor table while it grows. Text is kept as indices into the string table."""

    def __init__(self) -> None:
        self.name, self.type, self.op, self.desc = array("i"), array("i"), array("i"), array("i")
        self.view_src, self.flags, self.created, self.context = array("i"), array("i"), array("i"), array("i")
        self.nbytes, self.view_offs = array("d"), array("d")
        self.ne: list[Shape] = []
        self.nb: list[Shape] = []
        self.src: list[tuple[int, ...]] = []

    def __len__(self) -> int:
        return len(self.src)

    def grow(self, n: int) -> None:
        """Room for tensors 0 to n - 1."""
        while len(self.src) < n:
            for column in (self.name, self.type, self.op, self.desc, self.view_src, self.created, self.context):
                column.append(-1)
            self.flags.append(0)
            self.nbytes.append(0)
            self.view_offs.append(0)
            self.ne.append(NO_SHAPE)
            self.nb.append(NO_SHAPE)
            self.src.append(())

    def owner(self, tensor: int) -> int:
        """The tensor whose bytes these are: itself, or what it is a view of."""
        return self.view_src[tensor] if 0 <= tensor < len(self) and self.view_src[tensor] >= 0 else tensor

    def columns(self, strings: list[str], external: set[int]) -> dict[str, Column]:
        n = len(self)
        layers = [_layer(strings[name]) if name >= 0 else -1 for name in self.name]
        marks = np.zeros(n, np.uint8)
        marks[[t for t in external if t < n]] = 1
        return {
            **{f"tensor.{c}": np.array(getattr(self, c), np.int32) for c in ("name", "type", "op", "desc")},
            "tensor.ne": np.array(self.ne, np.float64).reshape(n, 4),
            "tensor.nb": np.array(self.nb, np.float64).reshape(n, 4),
            "tensor.nbytes": np.array(self.nbytes, np.float64),
            "tensor.view_src": np.array(self.view_src, np.int32),
            "tensor.view_offs": np.array(self.view_offs, np.float64),
            "tensor.flags": np.array(self.flags, np.int32),
            "tensor.layer": np.array(layers, np.int32),
            "tensor.external": marks,
            "tensor.created": np.array(self.created, np.int32),
            **self._blocks(strings),
            **self._edges(),
        }

    def _blocks(self, strings: list[str]) -> dict[str, Column]:
        """Elements and bytes of a block of each tensor's type; 1 and 0 where the type is not known."""
        known = [TYPES.get(strings[name] if name >= 0 else "") for name in self.type]
        return {
            "tensor.blck_size": np.array([t.blck_size if t else 1 for t in known], np.int32),
            "tensor.type_size": np.array([t.type_size if t else 0 for t in known], np.int32),
        }

    def _edges(self) -> dict[str, Column]:
        found = [(s, dst, slot) for dst, src in enumerate(self.src) for slot, s in enumerate(src) if s >= 0]
        edges = np.array(found, np.int32).reshape(-1, 3)
        return {f"edge.{c}": np.ascontiguousarray(edges[:, k]) for k, c in enumerate(("src", "dst", "slot"))}


def _layer(name: str) -> int:
    found = LAYER_NAME.search(name)
    layer = int(next(g for g in found.groups() if g)) if found and len(found.group()) < 16 else -1
    return layer if layer < 2**31 else -1


class Graphs:
    """The graphs' nodes and leafs in the order in which they were appended."""

    def __init__(self) -> None:
        self.nodes: list[list[int]] = []
        self.leafs: list[list[int]] = []
        self.created = array("i")
        self.position: list[dict[int, int]] = []
        self.splits: dict[int, list[int]] = {}

    def grow(self, n: int) -> None:
        while len(self.nodes) < n:
            self.nodes.append([])
            self.leafs.append([])
            self.created.append(-1)
            self.position.append({})

    def columns(self) -> dict[str, Column]:
        return {
            "graph.ptr": _pointers(self.nodes),
            "graph.node": np.array([t for g in self.nodes for t in g], np.int32),
            "graph.leaf_ptr": _pointers(self.leafs),
            "graph.leaf": np.array([t for g in self.leafs for t in g], np.int32),
            "graph.created": np.array(self.created, np.int32),
            "graph.part_of": np.array(self.part_of(), np.int32),
        }

    def part_of(self) -> list[int]:
        """For each graph the graph of which it is one split, -1 for none."""
        parts: dict[tuple[int, ...], int] = {}
        for graph, firsts in self.splits.items():
            if not 0 <= graph < len(self.nodes):
                continue
            for first, end in pairwise([*firsts, len(self.nodes[graph])]):
                parts[tuple(self.nodes[graph][first:end])] = graph
        found = [parts.get(tuple(nodes), -1) if parts and nodes else -1 for nodes in self.nodes]
        return [-1 if graph in self.splits else whole for graph, whole in enumerate(found)]


def _pointers(lists: list[list[int]]) -> Column:
    return np.cumsum([0, *map(len, lists)]).astype(np.uint32)


class GraphFold:
    """Folds the events of tensors, graphs and contexts."""

    def __init__(self, text: Callable[[int], str]) -> None:
        self.text = text
        self.tensors = Tensors()
        self.graphs = Graphs()
        self.in_arena: set[int] = set()
        self.node = Track("node", {"tensor": "i", "status": "i"})
        self.count = Track("count", {"tensor": "i", "which": "i", "value": "i"})
        self.arena = Track("arena", {"context": "i", "used": "d", "n_objects": "i", "mem_size": "d", "no_alloc": "i"})
        place = {"offset": "d", "size": "d", "padding": "d"}
        self.object = Track("object", {"context": "i", "kind": "i", **place, "tensor": "i", "graph": "i"})
        self.split = Track("split", {"graph": "i", "split": "i", "backend": "i", "first_node": "i", "n_inputs": "i"})
        self.copy = Track(
            "copy", {"graph": "i", "split": "i", "tensor": "i", "copy": "i", "backend": "i", "nbytes": "d"}
        )
        self.tracks = (self.node, self.count, self.arena, self.object, self.split, self.copy)
        self._contents: dict[int, list[int]] = {}
        self._n_objects: dict[int, int] = {}
        self._unnamed: dict[int, deque[int]] = {}
        """Objects whose content is not yet told: a tensor's follows at once, in a snapshot the graphs' later."""
        self._n_splits: dict[int, int] = {}
        self._copies: dict[int, list[tuple[int, int, int]]] = {}
        self._placed_before: list[int] | None = None
        self._fused: dict[int, tuple[int, ...]] = {}

    def handlers(self) -> dict[str, Handler]:
        return {
            "SnapshotBegin": self.snapshot_begin,
            "SnapshotEnd": self.snapshot_end,
            "ContextCreated": self.context_created,
            "ObjectAppended": self.object_appended,
            "ContextReset": self.context_reset,
            "ContextFreed": self.context_freed,
            "TensorCreated": self.tensor_created,
            "ViewCreated": self.view_created,
            "StridesChanged": self.strides_changed,
            "OpRecorded": self.op_recorded,
            "TensorNamed": self.tensor_named,
            "FlagsSet": self.flags_set,
            "GraphCreated": self.graph_created,
            "GraphFreed": self.graph_freed,
            "VisitEnter": self.visit_enter,
            "LeafAppended": self.leaf_appended,
            "NodeAppended": self.node_appended,
            "UseCountChanged": self.use_count_changed,
            "ChildrenChanged": self.children_changed,
            "TensorPlaced": self.tensor_placed,
            "TensorAssigned": self.tensor_assigned,
            "ParentReused": self.tensor_assigned,
            "TensorFreed": self.tensor_freed,
            "Released": self.released,
            "ComputeBegin": self.compute_begin,
            "NodeBegin": self.node_begin,
            "NodeEnd": self.node_end,
            "NodeSkipped": self.node_skipped,
            "NodesFused": self.nodes_fused,
            "SplitOpened": self.split_opened,
            "CopyInserted": self.copy_inserted,
            "TensorCopied": self.tensor_copied,
        }

    def snapshot_begin(self, i: int, node: int) -> None:
        self._placed_before = []

    def snapshot_end(self, i: int, node: int) -> None:
        """What stands was placed after its graph was built, though it is told the other way round."""
        for tensor in self._placed_before or ():
            if self.node.value(tensor, "status") == APPENDED:
                self.node.set(i, tensor, tensor, ASSIGNED)
        self._placed_before = None

    def context_created(self, i: int, node: int, context: int, mem_size: int, no_alloc: int) -> None:
        if not no_alloc:
            self.in_arena.add(context)
        self.arena.set(i, context, context, 0, 0, mem_size, no_alloc)

    def object_appended(self, i: int, node: int, context: int, kind: int, offset: int, size: int, padding: int) -> None:
        self._set_arena(i, context, offset + size, self.arena.value(context, "n_objects", 0) + 1)
        number = self._n_objects.get(context, 0)
        self._n_objects[context] = number + 1
        row = self.object.set(i, (context, number), context, kind, offset, size, padding, -1, -1)
        self._unnamed.setdefault(context, deque()).append(row)

    def _set_arena(self, i: int, context: int, used: float, n_objects: float) -> None:
        fixed = (self.arena.value(context, name) for name in ("mem_size", "no_alloc"))
        self.arena.set(i, context, context, used, n_objects, *fixed)

    def context_reset(self, i: int, node: int, context: int, used_mem: int, n_objects: int) -> None:
        self._set_arena(i, context, 0, 0)
        self._forget(i, context)

    def context_freed(self, i: int, node: int, context: int, used_mem: int, n_objects: int) -> None:
        self.arena.clear(i, context)
        self._forget(i, context)

    def _forget(self, i: int, context: int) -> None:
        self.object.clear_all(i, [(context, number) for number in range(self._n_objects.pop(context, 0))])
        self._unnamed.pop(context, None)
        for tensor in self._contents.pop(context, ()):
            self.node.clear(i, tensor)
            for which in (USE_COUNT, N_CHILDREN, N_VIEWS):
                self.count.clear(i, (tensor, which))

    def tensor_created(
        self, i: int, node: int, tensor: int, context: int, type: int, ne: Shape, nb: Shape, nbytes: int
    ) -> None:
        table = self.tensors
        table.created[tensor], table.context[tensor], table.type[tensor] = i, context, type
        table.ne[tensor], table.nb[tensor], table.nbytes[tensor] = ne, nb, nbytes
        self._contents.setdefault(context, []).append(tensor)
        if waiting := self._unnamed.get(context):
            self.object.amend(waiting.pop(), "tensor", tensor)

    def view_created(self, i: int, node: int, tensor: int, src: int, offs: int, asked: int, asked_offs: int) -> None:
        self.tensors.view_src[tensor], self.tensors.view_offs[tensor] = src, offs

    def strides_changed(
        self, i: int, node: int, tensor: int, src: int, how: int, ne0: Shape, nb0: Shape, ne: Shape, nb: Shape
    ) -> None:
        self.tensors.ne[tensor], self.tensors.nb[tensor] = ne, nb

    def op_recorded(
        self,
        i: int,
        node: int,
        tensor: int,
        op: int,
        desc: int,
        params: tuple[int, ...],
        src: tuple[int, ...],
        inp: int,
    ) -> None:
        table = self.tensors
        table.op[tensor], table.desc[tensor], table.src[tensor] = op, desc, src

    def tensor_named(self, i: int, node: int, tensor: int, name: int) -> None:
        self.tensors.name[tensor] = name

    def flags_set(self, i: int, node: int, tensor: int, flags: int) -> None:
        self.tensors.flags[tensor] = flags & 0x7FFFFFFF

    def graph_created(self, i: int, node: int, graph: int, context: int, size: int, hash_size: int) -> None:
        self.graphs.created[graph] = i
        if hash_size and (waiting := self._unnamed.get(context)):
            self.object.amend(waiting.popleft(), "graph", graph)

    def graph_freed(self, i: int, node: int, graph: int) -> None:
        self._close_splits(i, graph)
        self.copy.clear_all(i, self._copies.pop(graph, ()))

    def visit_enter(self, i: int, node: int, graph: int, tensor: int, slot: int, probes: int) -> None:
        self.node.set(i, tensor, tensor, VISITED)

    def leaf_appended(self, i: int, node: int, graph: int, tensor: int, index: int) -> None:
        self.graphs.leafs[graph].append(tensor)
        self.node.set(i, tensor, tensor, APPENDED)

    def node_appended(self, i: int, node: int, graph: int, tensor: int, index: int) -> None:
        self.graphs.position[graph][tensor] = len(self.graphs.nodes[graph])
        self.graphs.nodes[graph].append(tensor)
        self.node.set(i, tensor, tensor, APPENDED)

    def use_count_changed(self, i: int, node: int, graph: int, tensor: int, use_count: int) -> None:
        self.count.set(i, (tensor, USE_COUNT), tensor, USE_COUNT, small(use_count))

    def children_changed(self, i: int, node: int, galloc: int, tensor: int, n_children: int, n_views: int) -> None:
        self.count.set(i, (tensor, N_CHILDREN), tensor, N_CHILDREN, small(n_children))
        self.count.set(i, (tensor, N_VIEWS), tensor, N_VIEWS, small(n_views))

    def tensor_placed(self, i: int, node: int, tensor: int, buffer: int, offset: int, size: int, view: int) -> None:
        if self._placed_before is not None:
            self._placed_before.append(tensor)
        if self.node.value(tensor, "status") in (APPENDED, FREED):
            self.node.set(i, tensor, tensor, ASSIGNED)

    def tensor_assigned(self, i: int, node: int, galloc: int, tensor: int, *where: int) -> None:
        self.node.set(i, tensor, tensor, ASSIGNED)

    def tensor_freed(self, i: int, node: int, galloc: int, tensor: int, *where: int) -> None:
        self.node.set(i, tensor, tensor, FREED)

    def released(self, i: int, node: int, graph: int, tensor: int, chunk: int, offset: int, size: int) -> None:
        self.node.set(i, tensor, tensor, FREED)

    def compute_begin(self, i: int, node: int, graph: int, n_nodes: int, n_threads: int) -> None:
        """What an evaluation before this one left done is to be computed again."""
        for tensor in self.graphs.nodes[graph]:
            if self.node.value(tensor, "status") in (DONE, SKIPPED):
                self.node.set(i, tensor, tensor, ASSIGNED)

    def node_begin(self, i: int, node: int, graph: int, tensor: int, thread: int, ns: int) -> None:
        if thread == 0:
            self.node.set(i, tensor, tensor, COMPUTING)

    def node_end(self, i: int, node: int, graph: int, tensor: int, thread: int, ns: int) -> None:
        for done in (tensor, *self._fused.pop(tensor, ())):
            self.node.set(i, done, done, DONE)

    def nodes_fused(self, i: int, node: int, graph: int, tensor: int, fused: tuple[int, ...]) -> None:
        self._fused[tensor] = fused
        for along in fused:
            self.node.set(i, along, along, COMPUTING)

    def node_skipped(self, i: int, node: int, graph: int, tensor: int, why: int) -> None:
        self.node.set(i, tensor, tensor, SKIPPED)

    def split_opened(
        self, i: int, node: int, graph: int, split: int, backend: int, first_node: int, n_inputs: int
    ) -> None:
        if split == 0:
            self._close_splits(i, graph)
            self.graphs.splits[graph] = []
        self.graphs.splits.setdefault(graph, []).append(first_node)
        self._n_splits[graph] = self._n_splits.get(graph, 0) + 1
        key = graph, self._n_splits[graph]
        self.split.set(i, key, graph, small(split), backend, small(first_node), small(n_inputs))

    def _close_splits(self, i: int, graph: int) -> None:
        """The copies are told before the splits that they are for: those stay."""
        self.split.clear_all(i, [(graph, k + 1) for k in range(self._n_splits.pop(graph, 0))])

    def copy_inserted(self, i: int, node: int, graph: int, split: int, tensor: int, copy: int, backend: int) -> None:
        self._set_copy(i, graph, split, tensor, copy, backend, NOT_COPIED)

    def tensor_copied(
        self, i: int, node: int, graph: int, split: int, tensor: int, copy: int, source: int, backend: int, nbytes: int
    ) -> None:
        self._set_copy(i, graph, split, tensor, copy, backend, nbytes)

    def _set_copy(self, i: int, graph: int, split: int, tensor: int, copy: int, backend: int, nbytes: int) -> None:
        key = graph, split, tensor
        if key not in self.copy.open:
            self._copies.setdefault(graph, []).append(key)
        self.copy.set(i, key, graph, small(split), tensor, copy, backend, nbytes)


def small(value: int) -> int:
    """A number for a column of 32 bits; what does not fit becomes the largest that does."""
    return value if -(2**31) <= value < 2**31 else 2**31 - 1 if value > 0 else -(2**31)
