"""Experts: many small feed-forward networks in a layer, a few of them for each token.

A product with a small matrix scores the experts, the best are chosen, and what they make is added up by their scores.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from vizggml.events import ExpertsRouted
from vizggml.ggml import ops
from vizggml.ggml.tensor import Tensor
from vizggml.llama.batch import Ubatch
from vizggml.llama.graph import GraphBuilder

WEIGHTS_SUM_MIN = 6.103515625e-5
"""The smallest normal F16: what the weights are divided by is never below."""

DESCENDING = 1


def moe_ffn(b: GraphBuilder, cur: Tensor, il: int) -> Tensor:
    """`llm_graph_context::build_moe_ffn`, src/llama-graph.cpp, for SiLU experts that a soft max chooses.

    `cur` and the result are (n_embd, n_tokens). The weights of a token's experts are scaled to sum to 1.
    """
    ctx0 = b.ctx0
    n_embd, n_tokens = cur.ne[:2]
    selected, weights = route(b, cur, il)
    cur = ops.reshape_3d(ctx0, cur, n_embd, 1, n_tokens)
    up = _experts(b, "up", cur, selected, il)
    if b.weight("ffn_gate_exps", il) is not None:
        cur = ops.swiglu_split(ctx0, _experts(b, "gate", cur, selected, il), up)
        b.cb(cur, "ffn_moe_swiglu", il)
    else:
        cur = ops.silu(ctx0, up)
        b.cb(cur, "ffn_moe_silu", il)
    experts = ops.mul(ctx0, _experts(b, "down", cur, selected, il), weights)
    b.cb(experts, "ffn_moe_weighted", il)
    b.gf.build_forward_expand(experts)
    return gather(b, experts, il)


def _experts(b: GraphBuilder, name: str, cur: Tensor, selected: Tensor, il: int) -> Tensor:
    """One product for each token and each expert that was chosen for it."""
    cur = ops.mul_mat_id(b.ctx0, b.weights[f"blk.{il}.ffn_{name}_exps.weight"], cur, selected)
    b.cb(cur, f"ffn_moe_{name}", il)
    return cur


def route(b: GraphBuilder, cur: Tensor, il: int) -> tuple[Tensor, Tensor]:
    """Which experts each token goes to, (n_expert_used, n_tokens), and with which weights, that sum to 1."""
    ctx0, n_expert, n_used, n_tokens = b.ctx0, b.hparams.n_expert, b.hparams.n_expert_used, cur.ne[1]
    logits = b.build_lora_mm(b.weights[f"blk.{il}.ffn_gate_inp.weight"], cur)
    b.cb(logits, "ffn_moe_logits", il)
    probs = ops.soft_max(ctx0, logits)
    b.cb(probs, "ffn_moe_probs", il)
    order = ops.argsort(ctx0, probs, DESCENDING)
    selected = ops.view_4d(ctx0, order, n_used, *order.ne[1:], *order.nb[1:], 0)
    b.cb(order, "ffn_moe_argsort", il)
    b.cb(selected, "ffn_moe_topk", il)
    weights = ops.get_rows(ctx0, ops.reshape_3d(ctx0, probs, 1, n_expert, n_tokens), selected)
    b.cb(weights, "ffn_moe_weights", il)
    weights = ops.reshape_2d(ctx0, weights, n_used, n_tokens)
    total = ops.sum_rows(ctx0, weights)
    b.cb(total, "ffn_moe_weights_sum", il)
    total = ops.clamp(ctx0, total, WEIGHTS_SUM_MIN, float("inf"))
    b.cb(total, "ffn_moe_weights_sum_clamped", il)
    weights = ops.div(ctx0, weights, total)
    b.cb(weights, "ffn_moe_weights_norm", il)
    weights = ops.reshape_3d(ctx0, weights, 1, n_used, n_tokens)
    b.gf.build_forward_expand(weights)
    return selected, weights


def gather(b: GraphBuilder, experts: Tensor, il: int) -> Tensor:
    """The sum over a token's experts: all views first, then the additions."""
    n_embd, n_used, n_tokens = experts.ne[:3]
    parts = []
    for i in range(n_used):
        part = ops.view_2d(b.ctx0, experts, n_embd, n_tokens, experts.nb[2], i * experts.nb[1])
        b.gf.build_forward_expand(part)
        parts.append(part)
    out = parts[0]
    for part in parts[1:]:
        out = ops.add(b.ctx0, out, part)
        b.gf.build_forward_expand(out)
    if n_used == 1:
        out = ops.cont(b.ctx0, out)
    b.cb(out, "ffn_moe_out", il)
    return out


@dataclass(frozen=True, slots=True)
class Route:
    """Where a layer's tokens go: `weights` is the node with which it is decided, `matrices` all experts' weights."""

    layer: int
    weights: Tensor
    selected: Tensor
    matrices: tuple[Tensor, ...]

    def told(self, ubatch: Ubatch) -> Iterator[ExpertsRouted]:
        """The event, once `weights` is computed. In the last layer only the tokens are left whose logits are wanted."""
        experts, weights = self.selected.array()[0, 0], self.weights.array()[0, 0]
        n_tokens, n_used = experts.shape
        every = n_tokens == ubatch.n_tokens
        pos = tuple(p for p, output in zip(ubatch.pos, ubatch.output, strict=True) if every or output)
        n_expert, nbytes = self.matrices[0].ne[2], sum(t.nbytes for t in self.matrices)
        n_read = len(np.unique(experts))
        yield ExpertsRouted(
            self.weights.id,
            self.layer,
            n_tokens,
            n_expert,
            n_used,
            n_read,
            nbytes,
            nbytes // n_expert * n_read,
            pos,
            tuple(experts.ravel().tolist()),
            tuple(weights.ravel().tolist()),
        )


def routes(nodes: Iterable[Tensor]) -> Iterator[Route]:
    """The routes of a graph, layer by layer."""
    named = {t.name: t for t in nodes if t.name.startswith("ffn_moe_")}
    for name, weights in named.items():
        if weights.op == "DIV" and name.startswith("ffn_moe_weights_norm-"):
            il = int(name.rpartition("-")[2])
            products = [named.get(f"ffn_moe_{part}-{il}") for part in ("up", "gate", "down")]
            matrices = tuple(w for t in products if t is not None and (w := t.src[0]) is not None)
            yield Route(il, weights, named[f"ffn_moe_topk-{il}"], matrices)
