"""The causal mask against real ggml."""

from __future__ import annotations

import pytest

from tests.ggml.kernels.against import assert_as_ggml, normal, result
from tests.ggml.kernels.operands import tensor
from vizggml.errors import VizggmlError
from vizggml.ggml.kernels import KERNELS
from vizggml.ggml.kernels.params import ComputeParams


@pytest.mark.parametrize("op", ["DIAG_MASK_INF", "DIAG_MASK_ZERO"])
@pytest.mark.parametrize("n_past", [0, 3, 9])
def test_diag_mask(op: str, n_past: int) -> None:
    a = tensor("F32", normal(1, 1, 3, 5, 9))
    assert_as_ggml(result(op, "F32", (9, 5, 3), a, params=(n_past,)))


def test_f16_has_no_kernel() -> None:
    a = tensor("F16", normal(1, 1, 1, 5, 9))
    with pytest.raises(VizggmlError, match="op DIAG_MASK_INF has no kernel for F16 to F32"):
        KERNELS["DIAG_MASK_INF"](ComputeParams(), result("DIAG_MASK_INF", "F32", (9, 5), a, params=(0,)))
