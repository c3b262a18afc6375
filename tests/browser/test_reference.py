"""The reference in real Chromium: no page is wider than a narrow window, and a name leads to its place."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.driver import refuse_network

sys.path.insert(0, str(Path(__file__).parents[2] / "book"))

from pages import Site

import book


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    site = Site(folder, sections=("reference",))
    book.write_reference(site)
    return folder / "reference"


def test_no_page_is_wider_than_700_pixels(folder: Path, open_page: Callable[..., Page]) -> None:
    page = open_page()
    asked = refuse_network(page)
    page.set_viewport_size({"width": 700, "height": 900})
    for sheet in sorted(folder.glob("*.html")):
        page.goto(sheet.as_uri())
        page.locator("details").evaluate_all("all => all.forEach((one) => (one.open = true))")
        assert page.evaluate("document.documentElement.scrollWidth") <= 700, sheet.name
    assert asked == []


def test_a_name_leads_from_the_index_through_a_signature_to_a_class(
    folder: Path, open_page: Callable[..., Page]
) -> None:
    page = open_page()
    page.goto((folder / "index.html").as_uri())
    page.get_by_role("link", name="load_model", exact=True).click()
    entry = page.locator("[id='vizggml.load_model']")
    expect(entry).to_be_in_viewport()
    entry.get_by_role("link", name="Model", exact=True).click()
    expect(page.locator("[id='vizggml.llama.model.Model']")).to_be_in_viewport()
