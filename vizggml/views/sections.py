"""A graph cut into sections that can be laid out alone: its layers, what comes before them and what comes after.

Layers are told by their names, else found as what repeats. A section is described without ids and names, so that two
layers built the same way have equal descriptions, and a run of them folds to one `block x N`.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from functools import lru_cache

from vizggml.views import labels
from vizggml.views.difference import Difference, differences
from vizggml.views.motifs import pieces
from vizggml.views.tables import GraphTable

SECTION_LIMIT = 220
"""Nodes in a section: a longer one is cut by execution order, for dot takes seconds over it and a person longer."""

PART = 60
"""Nodes in a part of a section that is too long: a column that a screen holds."""

MOST_PARTS = 600
FOLDED_PARTS = 100
"""So many parts are folded at first: nobody reads them all."""

LONGEST_PATTERN = 8
"""Layers that come in turn (five with a sliding window, one without) fold together up to this many."""

NODE_HEIGHT = 34
NOTE_LIMIT = 34
"""Characters of the second line in a box."""


@dataclass
class Section:
    """`boxes` are tensors: first the nodes in execution order, then the leafs, then the sources from other sections.

    An entry stands at the top for a tensor that another section computes; `exits` are boxes that other sections read.
    `named` says that the names tell the layer; `part` that it is a stretch of something longer.
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
    looks: tuple[object, ...] = ()
    named: bool = True
    part: bool = False
    differs: Difference | None = None

    @property
    def boxes(self) -> list[int]:
        return self.nodes + self.leafs

    def structure(self) -> tuple[object, ...]:
        """Equal for two sections that are built the same way, whatever their tensors are called."""
        n_nodes, n_leafs, n_entries = len(self.nodes), len(self.leafs), len(self.entries)
        return (n_nodes, n_leafs, n_entries, tuple(self.exits), tuple(self.edges), self.looks)


def cut(graph: GraphTable) -> list[Section]:
    """The sections of `graph` in execution order, with their boxes, edges and differences."""
    sections = _group(graph)
    home = {node: s for s, section in enumerate(sections) for node in section.nodes}
    homes = {t: len({home[c] for c in readers}) for t, readers in graph.consumers.items()}
    for s, section in enumerate(sections):
        _fill(graph, section, s, home, homes)
    first: dict[object, int] = {}
    for s, section in enumerate(sections):
        if section.layer >= 0 or section.part:
            section.repeat = first.setdefault(section.structure(), s)
            if section.repeat == s:
                section.repeat = -1
    shared = {t for t, n in homes.items() if n > 1 and t not in home}
    for s, found in differences(graph, sections, roots_of(sections), shared).items():
        sections[s].differs = found
    return sections


def roots_of(sections: list[Section]) -> list[int]:
    """For each layer the first that is built the same way; -1 for what is no layer."""
    return [-1 if x.layer < 0 else s if x.repeat < 0 else x.repeat for s, x in enumerate(sections)]


def folds(sections: list[Section]) -> list[tuple[list[int], str]]:
    """Runs of two layers or more, one after the other, that are built the same way, or in turn the same ways."""
    roots = roots_of(sections)
    out = []
    at = 0
    while at < len(roots):
        run, turn = _run(roots, at)
        if run > 1:
            in_turn = "" if turn == 1 else f", {turns(roots[at : at + turn])} in turn"
            out.append((list(range(at, at + run)), f"block x {run}{in_turn}"))
        at += max(1, run)
    parts = [s for s, section in enumerate(sections) if section.part]
    if len(parts) >= FOLDED_PARTS:
        out.append((parts, f"part x {len(parts)}"))
    return out


def turns(roots: list[int]) -> str:
    """`5 + 1`: how many of one kind come before the other."""
    counts = [1]
    for a, b in itertools.pairwise(roots):
        counts = [*counts[:-1], counts[-1] + 1] if a == b else [*counts, 1]
    return " + ".join(map(str, counts))


def _run(roots: list[int], at: int) -> tuple[int, int]:
    """How many layers from `at` on repeat a pattern at least twice, and the pattern's length; the longest such run."""
    best = (0, 1)
    if roots[at] < 0:
        return best
    for turn in range(1, LONGEST_PATTERN + 1):
        end = at + turn
        while end < len(roots) and roots[end] >= 0 and roots[end] == roots[end - turn]:
            end += 1
        whole = (end - at) // turn * turn
        if whole >= 2 * turn and -1 not in roots[at : at + turn] and whole > best[0] * (1 if turn == 1 else 2):
            best = (end - at, turn)
    return best


def _group(graph: GraphTable) -> list[Section]:
    layers = layers_of(graph)
    if all(layer < 0 for _, layer, _ in layers):
        return _found(graph)
    members: dict[tuple[int, int], list[int]] = {}
    for node, layer, after in layers:
        members.setdefault((layer, after), []).append(node)
    sections: list[Section] = []
    for (layer, after), nodes in members.items():
        name = f"block {layer}" if layer >= 0 else "output" if after else "input"
        sections += _parts(Section(name, layer, nodes))
    return sections


def _found(graph: GraphTable) -> list[Section]:
    """The sections of a graph whose names tell no layer: the blocks that repeat, and what lies around them."""
    cuts = pieces(graph)
    blocks = [k for k, piece in enumerate(cuts) if piece.block]
    sections: list[Section] = []
    n_blocks = 0
    for k, piece in enumerate(cuts):
        nodes = graph.nodes[piece.begin : piece.end]
        if piece.block:
            sections += _parts(Section(f"block {n_blocks}", n_blocks, nodes, named=False))
            n_blocks += 1
            continue
        inner = f"nodes {piece.begin} to {piece.end - 1}"
        name = "graph" if not blocks else "input" if k < blocks[0] else "output" if k > blocks[-1] else inner
        sections += _parts(Section(name, -1, nodes, named=False))
    return sections


def _parts(section: Section) -> list[Section]:
    """The section, or the parts it is cut into where it is too long."""
    nodes = section.nodes
    if len(nodes) <= SECTION_LIMIT:
        return [section]
    room = SECTION_LIMIT if section.layer >= 0 else max(PART, -(-len(nodes) // MOST_PARTS))
    step = -(-len(nodes) // -(-len(nodes) // room))
    out = []
    for begin in range(0, len(nodes), step):
        part = nodes[begin : begin + step]
        label = f"{section.label}: nodes {begin} to {begin + len(part) - 1}"
        out.append(Section(label, section.layer, part, named=section.named, part=section.layer < 0))
    return out


def layers_of(graph: GraphTable) -> list[tuple[int, int, int]]:
    """(node, layer, after) in execution order; a node before the layers has layer -1, after 0; behind them, after 1.

    A node whose name tells no layer is of the layer whose weight it reads; else it belongs where its sources are,
    unless several layers read it (a mask cast once).
    """
    named = _named_layers(graph)
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


def _named_layers(graph: GraphTable) -> dict[int, int]:
    of = graph.tensors.layer
    out = {}
    for node in graph.nodes:
        by_weights = {of[s] for s in graph.srcs[node] if s not in out and of[s] >= 0} if of[node] < 0 else set()
        out[node] = by_weights.pop() if len(by_weights) == 1 else of[node]
    return out


def _fill(graph: GraphTable, section: Section, s: int, home: dict[int, int], homes: dict[int, int]) -> None:
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
    section.widths = [box_width(graph, t, section.layer if section.named else -1) for t in section.boxes]
    boxes = [_look(graph, t, True, homes) for t in section.nodes] + [_look(graph, t, False, homes) for t in leafs]
    section.looks = (*boxes, *(("before",) if home[t] == s - 1 else ("from", home[t]) for t in entries))


def _look(graph: GraphTable, t: int, node: bool, homes: dict[int, int]) -> tuple[object, ...]:
    """What makes a box the same as another: a leaf of several sections is only itself; a weight may have any type."""
    tensors = graph.tensors
    shape = tuple(tensors.ne[t])
    if node:
        return tensors.desc[t], tensors.type[t], shape
    return ("leaf", t) if homes.get(t, 0) > 1 else ("leaf", "", shape)


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
    width = max(labels.text_width(name, labels.NAME_SIZE), labels.text_width(note, labels.NOTE_SIZE)) + 26
    return max(88, -(-int(width) // 8) * 8)
