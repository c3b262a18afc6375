"""The builders that move or re-read bytes: views, reshapes, permutes, copies, rows."""

from __future__ import annotations

from collections.abc import Sequence

from vizggml.errors import VizggmlError
from vizggml.events import Dims
from vizggml.ggml.context import Context
from vizggml.ggml.op_record import describe, dup_tensor, record_op, require, result_tensor, set_strides, view_tensor
from vizggml.ggml.tensor import Tensor, can_repeat
from vizggml.ggml.types import F16, F32, I32, I64, Type, type_named


def four(ne: Sequence[int]) -> Dims:
    """A shape filled up with ones to four dimensions."""
    return (*ne, *(1,) * (4 - len(ne)))  # type: ignore[return-value]


def reshape(ctx: Context, a: Tensor, ne: Sequence[int]) -> Tensor:
    """The same elements under another shape, nothing moved. `ggml_reshape`, ggml/src/ggml.c. `a` must be contiguous."""
    require(a.is_contiguous(), "reshape", "a must be contiguous", a)
    count = 1
    for n in ne:
        count *= n
    if count != a.nelements:
        raise VizggmlError(f"reshape: [{', '.join(map(str, ne))}] has {count} elements, {describe(a)} {a.nelements}")
    t = ctx.new_view(a, ne).set_name(f"{a.name} (reshaped)")
    set_strides(t, a, "reshape", t.ne, t.nb)
    return record_op(t, "RESHAPE", (), a)


def reshape_1d(ctx: Context, a: Tensor, ne0: int) -> Tensor:
    """Reshape to one dimension. `ggml_reshape_1d`, ggml/src/ggml.c."""
    return reshape(ctx, a, (ne0,))


def reshape_2d(ctx: Context, a: Tensor, ne0: int, ne1: int) -> Tensor:
    """Reshape to two dimensions. `ggml_reshape_2d`, ggml/src/ggml.c."""
    return reshape(ctx, a, (ne0, ne1))


def reshape_3d(ctx: Context, a: Tensor, ne0: int, ne1: int, ne2: int) -> Tensor:
    """Reshape to three dimensions. `ggml_reshape_3d`, ggml/src/ggml.c."""
    return reshape(ctx, a, (ne0, ne1, ne2))


def reshape_4d(ctx: Context, a: Tensor, ne0: int, ne1: int, ne2: int, ne3: int) -> Tensor:
    """Reshape to four dimensions. `ggml_reshape_4d`, ggml/src/ggml.c."""
    return reshape(ctx, a, (ne0, ne1, ne2, ne3))


def view(ctx: Context, a: Tensor, ne: Sequence[int], nb: Sequence[int] = (), offset: int = 0) -> Tensor:
    """A window into `a` from `offset` bytes on. `nb` are the strides in bytes of dimensions 1, 2, 3.

    `ggml_view_1d` to `ggml_view_4d`, ggml/src/ggml.c. VizggmlError if it would reach past `a`'s bytes.
    """
    if len(nb) != len(ne) - 1:
        raise VizggmlError(f"view of {describe(a)}: {len(ne)} dimensions need {len(ne) - 1} strides, got {len(nb)}")
    if offset < 0:
        raise VizggmlError(f"view of {describe(a)}: offset {offset} is below 0")
    t = ctx.new_view(a, ne, offset).set_name(f"{a.name} (view)")
    strides = [t.nb[0], *nb]
    while len(strides) < 4:
        strides.append(t.nb[1] if len(ne) == 1 and len(strides) == 1 else strides[-1] * t.ne[len(strides) - 1])
    set_strides(t, a, "view", t.ne, four(strides))
    root = t.view_src
    assert root is not None
    if t.nbytes + t.view_offs > root.nbytes:
        raise VizggmlError(
            f"view of {describe(root)}: offset {t.view_offs} + {t.nbytes} bytes ends past its {root.nbytes} bytes"
        )
    low, high = offset & 0xFFFFFFFF, offset >> 32
    return record_op(t, "VIEW", (low - (1 << 32) if low >> 31 else low, high), a)


def view_1d(ctx: Context, a: Tensor, ne0: int, offset: int) -> Tensor:
    """A window of `ne0` elements. `ggml_view_1d`, ggml/src/ggml.c."""
    return view(ctx, a, (ne0,), (), offset)


def view_2d(ctx: Context, a: Tensor, ne0: int, ne1: int, nb1: int, offset: int) -> Tensor:
    """A window of rows that lie `nb1` bytes apart. `ggml_view_2d`, ggml/src/ggml.c."""
    return view(ctx, a, (ne0, ne1), (nb1,), offset)


def view_3d(ctx: Context, a: Tensor, ne0: int, ne1: int, ne2: int, nb1: int, nb2: int, offset: int) -> Tensor:
    """A window of three dimensions, strides `nb1` and `nb2` bytes. `ggml_view_3d`, ggml/src/ggml.c."""
    return view(ctx, a, (ne0, ne1, ne2), (nb1, nb2), offset)


def view_4d(
    ctx: Context, a: Tensor, ne0: int, ne1: int, ne2: int, ne3: int, nb1: int, nb2: int, nb3: int, offset: int
) -> Tensor:
    """A window of four dimensions, strides `nb1`, `nb2` and `nb3` bytes. `ggml_view_4d`, ggml/src/ggml.c."""
    return view(ctx, a, (ne0, ne1, ne2, ne3), (nb1, nb2, nb3), offset)


def permute(ctx: Context, a: Tensor, axis0: int, axis1: int, axis2: int, axis3: int) -> Tensor:
    """Dimension `i` of `a` becomes dimension `axis<i>` of the result. `ggml_permute`, ggml/src/ggml.c."""
    axes = (axis0, axis1, axis2, axis3)
    if sorted(axes) != [0, 1, 2, 3]:
        raise VizggmlError(f"permute of {describe(a)}: axes {axes} are not 0, 1, 2, 3 in some order")
    t = view_tensor(ctx, a).set_name(f"{a.name} (permuted)")
    ne, nb = [0] * 4, [0] * 4
    for i, axis in enumerate(axes):
        ne[axis], nb[axis] = a.ne[i], a.nb[i]
    set_strides(t, a, "permute", four(ne), four(nb))
    return record_op(t, "PERMUTE", axes, a)


def transpose(ctx: Context, a: Tensor) -> Tensor:
    """Swap dimensions 0 and 1. `ggml_transpose`, ggml/src/ggml.c."""
    t = view_tensor(ctx, a).set_name(f"{a.name} (transposed)")
    ne, nb = a.ne, a.nb
    set_strides(t, a, "transpose", (ne[1], ne[0], ne[2], ne[3]), (nb[1], nb[0], nb[2], nb[3]))
    return record_op(t, "TRANSPOSE", (), a)


def dup(ctx: Context, a: Tensor) -> Tensor:
    """A copy of `a`, of its shape and type. `ggml_dup`, ggml/src/ggml.c."""
    return record_op(dup_tensor(ctx, a), "DUP", (), a)


def dup_inplace(ctx: Context, a: Tensor) -> Tensor:
    """`a` copied onto itself. `ggml_dup_inplace`, ggml/src/ggml.c."""
    return record_op(result_tensor(ctx, a, True), "DUP", (), a)


def cpy(ctx: Context, a: Tensor, b: Tensor) -> Tensor:
    """Copy `a` into `b`, converting its type; the result is a view of `b`. `ggml_cpy`, ggml/src/ggml.c."""
    require(a.nelements == b.nelements, "cpy", "a and b must have the same number of elements", a, b)
    name = f"{b.name} (copy of {a.name})" if b.name else f"{a.name} (copy)"
    return record_op(view_tensor(ctx, b).set_name(name), "CPY", (), a, b)


def cast(ctx: Context, a: Tensor, type: Type | str) -> Tensor:
    """`a` in another type; the result is its own second source, as in ggml. `ggml_cast`, ggml/src/ggml.c."""
    t = ctx.new_tensor(type if isinstance(type, Type) else type_named(type), a.ne).set_name(f"{a.name} (copy)")
    return record_op(t, "CPY", (), a, t)


def cont(ctx: Context, a: Tensor) -> Tensor:
    """The elements of `a` moved together. `ggml_cont`, ggml/src/ggml.c."""
    return record_op(dup_tensor(ctx, a).set_name(f"{a.name} (cont)"), "CONT", (), a)


def cont_1d(ctx: Context, a: Tensor, ne0: int) -> Tensor:
    """The same in one dimension. `ggml_cont_1d`, ggml/src/ggml.c."""
    return cont_4d(ctx, a, ne0, 1, 1, 1)


def cont_2d(ctx: Context, a: Tensor, ne0: int, ne1: int) -> Tensor:
    """The same in two dimensions. `ggml_cont_2d`, ggml/src/ggml.c."""
    return cont_4d(ctx, a, ne0, ne1, 1, 1)


def cont_3d(ctx: Context, a: Tensor, ne0: int, ne1: int, ne2: int) -> Tensor:
    """The same in three dimensions. `ggml_cont_3d`, ggml/src/ggml.c."""
    return cont_4d(ctx, a, ne0, ne1, ne2, 1)


def cont_4d(ctx: Context, a: Tensor, ne0: int, ne1: int, ne2: int, ne3: int) -> Tensor:
    """The same in four dimensions: as many elements as `a` has. `ggml_cont_4d`, ggml/src/ggml.c."""
    if a.nelements != ne0 * ne1 * ne2 * ne3:
        raise VizggmlError(
            f"cont: [{ne0}, {ne1}, {ne2}, {ne3}] has {ne0 * ne1 * ne2 * ne3} elements, {describe(a)} {a.nelements}"
        )
    return record_op(ctx.new_tensor(a.type, (ne0, ne1, ne2, ne3)).set_name(f"{a.name} (cont)"), "CONT", (), a)


def concat(ctx: Context, a: Tensor, b: Tensor, dim: int) -> Tensor:
    """`b` after `a` along dimension `dim`. `ggml_concat`, ggml/src/ggml.c."""
    require(0 <= dim < 4 and a.type is b.type, "concat", f"dim {dim} must be 0 to 3, types equal", a, b)
    same = all(a.ne[d] == b.ne[d] for d in range(4) if d != dim)
    require(same, "concat", f"shapes must agree but in dimension {dim}", a, b)
    ne = [a.ne[d] + b.ne[d] if d == dim else a.ne[d] for d in range(4)]
    return record_op(ctx.new_tensor(a.type, ne), "CONCAT", (dim,), a, b)


def repeat(ctx: Context, a: Tensor, b: Tensor) -> Tensor:
    """`a` repeated to the shape of `b`. `ggml_repeat`, ggml/src/ggml.c."""
    require(can_repeat(a, b), "repeat", "b's shape must be whole repetitions of a's", a, b)
    return record_op(ctx.new_tensor(a.type, b.ne), "REPEAT", (), a)


def repeat_4d(ctx: Context, a: Tensor, ne0: int, ne1: int, ne2: int, ne3: int) -> Tensor:
    """`a` repeated to a shape given in numbers. `ggml_repeat_4d`, ggml/src/ggml.c."""
    ne = (ne0, ne1, ne2, ne3)
    ok = a.is_empty or all(n % m == 0 for n, m in zip(ne, a.ne, strict=True))
    require(ok, "repeat", f"{list(ne)} must be whole repetitions of a's shape", a)
    return record_op(ctx.new_tensor(a.type, ne), "REPEAT", (), a)


def get_rows(ctx: Context, a: Tensor, rows: Tensor) -> Tensor:
    """The rows of `a` that `rows` (I32) names, in F32. `ggml_get_rows`, ggml/src/ggml.c."""
    ok = a.ne[2] == rows.ne[1] and a.ne[3] == rows.ne[2] and rows.ne[3] == 1 and rows.type is I32
    require(ok, "get_rows", "rows must be I32 with ne[1], ne[2] as a's ne[2], ne[3]", a, rows)
    t = ctx.new_tensor(I32 if a.type is I32 else F32, (a.ne[0], rows.ne[0], rows.ne[1], rows.ne[2]))
    return record_op(t, "GET_ROWS", (), a, rows)


def set_rows(ctx: Context, a: Tensor, b: Tensor, rows: Tensor) -> Tensor:
    """Write the rows of `b` into the rows of `a` that `rows` (I64 or I32) names; the result is a view of `a`.

    `ggml_set_rows`, ggml/src/ggml.c. The sources are stored as b, rows, a.
    """
    ok = a.ne[0] == b.ne[0] and a.ne[2:] == b.ne[2:] and b.ne[1] == rows.ne[0] and rows.ne[3] == 1
    ok = ok and 0 not in rows.ne[1:3] and b.ne[2] % rows.ne[1] == 0 and b.ne[3] % rows.ne[2] == 0
    require(ok, "set_rows", "b must have a's row length and one row for each of rows", a, b, rows)
    require(b.type in (F32, F16) and rows.type in (I32, I64), "set_rows", "b must be F32, rows I64 or I32", b, rows)
    require(a.is_contiguous_rows and b.is_contiguous_rows, "set_rows", "rows of a and b must have no gaps", a, b)
    return record_op(view_tensor(ctx, a), "SET_ROWS", (), b, rows, a)


def set(ctx: Context, a: Tensor, b: Tensor, nb1: int, nb2: int, nb3: int, offset: int) -> Tensor:
    """`a` with `b` written at `offset`, its rows `nb1` apart. `ggml_set`, ggml/src/ggml.c."""
    require(a.nelements >= b.nelements and 0 <= offset < 1 << 30, "set", f"b must fit at offset {offset}", a, b)
    return record_op(dup_tensor(ctx, a), "SET", (nb1, nb2, nb3, offset, 0), a, b)


def set_inplace(ctx: Context, a: Tensor, b: Tensor, nb1: int, nb2: int, nb3: int, offset: int) -> Tensor:
    """The same, written into `a`: the result is a view of it. `ggml_set_inplace`, ggml/src/ggml.c."""
    require(a.nelements >= b.nelements and 0 <= offset < 1 << 30, "set", f"b must fit at offset {offset}", a, b)
    return record_op(view_tensor(ctx, a), "SET", (nb1, nb2, nb3, offset, 1), a, b)
