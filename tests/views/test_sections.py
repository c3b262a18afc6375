"""How a graph is cut: by layer, alike layers known as alike, shared leafs in each, runs folded."""

from __future__ import annotations

import pytest

from tests.views.synthetic import Builder, SyntheticTracks, anonymous, lesson, llama, mixture, sliding
from vizggml.views.sections import PART, SECTION_LIMIT, Section, cut, folds
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
    assert max(len(s.nodes) for s in sections) <= PART < SECTION_LIMIT
    assert [n for s in sections for n in s.nodes] == read_graph(b.tracks(), 0).nodes
    assert sections[1].label == "graph: nodes 59 to 117"


def test_a_very_long_chain_folds_into_parts() -> None:
    b = Builder()
    cur = b.leaf("x")
    for _ in range(20_000):
        cur = b.node("ADD", "n", cur)
    sections = cut(read_graph(b.tracks(), 0))
    assert len(sections) <= 600
    assert [label for _, label in folds(sections)] == [f"part x {len(sections)}"]


def spans(sections: list[Section]) -> list[tuple[str, int]]:
    return [(s.label, len(s.nodes)) for s in sections]


@pytest.mark.parametrize(
    "tracks", [llama(5), llama(30), sliding(12, 6), mixture(1, 6)], ids=["5", "30", "sliding", "experts"]
)
def test_without_names_the_blocks_are_found_where_the_names_would_have_them(tracks: SyntheticTracks) -> None:
    """The same graph with and without names: what repeats is cut at the same places and folds the same way."""
    named = cut(read_graph(tracks, 0))
    told, folded = spans(named), folds(named)
    found = cut(read_graph(anonymous(tracks), 0))
    assert spans(found) == told
    assert folds(found) == folded


def test_a_motif_of_forty_repeats_folds() -> None:
    b = Builder()
    cur = b.node("GET_ROWS", "first", b.leaf("x"))
    for i in range(40):
        left = b.node("MUL_MAT", f"a{7 * i}", b.leaf(f"w{i}"), cur)
        right = b.node("SILU", f"b{i * i}", left)
        both = b.node("MUL", f"c{i}{i}", left, right)
        scaled = b.node("SCALE", f"d{900 - i}", both)
        cur = b.node("ADD", f"e{i % 3}", scaled, cur)
    sections = cut(read_graph(b.tracks(), 0))
    assert spans(sections) == [("input", 1), *((f"block {i}", 5) for i in range(40))]
    assert [label for _, label in folds(sections)] == ["block x 40"]


def test_a_chain_of_one_operation_is_no_block() -> None:
    b = Builder()
    cur = b.leaf("x")
    for i in range(100):
        cur = b.node("ADD", f"n{i}", cur)
    assert [s.label for s in cut(read_graph(b.tracks(), 0))] == ["graph"]


def test_layers_of_two_kinds_in_turn_fold_together() -> None:
    assert folds(cut(read_graph(sliding(12, 6), 0))) == [(list(range(1, 13)), "block x 12, 5 + 1 in turn")]
    assert folds(cut(read_graph(sliding(8, 2), 0))) == [(list(range(1, 9)), "block x 8, 1 + 1 in turn")]


def said(tracks: SyntheticTracks) -> dict[str, tuple[str, list[str], list[str], list[tuple[str, str]]]]:
    table = read_graph(tracks, 0)
    sections = cut(table)
    name = table.tensors.name
    return {
        s.label: (
            sections[s.differs.like].label,
            [name[t] for t in s.differs.added],
            [name[t] for t in s.differs.removed],
            [(name[t], text) for t, text in s.differs.changed],
        )
        for s in sections
        if s.differs
    }


def test_the_last_layer_of_llama_is_said_to_keep_only_some_rows() -> None:
    assert said(llama(5)) == {"block 4": ("block 3", ["attn_out_rows-4", "inp_rows-4"], [], [])}


def test_a_layer_without_a_window_is_said_to_read_another_mask() -> None:
    mask = [("kq_soft_max-5", "reads kq_mask, not kq_mask_swa")]
    assert said(sliding(8, 6)) == {"block 5": ("block 4", [], [], mask)}


def test_a_dense_layer_among_experts_is_told_apart() -> None:
    experts = ["ffn_moe_logits-1", "ffn_moe_argsort-1", "ffn_moe_out-1"]
    assert said(mixture(1, 6)) == {"block 0": ("block 1", ["ffn_out-0"], experts, [])}


def test_a_weight_of_another_type_keeps_the_fold_and_is_said() -> None:
    b = Builder()
    cur = b.leaf("x")
    for il in range(5):
        w = b.leaf(f"blk.{il}.ffn_down.weight", layer=il, type="Q6_K" if il == 1 else "Q4_K")
        cur = b.node("MUL_MAT", f"ffn_out-{il}", w, cur, layer=il)
    tracks = b.tracks()
    assert folds(cut(read_graph(tracks, 0))) == [([1, 2, 3, 4], "block x 4")]
    assert said(tracks)["block 1"] == ("block 2", [], [], [("blk.1.ffn_down.weight", "Q6_K, not Q4_K")])


def test_a_node_of_another_shape_or_operation_is_said() -> None:
    b = Builder()
    cur = b.leaf("x")
    for il in range(5):
        cur = b.node("MUL", f"a-{il}", cur, b.leaf(f"w{il}"), ne=(8 if il != 3 else 4,), layer=il)
        cur = b.node("GELU" if il == 2 else "SILU", f"act-{il}", cur, layer=il)
        cur = b.node("ADD", f"b-{il}", cur, b.leaf(f"v{il}"), layer=il)
    told = said(b.tracks())
    assert told["block 2"][3] == [("act-2", "GELU, not SILU")]
    assert told["block 3"][3] == [("a-3", "4, not 8")]


def test_a_node_without_a_name_is_of_the_layer_whose_weight_it_reads() -> None:
    b = Builder()
    cur = b.node("GET_ROWS", "node_0", b.leaf("w"))
    for il in range(3):
        cur = b.node("MUL_MAT", f"node_{2 * il + 1}", b.leaf(f"blk.{il}.w", layer=il), cur)
        cur = b.node("SILU", f"node_{2 * il + 2}", cur)
    assert spans(cut(read_graph(b.tracks(), 0)))[:3] == [("input", 1), ("block 0", 2), ("block 1", 2)]
