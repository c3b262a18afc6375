"""Traces made by hand, and rows of tracks as plain tuples."""

from __future__ import annotations

from vizggml.events import Event
from vizggml.timeline.record import Recorder
from vizggml.timeline.trace import Trace
from vizggml.timeline.tracks import Tracks

SIZE_MAX_HALF = 2**63 - 1
"""The size of a chunk's last free block where the buffer type sets no limit."""


def trace_of(*events: Event, renumber: bool = False) -> Trace:
    """A trace of just these events; a cause counts from the first. Ids stay what they are, unless `renumber`."""
    recorder = Recorder()
    for ids in recorder._ids.values() if not renumber else ():
        for number in range(10):
            assert ids[number] == number
    for event in events:
        recorder.take(event)
    recorder.settle()
    recorder.trace._recorder = None
    return recorder.trace


def rows(tracks: Tracks, name: str) -> list[tuple[int, ...]]:
    """Every row of a track: a, b and then its values in order."""
    columns = [v.tolist() for c, v in tracks.track(name).items() if c not in ("ck", "ckrow")]
    return [tuple(int(v) for v in row) for row in zip(*columns, strict=True)]


def at(tracks: Tracks, name: str, i: int) -> list[tuple[int, ...]]:
    """The values of the rows that hold at event `i`."""
    columns = [v.tolist() for c, v in tracks.at(name, i).items() if c not in ("a", "b")]
    return [tuple(int(v) for v in row) for row in zip(*columns, strict=True)]
