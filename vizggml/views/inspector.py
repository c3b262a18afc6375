"""What there is to know of one tensor at a step: its layout, its chain of views, its place, its life, its values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vizggml.errors import VizggmlError
from vizggml.ggml.types import VIEW_OPS
from vizggml.timeline.schema import KIND_INDEX
from vizggml.timeline.sentences import tensor_name
from vizggml.timeline.tracks import Tracks
from vizggml.views import labels
from vizggml.views.memory import check_step

MAX_CHAIN = 16
MAX_CHUNKS = 16
"""Chunk c of a plan's buffer b has the number b * 16 + c in the track of lives."""

STATUS = ("not yet met", "visited", "in the graph", "has memory", "computing", "done", "freed", "skipped")

Dims = tuple[int, int, int, int]


@dataclass(frozen=True)
class Layout:
    """What ggml's functions of these names say of shape and strides, ggml/src/ggml.c."""

    contiguous: bool
    contiguous_1: bool
    contiguous_2: bool
    contiguous_rows: bool
    permuted: bool
    transposed: bool

    @property
    def words(self) -> str:
        if self.contiguous:
            return "contiguous: no gaps"
        if self.transposed:
            return "transposed: nb[0] > nb[1]"
        if self.permuted:
            return "permuted: strides out of order"
        return "rows contiguous, gaps between" if self.contiguous_rows else "strided: gaps within rows"

    @property
    def predicates(self) -> tuple[tuple[str, bool], ...]:
        names = "contiguous", "contiguous_1", "contiguous_2", "contiguous_rows", "permuted", "transposed"
        return tuple((name, bool(getattr(self, name))) for name in names)


def layout_of(ne: Dims, nb: Dims, blck_size: int, type_size: int) -> Layout:
    """The layout of a tensor of blocks of `blck_size` elements in `type_size` bytes."""

    def contiguous(above: int) -> bool:
        if ne[0] != blck_size and nb[0] != type_size:
            return False
        after = type_size * (ne[0] // blck_size)
        for d in (1, 2, 3):
            if d <= above:
                after = ne[d] * nb[d]
                continue
            if ne[d] != 1 and nb[d] != after:
                return False
            after *= ne[d]
        return True

    return Layout(
        contiguous(0),
        contiguous(1),
        contiguous(2),
        ne[0] == blck_size or nb[0] == type_size,
        nb[0] > nb[1] or nb[1] > nb[2] or nb[2] > nb[3],
        nb[0] > nb[1],
    )


@dataclass(frozen=True)
class Jump:
    """A dimension of the walk through memory: `n` steps of `nb` bytes, of which what lies within one spans `inner`."""

    dim: int
    nb: int
    n: int
    inner: int


def walk_of(ne: Dims, nb: Dims, blck_size: int, type_size: int) -> tuple[Jump, ...]:
    """The dimensions with more than one step, in the order in which memory walks them: the smallest stride first."""
    steps = [(nb[d], d, -(-ne[0] // blck_size) if d == 0 else ne[d]) for d in range(4)]
    out, inner = [], type_size
    for stride, d, n in sorted(step for step in steps if step[2] > 1):
        out.append(Jump(d, stride, n, inner))
        inner += (n - 1) * stride
    return tuple(out)


@dataclass(frozen=True)
class Link:
    """The bytes of `tensor` from `offs` on."""

    tensor: int
    offs: int


@dataclass(frozen=True)
class Place:
    """`offset` bytes into `buffer`, of the buffer type `buft`."""

    buffer: int
    buft: str
    offset: int
    size: int


@dataclass(frozen=True)
class LifeFacts:
    """The plan's place for the tensor's bytes, in positions of the execution order; -1 for no tensor or no event.

    `padded` is the size that was looked for, -1 where the plan was not made for this tensor itself. `heirs` took the
    bytes in place; `before` had some of them last, `after` gets some of them next.
    """

    plan: int
    chunk: int
    offset: int
    size: int
    padded: int
    first: int
    last: int
    reuses: int
    heirs: tuple[int, ...]
    before: int
    after: int
    freed_by: int
    freed_at: int
    assigned_at: int


@dataclass(frozen=True)
class ValueFacts:
    """The newest values at the step: of `evaluation`, taken after `event`."""

    event: int
    evaluation: int
    stats: tuple[float, ...]
    bins: tuple[int, ...]
    grid: NDArray[np.float32]


@dataclass(frozen=True)
class TensorFacts:
    """A tensor at a step. `asked` are the views that it was made through, `flat` what ggml made of them."""

    tensor: int
    name: str
    op: str
    type: str
    status: str
    blck_size: int
    type_size: int
    ne: Dims
    nb: Dims
    nbytes: int
    layout: Layout
    walk: tuple[Jump, ...]
    asked: tuple[Link, ...]
    flat: Link | None
    root: int
    sources: tuple[int, ...]
    consumers: tuple[int, ...]
    place: Place | None
    life: LifeFacts | None
    created_at: int
    computed_at: int
    values: ValueFacts | None

    @property
    def is_leaf(self) -> bool:
        return self.op in ("", "NONE")

    @property
    def is_view(self) -> bool:
        return self.op in VIEW_OPS

    @property
    def bits_per_weight(self) -> float:
        return 8 * self.type_size / self.blck_size


def facts_of(tracks: Tracks, tensor: int, step: int | None = None) -> TensorFacts:
    """What the tracks say of `tensor` at `step` (None: the last). VizggmlError where there is none such."""
    step = check_step(tracks, step)
    n = len(tracks["tensor.name"])
    if not 0 <= tensor < n:
        raise VizggmlError(f"tensor {tensor}: the trace has tensors 0 to {n - 1}")

    def text(column: str) -> str:
        return tracks.string(int(tracks[f"tensor.{column}"][tensor]))

    ne, nb = _dims(tracks["tensor.ne"][tensor]), _dims(tracks["tensor.nb"][tensor])
    blck_size, type_size = (int(tracks[f"tensor.{c}"][tensor]) for c in ("blck_size", "type_size"))
    view_src, asked = int(tracks["tensor.view_src"][tensor]), chain_of(tracks, tensor)
    flat = Link(view_src, int(tracks["tensor.view_offs"][tensor])) if view_src >= 0 else None
    order = np.argsort(tracks["edge.slot"][tracks["edge.dst"] == tensor], kind="stable")
    return TensorFacts(
        tensor=tensor,
        name=labels.visible(tensor_name(tracks, tensor)),
        op=text("desc") or text("op"),
        type=text("type"),
        status=_status(tracks, tensor, step),
        blck_size=blck_size,
        type_size=type_size,
        ne=ne,
        nb=nb,
        nbytes=int(tracks["tensor.nbytes"][tensor]),
        layout=layout_of(ne, nb, blck_size, type_size),
        walk=walk_of(ne, nb, blck_size, type_size),
        asked=asked,
        flat=flat,
        root=_root(tracks, tensor),
        sources=tuple(tracks["edge.src"][tracks["edge.dst"] == tensor][order].tolist()),
        consumers=tuple(dict.fromkeys(tracks["edge.dst"][tracks["edge.src"] == tensor].tolist())),
        place=_place(tracks, tensor, step),
        life=_life(tracks, _root(tracks, tensor), step),
        created_at=int(tracks["tensor.created"][tensor]),
        computed_at=nearest(events_of(tracks, "NodeBegin", tensor), step),
        values=_values(tracks, tensor, step),
    )


def _dims(row: Sequence[float]) -> Dims:
    a, b, c, d = (int(x) for x in row)
    return a, b, c, d


def _status(tracks: Tracks, tensor: int, step: int) -> str:
    held = tracks.at("node", step)
    found = held["status"][held["tensor"] == tensor]
    return STATUS[int(found[-1])] if len(found) else STATUS[0]


def _root(tracks: Tracks, tensor: int) -> int:
    view_src = tracks["tensor.view_src"]
    for _ in range(MAX_CHAIN):
        if view_src[tensor] < 0:
            break
        tensor = int(view_src[tensor])
    return tensor


def events_of(tracks: Tracks, kind: str, tensor: int) -> list[int]:
    """The events of `kind` that name `tensor` in their field of that name, in order."""
    column = f"k.{kind}.tensor"
    if column not in tracks.columns:
        return []
    events = np.flatnonzero(tracks["ev.kind"] == KIND_INDEX[kind])
    found: list[int] = events[tracks[column] == tensor].tolist()
    return found


def nearest(events: Sequence[int], step: int, begin: int = 0, end: int | None = None) -> int:
    """The newest of `events` at or before `step`, else the next one; -1 where none is from `begin` to before `end`."""
    inside = [i for i in events if i >= begin and (end is None or i < end)]
    before = [i for i in inside if i <= step]
    return before[-1] if before else inside[0] if inside else -1


def chain_of(tracks: Tracks, tensor: int) -> tuple[Link, ...]:
    """What `tensor` was made a view of, and that of, to the first that is no view."""
    flat = Link(int(tracks["tensor.view_src"][tensor]), int(tracks["tensor.view_offs"][tensor]))
    if "k.ViewCreated.tensor" not in tracks.columns:
        return () if flat.tensor < 0 else (flat,)
    row_of = {view: row for row, view in enumerate(tracks["k.ViewCreated.tensor"].tolist())}
    out: list[Link] = []
    while tensor in row_of and len(out) < MAX_CHAIN:
        row = row_of[tensor]
        tensor = int(tracks["k.ViewCreated.asked_src"][row])
        if tensor < 0:
            break
        out.append(Link(tensor, int(tracks["k.ViewCreated.asked_offs"][row])))
    return tuple(out) if out or flat.tensor < 0 else (flat,)


def _place(tracks: Tracks, tensor: int, step: int) -> Place | None:
    held = tracks.at("place", step)
    rows = np.flatnonzero(held["tensor"] == tensor)
    if not len(rows):
        return None
    row = int(rows[-1])
    buffers = tracks.at("buffer", step)
    named = buffers["buft"][buffers["buffer"] == held["buffer"][row]]
    buft = tracks.string(int(named[-1])) if len(named) else ""
    return Place(int(held["buffer"][row]), buft, int(held["offset"][row]), int(held["size"][row]))


def _life(tracks: Tracks, root: int, step: int) -> LifeFacts | None:
    life = tracks.track("life")
    mine = np.flatnonzero(life["tensor"] == root)
    if not len(mine):
        return None
    begun = mine[life["a"][mine] <= step]
    row = int(begun[-1] if len(begun) else mine[0])
    plan = int(life["plan"][row])
    begin, end = plan_window(tracks, plan)
    whole = np.flatnonzero(life["plan"] == plan)
    others = whole[(life["chunk"][whole] == life["chunk"][row]) & (whole != row)]
    low, high = life["offset"][row], life["offset"][row] + life["size"][row]
    touching = others[(life["offset"][others] < high) & (life["offset"][others] + life["size"][others] > low)]
    past = touching[life["last"][touching] < life["first"][row]]
    next_ = touching[life["first"][touching] > life["last"][row]]
    assigned = nearest(events_of(tracks, "TensorAssigned", root), step, begin, end)
    return LifeFacts(
        plan,
        int(life["chunk"][row]),
        int(life["offset"][row]),
        int(life["size"][row]),
        _padded(tracks, nearest(events_of(tracks, "SearchBegin", root), step, begin, end)),
        int(life["first"][row]),
        int(life["last"][row]),
        int(life["reuses"][row]),
        tuple(life["tensor"][others[life["reuses"][others] == root]].tolist()),
        int(life["tensor"][past[np.argmax(life["last"][past])]]) if len(past) else -1,
        int(life["tensor"][next_[np.argmin(life["first"][next_])]]) if len(next_) else -1,
        int(life["freed_by"][row]),
        nearest(events_of(tracks, "TensorFreed", root), step, begin, end),
        assigned if assigned >= 0 else nearest(events_of(tracks, "ParentReused", root), step, begin, end),
    )


def _padded(tracks: Tracks, searched_at: int) -> int:
    """The size that a search looks for."""
    return int(tracks["k.SearchBegin.size"][tracks["ev.row"][searched_at]]) if searched_at >= 0 else -1


def plan_window(tracks: Tracks, plan: int) -> tuple[int, int]:
    """The events from which to which a plan is the newest; it begins with the event that asked for it."""
    life = tracks.track("life")
    opening = [KIND_INDEX["ReserveBegin"], KIND_INDEX["AllocGraphBegin"]]
    opened = np.flatnonzero(np.isin(tracks["ev.kind"], opening))

    def begin(number: int) -> int:
        first = int(life["a"][life["plan"] == number].min())
        before = opened[opened <= first]
        return int(before[-1]) if len(before) else first

    later = sorted({int(p) for p in life["plan"].tolist() if p > plan})
    return begin(plan), begin(later[0]) if later else len(tracks)


def _values(tracks: Tracks, tensor: int, step: int) -> ValueFacts | None:
    if "v.event" not in tracks.columns:
        return None
    rows = np.flatnonzero((tracks["v.tensor"] == tensor) & (tracks["v.event"] <= step + 1))
    if not len(rows):
        return None
    row = int(rows[-1])
    event = max(0, int(tracks["v.event"][row]) - 1)
    held = tracks.at("eval", event)["index"]
    cells = tracks["v.val"][tracks["v.ptr"][row] : tracks["v.ptr"][row + 1]]
    return ValueFacts(
        event,
        int(held[0]) if len(held) else -1,
        tuple(tracks["v.stats"][row].tolist()),
        tuple(tracks["v.bins"][row].tolist()),
        cells.reshape(tracks["v.grid"][row]),
    )
