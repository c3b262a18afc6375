"""Chapter 11: right answers pass, and the wrong ones that a reader is likely to give get the hint that fits."""

from __future__ import annotations

import pytest

from vizggml.lessons.ch11 import EXERCISES


@pytest.mark.parametrize(("number", "answer"), [("11.1", 63), ("11.2", 16), ("11.3", 23), ("11.4", 262144)])
def test_right(number: str, answer: int) -> None:
    assert EXERCISES[number].check(answer) == ""


@pytest.mark.parametrize(
    ("number", "answer", "hint"),
    [
        ("11.1", 62, "last"),
        ("11.1", 4, "shares"),
        ("11.1", 16, "one"),
        ("11.1", 1000, "rows"),
        ("11.2", 63, "few"),
        ("11.2", 62, "few"),
        ("11.2", 250, "one"),
        ("11.2", 64, "other"),
        ("11.3", 22, "output"),
        ("11.3", 10, "begin"),
        ("11.3", 24, "count"),
        ("11.4", 131072, "sum"),
        ("11.4", 32768, "tokens"),
        ("11.4", 65536, "elements"),
        ("11.4", 1, "product"),
    ],
)
def test_wrong(number: str, answer: int, hint: str) -> None:
    assert EXERCISES[number].check(answer) == hint
    assert EXERCISES[number].hints[hint].zh
