"""The reference: every public name has its place, nothing is without words, no link leads nowhere."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from markupsafe import Markup

import vizggml
from vizggml import ggml

sys.path.insert(0, str(Path(__file__).parents[2] / "book"))

from pages import Page, Site
from reference import make_reference
from reference.rooms import untold

import book


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The reference alone, in the frame of the site."""
    folder = tmp_path_factory.mktemp("site")
    site = Site(folder, sections=("reference",))
    for sheet in make_reference():
        site.write(Page(f"reference/{sheet.name}", sheet.title, Markup(sheet.body), section="reference"))
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


def test_every_link_leads_somewhere(folder: Path) -> None:
    assert book.broken_links(folder) == []
