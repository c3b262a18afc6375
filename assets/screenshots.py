"""Take the pictures of the chapters in JupyterLab: light and dark, at notebook width and full width.

python assets/screenshots.py         # writes assets/shots/*.png
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from tests.browser import driver  # noqa: E402
from vizggml.lab import lay  # noqa: E402

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


def main() -> None:
    (HERE / "shots").mkdir(exist_ok=True)
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
