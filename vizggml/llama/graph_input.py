"""The inputs of a graph: which tensors they are, what is written into them, when a standing graph may be used again.

A graph is used again when its parameters and every one of its inputs say that a new graph would be the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from vizggml.events import GraphId, ReuseChecked, bus
from vizggml.ggml.tensor import Tensor
from vizggml.llama.batch import Ubatch
from vizggml.llama.cparams import CParams
from vizggml.llama.hparams import HParams
from vizggml.llama.kv_cache import KVCache, MemoryContext
from vizggml.llama.kv_cache_iswa import AnyMemoryContext, MemoryContextISWA

Condition = tuple[str, object, object]
"""What is compared, what the standing graph was built for, what is needed now."""


@dataclass(frozen=True, slots=True)
class GraphParams:
    """`llm_graph_params`, src/llama-graph.h: everything that decides a graph."""

    arch: str
    hparams: HParams
    cparams: CParams
    ubatch: Ubatch
    mctx: AnyMemoryContext
    n_outputs: int
    gtype: str = "default"
    cvec: object = None
    loras: object = None

    def allow_reuse(self, other: GraphParams, graph: GraphId) -> bool:
        """Whether `other` would give a graph of the same topology as these parameters, the standing ones, gave.

        `llm_graph_params::allow_reuse`, src/llama-graph.h: group after group, and the first that differs decides.
        """
        a, b = self.ubatch, other.ubatch
        ubatch: list[Condition] = [
            ("ubatch.equal_seqs", a.equal_seqs, b.equal_seqs),
            ("ubatch.n_tokens", a.n_tokens, b.n_tokens),
            ("ubatch.n_seq_tokens", a.n_seq_tokens, b.n_seq_tokens),
            ("ubatch.n_seqs", a.n_seqs, b.n_seqs),
            ("ubatch.n_seqs_unq", a.n_seqs_unq, b.n_seqs_unq),
        ]
        outputs: list[Condition] = [("n_outputs", self.n_outputs, other.n_outputs)]
        rest: list[Condition] = [
            ("cparams.embeddings", self.cparams.embeddings, other.cparams.embeddings),
            ("cparams.causal_attn", self.cparams.causal_attn, other.cparams.causal_attn),
            ("arch", self.arch, other.arch),
            ("gtype", self.gtype, other.gtype),
            ("cvec", self.cvec, other.cvec),
            ("loras", self.loras, other.loras),
        ]
        return all(checked(graph, "params", group) for group in (ubatch, outputs, rest))


def checked(graph: GraphId, owner: str, conditions: Sequence[Condition]) -> bool:
    """Whether all conditions hold; each is told, with both values."""
    ok = True
    for condition, had, needs in conditions:
        same = had == needs
        ok = ok and same
        if bus.on:
            bus.emit(ReuseChecked(graph, owner, condition, str(had), str(needs), same))
    return ok


class GraphInput(Protocol):
    """`llm_graph_input_i`, src/llama-graph.h."""

    def set_input(self, ubatch: Ubatch) -> None:
        """Write the ubatch into the input's tensors."""

    def can_reuse(self, params: GraphParams, graph: GraphId) -> bool:
        """Whether the tensors would be the same for `params`."""


class InputEmbd:
    """`llm_graph_input_embd`, src/llama-graph.h: token ids, or vectors in their place."""

    def __init__(self, tokens: Tensor, embd: Tensor) -> None:
        self.tokens = tokens
        self.embd = embd

    def set_input(self, ubatch: Ubatch) -> None:
        self.tokens.set(np.asarray(ubatch.token, np.int32))

    def can_reuse(self, params: GraphParams, graph: GraphId) -> bool:
        return checked(graph, "InputEmbd", [("tokens.ne[0]", self.tokens.ne[0], params.ubatch.n_tokens)])


class InputPos:
    """`llm_graph_input_pos`, src/llama-graph.h: the position of each token."""

    def __init__(self, pos: Tensor) -> None:
        self.pos = pos

    def set_input(self, ubatch: Ubatch) -> None:
        self.pos.set(np.asarray(ubatch.pos, np.int32))

    def can_reuse(self, params: GraphParams, graph: GraphId) -> bool:
        return checked(graph, "InputPos", [("pos.ne[0]", self.pos.ne[0], params.ubatch.n_tokens)])


class InputOutIds:
    """`llm_graph_input_out_ids`, src/llama-graph.h: which tokens of the ubatch have an output."""

    def __init__(self, out_ids: Tensor, n_outputs: int) -> None:
        self.out_ids = out_ids
        self.n_outputs = n_outputs

    def set_input(self, ubatch: Ubatch) -> None:
        if self.n_outputs == ubatch.n_tokens:
            self.out_ids.set(np.arange(ubatch.n_tokens, dtype=np.int32))
        else:
            self.out_ids.set(np.flatnonzero(ubatch.output).astype(np.int32))

    def can_reuse(self, params: GraphParams, graph: GraphId) -> bool:
        return checked(graph, "InputOutIds", [("n_outputs", self.n_outputs, params.n_outputs)])


class InputAttnKV:
    """`llm_graph_input_attn_kv`, src/llama-graph.h: where K and V go, and which cells each token sees."""

    def __init__(self, mctx: MemoryContext, cparams: CParams, k_idxs: Tensor, v_idxs: Tensor, kq_mask: Tensor) -> None:
        self.mctx = mctx
        self.cparams = cparams
        self.k_idxs = k_idxs
        self.v_idxs = v_idxs
        self.kq_mask = kq_mask
        self.k_rot: Tensor | None = None
        self.v_rot: Tensor | None = None

    def set_input(self, ubatch: Ubatch) -> None:
        kv, slot = self.mctx.kv, self.mctx.slot
        kv.set_input_k_idxs(self.k_idxs, slot)
        kv.set_input_v_idxs(self.v_idxs, slot)
        kv.set_input_kq_mask(self.kq_mask, ubatch, self.cparams.causal_attn)
        for rot in (self.k_rot, self.v_rot):
            if rot is not None:
                kv.set_input_rot(rot)

    def conditions(self, mctx: MemoryContext, n_tokens: int, suffix: str = "") -> list[Condition]:
        """What must be as it was, for the cells of the new ubatch, which are taken over."""
        self.mctx = mctx
        mask = self.kq_mask
        return [
            (f"k_idxs{suffix}.ne[0]", self.k_idxs.ne[0], n_tokens),
            (f"kq_mask{suffix}.ne[0]", mask.ne[0], mctx.n_kv),
            (f"kq_mask{suffix}.ne[1]", mask.ne[1], n_tokens),
            (f"kq_mask{suffix}.ne[2]", mask.ne[2], 1),
            (f"kq_mask{suffix}.ne[3]", mask.ne[3], 1),
        ]

    def can_reuse(self, params: GraphParams, graph: GraphId) -> bool:
        """`llm_graph_input_attn_kv::can_reuse`, src/llama-graph.cpp."""
        assert isinstance(params.mctx, MemoryContext)
        return checked(graph, "InputAttnKV", self.conditions(params.mctx, params.ubatch.n_tokens))


class InputAttnKVISWA:
    """`llm_graph_input_attn_kv_iswa`, src/llama-graph.h: the same for each of two caches.

    If no layer is of one sort, that one's tensors are in no graph and have no memory.
    """

    def __init__(self, base: InputAttnKV, swa: InputAttnKV) -> None:
        self.base = base
        self.swa = swa

    def _in_graph(self) -> list[tuple[InputAttnKV, str]]:
        return [(inp, suffix) for inp, suffix in ((self.base, ""), (self.swa, "_swa")) if inp.mctx.kv.layers]

    def set_input(self, ubatch: Ubatch) -> None:
        for inp, _ in self._in_graph():
            inp.set_input(ubatch)

    def can_reuse(self, params: GraphParams, graph: GraphId) -> bool:
        """`llm_graph_input_attn_kv_iswa::can_reuse`, src/llama-graph.cpp."""
        assert isinstance(params.mctx, MemoryContextISWA)
        n_tokens = params.ubatch.n_tokens
        conditions: list[Condition] = []
        for inp, suffix in self._in_graph():
            mctx = params.mctx.swa if inp is self.swa else params.mctx.base
            conditions += inp.conditions(mctx, n_tokens, suffix)
        return checked(graph, "InputAttnKVISWA", conditions)


class InputKShift:
    """`llm_graph_input_k_shift`, src/llama-kv-cache.cpp: how far each cell's position was moved."""

    def __init__(self, kv: KVCache, k_shift: Tensor, k_rot: Tensor | None) -> None:
        self.kv = kv
        self.k_shift = k_shift
        self.k_rot = k_rot

    def set_input(self, ubatch: Ubatch | None = None) -> None:
        cells = self.kv.cells
        self.k_shift.set(np.where(cells.pos < 0, 0, cells.shift))
        if self.k_rot is not None:
            self.kv.set_input_rot(self.k_rot)

    def can_reuse(self, params: GraphParams, graph: GraphId) -> bool:
        return False
