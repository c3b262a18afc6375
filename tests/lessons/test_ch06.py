"""Chapter 6: right answers pass, and the wrong ones that a reader is likely to give get the hint that fits."""

from __future__ import annotations

from typing import Any

import pytest

from vizggml.lessons.ch06 import EXERCISES


def order(result: str, sources: Any, flip: int = 1) -> list[str]:
    done: dict[str, bool] = {}

    def visit(t: str) -> None:
        if t not in done:
            for source in sources(t)[::flip]:
                visit(source)
            done[t] = True

    visit(result)
    return list(done)


def down(result: str, sources: Any) -> list[str]:
    found = [result]
    for t in found:
        found += [s for s in sources(t) if s not in found]
    return found[::-1]


def every_way(result: str, sources: Any) -> list[str]:
    return [t for source in sources(result) for t in every_way(source, sources)] + [result]


def forgetful(result: str, sources: Any) -> list[str]:
    return list(dict.fromkeys(every_way(result, sources)))


def one_by_one(way: Any) -> Any:
    def yielded(result: str, sources: Any) -> Any:
        yield from way(result, sources)

    return yielded


@pytest.mark.parametrize(
    ("number", "answer"),
    [
        ("06.1", "qprst"),
        ("06.1", list("qprst")),
        ("06.2", (3, 2, 1, 0)),
        ("06.3", 352),
        ("06.4", order),
        ("06.4", one_by_one(order)),
    ],
)
def test_right(number: str, answer: Any) -> None:
    assert EXERCISES[number].check(answer) == ""


@pytest.mark.parametrize(
    ("number", "answer", "hint"),
    [
        ("06.1", "wqxprst", "leafs"),
        ("06.1", "qpr", "each"),
        ("06.1", "pqrst", "left"),
        ("06.1", "tsrpq", "down"),
        ("06.1", "qpsrt", "after"),
        ("06.2", (2, 1, 1, 0), "twice"),
        ("06.2", (3, 2, 1, 1), "result"),
        ("06.2", (1, 1, 1, 1), "sources"),
        ("06.3", 96 + 192 + 32, "left"),
        ("06.3", 96 + 32 + 128, "live"),
        ("06.3", 96 + 192 + 32 + 128, "sum"),
        ("06.3", 192 + 32, "out"),
        ("06.3", 100, "place"),
        ("06.4", lambda result, sources: [result], "chain"),
        ("06.4", lambda result, sources: order(result, sources, -1), "sides"),
        ("06.4", every_way, "once"),
        ("06.4", lambda result, sources: [*"ab"[: len(sources(result))]], "chain"),
        ("06.4", forgetful, "seen"),
        ("06.4", one_by_one(forgetful), "seen"),
        ("06.4", down, "sides"),
    ],
)
def test_wrong(number: str, answer: Any, hint: str) -> None:
    assert EXERCISES[number].check(answer) == hint
    assert EXERCISES[number].hints[hint].zh
