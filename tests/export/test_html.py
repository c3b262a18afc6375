"""The page: one file, nothing fetched, nothing obeyed but its own script, the same bytes each time."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.views.synthetic import HOSTILE, hostile, teaching
from vizggml.errors import VizggmlError
from vizggml.export.html import html, safe_script, to_html
from vizggml.views.graph_layout import layout

pytestmark = pytest.mark.usefixtures("stub_player")


class Page(HTMLParser):
    """Tags in order, and what stands in each script."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.scripts: list[tuple[dict[str, str], str]] = []
        self._open: dict[str, str] | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {k: v or "" for k, v in attrs}
        self.tags.append((tag, given))
        self._open = given if tag == "script" else None

    def handle_endtag(self, tag: str) -> None:
        self._open = None

    def handle_data(self, data: str) -> None:
        if self._open is not None:
            self.scripts.append((self._open, data))


def block(page: str, id: str) -> bytes:
    found = next(text for attrs, text in Page(page).scripts if attrs.get("id") == id)
    return zlib.decompress(base64.b64decode(found))


def test_it_carries_tracks_and_layout() -> None:
    page = html(teaching(), step=3)
    assert block(page, "tracks") == teaching().to_bytes()
    assert json.loads(block(page, "layout")) == layout(teaching())
    assert 'const OPTIONS = {"step": 3};' in page


def test_the_policy_lets_its_own_script_run_and_nothing_else() -> None:
    page = Page(html(teaching()))
    policy = next(a["content"] for t, a in page.tags if t == "meta" and "http-equiv" in a)
    script = next(text for attrs, text in page.scripts if attrs.get("type") == "module")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == f"'sha256-{digest}'"
    assert set(rules) == {"default-src", "script-src", "style-src", "img-src", "base-uri", "form-action"}
    assert rules["img-src"] == "data:"


def test_nothing_is_named_elsewhere() -> None:
    page = Page(html(teaching()))
    for _, attrs in page.tags:
        for name, value in attrs.items():
            assert name not in ("src", "href") or value.startswith("data:")
    assert not re.search(r"https?://(?!www\.w3\.org/)", html(teaching()))


def test_equal_traces_give_equal_bytes() -> None:
    assert html(teaching(), title="t") == html(teaching(), title="t")


def test_names_do_not_reach_the_markup() -> None:
    tracks = hostile()
    tracks.meta["model"] = HOSTILE[0]
    text = html(tracks)
    assert "stranger" not in re.sub(r"<title>.*?</title>|alt=\".*?\"", "", text)
    page = Page(text)
    assert [t for t, _ in page.tags].count("script") == 3
    assert not any(name.startswith("on") for _, attrs in page.tags for name in attrs)


def test_without_javascript_there_is_a_picture() -> None:
    text = html(teaching(), step=3)
    image = re.search(r'<noscript>.*?src="data:image/svg\+xml;base64,([^"]+)"', text, re.DOTALL)
    assert image is not None
    assert "Step 3 of 7" in base64.b64decode(image[1]).decode()


@pytest.mark.parametrize(
    ("source", "safe"),
    [
        ('x = "</script>"', 'x = "<\\/script>"'),
        ("x = '</SCRIPT >'", "x = '<\\/SCRIPT >'"),
        ('x = "<!-- <script>"', 'x = "\\x3c!-- <script>"'),
        ("a < b;\r\nc", "a < b;\nc"),
    ],
)
def test_a_script_cannot_end_early(source: str, safe: str) -> None:
    assert safe_script(source) == safe


def test_it_is_written_and_a_wrong_step_is_not(tmp_path: Path) -> None:
    to_html(teaching(), tmp_path / "run.html", step=2)
    assert (tmp_path / "run.html").read_text(encoding="utf-8") == html(teaching(), step=2)
    with pytest.raises(VizggmlError, match="step 8: the trace has steps 0 to 7"):
        to_html(teaching(), tmp_path / "no.html", step=8)
    assert not (tmp_path / "no.html").exists()
