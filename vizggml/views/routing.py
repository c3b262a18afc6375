"""Where the tokens of a layer go, for print: experts from left to right, tokens from top to bottom."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vizggml.timeline.sentences import show_bytes
from vizggml.timeline.tracks import Tracks
from vizggml.views import labels, sheet
from vizggml.views.details import DETAILS
from vizggml.views.sheet import INNER, Pane
from vizggml.views.svg import Svg, text_of

LEFT = 120.0
WIDE = INNER - LEFT
BARS = 56.0
GRID = BARS + 22
TALLEST = 18.0
MOST = 460.0
READABLE = 11.0
SHADES = 8


@dataclass(frozen=True)
class Routed:
    """The layer that was routed last: `experts` and `weights` are (tokens, used), `positions` (tokens,)."""

    layer: int
    n_expert: int
    positions: list[int]
    experts: NDArray[np.int64]
    weights: NDArray[np.float64]
    nbytes: int
    nbytes_read: int

    @property
    def load(self) -> NDArray[np.int64]:
        """How many tokens each expert has."""
        return np.bincount(self.experts.ravel(), minlength=self.n_expert)

    @property
    def words(self) -> str:
        n_tokens, n_used = self.experts.shape
        tokens = "1 token" if n_tokens == 1 else f"{n_tokens:,} tokens"
        share = 100 * self.nbytes_read / self.nbytes
        return (
            f"{tokens}, {n_used} experts each; {np.count_nonzero(self.load)} of {self.n_expert} experts are read: "
            f"{show_bytes(self.nbytes_read)} of {show_bytes(self.nbytes)}, {share:.0f} % of their weights"
        )


def routed_at(tracks: Tracks, step: int) -> Routed | None:
    """What the newest `ExpertsRouted` up to `step` says; None before the first."""
    track = tracks.track("route")
    row = int(np.searchsorted(track["a"], step, side="right")) - 1
    if row < 0:
        return None
    at = int(tracks["ev.row"][track["a"][row]])
    positions, experts, weights = (tracks.field("ExpertsRouted", f, at) for f in ("positions", "experts", "weights"))
    shape = (len(positions), int(track["n_used"][row]))
    return Routed(
        int(track["layer"][row]),
        int(track["n_expert"][row]),
        [int(p) for p in positions],
        np.asarray(experts, np.int64).reshape(shape),
        np.asarray(weights, np.float64).reshape(shape),
        int(track["nbytes"][row]),
        int(track["nbytes_read"][row]),
    )


def draw_routing(routed: Routed, pieces: dict[int, str]) -> Pane:
    each = WIDE / routed.n_expert
    n = len(routed.positions)
    high = min(TALLEST, MOST / n)
    out = [
        *_bars(routed, each),
        f'<rect class="section" x="{LEFT:g}" y="{GRID:g}" width="{WIDE:g}" height="{n * high:g}"/>',
    ]
    top = float(routed.weights.max())
    shade = np.ceil(routed.weights / top * SHADES).astype(int)
    gap_x, gap_y = (1.0 if each > 5 else 0.0), (1.0 if high > 5 else 0.0)
    for level in range(1, SHADES + 1):
        boxes = "".join(
            f"M{LEFT + routed.experts[t, k] * each:.2f} {GRID + t * high:.2f}h{each - gap_x:.2f}v{high - gap_y:.2f}"
            f"h{gap_x - each:.2f}z"
            for t, k in zip(*np.nonzero(shade == level), strict=True)
        )
        if boxes:
            out.append(f'<path class="f0" fill-opacity="{0.18 + 0.82 * level / SHADES:.2f}" d="{boxes}"/>')
    stride = max(1, int(np.ceil(READABLE / high)))
    for t in range(0, n, stride):
        y = max(GRID + 8, GRID + (t + 0.5) * high + 4)
        piece = pieces.get(routed.positions[t], "") if stride == 1 else ""
        out.append(f'<text class="name end" x="{LEFT - 10:g}" y="{y:.1f}">{routed.positions[t]}</text>')
        if piece:
            shown = labels.short(labels.visible(piece.strip()), 10)
            out.append(f'<text class="name end" x="{LEFT - 44:g}" y="{y:.1f}">{text_of(shown)}</text>')
    y = GRID + n * high + 22
    return [*out, f'<text class="word" x="0" y="{y:g}">{text_of(routed.words)}</text>'], y + 8


def _bars(routed: Routed, each: float) -> list[str]:
    """How many tokens each expert has, and its number."""
    load = routed.load
    unit = (BARS - 14) / load.max()
    out = [f'<text class="word soft end" x="{LEFT - 10:g}" y="{BARS - 16:g}">tokens</text>']
    out.append(f'<text class="small soft end" x="{LEFT - 10:g}" y="{BARS + 14:g}">expert</text>')
    stride = next(s for s in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024) if s * each >= 24)
    for e in range(routed.n_expert):
        x, h = LEFT + e * each, load[e] * unit
        if load[e]:
            width = max(0.8, each - (1 if each > 5 else 0))
            out.append(f'<rect class="f0" x="{x:.2f}" y="{BARS - h:.2f}" width="{width:.2f}" height="{h:.2f}"/>')
        if load[e] and each >= 14:
            out.append(f'<text class="small soft mid" x="{x + each / 2:.1f}" y="{BARS - h - 3:.1f}">{load[e]}</text>')
        if e % stride == 0:
            out.append(f'<text class="small soft mid" x="{x + each / 2:.1f}" y="{BARS + 14:g}">{e}</text>')
    return [*out, f'<path class="axis" d="M{LEFT:g} {BARS:g}h{WIDE:g}"/>']


def routing_picture(tracks: Tracks, step: int, *, theme: str = "light") -> Svg:
    routed, detail = routed_at(tracks, step), DETAILS["routing"]
    if routed is None:
        return sheet.sheet(tracks, step, detail.title, sheet.table((), [], empty=detail.empty), theme=theme)
    tokens = tracks.at("token", step)
    pieces = {int(p): tracks.string(int(s)) for p, s in zip(tokens["pos"], tokens["piece"], strict=True)}
    pane = draw_routing(routed, pieces)
    return sheet.sheet(tracks, step, f"Routing of layer {routed.layer}", pane, theme=theme)
