"""Words on pictures: what cannot be seen is shown, sizes and shapes read as people write them."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vizggml.views import labels


def test_unseen_characters_become_escapes() -> None:
    assert labels.visible("blk.0.attn_q.weight") == "blk.0.attn_q.weight"
    assert labels.visible("a\nb\tc\x00") == "a\\nb\\tc\\x00"
    assert labels.visible("x\u202ey\u200f") == "x\\u202ey\\u200f"
    assert labels.visible("👩\u200d🔬") == "👩\\u200d🔬"
    assert labels.visible("Wörter, 語 ∑") == "Wörter, 語 ∑"


@given(st.text(st.characters()))
def test_nothing_unseen_is_left(text: str) -> None:
    shown = labels.visible(text)
    assert not any(unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp") for c in shown)


@pytest.mark.parametrize(
    ("n", "words"),
    [(0, "0 B"), (96, "96 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (103022592, "98.25 MiB"), (1 << 40, "1 TiB")],
)
def test_sizes(n: int, words: str) -> None:
    assert labels.size(n) == words


def test_shapes_lose_trailing_ones() -> None:
    assert labels.shape((3, 2, 1, 1)) == "3 x 2"
    assert labels.shape((1, 1, 1, 1)) == "1"
    assert labels.shape((64, 1, 9, 1)) == "64 x 1 x 9"


def test_a_long_name_loses_its_middle() -> None:
    assert labels.short("abcdefghij", 7) == "abcd…ij"
    assert labels.short("abcdefg", 7) == "abcdefg"


def test_a_layer_is_left_open_but_no_other_number() -> None:
    assert labels.layerless("cache_k_l3 (view)", 3) == "cache_k_l## (view)"
    assert labels.layerless("blk.3.attn_q.weight", 3) == "blk.##.attn_q.weight"
    assert labels.layerless("k13", 3) == "k13"
    assert labels.layerless("node_13 (view)", 3) == labels.layerless("node_113 (view)", 9) == "node_#### (view)"
    assert labels.layerless("x-3", -1) == "x-3"


@pytest.mark.parametrize(
    ("end", "ticks"),
    [(128, [0, 40, 80, 120]), (300 * 1024, [0, 102400, 204800, 307200]), (1, [0, 1])],
)
def test_ticks_are_round(end: int, ticks: list[int]) -> None:
    assert labels.size_ticks(end, 4) == ticks
