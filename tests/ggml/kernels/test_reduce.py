"""Reductions against real ggml."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ggml.kernels.against import assert_as_ggml, gaps, graph_of, normal, orders, result, seeds, shapes
from tests.ggml.kernels.operands import tensor
from tests.oracle_graph import mirrored
from vizggml.errors import VizggmlError
from vizggml.ggml.kernels import KERNELS
from vizggml.ggml.kernels.params import ComputeParams

Shape = tuple[int, int, int, int]


@settings(max_examples=30, deadline=None)
@given(op=st.sampled_from(["SUM_ROWS", "MEAN"]), shape=shapes, gap=gaps, order=orders, seed=seeds)
def test_rows(op: str, shape: Shape, gap: int, order: tuple[int, int, int], seed: int) -> None:
    a = tensor("F32", normal(seed, *shape), gap=gap, order=order)
    assert_as_ggml(result(op, "F32", (1, *shape[2::-1]), a), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("type", ["F32", "F16", "BF16"])
def test_sum(type: str) -> None:
    a = tensor(type, np.abs(normal(1, 2, 3, 4, 50)))
    assert_as_ggml(result("SUM", type, (1,), a), rtol={"F32": 1e-6, "F16": 1e-3, "BF16": 1e-2}[type])


def test_cumsum() -> None:
    a = tensor("F32", normal(1, 2, 3, 4, 50))
    assert_as_ggml(result("CUMSUM", "F32", (50, 4, 3, 2), a), rtol=1e-6, atol=1e-6)


def test_argmax_takes_the_last_of_equals() -> None:
    x = normal(1, 1, 1, 6, 33)
    x[0, 0, 2, [3, 9]] = 50
    assert_as_ggml(result("ARGMAX", "I32", (6,), tensor("F32", x, gap=1)))


@settings(max_examples=30, deadline=None)
@given(descending=st.booleans(), shape=shapes, gap=gaps, seed=seeds)
def test_argsort(descending: bool, shape: Shape, gap: int, seed: int) -> None:
    """Not of permuted dimensions: there ggml goes from row to row by `nb[1]` alone, and reads others."""
    a = tensor("F32", normal(seed, *shape), gap=gap)
    assert_as_ggml(result("ARGSORT", "I32", shape[::-1], a, params=(int(descending),)))


@settings(max_examples=30, deadline=None)
@given(shape=shapes, gap=gaps, seed=seeds, data=st.data())
def test_top_k_finds_the_same_set(shape: Shape, gap: int, seed: int, data: st.DataObject) -> None:
    a = tensor("F32", normal(seed, *shape), gap=gap)
    dst = result("TOP_K", "I32", (data.draw(st.integers(1, shape[3])), *shape[2::-1]), a)
    g = graph_of(dst)
    with mirrored(g) as theirs:
        theirs.compute()
        expected = np.sort(theirs.array(dst), axis=-1)
    for ith in range(2):
        KERNELS["TOP_K"](ComputeParams(ith, 2), dst)
    assert np.array_equal(np.sort(dst.array(), axis=-1), expected)


def test_types_without_a_kernel() -> None:
    a = tensor("F16", normal(1, 1, 1, 2, 8))
    for op in ("SUM_ROWS", "MEAN", "ARGMAX", "ARGSORT"):
        dst = result(op, "I32" if op.startswith("ARG") else "F32", (1, 2), a)
        with pytest.raises(VizggmlError, match=f"op {op} has no kernel for F16"):
            KERNELS[op](ComputeParams(), dst)
    with pytest.raises(VizggmlError, match="op SUM has no kernel for F16 to F32"):
        KERNELS["SUM"](ComputeParams(), result("SUM", "F32", (1,), a))
