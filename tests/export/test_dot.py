"""The DOT of a graph, read back by Graphviz itself."""

from __future__ import annotations

import json
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.views.synthetic import HOSTILE, SyntheticTracks, hostile, lesson, llama
from vizggml import ggml
from vizggml.errors import VizggmlError
from vizggml.export.dot import graph_dot, to_dot
from vizggml.views.dot_layout import find_dot
from vizggml.views.labels import visible
from vizggml.views.tables import read_graph


def graphviz(dot: str, format: str) -> str:
    ran = subprocess.run([str(find_dot()), f"-T{format}"], input=dot.encode(), capture_output=True, check=True)
    assert b"rror" not in ran.stderr
    return ran.stdout.decode()


@pytest.mark.parametrize("tracks", [lesson(), llama(3), hostile()], ids=["lesson", "llama", "hostile"])
def test_graphviz_reads_every_node_and_edge(tracks: SyntheticTracks) -> None:
    table = read_graph(tracks, 0)
    answer = json.loads(graphviz(graph_dot(tracks), "json0"))
    boxes = [o for o in answer["objects"] if "pos" in o]
    names = {int(o["name"].split("_")[1]) for o in boxes}
    assert names == set(table.nodes) | {s for n in table.nodes for s in table.srcs[n]}
    assert len(answer["edges"]) == sum(len(table.srcs[n]) for n in table.nodes)


def test_a_hostile_name_is_drawn_as_it_is_written() -> None:
    root = ET.fromstring(graphviz(graph_dot(hostile()), "svg"))
    words = {(e.text or "").replace("\xa0", " ") for e in root.iter("{http://www.w3.org/2000/svg}text")}
    for name in HOSTILE:
        assert visible(name) in words


def test_a_graph_of_the_engine_is_drawn_without_a_trace() -> None:
    ctx = ggml.Context(mem_size=1 << 20, no_alloc=True)
    W = ctx.new_tensor("F32", (3, 2), name="W")
    x = ctx.new_tensor("F32", (3,), name="x")
    g = ggml.Graph(ctx)
    g.build_forward_expand(ggml.relu(ctx, ggml.mul_mat(ctx, W, x)).set_name("out"))
    dot = graph_dot(g)
    assert '"W\\nF32 3 x 2"' in dot
    assert '"out\\nRELU 2"' in dot
    assert dot.count("->") == 3


def test_it_is_written(tmp_path: Path) -> None:
    to_dot(lesson(), tmp_path / "g.dot")
    assert (tmp_path / "g.dot").read_text() == graph_dot(lesson(), 0)


def test_what_is_no_graph_is_refused() -> None:
    with pytest.raises(VizggmlError, match="graph 3: the trace has graphs 0 to 0"):
        graph_dot(lesson(), 3)
    with pytest.raises(VizggmlError, match="int: a trace or its tracks are needed"):
        graph_dot(7)
