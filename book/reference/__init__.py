"""The reference: what there is and how to call it, made from docstrings, signatures, the command line and the schema.

for sheet in make_reference():
    site.write(Page(f"reference/{sheet.name}", sheet.title, sheet.body, section="reference"))
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import jinja2
from markupsafe import Markup

from reference.api import Entry, Reader, home_of
from reference.markup import Names, Writer, slug
from reference.rooms import ROOMS, Group, Room

PAGES = Path(__file__).parent / "pages"
WORDS = (
    "Every public name, command, event and file format, made from the code: what stands here is what the code says of "
    "itself. The chapters are where to learn it; this is where to look it up."
)


@dataclass(frozen=True)
class Sheet:
    """One page: its name in the folder, its title, its body with the `h1`, and a line that says what is on it."""

    name: str
    title: str
    description: str
    body: Markup


class Maker:
    """What all pages are made with."""

    def __init__(self) -> None:
        self.names = Names()
        self.writer = Writer(self.names)
        self.reader = Reader(self.names)
        loader = jinja2.FileSystemLoader(PAGES)
        self.templates = jinja2.Environment(loader=loader, autoescape=jinja2.select_autoescape(["html.j2"]))
        self.templates.globals |= {"md": self.writer, "line": self.writer.line, "slug": slug, "code": self.names.link}
        self.style = Markup("<style>\n{}</style>\n").format(Markup((PAGES / "style.css").read_text("utf-8")))
        for room in ROOMS:
            for group in room.groups:
                for name in group.names:
                    self._announce(room, group, name)

    def _announce(self, room: Room, group: Group, name: str) -> None:
        path, anchor = self.path_of(group, name), f"{group.module}.{name}"
        short = name.rpartition(".")[2]
        url = f"{room.path}#{anchor}"
        self.names.add(url, path, anchor)
        if short[0].isupper():
            self.names.add(url, short)
        face = {"vizggml.ggml": "ggml.", "vizggml": "vg."}.get(group.module)
        if face:
            self.names.add(url, face + short)

    def path_of(self, group: Group, name: str) -> str:
        module, _, short = f"{group.module}.{name}".rpartition(".")
        return home_of(module, short)

    def sheet(self, name: str, title: str, description: str, template: str, **values: object) -> Sheet:
        body = self.style + Markup(self.templates.get_template(template).render(**values))
        return Sheet(name, title, description, body)

    def room(self, room: Room) -> tuple[Sheet, list[Entry]]:
        groups = [(group, [self._entry(group, name) for name in group.names]) for group in room.groups]
        sheet = self.sheet(room.path, room.title, room.words, "api.html.j2", room=room, groups=groups)
        return sheet, [entry for _, entries in groups for entry in entries]

    def _entry(self, group: Group, name: str) -> Entry:
        module, _, short = f"{group.module}.{name}".rpartition(".")
        entry = self.reader.entry(home_of(module, short), f"{group.module}.{name}", short)
        for member in entry.members:
            self.names.add(f"{self.names.urls[entry.path]}.{member.name}", f"{short}.{member.name}")
        entry.module = "" if group.module in ("vizggml", "vizggml.ggml") else module
        return entry


def make_reference() -> Iterator[Sheet]:
    """The pages, the first of them `index.html`."""
    maker = Maker()
    sheets, entries = [], []
    for room in ROOMS:
        sheet, told = maker.room(room)
        sheets.append(sheet)
        entries += told
    names = sorted(((e.name, maker.names.urls[e.path]) for e in entries), key=lambda named: named[0].lower())
    title = "Reference"
    yield maker.sheet("index.html", title, WORDS, "index.html.j2", words=WORDS, sheets=sheets, names=names)
    yield from sheets
