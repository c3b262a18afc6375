"""Still figures of the cache, scratch, the arena and the threads: their words and boxes, read out of the SVG."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from tests.llama.building import decode_two_sequences
from tests.oracle import LIB, Real
from tests.timeline.made import trace_of
from tests.views.test_pictures import SVG, step_of, words
from vizggml import ggml
from vizggml.events import (
    BarrierWait,
    ComputeBegin,
    ComputeEnd,
    GraphId,
    NodeBegin,
    NodeEnd,
    TensorId,
)
from vizggml.llama.batch import Batch, split
from vizggml.llama.cparams import ContextParams, CParams
from vizggml.llama.kv_cache_iswa import create_memory
from vizggml.llama.model import load_model
from vizggml.timeline.record import record
from vizggml.timeline.tracks import Tracks
from vizggml.views.kv import LEFT, WIDE, cache_at, caches_at
from vizggml.views.pictures import picture
from vizggml.views.svg import Svg


@pytest.fixture(scope="module")
def two() -> Tracks:
    """Five tokens of sequence 0, three of sequence 1, two of the first removed, one more of the second."""
    model = load_model("tiny")
    context = model.context(n_ctx=256, n_seq_max=2, flash_attn=True, n_threads=1)
    with record() as trace:
        decode_two_sequences(context)
    model.close()
    return trace.tracks()


def rects(svg: Svg, name: str) -> list[ET.Element]:
    return [r for r in ET.fromstring(svg).iter(f"{SVG}rect") if name in (r.get("class") or "").split()]


def test_the_cache_holds_both_sequences(two: Tracks) -> None:
    """7 of 8 tokens' cells stand, in 4 layers of 128 F16 values for K and for V: 2 KiB a cell."""
    last = len(two) - 1
    text = words(picture(two, "kv", last))
    assert "7 of 256 cells taken, 14 KiB of 512 KiB; in each layer 4 query heads read 2 KV heads" in text
    assert {"sequence 0", "sequence 1"} <= set(text)
    assert [int(t) for t in text[text.index("pos") + 1 :] if t.isdigit()][:7] == [0, 3, 3, 4, 0, 1, 2]
    cache = cache_at(two, last)
    assert cache is not None
    assert cache.seq[:9].tolist() == [0, 1, -1, 0, 0, 1, 1, 1, -1]
    assert cache.slot == [(1, 1)]
    assert not cache.pending.any()


def test_what_the_evaluation_writes_is_empty_until_its_layer_has_written_it(two: Tracks) -> None:
    """K and V come layer by layer: after the 3rd write of the 3 tokens, K of 2 layers and V of one is there."""
    names = [k["name"] for k in two.meta["kinds"]]
    written = [i for i, k in enumerate(two["ev.kind"].tolist()) if names[k] == "KvWritten" and i >= two.opening]
    cache = cache_at(two, written[8 + 2])
    assert cache is not None
    assert cache.slot == [(5, 3)]
    assert cache.pending.tolist() == [[False, False, True, True], [False, True, True, True]]
    drawn = [r for r in rects(picture(two, "kv", written[8 + 2]), "page") if r.get("x") is not None]
    assert len(drawn) == 2 + 3


@pytest.fixture(scope="module")
def windows() -> Tracks:
    """Layer 3 sees everything, layers 0 to 2 the last 40 positions: 384 tokens, 64 at a time."""
    model = load_model("tiny")
    hparams = replace(model.hparams, n_swa=40, swa_layers=(True, True, True, False))
    cparams = CParams.resolve(ContextParams(n_ctx=768, n_ubatch=64, swa_full=False), hparams)
    with record() as trace:
        memory = create_memory(hparams, cparams, ggml.cpu_buffer_type())
        for first in range(0, 384, 64):
            for ubatch in split(Batch.of([5] * 64, first), 64):
                for met in memory.init_batch([ubatch]) or []:
                    met.apply(ubatch)
    memory.free()
    model.close()
    return trace.tracks()


def test_of_two_caches_both_are_drawn(windows: Tracks) -> None:
    """The one with a window has 40 + 64 cells, to a multiple of 256: position 256 is in cell 0 again. Of the positions
    that it holds, 128 to 383, the newest sees the last 40."""
    whole, narrow = caches_at(windows, len(windows) - 1)
    assert (whole.n_cells, narrow.n_cells) == (768, 256)
    assert not whole.left.any()
    assert sorted(narrow.pos[~narrow.left].tolist()) == list(range(344, 384))
    figure = picture(windows, "kv", len(windows) - 1)
    text = words(figure)
    assert "Layer 3 sees every position: 384 of 768 cells taken, 192 KiB of 384 KiB" in text
    assert "Layers 0 to 2 see the last 40 positions: 256 of 256 cells taken, 384 KiB of 384 KiB" in text
    assert [int(t) for t in text[text.index("pos", text.index("cell")) + 1 :] if t.isdigit()][:3] == [256, 280, 300]
    pale = [float(r.get("width", 0)) for r in rects(figure, "page") if r.get("opacity")]
    assert sum(pale) == pytest.approx(2 * 216 / 256 * WIDE, abs=1)


def test_where_a_run_of_positions_begins_it_is_told(windows: Tracks) -> None:
    """Cell 128 holds the oldest, 128, after 383: above it stands its number, though no round one."""
    figure = picture(windows, "kv", len(windows) - 1)
    at = {t.text: float(t.get("x", 0)) for t in ET.fromstring(figure).iter(f"{SVG}text") if t.get("class") == "name on"}
    assert at["128"] == pytest.approx(LEFT + 128 * WIDE / 256 + 2, abs=0.1)


@pytest.mark.parametrize("no_alloc", [True, False])
def test_the_arena_lists_the_offsets_of_ggml(no_alloc: bool) -> None:
    real = Real(1 << 14, no_alloc)
    base = LIB.ggml_get_mem_buffer(real.ctx)
    addresses = [real.new_tensor("F32", ne, "t") for ne in ((3, 2), (3,))]
    used = real.used_mem()
    real.free()
    with record() as trace:
        ctx = ggml.Context(mem_size=1 << 14, no_alloc=no_alloc)
        for ne in ((3, 2), (3,)):
            ctx.new_tensor("F32", ne, name="t")
    svg = picture(trace.tracks(), "arena")
    text = words(svg)
    rows = text[text.index("what it is") + 1 :]
    assert [int(offset) for offset in rows[::4]] == [a - base for a in addresses]
    assert any(f"{100 * used / (1 << 14):.1f} %; 2 objects" in line for line in text)
    scale = 680 / (1 << 14)
    assert [float(r.get("x", "")) for r in rects(svg, "f0")] == [
        pytest.approx((a - base - 32) * scale, abs=0.01) for a in addresses
    ]


def test_reuse_gives_its_verdict(two: Tracks) -> None:
    """No graph stands at first; then 5 tokens became 3, and 3 became 1."""
    verdicts = [step_of(two, "ReuseDecided", n) for n in range(3)]
    first, second, third = (words(picture(two, "reuse", step)) for step in verdicts)
    assert {"built anew: no graph stands", "No condition was asked."} <= set(first)
    assert any(text.startswith("built anew: ubatch.n_tokens 5 → 3") for text in second)
    assert any(text.startswith("built anew: ubatch.n_tokens 3 → 1") for text in third)
    cells = second[second.index("holds") + 1 :]
    assert cells[:5] == ["context", "has outputs", "True", "True", "yes"]
    assert any(text.startswith("asking: ") for text in words(picture(two, "reuse", verdicts[1] - 1)))


def test_scratch_names_the_largest() -> None:
    """64 activations as Q8_0 take 68 bytes, 256 take 272: to multiples of 64, 128 and 320."""
    with record() as trace:
        ctx = ggml.Context(mem_size=1 << 20, no_alloc=True)
        pairs = [(ctx.new_tensor("Q8_0", (n, 8)), ctx.new_tensor("F32", (n,))) for n in (256, 64)]
        first, second = (ggml.mul_mat(ctx, w, x).set_name(name) for (w, x), name in zip(pairs, ("a", "b"), strict=True))
        g = ggml.Graph(ctx)
        g.build_forward_expand(ggml.add(ctx, first, second))
        ggml.graph_plan(g, n_threads=2)
    tracks = trace.tracks()
    text = words(picture(tracks, "scratch", step_of(tracks, "PlanEnd")))
    assert "a 320 B" in text
    assert text[text.index("maximum") + 1 :][:8] == ["a", "2", "320 B", "320 B", "b", "2", "128 B", "320 B"]


def test_the_threads_are_summed_up() -> None:
    """Of 2 x 100 ns thread 0 works 40 and 60, thread 1 35 and 20; it waits 5 and then 40."""
    g, a, b = GraphId(0), TensorId(0), TensorId(1)
    tracks = trace_of(
        ComputeBegin(g, 2, 2),
        *(NodeBegin(g, a, 0, 0), NodeBegin(g, a, 1, 0), NodeEnd(g, a, 0, 40), NodeEnd(g, a, 1, 35)),
        BarrierWait(g, a, 1, 5),
        *(NodeBegin(g, b, 0, 40), NodeEnd(g, b, 0, 100)),
        *(NodeBegin(g, b, 1, 40), NodeEnd(g, b, 1, 60), BarrierWait(g, b, 1, 40)),
        ComputeEnd(g, 100),
    ).tracks()
    text = words(picture(tracks, "threads"))
    assert "2 threads busy 78 % of 100 ns; longest wait 40 ns: thread 1 after tensor 1" in text
    assert {"thread 0", "thread 1"} <= set(text)


@pytest.mark.parametrize("name", ["kv", "scratch", "threads"])
def test_each_says_when_there_is_nothing(name: str) -> None:
    with record() as trace:
        ggml.Context(mem_size=1 << 10, no_alloc=True)
    tracks = trace.tracks()
    assert any(text.startswith(("No ", "Nothing ")) for text in words(picture(tracks, name, 0)))
