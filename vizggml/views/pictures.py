"""The registry of still figures: one for each pane and each detail of the player, for print.

A picture is `(tracks, step, *, theme) -> Svg`. What is registered here can be written as SVG, PNG, PDF and GIF.
"""

from __future__ import annotations

from typing import Protocol

from vizggml.errors import VizggmlError
from vizggml.timeline.sentences import render
from vizggml.timeline.tracks import Tracks
from vizggml.views import labels, sheet
from vizggml.views.arena import arena_picture
from vizggml.views.block import block_pane_picture
from vizggml.views.details import DETAILS
from vizggml.views.graph_layout import graph_layout
from vizggml.views.inspector_picture import inspector_picture
from vizggml.views.kv import kv_picture
from vizggml.views.memory import Plan, buffers_at, check_step, fullest_step, memory_at, plan_at, read_plan
from vizggml.views.palette import FAMILIES, family
from vizggml.views.reuse import reuse_picture
from vizggml.views.routing import routing_picture
from vizggml.views.scratch import scratch_picture
from vizggml.views.sheet import INNER, Column, Pane, Row
from vizggml.views.still import bound_words, draw_map, draw_timeline, graph_at, status_at, still
from vizggml.views.svg import Svg, draw_graph, text_of
from vizggml.views.tables import Tensors, read_graph
from vizggml.views.threads import threads_picture

EVENTS_BEFORE = 12
EVENTS_AFTER = 10
TOKEN_ROW = 30.0
TOKEN_SIZE = 13.0
MOST_TOKENS = 400
FULLEST = ("step", "graph", "map", "timeline", "free")
"""Panes that say most where the most memory is held."""
PAGE_RATIO = 1.9
"""A graph that is higher than so many times its width is drawn smaller, to fit a page."""


class PictureOf(Protocol):
    def __call__(self, tracks: Tracks, step: int, *, theme: str = "light") -> Svg: ...


def picture(tracks: Tracks, pane: str, step: int | None = None, *, theme: str = "light") -> Svg:
    """The figure of a pane at `step` (None: see `usual_step`). VizggmlError for a pane or a step that there is not."""
    if pane not in PICTURES:
        raise VizggmlError(f"pane {pane!r}: there are {', '.join(PICTURES)}")
    step = usual_step(tracks, pane) if step is None else check_step(tracks, step)
    return PICTURES[pane](tracks, step, theme=theme)


def usual_step(tracks: Tracks, pane: str) -> int:
    """The step that is drawn if none is said: of memory and graphs where the most memory is held, else the last."""
    return fullest_step(tracks) if pane in FULLEST else check_step(tracks, None)


def step_picture(tracks: Tracks, step: int, *, theme: str = "light") -> Svg:
    """Memory timeline, memory map and graph in one."""
    return still(tracks, step, theme=theme)


def map_picture(tracks: Tracks, step: int, *, theme: str = "light") -> Svg:
    bars = [bar for bar in memory_at(tracks, step) if bar.blocks] or buffers_at(tracks, step)
    if not bars:
        return sheet.sheet(tracks, step, "Memory map", _words("Nothing is planned at this step."), theme=theme)
    tensors = Tensors.of(tracks)
    lines, height = _headless(draw_map(bars, tensors, INNER))
    owners = {family(tensors.desc[b.owner]) for bar in bars for b in bar.blocks if b.owner >= 0}
    return sheet.sheet(tracks, step, "Memory map", (lines, height), theme=theme, families=_in_order(owners))


def timeline_picture(tracks: Tracks, step: int, *, theme: str = "light") -> Svg:
    number = plan_at(tracks, step)
    if number < 0:
        return sheet.sheet(tracks, step, "Memory timeline", _words("The trace planned no memory."), theme=theme)
    plan, tensors = read_plan(tracks, number), Tensors.of(tracks)
    words = f"{len(plan.lives):,} tensors, {labels.size(plan.peak)}{bound_words(plan)}"
    now = _position(tracks, step, plan)
    pane = sheet.stacked(_words(words), _headless(draw_timeline(plan, tensors, INNER, 400.0, now)))
    families = _in_order({family(tensors.desc[life.tensor]) for life in plan.lives})
    return sheet.sheet(tracks, step, f"Memory timeline of plan {number}", pane, theme=theme, families=families)


def graph_picture(tracks: Tracks, step: int, *, theme: str = "light") -> Svg:
    graph = graph_at(tracks, step)
    if graph < 0:
        return sheet.sheet(tracks, step, "Graph", _words("The trace holds no graph."), theme=theme)
    table = read_graph(tracks, graph)
    drawn = graph_layout(table, folded=True)
    scale = min(1.0, INNER / drawn["width"], PAGE_RATIO * INNER / drawn["height"])
    left = (INNER - drawn["width"] * scale) / 2
    lines = [
        f'<g transform="translate({left:g},0) scale({scale:.4f})">',
        *draw_graph(drawn, table, status_at(tracks, step)),
        "</g>",
    ]
    families = _in_order({family(table.tensors.desc[t]) for t in drawn["nodes"]["tensor"]})
    title = f"Graph {graph}: {len(table.nodes):,} nodes, {len(table.leafs):,} leafs"
    return sheet.sheet(tracks, step, title, (lines, drawn["height"] * scale), theme=theme, families=families)


def events_picture(tracks: Tracks, step: int, *, theme: str = "light") -> Svg:
    """The events about the step, each in its sentence."""
    first = max(0, min(step - EVENTS_BEFORE, len(tracks) - 1 - EVENTS_BEFORE - EVENTS_AFTER))
    last = min(len(tracks), first + EVENTS_BEFORE + EVENTS_AFTER + 1)
    kinds = tracks.meta["kinds"]
    rows = [
        Row((f"{i:,}", kinds[int(tracks["ev.kind"][i])]["name"], render(tracks, i)), marked=i == step)
        for i in range(first, last)
    ]
    columns = Column("step", 0.5, True), Column("event", 0.95), Column("", 4.2)
    return sheet.sheet(tracks, step, "Events", sheet.table(columns, rows, empty="No events."), theme=theme)


def tokens_picture(tracks: Tracks, step: int, *, theme: str = "light") -> Svg:
    """The text at the step: tokens of the prompt outlined, sampled ones filled, those to come left out."""
    track = tracks.track("token")
    rows = [r for r in range(len(track["a"])) if track["a"][r] <= step]
    if not rows:
        return sheet.sheet(tracks, step, "Text", _words("No token has been read at this step."), theme=theme)
    out, x, y = [], 0.0, 0.0
    for r in rows[-MOST_TOKENS:]:
        piece = labels.visible(tracks.string(int(track["piece"][r])).replace(" ", "·")) or f"#{track['token'][r]}"
        wide = labels.text_width(piece, TOKEN_SIZE) + 12
        if x and x + wide > INNER:
            x, y = 0.0, y + TOKEN_ROW
        sampled = bool(track["sampled"][r])
        ring = "ring thin" if r == rows[-1] else ""
        fill = "mark" if sampled else "section"
        out.append(f'<rect class="{fill}" x="{x:.1f}" y="{y:g}" width="{wide:.1f}" height="22" rx="4"/>')
        if ring:
            out.append(f'<rect class="{ring}" x="{x:.1f}" y="{y:g}" width="{wide:.1f}" height="22" rx="4"/>')
        out.append(f'<text class="token" x="{x + 6:.1f}" y="{y + 15.5:g}">{text_of(piece)}</text>')
        x += wide + 4
    y += TOKEN_ROW + 8
    out.append(f'<rect class="section" x="0" y="{y:g}" width="14" height="12" rx="3"/>')
    out.append(f'<text class="word soft" x="20" y="{y + 10:g}">from the prompt</text>')
    out.append(f'<rect class="mark" x="124" y="{y:g}" width="14" height="12" rx="3"/>')
    out.append(f'<text class="word soft" x="144" y="{y + 10:g}">sampled; a blank is shown as a dot</text>')
    return sheet.sheet(tracks, step, "Text", (out, y + 16), theme=theme)


def table_picture(name: str) -> PictureOf:
    """The figure of a detail that is only rows and columns."""
    detail = DETAILS[name]

    def draw(tracks: Tracks, step: int, *, theme: str = "light") -> Svg:
        pane = sheet.table(detail.columns, detail.rows(tracks, step), empty=detail.empty)
        return sheet.sheet(tracks, step, detail.title, pane, theme=theme)

    return draw


HEAD = 14.0


def _headless(pane: Pane) -> Pane:
    """A pane of the still without its head, which the sheet's title says."""
    lines, height = pane
    return [f'<g transform="translate(0,{-HEAD:g})">', *lines[1:], "</g>"], height - HEAD


def _position(tracks: Tracks, step: int, plan: Plan) -> int:
    """Where the step's node stands in the execution order of the plan's graph; -1 for none."""
    graph, node = graph_at(tracks, step), int(tracks["ev.node"][step])
    if graph < 0 or node < 0:
        return -1
    nodes = tracks["graph.node"][tracks["graph.ptr"][graph] : tracks["graph.ptr"][graph + 1]].tolist()
    return nodes.index(node) if node in nodes and nodes.index(node) < plan.n_positions else -1


def _words(text: str) -> Pane:
    return [f'<text class="word soft" x="0" y="14">{text_of(text)}</text>'], 22.0


def _in_order(families: set[str]) -> list[str]:
    return [name for name in FAMILIES if name in families]


PICTURES: dict[str, PictureOf] = {
    "step": step_picture,
    "tokens": tokens_picture,
    "graph": graph_picture,
    "map": map_picture,
    "timeline": timeline_picture,
    "events": events_picture,
    **{name: table_picture(name) for name in DETAILS},
    "tensor": inspector_picture,
    "arena": arena_picture,
    "kv": kv_picture,
    "routing": routing_picture,
    "block": block_pane_picture,
    "reuse": reuse_picture,
    "scratch": scratch_picture,
    "threads": threads_picture,
}
"""The figure of each pane and of each detail, by its name: called with tracks, a step and a theme."""
