"""The site of the chapters: pages with working players, links that lead somewhere, nothing fetched."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.driver import refuse_network

sys.path.insert(0, str(Path(__file__).parents[2] / "book"))

import book


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("book")
    book.make(folder, "05")
    return folder


def test_a_page_plays_with_no_kernel_and_no_network(site: Path, open_page: Callable[..., Page]) -> None:
    page = open_page()
    asked = refuse_network(page)
    page.goto((site / "index.html").as_uri())
    page.get_by_role("link", name="Chapter 5").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("graph allocator")
    page.locator("iframe").first.scroll_into_view_if_needed()
    sentence = page.frame_locator("iframe").first.locator(".vg-sentence")
    expect(sentence).not_to_be_empty(timeout=20_000)
    before = sentence.inner_text()
    sentence.click()
    page.keyboard.press("ArrowRight")
    expect(sentence).not_to_have_text(before)
    assert asked == []


def test_every_link_leads_somewhere(site: Path) -> None:
    assert book.broken_links(site) == []


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<h2 id="here">A</h2><a href="#here">x</a><a href="#gone">y</a><a href="b.html">z</a><a href="https://e.org">w</a>'
    )
    assert book.broken_links(tmp_path) == ["a.html: #gone", "a.html: b.html", "a.html: https://e.org"]
