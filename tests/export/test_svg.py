"""Pictures as files: SVG of a graph, PNG of the memory."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.views.synthetic import lesson, teaching
from vizggml import ggml
from vizggml.errors import VizggmlError
from vizggml.export.png import to_png
from vizggml.export.svg import graph_svg, to_svg
from vizggml.export.tables import layer_of, table_of


def test_a_graph_of_the_engine_and_its_trace_are_drawn_alike() -> None:
    ctx = ggml.Context(mem_size=1 << 20, no_alloc=True)
    W, x = ctx.new_tensor("F32", (3, 2), name="W"), ctx.new_tensor("F32", (3,), name="x")
    wx = ggml.mul_mat(ctx, W, x).set_name("wx")
    total = ggml.add(ctx, wx, ctx.new_tensor("F32", (2,), name="b")).set_name("wx+b")
    g = ggml.Graph(ctx)
    g.build_forward_expand(ggml.relu(ctx, total).set_name("out"))
    assert graph_svg(g) == graph_svg(lesson())


def test_it_is_written(tmp_path: Path) -> None:
    to_svg(lesson(), tmp_path / "g.svg", theme="dark")
    assert ET.parse(tmp_path / "g.svg").getroot().tag == "{http://www.w3.org/2000/svg}svg"


def test_views_read_their_source_and_layers_come_from_names() -> None:
    ctx = ggml.Context(mem_size=1 << 20, no_alloc=True)
    x = ctx.new_tensor("F32", (4, 2), name="x")
    v = ggml.reshape_2d(ctx, x, 2, 4).set_name("v-7")
    g = ggml.Graph(ctx)
    g.build_forward_expand(v)
    table = table_of(g)
    assert [table.tensors.name[s] for n in table.nodes for s in table.srcs[n]] == ["x"]
    assert [table.tensors.layer[n] for n in table.nodes] == [7]


@pytest.mark.parametrize(
    ("name", "layer"),
    [
        ("blk.12.attn_q.weight", 12),
        ("ffn_out-3", 3),
        ("Qcur-3 (reshaped)", 3),
        ("cache_k_l29 (view)", 29),
        ("token_embd.weight", -1),
        ("node_12", -1),
        ("result_output", -1),
    ],
)
def test_the_layer_in_a_name(name: str, layer: int) -> None:
    assert layer_of(name) == layer


def test_png_of_timeline_and_map(tmp_path: Path) -> None:
    for figure in ("timeline", "map"):
        to_png(teaching(), tmp_path / f"{figure}.png", figure)
        assert (tmp_path / f"{figure}.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(VizggmlError, match="figure 'pie': there are timeline and map"):
        to_png(teaching(), tmp_path / "pie.png", "pie")
