"""Hyper-parameters: those of real files, llama.cpp's defaults, and numbers that fit no model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vizggml.errors import VizggmlError
from vizggml.ggml.gguf import read_gguf, write_gguf
from vizggml.llama.hparams import ROPE_TYPE_NEOX, ROPE_TYPE_NORM, HParams
from vizggml.llama.models import resolve_model

LEAST: dict[str, Any] = {
    "general.architecture": "llama",
    "tokenizer.ggml.model": "none",
    "llama.vocab_size": 100,
    "llama.context_length": 512,
    "llama.embedding_length": 64,
    "llama.block_count": 3,
    "llama.feed_forward_length": 96,
    "llama.attention.head_count": 4,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
}


def hparams(tmp_path: Path, change: dict[str, Any], arch: str = "llama") -> HParams:
    path = tmp_path / "h.gguf"
    values = {k.replace("llama.", f"{arch}."): v for k, v in (LEAST | change).items() if v is not None}
    write_gguf(path, values | {"general.architecture": arch})
    return HParams.from_gguf(read_gguf(path))


def test_smollm2() -> None:
    # The figures of the model's published configuration.
    hp = HParams.from_gguf(read_gguf(resolve_model("smollm2")))
    assert (hp.architecture, hp.n_layer, hp.n_embd, hp.n_vocab, hp.n_ctx_train) == ("llama", 30, 576, 49152, 8192)
    assert (set(hp.n_head), set(hp.n_head_kv), set(hp.n_ff)) == ({9}, {3}, {1536})
    assert (hp.n_embd_head_k, hp.n_embd_head_v, hp.n_rot, hp.rope_type) == (64, 64, 64, ROPE_TYPE_NORM)
    assert (hp.n_gqa(), hp.n_embd_k_gqa(), hp.n_embd_v_gqa()) == (3, 192, 192)
    assert (hp.rope_freq_base_train, hp.f_norm_rms_eps) == (100000.0, np.float32(1e-5))


def test_what_llama_cpp_assumes_where_a_file_is_silent(tmp_path: Path) -> None:
    hp = hparams(tmp_path, {})
    assert hp.n_head_kv == hp.n_head == (4, 4, 4)
    assert (hp.n_embd_head_k, hp.n_embd_head_v, hp.n_rot) == (16, 16, 16)
    assert (hp.rope_freq_base_train, hp.rope_freq_scale_train, hp.rope_scaling_type_train) == (10000.0, 1.0, "linear")
    assert (hp.n_ctx_orig_yarn, hp.rope_attn_factor, hp.rope_finetuned) == (512, 1.0, False)
    assert (hp.yarn_ext_factor, hp.yarn_attn_factor, hp.yarn_beta_fast, hp.yarn_beta_slow) == (-1.0, 1.0, 32.0, 1.0)
    assert (hp.n_cls_out, hp.causal_attn, hp.f_attention_scale) == (1, True, 0.0)


def test_what_a_file_says(tmp_path: Path) -> None:
    hp = hparams(
        tmp_path,
        {
            "llama.attention.head_count": np.array([4, 2, 4], np.uint32),
            "llama.attention.head_count_kv": np.array([2, 1, 2], np.int32),
            "llama.feed_forward_length": [96, 128, 64],
            "llama.attention.key_length": 32,
            "llama.attention.value_length": 32,
            "llama.rope.dimension_count": 32,
            "llama.rope.freq_base": 5e5,
            "llama.rope.scaling.type": "yarn",
            "llama.rope.scaling.factor": 4.0,
            "llama.rope.scaling.original_context_length": 128,
            "llama.rope.scaling.attn_factor": 0.5,
            "llama.rope.scaling.finetuned": True,
        },
        "qwen3",
    )
    assert (hp.n_head, hp.n_head_kv, hp.n_ff) == ((4, 2, 4), (2, 1, 2), (96, 128, 64))
    assert (hp.n_embd_k_gqa(0), hp.n_embd_k_gqa(1), hp.n_rot, hp.rope_type) == (64, 32, 32, ROPE_TYPE_NEOX)
    assert (hp.rope_freq_base_train, hp.rope_freq_scale_train, hp.rope_scaling_type_train) == (5e5, 0.25, "yarn")
    assert (hp.n_ctx_orig_yarn, hp.rope_attn_factor, hp.rope_finetuned) == (128, 0.5, True)


def test_the_old_key_of_linear_scaling(tmp_path: Path) -> None:
    assert hparams(tmp_path, {"llama.rope.scale_linear": 2.0}).rope_freq_scale_train == 0.5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"llama.block_count": None}, "h.gguf: key 'llama.block_count' is missing"),
        ({"llama.block_count": 513}, "'llama.block_count' is 513, it must be from 1 to 512"),
        ({"llama.block_count": 0}, "'llama.block_count' is 0, it must be from 1 to 512"),
        ({"llama.block_count": np.int32(3)}, "'llama.block_count' has type i32, it must be u32"),
        ({"llama.embedding_length": 2**32 - 1}, "'llama.embedding_length' is 4294967295, it must be from 1"),
        ({"llama.embedding_length": "64"}, "'llama.embedding_length' has type str, it must be u32"),
        ({"llama.attention.head_count": None}, "'llama.attention.head_count' is missing"),
        ({"llama.attention.head_count": 0}, "'llama.attention.head_count' is 0 in layer 0"),
        ({"llama.attention.head_count": [4, 4]}, "has 2 values, 3 layers need one each"),
        ({"llama.attention.head_count": [4, 4, -1]}, "'llama.attention.head_count' is -1 in layer 2"),
        ({"llama.attention.head_count": [0.5] * 3}, r"has type arr\[f32,3\], it must be an array of i32 or u32"),
        ({"llama.attention.head_count_kv": 3}, "layer 0: 4 heads are not a multiple of 3 KV heads"),
        ({"llama.rope.dimension_count": 8}, r"heads of 16 \(keys\) and 16 \(values\) with 8 rotated elements"),
        ({"llama.attention.value_length": 8}, r"heads of 16 \(keys\) and 8 \(values\)"),
        ({"llama.embedding_length": 3}, "'llama.attention.key_length' is 0, it must be from 1"),
        ({"llama.attention.layer_norm_rms_epsilon": None}, "layer_norm_rms_epsilon' is missing"),
        (
            {"llama.attention.layer_norm_rms_epsilon": float("nan")},
            "layer_norm_rms_epsilon' is nan, it must be a finite",
        ),
        ({"llama.rope.freq_base": float("inf")}, "'llama.rope.freq_base' is inf, it must be a finite"),
        ({"llama.rope.scaling.factor": -1.0}, "'llama.rope.scaling.factor' is -1.0, it must be a finite"),
        ({"llama.rope.scaling.type": "dynamic"}, "'dynamic' is not one of none, linear, yarn, longrope"),
        ({"llama.expert_count": 8}, "'llama.expert_used_count' is missing"),
        (
            {"llama.expert_count": 8, "llama.expert_used_count": 9},
            "'llama.expert_used_count' is 9, it must be from 1 to 8",
        ),
        (
            {"llama.expert_count": 8, "llama.expert_used_count": 2, "llama.expert_group_count": 4},
            "'llama.expert_group_count' is 4: experts in groups are not supported",
        ),
        ({"llama.nextn_predict_layers": 1}, "'llama.nextn_predict_layers' is 1: next-token"),
        ({"split.count": np.uint16(3)}, "'split.count' is 3: models in several files are not supported"),
        ({"llama.vocab_size": None}, "'llama.vocab_size' is missing"),
        ({"llama.vocab_size": 0}, "'llama.vocab_size' is 0"),
        ({"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.tokens": np.array([], np.int32)}, "must be an array of str"),
    ],
)
def test_what_fits_no_model(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(VizggmlError, match=message):
        hparams(tmp_path, change)


def test_an_architecture_that_is_not_supported(tmp_path: Path) -> None:
    with pytest.raises(VizggmlError, match="'mamba' is not supported, only llama, qwen3, qwen3moe, gemma3 are"):
        hparams(tmp_path, {}, "mamba")


def test_a_file_that_names_no_architecture(tmp_path: Path) -> None:
    write_gguf(tmp_path / "n.gguf", {"a": 1})
    file = read_gguf(tmp_path / "n.gguf")
    with pytest.raises(VizggmlError, match=r"n\.gguf: key 'general.architecture' is missing"):
        HParams.from_gguf(file)
