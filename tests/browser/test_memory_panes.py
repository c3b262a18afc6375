"""The memory map and the memory timeline, as a person uses them: a search, zoom, who is at the peak."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_html import lesson
from tests.browser.test_player_events import OpenPage, drawn_at, opened, steps_of
from tests.widgets.test_player_bundle import bundle_text
from vizggml import ggml
from vizggml.events import (
    BlockChosen,
    BlockConsidered,
    BlockSplit,
    Event,
    SearchBegin,
    TensorAssigned,
    TensorFreed,
)
from vizggml.ggml.tallocr import DynTallocr
from vizggml.llama.model import load_model
from vizggml.timeline.record import record
from vizggml.timeline.trace import Trace


def three_allocations() -> Trace:
    """wx, wx+b and out of 8 bytes each, on weights with memory of their own: out goes where wx was."""
    c = ggml.Context(mem_size=1 << 20, no_alloc=True)
    W, x, b = (c.new_tensor("F32", ne, name=n) for n, ne in (("W", (3, 2)), ("x", (3,)), ("b", (2,))))
    ggml.alloc_ctx_tensors_from_buft(c, ggml.cpu_buffer_type())
    wx = ggml.mul_mat(c, W, x).set_name("wx")
    out = ggml.relu(c, ggml.add(c, wx, b).set_name("wx+b")).set_name("out")
    g = ggml.Graph(c)
    g.build_forward_expand(out)
    galloc = ggml.GraphAllocator(ggml.cpu_buffer_type(alignment=8), in_place=False)
    with record() as trace:
        galloc.reserve(g)
    return trace


def gaps() -> Trace:
    """A free list with gaps of 96, 160 and 128 bytes, and a search for 128."""
    talloc = DynTallocr(32)
    with record() as trace:
        places = [talloc.alloc(size) for size in (96, 32, 160, 32, 128, 32)]
        for place, size in zip(places[::2], (96, 160, 128), strict=True):
            talloc.free_bytes(place, size)
        talloc.alloc(100)
    return trace


def until(page: Page, condition: str) -> None:
    """Waits, frame by frame: the exported page lets nobody make code of a text, as a waiting Playwright would."""
    for _ in range(300):
        if page.evaluate(condition):
            return
        page.evaluate("new Promise((resolve) => requestAnimationFrame(resolve))")
    raise AssertionError(f"never: {condition}")


def last_of(trace: Trace, kind: type[Event]) -> int:
    return steps_of(trace, kind)[-1]


def test_the_lesson_is_told_on_the_map(tmp_path: Path, open_page: OpenPage) -> None:
    trace = three_allocations()
    searches, chosen = steps_of(trace, SearchBegin), steps_of(trace, BlockChosen)
    page = opened(trace, tmp_path, open_page)
    assert "looking for 8 B for wx" in drawn_at(page, searches[0])
    first = drawn_at(page, chosen[0])
    assert [t for t in first if t.startswith(("the free", "taken"))] == [
        "the free end",
        "taken: the chunk grows by 8 B",
    ]
    third = drawn_at(page, chosen[2])
    assert "looking for 8 B for out" in third
    assert [t for t in third if t.startswith(("block", "taken"))] == ["block 0 · 8 B", "taken: fits exactly"]
    assert {"wx is freed", "8 B at 0"} <= set(drawn_at(page, steps_of(trace, TensorFreed)[0]))


def test_every_candidate_says_why_it_lost(tmp_path: Path, open_page: OpenPage) -> None:
    """96 is less than 128, 160 is more than it need be, and 128 fits to the byte."""
    trace = gaps()
    considered = steps_of(trace, BlockConsidered)[-3:]
    page = opened(trace, tmp_path, open_page)
    assert "too small: 96 B < 128 B" in drawn_at(page, considered[0])
    assert {"block 1 · 160 B", "fits: the best so far"} <= set(drawn_at(page, considered[1]))
    words = drawn_at(page, last_of(trace, BlockChosen))
    told = ["too small: 96 B < 128 B", "fits, but not the best", "taken: fits exactly"]
    assert [w for w in words if w in told] == told
    label = page.locator(".vg-pane-map canvas").first
    expect(label).to_have_attribute("aria-label", re.compile("block 1 · 160 B: fits, but not the best"))
    expect(page.locator(".vg-sentence")).to_contain_text("best fit exact, a free block of just 128 B")


def test_fragmentation_is_shown_in_figures(tmp_path: Path, open_page: OpenPage) -> None:
    """Of 480 bytes 96 are held; 384 are free in pieces of 96, 160 and 128."""
    trace = gaps()
    page = opened(trace, tmp_path, open_page, steps_of(trace, SearchBegin)[-1])
    figures = page.locator(".vg-usage")
    expect(figures.locator("div", has_text="largest free").locator(".vg-dd")).to_have_text("160 B")
    pieces = figures.locator("div", has_text="free in pieces").locator(".vg-dd")
    expect(pieces).to_have_text("384 B in 3")


def test_padding_and_what_is_never_used(tmp_path: Path, open_page: OpenPage) -> None:
    """W 24, x 12 and b 8 bytes lie in 32 each, and so does the product of 8: 128 taken, 52 needed, nothing unused."""
    trace = lesson()
    page = opened(trace, tmp_path, open_page, steps_of(trace, TensorAssigned)[-1])
    figures = page.locator(".vg-usage")
    expect(figures.locator("div", has_text="held").locator(".vg-dd")).to_have_text("128 B")
    expect(figures.locator("div", has_text="padding").locator(".vg-dd")).to_have_text("76 B")
    expect(figures.locator("div", has_text="never used").locator(".vg-dd")).to_have_text("0 B (0 %)")
    expect(figures.locator("div", has_text="lower bound").locator(".vg-dd")).to_have_text("128 B")
    placed = drawn_at(page, steps_of(trace, TensorAssigned)[0])
    assert any(text.startswith("CPU compute buffer, planned for graph") for text in placed)


def test_buffers_alone_are_bars_with_names(tmp_path: Path, open_page: OpenPage) -> None:
    """Two tensors of 100 and 60 bytes in a buffer of 192: the bar is high enough for their names and sizes."""
    c = ggml.Context(mem_size=1 << 16, no_alloc=True)
    for name, n in (("first", 25), ("second", 15)):
        c.new_tensor("F32", (n,), name=name)
    with record() as trace:
        ggml.alloc_ctx_tensors_from_buft(c, ggml.BufferType("small", alignment=32))
    page = opened(trace, tmp_path, open_page)
    drawn = drawn_at(page, len(trace) - 1)
    assert {"small buffer", "2 tensors in 192 B", "first", "100 B", "second", "60 B"} <= set(drawn)


WATCH = """
globalThis.moved = [];
new MutationObserver((all) => {
  for (const { target } of all) if (target.dataset.moving) moved.push(target.dataset.moving);
}).observe(document.querySelector(".vg-motion"), { attributes: true, attributeFilter: ["data-moving"] });
"""


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_splits_and_merges_move_only_when_stepped_one_by_one(tmp_path: Path, open_page: OpenPage, motion: str) -> None:
    trace = gaps()
    split = steps_of(trace, BlockSplit)[0]
    page = opened(trace, tmp_path, lambda: open_page(reduced_motion=motion), split - 1)
    page.evaluate(WATCH)
    page.keyboard.press("ArrowRight")
    expect(page.locator(".vg-goto")).to_have_value(str(split))
    expect(page.locator(".vg-motion[data-moving]")).to_have_count(0)
    assert page.evaluate("moved") == (["split"] if motion == "no-preference" else [])
    page.keyboard.press("Home")
    until(page, "location.hash === '#step=0'")
    page.evaluate("moved.length = 0")
    drawn_at(page, split)
    assert page.evaluate("moved") == []


@pytest.fixture
def decoded(tmp_path: Path, open_page: OpenPage) -> Page:
    """The tiny model's prefill of 5 tokens, then one step, at its last event."""
    model = load_model("tiny")
    with record() as trace:
        context = model.context(n_ctx=64, n_ubatch=32)
        context.decode([1, 5, 6, 7, 8])
        context.decode([9])
    model.close()
    return opened(trace, tmp_path, open_page, len(trace) - 1)


def test_the_buffer_of_a_step_is_the_prefill_s(decoded: Page) -> None:
    """A step of one token takes a small part of a buffer that is reserved for 32."""
    words = decoded.locator(".vg-footnote").inner_text()
    found = re.fullmatch(
        r"Buffer ([\d.]+) KiB, reserved for graph \d+ \(32 tokens\); this plan uses up to ([\d.]+) KiB; "
        r"lower bound ([\d.]+) KiB\.",
        words,
    )
    assert found is not None, words
    buffer, used, bound = map(float, found.groups())
    assert bound <= used < buffer


def test_a_tensor_at_the_peak_is_selected_and_gone_to(decoded: Page) -> None:
    button = decoded.locator(".vg-at-peak")
    position = int(button.inner_text().rsplit(" ", 1)[1])
    chip = decoded.locator(".vg-peak-chip").first
    name = chip.locator(".vg-mono").inner_text()
    decoded.evaluate("drawn.length = 0")
    chip.click()
    expect(chip).to_have_attribute("aria-pressed", "true")
    expect(decoded.locator(".vg-pane-tables")).to_contain_text(name)
    until(decoded, f"drawn.some((text) => text.startsWith('node {position} runs with '))")
    expect(decoded.locator(".vg-pane-timeline canvas").first).to_have_attribute(
        "aria-label", re.compile(rf"At position {position} of \d+, .* live\. .*At the peak, position {position}, stand")
    )


def test_the_timeline_stands_by_address_or_by_tensor(decoded: Page) -> None:
    choice = decoded.get_by_label("How the timeline is stacked")
    decoded.evaluate("drawn.length = 0")
    choice.select_option(label="by tensor, largest first")
    expect(choice).to_have_value("size")
    until(decoded, "drawn.includes('largest') && drawn.includes('smallest')")
    decoded.locator(".vg-pane-timeline .vg-surface").click(position={"x": 4, "y": 4})
    decoded.keyboard.press("y")
    expect(choice).to_have_value("address")


TIMELINE = """
async ([code, bytes]) => {
  globalThis.written = {};
  const { fillText } = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
    globalThis.written[text] = x;
    return fillText.call(this, text, x, y);
  };
  const module = await import(URL.createObjectURL(new Blob([code], { type: "text/javascript" })));
  const tracks = Uint8Array.from(atob(bytes), (c) => c.charCodeAt(0)).buffer;
  new module.Player({ tracks, layout: { graphs: [] }, host: document.body, panes: ["timeline"] });
}
"""


def test_who_takes_over_a_place_is_named_beside_who_had_it(open_page: OpenPage) -> None:
    """The input lives at the first of two positions, the square in its place at both: its name begins at the second."""
    c = ggml.Context(mem_size=1 << 20, no_alloc=True)
    square = ggml.sqr(c, c.new_tensor("F32", (8, 8), name="given")).set_name("square")
    g = ggml.Graph(c)
    g.build_forward_expand(ggml.mul_mat(c, square, square).set_name("third"))
    galloc = ggml.GraphAllocator(ggml.cpu_buffer_type())
    with record() as trace:
        galloc.reserve(g)
    page = open_page()
    page.evaluate(TIMELINE, [bundle_text(), base64.b64encode(trace.tracks().to_bytes()).decode()])
    until(page, "['given', 'square', 'third'].every((name) => name in written)")
    surface = page.locator(".vg-pane-timeline .vg-surface").bounding_box()
    assert surface is not None
    assert page.evaluate("written.square - written.given") > surface["width"] / 3


def test_a_brush_zooms_and_all_of_it_comes_back(decoded: Page) -> None:
    reset = decoded.get_by_label("All of the plan (X)")
    expect(reset).to_be_disabled()
    box = decoded.locator(".vg-pane-timeline .vg-surface").bounding_box()
    assert box is not None
    decoded.mouse.move(box["x"] + 100, box["y"] + 30)
    decoded.mouse.down()
    decoded.mouse.move(box["x"] + 200, box["y"] + 31, steps=4)
    decoded.evaluate("drawn.length = 0")
    decoded.mouse.up()
    expect(reset).to_be_enabled()
    until(decoded, "drawn.length > 0")
    ticks = [int(t) for t in decoded.evaluate("drawn") if re.fullmatch(r"\d+", t)]
    assert max(ticks) < 130 / 2
    decoded.keyboard.press("X")
    expect(reset).to_be_disabled()


def test_the_key_x_zooms_to_the_selected_tensor(decoded: Page) -> None:
    decoded.locator(".vg-peak-chip").first.click()
    name = decoded.locator(".vg-peak-chip .vg-mono").first.inner_text()
    decoded.locator(".vg-player").focus()
    decoded.evaluate("drawn.length = 0")
    decoded.keyboard.press("x")
    expect(decoded.get_by_label("All of the plan (X)")).to_be_enabled()
    until(decoded, f"drawn.includes({name!r})")


def test_sizes_on_the_axis_are_round(decoded: Page) -> None:
    """Steps of a power of two of KiB, each written in full."""
    decoded.locator(".vg-player").focus()
    for order in ("birth", "size", "address"):
        decoded.evaluate("drawn.length = 0")
        decoded.keyboard.press("y")
        expect(decoded.get_by_label("How the timeline is stacked")).to_have_value(order)
    until(decoded, "drawn.includes('offset')")
    drawn = decoded.evaluate("drawn")
    axis = [int(t.split()[0]) for t in drawn[: drawn.index("offset")] if re.fullmatch(r"\d+ KiB", t)]
    step = axis[0]
    assert axis == [step * k for k in range(1, len(axis) + 1)]
    assert step & (step - 1) == 0


MARKED = """
async ([code, bytes]) => {
  const module = await import(URL.createObjectURL(new Blob([code], { type: "text/javascript" })));
  const tracks = Uint8Array.from(atob(bytes), (c) => c.charCodeAt(0)).buffer;
  const player = new module.Player({ tracks, layout: { graphs: [] }, host: document.body, panes: ["timeline"] });
  player.pane("timeline").mark(new Map([[0, "added"], [1, "grown"]]));
}
"""


def test_marked_tensors_are_named_in_a_legend(open_page: OpenPage) -> None:
    """As a comparison of two traces marks them."""
    page = open_page()
    page.evaluate(MARKED, [bundle_text(), base64.b64encode(lesson().tracks().to_bytes()).decode()])
    expect(page.locator(".vg-mark-legend .vg-key")).to_have_text(["added (1)", "grown (1)"])


def test_why_names_the_cause(tmp_path: Path, open_page: OpenPage) -> None:
    trace = three_allocations()
    freed = steps_of(trace, TensorFreed)[0]
    page = opened(trace, tmp_path, open_page, freed)
    why = page.get_by_role("button", name="Why?")
    expect(why).to_have_attribute(
        "title", "To its cause (w): Nobody needs wx any more: all nodes that read it are planned."
    )
    why.click()
    expect(page.locator(".vg-sentence")).to_have_text("Nobody needs wx any more: all nodes that read it are planned.")
    page.keyboard.press("w")
    expect(page.locator(".vg-sentence")).to_have_text("wx+b has its place in the plan: 8 B at offset 8 of chunk 0.")


EPOCHS = """
async ([code, bytes]) => {
  const module = await import(URL.createObjectURL(new Blob([code], { type: "text/javascript" })));
  const tracks = new module.Tracks(Uint8Array.from(atob(bytes), (c) => c.charCodeAt(0)).buffer);
  return ["block", "chunk", "place"].map((name) => {
    const track = tracks.track(name);
    let wrong = 0, changes = 0;
    for (let i = 1; i < tracks.n; i++) {
      const same = track.openAt(i).sort().join() === track.openAt(i - 1).sort().join();
      changes += same ? 0 : 1;
      wrong += same === (track.epoch(i) === track.epoch(i - 1)) ? 0 : 1;
    }
    return [wrong, changes];
  });
}
"""


def test_what_is_painted_is_kept_exactly_as_long_as_it_stays_so(open_page: OpenPage) -> None:
    """A bar is painted anew when its rows change and not else: the number it goes by is a track's epoch."""
    trace = three_allocations()
    told = open_page().evaluate(EPOCHS, [bundle_text(), base64.b64encode(trace.tracks().to_bytes()).decode()])
    assert [wrong for wrong, _ in told] == [0, 0, 0]
    assert told[0][1] > 5
