"""The SVG of a graph: well formed, complete, and nothing that a name says is obeyed."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pytest

from tests.views.synthetic import HOSTILE, SyntheticTracks, hostile, lesson, llama, teaching
from vizggml.errors import VizggmlError
from vizggml.views.labels import visible
from vizggml.views.palette import FAMILIES
from vizggml.views.still import still
from vizggml.views.svg import graph_svg
from vizggml.views.tables import read_graph

NS = "{http://www.w3.org/2000/svg}"
KNOWN = {"svg", "title", "style", "defs", "marker", "path", "rect", "text", "g"}


def parsed(svg: str) -> ET.Element:
    return ET.fromstring(svg)


def texts(root: ET.Element, of: str = "text") -> list[str]:
    return [e.text or "" for e in root.iter(NS + of)]


@pytest.fixture(params=[lesson, llama, hostile], ids=lambda f: f.__name__)
def tracks(request: pytest.FixtureRequest) -> SyntheticTracks:
    made: SyntheticTracks = request.param()
    return made


@pytest.mark.parametrize("theme", ["auto", "light", "dark"])
def test_it_is_well_formed_and_has_a_view_box(tracks: SyntheticTracks, theme: str) -> None:
    root = parsed(graph_svg(read_graph(tracks, 0), theme=theme))
    assert root.tag == NS + "svg"
    assert root.get("viewBox") == f"0 0 {root.get('width')} {root.get('height')}"
    assert {e.tag.removeprefix(NS) for e in root.iter()} <= KNOWN


def test_every_node_is_named(tracks: SyntheticTracks) -> None:
    table = read_graph(tracks, 0)
    titles = texts(parsed(graph_svg(table, folded=False)), "title")
    for node in table.nodes:
        assert any(title.startswith(visible(table.tensors.name[node]) + ": ") for title in titles)


def test_the_lesson_reads_as_it_is_taught() -> None:
    words = texts(parsed(graph_svg(read_graph(lesson(), 0))))
    assert {"W", "F32  3 x 2", "wx", "MUL_MAT  2", "wx+b", "ADD  2", "out", "RELU  2", "3 nodes, 3 leafs"} <= set(words)
    assert {FAMILIES[0], FAMILIES[2], FAMILIES[6]} <= set(words)


def test_a_fold_is_drawn_once_and_says_so() -> None:
    words = texts(parsed(graph_svg(read_graph(llama(5), 0))))
    assert "block x 4: block 0 to 3" in words
    assert any(w.endswith("5 layers; block x 4 drawn once") for w in words)


def test_nothing_a_name_says_is_obeyed() -> None:
    svg = graph_svg(read_graph(hostile(), 0), folded=False)
    root = parsed(svg)
    for element in root.iter():
        assert element.tag.removeprefix(NS) in KNOWN
        assert not any(name.startswith("on") or "href" in name for name in element.attrib)
    assert "<script" not in svg
    assert "]]>" not in svg
    assert not set(svg) & set("\u202e\u2066\u200f\x00\x1b")
    titles = texts(root, "title")
    for name in HOSTILE:
        assert any(title.startswith(visible(name) + ": ") for title in titles)


def test_it_is_the_same_each_time() -> None:
    assert graph_svg(read_graph(llama(3), 0)) == graph_svg(read_graph(llama(3), 0))


def test_a_notebook_shows_it() -> None:
    svg = graph_svg(read_graph(lesson(), 0))
    assert svg._repr_svg_() == svg


def test_an_unknown_theme_is_refused() -> None:
    with pytest.raises(VizggmlError, match="theme 'sepia'"):
        graph_svg(read_graph(lesson(), 0), theme="sepia")


def test_the_still_shows_timeline_map_and_graph_of_its_step() -> None:
    root = parsed(still(teaching(), 3, caption="wx is freed: <8 B>"))
    words = texts(root)
    assert {"Step 3 of 7", "wx is freed: <8 B>", "Memory map", "Graph 0: 3 nodes"} <= set(words)
    assert "chunk 0: 8 B of 16 B in use" in words
    assert any(w.startswith("peak 16 B at position 1: wx, wx+b") for w in words)


def test_the_still_draws_what_lives_and_a_line_at_the_most_of_it() -> None:
    """Over 154 pixels for 16 bytes: 8, 12 and 8 bytes, and a line across at 12."""
    tracks = teaching()
    tracks.columns["t.live.bytes"][:] = (8, 12, 8)
    root = parsed(still(tracks))
    lines = [e.get("d") or "" for e in root.iter(NS + "path") if e.get("class") == "live"]
    heights = [[float(part.split("h")[0]) for part in line.split("V")[1:]] for line in lines]
    bottom, unit = 34 + 154, 154 / 16
    assert heights[0] == [round(bottom - held * unit, 1) for held in (8, 12, 8)]
    assert lines[1].split(" ")[1].split("h")[0] == f"{bottom - 12 * unit:.1f}"
    assert "Memory timeline: 3 tensors, 16 B, lower bound 12 B" in texts(root)
    assert "Memory timeline: 3 tensors, 16 B = lower bound" in texts(parsed(still(teaching())))


def test_the_chunks_of_two_allocators_are_told_apart() -> None:
    tracks = teaching()
    for column, value in (
        ("a", 0),
        ("b", 8),
        ("allocator", 1),
        ("chunk", 0),
        ("offset", 0),
        ("size", 1024),
        ("owner", 2),
    ):
        name = f"t.block.{column}"
        tracks.columns[name] = np.append(tracks.columns[name], np.array([value], tracks.columns[name].dtype))
    words = texts(parsed(still(tracks, 7)))
    assert "allocator 0, chunk 0: 8 B of 16 B in use" in words
    assert "allocator 1, chunk 0: 1 KiB of 1 KiB in use" in words


def test_the_line_of_what_lives_is_coarser_where_it_would_be_hatching() -> None:
    """3,000 positions that hold 8 and 16 bytes by turns, on 500 to 700 pixels: steps of 12 pixels, all at 16."""
    tracks = teaching()
    n = 3000
    tracks.columns["t.life.last"][-1] = n - 1
    for name, value in (("a", 1), ("b", 8), ("plan", 0), ("bound", 16)):
        tracks.columns[f"t.live.{name}"] = np.full(n, value, tracks.columns[f"t.live.{name}"].dtype)
    tracks.columns["t.live.position"] = np.arange(n, dtype=np.int32)
    tracks.columns["t.live.bytes"] = np.tile([8.0, 16.0], n // 2)
    line = next(e.get("d") or "" for e in parsed(still(tracks)).iter(NS + "path") if e.get("class") == "live")
    steps = [part.split("h") for part in line.split("V")[1:]]
    assert {height for height, _ in steps} == {"34.0"}
    assert 41 < len(steps) < 59


def test_the_still_pales_what_is_not_computed_and_rings_what_is() -> None:
    root = parsed(still(teaching(), 7))
    assert [e.get("class") for e in root.iter(NS + "rect")].count("ring") == 1
    assert [e.get("class") for e in root.iter(NS + "g")].count("unseen") == 2


def test_the_still_before_anything_shows_the_graph_alone() -> None:
    words = texts(parsed(still(lesson(), 0)))
    assert "Memory map" not in words
    assert "Graph 0: 3 nodes" in words
