"""A plan explained: what the tensors at its peak are, and what it would be with other settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from vizggml.llama.cparams import ContextParams
from vizggml.llama.plan import Plan, Standing

LEAST_CTX = 256
FEWER = 4
"""The smaller ubatch that is tried is so many times smaller."""

WHAT = {
    "result_output": "logits: {0:,} for each of {1:,} tokens of the ubatch",
    "result_norm": "the last layer's output, normalized",
    "kq": "scores: each of {1:,} tokens against {0:,} cells, in {2:,} heads",
    "kq_soft_max": "scores as probabilities: {1:,} tokens against {0:,} cells, in {2:,} heads",
    "attn_inp_kq_mask": "which of {0:,} cells each of {1:,} tokens may see",
    "attn_inp_k_idxs": "the cells that the new keys go to",
    "attn_inp_v_idxs": "where in the cache the new values go",
    "inp_tokens": "the ids of {0:,} tokens",
    "inp_pos": "the positions of {0:,} tokens",
    "out_ids": "which {0:,} tokens want logits",
    "inp_embd": "room for embeddings given instead of ids",
    "embd": "the tokens' embeddings",
    "ffn_inp": "the residual, before the feed-forward",
    "l_out": "the residual, after the layer",
    "ffn_gate": "the feed-forward's gate",
    "ffn_up": "the feed-forward's wide part",
    "ffn_swiglu": "gate times up",
    "attn_norm": "the layer's input, normalized",
    "ffn_norm": "the feed-forward's input, normalized",
    "Qcur": "queries: {1:,} heads of {0:,} for each of {2:,} tokens",
    "Kcur": "keys: {1:,} heads of {0:,} for each of {2:,} tokens",
    "Vcur": "values: {1:,} heads of {0:,} for each of {2:,} tokens",
}
EXPERTS = "the experts' part: {0:,} numbers for each of {1:,} experts of {2:,} tokens"


def what_it_is(t: Standing) -> str:
    """What a tensor of a model's graph holds, with its own numbers; nothing for one without a known name."""
    name = t["name"].split(" ")[0].rpartition("-")[0] or t["name"].split(" ")[0]
    words = EXPERTS if name.startswith("ffn_moe_") else WHAT.get(name, "")
    if name in ("Qcur", "Kcur", "Vcur") and t["ne"][2] == 1:
        words = WHAT[name].split(":")[0] + ""
    return words.format(*t["ne"])


@dataclass(frozen=True, slots=True)
class Otherwise:
    """The same plan with one option set differently."""

    option: str
    plan: Plan


def otherwise(params: ContextParams, make: Callable[[ContextParams], Plan]) -> Iterator[Otherwise]:
    """Plans with a smaller ubatch, half the context, and with flash attention where it is off."""
    n_ubatch = min(params.n_ubatch, params.n_ctx or params.n_ubatch)
    if n_ubatch >= FEWER:
        fewer = n_ubatch // FEWER
        yield Otherwise(f"-ub {fewer}", make(replace(params, n_ubatch=fewer)))
    if params.n_ctx >= 2 * LEAST_CTX:
        yield Otherwise(f"-c {params.n_ctx // 2}", make(replace(params, n_ctx=params.n_ctx // 2)))
    if params.flash_attn is False:
        yield Otherwise("-fa on", make(replace(params, flash_attn=True)))
