"""The inspector of a tensor in real Chromium: its facts read, its links followed, its values hovered."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from vizggml import ggml
from vizggml.export.html import to_html
from vizggml.timeline.record import record
from vizggml.timeline.trace import Trace
from vizggml.views.inspector import facts_of

OpenPage = Callable[..., Page]


def walked(values: bool = True) -> Trace:
    """A (6 x 4) transposed and copied, multiplied with the right half of x (8 x 4), and doubled."""
    A = np.arange(24, dtype=np.float32).reshape(4, 6) - 8
    x = np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8)
    with record(values=values) as trace:
        ctx = ggml.Context(mem_size=1 << 20, no_alloc=True)
        a, b = ctx.new_tensor("F32", (6, 4), name="A"), ctx.new_tensor("F32", (8, 4), name="x")
        copied = ggml.cont(ctx, ggml.transpose(ctx, a).set_name("At")).set_name("copied")
        half = ggml.view_2d(ctx, ggml.reshape_2d(ctx, b, 8, 4).set_name("again"), 4, 4, 32, 16).set_name("half")
        product = ggml.mul_mat(ctx, copied, half).set_name("product")
        g = ggml.Graph(ctx)
        g.build_forward_expand(ggml.add(ctx, product, product).set_name("out"))
        ggml.GraphAllocator(ggml.cpu_buffer_type()).alloc_graph(g)
        a.set(A)
        b.set(x)
        ggml.graph_compute(g, ggml.graph_plan(g, n_threads=1))
    return trace


@pytest.fixture(scope="module")
def trace() -> Trace:
    return walked()


def fact(page: Page, label: str) -> Locator:
    """The value beside a label, as a reader finds it."""
    return (
        page.locator(".vg-inspector .vg-dt", has_text=label)
        .filter(has_text=label)
        .first.locator("xpath=following-sibling::*[1]")
    )


def opened(trace: Trace, tmp_path: Path, open_page: OpenPage, at: str = "", panes: list[str] | None = None) -> Page:
    to_html(trace, tmp_path / "inspector.html", panes=panes)
    page = open_page(permissions=["clipboard-read", "clipboard-write"])
    page.goto((tmp_path / "inspector.html").as_uri() + at)
    expect(page.locator(".vg-sentence")).to_be_visible()
    return page


def id_of(trace: Trace, name: str) -> int:
    tracks = trace.tracks()
    return next(t for t in range(len(tracks["tensor.name"])) if tracks.string(int(tracks["tensor.name"][t])) == name)


def test_a_tensor_found_by_search_tells_its_facts(trace: Trace, tmp_path: Path, open_page: OpenPage) -> None:
    page = opened(trace, tmp_path, open_page)
    page.keyboard.press("/")
    page.keyboard.type("At")
    page.keyboard.press("Enter")
    expect(page.locator(".vg-inspector-name")).to_have_text("At")
    expect(page.locator(".vg-inspector-line")).to_contain_text("reads the bytes of A as 4 x 6")
    for label, said in (
        ("type", "F32 (32 bits an element)"),
        ("ne", "[4, 6, 1, 1]"),
        ("nb", "[24, 4, 96, 96]"),
        ("layout", "transposed: nb[0] > nb[1]"),
        ("view of", "A"),
        ("read by", "copied"),
    ):
        expect(fact(page, label)).to_have_text(said)
    expect(page.locator(".vg-chips")).to_contain_text("✓ permuted✓ transposed")
    expect(page.locator(".vg-part-strides canvas")).to_have_attribute(
        "aria-label", "Memory walks dimension 1 in 6 steps of 4 bytes, then dimension 0 in 4 steps of 24 bytes"
    )


def test_links_lead_to_tensors_and_events(trace: Trace, tmp_path: Path, open_page: OpenPage) -> None:
    freed = facts_of(trace.tracks(), id_of(trace, "product"), len(trace) - 1).life
    assert freed is not None
    page = opened(trace, tmp_path, open_page, f"#step={len(trace) - 1}&tensor={id_of(trace, 'half')}", ["tensor"])
    expect(fact(page, "view of")).to_have_text("again + 16 B → x")
    expect(fact(page, "flattened to")).to_have_text("x + 16 B one step, not 2")
    fact(page, "read by").get_by_role("button", name="product").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".vg-inspector-name")).to_have_text("product")
    expect(fact(page, "freed")).to_have_text(f"event {freed.freed_at} after out")
    fact(page, "freed").get_by_role("button", name="event").click()
    expect(page.locator(".vg-goto")).to_have_value(str(freed.freed_at))
    expect(page.locator(".vg-sentence")).to_contain_text("product")
    page.keyboard.press("b")
    expect(page.locator(".vg-goto")).to_have_value(str(len(trace) - 1))
    page.get_by_role("button", name="follow the step").click()
    expect(page.locator(".vg-inspector-state")).to_contain_text("of the event before")


def test_a_value_is_copied(trace: Trace, tmp_path: Path, open_page: OpenPage) -> None:
    page = opened(trace, tmp_path, open_page, f"#step={len(trace) - 1}&tensor={id_of(trace, 'x')}", ["tensor"])
    page.get_by_role("button", name="Copy the name").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == "x"
    page.get_by_role("button", name="Copy the plan offset").click()
    assert page.evaluate("navigator.clipboard.readText()") == "96"
    page.evaluate("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    page.get_by_role("button", name="Copy the name").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Copied").first).to_be_visible()


def test_values_are_read_by_hover_and_by_keys(trace: Trace, tmp_path: Path, open_page: OpenPage) -> None:
    tracks = trace.tracks()
    product = id_of(trace, "product")
    facts = facts_of(tracks, product, len(trace) - 1)
    A = np.arange(24.0).reshape(4, 6) - 8
    expected = np.linspace(-1, 1, 32).reshape(4, 8)[:, 4:] @ A
    page = opened(trace, tmp_path, open_page, f"#step={len(trace) - 1}&tensor={product}", ["tensor"])
    values = page.get_by_role("region", name="Values")
    figures = values.locator(".vg-figures .vg-dd")
    for k, number in enumerate((expected.min(), expected.max(), expected.mean(), np.sqrt((expected**2).mean()))):
        assert float(figures.nth(k).inner_text()) == pytest.approx(number, rel=1e-3)
    assert facts.values is not None
    expect(values).to_contain_text(f"taken after event {facts.values.event}")
    heat = values.get_by_role("group", name="Heat map")
    heat.hover(position={"x": 46 + 26 * 5 + 13, "y": 6 + 26 * 3 + 13})
    tip = page.get_by_role("tooltip")
    assert float(tip.locator(".vg-tip-head").inner_text()) == pytest.approx(expected[3, 5], rel=1e-3)
    expect(tip.locator(".vg-pairs")).to_have_text("i05i13")
    heat.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowUp")
    assert float(tip.locator(".vg-tip-head").inner_text()) == pytest.approx(expected[2, 5], rel=1e-3)
    histogram = values.get_by_role("group", name="Histogram")
    histogram.focus()
    page.keyboard.press("ArrowRight")
    expect(tip.locator(".vg-tip-head")).to_have_text("1 value, 4.2 %")
    expect(page.locator(".vg-goto")).to_have_value(str(len(trace) - 1))


def test_before_it_is_computed_it_has_no_values(trace: Trace, tmp_path: Path, open_page: OpenPage) -> None:
    page = opened(trace, tmp_path, open_page, f"#step=5&tensor={id_of(trace, 'product')}", ["tensor"])
    values = page.get_by_role("region", name="Values")
    expect(values).to_contain_text("Not computed yet at this step: first values after event")
    expect(values.locator("canvas").first).to_be_hidden()
    values.get_by_role("button").first.click()
    expect(values.locator("canvas").first).to_be_visible()


def test_without_values_it_says_how_to_get_them(tmp_path: Path, open_page: OpenPage) -> None:
    page = opened(walked(values=False), tmp_path, open_page, "#step=20", ["tensor"])
    expect(page.get_by_role("region", name="Values")).to_contain_text(
        "Recorded without values: vg.record(values=True) keeps them."
    )


def test_python_and_javascript_say_the_same_of_every_layout(trace: Trace, tmp_path: Path, open_page: OpenPage) -> None:
    tracks = trace.tracks()
    page = opened(trace, tmp_path, open_page, "#step=30", ["tensor"])
    for t in range(len(tracks["tensor.name"])):
        page.evaluate(f"location.hash = '#step=30&tensor={t}'")
        facts = facts_of(tracks, t, 30)
        expect(page.locator(".vg-inspector-name")).to_have_text(facts.name)
        expect(fact(page, "layout")).to_have_text(facts.layout.words)
        chips = "".join(f"{'✓' if yes else '✕'} {name}" for name, yes in facts.layout.predicates)
        expect(page.locator(".vg-chips")).to_have_text(chips)


@pytest.mark.parametrize("width", [300, 700, 1400])
def test_sections_keep_their_place_from_step_to_step(
    width: int, trace: Trace, tmp_path: Path, open_page: OpenPage
) -> None:
    page = opened(trace, tmp_path, open_page, "#step=20", ["tensor"])
    page.set_viewport_size({"width": width, "height": 800})
    tops = "[...document.querySelectorAll('.vg-part')].map((part) => part.getBoundingClientRect().top)"
    page.wait_for_timeout(100)
    before = page.evaluate(tops)
    for key in ["ArrowRight"] * 25 + ["End"]:
        page.keyboard.press(key)
        assert page.evaluate(tops) == before
    assert page.evaluate("document.querySelector('.vg-inspector').scrollWidth") <= width


def test_the_name_stays_in_sight_when_a_link_far_below_is_followed(
    trace: Trace, tmp_path: Path, open_page: OpenPage
) -> None:
    page = opened(trace, tmp_path, open_page, f"#tensor={id_of(trace, 'product')}")
    name, pane = page.locator(".vg-inspector-name"), page.locator(".vg-inspector")
    expect(name).to_have_text("product")
    link = page.locator(".vg-inspector .vg-link", has_text="half").first
    link.scroll_into_view_if_needed()
    assert pane.evaluate("e => e.scrollTop") > 60
    link.click()
    expect(name).to_have_text("half")
    top, shown = pane.bounding_box(), name.bounding_box()
    assert top
    assert shown
    assert top["y"] <= shown["y"] <= top["y"] + 12
    hit = "e => document.elementFromPoint(e.getBoundingClientRect().x + 4, e.getBoundingClientRect().y + 10) === e"
    assert name.evaluate(hit), "nothing lies over it"
    picture = page.locator(".vg-pane-graph .vg-surface")
    expect(picture).to_have_attribute("aria-label", re.compile("selected: half"))
