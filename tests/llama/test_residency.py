"""Weights arrive when they are used: layer after layer, and what is not used never."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from tests.ggml.seen import seen
from vizggml.errors import VizggmlError
from vizggml.events import LayerResident, PagesResident
from vizggml.llama.model import load_model
from vizggml.llama.models import resolve_model
from vizggml.llama.residency import layer_residency, pages_watched


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """The tiny model written page by page, so that the system has no huge page of it to map along."""
    path = tmp_path / "tiny.gguf"
    with path.open("wb", buffering=0) as copy:
        data = resolve_model("tiny").read_bytes()
        for first in range(0, len(data), 4096):
            copy.write(data[first : first + 4096])
    return path


def test_a_decode_step_pulls_its_layers_in_one_after_the_other(tiny: Path) -> None:
    model = load_model(tiny)
    ctx = model.context(n_ctx=256, n_ubatch=32, fast=False)
    page = model.gguf.mapped.residency().page_size
    before = layer_residency(model.gguf)
    assert [before[f"blk.{il}"].pages for il in range(4)] == [0, 0, 0, 0]
    with pages_watched(ctx, model.gguf.mapped), seen() as events:
        ctx.decode([5])
    told = events.of(PagesResident)
    names = [t.name for t in ctx.gf_res_prev_active.gf.nodes] if ctx.gf_res_prev_active else []
    ends = [n for n in names if n.startswith("l_out-") or n == "result_output"]
    assert ends == ["l_out-0", "l_out-1", "l_out-2", "l_out-3", "result_output"]
    assert len(told) == len(ends)
    pages = [e.pages for e in told]
    after = layer_residency(model.gguf)
    # at least the layer's own pages arrive between two ends; the system may map some ahead
    assert pages == sorted(pages)
    assert all(b > a for a, b in itertools.pairwise(pages[:4]))
    assert all(after[f"blk.{il}"].pages == after[f"blk.{il}"].of for il in range(4))
    assert {(e.buffer, e.page_size) for e in told} == {(model.gguf.mapped.id, page)}
    assert ctx.after_node is None
    with pages_watched(ctx, model.gguf.mapped):
        ctx.decode([6])
    model.close()


def test_each_layer_tells_when_its_pages_came(tiny: Path) -> None:
    model = load_model(tiny)
    ctx = model.context(n_ctx=256, n_ubatch=32, fast=False)
    with pages_watched(ctx, model.gguf.mapped, model.gguf), seen() as events:
        ctx.decode([5])
    told = events.of(LayerResident)
    whole = [next(i for i, e in enumerate(told) if e.name == f"blk.{il}" and e.pages == e.of) for il in range(4)]
    assert whole == sorted(whole)
    first = {e.name: e for e in reversed(told)}["blk.2"]
    offsets = [t.offset for name, t in model.gguf.tensors.items() if name.startswith("blk.2.")]
    assert first.file_offset == model.gguf.data_offset + min(offsets)
    assert (first.pages, first.buffer) == (0, model.gguf.mapped.id)
    model.close()


def test_weights_that_nothing_reads_never_arrive(tiny: Path) -> None:
    """Of the layers on the device the file's pages were read once, to copy them; of the others none."""
    model = load_model(tiny)
    model.context(n_ctx=256, n_ubatch=32, n_gpu_layers=2)
    found = layer_residency(model.gguf)
    # the system maps at most 16 pages around one that is touched: those next to the embedding and to layer 2
    assert found["blk.0"].pages < 16
    assert found["blk.1"].pages < 16
    assert found["blk.1"].of > 100
    assert found["blk.3"].pages == found["blk.3"].of
    with pytest.raises(VizggmlError, match=r"bytes 5 to 4 are not in the file"):
        model.gguf.mapped.resident(5, 4)
    model.close()
