"""The two file formats as tables and worked examples: traces from the schema, graphs from a real one."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import Any

from reference.vocabulary import AREAS, FTYPES
from vizggml import ggml
from vizggml.events import KINDS, ContextId, Dims, SnapshotBegin, SnapshotEnd, TensorCreated, TensorId, TensorNamed
from vizggml.ggml.graph_file import FLAGS, VERSION, graph_json, load_graph, report_of
from vizggml.ggml.liveness import graph_liveness, live_report
from vizggml.ggml.types import GGML_MAX_DIMS, GGML_MAX_OP_PARAMS, GGML_MAX_SRC, OPS, TYPES
from vizggml.llama.cparams import ContextParams
from vizggml.llama.plan import plan_file
from vizggml.timeline.columns import MAGIC, read_file
from vizggml.timeline.meanings import INTERVAL, TABLES, TRACKS
from vizggml.timeline.record import Recorder
from vizggml.timeline.schema import (
    BLOCK_COLUMNS,
    SCHEMA,
    TRACE_COLUMNS,
    VALUE_COLUMNS,
    WIDTHS,
    columns_of,
    fields_of,
)

TEXT = "text"
WIDTH = 74
TIE = "\0"
"""Stands for a space at which no line may end."""
LIST_HOLDS = {"ints": "int", "floats": "float", "strs": TEXT, "tensors": "tensor id"}
OWN_HOLDS = {
    "ev.kind": "index into `meta.kinds`",
    "ev.node": "tensor id",
    "ev.cause": "event number",
    "v.event": "event number",
    "v.tensor": "tensor id",
    "v.stats": "minimum, maximum, mean, root of the mean square, how many are not finite",
    "v.bins": "how many values in each of 32 equal steps from minimum to maximum",
    "v.grid": "rows and columns of the grid",
    "v.ptr": "where each row's grid begins in `v.val`",
    "v.val": "means of the cells of the grids, row by row",
    "q.tensor": "tensor id",
    "q.type": TEXT,
    "q.ptr": "where each row's bytes begin in `q.val`",
    "q.val": "bytes of whole blocks",
}


@dataclass(frozen=True)
class Column:
    """`width` is items a row; `holds` what they are: the word "text" for an index into the string table."""

    name: str
    dtype: str
    width: int
    holds: str


def columns_by_area() -> dict[str, list[Column]]:
    """Every column that a trace file may have: those of all events, of each area's kinds, of values."""
    found = {"every event": [column(name) for name in TRACE_COLUMNS if name.startswith("ev.")]}
    for area in AREAS:
        names = [name for kind in KINDS if area == kind.AREA for name in columns_of(kind)]
        if names:
            found[area] = [column(name) for name in names]
    found["values, where they were asked for"] = [column(name) for name in (*VALUE_COLUMNS, *BLOCK_COLUMNS)]
    return found


def column(name: str) -> Column:
    return Column(name, TRACE_COLUMNS[name], WIDTHS.get(name, 1), holds(name))


def holds(name: str) -> str:
    if name in OWN_HOLDS:
        return OWN_HOLDS[name]
    _, kind, field, *part = name.split(".")
    ftype = next(f.ftype for k in KINDS if k.__name__ == kind for f in fields_of(k) if f.name == field)
    if part == ["ptr"]:
        return "where each row's list begins in `.val`"
    return LIST_HOLDS.get(ftype) or (TEXT if ftype == "str" else FTYPES.get(ftype, ftype))


@dataclass(frozen=True)
class Track:
    """A track or a static table: what it is, and its columns with their dtypes and meanings."""

    name: str
    words: str
    columns: list[tuple[str, str, str]]


def tracks() -> Iterator[Track]:
    """The interval tracks that every trace has, as an empty one has them."""
    empty = Recorder().trace.tracks()
    for name in empty.names:
        words, meanings = TRACKS[name]
        dtypes = {column: short(found.dtype) for column, found in empty.track(name).items()}
        yield Track(name, words, [(c, dtypes[c], meanings[c]) for c in dtypes if c not in INTERVAL])


def tables() -> Iterator[Track]:
    columns = Recorder().trace.tracks().columns
    for name, (words, meanings) in TABLES.items():
        yield Track(name, words, [(c, short(columns[f"{name}.{c}"].dtype), meaning) for c, meaning in meanings.items()])


def short(dtype: Any) -> str:
    return f"{dtype.kind}{dtype.itemsize}"


@dataclass(frozen=True)
class Bytes:
    """A stretch of a file: where it begins, its bytes, and what they say."""

    at: int
    data: bytes
    says: str

    @property
    def shown(self) -> str:
        return self.data.hex(" ")


@dataclass(frozen=True)
class TraceExample:
    """A whole trace file taken apart."""

    size: int
    header: str
    header_length: int
    data_start: int
    parts: list[Bytes]


def trace_example() -> TraceExample:
    """The smallest recording that says something: one tensor is made and named."""
    recorder = Recorder()
    ne: Dims = (3, 2, 1, 1)
    nb: Dims = (4, 12, 24, 24)
    for event in (
        SnapshotBegin(),
        SnapshotEnd(),
        TensorCreated(TensorId(0), ContextId(0), "F32", ne, nb, 24, node=TensorId(0)),
        TensorNamed(TensorId(0), "W", node=TensorId(0)),
    ):
        recorder.take(event)
    recorder.settle()
    trace = recorder.trace
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "example.vgt"
        trace.save(path)
        data = path.read_bytes()
        kept = read_file(path, "trace", SCHEMA)
    length = int.from_bytes(data[8:12], "little")
    start = -(-(16 + length) // 8) * 8
    header = json.loads(data[16 : 16 + length])
    parts = [
        Bytes(0, data[:8], f"the magic, `{MAGIC!r}`"),
        Bytes(8, data[8:12], f"{length} bytes of header"),
        Bytes(12, data[12:16], "0"),
    ]
    for name, at in header["columns"].items():
        found = kept.columns[name]
        first = start + at["offset"]
        parts.append(Bytes(first, data[first : first + found.nbytes], f"`{name}`: {found.ravel().tolist()}"))
    return TraceExample(len(data), shown_header(header), length, start, parts)


def shown_header(header: dict[str, Any]) -> str:
    """The header on lines that can be read, the list of kinds cut short."""
    kinds = header["meta"]["kinds"]
    shown = header | {"meta": header["meta"] | {"kinds": [*kinds[:2], "...", kinds[-1]]}}
    columns = ",\n".join(f"  {json.dumps(name)}: {json.dumps(at)}" for name, at in header["columns"].items())
    lines = [f'"{key}": {json.dumps(value)}' for key, value in shown.items() if key != "columns"]
    return wrapped("{" + ",\n ".join([*lines, '"columns": {\n' + columns + "\n }"]) + "}")


@dataclass(frozen=True)
class GraphExample:
    """A graph file and the answer of `vizggml alloc --json` to it."""

    text: str
    answer: str


def graph_example() -> GraphExample:
    """relu(W x + b), as `ggml.write_graph` writes it, a tensor a line."""
    c = ggml.Context(mem_size=1 << 20, no_alloc=True)
    w, x, b = (c.new_tensor("F32", ne, name=name) for name, ne in (("W", (3, 2)), ("x", (3,)), ("b", (2,))))
    g = ggml.Graph(c)
    out = ggml.relu(c, ggml.add(c, ggml.mul_mat(c, w, x).set_name("Wx"), b).set_name("Wx+b"))
    g.build_forward_expand(out.set_name("y").set_output())
    document = graph_json(g)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "relu.json"
        path.write_text(json.dumps(document))
        file = load_graph(path)
    report = {**report_of(file), "live": live_report(graph_liveness(file.graph), file.tensors)}
    return GraphExample(laid_out(document), laid_out(report))


LIVE = {
    "bound": "bytes of the largest live set, padded: no plan takes less",
    "no_reuse": "bytes if every tensor had a place of its own",
    "peak_node": "id of the first node with that much live, or null",
}
PLAN = {
    "architecture": "the model's architecture",
    "nodes": "nodes of the graph of a prompt",
    "splits": "into how many runs it is cut",
    "buffers.model": "bytes of weights by buffer type: `CPU_Mapped` lies in the mapped file",
    "buffers.kv": "bytes of each KV cache",
    "buffers.output": "bytes of the logits",
    "buffers.compute": "bytes of the compute buffer",
    "peak": "what stands in the compute buffer when it is fullest: `name`, `op`, `type`, `ne`, `offset` and `size` of "
    "each",
}
FIT = {
    "memories": "for each memory its `size`, the `layers` that it gets (from the first up to the second, not "
    "included), bytes of `model`, `kv`, `output` and `compute` in it, and what is `left`",
    "splits": "into how many runs the graph is cut",
    "copies": "how many tensors cross between them",
}


def plan_example() -> str:
    """The answer of `vizggml plan tiny --json`, of its peak the first two."""
    answer: Any = plan_file("tiny", ContextParams(n_ctx=512, n_batch=2048, n_ubatch=512)).answer()
    return laid_out(answer | {"peak": [*answer["peak"][:2], "..."]}, 3)


def graph_limits() -> dict[str, Any]:
    """What a graph file may hold, from the code that reads one."""
    return {
        "version": VERSION,
        "types": ", ".join(f"`{name}`" for name in TYPES),
        "flags": ", ".join(f"`{name}`" for name in FLAGS),
        "n_ops": len(OPS),
        "max_dims": GGML_MAX_DIMS,
        "max_src": GGML_MAX_SRC,
        "max_params": GGML_MAX_OP_PARAMS // 4,
    }


def laid_out(document: Any, depth: int = 2) -> str:
    """JSON with a line for each item down to `depth`."""
    return wrapped(laid(document, depth, ""))


def wrapped(text: str) -> str:
    """Lines of JSON that are too wide go on, indented, on the next."""
    lines = []
    for line in text.splitlines():
        indent = " " * (len(line) - len(line.lstrip()) + 3)
        whole = re.sub(r'": |\[[^\[\]{}]*\]', lambda match: match[0].replace(" ", TIE), line)
        fitted = wrap(whole, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
        lines += [part.replace(TIE, " ") for part in fitted] or [line]
    return "\n".join(lines)


def laid(value: Any, depth: int, indent: str) -> str:
    if not depth or not isinstance(value, dict | list) or not value:
        return json.dumps(value)
    inner = indent + " "
    if isinstance(value, dict):
        items = [f"{json.dumps(key)}: {laid(item, depth - 1, inner)}" for key, item in value.items()]
        return "{" + f",\n{inner}".join(items) + "}"
    if all(isinstance(item, int | float | str) for item in value):
        return json.dumps(value)
    return "[" + f",\n{inner}".join(laid(item, depth - 1, inner) for item in value) + "]"
