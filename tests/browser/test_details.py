"""The details in real Chromium: the cache, scratch, reuse, the arena and the threads, read as a person reads them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.test_player_events import steps_of
from tests.llama.building import decode_two_sequences
from tests.llama.made import Shape, write
from tests.oracle import LIB, Real
from tests.timeline.made import trace_of
from vizggml import ggml
from vizggml.events import (
    BarrierWait,
    BlockChosen,
    CellFreed,
    CellsFound,
    ChunksTaken,
    ComputeBegin,
    ComputeEnd,
    GraphId,
    KvWritten,
    NodeBegin,
    NodeEnd,
    PlanEnd,
    ReserveBegin,
    ReuseDecided,
    SeqOp,
    TensorCreated,
    TensorFreed,
    TensorId,
    WindowEvicted,
    WorkTaken,
)
from vizggml.export.html import to_html
from vizggml.llama.batch import Batch
from vizggml.llama.model import load_model
from vizggml.timeline.record import record
from vizggml.timeline.trace import Trace

OpenPage = Callable[..., Page]


@pytest.fixture(scope="module")
def two() -> Trace:
    """Five tokens of sequence 0 and three of sequence 1; two of the first are removed, and 11 takes their place.

    The tiny model has 4 layers, 4 query heads for 2 heads of keys and values, and 128 F16 values a cell and layer.
    """
    model = load_model("tiny")
    context = model.context(n_ctx=256, n_seq_max=2, flash_attn=True, n_threads=2)
    with record() as trace:
        decode_two_sequences(context)
        context.decode(Batch.of([12], 4, seq_id=1))
    model.close()
    return trace


def alone(trace: Trace, detail: str, folder: Path, open_page: OpenPage, step: int) -> Page:
    to_html(trace, folder / "run.html", panes=[detail])
    page = open_page()
    page.goto(f"{(folder / 'run.html').as_uri()}#step={step}")
    expect(page.locator(".vg-sentence")).to_be_visible()
    return page


def go(page: Page, step: int) -> None:
    page.evaluate(f"location.hash = '#step={step}'")
    expect(page.locator(".vg-goto")).to_have_value(str(step))


def said(page: Page) -> Locator:
    return page.locator(".vg-saying").locator("visible=true")


def card(page: Page) -> dict[str, str]:
    """What the card beside the pointer says, its head under the empty key."""
    tip = page.locator(".vg-tip")
    expect(tip).to_be_visible()
    keys, values = (tip.locator(part).all_text_contents() for part in (".vg-dt", ".vg-dd"))
    return dict(zip(keys, values, strict=True)) | {"": tip.locator(".vg-tip-head").text_content() or ""}


def walk(page: Page, times: int = 1) -> None:
    """From what the drawing is at, so many things further, by the keyboard."""
    page.locator(".vg-detail .vg-canvas").focus()
    for _ in range(times):
        page.keyboard.press("ArrowDown")


def test_the_cache_by_pointer_and_by_keys(two: Trace, tmp_path: Path, open_page: OpenPage) -> None:
    """While the second sequence is written: K and V of 256 bytes a cell in each of 4 layers, 2 KiB in all."""
    written = steps_of(two, KvWritten)
    page = alone(two, "kv", tmp_path, open_page, written[8 + 3])
    expect(said(page)).to_contain_text("8 of 256 cells taken (16 KiB of 512 KiB)")
    expect(said(page)).to_contain_text("sequence 0: 5, sequence 1: 3; attention looks at the first 256 (n_kv)")
    expect(page.get_by_role("img", name="8 of 256 cells taken")).to_be_visible()
    facts = page.get_by_label("Of this cache")
    expect(facts).to_contain_text("256 cells x 4 layers, 512 KiB")
    expect(facts).to_contain_text("4 query heads read 2 KV heads: 2 x smaller than with one each")

    walk(page, 2)
    assert card(page) == {
        "": "cell 6",
        "position": "1",
        "sequence": "1",
        "attended": "yes, by position 2",
        "bytes": "2 KiB in 4 layers",
    }
    for _ in range(4):
        page.keyboard.press("ArrowUp")
    assert card(page)["attended"] == "no: another sequence"
    spoken = page.locator("[aria-live]", has_text="cell 2, position 2")
    expect(spoken).to_have_count(1)
    page.keyboard.press("Escape")
    expect(page.locator(".vg-tip")).to_be_hidden()

    box = page.locator(".vg-detail .vg-canvas").bounding_box()
    assert box is not None
    x, found = box["x"] + 42 + (box["width"] - 54) * 6.5 / 32, {}
    for y in np.linspace(box["y"] + 10, box["y"] + box["height"] - 20, 24):
        page.mouse.move(x, y)
        if page.locator(".vg-tip").is_visible():
            read = card(page)
            found[read.get("layer", "none")] = read.get("written", "")
    assert {"0, K", "3, K", "0, V", "3, V"} <= set(found)
    assert found["1, V"] == "in this evaluation"
    assert found["2, K"] == found["3, V"] == "not yet"


def test_what_is_removed_from_the_cache_is_told(two: Trace, tmp_path: Path, open_page: OpenPage) -> None:
    (removed,) = steps_of(two, SeqOp)
    freed, found = steps_of(two, CellFreed), steps_of(two, CellsFound)
    page = alone(two, "kv", tmp_path, open_page, removed)
    expect(said(page)).to_contain_text("8 of 256 cells taken")
    expect(said(page)).to_contain_text("removed: sequence 0 1 to 2")
    go(page, freed[-1])
    expect(said(page)).to_contain_text("6 of 256 cells taken")
    expect(said(page)).to_contain_text("sequence 0: 3, sequence 1: 3")
    go(page, found[2] + 1)
    expect(said(page)).to_contain_text("sequence 0: 3, sequence 1: 4")
    expect(said(page)).not_to_contain_text("removed")
    walk(page)
    assert card(page)[""] == "cell 1"
    assert (card(page)["position"], card(page)["sequence"]) == ("3", "1")


@pytest.fixture(scope="module")
def windows(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """Layer 1 sees everything, layers 0 and 2 the last 24 positions: 250 tokens, then 8 more that take cells 250 to 255
    and the first two again."""
    shape = Shape("gemma3", n_layer=3, n_embd=32, n_head=2, n_head_kv=1, n_ff=32, n_swa=24, swa_pattern=2)
    model = load_model(write(tmp_path_factory.mktemp("made") / "windows.gguf", shape))
    context = model.context(n_ctx=512, n_ubatch=64, swa_full=False, n_threads=1)
    context.decode([1] * 250)
    with record() as trace:
        context.decode([2] * 6)
        context.decode([3] * 2)
    model.close()
    return trace


def test_two_caches_stand_one_over_the_other(windows: Trace, tmp_path: Path, open_page: OpenPage) -> None:
    """Each says what its layers see; a cell that is given away is marked in its own cache alone."""
    evicted, written = steps_of(windows, WindowEvicted), steps_of(windows, KvWritten)
    page = alone(windows, "kv", tmp_path, open_page, evicted[0])
    expect(said(page)).to_contain_text(
        ["Every position: 258 of 512 cells taken", "Last 24 positions: 255 of 256 cells taken"]
    )
    expect(said(page)).to_contain_text(["layer 1; sequence 0: 258", "layers 0, 2; sequence 0: 255"])
    go(page, written[-1])
    expect(said(page)).to_contain_text(["Every position: 258", "Last 24 positions: 256 of 256 cells taken"])
    facts = page.get_by_label("Of this cache")
    expect(facts).to_contain_text(["512 cells x 1 layer", "256 cells x 2 layers"])
    boxes = page.locator(".vg-detail .vg-canvas")
    seen = []
    for number, cell in ((0, 232.5), (0, 257.5), (1, 232.5), (1, 240.5), (1, 1.5)):
        box = boxes.nth(number).bounding_box()
        assert box is not None
        n_cells = (264, 256)[number]
        page.mouse.move(box["x"] + 42 + (box["width"] - 54) * cell / n_cells, box["y"] + 30)
        seen.append((card(page)["position"], card(page)["attended"]))
    assert seen == [
        ("232", "yes, by position 257"),
        ("257", "yes, by position 257"),
        ("232", "no: out of the window of 24"),
        ("240", "yes, by position 257"),
        ("257", "yes, by position 257"),
    ]


def test_cells_are_zoomed_by_dragging(two: Trace, tmp_path: Path, open_page: OpenPage) -> None:
    page = alone(two, "kv", tmp_path, open_page, len(two) - 1)
    box = page.locator(".vg-detail .vg-canvas").bounding_box()
    assert box is not None
    left, each, y = box["x"] + 42, (box["width"] - 54) / 32, box["y"] + 60
    page.mouse.move(left + 4.5 * each, y)
    page.mouse.down()
    page.mouse.move(left + 7.5 * each, y, steps=4)
    page.mouse.up()
    page.mouse.move(left + 2, y)
    assert card(page)[""] == "cell 4"
    page.get_by_role("button", name="Zoom out").click()
    page.mouse.move(left + 2, y)
    assert card(page)[""] == "cell 0"
    page.get_by_role("button", name="All cells").click()
    page.mouse.move(box["x"] + box["width"] - 14, y)
    assert card(page)[""] == "cell 255"


def test_reuse_says_the_verdict_in_words(two: Trace, tmp_path: Path, open_page: OpenPage) -> None:
    """No graph stands at first; then 5 tokens became 3, 3 became 1, and a second single token fits."""
    verdicts = steps_of(two, ReuseDecided)
    page = alone(two, "reuse", tmp_path, open_page, verdicts[0])
    expect(said(page)).to_contain_text("built anew: no graph stands")
    go(page, verdicts[1])
    expect(said(page)).to_contain_text("built anew: ubatch.n_tokens 5 → 3")
    go(page, verdicts[3])
    expect(said(page)).to_contain_text(re.compile(r"graph reused: (\d+) of \1 conditions hold"))
    expect(said(page)).to_contain_text("1 of 4 evaluations reused a graph")
    rows = page.locator(".vg-grid-row").locator("visible=true")
    cells = [row.locator("span").all_text_contents() for row in rows.all()]
    assert cells[0] == ["context", "has outputs", "True", "True", "✓ yes"]
    go(page, verdicts[3] - 1)
    expect(said(page)).to_contain_text(re.compile(r"asking: (\d+) of \1 hold so far"))
    page.locator(".vg-detail .vg-canvas").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    assert card(page)[""] == "evaluation 2"
    page.keyboard.press("Enter")
    expect(page.locator(".vg-goto")).to_have_value(str(verdicts[2]))


def test_scratch_names_the_winner_and_its_formula(tmp_path: Path, open_page: OpenPage) -> None:
    """64 activations as Q8_0 are 2 blocks of 34 bytes, to 128; 256 are 272, to 320; 2 x 64 of padding."""
    with record() as trace:
        ctx = ggml.Context(mem_size=1 << 20, no_alloc=True)
        small, large = (ctx.new_tensor("Q8_0", (n, 8), name=f"w{n}") for n in (64, 256))
        x, y = (ctx.new_tensor("F32", (n,), name=f"x{n}") for n in (64, 256))
        first = ggml.mul_mat(ctx, small, x).set_name("first")
        second = ggml.mul_mat(ctx, large, y).set_name("second")
        g = ggml.Graph(ctx)
        g.build_forward_expand(ggml.add(ctx, first, second).set_name("sum"))
        ggml.graph_plan(g, n_threads=2)
    (end,) = steps_of(trace, PlanEnd)
    page = alone(trace, "scratch", tmp_path, open_page, end)
    expect(said(page)).to_contain_text("work size 448 B = second 320 B + padding 128 B")
    walk(page)
    assert card(page) == {
        "": "first",
        "tasks": "2",
        "scratch": "128 B",
        "formula": "activations as Q8_0: 64 elements = 68, to a multiple of 64",
        "largest so far": "128 B",
    }
    walk(page)
    assert card(page)[""] == "second"


@pytest.mark.parametrize("no_alloc", [True, False])
def test_the_arena_lies_as_in_ggml(no_alloc: bool, tmp_path: Path, open_page: OpenPage) -> None:
    real = Real(1 << 14, no_alloc)
    base = LIB.ggml_get_mem_buffer(real.ctx)
    addresses = [real.new_tensor("F32", ne, name) for ne, name in (((3, 2), "W"), ((3,), "x"))]
    used = real.used_mem()
    real.free()
    with record() as trace:
        ctx = ggml.Context(mem_size=1 << 14, no_alloc=no_alloc)
        ctx.new_tensor("F32", (3, 2), name="W")
        ctx.new_tensor("F32", (3,), name="x")
    page = alone(trace, "arena", tmp_path, open_page, len(trace) - 1)
    size = f"{used} B" if used < 1024 else "1 KiB"
    expect(said(page)).to_contain_text(f"{size} of 16 KiB used")
    rows = page.locator(".vg-grid-row").locator("visible=true")
    cells = [row.locator("span").all_text_contents() for row in rows.all()]
    assert [int(row[0]) for row in cells] == [a - base for a in addresses]
    assert [row[3] for row in cells] == (
        ["W: record", "x: record"] if no_alloc else ["W: record and 24 B of data", "x: record and 12 B of data"]
    )
    assert [row[2] for row in cells] == (["0", "0"] if no_alloc else ["8 B", "4 B"])
    go(page, steps_of(trace, TensorCreated)[0])
    expect(rows).to_have_count(1)
    expect(page.get_by_label("Which context")).to_contain_text("follow the step")


def test_the_threads_are_summed_up_and_a_bar_selects_its_node(two: Trace, tmp_path: Path, open_page: OpenPage) -> None:
    step = steps_of(two, NodeEnd)[20]
    page = alone(two, "threads", tmp_path, open_page, step)
    tracks = two.tracks()
    thread = tracks.track("thread")
    row = int(np.searchsorted(thread["a"], step, side="right")) - 1
    mine = thread["eval"] == thread["eval"][row]
    worked = float((thread["end_ns"] - thread["begin_ns"])[mine].sum())
    whole = float((thread["end_ns"] + thread["wait_ns"])[mine].max())
    expect(said(page)).to_contain_text(re.compile(rf"2 threads busy {round(100 * worked / 2 / whole)} % of "))
    longest = int(np.argmax(np.where(mine, thread["wait_ns"], -1)))
    expect(said(page)).to_contain_text(f"thread {thread['thread'][longest]} after ")
    walk(page)
    name = tracks.string(int(tracks["tensor.name"][thread["tensor"][row]]))
    assert card(page)[""] == name
    follow = page.get_by_role("button", name="Follow the step")
    expect(follow).to_be_disabled()
    box = page.locator(".vg-detail .vg-canvas").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 200, box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] + 260, box["y"] + 50, steps=3)
    page.mouse.up()
    follow.click()
    expect(follow).to_be_disabled()


def test_a_bar_tells_its_chunks_and_how_its_thread_was_found(tmp_path: Path, open_page: OpenPage) -> None:
    g, a = GraphId(0), TensorId(0)
    trace = trace_of(
        ComputeBegin(g, 1, 2),
        NodeBegin(g, a, 0, 0),
        NodeBegin(g, a, 1, 1000),
        WorkTaken(g, a, 1, False),
        NodeEnd(g, a, 0, 4000),
        NodeEnd(g, a, 1, 3000),
        ChunksTaken(g, a, -1, 4, 64, 1, True, (3, 1)),
        BarrierWait(g, a, 1, 1000),
        ComputeEnd(g, 4000),
    )
    page = alone(trace, "threads", tmp_path, open_page, 2)
    expect(said(page)).to_contain_text("2 threads busy 75 % of 4 us")
    expect(said(page)).to_contain_text("13 % waiting at barriers; longest wait 1 us: thread 1 after tensor 0")
    expect(said(page)).to_contain_text("woken from sleep 1 time")
    walk(page)
    told = card(page)
    assert (told["thread"], told["began"], told["worked"], told["waited"]) == ("1", "1 us", "2 us", "1 us")
    assert told["taken up"] == "woken from sleep"
    assert told["chunks taken"] == "1 of the product's 4"
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("tensor=0"))


def test_the_allocator_counts_down_and_the_graph_does_not(tmp_path: Path, open_page: OpenPage) -> None:
    """`x * x + x` reads x three times: nothing is counted before the plan, and nobody is left when x is freed."""
    c = ggml.Context(mem_size=1 << 20, no_alloc=True)
    x = c.new_tensor("F32", (4,), name="x")
    g = ggml.Graph(c)
    g.build_forward_expand(ggml.add(c, ggml.mul(c, x, x), x))
    galloc = ggml.GraphAllocator(ggml.cpu_buffer_type())
    with record() as trace:
        galloc.reserve(g)
    page = alone(trace, "counts", tmp_path, open_page, steps_of(trace, ReserveBegin)[0])
    row = page.locator(".vg-row").filter(has_text=re.compile("^x"))
    expect(row).to_have_text(re.compile(r"^x3––"))
    go(page, steps_of(trace, TensorFreed)[0])
    expect(row).to_have_text(re.compile(r"^x300"))


def test_the_free_list_follows_the_search(tmp_path: Path, open_page: OpenPage) -> None:
    """The first tensor of a plan finds one endless block: it is looked at, and chosen as the last one."""
    with record() as trace:
        ctx = ggml.Context(mem_size=1 << 20, no_alloc=True)
        a, b = (ctx.new_tensor("F32", (40,), name=name) for name in ("a", "b"))
        g = ggml.Graph(ctx)
        g.build_forward_expand(ggml.add(ctx, a, b).set_name("sum"))
        ggml.GraphAllocator(ggml.cpu_buffer_type()).alloc_graph(g)
    chosen = steps_of(trace, BlockChosen)
    page = alone(trace, "free", tmp_path, open_page, chosen[1])
    rows = page.locator(".vg-grid-row").locator("visible=true")
    expect(rows).to_have_count(1)
    cells = rows.first.locator("span").all_text_contents()
    assert cells[:4] == ["0", "160", "to the end", "left over by a"]
    assert cells[4].startswith("chosen: ")


@pytest.mark.parametrize("detail", ["kv", "scratch", "reuse", "threads"])
def test_each_says_how_to_get_what_is_not_there(detail: str, tmp_path: Path, open_page: OpenPage) -> None:
    with record() as trace:
        ggml.Context(mem_size=1 << 10, no_alloc=True)
    page = alone(trace, detail, tmp_path, open_page, len(trace) - 1)
    empty = page.locator(".vg-detail .vg-empty")
    expect(empty).to_be_visible()
    expect(empty).to_contain_text(re.compile(r"decode|graph_plan"))
