"""The second backend: its memory is its own and may run out; it computes as the CPU does."""

from __future__ import annotations

import numpy as np
import pytest

from vizggml.errors import VizggmlError
from vizggml.ggml import ops
from vizggml.ggml.backend import CPUBackend, copy_bytes
from vizggml.ggml.buffer import MappedFile, alloc_ctx_tensors_from_buft, cpu_buffer_type
from vizggml.ggml.cgraph import Graph
from vizggml.ggml.context import Context
from vizggml.ggml.device import DeviceBackend, DeviceBufferType, batch_size
from vizggml.ggml.sched import BackendSched


def test_memory_is_taken_and_given_back() -> None:
    buft = DeviceBufferType("DEV0", 1000)
    assert (buft.alignment, buft.free, buft.is_host) == (128, 1000, False)
    first = buft.alloc_buffer(600, "weights")
    assert (buft.used, buft.free) == (600, 400)
    with pytest.raises(VizggmlError) as caught:
        buft.alloc_buffer(401, "compute")
    assert str(caught.value) == (
        "DEV0: a buffer of 401 bytes (compute) does not fit: 400 of 1000 bytes are free, 1 too few"
    )
    first.free()
    first.free()
    assert buft.free == 1000
    with pytest.raises(VizggmlError, match="capacity 0 is below 1"):
        DeviceBufferType("DEV0", 0)


def test_one_buffer_has_a_largest_size() -> None:
    buft = DeviceBufferType("DEV0", 10_000, max_size=512)
    with pytest.raises(VizggmlError, match=r"513 bytes \(any\) does not fit: one buffer holds 512 bytes, 1 too few"):
        buft.alloc_buffer(513)
    ctx = Context(1 << 12, no_alloc=True)
    tensors = [ctx.new_tensor("F32", (60,), f"t{i}") for i in range(5)]
    buffers = alloc_ctx_tensors_from_buft(ctx, buft)
    assert [b.size for b in buffers] == [512, 512, 256]
    assert [t.data.offset for t in tensors if t.data] == [0, 256, 0, 256, 0]
    assert buft.used == 1280


def test_what_does_not_fit_is_named() -> None:
    buft = DeviceBufferType("DEV0", 600)
    ctx = Context(1 << 12, no_alloc=True)
    for i in range(3):
        ctx.new_tensor("F32", (64,), f"blk.{i}.weight")
    with pytest.raises(VizggmlError) as caught:
        alloc_ctx_tensors_from_buft(ctx, buft, "weights")
    assert str(caught.value) == (
        "DEV0: a buffer of 768 bytes (weights) does not fit: 600 of 600 bytes are free, 168 too few; it is for 3 "
        "tensors, 'blk.0.weight' to 'blk.2.weight', of which the first 2 (512 bytes) would fit"
    )
    assert buft.used == 0


def test_what_was_placed_before_is_given_back() -> None:
    buft = DeviceBufferType("DEV0", 600, max_size=512)
    ctx = Context(1 << 12, no_alloc=True)
    tensors = [ctx.new_tensor("F32", (64,), f"t{i}") for i in range(4)]
    with pytest.raises(
        VizggmlError, match=r"88 of 600 bytes are free, 424 too few; .* 't2' to 't3', of which the first"
    ):
        alloc_ctx_tensors_from_buft(ctx, buft, "weights")
    assert buft.used == 0
    assert all(t.buffer is None and t.data is None for t in tensors)


def test_a_compute_buffer_that_does_not_fit_names_its_graph_and_its_largest() -> None:
    device, cpu = DeviceBackend(capacity=1000), CPUBackend(1)
    ctx = Context(1 << 16, no_alloc=True)
    x = ctx.new_tensor("F32", (256,), "x")
    out = ops.cont(ctx, ops.sqr(ctx, x).set_name("square")).set_name("out")
    graph = Graph(ctx, 8)
    graph.build_forward_expand(out)
    sched = BackendSched([device, cpu])
    for t in (x, *graph.nodes):
        sched.set_tensor_backend(t, device)
    with pytest.raises(VizggmlError) as caught:
        sched.alloc_graph(graph)
    assert str(caught.value) == (
        "DEV0: a buffer of 2048 bytes (compute) does not fit: 1000 of 1000 bytes are free, 1048 too few; it is chunk 0 "
        f"of the plan of graph {graph.id}, whose largest tensors are 'x' (1024 bytes), 'square' (1024 bytes), "
        "'out' (1024 bytes)"
    )


def test_it_reads_no_other_memory_and_the_cpu_not_its() -> None:
    device, cpu = DeviceBackend(), CPUBackend(1)
    assert [device.supports_buft(b) for b in (device.buft, cpu.buft, DeviceBackend().buft)] == [True, False, False]
    assert [cpu.supports_buft(b) for b in (device.buft, cpu.buft, cpu_buffer_type(8))] == [False, True, True]
    assert MappedFile(__file__).buffer().buft.is_host


def test_a_copy_takes_every_byte_between_the_first_and_the_last() -> None:
    ctx, there = Context(1 << 12), Context(1 << 12)
    a = ctx.new_tensor("F32", (4, 4)).set(np.arange(16))
    window = ops.view_2d(ctx, a, 2, 3, a.nb[1], 4)
    copy = there.new_tensor("F32", (2, 3))
    with pytest.raises(VizggmlError, match="they are laid out differently"):
        copy_bytes(window, copy)
    copy.nb = window.nb
    copy_bytes(window, copy)
    assert copy.array()[0, 0].tolist() == [[1, 2], [5, 6], [9, 10]]
    assert copy.data is not None
    assert copy.data.memory[copy.data.offset + 8 : copy.data.offset + 16].view(np.float32).tolist() == [3, 4]
    away = Context(1 << 12, no_alloc=True).new_tensor("F32", (4, 4))
    with pytest.raises(VizggmlError, match="one of them has no memory"):
        copy_bytes(a, away)


def test_the_batch_of_an_operation() -> None:
    ctx = Context(1 << 16, no_alloc=True)
    w, x = ctx.new_tensor("F32", (4, 8)), ctx.new_tensor("F32", (4, 3))
    ids = ctx.new_tensor("I32", (2,))
    experts, tokens = ctx.new_tensor("F32", (4, 5, 6)), ctx.new_tensor("F32", (4, 1, 7))
    chosen = ctx.new_tensor("I32", (2, 7))
    product = ops.mul_mat_id(ctx, experts, tokens, chosen)
    heads = ops.relu(ctx, ctx.new_tensor("F32", (4, 5, 6)))
    batches = [batch_size(t) for t in (ops.mul_mat(ctx, w, x), ops.get_rows(ctx, w, ids), product, heads)]
    assert batches == [3, 0, 7, 30]
