"""The player as narrow as a notebook and narrower: what is seen without scrolling; nothing lies over another."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_inspector import walked
from vizggml.export.html import to_html
from vizggml.timeline.trace import Trace

OpenPage = Callable[..., Page]

NOTEBOOK = {"width": 700, "height": 760}
GRAPH_LEAST = 230
BOXES = """() => Object.fromEntries([...document.querySelectorAll(".vg-pane, .vg-sentence, .vg-groups")]
    .map((e) => [e.className.split(" ").pop(), e.getBoundingClientRect()])
    .filter(([, box]) => box.height)
    .map(([name, box]) => [name.replace("vg-pane-", ""), [box.top, box.bottom]]))"""
OVERLAPS = """() => [...document.querySelectorAll(".vg-pane-head")].flatMap((head) => {
    const parts = [...head.querySelectorAll(".vg-title, .vg-tools > :not(.vg-group):not(.vg-tools), .vg-group > *")];
    const named = parts.map((e) => [e.textContent || e.title, e.getBoundingClientRect()]);
    const boxes = named.filter(([, box]) => box.width);
    return boxes.flatMap(([name, a], i) => boxes.slice(i + 1)
        .filter(([, b]) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1)
        .map(([other]) => `${name} over ${other}`));
})"""


@pytest.fixture(scope="module")
def trace() -> Trace:
    return walked(values=False)


@pytest.fixture
def page(trace: Trace, tmp_path: Path, open_page: OpenPage) -> Page:
    to_html(trace, tmp_path / "lesson.html", step=len(trace) // 2)
    page = open_page(reduced_motion="reduce")
    page.set_viewport_size(NOTEBOOK)
    page.goto((tmp_path / "lesson.html").as_uri())
    expect(page.locator(".vg-sentence")).to_be_visible()
    return page


@pytest.mark.parametrize(
    ("key", "shown"),
    [("1", {"map", "timeline"}), ("2", {"events"}), ("3", {"tables"})],
    ids=["memory", "events", "details"],
)
def test_a_step_is_seen_without_scrolling(key: str, shown: set[str], page: Page) -> None:
    page.keyboard.press(key)
    page.wait_for_timeout(100)
    boxes = page.evaluate(BOXES)
    assert boxes.keys() - {"vg-sentence", "vg-groups", "vg-tabs", "graph", "tokens"} == shown
    assert max(bottom for _, bottom in boxes.values()) <= NOTEBOOK["height"]
    assert boxes["graph"][1] - boxes["graph"][0] >= GRAPH_LEAST
    assert page.locator(".vg-panes").evaluate("e => e.scrollHeight - e.clientHeight") <= 0
    for _ in range(12):
        page.keyboard.press("ArrowRight")
        assert page.evaluate(BOXES) == boxes


def test_the_graph_keeps_its_place_whatever_stands_under_it(page: Page) -> None:
    graphs = []
    for key in "123":
        page.keyboard.press(key)
        graphs.append(page.evaluate(BOXES)["graph"])
    assert graphs[0] == graphs[1] == graphs[2]


def test_the_group_is_chosen_by_tabs(page: Page) -> None:
    tabs = page.get_by_role("tablist", name="What stands under the graph")
    expect(tabs.get_by_role("tab", selected=True)).to_have_text("Memory")
    tabs.get_by_role("tab", name="Events").click()
    expect(page.locator(".vg-events")).to_be_visible()
    expect(page.locator(".vg-events .vg-now")).to_be_in_viewport()
    expect(page.locator(".vg-pane-map")).to_be_hidden()
    page.keyboard.press("ArrowRight")
    expect(tabs.get_by_role("tab", name="Details")).to_be_focused()
    expect(page.locator(".vg-pane-tables")).to_be_visible()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".vg-pane-timeline")).to_be_visible()


def test_a_key_for_the_timeline_brings_it(page: Page) -> None:
    page.keyboard.press("2")
    expect(page.locator(".vg-pane-timeline")).to_be_hidden()
    page.keyboard.press("P")
    expect(page.locator(".vg-pane-timeline")).to_be_visible()


def test_alone_a_pane_says_all_it_has_to_say(page: Page) -> None:
    expect(page.locator(".vg-usage")).to_be_hidden()
    page.get_by_role("button", name="Show Memory map alone").click()
    expect(page.locator(".vg-usage")).to_be_visible()
    expect(page.locator(".vg-pane-graph")).to_be_hidden()
    page.keyboard.press("Escape")
    expect(page.locator(".vg-usage")).to_be_hidden()
    expect(page.locator(".vg-pane-graph")).to_be_visible()
    expect(page.locator(".vg-pane-events")).to_be_hidden()


def test_all_panes_stand_where_there_is_room(page: Page) -> None:
    page.keyboard.press("2")
    for width, height in ((1280, 760), (700, 1400)):
        page.set_viewport_size({"width": width, "height": height})
        for name in ("graph", "map", "timeline", "events", "tables"):
            expect(page.locator(f".vg-pane-{name}")).to_be_visible()
        expect(page.locator(".vg-groups")).to_be_hidden()
    page.keyboard.press("1")
    expect(page.get_by_role("status")).to_have_text("All panes are shown.")


def test_panes_that_were_asked_for_all_stand(trace: Trace, tmp_path: Path, open_page: OpenPage) -> None:
    to_html(trace, tmp_path / "lesson.html", panes=["graph", "map", "events", "tables"])
    page = open_page()
    page.set_viewport_size(NOTEBOOK)
    page.goto((tmp_path / "lesson.html").as_uri())
    for name in ("graph", "map", "events", "tables"):
        expect(page.locator(f".vg-pane-{name}")).to_be_visible()
    expect(page.locator(".vg-groups")).to_be_hidden()


@pytest.mark.parametrize("width", [300, 340, 420, 700])
def test_no_head_lies_over_its_tools(width: int, page: Page) -> None:
    page.set_viewport_size({"width": width, "height": 760})
    for key in "123":
        page.keyboard.press(key)
        page.wait_for_timeout(100)
        assert page.evaluate(OVERLAPS) == []
        parts = page.locator(".vg-pane-head > *, .vg-tools > *")
        assert parts.evaluate_all("all => Math.max(...all.map((e) => e.getBoundingClientRect().right))") <= width


def test_the_map_has_room_for_a_bar_and_its_scale(trace: Trace, tmp_path: Path, open_page: OpenPage) -> None:
    to_html(trace, tmp_path / "map.html", panes=["map", "free", "events"], step=len(trace) // 2)
    page = open_page(reduced_motion="reduce")
    for width in (640, 700):
        page.set_viewport_size({"width": width, "height": 900})
        page.goto((tmp_path / "map.html").as_uri())
        expect(page.locator(".vg-sentence")).to_be_visible()
        lanes = page.locator(".vg-pane-map .vg-scroll")
        assert lanes.evaluate("e => e.scrollHeight - e.clientHeight") <= 0


@pytest.mark.parametrize("width", [360, 520, 700, 800, 990])
def test_where_it_happens_is_told_by_whole_names(width: int, page: Page) -> None:
    """Function names and the legend of the graph are never cut; under the sentence there is air."""
    page.set_viewport_size({"width": width, "height": 760})
    page.wait_for_timeout(100)
    names = page.locator(".vg-place > .vg-mono:not(.vg-path)")
    assert names.count() == 2
    assert names.evaluate_all("all => all.every((e) => e.scrollWidth <= e.clientWidth || !e.clientWidth)")
    for parts in (names, page.locator(".vg-pane-graph .vg-legend > .vg-key")):
        assert parts.evaluate_all("all => Math.max(...all.map((e) => e.getBoundingClientRect().right))") <= width - 12
    under = page.locator(".vg-where").evaluate("e => e.getBoundingClientRect().top")
    assert under - page.locator(".vg-sentence").evaluate("e => e.getBoundingClientRect().bottom") >= 3


def test_the_life_stands_before_the_strides_where_memory_is_planned(page: Page) -> None:
    page.keyboard.press("3")
    tops = "all => all.map((e) => [e.getAttribute('aria-label'), e.getBoundingClientRect().top])"
    for width in (640, 700):
        page.set_viewport_size({"width": width, "height": 760})
        page.wait_for_timeout(100)
        parts = dict(page.locator(".vg-inspector .vg-part").evaluate_all(tops))
        assert parts["Shape and place"] < parts["Life"] < parts["View chain"]
    page.set_viewport_size({"width": 560, "height": 760})
    page.wait_for_timeout(100)
    parts = dict(page.locator(".vg-inspector .vg-part").evaluate_all(tops))
    assert parts["Life"] < parts["Strides"] < parts["View chain"]
