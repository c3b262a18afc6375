"""FLASH_ATTN_EXT against the real library, on each of its three paths."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import oracle_kernels
from tests.ggml.kernels.operands import node, run, tensor
from vizggml.errors import VizggmlError
from vizggml.ggml.kernels.flash_attn import alibi_slopes, forward_flash_attn_ext
from vizggml.ggml.kernels.params import ComputeParams
from vizggml.ggml.tensor import Tensor
from vizggml.ggml.types import TYPES

F32_CLOSE, F16_CLOSE = 1e-11, 1e-7
"""Sums kept in F16 differ where a product is rounded once by one and twice by the other."""


@dataclass
class Shape:
    n_q: int
    n_kv: int
    n_head: int = 4
    n_head_kv: int = 2
    dk: int = 32
    dv: int = 32
    n_seq: int = 1


def attention(
    shape: Shape,
    kv: str = "F16",
    *,
    seed: int = 0,
    mask: str | None = "causal",
    sinks: bool = False,
    params: tuple[float, float, float] = (0.2, 0.0, 0.0),
) -> Tensor:
    """A node as a decoder makes it: Q, K and V permuted views of (head size, heads, tokens)."""
    s, rng = shape, np.random.default_rng(seed)
    q = rng.normal(size=(s.n_seq, s.n_head, s.n_q, s.dk)) * 2
    k = rng.normal(size=(s.n_seq, s.n_head_kv, s.n_kv, s.dk))
    v = rng.normal(size=(s.n_seq, s.n_head_kv, s.n_kv, s.dv))
    cells, queries = np.arange(s.n_kv), np.arange(s.n_q)[:, None]
    seen = {
        "causal": cells <= queries + (s.n_kv - s.n_q) // 2,
        "random": rng.random((s.n_q, s.n_kv)) < 0.5,
        "nothing": np.zeros((s.n_q, s.n_kv), bool),
    }
    m = None if mask is None else tensor("F16", np.where(seen[mask], -0.25 * (cells % 3), -np.inf)[None, None])
    src = [tensor("F32", q, order=(2, 1, 3)), tensor(kv, k, order=(2, 1, 3)), tensor(kv, v, order=(2, 1, 3)), m]
    if sinks:
        src.append(tensor("F32", rng.normal(size=(1, 1, 1, s.n_head)) + 2))
    return node("FLASH_ATTN_EXT", (s.dv, s.n_head, s.n_q, s.n_seq), *src, params=params)


def check(dst: Tensor, limit: float, nth: int = 2) -> None:
    theirs = oracle_kernels.compute(dst, n_threads=nth)
    assert oracle_kernels.nmse(run(forward_flash_attn_ext, dst, nth=nth), theirs) < limit


@pytest.mark.parametrize("kv", ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "IQ4_NL"])
@given(data=st.data())
@settings(max_examples=12, deadline=None)
def test_rows_one_by_one(kv: str, data: st.DataObject) -> None:
    draw = data.draw
    heads_kv, shared = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    shape = Shape(
        n_q=draw(st.integers(1, 20)),
        n_kv=draw(st.integers(1, 300)),
        n_head=heads_kv * shared,
        n_head_kv=heads_kv,
        dk=draw(st.sampled_from([32, 64])),
        dv=draw(st.sampled_from([32, 96])),
        n_seq=draw(st.integers(1, 2)),
    )
    dst = attention(
        shape,
        kv,
        seed=draw(st.integers(0, 99)),
        mask=draw(st.sampled_from([None, "causal", "random", "nothing"])),
        sinks=draw(st.booleans()),
        params=(0.2, draw(st.sampled_from([0.0, 8.0])), draw(st.sampled_from([0.0, 20.0]))),
    )
    check(dst, F16_CLOSE if kv == "F16" else F32_CLOSE, nth=draw(st.integers(1, 3)))


@pytest.mark.parametrize("kv", ["F32", "F16"])
@pytest.mark.parametrize("mask", [None, "causal", "random", "nothing"])
@pytest.mark.parametrize("sinks", [False, True])
def test_tiles(kv: str, mask: str, sinks: bool) -> None:
    """64 queries or more: tiles of 64 x 64, the last of each kind cut."""
    dst = attention(Shape(n_q=70, n_kv=200, n_head=3, n_head_kv=1, dv=48), kv, mask=mask, sinks=sinks)
    check(dst, F32_CLOSE)


@pytest.mark.parametrize("params", [(0.1, 0.0, 30.0), (0.1, 8.0, 0.0)])
def test_tiles_with_softcap_and_alibi(params: tuple[float, float, float]) -> None:
    check(attention(Shape(n_q=64, n_kv=128, n_head=6, n_head_kv=3), params=params), F32_CLOSE)


@pytest.mark.parametrize("kv", ["F32", "F16"])
@pytest.mark.parametrize("nth", [1, 2, 3])
@pytest.mark.parametrize("sinks", [False, True])
def test_split_kv(kv: str, nth: int, sinks: bool) -> None:
    """One query and 512 cells or more: each thread a range of the cells, some of them wholly masked."""
    dst = attention(Shape(n_q=1, n_kv=700, n_head=5, n_head_kv=1), kv, mask="causal", sinks=sinks)
    check(dst, F16_CLOSE if kv == "F16" else F32_CLOSE, nth)


def test_split_kv_with_fewer_cells_than_threads_need() -> None:
    check(attention(Shape(n_q=1, n_kv=513), "F32", mask="nothing"), F32_CLOSE, nth=3)


@pytest.mark.parametrize(("n_q", "n_kv"), [(5, 40), (64, 64), (1, 512)])
def test_scratch_stays_within_what_ggml_plans(n_q: int, n_kv: int) -> None:
    """The larger of the two formulas of ggml_graph_plan for 2 threads, and not a byte less will do for tiles."""
    shape = Shape(n_q, n_kv)
    per_tile = 64 * shape.dk * 2 + 2 * 64 * 64 + 64 * shape.dv * 2
    decode = shape.n_head * 2 * (2 + shape.dv) + 2 * (shape.dk + 2 * shape.dv)
    wsize = 4 * max(2 * per_tile, decode) + 64 * 2
    dst = attention(shape)
    want = oracle_kernels.compute(dst, n_threads=2)
    assert oracle_kernels.nmse(run(forward_flash_attn_ext, dst, nth=2, wsize=wsize), want) < F16_CLOSE


def test_another_tile_size_gives_the_same_numbers() -> None:
    dst = attention(Shape(n_q=40, n_kv=100), "F32")

    def with_tiles(params: ComputeParams, t: Tensor) -> None:
        params.flash_tile = (16, 32)
        forward_flash_attn_ext(params, t)

    theirs = oracle_kernels.compute(dst)
    assert oracle_kernels.nmse(run(with_tiles, dst, nth=2), theirs) < F32_CLOSE


def test_alibi_slopes() -> None:
    """Of 6 heads the first 4 get 2^-2, 2^-4, 2^-6, 2^-8, the rest every other of the 8-head series: 2^-1, 2^-3."""
    np.testing.assert_allclose(alibi_slopes(6, 8.0), [2**-2, 2**-4, 2**-6, 2**-8, 2**-1, 2**-3], rtol=1e-6)
    assert alibi_slopes(3, 0.0).tolist() == [1, 1, 1]


def test_errors_name_the_thing() -> None:
    dst = attention(Shape(1, 4))
    with pytest.raises(
        VizggmlError, match=r"flash_attn_ext 'flash_attn_ext': needs \d+ bytes of scratch, the plan has 0"
    ):
        run(forward_flash_attn_ext, dst, wsize=0)
    dst.src[0] = tensor("F16", np.zeros((1, 4, 1, 32)))
    with pytest.raises(VizggmlError, match="Q must be F32, not F16"):
        run(forward_flash_attn_ext, dst)
    dst.src[0] = tensor("F32", np.zeros((1, 4, 1, 32)))
    dst.src[1] = tensor("F16", np.zeros((1, 4, 4, 32)))
    dst.src[2] = tensor("F32", np.zeros((1, 4, 4, 32)))
    dst.src[2].type = TYPES["I32"]
    with pytest.raises(VizggmlError, match="no kernel for '' of type I32; there is one for F32"):
        run(forward_flash_attn_ext, dst)
    dst.src[0] = None
    with pytest.raises(VizggmlError, match="needs Q, K and V"):
        run(forward_flash_attn_ext, dst)
