"""A graph cut into sections that can be laid out alone: its layers, what comes before them and what comes after.

A section is described without ids, so that two layers built the same way have equal descriptions: they share one
layout, and a run of them folds to one `block x N`.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from functools import lru_cache

from vizggml.views import labels
from vizggml.views.tables import GraphTable

SECTION_LIMIT = 220
"""Nodes in a section: beyond it dot takes seconds, so a longer section is cut by execution order."""

NODE_HEIGHT = 34
NOTE_LIMIT = 34
"""Characters of the second line in a box."""


@dataclass
class Section:
    """`boxes` are tensors: first the nodes in execution order, then the leafs, then the sources from other sections.

    An entry stands at the top for a tensor that another section computes; `exits` are boxes that other sections read.
    """

    label: str
    layer: int
    nodes: list[int]
    leafs: list[int] = field(default_factory=list)
    entries: list[int] = field(default_factory=list)
    exits: list[int] = field(default_factory=list)
    widths: list[int] = field(default_factory=list)
    edges: list[tuple[int, int]] = field(default_factory=list)
    repeat: int = -1
    looks: tuple[str, ...] = ()

    @property
    def boxes(self) -> list[int]:
        return self.nodes + self.leafs

    def structure(self) -> tuple[object, ...]:
        """Equal for two sections that are built the same way."""
        n_nodes, n_leafs, n_entries = len(self.nodes), len(self.leafs), len(self.entries)
        return (n_nodes, n_leafs, n_entries, tuple(self.exits), tuple(self.widths), tuple(self.edges), self.looks)


def cut(graph: GraphTable) -> list[Section]:
    """The sections of `graph` in execution order, with their boxes and edges."""
    sections = _group(graph)
    home = {node: s for s, section in enumerate(sections) for node in section.nodes}
    for s, section in enumerate(sections):
        _fill(graph, section, s, home)
    first: dict[object, int] = {}
    for s, section in enumerate(sections):
        if section.layer >= 0:
            section.repeat = first.setdefault(section.structure(), s)
            if section.repeat == s:
                section.repeat = -1
    return sections


def folds(sections: list[Section]) -> list[tuple[list[int], str]]:
    """Runs of two layers or more, one after the other, that are built the same way."""

    def root(s: int) -> int:
        section = sections[s]
        return -1 if section.layer < 0 else s if section.repeat < 0 else section.repeat

    runs = [list(run) for first, run in itertools.groupby(range(len(sections)), root) if first >= 0]
    return [(run, f"block x {len(run)}") for run in runs if len(run) > 1]


def _group(graph: GraphTable) -> list[Section]:
    layers = layers_of(graph)
    members: dict[tuple[int, int], list[int]] = {}
    for node, layer, after in layers:
        members.setdefault((layer, after), []).append(node)
    sections = []
    alone = len(members) == 1
    for (layer, after), nodes in members.items():
        name = f"block {layer}" if layer >= 0 else "graph" if alone else "output" if after else "input"
        if len(nodes) <= SECTION_LIMIT:
            sections.append(Section(name, layer, nodes))
            continue
        parts = -(-len(nodes) // SECTION_LIMIT)
        step = -(-len(nodes) // parts)
        for begin in range(0, len(nodes), step):
            part = nodes[begin : begin + step]
            sections.append(Section(f"{name}: nodes {begin} to {begin + len(part) - 1}", layer, part))
    return sections


def layers_of(graph: GraphTable) -> list[tuple[int, int, int]]:
    """(node, layer, after) in execution order; a node before the layers has layer -1, after 0; behind them, after 1.

    A node whose name tells no layer belongs where its sources are, unless several layers read it (a mask cast once).
    """
    named = graph.tensors.layer
    last = max((i for i, n in enumerate(graph.nodes) if named[n] >= 0), default=-1)
    layer_of: dict[int, int] = {}
    out = []
    current = -1
    for i, node in enumerate(graph.nodes):
        layer = named[node]
        if layer < 0 and i < last and current >= 0:
            from_nodes = any(src in layer_of for src in graph.srcs[node])
            readers = {named[c] for c in graph.consumers.get(node, ()) if named[c] >= 0}
            shared = not from_nodes and len(readers) > 1
            layer = -1 if shared else current if from_nodes or len(readers) != 1 else readers.pop()
        layer_of[node] = layer
        if layer >= 0:
            current = layer
        out.append((node, layer, int(layer < 0 and i > last >= 0)))
    return out


def _fill(graph: GraphTable, section: Section, s: int, home: dict[int, int]) -> None:
    index = {node: i for i, node in enumerate(section.nodes)}
    leafs: dict[int, int] = {}
    entries: dict[int, int] = {}
    for node in section.nodes:
        for src in graph.srcs[node]:
            if src in index:
                continue
            kind = leafs if src not in home else entries
            kind.setdefault(src, len(kind))
    n_nodes, n_boxes = len(section.nodes), len(section.nodes) + len(leafs)
    section.leafs, section.entries = list(leafs), list(entries)
    for node in section.nodes:
        for src in graph.srcs[node]:
            if src in index:
                tail = index[src]
            elif src in leafs:
                tail = n_nodes + leafs[src]
            else:
                tail = n_boxes + entries[src]
            section.edges.append((tail, index[node]))
    read_here = {tail for tail, _ in section.edges}
    for i, node in enumerate(section.nodes):
        elsewhere = any(home[c] != s for c in graph.consumers.get(node, ()))
        if elsewhere and i in read_here:
            section.exits.append(i)
    section.widths = [box_width(graph, t, section.layer) for t in section.boxes]
    tensors = graph.tensors
    section.looks = tuple(tensors.desc[t] + labels.layerless(tensors.name[t], section.layer) for t in section.boxes)


def box_label(graph: GraphTable, tensor: int) -> tuple[str, str]:
    """The two lines in a tensor's box: its name; its operation (a leaf's type) and shape."""
    tensors = graph.tensors
    name = labels.short(labels.visible(tensors.name[tensor])) or f"tensor {tensor}"
    what = tensors.desc[tensor]
    what = tensors.type[tensor] if what in ("", "NONE") else what
    return name, labels.short(f"{what}  {labels.shape(tensors.ne[tensor])}", NOTE_LIMIT)


def box_width(graph: GraphTable, tensor: int, layer: int) -> int:
    """Room for the label, in steps of 8 pixels, with the numbers left open, so that all layers are equally wide."""
    return _width(*box_label(graph, tensor), layer)


@lru_cache(maxsize=65536)
def _width(name: str, note: str, layer: int) -> int:
    name = labels.layerless(name, layer)
    width = max(labels.text_width(name, labels.NAME_SIZE), labels.text_width(note, labels.NOTE_SIZE)) + 18
    return max(72, -(-int(width) // 8) * 8)
