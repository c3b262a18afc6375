"""Our own SVG read back: shapes and texts in order, their styles resolved, in the units of the page.

Only what `views/svg.py` and the pictures write is known: a stylesheet of element and class selectors, groups moved and
scaled, rectangles, lines, circles, polygons, paths without arcs, texts of one line, markers at the end of a path.
VizggmlError for anything else, so that a picture never loses a part unseen.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from vizggml.errors import VizggmlError

Matrix: TypeAlias = NDArray[np.float64]
"""3 x 3: page = matrix @ (x, y, 1)."""
Style: TypeAlias = dict[str, str]
Verb: TypeAlias = tuple[str, list[tuple[float, float]]]
"""M and L with one point, C with three, Z with none; absolute."""

INHERITED = ("fill", "stroke", "stroke-width", "stroke-dasharray", "fill-opacity", "stroke-opacity", "text-anchor")
FONT = ("font-family", "font-size", "font-weight", "font-style")
ATTRIBUTES = {*INHERITED, *FONT, "opacity"}
SILENT = {"title", "style", "defs", "desc"}
KAPPA = 0.5522847498
"""How far a quarter of a circle's handles reach, of its radius."""


@dataclass(frozen=True)
class Shape:
    """Verbs already in page units; `width` of the stroke and `dashes` too."""

    verbs: list[Verb]
    fill: str
    fill_alpha: float
    stroke: str
    stroke_alpha: float
    width: float
    dashes: tuple[float, ...] = ()


@dataclass(frozen=True)
class Words:
    """A line of text; `anchor` is start, middle or end; `size` in page units."""

    text: str
    x: float
    y: float
    size: float
    anchor: str
    fill: str
    alpha: float
    mono: bool
    bold: bool


@dataclass(frozen=True)
class Drawing:
    width: float
    height: float
    title: str
    marks: list[Shape | Words] = field(default_factory=list)


def read_svg(source: str) -> Drawing:
    """The marks of `source` in the order in which they are painted."""
    root = ET.fromstring(source)
    rules = stylesheet("".join(e.text or "" for e in root.iter() if _tag(e) == "style"))
    markers = {e.get("id", ""): e for e in root.iter() if _tag(e) == "marker"}
    title = next((e.text or "" for e in root if _tag(e) == "title"), "")
    drawing = Drawing(float(root.get("width", "0")), float(root.get("height", "0")), title)
    reader = _Reader(rules, markers, drawing.marks)
    reader.children(root, {"fill": "#000000", "stroke": "none"}, np.eye(3), 1.0)
    return drawing


Rule: TypeAlias = tuple[int, str, frozenset[str], Style]
"""Specificity, element ("" for any), classes, declarations."""


def stylesheet(text: str) -> list[Rule]:
    """The rules in the order in which they win; what a media query asks for is left out."""
    text = re.sub(r"@media[^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}", "", text)
    rules: list[Rule] = []
    for selectors, body in re.findall(r"([^{}]+)\{([^{}]*)\}", text):
        style = _declarations(body)
        for selector in selectors.split(","):
            found = re.fullmatch(r"([a-z]*)((?:\.[\w-]+)*)", selector.strip())
            if not found:
                raise VizggmlError(f"picture: selector {selector.strip()!r} cannot be painted")
            classes = frozenset(found[2].split(".")[1:])
            rules.append((len(classes) * 10 + bool(found[1]), found[1], classes, style))
    return sorted(rules, key=lambda rule: rule[0])


def _declarations(body: str) -> Style:
    pairs = (part.split(":", 1) for part in body.split(";") if ":" in part)
    return {name.strip(): value.strip() for name, value in pairs}


@dataclass
class _Reader:
    rules: list[Rule]
    markers: dict[str, ET.Element]
    out: list[Shape | Words]
    known: dict[tuple[str, str], Style] = field(default_factory=dict)

    def children(self, parent: ET.Element, style: Style, matrix: Matrix, alpha: float) -> None:
        for element in parent:
            if _tag(element) not in SILENT:
                self.element(element, style, matrix, alpha)

    def element(self, element: ET.Element, above: Style, matrix: Matrix, alpha: float) -> None:
        tag = _tag(element)
        style = self.style(element, tag, above)
        if style.get("display") == "none" or style.get("visibility") == "hidden":
            return
        alpha *= float(style.get("opacity", "1"))
        matrix = matrix @ transform(element.get("transform", ""))
        if tag == "g":
            self.children(element, style, matrix, alpha)
        elif tag == "text":
            self.text(element, style, matrix, alpha)
        else:
            verbs = verbs_of(element, tag)
            self.shape(verbs, style, matrix, alpha)
            marker = re.fullmatch(r"url\(#([\w-]+)\)", style.get("marker-end") or element.get("marker-end") or "")
            if marker and marker[1] in self.markers:
                self.marker(self.markers[marker[1]], verbs, style, matrix, alpha)

    def style(self, element: ET.Element, tag: str, above: Style) -> Style:
        names = element.get("class", "")
        own = self.known.get((tag, names))
        if own is None:
            classes = set(names.split())
            own = {}
            for _, wanted, needed, style in self.rules:
                if wanted in ("", tag) and needed <= classes:
                    own |= style
            self.known[tag, names] = own
        inherited = {name: above[name] for name in (*INHERITED, *FONT) if name in above}
        written = {name: element.get(name, "") for name in ATTRIBUTES if element.get(name) is not None}
        return inherited | written | own | _declarations(element.get("style", ""))

    def shape(self, verbs: list[Verb], style: Style, matrix: Matrix, alpha: float) -> None:
        scale = scale_of(matrix)
        dashes = [float(n) * scale for n in re.findall(r"[\d.]+", style.get("stroke-dasharray", ""))]
        self.out.append(
            Shape(
                [(verb, [_at(matrix, p) for p in points]) for verb, points in verbs],
                style.get("fill", "none"),
                alpha * float(style.get("fill-opacity", "1")),
                style.get("stroke", "none"),
                alpha * float(style.get("stroke-opacity", "1")),
                _pixels(style.get("stroke-width", "1")) * scale,
                tuple(dashes * 2 if len(dashes) % 2 else dashes),
            )
        )

    def marker(self, marker: ET.Element, verbs: list[Verb], style: Style, matrix: Matrix, alpha: float) -> None:
        points = [p for _, several in verbs for p in several]
        if len(points) < 2:
            return
        (x, y), (x0, y0) = points[-1], next((p for p in reversed(points[:-1]) if p != points[-1]), points[0])
        box = [float(n) for n in marker.get("viewBox", "0 0 8 8").split()]
        size = float(marker.get("markerWidth", "3")) * _pixels(style.get("stroke-width", "1")) / box[2]
        turn = np.arctan2(y - y0, x - x0)
        c, s = np.cos(turn) * size, np.sin(turn) * size
        ref_x, ref_y = float(marker.get("refX", "0")), float(marker.get("refY", "0"))
        placed = np.array([[c, -s, x - c * ref_x + s * ref_y], [s, c, y - s * ref_x - c * ref_y], [0, 0, 1.0]])
        self.children(marker, {"fill": "#000000", "stroke": "none"}, matrix @ placed, alpha)

    def text(self, element: ET.Element, style: Style, matrix: Matrix, alpha: float) -> None:
        x, y = _at(matrix, (float(element.get("x", "0")), float(element.get("y", "0"))))
        words = "".join(element.itertext()) if not len(element) else _only_text(element)
        if not words.strip():
            return
        family = style.get("font-family", "")
        self.out.append(
            Words(
                words,
                x,
                y,
                _pixels(style.get("font-size", "16px")) * scale_of(matrix),
                style.get("text-anchor", "start"),
                style.get("fill", "#000000"),
                alpha * float(style.get("fill-opacity", "1")),
                "monospace" in family,
                style.get("font-weight", "400") in ("bold", "500", "600", "700", "800"),
            )
        )


def _only_text(element: ET.Element) -> str:
    """The text of a text element, its title left out."""
    strange = [_tag(e) for e in element if _tag(e) not in ("title", "tspan")]
    if strange:
        raise VizggmlError(f"picture: <{strange[0]}> in a <text> cannot be painted")
    spans = ((e.text or "" if _tag(e) == "tspan" else "") + (e.tail or "") for e in element)
    return (element.text or "") + "".join(spans)


def _tag(element: ET.Element) -> str:
    return str(element.tag).rsplit("}", 1)[-1]


def _pixels(value: str) -> float:
    return float(value.removesuffix("px"))


def _at(matrix: Matrix, point: tuple[float, float]) -> tuple[float, float]:
    (a, c, e), (b, d, f) = matrix[0], matrix[1]
    x, y = point
    return float(a * x + c * y + e), float(b * x + d * y + f)


def scale_of(matrix: Matrix) -> float:
    return float(np.sqrt(abs(matrix[0, 0] * matrix[1, 1] - matrix[0, 1] * matrix[1, 0])))


def transform(text: str) -> Matrix:
    """The matrix of a `transform` attribute: translate, scale and rotate, one after another."""
    matrix = np.eye(3)
    for name, inside in re.findall(r"(\w+)\(([^)]*)\)", text):
        n = [float(v) for v in re.split(r"[\s,]+", inside.strip())]
        if name == "translate":
            step = np.array([[1, 0, n[0]], [0, 1, n[1] if len(n) > 1 else 0], [0, 0, 1.0]])
        elif name == "scale":
            step = np.diag([n[0], n[1] if len(n) > 1 else n[0], 1.0])
        else:
            raise VizggmlError(f"picture: transform {name!r} cannot be painted")
        matrix = matrix @ step
    return matrix


def verbs_of(element: ET.Element, tag: str) -> list[Verb]:
    """The outline of one element, in its own units."""

    def n(name: str, otherwise: float = 0) -> float:
        return _pixels(element.get(name) or str(otherwise))

    if tag == "rect":
        return rectangle(n("x"), n("y"), n("width"), n("height"), min(n("rx"), n("width") / 2, n("height") / 2))
    if tag == "line":
        return [("M", [(n("x1"), n("y1"))]), ("L", [(n("x2"), n("y2"))])]
    if tag == "circle":
        r = n("r")
        return rectangle(n("cx") - r, n("cy") - r, 2 * r, 2 * r, r)
    if tag in ("polyline", "polygon"):
        numbers = [float(v) for v in re.findall(NUMBER, element.get("points", ""))]
        corners = list(zip(numbers[::2], numbers[1::2], strict=True))
        verbs: list[Verb] = [("L" if k else "M", [p]) for k, p in enumerate(corners)]
        return [*verbs, ("Z", [])] if tag == "polygon" else verbs
    if tag == "path":
        return list(path_verbs(element.get("d", "")))
    raise VizggmlError(f"picture: <{tag}> cannot be painted")


def rectangle(x: float, y: float, w: float, h: float, r: float = 0) -> list[Verb]:
    if r <= 0:
        return [("M", [(x, y)]), ("L", [(x + w, y)]), ("L", [(x + w, y + h)]), ("L", [(x, y + h)]), ("Z", [])]
    k = r * (1 - KAPPA)
    return [
        ("M", [(x + r, y)]),
        ("L", [(x + w - r, y)]),
        ("C", [(x + w - k, y), (x + w, y + k), (x + w, y + r)]),
        ("L", [(x + w, y + h - r)]),
        ("C", [(x + w, y + h - k), (x + w - k, y + h), (x + w - r, y + h)]),
        ("L", [(x + r, y + h)]),
        ("C", [(x + k, y + h), (x, y + h - k), (x, y + h - r)]),
        ("L", [(x, y + r)]),
        ("C", [(x, y + k), (x + k, y), (x + r, y)]),
        ("Z", []),
    ]


NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
TAKES = {"M": 2, "L": 2, "H": 1, "V": 1, "C": 6, "Z": 0}


def path_verbs(d: str) -> Iterator[Verb]:
    """The verbs of a path's `d`, absolute."""
    x = y = start_x = start_y = 0.0
    for letter, rest in re.findall(r"([a-zA-Z])([^a-zA-Z]*(?:[eE][-+]?\d+[^a-zA-Z]*)*)", d):
        verb, relative = letter.upper(), letter.islower()
        if verb not in TAKES:
            raise VizggmlError(f"picture: path command {letter!r} cannot be painted")
        if verb == "Z":
            x, y = start_x, start_y
            yield "Z", []
            continue
        numbers = [float(v) for v in re.findall(NUMBER, rest)]
        takes = TAKES[verb]
        for k in range(0, len(numbers), takes):
            n = numbers[k : k + takes]
            from_x, from_y = (x, y) if relative else (0.0, 0.0)
            if verb == "H":
                points = [(n[0] + from_x, y)]
            elif verb == "V":
                points = [(x, n[0] + from_y)]
            else:
                points = [(n[i] + from_x, n[i + 1] + from_y) for i in range(0, takes, 2)]
            x, y = points[-1]
            if verb == "M" and k == 0:
                start_x, start_y = x, y
                yield "M", points
            else:
                yield ("C" if verb == "C" else "L"), points
