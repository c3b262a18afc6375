"""What a notebook keeps of a player: a frame that may do nothing but run its own script, and a picture."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from html.parser import HTMLParser

import pytest

from tests.export.test_picture import recorded as recorded
from tests.views.synthetic import HOSTILE
from vizggml import ggml
from vizggml.export.saved import saved_player
from vizggml.timeline.record import record
from vizggml.timeline.trace import Trace


class Parts(HTMLParser):
    """Every element with its attributes, and the text of each script by its id."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: dict[str, str] = {}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        tag, attributes = self.elements[-1] if self.elements else ("", {})
        if tag == "script":
            self.scripts[attributes.get("id") or ""] = data

    def one(self, tag: str) -> dict[str, str | None]:
        (found,) = [attributes for name, attributes in self.elements if name == tag]
        return found


def sha256(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def test_the_frame_runs_two_scripts_by_their_hashes_and_nothing_else(recorded: Trace) -> None:
    outer = Parts(saved_player(recorded.tracks(), step=40, panes=["map"]))
    frame = outer.one("iframe")
    assert frame["sandbox"] == "allow-scripts"
    inner = Parts(frame["srcdoc"] or "")
    policy = next(a["content"] for t, a in inner.elements if t == "meta" and a.get("http-equiv")) or ""
    player = zlib.decompress(base64.b64decode(inner.scripts["script"])).decode()
    assert f"script-src '{sha256(inner.scripts[''])}' '{sha256(player)}';" in policy
    assert policy.startswith("default-src 'none';")
    chosen = {"fill": True, "hash": False, "panes": ["map"], "step": 40, "theme": "auto"}
    assert json.loads(inner.scripts["options"]) == chosen
    assert zlib.decompress(base64.b64decode(inner.scripts["tracks"])) == recorded.tracks().to_bytes()


def test_the_picture_is_of_the_step(recorded: Trace) -> None:
    source = Parts(saved_player(recorded.tracks(), step=40)).one("img")["src"] or ""
    assert "Step 40 of 74" in base64.b64decode(source.removeprefix("data:image/svg+xml;base64,")).decode()


def test_a_trace_too_large_to_keep_leaves_the_picture(recorded: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vizggml.export.saved.LIMIT", 1000)
    assert [tag for tag, _ in Parts(saved_player(recorded.tracks(), step=40)).elements] == ["img"]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_adds_nothing(name: str) -> None:
    with record() as trace:
        ggml.Context(mem_size=1 << 16, no_alloc=True).new_tensor("F32", (3,), name=name)
    text = saved_player(trace.tracks(), step=len(trace) - 1)
    assert [tag for tag, _ in Parts(text).elements] == ["style", "div", "iframe", "img"]
    assert not re.search(r"<script|onerror", text)


def test_equal_traces_are_kept_alike(recorded: Trace) -> None:
    tracks = recorded.tracks()
    assert saved_player(tracks, step=3) == saved_player(tracks, step=3)
