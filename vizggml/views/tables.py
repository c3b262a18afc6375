"""What the pictures read: tracks, and the static tables of one graph taken out of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from numpy.typing import NDArray

from vizggml.errors import VizggmlError


class Tracks(Protocol):
    """The folded trace, as far as the pictures need it."""

    @property
    def meta(self) -> Mapping[str, Any]: ...
    @property
    def strings(self) -> Sequence[str]: ...
    @property
    def columns(self) -> Mapping[str, NDArray[Any]]: ...
    @property
    def opening(self) -> int: ...
    @property
    def start(self) -> int: ...
    def open_at(self, name: str, i: int) -> NDArray[Any]: ...
    def to_bytes(self) -> bytes: ...
    def __len__(self) -> int: ...


@dataclass(frozen=True)
class Tensors:
    """The tensor table as plain lists, one entry for each tensor id."""

    name: list[str]
    type: list[str]
    desc: list[str]
    ne: list[list[float]]
    nbytes: list[float]
    layer: list[int]
    view_src: list[int]

    @classmethod
    def of(cls, tracks: Tracks) -> Tensors:
        columns, strings = tracks.columns, tracks.strings

        def text(column: str) -> list[str]:
            return [strings[i] if i >= 0 else "" for i in columns[column].tolist()]

        return cls(
            name=text("tensor.name"),
            type=text("tensor.type"),
            desc=text("tensor.desc"),
            ne=columns["tensor.ne"].tolist(),
            nbytes=columns["tensor.nbytes"].tolist(),
            layer=columns["tensor.layer"].tolist(),
            view_src=columns["tensor.view_src"].tolist(),
        )


@dataclass(frozen=True)
class GraphTable:
    """One graph: its nodes in execution order and, for each, the tensors that it reads."""

    graph: int
    nodes: list[int]
    leafs: list[int]
    srcs: dict[int, list[int]]
    tensors: Tensors

    @cached_property
    def consumers(self) -> dict[int, list[int]]:
        """The nodes that read each tensor, in execution order."""
        out: dict[int, list[int]] = {}
        for node in self.nodes:
            for src in self.srcs[node]:
                out.setdefault(src, []).append(node)
        return out


def graph_ids(tracks: Tracks) -> list[int]:
    """The graphs that have nodes."""
    ptr = tracks.columns["graph.ptr"].tolist()
    return [g for g in range(len(ptr) - 1) if ptr[g + 1] > ptr[g]]


def read_sources(tracks: Tracks) -> dict[int, list[int]]:
    """For each tensor, the distinct tensors in its source slots, in the order of the slots."""
    columns = tracks.columns
    sources: dict[int, list[int]] = {}
    edges = zip(columns["edge.dst"].tolist(), columns["edge.slot"].tolist(), columns["edge.src"].tolist(), strict=True)
    for dst, _, src in sorted(edges):
        into = sources.setdefault(dst, [])
        if src not in into:
            into.append(src)
    return sources


def read_graph(
    tracks: Tracks, graph: int, tensors: Tensors | None = None, sources: dict[int, list[int]] | None = None
) -> GraphTable:
    """The tables of `graph`. VizggmlError when the tracks hold no such graph."""
    ptr = tracks.columns["graph.ptr"].tolist()
    if not 0 <= graph < len(ptr) - 1:
        raise VizggmlError(f"graph {graph}: the trace has graphs 0 to {len(ptr) - 2}")
    leaf_ptr = tracks.columns["graph.leaf_ptr"].tolist()
    nodes = tracks.columns["graph.node"][ptr[graph] : ptr[graph + 1]].tolist()
    leafs = tracks.columns["graph.leaf"][leaf_ptr[graph] : leaf_ptr[graph + 1]].tolist()
    tensors = tensors or Tensors.of(tracks)
    sources = sources if sources is not None else read_sources(tracks)
    return GraphTable(graph, nodes, leafs, {n: sources.get(n, []) for n in nodes}, tensors)
