"""MUL_MAT_ID against the real library: types, strides, experts that nobody chose, split among threads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import oracle_kernels, oracle_quants
from tests.ggml.kernels.against import ints, sliced_ints
from tests.ggml.kernels.operands import Kernel, node, run, tensor
from vizggml.errors import VizggmlError
from vizggml.events import Event, bus
from vizggml.ggml.kernels import KERNELS
from vizggml.ggml.kernels.chunks import Chunks, chunk_grid
from vizggml.ggml.kernels.fast import FAST, tiles
from vizggml.ggml.kernels.fast import mul_mat_id as fast_mul_mat_id
from vizggml.ggml.kernels.mul_mat_id import RowGroups
from vizggml.ggml.kernels.params import ComputeParams
from vizggml.ggml.tensor import Tensor
from vizggml.ggml.types import TYPES

WEIGHTS = ("F32", "F16", "BF16", "Q4_0", "Q4_1", "Q8_0", "Q6_K")
KINDS: tuple[Kernel, ...] = (KERNELS["MUL_MAT_ID"], FAST["MUL_MAT_ID"])
CLOSE = 1e-11


def mul_mat_id(as_: Tensor, b: Tensor, ids: np.ndarray) -> Tensor:
    """`ids` is (tokens, chosen)."""
    return node("MUL_MAT_ID", (as_.ne[1], ids.shape[1], b.ne[2], 1), as_, b, ints("I32", ids[None, None]))


def random(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def choices(seed: int, n_tokens: int, n_used: int, n_as: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.stack([rng.permutation(n_as)[:n_used] for _ in range(n_tokens)])


@pytest.mark.parametrize("kernel", KINDS)
@pytest.mark.parametrize("name", WEIGHTS)
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_equals_ggml(kernel: Kernel, name: str, data: st.DataObject) -> None:
    draw, type = data.draw, TYPES[name]
    ne0 = type.blck_size * draw(st.integers(1, 3)) if type.is_quantized else draw(st.integers(1, 70))
    n_as, n_tokens, n_rows = draw(st.integers(1, 6)), draw(st.integers(1, 40)), draw(st.integers(1, 70))
    n_used = draw(st.integers(1, n_as))
    each = draw(st.sampled_from([1, n_used]))
    seed, nth, gap = draw(st.integers(0, 1000)), draw(st.integers(1, 3)), draw(st.integers(0, 2))
    as_ = tensor(type, random(seed, 1, n_as, n_rows, ne0), gap=gap)
    b = tensor(
        "F32", random(seed + 1, 1, n_tokens, each, ne0), gap=gap, order=draw(st.sampled_from([(1, 2, 3), (2, 1, 3)]))
    )
    dst = mul_mat_id(as_, b, choices(seed, n_tokens, n_used, n_as))
    ours, theirs = run(kernel, dst, nth=nth), oracle_kernels.compute(dst)
    assert oracle_kernels.nmse(ours, theirs) < CLOSE


@pytest.mark.parametrize("name", [n for n, t in TYPES.items() if t.vec_dot_type and n not in (*WEIGHTS, "Q8_1")])
def test_every_type(name: str) -> None:
    """Nine tokens, three of four experts each, whose numbers are a slice of wider rows, as the router leaves them."""
    as_ = tensor(name, random(1, 1, 4, 6, 256), gap=1)
    b = tensor("F32", random(2, 1, 9, 3, 256), gap=1, order=(2, 1, 3))
    dst = node("MUL_MAT_ID", (6, 3, 9, 1), as_, b, sliced_ints(choices(3, 9, 4, 4)[None, None], 0, 3))
    theirs = oracle_kernels.compute(dst)
    for kernel in KINDS:
        assert oracle_kernels.nmse(run(kernel, dst, nth=2), theirs) < CLOSE


@pytest.mark.parametrize("kernel", KINDS)
@pytest.mark.parametrize(("weights", "given_as"), [("F16", "F16"), ("Q4_0", "Q8_0"), ("Q4_1", "Q8_1")])
def test_activations_in_the_dot_product_type(kernel: Kernel, weights: str, given_as: str) -> None:
    as_, b = tensor(weights, random(3, 1, 4, 5, 64)), tensor(given_as, random(4, 1, 3, 2, 64), gap=1)
    dst = mul_mat_id(as_, b, choices(1, 3, 2, 4))
    assert oracle_kernels.nmse(run(kernel, dst, nth=2), oracle_kernels.compute(dst)) < CLOSE


@pytest.mark.parametrize("kernel", KINDS)
def test_the_textbook_way_multiplies_floats(kernel: Kernel) -> None:
    as_, x, ids = tensor("Q8_0", random(5, 1, 3, 4, 64)), random(6, 1, 5, 1, 64), choices(2, 5, 2, 3)
    ours = run(kernel, mul_mat_id(as_, tensor("F32", x), ids), textbook=True)
    rows = as_.array()[0].view(np.uint8).reshape(12, -1)
    decoded = oracle_quants.to_float(TYPES["Q8_0"], rows, 64).reshape(3, 4, 64).astype(np.float64)
    want = np.einsum("ukrd,ud->ukr", decoded[ids], x[0, :, 0].astype(np.float64))
    assert oracle_kernels.nmse(ours[0], want.astype(np.float32)) < CLOSE


def test_the_scratch_is_ggmls() -> None:
    """Two rows for expert 2, one for 0: encoded activations, counts, (choice, token) by expert, counters."""
    ids = np.array([[2, 0], [1, 2], [3, 1]])
    as_, x = tensor("Q8_0", random(7, 1, 5, 40, 64)), random(8, 1, 3, 2, 64)
    dst = mul_mat_id(as_, tensor("F32", x), ids)
    kept: list[ComputeParams] = []
    run(lambda params, t: (kept.append(params), KERNELS["MUL_MAT_ID"](params, t))[1], dst, nth=2)  # type: ignore[func-returns-value]
    wdata = kept[0].wdata
    assert wdata is not None
    want = oracle_quants.from_float(TYPES["Q8_0"], x.reshape(-1, 64)).ravel()
    np.testing.assert_array_equal(wdata[: want.size], want)
    groups = RowGroups.in_scratch(kept[0], dst, want.size)
    assert want.size == 6 * 68
    assert groups.counts.tolist() == [1, 2, 2, 1, 0]
    assert groups.rows[1, :2].tolist() == [[0, 1], [1, 2]]
    assert groups.rows[2, :2].tolist() == [[0, 0], [1, 1]]
    assert groups.rows[0, :1].tolist() == [[1, 0]]
    # 40 x 1 and 40 x 2 are fewer than 8 chunks: a share for each thread, nothing to take
    assert groups.counters[:, 0].tolist() == [2] * 5


@pytest.mark.parametrize("kernel", KINDS)
def test_each_expert_has_its_chunks(kernel: Kernel) -> None:
    """200 x 1 is ceil(200 / 64) = 4 chunks, 200 x 3 is ceil(200 / 16) = 13."""
    ids = np.array([[0], [1], [1], [1]])
    dst = mul_mat_id(tensor("F16", random(9, 1, 3, 200, 32)), tensor("F32", random(10, 1, 4, 1, 32)), ids)
    kept: list[Chunks] = []

    def keep(params: ComputeParams, t: Tensor) -> None:
        assert params.chunks is not None
        kept.append(params.chunks)
        kernel(params, t)

    unsubscribe = bus.subscribe(Event, lambda event: None)
    try:
        run(keep, dst, nth=2)
    finally:
        unsubscribe()
    taken = kept[0].taken
    assert {expert: grid for expert, (grid, _) in taken.items()} == {0: chunk_grid(200, 1, 2), 1: chunk_grid(200, 3, 2)}
    assert taken[0][0][2:] == (2, 1, 100, 1, False)
    assert taken[1][0][2:] == (13, 1, 16, 3, True)
    assert sum(taken[1][1]) == 13
    assert taken[0][1] == [1, 1]


@pytest.mark.parametrize("kernel", KINDS)
def test_errors_name_the_thing(kernel: Kernel) -> None:
    as_, b = tensor("F32", random(1, 1, 3, 4, 8)), tensor("F32", random(2, 1, 2, 1, 8))
    for wrong in (3, -1):
        with pytest.raises(VizggmlError, match=f"there is no expert {wrong}, they are 0 to 2"):
            run(kernel, mul_mat_id(as_, b, np.array([[0], [wrong]])))
    with pytest.raises(VizggmlError, match=r"mul_mat_id 'mul_mat_id': needs \d+ bytes of scratch, the plan has 200"):
        run(kernel, mul_mat_id(as_, b, np.array([[0], [1]])), wsize=200)


@pytest.mark.parametrize("name", sorted(set(tiles.CODE_BLOCKS) - set(fast_mul_mat_id.SUMMED_OTHERWISE)))
@pytest.mark.parametrize("each", [1, 2])
def test_tiles_change_no_bit(name: str, each: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """300 tokens: experts have more than a tile's columns, and rows that are no whole number of tiles."""
    as_ = tensor(name, random(1, 1, 3, 75, 64))
    b = tensor("F32", random(2, 1, 300, each, 64), gap=1)
    dst = mul_mat_id(as_, b, choices(3, 300, 2, 3))
    in_tiles = [run(FAST["MUL_MAT_ID"], dst, nth=nth) for nth in (1, 3)]
    monkeypatch.setattr(fast_mul_mat_id, "TILES_FROM", 1 << 30)
    one_by_one = run(FAST["MUL_MAT_ID"], dst)
    assert np.array_equal(in_tiles[0], one_by_one)
    assert np.array_equal(in_tiles[1], one_by_one)
