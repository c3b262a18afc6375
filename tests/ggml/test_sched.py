"""The scheduler: one backend is one split; two are cut, and what one cannot read is copied."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ggml.seen import seen
from tests.ggml.test_cgraph import affine
from vizggml.errors import VizggmlError
from vizggml.events import (
    NO_SEQ,
    AllocGraphEnd,
    BackendAssigned,
    BufferAllocated,
    ComputeBegin,
    CopyInserted,
    NodePlanned,
    ReserveBegin,
    SplitOpened,
    TensorCopied,
    bus,
)
from vizggml.ggml import ops
from vizggml.ggml.buffer import BufferType, alloc_ctx_tensors_from_buft, cpu_buffer_type
from vizggml.ggml.cgraph import Graph
from vizggml.ggml.context import Context
from vizggml.ggml.device import DeviceBackend
from vizggml.ggml.sched import BackendSched, CPUBackend
from vizggml.ggml.tensor import Tensor


class Device(CPUBackend):
    """A backend with memory that the CPU's does not read, for products and sums alone."""

    def __init__(self) -> None:
        super().__init__(1, fast=False)
        self.name = "device"
        self.buft = BufferType("device")
        self.computed: list[str] = []
        self.before_node = lambda t: self.computed.append(t.name)

    def supports_op(self, t: Tensor) -> bool:
        return t.op in ("NONE", "MUL_MAT", "ADD", "VIEW", "RESHAPE", "PERMUTE", "TRANSPOSE")

    def supports_buft(self, buft: BufferType) -> bool:
        return buft is self.buft


def expanded(ctx: Context, t: Tensor) -> Graph:
    graph = Graph(ctx, 32)
    graph.build_forward_expand(t)
    return graph


def test_one_backend_is_one_split() -> None:
    ctx = Context(1 << 16, no_alloc=True)
    tensors = affine(ctx)
    w, x, b, wx, total, out = tensors
    x.set_input()
    graph = expanded(ctx, out)
    cpu = CPUBackend(1, fast=False)
    sched = BackendSched([cpu])
    with seen() as events:
        sched.reserve(graph)
    split = events.one(SplitOpened)
    assert (split.graph, split.split, split.backend, split.first_node, split.n_inputs) == (graph.id, 0, "CPU", 0, 0)
    assert {e.backend for e in events.of(BackendAssigned)} == {"CPU"}
    assert {e.tensor: e.why for e in events.of(BackendAssigned)} == {
        x.id: "an input",
        wx.id: "most inputs",
        w.id: "its reader",
        total.id: "most inputs",
        b.id: "its reader",
        out.id: "most inputs",
    }
    assert events.one(ReserveBegin).graph == graph.id
    assert (sched.n_splits, sched.n_inputs, sched.graph) == (1, 0, graph)
    assert sched.get_buffer_size(cpu) == 128
    assert sched.reserve_size(graph) == [128]
    sched.reset()
    sched.alloc_graph(graph)
    assert sched.is_alloc
    assert sched.get_tensor_backend(wx) is cpu
    for t, values in ((w, [[1, 2, 3], [-4, -5, -6]]), (x, [1, 1, 1]), (b, [0.5, 0.5])):
        t.set(values)
    sched.graph_compute(graph)
    assert out.array().ravel().tolist() == [6.5, 0]
    with pytest.raises(VizggmlError, match="a graph is allocated already, reset first"):
        sched.alloc_graph(graph)


def test_weights_draw_their_op_and_its_neighbours() -> None:
    own, ctx = Context(1 << 12, no_alloc=True), Context(1 << 16, no_alloc=True)
    w = own.new_tensor("F32", (3, 2), "w")
    alloc_ctx_tensors_from_buft(own, cpu_buffer_type(), "weights")
    x = ctx.new_tensor("F32", (3,), "x")
    product = ops.mul_mat(ctx, w, x)
    turned = ops.view_1d(ctx, product, 2, 0)
    out = ops.relu(ctx, turned)
    with seen() as events:
        BackendSched([CPUBackend(1)]).reserve(expanded(ctx, out))
    assert {e.tensor: e.why for e in events.of(BackendAssigned)} == {
        w.id: "its memory",
        product.id: "its weights",
        out.id: "its neighbour",
        x.id: "its reader",
        turned.id: "its view source",
    }


def test_a_graph_is_planned_once_and_heard_each_time() -> None:
    ctx = Context(1 << 16, no_alloc=True)
    graph = expanded(ctx, affine(ctx)[-1])
    sched = BackendSched([CPUBackend(1, fast=False)])
    sched.alloc_graph(graph)
    sched.graph_compute(graph)
    backend = sched.backends[0]
    assert isinstance(backend, CPUBackend)
    plan = backend._plan
    with seen() as events:
        sched.graph_compute(graph)
    assert backend._plan is plan
    assert len(events.of(NodePlanned)) == 3
    assert events.one(ComputeBegin).graph == graph.id
    sched.graph_compute(graph)
    assert backend._plan is plan


def two_backends() -> tuple[BackendSched, Device, CPUBackend, Graph, list[Tensor]]:
    """relu(W x + b) with W on the device and x, b the CPU's; the device has no relu."""
    device, cpu = Device(), CPUBackend(1, fast=False)
    own, other, ctx = (Context(1 << 16, no_alloc=True) for _ in range(3))
    w = own.new_tensor("F32", (3, 2), "W")
    alloc_ctx_tensors_from_buft(own, device.buft, "weights")
    b = other.new_tensor("F32", (2,), "b")
    alloc_ctx_tensors_from_buft(other, cpu.buft, "weights")
    x = ctx.new_tensor("F32", (3,), "x").set_input()
    wx = ops.mul_mat(ctx, w, x).set_name("wx")
    total = ops.add(ctx, wx, b).set_name("wx+b")
    out = ops.relu(ctx, total).set_name("out")
    return BackendSched([device, cpu]), device, cpu, expanded(ctx, out), [w, x, b, wx, total, out]


def test_two_backends_are_two_splits_with_copies_between() -> None:
    """The product goes where its weights are, the sum where b is, and what the other has is copied there."""
    sched, device, _, graph, (w, x, b, wx, total, out) = two_backends()
    with seen() as events:
        sched.alloc_graph(graph)
    assert [(e.backend, e.first_node, e.n_inputs) for e in events.of(SplitOpened)] == [("device", 0, 1), ("CPU", 1, 1)]
    copies = events.of(CopyInserted)
    assert [(e.graph, e.split, e.tensor, e.backend) for e in copies] == [
        (graph.id, 0, x.id, "device"),
        (graph.id, 1, wx.id, "CPU"),
    ]
    assert wx.src[1] is not None
    assert (wx.src[1].id, wx.src[1].name) == (copies[0].copy, "device#x#0")
    assert total.src[0] is not None
    assert total.src[0].name == "CPU#wx#0"
    assert [t.buffer.buft.name for t in (x, wx.src[1], wx, total.src[0], total) if t.buffer] == [
        "CPU",
        "device",
        "device",
        "CPU",
        "CPU",
    ]
    assert sched.get_buffer_size(device) > 0
    assert events.of(AllocGraphEnd)[-1].graph != graph.id
    assert {e.usage for e in events.of(BufferAllocated)} == {"compute"}
    for t, values in ((w, [[1, 2, 3], [-4, -5, -6]]), (x, [1, 1, 1]), (b, [0.5, 0.5])):
        t.set(values)
    with seen() as events:
        sched.graph_compute(graph)
    assert np.array_equal(out.array().ravel(), [6.5, 0])
    assert device.computed == ["wx"]
    assert [(e.graph, e.split, e.tensor, e.copy, e.source, e.backend, e.nbytes) for e in events.of(TensorCopied)] == [
        (graph.id, 0, x.id, copies[0].copy, "CPU", "device", 12),
        (graph.id, 1, wx.id, copies[1].copy, "device", "CPU", 8),
    ]
    assert (sched.n_splits, sched.n_inputs) == (2, 2)
    first = sched.splits[0].graph
    assert first is not None
    assert [first.use_count(t) for t in (w, wx, total)] == [1, 1, 1]
    sched.reset()
    arena = sched._ctx
    assert arena is not None
    sched.reserve(expanded(Context(1 << 12, no_alloc=True), out))
    assert arena.used_mem == 0
    assert bus.cause == NO_SEQ


def test_a_backend_may_be_asked_for() -> None:
    sched, _, cpu, graph, (_, _, _, wx, _, _) = two_backends()
    sched.set_tensor_backend(wx, cpu)
    sched.alloc_graph(graph)
    assert sched.n_splits == 1
    assert sched.get_tensor_backend(wx) is cpu
    assert sched.get_tensor_backend(Context(1 << 12, no_alloc=True).new_tensor("F32", (1,))) is None
    # the same plan does not serve when the product moves to the device
    again = two_backends()
    again[0].alloc_graph(again[3])
    assert again[0].n_splits == 2


def test_a_preferred_backend_takes_what_lies_in_the_same_memory() -> None:
    """Like BLAS beside the CPU: sums go to it, the rest stays."""
    ctx = Context(1 << 16, no_alloc=True)
    *_, b, wx, total, out = affine(ctx)
    b.set_input()
    adder, cpu = Device(), CPUBackend(1, fast=False)
    adder.buft = cpu.buft
    sched = BackendSched([adder, cpu])
    sched.set_tensor_backend(wx, cpu)
    with seen() as events:
        sched.alloc_graph(expanded(ctx, out))
    assert [(e.tensor, e.why) for e in events.of(BackendAssigned) if e.backend == "device"] == [
        (total.id, "preferred, same memory")
    ]
    assert [(s.backend_id, s.i_start, s.i_end) for s in sched.splits] == [(1, 0, 1), (0, 1, 2), (1, 2, 3)]
    assert sched.n_inputs == 0


def weights_at_the_cpu(batch: int) -> tuple[Context, Tensor, Tensor, Graph]:
    """W2 relu(W1 x) for a batch, both matrices the CPU's."""
    own, ctx = Context(1 << 12, no_alloc=True), Context(1 << 16, no_alloc=True)
    w1, w2 = (own.new_tensor("F32", (4, 4), name) for name in ("W1", "W2"))
    alloc_ctx_tensors_from_buft(own, cpu_buffer_type(), "weights")
    for w in (w1, w2):
        w.set(np.arange(16))
    x = ctx.new_tensor("F32", (4, batch), "x").set_input()
    out = ops.mul_mat(ctx, w2, ops.relu(ctx, ops.mul_mat(ctx, w1, x)))
    return ctx, x, out, expanded(ctx, out)


@pytest.mark.parametrize(("batch", "offload", "where"), [(31, True, "CPU"), (32, True, "DEV0"), (32, False, "CPU")])
def test_a_large_batch_is_worth_bringing_its_weights_over(batch: int, offload: bool, where: str) -> None:
    _, x, out, graph = weights_at_the_cpu(batch)
    device = DeviceBackend(fast=False)
    sched = BackendSched([device, CPUBackend(1, fast=False)], op_offload=offload)
    with seen() as events:
        sched.alloc_graph(graph)
    why = {e.tensor: e.why for e in events.of(BackendAssigned)}[out.id]
    backend = sched.get_tensor_backend(out)
    assert backend is not None
    assert (backend.name, why) == (where, "offloaded" if where == "DEV0" else "its weights")
    x.set(np.ones((batch, 4)))
    sched.graph_compute(graph)
    assert out.array()[0, 0, 0].tolist() == [260.0, 740.0, 1220.0, 1700.0]
    # the second matrix begins a split of its own, so that it may lie where the first one did
    splits = [[t.name for t in split.inputs] for split in sched.splits]
    assert splits == ([["W1", "x"], ["W2"]] if where == "DEV0" else [[]])


def test_of_offloaded_experts_only_those_in_use_are_copied() -> None:
    own, ctx = Context(1 << 12, no_alloc=True), Context(1 << 16, no_alloc=True)
    experts = own.new_tensor("F32", (4, 2, 8), "experts")
    alloc_ctx_tensors_from_buft(own, cpu_buffer_type(), "weights")
    experts.set(np.arange(64))
    x = ctx.new_tensor("F32", (4, 1, 2), "x").set_input()
    ids = ctx.new_tensor("I32", (2, 2), "ids").set_input()
    product = ops.mul_mat_id(ctx, experts, x, ids)
    graph = expanded(ctx, product)

    class Eager(DeviceBackend):
        def offload_op(self, t: Tensor) -> bool:
            return True

        def compute(self, graph: Graph) -> None:
            """Nothing: what was copied is looked at."""

    device = Eager(fast=False)
    sched = BackendSched([device, CPUBackend(1, fast=False)])
    sched.alloc_graph(graph)
    copy = sched.splits[0].copies[0]
    copy.array()[...] = -1
    ids.set([[5, 2], [5, 7]])
    with seen() as events:
        sched.graph_compute(graph)
    copied = {e.tensor: e.nbytes for e in events.of(TensorCopied)}
    assert copied == {experts.id: 3 * 4 * 2 * 4, x.id: 32, ids.id: 16}
    assert [e for e in range(8) if (copy.array()[0, e] >= 0).all()] == [2, 5, 7]
    assert np.array_equal(copy.array()[0, 5], experts.array()[0, 5])


def test_with_several_copies_each_graph_has_inputs_of_its_own() -> None:
    device, cpu = DeviceBackend(fast=False), CPUBackend(1, fast=False)
    sched = BackendSched([device, cpu], parallel=True, op_offload=False)
    names: list[list[str]] = []
    for _ in range(5):
        own, ctx = Context(1 << 12, no_alloc=True), Context(1 << 16, no_alloc=True)
        w = own.new_tensor("F32", (4, 4), "W")
        alloc_ctx_tensors_from_buft(own, device.buft, "weights")
        x = ctx.new_tensor("F32", (4,), "x").set_input()
        graph = expanded(ctx, ops.mul_mat(ctx, w, x))
        sched.reset()
        sched.alloc_graph(graph)
        assert sched.graph is not None
        # all copies stand at once: those of the graph's input, then those that the split makes of it
        assert len(set(map(place_of, sched.graph.leafs[:8]))) == 8
        names.append([t.name for t in sched.splits[0].copies])
    assert names == [["DEV0#x#0"], ["DEV0#x#1"], ["DEV0#x#2"], ["DEV0#x#3"], ["DEV0#x#0"]]
    sched.reset()
    sched.synchronize()
    assert sched.next_copy == 0


def place_of(t: Tensor) -> tuple[int, int]:
    assert t.buffer is not None
    assert t.data is not None
    return t.buffer.id, t.data.offset


def test_a_plan_does_not_serve_when_a_node_moves_to_another_backend() -> None:
    cpu, device = CPUBackend(1, fast=False), DeviceBackend(fast=False)
    sched = BackendSched([device, cpu])
    graphs = []
    for backend in (cpu, device):
        ctx = Context(1 << 16, no_alloc=True)
        out = affine(ctx)[-1]
        graphs.append(expanded(ctx, out))
        sched.reset()
        for node in graphs[-1].nodes:
            sched.set_tensor_backend(node, backend)
        with seen() as events:
            sched.alloc_graph(graphs[-1])
    reserve = events.one(ReserveBegin)
    assert (reserve.why, reserve.tensor, reserve.had, reserve.needed) == ("backend", graphs[1].nodes[0].id, 1, 0)


def test_a_backend_may_compute_in_memory_that_is_not_its_own() -> None:
    pinned = BufferType("pinned", 128, is_host=True)
    device, cpu = DeviceBackend(), CPUBackend(1)
    sched = BackendSched([device, cpu], bufts=[device.buft, pinned])
    ctx = Context(1 << 16, no_alloc=True)
    x = ctx.new_tensor("F32", (4,)).set_input()
    sched.alloc_graph(expanded(ctx, ops.relu(ctx, x)))
    assert x.buffer is not None
    assert x.buffer.buft is pinned
    with pytest.raises(VizggmlError, match="backend DEV0 cannot use pinned buffers"):
        BackendSched([device, cpu], bufts=[pinned, pinned])


def test_what_cannot_be_scheduled() -> None:
    with pytest.raises(VizggmlError, match="no backend"):
        BackendSched([])
    ctx = Context(1 << 16, no_alloc=True)
    graph = expanded(ctx, affine(ctx)[-1])
    with pytest.raises(VizggmlError, match="has 3 nodes and 3 leafs, the scheduler was made for 2"):
        BackendSched([CPUBackend(1)], 2).reserve(graph)
    with pytest.raises(VizggmlError, match="tensor 'out': no backend computes UNARY"):
        BackendSched([Device()]).reserve(graph)
    own, device = Context(1 << 12, no_alloc=True), Device()
    kept = own.new_tensor("F32", (4,), "kept")
    alloc_ctx_tensors_from_buft(own, device.buft)
    written = ops.relu_inplace(ctx, kept)
    with pytest.raises(VizggmlError, match=r"'kept \(view\)' lies in a device buffer, where nothing computes UNARY"):
        BackendSched([device, CPUBackend(1)]).reserve(expanded(ctx, written))
    alone = ctx.new_tensor("F32", (4,), "alone")
    with pytest.raises(VizggmlError, match="leaf 'alone': no node reads it and it is no input"):
        BackendSched([CPUBackend(1)]).reserve(expanded(ctx, alone))
