"""The builders, held to real ggml's: every field of every tensor they make."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from tests.ggml.programs import Ours, Reals, program
from tests.ggml.seen import seen
from tests.oracle import LIB, Real, tensor_fields
from vizggml import ggml
from vizggml.errors import VizggmlError
from vizggml.events import OpRecorded, StridesChanged
from vizggml.ggml import ops
from vizggml.ggml.context import Context
from vizggml.ggml.tensor import Tensor
from vizggml.ggml.types import TYPES, UNARY_OPS


def assert_same(ours: Iterable[Tensor], reals: Iterable[int]) -> None:
    """Field by field, sources by their number in the two lists."""
    pairs = list(zip(ours, reals, strict=True))
    number = {address: i for i, (_, address) in enumerate(pairs)}
    place = {t.id: i for i, (t, _) in enumerate(pairs)}
    for t, address in pairs:
        f = tensor_fields(address)
        assert (t.type.name, t.ne, t.nb, t.op, t.name, t.flags) == (f.type, f.ne, f.nb, f.op, f.name, f.flags)
        assert (*t.op_params, *(0,) * (16 - len(t.op_params))) == f.op_params, t
        assert [None if s is None else place[s.id] for s in t.src] == [number[s] if s else None for s in f.src], t
        assert (t.view_src is None) == (f.view_src == 0)
        if t.view_src is not None:
            assert (place[t.view_src.id], t.view_offs) == (number[f.view_src], f.view_offs)


@pytest.mark.parametrize("block", range(6))
def test_random_programs_make_the_same_tensors(block: int) -> None:
    for seed in range(block * 50, block * 50 + 50):
        steps = program(seed)
        ours, reals = Ours(steps), Reals(steps)
        assert_same(ours.tensors, reals.tensors)
        assert ours.ctx.used_mem == reals.real.used_mem()
        reals.free()


F, H, J = "F32", "F16", "I32"
CASES: dict[str, tuple[list[tuple[str, tuple[int, ...]]], tuple[Any, ...]]] = {
    "add1": ([(F, (4, 3)), (F, (1,))], ()),
    "add_id": ([(F, (4, 3, 2)), (F, (4, 8)), (J, (3, 2))], ()),
    "sub_inplace": ([(F, (4, 3)), (F, (4,))], ()),
    "div_inplace": ([(F, (4, 3)), (F, (4, 1))], ()),
    "dup_inplace": ([(F, (4, 3))], ()),
    "log_inplace": ([(F, (4, 3))], ()),
    "cos": ([(F, (4, 3))], ()),
    "leaky_relu": ([(F, (4, 3))], (0.25, 1)),
    "scale_bias": ([(F, (4, 3))], (0.5, -1.0)),
    "group_norm": ([(F, (4, 3, 8))], (2, 1e-6)),
    "l2_norm": ([(F, (4, 3))], (1e-6,)),
    "cumsum": ([(F, (4, 3))], ()),
    "argmax": ([(F, (9, 3))], ()),
    "argsort": ([(F, (9, 3))], (1,)),
    "top_k": ([(F, (9, 3))], (4,)),
    "count_equal": ([(J, (9, 3)), (J, (9, 3))], ()),
    "fill": ([(F, (9, 3))], (2.5,)),
    "diag_mask_zero": ([(F, (9, 3))], (2,)),
    "out_prod": ([(F, (5, 3)), (F, (4, 3, 2))], ()),
    "mul_mat_id": ([(F, (8, 6, 4)), (F, (8, 1, 3)), (J, (2, 3))], ()),
    "set": ([(F, (8, 6)), (F, (4, 2))], (32, 192, 192, 64)),
    "set_inplace": ([(F, (8, 6)), (F, (4, 2))], (32, 192, 192, 64)),
    "repeat": ([(F, (2, 3)), (F, (4, 9, 2))], ()),
    "reshape_1d": ([(F, (4, 3))], (12,)),
    "reshape_3d": ([(F, (4, 6))], (2, 4, 3)),
    "reshape_4d": ([(F, (4, 6))], (2, 2, 2, 3)),
    "view_3d": ([(F, (8, 6, 4))], (4, 3, 2, 32, 192, 208)),
    "view_4d": ([(F, (8, 6, 4, 2))], (4, 3, 2, 2, 32, 192, 768, 32)),
    "cont_1d": ([(F, (4, 3))], (12,)),
    "cont_3d": ([(F, (4, 6))], (2, 3, 4)),
    "soft_max_ext": ([(F, (16, 3, 4)), (H, (16, 8))], (0.125, 0.0)),
    "rope": ([(F, (8, 2, 5)), (J, (5,))], (8, 2)),
    "rope_inplace": ([(F, (8, 2, 5)), (J, (5,))], (4, 0)),
    "rope_ext": (
        [(F, (8, 2, 5)), (J, (5,)), (F, (4,))],
        (8, 0, 4096, 5e5, 0.5, 0.25, 0.9, 32.0, 1.0),
    ),
    "reglu": ([(F, (8, 3))], ()),
    "geglu": ([(F, (8, 3))], ()),
    "swiglu": ([(F, (8, 3))], ()),
    "geglu_erf_split": ([(F, (8, 3)), (F, (8, 3))], ()),
    "geglu_quick_split": ([(F, (8, 3)), (F, (8, 3))], ()),
    "reglu_split": ([(F, (8, 3)), (F, (8, 3))], ()),
}


@pytest.mark.parametrize("name", [*CASES, *(op.lower() for op in UNARY_OPS if op != "XIELU")])
def test_one_builder(name: str) -> None:
    leafs, numbers = CASES.get(name, ([(F, (4, 3))], ()))
    ctx, real = Context(1 << 16, no_alloc=True), Real(1 << 16)
    ours = [ctx.new_tensor(type, ne, f"t{i}") for i, (type, ne) in enumerate(leafs)]
    reals = [real.new_tensor(type, ne, f"t{i}") for i, (type, ne) in enumerate(leafs)]
    ours.append(getattr(ops, name)(ctx, *ours, *numbers))
    reals.append(real.op(name, *reals, *numbers))
    assert_same(ours, reals)
    real.free()


def test_precision_and_sinks_are_written_afterwards() -> None:
    ctx, real = Context(1 << 16, no_alloc=True), Real(1 << 16)
    shapes = [(F, (8, 3, 4)), (H, (8, 16, 2)), (H, (8, 16, 2)), (H, (16, 4)), (F, (4,))]
    ours = [ctx.new_tensor(type, ne) for type, ne in shapes]
    reals = [real.new_tensor(type, ne) for type, ne in shapes]
    q, k, v, mask, sinks = ours
    attention = ops.flash_attn_ext_set_prec(ops.flash_attn_ext(ctx, q, k, v, mask, 0.5, 1.0, 2.0), ops.PREC_F32)
    real_attention = real.op("flash_attn_ext", *reals[:4], 0.5, 1.0, 2.0)
    product = ops.mul_mat_set_prec(ops.mul_mat(ctx, k, q), ops.PREC_F32)
    real_product = real.op("mul_mat", reals[1], reals[0])
    soft = ops.soft_max_ext(ctx, ops.cont(ctx, product))
    real_soft = real.op("soft_max", real.op("cont", real_product))
    with seen() as events:
        ops.flash_attn_ext_add_sinks(attention, sinks)
    assert events.one(OpRecorded).src == (q.id, k.id, v.id, mask.id, sinks.id)
    ops.soft_max_add_sinks(soft, sinks)
    pointer = LIB.ggml_free.argtypes[0]
    for call, t, value in (
        ("ggml_flash_attn_ext_set_prec", real_attention, ops.PREC_F32),
        ("ggml_mul_mat_set_prec", real_product, ops.PREC_F32),
        ("ggml_flash_attn_ext_add_sinks", real_attention, reals[4]),
        ("ggml_soft_max_add_sinks", real_soft, reals[4]),
    ):
        LIB[call](pointer(t), pointer(value))
    inner = soft.src[0]
    assert inner is not None
    assert_same(
        [*ours, attention, product, inner, soft],
        [*reals, real_attention, real_product, tensor_fields(real_soft).src[0], real_soft],
    )
    real.free()


def test_events_of_a_builder_and_of_a_view() -> None:
    ctx = Context(1 << 16, no_alloc=True)
    a = ctx.new_tensor(F, (4, 6), "a")
    with seen() as events:
        views = [
            ops.view_2d(ctx, a, 2, 3, 16, 8),
            ops.reshape_2d(ctx, a, 12, 2),
            ops.permute(ctx, a, 1, 0, 2, 3),
            ops.transpose(ctx, a),
        ]
    changes = events.of(StridesChanged)
    assert [(c.tensor, c.src, c.how) for c in changes] == [
        (t.id, a.id, how) for t, how in zip(views, ("view", "reshape", "permute", "transpose"), strict=True)
    ]
    assert {(c.ne_before, c.nb_before) for c in changes} == {((4, 6, 1, 1), (4, 16, 96, 96))}
    assert [c.ne for c in changes] == [(2, 3, 1, 1), (12, 2, 1, 1), (6, 4, 1, 1), (6, 4, 1, 1)]
    assert [c.nb for c in changes] == [(4, 16, 48, 48), (4, 48, 96, 96), (16, 4, 96, 96), (16, 4, 96, 96)]
    recorded = events.of(OpRecorded)
    assert [(r.op, r.desc, r.src, r.in_place) for r in recorded] == [
        (op, op, (a.id,), False) for op in ("VIEW", "RESHAPE", "PERMUTE", "TRANSPOSE")
    ]
    assert recorded[2].op_params == (1, 0, 2, 3)
    with seen() as events:
        t = ops.sqr_inplace(ctx, views[3])
    assert events.one(OpRecorded) == OpRecorded(t.id, "SQR", "SQR", (), (views[3].id,), True, seq=5, node=t.id)
    # written over a transposed tensor, the result has its strides too
    assert events.one(StridesChanged).nb == t.nb == (16, 4, 96, 96)


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (
            lambda c, t: ops.add(c, t(4, 3), t(4, 2)),
            r"add: a's shape .* 't0' F32 \[4, 3, 1, 1\], 't1' F32 \[4, 2, 1, 1\]",
        ),
        (lambda c, t: ops.mul_mat(c, t(4, 3), t(5, 3)), r"mul_mat: ne\[0\] must agree"),
        (lambda c, t: ops.mul_mat(c, ops.transpose(c, t(4, 3)), t(3, 2)), "must not be transposed"),
        (lambda c, t: ops.reshape_2d(c, t(4, 3), 5, 2), r"\[5, 2\] has 10 elements, 't0' F32 \[4, 3, 1, 1\] 12"),
        (lambda c, t: ops.reshape_2d(c, ops.transpose(c, t(4, 3)), 6, 2), "a must be contiguous"),
        (lambda c, t: ops.view_1d(c, t(4, 3), 4, 36), "offset 36 [+] 16 bytes ends past its 48 bytes"),
        (lambda c, t: ops.view_2d(c, t(4, 3), 4, 2, 48, 0), "offset 0 [+] 64 bytes ends past its 48 bytes"),
        (lambda c, t: ops.view_1d(c, t(4, 3), 2, -4), "offset -4 is below 0"),
        (lambda c, t: ops.view(c, t(4, 3), (2, 2), ()), "2 dimensions need 1 strides, got 0"),
        (lambda c, t: ops.permute(c, t(4, 3), 0, 0, 1, 2), r"axes \(0, 0, 1, 2\)"),
        (lambda c, t: ops.cpy(c, t(4, 3), t(4, 2)), "same number of elements"),
        (lambda c, t: ops.cont_2d(c, t(4, 3), 4, 4), "16 elements"),
        (lambda c, t: ops.concat(c, t(4, 3), t(5, 3), 1), "agree but in dimension 1"),
        (lambda c, t: ops.concat(c, t(4, 3), t(4, 3), 4), "dim 4 must be 0 to 3"),
        (lambda c, t: ops.repeat(c, t(4, 3), t(4, 4)), "whole repetitions"),
        (lambda c, t: ops.get_rows(c, t(4, 3), t(2)), "rows must be I32"),
        (lambda c, t: ops.set_rows(c, t(4, 3), t(4, 2), t(2)), "rows I64 or I32"),
        (lambda c, t: ops.soft_max_ext(c, t(4, 3), t(5, 3)), "mask must cover"),
        (lambda c, t: ops.soft_max_ext(c, t(4, 3), None, 1.0, 8.0), "max_bias 8.0 needs a mask"),
        (lambda c, t: ops.rope(c, t(4, 2, 3), c.new_tensor(J, (2,)), 4, 0), "pos must be a vector of 3 I32"),
        (lambda c, t: ops.flash_attn_ext(c, t(4, 2), t(5, 3), t(4, 3), None, 1.0, 0.0, 0.0), "q and k must agree"),
        (lambda c, t: ops.flash_attn_ext(c, t(4, 2), t(4, 3), t(4, 3), t(3, 2), 1.0, 0.0, 0.0), "contiguous F16"),
        (lambda c, t: ops.unary(c, t(4), "RELLU"), "'RELLU' is not one of ABS"),
        (lambda c, t: ops.glu(c, t(4), "GLOO"), "'GLOO' is not one of REGLU"),
        (lambda c, t: ops.swiglu_split(c, t(4), t(5)), "b must have a's shape"),
        (lambda c, t: ops.mul_mat_set_prec(t(4), 10), "result of mul_mat"),
        (lambda c, t: ops.scale(c, ops.transpose(c, t(4, 3)), 2.0), "gaps only between rows"),
        (lambda c, t: ops.top_k(c, t(4), 5), "at least 5 elements"),
    ],
)
def test_what_does_not_fit_is_refused(build: Any, says: str) -> None:
    ctx = Context(1 << 16, no_alloc=True)
    n = iter(range(9))
    with pytest.raises(VizggmlError, match=says):
        build(ctx, lambda *ne: ctx.new_tensor(F, ne, f"t{next(n)}"))


def test_the_package_answers_with_ggmls_names() -> None:
    assert ggml.mul_mat is ops.mul_mat
    assert ggml.Context is Context
    assert ggml.TYPES is TYPES
    assert callable(ggml.graph_plan)
    assert callable(ggml.graph_compute)
    assert callable(ggml.read_graph)
    assert not hasattr(ggml, "no_such_builder")
    assert not hasattr(ggml, "_private")
