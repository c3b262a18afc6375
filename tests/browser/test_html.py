"""The exported page in real Chromium, from disk, with networking refused: what a person does and reads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.driver import refuse_network
from tests.views.synthetic import HOSTILE
from vizggml import ggml
from vizggml.export.html import to_html
from vizggml.timeline.record import record
from vizggml.timeline.sentences import render
from vizggml.timeline.trace import Trace
from vizggml.views.labels import visible

OpenPage = Callable[..., Page]


def lesson(names: tuple[str, ...] = ("W", "x", "b", "out")) -> Trace:
    """relu(W x + b), built, planned and placed, its tensors called as `names` say."""
    with record() as trace:
        ctx = ggml.Context(mem_size=1 << 20, no_alloc=True)
        W, x, b = (ctx.new_tensor("F32", ne, name=n) for ne, n in zip(((3, 2), (3,), (2,)), names, strict=False))
        out = ggml.relu(ctx, ggml.add(ctx, ggml.mul_mat(ctx, W, x), b)).set_name(names[3])
        g = ggml.Graph(ctx)
        g.build_forward_expand(out)
        ggml.GraphAllocator(ggml.cpu_buffer_type()).alloc_graph(g)
    return trace


@pytest.fixture
def exported(tmp_path: Path, open_page: OpenPage) -> tuple[Trace, str, Page, list[str]]:
    trace = lesson()
    to_html(trace, tmp_path / "lesson.html")
    page = open_page()
    asked = refuse_network(page)
    return trace, (tmp_path / "lesson.html").as_uri(), page, asked


def test_it_opens_from_disk_and_asks_for_nothing(exported: tuple[Trace, str, Page, list[str]]) -> None:
    trace, url, page, asked = exported
    page.goto(url)
    expect(page.locator(".vg-sentence")).to_have_text(visible(render(trace.tracks(), trace.tracks().opening)))
    assert asked == []


def test_keys_step_forward_and_back(exported: tuple[Trace, str, Page, list[str]]) -> None:
    trace, url, page, _ = exported
    page.goto(url)
    sentence = page.locator(".vg-sentence")
    expect(sentence).to_be_visible()
    end = len(trace) - 1
    keys = (
        ("End", end),
        ("Home", 0),
        ("ArrowRight", 1),
        ("ArrowRight", 2),
        ("ArrowLeft", 1),
        ("End", end),
        ("Home", 0),
    )
    for key, step in keys:
        page.keyboard.press(key)
        expect(sentence).to_have_text(visible(render(trace.tracks(), step)))
        expect(page).to_have_url(f"{url}#step={step}")


def test_the_address_names_the_step(exported: tuple[Trace, str, Page, list[str]]) -> None:
    trace, url, page, _ = exported
    page.goto(f"{url}#step=40")
    expect(page.locator(".vg-goto")).to_have_value("40")
    expect(page.locator(".vg-sentence")).to_have_text(visible(render(trace.tracks(), 40)))
    page.evaluate("location.hash = '#step=41'")
    expect(page.locator(".vg-sentence")).to_have_text(visible(render(trace.tracks(), 41)))


def test_python_and_javascript_say_the_same_of_every_event(exported: tuple[Trace, str, Page, list[str]]) -> None:
    trace, url, page, _ = exported
    page.goto(url)
    expect(page.locator(".vg-sentence")).to_be_visible()
    page.keyboard.press("Home")
    for step in range(len(trace)):
        expect(page.locator(".vg-sentence")).to_have_text(visible(render(trace.tracks(), step)))
        page.keyboard.press("ArrowRight")


def test_the_exported_step_is_the_one_that_opens(tmp_path: Path, open_page: OpenPage) -> None:
    trace = lesson()
    to_html(trace, tmp_path / "lesson.html", step=60, panes=["map", "events"])
    page = open_page()
    page.goto((tmp_path / "lesson.html").as_uri())
    expect(page.locator(".vg-goto")).to_have_value("60")
    assert page.locator(".vg-pane").count() == 2


@pytest.mark.parametrize("width", [700, 1400])
@pytest.mark.parametrize("panes", [None, ["timeline", "map", "events"], ["graph", "events"], ["events", "counts"]])
def test_the_panes_fill_the_player(width: int, panes: list[str] | None, tmp_path: Path, open_page: OpenPage) -> None:
    """No ground shows between panes but for their lines, and no pane is lost to the side."""
    to_html(lesson(), tmp_path / "lesson.html", step=60, panes=panes)
    page = open_page()
    page.set_viewport_size({"width": width, "height": 760})
    page.goto((tmp_path / "lesson.html").as_uri())
    expect(page.locator(".vg-sentence")).to_be_visible()
    covered, ground, widest = page.evaluate(
        """() => {
            const grid = document.querySelector(".vg-panes");
            const panes = [...document.querySelectorAll(".vg-pane, .vg-groups")];
            const boxes = panes.map((pane) => pane.getBoundingClientRect());
            const area = boxes.reduce((sum, box) => sum + box.width * box.height, 0);
            return [area, grid.clientWidth * grid.scrollHeight, Math.max(...boxes.map((box) => box.right))];
        }"""
    )
    assert 0.98 * ground < covered <= ground
    assert widest <= width


def test_a_list_shows_whole_rows_and_the_current_one(tmp_path: Path, open_page: OpenPage) -> None:
    trace = lesson()
    to_html(trace, tmp_path / "lesson.html", panes=["events"])
    page = open_page()
    page.set_viewport_size({"width": 900, "height": 411})
    page.goto((tmp_path / "lesson.html").as_uri())
    lists = page.locator(".vg-events")
    page.locator(".vg-sentence").wait_for()
    page.keyboard.press("End")
    expect(lists.locator(".vg-now .vg-number")).to_have_text(str(len(trace) - 1))
    page.wait_for_timeout(300)
    assert lists.evaluate("list => list.scrollTop + list.clientHeight > list.scrollHeight - 24")
    first = lists.locator(".vg-number").first
    before = int(first.inner_text())
    lists.hover()
    page.mouse.wheel(0, -30 * 24)
    expect(first).to_have_text(str(before - 30))
    assert lists.evaluate(
        """list => {
            const frame = list.getBoundingClientRect();
            const rows = [...list.querySelectorAll(".vg-row:not([hidden])")].map((row) => row.getBoundingClientRect());
            return rows.length > 3 && rows.every((row) => row.top >= frame.top && row.bottom <= frame.bottom);
        }"""
    )


def test_hostile_names_are_read_and_do_nothing(tmp_path: Path, open_page: OpenPage) -> None:
    for i in range(0, len(HOSTILE), 4):
        trace = lesson(HOSTILE[i : i + 4])
        to_html(trace, tmp_path / "hostile.html")
        page = open_page()
        asked = refuse_network(page)
        page.goto((tmp_path / "hostile.html").as_uri())
        told = [visible(render(trace.tracks(), step)) for step in range(len(trace))]
        for text in told:
            expect(page.locator(".vg-sentence")).to_have_text(text)
            page.keyboard.press("ArrowRight")
        assert all(any(visible(name) in text for text in told) for name in HOSTILE[i : i + 4])
        assert page.evaluate("window.stranger") is None
        assert page.locator("#player img, #player script, #player svg[onload]").count() == 0
        assert asked == []


def test_the_pages_policy_lets_no_other_script_run(tmp_path: Path, browser: object, open_page: OpenPage) -> None:
    """A script written into the page afterwards, as a hole in the escaping would, is refused."""
    to_html(lesson(), tmp_path / "lesson.html")
    holed = (tmp_path / "lesson.html").read_text().replace(
        "</body>", '<script>window.stranger = 1</script><img src="x" onerror="window.stranger = 1"></body>'
    )  # fmt: skip
    (tmp_path / "holed.html").write_text(holed)
    context = browser.new_context()  # type: ignore[attr-defined]
    page = context.new_page()
    page.goto((tmp_path / "holed.html").as_uri())
    expect(page.locator(".vg-sentence")).to_be_visible()
    assert page.evaluate("window.stranger") is None
    context.close()


def test_without_javascript_there_is_a_picture(tmp_path: Path, open_page: OpenPage) -> None:
    to_html(lesson(), tmp_path / "lesson.html")
    page = open_page(java_script_enabled=False)
    page.goto((tmp_path / "lesson.html").as_uri())
    picture = page.locator("noscript img, #still img")
    expect(picture).to_be_visible()
    box = picture.bounding_box()
    assert box is not None
    assert box["width"] > 600


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_follows_the_readers_theme(scheme: str, tmp_path: Path, open_page: OpenPage) -> None:
    to_html(lesson(), tmp_path / "lesson.html")
    page = open_page(color_scheme=scheme)
    page.goto((tmp_path / "lesson.html").as_uri())
    expect(page.locator(".vg-player")).to_have_attribute("data-vg-theme", scheme)
