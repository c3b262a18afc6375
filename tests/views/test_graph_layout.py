"""The layout: everything drawn, nothing over anything else, alike layers alike, the page no sliver.

Graphviz decides coordinates, so topology and geometry are tested, never a coordinate.
"""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.views.synthetic import Builder, SyntheticTracks, hostile, lesson, llama, sliding
from vizggml.views import dot_layout
from vizggml.views.graph_layout import GraphLayout, graph_layout, layout, polyline
from vizggml.views.sections import cut
from vizggml.views.tables import read_graph


def drawn(tracks: SyntheticTracks) -> GraphLayout:
    return layout(tracks)["graphs"][0]


def long_chain(n: int = 900) -> SyntheticTracks:
    b = Builder()
    cur = b.leaf("x")
    for i in range(n):
        cur = b.node("ADD", f"n{i}", cur, b.leaf(f"w{i}"))
    return b.tracks()


def rectangles(graph: GraphLayout) -> list[tuple[int, int, int, int, int]]:
    n = graph["nodes"]
    rows = zip(n["section"], n["x"], n["y"], n["w"], n["h"], strict=True)
    return [(s, x - w // 2, y - h // 2, x + w // 2, y + h // 2) for s, x, y, w, h in rows]


@pytest.fixture(params=["lesson", "llama", "chain", "hostile"])
def tracks(request: pytest.FixtureRequest) -> SyntheticTracks:
    return {"lesson": lesson, "llama": lambda: llama(6), "chain": long_chain, "hostile": hostile}[request.param]()


def test_every_node_and_every_edge_is_there(tracks: SyntheticTracks) -> None:
    graph, table = drawn(tracks), read_graph(tracks, 0)
    nodes, edges = graph["nodes"], graph["edges"]
    assert graph["n_nodes"] == len(table.nodes)
    assert sorted(t for s in graph["sections"] for t in s["nodes"]) == sorted(table.nodes)
    assert set(nodes["tensor"]) == set(table.nodes) | {s for n in table.nodes for s in table.srcs[n]}
    assert sum(nodes["tensor"].count(n) for n in table.nodes) == len(table.nodes)
    joined = {(nodes["tensor"][a], nodes["tensor"][b]) for a, b in zip(edges["src"], edges["dst"], strict=True)}
    assert joined == {(s, n) for n in table.nodes for s in table.srcs[n]}
    assert len(edges["src"]) == sum(len(table.srcs[n]) for n in table.nodes)


def test_boxes_do_not_overlap_and_stay_in_their_section(tracks: SyntheticTracks) -> None:
    graph = drawn(tracks)
    boxes = sorted(rectangles(graph), key=lambda r: r[2])
    for i, (_, left, top, right, bottom) in enumerate(boxes):
        for _, left2, top2, right2, _ in boxes[i + 1 :]:
            if top2 >= bottom:
                break
            assert right <= left2 or right2 <= left or top2 >= bottom or top == top2 == bottom
    frames = {s["id"]: s for s in graph["sections"]}
    for s, left, top, right, bottom in boxes:
        frame = frames[s]
        assert frame["x"] <= left
        assert right <= frame["x"] + frame["w"]
        assert frame["y"] <= top
        assert bottom <= frame["y"] + frame["h"]
        assert right <= graph["width"]
        assert bottom <= graph["height"]


def test_sources_stand_above_their_consumers_in_a_section(tracks: SyntheticTracks) -> None:
    graph = drawn(tracks)
    n = graph["nodes"]
    for a, b in zip(graph["edges"]["src"], graph["edges"]["dst"], strict=True):
        if n["section"][a] == n["section"][b]:
            assert n["y"][a] < n["y"][b]


def test_edges_are_curves_from_box_to_box(tracks: SyntheticTracks) -> None:
    graph = drawn(tracks)
    n, edges = graph["nodes"], graph["edges"]
    for a, b, points in zip(edges["src"], edges["dst"], edges["points"], strict=True):
        assert len(points) % 6 == 2
        assert abs(points[0] - n["x"][a]) <= n["w"][a] // 2 + 1
        assert abs(points[-2] - n["x"][b]) <= n["w"][b] // 2 + 1
        assert abs(points[1] - (n["y"][a] + n["h"][a] / 2)) <= 6
        assert abs(points[-1] - (n["y"][b] - n["h"][b] / 2)) <= 6


def test_alike_layers_are_drawn_alike() -> None:
    graph = drawn(llama(6))
    first, second = graph["sections"][1], graph["sections"][2]
    assert second["repeat"] == first["id"]
    n = graph["nodes"]

    def inside(section: int) -> list[tuple[int, int]]:
        frame = graph["sections"][section]
        rows = zip(n["section"], n["x"], n["y"], strict=True)
        return [(x - frame["x"], y - frame["y"]) for s, x, y in rows if s == section]

    assert inside(1) == inside(2)


@pytest.mark.parametrize("tracks", [llama(30), long_chain()], ids=["llama", "chain"])
def test_a_long_chain_is_no_sliver(tracks: SyntheticTracks) -> None:
    graph = drawn(tracks)
    assert 0.6 < graph["width"] / graph["height"] < 3


def test_folded_draws_the_first_of_a_run_only() -> None:
    folded = graph_layout(read_graph(llama(6), 0), folded=True)
    assert [s["label"] for s in folded["sections"]] == ["input", "block 0", "block 5", "output"]
    joined = {(folded["nodes"]["section"][a], folded["nodes"]["section"][b])
              for a, b in zip(folded["edges"]["src"], folded["edges"]["dst"], strict=True)}  # fmt: skip
    assert {(0, 1), (1, 6), (6, 7)} <= joined


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    asked: list[str] = []
    real = subprocess.run

    def run(command: list[str], **options: object) -> object:
        asked.append(str(options["input"]))
        return real(command, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(dot_layout.subprocess, "run", run)
    dot_layout._by_dot.cache_clear()
    yield asked
    dot_layout._by_dot.cache_clear()


def test_dot_is_asked_once_for_each_structure(counted: list[str]) -> None:
    """30 layers, of which the last is built otherwise, and what stands around them."""
    layout(llama(30))
    assert len(counted) == 4
    layout(llama(28))
    assert len(counted) == 4


def test_no_name_reaches_dot(counted: list[str]) -> None:
    layout(hostile())
    assert counted
    assert not any(word in source for source in counted for word in ("script", "stranger", "quote", "break", "left"))


def test_without_dot_there_is_still_a_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dot_layout, "_by_dot", lambda source: None)
    for tracks in (lesson(), llama(4), hostile()):
        graph = drawn(tracks)
        boxes = rectangles(graph)
        assert len({box[1:] for box in boxes}) == len(boxes)
        test_sources_stand_above_their_consumers_in_a_section(tracks)


def test_a_dot_that_fails_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "dot"
    broken.write_text("#!/bin/sh\necho not json\n")
    broken.chmod(0o755)
    monkeypatch.setattr("graphviz.backend.dot_command.DOT_BINARY", broken)
    dot_layout._by_dot.cache_clear()
    section = cut(read_graph(lesson(), 0))[0]
    assert dot_layout._by_dot(dot_layout.dot_source(section)) is None
    assert dot_layout.place(section) == dot_layout.by_depth(section)
    dot_layout._by_dot.cache_clear()


def test_the_systems_dot_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = tmp_path / "dot"
    mine.write_text("#!/bin/sh\n")
    mine.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert dot_layout.find_dot() == mine
    mine.unlink()
    assert dot_layout.find_dot() is not None
    assert dot_layout.find_dot().name.startswith("graphviz-pure")  # type: ignore[union-attr]


def test_the_layout_is_json_and_the_same_each_time() -> None:
    once = json.dumps(layout(llama(3)))
    dot_layout._by_dot.cache_clear()
    assert json.dumps(layout(llama(3))) == once


def test_the_layout_says_in_what_a_layer_differs() -> None:
    sections = drawn(llama(4))["sections"]
    names = read_graph(llama(4), 0).tensors.name
    assert [s["label"] for s in sections if "differs" in s] == ["block 3"]
    differs = sections[4]["differs"]
    assert (differs["like"], differs["removed"], differs["changed"]) == (3, [], [])
    assert [names[t] for t in differs["added"]] == ["attn_out_rows-3", "inp_rows-3"]


def test_folded_draws_each_kind_of_layer_once() -> None:
    folded = graph_layout(read_graph(sliding(12, 6), 0), folded=True)
    assert [s["label"] for s in folded["sections"]] == ["input", "block 0", "block 5", "output"]


def test_a_big_graph_that_repeats_nothing_is_laid_out_without_asking_dot_for_all(counted: list[str]) -> None:
    chance = random.Random(3)
    b = Builder()
    nodes = [b.leaf("x")]
    for i in range(4000):
        more = [chance.choice(nodes[-9:])] if chance.random() < 0.4 else []
        nodes.append(b.node(chance.choice(["ADD", "MUL", "SQR", "NORM"]), f"n{i}", nodes[-1], *more))
    graph = drawn(b.tracks())
    assert sum(len(s["nodes"]) for s in graph["sections"]) == 4000
    assert sum(source.count("width=") for source in counted) < 2000
    assert 0.6 < graph["width"] / graph["height"] < 3


def test_a_polyline_turns_its_corners_round() -> None:
    points = polyline([(0, 0), (0, 100), (100, 100)], radius=10)
    assert points[:2] == [0, 0]
    assert points[6:8] == [0, 90]
    assert points[12:14] == [10, 100]
    assert points[-2:] == [100, 100]
