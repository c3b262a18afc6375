"""The reference: every public name has its place, nothing is without words, no link leads nowhere."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import vizggml
from vizggml import ggml
from vizggml.cli import app
from vizggml.events import KINDS
from vizggml.events.meanings import OWN, WORDS, meaning
from vizggml.timeline.schema import fields_of

sys.path.insert(0, str(Path(__file__).parents[2] / "book"))

from pages import Site
from reference import Maker
from reference.markup import parted
from reference.rooms import ROOMS, untold

import book


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The reference alone, in the frame of the site."""
    folder = tmp_path_factory.mktemp("site")
    site = Site(folder, sections=("reference",))
    book.write_reference(site)
    return folder


@pytest.fixture(scope="module")
def anchors(folder: Path) -> dict[str, set[str]]:
    """What can be linked to, page by page."""
    found = {}
    for page in folder.rglob("*.html"):
        links = book.Links()
        links.feed(page.read_text("utf-8"))
        found[page.name] = links.ids
    return found


def test_every_public_name_has_its_anchor(anchors: dict[str, set[str]]) -> None:
    names = {f"vizggml.{name}" for name in vizggml.__all__ if name != "ggml"}
    assert names <= anchors["vizggml.html"]
    assert {f"vizggml.ggml.{name}" for name in ggml.__all__} <= anchors["ggml.html"]
    assert untold() == []


def test_every_event_and_every_command_has_its_anchor(anchors: dict[str, set[str]]) -> None:
    assert {kind.__name__ for kind in KINDS} <= anchors["events.html"]
    listed = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "200", "TERM": "dumb"}).output
    commands = set(re.findall(r"^\W*([a-z]+) {2,}[A-Z]", listed, re.MULTILINE))
    assert len(commands) == 11
    assert {f"vizggml-{command}" for command in commands} <= anchors["commands.html"]


def test_no_public_name_is_without_words() -> None:
    maker = Maker()
    entries = [entry for room in ROOMS for entry in maker.room(room)[1]]
    silent = [e.path for e in entries if not e.text]
    silent += [f"{e.path}.{m.name}" for e in entries for m in e.members if not m.text]
    assert silent == []


def test_every_field_of_every_event_has_a_meaning_and_no_other() -> None:
    said = {(kind.__name__, f.name) for kind in KINDS for f in fields_of(kind) if meaning(kind, f.name)}
    assert set(WORDS) <= {name for _, name in said}
    assert set(OWN) <= {f"{kind}.{name}" for kind, name in said}
    assert all(kind.__doc__ and not kind.__doc__.startswith(f"{kind.__name__}(") for kind in KINDS)


def test_a_source_is_told_apart_from_the_text() -> None:
    assert parted("Adds. `ggml_add`, ggml/src/ggml.c. More.") == ("Adds.  More.", ["`ggml_add`, ggml/src/ggml.c"])
    assert parted("Saves. `a_save`,\n`b_save`, src/a.cpp.") == ("Saves.", ["`a_save`, `b_save`, src/a.cpp"])
    assert parted("`ggml_n_dims`, ggml/src/ggml.c: one for a scalar.") == (
        "One for a scalar.",
        ["`ggml_n_dims`, ggml/src/ggml.c"],
    )


def test_nothing_of_this_machine_is_told(folder: Path) -> None:
    texts = "".join(page.read_text("utf-8") for page in folder.rglob("*.html"))
    assert str(Path(__file__).parents[2]) not in texts
    assert str(Path.home()) not in texts
    assert "site-packages" not in texts


def test_every_link_leads_somewhere(folder: Path) -> None:
    assert book.broken_links(folder) == []
