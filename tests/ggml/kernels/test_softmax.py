"""Softmax against real ggml: scale, masks, slopes, sinks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ggml.kernels.against import assert_as_ggml, gaps, normal, orders, result, seeds, shapes
from tests.ggml.kernels.operands import tensor
from vizggml.errors import VizggmlError
from vizggml.ggml.kernels import KERNELS
from vizggml.ggml.kernels.params import ComputeParams
from vizggml.ggml.kernels.softmax import alibi_slopes


@settings(max_examples=40, deadline=None)
@given(
    shape=shapes,
    mask_type=st.sampled_from(["", "F32", "F16"]),
    heads_apart=st.booleans(),
    max_bias=st.sampled_from([0.0, 8.0]),
    with_sinks=st.booleans(),
    gap=gaps,
    order=orders,
    seed=seeds,
)
def test_soft_max(
    shape: tuple[int, int, int, int],
    mask_type: str,
    heads_apart: bool,
    max_bias: float,
    with_sinks: bool,
    gap: int,
    order: tuple[int, int, int],
    seed: int,
) -> None:
    _, n2, n1, n0 = shape
    x = tensor("F32", normal(seed, *shape, scale=3.0), gap=gap, order=order)
    mask = sinks = None
    if mask_type:
        # masks are padded to more rows than there are queries; a first column is left open so that no row is empty
        values = np.where(normal(seed + 1, 1, n2 if heads_apart else 1, n1 + 2, n0) > 0.7, -np.inf, 0).astype(
            np.float32
        )
        values[..., 0] = -0.25
        mask = tensor(mask_type, values, gap=gap)
    if with_sinks:
        sinks = tensor("F32", normal(seed + 2, 1, 1, 1, n2))
    dst = result("SOFT_MAX", "F32", shape[::-1], x, mask, sinks, params=(0.3, max_bias if mask_type else 0.0))
    assert_as_ggml(dst, rtol=3e-6, atol=1e-7)


def test_rows_with_large_values_do_not_overflow() -> None:
    x = tensor("F32", normal(1, 1, 1, 4, 33, scale=1e4))
    assert_as_ggml(result("SOFT_MAX", "F32", (33, 4), x, params=(1.0, 0.0)), rtol=3e-6, atol=1e-30)


def test_slopes_of_alibi() -> None:
    # 8 heads: 2^-1, 2^-2, ... 2^-8; 12 heads: those, then the odd halves between
    np.testing.assert_allclose(alibi_slopes(8, 8.0), 2.0 ** -np.arange(1, 9))
    np.testing.assert_allclose(alibi_slopes(12, 8.0)[8:], 2.0 ** -np.array([0.5, 1.5, 2.5, 3.5]), rtol=1e-6)
    assert alibi_slopes(3, 0.0).tolist() == [1, 1, 1]


def test_types_without_a_kernel() -> None:
    x = tensor("F16", normal(1, 1, 1, 1, 8))
    with pytest.raises(VizggmlError, match="op SOFT_MAX has no kernel for F16 to F32"):
        KERNELS["SOFT_MAX"](ComputeParams(), result("SOFT_MAX", "F32", (8,), x, params=(1.0, 0.0)))
    y, mask = tensor("F32", normal(1, 1, 1, 1, 8)), tensor("BF16", normal(1, 1, 1, 1, 8))
    with pytest.raises(VizggmlError, match="op SOFT_MAX has no kernel for F32, BF16 to F32"):
        KERNELS["SOFT_MAX"](ComputeParams(), result("SOFT_MAX", "F32", (8,), y, mask, params=(1.0, 0.0)))
