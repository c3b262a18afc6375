"""What a chapter prints, in lines that a notebook of about 700 pixels holds."""

from __future__ import annotations

import re

from rich.cells import cell_len

WIDTH = 74
"""Columns of a code cell and of what it prints; a Chinese character takes two."""
SENTENCE = 66
"""Of a sentence, so that it stays whole beside the list of files, too."""
INDENT = "    "
MARKS = "，。：；？！、）」》”"
CHINESE = re.compile(r"[\u2e80-\uffef]")
PIECES = re.compile(rf"\s+|[\u2e80-\uffef][{MARKS}]*|[^\s\u2e80-\uffef]+[{MARKS}]*")
"""Where a line may break: at a space, and beside a Chinese character; never before a closing mark."""


def tell(*sentences: object) -> None:
    """Print each sentence on lines of at most `SENTENCE` columns; from its second line on it is indented."""
    for sentence in sentences:
        print(*lines(str(sentence)), sep="\n")


def lines(sentence: str, width: int = SENTENCE) -> list[str]:
    """The lines of a sentence. A word that is wider than a line stands on one of its own.

    Chinese has no spaces, so a line ends at a mark in its last third where there is one, else between two characters.
    """
    done, line = [], ""
    for piece in PIECES.findall(sentence):
        if cell_len((line + piece).rstrip()) > width and line.strip():
            kept = line
            if CHINESE.match(piece) and (mark := max(line.rfind(m) for m in MARKS) + 1):
                kept = line[:mark] if cell_len(line[:mark]) > 2 * width // 3 else line
            done.append(kept.rstrip())
            line = INDENT + line[len(kept) :].lstrip()
            if piece.isspace():
                continue
        line += piece
    return [*done, line.rstrip()]
