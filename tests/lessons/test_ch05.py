"""Chapter 5: right answers pass, and the wrong ones that a reader is likely to give get the hint that fits."""

from __future__ import annotations

from typing import Any

import pytest

from vizggml.lessons.ch05 import EXERCISES, best_fit, first_fit

SHOWN = {"A": (0, 3, 64), "B": (1, 5, 32), "C": (2, 3, 32), "D": (3, 5, 32), "E": (4, 5, 32), "F": (5, 5, 64)}
"""The six results that the chapter starts with."""
LOST = SHOWN | {"D": (3, 4, 64), "F": (5, 5, 96)}


@pytest.mark.parametrize(
    ("number", "answer"),
    [
        ("05.1", 128),
        ("05.2", [(96, 96), (256, 32)]),
        ("05.2", ((256, 32), [96, 96])),
        ("05.3", 832),
        ("05.4", ["kqv_out-1", "Vcur-1"]),
        ("05.4", ("kqv_out-1", "Vcur-1")),
        ("05.5", LOST),
        ("05.5", [(0, 1, 64), (0, 3, 32), (0, 1, 32), (0, 2, 64), (2, 3, 32), (3, 3, 96)]),
    ],
)
def test_right(number: str, answer: Any) -> None:
    assert EXERCISES[number].check(answer) == ""


@pytest.mark.parametrize(
    ("number", "answer", "hint"),
    [
        ("05.1", 96 + 32 + 64, "sum"),
        ("05.1", 160, "pairs"),
        ("05.2", [(96, 32), (128, 64), (256, 32)], "merge"),
        ("05.2", [(96, 96), (232, 56)], "align"),
        ("05.2", [(96, 32), (256, 32)], "last"),
        ("05.2", [(96, 96), (256, 32), (320, 1 << 40)], "end"),
        ("05.2", [(96, 96)], "split"),
        ("05.2", [(96, 32), (192, 96)], "each"),
        ("05.3", 800, "align"),
        ("05.3", 400, "align"),
        ("05.3", 416, "children"),
        ("05.3", 3 * 416, "input"),
        ("05.3", 5 * 416, "sum"),
        ("05.3", 100, "each"),
        ("05.4", "kqv_out-1", "one"),
        ("05.4", ["kqv_out-1"], "one"),
        ("05.4", ["Vcur-1", "kqv_out-1"], "order"),
        ("05.4", "Vcur-1", "earlier"),
        ("05.4", ["kqv_out-1", "Qcur-1"], "earlier"),
        ("05.4", "kq_soft_max-1", "beside"),
        ("05.4", ["kqv_out-1", "Kcur-1"], "beside"),
        ("05.4", ["ffn_norm-1", "Vcur-1"], "name"),
        ("05.4", [], "name"),
        ("05.5", SHOWN, "fits"),
        ("05.5", SHOWN | {"D": (3, 4, 32), "F": (5, 5, 96)}, "near"),
        ("05.5", [(0, 1, 32), (1, 2, 32), (2, 2, 64)], "both"),
        ("05.5", [(0, 1, 32), (1, 2, 32), (2, 2, 32)], "fits"),
        ("05.5", [(0, 1, 32), (1, 2, 64)], "hole"),
        ("05.5", [(0, 1, 32), (1, 2, 30)], "sizes"),
        ("05.5", [(0, 1, 32)] * 7, "many"),
        ("05.5", [(3, 1, 32)], "positions"),
        ("05.5", [], "positions"),
    ],
)
def test_wrong(number: str, answer: Any, hint: str) -> None:
    assert EXERCISES[number].check(answer) == hint
    assert EXERCISES[number].hints[hint].zh


@pytest.mark.parametrize(
    ("changed", "best", "first", "live"),
    [({}, 160, 224, 160), ({"D": (3, 4, 32), "F": (5, 5, 96)}, 224, 192, 160), (LOST, 224, 192, 192)],
)
def test_the_rules_as_placed_by_hand(changed: dict[str, Any], best: int, first: int, live: int) -> None:
    lives = list((SHOWN | changed).values())
    assert best_fit(lives) == (best, live)
    assert first_fit(lives) == first
