"""Chapter 12: right answers pass, and the wrong ones that a reader is likely to give get the hint that fits."""

from __future__ import annotations

from typing import Any

import pytest

from vizggml.lessons.ch12 import EXERCISES

WEIGHTS = 2 * (2 * 32000 * 4096 + 32 * (4 * 4096 * 4096 + 3 * 4096 * 11008)) + 4 * 65 * 4096
"""Llama 2 of 7 billion in F16, by hand: matrices of two bytes an element, norms of four."""
KV = 2 * 2 * 32 * 4096 * 4096
COMPUTE = 105_396_224
OUTPUT = 4 * 32000
OWN = KV + COMPUTE + OUTPUT
IN_Q8_0 = WEIGHTS / 2 * 34 / 32
"""Blocks of 32 weights in 34 bytes; the norms are too small to count."""


@pytest.mark.parametrize(
    ("number", "answer"),
    [
        ("12.1", WEIGHTS + 2 * OWN),
        ("12.2", "UCRXL"),
        ("12.2", "ucrxl"),
        ("12.3", 50e9 / IN_Q8_0),
        ("12.3", 7),
    ],
)
def test_right(number: str, answer: Any) -> None:
    assert EXERCISES[number].check(answer) == ""


@pytest.mark.parametrize(
    ("number", "answer", "hint"),
    [
        ("12.1", 2 * (WEIGHTS + OWN), "twice"),
        ("12.1", WEIGHTS + OWN, "one"),
        ("12.1", 2 * OWN, "mapped"),
        ("12.1", 14_000_000_000, "sum"),
        ("12.2", "TUCRXL", "text"),
        ("12.2", "UCRBPXL", "built"),
        ("12.2", "URCXL", "order"),
        ("12.2", "XL", "missing"),
        ("12.3", 50e9 / WEIGHTS, "type"),
        ("12.3", IN_Q8_0 / 50e9, "inverse"),
        ("12.3", 50e9 / (IN_Q8_0 + OWN), "cache"),
        ("12.3", 50, "divide"),
    ],
)
def test_wrong(number: str, answer: Any, hint: str) -> None:
    assert EXERCISES[number].check(answer) == hint
    assert EXERCISES[number].hints[hint].zh
