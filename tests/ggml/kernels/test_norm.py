"""Normalization against real ggml, alone and fused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ggml.kernels.against import assert_as_ggml, gaps, graph_of, normal, orders, result, seeds, shapes
from tests.ggml.kernels.operands import tensor
from tests.oracle_graph import mirrored
from vizggml.errors import VizggmlError
from vizggml.ggml.kernels import FUSED, KERNELS
from vizggml.ggml.kernels.params import ComputeParams

Shape = tuple[int, int, int, int]


@settings(max_examples=40, deadline=None)
@given(op=st.sampled_from(["RMS_NORM", "NORM", "L2_NORM"]), shape=shapes, gap=gaps, order=orders, seed=seeds)
def test_norms(op: str, shape: Shape, gap: int, order: tuple[int, int, int], seed: int) -> None:
    a = tensor("F32", normal(seed, *shape) + 0.5, gap=gap, order=order)
    assert_as_ggml(result(op, "F32", shape[::-1], a, params=(1e-5,), gap=gap), rtol=2e-5, atol=2e-5)


@settings(max_examples=30, deadline=None)
@given(shape=shapes, per_group=st.integers(1, 3), gap=gaps, order=orders, seed=seeds)
def test_group_norm(shape: Shape, per_group: int, gap: int, order: tuple[int, int, int], seed: int) -> None:
    a = tensor("F32", normal(seed, *shape) + 0.5, gap=gap, order=order)
    n_groups = -(-shape[1] // per_group)
    assert_as_ggml(result("GROUP_NORM", "F32", shape[::-1], a, params=(n_groups, 1e-5), gap=gap), rtol=2e-5, atol=2e-5)


def test_rms_norm_of_a_long_row_is_summed_in_double() -> None:
    a = tensor("F32", normal(1, 1, 1, 2, 4096, scale=30.0))
    assert_as_ggml(result("RMS_NORM", "F32", (4096, 2), a, params=(1e-6,)), rtol=2e-7)


@settings(max_examples=25, deadline=None)
@given(shape=shapes, rows=st.booleans(), gap=gaps, order=orders, seed=seeds)
def test_fused_with_its_weight(shape: Shape, rows: bool, gap: int, order: tuple[int, int, int], seed: int) -> None:
    x = tensor("F32", normal(seed, *shape), gap=gap, order=order)
    weight = tensor("F32", normal(seed + 1, *((1, 1, shape[2]) if rows else (1, 1, 1)), shape[3]))
    norm = result("RMS_NORM", "F32", shape[::-1], x, params=(1e-5,))
    mul = result("MUL", "F32", shape[::-1], norm, weight)
    g = graph_of(mul)
    with mirrored(g) as theirs:
        theirs.compute()
        expected = theirs.array(mul).copy()
    before = norm.array().copy()
    for nth in (1, 3):
        mul.array()[...] = np.nan
        for ith in range(nth):
            FUSED["RMS_NORM", "MUL"](ComputeParams(ith, nth), norm, mul)
        np.testing.assert_allclose(mul.array(), expected, rtol=1e-6)
    assert np.array_equal(norm.array(), before), "the norm by itself is never written"


def test_the_weight_may_be_the_first_source() -> None:
    x, weight = tensor("F32", normal(1, 1, 1, 3, 8)), tensor("F32", normal(2, 1, 1, 3, 8))
    norm = result("RMS_NORM", "F32", (8, 3), x, params=(1e-5,))
    mul = result("MUL", "F32", (8, 3), weight, norm)
    FUSED["RMS_NORM", "MUL"](ComputeParams(), norm, mul)
    scale = 1 / np.sqrt((x.array().astype(np.float64) ** 2).mean(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(mul.array(), x.array() * scale * weight.array(), rtol=1e-5)


def test_f16_has_no_kernel() -> None:
    a = tensor("F16", normal(1, 1, 1, 1, 8))
    with pytest.raises(VizggmlError, match="node 'rms_norm': op RMS_NORM has no kernel for F16 to F32"):
        KERNELS["RMS_NORM"](ComputeParams(), result("RMS_NORM", "F32", (8,), a, params=(1e-5,)))
