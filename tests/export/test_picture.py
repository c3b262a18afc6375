"""Figures as files: SVG of a graph or a pane; PNG and PDF, read back by others."""

from __future__ import annotations

import io
import re
import warnings
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from PIL import Image
from pypdf import PdfReader

from tests.views.synthetic import lesson, teaching
from vizggml import ggml
from vizggml.errors import VizggmlError
from vizggml.export.picture import graph_svg, to_pdf, to_png, to_svg
from vizggml.export.tables import layer_of, table_of
from vizggml.timeline.record import record
from vizggml.timeline.trace import Trace
from vizggml.views import paint
from vizggml.views.pictures import PICTURES
from vizggml.views.svg_read import path_verbs, read_svg, stylesheet


def svg_of(width: int, height: int, body: str) -> str:
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">{body}</svg>'


@pytest.fixture(scope="module")
def recorded() -> Trace:
    with record() as trace:
        ctx = ggml.Context(mem_size=1 << 20, no_alloc=True)
        W, x = ctx.new_tensor("F32", (3, 2), name="W$_1"), ctx.new_tensor("F32", (3,), name="x")
        g = ggml.Graph(ctx)
        g.build_forward_expand(ggml.relu(ctx, ggml.mul_mat(ctx, W, x).set_name("wx")).set_name("out"))
        ggml.GraphAllocator(ggml.cpu_buffer_type()).alloc_graph(g)
    return trace


def test_a_graph_of_the_engine_and_its_trace_are_drawn_alike() -> None:
    ctx = ggml.Context(mem_size=1 << 20, no_alloc=True)
    W, x = ctx.new_tensor("F32", (3, 2), name="W"), ctx.new_tensor("F32", (3,), name="x")
    wx = ggml.mul_mat(ctx, W, x).set_name("wx")
    total = ggml.add(ctx, wx, ctx.new_tensor("F32", (2,), name="b")).set_name("wx+b")
    g = ggml.Graph(ctx)
    g.build_forward_expand(ggml.relu(ctx, total).set_name("out"))
    assert graph_svg(g) == graph_svg(lesson())


def test_a_graph_is_written(tmp_path: Path) -> None:
    to_svg(lesson(), tmp_path / "g.svg", theme="dark")
    assert ET.parse(tmp_path / "g.svg").getroot().tag == "{http://www.w3.org/2000/svg}svg"


def test_views_read_their_source_and_layers_come_from_names() -> None:
    ctx = ggml.Context(mem_size=1 << 20, no_alloc=True)
    x = ctx.new_tensor("F32", (4, 2), name="x")
    v = ggml.reshape_2d(ctx, x, 2, 4).set_name("v-7")
    g = ggml.Graph(ctx)
    g.build_forward_expand(v)
    table = table_of(g)
    assert [table.tensors.name[s] for n in table.nodes for s in table.srcs[n]] == ["x"]
    assert [table.tensors.layer[n] for n in table.nodes] == [7]


@pytest.mark.parametrize(
    ("name", "layer"),
    [
        ("blk.12.attn_q.weight", 12),
        ("ffn_out-3", 3),
        ("Qcur-3 (reshaped)", 3),
        ("cache_k_l29 (view)", 29),
        ("token_embd.weight", -1),
        ("node_12", -1),
        ("result_output", -1),
    ],
)
def test_the_layer_in_a_name(name: str, layer: int) -> None:
    assert layer_of(name) == layer


def test_every_picture_becomes_svg_png_and_pdf(recorded: Trace, tmp_path: Path) -> None:
    for pane in PICTURES:
        recorded.to_svg(tmp_path / f"{pane}.svg", pane=pane, step=60)
        recorded.to_png(tmp_path / f"{pane}.png", pane, step=60)
        root = ET.parse(tmp_path / f"{pane}.svg").getroot()
        with Image.open(tmp_path / f"{pane}.png") as image:
            assert image.size == tuple(int(2 * float(root.get(name, ""))) for name in ("width", "height"))


def test_the_text_of_a_pdf_is_text(recorded: Trace, tmp_path: Path) -> None:
    """Read by pypdf: 720 pixels at 96 to an inch are 540 points, and the tensor's facts can be searched for."""
    step = next(i for i, event in enumerate(recorded.events) if type(event).__name__ == "NodeAppended")
    recorded.to_pdf(tmp_path / "tensor.pdf", "tensor", step=step)
    (page,) = PdfReader(tmp_path / "tensor.pdf").pages
    assert float(page.mediabox.width) == 540
    words = page.extract_text().split()
    assert {"Tensor", "wx", "MUL_MAT", "F32", "W$_1,", "x"} <= set(words)
    assert words[words.index("nb") + 1 :][:4] == ["[4,", "8,", "8,", "8]"]


def test_a_rectangle_has_its_colour_where_it_lies() -> None:
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20"><style>.a{fill:#ff0000}rect.b{fill:#0000ff}'
        ".g{fill:#00ff00}@media(prefers-color-scheme:dark){.a{fill:#000000}}</style>"
        '<rect class="a" width="40" height="20"/><g class="g" transform="translate(20,0) scale(2)">'
        '<rect x="0" y="5" width="10" height="5"/></g><path class="a b" d="M0 0h5v5h-5z" style="fill:#0000ff"/></svg>'
    )
    image = paint.image(svg)
    assert [image.getpixel(p) for p in ((10, 15), (30, 5), (30, 15), (2, 2))] == [
        (255, 0, 0),
        (255, 0, 0),
        (0, 255, 0),
        (0, 0, 255),
    ]


def test_half_opaque_is_half_way() -> None:
    svg = svg_of(8, 8, '<g opacity="0.5"><rect width="8" height="8"/></g>')
    assert paint.image(svg).getpixel((4, 4)) in ((127, 127, 127), (128, 128, 128))


def test_text_stands_where_its_anchor_says() -> None:
    def ink(anchor: str) -> tuple[int, int]:
        body = f'<text x="100" y="20" style="font-size:16px;text-anchor:{anchor}">HHHH</text>'
        svg = svg_of(200, 30, f'<rect width="200" height="30" fill="#ffffff"/>{body}')
        box = paint.image(svg).convert("L").point(lambda v: 255 * (v < 128)).getbbox()
        assert box is not None
        return box[0], box[2]

    (start, start_end), (middle, middle_end), (end, end_end) = (ink(a) for a in ("start", "middle", "end"))
    assert 99 <= start <= 103
    assert 97 <= end_end <= 101
    assert abs(middle + middle_end - 200) <= 4
    assert start_end - start == pytest.approx(middle_end - middle, abs=1) == pytest.approx(end_end - end, abs=1)


def test_relative_and_absolute_path_commands_are_one() -> None:
    absolute = list(path_verbs("M1 2L4 6H9V1C1 2 3 4 5 6Z"))
    assert absolute == list(path_verbs("m1 2l3 4h5v-5c-8 1-6 3-4 5z"))
    assert absolute[0] == ("M", [(1.0, 2.0)])


def test_what_cannot_be_painted_is_told_and_never_left_out() -> None:
    for body, words in (
        ("<image/>", "<image> cannot be painted"),
        ('<path d="M0 0A1 1 0 0 0 2 2"/>', "path command 'A' cannot be painted"),
        ('<g transform="skewX(3)"/>', "transform 'skewX' cannot be painted"),
    ):
        with pytest.raises(VizggmlError, match=re.escape(words)):
            read_svg(svg_of(8, 8, body))
    with pytest.raises(VizggmlError, match=r"selector 'a > b' cannot be painted"):
        stylesheet("a > b{fill:red}")


def test_equal_pictures_have_equal_bytes(recorded: Trace) -> None:
    for make in (paint.png, paint.pdf):
        svg = PICTURES["map"](recorded.tracks(), 40)
        assert make(svg) == make(svg)


def test_a_glyph_that_no_font_has_is_no_fuss(recorded: Trace) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        svg = (
            '<svg xmlns="http://www.w3.org/2000/svg" width="80" height="20"><text x="1" y="12">\U000e0b1f</text></svg>'
        )
        assert Image.open(io.BytesIO(paint.png(svg))).size == (160, 40)


def test_a_picture_beyond_reason_is_refused(recorded: Trace, tmp_path: Path) -> None:
    with pytest.raises(VizggmlError, match=r"scale 500: the picture would have .* pixels, the most is"):
        to_png(recorded, tmp_path / "map.png", "map", scale=500)
    with pytest.raises(VizggmlError, match="pane 'pie': there are step, tokens"):
        to_pdf(teaching(), tmp_path / "pie.pdf", "pie")
