"""To the peak of a plan, and from a tensor to its like in another graph: the step, the map and the words agree."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_memory_panes import three_allocations
from tests.browser.test_player_events import OpenPage, drawn_at, opened, steps_of
from vizggml import ggml
from vizggml.events import ComputeBegin, ReserveBegin, TensorAssigned, TensorNamed
from vizggml.llama.model import load_model
from vizggml.timeline.record import record
from vizggml.timeline.trace import Trace


@pytest.fixture(scope="module")
def midway() -> Trace:
    """A token decoded by a context that stood: its memory was planned before."""
    context = load_model("tiny").context(n_ctx=64, n_ubatch=16, n_threads=1, fast=False)
    context.decode([1])
    with record() as trace:
        context.decode([2])
    return trace


@pytest.fixture(scope="module")
def whole() -> Trace:
    """A context that plans its memory, and then decodes two tokens in that plan."""
    model = load_model("tiny")
    with record() as trace:
        context = model.context(n_ctx=64, n_ubatch=16, n_threads=1, fast=False)
        for token in (1, 2):
            context.decode([token])
    return trace


def here(page: Page) -> int:
    return int(page.locator(".vg-goto").input_value())


def drawn_at_the_peak(page: Page) -> list[str]:
    """Goes there from the start; what is written in the pictures then."""
    page.keyboard.press("Home")
    expect(page.locator(".vg-goto")).to_have_value("0")
    page.evaluate("drawn.length = 0")
    page.keyboard.press("P")
    expect(page.locator(".vg-goto")).not_to_have_value("0")
    return list(page.evaluate("new Promise((resolve) => requestAnimationFrame(() => resolve(drawn.slice())))"))


def test_the_peak_is_where_the_place_is_given(tmp_path: Path, open_page: OpenPage) -> None:
    """wx and wx+b, 8 bytes each, are all that ever lives at once: the map is full when wx+b has its place."""
    trace = three_allocations()
    page = opened(trace, tmp_path, open_page)
    page.locator(".vg-sentence").click()
    page.keyboard.press("P")
    assert here(page) == steps_of(trace, TensorAssigned)[1]
    expect(page.locator(".vg-sentence")).to_contain_text("wx+b has its place in the plan")
    drawn = drawn_at_the_peak(page)
    assert "16 B held of 16 B" in drawn
    assert "node 1 runs with 16 B live" in drawn


def test_a_plan_made_before_is_at_its_peak_when_the_node_runs(
    midway: Trace, tmp_path: Path, open_page: OpenPage
) -> None:
    page = opened(midway, tmp_path, open_page)
    page.locator(".vg-sentence").click()
    page.keyboard.press("P")
    expect(page.locator(".vg-kind")).to_have_text("NodeBegin")
    position = page.locator(".vg-at-peak").inner_text().rsplit(" ", 1)[1]
    drawn = drawn_at_the_peak(page)
    said = next(text for text in drawn if text.startswith(f"node {position} runs with "))
    live = said.removeprefix(f"node {position} runs with ").removesuffix(" live")
    assert any(text.startswith(f"{live} held of ") for text in drawn)


def test_from_a_word_too_the_peak_is_where_it_was_planned(whole: Trace, tmp_path: Path, open_page: OpenPage) -> None:
    """The graph of one token follows the plan that was made last, for 16: its topmost place is the one gone to."""
    events = list(whole.events)
    begin = steps_of(whole, ReserveBegin)[-1]
    given = [(e.offset + e.size, -i) for i, e in enumerate(events) if isinstance(e, TensorAssigned) and i > begin]
    page = opened(whole, tmp_path, open_page, len(whole) - 1)
    page.locator(".vg-sentence").click()
    page.keyboard.press("P")
    expect(page.locator(".vg-goto")).to_have_value(str(-max(given)[1]))
    reserved = events[begin]
    assert isinstance(reserved, ReserveBegin)
    expect(page.locator(".vg-notice")).to_contain_text(f"the plan made for graph {reserved.graph} (16 tokens)")
    for _ in range(2):
        page.keyboard.press("w")
    expect(page.locator(".vg-sentence")).to_contain_text("is looked for")
    expect(page.locator(".vg-notice")).to_be_hidden()


def expect_graph(page: Page, graph: int) -> None:
    expect(page.get_by_label("Which graph").locator("option:checked")).to_have_text(re.compile(rf"^graph {graph} "))


def test_a_name_is_searched_in_the_graph_of_the_step(whole: Trace, tmp_path: Path, open_page: OpenPage) -> None:
    """At the end in the graph that computes; from the start on in the one that is planned first."""
    planned = [e.graph for e in whole.events if isinstance(e, ReserveBegin)]
    computed = [e.graph for e in whole.events if isinstance(e, ComputeBegin)]
    named = [i for i in steps_of(whole, TensorNamed) if list(whole.events)[i].name == "attn_norm-0"]
    page = opened(whole, tmp_path, open_page, len(whole) - 1)
    page.locator(".vg-sentence").click()
    assert computed[-1] != planned[0]
    for to, wanted, graph in (("End", named[-1], computed[-1]), ("Home", named[0], planned[0])):
        page.keyboard.press(to)
        page.keyboard.press("/")
        page.keyboard.type("attn_norm-0")
        page.keyboard.press("Enter")
        page.keyboard.press("Escape")
        expect_graph(page, graph)
        page.locator(".vg-goto").fill(str(wanted + 1))
        page.locator(".vg-goto").press("Enter")
        page.keyboard.press("T")
        expect(page.locator(".vg-goto")).to_have_value(str(wanted))


def test_a_graph_chosen_by_hand_stays_until_the_next_step(whole: Trace, tmp_path: Path, open_page: OpenPage) -> None:
    planned = [e.graph for e in whole.events if isinstance(e, ReserveBegin)]
    computed = [e.graph for e in whole.events if isinstance(e, ComputeBegin)]
    page = opened(whole, tmp_path, open_page, len(whole) - 1)
    expect_graph(page, computed[-1])
    page.get_by_label("Which graph").select_option(label=f"graph {planned[0]} (130)")
    page.wait_for_timeout(100)
    expect_graph(page, planned[0])
    page.locator(".vg-sentence").click()
    page.keyboard.press("ArrowLeft")
    expect_graph(page, computed[-1])


def test_what_was_held_before_the_recording_is_labelled(midway: Trace, tmp_path: Path, open_page: OpenPage) -> None:
    drawn = drawn_at(opened(midway, tmp_path, open_page), midway.tracks().opening)
    assert "held from before the recording" in drawn
    assert not any(text.startswith("0 B held") for text in drawn)


def test_a_tensor_goes_on_in_the_next_graph(tmp_path: Path, open_page: OpenPage) -> None:
    with record() as trace:
        for _ in range(2):
            ctx = ggml.Context(mem_size=1 << 20, no_alloc=True)
            ggml.Graph(ctx).build_forward_expand(ggml.relu(ctx, ctx.new_tensor("F32", (2,), "x")).set_name("out"))
    first, second = (i for i in steps_of(trace, TensorNamed) if list(trace.events)[i].name == "out")
    page = opened(trace, tmp_path, open_page, first)
    page.locator(".vg-sentence").click()
    notice = page.locator(".vg-notice")
    for _ in range(30):
        page.keyboard.press("t")
        if "vg-shown" in (notice.get_attribute("class") or ""):
            break
    expect(notice).to_have_text("No later event names out of graph 0. Press t again to go on with the out of graph 1.")
    assert here(page) < second
    page.keyboard.press("t")
    expect(page.locator(".vg-sentence")).to_contain_text("out")
    assert first < here(page) <= second
    expect(notice).to_be_hidden()
    assert here(page) > max(i for i in steps_of(trace, TensorNamed) if i < second) - 3
    for _ in range(30):
        page.keyboard.press("t")
        if "vg-shown" in (notice.get_attribute("class") or ""):
            break
    expect(notice).to_have_text("No later event that names out of graph 1. T goes back.")


def wait_until_drawn(page: Page, beginning: str) -> None:
    """The page's policy forbids that it evaluates a string: it is asked again and again."""
    for _ in range(100):
        if any(text.startswith(beginning) for text in page.evaluate("drawn")):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"nothing that begins with {beginning!r} was drawn")


def test_weights_keep_their_mark_and_the_graph_its_zoom(midway: Trace, tmp_path: Path, open_page: OpenPage) -> None:
    """Beside the node `result_norm` stands the weight `output_norm.weight`; a pane alone leaves the graph as it was."""
    page = opened(midway, tmp_path, open_page)
    page.locator(".vg-sentence").click()
    page.evaluate("drawn.length = 0")
    for key in "zf":
        page.keyboard.press(key)
        page.wait_for_timeout(200)
    wait_until_drawn(page, "output_norm")
    weights = [text for text in page.evaluate("drawn") if text.startswith("output_norm")]
    assert any(text.endswith((".weight", ".w")) for text in weights)
    assert "output_norm" not in weights
    for _ in range(8):
        page.keyboard.press("z")
    for name in ("Show Details alone", "Show all panes"):
        page.evaluate("drawn.length = 0")
        page.get_by_label(name).first.click()
    wait_until_drawn(page, "ne ")
