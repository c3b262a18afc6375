"""The site of the chapters: pages with working players, links that lead somewhere, nothing fetched."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import jupytext
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.driver import refuse_network
from tests.chapters import book, pages, ran

OpenPage = Callable[..., Page]

CHAPTERS = book.found()
TRIED = [c for c in CHAPTERS if c.language == "en" or c.source.stem in ("05-galloc", "12-one-picture")]
"""A Chinese page has the code of its twin: two of them are opened."""
COLOUR = re.compile(r"rgb\((\d+), (\d+), (\d+)\)")
AA = 4.5


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> pages.Site:
    """Where the pages are written, each when it is first asked for."""
    return pages.Site(tmp_path_factory.mktemp("book"))


def laid(site: pages.Site, chapter: book.Chapter) -> Path:
    target = site.folder / chapter.path
    if not target.exists():
        site.write(book.page_of(chapter, CHAPTERS, CHAPTERS.index(chapter), ran(chapter.source)))
    return target


def step(page: Page, player: Locator) -> None:
    """A key in the player moves it by one step, and the sentence is the next one's."""
    frame = player.frame_locator("iframe")
    sentence, number = frame.locator(".vg-sentence"), frame.locator(".vg-goto")
    expect(sentence).not_to_be_empty(timeout=30_000)
    last = int(re.sub(r"\D", "", frame.locator(".vg-count").text_content() or ""))
    before = int(number.input_value())
    key, after = ("ArrowLeft", before - 1) if before == last else ("ArrowRight", before + 1)
    sentence.click()
    page.keyboard.press(key)
    expect(number).to_have_value(str(after))


@pytest.mark.parametrize("chapter", TRIED, ids=lambda c: c.path)
def test_every_player_of_a_page_steps_with_no_kernel_and_no_network(
    chapter: book.Chapter, site: pages.Site, open_page: OpenPage
) -> None:
    path = laid(site, chapter)
    page = open_page()
    page.set_viewport_size({"width": 700, "height": 900})
    asked = refuse_network(page)
    page.goto(path.as_uri())
    expect(page.get_by_role("heading", level=1)).to_have_text(re.compile(re.escape(chapter.title)))
    assert page.evaluate("document.documentElement.scrollWidth") == 700
    players = page.locator(".player")
    assert players.count() == path.read_text("utf-8").count("<iframe")
    for k in range(players.count()):
        players.nth(k).scroll_into_view_if_needed()
        step(page, players.nth(k))
    assert page.evaluate("document.documentElement.scrollWidth") == 700
    assert page.locator(".output_stderr, .output_error").count() == 0
    assert asked == []


def test_a_reader_finds_a_chapter_and_its_neighbours_and_its_twin(tmp_path: Path, open_page: OpenPage) -> None:
    book.make(tmp_path, book.found("05") + book.found("06"), jupytext.read, reference=False)
    page = open_page()
    page.goto((tmp_path / "index.html").as_uri())
    page.get_by_role("link", name="Chapter 5").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("graph allocator")
    page.get_by_role("link", name="中文").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("图分配器")
    assert page.evaluate("document.documentElement.lang") == "zh-CN"
    page.get_by_role("link", name="各章").click()
    expect(page.get_by_role("listitem")).to_have_count(2)


def test_the_contents_fold_where_the_page_is_narrow(site: pages.Site, open_page: OpenPage) -> None:
    path = site.write(pages.Page("folds.html", "Folds", book.Markup('<h1>A</h1><h2 id="b">B</h2><h2 id="c">C</h2>')))
    page = open_page()
    page.goto(path.as_uri())
    link = page.locator(".contents").get_by_role("link", name="B")
    expect(link).to_be_visible()
    page.set_viewport_size({"width": 700, "height": 900})
    expect(link).to_be_hidden()
    page.get_by_text("On this page").click()
    link.click()
    assert page.url.endswith("folds.html#b")


CODE = '''
```python
@vg.record  # a comment
def f(x: int = 0x1F) -> str:
    """Words."""
    return f"{x!r} of {len('abc')}" if x is not None else 1.5
```

`inline` [link](folds.html)
'''


COLOURS = """(elements) => elements.filter((e) => e.textContent.trim()).map((e) => {
  let behind = e;
  while (getComputedStyle(behind).backgroundColor === "rgba(0, 0, 0, 0)") behind = behind.parentElement;
  return [getComputedStyle(e).color, getComputedStyle(behind).backgroundColor];
})"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_code_can_be_read_by_day_and_by_night(site: pages.Site, open_page: OpenPage, theme: str) -> None:
    """Every colour of text stands against what is behind it as WCAG asks of small text."""
    notebook = jupytext.reads(f"# %% [markdown]\n{CODE}\n", fmt="md")
    path = site.write(pages.Page(f"{theme}.html", "Code", book.body_of(notebook), description="d"))
    page = open_page(color_scheme=theme)
    page.set_viewport_size({"width": 700, "height": 900})
    page.goto(path.as_uri())
    pairs = page.locator("main *, .bar *").evaluate_all(COLOURS)
    assert len({ink for ink, _ in pairs}) >= 7
    assert [pair for pair in pairs if contrast(*pair) < AA] == []


def contrast(ink: str, paper: str) -> float:
    """WCAG 2's ratio of two colours."""
    bright, dim = sorted((luminance(ink), luminance(paper)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


def luminance(colour: str) -> float:
    found = COLOUR.fullmatch(colour)
    assert found, colour
    parts = [int(part) / 255 for part in found.groups()]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("font", ["DejaVu Sans Mono", "monospace"])
def test_code_of_a_chapter_fits_at_700_pixels(site: pages.Site, open_page: OpenPage, font: str) -> None:
    line = "x" * 73 + "|"
    path = site.write(pages.Page("wide.html", "Wide", book.Markup(f'<div class="highlight"><pre>{line}</pre></div>')))
    page = open_page()
    page.set_viewport_size({"width": 700, "height": 900})
    page.goto(path.as_uri())
    page.add_style_tag(content=f":root {{ --mono: '{font}', monospace }}")
    wider = page.locator("pre").evaluate("(e) => e.scrollWidth - e.clientWidth")
    assert wider == 0


def test_every_link_leads_somewhere(tmp_path: Path) -> None:
    book.make(tmp_path, CHAPTERS, jupytext.read)
    assert book.broken_links(tmp_path) == []


def test_no_chapter_writes_what_a_page_cannot_show() -> None:
    """Formulas between dollars would need a script from elsewhere."""
    texts = [(c.path, cell.source) for c in CHAPTERS for cell in jupytext.read(c.source).cells]
    assert [path for path, text in texts if re.search(r"(?<![\w`$])\$[^$`\n]+\$(?![\w$])", text)] == []


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<h2 id="here">A</h2><a href="#here">x</a><a href="#gone">y</a><a href="b.html">z</a><a href="https://e.org">w</a>'
    )
    assert book.broken_links(tmp_path) == ["a.html: #gone", "a.html: b.html", "a.html: https://e.org"]


def test_the_list_says_what_is_done_in_every_chapter() -> None:
    assert [c.path for c in CHAPTERS if not c.does or c.source.stem not in book.COVERS] == []
