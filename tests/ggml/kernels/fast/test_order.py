"""The order in which ggml adds products, written out in NumPy: the compiled kernels follow it to the bit."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from numpy.typing import NDArray

from tests.ggml.kernels.operands import blocks_of, mul_mat, run, tensor
from vizggml.ggml import quants
from vizggml.ggml.kernels.fast import FAST, codes, lanes
from vizggml.ggml.kernels.fast.mul_mat import TILES_FROM
from vizggml.ggml.quants import legacy
from vizggml.ggml.quants.block import summary
from vizggml.ggml.quants.iq.iq4 import LEVELS
from vizggml.ggml.types import TYPES

Floats = NDArray[np.float32]
OFFSETS = {"Q4_0": 8, "Q5_0": 16}


def fma(x: Floats, y: Floats, z: Floats) -> Floats:
    """x * y + z rounded once: 64 bits hold every product, and very nearly every sum."""
    summed: Floats = (x.astype(np.longdouble) * y + z).astype(np.float32)
    return summed


def halves(x: Floats) -> Floats:
    """The upper half of the lanes added to the lower until one is left."""
    while x.shape[-1] > 1:
        x = x[..., : x.shape[-1] // 2] + x[..., x.shape[-1] // 2 :]
    return x[..., 0]


def by_codes(name: str, w: Floats, x: Floats) -> Floats:
    """`ggml_vec_dot_q4_1_q8_1` and its like: eight lanes, in each the products of four codes of every block.

    `ggml_vec_dot_iq4_nl_q8_0`, one column of IQ4_NL, has two such sums and adds the last odd block to their total; many
    columns, in `tinyBLAS_Q0_AVX`, have one.
    """
    with_minimums = name in ("Q4_1", "Q5_1")
    given = legacy.from_float_q8_1(x) if with_minimums else legacy.from_float_q8_0(x)
    dw, minimum, given_codes = summary(TYPES[name], blocks_of(TYPES[name], w))
    dx, _, by = summary(TYPES["Q8_1" if with_minimums else "Q8_0"], given)
    signed = (
        LEVELS[given_codes].astype(np.int32)
        if name == "IQ4_NL"
        else given_codes.astype(np.int32) - OFFSETS.get(name, 0)
    )
    n_sums = 2 if name == "IQ4_NL" and len(x) < TILES_FROM else 1
    acc = np.zeros((n_sums, len(x), len(w), 8), np.float32)
    rest = np.zeros((len(x), len(w)), np.float32)
    n_blocks = w.shape[1] // 32
    for b in range(n_blocks):
        products = (signed[None, :, b] * by[:, None, b].astype(np.int32)).reshape(*rest.shape, 8, 4).sum(-1)
        scale = dx[:, None, b] * dw[None, :, b]
        if n_sums == 2 and b == n_blocks - n_blocks % 2:
            rest = scale * products.sum(-1).astype(np.float32)
            continue
        acc[b % n_sums] = fma(scale[..., None], products.astype(np.float32), acc[b % n_sums])
        if with_minimums:
            rest = fma(minimum[None, :, b], legacy.sums_q8_1(given)[:, None, b], rest)
    return halves(acc[0] + acc[1] if n_sums == 2 else acc[0]) + rest


def by_floats(name: str, w: Floats, x: Floats) -> Floats:
    """One column: `ggml_vec_dot_f32` and `_f16`, four sums of sixteen lanes. More: `tinyBLAS`, one sum."""
    if name == "F16":
        w, x = (a.astype(np.float16).astype(np.float32) for a in (w, x))
    n_sums = 4 if len(x) == 1 else 1
    acc = np.zeros((len(x), len(w), n_sums, 16), np.float32)
    for i in range(0, w.shape[1], 16 * n_sums):
        u, v = (a[:, i : i + 16 * n_sums].reshape(len(a), n_sums, 16) for a in (w, x))
        acc = fma(u[None], v[:, None], acc)
    summed = halves(np.moveaxis(acc, 2, -1))
    return halves(summed)


@pytest.mark.parametrize("name", ["F32", "F16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "IQ4_NL"])
@given(data=st.data())
@settings(max_examples=20, deadline=None)
def test_mul_mat(name: str, data: st.DataObject) -> None:
    draw = data.draw
    columns = draw(st.sampled_from([1, 2, 5, 6, 7, 31, 131]))
    ne0 = draw(st.integers(1, 9)) * (32 if TYPES[name].is_quantized else 64 if columns == 1 else 16)
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    w = rng.normal(size=(4 * draw(st.integers(1, 19)), ne0)).astype(np.float32)
    x = rng.normal(size=(columns, ne0)).astype(np.float32)
    dst = mul_mat(tensor(name, w[None, None]), tensor("F32", x[None, None]))
    ours = run(FAST["MUL_MAT"], dst, nth=draw(st.integers(1, 3)))
    want = (by_codes if TYPES[name].is_quantized else by_floats)(name, w, x)
    np.testing.assert_array_equal(ours[0, 0].view(np.uint32), want.view(np.uint32))


@pytest.mark.parametrize("features", [{}, {"avx2": True}, {"avx2": True, "avx512bw": True}])
@pytest.mark.parametrize("kind", [lanes.UNSIGNED_NIBBLES, lanes.SIGNED_NIBBLES, lanes.BYTES])
def test_products_of_codes_are_the_same_on_every_processor(
    kind: int, features: dict[str, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    have = lanes.FEATURES
    monkeypatch.setattr(lanes, "FEATURES", {name: have.get(name, False) for name in features})
    one, two = lanes.code_products(kind), lanes.pair_products_of(kind)

    @njit  # type: ignore[untyped-decorator]
    def compute(w: int, pair: int, x: int, out: int) -> None:
        put_eight(out, one(w, x))
        put_sixteen(out + 32, two(pair, x))

    put_eight, put_sixteen = lanes.store_i32_8, lanes.store_i32
    rng = np.random.default_rng(kind)
    low, high = ((0, 15), (-8, 7), (-128, 127))[kind]
    codes = rng.integers(low, high, (2, 32), np.int8, endpoint=True)
    codes[0, :8] = [low, high] * 4
    x = rng.integers(-127, 127, 32, np.int8, endpoint=True)
    x[:8] = [127, 127, -127, -127, 127, -127, -127, 127]
    packed = codes[0] if kind == lanes.BYTES else ((codes[0, :16] - min(low, 0)) | (codes[0, 16:] - min(low, 0)) << 4)
    out = np.zeros(24, np.int32)
    compute(packed.astype(np.int8).ctypes.data, codes.ctypes.data, x.ctypes.data, out.ctypes.data)
    want = (codes.astype(np.int32) * x).reshape(16, 4).sum(1)
    np.testing.assert_array_equal(out, [*want[:8], *want])


def test_exp() -> None:
    """Within two units in the last place of the true one, from the smallest float32 to the largest, and at the ends."""
    x = np.concatenate([np.linspace(-110, 89, 4000), [0, -0.0, -1e-30, -np.inf, np.inf, 1e30, -1e30, np.nan]])
    x = np.resize(x.astype(np.float32), 4016)
    out = np.zeros_like(x)
    exp, load, store = lanes.exp, lanes.load_f32, lanes.store_f32

    @njit  # type: ignore[untyped-decorator]
    def compute(x: int, out: int, n: int) -> None:
        for i in range(0, 4 * n, 64):
            store(out + i, exp(load(x + i)))

    compute(x.ctypes.data, out.ctypes.data, len(x))
    with np.errstate(over="ignore"):
        want = np.exp(x.astype(np.float64)).astype(np.float32)
    finite = np.isfinite(want)
    np.testing.assert_array_equal(out[~finite], want[~finite])
    assert (abs(out[finite].astype(np.float64) - want[finite]) <= 2 * np.spacing(want[finite])).all()
    assert out[4000] == out[4001] == out[4002] == 1
    assert math.isinf(out[4004])
    assert np.isnan(out[4007])


def test_from_float_is_what_the_codes_above_are_of() -> None:
    x = np.random.default_rng(0).normal(size=(3, 64)).astype(np.float32)
    np.testing.assert_array_equal(quants.from_float(TYPES["Q8_1"], x), legacy.from_float_q8_1(x))


@pytest.mark.parametrize("features", [{}, {"avx2": True}])
def test_levels_are_found_the_same_on_every_processor(
    features: dict[str, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(codes, "FEATURES", {name: codes.FEATURES.get(name, False) for name in features})
    put = codes._put_codes_of(codes.LEVELS)

    @njit  # type: ignore[untyped-decorator]
    def compute(to: int, at: int) -> None:
        put(to, at)

    packed = np.arange(16, dtype=np.uint8) | np.arange(15, -1, -1, dtype=np.uint8) << 4
    out = np.zeros(32, np.int8)
    compute(out.ctypes.data, packed.ctypes.data)
    np.testing.assert_array_equal(out, [*LEVELS, *LEVELS[::-1]])
