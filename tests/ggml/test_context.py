"""The arena: objects one after the other, as many bytes as in ggml."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from tests.ggml.seen import seen
from tests.oracle import LIB, Real, tensor_fields
from vizggml.errors import VizggmlError
from vizggml.events import (
    ContextCreated,
    ContextFreed,
    ContextOverflow,
    ContextReset,
    Event,
    FlagsSet,
    ObjectAppended,
    OpRecorded,
    TensorCreated,
    TensorNamed,
    TensorPlaced,
    ViewCreated,
    bus,
)
from vizggml.ggml import ops
from vizggml.ggml.buffer import alloc_ctx_tensors_from_buft, cpu_buffer_type
from vizggml.ggml.cgraph import Graph
from vizggml.ggml.context import TENSOR_OVERHEAD, Context
from vizggml.ggml.tensor import Tensor
from vizggml.ggml.types import TYPES


@pytest.mark.parametrize("no_alloc", [True, False])
def test_used_mem_is_ggmls(no_alloc: bool) -> None:
    rng = random.Random(4)
    ctx, real = Context(1 << 20, no_alloc), Real(1 << 20, no_alloc)
    assert ctx.used_mem == real.used_mem() == 0
    for _ in range(60):
        type = rng.choice([t for t in TYPES.values() if t.blck_size <= 64])
        ne = (type.blck_size * rng.randint(1, 3), *(rng.randint(1, 4) for _ in range(rng.randint(0, 3))))
        ctx.new_tensor(type, ne)
        real.new_tensor(type.name, ne)
        assert ctx.used_mem == real.used_mem()
    assert LIB.ggml_tensor_overhead() == TENSOR_OVERHEAD
    assert len(list(ctx.tensors)) == 60
    ctx.reset()
    LIB.ggml_reset(real.ctx)
    assert ctx.used_mem == real.used_mem() == 0
    real.free()


@pytest.mark.parametrize("seed", range(30))
def test_any_sequence_of_objects_lies_as_in_ggml(seed: int) -> None:
    """Tensors, views and graphs in any order: where each object is, what is used, what a walk over them finds."""
    rng = random.Random(seed)
    no_alloc, mem_size = rng.random() < 0.5, rng.randrange(3 << 18, 1 << 20)
    ctx, real = Context(mem_size, no_alloc), Real(mem_size, no_alloc)
    assert ctx.mem_size == LIB.ggml_get_mem_size(real.ctx)
    base = LIB.ggml_get_mem_buffer(real.ctx)
    for _ in range(rng.choice((1, 1, 2))):
        ctx.reset()
        LIB.ggml_reset(real.ctx)
        ours: list[Tensor] = []
        reals: list[int] = []
        for i in range(rng.randint(0, 40)):
            what = rng.random()
            if what < 0.1:
                size = rng.choice((1, 2, 10, 100, 300))
                Graph(ctx, size)
                real.graph(size)
            elif what < 0.4 and ours:
                j = rng.randrange(len(ours))
                n = rng.randint(1, ours[j].nelements)
                ours.append(ops.view_1d(ctx, ours[j], n, 0))
                reals.append(real.op("view_1d", reals[j], n, 0))
            else:
                ne, name = tuple(rng.randint(1, 9) for _ in range(rng.randint(1, 4))), rng.choice(("", f"t{i % 7}"))
                ours.append(ctx.new_tensor("F32", ne, name))
                reals.append(real.new_tensor("F32", ne, name))
            assert ctx.used_mem == real.used_mem()
        offsets = [obj.offs for obj in ctx.objects if obj.tensor is not None]
        assert offsets == [address - base for address in reals]
        for t, address in zip(ours, reals, strict=True):
            data = tensor_fields(address).data
            assert (None if t.data is None else t.data.offset) == (data - base if data else None)
        assert [*ctx.tensors] == ours
        assert [*walked(real)] == reals
        for name in ("t0", "t3", "t3 (view)", "nobody"):
            found, there = ctx.get_tensor(name), LIB.ggml_get_tensor(real.ctx, name.encode())
            assert (None if found is None else ours.index(found)) == (reals.index(there) if there else None)
    real.free()


def walked(real: Real) -> Iterator[int]:
    t = LIB.ggml_get_first_tensor(real.ctx)
    while t:
        yield t
        t = LIB.ggml_get_next_tensor(real.ctx, t)


def test_objects_follow_each_other_after_their_headers() -> None:
    with seen() as events:
        ctx = Context(5000)
        a = ctx.new_tensor("F32", (3,), "a")
        b = ctx.new_tensor("F32", (4,), "b")
        Graph(ctx, 2)
    created = events.one(ContextCreated)
    assert (created.context, created.mem_size, created.no_alloc) == (ctx.id, 5008, False)
    objects = events.of(ObjectAppended)
    assert [(o.object_type, o.offset, o.size, o.padding) for o in objects] == [
        ("TENSOR", 32, 352, 4),
        ("TENSOR", 416, 352, 0),
        ("GRAPH", 800, objects[2].size, objects[2].padding),
    ]
    assert [(c.tensor, c.type, c.ne, c.nb, c.nbytes) for c in events.of(TensorCreated)] == [
        (a.id, "F32", (3, 1, 1, 1), (4, 12, 12, 12), 12),
        (b.id, "F32", (4, 1, 1, 1), (4, 16, 16, 16), 16),
    ]
    assert a.data is not None
    assert a.data.offset == 32 + 336
    assert ctx.get_tensor("b") is b
    assert ctx.get_tensor("c") is None


def test_a_view_of_a_view_looks_into_the_first_source() -> None:
    ctx = Context(1 << 14, no_alloc=True)
    a = ctx.new_tensor("F32", (16,), "a")
    outer = ctx.new_view(a, (8,), 16)
    with seen() as events:
        inner = ctx.new_view(outer, (4,), 8)
    view = events.one(ViewCreated)
    assert (view.tensor, view.view_src, view.view_offs) == (inner.id, a.id, 24)
    assert (view.asked_src, view.asked_offs) == (outer.id, 8)
    assert inner.view_src is a
    with pytest.raises(VizggmlError, match=r"view of 'a': offset 48 \+ 32 bytes ends past its 64 bytes"):
        ctx.new_view(a, (8,), 48)


def test_an_arena_that_is_full_says_so() -> None:
    ctx = Context(2 * TENSOR_OVERHEAD, no_alloc=True)
    ctx.new_tensor("F32", (3,))
    ctx.new_tensor("F32", (3,))
    with (
        seen() as events,
        pytest.raises(VizggmlError, match=r"not enough space for a TENSOR \(needed 1104, available 736"),
    ):
        ctx.new_tensor("F32", (3,))
    overflow = events.one(ContextOverflow)
    assert (overflow.context, overflow.needed, overflow.available) == (ctx.id, 1104, 736)
    assert len(ctx.objects) == 2


@pytest.mark.parametrize(
    ("ne", "says"),
    [
        ((), "needs 1 to 4 dimensions"),
        ((1, 2, 3, 4, 5), "needs 1 to 4 dimensions"),
        ((-1,), "none below 0"),
        ((1 << 40, 1 << 40), "the limit is 9223372036854775807"),
    ],
)
def test_shapes_that_cannot_be(ne: tuple[int, ...], says: str) -> None:
    with pytest.raises(VizggmlError, match=says):
        Context(1 << 12, no_alloc=True).new_tensor("F32", ne)
    with pytest.raises(VizggmlError, match="mem_size -1 is below 0"):
        Context(-1)


def test_reset_and_free() -> None:
    ctx = Context(1 << 12)
    ctx.new_tensor("F32", (3,))
    with seen() as events:
        ctx.reset()
        ctx.new_tensor("F32", (3,))
        ctx.free()
    reset, freed = events.one(ContextReset), events.one(ContextFreed)
    assert (reset.context, reset.used_mem, reset.n_objects) == (ctx.id, 384, 1)
    assert (freed.context, freed.used_mem, freed.n_objects) == (ctx.id, 384, 1)
    assert ctx.used_mem == 0
    assert ctx.mem_buffer.nbytes == 0
    assert ctx not in bus.standing


def test_the_snapshot_makes_again_what_stands() -> None:
    with seen() as told:
        ctx = Context(1 << 14, no_alloc=True)
        a = ctx.new_tensor("F32", (4, 4), "a").set_input()
        view = ops.view_1d(ctx, a, 4, 16)
        out = ops.add(ctx, view, view)
        alloc_ctx_tensors_from_buft(ctx, cpu_buffer_type())
    kinds: tuple[type[Event], ...] = (ContextCreated, TensorCreated, ViewCreated, OpRecorded, FlagsSet, TensorPlaced)
    snapshot = list(ctx.snapshot())
    for kind in kinds:
        assert [_values(e) for e in snapshot if isinstance(e, kind)] == [_values(e) for e in told.of(kind)]
    assert {e.name for e in snapshot if isinstance(e, TensorNamed)} == {"a", "a (view)"}
    assert [e.offset for e in snapshot if isinstance(e, ObjectAppended)] == [e.offset for e in told.of(ObjectAppended)]
    assert out.buffer is not None


def _values(event: Event) -> tuple[object, ...]:
    return tuple(getattr(event, name) for name in type(event).__slots__)  # type: ignore[attr-defined]
