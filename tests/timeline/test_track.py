"""One track: intervals, and the index that finds those that hold at an event."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from vizggml.timeline.track import Track
from vizggml.timeline.tracks import Tracks


def tracks_of(track: Track, n: int) -> Tracks:
    finished, stride = track.finished(n)
    columns = {f"t.{track.name}.{c}": v for c, v in finished.items()}
    return Tracks({"n_events": n, "tracks": {track.name: {"stride": stride}}}, [], columns)


def test_a_value_holds_until_the_next() -> None:
    track = Track("x", {"key": "i", "value": "d"})
    track.set(2, "k", 7, 1.5)
    track.set(3, "other", 8, 0)
    track.set(5, "k", 7, 1.5)
    track.set(6, "k", 7, 2.5)
    track.clear(8, "k")
    track.clear(8, "nothing")
    finished, _ = track.finished(10)
    assert finished["a"].tolist() == [2, 3, 6]
    assert finished["b"].tolist() == [6, 10, 8]
    assert finished["key"].tolist() == [7, 8, 7]
    assert finished["value"].tolist() == [1.5, 0, 2.5]
    assert finished["value"].dtype == np.float64


def test_what_an_event_sets_twice_has_its_last_value() -> None:
    track = Track("x", {"value": "i"})
    track.set(4, 0, 1)
    track.set(4, 0, 2)
    track.set(4, 1, 9)
    track.clear(4, 1)
    finished, _ = track.finished(6)
    assert (finished["a"].tolist(), finished["b"].tolist(), finished["value"].tolist()) == ([4], [6], [2])


def test_a_fact_told_later_is_in_the_row() -> None:
    track = Track("x", {"begin": "d", "end": "d"})
    row = track.set(1, 0, 10, 10)
    assert track.finished(3)[0]["end"].tolist() == [10]
    track.amend(row, "end", 25)
    assert track.finished(3)[0]["end"].tolist() == [25]
    assert track.value(0, "begin") == 10
    assert track.value(1, "begin", -5) == -5


CHANGES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5), st.integers(0, 2)), max_size=300)


@settings(max_examples=60, deadline=None)
@given(CHANGES, st.integers(1, 12))
def test_the_index_finds_what_a_look_at_every_row_finds(changes: list[tuple[int, int, int]], keys: int) -> None:
    track, i = Track("x", {"value": "i"}), 0
    for step, key, value in changes:
        i += step
        if value:
            track.set(i, key % keys, value)
        else:
            track.clear(i, key % keys)
    n = i + 3
    tracks = tracks_of(track, n)
    a, b = tracks["t.x.a"], tracks["t.x.b"]
    assert (np.diff(a) >= 0).all()
    assert len(tracks["t.x.ckrow"]) <= 5 * len(a)
    for event in range(n):
        assert tracks.open_at("x", event).tolist() == np.flatnonzero((a <= event) & (event < b)).tolist()


def test_the_index_of_a_long_track_is_short() -> None:
    track = Track("x", {"value": "i"})
    for i in range(10000):
        track.set(i, i % 700, i)
    tracks = tracks_of(track, 20000)
    assert len(tracks["t.x.ckrow"]) <= 4 * 10000
    assert len(tracks.open_at("x", 15000)) == 700
