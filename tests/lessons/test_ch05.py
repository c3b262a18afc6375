"""Chapter 5: right answers pass, and the wrong ones that a reader is likely to give get the hint that fits."""

from __future__ import annotations

from typing import Any

import pytest

from vizggml.lessons.ch05 import EXERCISES


@pytest.mark.parametrize(
    ("number", "answer"),
    [
        ("05.1", 128),
        ("05.2", [(96, 96), (256, 32)]),
        ("05.2", ((256, 32), [96, 96])),
        ("05.3", 832),
        ("05.4", "kqv_out-1"),
        ("05.5", {"A": (0, 1, 32), "B": (1, 2, 32), "C": (2, 2, 64)}),
        ("05.5", [(0, 1, 64), (0, 4, 32), (2, 4, 32), (3, 4, 64)]),
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
        ("05.4", "Vcur-1", "earlier"),
        ("05.4", "kq_soft_max-1", "beside"),
        ("05.4", "ffn_norm-1", "name"),
        ("05.5", [(0, 1, 32), (1, 2, 32), (2, 2, 32)], "narrow"),
        ("05.5", [(0, 1, 32), (1, 2, 64)], "hole"),
        ("05.5", [(0, 1, 32), (1, 2, 30)], "sizes"),
        ("05.5", [(0, 1, 32)] * 5, "many"),
        ("05.5", [(3, 1, 32)], "positions"),
        ("05.5", [], "positions"),
    ],
)
def test_wrong(number: str, answer: Any, hint: str) -> None:
    assert EXERCISES[number].check(answer) == hint
    assert EXERCISES[number].hints[hint].zh
