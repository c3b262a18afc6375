"""Chapter 4: right answers pass, and the wrong ones that a reader is likely to give get the hint that fits."""

from __future__ import annotations

from typing import Any

import pytest

from vizggml.lessons.ch04 import EXERCISES


def shape(batch: Any, *names: str) -> Any:
    sequences = len(set(batch["sequences"]))
    return len(batch["tokens"]), *(sequences if name == "sequences" else batch[name] for name in names)


def comparing(*names: str) -> Any:
    return lambda had, now: shape(had, *names) == shape(now, *names)


@pytest.mark.parametrize(
    ("number", "answer"),
    [
        ("04.1", 1472),
        ("04.2", "prt"),
        ("04.2", "p, r, t"),
        ("04.3", 57),
        ("04.4", comparing("sequences", "n_outputs", "n_kv")),
    ],
)
def test_right(number: str, answer: Any) -> None:
    assert EXERCISES[number].check(answer) == ""


@pytest.mark.parametrize(
    ("number", "answer", "hint"),
    [
        ("04.1", 16_001_472, "data"),
        ("04.1", 736, "results"),
        ("04.1", 1104, "both"),
        ("04.1", 1344, "records"),
        ("04.2", "pqx", "letters"),
        ("04.2", "pqrst", "op"),
        ("04.2", "pqrt", "children"),
        ("04.2", "rt", "input"),
        ("04.2", "pr", "each"),
        ("04.3", 56, "full"),
        ("04.3", 257, "counted"),
        ("04.3", 256, "cells"),
        ("04.3", 3, "grow"),
        ("04.4", lambda had, now: False, "same"),
        ("04.4", lambda had, now: had == now, "values"),
        ("04.4", lambda had, now: True, "n_tokens"),
        ("04.4", comparing("n_kv", "sequences"), "outputs"),
        ("04.4", comparing("n_outputs", "sequences"), "n_kv"),
        ("04.4", comparing("n_outputs", "n_kv"), "sequences"),
        (
            "04.4",
            lambda had, now: (
                comparing("n_outputs", "n_kv")(had, now) and set(had["sequences"]) == set(now["sequences"])
            ),
            "which",
        ),
    ],
)
def test_wrong(number: str, answer: Any, hint: str) -> None:
    assert EXERCISES[number].check(answer) == hint
    assert EXERCISES[number].hints[hint].zh
