"""A trace as Chrome trace JSON, which Perfetto (ui.perfetto.dev) and chrome://tracing open.

The format is Google's "Trace Event Format": complete events (X) for what took time, counters (C), flows (s, f), and
metadata (M) that names processes and threads. Times are microseconds. A process is a backend, a thread one of ours.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vizggml.export.tables import Drawable, figured
from vizggml.files import write_whole
from vizggml.timeline.sentences import render, show_dims, tensor_name
from vizggml.timeline.tracks import Tracks
from vizggml.views.labels import visible
from vizggml.views.tables import read_sources

Entry: TypeAlias = dict[str, Any]

RUN = 1
FIRST_BACKEND = 2
EVALUATIONS, TOKENS = 1, 2
GAP_US = 20.0
"""Between two evaluations, which no clock measured."""
TIMED = f"times are measured within each evaluation; the {GAP_US:g} us between two evaluations stand for what was not"
UNTIMED = "nothing was computed, so there are no times: 1 us stands for one event, ts is the number of the event"


def to_perfetto(source: Drawable, path: str | os.PathLike[str], *, flows: bool = True) -> int:
    """Write the trace for Perfetto; how many entries it has. `flows` draws an arrow from each node to its readers.

    A trace in which nothing was computed has no times: there the number of an event stands for its microsecond.
    """
    document = perfetto(figured(source), flows=flows)
    write_whole(path, json.dumps(document, separators=(",", ":"), allow_nan=False).encode(), "trace for Perfetto")
    return len(document["traceEvents"])


def perfetto(tracks: Tracks, *, flows: bool = True) -> dict[str, Any]:
    """The document: an object whose `traceEvents` are the entries, and `otherData` what a reader must know."""
    timed = len(tracks["t.thread.a"]) > 0
    entries = list(_timed(tracks, flows) if timed else _untimed(tracks))
    reference = tracks.meta.get("reference", {})
    other = {"note": TIMED if timed else UNTIMED, "model": str(tracks.meta.get("model", "")), **reference}
    return {"displayTimeUnit": "ns", "otherData": other, "traceEvents": entries}


@dataclass
class Clock:
    """Where each evaluation begins in the picture, and when each event of the trace was."""

    base: dict[int, float] = field(default_factory=dict)
    end: dict[int, float] = field(default_factory=dict)
    at: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def of(cls, tracks: Tracks) -> Clock:
        thread = tracks.track("thread")
        evals, begin, end = thread["eval"], thread["begin_ns"] / 1e3, _ends(tracks)
        clock, now = cls(), 0.0
        stamped = np.full(len(tracks), -1.0)
        for e in np.unique(evals).tolist():
            rows = evals == e
            clock.base[e] = now
            clock.end[e] = now + float(end[rows].max())
            np.maximum.at(stamped, thread["a"][rows], now + begin[rows])
            now = clock.end[e] + GAP_US
        clock.at = np.maximum.accumulate(np.maximum(stamped, 0.0))
        return clock


def _ends(tracks: Tracks) -> NDArray[np.float64]:
    """When each thread was through with its part and its wait, in microseconds from the evaluation's begin."""
    thread = tracks.track("thread")
    worked = np.maximum(thread["end_ns"], thread["begin_ns"])
    return np.asarray((worked + np.maximum(thread["wait_ns"], 0)) / 1e3, float)


def _timed(tracks: Tracks, flows: bool) -> Iterator[Entry]:
    clock = Clock.of(tracks)
    backend = _backends(tracks)
    names = list(dict.fromkeys(backend.values())) or ["CPU"]
    pids = {name: FIRST_BACKEND + k for k, name in enumerate(names)}
    threads = range(1 + int(tracks["t.thread.thread"].max()))
    yield from _named(RUN, "run", {EVALUATIONS: "evaluations", TOKENS: "tokens"})
    for name, pid in pids.items():
        yield from _named(pid, f"backend {name}", {t + 1: f"thread {t}" for t in threads})
    nodes = list(_nodes(tracks, clock, {t: pids[b] for t, b in backend.items()}))
    yield from nodes
    yield from _evaluations(tracks, clock)
    yield from _tokens(tracks, clock)
    yield from _counters(tracks, clock.at)
    if flows:
        yield from _flows(tracks, [n for n in nodes if n["cat"] != "wait"])


def _named(pid: int, name: str, threads: dict[int, str]) -> Iterator[Entry]:
    yield {"ph": "M", "pid": pid, "name": "process_name", "args": {"name": visible(name)}}
    yield {"ph": "M", "pid": pid, "name": "process_sort_index", "args": {"sort_index": pid}}
    for tid, thread in threads.items():
        yield {"ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": {"name": thread}}
        yield {"ph": "M", "pid": pid, "tid": tid, "name": "thread_sort_index", "args": {"sort_index": tid}}


def _backends(tracks: Tracks) -> dict[int, str]:
    """The backend of each node, by the splits of its graph."""
    split, ptr, node = tracks.track("split"), tracks["graph.ptr"].tolist(), tracks["graph.node"].tolist()
    found: dict[int, str] = {}
    rows = zip(split["graph"].tolist(), split["first_node"].tolist(), split["backend"].tolist(), strict=True)
    for graph, first, name in sorted(rows):
        found |= dict.fromkeys(node[ptr[graph] + first : ptr[graph + 1]], tracks.string(name))
    return found


def _nodes(tracks: Tracks, clock: Clock, pids: dict[int, int]) -> Iterator[Entry]:
    """What each thread did of each node and, after it, how long it waited at the barrier."""
    thread = tracks.track("thread")
    columns = (thread[c].tolist() for c in ("a", "eval", "tensor", "thread", "begin_ns", "end_ns", "wait_ns"))
    free: dict[tuple[int, int], float] = {}
    for step, e, t, k, begin, end, wait in zip(*columns, strict=True):
        pid = pids.get(t, FIRST_BACKEND)
        start = max(clock.base[e] + begin / 1e3, free.get((pid, k), 0.0))
        done = max(start, clock.base[e] + end / 1e3)
        op = tracks.string(int(tracks["tensor.desc"][t]))
        args = {
            "op": op,
            "shape": show_dims(tracks["tensor.ne"][t].astype(int).tolist()),
            "type": tracks.string(int(tracks["tensor.type"][t])),
            "bytes": int(tracks["tensor.nbytes"][t]),
            "evaluation": e,
            "step": step,
            "tensor": t,
        }
        yield _complete(pid, k + 1, visible(tensor_name(tracks, t)), op, start, done, args)
        free[pid, k] = done
        if wait > 0:
            free[pid, k] = done + wait / 1e3
            waited = {"after": visible(tensor_name(tracks, t))}
            yield _complete(pid, k + 1, "barrier", "wait", done, free[pid, k], waited)


def _complete(pid: int, tid: int, name: str, cat: str, start: float, end: float, args: dict[str, Any]) -> Entry:
    ts = round(start, 3)
    dur = round(max(0.0, round(end, 3) - ts), 3)
    return {"ph": "X", "pid": pid, "tid": tid, "name": name, "cat": cat, "ts": ts, "dur": dur, "args": args}


def _evaluations(tracks: Tracks, clock: Clock) -> Iterator[Entry]:
    held = tracks.track("eval")
    for row, e in enumerate(held["index"].tolist()):
        if e in clock.base:
            args = {c: int(held[c][row]) for c in ("n_tokens", "pos", "graph", "reused")} | {
                "step": int(held["a"][row])
            }
            yield _complete(RUN, EVALUATIONS, f"evaluation {e}", "evaluation", clock.base[e], clock.end[e], args)


def _tokens(tracks: Tracks, clock: Clock) -> Iterator[Entry]:
    """A sampled token stands behind its evaluation; an arrow leads to the evaluation that reads it."""
    held = tracks.track("token")
    evals = sorted(clock.base)
    rows = zip(*(held[c].tolist() for c in ("a", "token", "piece", "pos", "sampled", "p", "eval")), strict=True)
    flow = 1 << 40
    for step, token, piece, pos, sampled, p, e in rows:
        if not sampled or e not in clock.base:
            continue
        start = clock.end[e]
        text = visible(tracks.string(piece)) or f"#{token}"
        args = {"token": token, "pos": pos, "p": p, "step": step}
        yield _complete(RUN, TOKENS, text, "token", start, start + GAP_US / 2, args)
        later = next((n for n in evals if n > e), None)
        if later is not None:
            yield from _arrow(flow + step, "token", (RUN, TOKENS, start), (RUN, EVALUATIONS, clock.base[later]))


def _arrow(id: int, name: str, tail: tuple[int, int, float], head: tuple[int, int, float]) -> Iterator[Entry]:
    for ph, (pid, tid, ts), more in (("s", tail, {}), ("f", head, {"bp": "e"})):
        yield {"ph": ph, "id": id, "name": name, "cat": "flow", "pid": pid, "tid": tid, "ts": round(ts, 3), **more}


def _flows(tracks: Tracks, nodes: list[Entry]) -> Iterator[Entry]:
    """From each node to the nodes of its evaluation that read it, from its first thread to theirs."""
    sources = read_sources(tracks)
    made: dict[tuple[int, int], Entry] = {}
    n = 0
    for node in nodes:
        e, t = node["args"]["evaluation"], node["args"]["tensor"]
        if (e, t) in made:
            continue
        for source in sources.get(t, ()):
            before = made.get((e, source))
            if before is not None and before["ts"] <= node["ts"]:
                n += 1
                tail = before["pid"], before["tid"], before["ts"]
                yield from _arrow(n, "data", tail, (node["pid"], node["tid"], node["ts"]))
        made[e, t] = node


def _counters(tracks: Tracks, at: NDArray[np.float64]) -> Iterator[Entry]:
    """Planned memory that is taken, buffers, and cells of the cache: the last value at each moment."""
    blocks, buffers, cells = tracks.track("block"), tracks.track("buffer"), tracks.track("cell")
    taken = blocks["owner"] >= 0
    yield from _counter("memory taken", "bytes", blocks["a"][taken], blocks["b"][taken], blocks["size"][taken], at)
    yield from _counter("buffers", "bytes", buffers["a"], buffers["b"], buffers["size"], at)
    yield from _counter("KV cells", "cells", cells["a"], cells["b"], np.ones(len(cells["a"])), at)


def _counter(
    name: str, series: str, a: NDArray[Any], b: NDArray[Any], size: NDArray[Any], at: NDArray[np.float64]
) -> Iterator[Entry]:
    if not len(a):
        return
    n = len(at)
    change = np.zeros(n + 1)
    np.add.at(change, a, size)
    np.add.at(change, b, -size)
    level = np.cumsum(change)[:n]
    last = np.append(np.flatnonzero(np.diff(at)), n - 1)
    shown = last[np.flatnonzero(np.append(True, np.diff(level[last]) != 0))]
    for i in shown.tolist():
        args = {series: int(level[i])}
        yield {"ph": "C", "pid": RUN, "tid": 0, "name": name, "ts": round(float(at[i]), 3), "args": args}


def _untimed(tracks: Tracks) -> Iterator[Entry]:
    """Every event as one microsecond on the thread of its area."""
    kinds = tracks.meta["kinds"]
    areas = {area: k + 1 for k, area in enumerate(dict.fromkeys(kind["area"] for kind in kinds))}
    yield from _named(RUN, "events in order (1 us is one event, not time)", {tid: area for area, tid in areas.items()})
    for step, (kind, node) in enumerate(zip(tracks["ev.kind"].tolist(), tracks["ev.node"].tolist(), strict=True)):
        about = kinds[kind]
        args = {"sentence": visible(render(tracks, step)), "step": step}
        if node >= 0:
            args["node"] = visible(tensor_name(tracks, node))
        yield _complete(RUN, areas[about["area"]], about["name"], about["area"], step, step + 1, args)
    yield from _counters(tracks, np.arange(len(tracks), dtype=float))
