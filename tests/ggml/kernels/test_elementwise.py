"""Elementwise kernels against real ggml: types, broadcasts, gaps and permuted dimensions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ggml.kernels.against import ORDERS, assert_as_ggml, gaps, normal, orders, result, seeds, shapes, view_of
from tests.ggml.kernels.operands import tensor
from vizggml.errors import VizggmlError
from vizggml.ggml.kernels import KERNELS
from vizggml.ggml.kernels.elementwise import BINARY_TYPES, UNARY_TYPES
from vizggml.ggml.kernels.params import ComputeParams
from vizggml.ggml.types import GLU_OPS, UNARY_OPS

Shape = tuple[int, int, int, int]
TOLERANCE = {"F32": 0.0, "F16": 1e-3, "BF16": 1e-2}


@settings(max_examples=60, deadline=None)
@given(
    op=st.sampled_from(["ADD", "SUB", "MUL", "DIV"]),
    types=st.sampled_from(sorted(BINARY_TYPES)),
    small=shapes,
    times=st.tuples(*[st.integers(1, 3)] * 4),
    gap=gaps,
    order=orders,
    seed=seeds,
)
def test_binary(
    op: str, types: tuple[str, str, str], small: Shape, times: Shape, gap: int, order: tuple[int, int, int], seed: int
) -> None:
    big = tuple(n * t for n, t in zip(small, times, strict=True))
    a = tensor(types[0], normal(seed, *big), gap=gap, order=order)
    b = tensor(types[1], normal(seed + 1, *small) + 3, gap=gap, order=order)
    assert_as_ggml(result(op, types[2], big[::-1], a, b, gap=gap), rtol=TOLERANCE[types[2]])


def test_binary_with_a_strided_second_operand() -> None:
    # a transposed matrix: neighbours in a row are a row apart in memory
    a, b = tensor("F32", normal(1, 1, 1, 4, 6)), tensor("F32", normal(2, 1, 1, 6, 4))
    b.ne, b.nb = (6, 4, 1, 1), (b.nb[1], b.nb[0], b.nb[2], b.nb[3])
    assert_as_ggml(result("MUL", "F32", (6, 4), a, b))


@pytest.mark.parametrize("type", ["Q8_0", "Q4_0", "Q4_1"])
def test_add_to_quantized_rows(type: str) -> None:
    a, b = tensor(type, normal(1, 1, 2, 3, 64)), tensor("F32", normal(2, 1, 2, 3, 64))
    assert_as_ggml(result("ADD", type, (64, 3, 2), a, b), atol=1e-6)


def test_in_place() -> None:
    a, b = tensor("F32", normal(1, 1, 1, 3, 8)), tensor("F32", normal(2, 1, 1, 3, 8))
    dst = view_of(a)
    dst.op, dst.src = "ADD", [a, b]
    expected = a.array() + b.array()
    KERNELS["ADD"](ComputeParams(), dst)
    assert np.array_equal(a.array(), expected)


@settings(max_examples=30, deadline=None)
@given(op=st.sampled_from(["SQR", "SQRT", "LOG", "SIN", "COS"]), types=st.sampled_from(sorted(UNARY_TYPES)),
       shape=shapes, gap=gaps, order=orders, seed=seeds)  # fmt: skip
def test_functions(
    op: str, types: tuple[str, str], shape: Shape, gap: int, order: tuple[int, int, int], seed: int
) -> None:
    a = tensor(types[0], np.abs(normal(seed, *shape)) + 0.1, gap=gap, order=order)
    assert_as_ggml(result(op, types[1], shape[::-1], a, gap=gap), rtol=max(1e-6, TOLERANCE[types[1]]), atol=1e-6)


FROM_F16_TABLE = ("GELU", "GELU_QUICK")


@pytest.mark.parametrize("name", UNARY_OPS)
@pytest.mark.parametrize("types", sorted(UNARY_TYPES))
@pytest.mark.parametrize("order", ORDERS)
def test_unary(name: str, types: tuple[str, str], order: tuple[int, int, int]) -> None:
    if (name.startswith("GELU") or name == "SILU") and types[0] != types[1]:
        a = result("UNARY", types[1], (4,), tensor(types[0], normal(0, 1, 1, 1, 4)), params=(UNARY_OPS.index(name),))
        with pytest.raises(VizggmlError, match=f"op {name} has no kernel for {types[0]} to {types[1]}"):
            KERNELS["UNARY"](ComputeParams(), a)
        return
    x = normal(3, 2, 2, 3, 40, scale=5.0)
    x[0, 0, 0, :6] = [0, -0.0, 0.5, -0.5, 1.5, -2.5]
    params = (UNARY_OPS.index(name), 0.8, 0.8, 0.5, -1e-6) if name == "XIELU" else (UNARY_OPS.index(name),)
    dst = result("UNARY", types[1], (40, 3, 2, 2), tensor(types[0], x, gap=1, order=order), params=params, gap=2)
    if order != (1, 2, 3) and name == "XIELU":
        dst.src[0] = tensor(types[0], x, gap=1)  # ggml asserts rows that follow each other
    table = 2e-3 if name in FROM_F16_TABLE else 2e-6
    assert_as_ggml(dst, rtol=max(table, TOLERANCE[types[1]]), atol=1e-6)


@pytest.mark.parametrize("x", [-1e9, -200.0, -88.0, 0.0, 88.0, 200.0, 1e9, -np.inf, np.inf])
@pytest.mark.parametrize("name", ["SILU", "SIGMOID", "GELU", "SOFTPLUS", "RELU", "EXP", "GELU_ERF", "ELU"])
def test_unary_far_out(name: str, x: float) -> None:
    a = tensor("F32", np.full((1, 1, 1, 17), x, np.float32))
    assert_as_ggml(result("UNARY", "F32", (17,), a, params=(UNARY_OPS.index(name),)), rtol=2e-6, atol=1e-30)


@pytest.mark.parametrize("name", GLU_OPS)
@pytest.mark.parametrize("type", ["F32", "F16", "BF16"])
@pytest.mark.parametrize("how", ["two sources", "halves", "swapped halves"])
def test_glu(name: str, type: str, how: str) -> None:
    a, b = normal(1, 1, 2, 5, 64, scale=2.0), normal(2, 1, 2, 5, 64, scale=2.0)
    params = (GLU_OPS.index(name), int(how == "swapped halves"), 1.702, 1.5)
    if how == "two sources":
        dst = result("GLU", type, (64, 5, 2), tensor(type, a, gap=1), tensor(type, b, gap=2), params=params)
    else:
        dst = result("GLU", type, (32, 5, 2), tensor(type, a, gap=1), params=params, gap=1)
    if type != "F32" and name in ("SWIGLU_OAI", "SWIGLU_CLAMP")[: 2 if type == "BF16" else 1]:
        with pytest.raises(VizggmlError, match=f"op {name} has no kernel"):
            KERNELS["GLU"](ComputeParams(), dst)
        return
    table = 2e-3 if name in ("GEGLU", "GEGLU_QUICK") else 3e-6
    assert_as_ggml(dst, rtol=max(table, 2 * TOLERANCE[type]), atol=1e-5)


@pytest.mark.parametrize("type", ["F32", "BF16"])
@pytest.mark.parametrize("bias", [0.0, 0.75])
def test_scale(type: str, bias: float) -> None:
    a = tensor(type, normal(1, 2, 2, 3, 21))
    assert_as_ggml(result("SCALE", type, (21, 3, 2, 2), a, params=(0.125, bias)), rtol=TOLERANCE[type], atol=1e-7)


@pytest.mark.parametrize("type", ["F32", "F16"])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("limits", [(-0.5, 0.25), (6.103515625e-5, np.inf)])
def test_clamp(type: str, order: tuple[int, int, int], limits: tuple[float, float]) -> None:
    a = tensor(type, normal(1, 2, 2, 3, 21), gap=1, order=order)
    assert_as_ggml(result("CLAMP", type, (21, 3, 2, 2), a, params=limits))


def test_leaky_relu_and_fill() -> None:
    a = tensor("F32", normal(1, 2, 2, 3, 21))
    assert_as_ggml(result("LEAKY_RELU", "F32", (21, 3, 2, 2), a, params=(0.1,)))
    assert_as_ggml(result("FILL", "F16", (21, 3, 2, 2), tensor("F16", normal(1, 2, 2, 3, 21)), params=(0.1,)))


@pytest.mark.parametrize(
    ("op", "types"),
    [("ADD", ("I32", "I32", "I32")), ("MUL", ("F32", "F16", "F32")), ("ADD", ("Q8_0", "F16", "Q8_0"))],
)
def test_types_without_a_kernel(op: str, types: tuple[str, str, str]) -> None:
    a, b = result("NONE", types[0], (32,)), result("NONE", types[1], (32,))
    dst = result(op, types[2], (32,), a, b)
    dst.name = "sum"
    with pytest.raises(
        VizggmlError, match=f"node 'sum': op {op} has no kernel for {types[0]}, {types[1]} to {types[2]}"
    ):
        KERNELS[op](ComputeParams(), dst)


@pytest.mark.parametrize(("op", "type"), [("SCALE", "F16"), ("CLAMP", "BF16"), ("FILL", "BF16")])
def test_maps_without_a_kernel(op: str, type: str) -> None:
    a = result("NONE", type, (32,))
    with pytest.raises(VizggmlError, match=f"op {op} has no kernel for {type} to {type}"):
        KERNELS[op](ComputeParams(), result(op, type, (32,), a, params=(1.0, 0.0)))


def test_a_missing_source() -> None:
    a = result("NONE", "F32", (4,))
    with pytest.raises(VizggmlError, match="op ADD needs a source 1, it has none"):
        KERNELS["ADD"](ComputeParams(), result("ADD", "F32", (4,), a))
