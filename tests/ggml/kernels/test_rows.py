"""Rows by index against real ggml."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ggml.kernels.against import assert_as_ggml, gaps, ints, normal, orders, result, seeds, sliced_ints
from tests.ggml.kernels.operands import tensor
from vizggml.errors import VizggmlError
from vizggml.ggml.kernels import KERNELS
from vizggml.ggml.kernels.params import ComputeParams
from vizggml.ggml.tensor import Tensor
from vizggml.ggml.types import TYPES

READ = ["F32", "F16", "BF16", "Q4_0", "Q4_1", "Q8_0", "Q6_K"]
WRITTEN = ["F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "IQ4_NL"]


@settings(max_examples=40, deadline=None)
@given(
    type=st.sampled_from(READ),
    batches=st.integers(1, 2),
    heads=st.integers(1, 3),
    n_rows=st.integers(1, 6),
    n=st.integers(1, 7),
    gap=gaps,
    order=orders,
    seed=seeds,
)
def test_get_rows(
    type: str, batches: int, heads: int, n_rows: int, n: int, gap: int, order: tuple[int, int, int], seed: int
) -> None:
    a = tensor(type, normal(seed, batches, heads, n_rows, 256), gap=gap, order=order)
    wanted = np.random.default_rng(seed).integers(0, n_rows, (1, batches, heads, n))
    dst = result("GET_ROWS", "F32", (256, n, heads, batches), a, ints("I32", wanted))
    assert_as_ggml(dst)


@pytest.mark.parametrize("ne0", [1, 5])
def test_get_rows_by_a_slice_of_a_sorted_row(ne0: int) -> None:
    """The weights of the chosen experts: rows of one number, by the first columns of wider rows of indices."""
    a = tensor("F32", normal(1, 1, 7, 6, ne0), gap=1)
    order = np.stack([np.random.default_rng(i).permutation(6) for i in range(7)])
    assert_as_ggml(result("GET_ROWS", "F32", (ne0, 3, 7), a, sliced_ints(order[None, None], 1, 3)))


def test_get_rows_of_integers() -> None:
    table = ints("I32", np.arange(24).reshape(1, 1, 6, 4))
    assert_as_ggml(result("GET_ROWS", "I32", (4, 3), table, ints("I32", np.array([[[[5, 0, 2]]]]))))


def into(type: str, cache: Tensor, x: Tensor, rows: Tensor) -> Tensor:
    """SET_ROWS: its result is a view of the cache, which real ggml also keeps as source 2."""
    dst = Tensor(cache.type, cache.ne, cache.nb, view_src=cache, data=cache.data)
    dst.op, dst.src, dst.name = "SET_ROWS", [x, rows, cache], "set_rows"
    return dst


@settings(max_examples=40, deadline=None)
@given(
    type=st.sampled_from(WRITTEN),
    src_type=st.sampled_from(["F32", "F16"]),
    index=st.sampled_from(["I64", "I32"]),
    batches=st.integers(1, 2),
    heads=st.integers(1, 3),
    per_head=st.booleans(),
    n=st.integers(1, 5),
    gap=gaps,
    order=orders,
    seed=seeds,
)
def test_set_rows(
    type: str,
    src_type: str,
    index: str,
    batches: int,
    heads: int,
    per_head: bool,
    n: int,
    gap: int,
    order: tuple[int, int, int],
    seed: int,
) -> None:
    cache = tensor(type, normal(seed, batches, heads, 8, 64), gap=gap, order=order)
    x = tensor(src_type, normal(seed + 1, batches, heads, n, 64), gap=gap, order=order)
    rng = np.random.default_rng(seed)
    rows = np.array([[rng.permutation(8)[:n] for _ in range(heads if per_head else 1)]])[None]
    assert_as_ggml(into(type, cache, x, ints(index, rows)), atol=0.0)


def test_set_rows_beyond_the_largest_f16() -> None:
    cache = tensor("F16", normal(1, 1, 1, 4, 8))
    x = tensor("F32", np.array([[[[1e6, -1e6, 65504, 65519, 65520, 1e-8, -1e-8, 6e-8]]]], np.float32))
    assert_as_ggml(into("F16", cache, x, ints("I64", np.array([[[[2]]]]))))


@pytest.mark.parametrize("row", [-1, 6])
def test_a_row_that_is_not_there(row: int) -> None:
    a, wanted = tensor("F32", normal(1, 1, 1, 6, 4)), ints("I32", np.array([[[[0, row]]]]))
    with pytest.raises(VizggmlError, match=f"node 'get_rows': GET_ROWS of row {row}, the tensor has 6"):
        KERNELS["GET_ROWS"](ComputeParams(), result("GET_ROWS", "F32", (4, 2), a, wanted))
    x = tensor("F32", normal(1, 1, 1, 2, 4))
    with pytest.raises(VizggmlError, match=f"node 'set_rows': SET_ROWS of row {row}, the tensor has 6"):
        KERNELS["SET_ROWS"](ComputeParams(), into("F32", a, x, wanted))


def test_types_without_a_kernel() -> None:
    rows = ints("I32", np.array([[[[0]]]]))
    with pytest.raises(VizggmlError, match="op GET_ROWS has no kernel for I64, I32 to F32"):
        KERNELS["GET_ROWS"](
            ComputeParams(), result("GET_ROWS", "F32", (4,), ints("I64", np.zeros((1, 1, 1, 4), int)), rows)
        )
    cache, x = tensor("Q6_K", normal(1, 1, 1, 2, 256)), tensor("F32", normal(1, 1, 1, 1, 256))
    node = into("Q6_K", cache, x, rows)
    node.type = cache.type = TYPES["IQ2_XS"]
    with pytest.raises(VizggmlError, match="op SET_ROWS has no kernel for F32, I32, IQ2_XS to IQ2_XS"):
        KERNELS["SET_ROWS"](ComputeParams(), node)
