"""The graph file: a graph as JSON, from wherever it comes, and the answer where the allocator would place it.

    {"vizggml_graph": 1,
     "tensors": [{"id": 0, "name": "W", "type": "F32", "ne": [3, 2, 1, 1], "nb": [4, 12, 24, 24], "op": "NONE",
                  "op_params": [], "src": [], "view_src": null, "view_offs": 0, "flags": [], "external": false}, ...],
     "nodes": [ids in execution order], "leafs": [ids]}        or "outputs": [ids]

A file is a stranger's: everything is checked before it is used, and nothing is allocated for the tensors' bytes.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from vizggml.errors import VizggmlError
from vizggml.files import write_whole
from vizggml.ggml import types
from vizggml.ggml.buffer import BufferType
from vizggml.ggml.cgraph import Graph, graph_overhead_custom
from vizggml.ggml.context import INT64_MAX, TENSOR_OVERHEAD, Context
from vizggml.ggml.gallocr import GraphAllocator
from vizggml.ggml.liveness import is_external
from vizggml.ggml.op_record import record_op, set_strides
from vizggml.ggml.op_shapes import broken_rule
from vizggml.ggml.tensor import Address, Tensor
from vizggml.ggml.types import GGML_MAX_DIMS, GGML_MAX_OP_PARAMS, GGML_MAX_SRC, GLU_OPS, OPS, UNARY_OPS, VIEW_OPS

VERSION = 1
FLAGS = {"INPUT": types.FLAG_INPUT, "OUTPUT": types.FLAG_OUTPUT, "PARAM": types.FLAG_PARAM, "LOSS": types.FLAG_LOSS}
LONGEST_PATH = 12
KNOWN_OPS = frozenset(OPS)

Record = dict[str, Any]


class Place(TypedDict):
    """Where one tensor goes. `reuses` is the id of the parent whose place it takes over."""

    chunk: int
    offset: int
    size: int
    reuses: int | None


class AllocReport(TypedDict):
    """What `vizggml alloc` answers: an entry for each tensor that was placed; views and external tensors have none."""

    size: int
    buffers: list[dict[str, list[int]]]
    tensors: dict[str, Place]


@dataclass(slots=True)
class GraphFile:
    """A graph that was read: the context that holds it, and its tensors by the ids of the file."""

    ctx: Context
    graph: Graph
    tensors: dict[int, Tensor]


def read_graph(path: str | Path) -> Graph:
    """The graph of a graph file. VizggmlError, one line, for anything that is wrong with it."""
    return load_graph(path).graph


def load_graph(path: str | Path) -> GraphFile:
    """The graph of a graph file, with its context and the file's ids."""
    with _nothing_collected():
        return _loaded(path)


@contextmanager
def _nothing_collected() -> Iterator[None]:
    """All that a file holds is kept until it is read: looking for garbage among it takes longer than reading does."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _loaded(path: str | Path) -> GraphFile:
    try:
        document = json.loads(Path(path).read_bytes())
    except OSError as error:
        raise VizggmlError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise VizggmlError(f"{path}: not JSON: {str(error) or 'nested too deep'}") from None
    try:
        return parse_graph(document)
    except VizggmlError as error:
        raise VizggmlError(f"{path}: {error}") from None


def parse_graph(document: object) -> GraphFile:
    """The same from the parsed JSON."""
    if not isinstance(document, dict) or not _is_int(document.get("vizggml_graph"), VERSION, VERSION):
        found = document.get("vizggml_graph") if isinstance(document, dict) else type(document).__name__
        raise VizggmlError(f"not a graph file of version {VERSION}: vizggml_graph is {found!r:.40}")
    records = _records(document.get("tensors"))
    lists = [key for key in ("nodes", "outputs") if key in document]
    if len(lists) != 1:
        raise VizggmlError("a graph file has either nodes (and leafs) or outputs")
    order = _dependency_order(records)
    size = max(len(records), 1)
    ctx = Context(len(records) * TENSOR_OVERHEAD + graph_overhead_custom(size), no_alloc=True)
    tensors: dict[int, Tensor] = {}
    for id in order:
        tensors[id] = _make_tensor(ctx, records[id], tensors)
    for id in order:
        broken = broken_rule(tensors[id])
        if broken:
            raise VizggmlError(f"{_label(records[id])}: {broken}")
    graph = Graph(ctx, size)
    if lists == ["outputs"]:
        for id in _ids(document, "outputs", records):
            graph.build_forward_expand(tensors[id])
    else:
        nodes, leafs = _ids(document, "nodes", records), _ids(document, "leafs", records)
        _check_order(nodes, records)
        for id in nodes:
            if tensors[id].op != "NONE":
                tensors[id].set_flag(types.FLAG_COMPUTE)
        graph.adopt([tensors[id] for id in nodes], [tensors[id] for id in leafs])
    return GraphFile(ctx, graph, {id: tensors[id] for id in records})


def _label(record: Record) -> str:
    """How an error names a tensor of the file."""
    name = record.get("name")
    return f"tensor {name!r:.80} (id {record['id']})" if name else f"tensor {record['id']}"


def _is_int(value: object, low: int = 0, high: int = INT64_MAX) -> bool:
    return type(value) is int and low <= value <= high


def _records(listed: object) -> dict[int, Record]:
    """The records by id, every field of the right kind."""
    if not isinstance(listed, list):
        raise VizggmlError("tensors is not a list")
    records: dict[int, Record] = {}
    for i, record in enumerate(listed):
        if not isinstance(record, dict) or not _is_int(record.get("id")):
            raise VizggmlError(f"tensors[{i}] has no id, a whole number from 0 on")
        id = record["id"]
        if id in records:
            raise VizggmlError(f"{_label(record)}: its id is used twice, first by {_label(records[id])}")
        records[id] = record
    for record in records.values():
        _check_fields(record)
        _check_references(record, records)
    return records


def _check_fields(record: Record) -> None:
    """VizggmlError unless each field is of its kind."""
    name = record.get("name", "")
    if not isinstance(name, str):
        raise VizggmlError(f"tensor {record['id']}: name {name!r:.40} is not text")
    if str(record.get("type")) not in types.TYPES:
        raise VizggmlError(
            f"{_label(record)}: type {record.get('type')!r:.40} is not one of ggml's: {', '.join(types.TYPES)}"
        )
    op = record.get("op", "NONE")
    if not isinstance(op, str) or op not in KNOWN_OPS:
        raise VizggmlError(f"{_label(record)}: op {op!r:.40} is not one of ggml's {len(OPS)}")
    ne, nb = record.get("ne"), record.get("nb")
    if not isinstance(ne, list) or not 1 <= len(ne) <= GGML_MAX_DIMS or not all(map(_is_int, ne)):
        raise VizggmlError(f"{_label(record)}: ne {ne!r:.80} is not 1 to {GGML_MAX_DIMS} whole numbers from 0 on")
    if nb is not None and not (isinstance(nb, list) and len(nb) == GGML_MAX_DIMS and all(map(_is_int, nb))):
        raise VizggmlError(f"{_label(record)}: nb {nb!r:.80} is not {GGML_MAX_DIMS} strides in bytes")
    params = record.get("op_params", [])
    limit = GGML_MAX_OP_PARAMS // 4
    if (
        not isinstance(params, list)
        or len(params) > limit
        or not all(_is_int(p, -(1 << 31), (1 << 31) - 1) for p in params)
    ):
        raise VizggmlError(f"{_label(record)}: op_params {params!r:.80} are not up to {limit} int32")
    flags = record.get("flags", [])
    if not isinstance(flags, list) or any(flag not in FLAGS for flag in map(str, flags)):
        raise VizggmlError(f"{_label(record)}: flags {flags!r:.80} are not of {', '.join(FLAGS)}")
    if not _is_int(record.get("view_offs", 0)):
        raise VizggmlError(f"{_label(record)}: view_offs {record['view_offs']!r:.40} is not a number of bytes")
    if not isinstance(record.get("external", False), bool):
        raise VizggmlError(f"{_label(record)}: external {record['external']!r:.40} is neither true nor false")


def _check_references(record: Record, records: dict[int, Record]) -> None:
    """VizggmlError unless each source and view source is a tensor of the file."""
    src = record.get("src", [])
    if not isinstance(src, list) or len(src) > GGML_MAX_SRC:
        raise VizggmlError(f"{_label(record)}: src {src!r:.80} is not a list of up to {GGML_MAX_SRC} ids")
    for id in (*src, record.get("view_src")):
        if id is not None and not (_is_int(id) and id in records):
            what = "src" if id in src else "view_src"
            raise VizggmlError(f"{_label(record)}: {what} names tensor {id!r:.40}, which is not in the file")


def _needs(record: Record) -> Iterator[int]:
    """The ids that must be there before this tensor. A cast is its own second source."""
    for slot, id in enumerate(record.get("src", [])):
        if id is not None and not (id == record["id"] and record.get("op") == "CPY" and slot == 1):
            yield id
    if record.get("view_src") is not None:
        yield record["view_src"]


def _dependency_order(records: dict[int, Record]) -> list[int]:
    """The ids, each after those that it needs. VizggmlError with its path if there is a cycle."""
    order: list[int] = []
    done: dict[int, bool] = {}
    for root in records:
        if root in done:
            continue
        done[root] = False
        path = [(root, _needs(records[root]))]
        while path:
            id, needs = path[-1]
            for needed in needs:
                if done.get(needed) is False:
                    _refuse_cycle([i for i, _ in path], needed, records)
                if needed not in done:
                    done[needed] = False
                    path.append((needed, _needs(records[needed])))
                    break
            else:
                path.pop()
                done[id] = True
                order.append(id)
    return order


def _refuse_cycle(path: list[int], closes: int, records: dict[int, Record]) -> None:
    cycle = path[path.index(closes) :]
    names = [str(records[id].get("name") or id)[:40] for id in cycle]
    if len(names) > LONGEST_PATH:
        names = [*names[: LONGEST_PATH - 1], "...", names[-1]]
    raise VizggmlError(f"cycle of {len(cycle)} tensors: {' <- '.join([*names, names[0]])}")


def _make_tensor(ctx: Context, record: Record, tensors: dict[int, Tensor]) -> Tensor:
    """The tensor of a record; those that it needs are there."""
    label, type = _label(record), types.TYPES[record["type"]]
    view_src = record.get("view_src")
    if view_src is None and record.get("op") in VIEW_OPS:
        raise VizggmlError(f"{label}: {record['op']} needs a view_src")
    try:
        if view_src is None:
            t = ctx.new_tensor(type, record["ne"])
        else:
            t = ctx.new_view(tensors[view_src], record["ne"], record.get("view_offs", 0))
    except VizggmlError as error:
        raise VizggmlError(f"{label}: {error}") from None
    if t.type is not type:
        raise VizggmlError(f"{label}: a view has the type of its source, {t.type}, not {type}")
    if record.get("name"):
        t.set_name(record["name"])
    op = record.get("op", "NONE")
    src = [t if id == record["id"] else None if id is None else tensors[id] for id in record.get("src", [])]
    _set_nb(t, record, next((s for s in src if s is not None), t))
    if op != "NONE" or src:
        record_op(t, op, _op_params(record), *src)
    for flag in record.get("flags", []):
        t.set_flag(FLAGS[flag])
    if record.get("external", False) and view_src is None:
        t.data = Address(np.zeros(0, np.uint8), 0)
    return t


def _set_nb(t: Tensor, record: Record, read: Tensor) -> None:
    """Strides as the file has them. A view must stay inside its source, another tensor must not overlap itself."""
    contiguous = t.nbytes
    nb, op = record.get("nb"), record.get("op", "NONE")
    if nb is not None and tuple(nb) != t.nb:
        set_strides(t, read, op.lower() if op in VIEW_OPS else "view", t.ne, (nb[0], nb[1], nb[2], nb[3]))
    if t.view_src is not None:
        if t.nbytes + t.view_offs > t.view_src.nbytes:
            raise VizggmlError(
                f"{_label(record)}: offset {t.view_offs} + {t.nbytes} bytes ends past "
                f"its source {t.view_src.name!r} ({t.view_src.nbytes} bytes)"
            )
    elif not contiguous <= t.nbytes <= INT64_MAX:
        raise VizggmlError(
            f"{_label(record)}: strides {list(t.nb)} span {t.nbytes} bytes, its elements take {contiguous}, "
            f"the limit is {INT64_MAX}"
        )


def _op_params(record: Record) -> tuple[int, ...]:
    """The parameters of the op; which UNARY or GLU it is may be given by `desc` alone."""
    params, op = list(record.get("op_params", [])), record.get("op", "NONE")
    names = {"UNARY": UNARY_OPS, "GLU": GLU_OPS}.get(op)
    if names is not None:
        if not params:
            params = [names.index(record["desc"]) if record.get("desc") in names else -1]
        if not 0 <= params[0] < len(names):
            raise VizggmlError(f"{_label(record)}: {op} needs op_params[0] from 0 to {len(names) - 1}, or desc")
    return tuple(params)


def _ids(document: dict[str, Any], key: str, records: dict[int, Record]) -> list[int]:
    """The ids listed under `key`, each a tensor of the file, none twice."""
    ids = document.get(key, [])
    if not isinstance(ids, list):
        raise VizggmlError(f"{key} is not a list of ids")
    for id in ids:
        if not (_is_int(id) and id in records):
            raise VizggmlError(f"{key} names tensor {id!r:.40}, which is not in the file")
    return ids


def _check_order(nodes: list[int], records: dict[int, Record]) -> None:
    """VizggmlError if a node stands before a node that it needs."""
    place = {id: i for i, id in enumerate(nodes)}
    for id in nodes:
        for needed in _needs(records[id]):
            if place.get(needed, -1) > place[id]:
                raise VizggmlError(
                    f"nodes: {_label(records[id])} stands at {place[id]}, "
                    f"before {_label(records[needed])} at {place[needed]}, which it needs"
                )


def graph_json(graph: Graph) -> dict[str, Any]:
    """`graph` as a graph file's JSON: its nodes and leafs, and whatever they read or look into."""
    found: dict[int, Tensor] = {}
    todo: list[Tensor] = [*graph.leafs, *graph.nodes]
    while todo:
        t = todo.pop()
        if t.id not in found:
            found[t.id] = t
            todo += [s for s in (*t.src, t.view_src) if s is not None]
    ids = {id: i for i, id in enumerate(sorted(found))}

    def dense(tensors: Iterable[Tensor | None]) -> list[int | None]:
        return [None if t is None else ids[t.id] for t in tensors]

    return {
        "vizggml_graph": VERSION,
        "tensors": [
            {
                "id": i,
                "name": found[id].name,
                "type": found[id].type.name,
                "ne": list(found[id].ne),
                "nb": list(found[id].nb),
                "op": found[id].op,
                "desc": found[id].op_desc,
                "op_params": list(found[id].op_params),
                "src": dense(found[id].src),
                "view_src": dense([found[id].view_src])[0],
                "view_offs": found[id].view_offs,
                "flags": [name for name, flag in FLAGS.items() if found[id].flags & flag],
                "external": is_external(found[id]),
            }
            for id, i in ids.items()
        ],
        "nodes": dense(graph.nodes),
        "leafs": dense(graph.leafs),
    }


def write_graph(graph: Graph, path: str | Path) -> None:
    """Write `graph` as a graph file. VizggmlError if the file cannot be written."""
    write_whole(path, json.dumps(graph_json(graph)).encode(), "graph file")


def alloc_report(
    path: str | Path, *, alignment: int = types.TENSOR_ALIGNMENT, max_chunk: int | None = None, in_place: bool = True
) -> AllocReport:
    """Where ggml's graph allocator places the tensors of a graph file, with no memory taken for them."""
    return report_of(load_graph(path), alignment=alignment, max_chunk=max_chunk, in_place=in_place)


def report_of(
    file: GraphFile, *, alignment: int = types.TENSOR_ALIGNMENT, max_chunk: int | None = None, in_place: bool = True
) -> AllocReport:
    """The same for a graph that is read already."""
    buft = BufferType("CPU", alignment) if max_chunk is None else BufferType("CPU", alignment, max_chunk)
    galloc = GraphAllocator(buft, in_place=in_place)
    sizes = galloc.reserve_n_size(file.graph)
    ids = {t.id: id for id, t in file.tensors.items()}
    places: dict[str, Place] = {}
    for id, t in file.tensors.items():
        hn = galloc.hash_values.get(t.id)
        if hn is not None and hn.placed:
            places[str(id)] = {
                "chunk": hn.chunk,
                "offset": hn.offset,
                "size": hn.size,
                "reuses": ids[hn.reuses] if hn.reuses >= 0 else None,
            }
    return {"size": sum(sizes), "buffers": [{"chunks": chunks} for chunks in galloc.chunk_sizes()], "tensors": places}
