"""The backend scheduler: which backend computes which node, and what must be copied between them.

The graph is cut into splits, runs of nodes on one backend. Where a node needs a tensor that its backend cannot read,
the tensor is copied at the beginning of the split. With one backend there is one split and nothing to copy; the last
backend is the CPU, which can do everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from vizggml.errors import VizggmlError
from vizggml.events import BackendAssigned, CopyInserted, SplitOpened, TensorId, bus
from vizggml.ggml.buffer import BufferType, cpu_buffer_type
from vizggml.ggml.cgraph import DEFAULT_GRAPH_SIZE, Graph, graph_overhead_custom
from vizggml.ggml.compute import graph_compute
from vizggml.ggml.context import TENSOR_OVERHEAD, Context
from vizggml.ggml.cplan import Plan, graph_plan
from vizggml.ggml.gallocr import GraphAllocator
from vizggml.ggml.op_record import set_strides, view_tensor
from vizggml.ggml.tensor import Tensor
from vizggml.ggml.threadpool import ThreadPool
from vizggml.ggml.types import FLAG_INPUT, VIEW_OPS

Hook = Callable[[Tensor], None]

UNASSIGNED = -1


class Backend(Protocol):
    """`ggml_backend`, ggml/src/ggml-backend-impl.h: something that computes, with memory of its own."""

    name: str
    buft: BufferType

    def supports_op(self, t: Tensor) -> bool: ...

    def supports_buft(self, buft: BufferType) -> bool:
        """Whether it reads and writes tensors in such buffers."""
        ...

    def compute(self, graph: Graph) -> None: ...


class CPUBackend:
    """`ggml_backend_cpu_init`, ggml/src/ggml-cpu/ggml-cpu.cpp: our kernels, threads, and the plan of the last graph.

    `textbook` and `fast` are those of `graph_compute`; so are the hooks, which may be set at any time.
    """

    def __init__(self, n_threads: int = 4, *, textbook: bool = False, fast: bool | None = None) -> None:
        self.name = "CPU"
        self.buft = cpu_buffer_type()
        self.threadpool = ThreadPool(n_threads)
        self.textbook = textbook
        self.fast = fast
        self.before_node: Hook | None = None
        self.after_node: Hook | None = None
        self._plan: Plan | None = None

    def supports_op(self, t: Tensor) -> bool:
        return True

    def supports_buft(self, buft: BufferType) -> bool:
        return buft is self.buft or buft.name.startswith("CPU")

    def compute(self, graph: Graph) -> None:
        """`ggml_backend_cpu_graph_compute`, ggml/src/ggml-cpu/ggml-cpu.cpp.

        The plan of a graph that is computed again is kept; while somebody listens it is made again, to be heard.
        """
        kept = self._plan
        if kept is None or kept.graph is not graph or len(kept.n_tasks) != len(graph.nodes):
            self._plan = kept = graph_plan(graph, threadpool=self.threadpool)
        elif bus.on:
            graph_plan(graph, threadpool=self.threadpool)
        graph_compute(
            graph,
            kept,
            textbook=self.textbook,
            fast=self.fast,
            before_node=self.before_node,
            after_node=self.after_node,
        )


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
    """`ggml_backend_sched_new`, ggml/src/ggml-backend.cpp. Earlier backends are preferred; the last is the CPU's."""

    def __init__(self, backends: Sequence[Backend], graph_size: int = DEFAULT_GRAPH_SIZE) -> None:
        if not backends:
            raise VizggmlError("backend scheduler: no backend")
        self.backends = list(backends)
        self.graph_size = graph_size
        self.bufts = [backend.buft for backend in self.backends]
        self.galloc = GraphAllocator(self.bufts)
        self.splits: list[Split] = []
        self.graph: Graph | None = None
        self.is_alloc = False
        self._backend_ids: dict[TensorId, int] = {}
        self._node_ids: list[int] = []
        self._leaf_ids: list[int] = []
        self._planned_ids: tuple[list[int], list[int]] = ([], [])
        self._ctx: Context | None = None

    @property
    def n_splits(self) -> int:
        """`ggml_backend_sched_get_n_splits`, ggml/src/ggml-backend.cpp."""
        return len(self.splits)

    @property
    def n_copies(self) -> int:
        """How many tensors are copied between backends in one evaluation."""
        return sum(len(split.copies) for split in self.splits)

    def set_tensor_backend(self, t: Tensor, backend: Backend) -> None:
        """Have `t` computed there. `ggml_backend_sched_set_tensor_backend`, ggml/src/ggml-backend.cpp."""
        self._backend_ids[t.id] = self.backends.index(backend)

    def get_tensor_backend(self, t: Tensor) -> Backend | None:
        """`ggml_backend_sched_get_tensor_backend`, ggml/src/ggml-backend.cpp."""
        id = self._backend_ids.get(t.id, UNASSIGNED)
        return None if id == UNASSIGNED else self.backends[id]

    def get_buffer_size(self, backend: Backend) -> int:
        """Bytes of the backend's compute buffer. `ggml_backend_sched_get_buffer_size`, ggml/src/ggml-backend.cpp."""
        return self.galloc.get_buffer_size(self.backends.index(backend))

    def reset(self) -> None:
        """Forget the assignments; the memory stays. `ggml_backend_sched_reset`, ggml/src/ggml-backend.cpp."""
        self._backend_ids = {}
        self.is_alloc = False

    def reserve(self, graph: Graph) -> None:
        """Plan memory for the largest graph to come. `ggml_backend_sched_reserve`, ggml/src/ggml-backend.cpp."""
        self.split_graph(graph)
        assert self.graph is not None
        self.galloc.reserve_n(self.graph, self._node_ids, self._leaf_ids)
        self._planned_ids = (self._node_ids, self._leaf_ids)
        self.reset()

    def reserve_size(self, graph: Graph) -> list[int]:
        """The bytes of each backend's compute buffer. `ggml_backend_sched_reserve_size`, ggml/src/ggml-backend.cpp."""
        self.reset()
        self.split_graph(graph)
        assert self.graph is not None
        return self.galloc.reserve_n_size(self.graph, self._node_ids, self._leaf_ids)

    def alloc_graph(self, graph: Graph) -> None:
        """Place the graph's tensors. `ggml_backend_sched_alloc_graph`, ggml/src/ggml-backend.cpp."""
        if self.is_alloc:
            raise VizggmlError("backend scheduler: a graph is allocated already, reset first")
        self.split_graph(graph)
        assert self.graph is not None
        moved = self._buffers_changed()
        if moved or not self.galloc.alloc_graph(self.graph):
            self.galloc.reserve_n(self.graph, self._node_ids, self._leaf_ids)
            self.galloc.alloc_graph(self.graph)
        self._planned_ids = (self._node_ids, self._leaf_ids)
        self.is_alloc = True

    def _buffers_changed(self) -> bool:
        """Whether a node or leaf now belongs into another buffer type than the plan has it in."""
        for ids, planned in zip((self._node_ids, self._leaf_ids), self._planned_ids, strict=True):
            for now, then in zip(ids, planned, strict=False):
                if now != then and self.bufts[now] is not self.bufts[then]:
                    return True
        return False

    def graph_compute(self, graph: Graph) -> None:
        """Allocate `graph` unless it is, and compute it.

        `ggml_backend_sched_graph_compute`, ggml/src/ggml-backend.cpp.
        """
        if not self.is_alloc:
            self.reset()
            self.alloc_graph(graph)
        for split in self.splits:
            for t, copy in zip(split.inputs, split.copies, strict=True):
                copy.array()[...] = t.array()
            assert split.graph is not None
            self.backends[split.backend_id].compute(split.graph)

    # which backend

    def split_graph(self, graph: Graph) -> None:
        """`ggml_backend_sched_split_graph`, ggml/src/ggml-backend.cpp: assign backends, cut, find what to copy."""
        if len(graph.nodes) + len(graph.leafs) > self.graph_size * 2:
            raise VizggmlError(
                f"backend scheduler: graph {graph.id} has {len(graph.nodes)} nodes and {len(graph.leafs)} leafs, "
                f"the scheduler was made for {self.graph_size}"
            )
        for t in (*graph.leafs, *graph.nodes):
            if t.id not in self._backend_ids:
                self._assign(graph, t, *self._from_current(t))
        self._expand(graph)
        self._assign_the_rest(graph)
        self._cut(graph)
        self._copy_graph(graph)

    def _assign(self, graph: Graph, t: Tensor, id: int, why: str) -> None:
        if id == UNASSIGNED:
            return
        self._backend_ids[t.id] = id
        if bus.on:
            bus.emit(BackendAssigned(graph.id, t.id, self.backends[id].name, why), node=t.id)

    def _of(self, t: Tensor) -> int:
        return self._backend_ids.get(t.id, UNASSIGNED)

    def _from_buffer(self, t: Tensor, op: Tensor) -> int:
        """`ggml_backend_sched_backend_from_buffer`: the first backend that can use the buffer and compute the op."""
        buffer = (t.view_src or t).buffer
        if buffer is None:
            return UNASSIGNED
        usable = (i for i, b in enumerate(self.backends) if b.supports_buft(buffer.buft) and b.supports_op(op))
        return next(usable, UNASSIGNED)

    def _from_current(self, t: Tensor) -> tuple[int, str]:
        """`ggml_backend_sched_backend_id_from_cur`: pass 1, from where the tensor or its weights lie."""
        buffer = (t.view_src or t).buffer
        if buffer is not None:
            id = self._from_buffer(t, t)
            if id == UNASSIGNED:
                raise VizggmlError(
                    f"tensor {t.name!r} lies in a {buffer.buft.name} buffer, where nothing computes {t.op}"
                )
            return id, "its memory" if t.view_src is None else "its view source"
        if t.flags & FLAG_INPUT:
            return len(self.backends) - 1, "an input"
        # the tensors that these two read from weights are too small to choose by
        if t.op not in ("ROPE", "FLASH_ATTN_EXT"):
            for src in t.src:
                if src is not None and src.buffer is not None and src.buffer.usage == "weights":
                    return self._from_buffer(src, t), "its weights"
        return UNASSIGNED, ""

    def _expand(self, graph: Graph) -> None:
        """Pass 2: neighbours follow, first those of the preferred backends, then all. Pass 3: the rest."""
        cpu = len(self.backends) - 1
        for skipped in (cpu, UNASSIGNED):
            for nodes in (graph.nodes, graph.nodes[::-1]):
                current = UNASSIGNED
                for node in _computed(nodes):
                    id = self._of(node)
                    if id != UNASSIGNED:
                        current = UNASSIGNED if id == skipped else id
                    elif current != UNASSIGNED and self.backends[current].supports_op(node):
                        self._assign(graph, node, current, "its neighbour")
        for node in _computed(graph.nodes):
            if self._of(node) == UNASSIGNED:
                able = [i for i, backend in enumerate(self.backends) if backend.supports_op(node)]
                best = max(able, key=lambda i: self._n_supported(node, i), default=UNASSIGNED)
                self._assign(graph, node, best, "most inputs")
            else:
                self._upgrade(graph, node)

    def _upgrade(self, graph: Graph, node: Tensor) -> None:
        """A preferred backend with the same memory takes the node, if it can read all sources."""
        id = self._of(node)
        n_src = sum(1 for src in node.src if src is not None)
        for i in range(id):
            able = self.bufts[i] is self.bufts[id] and self.backends[i].supports_op(node)
            if able and self._n_supported(node, i) == n_src:
                self._assign(graph, node, i, "preferred, same memory")
                return

    def _n_supported(self, node: Tensor, id: int) -> int:
        return sum(1 for src in node.src if src is not None and self._readable(src, id))

    def _readable(self, t: Tensor, id: int) -> bool:
        """`ggml_backend_sched_buffer_supported`: backend `id` can use `t` where it lies or will lie."""
        root = t.view_src or t
        if root.buffer is not None:
            return self.backends[id].supports_buft(root.buffer.buft)
        at = self._of(t)
        at = self._of(root) if at == UNASSIGNED else at
        return at != UNASSIGNED and self.backends[id].supports_buft(self.bufts[at])

    def _assign_the_rest(self, graph: Graph) -> None:
        """Pass 4: views go with their sources, sources with whoever reads them."""
        for node in graph.nodes:
            if self._of(node) == UNASSIGNED and node.view_src is not None:
                self._assign(graph, node, self._of(node.view_src), "its view source")
            if self._of(node) == UNASSIGNED:
                able = (i for i, backend in enumerate(self.backends) if backend.supports_op(node))
                self._assign(graph, node, next(able, UNASSIGNED), "the first that can")
            if self._of(node) == UNASSIGNED:
                raise VizggmlError(f"tensor {node.name!r}: no backend computes {node.op}")
            for src in node.src:
                if src is None or self._of(src) != UNASSIGNED:
                    continue
                if src.view_src is not None and self._of(src.view_src) != UNASSIGNED:
                    self._assign(graph, src, self._of(src.view_src), "its view source")
                else:
                    self._assign(graph, src, self._of(node), "its reader")

    # splits and copies

    def _cut(self, graph: Graph) -> None:
        """Pass 5: a new split wherever the backend changes, and a copy of each input that it cannot read."""
        if self._ctx is not None:
            self._ctx.free()
            self._ctx = None
        copies: dict[tuple[TensorId, int], Tensor] = {}
        first = next((self._of(node) for node in _computed(graph.nodes)), len(self.backends) - 1)
        self.splits = [Split(first, 0)]
        for i, node in enumerate(graph.nodes):
            if node.op in VIEW_OPS:
                continue
            split = self.splits[-1]
            if self._of(node) != split.backend_id:
                split.i_end = i
                split = Split(self._of(node), i)
                self.splits.append(split)
            for j, src in enumerate(node.src):
                if src is None or self._of(src) == split.backend_id or self._readable(src, split.backend_id):
                    continue
                key = (src.id, split.backend_id)
                if key not in copies:
                    copies[key] = self._copy(graph, src, split)
                node.src[j] = copies[key]
        self.splits[-1].i_end = len(graph.nodes)
        for index, split in enumerate(self.splits):
            if bus.on:
                name = self.backends[split.backend_id].name
                bus.emit(SplitOpened(graph.id, index, name, split.i_start, len(split.inputs)))

    def _arena(self, graph: Graph) -> Context:
        """Where copies and the graphs of splits are made: none is needed for one split."""
        if self._ctx is None:
            n_copies = (len(graph.nodes) + len(graph.leafs)) * len(self.backends)
            graphs = graph_overhead_custom(len(graph.nodes) + 2 * n_copies) + 1024 * (len(graph.nodes) + 1)
            self._ctx = Context(2 * n_copies * TENSOR_OVERHEAD + graphs, no_alloc=True)
        return self._ctx

    def _copy(self, graph: Graph, src: Tensor, split: Split) -> Tensor:
        backend = self.backends[split.backend_id]
        copy = self._arena(graph).new_tensor(src.type, src.ne, f"{backend.name}#{src.name}#0")
        if copy.nb != src.nb:
            set_strides(copy, src, "view", src.ne, src.nb)
        self._backend_ids[copy.id] = split.backend_id
        split.inputs.append(src)
        split.copies.append(copy)
        if bus.on:
            bus.emit(CopyInserted(graph.id, len(self.splits) - 1, src.id, copy.id, backend.name))
        return copy

    def _copy_graph(self, graph: Graph) -> None:
        """The graph that is planned: with the copies, each where its split begins. Without any it is `graph` itself."""
        if not self.n_copies and len(self.splits) == 1:
            self.graph = self.splits[0].graph = graph
            nodes = graph.nodes
        else:
            ctx = self._arena(graph)
            nodes = []
            for split in self.splits:
                for src, copy in zip(split.inputs, split.copies, strict=True):
                    # a node without an op, so that the source lives until it has been copied
                    keep = view_tensor(ctx, src)
                    keep.src = [src]
                    self._backend_ids[keep.id] = self._of(src)
                    nodes += [keep, copy]
                split.graph = graph.view(ctx, split.i_start, split.i_end)
                nodes += split.graph.nodes
            self.graph = Graph(ctx, max(len(nodes), len(graph.leafs), 1))
            self.graph.adopt(nodes, graph.leafs)
        self._node_ids = [self._of(node) for node in nodes]
        self._leaf_ids = [max(self._of(leaf), 0) for leaf in graph.leafs]


def _computed(nodes: Sequence[Tensor]) -> Iterator[Tensor]:
    return (node for node in nodes if node.op not in VIEW_OPS)
