"""A node computed by a reference kernel on several threads, and by real ggml: the same bytes come out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.ggml.kernels.operands import tensor
from tests.oracle_graph import mirrored
from vizggml.ggml import quants
from vizggml.ggml.cgraph import Graph
from vizggml.ggml.context import Context, contiguous_strides
from vizggml.ggml.kernels import KERNELS
from vizggml.ggml.kernels.params import ComputeParams
from vizggml.ggml.tensor import Address, Memory, Tensor, f32_bits
from vizggml.ggml.types import type_named

Floats = NDArray[np.float32]
ORDERS = ((1, 2, 3), (2, 1, 3), (3, 2, 1))


def graph_of(*nodes: Tensor) -> Graph:
    g = Graph(Context(1 << 20), 64)
    for node in nodes:
        g.build_forward_expand(node)
    return g


def memories_of(g: Graph) -> list[Memory]:
    found = {id(t.data.memory): t.data.memory for t in (*g.leafs, *g.nodes) if t.data is not None}
    return list(found.values())


def values(t: Tensor, array: NDArray[np.generic]) -> Floats:
    """Elements as F32, whatever they are stored as."""
    if t.type.is_quantized:
        return quants.decode(t.type, np.ascontiguousarray(array, np.uint8))
    if t.type.name == "BF16":
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float32)


def assert_as_ggml(dst: Tensor, *, rtol: float = 0.0, atol: float = 0.0, threads: Sequence[int] = (1, 3)) -> None:
    """On each number of threads, what the kernel writes is what real ggml writes; nothing else is touched."""
    g = graph_of(dst)
    memories = memories_of(g)
    before = [m.copy() for m in memories]
    with mirrored(g) as theirs:
        theirs.compute()
        expected = values(dst, theirs.array(dst)).copy()
    for nth in threads:
        for memory, was in zip(memories, before, strict=True):
            memory[:] = was
        for ith in range(nth):
            KERNELS[dst.op](ComputeParams(ith, nth), dst)
        np.testing.assert_allclose(values(dst, dst.array()), expected, rtol=rtol, atol=atol, err_msg=f"{nth} threads")
        dst.array()[...] = 0
        written = [m.copy() for m in memories]
        for memory, was in zip(memories, before, strict=True):
            memory[:] = was
        dst.array()[...] = 0
        for memory, then in zip(memories, written, strict=True):
            assert np.array_equal(memory, then), "bytes outside the destination changed"


def result(
    op: str, type: str, ne: Sequence[int], *src: Tensor | None, params: Sequence[float | int] = (), gap: int = 0
) -> Tensor:
    """A node of `type` over `src`, its bytes NaN or full of ones. Floats in `params` are kept as bits."""
    shape = (*reversed(ne),)
    t = (
        tensor(type, np.full((1,) * (4 - len(shape)) + shape, 7, np.float32), gap=gap)
        if type not in INTS
        else ints(type, np.zeros((1,) * (4 - len(shape)) + shape, np.int64))
    )
    t.op, t.name, t.src = op, op.lower(), list(src)
    t.op_params = tuple(f32_bits(p) if isinstance(p, float) else int(p) for p in params)
    return t


INTS = {"I32": np.int32, "I64": np.int64, "I16": np.int16}


def ints(type: str, x: NDArray[np.integer]) -> Tensor:
    """An integer tensor of x (ne3, ne2, ne1, ne0)."""
    t_type = type_named(type)
    ne = (x.shape[3], x.shape[2], x.shape[1], x.shape[0])
    t = Tensor(t_type, ne, contiguous_strides(t_type, ne))
    t.data = Address(np.zeros(t.nbytes + 64, np.uint8), 32)
    t.array()[...] = x
    return t


def sliced_ints(x: NDArray[np.integer], first: int, n: int) -> Tensor:
    """Columns first..first+n of I32 rows x (ne3, ne2, ne1, ne0), as a view with gaps: what is left of a sorted row."""
    whole = ints("I32", x)
    assert whole.data is not None
    part = Tensor(whole.type, (n, *whole.ne[1:]), whole.nb)
    part.data = Address(whole.data.memory, whole.data.offset + 4 * first)
    return part


def view_of(t: Tensor) -> Tensor:
    """A tensor over the same bytes, as an in-place op's result is."""
    return Tensor(t.type, t.ne, t.nb, view_src=t, data=t.data)


def normal(seed: int, *shape: int, scale: float = 1.0) -> Floats:
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


shapes = st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 5), st.integers(1, 40))
"""(ne3, ne2, ne1, ne0)."""
gaps = st.integers(0, 2)
orders = st.sampled_from(ORDERS)
seeds = st.integers(0, 1000)
