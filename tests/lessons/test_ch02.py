"""Chapter 2: right answers pass, and the wrong ones that a reader is likely to give get the hint that fits."""

from __future__ import annotations

from typing import Any

import pytest

from vizggml.lessons.ch02 import EXERCISES


@pytest.mark.parametrize(("number", "answer"), [("02.1", 1312), ("02.2", 28), ("02.3", 3)])
def test_right(number: str, answer: Any) -> None:
    assert EXERCISES[number].check(answer) == ""


@pytest.mark.parametrize(("number", "shown"), [("02.1", "1312"), ("02.2", " = 28")])
def test_the_solution_that_is_shown_is_right(number: str, shown: str) -> None:
    solution = EXERCISES[number].solution
    assert shown in solution.en
    assert shown in solution.zh


@pytest.mark.parametrize(
    ("number", "answer", "hint"),
    [
        ("02.1", 32, "last"),
        ("02.1", 1280, "first"),
        ("02.1", 656, "elements"),
        ("02.1", 26, "counts"),
        ("02.1", 0, "other"),
        ("02.2", 24, "packed"),
        ("02.2", 32, "tail"),
        ("02.2", 64, "source"),
        ("02.2", 6, "other"),
        ("02.3", 6, "all"),
        ("02.3", 2, "in place"),
        ("02.3", 8, "leafs"),
        ("02.3", 0, "other"),
    ],
)
def test_wrong(number: str, answer: Any, hint: str) -> None:
    assert EXERCISES[number].check(answer) == hint
    assert EXERCISES[number].hints[hint].zh
