"""A live run in JupyterLab: prompt, run, what a token was chosen from, stop, go on, and the notebook that keeps it."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.browser.driver import Lab

OpenPage = Callable[..., Page]

LIVE = """
import vizggml as vg
shown = vg.live(vg.load_model("tiny"), "Once upon a time", max_tokens=3, temp=0, n_ctx=64, fast=False)
shown
"""
TOLD = (
    "print(len(shown.runner.traces), shown.runner.context.n_past, repr(''.join(t.text for t in shown.runner.tokens)))"
)


def test_a_run_its_tokens_and_going_on(lab: Lab, open_page: OpenPage) -> None:
    lab.write("live.ipynb", LIVE, TOLD)
    page = open_page(quiet=True)
    lab.open(page, "live.ipynb")
    lab.run(page, 0)
    panel = page.locator(".vg-livepanel")
    run, stop, go_on = (panel.get_by_role("button", name=name, exact=True) for name in ("Run", "Stop", "Continue"))
    expect(run).to_be_enabled(timeout=30_000)
    expect(stop).to_be_disabled()
    expect(go_on).to_be_disabled()
    run.click()
    tokens = panel.locator(".vg-live-made .vg-token")
    expect(tokens).to_have_count(3, timeout=60_000)
    expect(page.locator(".vg-kind")).to_have_text("TokenSampled", timeout=30_000)
    expect(panel.get_by_role("status")).to_contain_text("tokens/s")

    first = tokens.nth(0).inner_text()
    tokens.nth(0).hover()
    card = panel.locator(".vg-choice")
    expect(card).to_be_visible()
    shares = [float(text.removesuffix(" %")) for text in card.locator(".vg-choice-p").all_inner_texts()]
    assert len(shares) == 5
    assert shares == sorted(shares, reverse=True)
    assert (
        card.locator(".vg-chosen .vg-choice-piece").inner_text()
        == first
        == card.locator(".vg-choice-piece").first.inner_text()
    )
    tokens.nth(0).click()
    expect(page.locator(".vg-here .vg-sentence")).to_contain_text("position 5")
    expect(tokens.nth(0)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowRight")
    expect(tokens.nth(1)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".vg-here .vg-sentence")).to_contain_text("position 6")

    page.locator('.vg-pane-tables [role="tab"]', has_text="KV").first.click()
    go_on.click()
    expect(tokens).to_have_count(6, timeout=60_000)
    expect(go_on).to_be_enabled(timeout=30_000)
    expect(page.locator('.vg-pane-tables [role="tab"][aria-selected="true"]')).to_contain_text("KV", timeout=30_000)
    lab.run(page, 1)
    count, held, text = lab.output(page, 1).split(" ", 2)
    assert (count, held) == ("6", "10")
    read = panel.locator(".vg-live-text").inner_text()
    assert read == "Once upon a time" + text.strip("'\"")
    saved_without_a_kernel(lab, page, open_page)


def saved_without_a_kernel(lab: Lab, page: Page, open_page: OpenPage) -> None:
    """The output that the run brought up to date shows the last token's step."""
    page.keyboard.press("Control+s")
    saved = lab.folder / "live.ipynb"
    for _ in range(100):
        if "vg-saved" in saved.read_text():
            break
        page.wait_for_timeout(100)
    page.get_by_role("menuitem", name="Kernel", exact=True).click()
    page.get_by_role("menuitem", name="Shut Down Kernel", exact=True).click()
    again = open_page(quiet=True)
    lab.open(again, "live.ipynb")
    frame = again.frame_locator(".vg-saved iframe")
    expect(frame.locator(".vg-kind")).to_have_text("TokenSampled", timeout=30_000)
    frame.locator(".vg-sentence").click()
    again.keyboard.press("ArrowLeft")
    expect(frame.locator(".vg-kind")).not_to_have_text("TokenSampled")


def test_an_error_is_one_line(lab: Lab, open_page: OpenPage) -> None:
    lab.write("fails.ipynb", LIVE.replace("n_ctx=64", "n_ctx=256"))
    page = open_page(quiet=True)
    lab.open(page, "fails.ipynb")
    lab.run(page, 0)
    panel = page.locator(".vg-livepanel")
    panel.get_by_label("Prompt").fill("a b c d e f g h " * 60)
    panel.get_by_label("Prompt").press("Control+Enter")
    expect(panel.get_by_role("alert")).to_contain_text("the context holds 256 (n_ctx)", timeout=30_000)
    expect(panel.get_by_role("button", name="Run", exact=True)).to_be_enabled()
