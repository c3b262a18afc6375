"""The parameters of a context: what was asked for, and what the model's own numbers make of it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from vizggml.errors import VizggmlError
from vizggml.ggml.types import F16, F32, pad, type_named
from vizggml.llama.hparams import HParams

LLAMA_MAX_SEQ = 256
N_CTX_PAD = 256


@dataclass(frozen=True, slots=True)
class ContextParams:
    """`llama_context_params`, include/llama.h. 0 is "from the model" for `n_ctx`, and `n_batch` for `n_ubatch`.

    `textbook` multiplies in F32 with weights decoded to F32, instead of quantizing activations as ggml does. `fast`
    uses the compiled kernels: None means if they are installed.
    """

    n_ctx: int = 512
    n_batch: int = 2048
    n_ubatch: int = 512
    n_seq_max: int = 1
    flash_attn: bool = True
    type_k: str = "f16"
    type_v: str = "f16"
    n_threads: int = 2
    rope_freq_base: float = 0.0
    rope_freq_scale: float = 0.0
    textbook: bool = False
    fast: bool | None = None


@dataclass(frozen=True, slots=True)
class CParams:
    """`llama_cparams`, src/llama-cparams.h."""

    n_ctx: int
    n_batch: int
    n_ubatch: int
    n_seq_max: int
    n_outputs_max: int
    n_threads: int
    flash_attn: bool
    type_k: str
    type_v: str
    rope_freq_base: float
    rope_freq_scale: float
    n_ctx_orig_yarn: int
    yarn_ext_factor: float
    yarn_attn_factor: float
    yarn_beta_fast: float
    yarn_beta_slow: float
    causal_attn: bool
    textbook: bool
    fast: bool | None
    embeddings: bool = False

    @classmethod
    def resolve(cls, params: ContextParams, hparams: HParams) -> CParams:
        """What `llama_context::llama_context`, src/llama-context.cpp, makes of the parameters."""
        for name in ("n_ctx", "n_ubatch"):
            _at_least(name, getattr(params, name), 0)
        for name in ("n_batch", "n_seq_max", "n_threads"):
            _at_least(name, getattr(params, name), 1)
        if params.n_seq_max > LLAMA_MAX_SEQ:
            raise VizggmlError(f"n_seq_max {params.n_seq_max}: the limit is {LLAMA_MAX_SEQ}")
        n_ctx = params.n_ctx or hparams.n_ctx_train
        n_batch = min(n_ctx, params.n_batch)
        freq_scale = params.rope_freq_scale or hparams.rope_freq_scale_train
        if hparams.rope_scaling_type_train == "none":
            freq_scale = 1.0
        ext_factor, attn_factor = _yarn(hparams, freq_scale)
        return cls(
            n_ctx=pad(n_ctx, N_CTX_PAD),
            n_batch=n_batch,
            n_ubatch=min(n_batch, params.n_ubatch or params.n_batch),
            n_seq_max=params.n_seq_max,
            n_outputs_max=n_batch,
            n_threads=params.n_threads,
            flash_attn=params.flash_attn,
            type_k=_cache_type("type_k", params.type_k),
            type_v=_cache_type("type_v", params.type_v),
            rope_freq_base=params.rope_freq_base or hparams.rope_freq_base_train,
            rope_freq_scale=freq_scale,
            n_ctx_orig_yarn=hparams.n_ctx_orig_yarn or hparams.n_ctx_train,
            yarn_ext_factor=ext_factor,
            yarn_attn_factor=attn_factor,
            yarn_beta_fast=hparams.yarn_beta_fast,
            yarn_beta_slow=hparams.yarn_beta_slow,
            causal_attn=hparams.causal_attn,
            textbook=params.textbook,
            fast=params.fast,
        )


def _at_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise VizggmlError(f"{name} {value}: it must be at least {least}")


def _cache_type(name: str, type: str) -> str:
    found = type_named(type)
    if found not in (F16, F32):
        raise VizggmlError(
            f"{name} {found}: the KV cache holds F16 or F32; quantized keys and values, which are rotated before they "
            "are stored, are not supported"
        )
    return found.name


def _yarn(hparams: HParams, freq_scale: float) -> tuple[float, float]:
    """The extrapolation and magnitude factors of YaRN; 0 and the model's own factor without it."""
    ext_factor = hparams.yarn_ext_factor
    if ext_factor < 0:
        ext_factor = 1.0 if hparams.rope_scaling_type_train == "yarn" else 0.0
    attn_factor = hparams.yarn_attn_factor
    if ext_factor != 0:
        factor = 1.0 / freq_scale
        attn_factor = 1.0 if factor <= 1 else 0.1 * math.log(factor) + 1.0
        attn_factor *= 1.0 / (1.0 + 0.1 * math.log(factor))
    return ext_factor, attn_factor * hparams.rope_attn_factor
