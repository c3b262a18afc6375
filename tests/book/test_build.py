"""Chapters are run, and what came of it is told: where a cell failed, what a chapter complained of, its figures."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.chapters import book, build, ran

FAILS = """# %% [markdown]
# # A chapter

# %%
x = [1, 2]

# %%
for k in range(3):
    print(x[k])
"""
TALKS = """# %%
import sys

print("one", flush=True)
print("a warning", file=sys.stderr, flush=True)
print("two", flush=True)
"""
SVG = "{http://www.w3.org/2000/svg}svg"
OUTSIDE = re.compile(r"@import|url\((?!#|'#|\"#|data:)")


def test_a_cell_that_fails_is_named_with_its_line_and_error(tmp_path: Path) -> None:
    source = tmp_path / "fails.py"
    source.write_text(FAILS, "utf-8")
    with pytest.raises(build.ChapterError) as caught:
        build.execute(source)
    told = str(caught.value)
    assert told.startswith(f"{source}:8: cell 2 failed\n")
    assert "    for k in range(3):\n        print(x[k])\n" in told
    assert "IndexError: list index out of range" in told
    assert "\x1b" not in told


def test_the_command_ends_with_1_and_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    progress = build.Progress(2)
    with pytest.raises(SystemExit) as ended, progress.chapter(Path("05-x.py"), "en"):
        raise build.ChapterError("notebooks/05-x.py:8: cell 2 failed")
    assert ended.value.code == 1
    assert "05-x en: failed\n\nnotebooks/05-x.py:8: cell 2 failed\n" in capsys.readouterr().out


def test_a_complaint_is_told_to_who_builds_and_not_to_the_reader(tmp_path: Path) -> None:
    source = tmp_path / "talks.py"
    source.write_text(TALKS, "utf-8")
    notebook = build.execute(source)
    assert build.complaints(notebook) == ["cell 0 wrote to stderr: a warning"]
    shown, _ = book.playing(notebook)
    (output,) = shown.cells[0].outputs
    assert output.text == "one\ntwo\n"


@pytest.mark.parametrize("source", build.chapters(), ids=lambda source: source.stem)
def test_figures_stand_alone_and_are_named_after_what_they_show(source: Path, tmp_path: Path) -> None:
    figures = build.write_figures(ran(source), source.stem, tmp_path)
    assert figures
    for number, figure in enumerate(figures, 1):
        assert re.fullmatch(rf"{source.stem}-{number}-[a-z]+(-[a-z]+)*\.svg", figure.name)
        root = ElementTree.parse(figure).getroot()
        assert root.tag == SVG
        for element in root.iter():
            assert not element.tag.endswith(("}script", "}foreignObject"))
            links = [value for name, value in element.attrib.items() if name.rpartition("}")[2] == "href"]
            assert all(link.startswith(("#", "data:")) for link in links)
            assert not OUTSIDE.search((element.text or "") + " ".join(element.attrib.values()))


def test_a_figure_of_a_page_has_no_say_outside_itself() -> None:
    ours = "<svg><title>A &amp; B</title><style>.note{color:red}</style></svg>"
    assert re.fullmatch(
        r'<figure class="still"><img alt="A &amp; B" src="data:image/svg\+xml;base64,[\w+/]+=*"></figure>',
        book.still(ours),
    )
    plot = '<svg><g id="patch_1">\n <path d="M 0 0" style="fill: #ffffff"/></g></svg>'
    assert book.still(plot).startswith('<figure class="plot"><img alt="figure" ')


def test_a_cover_is_a_pane_with_something_in_it() -> None:
    chapter = next(c for c in book.found("05") if c.language == "en")
    root = ElementTree.fromstring(book.cover(chapter, ran(chapter.source)))
    assert any((element.text or "").startswith("peak 16 B at position 1") for element in root.iter())
