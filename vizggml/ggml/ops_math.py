"""The builders that compute element by element or row by row."""

from __future__ import annotations

from collections.abc import Callable

from vizggml.errors import VizggmlError
from vizggml.ggml.context import Context
from vizggml.ggml.op_record import record_op, require, result_tensor
from vizggml.ggml.tensor import Tensor, can_repeat, f32_bits, same_shape
from vizggml.ggml.types import F32, GLU_OPS, I32, I64, UNARY_OPS

Unary = Callable[[Context, Tensor], Tensor]
Binary = Callable[[Context, Tensor, Tensor], Tensor]


WORDS = {
    "ADD": "`a + b`",
    "SUB": "`a - b`",
    "MUL": "`a * b`, element by element",
    "DIV": "`a / b`, element by element",
    "SQR": "Each element times itself",
    "SQRT": "The square root of each element",
    "LOG": "The natural logarithm of each element",
    "SIN": "The sine of each element",
    "COS": "The cosine of each element",
    "ABS": "Each element without its sign",
    "SGN": "-1, 0 or 1: the sign of each element",
    "NEG": "Each element with the other sign",
    "STEP": "1 where an element is above 0, else 0",
    "TANH": "The hyperbolic tangent",
    "ELU": "`x` where it is above 0, else `exp(x) - 1`",
    "RELU": "`x` where it is above 0, else 0",
    "SIGMOID": "`1 / (1 + exp(-x))`",
    "GELU": "`x` times the normal distribution at `x`, as tanh approximates it",
    "GELU_ERF": "`x` times the normal distribution at `x`",
    "GELU_QUICK": "`x * sigmoid(1.702 x)`",
    "SILU": "`x * sigmoid(x)`",
    "HARDSWISH": "`x * min(1, max(0, (x + 3) / 6))`",
    "HARDSIGMOID": "`min(1, max(0, (x + 3) / 6))`",
    "EXP": "`e` to the power of each element",
    "EXPM1": "`exp(x) - 1`",
    "SOFTPLUS": "`log(1 + exp(x))`",
    "FLOOR": "Down to a whole number",
    "CEIL": "Up to a whole number",
    "ROUND": "To the nearest whole number, halves away from 0",
    "TRUNC": "Towards 0 to a whole number",
}
"""What the builders that are made from tables compute."""

GATES = {
    "REGLU": "`relu`",
    "GEGLU": "`gelu`",
    "SWIGLU": "`silu`",
    "GEGLU_ERF": "`gelu_erf`",
    "GEGLU_QUICK": "`gelu_quick`",
}


def named(builder: Callable[..., Tensor], name: str, words: str) -> None:
    """Give a builder made from a table the name and docstring that it would have if written out."""
    builder.__name__ = builder.__qualname__ = name
    over = ", written over `a`" if name.endswith("_inplace") else ""
    builder.__doc__ = f"{words}{over}. `ggml_{name}`, ggml/src/ggml.c."


def is_padded_1d(t: Tensor) -> bool:
    """Gaps, if any, lie only between rows. `ggml_is_padded_1d`, ggml/src/ggml.c."""
    ne, nb = t.ne, t.nb
    return nb[0] == t.type.type_size and nb[2] == nb[1] * ne[1] and nb[3] == nb[2] * ne[2]


def _binary(op: str, in_place: bool) -> Binary:
    name = op.lower()

    def build(ctx: Context, a: Tensor, b: Tensor) -> Tensor:
        require(can_repeat(b, a), name, "a's shape must be whole repetitions of b's", a, b)
        return record_op(result_tensor(ctx, a, in_place), op, (), a, b)

    full = f"{name}_inplace" if in_place else name
    named(build, full, WORDS[op])
    return build


add, add_inplace = _binary("ADD", False), _binary("ADD", True)
sub, sub_inplace = _binary("SUB", False), _binary("SUB", True)
mul, mul_inplace = _binary("MUL", False), _binary("MUL", True)
div, div_inplace = _binary("DIV", False), _binary("DIV", True)


def add1(ctx: Context, a: Tensor, b: Tensor) -> Tensor:
    """`a` plus the scalar `b`. `ggml_add1`, ggml/src/ggml.c."""
    require(b.nelements == 1 and is_padded_1d(a), "add1", "b must be a scalar, a's rows without gaps", a, b)
    return record_op(result_tensor(ctx, a, False), "ADD1", (), a, b)


def add_id(ctx: Context, a: Tensor, b: Tensor, ids: Tensor) -> Tensor:
    """To each row of `a` the row of `b` that `ids` (I32) names. `ggml_add_id`, ggml/src/ggml.c."""
    ok = a.ne[0] == b.ne[0] and a.ne[1] == ids.ne[0] and a.ne[2] == ids.ne[1] and ids.type is I32
    require(ok, "add_id", "b needs a's row length, ids one I32 for each row of a", a, b, ids)
    return record_op(result_tensor(ctx, a, False), "ADD_ID", (), a, b, ids)


def _map(op: str, in_place: bool) -> Unary:
    name = f"{op.lower()}_inplace" if in_place else op.lower()

    def build(ctx: Context, a: Tensor) -> Tensor:
        return record_op(result_tensor(ctx, a, in_place), op, (), a)

    named(build, name, WORDS[op])
    return build


sqr, sqr_inplace = _map("SQR", False), _map("SQR", True)
sqrt, sqrt_inplace = _map("SQRT", False), _map("SQRT", True)
log, log_inplace = _map("LOG", False), _map("LOG", True)
sin, sin_inplace = _map("SIN", False), _map("SIN", True)
cos, cos_inplace = _map("COS", False), _map("COS", True)


def unary(ctx: Context, a: Tensor, op: str, in_place: bool = False) -> Tensor:
    """One of types.UNARY_OPS by name. `ggml_unary`, ggml/src/ggml.c. The rows of `a` must have no gaps."""
    if op not in UNARY_OPS:
        raise VizggmlError(f"unary: {op!r} is not one of {', '.join(UNARY_OPS)}")
    require(a.is_contiguous_rows, op.lower(), "a's rows must have no gaps", a)
    return record_op(result_tensor(ctx, a, in_place), "UNARY", (UNARY_OPS.index(op),), a)


def unary_inplace(ctx: Context, a: Tensor, op: str) -> Tensor:
    """The same, written over `a`. `ggml_unary_inplace`, ggml/src/ggml.c."""
    return unary(ctx, a, op, True)


def _unary(op: str, in_place: bool = False) -> Unary:
    def build(ctx: Context, a: Tensor) -> Tensor:
        return unary(ctx, a, op, in_place)

    named(build, f"{op.lower()}_inplace" if in_place else op.lower(), WORDS[op])
    return build


abs, sgn, neg, step, tanh = _unary("ABS"), _unary("SGN"), _unary("NEG"), _unary("STEP"), _unary("TANH")
elu, relu, sigmoid, gelu, silu = _unary("ELU"), _unary("RELU"), _unary("SIGMOID"), _unary("GELU"), _unary("SILU")
gelu_quick, gelu_erf, hardswish = _unary("GELU_QUICK"), _unary("GELU_ERF"), _unary("HARDSWISH")
hardsigmoid, exp, expm1, softplus = _unary("HARDSIGMOID"), _unary("EXP"), _unary("EXPM1"), _unary("SOFTPLUS")
floor, ceil, round, trunc = _unary("FLOOR"), _unary("CEIL"), _unary("ROUND"), _unary("TRUNC")
relu_inplace, silu_inplace, gelu_inplace = _unary("RELU", True), _unary("SILU", True), _unary("GELU", True)
abs_inplace, neg_inplace, tanh_inplace = _unary("ABS", True), _unary("NEG", True), _unary("TANH", True)
sigmoid_inplace, exp_inplace = _unary("SIGMOID", True), _unary("EXP", True)


def leaky_relu(ctx: Context, a: Tensor, negative_slope: float, in_place: bool = False) -> Tensor:
    """`x` where it is above 0, else `negative_slope * x`. `ggml_leaky_relu`, ggml/src/ggml.c."""
    return record_op(result_tensor(ctx, a, in_place), "LEAKY_RELU", (f32_bits(negative_slope),), a)


def _glu(ctx: Context, a: Tensor, b: Tensor | None, op: str, swapped: bool) -> Tensor:
    if op not in GLU_OPS:
        raise VizggmlError(f"glu: {op!r} is not one of {', '.join(GLU_OPS)}")
    require(a.is_contiguous(1), op.lower(), "a's rows must have no gaps", a)
    if b is not None:
        ok = b.is_contiguous(1) and same_shape(a, b) and a.type is b.type
        require(ok, op.lower(), "b must have a's shape and type, its rows without gaps", a, b)
    ne = a.ne if b is not None else (a.ne[0] // 2, *a.ne[1:])
    return record_op(ctx.new_tensor(a.type, ne), "GLU", (GLU_OPS.index(op), int(swapped)), a, b)


def glu(ctx: Context, a: Tensor, op: str, swapped: bool = False) -> Tensor:
    """One of types.GLU_OPS over the two halves of each row of `a`. `ggml_glu`, ggml/src/ggml.c."""
    return _glu(ctx, a, None, op, swapped)


def glu_split(ctx: Context, a: Tensor, b: Tensor, op: str) -> Tensor:
    """The same with gate `a` and values `b` apart. `ggml_glu_split`, ggml/src/ggml.c."""
    return _glu(ctx, a, b, op, False)


def _gated(op: str) -> tuple[Unary, Binary]:
    def build(ctx: Context, a: Tensor) -> Tensor:
        return glu(ctx, a, op)

    def split(ctx: Context, a: Tensor, b: Tensor) -> Tensor:
        return glu_split(ctx, a, b, op)

    words = f"Of each row of `a` the second half times {GATES[op]} of the first: shape (a.ne0 / 2, ...)"
    named(build, op.lower(), words)
    named(split, f"{op.lower()}_split", f"`b` times {GATES[op]} of `a`, element by element")
    return build, split


reglu, reglu_split = _gated("REGLU")
geglu, geglu_split = _gated("GEGLU")
swiglu, swiglu_split = _gated("SWIGLU")
geglu_erf, geglu_erf_split = _gated("GEGLU_ERF")
geglu_quick, geglu_quick_split = _gated("GEGLU_QUICK")


def scale_bias(ctx: Context, a: Tensor, s: float, b: float, in_place: bool = False) -> Tensor:
    """`a * s + b`. `ggml_scale_bias`, ggml/src/ggml.c."""
    require(is_padded_1d(a), "scale", "a may have gaps only between rows", a)
    return record_op(result_tensor(ctx, a, in_place), "SCALE", (f32_bits(s), f32_bits(b)), a)


def scale(ctx: Context, a: Tensor, s: float) -> Tensor:
    """`a` times the number `s`. `ggml_scale`, ggml/src/ggml.c."""
    return scale_bias(ctx, a, s, 0.0)


def scale_inplace(ctx: Context, a: Tensor, s: float) -> Tensor:
    """The same, written over `a`. `ggml_scale_inplace`, ggml/src/ggml.c."""
    return scale_bias(ctx, a, s, 0.0, True)


def clamp(ctx: Context, a: Tensor, min: float, max: float, in_place: bool = False) -> Tensor:
    """No element below `min` or above `max`. `ggml_clamp`, ggml/src/ggml.c."""
    return record_op(result_tensor(ctx, a, in_place), "CLAMP", (f32_bits(min), f32_bits(max)), a)


def fill(ctx: Context, a: Tensor, c: float) -> Tensor:
    """A tensor of `a`'s shape, every element `c`. `ggml_fill`, ggml/src/ggml.c."""
    require(a.is_contiguous() and a.type.name in ("F32", "F16"), "fill", "a must be contiguous F32 or F16", a)
    return record_op(result_tensor(ctx, a, False), "FILL", (f32_bits(c),), a)


def norm(ctx: Context, a: Tensor, eps: float) -> Tensor:
    """Rows to mean 0 and variance 1. `ggml_norm`, ggml/src/ggml.c."""
    return record_op(result_tensor(ctx, a, False), "NORM", (f32_bits(eps),), a)


def rms_norm(ctx: Context, a: Tensor, eps: float) -> Tensor:
    """Rows divided by their root mean square. `ggml_rms_norm`, ggml/src/ggml.c."""
    return record_op(result_tensor(ctx, a, False), "RMS_NORM", (f32_bits(eps),), a)


def rms_norm_inplace(ctx: Context, a: Tensor, eps: float) -> Tensor:
    """The same, written over `a`. `ggml_rms_norm_inplace`, ggml/src/ggml.c."""
    return record_op(result_tensor(ctx, a, True), "RMS_NORM", (f32_bits(eps),), a)


def group_norm(ctx: Context, a: Tensor, n_groups: int, eps: float) -> Tensor:
    """Dimension 2 in `n_groups` runs: the elements of each to mean 0 and variance 1.

    `ggml_group_norm`, ggml/src/ggml.c.
    """
    return record_op(result_tensor(ctx, a, False), "GROUP_NORM", (n_groups, f32_bits(eps)), a)


def l2_norm(ctx: Context, a: Tensor, eps: float) -> Tensor:
    """Rows divided by their length, at least `eps`. `ggml_l2_norm`, ggml/src/ggml.c."""
    return record_op(result_tensor(ctx, a, False), "L2_NORM", (f32_bits(eps),), a)


def sum(ctx: Context, a: Tensor) -> Tensor:
    """All elements added up. `ggml_sum`, ggml/src/ggml.c."""
    return record_op(ctx.new_tensor(a.type, (1,)), "SUM", (), a)


def sum_rows(ctx: Context, a: Tensor) -> Tensor:
    """Each row added up. `ggml_sum_rows`, ggml/src/ggml.c."""
    return record_op(ctx.new_tensor(a.type, (1, *a.ne[1:])), "SUM_ROWS", (), a)


def cumsum(ctx: Context, a: Tensor) -> Tensor:
    """Running sums along each row. `ggml_cumsum`, ggml/src/ggml.c."""
    require(a.type is F32, "cumsum", "a must be F32", a)
    return record_op(result_tensor(ctx, a, False), "CUMSUM", (), a)


def mean(ctx: Context, a: Tensor) -> Tensor:
    """The mean of each row. `ggml_mean`, ggml/src/ggml.c."""
    return record_op(ctx.new_tensor(F32, (1, *a.ne[1:])), "MEAN", (), a)


def argmax(ctx: Context, a: Tensor) -> Tensor:
    """Where the largest element of each row is. `ggml_argmax`, ggml/src/ggml.c."""
    require(a.ne[2] == a.ne[3] == 1, "argmax", "a must be a matrix", a)
    return record_op(ctx.new_tensor(I32, (a.ne[1],)), "ARGMAX", (), a)


def count_equal(ctx: Context, a: Tensor, b: Tensor) -> Tensor:
    """How many elements are the same in `a` and `b`: one I64. `ggml_count_equal`, ggml/src/ggml.c."""
    require(same_shape(a, b), "count_equal", "a and b must have the same shape", a, b)
    return record_op(ctx.new_tensor(I64, (1,)), "COUNT_EQUAL", (), a, b)


def argsort(ctx: Context, a: Tensor, order: int = 0) -> Tensor:
    """The indices that sort each row: `order` 0 ascending, 1 descending. `ggml_argsort`, ggml/src/ggml.c."""
    return record_op(ctx.new_tensor(I32, a.ne), "ARGSORT", (order,), a)


def top_k(ctx: Context, a: Tensor, k: int) -> Tensor:
    """The indices of the `k` largest of each row, unordered. `ggml_top_k`, ggml/src/ggml.c."""
    require(a.ne[0] >= k, "top_k", f"rows must have at least {k} elements", a)
    return record_op(ctx.new_tensor(I32, (k, *a.ne[1:])), "TOP_K", (), a)


def diag_mask_inf(ctx: Context, a: Tensor, n_past: int, in_place: bool = False) -> Tensor:
    """Elements beyond the diagonal become -inf. `ggml_diag_mask_inf`, ggml/src/ggml.c."""
    return record_op(result_tensor(ctx, a, in_place), "DIAG_MASK_INF", (n_past,), a)


def diag_mask_zero(ctx: Context, a: Tensor, n_past: int, in_place: bool = False) -> Tensor:
    """Elements beyond the diagonal become 0. `ggml_diag_mask_zero`, ggml/src/ggml.c."""
    return record_op(result_tensor(ctx, a, in_place), "DIAG_MASK_ZERO", (n_past,), a)
