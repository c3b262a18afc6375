"""What every key owes a person: it acts, or says why it did not; and the player is whole on a narrow screen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_inspector import id_of, walked
from vizggml.export.html import to_html
from vizggml.timeline.trace import Trace

OpenPage = Callable[..., Page]


@pytest.fixture(scope="module")
def trace() -> Trace:
    return walked(values=False)


@pytest.fixture
def page(trace: Trace, tmp_path: Path, open_page: OpenPage) -> Page:
    to_html(trace, tmp_path / "lesson.html")
    page = open_page(permissions=["clipboard-read", "clipboard-write"], reduced_motion="reduce")
    page.goto((tmp_path / "lesson.html").as_uri())
    expect(page.locator(".vg-sentence")).to_be_visible()
    return page


def test_a_key_that_finds_nothing_says_so(trace: Trace, page: Page) -> None:
    notice = page.get_by_role("status")
    page.evaluate(f"location.hash = '#step={len(trace) - 1}&tensor={id_of(trace, 'product')}'")
    for key, said in (
        ("t", "No later event that names product. T goes back; Home, then t, begins at the first."),
        ("n", "No later event of the kind ComputeEnd."),
        (".", "This event is about no node."),
        ("j", "No later node."),
        ("b", "There is nowhere to go back to: you have not jumped yet."),
    ):
        page.keyboard.press(key)
        expect(notice).to_have_text(said)
        expect(notice).to_be_visible()
        expect(page.locator(".vg-goto")).to_have_value(str(len(trace) - 1))
    page.keyboard.press("Home")
    expect(notice).to_be_hidden()
    page.keyboard.press("w")
    expect(notice).to_have_text("Nothing in this trace caused this event.")
    page.keyboard.press("T")
    expect(notice).to_have_text("No earlier event that names product. t goes forward.")


def test_the_name_is_copied_by_a_key(trace: Trace, page: Page) -> None:
    page.evaluate(f"location.hash = '#step=20&tensor={id_of(trace, 'product')}'")
    page.keyboard.press("c")
    expect(page.get_by_role("status")).to_have_text("Copied: product")
    assert page.evaluate("navigator.clipboard.readText()") == "product"


def test_the_card_of_keys_keeps_the_focus_until_it_is_closed(page: Page) -> None:
    page.keyboard.press("?")
    card = page.get_by_role("dialog", name="Keys")
    expect(card.get_by_role("button", name="Close")).to_be_focused()
    expect(card).to_contain_text("copy the tensor's name")
    for key in ("Tab", "Shift+Tab"):
        page.keyboard.press(key)
        expect(card.get_by_role("button", name="Close")).to_be_focused()
    page.keyboard.press("Escape")
    expect(card).to_be_hidden()


@pytest.mark.parametrize("width", [300, 420, 640])
def test_every_control_is_within_a_narrow_player(width: int, page: Page) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.wait_for_timeout(100)
    rights = page.evaluate(
        """[...document.querySelectorAll('.vg-transport button, .vg-transport input')].map(
            control => control.getBoundingClientRect().right)"""
    )
    assert max(rights) <= width


def test_everything_that_the_tab_key_reaches_shows_it(page: Page) -> None:
    """Sixty stops from the first: each is seen to have the focus, and none is lost to the page."""
    page.locator(".vg-transport button").first.focus()
    for _ in range(60):
        page.keyboard.press("Tab")
        inside, outline, border = page.evaluate(
            """() => {
                const at = document.activeElement, style = getComputedStyle(at);
                return [at === document.body || !!at.closest(".vg-player"), style.outlineStyle, at.className];
            }"""
        )
        assert inside
        assert outline != "none" or border in ("", "vg-player") or "vg-player" in border, border
