"""The graph of the llama architecture."""

from __future__ import annotations

import numpy as np

from vizggml.ggml import ops
from vizggml.ggml.tensor import Tensor
from vizggml.llama import experts
from vizggml.llama.cparams import CParams
from vizggml.llama.graph import GraphBuilder
from vizggml.llama.hparams import HParams
from vizggml.llama.loader import Weights


def build(b: GraphBuilder) -> None:
    """`llama_model_llama::graph`, src/models/llama.cpp."""
    hp, ctx0 = b.hparams, b.ctx0
    inpL = b.build_inp_embd()
    inp_pos = b.build_inp_pos()
    inp_attn = b.build_attn_inp_kv()
    inp_out_ids = b.build_inp_out_ids()
    for il in range(hp.n_layer):
        inpSA = inpL
        cur = b.build_norm(inpL, "attn_norm", il)
        b.cb(cur, "attn_norm", il)
        factors = rope_factors(b.weights, b.cparams, hp)
        Qcur, Kcur, Vcur = b.build_qkv(cur, il)
        Qcur = b.build_rope(Qcur, inp_pos, factors)
        Kcur = b.build_rope(Kcur, inp_pos, factors)
        b.cb(Qcur, "Qcur", il)
        b.cb(Kcur, "Kcur", il)
        b.cb(Vcur, "Vcur", il)
        cur = b.build_attn(inp_attn, Qcur, Kcur, Vcur, b.kq_scale, il)
        b.cb(cur, "attn_out", il)
        if il == hp.n_layer - 1:
            cur = ops.get_rows(ctx0, cur, inp_out_ids)
            inpSA = ops.get_rows(ctx0, inpSA, inp_out_ids)
        ffn_inp = ops.add(ctx0, cur, inpSA)
        b.cb(ffn_inp, "ffn_inp", il)
        cur = b.build_norm(ffn_inp, "ffn_norm", il)
        b.cb(cur, "ffn_norm", il)
        cur = experts.moe_ffn(b, cur, il) if hp.n_expert else dense(b, cur, il)
        cur = ops.add(ctx0, cur, ffn_inp)
        b.cb(cur, "ffn_out", il)
        b.cb(cur, "l_out", il)
        inpL = cur
    head(b, inpL)


def dense(b: GraphBuilder, cur: Tensor, il: int) -> Tensor:
    """One feed-forward network for every token."""
    cur = b.build_ffn(cur, il)
    b.cb(cur, "ffn_out", il)
    return cur


def rope_factors(weights: Weights, cparams: CParams, hparams: HParams) -> Tensor | None:
    """`llama_model::get_rope_factors`, src/llama-model.cpp: the long ones once the context outgrows the training's."""
    length = "long" if cparams.n_ctx > hparams.n_ctx_orig_yarn else "short"
    fixed = weights.get("rope_freqs.weight")
    return fixed if fixed is not None else weights.get(f"rope_factors_{length}.weight")


def head(b: GraphBuilder, cur: Tensor) -> None:
    """The last norm and the product with the vocabulary: logits, softly capped where the model asks for it."""
    cur = b.build_norm(cur, "output_norm", -1)
    b.cb(cur, "result_norm")
    b.res.t_embd = cur
    cur = b.build_lora_mm(b.weights.output, cur)
    cap = b.hparams.f_final_logit_softcapping
    if cap:
        cur = ops.scale(b.ctx0, cur, float(np.float32(1) / np.float32(cap)))
        cur = ops.scale(b.ctx0, ops.tanh(b.ctx0, cur), cap)
    b.cb(cur, "result_output")
    b.res.t_logits = cur
    b.gf.build_forward_expand(cur)
