"""An arena for print: the objects of one ggml context to scale, and each with its offset, size and padding."""

from __future__ import annotations

import numpy as np

from vizggml.ggml.context import GGML_OBJECT_SIZE, GGML_TENSOR_SIZE
from vizggml.timeline.sentences import show_bytes, tensor_name
from vizggml.timeline.tracks import Tracks
from vizggml.views import sheet
from vizggml.views.details import field_at, tensor_at
from vizggml.views.sheet import INNER, Column, Pane, Row
from vizggml.views.svg import Svg, text_of

BAR = 24.0
COLUMNS = (*(Column(head, right=True) for head in ("offset", "size", "padding")), Column("what it is", 3.0))
EMPTY = "No context stands at this step."


def context_at(tracks: Tracks, step: int) -> int:
    """The context that the step is about: its event's, else the one that changed last and still stands; -1 for none."""
    standing = tracks.at("arena", step)
    said = field_at(tracks, step, "context")
    if said is not None and said in standing["context"]:
        return int(said)
    return int(standing["context"][np.argmax(standing["a"])]) if len(standing["a"]) else -1


def object_rows(tracks: Tracks, step: int) -> list[Row]:
    """The objects of the step's context in their order."""
    held, context, current = tracks.at("object", step), context_at(tracks, step), tensor_at(tracks, step)
    mine = sorted(np.flatnonzero(held["context"] == context).tolist(), key=lambda r: float(held["offset"][r]))
    out = []
    for r in mine:
        size, padding, tensor = int(held["size"][r]), int(held["padding"][r]), int(held["tensor"][r])
        what = tracks.string(int(held["kind"][r])).lower().replace("_", " ")
        if tensor >= 0:
            data = size - padding - GGML_TENSOR_SIZE
            what = f"{tensor_name(tracks, tensor)}: record" + (f" and {show_bytes(data)} of data" if data > 0 else "")
        elif held["graph"][r] >= 0:
            what = f"graph {held['graph'][r]}"
        cells = str(int(held["offset"][r])), show_bytes(size), show_bytes(padding) if padding else "0", what
        out.append(Row(cells, marked=tensor >= 0 and tensor == current))
    return out


def draw_arena(tracks: Tracks, step: int) -> Pane | None:
    """The whole of `mem_size` as one bar, and what is used of it."""
    context = context_at(tracks, step)
    if context < 0:
        return None
    standing, held = tracks.at("arena", step), tracks.at("object", step)
    (row,) = np.flatnonzero(standing["context"] == context).tolist()
    used, size = float(standing["used"][row]), float(standing["mem_size"][row])
    scale = INNER / max(used, size, 1.0)
    out = [f'<rect class="free" x="0" y="0" width="{INNER:g}" height="{BAR:g}"/>']
    for r in np.flatnonzero(held["context"] == context).tolist():
        x = (float(held["offset"][r]) - GGML_OBJECT_SIZE) * scale
        w = max(0.5, (float(held["size"][r]) + GGML_OBJECT_SIZE) * scale)
        colour = "f0" if held["tensor"][r] >= 0 else "f4"
        cut = " cut" if w > 3 else ""
        out.append(f'<rect class="{colour}{cut}" x="{x:.2f}" y="0" width="{w:.2f}" height="{BAR:g}"/>')
    share = f", {100 * used / size:.1f} %" if size > 0 else ""
    words = (
        f"context {context}: {show_bytes(int(used))} of {show_bytes(int(max(size, 0)))} used{share}; "
        f"{standing['n_objects'][row]} objects, each behind a header of {GGML_OBJECT_SIZE} bytes; "
        + ("no_alloc: records alone" if standing["no_alloc"][row] else "each tensor's data follows its record")
    )
    out.append(f'<text class="word" x="0" y="{BAR + 16:g}">{text_of(words)}</text>')
    return out, BAR + 30


def arena_picture(tracks: Tracks, step: int, *, theme: str = "light") -> Svg:
    table = sheet.table(COLUMNS, object_rows(tracks, step), empty=EMPTY, most=20)
    chart = draw_arena(tracks, step)
    return sheet.sheet(tracks, step, "Arena", sheet.stacked(chart, table) if chart else table, theme=theme)
