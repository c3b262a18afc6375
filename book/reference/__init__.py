"""The reference: what there is and how to call it, made from docstrings, signatures, the command line and the schema.

for sheet in make_reference():
    site.write(Page(f"reference/{sheet.name}", sheet.title, sheet.body, section="reference"))
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import jinja2
from markupsafe import Markup

from reference import formats
from reference.added import EXAMPLES, pieces
from reference.api import Entry, Reader, home_of
from reference.commands import commands
from reference.markup import Names, Writer, origin, slug
from reference.rooms import ROOMS, Group, Room
from reference.vocabulary import AREAS, examples, told
from vizggml import cli
from vizggml.events import KINDS
from vizggml.timeline.meanings import INTERVAL
from vizggml.timeline.schema import SCHEMA

PAGES = Path(__file__).parent / "pages"
WORDS = (
    "Every public name, command, event and file format, made from the code: what stands here is what the code says of "
    "itself. The chapters are where to learn it; this is where to look it up."
)
TRACE_FILE = "How a recording is kept (`.vgt`), to the byte: enough to write a reader."
GRAPH_FILE = "A computation graph as JSON, and the JSON answers of `vizggml alloc` and `vizggml plan`."
EXTEND = "An op, an architecture, an event or a pane, each with a whole example that a test tries."
COMMANDS = (
    "Every command with its options, what they are when they are not said, and examples. `vizggml COMMAND --help` says "
    "the same in a terminal. A model is `tiny`, `smollm2`, or the path of a GGUF file. With `--json` a command answers "
    "with one JSON object on one line (`alloc` with one for each graph), and nothing else, on standard output."
)
EVENTS = (
    f"Everything that the engine does is one of {len(KINDS)} kinds of event. A recording holds them in order; the "
    "player, the figures and the exports are made of nothing else. In Python: `trace.events` yields them, and "
    '`trace.sentences("TensorAssigned")` says them.'
)
IDS = (
    "Sizes and offsets are bytes; `ne` and `nb` are in ggml's order, `ne[0]` fastest. Ids are small numbers: in a "
    "trace the first tensor that appears is tensor 0, the next is 1; contexts, graphs, buffers, allocators and caches "
    "are numbered by themselves in the same way. -1 is none. The sentences are from recorded runs, most of them of the "
    "tiny model."
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
        self.templates.globals |= {"md": self.writer, "line": self.writer.line, "slug": slug, "origin": origin}
        self.style = Markup("<style>\n{}</style>\n").format(Markup((PAGES / "style.css").read_text("utf-8")))
        for room in ROOMS:
            for group in room.groups:
                for name in group.names:
                    self._announce(room, group, name)
        for command in commands():
            self.names.add(f"commands.html#vizggml-{command.name}", f"vizggml {command.name}")
        for kind in KINDS:
            self.names.add(f"events.html#{kind.__name__}", kind.__name__, f"{kind.__module__}.{kind.__name__}")

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
        return Sheet(name, title, description.partition(". ")[0].rstrip(".") + ".", body)

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

    def events(self) -> Sheet:
        found = examples()
        areas = []
        for area, words in AREAS.items():
            events = [told(kind, found.get(kind.__name__, "")) for kind in KINDS if area == kind.AREA]
            areas.append({"name": area, "words": words, "events": events})
        return self.sheet("events.html", "Events", EVENTS, "events.html.j2", words=EVENTS, ids=IDS, areas=areas)

    def written(self, name: str, title: str, description: str, **values: object) -> Sheet:
        """A page that is written as Markdown, with tables and examples that are made."""
        text = self.templates.get_template(f"{name}.md.j2").render(**values)
        return Sheet(f"{name}.html", title, description, self.style + self.writer(text))

    def files(self) -> Iterator[Sheet]:
        yield self.written(
            "trace-file",
            "The trace file",
            TRACE_FILE,
            schema=SCHEMA,
            example=formats.trace_example(),
            reader=(PAGES / "reader.py").read_text("utf-8").strip(),
            areas=formats.columns_by_area(),
            interval=INTERVAL,
            tracks=formats.tracks(),
            tables=formats.tables(),
        )
        yield self.written(
            "graph-file",
            "The graph file",
            GRAPH_FILE,
            example=formats.graph_example(),
            live=formats.LIVE,
            plan=formats.PLAN,
            fit=formats.FIT,
            plan_example=formats.plan_example(),
            **formats.graph_limits(),
        )

    def extend(self) -> Sheet:
        """How to add something, with the examples that are tried by a test."""
        examples = {name: pieces(name) for name in EXAMPLES}
        return self.written("extend", "How to add something", EXTEND, pieces=examples)

    def command_line(self) -> Sheet:
        told = list(commands())
        codes = inspect.getdoc(cli).partition("\n\n")[2]
        values = {"commands": told, "words": COMMANDS, "codes": codes}
        return self.sheet("commands.html", "Command line", COMMANDS, "commands.html.j2", **values)


def make_reference() -> Iterator[Sheet]:
    """The pages, the first of them `index.html`."""
    maker = Maker()
    sheets, entries = [], []
    for room in ROOMS:
        sheet, told = maker.room(room)
        sheets.append(sheet)
        entries += told
    sheets += [maker.command_line(), maker.events(), *maker.files(), maker.extend()]
    many = Counter(entry.name for entry in entries)
    named = [
        (e.name if many[e.name] == 1 else e.path.removeprefix("vizggml."), maker.names.urls[e.path]) for e in entries
    ]
    names = sorted(named, key=lambda one: one[0].lower().rpartition(".")[2])
    title = "Reference"
    yield maker.sheet("index.html", title, WORDS, "index.html.j2", words=WORDS, sheets=sheets, names=names)
    yield from sheets
