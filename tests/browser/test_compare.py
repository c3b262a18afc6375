"""Two traces side by side in real Chromium: what a person reads first, steps, clicks and unlinks."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.driver import Lab, refuse_network
from tests.timeline.made import trace_of
from tests.timeline.test_diff import lesson, planned
from tests.views.synthetic import HOSTILE
from vizggml.export.compare_html import compare_to_html
from vizggml.timeline.diff import Diff, diff
from vizggml.timeline.sentences import render
from vizggml.views.labels import visible

OpenPage = Callable[..., Page]


@pytest.fixture(scope="module")
def found() -> Diff:
    """relu(W x + b), and with W x doubled before: one node more in B."""
    return diff(planned(lesson()), planned(lesson(scaled=True)), labels=("plain", "doubled"))


@pytest.fixture
def opened(found: Diff, tmp_path: Path, open_page: OpenPage) -> Page:
    compare_to_html(found, tmp_path / "compare.html", step=0)
    page = open_page()
    asked = refuse_network(page)
    page.goto((tmp_path / "compare.html").as_uri())
    expect(sentence(page, "right")).to_be_visible()
    assert asked == []
    return page


def side(page: Page, name: str) -> Locator:
    return page.locator(f".vg-cmp-{name}")


def sentence(page: Page, name: str) -> Locator:
    return side(page, name).locator(".vg-sentence")


def number(page: Page, name: str) -> Locator:
    return side(page, name).locator(".vg-goto")


def test_the_page_says_first_what_differs(opened: Page) -> None:
    expect(opened.locator("h1")).to_have_text("1 node more, the same peak, 128 B")
    first = opened.locator(".vg-cmp-figure").first
    expect(first).to_have_text(re.compile("nodes3→4"))
    expect(opened.locator(".vg-cmp-said")).to_contain_text("gains 1 SCALE")
    expect(opened).to_have_title("1 node more, the same peak, 128 B")
    sizes = opened.evaluate(
        "[...document.querySelectorAll('.vg-compare *')].map("
        "(e) => [e.className, parseFloat(getComputedStyle(e).fontSize)])"
    )
    assert max(sizes, key=lambda item: item[1])[0] == "vg-cmp-claim"


def test_a_step_on_the_left_is_read_on_the_right(opened: Page, found: Diff) -> None:
    sentence(opened, "left").click()
    for step in range(1, 101):
        opened.keyboard.press("ArrowRight")
        if step % 10 == 0:
            expect(number(opened, "left")).to_have_value(str(step))
            expect(number(opened, "right")).to_have_value(str(found.to_b(step)))
            expect(sentence(opened, "right")).to_have_text(visible(render(found.b, found.to_b(step))))
    expect(opened).to_have_url(re.compile("#step=100$"))


def test_the_other_side_waits_while_a_step_has_no_counterpart(opened: Page, found: Diff) -> None:
    answered = set(found.events.b.tolist())
    alone = next(j for j in range(found.b.n_events) if j > 60 and j not in answered)
    number(opened, "right").fill(str(alone))
    number(opened, "right").press("Enter")
    expect(number(opened, "left")).to_have_value(str(found.to_a(alone)))
    expect(side(opened, "left").locator(".vg-cmp-mark")).to_have_text("waits")
    expect(opened.locator(".vg-cmp-status")).to_contain_text("has no counterpart: plain waits")


def test_keys_reach_the_side_last_used_from_anywhere_in_the_page(opened: Page, found: Diff) -> None:
    opened.locator("h1").click()
    opened.keyboard.press("ArrowRight")
    expect(number(opened, "left")).to_have_value("1")
    sentence(opened, "right").click()
    opened.locator("h1").click()
    opened.keyboard.press("End")
    expect(number(opened, "right")).to_have_value(str(found.b.n_events - 1))
    expect(number(opened, "left")).to_have_value(str(found.a.n_events - 1))


def test_a_row_selects_the_tensor_and_goes_where_it_gets_its_place(opened: Page, found: Diff) -> None:
    row = opened.locator(".vg-cmp-row:not([hidden])")
    expect(row).to_have_count(1)
    expect(row).to_contain_text("twice")
    row.click()
    expect(sentence(opened, "right")).to_contain_text("twice")
    expect(row).to_have_attribute("aria-selected", "true")
    expect(side(opened, "left").locator(".vg-cmp-mark")).to_have_text("waits")


def test_rows_are_filtered_by_kind_and_by_name(tmp_path: Path, open_page: OpenPage) -> None:
    compare_to_html(diff(planned(lesson()), planned(lesson(n=10))), tmp_path / "grown.html", step=0)
    page = open_page()
    page.goto((tmp_path / "grown.html").as_uri())
    rows = page.locator(".vg-cmp-row:not([hidden])")
    expect(rows).to_have_count(6)
    page.get_by_role("button", name="grown 5").click()
    expect(rows).to_have_count(5)
    page.get_by_label("Filter the differences by name or op").fill("wx")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("8 B → 40 B")
    rows.click()
    for name in ("left", "right"):
        expect(sentence(page, name)).to_contain_text("wx")
    page.get_by_label("Filter the differences by name or op").fill("nothing such")
    expect(page.get_by_text("Nothing differs here.")).to_be_visible()


def test_what_stands_in_the_table_is_marked_in_graph_and_timeline(tmp_path: Path, open_page: OpenPage) -> None:
    """The table's rows, as outlines with a legend: of both sides where both have the tensor."""
    compare_to_html(diff(planned(lesson()), planned(lesson(n=10, scaled=True))), tmp_path / "marked.html", step=0)
    page = open_page()
    page.goto((tmp_path / "marked.html").as_uri())

    def legend(name: str, pane: str) -> Locator:
        return side(page, name).locator(f".vg-pane-{pane} .vg-mark-legend .vg-key")

    page.get_by_role("button", name="added 1").click()
    expect(legend("right", "graph")).to_have_text(["added (1)"])
    expect(legend("right", "timeline")).to_have_text(["added (1)"])
    expect(legend("left", "graph")).to_have_count(0)
    page.get_by_role("button", name="grown 5").click()
    for name in ("left", "right"):
        expect(legend(name, "graph")).to_have_text(["grown (5)"])
        expect(legend(name, "timeline")).to_have_text(["grown (5)"])
    page.get_by_label("Filter the differences by name or op").fill("wx")
    expect(legend("left", "graph")).to_have_text(["grown (1)"])
    graph = side(page, "left").locator(".vg-pane-graph .vg-surface")
    expect(graph).to_have_attribute("aria-label", re.compile("marked: 1 grown"))


TICKS = """() => {
  globalThis.ticks = new Map();
  const paint = CanvasRenderingContext2D.prototype.fillText;
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
    const side = this.canvas.closest(".vg-pane-map") && this.canvas.closest(".vg-cmp-side");
    if (side && this.textAlign === "center") {
      const name = side.className.includes("left") ? "left" : "right";
      if (!ticks.has(name) || text === "0") ticks.set(name, {});
      ticks.get(name)[text] = Math.round(x);
    }
    return paint.call(this, text, x, y);
  };
}"""


def test_linked_maps_are_of_one_scale(tmp_path: Path, open_page: OpenPage) -> None:
    """The same bytes stand at the same place in both, though one side's buffer is far larger."""
    compare_to_html(diff(planned(lesson(n=20)), planned(lesson(n=100))), tmp_path / "scale.html", panes=["map"])
    page = open_page()
    page.add_init_script(f"({TICKS})()")
    page.goto((tmp_path / "scale.html").as_uri())
    expect(sentence(page, "left")).to_be_visible()
    page.locator("h1").click()
    page.keyboard.press("End")
    page.wait_for_timeout(200)
    left, right = (page.evaluate(f"ticks.get('{name}')") for name in ("left", "right"))
    assert len(left) > 2
    assert left == right
    page.keyboard.press("Shift+L")
    page.wait_for_timeout(200)
    left, right = (page.evaluate(f"ticks.get('{name}')") for name in ("left", "right"))
    assert left != right


def test_a_selection_on_one_side_selects_its_counterpart(found: Diff, tmp_path: Path, open_page: OpenPage) -> None:
    compare_to_html(found, tmp_path / "compare.html", step=0, panes=["graph", "tensor"])
    page = open_page()
    page.goto((tmp_path / "compare.html").as_uri())
    page.wait_for_selector(".vg-cmp-right .vg-sentence")
    last = found.a.n_events - 1
    number(page, "left").fill(str(last))
    number(page, "left").press("Enter")
    search = side(page, "left").get_by_placeholder("Search")
    search.fill("sum")
    search.press("Enter")
    for name in ("left", "right"):
        expect(side(page, name).locator(".vg-pane-tensor")).to_contain_text("sum")
    names = [found.a.string(k) for k in found.a["tensor.name"].tolist()]
    expect(page).to_have_url(re.compile(f"#step={last}&tensor={names.index('sum')}$"))


def test_the_next_event_without_a_counterpart_is_one_key_away(opened: Page, found: Diff) -> None:
    alone = sorted(set(range(found.b.n_events)) - set(found.events.b.tolist()))
    starts = [j for j in alone if j - 1 not in alone]
    said = f"{len(alone)} of {found.b.n_events} events without a counterpart"
    expect(side(opened, "right").locator(".vg-cmp-label")).to_contain_text(said)
    sentence(opened, "right").click()
    for start in starts[:3]:
        opened.keyboard.press("]")
        expect(number(opened, "right")).to_have_value(str(start))
    opened.get_by_role("button", name="Previous event without a counterpart").click()
    expect(number(opened, "right")).to_have_value(str(starts[1]))


def test_unlinked_each_side_steps_alone(opened: Page) -> None:
    opened.get_by_role("button", name="Linked").click()
    expect(opened.get_by_role("button", name="Unlinked")).to_have_attribute("aria-pressed", "false")
    sentence(opened, "left").click()
    opened.keyboard.press("End")
    expect(number(opened, "right")).to_have_value("0")
    opened.keyboard.press("Shift+L")
    expect(number(opened, "right")).not_to_have_value("0")


@pytest.mark.parametrize(("width", "beside"), [(700, False), (1280, True)])
def test_the_sides_stand_beside_each_other_where_there_is_room(opened: Page, width: int, beside: bool) -> None:
    opened.set_viewport_size({"width": width, "height": 900})
    expect(opened.locator(".vg-cmp-narrow")).to_have_count(0 if beside else 1)
    left, right = (side(opened, name).bounding_box() for name in ("left", "right"))
    assert left is not None
    assert right is not None
    assert (left["y"] == right["y"]) is beside
    widest = opened.locator(".vg-compare").evaluate("root => root.scrollWidth")
    assert widest <= width


def test_an_address_names_the_step_of_both(found: Diff, tmp_path: Path, open_page: OpenPage) -> None:
    compare_to_html(found, tmp_path / "compare.html")
    page = open_page()
    page.goto((tmp_path / "compare.html").as_uri() + "#step=40&right=7")
    expect(number(page, "left")).to_have_value("40")
    expect(number(page, "right")).to_have_value("7")
    page.evaluate("location.hash = '#step=41'")
    expect(number(page, "left")).to_have_value("41")


def test_a_trace_without_events_is_told_and_breaks_nothing(tmp_path: Path, open_page: OpenPage) -> None:
    compare_to_html(diff(trace_of(), planned(lesson())), tmp_path / "empty.html")
    page = open_page()
    page.goto((tmp_path / "empty.html").as_uri())
    expect(side(page, "left").get_by_role("alert")).to_contain_text("no events")
    sentence(page, "right").click()
    page.keyboard.press("End")
    expect(page.locator(".vg-cmp-status")).to_contain_text("has no counterpart")


def test_hostile_names_and_labels_do_nothing(tmp_path: Path, open_page: OpenPage) -> None:
    def named(n: int) -> object:
        def build(ctx: object) -> object:
            out = lesson(n)(ctx)  # type: ignore[arg-type]
            return out.set_name(HOSTILE[n % len(HOSTILE)])

        return build

    found = diff(planned(named(2)), planned(named(3)), labels=HOSTILE[:2])  # type: ignore[arg-type]
    compare_to_html(found, tmp_path / "hostile.html")
    page = open_page()
    asked = refuse_network(page)
    page.goto((tmp_path / "hostile.html").as_uri())
    expect(sentence(page, "right")).to_be_visible()
    assert page.evaluate("[window.hacked, document.images.length, document.scripts.length]") == [None, 0, 6]
    assert asked == []


def test_a_comparison_in_jupyterlab(lab: Lab, open_page: OpenPage) -> None:
    lab.write(
        "compare.ipynb",
        "import vizggml as vg\n"
        "from tests.timeline.test_diff import lesson, planned\n"
        "shown = vg.compare(planned(lesson()), planned(lesson(scaled=True)), step=0)\n"
        "shown",
        "print(shown.step, shown.step_b == shown.diff.to_b(shown.step))",
        "shown.step = 50",
    )
    page = open_page(quiet=True)
    lab.open(page, "compare.ipynb")
    lab.run(page, 0)
    expect(sentence(page, "right")).to_be_visible(timeout=30_000)
    sentence(page, "left").click()
    page.keyboard.press("Shift+ArrowRight")
    expect(number(page, "left")).to_have_value("10")
    page.wait_for_timeout(300)
    lab.run(page, 1)
    assert lab.output(page, 1) == "10 True"
    lab.run(page, 2)
    expect(number(page, "left")).to_have_value("50")
