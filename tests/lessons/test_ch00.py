"""The tour's exercise: the right answer passes, and the wrong ones that are likely get the hint that fits."""

from __future__ import annotations

from typing import Any

import pytest

from vizggml.lessons.ch00 import EXERCISES


def test_right() -> None:
    assert EXERCISES["00.1"].check("Kcur-0") == ""


@pytest.mark.parametrize(
    ("answer", "hint"),
    [("Qcur-0", "earlier"), ("Vcur-0", "earlier"), ("attn_norm-0", "itself"), ("Kcur-1", "life")],
)
def test_wrong(answer: Any, hint: str) -> None:
    assert EXERCISES["00.1"].check(answer) == hint
    assert EXERCISES["00.1"].hints[hint].zh
