"""SET and ADD_ID against real ggml."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ggml.kernels.against import assert_as_ggml, gaps, ints, normal, orders, result, seeds, shapes, view_of
from tests.ggml.kernels.operands import tensor
from vizggml.errors import VizggmlError
from vizggml.ggml.kernels import KERNELS
from vizggml.ggml.kernels.params import ComputeParams

Shape = tuple[int, int, int, int]


@settings(max_examples=40, deadline=None)
@given(data=st.data(), shape=shapes, order=orders, gap=gaps, seed=seeds)
def test_set(data: st.DataObject, shape: Shape, order: tuple[int, int, int], gap: int, seed: int) -> None:
    """A part of `a`, somewhere inside, is replaced."""
    part = tuple(data.draw(st.integers(1, n)) for n in shape)
    first = tuple(data.draw(st.integers(0, n - k)) for n, k in zip(shape, part, strict=True))
    a, b = tensor("F32", normal(seed, *shape)), tensor("F32", normal(seed + 1, *part), gap=gap, order=order)
    nb = a.nb
    offset = sum(i * n for i, n in zip(first[::-1], nb, strict=True))
    dst = result("SET", "F32", shape[::-1], a, b, params=(*nb[1:], offset, 0))
    assert_as_ggml(dst)
    want = a.array().copy()
    want[tuple(slice(i, i + k) for i, k in zip(first, part, strict=True))] = b.array()
    KERNELS["SET"](ComputeParams(), dst)
    np.testing.assert_array_equal(dst.array(), want)


def test_set_in_place_leaves_the_rest() -> None:
    a, b = tensor("F32", normal(1, 1, 1, 3, 4)), tensor("F32", normal(2, 1, 1, 2, 2))
    want = a.array().copy()
    want[0, 0, 1:, 1:3] = b.array()[0, 0]
    dst = view_of(a)
    dst.op, dst.name, dst.src, dst.op_params = "SET", "set", [a, b], (16, 48, 48, 20, 1)
    KERNELS["SET"](ComputeParams(), dst)
    np.testing.assert_array_equal(a.array(), want)
    b.name, dst.op_params = "b", (16, 48, 48, 28, 1)
    with pytest.raises(VizggmlError, match="set 'set': 'b' would end at byte 52 of 48"):
        KERNELS["SET"](ComputeParams(), dst)
    dst.src[1] = tensor("F16", normal(2, 1, 1, 2, 2))
    with pytest.raises(VizggmlError, match="op SET has no kernel for F32, F16 to F32"):
        KERNELS["SET"](ComputeParams(), dst)


@settings(max_examples=40, deadline=None)
@given(shape=shapes, n_rows=st.integers(1, 6), order=orders, gap=gaps, seed=seeds)
def test_add_id(shape: Shape, n_rows: int, order: tuple[int, int, int], gap: int, seed: int) -> None:
    _, n2, n1, n0 = shape
    ids = np.random.default_rng(seed).integers(0, n_rows, (1, 1, n2, n1))
    a = tensor("F32", normal(seed, *shape), gap=gap, order=order)
    b = tensor("F32", normal(seed + 1, 1, 1, n_rows, n0), gap=gap)
    assert_as_ggml(result("ADD_ID", "F32", shape[::-1], a, b, ints("I32", ids), gap=gap))


def test_a_row_that_is_not_there() -> None:
    a, b = tensor("F32", normal(1, 1, 1, 2, 4)), tensor("F32", normal(2, 1, 1, 3, 4))
    for wrong in (3, -1):
        dst = result("ADD_ID", "F32", (4, 2), a, b, ints("I32", np.array([[[[0, wrong]]]])))
        with pytest.raises(VizggmlError, match=f"there is no row {wrong}, they are 0 to 2"):
            KERNELS["ADD_ID"](ComputeParams(), dst)
    dst = result("ADD_ID", "F32", (4, 2), a, b, ints("I64", np.zeros((1, 1, 1, 2), int)))
    with pytest.raises(VizggmlError, match="op ADD_ID has no kernel for F32, F32, I64 to F32"):
        KERNELS["ADD_ID"](ComputeParams(), dst)
