"""The rows of the player's details at a step, for print: what each table says, read off the tracks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from vizggml.events import KINDS
from vizggml.timeline.schema import fields_of
from vizggml.timeline.sentences import show, show_bytes, show_flags, show_ns, tensor_name
from vizggml.timeline.tracks import Tracks
from vizggml.views import labels
from vizggml.views.sheet import Column, Row
from vizggml.views.still import graph_at
from vizggml.views.tables import read_sources

ENDLESS = 2**50
NEAR = 60
MOST_COUNTS = 400


@dataclass(frozen=True)
class Detail:
    """One table: its columns, its rows at a step, and what stands there when there are none."""

    title: str
    columns: tuple[Column, ...]
    rows: Callable[[Tracks, int], list[Row]]
    empty: str


def tensor_at(tracks: Tracks, step: int) -> int:
    """The node that the step's event is about, else the tensor that it names; -1 for none."""
    node = int(tracks["ev.node"][step])
    return node if node >= 0 else int(field_at(tracks, step, "tensor", -1))


def field_at(tracks: Tracks, step: int, name: str, otherwise: Any = None) -> Any:
    """A field of the step's event; `otherwise` where its kind has none of that name."""
    kind = KINDS[int(tracks["ev.kind"][step])]
    if not any(field.name == name for field in fields_of(kind)):
        return otherwise
    return tracks.field(kind.__name__, name, int(tracks["ev.row"][step]))


def tensor_rows(tracks: Tracks, step: int) -> list[Row]:
    t = tensor_at(tracks, step)
    if t < 0:
        return []
    op = tracks.string(int(tracks["tensor.desc"][t]))
    sources = read_sources(tracks).get(t, [])
    readers = list(dict.fromkeys(tracks["edge.dst"][tracks["edge.src"] == t].tolist()))
    pairs = [
        ("name", tensor_name(tracks, t)),
        ("op", op if op not in ("", "NONE") else "none: a leaf"),
        ("type", tracks.string(int(tracks["tensor.type"][t]))),
        ("ne", labels.shape(tracks["tensor.ne"][t].tolist())),
        ("nb", ", ".join(str(int(n)) for n in tracks["tensor.nb"][t])),
        ("size", show_bytes(int(tracks["tensor.nbytes"][t]))),
        ("reads", show(tracks, "tensors", sources) or "none"),
        ("read by", show(tracks, "tensors", readers) or "none"),
    ]
    view_src = int(tracks["tensor.view_src"][t])
    if view_src >= 0:
        pairs.append(("view of", f"{tensor_name(tracks, view_src)}, from byte {int(tracks['tensor.view_offs'][t])}"))
    pairs.append(("flags", show_flags(int(tracks["tensor.flags"][t]))))
    if tracks["tensor.external"][t]:
        pairs.append(("memory", "its own, outside the plan"))
    return [Row(pair) for pair in pairs + _life(tracks, t, step)]


def _life(tracks: Tracks, t: int, step: int) -> list[tuple[str, str]]:
    """Of the plan that stands at `step`, or the first after it: when `t` lives, and whose memory it takes."""
    life = tracks.track("life")
    rows = np.flatnonzero(life["tensor"] == t)
    if not len(rows):
        return []
    begun = rows[life["a"][rows] <= step]
    row = int(begun[-1] if len(begun) else rows[0])
    freed_by, reuses = int(life["freed_by"][row]), int(life["reuses"][row])
    place = f"{show_bytes(int(life['size'][row]))} at offset {int(life['offset'][row])} of chunk {life['chunk'][row]}"
    out = [("place", place), ("lives", f"position {life['first'][row]} to {life['last'][row]} in the execution order")]
    out.append(("freed by", tensor_name(tracks, freed_by) if freed_by >= 0 else "nobody: kept"))
    return out + ([("reuses", tensor_name(tracks, reuses))] if reuses >= 0 else [])


def free_rows(tracks: Tracks, step: int) -> list[Row]:
    blocks = tracks.at("block", step)
    free = np.flatnonzero(blocks["owner"] < 0)
    order = sorted(free.tolist(), key=lambda r: (blocks["chunk"][r], blocks["offset"][r]))
    here = field_at(tracks, step, "chunk"), field_at(tracks, step, "offset")
    out, block, before = [], 0, -1
    for r in order:
        chunk, offset, size = int(blocks["chunk"][r]), int(blocks["offset"][r]), int(blocks["size"][r])
        block = block + 1 if chunk == before else 0
        before = chunk
        length = "to the end" if size < 0 or size > ENDLESS else show_bytes(size)
        out.append(Row((str(chunk), str(block), str(offset), length), marked=(chunk, offset) == here))
    return out


def count_rows(tracks: Tracks, step: int) -> list[Row]:
    """The current node and what it reads first, then whatever still has readers."""
    counts: dict[int, list[int]] = {}
    held = tracks.at("count", step)
    for t, which, value in zip(held["tensor"].tolist(), held["which"].tolist(), held["value"].tolist(), strict=True):
        counts.setdefault(t, [0, 0, 0])[which] = value
    current = tensor_at(tracks, step)
    near = list(dict.fromkeys([current, *read_sources(tracks).get(current, [])]))
    rest = [t for t, c in counts.items() if t not in near and (c[1] > 0 or c[2] > 0)]
    order = [t for t in near if t in counts] + rest[-MOST_COUNTS:][::-1]
    return [Row((tensor_name(tracks, t), *map(str, counts[t])), marked=t == current) for t in order]


def scratch_rows(tracks: Tracks, step: int) -> list[Row]:
    graph, current = graph_at(tracks, step), tensor_at(tracks, step)
    held = tracks.at("scratch", step)
    out = []
    for r in range(len(held["a"])):
        tensor, size = int(held["tensor"][r]), int(held["work_size"][r])
        if held["graph"][r] == graph and (size > 0 or tensor == current):
            cells = tensor_name(tracks, tensor), str(held["n_tasks"][r]), show_bytes(size)
            out.append(Row((*cells, show_bytes(int(held["maximum"][r]))), marked=tensor == current))
    return out


def cell_rows(tracks: Tracks, step: int) -> list[Row]:
    held = tracks.at("cell", step)
    at = field_at(tracks, step, "cell")
    order = np.lexsort((held["seq"], held["cell"])).tolist()
    return [
        Row((str(held["cell"][r]), str(held["pos"][r]), str(held["seq"][r])), marked=int(held["cell"][r]) == at)
        for r in order
    ]


def routing_rows(tracks: Tracks, step: int) -> list[Row]:
    """The tokens of the layer that was routed last, each with its experts and their weights."""
    track = tracks.track("route")
    row = int(np.searchsorted(track["a"], step, side="right")) - 1
    if row < 0:
        return []
    at, n = int(tracks["ev.row"][track["a"][row]]), int(track["n_used"][row])
    positions, experts, weights = (tracks.field("ExpertsRouted", f, at) for f in ("positions", "experts", "weights"))
    return [
        Row((str(track["layer"][row]), str(int(positions[k // n])), str(int(experts[k])), f"{weights[k]:.4f}"))
        for k in range(len(experts))
    ]


def reuse_rows(tracks: Tracks, step: int) -> list[Row]:
    held = tracks.at("reuse", step)
    rows = np.flatnonzero(held["eval"] == held["eval"].max()).tolist() if len(held["eval"]) else []
    out = []
    for r in rows:
        words = [tracks.string(int(held[name][r])) for name in ("owner", "condition", "had", "needs")]
        ok = bool(held["ok"][r])
        out.append(Row((*words, "yes" if ok else "no"), marked=int(held["a"][r]) == step, bad=not ok))
    return out


def split_rows(tracks: Tracks, step: int) -> list[Row]:
    """The splits of the graph that the step is about, else of the one that was split last."""
    held, copies = tracks.at("split", step), tracks.at("copy", step)
    if not len(held["a"]):
        return []
    about = field_at(tracks, step, "graph", -1)
    graph = int(about if about in held["graph"] else held["graph"][-1])
    nodes = tracks["graph.node"][tracks["graph.ptr"][graph] : tracks["graph.ptr"][graph + 1]].tolist()
    rows = sorted((r for r in range(len(held["a"])) if held["graph"][r] == graph), key=lambda r: held["first_node"][r])
    said = field_at(tracks, step, "split") if about == graph else None
    out = []
    for k, r in enumerate(rows):
        first = int(held["first_node"][r])
        end = int(held["first_node"][rows[k + 1]]) if k + 1 < len(rows) else len(nodes)
        copied = [
            f"{tensor_name(tracks, int(copies['tensor'][c]))} ({show_bytes(int(copies['nbytes'][c]))})"
            for c in range(len(copies["a"]))
            if copies["graph"][c] == graph and copies["split"][c] == held["split"][r]
        ]
        name = tensor_name(tracks, nodes[first]) if first < len(nodes) else ""
        cells = str(held["split"][r]), tracks.string(int(held["backend"][r])), name, str(end - first)
        marked = tensor_at(tracks, step) in nodes[first:end] if said is None else said == held["split"][r]
        out.append(Row((*cells, ", ".join(copied) or "none"), marked=marked))
    return out


def page_rows(tracks: Tracks, step: int) -> list[Row]:
    held = tracks.at("pages", step)
    order = sorted(range(len(held["a"])), key=lambda r: (held["name"][r] >= 0, held["offset"][r]))
    out = []
    for r in order:
        pages, of = int(held["pages"][r]), int(held["of"][r])
        name = tracks.string(int(held["name"][r])) or "the whole file"
        share = f"{100 * pages // of} %" if of else ""
        out.append(Row((name, str(pages), str(of), share), marked=int(held["a"][r]) == step))
    return out


def thread_rows(tracks: Tracks, step: int) -> list[Row]:
    """What the threads did last, newest first."""
    track = tracks.track("thread")
    to = int(np.searchsorted(track["a"], step, side="right"))
    current = tensor_at(tracks, step)
    out = []
    for r in range(to - 1, max(0, to - NEAR) - 1, -1):
        if track["eval"][r] != track["eval"][to - 1]:
            break
        tensor = int(track["tensor"][r])
        worked = show_ns(max(0, int(track["end_ns"][r] - track["begin_ns"][r])))
        cells = tensor_name(tracks, tensor), str(track["thread"][r]), worked, show_ns(int(track["wait_ns"][r]))
        out.append(Row(cells, marked=tensor == current))
    return out


def arena_rows(tracks: Tracks, step: int) -> list[Row]:
    held = tracks.at("arena", step)
    at = field_at(tracks, step, "context")
    return [
        Row((str(c), str(n), show_bytes(int(used))), marked=c == at)
        for c, n, used in zip(held["context"].tolist(), held["n_objects"].tolist(), held["used"].tolist(), strict=True)
    ]


def _right(*heads: str) -> tuple[Column, ...]:
    return tuple(Column(head, right=True) for head in heads)


DETAILS: dict[str, Detail] = {
    "tensor": Detail("Tensor", (Column("", 0.14), Column("")), tensor_rows, "No tensor at this step."),
    "free": Detail("Free list", _right("chunk", "block", "offset", "size"), free_rows, "No free block at this step."),
    "counts": Detail(
        "Counts", (Column("tensor", 2.4), *_right("uses", "children", "views")), count_rows, "Nothing is counted yet."
    ),
    "scratch": Detail(
        "Scratch",
        (Column("tensor", 2), *_right("tasks", "scratch", "maximum")),
        scratch_rows,
        "No scratch is planned yet.",
    ),
    "kv": Detail(
        "Cells of the KV cache", _right("cell", "position", "sequence"), cell_rows, "No cell is taken at this step."
    ),
    "routing": Detail(
        "Routing",
        _right("layer", "position", "expert", "weight"),
        routing_rows,
        "No token has been sent to an expert at this step.",
    ),
    "reuse": Detail(
        "Graph reuse",
        (Column("asked by", 1.5), Column("condition", 1.2), *_right("had", "needs", "holds")),
        reuse_rows,
        "No reuse check at this step.",
    ),
    "splits": Detail(
        "Splits over backends",
        (
            Column("split", 0.4, True),
            Column("backend", 0.7),
            Column("first node", 1.2),
            Column("nodes", 0.4, True),
            Column("inputs copied", 2),
        ),
        split_rows,
        "No graph is split at this step.",
    ),
    "pages": Detail(
        "Pages of the mapped file",
        (Column("part of the file", 2), *_right("in memory", "pages", "share")),
        page_rows,
        "Nobody has asked which pages are in memory yet.",
    ),
    "threads": Detail(
        "Threads",
        (Column("tensor", 2), *_right("thread", "worked", "waited")),
        thread_rows,
        "Nothing is computing at this step.",
    ),
    "arena": Detail("Arenas", _right("context", "objects", "used"), arena_rows, "No context stands at this step."),
}
