"""A picture as pixels or as PDF: our SVG, read back, painted by matplotlib's renderers with the fonts that it brings.

So a machine with no fonts and no browser gives the same bytes as any other; text in a PDF stays text.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from vizggml.errors import VizggmlError
from vizggml.views.svg_read import Drawing, Shape, Words, read_svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from PIL.Image import Image

PIXELS_PER_INCH = 96.0
POINTS = 72.0 / PIXELS_PER_INCH
SHARP = 2.0
"""Pixels of a PNG for each of the picture's: print and dense screens."""
MOST_PIXELS = 1 << 27
BEYOND_LATIN = ("Noto Sans CJK JP", "Noto Sans CJK SC", "PingFang SC", "Hiragino Sans", "Microsoft YaHei", "Yu Gothic")
"""For what matplotlib's own fonts do not have, where one of these is installed."""


def png(svg: str, scale: float = SHARP) -> bytes:
    """The picture as PNG, `scale` pixels for each of its own."""
    drawing = read_svg(svg)
    _check_size(drawing, scale)
    return _saved(drawing, "png", scale)


def pdf(svg: str) -> bytes:
    """The picture as a PDF of one page of its size."""
    return _saved(read_svg(svg), "pdf", 1.0)


def image(svg: str, scale: float = 1.0) -> Image:
    """The picture as an image of Pillow's, RGB."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL.Image import fromarray

    drawing = read_svg(svg)
    _check_size(drawing, scale)
    canvas: Any = FigureCanvasAgg(_figure(drawing, scale))
    with _settings():
        canvas.draw()
    return fromarray(np.asarray(canvas.buffer_rgba())[:, :, :3])


def _check_size(drawing: Drawing, scale: float) -> None:
    pixels = drawing.width * drawing.height * scale * scale
    if not 0 < pixels <= MOST_PIXELS:
        raise VizggmlError(f"scale {scale:g}: the picture would have {pixels:,.0f} pixels, the most is {MOST_PIXELS:,}")


def _saved(drawing: Drawing, format: str, scale: float) -> bytes:
    out = io.BytesIO()
    undated = {"png": {"Software": None}, "pdf": {"CreationDate": None, "Title": drawing.title}}[format]
    with _settings():
        _figure(drawing, scale).savefig(out, format=format, metadata=undated, facecolor="white")
    return out.getvalue()


@contextmanager
def _settings() -> Iterator[None]:
    """TrueType in PDF, so that its text can be searched and copied; no word of a glyph that no font has."""
    from matplotlib import rc_context

    with warnings.catch_warnings(), rc_context({"pdf.fonttype": 42, "path.simplify": False, "text.hinting": "none"}):
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def _figure(drawing: Drawing, scale: float) -> Figure:
    from matplotlib.artist import Artist
    from matplotlib.figure import Figure

    class Marks(Artist):
        """All marks as one artist: no axes, no layout, only the renderer's own calls."""

        def draw(self, renderer: Any) -> None:
            painter = _Painter(renderer, drawing.height)
            for mark in drawing.marks:
                painter.shape(mark) if isinstance(mark, Shape) else painter.words(mark)

    size = drawing.width / PIXELS_PER_INCH, drawing.height / PIXELS_PER_INCH
    figure = Figure(figsize=size, dpi=PIXELS_PER_INCH * scale)
    figure.add_artist(Marks())
    return figure


class _Painter:
    """Paints marks with a renderer; the page's y goes down, the renderer's up."""

    def __init__(self, renderer: Any, height: float) -> None:
        from matplotlib.transforms import Affine2D

        self.renderer, self.height = renderer, height
        self.unit = renderer.points_to_pixels(POINTS)
        self.to_device = Affine2D().scale(self.unit, -self.unit).translate(0, height * self.unit)

    def shape(self, shape: Shape) -> None:
        outline = _path(shape)
        if shape.fill != "none":
            gc = self._graphics(shape.fill, shape.fill_alpha, 0.0)
            self.renderer.draw_path(gc, outline, self.to_device, _colour(shape.fill))
            gc.restore()
        if shape.stroke != "none" and shape.width > 0:
            gc = self._graphics(shape.stroke, shape.stroke_alpha, shape.width * POINTS)
            if shape.dashes:
                gc.set_dashes(0, [d * POINTS for d in shape.dashes])
            self.renderer.draw_path(gc, outline, self.to_device, None)
            gc.restore()

    def words(self, words: Words) -> None:
        font = _font(words.mono, words.bold, round(words.size * POINTS, 3))
        x, y = words.x * self.unit, (self.height - words.y) * self.unit
        if words.anchor != "start":
            width, _, _ = self.renderer.get_text_width_height_descent(words.text, font, ismath=False)
            x -= width if words.anchor == "end" else width / 2
        gc = self._graphics(words.fill, words.alpha, 0.0)
        if self.renderer.flipy():
            y = self.height * self.unit - y
        self.renderer.draw_text(gc, x, y, words.text, font, 0, ismath=False)
        gc.restore()

    def _graphics(self, colour: str, alpha: float, width: float) -> Any:
        gc = self.renderer.new_gc()
        gc.set_alpha(alpha)
        gc.set_foreground(_colour(colour))
        gc.set_linewidth(width)
        gc.set_joinstyle("miter")
        gc.set_antialiased(True)
        gc.set_snap(None)
        return gc


@lru_cache(maxsize=256)
def _colour(name: str) -> tuple[float, float, float]:
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(name)
    return red, green, blue


@lru_cache(maxsize=256)
def _font(mono: bool, bold: bool, size: float) -> Any:
    from matplotlib.font_manager import FontProperties, fontManager

    installed = {font.name for font in fontManager.ttflist}
    more = [name for name in BEYOND_LATIN if name in installed]
    own = ["DejaVu Sans Mono", "DejaVu Sans"] if mono else ["DejaVu Sans"]
    return FontProperties(family=[*own, *more], weight="bold" if bold else "normal", size=size)


def _path(shape: Shape) -> Any:
    from matplotlib.path import Path

    codes, points = [], []
    start = (0.0, 0.0)
    for verb, several in shape.verbs:
        if verb == "M":
            start = several[0]
        codes += {"M": [Path.MOVETO], "L": [Path.LINETO], "C": [Path.CURVE4] * 3, "Z": [Path.CLOSEPOLY]}[verb]
        points += several if verb != "Z" else [start]
    return Path(np.array(points, float).reshape(-1, 2), codes)
