"""Where the boxes of one section stand: Graphviz's dot, asked once for each distinct structure.

The `dot` on the PATH is used when there is one, else `graphviz-pure` from the wheel of that name. Where neither runs,
`by_depth` places the boxes in rows by their distance from the sources: plainer, but a picture.
"""

from __future__ import annotations

import json
import pathlib
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from vizggml.views.sections import NODE_HEIGHT, Section

ENTRY = 1
"""Width and height of the point where a tensor from another section enters, or one for others leaves."""

TIMEOUT_S = 20
DOT_NODES = 1200
PIXELS_PER_INCH = 72

Points = tuple[float, ...]


@dataclass(frozen=True)
class Placed:
    """A section's own coordinates: origin top left, y down, in pixels; `x`, `y` are centres.

    Boxes come in the section's order (nodes, leafs, entries), then one point for each exit. `edges` gives for (tail,
    head) a cubic Bézier curve of 1 + 3 n points, x and y in turn.
    """

    width: float
    height: float
    x: tuple[float, ...]
    y: tuple[float, ...]
    edges: dict[tuple[int, int], Points]


def place_all(sections: dict[int, Section]) -> dict[int, Placed]:
    """The layout of each section. Beyond DOT_NODES in distinct sections dot is not asked: it takes seconds."""
    out, known = {}, set()
    n_nodes = 0
    for s, section in sections.items():
        source = dot_source(section)
        if source not in known and n_nodes <= DOT_NODES:
            known.add(source)
            n_nodes += len(section.boxes)
        placed = _by_dot(source) if source in known else None
        out[s] = placed if placed is not None else by_depth(section)
    return out


def place(section: Section) -> Placed:
    """The layout of `section`; sections with the same boxes and edges share one."""
    source = dot_source(section)
    placed = _by_dot(source)
    return placed if placed is not None else by_depth(section)


def dot_source(section: Section) -> str:
    """The section in DOT, without a name in it: boxes are numbers, so nothing that a stranger wrote reaches dot."""
    n_boxes, n_entries = len(section.boxes), len(section.entries)
    n_points = n_boxes + n_entries
    out = [
        "digraph {graph [nodesep=0.2 ranksep=0.32 splines=true]",
        f'node [shape=box fixedsize=true label="" height={NODE_HEIGHT / PIXELS_PER_INCH:.4f}]',
        "edge [arrowhead=none]",
    ]
    out += [f"{i} [width={w / PIXELS_PER_INCH:.4f}]" for i, w in enumerate(section.widths)]
    point = f"[width={ENTRY / PIXELS_PER_INCH:.4f} height={ENTRY / PIXELS_PER_INCH:.4f}]"
    entries = [str(n_boxes + i) for i in range(n_entries)]
    exits = [str(n_points + i) for i in range(len(section.exits))]
    out += [f"{p} {point}" for p in entries + exits]
    if entries:
        out.append(f"{{rank=min {' '.join(entries)}}}")
    if exits:
        out.append(f"{{rank=max {' '.join(exits)}}}")
    out += [f"{tail} -> {head}" for tail, head in all_edges(section)]
    return "\n".join(out) + "}\n"


def all_edges(section: Section) -> list[tuple[int, int]]:
    """The section's edges, and one from each exit's box to its point."""
    n_points = len(section.boxes) + len(section.entries)
    return section.edges + [(box, n_points + i) for i, box in enumerate(section.exits)]


def find_dot() -> pathlib.Path | None:
    """The layout program: the system's `dot`, or the one of the graphviz-pure wheel."""
    found = shutil.which("dot") or shutil.which("graphviz-pure")
    if found:
        return pathlib.Path(found)
    for name in ("graphviz-pure", "graphviz-pure.exe"):
        beside = pathlib.Path(sysconfig.get_path("scripts")) / name
        if beside.exists():
            return beside
    return None


@lru_cache(maxsize=1)
def use_dot() -> bool:
    """Point the `graphviz` package at the program that was found; whether there is one."""
    from graphviz.backend import dot_command

    found = find_dot()
    if found is not None:
        dot_command.DOT_BINARY = found
    return found is not None


@lru_cache(maxsize=512)
def _by_dot(source: str) -> Placed | None:
    import graphviz
    from graphviz.backend import dot_command

    if not use_dot():
        return None
    try:
        ran = subprocess.run(
            dot_command.command("dot", "json0"),
            input=source.encode(),
            capture_output=True,
            timeout=TIMEOUT_S,
            check=True,
        )
        return _read_json(json.loads(ran.stdout))
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, graphviz.ExecutableNotFound):
        return None


def _read_json(answer: dict[str, Any]) -> Placed:
    width, height = (float(v) for v in answer["bb"].split(",")[2:])
    names = {box["_gvid"]: int(box["name"]) for box in answer["objects"] if "pos" in box}
    by_number = {int(box["name"]): box["pos"].split(",") for box in answer["objects"] if "pos" in box}
    centres = [by_number[i] for i in range(len(by_number))]
    return Placed(
        width,
        height,
        tuple(float(x) for x, _ in centres),
        tuple(height - float(y) for _, y in centres),
        {(names[e["tail"]], names[e["head"]]): _spline(e["pos"], height) for e in answer.get("edges", ())},
    )


def _spline(pos: str, height: float) -> Points:
    def read() -> Iterator[float]:
        for pair in pos.split():
            if pair[0] in "es":
                continue
            x, y = pair.split(",")
            yield float(x)
            yield height - float(y)

    return tuple(read())


def by_depth(section: Section, row_gap: float = 30, gap: float = 14) -> Placed:
    """Rows by the longest path from a source, each row centred; edges are straight. Used where no dot runs."""
    edges = all_edges(section)
    n_boxes, n_entries, n_exits = len(section.boxes), len(section.entries), len(section.exits)
    widths = [float(w) for w in section.widths] + [float(ENTRY)] * (n_entries + n_exits)
    depth = [0] * len(widths)
    for tail, head in sorted(edges, key=lambda edge: edge[1]):
        depth[head] = max(depth[head], depth[tail] + 1)
    lowest = [min((depth[head] for tail, head in edges if tail == i), default=1) for i in range(n_boxes)]
    for leaf in range(len(section.nodes), n_boxes):
        depth[leaf] = max(0, lowest[leaf] - 1)
    for point in range(n_boxes + n_entries, len(widths)):
        depth[point] = max(depth) + (n_boxes + n_entries == point)
    rows: dict[int, list[int]] = {}
    for box, d in enumerate(depth):
        rows.setdefault(d, []).append(box)
    spans = {d: sum(widths[b] for b in row) + gap * (len(row) - 1) for d, row in rows.items()}
    width = max(spans.values())
    x, y = [0.0] * len(widths), [0.0] * len(widths)
    for r, d in enumerate(sorted(rows)):
        at = (width - spans[d]) / 2
        for box in rows[d]:
            x[box], y[box] = at + widths[box] / 2, r * (NODE_HEIGHT + row_gap) + NODE_HEIGHT / 2
            at += widths[box] + gap
    height = len(rows) * (NODE_HEIGHT + row_gap) - row_gap
    return Placed(width, height, tuple(x), tuple(y), {(t, h): _straight(x, y, t, h) for t, h in edges})


def _straight(x: list[float], y: list[float], tail: int, head: int) -> Points:
    x0, y0, x1, y1 = x[tail], y[tail] + NODE_HEIGHT / 2, x[head], y[head] - NODE_HEIGHT / 2
    bend = (y1 - y0) / 2
    return (x0, y0, x0, y0 + bend, x1, y1 - bend, x1, y1)
