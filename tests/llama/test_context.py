"""Contexts: the memory they plan, the decode loop, reuse, failures, generation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.llama.building import golden, listening, ubatch_of
from tests.llama.made import Shape, write
from tests.llama.oracle import wheel
from vizggml.errors import VizggmlError
from vizggml.events import (
    CellFreed,
    DecodeBegin,
    DecodeEnd,
    Event,
    GraphCreated,
    KvWritten,
    LogitsReady,
    NodeEnd,
    ReuseChecked,
    ReuseDecided,
    SamplerApplied,
    Tokenized,
    TokenSampled,
    TokensHeld,
)
from vizggml.ggml.tensor import Tensor
from vizggml.llama.batch import Batch
from vizggml.llama.context import Context
from vizggml.llama.kv_cache import MemoryContext
from vizggml.llama.model import Model, load_model

BUFFERS = [run for run in golden("llama_buffers.json") if run["type_kv"] == "F16"]
GRAPHS = golden("llama_graphs.json.gz")


def label(run: dict[str, Any]) -> str:
    return f"{run['model']}-{run['n_ctx']}-{run['n_ubatch']}-{'flash' if run['flash_attn'] else 'plain'}"


@pytest.fixture(scope="module")
def small_model(small: Path) -> Model:
    return load_model(small)


def context(model: Model, **params: Any) -> Context:
    return model.context(**{"n_ctx": 256, "n_threads": 1, "fast": False, **params})


def nmse(a: NDArray[np.float32], b: NDArray[np.float32]) -> float:
    return float(((a.astype(np.float64) - b) ** 2).sum() / (b.astype(np.float64) ** 2).sum())


@pytest.mark.parametrize("run", BUFFERS, ids=label)
def test_buffers_have_the_pins_sizes(run: dict[str, Any], request: pytest.FixtureRequest) -> None:
    model = load_model(request.getfixturevalue(run["model"]))
    ctx = model.context(n_ctx=run["n_ctx"], n_ubatch=run["n_ubatch"], flash_attn=run["flash_attn"])
    assert ctx.compute_buffer_size == run["compute"]
    assert len(ctx.gf_res_reserve.gf.nodes) == run["nodes"]
    assert ctx.sched.n_splits == 1
    assert [b.size for b in ctx.memory.buffers] == run["kv"]
    assert [b.size for b in model.weights.buffers] == run["mapped"]
    assert ctx.buf_output is not None
    assert round(ctx.buf_output.size / 2**20, 2) == run["output_mib"]


@pytest.mark.parametrize("case", GRAPHS, ids=lambda c: f"{label(c)}-{c['what']}")
def test_every_tensor_lies_where_the_pin_has_it(case: dict[str, Any], request: pytest.FixtureRequest) -> None:
    model = load_model(request.getfixturevalue(case["model"]))
    ctx = model.context(n_ctx=case["n_ctx"], n_ubatch=case["n_ubatch"], flash_attn=case["flash_attn"])
    ubatch = ubatch_of(case["tokens"])
    res = ctx.get_gf_res_prev(1)
    mctx = MemoryContext(ctx.memory, tuple(range(case["tokens"])), 256)
    ctx.build_graph(res, ctx.graph_params(ubatch, mctx, 1))
    ctx.sched.alloc_graph(res.gf)
    for t, node in zip(res.gf.nodes, case["nodes"], strict=True):
        if node[8] is not None:
            assert t.data is not None
            assert (t.name, t.data.offset) == (node[1], node[8])


@pytest.mark.parametrize("flash_attn", [True, False])
@pytest.mark.parametrize("n_ubatch", [512, 7])
def test_logits_are_llama_cpps_on_a_small_model(
    small_model: Model, small: Path, flash_attn: bool, n_ubatch: int
) -> None:
    tokens = [int(x) for x in np.random.default_rng(1).integers(0, 160, 40)]
    ours = context(small_model, flash_attn=flash_attn, n_ubatch=n_ubatch)
    settings = {"n_ctx": 256, "n_batch": 256, "n_ubatch": n_ubatch, "flash_attn_type": int(flash_attn)}
    with wheel().model(small) as native, native.context(**settings) as theirs:
        expected = theirs.decode(tokens[:30], [True] * 30)
        assert nmse(ours.decode(tokens[:30], range(30)), expected) < 1e-5
        for token in tokens[30:]:
            assert nmse(ours.decode([token]), theirs.decode([token])) < 1e-5


@pytest.mark.parametrize(
    "shape",
    [
        Shape("qwen3", n_head=3, n_head_kv=3, n_embd=96, tied=False),
        Shape("qwen3", head_dim=64, attn_bias=True),
        Shape("llama", attn_bias=True, rope_freqs=True, tied=False, type="F32"),
    ],
    ids=["qwen3", "qwen3-wide-heads", "llama-biases-factors"],
)
@pytest.mark.parametrize("flash_attn", [True, False])
def test_logits_are_llama_cpps_on_other_shapes(shape: Shape, flash_attn: bool, tmp_path: Path) -> None:
    path = write(tmp_path / "m.gguf", shape, seed=3)
    tokens = [int(x) for x in np.random.default_rng(2).integers(0, 160, 20)]
    ours = context(load_model(path), flash_attn=flash_attn)
    with wheel().model(path) as native, native.context(n_ctx=256, flash_attn_type=int(flash_attn)) as theirs:
        assert nmse(ours.decode(tokens, range(20)), theirs.decode(tokens, [True] * 20)) < 1e-5
        assert nmse(ours.decode([7]), theirs.decode([7])) < 1e-5


def test_only_the_outputs_asked_for_are_kept(small_model: Model) -> None:
    ctx = context(small_model, n_ubatch=4)
    every = ctx.decode([1, 2, 3, 4, 5, 6], range(6)).copy()
    ctx.memory.clear()
    some = ctx.decode([1, 2, 3, 4, 5, 6], [1, 4])
    assert some.shape == (2, 160)
    assert nmse(some, every[[1, 4]]) < 1e-9
    ctx.memory.clear()
    assert ctx.decode([1, 2], []).shape == (0, 160)


def test_sequences_do_not_see_each_other(small_model: Model) -> None:
    ctx = context(small_model, n_seq_max=2)
    alone = ctx.decode([5, 6, 7]).copy()
    ctx.memory.clear()
    batch = Batch()
    for pos, (a, b) in enumerate(zip([9, 8, 7], [5, 6, 7], strict=True)):
        batch.add(a, pos, (0,))
        batch.add(b, pos, (1,), pos == 2)
    assert nmse(ctx.decode(batch), alone) < 1e-9


def test_moved_positions_are_turned_before_the_next_decode(small_model: Model, small: Path) -> None:
    """Drop the first three of twelve tokens and move the rest down, as a context shift does; then decode one more."""
    tokens = list(range(20, 32))
    ours = context(small_model, flash_attn=True)
    native = wheel()
    with native.model(small) as other, other.context(n_ctx=256, flash_attn_type=1) as theirs:
        theirs.decode(tokens)
        ours.decode(tokens)
        memory = native.llama_get_memory(theirs.handle)
        native.llama_memory_seq_rm(memory, 0, 0, 3)
        native.llama_memory_seq_add(memory, 0, 3, -1, -3)
        ours.memory.seq_rm(0, 0, 3)
        ours.memory.seq_add(0, 3, -1, -3)
        theirs.n_past -= 3
        assert ours.n_past == theirs.n_past
        assert nmse(ours.decode([3]), theirs.decode([3])) < 1e-5
    assert not ours.memory.cells.has_shift


def test_a_decode_tells_its_begin_its_logits_and_its_end(small_model: Model) -> None:
    ctx = context(small_model)
    ctx.decode([1, 2])
    with listening(DecodeBegin, LogitsReady, DecodeEnd) as seen:
        logits = ctx.decode([3, 4, 5], [0, 2])
    begin, first, second, end = seen
    assert isinstance(begin, DecodeBegin)
    assert (begin.index, begin.n_tokens, begin.n_outputs, begin.pos) == (1, 3, 2, 2)
    assert isinstance(first, LogitsReady)
    assert isinstance(second, LogitsReady)
    assert (first.pos, second.pos) == (2, 4)
    assert first.ids == tuple(int(i) for i in np.argsort(-logits[0])[:10])
    assert second.logits == tuple(float(x) for x in np.sort(logits[1])[::-1][:10])
    weights = np.exp(logits[1].astype(np.float64))
    assert np.exp(second.logits[0] - second.log_sum) == pytest.approx(weights.max() / weights.sum())
    assert isinstance(end, DecodeEnd)
    assert (end.index, end.cause) == (1, begin.seq)
    assert end.ns > 0


def test_a_token_leads_back_to_the_text(small_model: Model) -> None:
    """Sampled by the last sampler, each after the one before it, from logits of a decode of the token before."""
    ctx = context(small_model)
    kinds = (Tokenized, DecodeBegin, LogitsReady, SamplerApplied, TokenSampled)
    with listening(*kinds) as seen:
        list(ctx.generate([3, 4], max_tokens=2, seed=1))
    by_seq = {e.seq: e for e in seen}
    at: Event | None = next(e for e in reversed(seen) if isinstance(e, TokenSampled))
    chain = []
    while at is not None:
        chain.append(type(at).__name__)
        at = by_seq.get(at.cause)
    once = ["TokenSampled", *["SamplerApplied"] * 5, "LogitsReady", "DecodeBegin"]
    assert chain == once * 2
    tiny = load_model("tiny")
    with listening(Tokenized, DecodeBegin) as seen:
        list(tiny.context(n_ctx=32).generate("Once", max_tokens=1))
    tiny.close()
    assert [(type(e), e.cause) for e in seen] == [(Tokenized, -1), (DecodeBegin, seen[0].seq)]


def test_a_snapshot_tells_the_text_so_far(small_model: Model) -> None:
    """The tokens that were decoded, with the one that waits; after a shift at their new positions."""
    ctx = context(small_model)
    assert list(ctx.snapshot()) == []
    stream = ctx.generate([3, 4, 5], max_tokens=4, temp=0.0)
    first, second = next(stream), next(stream)
    (held,) = ctx.snapshot()
    assert isinstance(held, TokensHeld)
    assert held.positions == (0, 1, 2, 3, 4)
    assert held.ids == (3, 4, 5, first.id, second.id)
    assert held.pieces[:3] == tuple(map(small_model.vocab.token_to_piece, (3, 4, 5)))
    ctx.memory.seq_rm(0, 0, 1)
    ctx.memory.seq_add(0, 1, -1, -1)
    (moved,) = ctx.snapshot()
    assert isinstance(moved, TokensHeld)
    assert (moved.positions, moved.ids) == ((0, 1, 2), (4, 5, first.id))


def test_a_graph_is_built_anew_for_the_condition_that_fails(small_model: Model) -> None:
    """Two tokens, then three: the number of tokens is asked first."""
    ctx = context(small_model)
    ctx.decode([1, 2])
    with listening(ReuseChecked, ReuseDecided, GraphCreated) as seen:
        ctx.decode([3, 4, 5])
    decided = next(e for e in seen if isinstance(e, ReuseDecided))
    refused = next(e for e in seen if isinstance(e, ReuseChecked) and not e.ok)
    assert (decided.reused, decided.cause) == (False, refused.seq)
    assert (refused.had, refused.needs) == ("2", "3")
    assert next(e for e in seen if isinstance(e, GraphCreated)).cause == decided.seq


def test_writes_into_the_cache_are_told_when_their_nodes_end(small_model: Model) -> None:
    ctx = context(small_model)
    ctx.decode([1, 2, 3, 4])
    ctx.memory.seq_rm(0, 2, -1)
    ctx.memory.seq_rm(0, 0, 1)
    with listening(NodeEnd, KvWritten) as seen:
        ctx.decode(Batch.of([7, 8, 9], 2))
    ends = {e.seq: e for e in seen if isinstance(e, NodeEnd)}
    told = [e for e in seen if isinstance(e, KvWritten)]
    # cells 0, 2 and 3 are free: two runs. A cell holds 2 KV heads of 16 elements in F16.
    expected = [(which, il, *run) for il in (0, 1) for which in "KV" for run in ((0, 1, 64), (2, 2, 128))]
    assert [(e.which, e.layer, e.cell, e.n_cells, e.nbytes) for e in told] == expected
    assert all(ends[e.cause].tensor == e.tensor and e.n_head_kv == 2 and e.type == "F16" for e in told)


def test_a_graph_is_reused_until_something_changes(small_model: Model) -> None:
    """Same shapes: reused. Another number of tokens, no outputs, or a grown cache: built again."""
    ctx = context(small_model, n_ctx=512)
    verdicts = []
    for tokens, outputs in [
        ([1] * 4, None),
        ([1], None),
        ([1], None),
        ([1], []),
        ([1], []),
        ([1], None),
        ([1] * 250, None),
    ]:
        with listening(ReuseDecided) as seen:
            ctx.decode(tokens, outputs)
        verdicts.append([(e.reused, e.why) for e in seen if isinstance(e, ReuseDecided)])
    assert verdicts == [
        [(False, "no graph stands")],
        [(False, "a condition does not hold")],
        [(True, "all conditions hold")],
        [(False, "the standing graph is the other one")],
        [(True, "all conditions hold")],
        [(False, "the standing graph is the other one")],
        [(False, "a condition does not hold")],
    ]
    assert ctx.n_reused == 2
    with listening(ReuseChecked) as seen:
        ctx.decode([1])
        ctx.decode([1])
    assert [(e.condition, e.had, e.needs) for e in seen if isinstance(e, ReuseChecked) and not e.ok] == [
        ("ubatch.n_tokens", "250", "1"),
        ("ubatch.n_seqs", "250", "1"),
    ]


def test_a_failure_in_the_middle_leaves_the_context_usable(small_model: Model) -> None:
    ctx = context(small_model, n_ubatch=4)
    expected = ctx.decode([1, 2, 3, 4, 5, 6]).copy()
    ctx.memory.clear()
    ctx.decode([1, 2])

    def interrupt(t: Tensor) -> None:
        if t.name == "ffn_inp-1" and ctx.n_past > 5:
            raise KeyboardInterrupt

    ctx.before_node = interrupt
    with listening(CellFreed) as seen, pytest.raises(KeyboardInterrupt):
        ctx.decode([3, 4, 5, 6, 7, 8, 9])
    assert [e.pos for e in seen if isinstance(e, CellFreed)] == [6, 7, 8]
    assert ctx.n_past == 6
    ctx.before_node = None
    ctx.memory.clear()
    assert np.array_equal(ctx.decode([1, 2, 3, 4, 5, 6]), expected)


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ([], "it has no tokens"),
        ([160], "token 0 is 160, the vocabulary has 0 to 159"),
        ([1] * 257, "257 tokens, the limit is n_batch 256"),
    ],
)
def test_a_batch_that_cannot_be_decoded_changes_nothing(small_model: Model, tokens: list[int], message: str) -> None:
    ctx = context(small_model)
    ctx.decode([1])
    with pytest.raises(VizggmlError, match=message):
        ctx.decode(tokens)
    assert ctx.n_past == 1


def test_a_full_cache_is_one_clear_error(small_model: Model) -> None:
    ctx = context(small_model)
    ctx.decode([1] * 250)
    with pytest.raises(VizggmlError, match="batch: 7 tokens, the cache has 6 of 256 free"):
        ctx.decode([1] * 7)
    assert ctx.n_past == 250


def test_generate_yields_the_likeliest_tokens_and_starts_afresh(small_model: Model) -> None:
    ctx = context(small_model)
    with listening(TokenSampled) as seen:
        first = list(ctx.generate([1, 2, 3], 5, temp=0))
    assert [(t.id, t.pos, t.p) for t in first] == [(e.token, e.pos, e.p) for e in seen if isinstance(e, TokenSampled)]
    assert [t.pos for t in first] == [3, 4, 5, 6, 7]
    assert ctx.stopped == "max_tokens"
    assert [t.id for t in ctx.generate([1, 2, 3], 5, temp=0)] == [t.id for t in first]
    by_hand = []
    ctx.memory.clear()
    logits = ctx.decode([1, 2, 3])
    for _ in range(5):
        by_hand.append(int(logits[0].argmax()))
        logits = ctx.decode(by_hand[-1:])
    assert by_hand == [t.id for t in first]


def test_what_is_kept_is_gone_on_from(small_model: Model) -> None:
    """The last token of a generation was not yet read; with it, a second one goes on as if there had been no break."""
    whole = [t.id for t in context(small_model).generate([1, 2, 3], 6, temp=0)]
    ctx = context(small_model)
    first = [t.id for t in ctx.generate([1, 2, 3], 2, temp=0)]
    assert first + [t.id for t in ctx.generate([first[-1]], 4, temp=0, keep=True)] == whole
    room = ctx.cparams.n_ctx - ctx.n_past
    with pytest.raises(VizggmlError, match=f"prompt: {room + 1} tokens after the 8 that it has, the context holds"):
        ctx.generate([1] * (room + 1), keep=True)


def test_a_seed_gives_the_same_text_again(small_model: Model) -> None:
    ctx = context(small_model)
    texts = [[t.id for t in ctx.generate([1, 2], 12, temp=1.0, seed=seed)] for seed in (3, 3, 4)]
    assert texts[0] == texts[1] != texts[2]


def test_generate_reads_a_long_prompt_in_batches_and_stops_when_the_context_is_full(small_model: Model) -> None:
    ctx = context(small_model, n_batch=100)
    with listening(DecodeBegin) as seen:
        tokens = list(ctx.generate([1] * 250, 50, temp=0))
    assert [(e.n_tokens, e.n_outputs) for e in seen if isinstance(e, DecodeBegin)][:3] == [(100, 0), (100, 0), (50, 1)]
    assert len(tokens) == 7
    assert ctx.stopped == "the context is full: 256 tokens"


def test_a_prompt_beyond_the_context_is_one_clear_error(small_model: Model) -> None:
    ctx = context(small_model)
    with pytest.raises(VizggmlError, match=r"prompt: 257 tokens, the context holds 256 \(n_ctx\)"):
        ctx.generate([1] * 257)
    with pytest.raises(VizggmlError, match="prompt: it has no tokens"):
        ctx.generate([])
    assert len(list(ctx.generate([1], 2))) == 2


def test_an_abandoned_generation_does_not_go_on_over_another(small_model: Model) -> None:
    ctx = context(small_model)
    old = ctx.generate([1, 2], 5, temp=0)
    first = next(old)
    assert next(ctx.generate([1, 2], 5, temp=0)).id == first.id
    with pytest.raises(VizggmlError, match="another generation has begun"):
        next(old)


def test_a_generation_stops_when_something_else_uses_its_context(small_model: Model) -> None:
    context = small_model.context(n_ctx=256)
    first, second = context.generate([1, 2], 5), context.generate([3, 4, 5], 5)
    next(second)
    with pytest.raises(VizggmlError, match="another generation has begun"):
        next(first)
    context.decode([7])
    with pytest.raises(VizggmlError, match="was left at position 3, something moved it to 4"):
        next(second)
    third = context.generate([1, 2], 5)
    context.decode([7])
    with pytest.raises(VizggmlError, match="was left at position 0, something moved it to 1"):
        next(third)


def test_an_unknown_parameter_is_refused(small_model: Model) -> None:
    with pytest.raises(VizggmlError, match="context has no parameter n_layers; it has n_ctx"):
        small_model.context(n_layers=3)


def test_the_textbook_way_differs_only_by_rounding(small_model: Model) -> None:
    """F32 activations instead of F16 ones: not the same bits, but the same numbers to F16's precision."""
    tokens = list(range(1, 20))
    ggmls, textbook = (context(small_model, textbook=x).decode(tokens).copy() for x in (False, True))
    assert not np.array_equal(ggmls, textbook)
    assert nmse(textbook, ggmls) < 1e-4
