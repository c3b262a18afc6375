"""Two traces' events side by side, so that both can be stepped together.

Events answer each other that are of one kind and speak of tensors (or graphs) that do, the k-th with the k-th, each
computation of a graph with that of its twin. What speaks of neither is matched by kind between two such. All pairs rise
in both traces; an event without an answer keeps the other side where it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vizggml.events import KINDS
from vizggml.timeline.diff_align import longest_rise
from vizggml.timeline.schema import KIND_INDEX, fields_of
from vizggml.timeline.tracks import Tracks

Ints = NDArray[np.int64]
NO_SUBJECT, UNMATCHED = -1, -2
OUTSIDE = -1
"""In place of a computation's number: between two of them."""


@dataclass(frozen=True, slots=True)
class EventPairs:
    """Event `a[k]` of A answers event `b[k]` of B; both rise."""

    a: NDArray[np.int32]
    b: NDArray[np.int32]

    def to_b(self, i: int) -> tuple[int, bool]:
        """The event of B at which B stands when A is at `i`, and whether it answers `i` itself."""
        return _follow(self.a, self.b, i)

    def to_a(self, j: int) -> tuple[int, bool]:
        return _follow(self.b, self.a, j)


def _follow(here: NDArray[np.int32], there: NDArray[np.int32], i: int) -> tuple[int, bool]:
    k = int(np.searchsorted(here, i, side="right")) - 1
    return (0, False) if k < 0 else (int(there[k]), bool(here[k] == i))


def pair_events(a: Tracks, b: Tracks, twins: tuple[list[int], list[int]], graphs: list[tuple[int, int]]) -> EventPairs:
    """The events that answer each other. `twins` are the tensors' by side, `graphs` the pairs of graphs."""
    same_a, same_b = _common(twins[0], len(twins[1]))
    of_a = Subjects(a, same_a, {ga: k for k, (ga, _) in enumerate(graphs)})
    of_b = Subjects(b, same_b, {gb: k for k, (_, gb) in enumerate(graphs)})
    keys = shared_keys((of_a.kind, of_b.kind), (of_a.subject, of_b.subject), (of_a.run, of_b.run))
    i, j = match(keys, (of_a.speaking, of_b.speaking))
    # between two such pairs, what speaks of nothing: the k-th of a kind with the k-th
    gaps = (
        np.searchsorted(i, np.arange(len(of_a.kind)), "right"),
        np.searchsorted(j, np.arange(len(of_b.kind)), "right"),
    )
    more_i, more_j = match(shared_keys((of_a.kind, of_b.kind), gaps), (of_a.silent, of_b.silent))
    i, j = np.concatenate([i, more_i]), np.concatenate([j, more_j])
    order = np.argsort(i, kind="stable")
    kept = order[longest_rise(j[order])]
    return EventPairs(i[kept].astype(np.int32), j[kept].astype(np.int32))


def _common(to_b: list[int], n_b: int) -> tuple[Ints, Ints]:
    """One number for a tensor of A and its twin; UNMATCHED for the others."""
    of_a = np.full(len(to_b), UNMATCHED, np.int64)
    of_b = np.full(n_b, UNMATCHED, np.int64)
    found = np.array(to_b, np.int64).reshape(-1)
    paired = np.flatnonzero(found >= 0)
    of_a[paired] = paired
    of_b[found[paired]] = paired
    return of_a, of_b


class Subjects:
    """What each event of one trace speaks of, in numbers that both traces share.

    `subject` is its first tensor, else its graph, else the node it happened in; `run` the computation it is part of.
    """

    def __init__(self, tracks: Tracks, same: Ints, graphs: dict[int, int]) -> None:
        self.kind = tracks["ev.kind"].astype(np.int64)
        n_graphs = len(tracks["graph.created"])
        pair_of = np.full(n_graphs + 1, NO_SUBJECT, np.int64)
        pair_of[:n_graphs][np.diff(tracks["graph.ptr"].astype(np.int64)) > 0] = UNMATCHED
        pair_of[list(graphs)] = list(graphs.values())
        whole = tracks["graph.part_of"]
        pair_of[:n_graphs][whole >= 0] = pair_of[whole[whole >= 0]]
        self.graph = np.full(len(self.kind), NO_SUBJECT, np.int64)
        tensor = np.full(len(self.kind), NO_SUBJECT, np.int64)
        for index in np.unique(self.kind).tolist():
            at = np.flatnonzero(self.kind == index)
            rows = tracks["ev.row"][at]
            for field in reversed(fields_of(KINDS[index])):
                if field.ftype not in ("tensor", "graph"):
                    continue
                ids = tracks[f"k.{KINDS[index].__name__}.{field.name}"][rows]
                said = ids >= 0
                if field.ftype == "tensor":
                    tensor[at[said]] = same[ids[said]]
                else:
                    self.graph[at[said]] = pair_of[ids[said]]
        node = np.append(same, NO_SUBJECT)[tracks["ev.node"]]
        spoken = np.where(tensor != NO_SUBJECT, tensor, np.where(self.graph != NO_SUBJECT, self.graph, node))
        about = np.where(tensor != NO_SUBJECT, 0, np.where(self.graph != NO_SUBJECT, 1, 0))
        self.subject = 2 * spoken + about
        self.speaking, self.silent = spoken >= 0, spoken == NO_SUBJECT
        self.run = self._computations()

    def _computations(self) -> Ints:
        """For each event the computation that it is part of: the pair of its graph, and which time that is computed."""
        run = np.full(len(self.kind), OUTSIDE, np.int64)
        begins = np.flatnonzero(self.kind == KIND_INDEX["ComputeBegin"])
        ends = np.append(np.flatnonzero(self.kind == KIND_INDEX["ComputeEnd"]), len(run))
        times: dict[int, int] = {}
        for begin in begins.tolist():
            graph = int(self.graph[begin])
            times[graph] = times.get(graph, -1) + 1
            run[begin : ends[np.searchsorted(ends, begin)]] = times[graph]
        return run


def shared_keys(*parts: tuple[Ints, Ints]) -> tuple[Ints, Ints]:
    """One number for each event of A and of B, equal where all parts are equal."""
    n = len(parts[0][0])
    key: Ints = np.zeros(n + len(parts[0][1]), np.int64)
    for of_a, of_b in parts:
        _, both = np.unique(np.concatenate([of_a, of_b]), return_inverse=True)
        _, key = np.unique(key * (int(both.max(initial=0)) + 1) + both, return_inverse=True)
    return key[:n], key[n:]


def match(keys: tuple[Ints, Ints], used: tuple[NDArray[np.bool_], NDArray[np.bool_]]) -> tuple[Ints, Ints]:
    """The k-th of a key with the k-th of it, of the events that are `used`; the most that rise in both."""
    (at_a, rank_a), (at_b, rank_b) = (_ranks(key, use) for key, use in zip(keys, used, strict=True))
    of_a, of_b = shared_keys((keys[0][at_a], keys[1][at_b]), (rank_a, rank_b))
    _, i, j = np.intersect1d(of_a, of_b, assume_unique=True, return_indices=True)
    i, j = at_a[i], at_b[j]
    order = np.argsort(i, kind="stable")
    kept = order[longest_rise(j[order])]
    return i[kept], j[kept]


def _ranks(key: Ints, use: NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """Where events are used, and which of its key each is."""
    at = np.flatnonzero(use)
    keys = key[at]
    order = np.argsort(keys, kind="stable")
    in_order = keys[order]
    starts = np.flatnonzero(np.append(True, in_order[1:] != in_order[:-1])) if len(at) else np.zeros(0, np.int64)
    lengths = np.diff(np.append(starts, len(at)))
    rank = np.empty(len(at), np.int64)
    rank[order] = np.arange(len(at)) - np.repeat(starts, lengths)
    return at, rank
