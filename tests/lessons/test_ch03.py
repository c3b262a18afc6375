"""Chapter 3: right answers pass, and the wrong ones that a reader is likely to give get the hint that fits."""

from __future__ import annotations

from typing import Any

import pytest

from vizggml.lessons.ch03 import EXERCISES


@pytest.mark.parametrize(
    ("number", "answer"),
    [("03.1", 1216), ("03.2", [192, 192, 224]), ("03.2", (192, 192, 224)), ("03.3", 3), ("03.4", 7)],
)
def test_right(number: str, answer: Any) -> None:
    assert EXERCISES[number].check(answer) == ""


@pytest.mark.parametrize(("number", "shown"), [("03.1", "1216"), ("03.2", "[192, 192, 224]"), ("03.4", "= 7 GiB")])
def test_the_solution_that_is_shown_is_right(number: str, shown: str) -> None:
    solution = EXERCISES[number].solution
    assert shown in solution.en
    assert shown in solution.zh


@pytest.mark.parametrize(
    ("number", "answer", "hint"),
    [
        ("03.1", 80, "data"),
        ("03.1", 1104, "records"),
        ("03.1", 1120, "headers"),
        ("03.1", 1184, "padding"),
        ("03.1", 0, "other"),
        ("03.2", [160, 160, 200], "alignment"),
        ("03.2", [520], "one"),
        ("03.2", [256, 256, 256], "full"),
        ("03.2", [192, 224, 192], "other"),
        ("03.3", 2, "begin"),
        ("03.3", 1, "begin"),
        ("03.3", 4, "before"),
        ("03.3", 8, "other"),
        ("03.4", 15, "copies"),
        ("03.4", 5, "own"),
        ("03.4", 12, "other"),
    ],
)
def test_wrong(number: str, answer: Any, hint: str) -> None:
    assert EXERCISES[number].check(answer) == hint
    assert EXERCISES[number].hints[hint].zh
