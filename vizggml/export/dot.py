"""A graph in DOT, for Graphviz and whatever else reads it."""

from __future__ import annotations

import os

from vizggml.export.tables import Drawable, table_of
from vizggml.files import write_whole
from vizggml.views import labels, palette
from vizggml.views.sections import Section, cut
from vizggml.views.tables import GraphTable


def graph_dot(source: Drawable, graph: int | None = None) -> str:
    """The graph in DOT: a cluster for each layer, a leaf that several layers read drawn once in each.

    `source` is a `ggml.Graph`, or a trace of whose graphs `graph` is taken (None: the last).
    """
    table = table_of(source, graph)
    sections = cut(table)
    home = {node: s for s, section in enumerate(sections) for node in section.nodes}
    lines = ["digraph {", '  node [shape=box style=filled fillcolor=white fontname="Courier" fontsize=10]']
    for s, section in enumerate(sections):
        lines += _cluster(table, section, s)
    for s, section in enumerate(sections):
        for tail, head in section.edges:
            boxes = section.boxes
            source_box = f"n{s}_{boxes[tail]}" if tail < len(boxes) else _entry(section, tail, home)
            lines.append(f"  {source_box} -> n{s}_{boxes[head]}")
    return "\n".join([*lines, "}", ""])


def to_dot(source: Drawable, path: str | os.PathLike[str], graph: int | None = None) -> None:
    """Write a graph for Graphviz: a cluster for each layer.

    `source` is a `ggml.Graph`, or a trace of whose graphs `graph` is taken (None: the last).
    """
    write_whole(path, graph_dot(source, graph).encode("utf-8", "replace"), "graph")


def quoted(text: str) -> str:
    """`text` as a DOT string that stands for itself: no escape, no HTML entity, no end of string is found in it."""
    return '"' + labels.visible(text).translate(_ESCAPES) + '"'


_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "&": "&amp;"})


def _entry(section: Section, tail: int, home: dict[int, int]) -> str:
    tensor = section.entries[tail - len(section.boxes)]
    return f"n{home[tensor]}_{tensor}"


def _cluster(table: GraphTable, section: Section, s: int) -> list[str]:
    lines = [f"  subgraph cluster_{s} {{", f"    label={quoted(section.label)} color={quoted(palette.LIGHT.line)}"]
    for i, tensor in enumerate(section.boxes):
        style = "" if i < len(section.nodes) else ' style="dashed"'
        lines.append(f"    n{s}_{tensor} [label={_label(table, tensor)} color={_colour(table, tensor)}{style}]")
    return [*lines, "  }"]


def _label(table: GraphTable, tensor: int) -> str:
    t = table.tensors
    op = t.desc[tensor]
    what = t.type[tensor] if op in ("", "NONE") else op
    name, note = quoted(t.name[tensor])[1:-1], quoted(f"{what} {labels.shape(t.ne[tensor])}")[1:-1]
    return f'"{name}\\n{note}"'


def _colour(table: GraphTable, tensor: int) -> str:
    return quoted(palette.LIGHT.colour(table.tensors.desc[tensor]))
