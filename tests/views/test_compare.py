"""What the page of a comparison is given."""

from __future__ import annotations

from tests.timeline.test_diff import layers, lesson, planned
from vizggml.timeline.columns import unpack
from vizggml.timeline.diff import diff
from vizggml.timeline.schema import SCHEMA
from vizggml.views.compare import KEY_FIGURES, comparison, meta


def test_the_same_in_several_layers_is_one_row() -> None:
    """Four layers more, each of a weight and three nodes."""
    found = meta(diff(planned(layers([0, 1])), planned(layers([0, 1, 2, 3, 4, 5]))))
    added = {row["name"]: row for row in found["pairs"][0]["rows"] if row["kinds"] == ["added"]}
    assert set(added) == {"blk.*.w", "y", "act", "h"}
    assert {(row["layers"], len(row["members"])) for row in added.values()} == {("2 to 5", 4)}
    assert added["y"]["op"] == "MUL_MAT"
    assert all(a == -1 < b for a, b in added["y"]["members"])
    assert found["pairs"][0]["counts"]["added"] == 16


def test_the_figures_that_differ_are_shown_before_those_that_do_not() -> None:
    figures = meta(diff(planned(lesson()), planned(lesson(n=10))))["figures"]
    assert len(figures) <= KEY_FIGURES
    assert ["peak", "128 B", "288 B", "+160 B (+125 %)"] in figures


def test_the_events_travel_in_the_container() -> None:
    found = diff(planned(lesson()), planned(lesson(scaled=True)))
    content = unpack(comparison(found), "comparison", SCHEMA, "page")
    assert content.columns["event.a"].tolist() == found.events.a.tolist()
    assert content.columns["twin.b"].tolist() == found.twin_b
    assert content.meta["summary"][0] == "1 node more, the same peak, 128 B"
