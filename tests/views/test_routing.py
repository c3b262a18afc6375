"""The routing of a layer for print, from events written by hand."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from tests.timeline.made import trace_of
from vizggml.events import ComputeBegin, ExpertsRouted, GraphId, TensorId
from vizggml.timeline.tracks import Tracks
from vizggml.views.details import routing_rows
from vizggml.views.pictures import picture

SVG = "{http://www.w3.org/2000/svg}"
MIB = 1 << 20


def tracks() -> Tracks:
    """Three tokens, two of four experts each: expert 3 has all of them, 1 none."""
    weights = (0.75, 0.25, 0.5, 0.5, 0.625, 0.375)
    return trace_of(
        ComputeBegin(GraphId(0), 1, 1),
        ExpertsRouted(TensorId(0), 5, 3, 4, 2, 3, 8 * MIB, 6 * MIB, (7, 8, 9), (3, 0, 3, 2, 0, 3), weights),
    ).tracks()


def test_the_words_and_the_loads() -> None:
    svg = ET.fromstring(picture(tracks(), "routing", 1))
    text = [t.text or "" for t in svg.iter(f"{SVG}text")]
    assert "Routing of layer 5" in text
    assert "3 tokens, 2 experts each; 3 of 4 experts are read: 6 MiB of 8 MiB, 75 % of their weights" in text
    assert [t for t in text if t in ("7", "8", "9")] == ["7", "8", "9"]
    heights = [float(r.get("height", "")) for r in svg.iter(f"{SVG}rect") if r.get("class") == "f0"]
    assert [round(h / max(heights) * 3) for h in heights] == [2, 1, 3]


def test_the_rows_of_the_table() -> None:
    assert [row.cells for row in routing_rows(tracks(), 1)][:3] == [
        ("5", "7", "3", "0.7500"),
        ("5", "7", "0", "0.2500"),
        ("5", "8", "3", "0.5000"),
    ]
    assert routing_rows(tracks(), 0) == []


def test_before_the_first_it_says_so() -> None:
    assert "No token has been sent to an expert at this step." in picture(tracks(), "routing", 0)
