"""The small ops of a decode step, compiled: one row or a few, where calling NumPy costs more than the numbers do.

Each is the twin of a reference kernel and hands over to it what it was not made for: other types, strided elements.
"""

from __future__ import annotations

import math

import numpy as np

from vizggml.errors import VizggmlError
from vizggml.ggml.kernels import elementwise, norm, rope, rows, softmax
from vizggml.ggml.kernels.fast.lanes import (
    DIMS,
    FLOAT,
    INT,
    LANES,
    NONE,
    READ,
    WRITE,
    bits,
    compiled,
    fma_single,
    half,
    load_f32,
    put_half,
    put_single,
    single,
    store_f16,
    store_f32,
    swiglu,
)
from vizggml.ggml.kernels.fast.rows import exp_row, scale_f32
from vizggml.ggml.kernels.floats import optional_source, source
from vizggml.ggml.kernels.params import ComputeParams
from vizggml.ggml.tensor import Address, Memory, Tensor
from vizggml.ggml.types import F16, F32, I32, I64

Dims = tuple[int, int, int, int]

ADD, SUB, MUL, DIV = range(4)
BINARY = {"ADD": ADD, "SUB": SUB, "MUL": MUL, "DIV": DIV}
REFERENCE_BINARY = {
    "ADD": elementwise.forward_add,
    "SUB": elementwise.forward_sub,
    "MUL": elementwise.forward_mul,
    "DIV": elementwise.forward_div,
}
SWIGLU = 2
"""The place of SWIGLU in types.GLU_OPS."""


def place(t: Tensor) -> Address:
    """Where `t` is. VizggmlError if it has no memory."""
    if t.data is None:
        raise VizggmlError(f"tensor {t.name!r} has no memory yet: allocate its graph or its context first")
    return t.data


def share(params: ComputeParams, n_rows: int) -> tuple[int, int]:
    """The rows of thread `ith`. `get_thread_range`, ggml/src/ggml-cpu/common.h."""
    each = -(-n_rows // params.nth)
    first = min(each * params.ith, n_rows)
    return first, min(first + each, n_rows)


def packed_f32(*tensors: Tensor) -> bool:
    """Whether all are F32 with neighbours side by side."""
    return all(t.type is F32 and t.nb[0] == 4 for t in tensors)


@compiled(INT(INT, INT, DIMS, DIMS))
def row_at(start: int, row: int, ne: Dims, nb: Dims) -> int:
    """The address of a row, rows numbered through all planes of a tensor of shape `ne`; repeated if `ne` is smaller."""
    return start + row % ne[1] * nb[1] + row // ne[1] % ne[2] * nb[2] + row // (ne[1] * ne[2]) % ne[3] * nb[3]


@compiled(INT(INT, INT, DIMS, DIMS, DIMS))
def repeated_at(start: int, row: int, ne: Dims, ne1: Dims, nb1: Dims) -> int:
    """The address of the row of a smaller tensor that is repeated to row `row` of a tensor of shape `ne`."""
    i1, i2, i3 = row % ne[1], row // ne[1] % ne[2], row // (ne[1] * ne[2])
    return start + i1 % ne1[1] * nb1[1] + i2 % ne1[2] * nb1[2] + i3 % ne1[3] * nb1[3]


@compiled(INT(INT))
def int32_at(address: int) -> int:
    value = bits(single(address))
    return value - (1 << 32) if value >= 1 << 31 else value


@compiled(INT(INT))
def int64_at(address: int) -> int:
    return bits(single(address)) | int32_at(address + 4) << 32


@compiled(NONE(INT, READ, INT, DIMS, READ, INT, DIMS, DIMS, WRITE, INT, DIMS, DIMS, INT, INT))
def binary_rows(
    op: int, a: Memory, a_offset: int, nb0: Dims, b: Memory, b_offset: int, nb1: Dims, ne1: Dims,
    y: Memory, y_offset: int, nb: Dims, ne: Dims, first: int, last: int,
) -> None:  # fmt: skip
    """Rows first..last of y = a op b."""
    for row in range(first, last):
        left = row_at(a.ctypes.data + a_offset, row, ne, nb0)
        right = repeated_at(b.ctypes.data + b_offset, row, ne, ne1, nb1)
        out = row_at(y.ctypes.data + y_offset, row, ne, nb)
        for start in range(0, ne[0], ne1[0]):
            for i in range(ne1[0]):
                at = 4 * (start + i)
                u, v = single(left + at), single(right + 4 * i)
                if op == ADD:
                    put_single(out + at, u + v)
                elif op == SUB:
                    put_single(out + at, u - v)
                elif op == MUL:
                    put_single(out + at, u * v)
                else:
                    put_single(out + at, u / v)


def forward_binary(params: ComputeParams, dst: Tensor) -> None:
    """The twin of elementwise.forward_add, forward_sub, forward_mul and forward_div."""
    src0, src1 = source(dst, 0), source(dst, 1)
    if not packed_f32(dst, src0, src1):
        REFERENCE_BINARY[dst.op](params, dst)
        return
    a, b, y = place(src0), place(src1), place(dst)
    first, last = share(params, dst.nrows)
    binary_rows(
        BINARY[dst.op], a.memory, a.offset, src0.nb, b.memory, b.offset, src1.nb, src1.ne,
        y.memory, y.offset, dst.nb, dst.ne, first, last,
    )  # fmt: skip


@compiled(NONE(READ, INT, DIMS, READ, INT, DIMS, DIMS, INT, WRITE, INT, DIMS, DIMS, FLOAT, INT, INT))
def rms_norm_rows(
    x: Memory, x_offset: int, nb0: Dims, w: Memory, w_offset: int, nb1: Dims, ne1: Dims, weighted: int,
    y: Memory, y_offset: int, nb: Dims, ne: Dims, eps: float, first: int, last: int,
) -> None:  # fmt: skip
    """Rows first..last of y = x / rms(x), times w if `weighted`."""
    n = ne[0]
    for row in range(first, last):
        given = row_at(x.ctypes.data + x_offset, row, ne, nb0)
        out = row_at(y.ctypes.data + y_offset, row, ne, nb)
        s0 = s1 = s2 = s3 = np.float64(0)
        i = 0
        while i + 4 <= n:
            v0, v1, v2, v3 = (
                single(given + 4 * i),
                single(given + 4 * i + 4),
                single(given + 4 * i + 8),
                single(given + 4 * i + 12),
            )
            s0 += np.float64(v0 * v0)
            s1 += np.float64(v1 * v1)
            s2 += np.float64(v2 * v2)
            s3 += np.float64(v3 * v3)
            i += 4
        while i < n:
            v0 = single(given + 4 * i)
            s0 += np.float64(v0 * v0)
            i += 1
        mean = np.float32((s0 + s1 + s2 + s3) / n)
        scale = np.float32(1) / np.float32(math.sqrt(mean + eps))
        weight = repeated_at(w.ctypes.data + w_offset, row, ne, ne1, nb1)
        for i in range(n):
            v0 = single(given + 4 * i) * scale
            put_single(out + 4 * i, v0 * single(weight + 4 * i) if weighted else v0)


def _rms_norm(params: ComputeParams, node: Tensor, dst: Tensor, weight: Tensor | None) -> None:
    src0 = source(node, 0)
    x, y = place(src0), place(dst)
    w, ne1, nb1 = (x, src0.ne, src0.nb) if weight is None else (place(weight), weight.ne, weight.nb)
    first, last = share(params, dst.nrows)
    rms_norm_rows(
        x.memory, x.offset, src0.nb, w.memory, w.offset, nb1, ne1, int(weight is not None),
        y.memory, y.offset, dst.nb, dst.ne, node.op_param_f32(0), first, last,
    )  # fmt: skip


def forward_rms_norm(params: ComputeParams, dst: Tensor) -> None:
    """The twin of norm.forward_rms_norm."""
    if packed_f32(dst, source(dst, 0)):
        _rms_norm(params, dst, dst, None)
    else:
        norm.forward_rms_norm(params, dst)


def forward_rms_norm_mul(params: ComputeParams, node: Tensor, mul: Tensor) -> None:
    """The twin of norm.forward_rms_norm_mul."""
    weight = source(mul, 1) if mul.src[0] is node else source(mul, 0)
    if packed_f32(mul, source(node, 0), weight) and weight.ne[0] == node.ne[0]:
        _rms_norm(params, node, mul, weight)
    else:
        norm.forward_rms_norm_mul(params, node, mul)


@compiled(NONE(READ, INT, INT, READ, INT, DIMS, READ, INT, INT, WRITE, INT, DIMS, DIMS, WRITE, INT, INT, INT, INT,
               FLOAT, FLOAT, FLOAT, FLOAT, FLOAT, FLOAT, FLOAT, INT, INT))  # fmt: skip
def rope_rows(
    pos: Memory, pos_offset: int, pos_nb: int, x: Memory, x_offset: int, nb0: Dims,
    factors: Memory, factors_offset: int, has_factors: int, y: Memory, y_offset: int, nb: Dims, ne: Dims,
    cache: Memory, cache_offset: int, n_dims: int, n_offs: int, neox: int, theta_scale: float, freq_scale: float,
    ext_factor: float, magnitude: float, sin_sign: float, low: float, high: float, first: int, last: int,
) -> None:  # fmt: skip
    """Rows first..last rotated. The cosines and sines of a position are kept in `cache` while its rows last.

    Which product is rounded by itself is up to the compiler of `rotate_pairs`: as in a build by GCC.
    """
    angles = cache.ctypes.data + cache_offset
    cached = -1
    apart = 2 * n_dims if neox else 4
    for row in range(first, last):
        i2 = row // ne[1] % ne[2]
        if i2 != cached:
            cached = i2
            theta = np.float32(int32_at(pos.ctypes.data + pos_offset + i2 * pos_nb))
            for i in range(n_dims // 2):
                extrapolated = theta / single(factors.ctypes.data + factors_offset + 4 * i) if has_factors else theta
                angle = freq_scale * extrapolated
                if ext_factor != 0:
                    ramp = (np.float32(i) - low) / max(np.float32(0.001), np.float32(high - low))
                    mix = (np.float32(1) - min(np.float32(1), max(np.float32(0), ramp))) * ext_factor
                    angle = angle * (np.float32(1) - mix) + extrapolated * mix
                put_single(angles + 8 * i, np.float32(math.cos(angle)) * magnitude)
                put_single(angles + 8 * i + 4, np.float32(math.sin(angle)) * magnitude * sin_sign)
                theta *= theta_scale
        given = row_at(x.ctypes.data + x_offset, row, ne, nb0)
        out = row_at(y.ctypes.data + y_offset, row, ne, nb)
        for i in range(n_offs):
            put_single(out + 4 * i, single(given + 4 * i))
        for i in range(n_offs + n_dims, ne[0]):
            put_single(out + 4 * i, single(given + 4 * i))
        step = 4 if neox else 8
        for i in range(n_dims // 2):
            at = 4 * n_offs + step * i
            c, s = single(angles + 8 * i), single(angles + 8 * i + 4)
            x0, x1 = single(given + at), single(given + at + apart)
            put_single(out + at, fma_single(x0, c, -(x1 * s)))
            put_single(out + at + apart, fma_single(x0, s, x1 * c))


def forward_rope(params: ComputeParams, dst: Tensor) -> None:
    """The twin of rope.forward_rope."""
    src0, pos, factors = source(dst, 0), source(dst, 1), optional_source(dst, 2)
    mode = dst.op_param_i32(2)
    if mode not in (rope.ROPE_TYPE_NORMAL, rope.ROPE_TYPE_NEOX) or not packed_f32(dst, src0) or pos.type is not I32:
        rope.forward_rope(params, dst)
        return
    n_dims = dst.op_param_i32(1)
    freq_base, freq_scale, ext_factor, attn_factor, beta_fast, beta_slow = (dst.op_param_f32(i) for i in range(5, 11))
    low = high = 0.0
    if ext_factor != 0:
        low, high = rope.yarn_corr_dims(n_dims, dst.op_param_i32(4), freq_base, beta_fast, beta_slow)
        attn_factor *= 1 + 0.1 * math.log(1 / freq_scale)
    theta_scale = freq_base ** float(np.float32(-2) / np.float32(n_dims))
    slot = 4 * (dst.ne[0] + 16)
    wdata = params.wdata
    if wdata is None or wdata.nbytes < slot * params.nth:
        wdata, cache_offset = np.empty(slot, np.uint8), 0
    else:
        cache_offset = slot * params.ith
    p, x, y = place(pos), place(src0), place(dst)
    f = p if factors is None else place(factors)
    first, last = share(params, dst.nrows)
    rope_rows(
        p.memory, p.offset, pos.nb[0], x.memory, x.offset, src0.nb, f.memory, f.offset, int(factors is not None),
        y.memory, y.offset, dst.nb, dst.ne, wdata, cache_offset, n_dims, dst.op_param_i32(15),
        int(mode == rope.ROPE_TYPE_NEOX), theta_scale, freq_scale, ext_factor, attn_factor, 1.0, low, high, first, last,
    )  # fmt: skip


@compiled(INT(READ, INT, DIMS, DIMS, READ, INT, DIMS, DIMS, INT, WRITE, INT, DIMS, DIMS, INT, INT, INT))
def set_rows_f32(
    x: Memory, x_offset: int, nb0: Dims, ne0: Dims, at: Memory, at_offset: int, nb1: Dims, ne1: Dims, wide: int,
    y: Memory, y_offset: int, nb: Dims, ne: Dims, to_half: int, first: int, last: int,
) -> int:  # fmt: skip
    """Rows first..last of each plane of x to the rows of y that `at` names; 1 if y has no such row, else 0."""
    n = ne0[0]
    for plane in range(ne0[2] * ne0[3]):
        i2, i3 = plane % ne0[2], plane // ne0[2]
        indices = at.ctypes.data + at_offset + i2 % ne1[1] * nb1[1] + i3 % ne1[2] * nb1[2]
        for i in range(first, last):
            to = int64_at(indices + i * nb1[0]) if wide else int32_at(indices + i * nb1[0])
            if to < 0 or to >= ne[1]:
                return 1
            given = x.ctypes.data + x_offset + i * nb0[1] + i2 * nb0[2] + i3 * nb0[3]
            out = y.ctypes.data + y_offset + to * nb[1] + i2 * nb[2] + i3 * nb[3]
            j = 0
            if to_half:
                while j + LANES <= n:
                    store_f16(out + 2 * j, load_f32(given + 4 * j))
                    j += LANES
                while j < n:
                    put_half(out + 2 * j, single(given + 4 * j))
                    j += 1
            else:
                while j < n:
                    put_single(out + 4 * j, single(given + 4 * j))
                    j += 1
    return 0


def forward_set_rows(params: ComputeParams, dst: Tensor) -> None:
    """The twin of rows.forward_set_rows, which also says what is wrong with an index."""
    src0, src1 = source(dst, 0), source(dst, 1)
    if not packed_f32(src0) or dst.type not in (F32, F16) or src1.type not in (I32, I64):
        rows.forward_set_rows(params, dst)
        return
    x, at, y = place(src0), place(src1), place(dst)
    first, last = share(params, src0.ne[1])
    bad = set_rows_f32(
        x.memory, x.offset, src0.nb, src0.ne, at.memory, at.offset, src1.nb, src1.ne, int(src1.type is I64),
        y.memory, y.offset, dst.nb, dst.ne, int(dst.type is F16), first, last,
    )  # fmt: skip
    if bad:
        rows.forward_set_rows(params, dst)


@compiled(NONE(READ, INT, DIMS, READ, INT, DIMS, WRITE, INT, DIMS, DIMS, INT, INT))
def swiglu_rows(
    gate: Memory, gate_offset: int, nb0: Dims, up: Memory, up_offset: int, nb1: Dims,
    y: Memory, y_offset: int, nb: Dims, ne: Dims, first: int, last: int,
) -> None:  # fmt: skip
    """Rows first..last of y = silu(gate) * up."""
    for row in range(first, last):
        g = row_at(gate.ctypes.data + gate_offset, row, ne, nb0)
        u = row_at(up.ctypes.data + up_offset, row, ne, nb1)
        out = row_at(y.ctypes.data + y_offset, row, ne, nb)
        i = 0
        while i + LANES <= ne[0]:
            store_f32(out + 4 * i, swiglu(load_f32(g + 4 * i), load_f32(u + 4 * i)))
            i += LANES
        while i < ne[0]:
            v = single(g + 4 * i)
            put_single(out + 4 * i, v / (np.float32(1) + np.float32(math.exp(-v))) * single(u + 4 * i))
            i += 1


def forward_glu(params: ComputeParams, dst: Tensor) -> None:
    """The twin of elementwise.forward_glu for SWIGLU."""
    src0, src1 = source(dst, 0), optional_source(dst, 1)
    if dst.op_param_i32(0) != SWIGLU or not packed_f32(dst, src0, src1 or dst):
        elementwise.forward_glu(params, dst)
        return
    gate, y = place(src0), place(dst)
    if src1 is not None:
        up, nb1, swap = place(src1), src1.nb, False
    else:
        up, nb1, swap = gate + 4 * dst.ne[0], src0.nb, bool(dst.op_param_i32(1))
    first, last = share(params, dst.nrows)
    g, u = (up, gate) if swap else (gate, up)
    swiglu_rows(
        g.memory, g.offset, src0.nb, u.memory, u.offset, nb1, y.memory, y.offset, dst.nb, dst.ne, first, last
    )  # fmt: skip


@compiled(NONE(READ, INT, DIMS, READ, INT, DIMS, DIMS, INT, FLOAT, FLOAT, FLOAT, INT, WRITE, INT, DIMS, DIMS, INT, INT))
def soft_max_rows(
    x: Memory, x_offset: int, nb0: Dims, mask: Memory, mask_offset: int, nb1: Dims, ne1: Dims, mask_size: int,
    scale: float, m0: float, m1: float, n_head_log2: int, y: Memory, y_offset: int, nb: Dims, ne: Dims,
    first: int, last: int,
) -> None:  # fmt: skip
    """Rows first..last of y = softmax(x * scale + slope * mask); an element of the mask has `mask_size` bytes, or 0."""
    n = ne[0]
    for row in range(first, last):
        given = row_at(x.ctypes.data + x_offset, row, ne, nb0)
        out = row_at(y.ctypes.data + y_offset, row, ne, nb)
        bias = repeated_at(mask.ctypes.data + mask_offset, row, ne, ne1, nb1)
        head = row // ne[1] % ne[2]
        slope = np.float32(1)
        if n_head_log2:
            slope = m0 ** np.float32(head + 1) if head < n_head_log2 else m1 ** np.float32(2 * (head - n_head_log2) + 1)
        top = np.float32(-np.inf)
        for i in range(n):
            score = single(given + 4 * i) * scale
            if mask_size == 2:
                score = fma_single(slope, half(bias + 2 * i), score)
            elif mask_size == 4:
                score = fma_single(slope, single(bias + 4 * i), score)
            put_single(out + 4 * i, score)
            top = max(top, score)
        scale_f32(out, np.float32(1 / exp_row(out, n, top)), n)


def forward_soft_max(params: ComputeParams, dst: Tensor) -> None:
    """The twin of softmax.forward_soft_max, without sinks."""
    src0, mask, sinks = source(dst, 0), optional_source(dst, 1), optional_source(dst, 2)
    if sinks is not None or not packed_f32(dst, src0) or (mask is not None and mask.type not in (F32, F16)):
        softmax.forward_soft_max(params, dst)
        return
    max_bias, n_head_log2, m0, m1 = dst.op_param_f32(1), 0, 1.0, 1.0
    if max_bias > 0:
        n_head_log2, m0, m1 = softmax.alibi_bases(dst.ne[2], max_bias)
    x, y = place(src0), place(dst)
    m, ne1, nb1 = (x, src0.ne, src0.nb) if mask is None else (place(mask), mask.ne, mask.nb)
    first, last = share(params, dst.nrows)
    soft_max_rows(
        x.memory, x.offset, src0.nb, m.memory, m.offset, nb1, ne1, 0 if mask is None else mask.type.type_size,
        dst.op_param_f32(0), m0, m1, n_head_log2, y.memory, y.offset, dst.nb, dst.ne, first, last,
    )  # fmt: skip


SMALL = {
    "ADD": forward_binary,
    "SUB": forward_binary,
    "MUL": forward_binary,
    "DIV": forward_binary,
    "RMS_NORM": forward_rms_norm,
    "ROPE": forward_rope,
    "SOFT_MAX": forward_soft_max,
    "SET_ROWS": forward_set_rows,
    "GLU": forward_glu,
}
"""The compiled kernels of this module, by `ggml_op_name`."""

SMALL_FUSED = {("RMS_NORM", "MUL"): forward_rms_norm_mul}
"""Their fused ones."""
