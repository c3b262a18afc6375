"""How fast the player is, in real Chromium: steps, the first picture in JupyterLab, the page opened from disk.

    python bench/player.py [--model smollm2] [--trace run.vgt] [--json]

The trace is a prefill of 32 tokens and eight decode steps of the model. A step is timed from the time stamp of the
input event, a real key or click, to the end of the paint that shows it: a task queued from the frame that painted
runs when the frame is done. Two ways: with the frame clock off, which is the work that a step costs, and at 60 frames a
second, where the wait for the next frame is added. The bound is one frame of 60 in a second, 16.7 ms. A blank page that
shows one number is measured beside it: what the browser and the machine take before anything of ours is drawn.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from playwright.sync_api import Page, expect

import vizggml as vg
from tests.browser.driver import chromium, jupyterlab, refuse_network
from vizggml.timeline.sentences import render
from vizggml.timeline.trace import Trace
from vizggml.views.labels import visible

FRAME_MS = 1000 / 60
FIRST_PICTURE_S = 2.0
N = 500
PROMPT = "Once upon a time there was a little fox who lived near the sea. "
UNCAPPED = ("--disable-frame-rate-limit", "--disable-gpu-vsync")

MEASURE = """
() => {
  globalThis.took = [];
  globalThis.painted = null;
  const after = (event) => {
    const begun = event.timeStamp;
    requestAnimationFrame(() => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => {
        globalThis.took.push(performance.now() - begun);
        globalThis.painted?.();
      };
      port2.postMessage(0);
    });
  };
  addEventListener("keydown", after, true);
  addEventListener("pointerdown", after, true);
}
"""
BLANK = """<!doctype html><body style="margin:40px">
<input type="range" class="vg-slider" max="70000" style="width:1100px">
<p class="vg-sentence" tabindex="0">0</p><script>
const shown = document.querySelector("p"), slider = document.querySelector("input");
slider.oninput = () => (shown.textContent = slider.value);
addEventListener("keydown", (event) => (shown.textContent = event.timeStamp));
</script>"""
PAINTED = "(n) => took.length >= n || new Promise((resolve) => (painted = resolve))"


WATCH = """
() => {
  const begin = (event) => event.key === "Enter" && (globalThis.begun ??= event.timeStamp);
  addEventListener("keydown", begin, true);
  const look = () => {
    if (document.querySelector(".vg-sentence")?.textContent) {
      requestAnimationFrame(() => setTimeout(() => (globalThis.seen = performance.now())));
    } else requestAnimationFrame(look);
  };
  look();
}
"""


def record(name: str) -> Trace:
    """A prefill of 32 tokens and eight decode steps."""
    model = vg.load_model(name)
    tokens = model.vocab.tokenize(PROMPT * 3)[:32]
    context = model.context(n_ctx=512)
    for _ in context.generate(model.vocab.detokenize(tokens), max_tokens=1, temp=0):
        pass
    context = model.context(n_ctx=512)
    with vg.record() as trace:
        for _ in context.generate(model.vocab.detokenize(tokens), max_tokens=9, temp=0):
            pass
    return trace


def figures(took: list[float]) -> dict[str, float]:
    """Milliseconds at the middle, at 95 of 100 and at worst, the last two also in frames; the share within a frame."""
    took = sorted(took)
    p95 = took[int(0.95 * (len(took) - 1))]
    return {
        "n": len(took),
        "p50_ms": statistics.median(took),
        "p95_ms": p95,
        "max_ms": took[-1],
        "p95_frames": p95 / FRAME_MS,
        "within_frame": sum(t <= FRAME_MS for t in took) / len(took),
    }


def random_jumps(page: Page, n: int = N) -> list[float]:
    """`n` clicks at random places of the slider over all events, each when the one before is painted."""
    box = page.locator(".vg-slider").bounding_box()
    assert box is not None
    chance = random.Random(7)
    for i in range(n):
        page.mouse.click(box["x"] + chance.uniform(8, box["width"] - 8), box["y"] + box["height"] / 2)
        page.evaluate(PAINTED, i + 1)
    return list(page.evaluate("took.splice(0)"))


def steps_back(page: Page) -> list[float]:
    """The left arrow, from the end."""
    page.locator(".vg-sentence").click()
    page.keyboard.press("End")
    page.wait_for_timeout(300)
    page.evaluate("took.length = 0")
    for i in range(N):
        page.keyboard.press("ArrowLeft")
        page.evaluate(PAINTED, i + 1)
    return list(page.evaluate("took.splice(0)"))


def stepping(url: str, flags: tuple[str, ...]) -> dict[str, Any]:
    with chromium(flags) as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(url)
        expect(page.locator(".vg-sentence")).to_be_visible(timeout=30_000)
        page.wait_for_timeout(500)
        page.evaluate(MEASURE)
        return {"random jumps": figures(random_jumps(page)), "single steps back": figures(steps_back(page))}


def from_disk(url: str, trace: Trace) -> dict[str, Any]:
    """Open the page with networking refused; the time to its first picture, and whether a step is the right one."""
    step = len(trace) // 2
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        asked = refuse_network(page)
        begun = time.perf_counter()
        page.goto(f"{url}#step={step}")
        expect(page.locator(".vg-sentence")).to_have_text(visible(render(trace.tracks(), step)), timeout=30_000)
        took = time.perf_counter() - begun
        return {"first_picture_s": took, "requests": asked, "step": step}


def in_jupyterlab(trace_file: Path) -> dict[str, Any]:
    """From the keys that run the cell to the first picture, in a fresh kernel that has loaded the trace."""
    with tempfile.TemporaryDirectory() as folder, jupyterlab(Path(folder)) as lab, chromium() as browser:
        load = f"import vizggml as vg\ntrace = vg.load_trace({str(trace_file)!r})\nprint(len(trace))"
        lab.write("bench.ipynb", load, "vg.view(trace)")
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        lab.open(page, "bench.ipynb")
        lab.run(page, 0)
        lab.output(page, 0)
        page.evaluate(WATCH)
        lab.run(page, 1)
        page.wait_for_function("globalThis.seen", timeout=60_000)
        took = page.evaluate("globalThis.seen - globalThis.begun") / 1000
        return {"first_picture_s": took, "of_2_s": took / FIRST_PICTURE_S}


def told(result: dict[str, Any]) -> None:
    sizes = f"tracks {result['tracks_bytes'] / 1e6:.1f} MB, page {result['page_bytes'] / 1e6:.2f} MB"
    print(f"trace: {result['events']:,} events, {sizes}")
    for way in ("frame clock off", "60 frames a second"):
        for what, f in result[way].items():
            blank = result[f"{way}, blank page"][what]
            print(
                f"{way:>18}, {what:<17} {f['n']} times: p50 {f['p50_ms']:5.1f} ms, p95 {f['p95_ms']:5.1f} ms = "
                f"{f['p95_frames']:.2f} frames, max {f['max_ms']:5.1f} ms; "
                f"{100 * f['within_frame']:.1f} % within 16.7 ms; "
                f"p95 is {f['p95_ms'] / blank['p95_ms']:.2f} times a blank page's {blank['p95_ms']:.1f} ms"
            )
    lab, disk = result["JupyterLab"], result["from disk"]
    print(f"first picture in JupyterLab: {lab['first_picture_s']:.2f} s = {lab['of_2_s']:.2f} of the 2 s allowed")
    print(
        f"page from disk, no network: first picture {disk['first_picture_s']:.2f} s, "
        f"{len(disk['requests'])} requests, right step"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2", help="tiny, smollm2 or a GGUF file")
    parser.add_argument("--trace", type=Path, help="a trace that was made before")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of lines")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = chosen.trace or Path(folder) / "run.vgt"
        if chosen.trace is None:
            record(chosen.model).save(file)
        trace = vg.load_trace(file)
        page = Path(folder) / "run.html"
        trace.to_html(page)
        blank = Path(folder) / "blank.html"
        blank.write_text(BLANK)
        result: dict[str, Any] = {
            "events": len(trace),
            "tracks_bytes": len(trace.tracks().to_bytes()),
            "page_bytes": page.stat().st_size,
            "frame clock off": stepping(page.as_uri(), UNCAPPED),
            "frame clock off, blank page": stepping(blank.as_uri(), UNCAPPED),
            "60 frames a second": stepping(page.as_uri(), ()),
            "60 frames a second, blank page": stepping(blank.as_uri(), ()),
            "JupyterLab": in_jupyterlab(file.resolve()),
            "from disk": from_disk(page.as_uri(), trace),
        }
    print(json.dumps(result)) if chosen.json else told(result)


if __name__ == "__main__":
    main()
