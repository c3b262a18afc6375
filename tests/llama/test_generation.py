"""Texts longer than the context: what is kept, what is discarded, and that nothing piles up."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pytest

from tests.llama.building import listening
from tests.llama.oracle import wheel
from tests.llama.test_quantized_cache import nmse, settings
from vizggml.errors import VizggmlError
from vizggml.events import SeqOp
from vizggml.llama.generation import common_prefix
from vizggml.llama.model import Model, load_model
from vizggml.llama.models import resolve_model

N_CTX, N_KEEP = 256, 8


@pytest.fixture(scope="module")
def tiny() -> Model:
    return load_model("tiny")


def test_a_full_context_makes_room_as_by_hand(tiny: Model) -> None:
    """Of 255 tokens 8 stay, 123 of the other 247 go, and the last 124 move up by 123; then again 132 on."""
    ctx = tiny.context(n_ctx=N_CTX, n_threads=1)
    with listening(SeqOp) as seen:
        made = list(ctx.generate([1] * 200, 200, n_keep=N_KEEP, ignore_eos=True, temp=0))
    ops = [(e.op, e.p0, e.p1, e.delta) for e in seen if isinstance(e, SeqOp)][1:]
    assert ops == [("remove", 8, 131, 0), ("shift", 131, 255, -123)] * 2
    assert [t.pos for t in made] == [*range(200, 256), *range(133, 256), *range(133, 154)]
    assert (ctx.stopped, ctx.n_past) == ("max_tokens", 153)
    assert sorted(ctx.memory.caches[0].cells.pos[:].tolist())[-153:] == list(range(153))


def test_shifted_logits_are_llama_cpps(tiny: Model) -> None:
    """The wheel is shifted where we are, and given the tokens that we chose."""
    ctx, native = tiny.context(n_ctx=N_CTX, n_threads=1), wheel()
    prompt = [int(x) for x in np.random.default_rng(1).integers(3, 400, 250)]
    given = settings(n_ctx=N_CTX, type_k="F16", type_v="F16")
    with native.model(resolve_model("tiny")) as model, model.context(**given) as theirs:
        memory = native.llama_get_memory(theirs.handle)
        want, stream = theirs.decode(prompt), ctx.generate(prompt, 30, n_keep=N_KEEP, ignore_eos=True, temp=0)
        for token in stream:
            assert nmse(ctx.logits, want) < 1e-4
            if theirs.n_past == N_CTX - 1:
                native.llama_memory_seq_rm(memory, 0, 8, 131)
                native.llama_memory_seq_add(memory, 0, 131, 255, -123)
                theirs.n_past -= 123
            want = theirs.decode([token.id])
    assert theirs.n_past == 250 + 30 - 123


def test_nothing_piles_up_over_two_thousand_tokens(tiny: Model) -> None:
    """Sixteen shifts; after the first thousand tokens all that is allocated once has been. See bench/shifts.py."""
    ctx = tiny.context(n_ctx=N_CTX, n_threads=1)
    seen: dict[int, int] = {}
    for n, _ in enumerate(ctx.generate("Once upon a time", 2000, n_keep=N_KEEP, ignore_eos=True), 1):
        if n % 1000 == 0:
            gc.collect()
            seen[n] = int(Path("/proc/self/statm").read_text().split()[1]) * 4096
    assert seen[2000] - seen[1000] < 512 << 10


def test_no_token_ends_a_text_that_ignores_its_end(tiny: Model) -> None:
    ctx = tiny.context(n_ctx=N_CTX, n_threads=1)
    assert len(list(ctx.generate("Once upon a time", 400, n_keep=0, ignore_eos=True, seed=2))) == 400
    assert not any(tiny.vocab.is_eog(t.id) for t in ctx.generate("Once", 200, ignore_eos=True, temp=2.0))


@pytest.mark.parametrize("n_keep", [-1, N_CTX - 3])
def test_what_leaves_no_room_is_refused(n_keep: int, tiny: Model) -> None:
    with pytest.raises(VizggmlError, match=f"^n_keep {n_keep}: it must be from 0 to 252, the context holds 256$"):
        tiny.context(n_ctx=N_CTX).generate("Once", 5, n_keep=n_keep)


def test_common_prefix() -> None:
    assert common_prefix([1, 2, 3], [1, 2, 4, 5]) == 2
    assert common_prefix([1, 2], [1, 2, 4, 5]) == common_prefix([1, 2, 4], [1, 2]) == 2
    assert common_prefix([], [1]) == 0
