"""Still SVGs in real Chromium, as a document of their own and inside a page: hostile names do nothing there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.browser.driver import refuse_network
from tests.views.synthetic import HOSTILE, hostile, llama
from vizggml.views.labels import visible
from vizggml.views.still import still
from vizggml.views.svg import Svg, graph_svg
from vizggml.views.tables import read_graph


@pytest.fixture(params=["graph", "still"])
def svg(request: pytest.FixtureRequest) -> Svg:
    if request.param == "graph":
        return graph_svg(read_graph(hostile(), 0), folded=False)
    return still(hostile(), 0, caption="".join(HOSTILE))


@pytest.mark.parametrize("suffix", ["svg", "html"])
def test_hostile_names_are_drawn_and_do_nothing(
    svg: Svg, suffix: str, tmp_path: Path, open_page: Callable[..., Page]
) -> None:
    file = tmp_path / f"hostile.{suffix}"
    file.write_text(svg if suffix == "svg" else f"<!doctype html><meta charset=utf-8><body>{svg}</body>", "utf-8")
    page = open_page()
    asked = refuse_network(page)
    page.goto(file.as_uri())
    titles = page.locator("g > title").all_text_contents()
    assert all(any(title.startswith(visible(name) + ":") for title in titles) for name in HOSTILE)
    assert page.locator("script, img, [onload], [onerror]").count() == 0
    assert page.evaluate("window.stranger") is None
    assert asked == []


def test_the_picture_has_room_for_its_words(open_page: Callable[..., Page], tmp_path: Path) -> None:
    """No name runs out of its box, with the fonts that are really there."""
    file = tmp_path / "llama.svg"
    file.write_text(graph_svg(read_graph(llama(3), 0)), "utf-8")
    page = open_page()
    page.goto(file.as_uri())
    over = page.evaluate(
        """() => [...document.querySelectorAll("g:has(> text.name)")].filter((g) => {
             const box = g.querySelector("rect").getBBox();
             return [...g.querySelectorAll("text")].some((t) => t.getBBox().x + t.getBBox().width > box.x + box.width);
           }).map((g) => g.textContent)"""
    )
    assert over == []
