"""What the player shows of each part of a run, in real Chromium, with real traces."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.browser.test_html import lesson
from vizggml.events import Event, TensorCopied
from vizggml.export.html import to_html
from vizggml.llama.model import load_model
from vizggml.timeline.record import record
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


def test_splits_over_two_backends_are_named_and_their_copies_listed(tmp_path: Path, open_page: OpenPage) -> None:
    """One of four layers on a device, which reads 3 tokens of 256 floats from the others."""
    model = load_model("tiny")
    context = model.context(n_ctx=64, n_gpu_layers=2, device_memory=1 << 24)
    with record() as trace:
        context.decode([1, 5, 6])
    model.close()
    copied = steps_of(trace, TensorCopied)
    page = opened(trace, tmp_path, open_page, copied[0])
    legend = page.locator(".vg-pane-graph .vg-legend")
    expect(legend).to_contain_text("CPU")
    expect(legend).to_contain_text("DEV0")
    expect(legend).to_contain_text("copy to another backend")
    page.get_by_role("tab", name="Splits").click()
    rows = page.locator(".vg-pane-tables .vg-grid-row").locator("visible=true")
    expect(rows).to_have_count(2)
    cells = [row.locator("span").all_text_contents() for row in rows.all()]
    assert [row[:2] for row in cells] == [["0", "CPU"], ["1", "DEV0"]]
    assert cells[1][4].split(", ")[:2] == ["ffn_out-2 3 KiB", "ffn_inp-2"]
    expect(page.locator(".vg-pane-tables .vg-marked")).to_contain_text("DEV0")
    # its splits are computed one by one: the whole graph stays in sight
    assert "(130)" in (page.get_by_label("Which graph").locator("option:checked").text_content() or "")
