"""Products with a Hadamard matrix: as the wheel adds them up, to the bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import oracle_kernels
from tests.ggml.kernels.operands import mul_mat, run, tensor
from vizggml.errors import VizggmlError
from vizggml.ggml.kernels import KERNELS
from vizggml.ggml.kernels.fast import FAST
from vizggml.ggml.ops_model import HINT_SRC0_IS_HADAMARD
from vizggml.ggml.tensor import Tensor
from vizggml.llama.hadamard import hadamard


def product(x: Tensor) -> Tensor:
    dst = mul_mat(tensor("F32", hadamard(x.ne[0])[None, None]), x)
    dst.op_params = (0, HINT_SRC0_IS_HADAMARD)
    return dst


@pytest.mark.parametrize("kernels", [KERNELS, FAST], ids=["reference", "compiled"])
@settings(max_examples=25, deadline=None)
@given(
    n=st.sampled_from([2, 8, 16, 64, 128, 512]),
    shape=st.tuples(st.integers(1, 2), st.integers(1, 3), st.integers(1, 9)),
    type=st.sampled_from(["F32", "F16"]),
    nth=st.integers(1, 3),
    gap=st.integers(0, 2),
    seed=st.integers(0, 99),
)
def test_it_is_ggmls(
    kernels: dict[str, object], n: int, shape: tuple[int, int, int], type: str, nth: int, gap: int, seed: int
) -> None:
    x = np.random.default_rng(seed).normal(size=(*shape, n)).astype(np.float32)
    dst = product(tensor(type, x, gap=gap))
    ours = run(kernels["MUL_MAT"], dst, nth=nth)  # type: ignore[arg-type]
    np.testing.assert_array_equal(ours.view(np.uint32), oracle_kernels.compute(dst).view(np.uint32))


def test_the_textbook_multiplies() -> None:
    """So that it can be seen that both are the same but for rounding."""
    dst = product(tensor("F32", np.random.default_rng(1).normal(size=(1, 1, 5, 64))))
    plain, fast = run(KERNELS["MUL_MAT"], dst, textbook=True), run(KERNELS["MUL_MAT"], dst)
    assert 0 < abs(plain - fast).max() < 1e-5


def test_what_it_does_not_take() -> None:
    dst = product(tensor("F32", np.ones((1, 1, 1, 64))))
    dst.src[1] = tensor("F32", np.ones((1, 1, 1, 96)))
    with pytest.raises(VizggmlError, match="rows of a power of 2, not F32, rows of 96"):
        run(KERNELS["MUL_MAT"], dst)
