"""An answer is taken, in the reader's language."""

from __future__ import annotations

import importlib
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vizggml import lessons
from vizggml.errors import VizggmlError
from vizggml.lessons.exercise import language, wholes

CHAPTERS = sorted(module.stem for module in Path(lessons.__file__).parent.glob("ch[0-9][0-9].py"))


def told(capsys: pytest.CaptureFixture[str], number: str, answer: object) -> str:
    lessons.check(number, answer)
    return " ".join(capsys.readouterr().out.split())


def test_an_answer_is_right_not_yet_or_to_come(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, "05.1", ...).startswith("Your turn")
    assert told(capsys, "05.1", 128) == "Right."
    assert told(capsys, "05.1", 96 + 32 + 64).startswith("Not yet. That is the sum")
    assert told(capsys, "05.1", 160).startswith("Not yet. Place one")
    assert (
        told(capsys, "05.1", "192 bytes")
        == "Not yet. This cannot be read as an answer here. An answer looks like this: 256"
    )


@pytest.mark.parametrize("chapter", CHAPTERS[:7])
def test_the_example_of_an_answer_has_the_right_form_and_gives_nothing_away(chapter: str) -> None:
    for exercise in importlib.import_module(f"vizggml.lessons.{chapter}").EXERCISES.values():
        assert exercise.check(eval(exercise.example)) in exercise.hints


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_three_dots_are_no_answer_yet(chapter: str, capsys: pytest.CaptureFixture[str]) -> None:
    for number in importlib.import_module(f"vizggml.lessons.{chapter}").EXERCISES:
        assert number.startswith(f"{chapter[2:]}.")
        assert told(capsys, number, ...).startswith("Your turn")


ODD = (
    None,
    "",
    "128 bytes",
    -(10**30),
    float("inf"),
    float("nan"),
    Fraction(1, 3),
    object(),
    (),
    [[1], [2, 3]],
    (None, ...),
    {"a": (0, 1, 32 * 10**30)},
    np.ones((2, 2)),
    lambda *given: None,
)


@pytest.mark.parametrize("chapter", CHAPTERS[:7])
def test_an_odd_answer_is_refused_and_nothing_breaks(chapter: str, capsys: pytest.CaptureFixture[str]) -> None:
    for number in importlib.import_module(f"vizggml.lessons.{chapter}").EXERCISES:
        for answer in ODD:
            assert told(capsys, number, answer).startswith("Not yet."), (number, answer)


@pytest.mark.parametrize(
    ("number", "answer"),
    [
        ("01.2", 104.0),
        ("02.1", np.int32(1312)),
        ("03.2", np.array([192, 192, 224])),
        ("03.4", np.float32(7)),
        ("05.1", "128"),
        ("05.4", ["kqv_out-1 ", " Vcur-1"]),
        ("06.2", {"x": 3, "y": 2, "z": 1, "t": 0}),
    ],
)
def test_a_right_answer_is_right_in_any_form(number: str, answer: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, number, answer) == "Right."


@pytest.mark.parametrize(
    ("number", "answer"),
    [("01.1", (2.5, 128, 1152, 5760)), ("03.4", 7.5), ("05.2", [(96.9, 96), (256, 32)]), ("06.3", np.float64(352.25))],
)
def test_nothing_is_rounded_to_the_right_answer(number: str, answer: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, number, answer).startswith("Not yet.")


def test_whole_numbers_of_every_container() -> None:
    assert wholes(range(3)) == wholes(np.arange(3)) == wholes({"a": 0, "b": 1.0, "c": "2"}) == (0, 1, 2)
    with pytest.raises(TypeError):
        wholes("123")


@pytest.mark.parametrize("number", ["01.4", "04.4", "06.4"])
def test_a_function_that_stops_is_told_why(number: str, capsys: pytest.CaptureFixture[str]) -> None:
    def stops(*given: Any) -> Any:
        raise NameError("name 'nb' is not defined")

    assert told(capsys, number, stops) == "Not yet. Your function ended with NameError: name 'nb' is not defined"
    assert told(capsys, number, lambda *given: None) == "Not yet. Your function returns nothing."
    assert told(capsys, number, 3).startswith("Not yet. This cannot be read as an answer here.")


def test_the_language_is_that_of_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "zh").mkdir()
    monkeypatch.delenv("VIZGGML_LANG", raising=False)
    monkeypatch.chdir(tmp_path / "zh")
    assert language() == "zh"
    assert told(capsys, "05.1", 128) == "正确。"
    monkeypatch.chdir(tmp_path)
    assert language() == "en"
    monkeypatch.setenv("VIZGGML_LANG", "zh")
    assert language() == "zh"


def test_an_exercise_that_is_not_there_is_said_to_be(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(VizggmlError, match="no chapter '77' has exercises"):
        lessons.check("77.1", 1)
    with pytest.raises(VizggmlError, match=r"chapter 05 has 05\.1"):
        lessons.solution("05.9")
