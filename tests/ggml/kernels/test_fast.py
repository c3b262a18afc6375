"""The compiled kernels and the reference kernels, held together on views with gaps and permuted dimensions."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import oracle_kernels
from tests.ggml.kernels.operands import blocks_of, mul_mat, run, tensor
from tests.ggml.kernels.test_flash_attn import Shape, attention
from tests.ggml.kernels.test_mul_mat_id import mul_mat_id
from tests.ggml.quants.strategies import rows
from vizggml.errors import VizggmlError
from vizggml.ggml import quants
from vizggml.ggml.kernels import KERNELS
from vizggml.ggml.kernels.fast import FAST, lanes, traits
from vizggml.ggml.kernels.fast.mul_mat import ENCODED_BY_EACH
from vizggml.ggml.kernels.fast.stale import STAMP, forget_stale
from vizggml.ggml.types import TYPES

CLOSE, CLOSE_F16_SUMS = 1e-11, 1e-7
ROUNDED = 2e-6
"""Of the sum of the products' magnitudes: what the order of summation may change."""
WEIGHTS = tuple(traits.VEC_DOTS)


def call(address: int, *values: int) -> None:
    ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * len(values))(address)(*values)


@pytest.mark.parametrize("name", list(traits.FROM_FLOATS))
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_activations_are_encoded_byte_for_byte_as_in_the_reference(name: str, data: st.DataObject) -> None:
    x = data.draw(rows(max(32, TYPES[name].blck_size)))
    want = quants.from_float(TYPES[name], x)
    ours = np.full_like(want, 0xFF)
    for i in range(len(x)):
        call(traits.from_float(name), x[i].ctypes.data, x.shape[1], ours[i].ctypes.data)
    np.testing.assert_array_equal(ours, want)


@pytest.mark.parametrize("name", ["F16", "BF16"])
def test_rows_of_any_length_are_encoded(name: str) -> None:
    x = np.random.default_rng(1).normal(size=37).astype(np.float32)
    x[3] = np.nan
    want = quants.from_float(TYPES[name], x)
    ours = np.zeros_like(want)
    call(traits.from_float(name), x.ctypes.data, 37, ours.ctypes.data)
    np.testing.assert_array_equal(np.delete(ours, 3, 0), np.delete(want, 3, 0))
    assert np.isnan(quants.decode(TYPES[name], ours)[3])


@pytest.mark.parametrize("name", list(traits.TO_FLOATS))
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 4))
@settings(max_examples=30, deadline=None)
def test_rows_are_decoded_bit_for_bit_as_in_the_reference(name: str, seed: int, n: int) -> None:
    type = TYPES[name]
    n *= max(1, 37 // type.blck_size)
    blocks = np.random.default_rng(seed).integers(0, 256, (n, type.type_size), np.uint8)
    ours = np.zeros(n * type.blck_size, np.float32)
    call(traits.to_float(name), blocks.ctypes.data, ours.size, ours.ctypes.data)
    with np.errstate(invalid="ignore", over="ignore"):
        want = quants.decode(type, blocks)
    same = ~np.isnan(want)
    np.testing.assert_array_equal(np.isnan(ours), ~same)
    np.testing.assert_array_equal(ours[same].view(np.uint32), want[same].view(np.uint32))


@pytest.mark.parametrize("name", WEIGHTS)
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_mul_mat(name: str, data: st.DataObject) -> None:
    draw, type = data.draw, TYPES[name]
    ne0 = type.blck_size * draw(st.integers(1, 3)) if type.is_quantized else draw(st.integers(1, 80))
    ne02, ne03, r2, r3 = (draw(st.integers(1, 3)) for _ in range(4))
    order = draw(st.sampled_from([(1, 2, 3), (2, 1, 3), (3, 2, 1)]))
    rng, gap = np.random.default_rng(draw(st.integers(0, 99))), draw(st.integers(0, 2))
    w = rng.normal(size=(ne03, ne02, draw(st.integers(1, 150)), ne0))
    x = rng.normal(size=(ne03 * r3, ne02 * r2, draw(st.integers(1, 40)), ne0))
    dst = mul_mat(tensor(type, w, gap=gap, order=order), tensor("F32", x, gap=gap, order=order))
    nth, textbook = draw(st.integers(1, 3)), draw(st.booleans())
    ours, want = (run(k["MUL_MAT"], dst, nth=n, textbook=textbook) for k, n in ((FAST, nth), (KERNELS, 1)))
    magnitudes = abs(quants.decode(type, blocks_of(type, w.astype(np.float32))))
    largest = run(KERNELS["MUL_MAT"], mul_mat(tensor("F32", magnitudes), tensor("F32", abs(x))))
    assert (abs(ours - want) <= ROUNDED * largest).all()


@pytest.mark.parametrize("columns", [1, 300])
@pytest.mark.parametrize(("name", "given_as"), [("F32", "F16"), ("F32", "BF16"), ("Q4_1", "Q8_1"), ("F16", "F16")])
def test_mul_mat_of_activations_that_are_not_f32(name: str, given_as: str, columns: int) -> None:
    rng = np.random.default_rng(2)
    dst = mul_mat(tensor(name, rng.normal(size=(1, 2, 70, 64))), tensor(given_as, rng.normal(size=(1, 2, columns, 64))))
    want = run(KERNELS["MUL_MAT"], dst)
    assert oracle_kernels.nmse(run(FAST["MUL_MAT"], dst, nth=2), want) < CLOSE


@pytest.mark.parametrize("n_rows", [3, 2 * ENCODED_BY_EACH // 256])
def test_the_scratch_holds_the_encoded_rows(n_rows: int) -> None:
    """Few activations are encoded by every thread, many are shared out: the same bytes in the end."""
    x = np.random.default_rng(3).normal(size=(1, 1, n_rows, 256)).astype(np.float32)
    dst = mul_mat(tensor("Q6_K", x[:, :, :2]), tensor("F32", x))
    kept: list[np.ndarray] = []
    run(lambda params, t: (FAST["MUL_MAT"](params, t), kept.append(params.wdata))[1], dst, nth=3)  # type: ignore[func-returns-value,arg-type]
    want = quants.from_float(TYPES["Q8_K"], x).ravel()
    np.testing.assert_array_equal(kept[0][: want.size], want)
    assert (kept[0][want.size :] == 0xFF).all()


def test_weights_in_memory_that_cannot_be_written() -> None:
    """A mapped file is read-only."""
    w = tensor("Q8_0", np.random.default_rng(4).normal(size=(1, 1, 5, 64)))
    dst = mul_mat(w, tensor("F32", np.ones((1, 1, 1, 64))))
    want = run(KERNELS["MUL_MAT"], dst)
    assert w.data is not None
    w.data.memory.flags.writeable = False
    assert oracle_kernels.nmse(run(FAST["MUL_MAT"], dst), want) < CLOSE


@pytest.mark.parametrize("kv", [n for n in WEIGHTS if n != "Q6_K"])
@given(data=st.data())
@settings(max_examples=12, deadline=None)
def test_flash_attn(kv: str, data: st.DataObject) -> None:
    draw = data.draw
    heads_kv, shared = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    n_q, n_kv = draw(st.sampled_from([(1, 530), (1, 9), (7, 100), (64, 64), (70, 150)]))
    sizes = st.sampled_from([32, 64]) if TYPES[kv].is_quantized else st.sampled_from([24, 32, 40])
    shape = Shape(n_q, n_kv, heads_kv * shared, heads_kv, draw(sizes), draw(sizes), draw(st.integers(1, 2)))
    dst = attention(
        shape,
        kv,
        seed=draw(st.integers(0, 99)),
        mask=draw(st.sampled_from([None, "causal", "random", "nothing"])),
        sinks=draw(st.booleans()),
        params=(0.2, draw(st.sampled_from([0.0, 8.0])), draw(st.sampled_from([0.0, 20.0]))),
    )
    nth = draw(st.integers(1, 3))
    want = run(KERNELS["FLASH_ATTN_EXT"], dst, nth=nth)
    limit = CLOSE_F16_SUMS if kv == "F16" else CLOSE
    assert oracle_kernels.nmse(run(FAST["FLASH_ATTN_EXT"], dst, nth=nth), want) < limit


@pytest.mark.parametrize(
    "shape", [Shape(1, 520, 9, 3, 64, 64), Shape(64, 96, 9, 3, 64, 64), Shape(3, 300, 9, 3, 64, 64)]
)
def test_flash_attn_equals_ggml(shape: Shape) -> None:
    dst = attention(shape)
    theirs = oracle_kernels.compute(dst, n_threads=2)
    assert oracle_kernels.nmse(run(FAST["FLASH_ATTN_EXT"], dst, nth=2), theirs) < CLOSE_F16_SUMS


def test_errors_name_the_thing() -> None:
    x = tensor("F32", np.ones((1, 1, 1, 32)))
    with pytest.raises(VizggmlError, match="needs 36 bytes of scratch, the plan has 8"):
        run(FAST["MUL_MAT"], mul_mat(tensor("Q4_1", np.ones((1, 1, 2, 32))), x), wsize=8)
    with pytest.raises(VizggmlError, match="Q4_0 weights take F32 or Q8_0 activations, not F16"):
        run(FAST["MUL_MAT"], mul_mat(tensor("Q4_0", np.ones((1, 1, 2, 32))), tensor("F16", np.ones((1, 1, 1, 32)))))
    dst = attention(Shape(64, 64))
    with pytest.raises(VizggmlError, match=r"needs 65\d+ bytes of scratch, the plan has 1024"):
        run(FAST["FLASH_ATTN_EXT"], dst, wsize=1024)


@pytest.mark.parametrize("nth", [1, 3])
def test_types_without_a_compiled_dot_product_are_computed_by_the_reference(nth: int) -> None:
    """Against real ggml."""
    rng = np.random.default_rng(5)
    assert "MXFP4" not in traits.VEC_DOTS
    w, x = tensor("MXFP4", rng.normal(size=(1, 1, 70, 64))), tensor("F32", rng.normal(size=(1, 1, 3, 64)))
    product, of_experts = mul_mat(w, x), mul_mat_id(w, x, np.zeros((1, 3), int))
    for dst in (product, of_experts):
        assert oracle_kernels.nmse(run(FAST[dst.op], dst, nth=nth), oracle_kernels.compute(dst)) < CLOSE
    dst = attention(Shape(3, 40, 4, 2, 32, 32), "F16")
    dst.src[1] = tensor("MXFP4", rng.normal(size=(1, 2, 40, 32)))
    assert oracle_kernels.nmse(run(FAST[dst.op], dst, nth=nth), oracle_kernels.compute(dst, 1)) < CLOSE_F16_SUMS


def test_a_processor_without_f16c_gets_the_reference_kernels() -> None:
    assert lanes.machine_is_able("aarch64", {})
    assert lanes.machine_is_able("x86_64", {"f16c": True})
    assert not lanes.machine_is_able("AMD64", {"avx": True})


def test_machine_code_older_than_any_source_is_forgotten(tmp_path: Path) -> None:
    source, kept = tmp_path / "a.py", tmp_path / "__pycache__"
    source.write_text("1")
    kept.mkdir()
    (kept / "a.f-1.py311.nbi").write_text("old")
    assert forget_stale(tmp_path)
    assert [p.name for p in kept.iterdir()] == [STAMP]
    (kept / "a.f-1.py311.nbi").write_text("new")
    assert not forget_stale(tmp_path)
    assert len(list(kept.iterdir())) == 2
    os.utime(source, (1, 1))
    assert forget_stale(tmp_path)
    assert [p.name for p in kept.iterdir()] == [STAMP]
