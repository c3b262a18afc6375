"""Every chapter in JupyterLab as a newcomer takes it: lay, open, run all cells, step in a player."""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.driver import TOKEN, Lab
from vizggml.lab import TOUR, lay, shipped_chapters

OpenPage = Callable[..., Page]

CHAPTERS = [chapter.name for chapter in shipped_chapters() if chapter.parent.name != "zh"]
OUTPUT = ".jp-Notebook [data-mime-type='application/vnd.jupyter.{}']"
ERROR = OUTPUT.format("error")
BAD = f"{ERROR}, {OUTPUT.format('stderr')}"
LIMIT_MS = 120_000
"""That a chapter may take on a machine that does other things, too; alone it takes a quarter of it."""
ENDED = """(error) => {
  const cells = [...document.querySelectorAll(".jp-Notebook .jp-CodeCell")];
  const prompts = cells.map((cell) => cell.querySelector(".jp-InputPrompt").textContent);
  return document.querySelector(error) || prompts.every((prompt) => /\\d/.test(prompt));
}"""


@pytest.fixture
def chapters(lab: Lab) -> Iterator[Lab]:
    """The lab with the chapters laid and no kernel of another test."""
    lay(lab.folder)
    stop_kernels(lab)
    yield lab
    stop_kernels(lab)


def stop_kernels(lab: Lab) -> None:
    for session in json.loads(ask(lab, "GET", "sessions")):
        ask(lab, "DELETE", f"sessions/{session['id']}")


def ask(lab: Lab, method: str, path: str) -> bytes:
    url = f"http://127.0.0.1:{lab.port}/api/{path}"
    request = urllib.request.Request(url, method=method, headers={"Authorization": f"token {TOKEN}"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return bytes(answer.read())


def run_all(page: Page) -> None:
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    page.wait_for_function(ENDED, arg=ERROR, timeout=LIMIT_MS)


def step(page: Page, player: Locator) -> None:
    number = player.locator(".vg-goto")
    last = int(re.sub(r"\D", "", player.locator(".vg-count").text_content() or ""))
    before = int(number.input_value())
    key, after = ("ArrowLeft", before - 1) if before == last else ("ArrowRight", before + 1)
    player.locator(".vg-sentence").click()
    page.keyboard.press(key)
    expect(number).to_have_value(str(after))


@pytest.mark.parametrize("name", CHAPTERS)
def test_every_cell_of_a_chapter_runs_and_its_players_come_up(name: str, chapters: Lab, open_page: OpenPage) -> None:
    page = open_page(quiet=True)
    chapters.open(page, name)
    run_all(page)
    assert page.locator(BAD).all_inner_texts() == []
    kept = page.locator(".jp-Notebook .vg-kept").count()
    players = page.locator(".jp-Notebook .vg-here")
    assert kept > 0
    expect(players).to_have_count(kept)
    for k in range(players.count()):
        players.nth(k).scroll_into_view_if_needed()
        expect(players.nth(k).locator(".vg-sentence")).not_to_be_empty(timeout=30_000)
    step(page, players.last)


def test_a_word_of_the_tour_opens_its_step(chapters: Lab, open_page: OpenPage) -> None:
    page = open_page(quiet=True)
    chapters.open(page, TOUR)
    run_all(page)
    sentence = page.locator(".vg-sentence")
    word = page.locator(".vg-token").last
    text = word.inner_text().strip()
    word.click()
    expect(page.locator(".vg-kind")).to_have_text("TokenSampled")
    expect(sentence).to_contain_text(text)
    number = int(page.locator(".vg-goto").input_value())
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".vg-goto")).to_have_value(str(number - 1))
    for key in ("Home", "P", "w", "w"):
        page.keyboard.press(key)
    expect(page.locator(".vg-kind")).to_have_text("SearchBegin")
    expect(sentence).to_contain_text("is looked for")
    page.keyboard.press("ArrowRight")
    expect(sentence).to_contain_text("is too small")


def test_an_exercise_of_the_allocator_is_solved_in_its_notebook(chapters: Lab, open_page: OpenPage) -> None:
    page = open_page(quiet=True)
    chapters.open(page, "05-galloc.ipynb")
    run_all(page)
    cell = page.locator(".jp-CodeCell", has_text='lessons.check("05.1", answer)')
    said = cell.locator(".jp-OutputArea-output").last
    expect(said).to_have_text("Your turn: put your answer in place of the three dots.")
    for answer, words in (("192", "Not yet. That is the sum of all three."), ("128", "Right.")):
        cell.locator(".cm-line").first.click()
        page.keyboard.press("Home")
        page.keyboard.press("Shift+End")
        page.keyboard.type(f"answer = {answer}")
        page.keyboard.press("Control+Enter")
        expect(said).to_contain_text(words, timeout=LIMIT_MS)
