"""The graph pane as a person uses it: blocks opened and folded, search, filters, the small map, zoom and touch."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.test_player_events import LISTEN, opened, steps_of
from vizggml import ggml
from vizggml.events import TensorCopied
from vizggml.export.html import to_html
from vizggml.llama.model import load_model
from vizggml.timeline.record import record
from vizggml.timeline.trace import Trace

OpenPage = Callable[..., Page]
N_LAYERS = 8


@lru_cache(maxsize=1)
def layers() -> Trace:
    """Eight layers; the third reads a weight of 32 KiB, not 16, and views half of it; the last has a node more."""
    with record() as trace:
        c = ggml.Context(mem_size=4 << 20, no_alloc=True)
        cur = ggml.scale(c, c.new_tensor("F32", (64, 4), name="inp"), 1.0).set_name("embd")
        for il in range(N_LAYERS):
            w = c.new_tensor("F32", (64, 128 if il == 2 else 64), name=f"blk.{il}.w")
            normed = ggml.rms_norm(c, cur, 1e-5).set_name(f"norm-{il}")
            product = ggml.mul_mat(c, w, normed).set_name(f"product-{il}")
            if il == 2:
                product = ggml.view(c, product, (64, 4), (512,), 0).set_name("half-2")
            act = ggml.silu(c, product).set_name(f"act-{il}")
            if il == N_LAYERS - 1:
                act = ggml.scale(c, act, 0.5).set_name("last_only")
            cur = ggml.add(c, act, cur).set_name(f"l_out-{il}")
        g = ggml.Graph(c)
        g.build_forward_expand(ggml.rms_norm(c, cur, 1e-5).set_name("result_norm"))
        ggml.GraphAllocator(ggml.cpu_buffer_type()).alloc_graph(g)
    return trace


@pytest.fixture
def page(tmp_path: Path, open_page: OpenPage) -> Page:
    to_html(layers(), tmp_path / "layers.html", panes=["graph", "events"])
    page = open_page(has_touch=True)
    page.add_init_script(LISTEN)
    page.goto((tmp_path / "layers.html").as_uri())
    expect(page.locator(".vg-sentence")).to_be_visible()
    page.keyboard.press("End")
    return page


def settled(page: Page) -> None:
    """Wait until what was asked for is painted."""
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def says(page: Page, *words: str, after: tuple[str, ...] = ("Z", "z")) -> list[str]:
    """Press keys, and wait until all of `words` are written into the canvas; all that was written."""
    settled(page)
    page.evaluate("drawn.length = 0")
    for key in after:
        page.keyboard.press(key)
    page.wait_for_function("(words) => words.every((word) => drawn.includes(word))", arg=list(words), timeout=5000)
    return list(page.evaluate("drawn.slice()"))


def search(page: Page, query: str, *keys: str) -> Locator:
    """Type into the search; the answer says how many were found, or which of how many is shown."""
    page.locator(".vg-sentence").click()
    page.keyboard.press("/")
    page.keyboard.press("Control+A")
    page.keyboard.type(query)
    for key in keys:
        page.keyboard.press(key)
    return page.locator(".vg-found")


def surface(page: Page) -> Locator:
    return page.locator(".vg-pane-graph .vg-surface")


def test_layers_are_folded_and_the_unlike_ones_say_why(page: Page) -> None:
    said = says(page, "input", "block × 2", "block 2", "block × 4", "block 7", "output", "unlike block 6: +1 node")
    assert any(text.startswith("unlike block") and "+1" in text and "changed" in text for text in said)
    assert "act-3" not in said


def test_a_block_opens_where_it_is_and_folds_back(page: Page) -> None:
    search(page, "act-4", "Enter", "Escape")
    page.keyboard.press("f")
    opened = says(page, "act-4", "block 4", "block 3", "block × 2")
    assert not {"act-3", "act-5"} & set(opened)
    page.get_by_label("Open all blocks").click()
    says(page, *(f"block {il}" for il in range(N_LAYERS)))
    page.get_by_label("Fold all blocks").click()
    says(page, "block × 4")


def test_the_tip_of_an_unlike_block_names_what_is_added(page: Page) -> None:
    search(page, "last_only", "Enter", "Escape")
    box = surface(page).bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(page.locator(".vg-tip")).to_contain_text("block 6 has no such node")


def test_the_current_block_opens_with_a_key_and_folding_gives_the_view_back(page: Page) -> None:
    search(page, "product-5", "Enter", "Escape", "Home")
    page.keyboard.press("t")
    expect(surface(page)).to_have_attribute("aria-label", re.compile(r"current: .*block 5"))
    page.keyboard.press("o")
    before = surface(page).screenshot()
    says(page, "product-5", after=("o",))
    page.keyboard.press("o")
    settled(page)
    assert surface(page).screenshot() == before


@pytest.mark.parametrize(
    ("query", "n"),
    [
        ("layer:3", 5),
        ("blk 2", 6),
        ("block 7 op:scale", 1),
        (">20KiB", 1),
        (">=16KiB name:blk", N_LAYERS),
        ("type:f32 silu", N_LAYERS),
        ("no such thing", 0),
    ],
)
def test_search_finds_by_layer_size_operation_and_type(page: Page, query: str, n: int) -> None:
    expect(search(page, query)).to_have_text(f"{n} found")


def test_enter_goes_through_the_matches_and_shift_enter_back(page: Page) -> None:
    found = search(page, "op:silu", "Enter")
    expect(found).to_have_text("1 of 8")
    expect(surface(page)).to_have_attribute("aria-label", re.compile("selected: act-0"))
    page.keyboard.press("Enter")
    expect(surface(page)).to_have_attribute("aria-label", re.compile("selected: act-1"))
    page.keyboard.press("Shift+Enter")
    page.keyboard.press("Shift+Enter")
    expect(found).to_have_text("8 of 8")
    expect(surface(page)).to_have_attribute("aria-label", re.compile("selected: act-7, .*block 7"))


def test_a_match_of_the_list_is_taken_by_a_click(page: Page) -> None:
    search(page, "l_out")
    page.locator(".vg-results li").nth(3).click()
    expect(surface(page)).to_have_attribute("aria-label", re.compile("selected: l_out-3"))


def test_only_ancestors_only_descendants_only_what_is_alive(page: Page) -> None:
    """Of act-1: inp, embd, the five tensors of layer 0, and norm, w, product and itself; see `layers`."""
    search(page, "act-1", "Enter", "Escape")
    page.keyboard.press("a")
    expect(page.get_by_label("Which nodes stay bright")).to_have_value("ancestors")
    expect(surface(page)).to_have_attribute("aria-label", re.compile("bright: ancestors, 11 tensors"))
    page.keyboard.press("d")
    after = 1 + 1 + 5 + 4 * 4 + 5 + 1
    expect(surface(page)).to_have_attribute("aria-label", re.compile(f"bright: descendants, {after} tensors"))
    page.keyboard.press("d")
    expect(page.get_by_label("Which nodes stay bright")).to_have_value("all")
    page.get_by_label("Which nodes stay bright").select_option("live")
    expect(surface(page)).to_have_attribute("aria-label", re.compile(r"bright: live, [1-9]\d* tensors"))


def test_nearer_a_box_says_more(page: Page) -> None:
    """Names alone when small, then operation and shape, then ne, nb and the offset; no letter under 8 pixels."""
    search(page, "act-3", "Enter", "Escape")
    says(page, "act-3", "SILU  64 x 4")
    near = says(page, "SILU  F32", "ne 64, 4", "nb 4, 256", after=("z",) * 5)
    assert any(re.fullmatch(r"offset \d+, buffer \d+", text) for text in near)
    page.evaluate(SMALLEST)
    for _ in range(14):
        page.keyboard.press("Z")
        settled(page)
    assert page.evaluate("smallest") > 8


SMALLEST = """() => {
    globalThis.smallest = 99;
    const { fillText } = CanvasRenderingContext2D.prototype;
    CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
      const canvas = document.querySelector(".vg-pane-graph canvas");
      const px = parseFloat(/([\\d.]+)px/.exec(this.font)[1]) * this.getTransform().a / devicePixelRatio;
      globalThis.smallest = Math.min(globalThis.smallest, px);
      return fillText.call(this, text, ...rest);
    };
}"""


def test_the_small_map_moves_the_view(page: Page) -> None:
    search(page, "norm-0", "Enter", "Escape")
    for _ in range(3):
        page.keyboard.press("z")
    box = surface(page).bounding_box()
    assert box is not None
    settled(page)
    before = surface(page).screenshot()
    page.mouse.move(box["x"] + box["width"] - 14, box["y"] + box["height"] - 14)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 40, box["y"] + box["height"] - 14)
    page.mouse.up()
    settled(page)
    assert surface(page).screenshot() != before
    expect(surface(page)).to_have_attribute("aria-label", re.compile("selected: norm-0"))


def test_keys_move_the_graph_and_do_not_step(page: Page) -> None:
    step = page.locator(".vg-goto").input_value()
    before = surface(page).screenshot()
    page.keyboard.press("Alt+ArrowDown")
    settled(page)
    assert surface(page).screenshot() != before
    assert page.locator(".vg-goto").input_value() == step
    page.keyboard.press("Alt+ArrowUp")
    settled(page)
    assert surface(page).screenshot() == before


def test_two_fingers_zoom(page: Page) -> None:
    search(page, "act-3", "Enter", "Escape")
    box = surface(page).bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    client = page.context.new_cdp_session(page)

    def fingers(kind: str, apart: float) -> None:
        points = [] if kind == "touchEnd" else [{"x": x - apart, "y": y, "id": 0}, {"x": x + apart, "y": y, "id": 1}]
        client.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    page.evaluate("drawn.length = 0")
    fingers("touchStart", 30)
    for apart in (45, 60, 75, 90):
        fingers("touchMove", apart)
    fingers("touchEnd", 0)
    page.wait_for_function("() => drawn.includes('ne 64, 4')", timeout=5000)


def test_a_copy_into_a_folded_block_is_told(tmp_path: Path, open_page: OpenPage) -> None:
    """The last of four layers runs on a device: what the third gives is copied for it, and it is folded."""
    model = load_model("tiny")
    context = model.context(n_ctx=64, n_gpu_layers=2, device_memory=1 << 24)
    with record() as trace:
        context.decode([1, 5, 6])
    model.close()
    page = opened(trace, tmp_path, open_page, steps_of(trace, TensorCopied)[0])
    page.keyboard.press("f")
    settled(page)
    told = page.evaluate(OVER)
    assert any("copies" in text and "to DEV0" in text and "block" in text for text in told)


OVER = """() => {
    const canvas = document.querySelector(".vg-pane-graph canvas");
    const { left, top, width, height } = canvas.getBoundingClientRect();
    const told = new Set();
    for (let x = 8; x < width; x += 16) {
      for (let y = 8; y < height; y += 16) {
        canvas.dispatchEvent(new PointerEvent("pointermove", { clientX: left + x, clientY: top + y, bubbles: true }));
        const tip = document.querySelector(".vg-tip");
        if (!tip.hidden) told.add(tip.textContent);
      }
    }
    return [...told];
}"""
"""What the tips say when the pointer goes over the whole graph."""
