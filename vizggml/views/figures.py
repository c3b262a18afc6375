"""Static figures with matplotlib: the memory map at a step and the memory timeline of a plan, for print and for pages.

matplotlib is loaded when the first figure is made, not before.
"""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING

import numpy as np

from vizggml.files import write_whole
from vizggml.views import labels
from vizggml.views.memory import Bar, Life, Plan, check_step, memory_at, plan_at, read_plan
from vizggml.views.palette import FAMILIES, Theme, family, theme_named
from vizggml.views.still import buffer_words
from vizggml.views.tables import Tensors, Tracks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FONT_SIZE = 8.5
DPI = 160
LABELLED = 12
NAMED_AT_PEAK = 6
THIN = 0.006
"""Part of the axis that a lifetime is high at least, and half of it wide, so that it is seen."""


class Picture:
    """A figure that a notebook shows, and that can be saved. `figure` is matplotlib's."""

    def __init__(self, figure: Figure) -> None:
        self.figure = figure

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write .png, .svg or .pdf; the same figure gives the same bytes."""
        out = io.BytesIO()
        self._save(out, os.fspath(path).rsplit(".", 1)[-1].lower())
        write_whole(path, out.getvalue(), "picture")

    def _repr_png_(self) -> bytes:
        out = io.BytesIO()
        self._save(out, "png")
        return out.getvalue()

    def _save(self, to: io.BytesIO, format: str) -> None:
        from matplotlib import rc_context

        page = self.figure.get_facecolor()
        with rc_context({"svg.hashsalt": "vizggml"}):
            self.figure.savefig(to, format=format, dpi=DPI, metadata=_undated(format), facecolor=page)


def _undated(suffix: str) -> dict[str, None]:
    return {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(suffix, {})


def memory_timeline(
    tracks: Tracks,
    *,
    plan: int | None = None,
    step: int | None = None,
    theme: str = "light",
    width: float = 9.0,
    height: float = 4.2,
) -> Picture:
    """The lifetimes of one plan (None: the last begun by `step`), its peak marked and what stands there named.

    x is the position in the execution order, not time. VizggmlError when the trace planned nothing.
    """
    colours = theme_named(theme)
    wanted = plan_at(tracks, check_step(tracks, step)) if plan is None else plan
    shown = read_plan(tracks, wanted)
    figure, axes = _figure(colours, width, height)
    _lives(axes, shown, Tensors.of(tracks), colours)
    return Picture(figure)


def memory_map(
    tracks: Tracks, step: int | None = None, *, theme: str = "light", width: float = 9.0, bar_height: float = 0.85
) -> Picture:
    """The chunks at `step` (None: the last) as address bars, tensors and free blocks to scale."""
    colours = theme_named(theme)
    step = check_step(tracks, step)
    bars = [bar for bar in memory_at(tracks, step) if bar.blocks]
    figure, axes = _figure(colours, width, 0.9 + bar_height * max(1, len(bars)))
    _bars(axes, bars, Tensors.of(tracks), colours)
    axes.set_title(f"Memory at step {step:,}", loc="left", fontsize=FONT_SIZE + 2, color=colours.ink)
    return Picture(figure)


def _figure(colours: Theme, width: float, height: float) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained", facecolor=colours.page)
    axes = figure.add_subplot()
    axes.set_facecolor(colours.page)
    axes.tick_params(labelsize=FONT_SIZE - 1, colors=colours.soft, length=3)
    for name, spine in axes.spines.items():
        spine.set_visible(name in ("left", "bottom"))
        spine.set_color(colours.line)
    return figure, axes


def _rectangles(axes: Axes, corners: list[tuple[float, float, float, float]], fill: list[str], colours: Theme) -> None:
    """Rectangles (x, y, width, height), as one collection: a thousand draw in a moment."""
    from matplotlib.collections import PolyCollection

    x, y, w, h = np.array(corners, float).reshape(-1, 4).T
    shapes = np.stack([np.stack([x, x + w, x + w, x], 1), np.stack([y, y, y + h, y + h], 1)], 2)
    thick = h > 4 * h.min() if len(set(h)) > 1 else h > 0
    widths = np.where(thick, 0.5 if len(corners) < 400 else 0.12, 0.0)
    axes.add_collection(PolyCollection(list(shapes), facecolors=fill, edgecolors=colours.page, linewidths=widths))


def _lives(axes: Axes, plan: Plan, tensors: Tensors, colours: Theme) -> None:
    from matplotlib.ticker import MaxNLocator

    lives = plan.lives
    thin = plan.size * THIN
    _rectangles(
        axes,
        [(*_span(e, plan), max(e.size, thin)) for e in lives],
        [colours.colour(tensors.desc[e.tensor]) for e in lives],
        colours,
    )
    for life in _largest(plan):
        axes.text(
            (life.first + life.last + 1) / 2,
            life.offset + life.size / 2,
            plain(labels.short(labels.visible(tensors.name[life.tensor]), 22)),
            ha="center",
            va="center",
            fontsize=FONT_SIZE - 1.5,
            color=colours.on_block,
            clip_on=True,
        )
    axes.set_xlim(0, plan.n_positions)
    axes.set_ylim(0, plan.size * 1.02)
    axes.axhline(plan.peak, color=colours.peak, linewidth=1, linestyle=(0, (4, 3)))
    _live_set(axes, plan, colours)
    axes.axvline(plan.peak_at + 0.5, color=colours.peak, linewidth=0.8, linestyle=(0, (4, 3)), zorder=0)
    _note_peak(axes, plan, tensors, colours)
    _legend(axes, {family(tensors.desc[e.tensor]) for e in lives}, colours, bool(plan.live))
    ticks = labels.size_ticks(plan.size)
    axes.set_yticks(ticks, [labels.size(v) for v in ticks])
    axes.xaxis.set_major_locator(MaxNLocator(9, integer=True))
    axes.set_xlabel("position in the execution order (not time)", fontsize=FONT_SIZE, color=colours.soft)
    axes.set_ylabel("offset in the compute buffer", fontsize=FONT_SIZE, color=colours.soft)


def _live_set(axes: Axes, plan: Plan, colours: Theme) -> None:
    """How much lives at each position, as a height, and the most of it: the lower bound."""
    if not plan.live:
        return
    edges = np.arange(len(plan.live) + 1)
    axes.stairs(plan.live, edges, baseline=None, color=colours.ink, linewidth=0.9, alpha=0.75)
    if plan.bound == plan.peak:
        return
    axes.axhline(plan.bound, color=colours.ink, linewidth=1, linestyle=(0, (1, 1.5)))
    right = plan.peak_at < plan.n_positions / 2
    axes.annotate(
        f"lower bound {labels.size(plan.bound)}",
        (plan.n_positions if right else 0, plan.bound),
        xytext=(-4 if right else 4, -4),
        textcoords="offset points",
        ha="right" if right else "left",
        va="top",
        fontsize=FONT_SIZE - 0.5,
        color=colours.ink,
        bbox={"facecolor": colours.page, "edgecolor": "none", "pad": 1.5, "alpha": 0.85},
    )


def _span(life: Life, plan: Plan) -> tuple[float, int, float]:
    """Where a lifetime begins, at which offset, and how long it is, widened to be seen."""
    wide = max(life.last - life.first + 1, plan.n_positions * THIN / 2)
    return min(life.first, plan.n_positions - wide), life.offset, wide


def _largest(plan: Plan) -> list[Life]:
    """The lifetimes with room for a name, the largest first."""
    wide = [e for e in plan.lives if (e.last - e.first + 1) > plan.n_positions * 0.09 and e.size > plan.size * 0.055]
    wide.sort(key=lambda e: -e.size * (e.last - e.first + 1))
    return wide[:LABELLED]


def _note_peak(axes: Axes, plan: Plan, tensors: Tensors, colours: Theme) -> None:
    standing = plan.standing()
    names = [f"{labels.short(labels.visible(tensors.name[e.tensor]), 26)} {labels.size(e.size)}" for e in standing]
    more = f"\nand {len(names) - NAMED_AT_PEAK} more" if len(names) > NAMED_AT_PEAK else ""
    left = plan.peak_at < plan.n_positions * 0.6
    least = " = lower bound" if plan.bound == plan.peak else ""
    axes.annotate(
        plain("standing at the peak\n" + "\n".join(names[:NAMED_AT_PEAK]) + more),
        (1.01, 1.0),
        xycoords="axes fraction",
        va="top",
        fontsize=FONT_SIZE - 1,
        color=colours.soft,
        linespacing=1.5,
    )
    axes.annotate(
        f"peak {labels.size(plan.peak)}{buffer_words(plan)} at position {plan.peak_at}{least}",
        (plan.peak_at + 0.5, plan.peak),
        xytext=(6 if left else -6, 5),
        textcoords="offset points",
        ha="left" if left else "right",
        fontsize=FONT_SIZE,
        fontweight="bold",
        color=colours.peak,
        annotation_clip=False,
    )


def _legend(axes: Axes, shown: set[str], colours: Theme, live: bool) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Patch | Line2D] = []
    if live:
        handles.append(Line2D([], [], color=colours.ink, linewidth=0.9, label="bytes that live at the node"))
    handles += [Patch(color=colours.families[i], label=name) for i, name in enumerate(FAMILIES) if name in shown]
    axes.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(1.0, 0.0),
        frameon=False,
        fontsize=FONT_SIZE - 1,
        labelcolor=colours.soft,
        handlelength=1,
        handleheight=1,
    )


def _bars(axes: Axes, bars: list[Bar], tensors: Tensors, colours: Theme) -> None:
    end = max((b.offset + b.size for bar in bars for b in bar.blocks), default=1)
    corners, fill = [], []
    for r, bar in enumerate(bars):
        for b in bar.blocks:
            corners.append((float(b.offset), r + 0.12, float(b.size), 0.76))
            fill.append(colours.free if b.owner < 0 else colours.colour(tensors.desc[b.owner]))
            if b.size > end * 0.045:
                name = "free" if b.owner < 0 else labels.visible(tensors.name[b.owner])
                room = max(5, int(b.size / end * 120))
                axes.text(
                    b.offset + b.size / 2,
                    r + 0.5,
                    plain(f"{labels.short(name, room)}\n{labels.size(b.size)}"),
                    ha="center",
                    va="center",
                    fontsize=FONT_SIZE - 1,
                    color=colours.soft if b.owner < 0 else colours.on_block,
                )
    if corners:
        _rectangles(axes, corners, fill, colours)
    axes.set_xlim(0, end)
    axes.set_ylim(len(bars) or 1, 0)
    axes.set_yticks([r + 0.5 for r in range(len(bars))], [f"chunk {bar.chunk}" for bar in bars])
    ticks = labels.size_ticks(end, 7)
    axes.set_xticks(ticks, [labels.size(v) for v in ticks])
    axes.set_xlabel("offset", fontsize=FONT_SIZE, color=colours.soft)
    if not bars:
        axes.text(end / 2, 0.5, "nothing is planned yet", ha="center", va="center", color=colours.soft)


def plain(text: str) -> str:
    """`text` so that matplotlib draws it as it stands: a dollar sign would begin mathematics."""
    return text.replace("$", r"\$")
