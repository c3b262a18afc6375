"""What an exercise is, and how an answer to it is taken."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vizggml.errors import VizggmlError
from vizggml.lessons.telling import tell

LANGUAGES = ("en", "zh")


@dataclass(frozen=True, slots=True)
class Text:
    """The same words in each language."""

    en: str
    zh: str

    def __str__(self) -> str:
        return self.zh if language() == "zh" else self.en


def code(text: str) -> Text:
    """Code, which reads the same in each language."""
    return Text(text, text)


@dataclass(frozen=True, slots=True)
class Exercise:
    """`check` is given the answer, and gives nothing when it is right, else the key of the hint that fits.

    `example` is an answer of the right form, as code, that is not the right one.
    """

    check: Callable[[Any], str]
    hints: Mapping[str, Text]
    solution: Text
    example: str = "256"


YOUR_TURN = Text("Your turn: put your answer in place of the three dots.", "轮到你了：把三个点（...）换成你的答案。")
RIGHT = Text("Right.", "正确。")
NOT_YET = Text("Not yet. {hint}", "还不对。{hint}")
OTHER_FORM = Text(
    "This cannot be read as an answer here. An answer looks like this: {example}",
    "这里的答案不能写成这个形式。应当像这样写：{example}",
)


RAISED = Text("Your function ended with {error}", "你的函数出错了：{error}")
NOTHING = Text("Your function returns nothing.", "你的函数没有返回值。")


class AnswerError(VizggmlError):
    """A function that was given as an answer gives nothing to look at: what to say to that."""


def whole(answer: Any) -> int:
    """The whole number that an answer is: 7, `np.int64(7)`, 7.0 or "7". ValueError for 7.5, which is none."""
    found = int(answer)
    if isinstance(answer, bool) or (not isinstance(answer, str) and found != answer):
        raise ValueError(answer)
    return found


def wholes(answer: Any) -> tuple[int, ...]:
    """The whole numbers of a list, a tuple, an array, or beside names. TypeError or ValueError if it holds others."""
    if isinstance(answer, str):
        raise TypeError("a string is no list of numbers")
    return tuple(whole(number) for number in (answer.values() if isinstance(answer, Mapping) else answer))


def call(answer: Callable[..., Any], *given: Any) -> Any:
    """What the function gives that is the answer. TypeError if it is none, AnswerError if it raises or gives None."""
    if not callable(answer):
        raise TypeError(answer)
    try:
        found = answer(*given)
    except Exception as error:
        said = f"{type(error).__name__}: {error}".rstrip(": ")
        raise AnswerError(str(RAISED).format(error=said)) from error
    if found is None:
        raise AnswerError(str(NOTHING))
    return found


def language() -> str:
    """What the reader reads: `VIZGGML_LANG`, else the name of the folder that the notebook lies in, else English."""
    asked = os.environ.get("VIZGGML_LANG", "") or Path.cwd().name
    return asked if asked in LANGUAGES else "en"


def exercise(number: str) -> Exercise:
    """The exercise "NN.k". VizggmlError if there is none."""
    chapter = number.split(".")[0]
    try:
        found: Mapping[str, Exercise] = importlib.import_module(f"vizggml.lessons.ch{chapter}").EXERCISES
    except ModuleNotFoundError:
        raise VizggmlError(f"exercise {number!r}: no chapter {chapter!r} has exercises") from None
    if number not in found:
        raise VizggmlError(f"exercise {number!r}: chapter {chapter} has {', '.join(found)}")
    return found[number]


def check(number: str, answer: Any) -> None:
    """Say whether `answer` solves the exercise; if not, a hint."""
    asked = exercise(number)
    if answer is ...:
        tell(YOUR_TURN)
        return
    try:
        key = asked.check(answer)
    except AnswerError as error:
        hint = str(error)
    except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError, RecursionError, VizggmlError):
        hint = str(OTHER_FORM).format(example=asked.example)
    else:
        hint = str(asked.hints[key]) if key else ""
    tell(str(NOT_YET).format(hint=hint) if hint else RIGHT)


def solution(number: str) -> None:
    """Show how the exercise is solved."""
    for line in str(exercise(number).solution).splitlines():
        tell(line)
