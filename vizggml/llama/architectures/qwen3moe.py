"""The graph of the qwen3moe architecture: qwen3's, with experts in every layer."""

from __future__ import annotations

from vizggml.llama.architectures import qwen3
from vizggml.llama.experts import moe_ffn
from vizggml.llama.graph import GraphBuilder


def build(b: GraphBuilder) -> None:
    """`llama_model_qwen3moe::graph`, src/models/qwen3moe.cpp."""
    qwen3.build(b, moe_ffn)
