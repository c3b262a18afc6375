"""One node computed by real ggml, from the xllamacpp wheel: the same op, shapes, strides, parameters and bytes."""

from __future__ import annotations

import ctypes
import struct

import numpy as np
from numpy.typing import NDArray

from tests.oracle_quants import LIB
from vizggml.ggml.tensor import Tensor
from vizggml.ggml.types import OPS

NB, OP, SRC, DATA = 48, 80, 152, 248
"""Offsets in `struct ggml_tensor`, 336 bytes, ggml/include/ggml.h."""


class InitParams(ctypes.Structure):
    _fields_ = (("mem_size", ctypes.c_size_t), ("mem_buffer", ctypes.c_void_p), ("no_alloc", ctypes.c_bool))


LIB.ggml_init.restype = ctypes.c_void_p
LIB.ggml_init.argtypes = (InitParams,)
LIB.ggml_free.argtypes = (ctypes.c_void_p,)
LIB.ggml_new_tensor.restype = ctypes.c_void_p
LIB.ggml_new_tensor.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_int64))
LIB.ggml_new_graph.restype = ctypes.c_void_p
LIB.ggml_new_graph.argtypes = (ctypes.c_void_p,)
LIB.ggml_build_forward_expand.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
LIB.ggml_graph_compute_with_ctx.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)
LIB.ggml_cpu_init.restype = None
LIB.ggml_cpu_init()


def compute(dst: Tensor, n_threads: int = 1) -> NDArray[np.float32]:
    """What real ggml puts into `dst`, float32 (ne3, ne2, ne1, ne0), contiguous. Sources are read where they lie."""
    out = np.full(dst.ne[::-1], np.nan, np.float32)
    ctx = LIB.ggml_init(InitParams(64 << 20, None, True))
    try:
        pointers = [0 if t is None else _mirror(ctx, t) for t in dst.src]
        node = _make(ctx, dst, out.ctypes.data)
        params = struct.pack(f"<{len(dst.op_params)}i", *dst.op_params)
        ctypes.memmove(node + OP, struct.pack("<i", _op_number(dst.op)) + params, 4 + len(params))
        ctypes.memmove(node + SRC, struct.pack(f"<{len(pointers)}Q", *pointers), 8 * len(pointers))
        graph = LIB.ggml_new_graph(ctx)
        LIB.ggml_build_forward_expand(graph, node)
        assert LIB.ggml_graph_compute_with_ctx(ctx, graph, n_threads) == 0
    finally:
        LIB.ggml_free(ctx)
    return out


def _op_number(op: str) -> int:
    LIB.ggml_op_name.restype = ctypes.c_char_p
    return next(i for i in range(len(OPS) + 16) if LIB.ggml_op_name(i).decode() == op)


def _make(ctx: int, t: Tensor, data: int) -> int:
    made: int = LIB.ggml_new_tensor(ctx, t.type.id, 4, (ctypes.c_int64 * 4)(*t.ne))
    ctypes.memmove(made + DATA, struct.pack("<Q", data), 8)
    return made


def _mirror(ctx: int, t: Tensor) -> int:
    assert t.data is not None
    made = _make(ctx, t, t.data.memory.ctypes.data + t.data.offset)
    ctypes.memmove(made + NB, struct.pack("<4Q", *t.nb), 32)
    return made


def nmse(ours: NDArray[np.float32], theirs: NDArray[np.float32]) -> float:
    """Mean square error over the mean square of the reference."""
    difference = ours.astype(np.float64) - theirs
    return float((difference**2).sum() / max(1e-30, (theirs.astype(np.float64) ** 2).sum()))
