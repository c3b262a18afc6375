"""Where everything stands when a graph is drawn: the layout that the player, the SVG writer and the DOT writer read.

Graphviz lays out each distinct section once; sections are stacked in columns, so that a long chain of layers is not a
sliver; what goes from one section to another runs in the gutters between them. Coordinates are whole pixels.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NotRequired, TypedDict

from vizggml.views.dot_layout import Placed, Points, place_all
from vizggml.views.sections import NODE_HEIGHT, Section, cut, folds
from vizggml.views.tables import GraphTable, Tensors, Tracks, graph_ids, read_graph, read_sources

MARGIN = 16
HEADER = 26
GAP = 44
GUTTER = 64
WANTED_ASPECT = 1.5


class Differs(TypedDict):
    """How a section differs from the one that it nearly repeats; tensors, and words for what is otherwise."""

    like: int
    added: list[int]
    removed: list[int]
    changed: list[tuple[int, str]]


class SectionLayout(TypedDict):
    id: int
    label: str
    layer: int
    repeat: int
    x: int
    y: int
    w: int
    h: int
    nodes: list[int]
    differs: NotRequired[Differs]


class NodeColumns(TypedDict):
    tensor: list[int]
    section: list[int]
    x: list[int]
    y: list[int]
    w: list[int]
    h: list[int]


class EdgeColumns(TypedDict):
    src: list[int]
    dst: list[int]
    points: list[list[int]]


class Fold(TypedDict):
    sections: list[int]
    label: str


class GraphLayout(TypedDict):
    graph: int
    n_nodes: int
    width: int
    height: int
    sections: list[SectionLayout]
    nodes: NodeColumns
    edges: EdgeColumns
    folds: list[Fold]


class Layout(TypedDict):
    graphs: list[GraphLayout]


def layout(tracks: Tracks) -> Layout:
    """The layout of every graph in the tracks that has nodes."""
    tensors, sources = Tensors.of(tracks), read_sources(tracks)
    return {"graphs": [graph_layout(read_graph(tracks, g, tensors, sources)) for g in graph_ids(tracks)]}


def layout_json(tracks: Tracks) -> str:
    """`layout` as the player takes it: JSON in ASCII, whatever the names hold."""
    return json.dumps(layout(tracks), separators=(",", ":"))


def graph_layout(graph: GraphTable, folded: bool = False) -> GraphLayout:
    """The layout of one graph; `folded` leaves out all but the first section of each fold, for a still picture."""
    sections = cut(graph)
    runs = folds(sections)
    stand_in = _stand_ins(sections, runs) if folded else {}
    shown = [s for s in range(len(sections)) if stand_in.get(s, s) == s]
    placed = place_all({s: sections[s] for s in shown})
    frames = stack([_frame(sections[s], placed[s]) for s in shown])
    at = dict(zip(shown, frames, strict=True))
    rows = _Rows()
    for s in shown:
        rows.add_section(s, sections[s], placed[s], at[s])
    rows.add_crossings(sections, placed, at, stand_in)
    return {
        "graph": graph.graph,
        "n_nodes": len(graph.nodes),
        "width": max((f.x + f.w for f in frames), default=0) + MARGIN,
        "height": max((f.y + f.h for f in frames), default=0) + MARGIN,
        "sections": [_section(s, sections[s], at[s]) for s in shown],
        "nodes": rows.nodes,
        "edges": rows.edges,
        "folds": [{"sections": run, "label": label} for run, label in runs],
    }


@dataclass(frozen=True)
class Frame:
    """A section's rectangle on the page, and the column it stands in."""

    w: int
    h: int
    x: int = 0
    y: int = 0
    column: int = 0
    column_right: int = 0


def _frame(section: Section, placed: Placed) -> Frame:
    return Frame(math.ceil(placed.width) + 2 * MARGIN, math.ceil(placed.height) + HEADER + MARGIN)


def _stand_ins(sections: list[Section], runs: list[tuple[list[int], str]]) -> dict[int, int]:
    """For each section of a fold the first one there that is built the same way."""
    out = {}
    for run, _ in runs:
        first: dict[int, int] = {}
        for s in run:
            out[s] = first.setdefault(sections[s].repeat if sections[s].repeat >= 0 else s, s)
    return out


def _section(s: int, section: Section, at: Frame) -> SectionLayout:
    out: SectionLayout = {
        "id": s,
        "label": section.label,
        "layer": section.layer,
        "repeat": section.repeat,
        "x": at.x,
        "y": at.y,
        "w": at.w,
        "h": at.h,
        "nodes": section.nodes,
    }
    d = section.differs
    if d is not None:
        out["differs"] = {"like": d.like, "added": d.added, "removed": d.removed, "changed": d.changed}
    return out


def stack(frames: Sequence[Frame]) -> list[Frame]:
    """The frames one under the other, in as many columns as bring the page nearest to the wanted aspect."""
    if not frames:
        return []
    best: list[Frame] = []
    best_off = math.inf
    n_columns = 0
    while n_columns < len(frames):
        n_columns += 1 + n_columns // 16
        tried = _in_columns(frames, n_columns)
        width = max(f.column_right for f in tried) + MARGIN
        height = max(f.y + f.h for f in tried) + MARGIN
        off = abs(math.log(width / height / WANTED_ASPECT))
        if off < best_off:
            best, best_off = tried, off
    return best


def _in_columns(frames: Sequence[Frame], n_columns: int) -> list[Frame]:
    total = sum(f.h + GAP for f in frames)
    columns: list[list[Frame]] = [[]]
    filled = 0.0
    for f in frames:
        if columns[-1] and filled + (f.h + GAP) / 2 > total * len(columns) / n_columns:
            columns.append([])
        columns[-1].append(f)
        filled += f.h + GAP
    out = []
    x = MARGIN
    for c, column in enumerate(columns):
        width = max(f.w for f in column)
        y = MARGIN
        for f in column:
            out.append(Frame(f.w, f.h, x + (width - f.w) // 2, y, c, x + width))
            y += f.h + GAP
        x += width + GUTTER
    return out


class _Rows:
    """The columns of nodes and edges as sections are added."""

    def __init__(self) -> None:
        self.nodes: NodeColumns = {"tensor": [], "section": [], "x": [], "y": [], "w": [], "h": []}
        self.edges: EdgeColumns = {"src": [], "dst": [], "points": []}
        self.first: dict[int, int] = {}

    def add_section(self, s: int, section: Section, placed: Placed, at: Frame) -> None:
        nodes = self.nodes
        self.first[s] = len(nodes["tensor"])
        boxes = section.boxes
        left, top = at.x + MARGIN, at.y + HEADER
        nodes["tensor"] += boxes
        nodes["section"] += [s] * len(boxes)
        nodes["x"] += [round(left + x) for x in placed.x[: len(boxes)]]
        nodes["y"] += [round(top + y) for y in placed.y[: len(boxes)]]
        nodes["w"] += section.widths
        nodes["h"] += [NODE_HEIGHT] * len(boxes)
        for tail, head in section.edges:
            if tail < len(boxes):
                points = _moved(placed.edges[tail, head], left, top)
                self._edge(self.first[s] + tail, self.first[s] + head, points)

    def add_crossings(
        self, sections: list[Section], placed: dict[int, Placed], at: dict[int, Frame], stand_in: dict[int, int]
    ) -> None:
        """Edges between sections: out of one, through the gutters, into the other.

        `stand_in` names the section drawn in place of a hidden one.
        """
        home = {t: (s, i) for s, section in enumerate(sections) for i, t in enumerate(section.nodes)}
        for t in at:
            section, here = sections[t], at[t]
            n_boxes = len(section.boxes)
            for tail, head in section.edges:
                if tail < n_boxes:
                    continue
                source, box = home[section.entries[tail - n_boxes]]
                source = stand_in.get(source, source)
                inside = _moved(placed[t].edges[tail, head], here.x + MARGIN, here.y + HEADER)
                entry = (here.x + MARGIN + placed[t].x[tail], float(here.y))
                outside = self._way_out(sections[source], placed[source], at[source], box)
                trunk = route(outside[-2:], entry, at[source], here)
                down = line(entry, inside[:2])
                row = self.first[source] + box
                self._edge(row, self.first[t] + head, join(outside, trunk, down, inside))

    def _way_out(self, section: Section, placed: Placed, at: Frame, box: int) -> list[float]:
        left, top, bottom = at.x + MARGIN, at.y + HEADER, float(at.y + at.h)
        if box in section.exits:
            point = len(section.boxes) + len(section.entries) + section.exits.index(box)
            points = _moved(placed.edges[box, point], left, top)
        else:
            points = [left + placed.x[box], top + placed.y[box] + NODE_HEIGHT / 2]
        return join(points, line(points[-2:], (points[-2], bottom)))

    def _edge(self, src: int, dst: int, points: Sequence[float]) -> None:
        self.edges["src"].append(src)
        self.edges["dst"].append(dst)
        self.edges["points"].append([round(v) for v in points])


def route(start: Sequence[float], end: Sequence[float], source: Frame, target: Frame) -> list[float]:
    """From the foot of one frame to the head of another, between the frames."""
    (x0, y0), (x1, y1) = start, end
    if source.column == target.column and 0 < y1 - y0 <= GAP + 1:
        bend = (y1 - y0) / 2
        return [x0, y0, x0, y0 + bend, x1, y1 - bend, x1, y1]
    if target.column > source.column:
        gutter = source.column_right + GUTTER / 3
    else:
        gutter = target.column_right + GUTTER / 3
    return polyline(
        [(x0, y0), (x0, y0 + GAP / 3), (gutter, y0 + GAP / 3), (gutter, y1 - GAP / 3), (x1, y1 - GAP / 3), (x1, y1)]
    )


def line(start: Sequence[float], end: Sequence[float]) -> list[float]:
    """A straight line, as one Bézier curve."""
    (x0, y0), (x1, y1) = start, end
    return [x0, y0, x0 + (x1 - x0) / 3, y0 + (y1 - y0) / 3, x1 - (x1 - x0) / 3, y1 - (y1 - y0) / 3, x1, y1]


def polyline(corners: Sequence[tuple[float, float]], radius: float = 8) -> list[float]:
    """Straight lines with rounded corners, as Bézier curves."""
    out = [*corners[0]]
    for i in range(1, len(corners)):
        x1, y1 = corners[i]
        x0, y0 = out[-2:]
        length = math.hypot(x1 - x0, y1 - y0)
        if i == len(corners) - 1 or length == 0:
            out = join(out, line((x0, y0), (x1, y1)))
            continue
        x2, y2 = corners[i + 1]
        after = math.hypot(x2 - x1, y2 - y1)
        r = min(radius, length / 2, after / 2)
        before = (x1 - (x1 - x0) / length * r, y1 - (y1 - y0) / length * r)
        behind = (x1 + (x2 - x1) / after * r, y1 + (y2 - y1) / after * r) if after else (x1, y1)
        out = join(out, line((x0, y0), before), [*before, x1, y1, x1, y1, *behind])
    return out


def join(*curves: Sequence[float]) -> list[float]:
    """Curves that begin where the one before ends, as one."""
    out = list(curves[0])
    for curve in curves[1:]:
        out += curve[2:]
    return out


def _moved(points: Points, dx: float, dy: float) -> list[float]:
    return [v + (dy if i % 2 else dx) for i, v in enumerate(points)]
