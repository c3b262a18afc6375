"""How a graph is cut: by layer, alike layers known as alike, shared leafs in each, runs folded."""

from __future__ import annotations

from tests.views.synthetic import Builder, lesson, llama
from vizggml.views.sections import SECTION_LIMIT, cut, folds
from vizggml.views.tables import read_graph


def test_a_small_graph_is_one_section() -> None:
    sections = cut(read_graph(lesson(), 0))
    assert [s.label for s in sections] == ["graph"]
    assert not folds(sections)


def test_layers_have_what_comes_before_and_after() -> None:
    sections = cut(read_graph(llama(4), 0))
    assert [s.label for s in sections] == ["input", "block 0", "block 1", "block 2", "block 3", "output"]
    assert [s.layer for s in sections] == [-1, 0, 1, 2, 3, -1]


def test_equal_layers_repeat_the_first_and_fold() -> None:
    """The last layer of llama keeps only the wanted rows, so it is built otherwise and stays out of the fold."""
    sections = cut(read_graph(llama(5), 0))
    assert [s.repeat for s in sections] == [-1, -1, 1, 1, 1, -1, -1]
    assert folds(sections) == [([1, 2, 3, 4], "block x 4")]


def test_layers_with_one_and_two_digits_are_alike() -> None:
    sections = cut(read_graph(llama(12), 0))
    assert {tuple(s.widths) for s in sections if 0 <= s.layer < 11} == {tuple(sections[1].widths)}
    assert folds(sections) == [(list(range(1, 12)), "block x 11")]


def test_another_operation_in_one_layer_breaks_the_run() -> None:
    b = Builder()
    cur = b.node("GET_ROWS", "embd", b.leaf("x"))
    for il in range(6):
        cur = b.node("MUL" if il == 2 else "ADD", f"a-{il}", cur, b.leaf(f"w{il}", layer=il), layer=il)
    sections = cut(read_graph(b.tracks(), 0))
    assert folds(sections) == [([1, 2], "block x 2"), ([4, 5, 6], "block x 3")]


def test_a_leaf_that_all_layers_read_stands_in_each() -> None:
    tracks = llama(4)
    table = read_graph(tracks, 0)
    pos = table.tensors.name.index("inp_pos")
    assert [s.label for s in cut(table) if pos in s.leafs] == ["block 0", "block 1", "block 2", "block 3"]


def test_a_node_without_a_layer_goes_where_its_sources_are() -> None:
    b = Builder()
    x = b.node("NORM", "norm-0", b.leaf("x"), layer=0)
    unnamed = b.node("CONT", "node_1", x)
    b.node("ADD", "out-1", b.node("ADD", "out-0", unnamed, layer=0), layer=1)
    sections = cut(read_graph(b.tracks(), 0))
    assert [(s.label, len(s.nodes)) for s in sections] == [("block 0", 3), ("block 1", 1)]


def test_a_mask_cast_once_for_all_layers_belongs_to_none() -> None:
    b = Builder()
    cur = b.node("GET_ROWS", "embd", b.leaf("w"))
    first = b.node("NORM", "norm-0", cur, layer=0)
    mask = b.node("CPY", "mask (copy)", b.leaf("mask"))
    cur = b.node("ADD", "kq-0", first, mask, layer=0)
    b.node("ADD", "kq-1", cur, mask, layer=1)
    sections = cut(read_graph(b.tracks(), 0))
    assert [(s.label, len(s.nodes)) for s in sections] == [("input", 2), ("block 0", 2), ("block 1", 1)]


def test_a_long_graph_without_layers_is_cut_by_execution_order() -> None:
    b = Builder()
    cur = b.leaf("x")
    for i in range(1000):
        cur = b.node("ADD", f"n{i}", cur)
    sections = cut(read_graph(b.tracks(), 0))
    assert max(len(s.nodes) for s in sections) <= SECTION_LIMIT
    assert [n for s in sections for n in s.nodes] == read_graph(b.tracks(), 0).nodes
    assert sections[1].label == "graph: nodes 200 to 399"
