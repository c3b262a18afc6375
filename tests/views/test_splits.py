"""The still table of splits: those of the graph that is computed, with what is copied for each, at every copy."""

from __future__ import annotations

import vizggml as vg
from vizggml.views.details import split_rows


def test_the_splits_are_there_while_their_inputs_are_copied() -> None:
    context = vg.load_model("tiny").context(n_ctx=256, n_threads=1, n_gpu_layers=2)
    with vg.record() as trace:
        context.decode([5])
    tracks = trace.tracks()
    last = int(tracks.track("copy")["a"].max())
    rows = split_rows(tracks, last)
    assert [row.cells[1] for row in rows] == ["CPU", "DEV0"]
    assert [int(row.cells[3]) for row in rows] == [s.i_end - s.i_start for s in context.sched.splits]
    assert rows[0].cells[4] == "none"
    assert [name.split()[0] for name in rows[1].cells[4].split(", ")] == [
        t.name for t in context.sched.splits[1].inputs
    ]
    assert [row.marked for row in rows] == [False, True]
    assert split_rows(tracks, tracks.opening - 1) == []
