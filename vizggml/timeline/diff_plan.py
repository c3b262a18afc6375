"""Two plans of memory compared: the figures of each, and what became of every tensor."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from vizggml.ggml.types import TENSOR_ALIGNMENT, pad
from vizggml.timeline.diff_graph import GraphPair, Side
from vizggml.timeline.sentences import show_bytes, show_dims

PADDING = 256
"""What a chunk may be longer than its last tensor: its padding, as no alignment in use is larger."""
KINDS = ("removed", "added", "changed", "grown", "shrunk", "longer", "shorter", "moved")
"""What can happen to a tensor from A to B, the weightiest first. `longer` and `shorter` are of its life."""


@dataclass(frozen=True, slots=True)
class Life:
    """A tensor's place in a plan; `first` and `last` are positions of the execution order, both inside.

    `reuses` is the tensor whose place it takes over, -1 for none.
    """

    chunk: int
    offset: int
    size: int
    first: int
    last: int
    freed_by: int
    reuses: int = -1


@dataclass(frozen=True, slots=True)
class Figures:
    """One graph and its plan in numbers. Bytes are -1 where the trace holds no plan of the graph.

    `peak` is the highest byte taken, `buffer` the size of the chunks, `bound` what no plan goes below, `no_reuse` what
    it would take if no two tensors shared a place, `scratch` the most that a node needs beside.
    """

    nodes: int
    leafs: int
    splits: int
    peak: int = -1
    buffer: int = -1
    bound: int = -1
    no_reuse: int = -1
    scratch: int = -1


@dataclass(frozen=True, slots=True)
class Change:
    """What became of one tensor: `a` is its id in A, `b` in B, -1 where it is not there.

    `kin` is its name without the layer's number: equal for the same tensor of every layer.
    """

    kinds: tuple[str, ...]
    a: int
    b: int
    name: str
    kin: str
    op: str
    layer: int
    bytes_a: int
    bytes_b: int
    details: str

    @property
    def weight(self) -> tuple[int, int]:
        """For sorting: the weightiest kind first, the most bytes first."""
        return KINDS.index(self.kinds[0]), -abs(self.bytes_b - self.bytes_a)


class Plans:
    """The plans of one trace by the graph that each serves; of several for one graph the last."""

    def __init__(self, side: Side) -> None:
        self.side = side
        columns = side.tracks.columns
        self._life = side.tracks.track("life")
        home = np.full(len(side) + 1, -1, np.int64)
        for graph in reversed(side.graphs):
            home[side.nodes(graph)] = graph
        self.of_graph: dict[int, int] = {}
        plans, graphs = self._life["plan"], home[self._life["tensor"]]
        for plan in np.unique(plans).tolist():
            voted = graphs[(plans == plan) & (graphs >= 0)]
            if len(voted):
                self.of_graph[int(np.bincount(voted).argmax())] = plan
        reserve = side.tracks.track("reserve")
        self.sizes = dict(zip(reserve["graph"].tolist(), reserve["size"].astype(np.int64).tolist(), strict=True))
        self._op_rows = _last_rows(columns.get("k.OpRecorded.tensor", np.zeros(0, np.int32)))

    def lives(self, graph: int) -> dict[int, Life]:
        """Where each tensor of the graph lies and how long; empty where the graph has no plan."""
        if graph not in self.of_graph:
            return {}
        rows = np.flatnonzero(self._life["plan"] == self.of_graph[graph])
        fields = ("tensor", "chunk", "offset", "size", "first", "last", "freed_by", "reuses")
        read = zip(*(self._life[f][rows].astype(np.int64).tolist() for f in fields), strict=True)
        return {tensor: Life(*rest) for tensor, *rest in read}

    def figures(self, graph: int) -> Figures:
        tracks = self.side.tracks
        split, scratch = tracks.track("split"), tracks.track("scratch")
        splits = split["split"][split["graph"] == graph]
        maximum = scratch["maximum"][scratch["graph"] == graph]
        lives = self.lives(graph)
        counted = Figures(
            nodes=len(self.side.nodes(graph)),
            leafs=len(self.side.leafs(graph)),
            splits=1 + int(splits.max(initial=0)),
            scratch=int(maximum.max()) if len(maximum) else -1,
        )
        return counted if not lives else self._of_plan(graph, counted, lives)

    def _of_plan(self, graph: int, counted: Figures, lives: dict[int, Life]) -> Figures:
        ends: dict[int, int] = {}
        for life in lives.values():
            ends[life.chunk] = max(ends.get(life.chunk, 0), life.offset + life.size)
        reached = sum(ends.values())
        size = self.sizes.get(graph, 0) or reached
        live = self.side.tracks.track("live")
        held = live["bytes"][live["plan"] == self.of_graph[graph]]
        return Figures(
            counted.nodes,
            counted.leafs,
            counted.splits,
            peak=size if 0 <= size - reached < PADDING * len(ends) else reached,
            buffer=size,
            bound=int(held.max(initial=0)),
            no_reuse=sum(pad(life.size, TENSOR_ALIGNMENT) for life in lives.values()),
            scratch=counted.scratch,
        )

    def params(self, tensor: int) -> list[int]:
        """The parameters of the tensor's operation, as the last event that tells of it has them."""
        row = self._op_rows.get(tensor, -1)
        columns = self.side.tracks.columns
        if row < 0:
            return []
        ptr = columns["k.OpRecorded.op_params.ptr"]
        found: list[int] = columns["k.OpRecorded.op_params.val"][ptr[row] : ptr[row + 1]].astype(np.int64).tolist()
        return found


def _last_rows(tensors: Iterable[int]) -> dict[int, int]:
    return {int(tensor): row for row, tensor in enumerate(tensors)}


@dataclass(frozen=True, slots=True)
class Group:
    """The same thing that happened to the same tensor of several layers; the first speaks for all."""

    members: tuple[Change, ...]

    @property
    def first(self) -> Change:
        return self.members[0]

    @property
    def name(self) -> str:
        """`kq`: without the layer's number where it stands for several layers; unnamed nodes by their operation."""
        if len(self.members) > 1 and not self.first.kin:
            return self.first.op
        return plain_kin(self.first.kin) if len(self.members) > 1 else self.first.name

    @property
    def each(self) -> int:
        """How many bytes more each of them takes in B, one beside the other; of several sizes the most."""
        return max((change.bytes_b - change.bytes_a for change in self.members), key=abs)

    @property
    def layers(self) -> str:
        """`3`, `0 to 29`, `0, 2, 5`; nothing outside the layers."""
        layers = sorted({change.layer for change in self.members} - {-1})
        if len(layers) < 3:
            return ", ".join(map(str, layers))
        whole = layers[-1] - layers[0] + 1 == len(layers)
        return f"{layers[0]} to {layers[-1]}" if whole else f"{len(layers)} of {layers[0]} to {layers[-1]}"

    @property
    def details(self) -> str:
        first = self.first.details
        same = all(change.details == first for change in self.members)
        return first if same else f"{first}; the others alike"


def plain_kin(kin: str) -> str:
    """`kq` for `kq-#`: the name of the same tensor of every layer, as a person writes it."""
    return kin.replace("-#", "").replace("_l#", "_l*").replace(".#.", ".*.")


def grouped(found: Iterable[Change]) -> list[Group]:
    """Changes with those of other layers together, in their order. What only moved is one of a kind by its name."""
    groups: dict[tuple[object, ...], list[Change]] = {}
    for change in found:
        alone = change.layer < 0 or (not change.kin and "moved" in change.kinds)
        key = (max(change.a, change.b), change.a < 0) if alone else (change.kinds, change.op, change.kin)
        groups.setdefault(key, []).append(change)
    return [Group(tuple(members)) for members in groups.values()]


def changes(pair: GraphPair, a: Plans, b: Plans) -> list[Change]:
    """What became of each tensor of two graphs, the weightiest first. What is as it was is not listed."""
    lives_a, lives_b = a.lives(pair.a), b.lives(pair.b)
    both = Compared(pair.twin, a, b, lives_a, lives_b)
    found = [change for ta, tb in pair.twin.items() if (change := both.change(ta, tb)) is not None]
    there = set(pair.twin.values())
    for ta in dict.fromkeys([*a.side.nodes(pair.a), *a.side.leafs(pair.a)]):
        if ta not in pair.twin:
            found.append(_alone("removed", a.side, ta, lives_a))
    for tb in dict.fromkeys([*b.side.nodes(pair.b), *b.side.leafs(pair.b)]):
        if tb not in there:
            found.append(_alone("added", b.side, tb, lives_b))
    return sorted(found, key=lambda change: change.weight)


def _alone(kind: str, side: Side, tensor: int, lives: dict[int, Life]) -> Change:
    n = lives[tensor].size if tensor in lives else 0
    details = f"{side.type[tensor]} {show_dims(side.ne[tensor])}"
    details += f"{_over(side, lives[tensor])}, {show_bytes(n)} in the plan" if n else ", no memory of its own"
    said = side.name[tensor], side.bare[tensor], side.op[tensor], side.layer_of(tensor)
    if kind == "removed":
        return Change((kind,), tensor, -1, *said, n, 0, details)
    return Change((kind,), -1, tensor, *said, 0, n, details)


def _over(side: Side, life: Life) -> str:
    """That a tensor takes over another's place: then its bytes are no more than the other's."""
    return f", in place over {plain_kin(side.bare[life.reuses]) or side.op[life.reuses]}" if life.reuses >= 0 else ""


@dataclass(slots=True)
class Compared:
    """Two graphs with their plans, tensor by tensor."""

    twin: dict[int, int]
    a: Plans
    b: Plans
    lives_a: dict[int, Life]
    lives_b: dict[int, Life]

    def change(self, ta: int, tb: int) -> Change | None:
        a, b = self.a.side, self.b.side
        kinds: list[str] = []
        told = self._of_tensor(ta, tb)
        if told:
            kinds.append("changed")
        life_a, life_b = self.lives_a.get(ta), self.lives_b.get(tb)
        if life_a is not None and life_b is not None:
            for kind, words in self._of_lives(life_a, life_b):
                kinds.append(kind)
                told.append(words + (_over(b, life_b) if kind in ("grown", "shrunk") else ""))
        if not kinds:
            return None
        size_a, size_b = (life.size if life is not None else 0 for life in (life_a, life_b))
        ordered = tuple(sorted(kinds, key=KINDS.index))
        said = b.name[tb] or a.name[ta], b.bare[tb] or a.bare[ta], b.op[tb], b.layer_of(tb)
        return Change(ordered, ta, tb, *said, size_a, size_b, "; ".join(told))

    def _of_tensor(self, ta: int, tb: int) -> list[str]:
        a, b = self.a.side, self.b.side
        told = []
        if a.op[ta] != b.op[tb]:
            told.append(f"op {a.op[ta]} -> {b.op[tb]}")
        if a.type[ta] != b.type[tb]:
            told.append(f"type {a.type[ta]} -> {b.type[tb]}")
        if a.ne[ta] != b.ne[tb]:
            told.append(f"ne {show_dims(a.ne[ta])} -> {show_dims(b.ne[tb])}")
        if a.op[ta] == b.op[tb]:
            had, has = self.a.params(ta), self.b.params(tb)
            if had != has:
                n = sum(x != y for x, y in zip(had, has, strict=False)) + abs(len(had) - len(has))
                told.append(f"{n} of its op parameters")
        return told

    def _of_lives(self, a: Life, b: Life) -> list[tuple[str, str]]:
        told = []
        if a.size != b.size:
            told.append(("grown" if b.size > a.size else "shrunk", f"{show_bytes(a.size)} -> {show_bytes(b.size)}"))
        if (a.chunk, a.offset) != (b.chunk, b.offset):
            chunk = f" of chunk {b.chunk}" if a.chunk != b.chunk else ""
            told.append(("moved", f"offset {a.offset:,} -> {b.offset:,}{chunk}"))
        n_a, n_b = a.last - a.first + 1, b.last - b.first + 1
        # a node put in between lengthens a life without changing it
        if n_a != n_b and self.twin.get(a.freed_by, -1) != b.freed_by:
            told.append(("longer" if n_b > n_a else "shorter", f"lives {n_a} -> {n_b} nodes"))
        return told
