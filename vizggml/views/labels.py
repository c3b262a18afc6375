"""The words on a picture: names made safe to see, shapes, sizes, and how wide they are.

A tensor's name is text from a stranger. `visible` turns what cannot be seen, or would turn the text around it, into
escapes that can be read; escaping for SVG, DOT or HTML is the writer's work.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

NAME_SIZE = 11.0
NOTE_SIZE = 9.5
MONO = 0.602
NAME_LIMIT = 30
_PLAIN = re.compile(r"[ -~]*\Z")


@lru_cache(maxsize=65536)
def visible(text: str) -> str:
    """`text` on one line, as the player shows it too: what cannot be seen becomes an escape that can be read.

    Control characters, broken ones and those that turn the text around (right-to-left marks) cannot be seen.
    """
    if _PLAIN.match(text):
        return text
    return "".join(_escape(c) if unicodedata.category(c) in _UNSEEN else c for c in text)


_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def _escape(c: str) -> str:
    return c.encode("unicode_escape").decode("ascii") if not 0xD800 <= ord(c) < 0xE000 else f"\\u{ord(c):04x}"


def short(text: str, limit: int = NAME_LIMIT) -> str:
    """`text`, its middle left out where it is longer than `limit` characters."""
    if len(text) <= limit:
        return text
    head = (limit - 1) * 2 // 3
    return f"{text[:head]}…{text[len(text) - (limit - 1 - head) :]}"


def shape(ne: Sequence[float]) -> str:
    """`576 x 32`: ne in ggml's order, trailing ones left off."""
    dims = [int(n) for n in ne]
    while len(dims) > 1 and dims[-1] == 1:
        dims.pop()
    return " x ".join(map(str, dims))


def size(n: float) -> str:
    """`96 B`, `1.5 KiB`, `98.25 MiB`."""
    if n < 1024:
        return f"{int(n)} B"
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        n /= 1024
        if n < 1024 or unit == "TiB":
            break
    return f"{n:.2f}".rstrip("0").rstrip(".") + f" {unit}"


def size_ticks(end: float, n: int = 5) -> list[int]:
    """About `n` round sizes from 0 to `end` bytes: 1, 2, 4, 5, ... times a power of ten of B, KiB, MiB or GiB."""
    unit = 1
    while end / unit >= 1024:
        unit *= 1024
    rough = end / unit / n
    power = 10.0 ** math.floor(math.log10(rough)) if rough > 0 else 1.0
    step = next(m * power for m in (1, 2, 2.5, 4, 5, 10) if m * power >= rough)
    in_bytes = max(1, round(step * unit))
    return list(range(0, int(end) + 1, in_bytes))


@lru_cache(maxsize=65536)
def layerless(name: str, layer: int) -> str:
    """`name` with its layer's number, or the one that ggml gave an unnamed tensor (`node_52`), left open.

    So the same node of two layers is called the same.
    """
    if layer < 0:
        return name
    return re.sub(rf"(?<!\d){layer}(?!\d)", "##", _NUMBERED.sub(r"\1####", name))


_NUMBERED = re.compile(r"^(node_|leaf_)\d+")


def text_width(text: str, font_size: float) -> float:
    """Width in pixels of `text` in a monospaced font; wide characters count twice."""
    if text.isascii():
        return len(text) * font_size * MONO
    cells = sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
    return cells * font_size * MONO
