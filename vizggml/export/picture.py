"""A still figure of any pane as a file: SVG, PNG, PDF."""

from __future__ import annotations

import os

from vizggml.export.tables import Drawable, figured, table_of
from vizggml.files import write_whole
from vizggml.views import paint, svg
from vizggml.views.pictures import picture
from vizggml.views.svg import Svg


def graph_svg(source: Drawable, graph: int | None = None, *, theme: str = "auto", folded: bool = True) -> Svg:
    """A still SVG of a graph: a `ggml.Graph`, or one of a trace (None: its last).

    `folded` draws a run of equal layers once; `theme` is light, dark, or auto, which follows the reader's preference.
    """
    return svg.graph_svg(table_of(source, graph), theme=theme, folded=folded)


def to_svg(
    source: Drawable,
    path: str | os.PathLike[str],
    graph: int | None = None,
    *,
    pane: str | None = None,
    step: int | None = None,
    theme: str = "auto",
) -> None:
    """Write the SVG of a graph or, with `pane`, the figure of that pane at `step` (None: its usual one).

    `source` is a trace, its tracks or, without `pane`, a `ggml.Graph`; `graph` which of a trace's graphs (None: the
    last). `theme` is light, dark, or auto, which follows the reader's. VizggmlError for a pane, a step or a graph that
    there is not.
    """
    drawn = graph_svg(source, graph, theme=theme) if pane is None else picture(figured(source), pane, step, theme=theme)
    write_whole(path, drawn.encode("utf-8", "replace"), "picture")


def to_png(
    source: Drawable,
    path: str | os.PathLike[str],
    pane: str = "step",
    *,
    step: int | None = None,
    theme: str = "light",
    scale: float = paint.SHARP,
) -> None:
    """Write the figure of `pane` at `step` (None: its usual one) as PNG, `scale` pixels for each of its own.

    `source` is a trace or its tracks; the pane "step" is timeline, map and graph together; `theme` is light or dark.
    VizggmlError for a pane or a step that there is not.
    """
    write_whole(path, paint.png(picture(figured(source), pane, step, theme=theme), scale), "picture")


def to_pdf(
    source: Drawable, path: str | os.PathLike[str], pane: str = "step", *, step: int | None = None, theme: str = "light"
) -> None:
    """Write the figure of `pane` at `step` (None: its usual one) as a PDF of one page, its text as text.

    `source`, `pane`, `theme` and errors are those of `to_png`.
    """
    write_whole(path, paint.pdf(picture(figured(source), pane, step, theme=theme)), "picture")
