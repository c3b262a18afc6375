"""The player in JupyterLab: a person steps and Python knows, Python sets the step and the person sees."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.driver import Lab

OpenPage = Callable[..., Page]

RECORD = """
import vizggml as vg
from vizggml import ggml
from vizggml.timeline.sentences import render
with vg.record() as trace:
    ctx = ggml.Context(mem_size=1 << 20, no_alloc=True)
    W, x, b = (ctx.new_tensor("F32", ne, name=n) for ne, n in (((3, 2), "W"), ((3,), "x"), ((2,), "b")))
    g = ggml.Graph(ctx)
    g.build_forward_expand(ggml.relu(ctx, ggml.add(ctx, ggml.mul_mat(ctx, W, x), b)))
    ggml.GraphAllocator(ggml.cpu_buffer_type()).alloc_graph(g)
player = vg.view(trace, step=20)
player
"""


@pytest.fixture
def viewed(lab: Lab, open_page: OpenPage) -> Iterator[tuple[Lab, Page]]:
    lab.write(
        "view.ipynb", RECORD, "print(player.step)", "player.step = 33", "print(render(trace.tracks(), player.step))"
    )
    page = open_page(quiet=True)
    lab.open(page, "view.ipynb")
    lab.run(page, 0)
    expect(page.locator(".vg-sentence")).to_be_visible(timeout=30_000)
    yield lab, page
    page.locator(".jp-Notebook").first.wait_for()


def test_stepping_is_told_to_python_and_python_steps(viewed: tuple[Lab, Page]) -> None:
    lab, page = viewed
    number = page.locator(".vg-goto")
    expect(number).to_have_value("20")
    page.locator(".vg-sentence").click()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    expect(number).to_have_value("22")
    page.wait_for_timeout(300)
    lab.run(page, 1)
    assert lab.output(page, 1) == "22"
    lab.run(page, 2)
    expect(number).to_have_value("33")
    lab.run(page, 3)
    expect(page.locator(".vg-sentence")).to_have_text(lab.output(page, 3))


def test_the_notebook_keeps_a_picture(viewed: tuple[Lab, Page]) -> None:
    """What is saved holds an SVG beside the widget, for whoever reads it without a kernel."""
    lab, page = viewed
    page.keyboard.press("Control+s")
    saved = lab.folder / "view.ipynb"
    for _ in range(50):
        if "image/svg+xml" in saved.read_text():
            break
        page.wait_for_timeout(100)
    assert "image/svg+xml" in saved.read_text()
    assert "Step 20 of" in saved.read_text()


COMPARE = """
def planned(n):
    with vg.record() as trace:
        ctx = ggml.Context(mem_size=1 << 20, no_alloc=True)
        x = ctx.new_tensor("F32", (n,), name="x")
        g = ggml.Graph(ctx)
        g.build_forward_expand(ggml.relu(ctx, x))
        ggml.GraphAllocator(ggml.cpu_buffer_type()).alloc_graph(g)
    return trace
vg.compare(planned(64), planned(256))
"""


def test_jupyterlabs_own_styles_leave_figures_in_place(lab: Lab, open_page: OpenPage) -> None:
    """JupyterLab lays lists of terms in every output as floats: each figure stands under its name all the same."""
    lab.write("figures.ipynb", RECORD.replace("step=20", "step=20, height=1500"), COMPARE)
    page = open_page(quiet=True)
    page.set_viewport_size({"width": 1500, "height": 900})
    lab.open(page, "figures.ipynb")
    lab.run(page, 0)
    figures = page.locator(".vg-pane-map .vg-usage")
    expect(figures).to_be_visible(timeout=30_000)
    for width in (1500, 1000):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_timeout(300)
        under(figures.locator(".vg-dt"), figures.locator(".vg-dd"), figures, 6)
    lab.run(page, 1)
    cards = page.locator(".vg-cmp-figures")
    expect(cards).to_be_visible(timeout=30_000)
    n = page.locator(".vg-cmp-figure").count()
    assert n >= 4
    under(cards.locator(".vg-dt"), cards.locator(".vg-cmp-values"), cards, n)
    radius = page.locator(".vg-cmp-chip").first.evaluate("(chip) => getComputedStyle(chip).borderTopLeftRadius")
    assert radius == "12px"


def under(names: Locator, values: Locator, whole: Locator, n: int) -> None:
    """Each of n values stands close below its name, at the same left, inside of the whole."""
    outer = whole.bounding_box()
    assert outer is not None
    assert names.count() == values.count() == n
    for name, value in zip(names.all(), values.all(), strict=True):
        above, below = name.bounding_box(), value.bounding_box()
        assert above is not None
        assert below is not None
        assert abs(above["x"] - below["x"]) < 1
        assert 0 <= below["y"] - above["y"] - above["height"] < 4
        assert outer["x"] <= below["x"]
        assert below["x"] + below["width"] <= outer["x"] + outer["width"] + 1
        assert below["y"] + below["height"] <= outer["y"] + outer["height"] + 1
