"""GGUF files of any shape with random weights, written by the `gguf` package: for graphs, buffers and logits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np
from numpy.typing import NDArray

from vizggml.ggml.types import TYPES, Type


@dataclass(frozen=True)
class Shape:
    """What decides a llama, qwen3, qwen3moe or gemma3 graph. `head_dim` 0 is n_embd / n_head.

    `n_swa` 0 states no window; `swa_pattern` -1 no pattern.
    """

    arch: str = "llama"
    n_layer: int = 2
    n_embd: int = 64
    n_head: int = 4
    n_head_kv: int = 2
    n_ff: int = 96
    n_vocab: int = 160
    head_dim: int = 0
    tied: bool = True
    type: str = "F16"
    attn_bias: bool = False
    rope_freqs: bool = False
    context_length: int = 4096
    n_expert: int = 0
    n_expert_used: int = 2
    n_swa: int = 0
    swa_pattern: int = -1
    softcap: float = 0.0
    freq_base_swa: float = 0.0

    @property
    def n_embd_head(self) -> int:
        return self.head_dim or self.n_embd // self.n_head


ZEROS = ("Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS", "MXFP4")
"""The types that the `gguf` package cannot write: their matrices are zero."""

MINIMIND = Shape("qwen3", n_layer=8, n_embd=768, n_head=8, n_head_kv=4, n_ff=2048, n_vocab=6400, context_length=32768)
"""The MiniMind-like shape: 64 million parameters, qwen3 architecture, F16, tied embeddings."""


Quantizer = Callable[[Type, NDArray[np.float32]], NDArray[np.uint8]]
"""Rows (n, ne0) as bytes (n, row size)."""


def write(path: Path, shape: Shape, seed: int = 0, quantizer: Quantizer | None = None) -> Path:
    """Write a GGUF with random weights and no vocabulary; `quantizer` encodes the quantized ones, None: as it comes."""
    rng = np.random.default_rng(seed)
    w = gguf.GGUFWriter(str(path), shape.arch)
    w.add_context_length(shape.context_length)
    w.add_embedding_length(shape.n_embd)
    w.add_block_count(shape.n_layer)
    w.add_feed_forward_length(shape.n_ff)
    w.add_head_count(shape.n_head)
    w.add_head_count_kv(shape.n_head_kv)
    w.add_layer_norm_rms_eps(1e-5)
    w.add_rope_freq_base(10000.0)
    if shape.head_dim:
        w.add_key_length(shape.head_dim)
        w.add_value_length(shape.head_dim)
    if shape.n_expert:
        w.add_expert_count(shape.n_expert)
        w.add_expert_used_count(shape.n_expert_used)
        w.add_expert_feed_forward_length(shape.n_ff)
    if shape.n_swa:
        w.add_sliding_window(shape.n_swa)
    if shape.swa_pattern >= 0:
        w.add_uint32(f"{shape.arch}.attention.sliding_window_pattern", shape.swa_pattern)
    if shape.freq_base_swa:
        w.add_float32(f"{shape.arch}.rope.freq_base_swa", shape.freq_base_swa)
    if shape.softcap:
        w.add_final_logit_softcapping(shape.softcap)
    if shape.arch == "llama" or shape.head_dim:
        w.add_rope_dimension_count(shape.n_embd_head)
    w.add_vocab_size(shape.n_vocab)
    w.add_tokenizer_model("none")

    def matrix(name: str, *ne: int, type: str = shape.type) -> None:
        values = (rng.standard_normal(ne, np.float32) * (ne[-1] ** -0.5)).astype(np.float32)
        if type == "F32":
            w.add_tensor(name, values)
        elif type == "F16":
            w.add_tensor(name, values.astype(np.float16))
        elif quantizer is not None:
            rows = quantizer(TYPES[type], values.reshape(-1, ne[-1]))
            w.add_tensor(name, rows.reshape(*ne[:-1], -1), raw_dtype=gguf.GGMLQuantizationType[type])
        else:
            kind = gguf.GGMLQuantizationType[type]
            if kind.name in ZEROS:
                columns = ne[-1] // gguf.GGML_QUANT_SIZES[kind][0] * gguf.GGML_QUANT_SIZES[kind][1]
                w.add_tensor(name, np.zeros((*ne[:-1], columns), np.uint8), raw_dtype=kind)
            else:
                w.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)

    def vector(name: str, n: int, around: float = 1.0) -> None:
        w.add_tensor(name, (around + 0.1 * rng.standard_normal(n)).astype(np.float32))

    head, n_q, n_kv = shape.n_embd_head, shape.n_embd_head * shape.n_head, shape.n_embd_head * shape.n_head_kv
    matrix("token_embd.weight", shape.n_vocab, shape.n_embd)
    vector("output_norm.weight", shape.n_embd)
    if not shape.tied:
        matrix("output.weight", shape.n_vocab, shape.n_embd)
    if shape.rope_freqs:
        vector("rope_freqs.weight", head // 2)
    for i in range(shape.n_layer):
        b = f"blk.{i}."
        vector(b + "attn_norm.weight", shape.n_embd)
        matrix(b + "attn_q.weight", n_q, shape.n_embd)
        matrix(b + "attn_k.weight", n_kv, shape.n_embd)
        matrix(b + "attn_v.weight", n_kv, shape.n_embd)
        matrix(b + "attn_output.weight", shape.n_embd, n_q)
        if shape.attn_bias:
            vector(b + "attn_q.bias", n_q, 0.0)
            vector(b + "attn_k.bias", n_kv, 0.0)
            vector(b + "attn_v.bias", n_kv, 0.0)
        if shape.arch.startswith(("qwen3", "gemma3")):
            vector(b + "attn_q_norm.weight", head)
            vector(b + "attn_k_norm.weight", head)
        if shape.arch == "gemma3":
            vector(b + "post_attention_norm.weight", shape.n_embd)
            vector(b + "post_ffw_norm.weight", shape.n_embd)
        vector(b + "ffn_norm.weight", shape.n_embd)
        many, exps = ((shape.n_expert,), "_exps") if shape.n_expert else ((), "")
        if many:
            matrix(b + "ffn_gate_inp.weight", shape.n_expert, shape.n_embd, type="F32")
        matrix(b + f"ffn_gate{exps}.weight", *many, shape.n_ff, shape.n_embd)
        matrix(b + f"ffn_up{exps}.weight", *many, shape.n_ff, shape.n_embd)
        matrix(b + f"ffn_down{exps}.weight", *many, shape.n_embd, shape.n_ff)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    return path
