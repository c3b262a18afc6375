"""The pane of a block, in a real browser: a person reads its bytes, its fields and its error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_details import alone
from vizggml import ggml
from vizggml.ggml import quants
from vizggml.timeline.record import record
from vizggml.timeline.trace import Trace

OpenPage = Callable[..., Page]
X = np.sin(np.arange(256, dtype=np.float32)).reshape(2, 128)


@pytest.fixture(scope="module")
def trace() -> Trace:
    with record() as trace:
        c = ggml.Context(1 << 16, no_alloc=True)
        w = c.new_tensor("Q4_1", (128, 2), "W")
        quants.quantize("Q4_1", X, tensor=w.id)
        c.new_tensor("F32", (4,), "other")
    return trace


def test_a_block_is_read(trace: Trace, tmp_path: Path, open_page: OpenPage) -> None:
    raw = quants.quantize("Q4_1", X)[0]
    told = [i for i, text in enumerate(trace.sentences()) if text.startswith("Block ")]
    page = alone(trace, "block", tmp_path, open_page, told[0])
    pane = page.locator(".vg-block")
    expect(pane).to_contain_text("block 0, encoded as Q4_1: 32 elements in 20 bytes, 5 bits each")
    expect(pane.get_by_label("Bytes").locator("span")).to_have_text([f"{byte:02x}" for byte in raw[:20].tolist()])
    block = quants.open_block("Q4_1", raw[:20])
    expect(pane.get_by_label("Codes").locator("span")).to_have_text([str(code) for code in block.codes.tolist()])
    expect(pane.locator(".vg-block-fields")).to_contain_text("bytes 4–19")
    rms = float(np.sqrt(np.mean((block.values - X[0, :32]).astype(np.float64) ** 2)))
    expect(pane).to_contain_text(f"root mean square {rms:.4g}"[:24])
    first = pane.get_by_label("Codes").locator("span").first
    assert str(first.get_attribute("title")).startswith(f"element 0: code {block.codes[0]}, value ")
    page.keyboard.press("ArrowRight")
    expect(pane).to_contain_text("block 1, encoded as Q4_1")
    pane.get_by_role("button", name="The block before").click()
    expect(pane).to_contain_text("block 0, encoded as Q4_1")
    expect(pane.get_by_role("button", name="The block before")).to_be_disabled()


def test_rows_of_no_tensor_have_blocks_too(tmp_path: Path, open_page: OpenPage) -> None:
    with record() as trace:
        raw = quants.quantize("Q4_1", X)[0]
    page = alone(trace, "block", tmp_path, open_page, len(trace) - 2)
    pane = page.locator(".vg-block")
    expect(pane).to_contain_text("rows of no tensor")
    expect(pane).to_contain_text("block 0, encoded as Q4_1")
    expect(pane.get_by_label("Bytes").locator("span")).to_have_text([f"{byte:02x}" for byte in raw[:20].tolist()])


def test_before_there_is_one_it_says_how_to_get_it(trace: Trace, tmp_path: Path, open_page: OpenPage) -> None:
    page = alone(trace, "block", tmp_path, open_page, 0)
    expect(page.locator(".vg-block .vg-empty")).to_contain_text("vg.record(values=True)")
    page.keyboard.press("End")
    expect(page.locator(".vg-block .vg-empty")).to_be_hidden()


def test_a_narrow_pane_keeps_each_field_on_its_line(trace: Trace, tmp_path: Path, open_page: OpenPage) -> None:
    page = alone(trace, "block", tmp_path, open_page, len(trace) - 1)
    page.set_viewport_size({"width": 480, "height": 800})
    lefts = "[...document.querySelectorAll('.vg-block-fields i')].map((i) => i.getBoundingClientRect().left)"
    expect(page.locator(".vg-block-says").first).to_be_hidden()
    assert len(set(page.evaluate(lefts))) == 1
    expect(page.locator(".vg-block-fields")).to_contain_text("bytes 4–19")
