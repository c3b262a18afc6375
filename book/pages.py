"""A page of the site and its frame: what every page has, a chapter or not.

    site = Site(folder, sections=["chapters", "reference"])
    site.write(Page("reference/events.html", "Events", Markup("<h1>Events</h1>..."), section="reference"))

The page's body is HTML with its own `h1`; its `h2` that have an `id` become the list of contents. Whatever the frame
links to is given as the path of a page in the site; a page's own links are relative to where it lies.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

import jinja2
from markupsafe import Markup
from players import Players

from vizggml.export.html import hash_of

HERE = Path(__file__).resolve().parent
NAMES = {"en": "English", "zh": "中文"}
WORDS = {"en": {"contents": "On this page", "skip": "To the text"}, "zh": {"contents": "本页内容", "skip": "跳到正文"}}


@dataclass(frozen=True)
class Link:
    text: str
    path: str


SECTIONS = {
    "chapters": {"en": Link("Chapters", "index.html"), "zh": Link("各章", "zh/index.html")},
    "reference": {"en": Link("Reference", "reference/index.html"), "zh": Link("参考（英文）", "reference/index.html")},
}
"""The parts of the site, each with where it begins."""


@dataclass(frozen=True)
class Page:
    """A page: `path` is where it lies in the site, `twins` the path of the same page in other languages.

    `players` are those that stand as figures in the body; `note` is said under it.
    """

    path: str
    title: str
    body: Markup
    language: str = "en"
    section: str = "chapters"
    description: str = ""
    note: Markup | str = ""
    before: Link | None = None
    after: Link | None = None
    twins: dict[str, str] = field(default_factory=dict)
    players: Players = field(default_factory=Players)

    def href(self, path: str) -> str:
        """The way from this page to another."""
        return posixpath.relpath(path, posixpath.dirname(self.path) or ".")


class Site:
    """Pages in a folder. `sections` are those that have pages: every page links to them."""

    def __init__(self, folder: Path, sections: Sequence[str] = ("chapters",)) -> None:
        self.folder = folder
        self.sections = sections
        self.written: list[Path] = []
        text = {name: (HERE / name).read_text("utf-8") for name in ("page.html.j2", "page.css", "page.js")}
        self._template = jinja2.Environment(autoescape=True, trim_blocks=True).from_string(text["page.html.j2"])
        self._style = Markup(text["page.css"])
        self._script = Markup(text["page.js"])

    def write(self, page: Page) -> Path:
        """Write the page; where it lies."""
        target = self.folder / page.path
        target.parent.mkdir(parents=True, exist_ok=True)
        sections = {name: SECTIONS[name][page.language] for name in self.sections}
        sources = sorted({f"'{hash_of(self._script)}'", *page.players.sources})
        shown = self._template.render(
            page=page,
            sections=sections,
            languages=NAMES,
            contents=contents(page.body),
            style=self._style,
            script=self._script,
            sources=Markup(" ".join(sources)),
            words=WORDS[page.language],
        )
        target.write_text(shown, "utf-8")
        self.written.append(target)
        return target


class Headings(HTMLParser):
    """The `h2` of a page that can be linked to."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[Link] = []
        self._id: str | None = None
        self._words: list[str] = []
        self._skipped = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = dict(attrs)
        if tag == "h2" and said.get("id"):
            self._id, self._words = said["id"], []
        elif tag == "a" and "anchor-link" in (said.get("class") or ""):
            self._skipped = True

    def handle_endtag(self, tag: str) -> None:
        if tag == "a":
            self._skipped = False
        elif tag == "h2" and self._id:
            self.found.append(Link("".join(self._words).strip(), f"#{self._id}"))
            self._id = None

    def handle_data(self, data: str) -> None:
        if self._id and not self._skipped:
            self._words.append(data)


def contents(body: str) -> list[Link]:
    """The page's sections, in order."""
    parser = Headings()
    parser.feed(body)
    return parser.found
