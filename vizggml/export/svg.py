"""A graph as an SVG file."""

from __future__ import annotations

import os

from vizggml.export.tables import Drawable, table_of
from vizggml.files import write_whole
from vizggml.views import svg
from vizggml.views.svg import Svg


def graph_svg(source: Drawable, graph: int | None = None, *, theme: str = "auto", folded: bool = True) -> Svg:
    """A still SVG of a graph: a `ggml.Graph`, or one of a trace (None: its last).

    `folded` draws a run of equal layers once; `theme` is light, dark, or auto, which follows the reader's preference.
    """
    return svg.graph_svg(table_of(source, graph), theme=theme, folded=folded)


def to_svg(source: Drawable, path: str | os.PathLike[str], graph: int | None = None, *, theme: str = "auto") -> None:
    """Write the SVG of a graph."""
    write_whole(path, graph_svg(source, graph, theme=theme).encode("utf-8", "replace"), "picture")
