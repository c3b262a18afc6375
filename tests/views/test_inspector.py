"""What there is to know of a tensor: against real ggml, and against what can be counted by hand."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracle import LIB, Real, tensor_fields
from vizggml import ggml
from vizggml.errors import VizggmlError
from vizggml.ggml.types import TYPES
from vizggml.timeline.record import record
from vizggml.timeline.trace import Trace
from vizggml.views.inspector import Jump, Link, facts_of, layout_of, walk_of
from vizggml.views.inspector_picture import inspector_picture


@pytest.fixture(scope="module")
def real() -> Iterator[Real]:
    made = Real(1 << 24)
    yield made
    made.free()


def predicates_of(t: int) -> tuple[tuple[str, bool], ...]:
    """As real ggml answers."""
    names = "contiguous", "contiguous_1", "contiguous_2", "contiguous_rows", "permuted", "transposed"
    return tuple((name, bool(getattr(LIB, f"ggml_is_{name}")(t))) for name in names)


def check(t: int) -> str:
    """Hold our layout of a real tensor to ggml's own answers; our words for it."""
    fields = tensor_fields(t)
    type = TYPES[fields.type]
    (n0, n1, n2, n3), (b0, b1, b2, b3) = fields.ne, fields.nb
    layout = layout_of((n0, n1, n2, n3), (b0, b1, b2, b3), type.blck_size, type.type_size)
    assert layout.predicates == predicates_of(t)
    return layout.words


@settings(max_examples=150)
@given(
    type=st.sampled_from(["F32", "F16", "Q4_0", "Q6_K"]),
    blocks=st.integers(1, 3),
    ne=st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3)),
    axes=st.permutations([0, 1, 2, 3]),
    cut=st.integers(0, 2),
)
def test_layouts_are_those_of_real_ggml(
    real: Real, type: str, blocks: int, ne: tuple[int, int, int], axes: list[int], cut: int
) -> None:
    t = real.new_tensor(type, (blocks * TYPES[type].blck_size, *ne))
    nb = tensor_fields(t).nb
    assert check(t) == "contiguous: no gaps"
    view = real.op("view_4d", t, TYPES[type].blck_size * max(1, blocks - cut), *ne, nb[1], nb[2], nb[3], 0)
    check(view)
    check(real.op("permute", view, *axes))
    check(real.op("transpose", view))


def test_the_words_of_a_layout(real: Real) -> None:
    t = real.new_tensor("F32", (8, 4, 2))
    assert check(real.op("transpose", t)) == "transposed: nb[0] > nb[1]"
    assert check(real.op("permute", t, 0, 2, 1, 3)) == "permuted: strides out of order"
    assert check(real.op("view_2d", t, 3, 4, 32, 0)) == "rows contiguous, gaps between"
    assert check(real.op("view_2d", real.op("permute", t, 1, 2, 0, 3), 1, 2, 128, 0)) == "rows contiguous, gaps between"


def test_the_walk_goes_by_the_smallest_stride() -> None:
    """A 64 x 5 x 4 view of rows of 4 heads: memory meets a head's 64 elements, then the heads, then the rows."""
    assert walk_of((64, 5, 4, 1), (4, 1024, 256, 5120), 1, 4) == (
        Jump(0, 4, 64, 4),
        Jump(2, 256, 4, 256),
        Jump(1, 1024, 5, 1024),
    )
    assert walk_of((256, 128, 1, 1), (34, 272, 34816, 34816), 32, 34) == (Jump(0, 34, 8, 34), Jump(1, 272, 128, 272))
    assert walk_of((4, 4, 1, 1), (4, 32, 128, 128), 1, 4) == (Jump(0, 4, 4, 4), Jump(1, 32, 4, 16))
    assert walk_of((1, 1, 1, 1), (4, 4, 4, 4), 1, 4) == ()


@pytest.fixture(scope="module")
def lesson() -> Trace:
    """relu(W x + b) and a view of a view of its input: W 24 bytes, x 12, b 8; the product, sum and output 8 each."""
    with record(values=True) as trace:
        ctx = ggml.Context(mem_size=1 << 20, no_alloc=True)
        W, x, b = (ctx.new_tensor("F32", ne, name=n) for ne, n in (((3, 2), "W"), ((4,), "x"), ((2,), "b")))
        part = ggml.view_1d(ctx, ggml.view_1d(ctx, x, 4, 0).set_name("all"), 3, 4).set_name("part")
        wx = ggml.mul_mat(ctx, W, part).set_name("wx")
        out = ggml.relu(ctx, ggml.add(ctx, wx, b).set_name("sum")).set_name("out")
        g = ggml.Graph(ctx)
        g.build_forward_expand(out)
        ggml.GraphAllocator(ggml.cpu_buffer_type()).alloc_graph(g)
        W.set([[1, 2, 3], [4, 5, 6]])
        x.set([9, 1, 0, -1])
        b.set([0.5, -10])
        ggml.graph_compute(g, ggml.graph_plan(g, n_threads=1))
    return trace


def id_of(trace: Trace, name: str) -> int:
    tracks = trace.tracks()
    return next(t for t in range(len(tracks["tensor.name"])) if tracks.string(int(tracks["tensor.name"][t])) == name)


def events(trace: Trace, kind: str, tensor: str) -> list[int]:
    """The events that name a tensor, straight from the trace."""
    t = id_of(trace, tensor)
    return [e.seq for e in trace.events if type(e).__name__ == kind and getattr(e, "tensor", -1) == t]


def test_a_tensor_by_its_numbers(lesson: Trace) -> None:
    facts = facts_of(lesson.tracks(), id_of(lesson, "wx"))
    assert (facts.name, facts.op, facts.type, facts.ne, facts.nb) == (
        "wx",
        "MUL_MAT",
        "F32",
        (2, 1, 1, 1),
        (4, 8, 8, 8),
    )
    assert (facts.nbytes, facts.blck_size, facts.type_size, facts.bits_per_weight) == (8, 1, 4, 32)
    assert facts.sources == (id_of(lesson, "W"), id_of(lesson, "part"))
    assert facts.consumers == (id_of(lesson, "sum"),)
    assert (facts.status, facts.is_leaf, facts.is_view) == ("done", False, False)
    assert facts.asked == ()
    assert facts.flat is None


def test_the_chain_of_views_and_what_it_was_flattened_to(lesson: Trace) -> None:
    facts = facts_of(lesson.tracks(), id_of(lesson, "part"))
    x, all_ = id_of(lesson, "x"), id_of(lesson, "all")
    assert facts.asked == (Link(all_, 4), Link(x, 0))
    assert facts.flat == Link(x, 4)
    assert (facts.root, facts.is_view, facts.values) == (x, True, None)


def test_the_life_of_the_bytes(lesson: Trace) -> None:
    """Execution order: all, part, wx, sum, out. Each takes the bytes of the one before in place."""
    tracks = lesson.tracks()
    wx, total, out = (facts_of(tracks, id_of(lesson, name)) for name in ("wx", "sum", "out"))
    assert wx.life is not None
    assert total.life is not None
    assert out.life is not None
    assert (wx.life.first, wx.life.heirs, wx.life.size, wx.life.padded) == (2, (total.tensor,), 8, 32)
    assert (total.life.reuses, total.life.offset) == (wx.tensor, wx.life.offset)
    assert (total.life.first, total.life.last, total.life.heirs) == (3, 3, (out.tensor,))
    assert total.life.assigned_at == events(lesson, "ParentReused", "sum")[0]
    x = facts_of(tracks, id_of(lesson, "part")).life
    assert x is not None
    assert (x.freed_by, x.freed_at) == (wx.tensor, events(lesson, "TensorFreed", "x")[0])
    assert out.life.freed_by == -1


def test_when_it_was_created_and_computed(lesson: Trace) -> None:
    facts = facts_of(lesson.tracks(), id_of(lesson, "wx"), 0)
    assert facts.created_at == events(lesson, "TensorCreated", "wx")[0]
    assert facts.computed_at == events(lesson, "NodeBegin", "wx")[0]
    assert (facts.status, facts.place, facts.values) == ("not yet met", None, None)


def test_its_place_in_a_buffer(lesson: Trace) -> None:
    facts = facts_of(lesson.tracks(), id_of(lesson, "part"))
    root = facts_of(lesson.tracks(), facts.root)
    assert facts.place is not None
    assert root.place is not None
    assert facts.place.offset == root.place.offset + 4
    assert facts.place.buft == "CPU"


def test_its_values_are_those_that_it_had_by_then(lesson: Trace) -> None:
    """W x = (1 + 0 - 3, 4 + 0 - 6); with b (-1.5, -12)."""
    tracks = lesson.tracks()
    end = events(lesson, "NodeEnd", "wx")[0]
    values = facts_of(tracks, id_of(lesson, "wx"), end).values
    assert values is not None
    assert (values.event, values.evaluation) == (end, 0)
    assert values.grid.tolist() == [[-2, -2]]
    assert values.stats == (-2, -2, -2, 2, 0)
    assert facts_of(tracks, id_of(lesson, "wx"), end - 1).values is None
    total = facts_of(tracks, id_of(lesson, "sum")).values
    assert total is not None
    assert total.grid.tolist() == [[-1.5, -12]]
    assert np.flatnonzero(total.bins).tolist() == [0, 31]


def test_what_there_is_not_is_refused(lesson: Trace) -> None:
    with pytest.raises(VizggmlError, match=r"tensor 99: the trace has tensors 0 to 7"):
        facts_of(lesson.tracks(), 99)
    with pytest.raises(VizggmlError, match="step"):
        facts_of(lesson.tracks(), 0, len(lesson))


def words(svg: str) -> list[str]:
    return [text.text or "" for text in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


def test_the_figure_says_the_strides_and_the_values(lesson: Trace) -> None:
    tracks = lesson.tracks()
    text = words(inspector_picture(tracks, len(tracks) - 1, tensor=id_of(lesson, "W")))
    assert {"nb[0] = 4: 3 steps of 4 B", "nb[1] = 12: 2 steps of 12 B", "0", "4", "8", "12", "16", "20"} <= set(text)
    assert dict(pairwise(text))["plan offset"] == "0 of chunk 0, 24 B, padded to 32 B"
    text = words(inspector_picture(tracks, len(tracks) - 1, tensor=id_of(lesson, "sum")))
    assert {"minimum -12, maximum -1.5, mean -6.75,", "rms 8.551, 0 not finite"} <= set(text)


def test_a_view_with_gaps_shows_what_is_skipped() -> None:
    with record() as trace:
        ctx = ggml.Context(mem_size=1 << 16, no_alloc=True)
        x = ctx.new_tensor("F32", (8, 4), name="x")
        ggml.view_2d(ctx, x, 4, 4, 32, 16).set_name("half")
    text = words(inspector_picture(trace.tracks(), len(trace) - 1, tensor=id_of(trace, "half")))
    assert "nb[1] = 32: 4 steps of 32 B, 16 B of each skipped" in text
    assert dict(pairwise(text))["view of"] == "x + 16 B"
