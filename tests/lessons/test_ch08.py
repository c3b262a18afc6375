"""Chapter 8: right answers pass, and the wrong ones that a reader is likely to give get the hint that fits."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from vizggml.lessons.ch08 import EXERCISES

F16 = 2 * 28 * 32768 * 8 * 128 * 2


@pytest.mark.parametrize(
    ("number", "answer"),
    [("08.1", F16), ("08.1", 3.5 * 2**30), ("08.2", 1996488704), ("08.3", 1536), ("08.4", (2, 3, 4, 8))],
)
def test_right(number: str, answer: Any) -> None:
    assert EXERCISES[number].check(answer) == ""


@pytest.mark.parametrize(
    ("number", "answer"), [("08.1", "3758096384"), ("08.2", "1996488704"), ("08.3", "1536"), ("08.4", "[2, 3, 4, 8]")]
)
def test_the_solution_says_what_is_accepted(number: str, answer: str) -> None:
    assert EXERCISES[number].check(ast.literal_eval(answer)) == ""
    assert answer in EXERCISES[number].solution.en
    assert answer in EXERCISES[number].solution.zh


@pytest.mark.parametrize(
    ("number", "answer", "hint"),
    [
        ("08.1", F16 // 2, "half"),
        ("08.1", F16 * 2, "heads"),
        ("08.1", F16 // 28, "layers"),
        ("08.1", 2**31, "product"),
        ("08.2", F16 // 2, "scale"),
        ("08.2", F16, "same"),
        ("08.2", 1, "blocks"),
        ("08.3", 1000, "step"),
        ("08.3", 1024, "step"),
        ("08.3", 1512, "rounded"),
        ("08.3", 16384, "all"),
        ("08.3", 1280, "sum"),
        ("08.4", [2, 3, 4], "four"),
        ("08.4", [8, 4, 3, 2], "order"),
        ("08.4", [8, 9, 10, 11], "end"),
        ("08.4", [2, 3, 4, 5], "free"),
    ],
)
def test_wrong(number: str, answer: Any, hint: str) -> None:
    assert EXERCISES[number].check(answer) == hint
    assert EXERCISES[number].hints[hint].zh
