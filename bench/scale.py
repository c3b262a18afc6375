"""The player on large traces, in real Chromium, beside PyTorch's page for memory traces on as many allocator events.

    python bench/scale.py [--torch-page _memory_viz.py] [--json]

Two traces: a llama-shaped graph of more than 4,000 nodes built, reserved and planned, 100,000 events; the same ten
times over, 1,000,000. Measured: from the keys that run the cell to the first picture in JupyterLab; random jumps, from
the input event to the end of the paint; zoom and pan of the graph, folded and opened, in frames a second; the exported
page's size and how long it takes to open from disk.

PyTorch's page is the one that its package carried whole up to version 2.0 (torch/cuda/_memory_viz.py); its d3 comes
from npm. Without `--torch-page` the wheel is downloaded (55 MB). It has no steps to jump to: what is nearest is moving
the brush that chooses the part shown, so that is what is timed.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from time import perf_counter
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from playwright.sync_api import Page, ViewportSize

import vizggml as vg
from bench import graph as big_graph
from bench.player import FRAME_MS, MEASURE, PAINTED, figures, in_jupyterlab, random_jumps
from tests.browser.driver import chromium, refuse_network
from vizggml.ggml.buffer import cpu_buffer_type
from vizggml.ggml.cplan import graph_plan
from vizggml.ggml.gallocr import GraphAllocator
from vizggml.llama import shapes
from vizggml.timeline.trace import Trace

N_LAYER = 142
N_TOKENS, N_THREADS = 512, 16
JUMPS = 1000
BOUND_MS = 50.0
PAGE_MB, OPEN_S, FIRST_PICTURE_S = 8.0, 2.0, 3.0
TORCH = "torch==2.0.1"
VIEWPORT: ViewportSize = {"width": 1280, "height": 900}
SHAPE = big_graph.SHAPE

FRAMES = """
async ([selector, kind]) => {
  const target = document.querySelector(selector);
  const box = target.getBoundingClientRect();
  const at = (x, y) => ({ clientX: box.x + x, clientY: box.y + y, bubbles: true, cancelable: true, view: window });
  const [mx, my] = [box.width / 2, box.height / 2];
  const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
  const pointer = (type, x, y, buttons) => {
    const init = { ...at(x, y), pointerId: 1, isPrimary: true, button: type.endsWith("move") ? -1 : 0, buttons };
    target.dispatchEvent(new PointerEvent(`pointer${type}`, init));
    const mouse = new MouseEvent(`mouse${type}`, { ...at(x, y), buttons });
    (type === "down" ? target : window).dispatchEvent(mouse);
  };
  if (kind === "pan") pointer("down", mx, my, 1);
  await frame();
  const begun = performance.now();
  const n = 120;
  let worst = 0, last = begun;
  for (let i = 1; i <= n; i++) {
    const way = i <= n / 2 ? 1 : -1;
    const turn = { ...at(mx, my), deltaY: -40 * way, deltaMode: 0 };
    if (kind === "zoom") target.dispatchEvent(new WheelEvent("wheel", turn));
    else pointer("move", mx + 2 * (way > 0 ? i : n - i), my + (way > 0 ? i : n - i), 1);
    await frame();
    const now = performance.now();
    worst = Math.max(worst, now - last);
    last = now;
  }
  if (kind === "pan") pointer("up", mx, my, 0);
  return { fps: (1000 * n) / (last - begun), worst_ms: worst };
}
"""
"""One change before each frame, 120 of them; the frames a second that come of it."""


def record(times: int) -> tuple[Trace, int]:
    """The graph built, reserved and planned `times` times; and its nodes."""
    name = "bench"
    shapes.SHAPES[name] = dataclasses.replace(shapes.SHAPES[SHAPE], n_layer=N_LAYER)
    big_graph.SHAPE = name
    made = big_graph.reservation()
    with vg.record() as trace:
        for _ in range(times):
            graph = big_graph.build(made, N_TOKENS)
            galloc = GraphAllocator(cpu_buffer_type())
            galloc.reserve(graph)
            graph_plan(graph, N_THREADS)
            galloc.free()
    del shapes.SHAPES[name]
    return trace, len(graph.nodes)


def opened(page: Page, url: str, selector: str) -> float:
    """Seconds until `selector` is there and painted."""
    begun = perf_counter()
    page.goto(url, wait_until="commit")
    page.locator(selector).first.wait_for(state="attached", timeout=300_000)
    page.evaluate("() => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)))")
    return perf_counter() - begun


def player(url: str, n_jumps: int, moving: bool) -> dict[str, Any]:
    with chromium() as browser:
        page = browser.new_page(viewport=VIEWPORT)
        asked = refuse_network(page)
        result: dict[str, Any] = {"open_s": opened(page, url, ".vg-sentence:not(:empty)")}
        page.wait_for_timeout(500)
        page.evaluate(MEASURE)
        took = random_jumps(page, n_jumps)
        result["jumps"] = figures(took) | {"within_bound": sum(t <= BOUND_MS for t in took) / len(took)}
        if moving:
            graph = ".vg-pane-graph canvas"
            result["folded"] = {kind: page.evaluate(FRAMES, [graph, kind]) for kind in ("zoom", "pan")}
            page.get_by_role("button", name="Open all blocks").click()
            page.wait_for_timeout(1000)
            result["unfolded"] = {kind: page.evaluate(FRAMES, [graph, kind]) for kind in ("zoom", "pan")}
        result["requests"] = asked
        return result


# ---- PyTorch's page


def torch_page(folder: Path, given: Path | None) -> str:
    """The template of its page, out of the package's source."""
    if given is None:
        options = "--no-deps --platform macosx_11_0_arm64 --python-version 311 --only-binary=:all:".split()
        command = [sys.executable, "-m", "pip", "download", "-q", *options, "-d", str(folder), TORCH]
        subprocess.run(command, check=True, env=os.environ | {"PIP_CONSTRAINT": os.devnull})
        with zipfile.ZipFile(next(folder.glob("torch-*.whl"))) as wheel:
            source = wheel.read("torch/cuda/_memory_viz.py").decode()
    else:
        source = given.read_text()
    found = re.search(r'_memory_over_time_template = r"""(.*?)"""', source, re.DOTALL)
    if found is None:
        sys.exit("bench: this _memory_viz.py carries no page of its own; version 2.0.1 of torch does")
    return found[1]


def with_d3(folder: Path, page: str) -> str:
    """The page with the d3 that it names, from npm, in place of the addresses."""
    script = re.search(r'<script type="module">(.*?)</script>', page, re.DOTALL)
    assert script is not None
    source = re.sub(r'"https://[^"]*/(?:npm/)?(d3[a-z-]*)@[^"]*"', r'"\1"', script[1])
    (folder / "page.js").write_text(source.replace("$PLOT_DATA", "globalThis.PLOT_DATA"))
    subprocess.run(["npm", "install", "--silent", "d3@7.7.0", "esbuild"], cwd=folder, check=True)
    build = ["npx", "esbuild", "page.js", "--bundle", "--format=iife", "--outfile=page.out.js", "--log-level=error"]
    subprocess.run(build, cwd=folder, check=True)
    return (folder / "page.out.js").read_text()


def allocations(trace: Trace, n_actions: int) -> dict[str, Any]:
    """What PlotWriter writes, of the trace's own plan, over and over until there are `n_actions`."""
    tracks = trace.tracks()
    column = {name: tracks.columns[f"t.life.{name}"] for name in ("plan", "tensor", "size", "first", "last")}
    lives = [
        (int(first), int(last), int(size))
        for plan, first, last, size in zip(column["plan"], column["first"], column["last"], column["size"], strict=True)
        if plan == 0 and first >= 0
    ]
    end = max(last for _, last, _ in lives) + 1
    moves = sorted(
        [(first, 1, k) for k, (first, _, _) in enumerate(lives)]
        + [(last + 1, 0, k) for k, (_, last, _) in enumerate(lives)]
    )
    elements: list[dict[str, Any]] = []
    actions: list[int] = []
    while len(actions) < n_actions:
        standing: dict[int, int] = {}
        for at, begins, k in moves:
            if begins:
                standing[k] = len(elements)
                elements.append({"size": lives[k][2], "info": 0})
                actions.append(standing[k])
            elif at <= end and k in standing:
                actions.append(standing.pop(k))
    return {
        "actions": actions[:n_actions],
        "elements": elements,
        "suffix_table": [[0, None]],
        "string_table": ["a tensor of the plan"],
        "initially_allocated": [],
    }


def memory_viz(folder: Path, given: Path | None, trace: Trace, n_jumps: int) -> dict[str, Any]:
    """The same of PyTorch's page: an allocator trace of as many actions as ours has events."""
    script = with_d3(folder, torch_page(folder, given))
    data = json.dumps(allocations(trace, len(trace)))
    file = folder / "torch.html"
    file.write_text(f"<!doctype html><body><script>globalThis.PLOT_DATA = {data}</script><script>{script}</script>")
    with chromium() as browser:
        page = browser.new_page(viewport=VIEWPORT)
        page.set_default_timeout(300_000)
        result: dict[str, Any] = {"page_bytes": file.stat().st_size}
        result["open_s"] = opened(page, file.as_uri(), "pre")
        result["rectangles"] = page.evaluate("document.querySelectorAll('polygon').length")
        page.evaluate(MEASURE.replace('"pointerdown"', '"pointermove"'))
        page.evaluate("scrollTo(0, 1e6)")
        box = page.locator("svg").nth(1).bounding_box()
        assert box is not None
        y = box["y"] + 40
        page.mouse.move(box["x"] + 300, y)
        page.mouse.down()
        page.mouse.move(box["x"] + 340, y)
        page.mouse.up()
        page.wait_for_timeout(1000)
        page.mouse.move(box["x"] + 320, y)
        page.mouse.down()
        page.wait_for_timeout(1000)
        page.evaluate("took.length = 0")
        chance = random.Random(7)
        for i in range(n_jumps):
            page.mouse.move(box["x"] + chance.uniform(120, box["width"] - 60), y)
            page.evaluate(PAINTED, i + 1)
        took = list(page.evaluate("took.splice(0)"))
        page.mouse.up()
        result["brush"] = figures(took) | {"within_bound": sum(t <= BOUND_MS for t in took) / len(took)}
        page.evaluate("scrollTo(0, 0)")
        result["moving"] = {"zoom": page.evaluate(FRAMES, ["svg g rect", "zoom"])}
        return result


def line(what: str, f: dict[str, float]) -> str:
    return (
        f"{what}: {f['n']} times, p50 {f['p50_ms']:.1f}, p95 {f['p95_ms']:.1f}, max {f['max_ms']:.1f} ms; "
        f"{100 * f['within_frame']:.1f} % within {FRAME_MS:.1f} ms, "
        f"{100 * f['within_bound']:.1f} % within {BOUND_MS:.0f}"
    )


def told(result: dict[str, Any]) -> None:
    for name in ("large", "huge"):
        r = result[name]
        print(f"{r['nodes']:,} nodes, {r['events']:,} events: page {r['page_bytes'] / 1e6:.2f} MB (most {PAGE_MB})")
        print(f"  opens from disk in {r['open_s']:.2f} s (most {OPEN_S}), {len(r['requests'])} requests")
        print("  " + line("random jumps", r["jumps"]))
        for state in ("folded", "unfolded"):
            for kind, f in r.get(state, {}).items():
                print(f"  {kind}, {state}: {f['fps']:.1f} frames a second, worst {f['worst_ms']:.0f} ms")
        if "JupyterLab" in r:
            print(f"  first picture in JupyterLab: {r['JupyterLab']['first_picture_s']:.2f} s (most {FIRST_PICTURE_S})")
    m, ours = result["MemoryViz"], result["large"]
    print(
        f"PyTorch's page, {ours['events']:,} actions, {m['rectangles']:,} shapes: page {m['page_bytes'] / 1e6:.2f} MB"
    )
    print(f"  opens in {m['open_s']:.2f} s = {m['open_s'] / ours['open_s']:.1f} times ours")
    print("  " + line("moves of the brush", m["brush"]))
    print(f"  p95 {m['brush']['p95_ms'] / ours['jumps']['p95_ms']:.1f} times that of our jumps")
    print(f"  zoom: {m['moving']['zoom']['fps']:.1f} frames a second, worst {m['moving']['zoom']['worst_ms']:.0f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch-page", type=Path, help="torch/cuda/_memory_viz.py of torch 2.0.1")
    parser.add_argument("--jumps", type=int, default=JUMPS)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of lines")
    chosen = parser.parse_args()
    result: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for size, times in (("large", 1), ("huge", 11)):
            trace, nodes = record(times)
            file, page = folder / f"{size}.vgt", folder / f"{size}.html"
            trace.save(file)
            trace.to_html(page)
            large = size == "large"
            result[size] = player(page.as_uri(), chosen.jumps if large else 100, large) | {
                "nodes": nodes,
                "events": len(trace),
                "page_bytes": page.stat().st_size,
            }
            if large:
                result[size]["JupyterLab"] = in_jupyterlab(file)
                result["MemoryViz"] = memory_viz(folder, chosen.torch_page, trace, min(100, chosen.jumps))
    print(json.dumps(result)) if chosen.json else told(result)


if __name__ == "__main__":
    main()
