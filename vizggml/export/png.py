"""The memory timeline or the memory map of a trace as a PNG file, drawn by matplotlib."""

from __future__ import annotations

import os
from collections.abc import Callable

from vizggml.errors import VizggmlError
from vizggml.export.tables import Drawable, tracks_of
from vizggml.views.figures import Picture, memory_map, memory_timeline

FIGURES: dict[str, Callable[..., Picture]] = {"timeline": memory_timeline, "map": memory_map}


def to_png(
    source: Drawable,
    path: str | os.PathLike[str],
    figure: str = "timeline",
    *,
    step: int | None = None,
    theme: str = "light",
) -> None:
    """Write the memory `timeline` or the memory `map` at `step` (None: the last)."""
    if figure not in FIGURES:
        raise VizggmlError(f"figure {figure!r}: there are {' and '.join(FIGURES)}")
    FIGURES[figure](tracks_of(source), step=step, theme=theme).save(path)
