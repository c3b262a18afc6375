"""A graph as a still SVG: written from the layout, with nothing in it that runs or is fetched."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape

from vizggml.errors import VizggmlError
from vizggml.views import labels, palette
from vizggml.views.graph_layout import GraphLayout, SectionLayout, graph_layout
from vizggml.views.palette import Theme, family, family_class
from vizggml.views.sections import box_label
from vizggml.views.tables import GraphTable

MONO = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace"
SANS = "system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans','Liberation Sans',sans-serif"
TITLE_HEIGHT = 38
LEAST_WIDTH = 560
LEGEND_ENTRY = 26
LEGEND_GAP = 11
LEGEND_ROW = 20


class Svg(str):
    """An SVG document; a notebook shows it as the picture that it is."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)


def text_of(value: str) -> str:
    """`value` for the inside of an element or an attribute: unseen characters shown, markup escaped."""
    return escape(labels.visible(value), quote=True)


def graph_svg(
    table: GraphTable, *, theme: str = "auto", folded: bool = True, status: Mapping[int, int] | None = None
) -> Svg:
    """The graph of `table`. `folded` draws a run of equal layers once; `theme` is light, dark or auto.

    `status` gives a tensor's node status (as the node track counts them); the nodes not yet computed are drawn pale and
    the one that is computing is ringed.
    """
    drawn = graph_layout(table, folded=folded)
    families = sorted({family(table.tensors.desc[t]) for t in drawn["nodes"]["tensor"]}, key=palette.FAMILIES.index)
    width = max(drawn["width"], LEAST_WIDTH)
    legend, legend_height = legend_of(families, width - 32)
    height = TITLE_HEIGHT + drawn["height"] + 14 + legend_height
    left = (width - drawn["width"]) // 2
    body = [
        f'<text class="title" x="16" y="25">{text_of(title_of(table, drawn))}</text>',
        f'<g transform="translate({left},{TITLE_HEIGHT})">',
        *draw_graph(drawn, table, status),
        "</g>",
        f'<g transform="translate(16,{TITLE_HEIGHT + drawn["height"] + 6})">{legend}</g>',
    ]
    return document(width, height, body, theme=theme, title=title_of(table, drawn))


def title_of(table: GraphTable, drawn: GraphLayout) -> str:
    n_layers = len({layer for t in table.nodes if (layer := table.tensors.layer[t]) >= 0})
    layers = f", {n_layers} layer{'s' * (n_layers > 1)}" if n_layers else ""
    folded = "".join(f"; {fold['label']} drawn once" for fold in drawn["folds"] if _is_folded(fold["sections"], drawn))
    return f"{len(table.nodes):,} nodes, {len(table.leafs):,} leafs{layers}{folded}"


def document(width: float, height: float, body: Iterable[str], *, theme: str, title: str) -> Svg:
    """The whole SVG around `body`."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" role="img" aria-label="{text_of(title)}"><title>{text_of(title)}</title>'
        f"<style>{stylesheet(theme)}</style>"
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" orient="auto">'
        '<path class="tip" d="M0 1L7 4L0 7Z"/></marker></defs>'
        f'<rect class="page" width="{width:g}" height="{height:g}"/>'
    )
    return Svg("\n".join([head, *body, "</svg>\n"]))


def stylesheet(theme: str) -> str:
    """`auto` follows the reader's preference: light, and dark where dark is asked for."""
    if theme == "auto":
        return f"{_FONTS}{_colours(palette.LIGHT)}@media(prefers-color-scheme:dark){{{_colours(palette.DARK)}}}"
    return _FONTS + _colours(palette.theme_named(theme))


_FONTS = (
    f"text{{font-family:{SANS}}}.name,.note,.token{{font-family:{MONO}}}.token{{font-size:13px}}"
    f".name{{font-size:{labels.NAME_SIZE}px}}.note{{font-size:{labels.NOTE_SIZE}px}}"
    ".title{font-size:15px;font-weight:600}.head{font-size:12px;font-weight:600}.word{font-size:11px}"
    ".small{font-size:10px}.end{text-anchor:end}.mid{text-anchor:middle}.edge{fill:none;stroke-width:1.1}"
)


def _colours(t: Theme) -> str:
    families = "".join(f".f{i}{{fill:{colour}}}" for i, colour in enumerate(t.families))
    return (
        f".page{{fill:{t.page}}}.section{{fill:{t.panel};stroke:{t.line}}}.box{{fill:{t.box};stroke:{t.edge}}}"
        f".leaf{{fill:{t.panel};stroke:{t.edge};stroke-dasharray:3 2}}text{{fill:{t.ink}}}"
        f".note,.soft{{fill:{t.soft}}}.edge{{stroke:{t.edge}}}.tip{{fill:{t.edge}}}{families}"
        f".free{{fill:{t.free};stroke:{t.line}}}.cut{{stroke:{t.page};stroke-width:.6}}.axis{{stroke:{t.line};fill:none}}"
        f".live{{stroke:{t.ink};fill:none;stroke-opacity:.75}}"
        f".peak{{stroke:{t.peak};fill:none}}text.peak{{fill:{t.peak};stroke:none}}.ring{{fill:none;stroke:{t.peak};stroke-width:3}}.thin{{stroke-width:1.5}}"
        f"text.on{{fill:{t.on_block}}}.unseen{{opacity:.38}}.mark{{fill:{t.peak};fill-opacity:.14}}"
    )


def draw_graph(drawn: GraphLayout, table: GraphTable, status: Mapping[int, int] | None = None) -> list[str]:
    """Sections, edges and boxes, in the layout's coordinates."""
    out = []
    for section in drawn["sections"]:
        out += _section(section, drawn)
    out += [f'<path class="edge" marker-end="url(#tip)" d="{path(points)}"/>' for points in drawn["edges"]["points"]]
    nodes = drawn["nodes"]
    computed = set(table.nodes)
    columns = zip(nodes["tensor"], nodes["x"], nodes["y"], nodes["w"], nodes["h"], strict=True)
    for tensor, x, y, w, h in columns:
        state = None if status is None else status.get(tensor, 0)
        out.append(_box(table, tensor, (x - w / 2, y - h / 2, w, h), tensor in computed, state))
    return out


COMPUTING, DONE = 4, 5


def _box(table: GraphTable, tensor: int, at: tuple[float, float, float, float], node: bool, state: int | None) -> str:
    x, y, w, h = at
    name, note = box_label(table, tensor)
    pale = node and state is not None and state < COMPUTING
    ring = f'<rect class="ring" x="{x - 3:g}" y="{y - 3:g}" width="{w + 6:g}" height="{h + 6:g}" rx="7"/>'
    op = table.tensors.desc[tensor]
    return (
        f"<g{' class=' + chr(34) + 'unseen' + chr(34) if pale else ''}>"
        f"<title>{text_of(tooltip(table, tensor))}</title>"
        f'<rect class="{"box" if node else "leaf"}" x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="5"/>'
        f'<rect class="{family_class(family(op))}" x="{x - 0.5:g}" y="{y + 4:g}" width="4.5" height="{h - 8:g}"/>'
        f'<text class="name" x="{x + 10:g}" y="{y + 14:g}">{escape(name)}</text>'
        f'<text class="note" x="{x + 10:g}" y="{y + 27:g}">{escape(note)}</text>'
        f"{ring if state == COMPUTING else ''}</g>"
    )


def tooltip(table: GraphTable, tensor: int) -> str:
    t = table.tensors
    what = "leaf" if t.desc[tensor] in ("", "NONE") else t.desc[tensor]
    return f"{t.name[tensor]}: {what}, {t.type[tensor]} {labels.shape(t.ne[tensor])}, {labels.size(t.nbytes[tensor])}"


def _section(section: SectionLayout, drawn: GraphLayout) -> list[str]:
    x, y, w, h = section["x"], section["y"], section["w"], section["h"]
    label = section["label"]
    out = []
    for fold in drawn["folds"]:
        if fold["sections"][0] == section["id"] and _is_folded(fold["sections"], drawn):
            label = f"{fold['label']}: {label} to {fold['sections'][-1] - section['id'] + section['layer']}"
            out += [
                f'<rect class="section" x="{x + d}" y="{y + d}" width="{w}" height="{h}" rx="10"/>' for d in (10, 5)
            ]
    out.append(f'<rect class="section" x="{x}" y="{y}" width="{w}" height="{h}" rx="10"/>')
    out.append(f'<text class="head soft" x="{x + 12}" y="{y + 18}">{text_of(label)}</text>')
    return out


def _is_folded(run: list[int], drawn: GraphLayout) -> bool:
    return len({section["id"] for section in drawn["sections"]} & set(run)) < len(run)


def path(points: list[int]) -> str:
    """The SVG path of a cubic Bézier curve of 1 + 3 n points."""
    return f"M{points[0]} {points[1]}C{' '.join(map(str, points[2:]))}"


def legend_of(families: Iterable[str], width: float) -> tuple[str, float]:
    """Swatches and words of the families in rows as wide as `width`, and their height."""
    out, x, y = [], 0.0, 0
    for name in families:
        wide = LEGEND_ENTRY + len(name) * 6.2
        if x and x + wide - LEGEND_GAP > width:
            x, y = 0.0, y + LEGEND_ROW
        out.append(f'<rect class="{family_class(name)}" x="{x:g}" y="{y + 2}" width="10" height="10" rx="2"/>')
        out.append(f'<text class="word soft" x="{x + 15:g}" y="{y + 11}">{escape(name)}</text>')
        x += wide
    return "".join(out), float(y + LEGEND_ROW)


def check_theme(theme: str) -> None:
    if theme not in ("auto", *palette.THEMES):
        raise VizggmlError(f"theme {theme!r}: there are auto, {', '.join(palette.THEMES)}")
