"""Building a model's graph: the blocks that architectures are made of, and the result that outlives the building.

The order of every call here is the pinned llama.cpp's, because the order in which tensors are made and expanded is the
order of the nodes, and that decides where each one lies in memory.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vizggml.ggml import ops
from vizggml.ggml.cgraph import Graph, graph_overhead_custom
from vizggml.ggml.context import TENSOR_OVERHEAD, Context
from vizggml.ggml.ops_model import PREC_F32
from vizggml.ggml.tensor import Tensor
from vizggml.ggml.types import F16, F32, I32
from vizggml.llama.batch import Ubatch
from vizggml.llama.cparams import CParams
from vizggml.llama.graph_input import (
    GraphInput,
    GraphParams,
    InputAttnKV,
    InputAttnKVISWA,
    InputEmbd,
    InputOutIds,
    InputPos,
)
from vizggml.llama.hadamard import mul_mat_hadamard
from vizggml.llama.hparams import HParams
from vizggml.llama.kv_cache import MemoryContext
from vizggml.llama.kv_cache_iswa import MemoryContextISWA
from vizggml.llama.loader import Weights
from vizggml.llama.offload import Named


def rope_freqs(hparams: HParams, cparams: CParams, il: int) -> tuple[float, float]:
    """Base and scale of a layer's rope. `llama_model::get_rope_freq_base`, `get_rope_freq_scale`, src/llama-model.cpp.

    Layers with a window have their own, which no parameter changes.
    """
    if hparams.is_swa(il):
        return hparams.rope_freq_base_train_swa, 1.0
    return cparams.rope_freq_base, cparams.rope_freq_scale


class GraphResult:
    """`llm_graph_result`, src/llama-graph.h: a built graph with its arena, its inputs and its important tensors."""

    def __init__(self, max_nodes: int) -> None:
        self.max_nodes = max_nodes
        self._make()

    def _make(self) -> None:
        self.params: GraphParams | None = None
        self.inputs: list[GraphInput] = []
        self.t_inp_tokens: Tensor | None = None
        self.t_inp_embd: Tensor | None = None
        self.t_embd: Tensor | None = None
        self.t_logits: Tensor | None = None
        self.ctx = Context(TENSOR_OVERHEAD * self.max_nodes + graph_overhead_custom(self.max_nodes), no_alloc=True)
        self.gf = Graph(self.ctx, self.max_nodes)

    def reset(self) -> None:
        """Forget the graph and begin an empty one. `llm_graph_result::reset`, src/llama-graph.cpp."""
        self.ctx.free()
        self._make()

    def can_reuse(self, params: GraphParams) -> bool:
        """Whether the standing graph is what `params` would build; every input is asked and takes its new values.

        `llm_graph_result::can_reuse`, src/llama-graph.cpp.
        """
        if self.params is None or not self.params.allow_reuse(params, self.gf.id):
            return False
        answers = [inp.can_reuse(params, self.gf.id) for inp in self.inputs]
        return all(answers)

    def set_inputs(self, ubatch: Ubatch) -> None:
        """`llm_graph_result::set_inputs`, src/llama-graph.cpp."""
        for inp in self.inputs:
            inp.set_input(ubatch)

    def set_outputs(self) -> None:
        """Keep the results' memory to the end. `llm_graph_result::set_outputs`, src/llama-graph.cpp."""
        for t in (self.t_logits, self.t_embd):
            if t is not None:
                t.set_output()

    def written(self) -> Iterator[tuple[Tensor, int, str]]:
        """The nodes that write into the cache, with layer and K or V."""
        for t in self.gf.nodes:
            if t.op == "SET_ROWS" and t.view_src is not None and t.view_src.name.startswith("cache_"):
                _, which, layer = t.view_src.name.split("_")
                yield t, int(layer[1:]), which.upper()


class GraphBuilder:
    """`llm_graph_context`, src/llama-graph.h: builds into `res`. An architecture is a function that drives one."""

    def __init__(self, params: GraphParams, weights: Weights, res: GraphResult, named: Named | None = None) -> None:
        self.params = params
        self.named = named
        self.hparams = params.hparams
        self.cparams = params.cparams
        self.ubatch = params.ubatch
        self.weights = weights
        self.res = res
        self.ctx0 = res.ctx
        self.gf = res.gf
        self.n_tokens = params.ubatch.n_tokens
        res.params = params

    def cb(self, cur: Tensor, name: str, il: int = -1) -> None:
        """Name a tensor after what it is, and its layer. `llm_graph_context::cb`, src/llama-graph.cpp."""
        cur.set_name(f"{name}-{il}" if il >= 0 else name)
        if self.named is not None:
            self.named(cur, name, il)

    def weight(self, name: str, il: int = -1, kind: str = "weight") -> Tensor | None:
        """`blk.<il>.<name>.weight`, None if the model has none."""
        return self.weights.get(f"blk.{il}.{name}.{kind}" if il >= 0 else f"{name}.{kind}")

    def build_lora_mm(self, w: Tensor, cur: Tensor) -> Tensor:
        """`llm_graph_context::build_lora_mm`, src/llama-graph.cpp."""
        return ops.mul_mat(self.ctx0, w, cur)

    def _add_bias(self, cur: Tensor, name: str, il: int) -> Tensor | None:
        bias = self.weight(name, il, "bias")
        return None if bias is None else ops.add(self.ctx0, cur, bias)

    def build_norm(self, cur: Tensor, name: str, il: int) -> Tensor:
        """`llm_graph_context::build_norm`, src/llama-graph.cpp, for RMS norms with a weight."""
        return self.norm_with(cur, self._need(name, il), il)

    def norm_with(self, cur: Tensor, weight: Tensor, il: int) -> Tensor:
        """The same with a weight at hand."""
        cur = ops.rms_norm(self.ctx0, cur, self.hparams.f_norm_rms_eps)
        self.cb(cur, "norm", il)
        return ops.mul(self.ctx0, cur, weight)

    def _need(self, name: str, il: int = -1) -> Tensor:
        return self.weights[f"blk.{il}.{name}.weight" if il >= 0 else f"{name}.weight"]

    def build_qkv(self, cur: Tensor, il: int) -> tuple[Tensor, Tensor, Tensor]:
        """`llm_graph_context::build_qkv`, src/llama-graph.cpp: each of shape (n_embd_head, heads, n_tokens)."""
        hp = self.hparams
        heads = {"Q": (hp.n_embd_head_k, hp.n_head[il]), "K": (hp.n_embd_head_k, hp.n_head_kv[il])}
        heads["V"] = (hp.n_embd_head_v, hp.n_head_kv[il])
        fused = self.weight("attn_qkv", il)
        made = self._fused_qkv(fused, cur, heads, il) if fused is not None else self._separate_qkv(cur, heads, il)
        for name, t in zip(heads, made, strict=True):
            self.cb(t, f"{name}cur", il)
        return made[0], made[1], made[2]

    def _separate_qkv(self, cur: Tensor, heads: dict[str, tuple[int, int]], il: int) -> list[Tensor]:
        made = []
        for name in heads:
            weight = f"attn_{name.lower()}"
            t = self.build_lora_mm(self._need(weight, il), cur)
            self.cb(t, f"{name}cur", il)
            biased = self._add_bias(t, weight, il)
            if biased is not None:
                t = biased
                self.cb(t, f"{name}cur", il)
            made.append(t)
        return [
            ops.reshape_3d(self.ctx0, t, *shape, self.n_tokens) for t, shape in zip(made, heads.values(), strict=True)
        ]

    def _fused_qkv(self, w: Tensor, cur: Tensor, heads: dict[str, tuple[int, int]], il: int) -> list[Tensor]:
        qkv = self.build_lora_mm(w, cur)
        self.cb(qkv, "wqkv", il)
        bias = self.weight("attn_qkv", il, "bias")
        parts = [self.weight(f"attn_{name.lower()}", il, "bias") for name in heads]
        q, k, v = parts
        if bias is None and q is not None and k is not None and v is not None:
            bias = ops.concat(self.ctx0, ops.concat(self.ctx0, q, k, 0), v, 0)
        if bias is not None:
            qkv = ops.add(self.ctx0, qkv, bias)
            self.cb(qkv, "wqkv_b", il)
        made, offset = [], 0
        for n_embd, n_head in heads.values():
            nb1 = qkv.type.row_size(n_embd)
            made.append(ops.view_3d(self.ctx0, qkv, n_embd, n_head, self.n_tokens, nb1, qkv.nb[1], offset))
            offset += nb1 * n_head
        return made

    def build_rope(self, cur: Tensor, inp_pos: Tensor, factors: Tensor | None, il: int = 0) -> Tensor:
        """`ggml_rope_ext` with the model's and the context's numbers."""
        cp = self.cparams
        freq_base, freq_scale = rope_freqs(self.hparams, cp, il)
        return ops.rope_ext(
            self.ctx0,
            cur,
            inp_pos,
            factors,
            self.hparams.n_rot,
            self.hparams.rope_type,
            cp.n_ctx_orig_yarn,
            freq_base,
            freq_scale,
            cp.yarn_ext_factor,
            cp.yarn_attn_factor,
            cp.yarn_beta_fast,
            cp.yarn_beta_slow,
        )

    def build_ffn(self, cur: Tensor, il: int, gated: str = "swiglu") -> Tensor:
        """`llm_graph_context::build_ffn`, src/llama-graph.cpp, for a gate beside the up projection: swiglu or geglu."""
        up = self.build_lora_mm(self._need("ffn_up", il), cur)
        self.cb(up, "ffn_up", il)
        biased = self._add_bias(up, "ffn_up", il)
        if biased is not None:
            up = biased
            self.cb(up, "ffn_up_b", il)
        gate = self.build_lora_mm(self._need("ffn_gate", il), cur)
        self.cb(gate, "ffn_gate", il)
        biased = self._add_bias(gate, "ffn_gate", il)
        if biased is not None:
            gate = biased
            self.cb(gate, "ffn_gate_b", il)
        cur = (ops.geglu_split if gated == "geglu" else ops.swiglu_split)(self.ctx0, gate, up)
        self.cb(cur, f"ffn_{gated}", il)
        cur = self.build_lora_mm(self._need("ffn_down", il), cur)
        if self.weight("ffn_down", il, "bias") is not None:
            self.cb(cur, "ffn_down", il)
        biased = self._add_bias(cur, "ffn_down", il)
        return cur if biased is None else biased

    def build_inp_embd(self) -> Tensor:
        """`llm_graph_context::build_inp_embd`, src/llama-graph.cpp.

        Both ways in are in the graph, by token and by vector, so that its shape does not depend on the batch.
        """
        tokens = self.ctx0.new_tensor(I32, (self.n_tokens,))
        self.cb(tokens, "inp_tokens")
        tokens.set_input()
        embd = self.ctx0.new_tensor(F32, (self.hparams.n_embd, self.n_tokens))
        self.cb(embd, "inp_embd")
        embd.set_input()
        cur = self.select_inp_embd(ops.get_rows(self.ctx0, self._need("token_embd"), tokens), embd)
        self.res.t_inp_tokens, self.res.t_inp_embd = tokens, cur
        self.cb(cur, "embd")
        self.res.inputs.append(InputEmbd(tokens, embd))
        self.gf.build_forward_expand(cur)
        return cur

    def select_inp_embd(self, by_token: Tensor, by_vector: Tensor) -> Tensor:
        """Which way in is computed: batches here always hold tokens."""
        return self.gf.build_forward_select([by_token, by_vector], 0)

    def build_inp_pos(self) -> Tensor:
        """`llm_graph_context::build_inp_pos`, src/llama-graph.cpp."""
        pos = self.ctx0.new_tensor(I32, (self.n_tokens,)).set_input()
        self.cb(pos, "inp_pos")
        self.res.inputs.append(InputPos(pos))
        return pos

    def build_inp_out_ids(self) -> Tensor:
        """`llm_graph_context::build_inp_out_ids`, src/llama-graph.cpp: built even when every token has an output."""
        n_outputs = self.params.n_outputs
        out_ids = self.ctx0.new_tensor(I32, (n_outputs,)).set_input().set_name("out_ids")
        self.res.inputs.append(InputOutIds(out_ids, n_outputs))
        return out_ids

    def build_attn_inp_kv(self) -> InputAttnKV:
        """`llm_graph_context::build_attn_inp_kv`, src/llama-graph.cpp."""
        mctx = self.params.mctx
        assert isinstance(mctx, MemoryContext)
        inp = self._inp_attn_kv(mctx)
        inp.k_rot, inp.v_rot = mctx.kv.build_input_k_rot(self.ctx0), mctx.kv.build_input_v_rot(self.ctx0)
        self.res.inputs.append(inp)
        return inp

    def build_attn_inp_kv_iswa(self) -> InputAttnKVISWA:
        """`llm_graph_context::build_attn_inp_kv_iswa`, src/llama-graph.cpp."""
        mctx = self.params.mctx
        assert isinstance(mctx, MemoryContextISWA)
        inp = InputAttnKVISWA(self._inp_attn_kv(mctx.base), self._inp_attn_kv(mctx.swa))
        for one in (inp.base, inp.swa):
            kv = one.mctx.kv
            one.k_rot, one.v_rot = kv.build_input_k_rot(self.ctx0), kv.build_input_v_rot(self.ctx0)
        self.res.inputs.append(inp)
        return inp

    def _inp_attn_kv(self, mctx: MemoryContext) -> InputAttnKV:
        """The cells to write and the mask, of one cache."""
        k_idxs = mctx.kv.build_input_k_idxs(self.ctx0, self.ubatch)
        v_idxs = mctx.kv.build_input_v_idxs(self.ctx0, self.ubatch)
        type = F16 if self.cparams.flash_attn else F32
        n_stream = 1 if self.cparams.kv_unified else self.ubatch.n_seqs_unq
        ne = (mctx.n_kv, self.n_tokens // n_stream, 1, n_stream)
        mask = self.ctx0.new_tensor(type, ne).set_input().set_name("attn_inp_kq_mask")
        return InputAttnKV(mctx, self.cparams, k_idxs, v_idxs, mask)

    def build_attn(
        self, inp: InputAttnKV | InputAttnKVISWA, q: Tensor, k: Tensor, v: Tensor, scale: float, il: int
    ) -> Tensor:
        """`llm_graph_context::build_attn`, src/llama-graph.cpp: store K and V, attend, project."""
        keys_first = isinstance(inp, InputAttnKVISWA)
        if isinstance(inp, InputAttnKVISWA):
            inp = inp.swa if self.hparams.is_swa(il) else inp.base
        if inp.k_rot is not None:
            q = mul_mat_hadamard(self.ctx0, q, inp.k_rot)
            k = mul_mat_hadamard(self.ctx0, k, inp.k_rot)
        if inp.v_rot is not None:
            v = mul_mat_hadamard(self.ctx0, v, inp.v_rot)
        for t in (q, k, v) if keys_first else (q, v, k):
            self.gf.build_forward_expand(t)
        kv, n_kv = inp.mctx.kv, inp.mctx.n_kv
        self.gf.build_forward_expand(kv.cpy_k(self.ctx0, k, inp.k_idxs, il))
        self.gf.build_forward_expand(kv.cpy_v(self.ctx0, v, inp.v_idxs, il))
        k_all, v_all = kv.get_k(self.ctx0, il, n_kv), kv.get_v(self.ctx0, il, n_kv)
        cur = self.build_attn_mha(q, k_all, v_all, inp.kq_mask, scale, il)
        self.cb(cur, "kqv_out", il)
        if inp.v_rot is not None:
            cur = mul_mat_hadamard(self.ctx0, cur, inp.v_rot)
        cur = self.build_lora_mm(self._need("attn_output", il), cur)
        biased = self._add_bias(cur, "attn_output", il)
        return cur if biased is None else biased

    def build_attn_mha(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor, scale: float, il: int) -> Tensor:
        """`llm_graph_context::build_attn_mha`, src/llama-graph.cpp: shape (n_embd_head * heads, n_tokens)."""
        ctx0 = self.ctx0
        v_trans = v.nb[1] > v.nb[2]
        n_stream = k.ne[3]
        n = q.ne[2] // n_stream
        q = ops.view_4d(ctx0, q, q.ne[0], q.ne[1], n, n_stream, q.nb[1], q.nb[2], q.nb[2] * n, 0)
        q = ops.permute(ctx0, q, 0, 2, 1, 3)
        k = ops.permute(ctx0, k, 0, 2, 1, 3)
        v = ops.permute(ctx0, v, 0, 2, 1, 3)
        if self.cparams.flash_attn:
            cur = self._flash(q, k, v, mask, scale)
        else:
            kq = ops.mul_mat(ctx0, k, q)
            self.cb(kq, "kq", il)
            ops.mul_mat_set_prec(kq, PREC_F32)
            kq = ops.soft_max_ext(ctx0, kq, mask, scale, 0.0)
            self.cb(kq, "kq_soft_max", il)
            if not v_trans:
                v = ops.cont(ctx0, ops.transpose(ctx0, v))
                self.cb(v, "v_cont", il)
            kqv = ops.mul_mat(ctx0, v, kq)
            self.cb(kqv, "kqv", il)
            cur = ops.permute(ctx0, kqv, 0, 2, 1, 3)
            cur = ops.cont_2d(ctx0, cur, cur.ne[0] * cur.ne[1], cur.ne[2] * cur.ne[3])
        self.gf.build_forward_expand(cur)
        return cur

    def _flash(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor, scale: float) -> Tensor:
        if k.type is F32:
            k = ops.cast(self.ctx0, k, F16)
        if v.type is F32:
            v = ops.cast(self.ctx0, v, F16)
        cur = ops.flash_attn_ext(self.ctx0, q, k, v, mask, scale, 0.0, 0.0)
        ops.flash_attn_ext_set_prec(cur, PREC_F32)
        return ops.reshape_2d(self.ctx0, cur, cur.ne[0] * cur.ne[1], cur.ne[2] * cur.ne[3])

    @property
    def kq_scale(self) -> float:
        """What the scores are multiplied with: the model's own scale, or one over the root of the head size, in F32."""
        return self.hparams.f_attention_scale or float(np.float32(1) / np.sqrt(np.float32(self.hparams.n_embd_head_k)))
