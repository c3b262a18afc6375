"""What is kept of a node's values, against NumPy on the tensor itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vizggml import ggml
from vizggml.errors import VizggmlError
from vizggml.ggml.context import Context
from vizggml.ggml.quants import quantize
from vizggml.ggml.tensor import Tensor
from vizggml.timeline.columns import read_file, write_file
from vizggml.timeline.record import record
from vizggml.timeline.trace import load_trace
from vizggml.timeline.values import MAX_CELLS, grid_shape, sample_values


def filled(ne: tuple[int, ...], seed: int = 0) -> tuple[Tensor, np.ndarray]:
    values = np.random.default_rng(seed).normal(size=ne[::-1]).astype(np.float32)
    tensor = Context(values.nbytes + 4096).new_tensor("F32", ne).set(values)
    return tensor, values.reshape(-1, ne[0])


def test_what_fits_the_grid_is_kept_as_it_is() -> None:
    tensor, rows = filled((64, 16, 2))
    assert sample_values(tensor).grid.tolist() == rows.tolist()


@given(st.integers(1, 300), st.integers(1, 90), st.integers(1, 3))
def test_a_cell_is_the_mean_of_its_runs(n0: int, n1: int, n2: int) -> None:
    tensor, rows = filled((n0, n1, n2))
    grid = sample_values(tensor).grid
    down, across = grid.shape
    n = n1 * n2
    for j, k in {(0, 0), (down - 1, across - 1), (down // 2, across // 3)}:
        cell = rows[j * n // down : (j + 1) * n // down, k * n0 // across : (k + 1) * n0 // across]
        assert grid[j, k] == pytest.approx(cell.astype(np.float64).mean(), rel=1e-6, abs=1e-7)


@given(st.integers(0, 1 << 20), st.integers(0, 1 << 20))
def test_the_grid_is_within_its_budget_and_within_the_tensor(n_rows: int, n_columns: int) -> None:
    down, across = grid_shape(n_rows, n_columns)
    assert down * across <= MAX_CELLS
    assert (down, across) <= (min(n_rows, 64), min(n_columns, 64))


def test_figures_and_bins_are_of_all_values() -> None:
    tensor, rows = filled((500, 70), seed=3)
    values = sample_values(tensor)
    exact = rows.astype(np.float64)
    expected = [exact.min(), exact.max(), exact.mean(), np.sqrt((exact**2).mean()), 0]
    assert values.stats == pytest.approx(expected)
    assert values.bins.tolist() == np.histogram(exact, bins=32)[0].tolist()


def test_what_is_not_finite_is_counted_and_left_out() -> None:
    tensor, _ = filled((128, 2))
    rows = np.arange(256, dtype=np.float32).reshape(2, 128)
    rows[0, :2] = -np.inf
    rows[0, 2] = np.nan
    values = sample_values(tensor.set(rows))
    assert values.stats[0] == 4 - 1
    assert values.stats[4] == 3
    assert int(values.bins.sum()) == 253
    assert values.grid[0, :3].tolist() == [-np.inf, 3.0, 4.5]


def test_one_value_everywhere() -> None:
    tensor, _ = filled((8,))
    values = sample_values(tensor.set(np.full(8, 2.0)))
    assert values.stats == (2, 2, 2, 2, 0)
    assert values.bins.tolist() == [8] + [0] * 31


def test_a_transposed_view_is_read_by_its_strides() -> None:
    context = Context(1 << 16)
    tensor = context.new_tensor("F32", (3, 2)).set([[1, 2, 3], [4, 5, 6]])
    assert sample_values(ggml.transpose(context, tensor)).grid.tolist() == [[1, 4], [2, 5], [3, 6]]


def test_blocks_are_decoded() -> None:
    """Q8_0 keeps -127 to 127 at a scale of 1 as they are."""
    row = np.linspace(-127, 127, 32).round().astype(np.float32)
    tensor = Context(4096).new_tensor("Q8_0", (32, 1))
    tensor.set(quantize("Q8_0", row).reshape(1, 1, 1, 1, 34))
    assert sample_values(tensor).grid.tolist() == [row.tolist()]


def test_bf16_is_read_as_numbers() -> None:
    tensor = Context(4096).new_tensor("BF16", (2,)).set(np.array([0x3F80, 0xC000], np.uint16))
    assert sample_values(tensor).grid.tolist() == [[1, -2]]


def test_a_trace_keeps_them_and_holds_them_to_their_grid(tmp_path: Path) -> None:
    context = Context(1 << 20)
    x = context.new_tensor("F32", (100, 40)).set(np.arange(4000))
    out = ggml.scale(context, x, 2.0).set_name("out")
    graph = ggml.Graph(context)
    graph.build_forward_expand(out)
    with record(values=True) as trace:
        ggml.graph_compute(graph, ggml.graph_plan(graph))
    path = tmp_path / "values.vgt"
    trace.save(path)
    tracks = load_trace(path).tracks()
    assert tracks["v.grid"].tolist() == [[32, 64]]
    assert tracks["v.val"].tolist() == sample_values(out).grid.ravel().tolist()
    assert tracks["v.bins"].tolist() == [np.histogram(2 * np.arange(4000.0), bins=32)[0].tolist()]
    content = read_file(path, "trace", 2)
    content.columns["v.grid"] = np.array([[32, 63]], np.int32)
    write_file(path, content)
    with pytest.raises(VizggmlError, match=r"'v.grid' does not agree with the cells in 'v.val'"):
        load_trace(path)
