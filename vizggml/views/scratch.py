"""Scratch for print: what each node needs of the work buffer in execution order, the running maximum, the winner."""

from __future__ import annotations

import numpy as np

from vizggml.timeline.sentences import show_bytes, tensor_name
from vizggml.timeline.tracks import Tracks
from vizggml.views import sheet
from vizggml.views.details import DETAILS, tensor_at
from vizggml.views.sheet import INNER, Pane
from vizggml.views.still import graph_at
from vizggml.views.svg import Svg, text_of

HIGH = 150.0
TOP = 18.0


def draw_scratch(tracks: Tracks, step: int) -> Pane | None:
    """The bars of the step's graph; None where no scratch of it is planned."""
    held, graph = tracks.at("scratch", step), graph_at(tracks, step)
    rows = np.flatnonzero(held["graph"] == graph)
    if not len(rows):
        return None
    nodes = tracks["graph.node"][tracks["graph.ptr"][graph] : tracks["graph.ptr"][graph + 1]].tolist()
    position = {t: k for k, t in enumerate(nodes)}
    rows = np.array(sorted(rows.tolist(), key=lambda r: position.get(int(held["tensor"][r]), 0)))
    sizes, tensors = held["work_size"][rows], held["tensor"][rows].tolist()
    winner, most = int(np.argmax(sizes)), float(sizes.max())
    wide = INNER / max(1, len(nodes))
    foot = TOP + HIGH
    out = [f'<path class="axis" d="M0 {foot:g}H{INNER:g}"/>']
    points, before = [], foot
    for k, (tensor, size) in enumerate(zip(tensors, sizes.tolist(), strict=True)):
        x, y = position.get(tensor, 0) * wide, foot - size / max(1.0, most) * HIGH
        if size:
            colour = "mark" if k == winner else "f0"
            box = f'x="{x:.2f}" y="{y:.2f}" width="{max(1.2, wide - 1):.2f}" height="{foot - y:.2f}"'
            out += [f'<rect class="{colour}" {box}/>', f'<rect class="ring thin" {box}/>' if k == winner else ""]
        points += [f"{x:.1f} {before:.1f}", f"{x:.1f} {min(before, y):.1f}"]
        before = min(before, y)
    points.append(f"{position.get(tensors[-1], 0) * wide + wide:.1f} {before:.1f}")
    out.append(f'<path class="live" d="M{"L".join(points)}"/>')
    if most:
        x = position.get(tensors[winner], 0) * wide
        anchor = " end" if x > INNER / 2 else ""
        words = text_of(f"{tensor_name(tracks, tensors[winner])} {show_bytes(int(most))}")
        out.append(f'<text class="head peak{anchor}" x="{x:.1f}" y="12">{words}</text>')
    out.append(f'<text class="small soft" x="0" y="{foot + 14:g}">{len(nodes):,} nodes, in execution order</text>')
    current = tensor_at(tracks, step)
    if current in position:
        x = (position[current] + 0.5) * wide
        out.append(f'<path class="peak" d="M{x:.1f} {TOP:g}V{foot + 4:g}"/>')
    return [line for line in out if line], foot + 26


def scratch_picture(tracks: Tracks, step: int, *, theme: str = "light") -> Svg:
    detail = DETAILS["scratch"]
    chart = draw_scratch(tracks, step)
    table = sheet.table(detail.columns, detail.rows(tracks, step) if chart else [], empty=detail.empty, most=14)
    return sheet.sheet(tracks, step, detail.title, sheet.stacked(chart, table) if chart else table, theme=theme)
