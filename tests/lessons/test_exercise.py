"""An answer is taken, in the reader's language."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from vizggml import lessons
from vizggml.errors import VizggmlError
from vizggml.lessons.exercise import language

CHAPTERS = sorted(module.stem for module in Path(lessons.__file__).parent.glob("ch[0-9][0-9].py"))


def told(capsys: pytest.CaptureFixture[str], number: str, answer: object) -> str:
    lessons.check(number, answer)
    return capsys.readouterr().out.strip()


def test_an_answer_is_right_not_yet_or_to_come(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, "05.1", ...).startswith("Your turn")
    assert told(capsys, "05.1", 128) == "Right."
    assert told(capsys, "05.1", 96 + 32 + 64).startswith("Not yet. That is the sum")
    assert told(capsys, "05.1", 160).startswith("Not yet. Place one")
    assert (
        " ".join(told(capsys, "05.1", "192 bytes").split())
        == "Not yet. This cannot be read as an answer here. An answer looks like this: 256"
    )


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_three_dots_are_no_answer_yet(chapter: str, capsys: pytest.CaptureFixture[str]) -> None:
    for number in importlib.import_module(f"vizggml.lessons.{chapter}").EXERCISES:
        assert number.startswith(f"{chapter[2:]}.")
        assert told(capsys, number, ...).startswith("Your turn")


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
