"""Whatever a graph comes in, a trace, its tracks or a graph of the engine, as the table that the pictures read."""

from __future__ import annotations

import re
from typing import Any, TypeAlias, cast

from vizggml.errors import VizggmlError
from vizggml.timeline.tracks import Tracks as Recorded
from vizggml.views.tables import GraphTable, Tensors, Tracks, graph_ids, read_graph

Drawable: TypeAlias = Any
"""A Trace, its Tracks, or a ggml Graph."""

_LAYER = re.compile(r"(?:^blk\.|^cache_[a-z_]*?l|-)(\d+)(?=\.|$| )")


def tracks_of(source: Drawable) -> Tracks:
    """The tracks of a trace; tracks themselves pass."""
    fold = getattr(source, "tracks", None)
    found = fold() if callable(fold) else source
    if not hasattr(found, "columns") or not hasattr(found, "open_at"):
        raise VizggmlError(f"{type(source).__name__}: a trace or its tracks are needed")
    return cast(Tracks, found)


def figured(source: Drawable) -> Recorded:
    """The tracks of a trace with its events, which a figure's caption tells."""
    return cast(Recorded, tracks_of(source))


def table_of(source: Drawable, graph: int | None = None) -> GraphTable:
    """The table of one graph. Of a trace's graphs None takes the last; VizggmlError when it has none."""
    if hasattr(source, "nodes") and hasattr(source, "leafs"):
        return _table_of_graph(source)
    tracks = tracks_of(source)
    ids = graph_ids(tracks)
    if not ids:
        raise VizggmlError("graph: the trace holds no graph with nodes")
    return read_graph(tracks, ids[-1] if graph is None else graph)


def _table_of_graph(graph: Any) -> GraphTable:
    """The table of a `ggml.Graph`: its tensors numbered leafs first."""
    members = [*graph.leafs, *graph.nodes]
    number = {t.id: i for i, t in enumerate(members)}
    for t in graph.nodes:
        for src in t.src:
            if src is not None and src.id not in number:
                number[src.id] = len(members)
                members.append(src)
    tensors = Tensors(
        name=[t.name for t in members],
        type=[t.type.name for t in members],
        desc=[t.op_desc for t in members],
        ne=[list(t.ne) for t in members],
        nbytes=[float(t.nbytes) for t in members],
        layer=[layer_of(t.name) for t in members],
        view_src=[number.get(t.view_src.id, -1) if t.view_src is not None else -1 for t in members],
    )
    srcs = {number[t.id]: list(dict.fromkeys(number[s.id] for s in t.src if s is not None)) for t in graph.nodes}
    return GraphTable(0, list(srcs), [number[t.id] for t in graph.leafs], srcs, tensors)


def layer_of(name: str) -> int:
    """The layer that llama.cpp's naming puts a tensor in (`ffn_out-3`, `blk.3.`, `cache_k_l3`); -1 for none."""
    found = _LAYER.search(name)
    return int(found[1]) if found else -1
