"""The graph of the qwen3 architecture: llama's, with a norm over each head of Q and K."""

from __future__ import annotations

from collections.abc import Callable

from vizggml.ggml import ops
from vizggml.ggml.tensor import Tensor
from vizggml.llama.architectures.llama import dense, head
from vizggml.llama.graph import GraphBuilder

FeedForward = Callable[[GraphBuilder, Tensor, int], Tensor]


def build(b: GraphBuilder, feed_forward: FeedForward = dense) -> None:
    """`llama_model_qwen3::graph`, src/models/qwen3.cpp."""
    hp, ctx0 = b.hparams, b.ctx0
    inpL = b.build_inp_embd()
    inp_pos = b.build_inp_pos()
    inp_attn = b.build_attn_inp_kv()
    inp_out_ids = b.build_inp_out_ids()
    for il in range(hp.n_layer):
        inpSA = inpL
        cur = b.build_norm(inpL, "attn_norm", il)
        b.cb(cur, "attn_norm", il)
        Qcur, Kcur, Vcur = b.build_qkv(cur, il)
        Qcur = b.build_norm(Qcur, "attn_q_norm", il)
        b.cb(Qcur, "Qcur_normed", il)
        Qcur = b.build_rope(Qcur, inp_pos, None)
        Kcur = b.build_norm(Kcur, "attn_k_norm", il)
        b.cb(Kcur, "Kcur_normed", il)
        Kcur = b.build_rope(Kcur, inp_pos, None)
        b.cb(Qcur, "Qcur", il)
        b.cb(Kcur, "Kcur", il)
        b.cb(Vcur, "Vcur", il)
        cur = b.build_attn(inp_attn, Qcur, Kcur, Vcur, b.kq_scale, il)
        if il == hp.n_layer - 1:
            cur = ops.get_rows(ctx0, cur, inp_out_ids)
            inpSA = ops.get_rows(ctx0, inpSA, inp_out_ids)
        ffn_inp = ops.add(ctx0, cur, inpSA)
        b.cb(ffn_inp, "ffn_inp", il)
        cur = b.build_norm(ffn_inp, "ffn_norm", il)
        b.cb(cur, "ffn_norm", il)
        cur = feed_forward(b, cur, il)
        cur = ops.add(ctx0, cur, ffn_inp)
        b.cb(cur, "l_out", il)
        inpL = cur
    head(b, inpL)
