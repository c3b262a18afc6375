"""Any events that a file can hold, in any order: the fold answers, and its tracks are well formed."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.timeline.made import at, trace_of
from vizggml.events import KINDS, Event, TokenSampled
from vizggml.timeline.schema import fields_of
from vizggml.timeline.sentences import render
from vizggml.timeline.trace_check import NAMED

NUMBERS = st.sampled_from([-(2**63), -(2**31) - 1, -1, 0, 1, 2, 8, 31, 32, 64, 2**31, 2**53, 2**62, 2**63 - 1])
IDS = st.integers(-1, 3)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "float": st.floats(),
    "str": st.sampled_from(["", "compute", "K", "V", "blk.3.x", "{tensor}", "too small", "best fit", "\ud800"]),
    "dims": st.tuples(NUMBERS, NUMBERS, NUMBERS, NUMBERS),
    "ints": st.lists(NUMBERS, max_size=3).map(tuple),
    "floats": st.lists(st.floats(), max_size=3).map(tuple),
    "strs": st.lists(st.sampled_from(["", "a"]), max_size=3).map(tuple),
    "tensors": st.lists(IDS, max_size=3).map(tuple),
    **dict.fromkeys(("int", "bytes", "offset", "ns", "flags"), NUMBERS),
}


@st.composite
def any_event(draw: st.DrawFn) -> Event:
    kind = draw(st.sampled_from(KINDS))
    values = [
        draw(st.integers(0, 3) if f"k.{kind.__name__}.{field.name}" in NAMED else VALUES.get(field.ftype, IDS))
        for field in fields_of(kind)
    ]
    return kind(*values, node=draw(IDS), cause=-1)  # type: ignore[arg-type]


def test_nothing_else_needs_to_be_named() -> None:
    plain = {"bool": True, "float": 0.0, "str": "compute", "dims": (1, 1, 1, 1), "floats": (1.0,), "strs": ("a",)}
    numbers = {"ints": (1,), "tensors": (-1,), **dict.fromkeys(("int", "bytes", "offset", "ns", "flags"), 1)}
    for kind in KINDS:
        named = {f.name: int(f"k.{kind.__name__}.{f.name}" in NAMED) - 1 for f in fields_of(kind)}
        values = [{**plain, **numbers}.get(f.ftype, named[f.name]) for f in fields_of(kind)]
        assert render(trace_of(kind(*values)).tracks(), 0)  # type: ignore[arg-type]


@settings(max_examples=150, deadline=None)
@given(st.lists(any_event(), max_size=60))
def test_any_events_fold(events: list[Event]) -> None:
    tracks = trace_of(*events).tracks()
    n = len(events)
    for name in tracks.names:
        a, b = tracks[f"t.{name}.a"], tracks[f"t.{name}.b"]
        assert (np.diff(a) >= 0).all()
        assert ((a >= 0) & (a < b) & (b <= n)).all()
    for i in range(n):
        assert render(tracks, i)
    assert tracks.to_bytes()


def test_thousands_of_tokens_take_turns_at_one_place() -> None:
    """Each replaces the one before; the 20,000 tokens that stand before it are not looked at again each time."""
    n = 20_000
    before = [TokenSampled(1, "a", 1.0, pos) for pos in range(n)]
    turns = [TokenSampled(2 + k % 2, "b", 1.0, n - 1) for k in range(n)]
    tracks = trace_of(*before, *turns, TokenSampled(4, "c", 1.0, 0)).tracks()
    assert len(tracks["t.token.a"]) == 2 * n + 1
    assert len(at(tracks, "token", 2 * n - 1)) == n
    assert [row[0] for row in at(tracks, "token", 2 * n)] == [4]
