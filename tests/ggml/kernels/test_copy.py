"""Copies, concatenation and repetition against real ggml."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ggml.kernels.against import assert_as_ggml, gaps, ints, normal, orders, result, seeds, shapes
from tests.ggml.kernels.operands import tensor
from vizggml.errors import VizggmlError
from vizggml.ggml.kernels import KERNELS
from vizggml.ggml.kernels.params import ComputeParams
from vizggml.ggml.tensor import Tensor
from vizggml.ggml.types import TYPES

Shape = tuple[int, int, int, int]
FLOATS = ["F32", "F16", "BF16"]


def copied(op: str, type: str, ne: tuple[int, ...], src: Tensor, gap: int = 0) -> Tensor:
    """CPY writes into a view of its second source; DUP and CONT have a tensor of their own."""
    dst = result(op, type, ne, src, gap=gap)
    if op == "CPY":
        target = result("NONE", type, ne, gap=gap)
        dst.src, dst.view_src, dst.data, dst.nb = [src, target], target, target.data, target.nb
    return dst


@settings(max_examples=60, deadline=None)
@given(
    op=st.sampled_from(["CPY", "DUP", "CONT"]),
    src=st.sampled_from(FLOATS),
    dst=st.sampled_from(FLOATS),
    shape=shapes,
    gap=gaps,
    dst_gap=gaps,
    order=orders,
    seed=seeds,
)
def test_between_floats(
    op: str, src: str, dst: str, shape: Shape, gap: int, dst_gap: int, order: tuple[int, int, int], seed: int
) -> None:
    a = tensor(src, normal(seed, *shape), gap=gap, order=order)
    assert_as_ggml(copied(op, dst, shape[::-1], a, dst_gap))


@pytest.mark.parametrize("type", ["Q4_0", "Q4_1", "Q8_0"])
@pytest.mark.parametrize("src", FLOATS)
def test_to_quantized(src: str, type: str) -> None:
    a = tensor(src, normal(1, 2, 2, 3, 64), gap=1, order=(2, 1, 3))
    assert_as_ggml(copied("CPY", type, (64, 3, 2, 2), a))
    assert_as_ggml(copied("CPY", type, (64,), tensor(src, normal(1, 1, 1, 1, 64))))


@pytest.mark.parametrize("type", ["Q4_0", "Q4_1", "Q8_0", "Q6_K"])
def test_from_quantized(type: str) -> None:
    a = tensor(type, normal(1, 2, 2, 3, 256), gap=1, order=(2, 1, 3))
    assert_as_ggml(copied("CPY", "F32", (256, 3, 2, 2), a))


@pytest.mark.parametrize("type", ["Q4_0", "Q8_0", "Q6_K"])
def test_blocks_are_copied_as_they_are(type: str) -> None:
    a = tensor(type, normal(1, 2, 2, 3, 256), gap=1, order=(2, 1, 3))
    assert_as_ggml(copied("CONT", type, (256, 3, 2, 2), a))


@pytest.mark.parametrize("type", ["I32", "I64", "I16"])
def test_integers(type: str) -> None:
    assert_as_ggml(copied("CPY", type, (5, 3, 2), ints(type, np.arange(-15, 15).reshape(1, 2, 3, 5))))


def test_between_f32_and_i32() -> None:
    x = np.array([[[[0.0, 1.9, -1.9, 2e9, -7.5, 0.4]]]], np.float32)
    assert_as_ggml(copied("CPY", "I32", (6,), tensor("F32", x)))
    assert_as_ggml(copied("CPY", "F32", (6,), ints("I32", np.array([[[[1, -2, 16777217, 2**31 - 1, 0, 5]]]]))))


@pytest.mark.parametrize(("src", "dst"), [("F32", "F32"), ("F32", "F16"), ("F16", "F32"), ("I32", "I32")])
def test_into_another_shape(src: str, dst: str) -> None:
    x = normal(1, 2, 3, 4, 10)
    a = ints("I32", (x * 100).astype(np.int32)) if src == "I32" else tensor(src, x, order=(2, 1, 3))
    assert_as_ggml(copied("CONT", dst, (60, 4), a))
    assert_as_ggml(copied("CPY", dst, (20, 12), a, gap=0 if dst == "I32" else 3))


def test_quantized_into_another_shape() -> None:
    a = tensor("Q8_0", normal(1, 1, 2, 3, 128))
    assert_as_ggml(copied("CPY", "F32", (64, 12), a))
    assert_as_ggml(copied("CONT", "Q8_0", (64, 12), a))


def test_a_transposed_matrix_becomes_contiguous() -> None:
    a = tensor("F32", normal(1, 1, 2, 5, 7))
    a.ne, a.nb = (5, 7, 2, 1), (a.nb[1], a.nb[0], a.nb[2], a.nb[3])
    dst = copied("CONT", "F32", (5, 7, 2), a)
    assert_as_ggml(dst)


@settings(max_examples=30, deadline=None)
@given(type=st.sampled_from(["F32", "F16", "Q8_0", "I32"]), dim=st.integers(0, 3), shape=shapes, more=st.integers(1, 3),
       gap=gaps, order=orders, seed=seeds)  # fmt: skip
def test_concat(type: str, dim: int, shape: Shape, more: int, gap: int, order: tuple[int, int, int], seed: int) -> None:
    first = list(shape)
    if type == "Q8_0":
        first[3] = 64
        more *= 32 if dim == 0 else 1
    second = list(first)
    second[3 - dim] = more
    total = list(first)
    total[3 - dim] += more
    a, b = (
        ints("I32", (normal(seed, *n) * 100).astype(np.int32))
        if type == "I32"
        else tensor(type, normal(seed, *n), gap=gap, order=order)
        for n in (first, second)
    )
    assert_as_ggml(result("CONCAT", type, total[::-1], a, b, params=(dim,)))


@settings(max_examples=25, deadline=None)
@given(type=st.sampled_from(["F32", "F16"]), shape=shapes, times=st.tuples(*[st.integers(1, 3)] * 4), gap=gaps,
       order=orders, seed=seeds)  # fmt: skip
def test_repeat(type: str, shape: Shape, times: Shape, gap: int, order: tuple[int, int, int], seed: int) -> None:
    a = tensor(type, normal(seed, *shape), gap=gap, order=order)
    ne = [n * t for n, t in zip(shape, times, strict=True)]
    assert_as_ggml(result("REPEAT", type, ne[::-1], a, gap=gap))


@pytest.mark.parametrize(("src", "dst"), [("Q8_0", "F16"), ("F32", "IQ2_XS"), ("I32", "F16"), ("Q4_0", "Q8_0")])
def test_pairs_without_a_kernel(src: str, dst: str) -> None:
    a = result("NONE", src, (256,)) if src == "I32" else tensor(src, normal(1, 1, 1, 1, 256))
    target = tensor("Q4_0" if dst == "IQ2_XS" else dst, normal(1, 1, 1, 1, 256))
    target.type = TYPES[dst]
    target.op, target.name, target.src = "CPY", "copy", [a]
    with pytest.raises(VizggmlError, match=f"node 'copy': op CPY has no kernel for {src} to {dst}"):
        KERNELS["CPY"](ComputeParams(), target)


def test_concat_and_repeat_of_types_without_a_kernel() -> None:
    a, b = tensor("F32", normal(1, 1, 1, 1, 32)), tensor("F16", normal(1, 1, 1, 1, 32))
    with pytest.raises(VizggmlError, match="op CONCAT has no kernel for F32, F16 to F32"):
        KERNELS["CONCAT"](ComputeParams(), result("CONCAT", "F32", (64,), a, b, params=(0,)))
    q = tensor("Q8_0", normal(1, 1, 1, 1, 32))
    with pytest.raises(VizggmlError, match="op REPEAT has no kernel for Q8_0 to Q8_0"):
        KERNELS["REPEAT"](ComputeParams(), result("REPEAT", "Q8_0", (64,), q))
