"""The tensor: what ggml says of shapes and strides, names, flags, and the bytes as arrays."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from tests.ggml.programs import Ours, Reals, program
from tests.ggml.seen import seen
from tests.oracle import LIB, Real, tensor_fields
from vizggml.errors import VizggmlError
from vizggml.events import FlagsSet, TensorNamed
from vizggml.ggml import ops
from vizggml.ggml.context import Context
from vizggml.ggml.tensor import Address, Tensor, bits_f32, can_repeat, f32_bits, same_shape, same_stride
from vizggml.ggml.types import FLAG_INPUT, FLAG_OUTPUT, OPS, TYPES, TYPES_BY_ID, pad, type_named


def test_what_ggml_says_of_shapes_and_strides() -> None:
    for seed in range(120):
        steps = program(seed)
        ours, reals = Ours(steps), Reals(steps)
        last: tuple[Tensor, int] | None = None
        for t, real in zip(ours.tensors, reals.tensors, strict=True):
            assert t.nbytes == LIB.ggml_nbytes(real)
            assert t.nelements == LIB.ggml_nelements(real)
            assert t.nrows == LIB.ggml_nrows(real)
            assert t.n_dims == LIB.ggml_n_dims(real)
            assert t.is_contiguous() == LIB.ggml_is_contiguous(real)
            assert t.is_contiguous(1) == LIB.ggml_is_contiguous_1(real)
            assert t.is_contiguous(2) == LIB.ggml_is_contiguous_2(real)
            assert t.is_contiguous_rows == LIB.ggml_is_contiguous_rows(real)
            assert t.is_permuted == LIB.ggml_is_permuted(real)
            assert t.is_transposed == LIB.ggml_is_transposed(real)
            assert t.is_view == (tensor_fields(real).view_src != 0)
            if last is not None:
                assert can_repeat(t, last[0]) == LIB.ggml_can_repeat(real, last[1])
            last = t, real
        reals.free()


@pytest.mark.parametrize("ne", [(0,), (4, 0), (1, 1, 1, 1), (32, 0, 2), (1, 5)])
def test_empty_and_single_shapes(ne: tuple[int, ...]) -> None:
    ctx, real = Context(1 << 12, no_alloc=True), Real(1 << 12)
    t, r = ctx.new_tensor("F32", ne), real.new_tensor("F32", ne)
    one, real_one = ctx.new_tensor("F32", (1,)), real.new_tensor("F32", (1,))
    assert t.is_empty == LIB.ggml_is_empty(r)
    assert t.nbytes == LIB.ggml_nbytes(r)
    assert can_repeat(t, one) == LIB.ggml_can_repeat(r, real_one)
    assert can_repeat(one, t) == LIB.ggml_can_repeat(real_one, r)
    real.free()


def test_the_type_table_is_ggmls() -> None:
    for type in TYPES.values():
        assert LIB.ggml_type_name(type.id).decode().upper() == type.name.upper()
        assert LIB.ggml_type_size(type.id) == type.type_size
        assert LIB.ggml_blck_size(type.id) == type.blck_size
        assert LIB.ggml_is_quantized(type.id) == type.is_quantized
        assert LIB.ggml_row_size(type.id, 512) == type.row_size(512)
        assert TYPES_BY_ID[type.id] is type
    assert type_named("q4_0") is TYPES["Q4_0"]
    with pytest.raises(VizggmlError, match="type 'Q9_9' is not one of ggml's: F32"):
        type_named("Q9_9")
    with pytest.raises(VizggmlError, match="type Q4_0: a row of 40 elements is not a multiple of 32"):
        TYPES["Q4_0"].row_size(40)
    assert OPS[0] == "NONE"
    assert [pad(x, 16) for x in (0, 1, 16, 17)] == [0, 16, 16, 32]


def test_a_name_is_cut_as_ggml_cuts_it() -> None:
    ctx, real = Context(1 << 12, no_alloc=True), Real(1 << 12)
    for name in ("short", "x" * 63, "x" * 64, "y" * 200):
        t = ctx.new_tensor("F32", (1,)).set_name(name)
        assert t.name == tensor_fields(real.new_tensor("F32", (1,), name)).name
        ctx.reset()
    assert t.set_name("é" * 40).name == "é" * 31
    with seen() as events:
        t.set_name("<b>")
    assert events.one(TensorNamed) == TensorNamed(t.id, "<b>", seq=0)
    real.free()


def test_flags_add_up_and_an_output_keeps_what_it_looks_into() -> None:
    ctx = Context(1 << 12, no_alloc=True)
    a = ctx.new_tensor("F32", (4,))
    with seen() as events:
        a.set_input()
        view = ops.view_1d(ctx, a, 2, 0)
        view.set_output()
    assert [(e.tensor, e.flags) for e in events.of(FlagsSet)] == [(a.id, 1), (view.id, 2), (a.id, 3)]
    assert a.flags == FLAG_INPUT | FLAG_OUTPUT


def test_arrays_are_the_planned_bytes() -> None:
    ctx = Context(1 << 12)
    a = ctx.new_tensor("F32", (3, 2), "a")
    a.set([[1, 2, 3], [4, 5, 6]])
    assert a.array().shape == (1, 1, 2, 3)
    turned = ops.transpose(ctx, a)
    assert turned.array()[0, 0].tolist() == [[1, 4], [2, 5], [3, 6]]
    turned.array()[0, 0, 2, 1] = 60
    assert a.array()[0, 0, 1, 2] == 60
    assert ops.view_1d(ctx, a, 2, 8).array().ravel().tolist() == [3, 4]
    blocks = ctx.new_tensor("Q8_0", (64, 2))
    assert blocks.array().shape == (1, 1, 2, 2, 34)
    assert ctx.new_tensor("BF16", (2,)).array().dtype == np.uint16
    with pytest.raises(VizggmlError, match="tensor 'a' holds 6 elements, got 5"):
        a.set([1, 2, 3, 4, 5])
    planned = Context(1 << 12, no_alloc=True).new_tensor("F32", (3,), "planned")
    with pytest.raises(VizggmlError, match="tensor 'planned' has no memory yet"):
        planned.array()
    planned.data = Address(np.zeros(8, np.uint8), 0)
    with pytest.raises(VizggmlError, match=r"tensor 'planned': offset 0 \+ 12 bytes ends past its memory \(8 bytes\)"):
        planned.array()


def test_addresses_are_equal_where_their_bytes_are() -> None:
    memory = np.zeros(16, np.uint8)
    assert Address(memory, 4) + 4 == Address(memory, 8)
    assert Address(memory, 4) != Address(memory.copy(), 4)
    assert len({Address(memory, 0), Address(memory, 0), Address(memory, 1)}) == 2
    assert repr(Address(memory, 3)) == "Address(3 of 16)"


def test_op_params_are_int32_and_floats_their_bits() -> None:
    assert f32_bits(1.0) == 0x3F800000
    assert f32_bits(-0.0) == -(1 << 31)
    assert bits_f32(f32_bits(0.1)) == np.float32(0.1)
    ctx = Context(1 << 12, no_alloc=True)
    a = ctx.new_tensor("F32", (4,), "a")
    scaled = ops.scale_bias(ctx, a, 0.5, 2.0)
    assert (scaled.op_param_f32(0), scaled.op_param_f32(1), scaled.op_param_i32(9)) == (0.5, 2.0, 0)
    assert (ops.silu(ctx, a).op_desc, ops.swiglu(ctx, a).op_desc, scaled.op_desc) == ("SILU", "SWIGLU", "SCALE")
    assert repr(ops.silu(ctx, a).set_name("s")) == "<Tensor s F32 [4, 1, 1, 1] SILU>"
    assert same_shape(a, scaled)
    assert same_stride(a, scaled)


def test_recording_keeps_no_tensor_alive() -> None:
    ctx = Context(1 << 12, no_alloc=True)
    with seen() as events:
        gone = weakref.ref(ops.relu(ctx, ctx.new_tensor("F32", (4,))))
        ctx.reset()
    gc.collect()
    assert len(events) > 3
    assert gone() is None
