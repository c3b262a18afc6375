"""Make the chapters into a site: static pages with working players, no kernel, nothing fetched.

python book/book.py OUT            # all chapters, both languages
python book/book.py OUT 05         # those whose name begins so
"""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from markupsafe import Markup
from nbconvert import HTMLExporter

sys.path.insert(0, str(Path(__file__).parent))

import build
from pages import NAMES, SECTIONS, Link, Page, Site
from reference import make_reference

TITLES = {"en": "vizggml: the chapters", "zh": "vizggml：各章"}
HEADING = re.compile(r"^# (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Chapter:
    """`path` is where its page lies in the site."""

    source: Path
    language: str
    title: str

    @property
    def path(self) -> str:
        folder = "" if self.language == "en" else f"{self.language}/"
        return f"{folder}{self.source.stem}.html"


def found(prefix: str) -> list[Chapter]:
    return [Chapter(s, language, title_of(s)) for language in NAMES for s in build.chapters(prefix, language)]


def title_of(source: Path) -> str:
    heading = HEADING.search(re.sub(r"^# %%.*$|^# ?", "", source.read_text("utf-8"), flags=re.MULTILINE))
    return heading[1] if heading else source.stem


def playing(notebook: Any) -> Any:
    """Of a player's two outputs keep the one that plays without a kernel."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            players = sum(build.WIDGET in o.get("data", {}) for o in cell.outputs)
            frames = sum(build.is_kept(o) for o in cell.outputs)
            if frames and players == frames:
                cell.outputs = [o for o in cell.outputs if build.WIDGET not in o.get("data", {})]
            for output in cell.outputs:
                output.get("data", {}).pop(build.WIDGET, None)
    return notebook


def body_of(notebook: Any) -> str:
    """The cells as HTML; links between notebooks become links between pages."""
    exporter = HTMLExporter(template_name="basic", exclude_input_prompt=True, exclude_output_prompt=True)
    body, _ = exporter.from_notebook_node(notebook)
    return re.sub(r'href="([^":]*?)\.ipynb(#[^"]*)?"', r'href="\1.html\2"', body)


class Links(HTMLParser):
    """What a page links to, and what can be linked to in it."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: set[str] = set()
        self.ids: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = dict(attrs)
        if tag == "a" and said.get("href"):
            self.targets.add(str(said["href"]))
        if said.get("id"):
            self.ids.add(str(said["id"]))


def broken_links(folder: Path) -> list[str]:
    """Links of the pages in `folder` that lead nowhere; those that leave the site are among them."""
    pages: dict[Path, Links] = {}
    for page in sorted(folder.rglob("*.html")):
        pages[page] = Links()
        pages[page].feed(page.read_text("utf-8"))
    broken = []
    for page, links in pages.items():
        for target in sorted(links.targets):
            path, _, anchor = target.partition("#")
            there = (page.parent / unquote(path)).resolve() if path else page
            if there not in pages or (anchor and not {anchor, unquote(anchor)} & pages[there].ids):
                broken.append(f"{page.relative_to(folder)}: {target}")
    return broken


def make(folder: Path, prefix: str = "") -> list[Path]:
    """The site in `folder`; its pages."""
    site = Site(folder, sections=("chapters", "reference"))
    for sheet in make_reference():
        site.write(Page(f"reference/{sheet.name}", sheet.title, sheet.body, section="reference"))
    chapters = found(prefix)
    for language in NAMES:
        own = [c for c in chapters if c.language == language]
        if own:
            twins = {k: SECTIONS["chapters"][k].path for k in NAMES if k != language}
            index = SECTIONS["chapters"][language].path
            site.write(Page(index, TITLES[language], list_of(own, index), language, twins=twins))
    for k, chapter in enumerate(chapters):
        beside = [chapters[j] if 0 <= j < len(chapters) else None for j in (k - 1, k + 1)]
        before, after = (Link(c.title, c.path) if c and c.language == chapter.language else None for c in beside)
        body = Markup(body_of(playing(build.execute(chapter.source))))
        twins = {c.language: c.path for c in chapters if c.source.stem == chapter.source.stem and c is not chapter}
        page = Page(chapter.path, chapter.title, body, chapter.language, before=before, after=after, twins=twins)
        target = site.write(page)
        print(f"{chapter.path}: {target.stat().st_size:,} bytes")
    return site.written


def list_of(chapters: list[Chapter], path: str) -> Markup:
    """The first page of a language: its chapters."""
    heading = Markup("<h1>{}</h1>").format(TITLES[chapters[0].language])
    items = [Markup('<li><a href="{}">{}</a></li>').format(f"{c.source.stem}.html", c.title) for c in chapters]
    return heading + Markup('<ul class="chapters">') + Markup("\n").join(items) + Markup("</ul>")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("prefix", nargs="?", default="")
    chosen = parser.parse_args()
    make(chosen.folder, chosen.prefix)
    broken = broken_links(chosen.folder)
    if broken:
        sys.exit("links that lead nowhere:\n" + "\n".join(broken))


if __name__ == "__main__":
    main()
