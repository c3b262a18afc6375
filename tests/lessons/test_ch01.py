"""Chapter 1: right answers pass, and the wrong ones that a reader is likely to give get the hint that fits."""

from __future__ import annotations

from typing import Any

import pytest

from vizggml.lessons.ch01 import EXERCISES


def contiguous(ne: Any, nb: Any, size: int) -> bool:
    for n, stride in zip(ne, nb, strict=True):
        if n != 1 and stride != size:
            return False
        size *= n
    return True


def strict(ne: Any, nb: Any, size: int) -> bool:
    return tuple(nb) == (size, size * ne[0], size * ne[0] * ne[1], size * ne[0] * ne[1] * ne[2])


def first_is_one_element(ne: Any, nb: Any, size: int) -> bool:
    return bool(nb[0] == size) and contiguous(ne, nb, size)


def only_growing(ne: Any, nb: Any, size: int) -> bool:
    return tuple(nb) == tuple(sorted(nb))


@pytest.mark.parametrize(
    ("number", "answer"),
    [("01.1", (2, 128, 1152, 5760)), ("01.2", 104), ("01.3", [1, 2, 0, 3]), ("01.4", contiguous)],
)
def test_right(number: str, answer: Any) -> None:
    assert EXERCISES[number].check(answer) == ""


def test_the_solution_that_is_shown_is_right() -> None:
    solution = EXERCISES["01.4"].solution
    for text in (solution.en, solution.zh):
        names: dict[str, Any] = {}
        exec("\n".join(line for line in text.splitlines() if line.startswith(("def", " "))), names)
        assert EXERCISES["01.4"].check(names["contiguous"]) == ""
    for number, words in (("01.1", ("128", "1152", "5760")), ("01.2", (" = 104",)), ("01.3", ("(1, 2, 0, 3)",))):
        solution = EXERCISES[number].solution
        assert all(word in text for word in words for text in (solution.en, solution.zh))


@pytest.mark.parametrize(
    ("number", "answer", "hint"),
    [
        ("01.1", (1, 64, 576, 2880), "elements"),
        ("01.1", (90, 10, 2, 2), "order"),
        ("01.1", (2, 64, 576, 2880), "product"),
        ("01.2", 76, "before"),
        ("01.2", 26, "elements"),
        ("01.2", 5, "strides"),
        ("01.3", (0, 1, 2, 2), "once"),
        ("01.3", (2, 0, 1, 3), "numpy"),
        ("01.3", (0, 2, 1, 3), "where"),
        ("01.4", strict, "ones"),
        ("01.4", only_growing, "gaps"),
        ("01.4", first_is_one_element, "ones"),
        ("01.4", lambda ne, nb, size: True, "exchanged"),
        ("01.4", lambda ne, nb, size: False, "fresh"),
    ],
)
def test_wrong(number: str, answer: Any, hint: str) -> None:
    assert EXERCISES[number].check(answer) == hint
    assert EXERCISES[number].hints[hint].zh
