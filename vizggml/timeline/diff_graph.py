"""The graphs of two traces, aligned by structure: graph with graph, layer with layer, node with node.

A node is known by its operation, its name without the layer's number and the names of what it reads: never by its
index. What one layer of A became in B is worked out once, however many layers are built alike.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from vizggml.timeline.diff_align import Pairs, Score, align, best
from vizggml.timeline.fold_graph import LAYER_NAME
from vizggml.timeline.tracks import Tracks

NUMBERED = re.compile(r"^(node|leaf)_\d+")
"""A name that ggml gives to what nobody named."""
DERIVED = re.compile(r" \(.*$")
"""What ggml adds to the name of a view, reshaped or copied tensor: how it was made, no name that somebody gave."""
ALIKE = 0.3
"""Layers with so large a share of nodes in common are the same layer; graphs, the same graph."""
PAIRINGS = 40_000
Token = tuple[str, str, tuple[str, ...]]
Looks = tuple[int, ...]
"""Nodes in execution order, each as its token's number: equal for what is built alike, in both traces. As `parts`, each
without what it reads: a layer is like another whatever comes before it."""
Role = tuple[str, bool]
"""What a graph is for: evaluated, reserved, standing (from before the recording) or built; and if for one token."""


@dataclass(slots=True)
class Section:
    """One layer's nodes of a graph, in execution order; `after` marks what follows the last layer."""

    layer: int
    after: bool
    nodes: list[int] = field(default_factory=list)
    looks: Looks = ()
    parts: Looks = ()


class Side:
    """One trace as the comparison reads it: its tensor table as lists, its graphs, what each graph is for."""

    def __init__(self, tracks: Tracks) -> None:
        self.tracks = tracks
        columns = tracks.columns
        strings = [tracks.string(k) for k in range(len(tracks.strings))]

        def text(column: str) -> list[str]:
            return [strings[k] if k >= 0 else "" for k in columns[column].tolist()]

        self.name, self.type, self.op = text("tensor.name"), text("tensor.type"), text("tensor.desc")
        self.ne: list[tuple[int, ...]] = [tuple(map(int, row)) for row in columns["tensor.ne"].tolist()]
        self.nbytes: list[int] = columns["tensor.nbytes"].astype(np.int64).tolist()
        self.layer: list[int] = columns["tensor.layer"].tolist()
        self.src: list[list[int]] = [[] for _ in self.name]
        for src, dst, slot in zip(*(columns[f"edge.{c}"].tolist() for c in ("src", "dst", "slot")), strict=True):
            sources = self.src[dst]
            sources += [-1] * (slot + 1 - len(sources))
            sources[slot] = src
        self.within: dict[int, int] = {}
        """The layer in which a node lies, where its own name tells none."""
        self.bare = [_bare(name, layer) for name, layer in zip(self.name, self.layer, strict=True)]

    def __len__(self) -> int:
        return len(self.name)

    @cached_property
    def graphs(self) -> list[int]:
        """The graphs with nodes, in order of creation; splits of another are part of that one."""
        ptr = self.tracks["graph.ptr"]
        whole = self.tracks["graph.part_of"] < 0
        return np.flatnonzero((np.diff(ptr.astype(np.int64)) > 0) & whole).tolist()

    def nodes(self, graph: int) -> list[int]:
        ptr = self.tracks["graph.ptr"]
        found: list[int] = self.tracks["graph.node"][ptr[graph] : ptr[graph + 1]].tolist()
        return found

    def leafs(self, graph: int) -> list[int]:
        ptr = self.tracks["graph.leaf_ptr"]
        found: list[int] = self.tracks["graph.leaf"][ptr[graph] : ptr[graph + 1]].tolist()
        return found

    @cached_property
    def evaluated(self) -> dict[int, int]:
        """By graph, how many tokens its evaluations have: the most of them; 0 where no batch says."""
        found: dict[int, int] = {}
        evals, part_of = self.tracks.track("eval"), self.tracks["graph.part_of"].tolist()
        for graph, n in zip(evals["graph"].tolist(), evals["n_tokens"].tolist(), strict=True):
            if graph >= 0:
                whole = part_of[graph] if part_of[graph] >= 0 else graph
                found[whole] = max(n, found.get(whole, 0))
        return found

    def n_tokens(self, graph: int) -> int:
        """Tokens that a graph takes: of its batch, else of its input; 0 where nothing says."""
        if self.evaluated.get(graph):
            return self.evaluated[graph]
        inputs = [t for t in self.leafs(graph) if self.name[t] == "inp_tokens"]
        return self.ne[inputs[0]][0] if inputs else 0

    def role(self, graph: int) -> Role:
        one = self.n_tokens(graph) == 1
        if graph in self.evaluated:
            return "evaluated", one
        if graph in self.tracks.track("reserve")["graph"].tolist():
            return "reserved", one
        standing = 0 <= self.tracks["graph.created"][graph] < self.tracks.opening
        return "standing" if standing else "built", one

    def stood(self, graph: int) -> bool:
        """Whether the graph is from before the recording, and was not evaluated in it."""
        return self.role(graph)[0] == "standing"

    def layer_of(self, tensor: int) -> int:
        return self.within.get(tensor, self.layer[tensor])

    def token(self, node: int) -> Token:
        reads = tuple(self.bare[s] if s >= 0 else "" for s in self.src[node])
        return self.op[node], self.bare[node], reads

    def sections(self, graph: int) -> list[Section]:
        """A graph's layers in order of their first node; what no name puts in a layer goes with the node before."""
        nodes = self.nodes(graph)
        last = max((k for k, node in enumerate(nodes) if self.layer[node] >= 0), default=-1)
        found: dict[tuple[int, bool], Section] = {}
        current = -1
        for k, node in enumerate(nodes):
            current = self.layer[node] if self.layer[node] >= 0 else current if k < last else -1
            key = current, k > last >= 0
            found.setdefault(key, Section(*key)).nodes.append(node)
            self.within[node] = current
        return list(found.values())


def _bare(name: str, layer: int) -> str:
    """A tensor's name without its layer's number; nothing for a number that ggml gave."""
    name = NUMBERED.sub("", name)
    if layer < 0:
        return name
    return LAYER_NAME.sub(lambda m: m.group().replace(str(layer), "#"), name, count=1)


@dataclass(slots=True)
class GraphPair:
    """Two graphs that answer each other; their tensors that do, nodes and leafs, A to B."""

    a: int
    b: int
    twin: dict[int, int]


class Likeness:
    """How alike two lists of tokens are: twice what they share over what they have, 0 to 1. Each two are held once."""

    def __init__(self) -> None:
        self._counts: dict[Looks, Counter[int]] = {}
        self._known: dict[tuple[Looks, Looks], float] = {}

    def __call__(self, a: Looks, b: Looks) -> float:
        if a == b:
            return 1.0
        found = self._known.get((a, b))
        if found is None:
            shared = (self._count(a) & self._count(b)).total()
            found = self._known[a, b] = 2 * shared / max(1, len(a) + len(b))
        return found

    def _count(self, looks: Looks) -> Counter[int]:
        found = self._counts.get(looks)
        if found is None:
            found = self._counts[looks] = Counter(looks)
        return found


class GraphAligner:
    """Pairs the graphs of A and B, and all their tensors."""

    def __init__(self, a: Side, b: Side) -> None:
        self.a, self.b = a, b
        self.like = Likeness()
        self._numbers: dict[Token, int] = {}
        self._tokens: list[Token] = []
        self._nodes: dict[tuple[Looks, Looks], Pairs] = {}

    def looks(self, side: Side, nodes: Iterable[int], reads: bool = True) -> Looks:
        found = []
        for node in nodes:
            token = side.token(node) if reads else (side.op[node], side.bare[node], ())
            if token not in self._numbers:
                self._numbers[token] = len(self._tokens)
                self._tokens.append(token)
            found.append(self._numbers[token])
        return tuple(found)

    def pairs(self) -> list[GraphPair]:
        """The graphs that answer each other, in order: same purpose first, then likeness."""
        found = self._graphs()
        return [GraphPair(ga, gb, self._twins(ga, gb)) for ga, gb in found]

    def _graphs(self) -> Pairs:
        a, b = self.a, self.b
        graphs_a, graphs_b = a.graphs, b.graphs
        if not graphs_a or not graphs_b:
            return []
        looks_a = [self.looks(a, a.nodes(g), reads=False) for g in graphs_a]
        looks_b = [self.looks(b, b.nodes(g), reads=False) for g in graphs_b]
        roles_a, roles_b = [a.role(g) for g in graphs_a], [b.role(g) for g in graphs_b]
        sizes_a, sizes_b = [a.n_tokens(g) for g in graphs_a], [b.n_tokens(g) for g in graphs_b]

        def score(i: int, j: int) -> float:
            (kind_a, one_a), (kind_b, one_b) = roles_a[i], roles_b[j]
            alike = self.like(looks_a[i], looks_b[j])
            if alike < ALIKE or (kind_a != kind_b and "standing" in (kind_a, kind_b)):
                return 0
            return alike + (kind_a == kind_b) + 0.5 * (one_a == one_b) + 0.01 * (sizes_a[i] == sizes_b[j])

        if len(graphs_a) * len(graphs_b) <= PAIRINGS:
            found = best(0, len(graphs_a), 0, len(graphs_b), score)
        else:
            found = align(list(zip(looks_a, roles_a, strict=True)), list(zip(looks_b, roles_b, strict=True)), score)
        return [(graphs_a[i], graphs_b[j]) for i, j in found] or [(graphs_a[-1], graphs_b[-1])]

    def _twins(self, ga: int, gb: int) -> dict[int, int]:
        twin: dict[int, int] = {}
        sections_a, sections_b = self.a.sections(ga), self.b.sections(gb)
        for side, sections in ((self.a, sections_a), (self.b, sections_b)):
            for section in sections:
                section.looks = self.looks(side, section.nodes)
                section.parts = self.looks(side, section.nodes, reads=False)
        for sa, sb in self._sections(sections_a, sections_b):
            key = sa.looks, sb.looks
            if key not in self._nodes:
                self._nodes[key] = align(*key, self._scorer(sa, sb))
            pairs = self._nodes[key]
            twin |= {sa.nodes[i]: sb.nodes[j] for i, j in pairs}
        taken = set(twin.values())
        _leftovers(
            ((t, self.a.token(t)) for s in sections_a for t in s.nodes if t not in twin),
            ((t, self.b.token(t)) for s in sections_b for t in s.nodes if t not in taken),
            twin,
        )
        self._leafs(ga, gb, twin)
        return twin

    def _sections(self, a: list[Section], b: list[Section]) -> list[tuple[Section, Section]]:
        def score(i: int, j: int) -> float:
            alike = self.like(a[i].parts, b[j].parts)
            same = a[i].layer == b[j].layer and a[i].after == b[j].after
            if a[i].layer < 0 or b[j].layer < 0:
                return alike + 1e-3 if same else 0
            return alike + 1e-4 * same if alike >= ALIKE or len(a) == len(b) == 1 else 0

        if len(a) * len(b) <= PAIRINGS:
            found = best(0, len(a), 0, len(b), score)
        else:
            found = align([(s.looks, s.layer) for s in a], [(s.looks, s.layer) for s in b], score)
        return [(a[i], b[j]) for i, j in found]

    def _scorer(self, sa: Section, sb: Section) -> Score:
        a, b = self.a, self.b

        def score(i: int, j: int) -> float:
            ta, tb = self._tokens[sa.looks[i]], self._tokens[sb.looks[j]]
            same_op, named = ta[0] == tb[0], ta[1] != "" and ta[1] == tb[1]
            if named and (same_op or not DERIVED.search(ta[1])):
                found = 4.0 + 2 * same_op
            elif same_op and ta[2] == tb[2]:
                found = 3.0
            elif same_op and DERIVED.sub("", ta[1]) == DERIVED.sub("", tb[1]):
                found = 1.5 + (ta[1] != "")
            else:
                return 0
            na, nb = sa.nodes[i], sb.nodes[j]
            return found + 0.5 * (a.ne[na] == b.ne[nb]) + 0.25 * (a.type[na] == b.type[nb])

        return score

    def _leafs(self, ga: int, gb: int, twin: dict[int, int]) -> None:
        """Leafs that twins read in the same place under the same name; then by name; then by place alone."""
        a, b = self.a, self.b
        leafs_a, leafs_b = dict.fromkeys(a.leafs(ga)), dict.fromkeys(b.leafs(gb))
        taken: set[int] = set()

        def pair(ta: int, tb: int) -> None:
            if ta in leafs_a and tb in leafs_b and ta not in twin and tb not in taken:
                twin[ta] = tb
                taken.add(tb)

        places = [(sa, sb) for ta, tb in list(twin.items()) for sa, sb in zip(a.src[ta], b.src[tb], strict=False)]
        for sa, sb in places:
            if sa >= 0 and sb >= 0 and a.bare[sa] == b.bare[sb]:
                pair(sa, sb)
        by_name = {b.name[t]: t for t in reversed(leafs_b) if b.name[t]}
        for ta in leafs_a:
            if a.name[ta] in by_name:
                pair(ta, by_name[a.name[ta]])
        for sa, sb in places:
            pair(sa, sb)


def _leftovers(a: Iterable[tuple[int, Token]], b: Iterable[tuple[int, Token]], twin: dict[int, int]) -> None:
    """What was put elsewhere in the order: nodes with the same token that have no twin yet, one by one."""
    where: dict[Token, list[int]] = {}
    for tensor, token in b:
        where.setdefault(token, []).append(tensor)
    for tensor, token in a:
        if token[1] and where.get(token):
            twin[tensor] = where[token].pop(0)


def twins_of(pairs: Sequence[GraphPair], a: Side, b: Side) -> tuple[list[int], list[int]]:
    """For each tensor of A its twin in B, and the reverse; -1 for none. Outside all graphs equal names go together."""
    of_a, of_b = [-1] * len(a), [-1] * len(b)
    for pair in pairs:
        for ta, tb in pair.twin.items():
            if of_a[ta] < 0 and of_b[tb] < 0:
                of_a[ta], of_b[tb] = tb, ta
    in_graphs_a, in_graphs_b = _members(a), _members(b)
    where: dict[str, list[int]] = {}
    for t, name in enumerate(b.name):
        if name and of_b[t] < 0 and t not in in_graphs_b:
            where.setdefault(name, []).append(t)
    for t, name in enumerate(a.name):
        if of_a[t] < 0 and t not in in_graphs_a and where.get(name):
            of_a[t] = where[name].pop(0)
            of_b[of_a[t]] = t
    return of_a, of_b


def _members(side: Side) -> set[int]:
    return {*side.tracks["graph.node"].tolist(), *side.tracks["graph.leaf"].tolist()}
