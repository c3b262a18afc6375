"""How a deferred builder writes an operation into a tensor.

Nothing is computed here: a builder checks shapes, makes the result tensor and notes what is to be done with which
sources.
"""

from __future__ import annotations

from vizggml.errors import VizggmlError
from vizggml.events import Dims, OpRecorded, StridesChanged, TensorId, bus
from vizggml.ggml.context import Context
from vizggml.ggml.tensor import Tensor


def record_op(t: Tensor, op: str, params: tuple[int, ...] = (), *src: Tensor | None) -> Tensor:
    """Write `op`, its parameters (int32, floats as bits) and its sources into `t`; trailing empty slots are dropped."""
    n_src = len(src)
    while n_src and src[n_src - 1] is None:
        n_src -= 1
    t.op = op
    t.op_params = params
    t.src = list(src[:n_src])
    if bus.on:
        ids = tuple(TensorId(-1) if s is None else s.id for s in t.src)
        bus.emit(OpRecorded(t.id, op, t.op_desc, params, ids, t.is_in_place), node=t.id)
    return t


def set_op_param(t: Tensor, i: int, value: int) -> Tensor:
    """`ggml_set_op_params_i32`, ggml/src/ggml-impl.h."""
    params = [*t.op_params, *(0,) * (i + 1 - len(t.op_params))]
    params[i] = value
    return record_op(t, t.op, tuple(params), *t.src)


def set_strides(t: Tensor, a: Tensor, how: str, ne: Dims, nb: Dims) -> Tensor:
    """Let `t`, a view of `a`, read the same bytes as `ne` elements with strides `nb`."""
    t.ne, t.nb = ne, nb
    if bus.on:
        bus.emit(StridesChanged(t.id, a.id, how, a.ne, a.nb, ne, nb), node=t.id)
    return t


def dup_tensor(ctx: Context, a: Tensor) -> Tensor:
    """A contiguous tensor of the same type and shape. `ggml_dup_tensor`, ggml/src/ggml.c."""
    return ctx.new_tensor(a.type, a.ne)


def view_tensor(ctx: Context, a: Tensor) -> Tensor:
    """A tensor over the same bytes, with the same shape and strides. `ggml_view_tensor`, ggml/src/ggml.c."""
    t = ctx.new_view(a, a.ne).set_name(f"{a.name} (view)")
    return t if t.nb == a.nb else set_strides(t, a, "view", a.ne, a.nb)


def result_tensor(ctx: Context, a: Tensor, in_place: bool) -> Tensor:
    """Where an element-wise op writes: over `a` itself, or into a new tensor of its shape."""
    return view_tensor(ctx, a) if in_place else dup_tensor(ctx, a)


def describe(t: Tensor) -> str:
    """The tensor as an error names it."""
    return f"{t.name or f'tensor {t.id}'!r} {t.type} [{', '.join(map(str, t.ne))}]"


def require(ok: bool, op: str, rule: str, *tensors: Tensor) -> None:
    """VizggmlError with the op, the rule and the tensors that break it, unless `ok`."""
    if not ok:
        raise VizggmlError(f"{op}: {rule}; got {', '.join(map(describe, tensors))}")
