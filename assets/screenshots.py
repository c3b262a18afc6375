"""Take the pictures of the player: chapters in JupyterLab and each pane alone, light and dark, narrow and wide.

python assets/screenshots.py         # writes assets/shots/*.png
python assets/screenshots.py panes   # those of the panes alone
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

import vizggml as vg  # noqa: E402
from tests.browser import driver  # noqa: E402
from vizggml.lab import lay  # noqa: E402
from vizggml.timeline.trace import Trace  # noqa: E402
from vizggml.views.memory import fullest_step  # noqa: E402
from vizggml.widgets.view import DETAILS  # noqa: E402

WIDTHS = {"narrow": (1060, 1000), "wide": (1720, 1100)}
CHAPTERS = {"tour": ("00-tour.ipynb", 0), "galloc": ("05-galloc.ipynb", 1)}
"""The chapter, and which of its players is shown."""
MOMENTS = {"tour": 0.93, "galloc": 0.91}
"""How far through the trace."""


def menu(page: Page, *names: str) -> None:
    for name in names:
        page.get_by_role("menuitem", name=name, exact=True).click()


def step_to(page: Page, player: int, chapter: str) -> None:
    """A moment worth a picture: in the tour a word being computed, in chapter 5 a plan at its fullest."""
    shown = page.locator(".vg-player").nth(player)
    goto = shown.locator(".vg-goto")
    total = int(shown.locator(".vg-slider").get_attribute("max") or 0)
    goto.fill(str(int(total * MOMENTS[chapter])))
    goto.press("Enter")
    page.wait_for_timeout(400)


def shoot(lab: driver.Lab, page: Page, chapter: str, theme: str) -> None:
    name, player = CHAPTERS[chapter]
    lab.open(page, name)
    menu(page, "Run", "Run All Cells")
    page.locator(".vg-player").nth(player).wait_for(timeout=120_000)
    page.locator("#jp-main-statusbar").get_by_text("| Idle").first.wait_for(timeout=120_000)
    for width, size in WIDTHS.items():
        page.set_viewport_size({"width": size[0], "height": size[1]})
        page.wait_for_timeout(500)
        step_to(page, player, chapter)
        page.locator(".vg-player").nth(player).evaluate("e => e.scrollIntoView({block: 'center'})")
        page.wait_for_timeout(700)
        target = HERE / "shots" / f"{chapter}-{theme}-{width}.png"
        page.screenshot(path=str(target))
        print(target.name)


PANES = ("graph", "map", "timeline", "events", "tokens", *DETAILS)
PANE_SIZES = {"narrow": (420, 420), "wide": (1100, 460)}
PLANNED = ("arena", "counts", "free", "graph", "map", "timeline")
"""Panes that show most while memory is planned; the others while a token is computed."""


def run_of_everything() -> Trace:
    """A run over two backends, with values: something for every pane but the experts'."""
    model = vg.load_model("tiny")
    with vg.record(values=True) as trace:
        context = model.context(n_ctx=256, n_ubatch=32, flash_attn=False, n_threads=2, n_gpu_layers=2, type_k="q8_0")
        for _ in context.generate("Once upon a time there was a fox", max_tokens=2, temp=0):
            pass
    return trace


def moment(trace: Trace, pane: str) -> int:
    tracks = trace.tracks()
    if pane in PLANNED:
        return fullest_step(tracks)
    ends = [i for i, event in enumerate(trace.events) if type(event).__name__ == "NodeEnd"]
    return ends[len(ends) * 9 // 10]


def shoot_panes(folder: Path) -> None:
    """Each pane alone in a page of its own."""
    trace = run_of_everything()
    with driver.chromium() as browser:
        for pane in PANES:
            page_file = folder / f"{pane}.html"
            trace.to_html(page_file, panes=[pane], step=moment(trace, pane))
            for theme in ("light", "dark"):
                for width, (w, h) in PANE_SIZES.items():
                    page = browser.new_context(viewport={"width": w, "height": h}, color_scheme=theme).new_page()
                    page.goto(page_file.as_uri())
                    page.locator(".vg-sentence:not(:empty)").wait_for(timeout=30_000)
                    page.wait_for_timeout(900)
                    page.screenshot(path=str(HERE / "shots" / "panes" / f"{pane}-{theme}-{width}.png"))
                    page.context.close()
            print(pane)


def main() -> None:
    (HERE / "shots" / "panes").mkdir(exist_ok=True, parents=True)
    with tempfile.TemporaryDirectory() as folder:
        shoot_panes(Path(folder))
    if "panes" in sys.argv[1:]:
        return
    for theme in ("light", "dark"):
        driver.SETTINGS["@jupyterlab/apputils-extension:themes"] = {"theme": f"JupyterLab {theme.capitalize()}"}
        with tempfile.TemporaryDirectory() as folder, driver.jupyterlab(Path(folder)) as lab:
            lay(lab.folder)
            with driver.chromium() as browser:
                page = browser.new_context(viewport={"width": 1060, "height": 1000}).new_page()
                for chapter in CHAPTERS:
                    shoot(lab, page, chapter, theme)


if __name__ == "__main__":
    main()
