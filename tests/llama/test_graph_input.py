"""When a standing graph may be used again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.llama.building import listening, parts, ubatch_of
from vizggml.events import GraphId, ReuseChecked
from vizggml.llama.kv_cache import MemoryContext


@pytest.mark.parametrize(
    ("n_tokens", "n_outputs", "n_kv", "fails"),
    [
        (4, 1, 256, []),
        (5, 1, 256, [("params", "ubatch.n_tokens", "4", "5"), ("params", "ubatch.n_seqs", "4", "5")]),
        (4, 2, 256, [("params", "n_outputs", "1", "2")]),
        (4, 1, 512, [("InputAttnKV", "kq_mask.ne[0]", "256", "512")]),
    ],
)
def test_each_condition_is_told_with_both_values(
    small: Path, n_tokens: int, n_outputs: int, n_kv: int, fails: list[tuple[str, str, str, str]]
) -> None:
    model = parts(small, n_ctx=512)
    res = model.build(ubatch_of(4), 256, 1)
    assert res.params is not None
    new = replace(
        res.params,
        ubatch=ubatch_of(n_tokens, pos=4),
        n_outputs=n_outputs,
        mctx=MemoryContext(model.kv, tuple(range(4, 4 + n_tokens)), n_kv),
    )
    with listening(ReuseChecked) as seen:
        assert res.can_reuse(new) == (not fails)
    told = [e for e in seen if isinstance(e, ReuseChecked)]
    assert [(e.owner, e.condition, e.had, e.needs) for e in told if not e.ok] == fails
    assert {e.graph for e in told} == {res.gf.id}


def test_all_conditions_in_the_pins_order(small: Path) -> None:
    model = parts(small, n_ctx=512)
    res = model.build(ubatch_of(1), 256, 1)
    assert res.params is not None
    with listening(ReuseChecked) as seen:
        assert res.can_reuse(res.params)
    assert [(e.owner, e.condition) for e in seen if isinstance(e, ReuseChecked)] == [
        ("params", "ubatch.equal_seqs"),
        ("params", "ubatch.n_tokens"),
        ("params", "ubatch.n_seq_tokens"),
        ("params", "ubatch.n_seqs"),
        ("params", "ubatch.n_seqs_unq"),
        ("params", "n_outputs"),
        ("params", "cparams.embeddings"),
        ("params", "cparams.causal_attn"),
        ("params", "arch"),
        ("params", "gtype"),
        ("params", "cvec"),
        ("params", "loras"),
        ("InputEmbd", "tokens.ne[0]"),
        ("InputPos", "pos.ne[0]"),
        ("InputAttnKV", "k_idxs.ne[0]"),
        ("InputAttnKV", "kq_mask.ne[0]"),
        ("InputAttnKV", "kq_mask.ne[1]"),
        ("InputAttnKV", "kq_mask.ne[2]"),
        ("InputAttnKV", "kq_mask.ne[3]"),
        ("InputOutIds", "n_outputs"),
    ]


def test_a_group_that_differs_ends_the_questions(small: Path) -> None:
    """`allow_reuse` never reaches its last group, and no input is asked, when the ubatch differs."""
    model = parts(small, n_ctx=512)
    res = model.build(ubatch_of(1), 256, 1)
    assert res.params is not None
    with listening(ReuseChecked) as seen:
        assert not res.params.allow_reuse(replace(res.params, ubatch=ubatch_of(2)), GraphId(0))
    assert [e.condition for e in seen if isinstance(e, ReuseChecked)][-1] == "ubatch.n_seqs_unq"


def test_a_reused_graph_takes_the_new_cells(small: Path) -> None:
    model = parts(small, n_ctx=512)
    res = model.build(ubatch_of(1), 256, 1)
    assert res.params is not None
    mctx = MemoryContext(model.kv, (77,), 256)
    assert res.can_reuse(replace(res.params, mctx=mctx))
    assert any(getattr(inp, "mctx", None) is mctx for inp in res.inputs)
