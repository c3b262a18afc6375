"""The comparison in a notebook: a thin shell around the page's module."""

from __future__ import annotations

from pathlib import Path

import pytest

import vizggml as vg
from tests.timeline.test_diff import lesson, planned
from vizggml.errors import VizggmlError
from vizggml.timeline.tracks import Tracks


def test_it_sends_both_traces_and_opens_b_where_it_answers() -> None:
    shown = vg.compare(planned(lesson()), planned(lesson(scaled=True)), step=100, labels=("one", "two"), height=500)
    assert Tracks.from_bytes(shown.tracks_a).n_events == shown.diff.a.n_events
    assert Tracks.from_bytes(shown.tracks_b).n_events == shown.diff.b.n_events
    assert (shown.step, shown.step_b) == (100, shown.diff.to_b(100))
    assert (shown.height, shown.diff.labels) == ("500px", ("one", "two"))


def test_where_no_widget_runs_there_are_words() -> None:
    bundle = vg.compare(planned(lesson()), planned(lesson(scaled=True)))._repr_mimebundle_()
    assert bundle is not None
    assert bundle[0]["text/plain"].startswith("1 node more, the same peak, 128 B\n")
    assert "<strong>1 node more, the same peak, 128 B</strong>" in bundle[0]["text/html"]


def test_it_is_written_as_a_page(tmp_path: Path) -> None:
    vg.compare(planned(lesson()), planned(lesson(scaled=True)), step=3).to_html(tmp_path / "both.html")
    assert '"step": 3' in (tmp_path / "both.html").read_text()


def test_what_cannot_be_shown_is_refused() -> None:
    with pytest.raises(VizggmlError, match="step 100000"):
        vg.compare(planned(lesson()), planned(lesson()), step=100_000)
    with pytest.raises(VizggmlError, match="pane 'sky'"):
        vg.compare(planned(lesson()), planned(lesson()), panes=["sky"])
