"""Chapter 7: right answers pass, and the wrong ones that a reader is likely to give get the hint that fits."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import pytest

from vizggml.lessons.ch07 import EXERCISES


def plan(lives: Any) -> list[int]:
    offsets: list[int] = []
    for born, died, size in lives:
        offset = 0
        for start, (b, d, s) in sorted(zip(offsets, lives, strict=False)):
            if b <= died and born <= d and start < offset + size:
                offset = max(offset, start + s)
        offsets.append(offset)
    return offsets


def stacked(lives: Any) -> list[int]:
    return [0, *accumulate(size for _, _, size in lives)][:-1]


def over_the_living(lives: Any) -> list[int]:
    """Above everything that lives, never in a hole."""
    offsets: list[int] = []
    for born, _, _ in lives:
        tops = [start + s for start, (_, d, s) in zip(offsets, lives, strict=False) if d >= born]
        offsets.append(max(tops, default=0))
    return offsets


def same_size(lives: Any) -> list[int]:
    """Where a dead result of the same size was, or above all."""
    offsets: list[int] = []
    for i, (born, _, size) in enumerate(lives):
        held = {offsets[j] for j in range(i) if lives[j][1] >= born}
        free = [offsets[j] for j in range(i) if lives[j][2] == size and offsets[j] not in held]
        offsets.append(min(free, default=sum(s for _, _, s in lives[:i])))
    return offsets


def ground_or_top(lives: Any) -> list[int]:
    """At 0 when it fits there, else above all that live: never between two others."""
    offsets: list[int] = []
    for born, _, size in lives:
        living = [(start, start + s) for start, (_, d, s) in zip(offsets, lives, strict=False) if d >= born]
        lowest = min((start for start, _ in living), default=size)
        offsets.append(0 if lowest >= size else max(end for _, end in living))
    return offsets


@pytest.mark.parametrize(("number", "answer"), [("07.1", 224), ("07.2", 8), ("07.3", plan)])
def test_right(number: str, answer: Any) -> None:
    assert EXERCISES[number].check(answer) == ""


@pytest.mark.parametrize(
    ("number", "answer", "hint"),
    [
        ("07.1", 320, "sum"),
        ("07.1", 128, "single"),
        ("07.1", 192, "reader"),
        ("07.1", 100, "positions"),
        ("07.2", 7, "not yet"),
        ("07.2", 20, "before"),
        ("07.3", lambda lives: [], "one"),
        ("07.3", lambda lives: [0] * len(lives), "overlap"),
        ("07.3", stacked, "apart"),
        ("07.3", over_the_living, "apart"),
        ("07.3", same_size, "low"),
        ("07.3", ground_or_top, "between"),
    ],
)
def test_wrong(number: str, answer: Any, hint: str) -> None:
    assert EXERCISES[number].check(answer) == hint
    assert EXERCISES[number].hints[hint].zh
