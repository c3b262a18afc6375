"""Whole graphs planned and computed by real ggml, from the xllamacpp wheel, over a copy of our memory."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from tests.oracle_kernels import LIB, InitParams
from vizggml.ggml.cgraph import Graph
from vizggml.ggml.tensor import Address, Memory, Tensor

NB, OP, FLAGS, SRC, VIEW_SRC, DATA, EXTRA = 48, 80, 148, 152, 232, 248, 320
"""Offsets in `struct ggml_tensor`, 336 bytes, ggml/include/ggml.h."""


class CPlan(ctypes.Structure):
    """`struct ggml_cplan`, ggml/include/ggml-cpu.h."""

    _fields_ = (
        ("work_size", ctypes.c_size_t),
        ("work_data", ctypes.c_void_p),
        ("n_threads", ctypes.c_int),
        ("threadpool", ctypes.c_void_p),
        ("abort_callback", ctypes.c_void_p),
        ("abort_callback_data", ctypes.c_void_p),
        ("use_ref", ctypes.c_bool),
    )


LIB.ggml_graph_plan.restype = CPlan
LIB.ggml_graph_plan.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
LIB.ggml_new_graph_custom.restype = ctypes.c_void_p
LIB.ggml_new_graph_custom.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_bool)
LIB.ggml_op_name.restype = ctypes.c_char_p
LIB.ggml_unary_op_name.restype = ctypes.c_char_p
LIB.ggml_glu_op_name.restype = ctypes.c_char_p

_op_numbers: dict[str, int] = {}


def op_number(op: str) -> int:
    """The wheel's number of an op; VIEW and GLU are in both versions, so the search ends."""
    while op not in _op_numbers:
        i = len(_op_numbers)
        _op_numbers[LIB.ggml_op_name(i).decode()] = i
    return _op_numbers[op]


@dataclass
class Mirror:
    """Real ggml's copy of a graph. `graph` is its address."""

    ctx: int
    graph: int
    memories: dict[int, Memory]

    def plan(self, n_threads: int) -> tuple[int, int]:
        """(work size, threads) of `ggml_graph_plan`."""
        plan = LIB.ggml_graph_plan(self.graph, n_threads, None)
        return int(plan.work_size), int(plan.n_threads)

    def compute(self, n_threads: int = 1) -> None:
        assert LIB.ggml_graph_compute_with_ctx(self.ctx, self.graph, n_threads) == 0

    def array(self, t: Tensor) -> NDArray[Any]:
        """What real ggml has at the place of `t`."""
        assert t.data is not None
        there = Tensor(t.type, t.ne, t.nb, data=Address(self.memories[id(t.data.memory)], t.data.offset))
        return there.array()


@contextmanager
def mirrored(g: Graph, size: int = 4096) -> Iterator[Mirror]:
    """Every tensor of `g` made again in real ggml, its bytes in a copy of the memory it is in (if it is in any)."""
    ctx = LIB.ggml_init(InitParams((len(g.nodes) + len(g.leafs) + 16) * 400 + size * 64 + (64 << 20), None, True))
    memories: dict[int, Memory] = {}
    made: dict[int, int] = {}
    try:
        graph = LIB.ggml_new_graph_custom(ctx, size, False)
        for t in (*g.leafs, *g.nodes):
            made[t.id] = _make(ctx, t, memories)
        for t in g.nodes:
            src = [0 if s is None else made[s.id] for s in t.src]
            ctypes.memmove(made[t.id] + SRC, struct.pack(f"<{len(src)}Q", *src), 8 * len(src))
            if t.view_src is not None and t.view_src.id in made:
                ctypes.memmove(made[t.id] + VIEW_SRC, struct.pack("<QQ", made[t.view_src.id], t.view_offs), 16)
        for t in g.nodes:
            LIB.ggml_build_forward_expand(graph, made[t.id])
        yield Mirror(ctx, graph, memories)
    finally:
        LIB.ggml_free(ctx)


def _make(ctx: int, t: Tensor, memories: dict[int, Memory]) -> int:
    made: int = LIB.ggml_new_tensor(ctx, t.type.id, 4, (ctypes.c_int64 * 4)(*t.ne))
    ctypes.memmove(made + NB, struct.pack("<4Q", *t.nb), 32)
    params = struct.pack(f"<{len(t.op_params)}i", *t.op_params)
    ctypes.memmove(made + OP, struct.pack("<i", op_number(t.op)) + params, 4 + len(params))
    ctypes.memmove(made + FLAGS, struct.pack("<i", t.flags), 4)
    if t.data is not None:
        memory = t.data.memory
        copy = memories.get(id(memory))
        if copy is None:
            copy = memories[id(memory)] = memory.copy()
        ctypes.memmove(made + DATA, struct.pack("<Q", copy.ctypes.data + t.data.offset), 8)
    return made
