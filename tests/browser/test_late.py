"""A recording begun in the middle of a run, while the graph is being reused, opens and steps like any other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect

from vizggml.export import to_html
from vizggml.llama.model import load_model
from vizggml.timeline.record import record

OpenPage = Callable[..., Page]


def test_a_late_recording_opens_and_steps(open_page: OpenPage, tmp_path: Path) -> None:
    context = load_model("tiny").context(n_ctx=256, flash_attn=True, n_threads=1)
    stream = context.generate("Once upon a time", max_tokens=8, temp=0)
    told = [next(stream).text for _ in range(4)]
    with record() as trace:
        told += [token.text for token in stream]
    verdicts = trace.sentences("ReuseDecided")
    assert len(verdicts) == 4
    assert context.n_reused >= 6

    tracks = trace.tracks()
    (graph,) = {int(g) for g in tracks.track("eval")["graph"]}
    n_nodes = int(tracks["graph.ptr"][graph + 1] - tracks["graph.ptr"][graph])
    assert n_nodes == 4 * 31 + 6, "31 nodes a layer and 6 more, as in the reference's 936 for 30 layers"

    page = open_page()
    to_html(trace, tmp_path / "late.html")
    page.goto((tmp_path / "late.html").as_uri())
    number, sentence = page.locator(".vg-goto"), page.locator(".vg-sentence")
    sentence.wait_for()
    page.locator(".vg-token", has_text=told[6].strip()).last.click()
    expect(page.locator(".vg-kind")).to_have_text("TokenSampled")
    step = int(number.input_value())
    page.keyboard.press("ArrowLeft")
    expect(number).to_have_value(str(step - 1))
    page.keyboard.press("End")
    expect(number).to_have_value(str(len(trace) - 1))


def test_the_card_of_a_token_goes_with_a_click_and_with_any_key(open_page: OpenPage, tmp_path: Path) -> None:
    context = load_model("tiny").context(n_ctx=256, n_threads=1)
    with record() as trace:
        told = [token.text for token in context.generate("Once upon a time", max_tokens=3, temp=1.0, seed=1)]
    to_html(trace, tmp_path / "card.html")
    page = open_page()
    page.goto((tmp_path / "card.html").as_uri())
    card, head = page.locator(".vg-choice"), page.locator(".vg-kind")
    token = page.locator(".vg-token.vg-sampled", has_text=told[1].strip()).last
    for act in (token.click, lambda: page.keyboard.press("ArrowRight"), lambda: page.keyboard.press("u")):
        head.hover()
        expect(card).to_be_hidden()
        token.hover()
        expect(card).to_be_visible()
        act()
        expect(card).to_be_hidden()
        for key in ("Home", "ArrowRight", "End"):
            page.keyboard.press(key)
            page.wait_for_timeout(150)
            expect(card).to_be_hidden()
