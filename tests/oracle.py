"""Real ggml, from the xllamacpp wheel: contexts, tensors, builders, graphs, the graph allocator.

`Real` builds with ggml's own functions; `tensor_fields` reads a `struct ggml_tensor` back. Nothing here knows of our
code but the names of types and ops.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ctypes import c_bool, c_float, c_int, c_int64, c_size_t, c_uint64, c_void_p
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import xllamacpp

from vizggml.ggml.types import GLU_OPS, TYPES, TYPES_BY_ID, UNARY_OPS

LIB = ctypes.CDLL(str(next(Path(xllamacpp.__file__).parent.glob("*.so"))))
LIB.ggml_tensor_overhead.restype = c_size_t
assert LIB.ggml_tensor_overhead() == 368, "struct ggml_tensor is not the one that this file reads"

FIELDS = struct.Struct("<i4xQ4q4Qi16ii10QQQQ64sQ8x")
"""type, buffer, ne, nb, op, op_params, flags, src, view_src, view_offs, data, name, extra: 336 bytes."""
assert FIELDS.size == 336


class InitParams(ctypes.Structure):
    _fields_ = (("mem_size", c_size_t), ("mem_buffer", c_void_p), ("no_alloc", c_bool))


SIGNATURES: dict[str, tuple[Any, ...]] = {
    "ggml_init": (c_void_p, InitParams),
    "ggml_free": (None, c_void_p),
    "ggml_used_mem": (c_size_t, c_void_p),
    "ggml_get_mem_buffer": (c_void_p, c_void_p),
    "ggml_get_mem_size": (c_size_t, c_void_p),
    "ggml_get_first_tensor": (c_void_p, c_void_p),
    "ggml_get_next_tensor": (c_void_p, c_void_p, c_void_p),
    "ggml_get_tensor": (c_void_p, c_void_p, ctypes.c_char_p),
    "ggml_new_tensor": (c_void_p, c_void_p, c_int, c_int, ctypes.POINTER(c_int64)),
    "ggml_set_name": (c_void_p, c_void_p, ctypes.c_char_p),
    "ggml_set_input": (None, c_void_p),
    "ggml_set_output": (None, c_void_p),
    "ggml_set_param": (None, c_void_p),
    "ggml_nbytes": (c_size_t, c_void_p),
    "ggml_nelements": (c_int64, c_void_p),
    "ggml_nrows": (c_int64, c_void_p),
    "ggml_n_dims": (c_int, c_void_p),
    "ggml_is_contiguous": (c_bool, c_void_p),
    "ggml_is_contiguous_1": (c_bool, c_void_p),
    "ggml_is_contiguous_2": (c_bool, c_void_p),
    "ggml_is_contiguous_rows": (c_bool, c_void_p),
    "ggml_is_permuted": (c_bool, c_void_p),
    "ggml_is_transposed": (c_bool, c_void_p),
    "ggml_is_empty": (c_bool, c_void_p),
    "ggml_can_repeat": (c_bool, c_void_p, c_void_p),
    "ggml_type_size": (c_size_t, c_int),
    "ggml_blck_size": (c_int64, c_int),
    "ggml_row_size": (c_size_t, c_int, c_int64),
    "ggml_type_name": (ctypes.c_char_p, c_int),
    "ggml_is_quantized": (c_bool, c_int),
    "ggml_get_no_alloc": (c_bool, c_void_p),
    "ggml_reset": (None, c_void_p),
    "ggml_op_name": (ctypes.c_char_p, c_int),
    "ggml_unary_op_name": (ctypes.c_char_p, c_int),
    "ggml_glu_op_name": (ctypes.c_char_p, c_int),
    "ggml_op_desc": (ctypes.c_char_p, c_void_p),
    "ggml_new_graph_custom": (c_void_p, c_void_p, c_size_t, c_bool),
    "ggml_graph_overhead_custom": (c_size_t, c_size_t, c_bool),
    "ggml_graph_overhead": (c_size_t,),
    "ggml_build_forward_expand": (None, c_void_p, c_void_p),
    "ggml_build_forward_order": (None, c_void_p, c_void_p),
    "ggml_build_forward_select": (c_void_p, c_void_p, ctypes.POINTER(c_void_p), c_int, c_int),
    "ggml_graph_add_node": (None, c_void_p, c_void_p),
    "ggml_hash_size": (c_size_t, c_size_t),
    "ggml_backend_cpu_buffer_type": (c_void_p,),
    "ggml_backend_buffer_get_base": (c_void_p, c_void_p),
    "ggml_backend_buffer_get_size": (c_size_t, c_void_p),
    "ggml_backend_buffer_free": (None, c_void_p),
    "ggml_backend_alloc_ctx_tensors_from_buft": (c_void_p, c_void_p, c_void_p),
    "ggml_backend_alloc_ctx_tensors_from_buft_size": (c_size_t, c_void_p, c_void_p),
    "ggml_gallocr_new": (c_void_p, c_void_p),
    "ggml_gallocr_free": (None, c_void_p),
    "ggml_gallocr_reserve": (c_bool, c_void_p, c_void_p),
    "ggml_gallocr_alloc_graph": (c_bool, c_void_p, c_void_p),
    "ggml_gallocr_get_buffer_size": (c_size_t, c_void_p, c_int),
}
for _name, (_result, *_arguments) in SIGNATURES.items():
    getattr(LIB, _name).restype = _result
    getattr(LIB, _name).argtypes = _arguments

OP_NAMES: list[str] = []
while "GLU" not in OP_NAMES:
    OP_NAMES.append(LIB.ggml_op_name(len(OP_NAMES)).decode())


@dataclass(frozen=True, slots=True)
class Fields:
    """A `struct ggml_tensor`; `src`, `view_src`, `data`, `buffer` are addresses, 0 for none."""

    type: str
    buffer: int
    ne: tuple[int, ...]
    nb: tuple[int, ...]
    op: str
    op_params: tuple[int, ...]
    flags: int
    src: tuple[int, ...]
    view_src: int
    view_offs: int
    data: int
    name: str

    @property
    def desc(self) -> str:
        if self.op == "UNARY":
            return UNARY_OPS[self.op_params[0]]
        return GLU_OPS[self.op_params[0]] if self.op == "GLU" else self.op


def tensor_fields(t: int) -> Fields:
    f = FIELDS.unpack(ctypes.string_at(t, FIELDS.size))
    src = list(f[28:38])
    while src and not src[-1]:
        src.pop()
    name = f[41].split(b"\0")[0].decode("utf-8", "replace")
    return Fields(
        TYPES_BY_ID[f[0]].name, f[1], f[2:6], f[6:10], OP_NAMES[f[10]], f[11:27], f[27], tuple(src), *f[38:41], name
    )


def set_sources(t: int, src: Sequence[int]) -> None:
    """Write the source slots of a tensor, as a scheduler does for a node that only keeps its sources."""
    ctypes.memmove(t + 152, struct.pack(f"<{len(src)}Q", *src), 8 * len(src))


class Real:
    """Builds in a real context; tensors are addresses. Builders are called by name: `real.op("add", a, b)`."""

    def __init__(self, mem_size: int = 16 << 20, no_alloc: bool = True) -> None:
        self.ctx = LIB.ggml_init(InitParams(mem_size, None, no_alloc))

    def used_mem(self) -> int:
        return int(LIB.ggml_used_mem(self.ctx))

    def new_tensor(self, type: str, ne: Sequence[int], name: str = "") -> int:
        t = int(LIB.ggml_new_tensor(self.ctx, TYPES[type].id, len(ne), (c_int64 * len(ne))(*ne)))
        if name:
            LIB.ggml_set_name(t, name.encode())
        return t

    def op(self, name: str, *arguments: float | None) -> int:
        """`ggml_<name>(ctx, ...)`: floats as float, other numbers as 64 bits, None as NULL."""
        function = LIB[f"ggml_{name}"]
        function.restype = c_void_p
        converted = [c_float(a) if isinstance(a, float) else c_int64(a or 0) for a in arguments]
        return int(function(c_void_p(self.ctx), *converted))

    def graph(self, size: int = 2048) -> RealGraph:
        return RealGraph(int(LIB.ggml_new_graph_custom(self.ctx, size, False)))

    def free(self) -> None:
        LIB.ggml_free(self.ctx)


class RealGraph:
    """`struct ggml_cgraph` begins with size, n_nodes, n_leafs, then nodes, grads, grad_accs, leafs, use_counts."""

    def __init__(self, address: int) -> None:
        self.address = address

    def build_forward_expand(self, t: int) -> None:
        LIB.ggml_build_forward_expand(self.address, t)

    def build_forward_order(self, t: int) -> None:
        LIB.ggml_build_forward_order(self.address, t)

    def add_node(self, t: int) -> None:
        LIB.ggml_graph_add_node(self.address, t)

    def _head(self) -> tuple[int, ...]:
        return struct.unpack("<3i4x8Q", ctypes.string_at(self.address, 80))

    def _pointers(self, address: int, n: int) -> list[int]:
        return list((c_uint64 * n).from_address(address)) if n else []

    @property
    def nodes(self) -> list[int]:
        head = self._head()
        return self._pointers(head[3], head[1])

    @property
    def leafs(self) -> list[int]:
        head = self._head()
        return self._pointers(head[6], head[2])

    def set_order(self, order: int) -> None:
        """`enum ggml_cgraph_eval_order`: 0 left to right, 1 right to left; it follows the hash set."""
        ctypes.memmove(self.address + 80, struct.pack("<i", order), 4)

    def use_count(self, t: int) -> int:
        head = self._head()
        use_counts, size, keys = head[7], head[8], head[10]
        slot = (t >> 4) % size
        table = (c_uint64 * size).from_address(keys)
        while table[slot] != t:
            slot = (slot + 1) % size
        return int((ctypes.c_int32 * size).from_address(use_counts)[slot])


class BufferType:
    """ggml's CPU buffer type with another alignment and maximum size; it remembers the buffers it gave, in order."""

    def __init__(self, alignment: int = 32, max_size: int = 2**64 - 1) -> None:
        words = list((c_uint64 * 10).from_address(LIB.ggml_backend_cpu_buffer_type()))
        self.buffers: list[int] = []
        alloc = ctypes.CFUNCTYPE(c_void_p, c_void_p, c_size_t)(words[1])
        answer = ctypes.CFUNCTYPE(c_size_t, c_void_p)

        def give(buft: int, size: int) -> int:
            self.buffers.append(int(alloc(buft, size)))
            return self.buffers[-1]

        # get_name, alloc_buffer, (for several), get_alignment, get_max_size, ..., then device and context
        assert not words[2]
        assert not words[4]
        self._callbacks = (
            ctypes.CFUNCTYPE(c_void_p, c_void_p, c_size_t)(give),
            answer(lambda buft: alignment),
            answer(lambda buft: max_size),
        )
        for at, callback in zip((1, 3, 4), self._callbacks, strict=True):
            words[at] = ctypes.cast(callback, c_void_p).value or 0
        self._struct = (c_uint64 * 10)(*words)
        self.address = ctypes.addressof(self._struct)

    def place_of(self, t: Fields) -> tuple[int, int]:
        """Chunk and offset of a tensor in the buffers given."""
        chunk = self.buffers.index(t.buffer)
        return chunk, t.data - int(LIB.ggml_backend_buffer_get_base(t.buffer))

    def sizes(self) -> list[int]:
        return [int(LIB.ggml_backend_buffer_get_size(b)) for b in self.buffers]


@contextmanager
def allocated(graph: RealGraph, alignment: int = 32, max_size: int = 2**64 - 1) -> Iterator[BufferType]:
    """The graph with its tensors placed by ggml_gallocr, until the end of the `with`."""
    buft = BufferType(alignment, max_size)
    galloc = LIB.ggml_gallocr_new(buft.address)
    assert LIB.ggml_gallocr_alloc_graph(galloc, graph.address)
    try:
        yield buft
    finally:
        LIB.ggml_gallocr_free(galloc)


def all_tensors(graph: RealGraph) -> list[int]:
    """Nodes, leafs, and whatever they read or look into."""
    found: dict[int, None] = {}
    todo = [*graph.leafs, *graph.nodes]
    while todo:
        t = todo.pop()
        if t and t not in found:
            found[t] = None
            fields = tensor_fields(t)
            todo += [*fields.src, fields.view_src]
    return sorted(found)


def graph_json(graph: RealGraph) -> dict[str, Any]:
    """A real graph as a graph file, before it is allocated: what has data already is external. Ids are not dense."""
    tensors = all_tensors(graph)
    ids = {t: 3 * i + 1 for i, t in enumerate(tensors)}
    flags = ("INPUT", "OUTPUT", "PARAM", "LOSS")
    records = []
    for t in tensors:
        f = tensor_fields(t)
        records.append(
            {
                "id": ids[t],
                "name": f.name,
                "type": f.type,
                "ne": list(f.ne),
                "nb": list(f.nb),
                "op": f.op,
                "desc": f.desc,
                "op_params": list(f.op_params),
                "src": [ids[s] if s else None for s in f.src],
                "view_src": ids[f.view_src] if f.view_src else None,
                "view_offs": f.view_offs,
                "flags": [name for i, name in enumerate(flags) if f.flags & 1 << i],
                "external": bool(f.data),
            }
        )
    return {
        "vizggml_graph": 1,
        "tensors": records,
        "nodes": [ids[t] for t in graph.nodes],
        "leafs": [ids[t] for t in graph.leafs],
    }
