"""The parameters of a context: what was asked for, and what the model's own numbers make of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from vizggml.errors import VizggmlError
from vizggml.ggml.threadpool import GGML_MAX_N_THREADS
from vizggml.ggml.types import TYPES, pad, type_named
from vizggml.llama.hparams import HParams

LLAMA_MAX_SEQ = 256
N_CTX_PAD = 256
F32_MAX = 3.4e38
N_CTX_MAX = 2**31 - N_CTX_PAD
LIMITS = {
    "n_ctx": (0, N_CTX_MAX),
    "n_batch": (1, N_CTX_MAX),
    "n_ubatch": (0, N_CTX_MAX),
    "n_seq_max": (1, LLAMA_MAX_SEQ),
    "n_threads": (1, GGML_MAX_N_THREADS),
    "n_gpu_layers": (-1, 2**31 - 1),
    "device_memory": (0, 2**63 - 1),
}
"""The least and the most that a parameter may be."""

CACHE_TYPES = ("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "IQ4_NL", "Q5_0", "Q5_1")
"""`kv_cache_types`, common/arg.cpp: what keys and values may be kept as."""


@dataclass(frozen=True, slots=True)
class ContextParams:
    """`llama_context_params`, include/llama.h. 0 is "from the model" for `n_ctx`, and `n_batch` for `n_ubatch`.

    With `kv_unified` all sequences share the cache's cells; without, each has a stream of cells of its own, and `n_ctx`
    is shared out among them.
    `flash_attn` "auto" is on: every device that is here has it.
    `textbook` multiplies in F32 with weights decoded to F32, instead of quantizing activations as ggml does. `fast`
    uses the compiled kernels: None means if they are installed.
    The last `n_gpu_layers` layers are computed on a device with memory of its own, of `device_memory` bytes (0: without
    end). The output counts as one more layer; -1 means all.
    `swa_full` gives the layers with a sliding window as many cells as the others have, so that positions out of the
    window are kept until they are removed. llama.cpp's library does so unless told otherwise, its programs do not.
    """

    n_ctx: int = 512
    n_batch: int = 2048
    n_ubatch: int = 512
    n_seq_max: int = 1
    flash_attn: bool | Literal["auto"] = True
    type_k: str = "f16"
    type_v: str = "f16"
    kv_unified: bool = True
    n_threads: int = 2
    rope_freq_base: float = 0.0
    rope_freq_scale: float = 0.0
    textbook: bool = False
    fast: bool | None = None
    n_gpu_layers: int = 0
    device_memory: int = 0
    swa_full: bool = True


@dataclass(frozen=True, slots=True)
class CParams:
    """`llama_cparams`, src/llama-cparams.h."""

    n_ctx: int
    n_ctx_seq: int
    n_batch: int
    n_ubatch: int
    n_seq_max: int
    n_outputs_max: int
    n_threads: int
    flash_attn: bool
    type_k: str
    type_v: str
    kv_unified: bool
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
    n_gpu_layers: int = 0
    device_memory: int = 0
    swa_full: bool = True
    embeddings: bool = False

    @classmethod
    def resolve(cls, params: ContextParams, hparams: HParams) -> CParams:
        """What `llama_context::llama_context`, src/llama-context.cpp, makes of the parameters."""
        _check(params)
        n_ctx = params.n_ctx or hparams.n_ctx_train
        n_batch = min(n_ctx, params.n_batch)
        if params.n_seq_max > n_batch:
            raise VizggmlError(f"n_seq_max {params.n_seq_max}: a batch of {n_batch} has no token for each sequence")
        freq_scale = params.rope_freq_scale or hparams.rope_freq_scale_train
        if hparams.rope_scaling_type_train == "none":
            freq_scale = 1.0
        freq_base = params.rope_freq_base or hparams.rope_freq_base_train
        for name, value in (("rope_freq_base", freq_base), ("rope_freq_scale", freq_scale)):
            if not 0 < value <= F32_MAX:
                raise VizggmlError(f"{name} {value}: it must be above 0 and at most {F32_MAX:g}")
        ext_factor, attn_factor = _yarn(hparams, freq_scale)
        n_stream = 1 if params.kv_unified else params.n_seq_max
        n_ctx_seq = pad(pad(n_ctx, N_CTX_PAD) // n_stream, N_CTX_PAD)
        if n_ctx_seq * n_stream > N_CTX_MAX:
            raise VizggmlError(f"n_ctx {n_ctx_seq * n_stream}: the limit is {N_CTX_MAX}")
        _check_cache(params, hparams)
        return cls(
            n_ctx=n_ctx_seq * n_stream,
            n_ctx_seq=n_ctx_seq,
            n_batch=n_batch,
            n_ubatch=min(n_batch, params.n_ubatch or params.n_batch),
            n_seq_max=params.n_seq_max,
            n_outputs_max=n_batch,
            n_threads=params.n_threads,
            flash_attn=bool(params.flash_attn),
            type_k=_cache_type("type_k", params.type_k),
            type_v=_cache_type("type_v", params.type_v),
            kv_unified=params.kv_unified,
            rope_freq_base=freq_base,
            rope_freq_scale=freq_scale,
            n_ctx_orig_yarn=hparams.n_ctx_orig_yarn or hparams.n_ctx_train,
            yarn_ext_factor=ext_factor,
            yarn_attn_factor=attn_factor,
            yarn_beta_fast=hparams.yarn_beta_fast,
            yarn_beta_slow=hparams.yarn_beta_slow,
            causal_attn=hparams.causal_attn,
            textbook=params.textbook,
            fast=params.fast,
            n_gpu_layers=params.n_gpu_layers,
            device_memory=params.device_memory,
            swa_full=params.swa_full,
        )


def _check(params: ContextParams) -> None:
    """VizggmlError unless each parameter is of its kind and within its limits."""
    for name, (least, most) in LIMITS.items():
        value = getattr(params, name)
        if isinstance(value, bool) or not isinstance(value, int):
            raise VizggmlError(f"{name} {value!r:.40}: it must be a whole number")
        if value < least:
            raise VizggmlError(f"{name} {value}: it must be at least {least}")
        if value > most:
            raise VizggmlError(f"{name} {value}: the limit is {most}")
    if not isinstance(params.flash_attn, bool) and params.flash_attn != "auto":
        raise VizggmlError(f"flash_attn {params.flash_attn!r:.40}: it must be True, False or 'auto'")
    for name in ("kv_unified", "textbook", "swa_full"):
        if not isinstance(getattr(params, name), bool):
            raise VizggmlError(f"{name} {getattr(params, name)!r:.40}: it must be True or False")
    for name in ("rope_freq_base", "rope_freq_scale"):
        value = getattr(params, name)
        if not isinstance(value, int | float) or not 0 <= value < math.inf:
            raise VizggmlError(f"{name} {value!r:.40}: it must be a finite number, not below 0")


def _cache_type(name: str, type: str) -> str:
    if not isinstance(type, str):
        raise VizggmlError(f"{name} {type!r:.40}: it must be the name of a type")
    found = type_named(type)
    if found.name not in CACHE_TYPES:
        raise VizggmlError(f"{name} {found}: the KV cache holds {', '.join(CACHE_TYPES)}")
    return found.name


def _check_cache(params: ContextParams, hparams: HParams) -> None:
    """What `llama_init_from_model`, src/llama-context.cpp, asks of the types of K and V."""
    heads = {"type_k": hparams.n_embd_head_k, "type_v": hparams.n_embd_head_v}
    for name, n_embd_head in heads.items():
        type = TYPES[_cache_type(name, getattr(params, name))]
        if not type.is_quantized:
            continue
        if name == "type_v" and not params.flash_attn:
            raise VizggmlError(f"type_v {type}: quantized values need flash attention, it is off")
        if n_embd_head % type.blck_size:
            raise VizggmlError(f"{name} {type}: heads of {n_embd_head} are not whole blocks of {type.blck_size}")


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
