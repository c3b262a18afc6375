"""What the player shows of each part of a run, in real Chromium, with real traces."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.browser.test_html import lesson
from vizggml import ggml
from vizggml.events import (
    ChunkGrown,
    ChunkOpened,
    Event,
    NodeEnd,
    PagesResident,
    ReserveBegin,
    ReserveEnd,
    TensorCopied,
)
from vizggml.export.html import to_html
from vizggml.llama.model import load_model
from vizggml.llama.residency import pages_watched
from vizggml.timeline.record import record
from vizggml.timeline.trace import Trace

OpenPage = Callable[..., Page]


def opened(trace: Trace, folder: Path, open_page: OpenPage, step: int = 0) -> Page:
    """The exported page at a step."""
    to_html(trace, folder / "run.html")
    page = open_page()
    page.add_init_script(LISTEN)
    page.goto(f"{(folder / 'run.html').as_uri()}#step={step}")
    expect(page.locator(".vg-sentence")).to_be_visible()
    return page


LISTEN = """
globalThis.drawn = [];
const { fillText } = CanvasRenderingContext2D.prototype;
CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
  globalThis.drawn.push(text);
  return fillText.call(this, text, ...rest);
};
"""
"""Keeps the words that are drawn into canvases."""


def drawn_at(page: Page, step: int) -> list[str]:
    """What a step writes into the canvases."""
    page.evaluate("drawn.length = 0")
    page.evaluate(f"location.hash = '#step={step}'")
    expect(page.locator(".vg-goto")).to_have_value(str(step))
    return list(page.evaluate("new Promise((resolve) => requestAnimationFrame(() => resolve(drawn.slice())))"))


def steps_of(trace: Trace, kind: type[Event]) -> list[int]:
    """Where it happened, after the snapshot of what other tests may have left standing."""
    begin = trace.tracks().opening
    return [i for i, event in enumerate(trace.events) if i >= begin and isinstance(event, kind)]


def test_the_peak_is_named_beside_the_lower_bound(tmp_path: Path, open_page: OpenPage) -> None:
    """W, x and b of 32 padded bytes each, and the product: 128 bytes live at once, and no plan takes less."""
    page = opened(lesson(), tmp_path, open_page)
    expect(page.locator(".vg-footnote")).to_contain_text("Buffer 128 B; this plan uses all of it; lower bound 128 B.")
    legend = page.locator(".vg-pane-timeline .vg-legend")
    expect(legend).to_contain_text("live set")
    expect(legend).to_contain_text("lower bound")


def test_splits_over_two_backends_are_named_and_their_copies_listed(tmp_path: Path, open_page: OpenPage) -> None:
    """One of four layers on a device, which reads 3 tokens of 256 floats from the others."""
    model = load_model("tiny")
    context = model.context(n_ctx=64, n_gpu_layers=2, device_memory=1 << 24)
    with record() as trace:
        context.decode([1, 5, 6])
    model.close()
    copied = steps_of(trace, TensorCopied)
    page = opened(trace, tmp_path, open_page, copied[0])
    legend = page.locator(".vg-pane-graph .vg-legend")
    expect(legend).to_contain_text("CPU")
    expect(legend).to_contain_text("DEV0")
    expect(legend).to_contain_text("copy to another backend")
    page.get_by_role("tab", name="Splits").click()
    rows = page.locator(".vg-pane-tables .vg-grid-row").locator("visible=true")
    expect(rows).to_have_count(2)
    cells = [row.locator("span").all_text_contents() for row in rows.all()]
    assert [row[:2] for row in cells] == [["0", "CPU"], ["1", "DEV0"]]
    assert cells[1][4].split(", ")[:2] == ["ffn_out-2 3 KiB", "ffn_inp-2"]
    expect(page.locator(".vg-pane-tables .vg-marked")).to_contain_text("DEV0")
    # its splits are computed one by one: the whole graph stays in sight
    assert "(130)" in (page.get_by_label("Which graph").locator("option:checked").text_content() or "")


def test_a_reserve_says_why_until_the_next(tmp_path: Path, open_page: OpenPage) -> None:
    """The same sum of two vectors, then of longer ones: the plan of 8 bytes does not hold 400."""
    with record() as trace:
        galloc = ggml.GraphAllocator(ggml.cpu_buffer_type())
        for n in (2, 100):
            ctx = ggml.Context(mem_size=1 << 20, no_alloc=True)
            a, b = (ctx.new_tensor("F32", (n,), name=name) for name in ("a", "b"))
            g = ggml.Graph(ctx)
            g.build_forward_expand(ggml.add(ctx, a, b).set_name("sum"))
            galloc.alloc_graph(g)
    begins, ends = steps_of(trace, ReserveBegin), steps_of(trace, ReserveEnd)
    page = opened(trace, tmp_path, open_page)
    line = page.locator(".vg-reserve")
    expect(line).to_have_text("No memory is planned yet in this recording.")
    for step, marked in ((begins[1], True), (ends[1], True), (ends[1] + 1, False)):
        page.evaluate(f"location.hash = '#step={step}'")
        words = "Being planned anew for graph 1" if marked else "Planned anew for graph 1"
        expect(line).to_contain_text(words)
        expect(line).to_contain_text("sum needs 400 B, planned were 8 B")
        assert ("vg-marked" in (line.get_attribute("class") or "")) == marked
    expect(line).to_contain_text("in a new buffer")


def test_chunks_open_and_grow_in_lanes_of_their_own(tmp_path: Path, open_page: OpenPage) -> None:
    """Vectors of 160 bytes, and buffers of 256 at the most: the second opens another chunk."""
    with record() as trace:
        ctx = ggml.Context(mem_size=1 << 20, no_alloc=True)
        a, b = (ctx.new_tensor("F32", (40,), name=name) for name in ("a", "b"))
        g = ggml.Graph(ctx)
        g.build_forward_expand(ggml.add(ctx, a, b))
        ggml.GraphAllocator(ggml.BufferType("small", 32, 256)).alloc_graph(g)
    opens, grows = steps_of(trace, ChunkOpened), steps_of(trace, ChunkGrown)
    page = opened(trace, tmp_path, open_page)
    first = drawn_at(page, opens[0])
    assert "this chunk opens" in first
    assert "nothing planned yet" in first
    assert {
        "small compute buffer, chunk 0, planned for graph 0",
        "small compute buffer, chunk 1, planned for graph 0",
    } <= set(first)
    assert "the chunk grows by 160 B" in drawn_at(page, grows[1])
    assert "this chunk opens" in drawn_at(page, opens[1])
    assert "nothing planned yet" not in drawn_at(page, opens[1] + 1)


def test_the_threads_of_an_evaluation_stand_on_a_clock(tmp_path: Path, open_page: OpenPage) -> None:
    model = load_model("tiny")
    context = model.context(n_ctx=64, n_threads=2)
    with record() as trace:
        context.decode([1, 5, 6])
    model.close()
    page = opened(trace, tmp_path, open_page)
    page.get_by_role("tab", name="Threads").click()
    expect(page.locator(".vg-pane-tables .vg-empty")).to_contain_text("Nothing is computing at this step.")
    words = drawn_at(page, steps_of(trace, NodeEnd)[20])
    assert {"thread 0", "thread 1", "ms"} <= set(words)
    assert "thread 2" not in words


def test_the_layers_of_the_file_come_in_one_after_the_other(tmp_path: Path, open_page: OpenPage) -> None:
    """As `test_residency` has it: at the end of a layer all its pages are there, and of the next not yet all."""
    model = load_model("tiny")
    context = model.context(n_ctx=64, fast=False)
    with record() as trace, pages_watched(context, model.gguf.mapped, model.gguf):
        context.decode([5])
    model.close()
    asked = steps_of(trace, PagesResident)
    page = opened(trace, tmp_path, open_page)
    page.get_by_role("tab", name="Pages").click()
    page.get_by_label("Show Details alone").click()
    rows = page.locator(".vg-pane-tables .vg-grid-row").locator("visible=true")
    shares = []
    for step in asked[:2]:
        drawn_at(page, step)
        cells = [row.locator("span").all_text_contents() for row in rows.all()]
        shares.append({row[0]: row[3] for row in cells})
    first, second = shares
    assert "the whole file" in first
    assert first["blk.0"] == "100 %"
    assert second["blk.1"] == "100 %"
    assert second["blk.2"] != "100 %"
