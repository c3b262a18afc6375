"""A still figure for print: what it shows, the step's sentence as its caption, the picture under them; and a table.

A picture module draws a pane as (lines of SVG, height) and puts `sheet` around it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from vizggml.timeline.tracks import Tracks
from vizggml.views import labels
from vizggml.views.memory import check_step
from vizggml.views.still import WIDTH, sentence_at
from vizggml.views.svg import Svg, check_theme, document, legend_of, text_of

MARGIN = 20.0
INNER = WIDTH - 2 * MARGIN
CAPTION_CHARACTERS = 106
CAPTION_LINES = 2
"""Room is kept for so many, so that nothing moves from one step to the next."""
ROW = 20.0
CELL_CHARACTER = labels.NAME_SIZE * labels.MONO
MOST_ROWS = 28

Pane: TypeAlias = tuple[list[str], float]
"""Lines of SVG, drawn from (0, 0) down and right, at most INNER wide, and their height."""


def sheet(
    tracks: Tracks, step: int, title: str, pane: Pane, *, theme: str = "light", families: Iterable[str] = ()
) -> Svg:
    """The figure of one pane at `step`: the title and the step, the event's sentence, `pane`, a legend of `families`.

    VizggmlError for a step outside the trace or an unknown theme.
    """
    check_theme(theme)
    step = check_step(tracks, step)
    sentence = sentence_at(tracks, step)
    last = max(0, len(tracks) - 1)
    right = WIDTH - MARGIN
    body = [
        f'<text class="title" x="{MARGIN:g}" y="31">{text_of(title)}</text>',
        f'<text class="small soft end caption" x="{right:g}" y="30">step {step:,} of {last:,}</text>',
    ]
    for k, line in enumerate(wrapped(sentence, CAPTION_CHARACTERS, CAPTION_LINES)):
        body.append(f'<text class="word caption" x="{MARGIN:g}" y="{52 + 16 * k}">{text_of(line)}</text>')
    y = 52.0 + 16 * CAPTION_LINES
    body += [f'<g transform="translate({MARGIN:g},{y:g})">', *pane[0], "</g>"]
    y += pane[1] + 16
    named = list(families)
    if named:
        legend, height = legend_of(named, INNER)
        body.append(f'<g transform="translate({MARGIN:g},{y:g})">{legend}</g>')
        y += 8 + height
    return document(WIDTH, y, body, theme=theme, title=f"{title}, step {step:,}. {sentence}".strip())


def stacked(*panes: Pane) -> Pane:
    """Panes one under the other."""
    lines, y = [], 0.0
    for drawn, height in panes:
        lines += [f'<g transform="translate(0,{y:g})">', *drawn, "</g>"]
        y += height
    return lines, y


def wrapped(text: str, width: int, most: int) -> list[str]:
    """`text` in at most `most` lines of `width` characters; what does not fit is left out, and an ellipsis says so."""
    lines = textwrap.wrap(labels.visible(text), width, break_on_hyphens=False)
    if len(lines) > most:
        lines = [*lines[: most - 1], lines[most - 1][: width - 1] + "…"]
    return lines


@dataclass(frozen=True)
class Column:
    """`share` of the width; numbers stand to the right."""

    head: str
    share: float = 1.0
    right: bool = False


@dataclass(frozen=True)
class Row:
    """`marked` where the step is; `bad` where a condition does not hold."""

    cells: Sequence[str]
    marked: bool = False
    bad: bool = False


def table(columns: Sequence[Column], rows: Sequence[Row], *, empty: str, most: int = MOST_ROWS) -> Pane:
    """Rows under their heads; of more than `most` those about the marked one, and how many there are besides."""
    if not rows:
        return [f'<text class="word soft" x="0" y="14">{text_of(empty)}</text>'], 22.0
    total = sum(column.share for column in columns)
    edges = [0.0]
    for column in columns:
        edges.append(edges[-1] + column.share / total * INNER)
    first = _first_shown(rows, most)
    shown = rows[first : first + most]
    out, y = [], 0.0
    if any(column.head for column in columns):
        out += [
            _cell(column.head, column, edges[k], edges[k + 1], 12.0, "small soft") for k, column in enumerate(columns)
        ]
        out.append(f'<path class="axis" d="M0 18H{INNER:g}"/>')
        y = 20.0
    for row in shown:
        if row.marked:
            out.append(f'<rect class="mark" x="0" y="{y:g}" width="{INNER:g}" height="{ROW:g}"/>')
        ink = "name peak" if row.bad else "name"
        cells = zip(row.cells, columns, strict=True)
        out += [_cell(text, column, edges[k], edges[k + 1], y + 14, ink) for k, (text, column) in enumerate(cells)]
        y += ROW
    if len(shown) < len(rows):
        words = f"rows {first + 1:,} to {first + len(shown):,} of {len(rows):,}"
        out.append(f'<text class="small soft" x="4" y="{y + 14:g}">{words}</text>')
        y += ROW
    return out, y


def _first_shown(rows: Sequence[Row], most: int) -> int:
    marked = next((k for k, row in enumerate(rows) if row.marked), 0)
    return max(0, min(marked - most // 2, len(rows) - most))


def _cell(text: str, column: Column, left: float, right: float, y: float, ink: str) -> str:
    room = max(3, int((right - left - 12) / CELL_CHARACTER))
    shown = text_of(labels.short(labels.visible(text), room))
    if column.right:
        return f'<text class="{ink} end" x="{right - 10:.1f}" y="{y:g}">{shown}</text>'
    return f'<text class="{ink}" x="{left + 4:.1f}" y="{y:g}">{shown}</text>'
