"""MUL_MAT against the real library: every pair of types, broadcast, views with gaps, split among threads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import oracle_kernels, oracle_quants
from tests.ggml.kernels.operands import mul_mat, run, tensor
from vizggml.errors import VizggmlError
from vizggml.ggml import quants
from vizggml.ggml.kernels import mul_mat as module
from vizggml.ggml.kernels.mul_mat import forward_mul_mat
from vizggml.ggml.types import TYPES, Type

WEIGHTS = ("F32", "F16", "BF16", "Q4_0", "Q4_1", "Q8_0", "Q6_K")
CLOSE = 1e-11
"""Normalized mean square error that the order of F32 additions leaves: 1e-5 squared leaves room, F16 sums included."""


def random(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("name", WEIGHTS)
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_equals_ggml(name: str, data: st.DataObject) -> None:
    draw = data.draw
    type = TYPES[name]
    ne0 = type.blck_size * draw(st.integers(1, 3)) if type.is_quantized else draw(st.integers(1, 70))
    ne01, ne11 = draw(st.integers(1, 40)), draw(st.integers(1, 40))
    ne02, ne03, r2, r3 = (draw(st.integers(1, 3)) for _ in range(4))
    order = draw(st.sampled_from([(1, 2, 3), (2, 1, 3), (3, 2, 1)]))
    seed, nth = draw(st.integers(0, 1000)), draw(st.integers(1, 3))
    src0 = tensor(type, random(seed, ne03, ne02, ne01, ne0), gap=draw(st.integers(0, 2)), order=order)
    src1 = tensor("F32", random(seed + 1, ne03 * r3, ne02 * r2, ne11, ne0), gap=draw(st.integers(0, 2)), order=order)
    dst = mul_mat(src0, src1)
    ours, theirs = run(forward_mul_mat, dst, nth=nth), oracle_kernels.compute(dst)
    # a sum of ne0 products of normal numbers has the mean square ne0: one that cancels is not measured by what is left
    error, power = np.square(ours - theirs).mean(), max(np.square(theirs).mean(), ne0)
    assert error / power < CLOSE


@pytest.mark.parametrize("name", [n for n, t in TYPES.items() if t.vec_dot_type and n not in (*WEIGHTS, "Q8_1")])
def test_activations_are_taken_as_ggml_takes_them_for_every_type(name: str) -> None:
    src0 = tensor(name, random(11, 1, 1, 24, 768))
    dst = mul_mat(src0, tensor("F32", random(12, 1, 2, 5, 768)))
    assert oracle_kernels.nmse(run(forward_mul_mat, dst, nth=2), oracle_kernels.compute(dst)) < CLOSE


@pytest.mark.parametrize("name", ["F16", "BF16"])
def test_half_activations_are_widened_for_f32_weights(name: str) -> None:
    dst = mul_mat(tensor("F32", random(1, 1, 1, 5, 64)), tensor(name, random(2, 1, 1, 3, 64)))
    assert oracle_kernels.nmse(run(forward_mul_mat, dst, nth=2), oracle_kernels.compute(dst)) < CLOSE


@pytest.mark.parametrize(
    ("weights", "given_as"), [("F16", "F16"), ("Q4_0", "Q8_0"), ("Q6_K", "Q8_K"), ("Q4_1", "Q8_1")]
)
def test_activations_already_in_the_dot_product_type_are_read_where_they_lie(weights: str, given_as: str) -> None:
    x = random(4, 1, 1, 3, 256)
    w = tensor(weights, random(3, 1, 1, 5, 256))
    encoded = tensor(given_as, x)
    ours = run(forward_mul_mat, mul_mat(w, encoded), wsize=0)
    want = oracle_kernels.compute(mul_mat(w, encoded))
    assert oracle_kernels.nmse(ours, want) < CLOSE


@pytest.mark.parametrize("name", [n for n in WEIGHTS if n != "F32"])
@pytest.mark.parametrize("nth", [1, 3])
def test_the_scratch_holds_the_encoded_rows(name: str, nth: int) -> None:
    """Exactly the bytes of the real encoder, and not one beyond them is written."""
    type: Type = TYPES[TYPES[name].vec_dot_type]
    x = random(5, 2, 3, 4, 768)
    dst = mul_mat(tensor(name, random(6, 1, 1, 5, 768)), tensor("F32", x, order=(2, 1, 3)))
    seen: list[np.ndarray] = []

    def keep(params: module.ComputeParams, node: module.Tensor) -> None:
        forward_mul_mat(params, node)
        assert params.wdata is not None
        seen.append(params.wdata)

    run(keep, dst, nth=nth)
    want = oracle_quants.from_float(type, x.reshape(-1, 768)).ravel()
    np.testing.assert_array_equal(seen[0][: want.size], want)
    assert (seen[0][want.size :] == 0xFF).all()


@pytest.mark.parametrize("name", WEIGHTS)
def test_the_textbook_way_multiplies_floats(name: str) -> None:
    """Against float64: decode the weights as the real library does, take the activations as they are."""
    x = random(7, 1, 1, 3, 256)
    w = tensor(name, random(8, 1, 1, 5, 256))
    ours = run(forward_mul_mat, mul_mat(w, tensor("F32", x)), textbook=True, wsize=0)
    rows = w.array()[0, 0].view(np.uint8).reshape(5, -1)
    decoded = rows.view(np.float32) if name == "F32" else oracle_quants.to_float(TYPES[name], rows, 256)
    want = x[0, 0].astype(np.float64) @ decoded.T.astype(np.float64)
    assert oracle_kernels.nmse(ours[0, 0], want.astype(np.float32)) < CLOSE


def test_weights_are_decoded_a_block_of_rows_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    real = quants.decode

    def spy(type: Type, blocks: np.ndarray) -> np.ndarray:
        asked.append(blocks.size // type.type_size * type.blck_size)
        return real(type, blocks)

    monkeypatch.setattr(quants, "decode", spy)
    monkeypatch.setattr(module, "MAX_DECODED", 1024)
    dst = mul_mat(tensor("Q8_0", random(9, 1, 1, 100, 64)), tensor("F32", random(10, 1, 1, 2, 64)))
    assert oracle_kernels.nmse(run(forward_mul_mat, dst), oracle_kernels.compute(dst)) < CLOSE
    assert max(asked) <= 1024
    assert len(asked) == 1 + -(-100 // 16)


def test_errors_name_the_thing() -> None:
    f32, q4 = tensor("F32", random(1, 1, 1, 2, 32)), tensor("Q4_0", random(1, 1, 1, 2, 32))
    with pytest.raises(VizggmlError, match="needs 68 bytes of scratch, the plan has 67"):
        run(forward_mul_mat, mul_mat(q4, f32), wsize=67)
    with pytest.raises(VizggmlError, match="Q4_0 weights take F32 or Q8_0 activations, not F16"):
        run(forward_mul_mat, mul_mat(q4, tensor("F16", random(1, 1, 1, 2, 32))))
    i32 = tensor("F32", random(1, 1, 1, 2, 32))
    i32.type = TYPES["I32"]
    with pytest.raises(VizggmlError, match="type I32 of '' has no dot product"):
        run(forward_mul_mat, mul_mat(i32, f32))
    sideways = tensor("F32", random(1, 1, 1, 32, 32))
    sideways.nb = (sideways.nb[1], sideways.nb[0], *sideways.nb[2:])
    with pytest.raises(VizggmlError, match=r"rows of '' are not contiguous \(nb\[0\] is 128, must be 4\)"):
        run(forward_mul_mat, mul_mat(sideways, f32))
