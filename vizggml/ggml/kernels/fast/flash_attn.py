"""FLASH_ATTN_EXT, compiled: ggml's three ways, with ggml's layout of the scratch.

Compiled code takes each operand as (type, address, nb[1], nb[2], nb[3]) and the shapes as one tuple, `Shape`.
"""

from __future__ import annotations

import math

import numpy as np

from vizggml.errors import VizggmlError
from vizggml.ggml.kernels import flash_attn as reference
from vizggml.ggml.kernels.fast.lanes import (
    FIVE,
    INT,
    NONE,
    READ,
    SEVEN,
    THREE_FLOATS,
    TWELVE,
    WRITE,
    call_from_float,
    call_to_float,
    call_vec_dot,
    compiled,
    fma_single,
    half,
    put_single,
    single,
)
from vizggml.ggml.kernels.fast.rows import (
    copy_f32,
    gemm,
    mad_f16,
    mad_f32,
    mask_row,
    scale_f16,
    scale_f32,
    soften_row,
    widen_f16,
    zero_f32,
)
from vizggml.ggml.kernels.fast.traits import VEC_DOTS, from_float, to_float, vec_dot
from vizggml.ggml.kernels.params import ComputeParams
from vizggml.ggml.tensor import Memory, Tensor
from vizggml.ggml.types import CACHE_LINE_SIZE, F16

PAD = CACHE_LINE_SIZE // 4
SPLIT_KV_FROM = 512
KEPT_IN_F16 = F16.id

Operand = tuple[int, int, int, int, int]
"""Type, address (to Python: offset), nb[1], nb[2], nb[3]; type -1 for an operand that is not there."""
Shape = tuple[int, int, int, int, int, int, int, int, int, int, int, int]
"""Queries, heads, sequences; dk, dv; cells; heads and sequences of K, of V, of the mask."""
Work = tuple[int, int, int, int, int, int, int]
"""First and last row; first and last cell; ith, nth; whether [M, S, VKQ] go to the scratch."""
Numbers = tuple[np.float32, np.float32, np.float32]
"""Scale, max_bias, softcap."""


def forward_flash_attn_ext(params: ComputeParams, dst: Tensor) -> None:
    """The twin of `kernels.flash_attn.forward_flash_attn_ext`, which computes what has no compiled dot product."""
    q, k, v = (*dst.src, None, None, None)[:3]
    if q is None or k is None or v is None:
        raise VizggmlError(f"flash_attn_ext {dst.name!r}: needs Q, K and V")
    if q.type.name != "F32" or k.type.name not in VEC_DOTS or v.type.name not in VEC_DOTS:
        reference.forward_flash_attn_ext(params, dst)
        return
    if any(t.nb[0] != t.type.type_size for t in (q, k, v)):
        raise VizggmlError(f"flash_attn_ext {dst.name!r}: rows are not contiguous")
    n_q, n_kv, n_rows, nth, ith = q.ne[1], k.ne[1], q.ne[1] * q.ne[2] * q.ne[3], params.nth, params.ith
    floats = k.type is v.type and k.type.name in ("F32", "F16")
    operands = _operands(dst)
    if floats and n_q == 1 and q.ne[3] == 1 and n_kv >= SPLIT_KV_FROM:
        size = -(-n_kv // nth)
        cells = (min(size * ith, n_kv), min(size * (ith + 1), n_kv))
        _rows(params, dst, operands, (0, n_rows, *cells, ith, nth, 1))
        params.barrier()
        _join(params, dst)
        return
    size = -(-n_rows // (4 * nth))
    if nth == 1 or -(-n_rows // size) < nth:
        size = -(-n_rows // nth)
    for first in range(size * ith, n_rows, size * nth):
        last = min(first + size, n_rows)
        if floats and n_q >= params.flash_tile[0]:
            _tiles(params, dst, operands, first, last)
        else:
            _rows(params, dst, operands, (first, last, 0, n_kv, ith, nth, 0))


def _place(t: Tensor | None, other: Tensor) -> tuple[Memory, Operand]:
    if t is None:
        return _place(other, other)[0], NOWHERE
    if t.data is None:
        raise VizggmlError(f"tensor {t.name!r} has no memory yet: allocate its graph or its context first")
    return t.data.memory, (t.type.id, t.data.offset, *t.nb[1:])


def _operands(dst: Tensor) -> tuple[object, ...]:
    """Q, K, V, mask, sinks and the result, each as its memory and where in it; then the shape and the numbers."""
    q, k, v, mask, sinks = (*dst.src, None, None)[:5]
    assert q is not None
    assert k is not None
    assert v is not None
    m = mask or q
    shape = (*q.ne[1:], k.ne[0], v.ne[0], k.ne[1], *k.ne[2:], *v.ne[2:], *m.ne[2:])
    scale, max_bias, softcap = dst.op_param_f32(0), dst.op_param_f32(1), dst.op_param_f32(2)
    numbers = (scale / softcap if softcap else scale, max_bias, softcap)
    placed = [_place(t, q) for t in (q, k, v, mask, sinks, dst)]
    return (*(part for pair in placed for part in pair), shape, numbers)


def _scratch(params: ComputeParams, dst: Tensor, floats: int) -> Memory:
    wdata = params.wdata
    available = 0 if wdata is None else wdata.nbytes
    if wdata is None or available < 4 * floats:
        raise VizggmlError(
            f"flash_attn_ext {dst.name!r}: needs {4 * floats} bytes of scratch, the plan has {available}"
        )
    return wdata


def _sizes(dst: Tensor) -> tuple[int, int, int]:
    """Heads, dk, dv."""
    q, k = dst.src[0], dst.src[1]
    assert q is not None
    assert k is not None
    return q.ne[2], k.ne[0], dst.ne[0]


def _rows(params: ComputeParams, dst: Tensor, operands: tuple[object, ...], work: Work) -> None:
    n_head, dk, dv = _sizes(dst)
    partials = n_head * params.nth * (2 + dv) if work[6] else 0
    wdata = _scratch(params, dst, params.nth * (dk + 2 * dv + PAD) + partials)
    k, v = dst.src[1], dst.src[2]
    assert k is not None
    assert v is not None
    attend_rows(*operands, wdata, work, vec_dot(k.type.name), from_float(k.type.vec_dot_type), to_float(v.type.name))  # type: ignore[call-arg,arg-type]


def _join(params: ComputeParams, dst: Tensor) -> None:
    n_head, dk, dv = _sizes(dst)
    wdata = _scratch(params, dst, 0)
    out, at = _place(dst, dst)
    join_partials(wdata, 4 * params.nth * (dk + 2 * dv + PAD), n_head, dv, params.ith, params.nth, out, at[1], at[2])


def _tiles(params: ComputeParams, dst: Tensor, operands: tuple[object, ...], first: int, last: int) -> None:
    _, dk, dv = _sizes(dst)
    tile_q, tile_kv = params.flash_tile
    one = tile_q * dk + 2 * tile_q * tile_kv + tile_q * dv + tile_kv * dv + tile_kv * dk
    wdata = _scratch(params, dst, params.nth * (one + PAD) - PAD)
    k = dst.src[1]
    assert k is not None
    work = (first, last, 4 * params.ith * (one + PAD), tile_q, tile_kv, 0, 0)
    attend_tiles(*operands, wdata, work, to_float(k.type.name))  # type: ignore[call-arg,arg-type]


NOWHERE: Operand = (-1, 0, 0, 0, 0)


@compiled()
def located(memory: Memory, at: Operand) -> Operand:
    """The operand with its offset made an address; 0 if there is none."""
    address = memory.ctypes.data + at[1] if at[0] >= 0 else 0
    return at[0], address, at[2], at[3], at[4]


@compiled()
def alibi_slope(head: int, n_head: int, max_bias: np.float32) -> np.float32:
    if max_bias <= 0:
        return np.float32(1)
    below = 1
    while 2 * below <= n_head:
        below *= 2
    if head < below:
        return np.float32(np.float32(2) ** np.float32(-max_bias / below)) ** np.float32(head + 1)
    m1 = np.float32(np.float32(2) ** np.float32(-max_bias / 2 / below))
    return m1 ** np.float32(2 * (head - below) + 1)


@compiled()
def mask_address(mask: Operand, shape: Shape, i3: int, head: int, query: int) -> int:
    """The address of a query's mask, 0 if there is none."""
    if mask[1] == 0:
        return 0
    return mask[1] + query * mask[2] + head % shape[10] * mask[3] + i3 % shape[11] * mask[4]


@compiled()
def with_sink(
    sinks: Operand, head: int, M: np.float32, S: np.float32, vkq: int, dv: int
) -> tuple[np.float32, np.float32]:
    """A sink is one more score with no V row behind it: the new M and S."""
    if sinks[1] == 0:
        return M, S
    s = single(sinks[1] + 4 * head)
    if s > M:
        down = np.float32(math.exp(M - s))
        scale_f32(vkq, down, dv)
        return s, fma_single(S, down, np.float32(1))
    return M, S + np.float32(math.exp(s - M))


@compiled()
def finish(vkq: int, S: np.float32, out: int, dv: int) -> None:
    """VKQ / S into the result; zeros where nothing was seen."""
    inverse = np.float32(1) / S if S != 0 else np.float32(0)
    for i in range(dv):
        put_single(out + 4 * i, single(vkq + 4 * i) * inverse)


@compiled(NONE(WRITE, INT, INT, INT, INT, INT, WRITE, INT, INT))
def join_partials(
    wdata: Memory, offset: int, n_head: int, dv: int, ith: int, nth: int, out: Memory, out_offset: int, nb1: int
) -> None:
    """`ggml_flash_attn_ext_reduce_partials`, ggml/src/ggml-cpu/ops.cpp: heads ith, ith + nth, ..."""
    for head in range(ith, n_head, nth):
        vkq = out.ctypes.data + out_offset + head * nb1
        M, S = np.float32(-np.inf), np.float32(0)
        zero_f32(vkq, dv)
        for part in range(nth):
            at = wdata.ctypes.data + offset + 4 * (head * nth + part) * (2 + dv)
            if single(at + 4) == 0:
                continue
            M_new = max(M, single(at))
            down, weight = np.float32(math.exp(M - M_new)), np.float32(math.exp(single(at) - M_new))
            for i in range(0, 4 * dv, 4):
                put_single(vkq + i, fma_single(single(vkq + i), down, single(at + 8 + i) * weight))
            S = fma_single(S, down, single(at + 4) * weight)
            M = M_new
        finish(vkq, S, vkq, dv)


SOURCES = (READ, FIVE, READ, FIVE, READ, FIVE, READ, FIVE, READ, FIVE, WRITE, FIVE, TWELVE, THREE_FLOATS, WRITE, SEVEN)


@compiled(NONE(*SOURCES, INT, INT, INT))
def attend_rows(
    q_memory: Memory,
    Q: Operand,
    k_memory: Memory,
    K: Operand,
    v_memory: Memory,
    V: Operand,
    m_memory: Memory,
    m: Operand,
    s_memory: Memory,
    s: Operand,
    d_memory: Memory,
    D: Operand,
    shape: Shape,
    numbers: tuple[float, float, float],
    w_memory: Memory,
    work: Work,
    dot: int,
    encoder: int,
    decoder: int,
) -> None:
    """`ggml_compute_forward_flash_attn_ext_f16_one_chunk`, ggml/src/ggml-cpu/ops.cpp.

    A thread's scratch has VKQ in F32 (dv floats), VKQ in F16 or a row of V in F32 (dv floats), and Q encoded (dk
    floats). If work[6], each row leaves [M, S, VKQ] behind all threads' scratch.
    """
    n_q, n_head, n_seq, dk, dv = shape[:5]
    first, last, cell_first, cell_last, ith, nth, leave = work
    scale, max_bias, softcap = np.float32(numbers[0]), np.float32(numbers[1]), np.float32(numbers[2])
    Q, K, V, D = located(q_memory, Q), located(k_memory, K), located(v_memory, V), located(d_memory, D)
    mask, sinks = located(m_memory, m), located(s_memory, s)
    per_thread = 4 * (dk + 2 * dv + PAD)
    vkq = w_memory.ctypes.data + ith * per_thread
    spare, q_q = vkq + 4 * dv, vkq + 8 * dv
    in_f16 = V[0] == KEPT_IN_F16
    for row in range(first, last):
        i3, head, query = row // (n_q * n_head), row // n_q % n_head, row % n_q
        k = K[1] + head // (n_head // shape[6]) * K[3] + i3 // (n_seq // shape[7]) * K[4]
        v = V[1] + head // (n_head // shape[8]) * V[3] + i3 // (n_seq // shape[9]) * V[4]
        slope = alibi_slope(head, n_head, max_bias)
        biases = mask_address(mask, shape, i3, head, query)
        call_from_float(encoder, Q[1] + query * Q[2] + head * Q[3] + i3 * Q[4], dk, q_q)
        zero_f32(vkq, 2 * dv)
        M, S = np.float32(-np.inf), np.float32(0)
        for cell in range(cell_first, cell_last):
            bias = slope * half(biases + 2 * cell) if biases else np.float32(0)
            if bias == -np.inf:
                continue
            score = call_vec_dot(dot, k + cell * K[2], q_q, dk) * scale
            if softcap != 0:
                score = softcap * np.float32(math.tanh(score))
            score += bias
            down, weight = np.float32(1), np.float32(1)
            if score > M:
                down = np.float32(math.exp(M - score))
                M = score
            else:
                weight = np.float32(math.exp(score - M))
            at = v + cell * V[2]
            if in_f16:
                if down != 1:
                    scale_f16(spare, down, dv)
                mad_f16(spare, at, weight, dv)
            else:
                if down != 1:
                    scale_f32(vkq, down, dv)
                call_to_float(decoder, at, dv, spare)
                mad_f32(vkq, spare, weight, dv)
            S = fma_single(S, down, weight)
        if in_f16:
            widen_f16(spare, dv, vkq)
        if cell_first == 0:
            M, S = with_sink(sinks, head, M, S, vkq, dv)
        if leave:
            partial = w_memory.ctypes.data + nth * per_thread + 4 * (row * nth + ith) * (2 + dv)
            put_single(partial, M)
            put_single(partial + 4, S)
            copy_f32(vkq, dv, partial + 8)
        else:
            finish(vkq, S, D[1] + head * D[2] + query * D[3] + i3 * D[4], dv)


@compiled()
def mask_tile(mask: int, nb1: int, slope: np.float32, n: int, width: int, out: int, out_width: int) -> bool:
    """The mask of n queries times the head's slope, as float32; whether it lets anything be seen."""
    seen = False
    for i in range(n):
        top = mask_row(mask + i * nb1, slope, width, out + 4 * i * out_width)
        seen = seen or top != -np.inf
    return seen


@compiled()
def transpose_tile(decoder: int, k: int, nb1: int, width: int, dk: int, row: int, out: int, out_width: int) -> None:
    """Rows of K as columns of `out` in F32, so that cells are neighbours; `row` has room for one."""
    for j in range(width):
        call_to_float(decoder, k + j * nb1, dk, row)
        for d in range(dk):
            put_single(out + 4 * (d * out_width + j), single(row + 4 * d))


@compiled(NONE(*SOURCES, INT))
def attend_tiles(
    q_memory: Memory,
    Q: Operand,
    k_memory: Memory,
    K: Operand,
    v_memory: Memory,
    V: Operand,
    m_memory: Memory,
    m: Operand,
    s_memory: Memory,
    s: Operand,
    d_memory: Memory,
    D: Operand,
    shape: Shape,
    numbers: tuple[float, float, float],
    w_memory: Memory,
    work: Work,
    decoder: int,
) -> None:
    """`ggml_compute_forward_flash_attn_ext_tiled`, ggml/src/ggml-cpu/ops.cpp.

    A thread's scratch, from work[2] on, has tiles of Q, scores, mask, VKQ, V and K transposed, all in F32.
    """
    n_q, n_head, n_seq, dk, dv, n_kv = shape[:6]
    row, last, offset, tile_q, tile_kv = work[:5]
    scale, max_bias, softcap = np.float32(numbers[0]), np.float32(numbers[1]), np.float32(numbers[2])
    Q, K, V, D = located(q_memory, Q), located(k_memory, K), located(v_memory, V), located(d_memory, D)
    mask, sinks = located(m_memory, m), located(s_memory, s)
    q32 = w_memory.ctypes.data + offset
    kq = q32 + 4 * tile_q * dk
    mask32 = kq + 4 * tile_q * tile_kv
    vkq = mask32 + 4 * tile_q * tile_kv
    v32 = vkq + 4 * tile_q * dv
    k32 = v32 + 4 * tile_kv * dv
    M, S = np.empty(tile_q, np.float32), np.empty(tile_q, np.float32)
    while row < last:
        i3, head, query = row // (n_q * n_head), row // n_q % n_head, row % n_q
        n = min(tile_q, last - row, n_q - query)
        k = K[1] + head // (n_head // shape[6]) * K[3] + i3 // (n_seq // shape[7]) * K[4]
        v = V[1] + head // (n_head // shape[8]) * V[3] + i3 // (n_seq // shape[9]) * V[4]
        slope = alibi_slope(head, n_head, max_bias)
        for i in range(n):
            copy_f32(Q[1] + (query + i) * Q[2] + head * Q[3] + i3 * Q[4], dk, q32 + 4 * i * dk)
        M[:] = -np.inf
        S[:] = 0
        zero_f32(vkq, tile_q * dv)
        for first in range(0, n_kv, tile_kv):
            width = min(tile_kv, n_kv - first)
            if mask[1]:
                biases = mask_address(mask, shape, i3, head, query) + 2 * first
                if not mask_tile(biases, mask[2], slope, n, width, mask32, tile_kv):
                    continue
            transpose_tile(decoder, k + first * K[2], K[2], width, dk, v32, k32, tile_kv)
            zero_f32(kq, tile_q * tile_kv)
            gemm(kq, tile_kv, q32, dk, k32, tile_kv, n, dk, width)
            for i in range(n):
                bias_row = mask32 + 4 * i * tile_kv if mask[1] else 0
                M_new, sum_ = soften_row(kq + 4 * i * tile_kv, bias_row, width, scale, softcap, M[i])
                if M_new > M[i]:
                    down = np.float32(math.exp(M[i] - M_new))
                    scale_f32(vkq + 4 * i * dv, down, dv)
                    S[i] *= down
                S[i] = np.float32(S[i] + sum_)
                M[i] = M_new
            for j in range(width):
                call_to_float(decoder, v + (first + j) * V[2], dv, v32 + 4 * j * dv)
            gemm(vkq, dv, kq, tile_kv, v32, dv, n, width, dv)
        for i in range(n):
            sums = vkq + 4 * i * dv
            _, total = with_sink(sinks, head, M[i], S[i], sums, dv)
            finish(sums, total, D[1] + head * D[2] + (query + i) * D[3] + i3 * D[4], dv)
        row += n
