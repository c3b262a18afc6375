"""Graph reuse for print: the verdict in words over the conditions in the order in which they were asked."""

from __future__ import annotations

import numpy as np

from vizggml.events import KINDS, ReuseDecided
from vizggml.timeline.tracks import Tracks
from vizggml.views import sheet
from vizggml.views.details import DETAILS
from vizggml.views.sheet import Pane, Row
from vizggml.views.svg import Svg, text_of

MOST_WHYS = 2


def asked_at(tracks: Tracks, step: int) -> tuple[list[int], int]:
    """What the step's evaluation asked by then, as rows of the track; and the verdict's event, -1 before it."""
    decided = np.flatnonzero(tracks["ev.kind"][: step + 1] == KINDS.index(ReuseDecided)).tolist()
    last, before = (decided[-k] if len(decided) >= k else -1 for k in (1, 2))
    asked = tracks["t.reuse.a"]
    rows = sorted(tracks.open_at("reuse", step).tolist(), key=lambda r: int(asked[r]))
    now = [r for r in rows if asked[r] > last]
    return (now, -1) if now else ([r for r in rows if asked[r] > before], last)


def verdict_at(tracks: Tracks, step: int) -> str:
    """`graph reused: 21 of 21 conditions hold`, `built anew: n_kv 256 → 512`; empty before anything was asked."""
    rows, decided = asked_at(tracks, step)
    track = tracks.track("reuse")
    n_hold = sum(bool(track["ok"][r]) for r in rows)
    failed = [
        "{} {} → {}".format(*(tracks.string(int(track[name][r])) for name in ("condition", "had", "needs")))
        for r in rows
        if not track["ok"][r]
    ]
    if decided < 0:
        return f"asking: {n_hold} of {len(rows)} hold so far" if rows else ""
    event = int(tracks["ev.row"][decided])
    if tracks.field("ReuseDecided", "reused", event):
        return f"graph reused: {n_hold} of {len(rows)} conditions hold"
    more = f" and {len(failed) - MOST_WHYS} more" if len(failed) > MOST_WHYS else ""
    why = tracks.string(int(tracks.field("ReuseDecided", "why", event)))
    return f"built anew: {', '.join(failed[:MOST_WHYS]) + more or why}"


def reuse_picture(tracks: Tracks, step: int, *, theme: str = "light") -> Svg:
    detail, track = DETAILS["reuse"], tracks.track("reuse")
    rows = []
    for r in asked_at(tracks, step)[0]:
        ok = bool(track["ok"][r])
        words = [tracks.string(int(track[name][r])) for name in ("owner", "condition", "had", "needs")]
        rows.append(Row((*words, "yes" if ok else "no"), marked=int(track["a"][r]) == step, bad=not ok))
    verdict = verdict_at(tracks, step)
    if not verdict:
        return sheet.sheet(tracks, step, detail.title, sheet.table(detail.columns, [], empty=detail.empty), theme=theme)
    ink = "head peak" if verdict.startswith("built") else "head"
    head: Pane = ([f'<text class="{ink}" x="0" y="13">{text_of(verdict)}</text>'], 24.0)
    table = sheet.table(detail.columns, rows, empty="No condition was asked.")
    return sheet.sheet(tracks, step, detail.title, sheet.stacked(head, table), theme=theme)
