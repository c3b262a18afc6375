"""The computation graph: which tensors must be computed, in which order, and how often each result is used.

`build_forward_expand` walks depth first from a result to everything it needs. Tensors that nothing computes become
leafs, the others nodes; a node comes after all its sources, so the order of the nodes is an order to compute them in. A
hash set remembers what was met.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from vizggml.errors import VizggmlError
from vizggml.events import (
    NO_SEQ,
    NO_TENSOR,
    AlreadyVisited,
    Event,
    ExpandBegin,
    ExpandEnd,
    GraphCreated,
    GraphFreed,
    GraphId,
    LeafAppended,
    NodeAppended,
    Seq,
    SlotTaken,
    UseCountChanged,
    VisitEnter,
    bus,
)
from vizggml.ggml.context import GGML_OBJECT_SIZE, TENSOR_OVERHEAD, Context
from vizggml.ggml.tensor import Tensor
from vizggml.ggml.types import FLAG_COMPUTE, FLAG_PARAM, GGML_MEM_ALIGN, pad

DEFAULT_GRAPH_SIZE = 2048
"""`GGML_DEFAULT_GRAPH_SIZE`, ggml/include/ggml.h."""

CGRAPH_SIZE = 96
"""`sizeof(struct ggml_cgraph)`, ggml/src/ggml-impl.h."""

HASH_SIZES = tuple(
    map(
        int,
        """
        2 3 5 11 17 37 67 131 257 521 1031 2053 4099 8209 16411 32771 65537 131101 262147 524309 1048583 2097169 4194319
        8388617 16777259 33554467 67108879 134217757 268435459 536870923 1073741827 2147483659
        """.split(),
    )
)
"""The first prime after each power of two."""

HASH_STEP = TENSOR_OVERHEAD >> 4
"""How far apart the hashes of two tensors are whose records follow each other in an arena."""

LEFT_TO_RIGHT, RIGHT_TO_LEFT = "left to right", "right to left"

CYCLE_SHOWN = 6
"""Of a long cycle, how many tensors are named at its beginning and at its end."""

_ids = itertools.count()


def hash_size(min_size: int) -> int:
    """The slots of a hash set for `min_size` tensors. `ggml_hash_size`, ggml/src/ggml.c."""
    return next((size for size in HASH_SIZES if size >= min_size), min_size | 1)


def graph_nbytes(size: int, grads: bool = False) -> int:
    """Bytes of a graph of `size` nodes in its arena. `ggml_graph_nbytes`, ggml/src/ggml.c."""
    slots = hash_size(size * 2)
    nbytes = CGRAPH_SIZE + size * 8 + size * 8 + slots * 4
    nbytes = pad(nbytes, 8) + slots * 8
    if grads:
        nbytes += slots * 8 * 2
    return nbytes + (slots + 31) // 32 * 4


def graph_overhead_custom(size: int, grads: bool = False) -> int:
    """Bytes of an arena that a graph of `size` nodes takes. `ggml_graph_overhead_custom`, ggml/src/ggml.c."""
    return GGML_OBJECT_SIZE + pad(graph_nbytes(size, grads), GGML_MEM_ALIGN)


def graph_overhead() -> int:
    """The same for a graph of the default size, 2048 nodes. `ggml_graph_overhead`, ggml/src/ggml.c."""
    return graph_overhead_custom(DEFAULT_GRAPH_SIZE)


class _Visit:
    """One tensor on the way down: what a stack frame of the recursive visit would hold."""

    __slots__ = ("counted", "first", "node", "seq", "slot", "todo")

    def __init__(self, node: Tensor, slot: int, todo: Sequence[Tensor | None], first: bool, counted: bool) -> None:
        self.node = node
        self.slot = slot
        self.todo = iter(todo)
        self.first = first
        self.counted = counted
        self.seq = NO_SEQ


class Graph:
    """`ggml_new_graph_custom`, ggml/src/ggml.c: room for `size` nodes and as many leafs, as an object of `ctx`'s arena.

    `hash_keys` and `use_counts` have one slot for each place of the hash set, which holds nodes and leafs. `order` says
    which source of a tensor is visited first: `ggml_cgraph_eval_order`, ggml/src/ggml-impl.h.
    """

    def __init__(self, ctx: Context, size: int = DEFAULT_GRAPH_SIZE) -> None:
        if size < 1:
            raise VizggmlError(f"graph: size {size} is below 1")
        ctx.new_object("GRAPH", graph_nbytes(size))
        self._begin(ctx, size, hash_size(size * 2))

    def _begin(self, ctx: Context, size: int, slots: int) -> None:
        self.id = GraphId(next(_ids))
        self.ctx = ctx
        self.size = size
        self.nodes: list[Tensor] = []
        self.leafs: list[Tensor] = []
        self.hash_size = slots
        self.hash_keys: list[Tensor | None] = [None] * slots
        self.use_counts = [0] * slots
        self.order = LEFT_TO_RIGHT
        self._index: dict[int, int] = {}
        self._first_id: int | None = None
        ctx.graphs.add(self)
        bus.standing.add(self)
        if bus.on:
            bus.emit(GraphCreated(self.id, ctx.id, size, slots))

    @classmethod
    def beside(cls, ctx: Context, size: int) -> Graph:
        """A list of nodes and leafs without a hash set: no object of `ctx`'s arena, though it ends with `ctx`.

        What ggml's scheduler keeps of the graph that it plans, `ggml_backend_sched`, ggml/src/ggml-backend.cpp.
        """
        graph = cls.__new__(cls)
        graph._begin(ctx, size, 0)
        return graph

    def __repr__(self) -> str:
        return f"<Graph {self.id}: {len(self.nodes)} nodes, {len(self.leafs)} leafs, size {self.size}>"

    def build_forward_expand(self, t: Tensor) -> None:
        """Append `t` and everything that it needs. `ggml_build_forward_expand`, ggml/src/ggml.c.

        VizggmlError if the graph has no room.
        """
        self._build_forward(t, True)

    def build_forward_order(self, t: Tensor) -> None:
        """Append them without the compute flag, to fix their order. `ggml_build_forward_order`, ggml/src/ggml.c."""
        self._build_forward(t, False)

    def build_forward_select(self, tensors: Sequence[Tensor], idx: int) -> Tensor:
        """Append all, to compute only the one at `idx`. `ggml_build_forward_select`, ggml/src/ggml.c."""
        if not 0 <= idx < len(tensors):
            raise VizggmlError(f"build_forward_select: index {idx} of {len(tensors)} tensors")
        for i, t in enumerate(tensors):
            self._build_forward(t, i == idx)
        return tensors[idx]

    def _build_forward(self, t: Tensor, compute: bool) -> None:
        n_nodes, n_leafs = len(self.nodes), len(self.leafs)
        begin = NO_SEQ
        if bus.on:
            begin = bus.emit(ExpandBegin(self.id, t.id), node=t.id)
        self.visit_parents(t, compute, begin)
        if bus.on:
            bus.emit(ExpandEnd(self.id, t.id, len(self.nodes) - n_nodes, len(self.leafs) - n_leafs), cause=begin)

    def visit_parents(self, root: Tensor, compute: bool, cause: Seq = NO_SEQ) -> None:
        """Depth first, sources in the graph's `order`. `ggml_visit_parents_graph`, ggml/src/ggml.c.

        The recursion is a list here, so that a long chain needs no deep stack.
        """
        stack: list[_Visit] = []
        try:
            self._enter(root, compute, False, stack, cause)
            while stack:
                visit = stack[-1]
                for src in visit.todo:
                    if src is not None:
                        self._enter(src, compute, visit.first, stack, visit.seq)
                        if stack[-1] is not visit:
                            break
                else:
                    stack.pop()
                    self._leave(visit, stack)
        finally:
            if bus.on:
                bus.node = NO_TENSOR

    def _enter(self, node: Tensor, compute: bool, counted: bool, stack: list[_Visit], cause: Seq) -> None:
        """Meet `node`. Unless it has nothing to visit, it goes onto the stack."""
        if compute and node.op != "NONE" and not node.flags & FLAG_COMPUTE:
            node.set_flag(FLAG_COMPUTE)
        slot, probes = self._find(node)
        if self.hash_keys[slot] is node:
            if bus.on and (counted or not stack):
                bus.emit(AlreadyVisited(self.id, node.id, slot), cause=cause)
            # a node that was appended only for its order may now have to be computed, and so may what it needs
            if node.id not in self._index and node.op != "NONE":
                self._refuse_cycle(node, stack)
            late = [s for s in self._sources(node) if s is not None and not s.flags & FLAG_COMPUTE] if compute else []
            if any(s.op != "NONE" or s.src for s in late):
                stack.append(_Visit(node, slot, late, False, counted))
            elif counted:
                self._count_use(node, slot, cause)
            return
        self.hash_keys[slot] = node
        visit = _Visit(node, slot, self._sources(node), True, counted)
        stack.append(visit)
        if bus.on:
            bus.node = node.id
            self._tell_collisions(node, slot, probes, cause)
            visit.seq = bus.emit(VisitEnter(self.id, node.id, slot, probes), cause=cause)

    def _leave(self, visit: _Visit, stack: list[_Visit]) -> None:
        """Everything that this tensor needs is in the graph: now the tensor itself."""
        if visit.first:
            node = visit.node
            self._append(node, node.op == "NONE" and not node.flags & FLAG_PARAM, visit.seq)
        parent = stack[-1] if stack else None
        if bus.on and parent is not None:
            bus.node = parent.node.id
        if visit.counted:
            self._count_use(visit.node, visit.slot, visit.seq)

    def _sources(self, node: Tensor) -> Sequence[Tensor | None]:
        return node.src if self.order == LEFT_TO_RIGHT else node.src[::-1]

    def _refuse_cycle(self, node: Tensor, stack: list[_Visit]) -> None:
        """Met again before it was appended: it needs itself. VizggmlError with the way round.

        Only a tensor that is a source of its own is allowed: `ggml_cast` makes such.
        """
        path = [visit.node for visit in stack]
        if node not in path[:-1]:
            return
        names = [repr(t.name or f"tensor {t.id}") for t in (*path[path.index(node) :], node)]
        if len(names) > 2 * CYCLE_SHOWN:
            names[CYCLE_SHOWN:-CYCLE_SHOWN] = [f"({len(names) - 2 * CYCLE_SHOWN} more)"]
        raise VizggmlError(f"graph {self.id}: a tensor needs itself: {' <- '.join(names)}")

    def _tell_collisions(self, node: Tensor, slot: int, probes: int, cause: Seq) -> None:
        for i in range(slot - probes, slot):
            occupant = self.hash_keys[i]
            assert occupant is not None
            bus.emit(SlotTaken(self.id, node.id, i % self.hash_size, occupant.id), cause=cause)

    def _find(self, t: Tensor) -> tuple[int, int]:
        """The slot of `t`, or the one where it belongs, and the occupied slots passed over.

        `ggml_hash_find`, ggml/src/ggml-impl.h. ggml hashes the address of the tensor's record; here it is what
        that would be if all records followed each other in one arena from the first tensor met.
        """
        if self._first_id is None:
            self._first_id = t.id
        keys, size = self.hash_keys, self.hash_size
        slot = (t.id - self._first_id) * HASH_STEP % size
        for probes in range(size):
            key = keys[slot]
            if key is None or key is t:
                return slot, probes
            slot = slot + 1 if slot + 1 < size else 0
        raise VizggmlError(f"graph {self.id}: its hash set is full ({size} tensors), no room for {t.name!r}")

    def _count_use(self, t: Tensor, slot: int, cause: Seq) -> None:
        self.use_counts[slot] += 1
        if bus.on:
            bus.emit(UseCountChanged(self.id, t.id, self.use_counts[slot]), cause=cause)

    def _append(self, t: Tensor, leaf: bool, cause: Seq = NO_SEQ) -> None:
        to, kind = (self.leafs, "leaf") if leaf else (self.nodes, "node")
        index = len(to)
        if index >= self.size:
            raise VizggmlError(f"graph {self.id} is full: no room for {kind} {t.name!r}, its size is {self.size}")
        if not t.name:
            t.set_name(f"{kind}_{index}")
        to.append(t)
        if not leaf:
            self._index[t.id] = index
        if bus.on:
            bus.emit((LeafAppended if leaf else NodeAppended)(self.id, t.id, index), node=t.id, cause=cause)

    def adopt(self, nodes: Sequence[Tensor], leafs: Sequence[Tensor]) -> None:
        """Take nodes and leafs in the order given instead of visiting: for a graph whose order is already known.

        Use counts are what a visit would have counted. VizggmlError if a tensor is listed twice.
        """
        for leaf, tensors in ((True, leafs), (False, nodes)):
            for t in tensors:
                slot, _ = self._find(t)
                if self.hash_keys[slot] is t:
                    raise VizggmlError(f"graph {self.id}: tensor {t.name!r} is listed twice")
                self.hash_keys[slot] = t
                self._append(t, leaf)
        for t in nodes:
            for src in t.src:
                if src is not None:
                    slot, _ = self._find(src)
                    self.hash_keys[slot] = src
                    self._count_use(src, slot, NO_SEQ)

    def view(self, ctx: Context, i0: int, i1: int) -> Graph:
        """Nodes `i0` up to `i1` as a graph that ends with `ctx`, with the hash set and use counts of the whole.

        `ggml_graph_view`, ggml/src/ggml.c: a value there, which takes nothing of an arena.
        """
        part = Graph.beside(ctx, i1 - i0)
        part.hash_size, part.hash_keys, part.use_counts = self.hash_size, self.hash_keys, self.use_counts
        part._first_id, part.order = self._first_id, self.order
        for t in self.nodes[i0:i1]:
            part._append(t, False)
        return part

    def add_node(self, t: Tensor) -> None:
        """`ggml_graph_add_node`, ggml/src/ggml.c: `t` becomes the last node, whatever it is, and nothing is visited."""
        self._append(t, False)

    def add_leaf(self, t: Tensor) -> None:
        """`t` becomes the last leaf, as a scheduler adds it to the graph that it plans."""
        self._append(t, True)

    def use_count(self, t: Tensor) -> int:
        """How many sources of other tensors in the graph `t` is. `ggml_node_get_use_count`, ggml/src/ggml-impl.h.

        0 where the graph has no hash set.
        """
        if not self.hash_size:
            return 0
        slot, _ = self._find(t)
        return self.use_counts[slot] if self.hash_keys[slot] is t else 0

    def index_of(self, t: Tensor) -> int:
        """The place of `t` in the order of the nodes, -1 if it is not a node."""
        return self._index.get(t.id, -1)

    def get_tensor(self, name: str) -> Tensor | None:
        """The first leaf, or else node, of that name. `ggml_graph_get_tensor`, ggml/src/ggml.c."""
        return next((t for t in (*self.leafs, *self.nodes) if t.name == name), None)

    def freed(self) -> None:
        """Its context was reset or freed, and the graph with it."""
        if bus.on:
            bus.emit(GraphFreed(self.id))
        bus.standing.discard(self)

    def snapshot(self) -> Iterator[Event]:
        yield GraphCreated(self.id, self.ctx.id, self.size, self.hash_size)
        for slot, t in enumerate(self.hash_keys):
            if t is not None:
                yield VisitEnter(self.id, t.id, slot, 0)
        for i, t in enumerate(self.leafs):
            yield LeafAppended(self.id, t.id, i)
        for i, t in enumerate(self.nodes):
            yield NodeAppended(self.id, t.id, i)
        for slot, t in enumerate(self.hash_keys):
            if t is not None:
                yield UseCountChanged(self.id, t.id, self.use_counts[slot])
