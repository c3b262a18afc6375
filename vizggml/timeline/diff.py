"""`diff(a, b)`: two traces compared by structure. What differs, in figures, in sentences, and event by event."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vizggml.errors import VizggmlError
from vizggml.timeline.diff_events import EventPairs, pair_events
from vizggml.timeline.diff_graph import GraphAligner, Role, Side, twins_of
from vizggml.timeline.diff_plan import KINDS, Change, Figures, Plans, changes
from vizggml.timeline.schema import KIND_INDEX
from vizggml.timeline.trace import Trace
from vizggml.timeline.tracks import Tracks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LABELS = ("A", "B")
EXPORTERS: dict[str, Callable[..., None]] = {}
"""What a comparison can be written as, by name; `vizggml.export` fills it."""


@dataclass(frozen=True, slots=True)
class PairDiff:
    """Two graphs that answer each other: what each is for, its figures, and what became of every tensor."""

    a: int
    b: int
    role: str
    n_tokens: tuple[int, int]
    figures_a: Figures
    figures_b: Figures
    changes: list[Change]

    def count(self, kind: str) -> int:
        """How many tensors were added, removed, changed, grown, shrunk, moved, or live longer or shorter."""
        return sum(kind in change.kinds for change in self.changes)

    def __repr__(self) -> str:
        told = ", ".join(f"{self.count(kind)} {kind}" for kind in KINDS if self.count(kind)) or "no difference"
        return f"<{self.role}: graph {self.a} and graph {self.b}: {told}>"


@dataclass(frozen=True, slots=True)
class Whole:
    """What is said of a whole trace. Bytes: of the KV cache and of the compute buffers, 0 where there are none."""

    events: int
    graphs: int
    evaluations: int
    kv: int
    compute: int
    sampled: tuple[tuple[int, str], ...] = ()
    """The sampled tokens: position and text."""


@dataclass(eq=False)
class Diff:
    """What differs between the traces `a` and `b`. Falsy where nothing does.

    `pairs` are the graphs that answer each other, `main` the pair with the largest plan; `params` what was set
    differently, as (name, in A, in B). `twin_a[t]` is the tensor of B that answers tensor t of A, -1 for none.
    """

    a: Tracks
    b: Tracks
    labels: tuple[str, str]
    pairs: list[PairDiff]
    only_a: list[str]
    only_b: list[str]
    whole_a: Whole
    whole_b: Whole
    params: list[tuple[str, str, str]]
    twin_a: list[int]
    twin_b: list[int]
    _graphs: list[tuple[int, int]] = field(repr=False)

    @cached_property
    def events(self) -> EventPairs:
        """Which event of A answers which of B."""
        return pair_events(self.a, self.b, (self.twin_a, self.twin_b), self._graphs)

    @property
    def main(self) -> PairDiff | None:
        """The pair that the summary speaks of: the largest plan; without plans the most nodes."""
        return max(self.pairs, key=lambda p: (max(p.figures_a.buffer, p.figures_b.buffer), _n_nodes(p)), default=None)

    def __bool__(self) -> bool:
        return bool(
            self.params
            or self.only_a
            or self.only_b
            or any(pair.changes or pair.figures_a != pair.figures_b for pair in self.pairs)
            or self.whole_a != self.whole_b
        )

    def to_b(self, i: int) -> int:
        """The event of B at which B stands when A is at event `i`. VizggmlError outside of A."""
        return self.events.to_b(_checked(i, self.a, self.labels[0]))[0]

    def to_a(self, j: int) -> int:
        """The event of A at which A stands when B is at event `j`. VizggmlError outside of B."""
        return self.events.to_a(_checked(j, self.b, self.labels[1]))[0]

    def summary(self) -> list[str]:
        """What differs, in plain sentences: the first says what was set differently and what it did."""
        from vizggml.timeline.diff_words import summary

        return summary(self)

    def answer(self) -> dict[str, Any]:
        """The figures and the changes as plain values, for JSON."""
        from vizggml.timeline.diff_words import answer

        return answer(self)

    def to_html(self, path: str | os.PathLike[str], **options: Any) -> None:
        """Write both traces side by side as one page. VizggmlError before vizggml.export is imported."""
        if "html" not in EXPORTERS:
            raise VizggmlError("comparison: import vizggml.export first, it writes pages")
        EXPORTERS["html"](self, path, **options)

    def __repr__(self) -> str:
        from vizggml.timeline.diff_words import text

        return text(self)

    def _repr_html_(self) -> str:
        from vizggml.timeline.diff_words import html

        return html(self)

    def __iter__(self) -> Iterator[PairDiff]:
        return iter(self.pairs)


def diff(a: Trace | Tracks, b: Trace | Tracks, *, labels: Sequence[str] = LABELS) -> Diff:
    """Compare two traces (or their tracks) by structure: graphs, tensors, plans and events are never matched by index.

    VizggmlError for what is no trace.
    """
    from vizggml.timeline.diff_words import differing_params

    if isinstance(labels, str) or len(labels) != 2:
        raise VizggmlError(f"labels {labels!r}: two are needed, one for each trace")
    tracks_a, tracks_b = _tracks(a, "a"), _tracks(b, "b")
    side_a, side_b = Side(tracks_a), Side(tracks_b)
    paired = GraphAligner(side_a, side_b).pairs()
    plans_a, plans_b = Plans(side_a), Plans(side_b)
    recorded = [pair for pair in paired if not (side_a.stood(pair.a) and side_b.stood(pair.b))]
    pairs = [
        PairDiff(
            pair.a,
            pair.b,
            role_name(side_b, pair.b),
            (side_a.n_tokens(pair.a), side_b.n_tokens(pair.b)),
            plans_a.figures(pair.a),
            plans_b.figures(pair.b),
            changes(pair, plans_a, plans_b),
        )
        for pair in recorded or paired
    ]
    twin_a, twin_b = twins_of(paired, side_a, side_b)
    return Diff(
        tracks_a,
        tracks_b,
        (str(labels[0]), str(labels[1])),
        pairs,
        _alone(side_a, {pair.a for pair in paired}),
        _alone(side_b, {pair.b for pair in paired}),
        whole(side_a),
        whole(side_b),
        differing_params(side_a, side_b),
        twin_a,
        twin_b,
        [(pair.a, pair.b) for pair in paired],
    )


def _tracks(source: Trace | Tracks, which: str) -> Tracks:
    if isinstance(source, Trace):
        return source.tracks()
    if isinstance(source, Tracks):
        return source
    raise VizggmlError(f"diff: {which} is a {type(source).__name__}, a trace is needed")


def _checked(i: int, tracks: Tracks, label: str) -> int:
    if not 0 <= i < max(1, tracks.n_events):
        raise VizggmlError(f"event {i}: {label} has events 0 to {tracks.n_events - 1}")
    return i


def _n_nodes(pair: PairDiff) -> int:
    return pair.figures_a.nodes + pair.figures_b.nodes


def role_name(side: Side, graph: int) -> str:
    """What a graph is for, in words: `reserved for 512 tokens`, `decode, 1 token`."""
    role: Role = side.role(graph)
    n = side.n_tokens(graph)
    tokens = f"{n:,} token{'s' if n != 1 else ''}"
    if role[0] == "evaluated":
        return ("decode" if role[1] else "prompt") + f", {tokens}" if n else "computed"
    if role[0] == "reserved":
        return f"reserved for {tokens}" if n else "reserved"
    return f"{role[0]}, {tokens}" if n else role[0]


def _alone(side: Side, paired: set[int]) -> list[str]:
    """Graphs without an answer; what stood before the recording is no part of it."""
    return [role_name(side, graph) for graph in side.graphs if graph not in paired and not side.stood(graph)]


def whole(side: Side) -> Whole:
    """The figures of a whole trace."""
    tracks = side.tracks
    tokens = tracks.track("token")
    sampled = tokens["sampled"] != 0
    order = np.argsort(tokens["pos"][sampled], kind="stable")
    positions, pieces = (tokens[c][sampled][order].tolist() for c in ("pos", "piece"))
    return Whole(
        events=tracks.n_events,
        graphs=sum(not side.stood(graph) for graph in side.graphs) or len(side.graphs),
        evaluations=len(tracks.track("eval")["index"]),
        kv=kv_bytes(tracks),
        compute=compute_bytes(tracks),
        sampled=tuple((pos, tracks.string(k)) for pos, k in zip(positions, pieces, strict=True)),
    )


def kv_bytes(tracks: Tracks) -> int:
    """Bytes of the caches: of those that were made while recording or, if none was, of those that stood."""
    kinds = tracks["ev.kind"]
    created = np.flatnonzero(kinds == KIND_INDEX["CacheCreated"])
    if not len(created):
        return 0
    new = created >= tracks.opening
    sizes = tracks["k.CacheCreated.nbytes_k"] + tracks["k.CacheCreated.nbytes_v"]
    if new.any():
        return int(sizes[new].sum())
    if np.any(kinds == KIND_INDEX["CellsFound"]):
        used = np.isin(tracks["k.CacheCreated.cache"], tracks["k.CellsFound.cache"])
        return int(sizes[used].sum())
    return int(sizes.sum())


def compute_bytes(tracks: Tracks) -> int:
    """Bytes of the compute buffers: of the largest plan of each allocator; without plans, of those that stand and are
    computed in, else of all that stand."""
    reserve = tracks.track("reserve")
    largest: dict[int, int] = {}
    for galloc, begun, size in zip(*(reserve[c].tolist() for c in ("galloc", "a", "size")), strict=True):
        if begun >= tracks.opening:
            largest[galloc] = max(largest.get(galloc, 0), int(size))
    if largest:
        return sum(largest.values())
    held = tracks.at("buffer", max(0, tracks.n_events - 1)) if tracks.n_events else {}
    if not held:
        return 0
    usage = np.array([tracks.string(k) == "compute" for k in held["usage"].tolist()], bool)
    used = usage & np.isin(held["buffer"], _computed_in(tracks))
    return int(held["size"][used if used.any() else usage].sum())


def _computed_in(tracks: Tracks) -> NDArray[np.int32]:
    """The buffers where the nodes lie that were computed in the recording."""
    kinds, nodes = tracks["ev.kind"][tracks.opening :], tracks["ev.node"][tracks.opening :]
    computed = np.unique(nodes[(kinds == KIND_INDEX["NodeBegin"]) & (nodes >= 0)])
    place = tracks.track("place")
    found: NDArray[np.int32] = np.unique(place["buffer"][np.isin(place["tensor"], computed)])
    return found
