"""The backend scheduler: which backend computes which node, and what must be copied between them.

The graph is cut into splits, runs of nodes on one backend. Where a node needs a tensor that its backend cannot read,
the tensor is copied at the beginning of the split. With one backend there is one split and nothing to copy; the last
backend is the CPU, which can do everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from vizggml.errors import VizggmlError
from vizggml.events import NO_TENSOR, CopyInserted, SplitOpened, TensorCopied, TensorId, bus
from vizggml.ggml.backend import Backend, CPUBackend
from vizggml.ggml.buffer import BufferType
from vizggml.ggml.cgraph import DEFAULT_GRAPH_SIZE, Graph, graph_overhead_custom, hash_size
from vizggml.ggml.context import GGML_TENSOR_SIZE, Context
from vizggml.ggml.gallocr import GraphAllocator, Misfit
from vizggml.ggml.op_record import set_strides, view_tensor
from vizggml.ggml.sched_assign import UNASSIGNED, Assignment, computed, is_weight
from vizggml.ggml.tensor import Tensor
from vizggml.ggml.types import FLAG_INPUT, VIEW_OPS

MAX_COPIES = 4
MAX_SPLIT_INPUTS = 30
MAX_SRC = 10
"""`GGML_SCHED_MAX_COPIES`, `GGML_SCHED_MAX_SPLIT_INPUTS`, ggml/src/ggml-backend.cpp; `GGML_MAX_SRC`, ggml.h."""

Moved = tuple[list[int], list[int]]
"""The backends of the nodes and leafs of a plan."""


@dataclass(slots=True)
class Split:
    """`struct ggml_backend_sched_split`, ggml/src/ggml-backend.cpp: nodes `i_start` up to `i_end` on one backend.

    `inputs` are copied to `copies` before the split is computed.
    """

    backend_id: int
    i_start: int
    i_end: int = 0
    inputs: list[Tensor] = field(default_factory=list)
    copies: list[Tensor] = field(default_factory=list)
    graph: Graph | None = None


class BackendSched:
    """`ggml_backend_sched_new`, ggml/src/ggml-backend.cpp. Earlier backends are preferred; the last is the CPU's.

    `bufts` are where each computes, its own memory if not said. With `parallel` every input has four copies, so that
    one evaluation may be prepared while others are still computed. With `op_offload` an operation whose weights the
    CPU has goes to a backend that asks for it.
    """

    def __init__(
        self,
        backends: Sequence[Backend],
        graph_size: int = DEFAULT_GRAPH_SIZE,
        *,
        bufts: Sequence[BufferType] | None = None,
        parallel: bool = False,
        op_offload: bool = True,
    ) -> None:
        if not backends:
            raise VizggmlError("backend scheduler: no backend")
        self.backends = list(backends)
        self.graph_size = graph_size
        self.bufts = list(bufts) if bufts is not None else [backend.buft for backend in self.backends]
        for backend, buft in zip(self.backends, self.bufts, strict=True):
            if not backend.supports_buft(buft):
                raise VizggmlError(f"backend scheduler: backend {backend.name} cannot use {buft.name} buffers")
        self.galloc = GraphAllocator(self.bufts)
        self.assignment = Assignment(self.backends, self.bufts, op_offload)
        self.n_copies = MAX_COPIES if parallel else 1
        self.cur_copy = 0
        self.next_copy = 0
        self.splits: list[Split] = []
        self.graph: Graph | None = None
        self.is_alloc = False
        self._copies: dict[tuple[TensorId, int], list[Tensor]] = {}
        self._graph_inputs: list[Tensor] = []
        self._ids: Moved = ([], [])
        self._planned_ids: Moved = ([], [])
        self._ctx: Context | None = None

    @property
    def n_splits(self) -> int:
        """How many runs of nodes, each on one backend, the last graph was cut into.

        `ggml_backend_sched_get_n_splits`, ggml/src/ggml-backend.cpp.
        """
        return len(self.splits)

    @property
    def n_inputs(self) -> int:
        """How many tensors are copied between backends in one evaluation."""
        return sum(len(split.copies) for split in self.splits)

    def set_tensor_backend(self, t: Tensor, backend: Backend) -> None:
        """Have `t` computed there. `ggml_backend_sched_set_tensor_backend`, ggml/src/ggml-backend.cpp."""
        self.assignment.ids[t.id] = self.backends.index(backend)

    def get_tensor_backend(self, t: Tensor) -> Backend | None:
        """The backend that `t` was given to; None while it has none.

        `ggml_backend_sched_get_tensor_backend`, ggml/src/ggml-backend.cpp.
        """
        id = self.assignment.of(t)
        return None if id == UNASSIGNED else self.backends[id]

    def get_buffer_size(self, backend: Backend) -> int:
        """Bytes of the backend's compute buffer. `ggml_backend_sched_get_buffer_size`, ggml/src/ggml-backend.cpp."""
        return self.galloc.get_buffer_size(self.backends.index(backend))

    def reset(self) -> None:
        """Forget the assignments; the memory stays. `ggml_backend_sched_reset`, ggml/src/ggml-backend.cpp."""
        self.assignment.ids = {}
        self._copies = {}
        self.is_alloc = False

    def synchronize(self) -> None:
        """Nothing runs on here; the next graph begins with the first copy again, unless one is allocated.

        `ggml_backend_sched_synchronize`, ggml/src/ggml-backend.cpp.
        """
        if not self.is_alloc:
            self.next_copy = 0

    def reserve(self, graph: Graph) -> None:
        """Plan memory for the largest graph to come. `ggml_backend_sched_reserve`, ggml/src/ggml-backend.cpp."""
        self.synchronize()
        planned = self.split_graph(graph)
        self.galloc.reserve_n(planned, *self._ids)
        self._planned_ids = self._ids
        self.reset()

    def reserve_size(self, graph: Graph) -> list[int]:
        """The bytes of each backend's compute buffer. `ggml_backend_sched_reserve_size`, ggml/src/ggml-backend.cpp."""
        self.reset()
        self.synchronize()
        planned = self.split_graph(graph)
        self._planned_ids = self._ids
        return self.galloc.reserve_n_size(planned, *self._ids)

    def alloc_graph(self, graph: Graph) -> None:
        """Place the graph's tensors. `ggml_backend_sched_alloc_graph`, ggml/src/ggml-backend.cpp."""
        if self.is_alloc:
            raise VizggmlError("backend scheduler: a graph is allocated already, reset first")
        self.cur_copy = self.next_copy
        self.next_copy = (self.next_copy + 1) % self.n_copies
        planned = self.split_graph(graph)
        misfit = self._moved(planned) or self.galloc.needs_realloc(planned)
        if misfit is not None:
            self.galloc.reserve_n(planned, *self._ids, misfit=misfit)
        self.galloc.alloc_graph(planned)
        self._planned_ids = self._ids
        self.is_alloc = True

    def _moved(self, planned: Graph) -> Misfit | None:
        """The first node or leaf that belongs into another buffer type than the plan has it in."""
        for tensors, ids, then_ids in zip((planned.nodes, planned.leafs), self._ids, self._planned_ids, strict=True):
            for t, now, then in zip(tensors, ids, then_ids, strict=False):
                if now != then and self.bufts[now] is not self.bufts[then]:
                    return Misfit("backend", t.id, then, now)
        return None

    # computing

    def graph_compute(self, graph: Graph) -> None:
        """Allocate `graph` unless it is, and compute it.

        `ggml_backend_sched_graph_compute`, ggml/src/ggml-backend.cpp.
        """
        if not self.is_alloc:
            self.reset()
            self.alloc_graph(graph)
        self.compute_splits(graph)

    def compute_splits(self, graph: Graph) -> None:
        """Copy what each split needs to its backend, and compute it there, split after split.

        `ggml_backend_sched_compute_splits`, ggml/src/ggml-backend.cpp.
        """
        for index, split in enumerate(self.splits):
            backend = self.backends[split.backend_id]
            assert split.graph is not None
            for t, copy in zip(split.inputs, split.copies, strict=True):
                n = self._copy_experts(split, t, copy)
                if n is None:
                    backend.copy_tensor(t, copy)
                    n = t.nbytes
                if bus.on:
                    source = self.backends[self.assignment.of(t)].name
                    bus.emit(TensorCopied(graph.id, index, t.id, copy.id, source, backend.name, n))
            backend.compute(split.graph)

    def _copy_experts(self, split: Split, t: Tensor, copy: Tensor) -> int | None:
        """Of offloaded experts only those that the split's product uses: the bytes copied, None if these are none."""
        assert split.graph is not None
        node = split.graph.nodes[0]
        host = is_weight(t) and t.buffer is not None and t.buffer.buft.is_host
        if not host or node.op != "MUL_MAT_ID" or node.src[0] is not copy:
            return None
        ids = node.src[2]
        assert ids is not None
        # the ids may be an input of the split that is not copied yet
        ids = next((i for i, c in zip(split.inputs, split.copies, strict=True) if c is ids), ids)
        used = np.unique(ids.array()).tolist()
        for expert in used:
            copy.array()[:, expert] = t.array()[:, expert]
        return len(used) * t.nb[2]

    # splits and copies

    def split_graph(self, graph: Graph) -> Graph:
        """Assign backends, cut, find what to copy; the graph that is to be planned.

        `ggml_backend_sched_split_graph`, ggml/src/ggml-backend.cpp.
        """
        limit = hash_size(self.graph_size)
        if len(graph.nodes) + len(graph.leafs) > limit:
            raise VizggmlError(
                f"backend scheduler: graph {graph.id} has {len(graph.nodes)} nodes and {len(graph.leafs)} leafs, "
                f"the scheduler was made for {self.graph_size} ({limit} in all)"
            )
        if self._ctx is not None:
            self._ctx.free()
            self._ctx = None
        self.assignment.assign_all(graph)
        bus.node = NO_TENSOR
        self._cut(graph)
        self._copy_inputs(graph)
        self.graph = self._copy_graph(graph)
        return self.graph

    def _cut(self, graph: Graph) -> None:
        """Pass 5: a new split wherever the backend changes, and a copy of each input that it cannot read."""
        of, readable = self.assignment.of, self.assignment.readable
        first = next((of(node) for node in computed(graph.nodes)), 0)
        self.splits = [Split(first, 0)]
        for i, node in enumerate(graph.nodes):
            if node.op in VIEW_OPS:
                continue
            split = self.splits[-1]
            if of(node) != split.backend_id or self._brings_weights(node, split):
                split.i_end = i
                split = Split(of(node), i)
                self.splits.append(split)
            for j, src in enumerate(node.src):
                if src is None or of(src) == split.backend_id or readable(src, split.backend_id):
                    continue
                if (src.id, split.backend_id) not in self._copies:
                    self._copy(graph, src, split)
                node.src[j] = self._copies[src.id, split.backend_id][self.cur_copy]
        self.splits[-1].i_end = len(graph.nodes)
        if bus.on:
            for index, split in enumerate(self.splits):
                name = self.backends[split.backend_id].name
                bus.emit(SplitOpened(graph.id, index, name, split.i_start, len(split.inputs)))

    def _brings_weights(self, node: Tensor, split: Split) -> bool:
        """In a split that has inputs already, weights that must be copied begin a new one.

        The memory of those that were copied before can then be used again.
        """
        return bool(split.inputs) and any(
            is_weight(src)
            and self.assignment.of(src) != split.backend_id
            and not self.assignment.readable(src, split.backend_id)
            for src in node.src
            if src is not None
        )

    def _arena(self) -> Context:
        """Where copies are made: none is needed for one split."""
        if self._ctx is None:
            tensors = self.graph_size * MAX_SPLIT_INPUTS * 2 * GGML_TENSOR_SIZE
            self._ctx = Context(tensors + graph_overhead_custom(self.graph_size), no_alloc=True)
        return self._ctx

    def _copy(self, graph: Graph, src: Tensor, split: Split) -> None:
        backend = self.backends[split.backend_id]
        copies = [self._dup(src, split.backend_id, c) for c in range(self.n_copies)]
        if self.n_copies > 1:
            for copy in copies:
                copy.set_input()
                copy.set_output()
        self._copies[src.id, split.backend_id] = copies
        split.inputs.append(src)
        split.copies.append(copies[self.cur_copy])
        if bus.on:
            copy_id = copies[self.cur_copy].id
            bus.emit(CopyInserted(graph.id, len(self.splits) - 1, src.id, copy_id, backend.name))

    def _dup(self, t: Tensor, id: int, c: int) -> Tensor:
        """`ggml_dup_tensor_layout`, ggml/src/ggml-backend.cpp."""
        copy = self._arena().new_tensor(t.type, t.ne, f"{self.backends[id].name}#{t.name}#{c}")
        if copy.nb != t.nb:
            set_strides(copy, t, "view", t.ne, t.nb)
        self.assignment.ids[copy.id] = id
        return copy

    def _copy_inputs(self, graph: Graph) -> None:
        """Pass 6, for several copies: each input of the graph has its own too; the tensor itself is one of them."""
        self._graph_inputs = []
        if self.n_copies == 1:
            return
        for leaf in graph.leafs:
            if not leaf.flags & FLAG_INPUT:
                continue
            id = self.assignment.of(leaf)
            if (leaf.id, id) not in self._copies:
                copies = [leaf if c == self.cur_copy else self._dup(leaf, id, c) for c in range(self.n_copies)]
                for copy in copies:
                    copy.set_input()
                    copy.set_output()
                self._copies[leaf.id, id] = copies
            self._graph_inputs.append(leaf)

    def _copy_graph(self, graph: Graph) -> Graph:
        """The graph that is planned: with the copies, each where its split begins, and what must live for longer.

        Where nothing has to be added it is `graph` itself.
        """
        deps = self._optimize(graph)
        if not self.n_inputs and not self._graph_inputs and not deps:
            leafs = [self._leaf_id(leaf) for leaf in graph.leafs]
            self._ids = ([self.assignment.of(node) for node in graph.nodes], leafs)
            return graph
        arena, n_deps = self._arena(), sum(-(-len(keep) // MAX_SRC) for keep in deps.values())
        n_inputs = len(self._graph_inputs) + self.n_inputs
        size = max(len(graph.nodes), len(graph.leafs)) + 2 * n_inputs * self.n_copies + n_deps
        planned = Graph.beside(arena, size)
        node_ids: list[int] = []
        for split in self.splits:
            for src, copy in zip(split.inputs, split.copies, strict=True):
                # a node without an op, so that the source lives until it has been copied
                self._add_dep(planned, [src])
                planned.add_node(copy)
                node_ids += [self.assignment.of(src), split.backend_id]
            for node in graph.nodes[split.i_start : split.i_end]:
                planned.add_node(node)
                node_ids.append(self.assignment.of(node))
                keep = deps.pop(node.id, [])
                for k in range(0, len(keep), MAX_SRC):
                    self._add_dep(planned, keep[k : k + MAX_SRC])
                    node_ids.append(split.backend_id)
        if deps:
            kept = next(iter(deps.values()))[0]
            raise VizggmlError(f"backend scheduler: tensor {kept.name!r} is kept until a node that is not in the graph")
        self._ids = (node_ids, self._add_leafs(planned, graph))
        return planned

    def _leaf_id(self, leaf: Tensor) -> int:
        id = self.assignment.of(leaf)
        if id == UNASSIGNED and leaf.data is None:
            raise VizggmlError(f"leaf {leaf.name!r}: no node reads it and it is no input, so it belongs to no backend")
        return max(id, 0)

    def _optimize(self, graph: Graph) -> dict[TensorId, list[Tensor]]:
        """Let each backend reorder its nodes; for each node the tensors that must be allocated until it is computed."""
        deps: dict[TensorId, list[Tensor]] = {}

        def add_alloc_dep(t: Tensor, until: Tensor) -> None:
            keep = deps.setdefault(until.id, [])
            if t not in keep:
                keep.append(t)

        for split in self.splits:
            whole = len(self.splits) == 1
            split.graph = graph if whole else graph.view(self._arena(), split.i_start, split.i_end)
            self.backends[split.backend_id].graph_optimize(split.graph, add_alloc_dep)
            graph.nodes[split.i_start : split.i_end] = split.graph.nodes
        return deps

    def _add_dep(self, planned: Graph, keep: Sequence[Tensor]) -> None:
        dep = view_tensor(self._arena(), keep[0])
        dep.src = list(keep)
        planned.add_node(dep)

    def _add_leafs(self, planned: Graph, graph: Graph) -> list[int]:
        """All copies where there are several of each, so that they come first, and the leafs; their backends."""
        ids: list[int] = []
        if self.n_copies > 1:
            keys = [(leaf.id, self.assignment.of(leaf)) for leaf in self._graph_inputs]
            keys += [(t.id, split.backend_id) for split in self.splits for t in split.inputs]
            for key in keys:
                for copy in self._copies[key]:
                    planned.add_leaf(copy)
                    ids.append(key[1])
        for leaf in graph.leafs:
            planned.add_leaf(leaf)
            ids.append(self._leaf_id(leaf))
        return ids


__all__ = ["Backend", "BackendSched", "CPUBackend", "Split"]
