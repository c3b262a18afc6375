"""Softmax over rows, with scale, mask, ALiBi slopes and attention sinks."""

from __future__ import annotations

import math

import numpy as np

from vizggml.ggml.kernels.elementwise import repeated
from vizggml.ggml.kernels.floats import Floats, no_kernel, optional_source, source, thread_rows, to_f32
from vizggml.ggml.kernels.params import ComputeParams
from vizggml.ggml.tensor import Tensor

F32 = np.float32


def alibi_bases(n_head: int, max_bias: float) -> tuple[int, float, float]:
    """`n_head_log2`, `m0` and `m1` of `ggml_compute_forward_soft_max_f32`, ggml/src/ggml-cpu/ops.cpp."""
    n_head_log2 = 1 << math.floor(math.log2(n_head))
    m0 = F32(2.0 ** float(F32(-max_bias) / F32(n_head_log2)))
    m1 = F32(2.0 ** float(F32(-max_bias / 2) / F32(n_head_log2)))
    return n_head_log2, float(m0), float(m1)


def alibi_slopes(n_head: int, max_bias: float) -> Floats:
    """The mask's factor for each head, 1 without a bias: powers of `m0`, and from `n_head_log2` on odd ones of `m1`."""
    if max_bias <= 0:
        return np.ones(n_head, F32)
    n_head_log2, m0, m1 = alibi_bases(n_head, max_bias)
    slopes = [m0 ** (h + 1) if h < n_head_log2 else m1 ** (2 * (h - n_head_log2) + 1) for h in range(n_head)]
    return np.array(slopes, F32)


def forward_soft_max(params: ComputeParams, dst: Tensor) -> None:
    """dst = softmax(src0 * scale + slope * mask) of each row. `ggml_compute_forward_soft_max`, ggml-cpu/ops.cpp.

    The mask (src1, F16 or F32) is repeated over heads and batches; it may have more rows than src0. A sink (src2, one
    F32 for each head) takes part in the sum and gets no output.
    """
    src0, mask, sinks = source(dst, 0), optional_source(dst, 1), optional_source(dst, 2)
    if src0.type.name != "F32" or dst.type.name != "F32":
        raise no_kernel(dst)
    if (mask is not None and mask.type.name not in ("F32", "F16")) or (sinks is not None and sinks.type.name != "F32"):
        raise no_kernel(dst)
    rows = thread_rows(params, dst.ne)
    out = dst.array()[rows]
    np.multiply(src0.array()[rows], F32(dst.op_param_f32(0)), out=out)
    if mask is not None:
        ne = dst.ne
        bias = repeated(mask.array()[:, :, : ne[1]], (ne[3], ne[2], ne[1], ne[0]))[rows]
        bias = to_f32(mask.type.name, bias)
        max_bias = dst.op_param_f32(1)
        if max_bias > 0:
            with np.errstate(invalid="ignore"):
                bias = bias * alibi_slopes(ne[2], max_bias)[rows[1], None, None]
        out += bias
    highest = out.max(axis=-1, keepdims=True)
    sink = None if sinks is None else sinks.array()[0, 0, 0, rows[1], None, None]
    if sink is not None:
        highest = np.maximum(highest, sink)
    np.subtract(out, highest, out=out)
    np.exp(out, out=out)
    total = out.sum(axis=-1, keepdims=True, dtype=np.float64)
    if sink is not None:
        total = total + np.exp(sink - highest)
    np.multiply(out, (1.0 / total).astype(F32), out=out)
