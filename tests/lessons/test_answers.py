"""Answers of every form: what means the same is taken as the same, what cannot be one is refused, nothing breaks."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from vizggml import lessons
from vizggml.lessons.exercise import AnswerError, Exercise, call, whole

CHAPTERS = ("07", "08", "09", "10", "11", "12")
EXERCISES: dict[str, Exercise] = {}
for chapter in CHAPTERS:
    EXERCISES |= importlib.import_module(f"vizggml.lessons.ch{chapter}").EXERCISES

WHOLE = {
    "07.1": 224,
    "07.2": 8,
    "08.1": 3758096384,
    "08.2": 1996488704,
    "08.3": 1536,
    "09.1": 3512,
    "09.2": 2**30,
    "09.3": 1310720,
    "10.1": 25362432,
    "11.1": 63,
    "11.2": 16,
    "11.3": 23,
    "11.4": 262144,
}
"""Answers that are a whole number, worked out by hand."""

FUNCTIONS = ("07.3", "09.4", "10.3")

ODD = (
    None,
    "",
    "many",
    "9" * 5000,
    b"5",
    True,
    -1,
    10**400,
    -(10**400),
    float("inf"),
    float("nan"),
    1j,
    [],
    [[2, 3], [4, 8]],
    (None,),
    {},
    {"a": 1},
    np.zeros((2, 2)),
    np.array([]),
    object(),
    int,
    repr,
    lambda *given: None,
    lambda *given: 10**12,
    lambda *given: "text",
    lambda *given: [None] * 99,
    lambda: 1,
)


def told(number: str, answer: object, capsys: pytest.CaptureFixture[str]) -> str:
    lessons.check(number, answer)
    return " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("number", WHOLE)
def test_a_number_is_the_same_in_each_form(number: str, capsys: pytest.CaptureFixture[str]) -> None:
    want = WHOLE[number]
    for answer in (want, np.int64(want), np.uint64(want), float(want), np.float64(want), np.array(want), str(want)):
        assert told(number, answer, capsys) == "Right."
    for answer in (want + 0.5, want + 0.01, np.float64(want + 0.9), [want], str(want + 0.5)):
        assert told(number, answer, capsys).startswith("Not yet.")


@pytest.mark.parametrize("number", EXERCISES)
def test_odd_answers_are_refused_and_break_nothing(number: str, capsys: pytest.CaptureFixture[str]) -> None:
    for answer in ODD:
        assert told(number, answer, capsys).startswith("Not yet."), answer


@pytest.mark.parametrize("answer", [[2, 3, 4, 8], (2, 3, 4, 8), np.array([2, 3, 4, 8]), [2.0, 3.0, 4.0, 8.0]])
def test_cells_are_the_same_in_each_form(answer: Any) -> None:
    assert EXERCISES["08.4"].check(answer) == ""


@pytest.mark.parametrize("answer", ["2348", [2, 3, 4, 8.5], 2348])
def test_cells_are_four_numbers(answer: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert "looks like this: [0, 1, 2, 3]" in told("08.4", answer, capsys)


@pytest.mark.parametrize("answer", ["UCRXL", "u c r x l", "U, C, R, X, L", "U -> C -> R -> X -> L", list("UCRXL")])
def test_stages_are_the_same_in_each_form(answer: Any) -> None:
    assert EXERCISES["12.2"].check(answer) == ""


def test_a_block_of_zeros_may_have_a_scale_of_either_sign() -> None:
    def encode(x: Any) -> bytes:
        scope: dict[str, Any] = {}
        exec(importlib.import_module("vizggml.lessons.ch10").SOLVED, scope)
        return bytes(scope["encode"](x)) if x.any() else bytes(2) + b"\x88" * 16

    assert EXERCISES["10.3"].check(encode) == ""
    assert EXERCISES["10.3"].check(lambda x: encode(x) if x.any() else bytes(18)) == "zeros"


@pytest.mark.parametrize("number", FUNCTIONS)
def test_what_a_function_raises_is_said(number: str, capsys: pytest.CaptureFixture[str]) -> None:
    def fails(*given: Any) -> Any:
        return undefined  # type: ignore[name-defined] # noqa: F821

    assert "ended with NameError: name 'undefined' is not defined" in told(number, fails, capsys)
    assert "returns nothing" in told(number, lambda *given: None, capsys)
    assert "looks like this: answer = " in told(number, 7, capsys)


def test_a_whole_number_is_one() -> None:
    assert [whole(x) for x in (7, 7.0, "7", np.int8(7))] == [7] * 4
    for no in (7.5, True, float("nan"), "7.5"):
        with pytest.raises((ValueError, OverflowError)):
            whole(no)


def test_a_call_that_fails_tells_why() -> None:
    assert call(max, 2, 3) == 3
    with pytest.raises(TypeError):
        call(7)  # type: ignore[arg-type]
    with pytest.raises(AnswerError, match="ZeroDivisionError: division by zero"):
        call(lambda: 1 / 0)
