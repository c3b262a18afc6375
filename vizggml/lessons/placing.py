"""What the allocator makes of a chain of results: for exercises that ask for it before it is seen."""

from __future__ import annotations

from collections.abc import Sequence

from vizggml.ggml.buffer import alloc_ctx_tensors_from_buft, cpu_buffer_type
from vizggml.ggml.cgraph import Graph
from vizggml.ggml.context import Context
from vizggml.ggml.gallocr import GraphAllocator
from vizggml.ggml.ops import concat, view_1d


def peak_of(sizes: Sequence[int], alignment: int = 32) -> int:
    """Bytes that a chain needs of which the k-th result has `sizes[k]` bytes, nothing written in place.

    Each result is read by the next alone; what the first reads has memory of its own.
    """
    ctx = Context(mem_size=1 << 20, no_alloc=True)
    last = leaf = ctx.new_tensor("F32", (max(sizes) // 4,), name="given")
    alloc_ctx_tensors_from_buft(ctx, cpu_buffer_type())
    for size in sizes:
        before = view_1d(ctx, last, 1, 0)
        last = concat(ctx, view_1d(ctx, leaf, size // 4 - 1, 0), before, 0)
    graph = Graph(ctx)
    graph.build_forward_expand(last)
    galloc = GraphAllocator(cpu_buffer_type(alignment=alignment), in_place=False)
    galloc.reserve(graph)
    needed = galloc.get_buffer_size()
    galloc.free()
    ctx.free()
    return needed
