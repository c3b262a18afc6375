"""The compiled small ops are twins of the reference kernels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ggml.kernels.against import gaps, graph_of, ints, memories_of, normal, orders, result, seeds, shapes
from tests.ggml.kernels.operands import tensor
from tests.ggml.kernels.test_rope import rope
from tests.ggml.kernels.test_rows import into
from vizggml.errors import VizggmlError
from vizggml.ggml.kernels import FUSED, KERNELS
from vizggml.ggml.kernels.fast.small import SMALL, SMALL_FUSED
from vizggml.ggml.kernels.params import ComputeParams
from vizggml.ggml.tensor import Memory, Tensor
from vizggml.ggml.types import GLU_OPS

Shape = tuple[int, int, int, int]
Order = tuple[int, int, int]


def scratch() -> Memory:
    return np.full(1 << 14, 0xFF, np.uint8)


def assert_twins(dst: Tensor, *, rtol: float = 0.0, atol: float = 0.0) -> None:
    """On one thread and on three, with scratch and without, both kernels leave the same memory behind."""
    memories = memories_of(graph_of(dst))
    before = [m.copy() for m in memories]
    KERNELS[dst.op](ComputeParams(), dst)
    expected = np.array(dst.array())
    for nth, wdata in ((1, None), (1, scratch()), (3, scratch())):
        for memory, was in zip(memories, before, strict=True):
            memory[:] = was
        for ith in range(nth):
            SMALL[dst.op](ComputeParams(ith, nth, wdata), dst)
        np.testing.assert_allclose(
            dst.array().astype(np.float64), expected.astype(np.float64), rtol=rtol, atol=atol, err_msg=f"{nth} threads"
        )
        dst.array()[...] = 0
        ours = [m.copy() for m in memories]
        for memory, was in zip(memories, before, strict=True):
            memory[:] = was
        dst.array()[...] = 0
        assert all(np.array_equal(m, o) for m, o in zip(memories, ours, strict=True)), "bytes outside changed"


@settings(max_examples=60, deadline=None)
@given(
    op=st.sampled_from(["ADD", "SUB", "MUL", "DIV"]),
    types=st.sampled_from([("F32", "F32"), ("F32", "F32"), ("F16", "F16"), ("F16", "F32")]),
    small=shapes,
    times=st.tuples(*[st.integers(1, 3)] * 4),
    gap=gaps,
    order=orders,
    seed=seeds,
)
def test_binary(op: str, types: tuple[str, str], small: Shape, times: Shape, gap: int, order: Order, seed: int) -> None:
    big = tuple(n * t for n, t in zip(small, times, strict=True))
    a = tensor(types[0], normal(seed, *big), gap=gap, order=order)
    b = tensor(types[1], normal(seed + 1, *small) + 3, gap=gap, order=order)
    assert_twins(result(op, types[0], big[::-1], a, b, gap=gap))


@settings(max_examples=30, deadline=None)
@given(shape=shapes, gap=gaps, order=orders, seed=seeds)
def test_rms_norm(shape: Shape, gap: int, order: Order, seed: int) -> None:
    a = tensor("F32", normal(seed, *shape), gap=gap, order=order)
    assert_twins(result("RMS_NORM", "F32", shape[::-1], a, params=(1e-5,), gap=gap), rtol=3e-7)


@settings(max_examples=30, deadline=None)
@given(shape=shapes, rows=st.booleans(), first=st.booleans(), gap=gaps, order=orders, seed=seeds)
def test_rms_norm_with_its_weight(shape: Shape, rows: bool, first: bool, gap: int, order: Order, seed: int) -> None:
    x = tensor("F32", normal(seed, *shape), gap=gap, order=order)
    weight = tensor("F32", normal(seed + 1, *((1, 1, shape[2]) if rows else (1, 1, 1)), shape[3]))
    node = result("RMS_NORM", "F32", shape[::-1], x, params=(1e-5,))
    mul = result("MUL", "F32", shape[::-1], *((weight, node) if first else (node, weight)), gap=gap)
    before = node.array().copy()
    FUSED["RMS_NORM", "MUL"](ComputeParams(), node, mul)
    expected = mul.array().copy()
    for nth in (1, 3):
        mul.array()[...] = np.nan
        for ith in range(nth):
            SMALL_FUSED["RMS_NORM", "MUL"](ComputeParams(ith, nth), node, mul)
        np.testing.assert_allclose(mul.array(), expected, rtol=3e-7)
    assert np.array_equal(node.array(), before)


@settings(max_examples=40, deadline=None)
@given(
    mode=st.sampled_from([0, 2]),
    heads=st.integers(1, 4),
    positions=st.lists(st.integers(0, 3000), min_size=1, max_size=5),
    head=st.sampled_from([(64, 64, 0), (80, 64, 0), (64, 16, 0), (64, 32, 16)]),
    ext_factor=st.sampled_from([0.0, 1.0, 0.5]),
    with_factors=st.booleans(),
    type=st.sampled_from(["F32", "F32", "F16"]),
    gap=gaps,
    order=orders,
    seed=seeds,
)
def test_rope(
    mode: int,
    heads: int,
    positions: list[int],
    head: tuple[int, int, int],
    ext_factor: float,
    with_factors: bool,
    type: str,
    gap: int,
    order: Order,
    seed: int,
) -> None:
    size, n_dims, n_offs = head
    x = tensor(type, normal(seed, 2, len(positions), heads, size), gap=gap, order=order)
    factors = tensor("F32", 1 + np.abs(normal(seed, 1, 1, 1, size // 2))) if with_factors else None
    dst = rope(
        x,
        positions,
        n_dims,
        mode,
        factors=factors,
        ext_factor=ext_factor,
        freq_scale=0.5 if ext_factor else 1.0,
        attn_factor=1.1,
        n_offs=n_offs,
        type=type,
    )
    assert_twins(dst, rtol=1e-5, atol=3e-6)


@settings(max_examples=40, deadline=None)
@given(
    type=st.sampled_from(["F32", "F16", "BF16", "Q8_0"]),
    src_type=st.sampled_from(["F32", "F32", "F16"]),
    index=st.sampled_from(["I64", "I32"]),
    heads=st.integers(1, 3),
    per_head=st.booleans(),
    n=st.integers(1, 5),
    width=st.sampled_from([64, 96]),
    gap=gaps,
    order=orders,
    seed=seeds,
)
def test_set_rows(
    type: str,
    src_type: str,
    index: str,
    heads: int,
    per_head: bool,
    n: int,
    width: int,
    gap: int,
    order: Order,
    seed: int,
) -> None:
    cache = tensor(type, normal(seed, 2, heads, 8, width), gap=gap, order=order)
    x = tensor(src_type, normal(seed + 1, 2, heads, n, width), gap=gap, order=order)
    rng = np.random.default_rng(seed)
    at = np.array([[rng.permutation(8)[:n] for _ in range(heads if per_head else 1)]])[None]
    assert_twins(into(type, cache, x, ints(index, at)))


def test_set_rows_rounds_to_f16_as_the_reference_does() -> None:
    cache = tensor("F16", normal(1, 1, 1, 4, 24))
    values = [1e6, -1e6, 65504, 65519, 65520, 1e-8, -1e-8, 6e-8, 1 + 2**-11, 1 + 3 * 2**-11, 0.1, -0.0]
    x = tensor("F32", np.array([[[values * 2]]], np.float32))
    assert_twins(into("F16", cache, x, ints("I64", np.array([[[[2]]]]))))


@pytest.mark.parametrize("row", [-1, 4, 2**40])
def test_set_rows_of_a_row_that_is_not_there(row: int) -> None:
    cache, x = tensor("F16", normal(1, 1, 1, 4, 8)), tensor("F32", normal(1, 1, 1, 1, 8))
    with pytest.raises(VizggmlError, match=f"SET_ROWS of row {row}, the tensor has 4"):
        SMALL["SET_ROWS"](ComputeParams(), into("F16", cache, x, ints("I64", np.array([[[[row]]]]))))


@pytest.mark.parametrize("how", ["two sources", "halves", "swapped halves"])
@pytest.mark.parametrize("name", ["SWIGLU", "GEGLU"])
def test_glu(name: str, how: str) -> None:
    a, b = normal(1, 1, 2, 5, 64, scale=9.0), normal(2, 1, 2, 5, 64, scale=2.0)
    a[0, 0, 0, :6] = [0, 100, -100, 1e9, -1e9, 88]
    params = (GLU_OPS.index(name), int(how == "swapped halves"))
    if how == "two sources":
        dst = result("GLU", "F32", (64, 5, 2), tensor("F32", a, gap=1), tensor("F32", b, gap=2), params=params)
    else:
        dst = result("GLU", "F32", (32, 5, 2), tensor("F32", a, gap=1), params=params, gap=1)
    assert_twins(dst, rtol=1e-6, atol=1e-30)


def test_swiglu_of_rows_that_are_not_whole_vectors_and_of_f16_which_is_left_to_the_reference() -> None:
    n = 5
    a, b = normal(1, 1, 1, n, 70), normal(2, 1, 1, n, 70)
    assert_twins(result("GLU", "F32", (70, n), tensor("F32", a), tensor("F32", b), params=(2, 0)), rtol=1e-6)
    a = normal(1, 1, 1, n, 64)
    assert_twins(result("GLU", "F16", (32, n), tensor("F16", a), params=(2, 0)))


@settings(max_examples=40, deadline=None)
@given(
    shape=st.tuples(st.integers(1, 2), st.integers(1, 5), st.integers(1, 4), st.integers(1, 70)),
    mask_type=st.sampled_from(["", "F32", "F16", "F16"]),
    heads_apart=st.booleans(),
    max_bias=st.sampled_from([0.0, 8.0]),
    with_sinks=st.booleans(),
    gap=gaps,
    order=orders,
    seed=seeds,
)
def test_soft_max(
    shape: Shape,
    mask_type: str,
    heads_apart: bool,
    max_bias: float,
    with_sinks: bool,
    gap: int,
    order: Order,
    seed: int,
) -> None:
    _, n2, n1, n0 = shape
    x = tensor("F32", normal(seed, *shape, scale=30.0), gap=gap, order=order)
    mask = sinks = None
    if mask_type:
        values = np.where(normal(seed + 1, 1, n2 if heads_apart else 1, n1 + 2, n0) > 0.7, -np.inf, 0)
        values[..., 0] = -0.25
        mask = tensor(mask_type, values.astype(np.float32), gap=gap)
    if with_sinks:
        sinks = tensor("F32", normal(seed + 2, 1, 1, 1, n2))
    dst = result("SOFT_MAX", "F32", shape[::-1], x, mask, sinks, params=(0.3, max_bias if mask_type else 0.0))
    assert_twins(dst, rtol=2e-5, atol=1e-30)


@pytest.mark.parametrize("op", sorted(SMALL))
def test_a_tensor_without_memory(op: str) -> None:
    a = tensor("F32", normal(1, 1, 1, 2, 64))
    at = ints("I32", np.array([[[[0, 1]]]]))
    second = {"ROPE": at, "SET_ROWS": at, "RMS_NORM": None, "SOFT_MAX": None}.get(op, a)
    dst = result(op, "F32", (64, 2), a, second, params=(2, 64, 0, 0, 0, 1e4, 1.0, 0.0, 1.0, 32.0, 1.0))
    dst.data, dst.name = None, "nowhere"
    with pytest.raises(VizggmlError, match="tensor 'nowhere' has no memory yet"):
        SMALL[op](ComputeParams(), dst)
