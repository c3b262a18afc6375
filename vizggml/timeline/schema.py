"""What each field of each kind of event is, read from the event classes: how it is stored, and how it is shown."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, get_type_hints

from vizggml.events import (
    KINDS,
    AllocatorId,
    BufferId,
    CacheId,
    ContextId,
    Dims,
    Event,
    GallocId,
    GraphId,
    Seq,
    TensorId,
)

SCHEMA = 2

ID_TYPES: dict[Any, str] = {
    TensorId: "tensor",
    ContextId: "context",
    GraphId: "graph",
    BufferId: "buffer",
    AllocatorId: "allocator",
    GallocId: "galloc",
    CacheId: "cache",
}
"""Each has its own dense numbering in a trace."""

PLAIN_TYPES: dict[Any, str] = {
    int: "int",
    float: "float",
    bool: "bool",
    str: "str",
    Seq: "seq",
    Dims: "dims",
    tuple[int, ...]: "ints",
    tuple[float, ...]: "floats",
    tuple[str, ...]: "strs",
    tuple[TensorId, ...]: "tensors",
}

BYTES = {
    *(
        "asked",
        "available",
        "freed_size",
        "mem_size",
        "nbytes",
        "nbytes_k",
        "nbytes_read",
        "nbytes_v",
        "padding",
        "page_size",
    ),
    *("size", "size_before", "taken", "used_mem", "work_size"),
}
OFFSETS = {"asked_offs", "file_offset", "freed_offset", "offset", "view_offs"}
SHOWN: dict[str, str] = {
    **dict.fromkeys(BYTES, "bytes"),
    **dict.fromkeys(OFFSETS, "offset"),
    "ns": "ns",
    "flags": "flags",
}
SHOWN_IN_KIND: dict[tuple[str, str], str] = {
    ("GraphCreated", "size"): "int",
    ("ContextOverflow", "needed"): "bytes",
}
"""An int is shown as what it counts; a field's name says so."""

STORED = {
    "int": "i8",
    "bytes": "i8",
    "offset": "i8",
    "ns": "i8",
    "flags": "i8",
    "dims": "i8",
    "ints": "i8",
    "float": "f8",
    "floats": "f8",
    "bool": "u1",
}
"""How a trace stores a field; ids, event numbers and strings are i4."""

LISTS = {"ints": "int", "floats": "float", "strs": "str", "tensors": "tensor"}
"""A list is stored as `.ptr` and `.val`; row r is val[ptr[r]:ptr[r + 1]]."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a kind of event.

    `ftype` is what the player's tables and sentences show it as; `dtype` how a trace stores one value of it.
    """

    name: str
    ftype: str

    @property
    def dtype(self) -> str:
        """How one value is stored in a trace file: `i4`, `i8`, `f8` or `u1`."""
        return STORED.get(self.ftype, "i4")

    @property
    def is_list(self) -> bool:
        """Whether an event holds a list of them."""
        return self.ftype in LISTS

    @property
    def item(self) -> str:
        """The type of one value: of the items, for a list."""
        return LISTS.get(self.ftype, self.ftype)

    @property
    def is_id(self) -> bool:
        """Whether it numbers things: a tensor, a graph, a buffer, ..."""
        return self.item in ID_TYPES.values()


def _read_fields(kind: type[Event]) -> tuple[Field, ...]:
    hints = get_type_hints(kind)
    own = [f.name for f in fields(kind) if f.name not in ("seq", "node", "cause")]
    return tuple(Field(name, _ftype(kind.__name__, name, hints[name])) for name in own)


def _ftype(kind: str, name: str, hint: Any) -> str:
    if hint in ID_TYPES:
        return ID_TYPES[hint]
    if hint not in PLAIN_TYPES:
        raise TypeError(f"{kind}.{name}: an event cannot hold {hint}")
    ftype = PLAIN_TYPES[hint]
    if ftype != "int":
        return ftype
    return SHOWN_IN_KIND.get((kind, name)) or SHOWN.get(name, "int")


_FIELDS: dict[str, tuple[Field, ...]] = {kind.__name__: _read_fields(kind) for kind in KINDS}


def fields_of(kind: type[Event]) -> tuple[Field, ...]:
    """The fields of one kind of event, in their order; `seq`, `node` and `cause` are not among them."""
    return _FIELDS[kind.__name__]


KIND_NAMES: tuple[str, ...] = tuple(kind.__name__ for kind in KINDS)
KIND_INDEX: dict[str, int] = {name: index for index, name in enumerate(KIND_NAMES)}


def columns_of(kind: type[Event]) -> dict[str, str]:
    """The columns that a trace keeps for one kind of event, and the dtype of each."""
    columns: dict[str, str] = {}
    for field in fields_of(kind):
        name = f"k.{kind.__name__}.{field.name}"
        if field.is_list:
            columns[f"{name}.ptr"] = "u4"
            columns[f"{name}.val"] = STORED.get(field.item, "i4")
        else:
            columns[name] = field.dtype
    return columns


TRACE_COLUMNS: dict[str, str] = {"ev.kind": "u1", "ev.node": "i4", "ev.cause": "i4"}
for _kind in KINDS:
    TRACE_COLUMNS |= columns_of(_kind)
VALUE_COLUMNS: dict[str, str] = {
    "v.event": "i4",
    "v.tensor": "i4",
    "v.stats": "f8",
    "v.bins": "u4",
    "v.grid": "i4",
    "v.ptr": "u4",
    "v.val": "f4",
}
"""Values, where asked for: row r was taken when `v.event[r]` was the next event, and `Values` says what it is.

`v.grid` has the rows and columns of the grid, `v.val[v.ptr[r]:v.ptr[r + 1]]` its cells row by row.
"""

BLOCK_COLUMNS: dict[str, str] = {"q.tensor": "i4", "q.type": "i4", "q.ptr": "u4", "q.val": "u1"}
"""With values: the first bytes of each quantized leaf that a node read, `q.val[q.ptr[r]:q.ptr[r + 1]]`, whole blocks of
the type whose name is string `q.type[r]`."""

TRACE_COLUMNS |= VALUE_COLUMNS | BLOCK_COLUMNS
"""Every column of a trace file, and its dtype. Columns without a row are left out of the file."""

WIDTHS: dict[str, int] = {f"k.{k.__name__}.{f.name}": 4 for k in KINDS for f in fields_of(k) if f.ftype == "dims"}
WIDTHS |= {"v.stats": 5, "v.bins": 32, "v.grid": 2}
"""Columns with more than one item a row."""
