"""Sliding windows: which layers see only the last tokens, how many, and what else a gemma3 file states."""

from __future__ import annotations

from typing import TypedDict

import numpy as np

from vizggml.llama.metadata import Metadata

N_LAYER_27B = 62
GEMMA3_PATTERN = 6
"""Five layers with a window, then one that sees everything."""


class WindowFields(TypedDict, total=False):
    """The fields of `HParams` that are read here."""

    n_swa: int
    swa_layers: tuple[bool, ...]
    rope_freq_base_train_swa: float
    f_final_logit_softcapping: float
    f_attention_scale: float


def gemma3_fields(meta: Metadata, n_layer: int, head_of_width: int, n_embd_head: int) -> WindowFields:
    """`llama_model_gemma3::load_arch_hparams`, src/models/gemma3.cpp. `head_of_width` is n_embd / n_head.

    VizggmlError for a window that no layer has.
    """
    fields = WindowFields(
        f_final_logit_softcapping=meta.get_f32("gemma3.final_logit_softcapping", 0.0),
        f_attention_scale=one_over_root(head_of_width if n_layer == N_LAYER_27B else n_embd_head),
    )
    n_swa = meta.get_u32("gemma3.attention.sliding_window", 0)
    if not n_swa:
        return fields
    if n_swa >= 2**31:
        raise meta.fail(f"key 'gemma3.attention.sliding_window' is {n_swa}, it must be below {2**31}")
    for key in ("attention.key_length_swa", "attention.value_length_swa", "rope.dimension_count_swa"):
        if meta.get_u32(f"gemma3.{key}", n_embd_head) != n_embd_head:
            raise meta.fail(f"key 'gemma3.{key}': heads of another size in layers with a window are not supported")
    layers = swa_pattern(meta, "gemma3.attention.sliding_window_pattern", n_layer, GEMMA3_PATTERN)
    if not any(layers):
        raise meta.fail(f"key 'gemma3.attention.sliding_window' is {n_swa}, but no layer has a window")
    fields["n_swa"], fields["swa_layers"] = n_swa, layers
    fields["rope_freq_base_train_swa"] = meta.get_f32("gemma3.rope.freq_base_swa", 10000.0)
    return fields


def swa_pattern(meta: Metadata, key: str, n_layer: int, n_pattern: int) -> tuple[bool, ...]:
    """For each layer whether it has a window: stated one by one, or all but every `n_pattern`-th, 0 for all.

    `llama_model_base::load_swa_pattern`, src/llama-model.cpp; `llama_hparams::set_swa_pattern`, src/llama-hparams.cpp.
    """
    stated = meta.gguf.metadata.get(key)
    if isinstance(stated, np.ndarray):
        if stated.dtype not in (np.bool_, np.int32, np.uint32):
            raise meta.fail(f"key '{key}' has type {meta.gguf.types[key]}, it must be an array of bool, i32 or u32")
        layers = [bool(x) for x in stated[:n_layer]]
        return (*layers, *(False,) * (n_layer - len(layers)))
    n_pattern = meta.get_u32(key, n_pattern)
    return tuple(n_pattern == 0 or il % n_pattern < n_pattern - 1 for il in range(n_layer))


def one_over_root(n: int) -> float:
    """In F32, as the scores are scaled."""
    return float(np.float32(1) / np.sqrt(np.float32(n)))
