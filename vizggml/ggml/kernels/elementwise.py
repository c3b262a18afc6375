"""Elementwise kernels: arithmetic with broadcast, scale, clamp, the unary and the gated ops.

All of them compute in F32, whatever the elements are stored as, and round once when they store.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from vizggml.ggml.kernels.floats import (
    FLOAT_TYPES,
    Floats,
    Rows,
    from_f32,
    no_kernel,
    optional_source,
    source,
    thread_rows,
    to_f32,
)
from vizggml.ggml.kernels.params import ComputeParams
from vizggml.ggml.quants import decode, from_float
from vizggml.ggml.tensor import Tensor

F32 = np.float32

BINARY_TYPES = {
    ("F32", "F32", "F32"),
    ("F16", "F16", "F16"),
    ("BF16", "BF16", "BF16"),
    ("BF16", "F32", "BF16"),
    ("BF16", "F32", "F32"),
    ("F16", "F32", "F16"),
    ("F16", "F32", "F32"),
}
"""Types of src0, src1 and dst that ggml's binary ops take (`binary_op`, ggml/src/ggml-cpu/binary-ops.cpp)."""

UNARY_TYPES = {("F32", "F32"), ("F16", "F16"), ("BF16", "BF16"), ("BF16", "F32"), ("F16", "F32")}

SQRT_2_OVER_PI = F32(0.79788456080286535587989211986876)
SQRT_2_INV = F32(0.70710678118654752440084436210484)
GELU_COEF_A = F32(0.044715)
GELU_QUICK_COEF = F32(-1.702)

Binary = Callable[..., Floats]
Unary = Callable[[Floats], Floats]


def repeated(b: Floats, shape: tuple[int, ...]) -> Floats:
    """`b` repeated to `shape`: ggml repeats any divisor, NumPy broadcasts only ones."""
    if any(1 < have < wanted for have, wanted in zip(b.shape, shape, strict=True)):
        b = np.tile(b, [1 if have == 1 else wanted // have for have, wanted in zip(b.shape, shape, strict=True)])
    return np.broadcast_to(b, shape)


def forward_binary(params: ComputeParams, dst: Tensor, op: Binary) -> None:
    """dst = op(src0, src1), src1 repeated to src0. `apply_binary_op`, ggml/src/ggml-cpu/binary-ops.cpp."""
    src0, src1 = source(dst, 0), source(dst, 1)
    if (src0.type.name, src1.type.name, dst.type.name) not in BINARY_TYPES:
        raise no_kernel(dst)
    rows = thread_rows(params, dst.ne)
    out, a, b = dst.array(), src0.array(), src1.array()
    with np.errstate(all="ignore"):
        if dst.type.name == "F32" and src0.type.name == "F32":
            op(a[rows], repeated(b, a.shape)[rows], out=out[rows])
            return
        x = to_f32(src0.type.name, a[rows])
        y = to_f32(src1.type.name, repeated(b, a.shape)[rows])
        out[rows] = from_f32(dst.type.name, op(x, y))


def forward_add(params: ComputeParams, dst: Tensor) -> None:
    """`ggml_compute_forward_add`, ggml/src/ggml-cpu/ops.cpp: quantized rows are decoded, added to and encoded again."""
    src0 = source(dst, 0)
    if not src0.type.is_quantized:
        forward_binary(params, dst, np.add)
        return
    src1 = source(dst, 1)
    if src1.type.name != "F32" or dst.type is not src0.type:
        raise no_kernel(dst)
    rows = thread_rows(params, dst.ne)
    blocks = src0.array()[rows]
    if not blocks.size:
        return
    sums = decode(src0.type, blocks) + src1.array()[rows]
    dst.array()[rows] = from_float(dst.type, sums)


def forward_sub(params: ComputeParams, dst: Tensor) -> None:
    """`ggml_compute_forward_sub`, ggml/src/ggml-cpu/binary-ops.cpp."""
    forward_binary(params, dst, np.subtract)


def forward_mul(params: ComputeParams, dst: Tensor) -> None:
    """`ggml_compute_forward_mul`, ggml/src/ggml-cpu/binary-ops.cpp."""
    forward_binary(params, dst, np.multiply)


def forward_div(params: ComputeParams, dst: Tensor) -> None:
    """`ggml_compute_forward_div`, ggml/src/ggml-cpu/binary-ops.cpp."""
    forward_binary(params, dst, np.divide)


def forward_unary_function(params: ComputeParams, dst: Tensor, function: Unary) -> None:
    """dst = function(src0), element by element. `apply_unary_op`, ggml/src/ggml-cpu/unary-ops.cpp."""
    src0 = source(dst, 0)
    if (src0.type.name, dst.type.name) not in UNARY_TYPES:
        raise no_kernel(dst)
    rows = thread_rows(params, dst.ne)
    with np.errstate(all="ignore"):
        dst.array()[rows] = from_f32(dst.type.name, function(to_f32(src0.type.name, src0.array()[rows])))


def forward_scale(params: ComputeParams, dst: Tensor) -> None:
    """dst = src0 * scale + bias. `ggml_compute_forward_scale`, ggml/src/ggml-cpu/ops.cpp."""
    src0 = source(dst, 0)
    if src0.type is not dst.type or dst.type.name not in ("F32", "BF16"):
        raise no_kernel(dst)
    scale, bias = F32(dst.op_param_f32(0)), F32(dst.op_param_f32(1))
    forward_unary_function(params, dst, lambda x: x * scale + bias if bias else x * scale)


def forward_clamp(params: ComputeParams, dst: Tensor) -> None:
    """`ggml_compute_forward_clamp`, ggml/src/ggml-cpu/ops.cpp."""
    src0 = source(dst, 0)
    if src0.type is not dst.type or dst.type.name not in ("F32", "F16"):
        raise no_kernel(dst)
    low, high = F32(dst.op_param_f32(0)), F32(dst.op_param_f32(1))
    forward_unary_function(params, dst, lambda x: np.maximum(np.minimum(x, high), low))


def forward_fill(params: ComputeParams, dst: Tensor) -> None:
    """`ggml_compute_forward_fill`, ggml/src/ggml-cpu/ops.cpp."""
    if dst.type.name not in ("F32", "F16"):
        raise no_kernel(dst)
    dst.array()[thread_rows(params, dst.ne)] = F32(dst.op_param_f32(0))


def forward_leaky_relu(params: ComputeParams, dst: Tensor) -> None:
    """`ggml_compute_forward_leaky_relu`, ggml/src/ggml-cpu/ops.cpp."""
    slope = F32(dst.op_param_f32(0))
    forward_unary_function(params, dst, lambda x: np.maximum(x, F32(0)) + slope * np.minimum(x, F32(0)))


def sqr(x: Floats) -> Floats:
    return x * x


def sgn(x: Floats) -> Floats:
    return (x > 0).astype(F32) - (x < 0).astype(F32)


def step(x: Floats) -> Floats:
    return (x > 0).astype(F32)


def relu(x: Floats) -> Floats:
    return np.where(x > 0, x, F32(0))


def elu(x: Floats) -> Floats:
    return np.where(x > 0, x, np.expm1(x))


def sigmoid(x: Floats) -> Floats:
    grown: Floats = np.exp(-x)
    return F32(1) / (F32(1) + grown)


def silu(x: Floats) -> Floats:
    grown: Floats = np.exp(-x)
    return x / (F32(1) + grown)


def hardsigmoid(x: Floats) -> Floats:
    line: Floats = np.clip((x + F32(3)) / F32(6), F32(0), F32(1))
    return line


def hardswish(x: Floats) -> Floats:
    return x * hardsigmoid(x)


def expm1(x: Floats) -> Floats:
    """ggml's: the exponential less one, without the care that C's `expm1f` takes near 0."""
    return np.exp(x) - F32(1)


def softplus(x: Floats) -> Floats:
    return np.where(x > 20, x, np.log(F32(1) + np.exp(x)))


def round_half_away(x: Floats) -> Floats:
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.sign(x), whole)


def gelu_tanh(x: Floats) -> Floats:
    """`ggml_gelu_f32`, ggml/src/ggml-cpu/vec.h."""
    bend: Floats = np.tanh(SQRT_2_OVER_PI * x * (F32(1) + GELU_COEF_A * x * x))
    return F32(0.5) * x * (F32(1) + bend)


def gelu_quick_sigmoid(x: Floats) -> Floats:
    """`ggml_gelu_quick_f32`, ggml/src/ggml-cpu/vec.h."""
    grown: Floats = np.exp(GELU_QUICK_COEF * x)
    return x * (F32(1) / (F32(1) + grown))


def through_f16(function: Unary, x: Floats) -> Floats:
    """What a table of `function` over all F16 values gives: the argument and the result are rounded to F16."""
    return function(x.astype(np.float16).astype(F32)).astype(np.float16).astype(F32)


def gelu(x: Floats) -> Floats:
    """`ggml_vec_gelu_f32`, ggml/src/ggml-cpu/vec.h: from the F16 table between -10 and 10."""
    return np.where(x <= -10, F32(0), np.where(x >= 10, x, through_f16(gelu_tanh, x)))


def gelu_quick(x: Floats) -> Floats:
    """`ggml_vec_gelu_quick_f32`, ggml/src/ggml-cpu/vec.h: from the F16 table."""
    return through_f16(gelu_quick_sigmoid, x)


_erf = np.frompyfunc(math.erf, 1, 1)


def gelu_erf(x: Floats) -> Floats:
    """`ggml_vec_gelu_erf_f32`, ggml/src/ggml-cpu/vec.h."""
    bend: Floats = _erf(x * SQRT_2_INV).astype(F32)
    return F32(0.5) * x * (F32(1) + bend)


UNARY: dict[str, Unary] = {
    "ABS": np.abs,
    "SGN": sgn,
    "NEG": np.negative,
    "STEP": step,
    "TANH": np.tanh,
    "ELU": elu,
    "RELU": relu,
    "SIGMOID": sigmoid,
    "GELU": gelu,
    "GELU_QUICK": gelu_quick,
    "SILU": silu,
    "HARDSWISH": hardswish,
    "HARDSIGMOID": hardsigmoid,
    "EXP": np.exp,
    "EXPM1": expm1,
    "SOFTPLUS": softplus,
    "GELU_ERF": gelu_erf,
    "FLOOR": np.floor,
    "CEIL": np.ceil,
    "ROUND": round_half_away,
    "TRUNC": np.trunc,
}
"""The functions behind UNARY, by `ggml_unary_op_name`. XIELU has parameters, so it is a kernel of its own."""


def forward_unary(params: ComputeParams, dst: Tensor) -> None:
    """`ggml_compute_forward_unary`, ggml/src/ggml-cpu/ops.cpp."""
    name = dst.op_desc
    if name == "XIELU":
        forward_xielu(params, dst)
        return
    if name.startswith("GELU") or name == "SILU":
        src0 = source(dst, 0)
        if src0.type is not dst.type:
            raise no_kernel(dst)
    forward_unary_function(params, dst, UNARY[name] if dst.type.name != "BF16" else EXACT.get(name, UNARY[name]))


def forward_xielu(params: ComputeParams, dst: Tensor) -> None:
    """`ggml_compute_forward_xielu`, ggml/src/ggml-cpu/unary-ops.cpp."""
    alpha_n, alpha_p, beta, eps = (F32(dst.op_param_f32(i)) for i in range(1, 5))

    def xielu(x: Floats) -> Floats:
        negative = (np.expm1(np.minimum(x, eps)) - x) * alpha_n
        curve: Floats = np.where(x > 0, alpha_p * x * x, negative)
        return curve + beta * x

    forward_unary_function(params, dst, xielu)


EXACT: dict[str, Unary] = {"GELU": gelu_tanh, "GELU_QUICK": gelu_quick_sigmoid}
"""BF16 elements do not go through the F16 tables."""


def forward_sqr(params: ComputeParams, dst: Tensor) -> None:
    """`ggml_compute_forward_sqr`, ggml/src/ggml-cpu/unary-ops.cpp."""
    forward_unary_function(params, dst, sqr)


def forward_sqrt(params: ComputeParams, dst: Tensor) -> None:
    """`ggml_compute_forward_sqrt`, ggml/src/ggml-cpu/unary-ops.cpp."""
    forward_unary_function(params, dst, np.sqrt)


def forward_log(params: ComputeParams, dst: Tensor) -> None:
    """`ggml_compute_forward_log`, ggml/src/ggml-cpu/unary-ops.cpp."""
    forward_unary_function(params, dst, np.log)


def forward_sin(params: ComputeParams, dst: Tensor) -> None:
    """`ggml_compute_forward_sin`, ggml/src/ggml-cpu/unary-ops.cpp."""
    forward_unary_function(params, dst, np.sin)


def forward_cos(params: ComputeParams, dst: Tensor) -> None:
    """`ggml_compute_forward_cos`, ggml/src/ggml-cpu/unary-ops.cpp."""
    forward_unary_function(params, dst, np.cos)


def gate_and_up(dst: Tensor, rows: Rows) -> tuple[Floats, Floats]:
    """The two halves of a gated op as F32: two sources, or the halves of one (swapped where `op_params[1]` is set)."""
    src0, src1 = source(dst, 0), optional_source(dst, 1)
    a = to_f32(src0.type.name, src0.array()[rows])
    if src1 is not None:
        return a, to_f32(src1.type.name, src1.array()[rows])
    nc = src0.ne[0] // 2
    first, second = a[..., :nc], a[..., nc:]
    return (second, first) if dst.op_param_i32(1) else (first, second)


def swiglu_oai(dst: Tensor, gate: Floats, up: Floats) -> Floats:
    alpha, limit = F32(dst.op_param_f32(2)), F32(dst.op_param_f32(3))
    x = np.minimum(gate, limit)
    return x / (F32(1) + np.exp(alpha * -x)) * (np.clip(up, -limit, limit) + F32(1))


def swiglu_clamp(dst: Tensor, gate: Floats, up: Floats) -> Floats:
    limit = F32(dst.op_param_f32(3))
    return silu(np.minimum(gate, limit)) * np.clip(up, -limit, limit)


GATES: dict[str, tuple[Unary, Unary]] = {
    "REGLU": (relu, relu),
    "GEGLU": (gelu, gelu_tanh),
    "SWIGLU": (silu, silu),
    "GEGLU_ERF": (gelu_erf, gelu_erf),
    "GEGLU_QUICK": (gelu_quick, gelu_quick_sigmoid),
}
"""What a gated op does to its gate, by `ggml_glu_op_name`: for F32 and F16, and for BF16."""

GLU_WITH_LIMIT: dict[str, Callable[[Tensor, Floats, Floats], Floats]] = {
    "SWIGLU_OAI": swiglu_oai,
    "SWIGLU_CLAMP": swiglu_clamp,
}


def forward_glu(params: ComputeParams, dst: Tensor) -> None:
    """dst = gate function(gate) * up. `ggml_compute_forward_glu`, ggml/src/ggml-cpu/ops.cpp."""
    name = dst.op_desc
    types = {"F32"} if name == "SWIGLU_OAI" else {"F32", "F16"} if name == "SWIGLU_CLAMP" else set(FLOAT_TYPES)
    if dst.type.name not in types or any(src is not None and src.type is not dst.type for src in dst.src):
        raise no_kernel(dst)
    rows = thread_rows(params, dst.ne)
    gate, up = gate_and_up(dst, rows)
    with np.errstate(all="ignore"):
        if name in GLU_WITH_LIMIT:
            result = GLU_WITH_LIMIT[name](dst, gate, up)
        else:
            result = GATES[name][dst.type.name == "BF16"](gate) * up
        dst.array()[rows] = from_f32(dst.type.name, result)
