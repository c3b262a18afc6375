"""What the player shows of each part of a run, in real Chromium, with real traces."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.browser.test_html import lesson
from vizggml.events import Event
from vizggml.export.html import to_html
from vizggml.timeline.trace import Trace

OpenPage = Callable[..., Page]


def opened(trace: Trace, folder: Path, open_page: OpenPage, step: int = 0) -> Page:
    """The exported page at a step."""
    to_html(trace, folder / "run.html")
    page = open_page()
    page.goto(f"{(folder / 'run.html').as_uri()}#step={step}")
    expect(page.locator(".vg-sentence")).to_be_visible()
    return page


def steps_of(trace: Trace, kind: type[Event]) -> list[int]:
    return [i for i, event in enumerate(trace.events) if isinstance(event, kind)]


def test_the_peak_is_named_beside_the_lower_bound(tmp_path: Path, open_page: OpenPage) -> None:
    """W, x and b of 32 padded bytes each, and the product: 128 bytes live at once, and no plan takes less."""
    page = opened(lesson(), tmp_path, open_page)
    expect(page.locator(".vg-footnote")).to_contain_text("Peak 128 B, the lower bound, reached at position 0")
    legend = page.locator(".vg-pane-timeline .vg-legend")
    expect(legend).to_contain_text("live set, up to now")
    expect(legend).to_contain_text("lower bound: the largest live set")
