"""Still figures of every pane: what they say, read out of the SVG as a reader would."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest

from vizggml import ggml
from vizggml.errors import VizggmlError
from vizggml.timeline.record import record
from vizggml.timeline.tracks import Tracks
from vizggml.views.pictures import PICTURES, picture
from vizggml.views.sheet import Column, Row, table, wrapped
from vizggml.views.svg import Svg
from vizggml.widgets.view import DETAILS, PANES

SVG = "{http://www.w3.org/2000/svg}"


def words(svg: Svg) -> list[str]:
    return [text.text or "" for text in ET.fromstring(svg).iter(f"{SVG}text")]


@pytest.fixture(scope="module")
def lesson() -> Tracks:
    """relu(W x + b) planned: W, x and b are 24, 12 and 8 bytes, the product, the sum and the output 8 each."""
    with record() as trace:
        ctx = ggml.Context(mem_size=1 << 20, no_alloc=True)
        W, x, b = (ctx.new_tensor("F32", ne, name=n) for ne, n in (((3, 2), "W"), ((3,), "x"), ((2,), "b")))
        wx = ggml.mul_mat(ctx, W, x).set_name("wx")
        out = ggml.relu(ctx, ggml.add(ctx, wx, b).set_name("sum")).set_name("out")
        g = ggml.Graph(ctx)
        g.build_forward_expand(out)
        ggml.GraphAllocator(ggml.cpu_buffer_type()).alloc_graph(g)
    return trace.tracks()


def step_of(tracks: Tracks, kind: str, nth: int = 0) -> int:
    names = [k["name"] for k in tracks.meta["kinds"]]
    return [i for i, k in enumerate(tracks["ev.kind"].tolist()) if names[k] == kind][nth]


def test_every_pane_and_detail_of_the_player_has_one() -> None:
    assert set(PANES) - {"tables"} | set(DETAILS) <= set(PICTURES)


@pytest.mark.parametrize("theme", ["light", "dark", "auto"])
def test_each_is_a_whole_svg_with_the_steps_sentence(lesson: Tracks, theme: str) -> None:
    step = step_of(lesson, "BlockChosen", 2)
    for name in PICTURES:
        svg = picture(lesson, name, step, theme=theme)
        assert any("goes to offset" in text for text in words(svg)), name
        assert f"{step:,} of {len(lesson) - 1:,}" in " ".join(words(svg))


def test_buffers_are_drawn_where_nothing_is_planned() -> None:
    """100 and 60 bytes at multiples of 32: 128 + 60, rounded up, are 192, of which 160 are in use."""
    ctx = ggml.Context(mem_size=1 << 16, no_alloc=True)
    for name, n in (("a", 25), ("b", 15)):
        ctx.new_tensor("F32", (n,), name=name)
    with record() as trace:
        ggml.alloc_ctx_tensors_from_buft(ctx, ggml.BufferType("small", alignment=32))
    told = words(picture(trace.tracks(), "map", len(trace) - 1))
    assert [text for text in told if "buffer:" in text] == ["small buffer: 160 B of 192 B in use"]
    assert told.index("a") < told.index("100 B") < told.index("b") < told.index("60 B")


def test_the_tensor_by_its_numbers(lesson: Tracks) -> None:
    text = words(picture(lesson, "tensor", step_of(lesson, "NodeAppended", 0)))
    facts = dict(pairwise(text))
    assert (facts["name"], facts["op"], facts["ne"], facts["nb"]) == ("wx", "MUL_MAT", "[2, 1, 1, 1]", "[4, 8, 8, 8]")
    assert (facts["bytes"], facts["reads"], facts["read by"]) == ("8 B", "W, x", "sum")


def test_the_free_list_has_the_endless_block_at_the_end(lesson: Tracks) -> None:
    text = words(picture(lesson, "free", step_of(lesson, "ChunkOpened")))
    assert text[-4:] == ["0", "0", "0", "to the end"]


def test_the_text_says_where_there_is_none(lesson: Tracks) -> None:
    assert "No token has been read at this step." in words(picture(lesson, "tokens", 3))


def test_the_events_stand_about_the_step(lesson: Tracks) -> None:
    text = words(picture(lesson, "events", 40))
    assert {f"{i}" for i in range(28, 51)} <= set(text)
    assert "51" not in text


def test_a_long_table_is_cut_about_the_marked_row() -> None:
    lines, height = table([Column("n")], [Row((str(i),), marked=i == 50) for i in range(100)], empty="", most=10)
    svg = ET.fromstring(f'<g xmlns="http://www.w3.org/2000/svg">{"".join(lines)}</g>')
    text = [t.text for t in svg.iter(f"{SVG}text")]
    assert text == ["n", *map(str, range(45, 55)), "rows 46 to 55 of 100"]
    assert height == 20 + 11 * 20


def test_a_long_sentence_is_wrapped_and_a_longer_one_cut() -> None:
    assert wrapped("one two three", 7, 2) == ["one two", "three"]
    assert wrapped("one two three four", 7, 2) == ["one two", "three…"]


def test_a_hostile_name_is_only_text() -> None:
    with record() as trace:
        ctx = ggml.Context(mem_size=1 << 16, no_alloc=True)
        ctx.new_tensor("F32", (3,), name="<script>\u202e&")
    tracks = trace.tracks()
    svg = picture(tracks, "tensor", len(tracks) - 1)
    assert "<script" not in svg
    assert "<script>\\u202e&" in words(svg)


def test_what_there_is_not_is_refused(lesson: Tracks) -> None:
    with pytest.raises(VizggmlError, match="pane 'mpa': there are step, tokens, graph"):
        picture(lesson, "mpa")
    with pytest.raises(VizggmlError, match=f"step {len(lesson)}: the trace has steps 0 to {len(lesson) - 1}"):
        picture(lesson, "map", len(lesson))
    with pytest.raises(VizggmlError, match="theme 'sepia'"):
        picture(lesson, "events", 3, theme="sepia")
