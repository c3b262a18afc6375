"""The routing of experts in real Chromium, read as a person reads it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_details import alone, card, go, said, walk
from tests.browser.test_player_events import steps_of
from tests.llama.made import Shape, write
from vizggml.events import ExpertsRouted
from vizggml.llama.model import load_model
from vizggml.timeline.record import record
from vizggml.timeline.trace import Trace

OpenPage = Callable[..., Page]
A_LAYER = 16 * 3 * 64 * 96 * 2
"""16 experts, each of three matrices of 64 x 96 values of 2 bytes: 576 KiB."""


@pytest.fixture(scope="module")
def routed(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """Twelve tokens through two layers, then one more: each of 2 of 16 experts."""
    shape = Shape("qwen3moe", n_layer=2, n_expert=16, n_expert_used=2)
    model = load_model(write(tmp_path_factory.mktemp("routing") / "m.gguf", shape, seed=2))
    ctx = model.context(n_ctx=64, n_threads=1)
    with record() as trace:
        ctx.decode(range(1, 13))
        ctx.decode([13])
    model.close()
    return trace


def events(trace: Trace) -> list[ExpertsRouted]:
    return [e for e in trace.events if isinstance(e, ExpertsRouted)]


def size(n: int) -> str:
    return f"{n / 1024:g} KiB"


def test_a_layer_at_a_time_by_pointer_and_by_keys(routed: Trace, tmp_path: Path, open_page: OpenPage) -> None:
    steps, told = steps_of(routed, ExpertsRouted), events(routed)
    first = told[0]
    read = size(first.n_read * A_LAYER // 16)
    page = alone(routed, "routing", tmp_path, open_page, steps[0])
    expect(said(page)).to_contain_text(f"layer 0: {first.n_read} of 16 experts read, {100 * first.n_read / 16:.0f} %")
    expect(said(page)).to_contain_text("12 tokens, 2 experts each; evaluation 0")
    expect(page.locator(".vg-sentence")).to_contain_text("each of 12 tokens goes to 2 of 16 experts")
    facts = page.get_by_label("Of these experts")
    expect(facts).to_contain_text(f"{first.n_read} of 16 experts: {read} of 576 KiB")
    expect(facts).to_contain_text(f"1 of 2 layers so far: {read} of 576 KiB")
    loads = [first.experts.count(e) for e in range(16)]
    busiest = max(range(16), key=lambda e: loads[e])
    expect(facts).to_contain_text(f"expert {busiest}: {max(loads)} of 12 tokens; 1.5 if all had as many")

    walk(page)
    least = min(first.experts)
    assert card(page) == {
        "": f"expert {least}",
        "has": f"{loads[least]} of 12 tokens",
        "bytes": "36 KiB, read",
    }
    page.keyboard.press("Escape")

    box = page.locator(".vg-detail .vg-canvas").bounding_box()
    assert box is not None
    left = 118 if box["width"] > 460 else 84
    found = {}
    for y in range(int(box["y"]) + 60, int(box["y"] + box["height"]), 5):
        page.mouse.move(box["x"] + left + (first.experts[0] + 0.5) * (box["width"] - left - 12) / 16, y)
        if page.locator(".vg-tip").is_visible():
            shown = card(page)
            found[shown.get("token", "")] = shown.get("weight", "")
    assert found["at position 0"] == f"{first.weights[0]:.3f}, choice 1 of 2"
    others = [t for t in range(12) if first.experts[0] not in first.experts[2 * t : 2 * t + 2]]
    assert {found[f"at position {t}"] for t in others} == {"not chosen"}
    assert len(found) == 13


def test_the_layer_is_chosen_or_follows_the_step(routed: Trace, tmp_path: Path, open_page: OpenPage) -> None:
    steps, told = steps_of(routed, ExpertsRouted), events(routed)
    page = alone(routed, "routing", tmp_path, open_page, steps[0] - 1)
    expect(page.get_by_text("No token has been sent to an expert at this step.")).to_be_visible()
    go(page, steps[1])
    expect(said(page)).to_contain_text("layer 1: 2 of 16 experts read, 13 % of bytes")
    expect(said(page)).to_contain_text("1 of 12 tokens, whose logits are wanted")
    page.get_by_label("Which layer").select_option("layer 0")
    expect(said(page)).to_contain_text(f"layer 0: {told[0].n_read} of 16 experts read")
    go(page, steps[2] - 1)
    expect(said(page)).to_contain_text("of evaluation 0: not yet routed in this one")
    go(page, steps[2])
    expect(said(page)).to_contain_text("1 token, 2 experts each; evaluation 1")
    expect(page.get_by_label("Of these experts")).to_contain_text("one token: each of its experts has it")
    go(page, steps[3])
    expect(said(page)).to_contain_text("layer 0: 2 of 16")
    page.get_by_label("Which layer").select_option("newest layer")
    expect(said(page)).to_contain_text("layer 1: 2 of 16")


def test_a_narrow_pane_keeps_the_grid(routed: Trace, tmp_path: Path, open_page: OpenPage) -> None:
    page = alone(routed, "routing", tmp_path, open_page, steps_of(routed, ExpertsRouted)[0])
    page.set_viewport_size({"width": 320, "height": 480})
    expect(page.get_by_label("Of these experts")).to_be_hidden()
    box = page.locator(".vg-detail .vg-canvas").bounding_box()
    assert box is not None
    assert box["width"] > 250
    assert box["height"] > 120
    walk(page)
    assert "tokens" in card(page)["has"]
