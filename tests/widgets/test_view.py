"""The widget: a thin shell. What it sends, what it shows where no widget runs, what it refuses."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import pytest

from tests.views.synthetic import teaching
from vizggml import ggml
from vizggml.errors import VizggmlError
from vizggml.timeline.record import record
from vizggml.timeline.trace import Trace
from vizggml.timeline.tracks import Tracks
from vizggml.views.graph_layout import layout
from vizggml.widgets.view import Player, view


def lesson() -> Trace:
    with record() as trace:
        ctx = ggml.Context(mem_size=1 << 20, no_alloc=True)
        W, x = ctx.new_tensor("F32", (3, 2), name="W"), ctx.new_tensor("F32", (3,), name="x")
        wx = ggml.mul_mat(ctx, W, x).set_name("wx")
        out = ggml.relu(ctx, ggml.add(ctx, wx, ctx.new_tensor("F32", (2,), name="b"))).set_name("out")
        g = ggml.Graph(ctx)
        g.build_forward_expand(out)
        ggml.GraphAllocator(ggml.cpu_buffer_type()).alloc_graph(g)
    return trace


def test_it_sends_the_tracks_as_bytes_and_the_layout_as_json() -> None:
    trace = lesson()
    player = view(trace, step=3)
    assert player.tracks == trace.tracks().to_bytes()
    assert Tracks.from_bytes(player.tracks).n_events == len(trace)
    assert json.loads(player.graph_layout) == json.loads(json.dumps(layout(trace.tracks())))
    assert (player.step, player.selected, player.panes) == (3, -1, None)


def test_a_step_set_from_python_sends_the_step_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    player = view(lesson())
    sent: list[object] = []
    monkeypatch.setattr(player, "send_state", lambda key=None: sent.append(key))
    player.step = 5
    assert [key for key in sent if key is not None] == ["step"]


def test_where_no_widget_runs_there_is_a_picture() -> None:
    bundle = view(lesson())._repr_mimebundle_()
    assert bundle is not None
    data, _ = bundle
    assert set(data) == {"application/vnd.jupyter.widget-view+json", "image/svg+xml", "text/plain"}
    words = {e.text for e in ET.fromstring(data["image/svg+xml"]).iter("{http://www.w3.org/2000/svg}text")}
    assert "Memory map" in words
    assert any(word.startswith("Graph ") and word.endswith(": 3 nodes") for word in words)


def test_the_picture_is_of_the_step_that_was_asked_for() -> None:
    assert "Step 6 of 7" in view(teaching(), step=6).still()
    assert "Step 4 of 7" in view(teaching()).still()
    assert "Step 1 of 7" in view(teaching(), step=6).still(1)


def test_the_picture_is_of_the_pane_that_stands_beside_the_events() -> None:
    texts = [
        {e.text for e in ET.fromstring(view(lesson(), panes=panes).still()).iter("{http://www.w3.org/2000/svg}text")}
        for panes in (["counts", "events"], ["counts"], ["events"], ["graph", "counts"])
    ]
    titles = "Counts", "Counts", "Events", "Memory map"
    assert [title in found for title, found in zip(titles, texts, strict=True)] == [True] * 4
    assert "Memory map" not in texts[0]


def test_another_trace_can_be_put_on_it() -> None:
    player = view(teaching(), step=6)
    player.selected = 2
    trace = lesson()
    player.show(trace.tracks())
    assert player.tracks == trace.tracks().to_bytes()
    assert (player.step, player.selected) == (trace.tracks().start, -1)


def test_panes_and_height() -> None:
    player = view(teaching(), panes=["map", "events"], height=300, theme="dark")
    assert (player.panes, player.height, player.theme) == (["map", "events"], "300px", "dark")
    assert view(teaching(), panes="map", height="50vh").height == "50vh"
    assert [view(teaching(), panes=p).height for p in (None, ["map"], ["map", "events"])] == ["760px", "380px", "630px"]


def test_what_cannot_be_shown_is_refused() -> None:
    with pytest.raises(VizggmlError, match="step 8: the trace has steps 0 to 7"):
        view(teaching(), step=8)
    with pytest.raises(VizggmlError, match="pane 'mpa': there are tokens, graph, map"):
        view(teaching(), panes=["mpa"])
    with pytest.raises(VizggmlError, match="there is no trace on it yet"):
        Player().still()


def test_a_player_without_a_trace_has_no_picture() -> None:
    bundle = Player()._repr_mimebundle_()
    assert bundle is not None
    assert "image/svg+xml" not in bundle[0]
