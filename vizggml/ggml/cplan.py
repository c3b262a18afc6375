"""The compute plan: how many tasks each node is split into, and how much scratch the graph needs.

One work buffer serves all nodes, one after the other, so the plan keeps the maximum. Some formulas depend on the
instruction set that ggml was built for (the tiled matrix product's workspace, buffer types with kernels of their own)
and on the flash-attention tile: a plan states both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from vizggml.errors import VizggmlError
from vizggml.events import NO_TENSOR, NodePlanned, PlanEnd, PlanMaximum, bus
from vizggml.ggml.kernels.params import FA_TILE_KV, FA_TILE_Q
from vizggml.ggml.tensor import Memory, Tensor
from vizggml.ggml.types import CACHE_LINE_SIZE, TYPES, pad

if TYPE_CHECKING:
    from vizggml.ggml.cgraph import Graph
    from vizggml.ggml.threadpool import ThreadPool

GGML_DEFAULT_N_THREADS = 4
GGML_N_TASKS_MAX = -1
GGML_IM2COL_WORK_SIZE = 16 * 1024 * 1024
GGML_SOFT_MAX_UNROLL = 4
TILED_WS_SLOT = 512 * 1024
"""Bytes of one thread's workspace in the tiled matrix product (ggml/src/ggml-cpu/tiled/tiled-kernel.h)."""

F32_SIZE = 4
MMID_ROW_MAPPING_SIZE = 8
TILED_TYPES = frozenset(
    "Q6_K Q5_K Q4_K Q3_K Q2_K IQ4_XS IQ2_XXS IQ2_XS IQ2_S IQ3_XXS IQ3_S IQ1_S IQ1_M".split(),
)
"""`ggml_tiled_supported`, ggml/src/ggml-cpu/tiled/tiled.cpp."""

AMX_TYPES = frozenset("Q4_0 Q4_1 Q8_0 Q4_K Q5_K Q6_K IQ4_XS".split())


@dataclass(frozen=True, slots=True)
class Isa:
    """What of the instruction set the plan depends on.

    `tiled`: the tiled matrix product is compiled in (x86 with AVX or better). `extra_bufts`: buffer types that bring
    their own matrix product, in the order in which ggml asks them.
    """

    name: str
    tiled: bool
    extra_bufts: tuple[str, ...]


AVX512_VNNI = Isa("x86-64 AVX512 VNNI", True, ("CPU_REPACK",))
AVX512_AMX = Isa("x86-64 AVX512 VNNI AMX", True, ("AMX", "CPU_REPACK"))
AVX2 = Isa("x86-64 AVX2", True, ("CPU_REPACK",))
SSE42 = Isa("x86-64 SSE4.2", False, ("CPU_REPACK",))
NEON = Isa("arm64 NEON", False, ("CPU_REPACK",))
ISAS = {isa.name: isa for isa in (AVX512_VNNI, AVX512_AMX, AVX2, SSE42, NEON)}


@dataclass(eq=False, slots=True)
class Plan:
    """How a graph is computed: threads and scratch bytes of each node. `struct ggml_cplan`, ggml/include/ggml-cpu.h.

    `n_tasks` and `work_sizes` are in the order of the graph's nodes; `work_size` is their maximum and the padding that
    keeps threads off each other's cache lines.
    """

    graph: Graph
    n_threads: int
    work_size: int
    n_tasks: tuple[int, ...]
    work_sizes: tuple[int, ...]
    isa: Isa
    flash_tile: tuple[int, int]
    threadpool: ThreadPool | None = None
    tapes: dict[object, object] = field(default_factory=dict, repr=False)
    _work_data: Memory | None = field(default=None, repr=False)

    @property
    def work_data(self) -> Memory:
        """The scratch bytes, allocated when first asked for."""
        if self._work_data is None:
            self._work_data = np.empty(self.work_size, np.uint8)
        return self._work_data


def _ops(names: str) -> frozenset[str]:
    return frozenset(names.split())


SINGLE_TASK_OPS = _ops(
    """NONE SUB SQR SQRT LOG SIN COS SUM SUM_ROWS MEAN ARGMAX REPEAT REPEAT_BACK LEAKY_RELU GET_ROWS SET_ROWS SCALE SET
    RESHAPE VIEW PERMUTE TRANSPOSE GET_ROWS_BACK DIAG CLAMP POOL_1D POOL_2D POOL_2D_BACK WIN_PART WIN_UNPART
    GET_REL_POS"""
)
ALL_THREADS_OPS = _ops(
    """CPY DUP CONT ADD ADD_ID ADD1 ACC CUMSUM TRI FILL COUNT_EQUAL SOLVE_TRI GATED_DELTA_NET DSV4_HC_COMB DSV4_HC_PRE
    DSV4_HC_POST GLU SILU_BACK MUL DIV NORM RMS_NORM RMS_NORM_BACK L2_NORM GROUP_NORM CONCAT MUL_MAT MUL_MAT_ID OUT_PROD
    DIAG_MASK_ZERO DIAG_MASK_INF SOFT_MAX_BACK ROPE ROPE_BACK ADD_REL_POS IM2COL IM2COL_BACK IM2COL_3D CONV_2D CONV_3D
    CONV_2D_DW COL2IM_1D CONV_TRANSPOSE_1D CONV_TRANSPOSE_2D UPSCALE PAD PAD_REFLECT_1D ROLL ARANGE TIMESTEP_EMBEDDING
    ARGSORT TOP_K FLASH_ATTN_EXT FLASH_ATTN_BACK SSM_CONV SSM_SCAN LIGHTNING_INDEXER CROSS_ENTROPY_LOSS
    CROSS_ENTROPY_LOSS_BACK OPT_STEP_ADAMW OPT_STEP_SGD"""
)
ALL_THREADS_UNARY = _ops("GELU GELU_ERF GELU_QUICK SILU XIELU")
CUSTOM_OPS = _ops("MAP_CUSTOM1 MAP_CUSTOM2 MAP_CUSTOM3 CUSTOM")
PER_HEAD_OPS = _ops("RWKV_WKV6 GATED_LINEAR_ATTN RWKV_WKV7")


def get_n_tasks(node: Tensor, n_threads: int) -> int:
    """How many threads share the node. `ggml_get_n_tasks`, ggml/src/ggml-cpu/ggml-cpu.c."""
    op = node.op
    if node.is_empty or op in SINGLE_TASK_OPS:
        return 1
    if op in ALL_THREADS_OPS:
        return n_threads
    if op == "UNARY":
        return n_threads if node.op_desc in ALL_THREADS_UNARY else 1
    if op == "SOFT_MAX":
        return min(n_threads, _src(node, 0).nrows)
    if op in PER_HEAD_OPS:
        return min(n_threads, _src(node, 1).ne[1])
    if op in CUSTOM_OPS:
        asked = node.op_param_i32(2)
        return n_threads if asked == GGML_N_TASKS_MAX else min(asked, n_threads)
    raise VizggmlError(f"node {node.name!r}: op {op} has no task count")


def _src(node: Tensor, i: int) -> Tensor:
    src = node.src[i] if i < len(node.src) else None
    if src is None:
        raise VizggmlError(f"node {node.name!r}: op {node.op} needs a source {i}, it has none")
    return src


Sized = tuple[int, str]
"""Bytes of scratch, and the formula with its numbers."""

NOTHING: Sized = (0, "")


def _rows_f32(ne0: int, n_tasks: int) -> Sized:
    return F32_SIZE * ne0 * n_tasks, f"F32 4 B x row {ne0} x tasks {n_tasks}"


def _cpy(node: Tensor, n_tasks: int) -> Sized:
    src0 = _src(node, 0)
    src1 = node.src[1] if len(node.src) > 1 else None
    through_f32 = {("F16", "BF16"), ("BF16", "F16"), ("F32", "I32"), ("I32", "F32")}
    if node.type.is_quantized or (src1 is not None and (src0.type.name, src1.type.name) in through_f32):
        return _rows_f32(node.ne[0], n_tasks)
    return NOTHING


def _add(node: Tensor, n_tasks: int) -> Sized:
    src0 = _src(node, 0)
    return _rows_f32(src0.ne[0], n_tasks) if src0.type.is_quantized else NOTHING


def _acc(node: Tensor, n_tasks: int) -> Sized:
    return _rows_f32(_src(node, 1).ne[0], n_tasks) if _src(node, 0).type.is_quantized else NOTHING


def _count_equal(node: Tensor, n_tasks: int) -> Sized:
    size = node.type.type_size
    return size * n_tasks, f"{node.type} {size} B x tasks {n_tasks}"


def _out_prod(node: Tensor, n_tasks: int) -> Sized:
    src0 = _src(node, 0)
    return _rows_f32(src0.ne[0], n_tasks) if src0.type.is_quantized or src0.type.name == "F16" else NOTHING


def _set_rows(node: Tensor, n_tasks: int) -> Sized:
    src0 = _src(node, 0)
    if src0.type.name == "F16" and node.type.name != "F16":
        return _rows_f32(src0.ne[0], n_tasks)
    return NOTHING


def _one_row(node: Tensor, n_tasks: int) -> Sized:
    return _rows_f32(node.ne[0], n_tasks)


def _conv_transpose_1d(node: Tensor, n_tasks: int) -> Sized:
    a, b = _src(node, 0), _src(node, 1)
    size = 4 if a.type.name == "F32" else 2
    kernel, data = a.ne[0] * a.ne[1] * a.ne[2], b.ne[0] * b.ne[1]
    return size * (kernel + data), f"{size} B x (kernel {kernel} + data {data})"


def _conv_transpose_2d(node: Tensor, n_tasks: int) -> Sized:
    a, b = _src(node, 0), _src(node, 1)
    size = a.type.type_size
    return size * (a.nelements + b.nelements), f"{size} B x (kernel {a.nelements} + data {b.nelements})"


def _im2col(node: Tensor, n_tasks: int) -> Sized:
    return GGML_IM2COL_WORK_SIZE, "GGML_IM2COL_WORK_SIZE 16 MiB"


def _top_k(node: Tensor, n_tasks: int) -> Sized:
    ne0 = _src(node, 0).ne[0]
    return 4 * ne0 * n_tasks, f"I32 4 B x row {ne0} x tasks {n_tasks}"


def _flash_attn_back(node: Tensor, n_tasks: int) -> Sized:
    k = _src(node, 1)
    if k.type.name not in ("F32", "F16", "BF16"):
        return NOTHING
    width = 2 * max(_src(node, 0).ne[0], pad(k.ne[1], GGML_SOFT_MAX_UNROLL))
    return 2 * F32_SIZE * width * n_tasks, f"2 x F32 4 B x {width} x tasks {n_tasks}"


def _cross_entropy_loss(node: Tensor, n_tasks: int) -> Sized:
    size, ne0 = node.type.type_size, _src(node, 0).ne[0]
    return size * (n_tasks + ne0 * n_tasks), f"{size} B x (tasks {n_tasks} + row {ne0} x tasks {n_tasks})"


def _gated_delta_net(node: Tensor, n_tasks: int) -> Sized:
    s_v = _src(node, 2).ne[0]
    per_thread = s_v + (s_v * s_v if node.op_param_i32(0) > 1 else 0)
    return F32_SIZE * per_thread * n_tasks, f"F32 4 B x {per_thread} x tasks {n_tasks}"


def _lightning_indexer(node: Tensor, n_tasks: int) -> Sized:
    return _rows_f32(_src(node, 1).ne[0], n_tasks)


WORK_SIZES: dict[str, Callable[[Tensor, int], Sized]] = {
    "CPY": _cpy,
    "DUP": _cpy,
    "ADD": _add,
    "ADD_ID": _add,
    "ADD1": _add,
    "ACC": _acc,
    "COUNT_EQUAL": _count_equal,
    "OUT_PROD": _out_prod,
    "SET_ROWS": _set_rows,
    "SOFT_MAX": _one_row,
    "ROPE": _one_row,
    "ROPE_BACK": _one_row,
    "CONV_TRANSPOSE_1D": _conv_transpose_1d,
    "CONV_TRANSPOSE_2D": _conv_transpose_2d,
    "CONV_2D": _im2col,
    "CONV_3D": _im2col,
    "TOP_K": _top_k,
    "FLASH_ATTN_BACK": _flash_attn_back,
    "CROSS_ENTROPY_LOSS": _cross_entropy_loss,
    "GATED_DELTA_NET": _gated_delta_net,
    "LIGHTNING_INDEXER": _lightning_indexer,
}
"""The ops whose scratch depends on the node and its tasks alone. An op that is in no table needs none."""


def tiled_wdata_size(n_tasks: int, node: Tensor, isa: Isa) -> Sized:
    """`ggml_tiled_wdata_size`, ggml/src/ggml-cpu/tiled/tiled.cpp."""
    if not isa.tiled or _src(node, 0).type.name not in TILED_TYPES:
        return NOTHING
    return 64 + n_tasks * TILED_WS_SLOT, f" + tiled (64 + tasks {n_tasks} x {TILED_WS_SLOT})"


def _mul_mat(node: Tensor, n_tasks: int, isa: Isa) -> Sized:
    src0, src1 = _src(node, 0), _src(node, 1)
    vec_dot_type = _vec_dot_type(src0)
    size, terms = 0, f"activations are {vec_dot_type} already: 0"
    if src1.type.name != vec_dot_type:
        size = TYPES[vec_dot_type].row_size(src1.nelements)
        terms = f"activations as {vec_dot_type}: {src1.nelements} elements = {size}, to a multiple of 64"
    tiled, tiled_terms = tiled_wdata_size(n_tasks, node, isa)
    return pad(size, 64) + tiled, terms + tiled_terms


def _mul_mat_id(node: Tensor, n_tasks: int, isa: Isa) -> Sized:
    src0, src1, ids = _src(node, 0), _src(node, 1), _src(node, 2)
    vec_dot_type, n_as = _vec_dot_type(src0), src0.ne[2]
    size, terms = 0, ""
    if src1.type.name != vec_dot_type:
        row = TYPES[vec_dot_type].row_size(src1.nelements)
        size, terms = row + 8, f"activations as {vec_dot_type} {row} + 8, "
    counts = n_as * 8 + 8
    rows = n_as * ids.ne[0] * ids.ne[1] * MMID_ROW_MAPPING_SIZE + 8
    chunks = CACHE_LINE_SIZE * n_as + CACHE_LINE_SIZE
    terms += f"row counts {counts}, rows {rows}, chunks {chunks}, to a multiple of 64"
    tiled, tiled_terms = tiled_wdata_size(n_tasks, node, isa)
    return pad(size + counts + rows + chunks, 64) + tiled, terms + tiled_terms


def _vec_dot_type(src0: Tensor) -> str:
    if not src0.type.vec_dot_type:
        raise VizggmlError(f"tensor {src0.name!r}: type {src0.type} has no dot product")
    return src0.type.vec_dot_type


def flash_attn_ext_size(node: Tensor, n_tasks: int, flash_tile: tuple[int, int]) -> Sized:
    """The scratch of FLASH_ATTN_EXT: the larger of prefill's tiles and decode's partial results."""
    tile_q, tile_kv = flash_tile
    n_head, dk, dv = _src(node, 0).ne[2], _src(node, 1).ne[0], _src(node, 2).ne[0]
    tile = tile_q * dk + 2 * tile_q * tile_kv + tile_q * dv + tile_kv * dv + tile_kv * dk
    prefill = F32_SIZE * tile * n_tasks
    decode = F32_SIZE * (n_head * n_tasks * (2 + dv) + n_tasks * (dk + 2 * dv))
    if prefill >= decode:
        return prefill, f"prefill tiles {tile_q} x {tile_kv}, heads of {dk} and {dv}: 4 B x {tile} x tasks {n_tasks}"
    return decode, f"decode: 4 B x tasks {n_tasks} x (heads {n_head} x (2 + {dv}) + {dk} + 2 x {dv})"


def extra_work_size(node: Tensor, isa: Isa) -> Sized | None:
    """Scratch by the rule of a buffer type with its own matrix product, None where no such buffer holds the weights.

    `ggml_cpu_extra_work_size`, ggml/src/ggml-cpu/traits.cpp; `tensor_traits::work_size`, ggml/src/ggml-cpu/repack.cpp,
    ggml/src/ggml-cpu/amx/amx.cpp.
    """
    if node.op not in ("MUL_MAT", "MUL_MAT_ID"):
        return None
    src0, src1 = _src(node, 0), _src(node, 1)
    buft = src0.buffer.buft.name if src0.buffer is not None else ""
    if buft not in isa.extra_bufts:
        return None
    param_type = TYPES[_vec_dot_type(src0)]
    if buft == "AMX" and node.op == "MUL_MAT":
        if src0.type.name not in AMX_TYPES:
            return 0, "AMX: none"
        rows = node.ne[1] * node.ne[2] * node.ne[3]
        size = rows * param_type.row_size(src0.ne[0])
        return size, f"AMX: {rows} rows of {param_type} {param_type.row_size(src0.ne[0])}"
    if buft != "CPU_REPACK":
        return None
    size = param_type.row_size(src1.nelements)
    if node.op == "MUL_MAT":
        return size, f"repack: activations as {param_type} {size}"
    rows = 8 * src0.ne[2] * (src1.ne[2] + 1)
    return pad(size, 8) + rows, f"repack: activations as {param_type} {size}, to a multiple of 8, + rows {rows}"


def node_work_size(node: Tensor, n_tasks: int, isa: Isa, flash_tile: tuple[int, int]) -> Sized:
    """One case of the switch in `ggml_graph_plan`, ggml/src/ggml-cpu/ggml-cpu.c."""
    extra = extra_work_size(node, isa)
    if extra is not None:
        return extra
    if node.op == "MUL_MAT":
        return _mul_mat(node, n_tasks, isa)
    if node.op == "MUL_MAT_ID":
        return _mul_mat_id(node, n_tasks, isa)
    if node.op == "FLASH_ATTN_EXT":
        return flash_attn_ext_size(node, n_tasks, flash_tile)
    work_size = WORK_SIZES.get(node.op)
    return NOTHING if work_size is None else work_size(node, n_tasks)


def graph_plan(
    g: Graph,
    n_threads: int = 0,
    threadpool: ThreadPool | None = None,
    *,
    isa: Isa = AVX512_VNNI,
    flash_tile: tuple[int, int] = (FA_TILE_Q, FA_TILE_KV),
) -> Plan:
    """Task counts and scratch for every node. `ggml_graph_plan`, ggml/src/ggml-cpu/ggml-cpu.c.

    `n_threads` 0 takes the pool's, or ggml's 4. `flash_tile` is (query rows, cells). VizggmlError for an op without a
    task count, or a matrix product of a type without a dot product.
    """
    if n_threads <= 0:
        n_threads = threadpool.n_threads if threadpool is not None else GGML_DEFAULT_N_THREADS
    max_tasks, maximum = 1, 0
    n_tasks: list[int] = []
    work_sizes: list[int] = []
    for node in g.nodes:
        tasks = get_n_tasks(node, n_threads)
        size, terms = node_work_size(node, tasks, isa, flash_tile)
        n_tasks.append(tasks)
        work_sizes.append(size)
        max_tasks = max(max_tasks, tasks)
        if bus.on:
            bus.node = node.id
            seq = bus.emit(NodePlanned(g.id, node.id, tasks, size, terms))
            if size > maximum:
                bus.emit(PlanMaximum(g.id, node.id, size), cause=seq)
        maximum = max(maximum, size)
    padding = CACHE_LINE_SIZE * n_threads if maximum > 0 else 0
    plan = Plan(
        graph=g,
        n_threads=min(max_tasks, n_threads),
        work_size=maximum + padding,
        n_tasks=tuple(n_tasks),
        work_sizes=tuple(work_sizes),
        isa=isa,
        flash_tile=flash_tile,
        threadpool=threadpool,
    )
    if bus.on:
        bus.node = NO_TENSOR
        bus.emit(PlanEnd(g.id, plan.n_threads, plan.work_size, padding))
    return plan
