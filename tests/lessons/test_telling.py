"""What a chapter prints keeps to the width of a narrow notebook."""

from __future__ import annotations

import pytest

from vizggml.lessons.telling import lines, tell


@pytest.mark.parametrize(
    ("sentence", "want"),
    [
        ("", [""]),
        ("one two three", ["one two three"]),
        ("one two three four", ["one two three", "    four"]),
        ("  kept indent, and more", ["  kept indent,", "    and more"]),
        ("abcdefghijklmnopqrstuvw xyz", ["abcdefghijklmnopqrstuvw", "    xyz"]),
        ("一二三四五六七八。九", ["一二三四五六七", "    八。九"]),
        ("一二三四五，六七八九", ["一二三四五，", "    六七八九"]),
        ("一，二三四五六七八", ["一，二三四五六", "    七八"]),
    ],
)
def test_lines(sentence: str, want: list[str]) -> None:
    assert lines(sentence, 15) == want


def test_tell_prints_each_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    tell("a", 12, "b " * 40)
    assert capsys.readouterr().out.splitlines() == ["a", "12", " ".join("b" * 33), "    " + " ".join("b" * 7)]
