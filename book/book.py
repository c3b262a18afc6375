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

import jinja2
from nbconvert import HTMLExporter
from pygments.formatters import HtmlFormatter

sys.path.insert(0, str(Path(__file__).parent))

import build

NAMES = {"en": "English", "zh": "中文"}
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
    template = jinja2.Environment(autoescape=True).from_string((build.HERE / "page.html.j2").read_text("utf-8"))
    styles = {
        "light": HtmlFormatter(style="default").get_style_defs(".highlight"),
        "dark": HtmlFormatter(style="github-dark").get_style_defs(".highlight"),
    }
    chapters = found(prefix)
    written = []

    def write(path: str, language: str, **values: Any) -> None:
        page = folder / path
        page.parent.mkdir(parents=True, exist_ok=True)
        up = "../" if language != "en" else ""
        shown = template.render(language=language, languages=NAMES, up=up, styles=styles, **values)
        page.write_text(shown, "utf-8")
        written.append(page)

    for language in NAMES:
        own = [c for c in chapters if c.language == language]
        if own:
            index = "index.html" if language == "en" else f"{language}/index.html"
            write(index, language, title=TITLES[language], chapters=own, body="", before=None, after=None, other=None)
    for k, chapter in enumerate(chapters):
        beside = [chapters[j] if 0 <= j < len(chapters) else None for j in (k - 1, k + 1)]
        before, after = (c if c and c.language == chapter.language else None for c in beside)
        twins = [c for c in chapters if c.source.stem == chapter.source.stem and c is not chapter]
        body = jinja2.utils.markupsafe.Markup(body_of(playing(build.execute(chapter.source))))
        values = {"before": before, "after": after, "other": twins[0] if twins else None}
        write(chapter.path, chapter.language, title=chapter.title, chapters=None, body=body, **values)
        print(f"{chapter.path}: {written[-1].stat().st_size:,} bytes")
    return written


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
