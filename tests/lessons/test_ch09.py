"""Chapter 9: right answers pass, and the wrong ones that a reader is likely to give get the hint that fits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from vizggml.lessons.ch09 import EXERCISES

Three = tuple[Any, Any, Any]
GIB = 2**30


def merge(m1: Any, s1: Any, o1: Any, m2: Any, s2: Any, o2: Any) -> Three:
    m = max(m1, m2)
    a, b = np.exp(m1 - m), np.exp(m2 - m)
    return m, a * s1 + b * s2, a * o1 + b * o2


def without_largest(m1: Any, s1: Any, o1: Any, m2: Any, s2: Any, o2: Any) -> Three:
    return max(m1, m2), s1 + s2, o1 + o2


def out_unscaled(m1: Any, s1: Any, o1: Any, m2: Any, s2: Any, o2: Any) -> Three:
    return (*merge(m1, s1, o1, m2, s2, o2)[:2], o1 + o2)


def divided(*halves: Any) -> Three:
    m, s, o = merge(*halves)
    return m, s, o / s


def large(m1: Any, s1: Any, o1: Any, m2: Any, s2: Any, o2: Any) -> Three:
    m, a, b = max(m1, m2), np.exp(m1), np.exp(m2)
    return m, (a * s1 + b * s2) / np.exp(m), (a * o1 + b * o2) / np.exp(m)


def last(m1: Any, s1: Any, o1: Any, m2: Any, s2: Any, o2: Any) -> Three:
    _, s, o = merge(m1, s1, o1, m2, s2, o2)
    return min(m1, m2), s, o


@pytest.mark.parametrize(("number", "answer"), [("09.1", 3512), ("09.2", GIB), ("09.3", 1310720), ("09.4", merge)])
def test_right(number: str, answer: Any) -> None:
    assert EXERCISES[number].check(answer) == ""


@pytest.mark.parametrize(("number", "answer"), [("09.1", "3512"), ("09.2", "1073741824"), ("09.3", "1310720")])
def test_the_solution_says_what_is_accepted(number: str, answer: str) -> None:
    assert EXERCISES[number].check(int(answer)) == ""
    assert answer in EXERCISES[number].solution.en
    assert answer in EXERCISES[number].solution.zh


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_code_of_the_solution_is_accepted(language: str) -> None:
    lines = getattr(EXERCISES["09.4"].solution, language).splitlines()
    code = [line for line in lines if line.startswith(("def ", "    "))]
    defined: dict[str, Any] = {"np": np}
    exec("\n".join(code), defined)
    assert EXERCISES["09.4"].check(defined["merge"]) == ""


@pytest.mark.parametrize(
    ("number", "answer", "hint"),
    [
        ("09.1", 5600, "sum"),
        ("09.1", 6112, "sum"),
        ("09.1", 3000, "padding"),
        ("09.1", 3064, "each"),
        ("09.1", 2000, "maximum"),
        ("09.2", GIB // 4, "bytes"),
        ("09.2", GIB // 2, "bytes"),
        ("09.2", GIB // 32, "heads"),
        ("09.2", 1, "pairs"),
        ("09.3", 327680, "floats"),
        ("09.3", 163840, "threads"),
        ("09.3", 1179648, "mask"),
        ("09.3", 14680064, "parts"),
        ("09.4", last, "largest"),
        ("09.4", without_largest, "sum"),
        ("09.4", out_unscaled, "out"),
        ("09.4", divided, "divided"),
        ("09.4", large, "overflow"),
    ],
)
def test_wrong(number: str, answer: Any, hint: str) -> None:
    assert EXERCISES[number].check(answer) == hint
    assert EXERCISES[number].hints[hint].zh
