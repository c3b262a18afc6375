"""The last layers on a device: the same logits, splits and memory as real ggml's scheduler gives the same graph."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator

import numpy as np
import pytest

from tests.ggml.seen import seen
from tests.oracle import LIB, Real, RealGraph, tensor_fields
from tests.oracle_backend import WEIGHTS, RealDevice, RealSched
from tests.oracle_graph import FLAGS, NB, OP, SRC, VIEW_SRC, op_number
from vizggml.errors import VizggmlError
from vizggml.events import SplitOpened, TensorCopied, WeightsPlaced
from vizggml.ggml.cgraph import Graph
from vizggml.ggml.tensor import Tensor
from vizggml.llama.context import Context
from vizggml.llama.model import Model, load_model
from vizggml.llama.offload import first_layer, is_offloaded


@pytest.fixture(scope="module")
def tiny() -> Iterator[Model]:
    model = load_model("tiny")
    yield model
    model.close()


def context(model: Model, n_gpu_layers: int, **params: object) -> Context:
    return model.context(n_ctx=256, n_ubatch=64, fast=False, n_gpu_layers=n_gpu_layers, **params)


def test_which_layers_are_offloaded() -> None:
    """`-ngl` of llama.cpp for a model of 4 layers: the output first, then from the last layer on."""
    assert [first_layer(4, n) for n in (1, 2, 4, 5, 99, -1)] == [4, 3, 1, 0, 0, 0]
    names = [
        "token_embd.weight",
        "blk.2.attn_q.weight",
        "blk.3.ffn_up.weight",
        "output_norm.weight",
        "rope_freqs.weight",
    ]
    assert [is_offloaded(name, 3) for name in names] == [False, False, True, True, False]


@pytest.mark.parametrize("n_gpu_layers", [1, 2, -1])
def test_the_same_logits(tiny: Model, n_gpu_layers: int) -> None:
    """A prompt of 40 tokens, for which the weights of the other layers are brought over, and a token after it."""
    tokens = [(7 * i) % 500 + 3 for i in range(40)]
    alone, shared = context(tiny, 0), context(tiny, n_gpu_layers)
    for batch in (tokens, [5]):
        expected = alone.decode(batch).copy()
        assert np.array_equal(shared.decode(batch), expected)
    for ctx in (alone, shared):
        ctx.memory.seq_rm(0, 0, 4)
        ctx.memory.seq_add(0, 4, -1, -4)
    assert np.array_equal(shared.decode([6]), alone.decode([6]))


def test_weights_and_cache_lie_where_their_layer_is(tiny: Model) -> None:
    with seen() as events:
        ctx = context(tiny, 3)
    device = ctx.device
    assert device is not None
    for il, (k, v) in enumerate(zip(ctx.memory.k, ctx.memory.v, strict=True)):
        homes = {t.buffer.buft.name for t in (k, v, ctx.weights[f"blk.{il}.ffn_up.weight"]) if t.buffer}
        assert homes == ({"DEV0"} if il >= 2 else {"CPU", "CPU_Mapped"})
    assert ctx.weights["token_embd.weight"] is tiny.weights["token_embd.weight"]
    assert ctx.weights.output is not tiny.weights.output
    assert np.array_equal(ctx.weights.output.array(), tiny.weights.output.array())
    placed = {e.tensor: e for e in events.of(WeightsPlaced)}
    up, source = ctx.weights["blk.3.ffn_up.weight"], tiny.weights["blk.3.ffn_up.weight"]
    assert (placed[up.id].backend, placed[up.id].size) == ("DEV0", up.nbytes)
    assert up.data is not None
    assert (placed[up.id].buffer, placed[up.id].offset) == (ctx.weights.buffers[-1].id, up.data.offset)
    assert placed[up.id].file_offset == tiny.gguf.data_offset + tiny.gguf.tensors[source.name].offset
    assert np.array_equal(up.array(), source.array())
    taken = sum(b.size for b in (*ctx.weights.buffers, *ctx.memory.buffers) if b.buft is device.buft)
    assert device.memory.used == taken + ctx.sched.get_buffer_size(device)


def test_a_token_crosses_once(tiny: Model) -> None:
    """The sum at the end of layer 1 has no weights and follows its neighbour, so that its two terms cross."""
    ctx = context(tiny, 3)
    with seen() as events:
        ctx.decode([5])
    assert [e.backend for e in events.of(SplitOpened)] == ["CPU", "DEV0"]
    copied = [e for e in events.of(TensorCopied) if e.nbytes >= 4 * tiny.hparams.n_embd]
    names = {t.id: t.name for split in ctx.sched.splits for t in split.inputs}
    assert [names[e.tensor] for e in copied] == ["ffn_out-1", "ffn_inp-1"]
    assert {(e.source, e.backend) for e in events.of(TensorCopied)} == {("CPU", "DEV0")}


def test_a_device_that_is_too_small_says_so(tiny: Model) -> None:
    with pytest.raises(VizggmlError, match=r"DEV0: a buffer of \d+ bytes \(weights\) does not fit: 100000 of 100000"):
        context(tiny, -1, device_memory=100_000)
    with pytest.raises(VizggmlError, match="n_gpu_layers -2: it must be at least -1"):
        context(tiny, -2)


class Mirror:
    """A graph made again in real ggml, not allocated; what has memory lies with the device of the same name."""

    def __init__(self, graph: Graph, devices: list[RealDevice]) -> None:
        self.real = Real(64 << 20)
        self.owns = {(d.name, usage): Real(1 << 20) for d in devices for usage in ("any", "weights")}
        self.made: dict[int, int] = {}
        tensors = [*graph.leafs, *graph.nodes]
        for t in tensors:
            self.made[t.id] = self.make(t)
        for t in tensors:
            src = [0 if s is None else self.made[s.id] for s in t.src]
            ctypes.memmove(self.made[t.id] + SRC, struct.pack(f"<{len(src)}Q", *src), 8 * len(src))
            if t.view_src is not None:
                at = struct.pack("<QQ", self.made[t.view_src.id], t.view_offs)
                ctypes.memmove(self.made[t.id] + VIEW_SRC, at, 16)
        for (name, usage), own in self.owns.items():
            device = next(d for d in devices if d.name == name)
            held = LIB.ggml_backend_alloc_ctx_tensors_from_buft(own.ctx, device.buft)
            if held and usage == "weights":
                LIB.ggml_backend_buffer_set_usage(held, WEIGHTS)
            device.buffers.clear()
        self.graph: RealGraph = self.real.graph(max(1024, 2 * len(graph.nodes)))
        for t in tensors:
            self.graph.build_forward_expand(self.made[t.id])

    def make(self, t: Tensor) -> int:
        home = self.real
        if t.buffer is not None and t.view_src is None:
            home = self.owns["DEV0" if t.buffer.buft.name == "DEV0" else "CPU", t.buffer.usage]
        made = home.new_tensor(t.type.name, t.ne, t.name)
        params = struct.pack(f"<{len(t.op_params)}i", *t.op_params)
        ctypes.memmove(made + NB, struct.pack("<4Q", *t.nb), 32)
        ctypes.memmove(made + OP, struct.pack("<i", op_number(t.op)) + params, 4 + len(params))
        ctypes.memmove(made + FLAGS, struct.pack("<i", t.flags), 4)
        return made


@pytest.mark.parametrize("n_tokens", [1, 40])
@pytest.mark.parametrize("n_gpu_layers", [1, 3, -1])
def test_the_graph_is_cut_as_by_real_ggml(tiny: Model, n_gpu_layers: int, n_tokens: int) -> None:
    ctx = context(tiny, n_gpu_layers)
    ctx.sched.reset()
    # a plan of its own, not the one that was reserved for larger graphs
    ctx.sched.galloc.node_allocs.clear()
    graph = ctx.step_graph(n_tokens)
    asked = dict(ctx.sched.assignment.ids)
    # the two norms of each layer are asked to stay there, of a large batch only if all layers are on the device
    assert len(asked) == (8 if n_tokens < 32 or n_gpu_layers == -1 else 0)
    devices = [RealDevice("DEV0", alignment=128), RealDevice("CPU", cpu=True)]
    mirror = Mirror(graph, devices)
    # this device asks for what ours asks for: a batch of 32
    devices[0].offloads = {"MUL_MAT", "ADD", "MUL", "RMS_NORM"} if n_tokens >= 32 else ()
    sched = RealSched(devices, ctx.max_nodes)
    for id, backend in asked.items():
        sched.set_backend(mirror.made[id], devices[backend])
    sched.alloc_graph(mirror.graph)
    ctx.sched.alloc_graph(graph)
    ours = [
        (ctx.sched.backends[s.backend_id].name, s.i_start, s.i_end, [t.name for t in s.inputs])
        for s in ctx.sched.splits
    ]
    assert ours == [(*s[:3], [tensor_fields(t).name for t in s.inputs]) for s in sched.splits]
    for t in graph.nodes:
        backend = ctx.sched.get_tensor_backend(t)
        assert backend is not None
        assert backend.name == sched.backend_of(mirror.made[t.id]), t
    planned = ctx.sched.graph
    assert planned is not None
    real_planned = [tensor_fields(t).name for t in sched.graph.nodes]
    assert [t.name for t in planned.nodes] == real_planned
    assert [sum(sizes) for sizes in ctx.sched.galloc.chunk_sizes()] == sched.buffer_sizes()
    sched.free()
