"""The tour in JupyterLab as a newcomer takes it: run all cells, click a word, step."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.browser.driver import Lab
from vizggml.lab import TOUR, lay

OpenPage = Callable[..., Page]


def run_all(page: Page) -> None:
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()


def test_every_cell_of_the_tour_runs_and_a_word_opens_its_step(lab: Lab, open_page: OpenPage) -> None:
    lay(lab.folder)
    page = open_page(quiet=True)
    lab.open(page, TOUR)
    run_all(page)
    sentence = page.locator(".vg-sentence")
    sentence.wait_for(timeout=120_000)
    page.locator("#jp-main-statusbar").get_by_text("| Idle").first.wait_for(timeout=120_000)
    assert page.locator(".jp-OutputArea-output[data-mime-type='application/vnd.jupyter.stderr']").count() == 0
    word = page.locator(".vg-token").last
    text = word.inner_text().strip()
    word.click()
    expect(page.locator(".vg-kind")).to_have_text("TokenSampled")
    expect(sentence).to_contain_text(text)
    step = int(page.locator(".vg-goto").input_value())
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".vg-goto")).to_have_value(str(step - 1))
