"""Chapter 10: right answers pass, and the wrong ones that a reader is likely to give get the hint that fits."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from vizggml.lessons.ch10 import EXERCISES, SOLVED


def halves(d: float, codes: list[int]) -> bytes:
    return struct.pack("<e", d) + bytes(codes[j] | codes[j + 16] << 4 for j in range(16))


def codes_of(x: Any, d: float, limit: int = 15) -> list[int]:
    return [min(limit, int(v / d + 8.5)) if d else 8 for v in map(float, x)]


def largest(x: Any) -> float:
    return float(max(x, key=abs))


def plain(x: Any) -> bytes:
    d = largest(x) / -8
    return halves(d, codes_of(x, d))


def solved(x: Any) -> bytes:
    scope: dict[str, Any] = {}
    exec(SOLVED, scope)
    found: bytes = scope["encode"](x)
    return found


def unsigned(x: Any) -> bytes:
    d = abs(largest(x)) / 8
    return halves(d, codes_of(x, d))


def sevenths(x: Any) -> bytes:
    d = abs(largest(x)) / 7
    return halves(d, codes_of(x, d))


def unlimited(x: Any) -> bytes:
    d = largest(x) / -8
    return halves(d, codes_of(x, d, 16))


def dividing(x: Any) -> bytes:
    d = largest(x) / -8
    return halves(d, [min(15, int(float(v) / d + 8.5)) for v in x])


def neighbours(x: Any) -> bytes:
    d = largest(x) / -8
    codes = codes_of(x, d)
    return struct.pack("<e", d) + bytes(codes[j] | codes[j + 1] << 4 for j in range(0, 32, 2))


def cut(x: Any) -> bytes:
    d = largest(x) / -8
    return halves(d, [min(15, int(float(v) / d + 8)) if d else 8 for v in x])


@pytest.mark.parametrize(
    ("number", "answer"),
    [("10.1", 25362432), ("10.2", -0.5), ("10.3", plain), ("10.3", solved), ("10.4", "Q4_K"), ("10.4", "q4_k")],
)
def test_right(number: str, answer: Any) -> None:
    assert EXERCISES[number].check(answer) == ""


@pytest.mark.parametrize(
    ("number", "answer", "hint"),
    [
        ("10.1", 11008 * 4096 // 2, "scale"),
        ("10.1", 11008 * 4096 * 18, "blocks"),
        ("10.1", 25362432 * 8, "bits"),
        ("10.1", 11008 * 128 * 20, "half"),
        ("10.1", 4096, "product"),
        ("10.2", 0.5, "sign"),
        ("10.2", 4 / 7, "seven"),
        ("10.2", 1.5 / 8, "smallest"),
        ("10.2", 5.5 / 15, "span"),
        ("10.2", 4.0, "rule"),
        ("10.3", sevenths, "negative"),
        ("10.3", unsigned, "positive"),
        ("10.3", unlimited, "limit"),
        ("10.3", dividing, "zeros"),
        ("10.3", neighbours, "order"),
        ("10.3", cut, "rounding"),
        ("10.3", lambda x: plain(x)[2:], "length"),
        ("10.4", "Q4_0", "name"),
        ("10.4", "Q3_K", "coarse"),
        ("10.4", "Q5_K", "beside"),
    ],
)
def test_wrong(number: str, answer: Any, hint: str) -> None:
    assert EXERCISES[number].check(answer) == hint
    assert EXERCISES[number].hints[hint].zh
