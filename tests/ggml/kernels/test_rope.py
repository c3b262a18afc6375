"""Rotary embedding against real ggml: both pairings, factors, YaRN, partial rotation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ggml.kernels.against import assert_as_ggml, gaps, ints, normal, orders, result, seeds
from tests.ggml.kernels.operands import tensor
from vizggml.errors import VizggmlError
from vizggml.ggml.kernels import KERNELS
from vizggml.ggml.kernels.params import ComputeParams
from vizggml.ggml.tensor import Tensor


def rope(
    x: Tensor,
    positions: list[int],
    n_dims: int,
    mode: int,
    *,
    factors: Tensor | None = None,
    ext_factor: float = 0.0,
    freq_base: float = 10000.0,
    freq_scale: float = 1.0,
    attn_factor: float = 1.0,
    n_offs: int = 0,
    n_ctx_orig: int = 4096,
    op: str = "ROPE",
    type: str = "F32",
) -> Tensor:
    pos = ints("I32", np.array(positions).reshape(1, 1, 1, -1))
    floats = (freq_base, freq_scale, ext_factor, attn_factor, 32.0, 1.0)
    params = (0, n_dims, mode, 0, n_ctx_orig, *floats, 0, 0, 0, 0, n_offs)
    return result(op, type, x.ne, x, pos, factors, params=params)


@settings(max_examples=40, deadline=None)
@given(
    mode=st.sampled_from([0, 2]),
    heads=st.integers(1, 4),
    positions=st.lists(st.integers(0, 8000), min_size=1, max_size=5),
    n_dims=st.sampled_from([16, 32, 64]),
    head=st.sampled_from([64, 80]),
    type=st.sampled_from(["F32", "F16"]),
    gap=gaps,
    order=orders,
    seed=seeds,
)
def test_rope(
    mode: int,
    heads: int,
    positions: list[int],
    n_dims: int,
    head: int,
    type: str,
    gap: int,
    order: tuple[int, int, int],
    seed: int,
) -> None:
    x = tensor(type, normal(seed, 2, len(positions), heads, head), gap=gap, order=order)
    # the sine of 8,000 radians loses some of its bits in F32, the same ones to within a few units
    assert_as_ggml(rope(x, positions, n_dims, mode, type=type), rtol=1e-3, atol=2e-3 if type == "F16" else 5e-6)


@pytest.mark.parametrize("mode", [0, 2])
@pytest.mark.parametrize("ext_factor", [0.0, 1.0, 0.5])
@pytest.mark.parametrize("with_factors", [False, True])
def test_frequency_factors_and_yarn(mode: int, ext_factor: float, with_factors: bool) -> None:
    x = tensor("F32", normal(1, 1, 4, 3, 64))
    factors = tensor("F32", np.linspace(1, 8, 32, dtype=np.float32).reshape(1, 1, 1, 32)) if with_factors else None
    dst = rope(
        x,
        [0, 1, 17, 4000],
        64,
        mode,
        factors=factors,
        ext_factor=ext_factor,
        freq_base=500000.0,
        freq_scale=0.25,
        attn_factor=1.1,
    )
    assert_as_ggml(dst, rtol=1e-5, atol=5e-6)


@pytest.mark.parametrize("n_ctx_orig", [4096, 0, -1])
@pytest.mark.parametrize("freq_base", [1.0, 1e-3, 1e30])
def test_yarn_of_a_file_that_makes_no_sense(freq_base: float, n_ctx_orig: int) -> None:
    """The correction range is infinite with a base of 1, no number with a context below 0; ggml goes on."""
    x = tensor("F32", normal(1, 1, 2, 1, 8))
    dst = rope(x, [0, 1], 8, 2, ext_factor=1.0, freq_base=freq_base, n_ctx_orig=n_ctx_orig)
    assert_as_ggml(dst, rtol=1e-5, atol=5e-6)


@pytest.mark.parametrize("mode", [0, 2])
def test_channels_before_and_after_the_rotated_ones_are_copied(mode: int) -> None:
    x = tensor("F32", normal(1, 1, 4, 3, 64), gap=1)
    assert_as_ggml(rope(x, [5, 6, 7, 8], 32, mode, n_offs=16), atol=2e-6)


def test_in_place_leaves_the_other_channels() -> None:
    x = tensor("F32", normal(1, 1, 2, 3, 64))
    apart = rope(x, [3, 9], 32, 2)
    KERNELS["ROPE"](ComputeParams(), apart)
    over = rope(x, [3, 9], 32, 2)
    over.data, over.nb, over.view_src = x.data, x.nb, x
    KERNELS["ROPE"](ComputeParams(), over)
    assert np.array_equal(over.array(), apart.array())


def test_rope_back_undoes_rope() -> None:
    x = tensor("F32", normal(1, 1, 4, 3, 64))
    assert_as_ggml(rope(x, [5, 6, 7, 800], 64, 2, op="ROPE_BACK"), atol=5e-6)


def test_what_has_no_kernel() -> None:
    x = tensor("F32", normal(1, 1, 1, 1, 64))
    with pytest.raises(VizggmlError, match="rope mode 8 has no kernel"):
        KERNELS["ROPE"](ComputeParams(), rope(x, [1], 64, 8))
    bf16 = tensor("BF16", normal(1, 1, 1, 1, 64))
    with pytest.raises(VizggmlError, match="op ROPE has no kernel for BF16, I32, none to BF16"):
        KERNELS["ROPE"](ComputeParams(), rope(bf16, [1], 64, 0, type="BF16"))
