"""What a chapter prints, in lines that a notebook of about 700 pixels holds."""

from __future__ import annotations

import re

from rich.cells import cell_len

WIDTH = 74
"""Columns of a code cell and of what it prints; a Chinese character takes two."""
INDENT = "    "
PIECES = re.compile(r"\s+|[\u2e80-\uffef][，。：；？！、）」》”]*|[^\s\u2e80-\uffef]+[，。：；？！、）」》”]*")
"""Where a line may break: at a space, and beside a Chinese character; never before a closing mark."""


def tell(*sentences: object) -> None:
    """Print each sentence on lines of at most `WIDTH` columns; from its second line on it is indented."""
    for sentence in sentences:
        print(*lines(str(sentence)), sep="\n")


def lines(sentence: str, width: int = WIDTH) -> list[str]:
    """The lines of a sentence. A word that is wider than a line stands on one of its own."""
    done, line = [], ""
    for piece in PIECES.findall(sentence):
        if cell_len((line + piece).rstrip()) > width and line.strip():
            done.append(line.rstrip())
            line = INDENT
            if piece.isspace():
                continue
        line += piece
    return [*done, line.rstrip()]
