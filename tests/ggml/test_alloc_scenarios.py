"""The allocator's own scenarios, those of ggml's tests/test-alloc.cpp: where each tensor goes, and what never happens.

Each is built by our builders and by real ggml's, over a small buffer type with a maximum size. The addresses stand
here as (chunk, offset), so that they can be followed by hand; real ggml must agree with them, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import c_int, c_void_p
from dataclasses import dataclass
from typing import Any

import pytest

from tests.oracle import LIB, BufferType, Real, RealGraph, allocated, tensor_fields
from tests.oracle_backend import RealDevice, RealSched
from vizggml.errors import VizggmlError
from vizggml.ggml import buffer, ops
from vizggml.ggml.backend import AddAllocDep, CPUBackend
from vizggml.ggml.buffer import SIZE_MAX, Buffer, alloc_ctx_tensors_from_buft
from vizggml.ggml.cgraph import Graph
from vizggml.ggml.context import Context
from vizggml.ggml.gallocr import CAN_INPLACE, GraphAllocator
from vizggml.ggml.op_record import record_op
from vizggml.ggml.sched import BackendSched
from vizggml.ggml.tensor import Tensor
from vizggml.ggml.types import FLAG_OUTPUT

Place = tuple[int, int]
Step = tuple[Any, ...]
"""("input", elements) | (builder, the tensors it takes, its other arguments)"""


def pad(ctx: Context, a: Tensor, p0: int, p1: int, p2: int, p3: int) -> Tensor:
    """`ggml_pad`: `a` with zeros after its end in each dimension."""
    ne = [n + p for n, p in zip(a.ne, (p0, p1, p2, p3), strict=True)]
    return record_op(ctx.new_tensor("F32", ne), "PAD", (0, p0, 0, p1, 0, p2, 0, p3), a)


def built(ctx: Context, steps: list[Step], outside: Sequence[Tensor] = ()) -> list[Tensor]:
    """The steps' tensors after those from `outside`, which they may take by number."""
    made = list(outside)
    for i, (name, *rest) in enumerate(steps):
        if name == "input":
            t = ctx.new_tensor("F32", (rest[0],)).set_input()
        else:
            builder = pad if name == "pad" else getattr(ops, name)
            t = builder(ctx, *(made[r] for r in rest[0]), *rest[1:])
        made.append(t.set_name(f"x{i}"))
    return made


def built_by_real(real: Real, steps: list[Step], outside: Sequence[int] = ()) -> list[int]:
    made = list(outside)
    for name, *rest in steps:
        if name == "input":
            made.append(real.new_tensor("F32", (rest[0],)))
            LIB.ggml_set_input(made[-1])
        else:
            made.append(real.op(name, *(made[r] for r in rest[0]), *rest[1:]))
    return made


def expanded(ctx: Context, out: Tensor) -> Graph:
    graph = Graph(ctx, 64)
    out.set_output()
    graph.build_forward_expand(out)
    return graph


def expanded_by_real(real: Real, out: int) -> RealGraph:
    graph = real.graph()
    LIB.ggml_set_output(out)
    graph.build_forward_expand(out)
    return graph


# what must hold of any allocated graph


def place(t: Tensor, chunks: list[Buffer]) -> Place:
    assert t.buffer is not None
    assert t.data is not None
    return chunks.index(t.buffer), t.data.offset


def check_all_allocated(graph: Graph) -> None:
    assert all(t.buffer is not None and t.data is not None for t in (*graph.nodes, *graph.leafs))


def check_max_size(ctx: Context) -> None:
    for t in ctx.tensors:
        assert t.buffer is not None
        assert t.data is not None
        assert t.data.offset + t.nbytes <= t.buffer.buft.max_size


def check_no_overlap(graph: Graph) -> None:
    """Two nodes share bytes only if the earlier one is not needed any more when the later one is computed."""
    for i, t in enumerate(graph.nodes):
        for o in graph.nodes[:i]:
            if (t.view_src or t) is not (o.view_src or o) and overlap(t, o):
                assert not o.flags & FLAG_OUTPUT, (t, o)
                assert not needed(graph, i, t, o), (t, o)


def overlap(a: Tensor, b: Tensor) -> bool:
    assert a.data is not None
    assert b.data is not None
    apart = a.data.offset + a.nbytes <= b.data.offset or b.data.offset + b.nbytes <= a.data.offset
    return a.buffer is b.buffer and not apart


def needed(graph: Graph, i: int, current: Tensor, other: Tensor) -> bool:
    """Whether `other` is read by node `i`, unless that may write over it, or by a later one."""
    return any(
        src is other or src.view_src is other
        for t in graph.nodes[i:]
        if t is not current or t.op not in CAN_INPLACE
        for src in t.src
        if src is not None
    )


@dataclass(frozen=True)
class Scenario:
    """`places` of all tensors of `steps`, `sizes` of the chunks. `bounded`: no tensor ends past `max_size`."""

    name: str
    max_size: int
    steps: list[Step]
    places: list[Place]
    sizes: list[int]
    alignment: int = 8
    bounded: bool = True

    def __str__(self) -> str:
        return self.name


MERGED: list[Step] = [
    *[("input", 4)] * 3,
    ("mean", (0,)),
    ("mean", (1,)),
    ("pad", (2,), 2, 0, 0, 0),
    ("add", (3, 4)),
    ("pad", (6,), 5, 0, 0, 0),
    ("add", (5, 7)),
]

SCENARIOS = [
    # the inputs, met in the order x1, x2, x0, fill the first chunk of 16 and open a second; the results reuse them
    Scenario(
        "too many tensors",
        16,
        [*[("input", 2)] * 3, ("mul", (0, 1)), ("add", (1, 2)), ("add", (3, 0)), ("add", (4, 5))],
        [(1, 0), (0, 0), (0, 8), (0, 0), (0, 8), (0, 0), (0, 8)],
        [16, 8],
    ),
    # 8 bytes are left of the first chunk, the result has 24
    Scenario(
        "a tensor too large for what is left",
        32,
        [("input", 4), ("input", 2), ("concat", (0, 1), 0)],
        [(0, 0), (0, 16), (1, 0)],
        [24, 24],
    ),
    # the chunk is made as large as the tensor: whether that is to be had is the backend's to say
    Scenario(
        "a tensor larger than the maximum",
        16,
        [("input", 6), ("scale", (0,), 2.0)],
        [(0, 0), (0, 0)],
        [24],
        bounded=False,
    ),
    # 17 inputs, a chunk each: the sixteenth is the last and takes two; every sum reuses the one before
    Scenario(
        "not enough chunks",
        8,
        [*[("input", 2)] * 17, ("add", (0, 1)), *[("add", (16 + i, i + 1)) for i in range(1, 16)]],
        [*[(c, 0) for c in range(16)], (15, 8), *[(0, 0)] * 16],
        [8] * 15 + [16],
        bounded=False,
    ),
    # the padded tensor opens a chunk; the mean goes back into the first one's freed bytes
    Scenario(
        "space left over is filled",
        16,
        [("input", 2), ("pad", (0,), 2, 0, 0, 0), ("mean", (1,))],
        [(0, 0), (1, 0), (0, 0)],
        [8, 16],
    ),
    # three views look into x0; the sum cannot take a view's place, but x4's
    Scenario(
        "views need no memory",
        32,
        [
            ("input", 4),
            ("reshape_2d", (0,), 2, 2),
            ("permute", (1,), 1, 0, 2, 3),
            ("view_1d", (2,), 2, 4),
            ("input", 2),
            ("add", (3, 4)),
        ],
        [(0, 0), (0, 0), (0, 0), (0, 4), (0, 16), (0, 16)],
        [24],
    ),
    # x1 0, x2 8, x0 16 fill the chunk; x3 takes x1's place, and x5 exactly the 32 bytes that x2 and x0 left together
    Scenario(
        "reuse and free",
        40,
        [
            ("input", 6),
            ("input", 2),
            ("input", 2),
            ("add", (1, 2)),
            ("pad", (0,), 2, 0, 0, 0),
            ("scale", (4,), 2.0),
            ("add", (4, 5)),
            ("view_1d", (6,), 2, 8),
            ("add", (3, 7)),
        ],
        [(0, 16), (0, 0), (0, 8), (0, 0), (1, 0), (0, 8), (1, 0), (1, 8), (0, 0)],
        [40, 32],
    ),
    # x7 needs 24 bytes: those freed beside x3 and x4 are merged
    Scenario(
        "freed blocks are merged",
        32,
        MERGED,
        [(0, 16), (1, 0), (0, 0), (0, 0), (0, 8), (2, 0), (0, 0), (0, 8), (2, 0)],
        [32, 16, 24],
    ),
    Scenario(
        "freed blocks are merged, in one chunk without end",
        SIZE_MAX,
        MERGED,
        [(0, 16), (0, 32), (0, 0), (0, 0), (0, 8), (0, 48), (0, 0), (0, 8), (0, 48)],
        [72],
    ),
    # 24 bytes are free and 4 are left at the end, which would fit exactly
    Scenario(
        "what was allocated before is preferred",
        32,
        [("input", 6), ("mean", (0,)), ("mean", (1,))],
        [(0, 0), (0, 24), (0, 0)],
        [28],
        alignment=4,
    ),
]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_scenario(scenario: Scenario) -> None:
    ctx = Context(1 << 16, no_alloc=True)
    tensors = built(ctx, scenario.steps)
    graph = expanded(ctx, tensors[-1])
    galloc = GraphAllocator(buffer.BufferType("small", scenario.alignment, scenario.max_size))
    assert galloc.alloc_graph(graph)
    chunks = galloc.buffers[0]
    assert chunks is not None
    assert [place(t, chunks) for t in tensors] == scenario.places
    assert [chunk.size for chunk in chunks] == scenario.sizes
    check_all_allocated(graph)
    check_no_overlap(graph)
    if scenario.bounded:
        check_max_size(ctx)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_scenario_in_real_ggml(scenario: Scenario) -> None:
    real = Real()
    tensors = built_by_real(real, scenario.steps)
    with allocated(expanded_by_real(real, tensors[-1]), scenario.alignment, scenario.max_size) as buft:
        assert [buft.place_of(tensor_fields(t)) for t in tensors] == scenario.places
        assert buft.sizes() == scenario.sizes
    real.free()


class Two:
    """Two buffer types, the first of at most 32 bytes, and tensors that lie in them before anything is planned."""

    def __init__(self) -> None:
        self.bufts = [buffer.BufferType("a", 8, 32), buffer.BufferType("b", 8)]
        self.reals = [BufferType(8, 32), BufferType(8)]
        self.ids = [0, 0, 1, 1]
        sizes = [(4, 4), (6, 1)]
        self.own: list[Tensor] = []
        self.real_own: list[int] = []
        self.real_contexts = [Real(), Real()]
        for buft, real_buft, real, elements in zip(self.bufts, self.reals, self.real_contexts, sizes, strict=True):
            ctx = Context(1 << 12, no_alloc=True)
            self.own += [ctx.new_tensor("F32", (n,)).set_input() for n in elements]
            self.real_own += [real.new_tensor("F32", (n,)) for n in elements]
            alloc_ctx_tensors_from_buft(ctx, buft)
            LIB.ggml_backend_alloc_ctx_tensors_from_buft(real.ctx, real_buft.address)


ACROSS: list[Step] = [
    ("input", 4),
    ("mul", (4, 0)),
    ("pad", (5,), 2, 0, 0, 0),
    ("mul", (6, 2)),
    ("mean", (7,)),
    ("add", (8, 3)),
    ("pad", (9,), 3, 0, 0, 0),
    ("add", (10, 1)),
    ("scale", (11,), 2.0),
]
"""0 to 3 are the tensors that have memory: a0, a1, b0, b1; x0 to x8 follow."""

WHERE = [0, 0, 0, 1, 1, 1, 1, 0, 0]
"""The buffer type of x0 to x8."""

PLACES = [
    *[(0, 0, 0), (0, 0, 0), (0, 1, 0), (0, 1, 0), (1, 0, 0), (1, 0, 0)],
    *[(1, 0, 8), (1, 0, 8), (1, 0, 8)],
]
"""Buffer type, chunk and offset of x0 to x8. A result in a parent's place stays in that one's buffer type: so x3."""

SIZES = [[16, 24], [24]]


def test_several_buffer_types_some_tensors_with_memory() -> None:
    two, ctx = Two(), Context(1 << 16, no_alloc=True)
    made = built(ctx, ACROSS, two.own)
    graph = expanded(ctx, made[-1])
    where = {t.id: id for t, id in zip(made, two.ids + WHERE, strict=True)}
    assert (len(graph.leafs), len(graph.nodes)) == (5, 8)
    galloc = GraphAllocator(two.bufts)
    galloc.reserve_n(graph, [where[t.id] for t in graph.nodes], [where[t.id] for t in graph.leafs])
    assert galloc.alloc_graph(graph)
    chunks = [(id, c, b) for id in (0, 1) for c, b in enumerate(galloc.buffers[id] or [])]
    places = [(id, c, t.data.offset) for t in made[4:] for id, c, b in chunks if t.buffer is b and t.data]
    assert places == PLACES
    assert galloc.chunk_sizes() == SIZES
    check_all_allocated(graph)
    check_no_overlap(graph)
    check_max_size(ctx)


def test_several_buffer_types_in_real_ggml() -> None:
    two, real = Two(), Real()
    made = built_by_real(real, ACROSS, two.real_own)
    graph = expanded_by_real(real, made[-1])
    where = dict(zip(made, two.ids + WHERE, strict=True))
    held = [len(b.buffers) for b in two.reals]
    galloc = LIB.ggml_gallocr_new_n((c_void_p * 2)(*(b.address for b in two.reals)), 2)
    nodes, leafs = [where[t] for t in graph.nodes], [where[t] for t in graph.leafs]
    assert LIB.ggml_gallocr_reserve_n(galloc, graph.address, (c_int * 8)(*nodes), (c_int * 5)(*leafs))
    assert LIB.ggml_gallocr_alloc_graph(galloc, graph.address)
    for buft, n in zip(two.reals, held, strict=True):
        del buft.buffers[:n]
    fields = [tensor_fields(t) for t in made[4:]]
    places = [(id, *b.place_of(f)) for f in fields for id, b in enumerate(two.reals) if f.buffer in b.buffers]
    assert places == PLACES
    assert [b.sizes() for b in two.reals] == SIZES
    LIB.ggml_gallocr_free(galloc)
    real.free()


def test_a_buffer_type_that_nothing_needs_has_no_bytes() -> None:
    bufts = [buffer.BufferType("a", 8), buffer.BufferType("b", 8)]
    ctx = Context(1 << 16, no_alloc=True)
    out = built(ctx, [("input", 4), ("scale", (0,), 2.0)])[-1]
    graph = expanded(ctx, out)
    galloc = GraphAllocator(bufts)
    galloc.reserve_n(graph, [0], [0])
    assert galloc.alloc_graph(graph)
    assert [galloc.get_buffer_size(i) for i in range(2)] == [16, 0]
    check_all_allocated(graph)


FIRST: list[Step] = [("input", 6), ("input", 4), ("view_1d", (0,), 4, 0), ("add", (2, 1))]
SECOND: list[Step] = [("input", 5), ("input", 5), ("add", (0, 1))]


def test_a_second_graph_of_the_same_size_with_a_larger_chunk_needs_new_memory() -> None:
    """24 and 16 bytes, then 20 and 20: 40 both times, but no 20 bytes fit where 16 are."""
    galloc = GraphAllocator(buffer.BufferType("small", 4, 32))
    for steps, sizes in ((FIRST, [24, 16]), (SECOND, [20, 20])):
        ctx = Context(1 << 16, no_alloc=True)
        graph = expanded(ctx, built(ctx, steps)[-1])
        assert galloc.alloc_graph(graph)
        check_all_allocated(graph)
        assert [chunk.size for chunk in galloc.buffers[0] or []] == sizes
        assert galloc.get_buffer_size() == 40


def test_a_second_graph_in_real_ggml() -> None:
    buft = BufferType(4, 32)
    galloc = LIB.ggml_gallocr_new(buft.address)
    for steps, sizes in ((FIRST, [24, 16]), (SECOND, [20, 20])):
        buft.buffers.clear()
        real = Real()
        graph = expanded_by_real(real, built_by_real(real, steps)[-1])
        assert LIB.ggml_gallocr_alloc_graph(galloc, graph.address)
        assert buft.sizes() == sizes
        real.free()
    LIB.ggml_gallocr_free(galloc)


class Delaying(CPUBackend):
    """A backend that still reads its first node while it computes the third."""

    def graph_optimize(self, graph: Graph, add_alloc_dep: AddAllocDep) -> None:
        assert len(graph.nodes) == 3
        for _ in range(2):
            add_alloc_dep(graph.nodes[0], graph.nodes[2])


THREE: list[Step] = [("input", 4), ("scale", (0,), 2.0), ("scale", (1,), 2.0), ("scale", (2,), 2.0)]


@pytest.mark.parametrize(("backend", "offsets"), [(CPUBackend(1), [0, 0, 0, 0]), (Delaying(1), [0, 0, 32, 32])])
def test_a_backend_keeps_a_tensor_allocated(backend: CPUBackend, offsets: list[int]) -> None:
    ctx = Context(1 << 16, no_alloc=True)
    tensors = built(ctx, THREE)
    sched = BackendSched([backend], 8)
    graph = expanded(ctx, tensors[-1])
    sched.alloc_graph(graph)
    assert [t.data.offset for t in tensors if t.data] == offsets
    # the dependency is planned with, and computed with neither
    assert sched.splits[0].graph is graph
    assert len(graph.nodes) == 3
    assert sched.get_buffer_size(backend) == 32 + max(offsets)


@pytest.mark.parametrize("deps", [False, True])
def test_a_device_of_real_ggml_keeps_a_tensor_allocated(deps: bool) -> None:
    device = RealDevice("CPU", cpu=True, deps=(lambda nodes: [(nodes[0], nodes[2])] * 2) if deps else None)
    real = Real()
    tensors = built_by_real(real, THREE)
    sched = RealSched([device], 8)
    sched.alloc_graph(expanded_by_real(real, tensors[-1]))
    base = tensor_fields(tensors[0]).data
    assert [tensor_fields(t).data - base for t in tensors] == ([0, 0, 32, 32] if deps else [0, 0, 0, 0])
    assert sched.buffer_sizes() == [64 if deps else 32]
    sched.free()
    real.free()


def test_many_dependencies_take_a_node_for_each_ten_and_a_foreign_one_is_refused() -> None:
    ctx = Context(1 << 16, no_alloc=True)
    inputs = [ctx.new_tensor("F32", (4,)).set_input() for _ in range(12)]
    t = inputs[0]
    for i in inputs:
        t = ops.add(ctx, t, i)
    graph = expanded(ctx, t)

    class Hoarding(CPUBackend):
        until = graph.nodes[-1]

        def graph_optimize(self, graph: Graph, add_alloc_dep: AddAllocDep) -> None:
            for i in inputs:
                add_alloc_dep(i, self.until)

    backend = Hoarding(1)
    sched = BackendSched([backend], 32)
    sched.alloc_graph(graph)
    assert sched.graph is not None
    assert [len(n.src) for n in sched.graph.nodes[-2:]] == [10, 2]
    assert sched.graph.use_count(t) == 0
    backend.until = inputs[0]
    sched.reset()
    with pytest.raises(VizggmlError, match=r"tensor '.*' is kept until a node that is not in the graph"):
        sched.alloc_graph(graph)
