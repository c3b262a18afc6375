"""A notebook saved with a player, opened again without the kernel that made it: the player steps."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.browser.driver import Lab
from tests.browser.test_jupyter import RECORD

OpenPage = Callable[..., Page]


def save(lab: Lab, page: Page, name: str) -> str:
    page.keyboard.press("Control+s")
    for _ in range(100):
        text = (lab.folder / name).read_text()
        if "vg-saved" in text:
            return text
        page.wait_for_timeout(100)
    raise AssertionError("the notebook was not saved with a player in it")


def test_the_saved_notebook_steps_without_its_kernel(lab: Lab, open_page: OpenPage) -> None:
    """The same file from a stranger is not trusted: JupyterLab takes the frame away, and the picture stays."""
    lab.write("saved.ipynb", RECORD, "1 + 1")
    page = open_page(quiet=True)
    lab.open(page, "saved.ipynb")
    lab.run(page, 0)
    page.locator(".vg-here .vg-sentence").wait_for(timeout=30_000)
    page.wait_for_timeout(2000)
    expect(page.locator(".vg-saved")).to_be_hidden()
    text = save(lab, page, "saved.ipynb")
    assert len(text) < 700_000
    page.get_by_role("menuitem", name="Kernel", exact=True).click()
    page.get_by_role("menuitem", name="Shut Down Kernel", exact=True).click()
    page.wait_for_timeout(500)

    again = open_page(quiet=True)
    again.goto(page.url.split("?")[0] + "?token=for-the-tests&reset")
    again.locator(".jp-Notebook .jp-CodeCell").first.wait_for(timeout=60_000)
    frame = again.frame_locator(".vg-saved iframe")
    expect(frame.locator(".vg-goto")).to_have_value("20", timeout=30_000)
    before = frame.locator(".vg-sentence").inner_text()
    frame.locator(".vg-sentence").click()
    again.keyboard.press("ArrowRight")
    expect(frame.locator(".vg-goto")).to_have_value("21")
    assert frame.locator(".vg-sentence").inner_text() != before
    expect(again.get_by_text("Error displaying widget")).to_be_hidden()

    (lab.folder / "others.ipynb").write_text(text.replace("1 + 1", "1 + 2"))
    others = open_page(quiet=True)
    lab.open(others, "others.ipynb")
    expect(others.locator(".jp-OutputArea img.vg-kept")).to_be_visible()
    assert others.locator(".jp-OutputArea iframe").count() == 0
