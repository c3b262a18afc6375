"""Two traces side by side as one HTML file, made as the page of one trace is: see `html.py`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING

from markupsafe import Markup

import vizggml
from vizggml.export.html import hash_of, packed, script_of
from vizggml.files import write_whole
from vizggml.timeline.diff import Diff
from vizggml.timeline.diff_words import figure_rows
from vizggml.views.compare import comparison, opening
from vizggml.views.graph_layout import layout_json
from vizggml.views.labels import visible
from vizggml.views.memory import check_step

if TYPE_CHECKING:
    from jinja2 import Template

    from vizggml.timeline.tracks import Tracks


def compare_html(
    found: Diff, *, step: int | None = None, panes: Iterable[str] | None = None, title: str | None = None
) -> str:
    """The page of a comparison; A opens at `step` (None: where it holds the most memory), B where it answers.

    `#step=N` in its address, a step of A, takes both elsewhere. VizggmlError for a step outside of A, and for a trace
    without events.
    """
    step = opening(found) if step is None else check_step(found.a, step)
    options: dict[str, object] = {"step": step}
    if panes is not None:
        options["panes"] = [panes] if isinstance(panes, str) else list(panes)
    script = script_of(options, "boot_compare.js")
    summary = [visible(line) for line in found.summary()]
    return _template().render(
        title=title or summary[0],
        version=vizggml.__version__,
        script=Markup(script),
        script_hash=Markup(hash_of(script)),
        summary=summary,
        labels=[visible(label) for label in found.labels],
        figures=figure_rows(found, found.main),
        comparison=Markup(packed(comparison(found))),
        sides=[(name, *_carried(tracks)) for name, tracks in (("left", found.a), ("right", found.b))],
    )


def compare_to_html(
    found: Diff,
    path: str | os.PathLike[str],
    *,
    step: int | None = None,
    panes: Iterable[str] | None = None,
    title: str | None = None,
) -> None:
    """Write both traces of a comparison as one page, side by side and stepping together.

    A opens at `step` (None: where it holds the most memory), B where it answers; `panes` are those that are open in
    both (None: all). VizggmlError for a step outside of A.
    """
    page = compare_html(found, step=step, panes=panes, title=title)
    write_whole(path, page.encode("utf-8", "replace"), "page")


def _carried(tracks: Tracks) -> tuple[Markup, Markup]:
    """A trace as its page carries it: the tracks, the layout."""
    return Markup(packed(tracks.to_bytes())), Markup(packed(layout_json(tracks).encode()))


@lru_cache(maxsize=1)
def _template() -> Template:
    import jinja2

    text = resources.files("vizggml").joinpath("export", "compare.html.j2").read_text("utf-8")
    return jinja2.Environment(autoescape=True, keep_trailing_newline=True).from_string(text)
