"""Threads for print: who worked and who waited in the evaluation of the step, on a clock."""

from __future__ import annotations

import numpy as np

from vizggml.timeline.sentences import show_ns, tensor_name
from vizggml.timeline.tracks import Tracks
from vizggml.views import sheet
from vizggml.views.details import DETAILS, tensor_at
from vizggml.views.palette import FAMILIES, family, family_class
from vizggml.views.sheet import INNER, Pane
from vizggml.views.svg import Svg, text_of

LEFT = 66.0
WIDE = INNER - LEFT
LANE = 26.0
MOST = 16
TICKS = 8


def draw_threads(tracks: Tracks, step: int) -> tuple[Pane, list[str]] | None:
    """The lanes and the families of their bars; None where nothing has been computed yet."""
    track = tracks.track("thread")
    last = int(np.searchsorted(track["a"], step, side="right")) - 1
    if last < 0:
        return None
    rows = np.flatnonzero((track["eval"] == track["eval"][last]) & (track["thread"] < MOST))
    end = float((track["end_ns"] + track["wait_ns"])[rows].max(initial=1.0)) or 1.0
    n_threads = int(track["thread"][rows].max()) + 1
    current, out, families = tensor_at(tracks, step), [], set()
    for k in range(n_threads):
        out.append(f'<text class="word soft" x="0" y="{k * LANE + 15:g}">thread {k}</text>')
    for r in rows.tolist():
        tensor, y = int(track["tensor"][r]), float(track["thread"][r]) * LANE
        x0, x1, x2 = (LEFT + ns / end * WIDE for ns in _times(track, r))
        named = family(tracks.string(int(tracks["tensor.op"][tensor])))
        families.add(named)
        pale = ' opacity="0.35"' if track["a"][r] > step else ""
        box = f'x="{x0:.2f}" y="{y:g}" width="{max(0.6, x1 - x0):.2f}" height="{LANE - 5:g}"'
        out.append(f'<rect class="{family_class(named)}" {box}{pale}/>')
        if tensor == current:
            out.append(f'<rect class="ring thin" {box}/>')
        if x2 - x1 > 0.8:
            wait = f'x="{x1:.2f}" y="{y + 6:g}" width="{x2 - x1:.2f}" height="{LANE - 17:g}"'
            out.append(f'<rect class="free" {wait}/>')
    y = n_threads * LANE
    for k in range(TICKS + 1):
        x, anchor = LEFT + k / TICKS * WIDE, " end" if k == TICKS else ""
        out.append(f'<path class="axis" d="M{x:.1f} {y - 3:g}v5"/>')
        out.append(
            f'<text class="small soft{anchor}" x="{x:.1f}" y="{y + 13:g}">{show_ns(round(k / TICKS * end))}</text>'
        )
    out.append(
        f'<text class="word" x="0" y="{y + 34:g}">{text_of(summary(tracks, rows.tolist(), n_threads, end))}</text>'
    )
    return (out, y + 46), [name for name in FAMILIES if name in families]


def _times(track: dict[str, np.ndarray], r: int) -> tuple[float, float, float]:
    end = max(float(track["begin_ns"][r]), float(track["end_ns"][r]))
    return float(track["begin_ns"][r]), end, end + float(track["wait_ns"][r])


def summary(tracks: Tracks, rows: list[int], n_threads: int, end: float) -> str:
    """The busy share, and the longest wait."""
    track = tracks.track("thread")
    times = [_times(track, r) for r in rows]
    busy = sum(t[1] - t[0] for t in times) / (n_threads * end)
    words = f"{n_threads} thread{'s' * (n_threads > 1)} busy {100 * busy:.0f} % of {show_ns(round(end))}"
    longest = max(rows, key=lambda r: float(track["wait_ns"][r]))
    wait = float(track["wait_ns"][longest])
    if not wait:
        return f"{words}; nobody waits"
    name = tensor_name(tracks, int(track["tensor"][longest]))
    return f"{words}; longest wait {show_ns(round(wait))}: thread {track['thread'][longest]} after {name}"


def threads_picture(tracks: Tracks, step: int, *, theme: str = "light") -> Svg:
    detail, drawn = DETAILS["threads"], draw_threads(tracks, step)
    table = sheet.table(detail.columns, detail.rows(tracks, step), empty=detail.empty, most=12)
    if drawn is None:
        return sheet.sheet(tracks, step, detail.title, table, theme=theme)
    pane, families = drawn
    return sheet.sheet(tracks, step, detail.title, sheet.stacked(pane, table), theme=theme, families=families)
