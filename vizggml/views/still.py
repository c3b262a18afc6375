"""One still picture of a step: memory timeline, memory map and graph, as SVG.

It stands where the player cannot run: in a notebook without a kernel, on a code host, in a page without JavaScript.
"""

from __future__ import annotations

from collections.abc import Sequence

from vizggml.timeline.sentences import render
from vizggml.timeline.tracks import Tracks as Recorded
from vizggml.views import labels
from vizggml.views.graph_layout import graph_layout
from vizggml.views.memory import UNKNOWN, Bar, Life, Plan, check_step, fullest_step, memory_at, plan_at, read_plan
from vizggml.views.palette import FAMILIES, family, family_class
from vizggml.views.svg import Svg, check_theme, document, draw_graph, legend_of, text_of
from vizggml.views.tables import Tensors, Tracks, graph_ids, read_graph

WIDTH = 720
"""Pixels of a figure: about as wide as the output of a notebook, so that text is read at its own size."""
MARGIN = 16
TIMELINE_HEIGHT = 220
BAR_HEIGHT = 40
GRAPH_HEIGHT = 620
NAMED_AT_PEAK = 5
FINEST = 3.0
"""Pixels that a step of the live set's line is wide at least."""
CROWDED, COARSE = 0.5, 12.0
"""With less than so many pixels for a position layers follow so close that the line would be hatching: then wider."""
FREE = -1
NAMELESS = {FREE: "free", UNKNOWN: "from before the recording"}
"""What stands in place of a block's name."""
THIN = 2.0
"""Pixels that a lifetime is wide and high at least, so that it is seen."""


def still(tracks: Tracks, step: int | None = None, *, theme: str = "auto", caption: str | None = None) -> Svg:
    """The state at `step` (None: where the most memory is held). Panes that have nothing to show are left out.

    `caption` stands under the title; None for the sentence of the step's event.
    """
    check_theme(theme)
    step = check_step(tracks, fullest_step(tracks) if step is None else step)
    caption = sentence_at(tracks, step) if caption is None else caption
    tensors = Tensors.of(tracks)
    n_events = int(tracks.meta["n_events"])
    title = f"Step {step:,} of {max(0, n_events - 1):,}"
    body = [f'<text class="title caption" x="{MARGIN}" y="27">{title}</text>']
    if caption:
        body.append(f'<text class="word soft caption" x="{MARGIN}" y="46">{text_of(labels.short(caption, 140))}</text>')
    y = 62.0
    plan = plan_at(tracks, step)
    if plan >= 0:
        y = _add(body, draw_timeline(read_plan(tracks, plan), tensors, WIDTH - 2 * MARGIN), y)
    bars = [bar for bar in memory_at(tracks, step) if bar.blocks]
    if bars:
        y = _add(body, draw_map(bars, tensors, WIDTH - 2 * MARGIN), y)
    graph = graph_at(tracks, step)
    if graph >= 0:
        y = _add(body, _graph(tracks, tensors, graph, step), y)
    legend, height = legend_of(FAMILIES, WIDTH - 2 * MARGIN)
    body.append(f'<g transform="translate({MARGIN},{y:g})">{legend}</g>')
    return document(WIDTH, y + 6 + height, body, theme=theme, title=f"{title}. {caption}".strip())


def sentence_at(tracks: Tracks, step: int) -> str:
    """The event of `step` in words; empty where the tracks hold none."""
    return render(tracks, step) if isinstance(tracks, Recorded) and len(tracks) else ""


def _add(body: list[str], pane: tuple[list[str], float], y: float) -> float:
    body += [f'<g transform="translate({MARGIN},{y:g})">', *pane[0], "</g>"]
    return y + pane[1] + MARGIN


def graph_at(tracks: Tracks, step: int) -> int:
    """The last graph begun at or before `step`, else the first there is; -1 for none."""
    graphs = graph_ids(tracks)
    created = tracks.columns["graph.created"].tolist()
    before = [g for g in graphs if created[g] <= step]
    return max(before, key=lambda g: (created[g], g)) if before else graphs[0] if graphs else -1


def _graph(tracks: Tracks, tensors: Tensors, graph: int, step: int) -> tuple[list[str], float]:
    table = read_graph(tracks, graph, tensors)
    drawn = graph_layout(table, folded=True)
    scale = min(1.0, (WIDTH - 2 * MARGIN) / drawn["width"], GRAPH_HEIGHT / drawn["height"])
    x = (WIDTH - 2 * MARGIN - drawn["width"] * scale) / 2
    out = [
        f'<text class="head" x="0" y="10">Graph {graph}: {len(table.nodes):,} nodes</text>',
        f'<g transform="translate({x:g},18) scale({scale:.4f})">',
        *draw_graph(drawn, table, status_at(tracks, step)),
        "</g>",
    ]
    return out, 18 + drawn["height"] * scale


def status_at(tracks: Tracks, step: int) -> dict[int, int] | None:
    """The status of each tensor at `step`; None before anything was computed, when all are drawn alike."""
    rows = tracks.open_at("node", step)
    tensor, status = tracks.columns["t.node.tensor"], tracks.columns["t.node.status"]
    found = dict(zip(tensor[rows].tolist(), status[rows].tolist(), strict=True))
    return found if any(s in (4, 5) for s in found.values()) else None


def draw_timeline(
    plan: Plan, tensors: Tensors, width: float, height: float = TIMELINE_HEIGHT, now: int = -1
) -> tuple[list[str], float]:
    """Lifetimes of `plan`: x is the position in the execution order, y the offset from the bottom.

    `now` is the position that a line marks, -1 for none.
    """
    left, right, top, foot = 64.0, 8.0, 34.0, 32.0
    across, up = width - left - right, height - top - foot
    x_of = across / plan.n_positions
    y_of = up / max(1, plan.size)
    words = f"Memory timeline: {len(plan.lives):,} tensors, {labels.size(plan.peak)}{bound_words(plan)}"
    out = [f'<text class="head" x="0" y="10">{words}</text>']
    names: list[str] = []
    y_peak = top + up - plan.peak * y_of
    x_peak = left + (plan.peak_at + 0.5) * x_of
    out.append(f'<path class="axis" d="M{left} {top}V{top + up}H{left + across}"/>')
    lines = f"M{left} {y_peak:.1f}H{left + across}M{x_peak:.1f} {top}V{top + up}"
    out.append(f'<path class="peak" stroke-dasharray="4 3" d="{lines}"/>')
    for life in plan.lives:
        w = max(THIN, (life.last - life.first + 1) * x_of)
        x = min(left + life.first * x_of, left + across - w)
        h = max(THIN, life.size * y_of)
        y = top + up - life.offset * y_of - h
        title = _life_title(life, tensors) if w * h > 12 else ""
        kind = family_of(tensors, life.tensor) + (" cut" if h > 4 and w > 3 else "")
        out.append(f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}">{title}</rect>')
        if w > 60 and h > 13:
            name = labels.short(labels.visible(tensors.name[life.tensor]), int(w / 6.8))
            out.append(
                f'<text class="small mid on" x="{x + w / 2:.1f}" y="{y + h / 2 + 3.5:.1f}">{text_of(name)}</text>'
            )
    if now >= 0:
        out.append(f'<path class="live" d="M{left + (now + 0.5) * x_of:.1f} {top - 4}V{top + up + 3:g}"/>')
    out += names + _bound_line(plan, left, top + up, x_of, y_of) + _ticks(plan, left, top, across, up)
    out.append(
        f'<text class="small peak" x="{left + 4}" y="{top - 4}">{text_of(peak_words(plan, tensors, 110))}</text>'
    )
    return out, height


def family_of(tensors: Tensors, tensor: int) -> str:
    """The CSS class that colours a tensor's memory as its operation is coloured in the graph."""
    return family_class(family(tensors.desc[tensor]))


def _life_title(life: Life, tensors: Tensors) -> str:
    words = f"{tensors.name[life.tensor]}: {labels.size(life.size)} at {life.offset}, {life.first} to {life.last}"
    return f"<title>{text_of(words)}</title>"


def peak_words(plan: Plan, tensors: Tensors, limit: int) -> str:
    """The peak in words: how much, where, and what stands there, as many names as `limit` characters hold."""
    words = f"peak {labels.size(plan.peak)}{buffer_words(plan)} at position {plan.peak_at}"
    standing = plan.standing()
    for i, life in enumerate(standing[:NAMED_AT_PEAK]):
        more = f"{': ' if i == 0 else ', '}{labels.short(labels.visible(tensors.name[life.tensor]), 24)}"
        rest = f" and {len(standing) - i} more" if i < len(standing) else ""
        if len(words) + len(more) + len(rest) > limit:
            return words + (rest if i else "")
        words += more
    left = len(standing) - NAMED_AT_PEAK
    return words + (f" and {left} more" if left > 0 else "")


def buffer_words(plan: Plan) -> str:
    """The buffer's size, where the plan leaves part of it unused."""
    return f" of a buffer of {labels.size(plan.size)}" if plan.size > plan.peak else ""


def bound_words(plan: Plan) -> str:
    """That the plan is as small as can be, or the lower bound where it takes more."""
    if not plan.bound:
        return ""
    return " = lower bound" if plan.bound == plan.peak else f", lower bound {labels.size(plan.bound)}"


def _bound_line(plan: Plan, left: float, bottom: float, x_of: float, y_of: float) -> list[str]:
    """How much lives at each position, as a height, and a line at the most of it where that is below the peak.

    Where several positions share a step of the line, it is the most that lives at any of them.
    """
    if not plan.live:
        return []
    stride = max(1, round((FINEST if x_of >= CROWDED else COARSE) / x_of))
    parts = [plan.live[at : at + stride] for at in range(0, len(plan.live), stride)]
    steps = "".join(f"V{bottom - max(part) * y_of:.1f}h{x_of * len(part):.2f}" for part in parts)
    out = [f'<path class="live" d="M{left} {bottom:.1f}{steps}"/>']
    if plan.bound != plan.peak:
        line = f"M{left} {bottom - plan.bound * y_of:.1f}h{x_of * plan.n_positions:.1f}"
        out.append(f'<path class="live" stroke-dasharray="1 2" d="{line}"/>')
    return out


def _ticks(plan: Plan, left: float, top: float, across: float, up: float) -> list[str]:
    out = []
    for value in labels.size_ticks(plan.size, 4):
        y = top + up * (1 - value / plan.size) + 3.5
        out.append(f'<text class="small soft end" x="{left - 6}" y="{y:.1f}">{labels.size(value)}</text>')
    last = plan.n_positions - 1
    for i in sorted({0, last // 4, last // 2, 3 * last // 4, last}):
        x = left + (i + 0.5) * across / plan.n_positions
        out.append(f'<text class="small soft mid" x="{x:.1f}" y="{top + up + 13:g}">{i}</text>')
    words = "position in the execution order (not time)"
    out.append(f'<text class="small soft mid" x="{left + across / 2:g}" y="{top + up + 27:g}">{words}</text>')
    return out


def draw_map(bars: Sequence[Bar], tensors: Tensors, width: float) -> tuple[list[str], float]:
    """A bar for each chunk, to scale by address: tensors in colour, free blocks hatched with their size."""
    out = ['<text class="head" x="0" y="10">Memory map</text>']
    several = len({bar.allocator for bar in bars}) > 1
    y = 22.0
    for bar in bars:
        size = max(1, bar.size, max(b.offset + b.size for b in bar.blocks))
        used = sum(b.size for b in bar.blocks if b.owner != FREE)
        whose = f"allocator {bar.allocator}, " if several else ""
        name = bar.name or f"{whose}chunk {bar.chunk}"
        words = f"{name}: {labels.size(used)} of {labels.size(size)} in use"
        out.append(f'<text class="small soft" x="0" y="{y + 8}">{words}</text>')
        y += 13
        if bar.name:
            out.append(f'<rect class="box" x="0" y="{y:g}" width="{width:g}" height="{BAR_HEIGHT}"/>')
        for b in bar.blocks:
            x, w = b.offset / size * width, max(0.5, b.size / size * width)
            name = NAMELESS.get(b.owner) or labels.visible(tensors.name[b.owner])
            title = f"<title>{text_of(f'{name}: {labels.size(b.size)} at {b.offset}')}</title>" if w > 2 else ""
            colour = {FREE: "free", UNKNOWN: "box cut"}.get(b.owner) or f"{family_of(tensors, b.owner)} cut"
            out.append(
                f'<rect class="{colour}" x="{x:.1f}" y="{y:g}" width="{w:.1f}" height="{BAR_HEIGHT}">{title}</rect>'
            )
            if w > 34:
                ink = f'<text class="small mid{"" if b.owner < 0 else " on"}" x="{x + w / 2:.1f}"'
                shown = text_of(labels.short(name, max(4, int(w / 6.6))))
                out.append(f'{ink} y="{y + 17:g}">{shown}</text>')
                out.append(f'{ink} y="{y + 31:g}">{labels.size(b.size)}</text>')
        y += BAR_HEIGHT + 10
    return out, y - 10
