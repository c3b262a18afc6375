"""The graph of the gemma3 architecture: windows in most layers, norms before and after each part, scaled embeddings."""

from __future__ import annotations

import numpy as np

from vizggml.ggml import ops
from vizggml.llama.architectures.llama import head
from vizggml.llama.graph import GraphBuilder


def build(b: GraphBuilder) -> None:
    """`llama_model_gemma3::graph`, src/models/gemma3.cpp."""
    hp, ctx0 = b.hparams, b.ctx0
    inpL = ops.scale(ctx0, b.build_inp_embd(), float(np.sqrt(np.float32(hp.n_embd))))
    b.cb(inpL, "inp_scaled")
    inp_pos = b.build_inp_pos()
    inp_attn = b.build_attn_inp_kv_iswa() if hp.n_swa else b.build_attn_inp_kv()
    inp_out_ids = b.build_inp_out_ids()
    for il in range(hp.n_layer):
        cur = b.build_norm(inpL, "attn_norm", il)
        b.cb(cur, "attn_norm", il)
        Qcur, Kcur, Vcur = b.build_qkv(cur, il)
        Qcur = b.build_norm(Qcur, "attn_q_norm", il)
        b.cb(Qcur, "Qcur_normed", il)
        Qcur = b.build_rope(Qcur, inp_pos, None, il)
        Kcur = b.build_norm(Kcur, "attn_k_norm", il)
        b.cb(Kcur, "Kcur_normed", il)
        Kcur = b.build_rope(Kcur, inp_pos, None, il)
        b.cb(Qcur, "Qcur", il)
        b.cb(Kcur, "Kcur", il)
        b.cb(Vcur, "Vcur", il)
        Qcur = ops.scale(ctx0, Qcur, hp.f_attention_scale)
        cur = b.build_attn(inp_attn, Qcur, Kcur, Vcur, 1.0, il)
        if il == hp.n_layer - 1:
            cur = ops.get_rows(ctx0, cur, inp_out_ids)
            inpL = ops.get_rows(ctx0, inpL, inp_out_ids)
        cur = b.build_norm(cur, "post_attention_norm", il)
        b.cb(cur, "attn_post_norm", il)
        sa_out = ops.add(ctx0, cur, inpL)
        b.cb(sa_out, "sa_out", il)
        cur = b.build_norm(sa_out, "ffn_norm", il)
        b.cb(cur, "ffn_norm", il)
        cur = b.build_ffn(cur, il, gated="geglu")
        b.cb(cur, "ffn_out", il)
        # llama.cpp names this norm as of no layer
        cur = b.norm_with(cur, b.weights[f"blk.{il}.post_ffw_norm.weight"], -1)
        b.cb(cur, "ffn_post_norm", il)
        cur = ops.add(ctx0, cur, sa_out)
        b.cb(cur, "l_out", il)
        inpL = cur
    head(b, inpL)
