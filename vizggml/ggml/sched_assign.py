"""Which backend computes which node: the first four passes of the backend scheduler.

Memory decides first: a tensor that lies somewhere is used there, and so are weights. The nodes between follow their
neighbours, and what is still open goes where most of its sources can be read. Each decision is told with its reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vizggml.errors import VizggmlError
from vizggml.events import BackendAssigned, TensorId, bus
from vizggml.ggml.backend import Backend
from vizggml.ggml.buffer import Buffer, BufferType
from vizggml.ggml.cgraph import Graph
from vizggml.ggml.tensor import Tensor
from vizggml.ggml.types import FLAG_INPUT, VIEW_OPS

UNASSIGNED = -1

NOT_BY_WEIGHTS = ("ROPE", "FLASH_ATTN_EXT")
"""What these two read from weights is too small to choose a backend by."""


class Assignment:
    """The backend of every tensor, as a number in the order of preference; the last is the CPU's."""

    def __init__(self, backends: Sequence[Backend], bufts: Sequence[BufferType], op_offload: bool) -> None:
        self.backends = backends
        self.bufts = bufts
        self.op_offload = op_offload
        self.ids: dict[TensorId, int] = {}

    @property
    def cpu(self) -> int:
        return len(self.backends) - 1

    def of(self, t: Tensor) -> int:
        return self.ids.get(t.id, UNASSIGNED)

    def assign(self, graph: Graph, t: Tensor, id: int, why: str) -> None:
        if id == UNASSIGNED:
            return
        self.ids[t.id] = id
        if bus.on:
            bus.emit(BackendAssigned(graph.id, t.id, self.backends[id].name, why), node=t.id)

    def assign_all(self, graph: Graph) -> None:
        """Passes 1 to 4 of `ggml_backend_sched_split_graph`, ggml/src/ggml-backend.cpp."""
        for t in (*graph.leafs, *graph.nodes):
            if self.of(t) == UNASSIGNED:
                self.assign(graph, t, *self.from_current(t))
        self.expand(graph)
        for node in computed(graph.nodes):
            if self.of(node) == UNASSIGNED:
                self.assign(graph, node, self.most_inputs(node), "most inputs")
            else:
                self.upgrade(graph, node)
        self.assign_the_rest(graph)

    # pass 1

    def from_buffer(self, buffer: Buffer | None, op: Tensor) -> int:
        """`ggml_backend_sched_backend_from_buffer`: the first backend that can use the buffer and compute the op."""
        if buffer is None:
            return UNASSIGNED
        usable = (i for i, b in enumerate(self.backends) if b.supports_buft(buffer.buft) and b.supports_op(op))
        return next(usable, UNASSIGNED)

    def from_current(self, t: Tensor) -> tuple[int, str]:
        """`ggml_backend_sched_backend_id_from_cur`: from where the tensor or its weights lie."""
        buffer = (t.view_src or t).buffer
        if buffer is not None:
            id = self.from_buffer(buffer, t)
            if id == UNASSIGNED:
                raise VizggmlError(
                    f"tensor {t.name!r} lies in a {buffer.buft.name} buffer, where nothing computes {t.op}"
                )
            return id, "its memory" if t.view_src is None else "its view source"
        if t.flags & FLAG_INPUT:
            return self.cpu, "an input"
        weights = next((s for s in t.src if s is not None and is_weight(s)), None)
        if weights is None or t.op in NOT_BY_WEIGHTS:
            return UNASSIGNED, ""
        id = self.from_buffer((weights.view_src or weights).buffer, t)
        if self.op_offload and id == self.cpu and weights.buffer is not None and weights.buffer.buft.is_host:
            for b in range(id):
                if self.backends[b].supports_op(t) and self.backends[b].offload_op(t):
                    return b, "offloaded"
        return id, "its weights"

    # pass 2

    def expand(self, graph: Graph) -> None:
        """Neighbours follow, first those of the preferred backends, then all."""
        for skipped in (self.cpu, UNASSIGNED):
            for nodes in (graph.nodes, graph.nodes[::-1]):
                current = UNASSIGNED
                for node in computed(nodes):
                    id = self.of(node)
                    if id != UNASSIGNED:
                        current = UNASSIGNED if id == skipped else id
                    elif current != UNASSIGNED and self.backends[current].supports_op(node):
                        self.assign(graph, node, current, "its neighbour")

    # pass 3

    def most_inputs(self, node: Tensor) -> int:
        """The backend that reads most of the sources, the first of equals."""
        able = [i for i, backend in enumerate(self.backends) if backend.supports_op(node)]
        sources = [s for s in node.src if s is not None and (self.of(s) != UNASSIGNED or self.of_root(s) != UNASSIGNED)]
        return max(able, key=lambda i: sum(self.readable(s, i) for s in sources), default=UNASSIGNED)

    def upgrade(self, graph: Graph, node: Tensor) -> None:
        """A preferred backend with the same memory takes the node, if it can read all sources."""
        id = self.of(node)
        for i in range(id):
            able = self.bufts[i] is self.bufts[id] and self.backends[i].supports_op(node)
            if able and all(self.readable(s, i) for s in node.src if s is not None):
                self.assign(graph, node, i, "preferred, same memory")
                return

    def of_root(self, t: Tensor) -> int:
        return UNASSIGNED if t.view_src is None else self.of(t.view_src)

    def readable(self, t: Tensor, id: int) -> bool:
        """`ggml_backend_sched_buffer_supported`: backend `id` can use `t` where it lies or will lie."""
        buffer = (t.view_src or t).buffer
        if buffer is not None:
            return self.backends[id].supports_buft(buffer.buft)
        at = self.of(t)
        at = self.of_root(t) if at == UNASSIGNED else at
        return at != UNASSIGNED and self.backends[id].supports_buft(self.bufts[at])

    # pass 4

    def assign_the_rest(self, graph: Graph) -> None:
        """Views go with their sources, sources with whoever reads them."""
        for node in graph.nodes:
            if self.of(node) == UNASSIGNED and node.view_src is not None:
                self.assign(graph, node, self.of(node.view_src), "its view source")
            for src in node.src:
                if src is None or self.of(src) != UNASSIGNED:
                    continue
                if src.view_src is not None:
                    self.assign(graph, src, self.of(src.view_src), "its view source")
                else:
                    self.assign(graph, src, self.of(node), "its reader")
            if self.of(node) == UNASSIGNED:
                able = (i for i, backend in enumerate(self.backends) if backend.supports_op(node))
                self.assign(graph, node, next(able, UNASSIGNED), "the first that can")
            if self.of(node) == UNASSIGNED:
                raise VizggmlError(f"tensor {node.name!r}: no backend computes {node.op}")


def is_weight(t: Tensor) -> bool:
    """It lies in a buffer of weights."""
    return t.buffer is not None and t.buffer.usage == "weights"


def computed(nodes: Sequence[Tensor]) -> Iterator[Tensor]:
    """Those that are more than another look at the same bytes."""
    return (node for node in nodes if node.op not in VIEW_OPS)
