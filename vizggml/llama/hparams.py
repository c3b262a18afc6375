"""The hyper-parameters that a model file states, with llama.cpp's names, defaults and checks."""

from __future__ import annotations

from dataclasses import dataclass

from vizggml.errors import VizggmlError
from vizggml.ggml.gguf import GGUF, quoted
from vizggml.llama.metadata import Metadata
from vizggml.llama.windows import gemma3_fields

LLAMA_MAX_LAYERS = 512
LLAMA_MAX_EXPERTS = 768

ROPE_TYPE_NORM = 0
ROPE_TYPE_NEOX = 2

ROPE_TYPES: dict[str, int] = {
    "llama": ROPE_TYPE_NORM,
    "qwen3": ROPE_TYPE_NEOX,
    "qwen3moe": ROPE_TYPE_NEOX,
    "gemma3": ROPE_TYPE_NEOX,
}
"""The known architectures, and which elements of a head their rope rotates together: neighbours (norm), or those
half a head apart (neox). `llama_model_rope_type`, src/llama-model.cpp."""

MIXTURES = {"llama": False, "qwen3moe": True}
"""The architectures whose layers can have experts, and whether they must."""

ROPE_SCALING_TYPES = ("none", "linear", "yarn", "longrope")


@dataclass(frozen=True, slots=True)
class HParams:
    """`llama_hparams`, src/llama-hparams.h. Lengths count elements; a tuple has one number for each layer.

    A field that is a `_train` value is what the file asks for; the context's parameters may say otherwise.
    """

    architecture: str
    name: str
    n_vocab: int
    n_ctx_train: int
    n_embd: int
    n_layer: int
    n_head: tuple[int, ...]
    n_head_kv: tuple[int, ...]
    n_ff: tuple[int, ...]
    n_embd_head_k: int
    n_embd_head_v: int
    n_rot: int
    f_norm_rms_eps: float
    rope_type: int
    rope_freq_base_train: float
    rope_freq_scale_train: float
    rope_scaling_type_train: str
    rope_finetuned: bool
    rope_attn_factor: float
    n_ctx_orig_yarn: int
    yarn_ext_factor: float = -1.0
    yarn_attn_factor: float = 1.0
    yarn_beta_fast: float = 32.0
    yarn_beta_slow: float = 1.0
    f_attention_scale: float = 0.0
    n_cls_out: int = 1
    causal_attn: bool = True
    n_expert: int = 0
    n_expert_used: int = 0
    n_ff_exp: int = 0
    n_swa: int = 0
    swa_layers: tuple[bool, ...] = ()
    rope_freq_base_train_swa: float = 10000.0
    f_final_logit_softcapping: float = 0.0

    def is_swa(self, il: int) -> bool:
        """Whether the layer sees only a window of `n_swa` positions. `llama_hparams::is_swa`, src/llama-hparams.cpp."""
        return bool(self.swa_layers) and self.swa_layers[il]

    def n_gqa(self, il: int = 0) -> int:
        """How many heads share one KV head."""
        return self.n_head[il] // self.n_head_kv[il]

    def n_embd_k_gqa(self, il: int = 0) -> int:
        """Elements of one token's keys, all KV heads of the layer."""
        return self.n_embd_head_k * self.n_head_kv[il]

    def n_embd_v_gqa(self, il: int = 0) -> int:
        """Elements of one token's values, all KV heads of the layer."""
        return self.n_embd_head_v * self.n_head_kv[il]

    @classmethod
    def from_gguf(cls, gguf: GGUF) -> HParams:
        """`llama_model_base::load_hparams`, src/llama-model.cpp.

        VizggmlError for an architecture that is not supported, a missing key, or numbers that fit no model.
        """
        meta = Metadata(gguf)
        arch = meta.get_str("general.architecture")
        if arch not in ROPE_TYPES:
            raise meta.fail(
                f"key 'general.architecture': {quoted(arch)} is not supported, only {', '.join(ROPE_TYPES)} are"
            )
        _refuse_unsupported(meta, arch)
        n_layer = _positive(meta, f"{arch}.block_count", LLAMA_MAX_LAYERS)
        n_embd = _positive(meta, f"{arch}.embedding_length")
        n_head = _heads(meta, f"{arch}.attention.head_count", n_layer, None)
        n_head_kv = _heads(meta, f"{arch}.attention.head_count_kv", n_layer, n_head)
        for il, (n, n_kv) in enumerate(zip(n_head, n_head_kv, strict=True)):
            if n % n_kv:
                raise meta.fail(f"layer {il}: {n} heads are not a multiple of {n_kv} KV heads")
        n_embd_head_k = _positive(meta, f"{arch}.attention.key_length", default=n_embd // n_head[0])
        n_embd_head_v = _positive(meta, f"{arch}.attention.value_length", default=n_embd // n_head[0])
        n_rot = _positive(meta, f"{arch}.rope.dimension_count", default=n_embd_head_k)
        if not n_rot == n_embd_head_k == n_embd_head_v:
            raise meta.fail(
                f"heads of {n_embd_head_k} (keys) and {n_embd_head_v} (values) with {n_rot} rotated elements: "
                f"{arch} needs the three to be equal"
            )
        n_ctx_train = _positive(meta, f"{arch}.context_length")
        n_expert, n_expert_used, n_ff_exp = _experts(meta, arch) if arch in MIXTURES else (0, 0, 0)
        factor = _finite(meta, f"{arch}.rope.scaling.factor", _finite(meta, f"{arch}.rope.scale_linear", 0.0))
        return cls(
            architecture=arch,
            name=meta.get_str("general.name", ""),
            n_vocab=_n_vocab(meta, arch),
            n_ctx_train=n_ctx_train,
            n_embd=n_embd,
            n_layer=n_layer,
            n_head=n_head,
            n_head_kv=n_head_kv,
            n_ff=_heads(meta, f"{arch}.feed_forward_length", n_layer, (n_ff_exp,) * n_layer if n_ff_exp else None),
            n_embd_head_k=n_embd_head_k,
            n_embd_head_v=n_embd_head_v,
            n_rot=n_rot,
            f_norm_rms_eps=_finite(meta, f"{arch}.attention.layer_norm_rms_epsilon"),
            rope_type=ROPE_TYPES[arch],
            rope_freq_base_train=_finite(meta, f"{arch}.rope.freq_base", 10000.0),
            rope_freq_scale_train=1.0 if factor == 0.0 else 1.0 / factor,
            rope_scaling_type_train=_rope_scaling_type(meta, arch),
            rope_finetuned=meta.get_bool(f"{arch}.rope.scaling.finetuned", False),
            rope_attn_factor=_finite(meta, f"{arch}.rope.scaling.attn_factor", 1.0),
            n_ctx_orig_yarn=meta.get_u32(f"{arch}.rope.scaling.original_context_length", n_ctx_train),
            n_cls_out=_n_cls_out(meta, arch),
            causal_attn=meta.get_bool(f"{arch}.attention.causal", True),
            n_expert=n_expert,
            n_expert_used=n_expert_used,
            n_ff_exp=n_ff_exp,
            **(gemma3_fields(meta, n_layer, n_embd // n_head[0], n_embd_head_k) if arch == "gemma3" else {}),
        )


def _refuse_unsupported(meta: Metadata, arch: str) -> None:
    refused = {"expert_count": "mixtures of experts", "nextn_predict_layers": "next-token-prediction layers"}
    for key, what in refused.items():
        if key == "expert_count" and arch in MIXTURES:
            continue
        n = meta.get_u32(f"{arch}.{key}", 0)
        if n:
            raise meta.fail(f"key '{arch}.{key}' is {n}: {what} are not supported")
    n_split = meta.value("split.count", "u16", False)
    if n_split not in (None, 0, 1):
        raise meta.fail(f"key 'split.count' is {n_split}: models in several files are not supported")


def _experts(meta: Metadata, arch: str) -> tuple[int, int, int]:
    """How many experts a layer has, how many a token uses, and their width; zeros where there are none."""
    if not MIXTURES[arch] and not meta.get_u32(f"{arch}.expert_count", 0):
        return 0, 0, 0
    n_expert = _positive(meta, f"{arch}.expert_count", LLAMA_MAX_EXPERTS)
    n_used = _positive(meta, f"{arch}.expert_used_count", n_expert)
    n_groups = meta.get_u32(f"{arch}.expert_group_count", 0)
    if n_groups > 1:
        raise meta.fail(f"key '{arch}.expert_group_count' is {n_groups}: experts in groups are not supported")
    if arch == "llama":
        return n_expert, n_used, _positive(meta, f"{arch}.feed_forward_length")
    n_ff = meta.get_u32(f"{arch}.expert_feed_forward_length", 0)
    return n_expert, n_used, n_ff or _positive(meta, f"{arch}.feed_forward_length") // n_used


def _positive(meta: Metadata, key: str, most: int = 2**31 - 1, default: int | None = None) -> int:
    n = meta.get_u32(key, default)
    if not 1 <= n <= most:
        raise meta.fail(f"key '{key}' is {n}, it must be from 1 to {most}")
    return n


def _finite(meta: Metadata, key: str, default: float | None = None) -> float:
    x = meta.get_f32(key, default)
    if not 0.0 <= x < float("inf"):
        raise meta.fail(f"key '{key}' is {x}, it must be a finite number, not below 0")
    return x


def _heads(meta: Metadata, key: str, n_layer: int, default: tuple[int, ...] | None) -> tuple[int, ...]:
    counts = meta.get_per_layer(key, n_layer, default or ())
    if not counts:
        raise meta.fail(f"key '{key}' is missing")
    for il, n in enumerate(counts):
        if not 1 <= n <= 2**31 - 1:
            raise meta.fail(f"key '{key}' is {n} in layer {il}, it must be from 1 to {2**31 - 1}")
    return counts


def _rope_scaling_type(meta: Metadata, arch: str) -> str:
    key = f"{arch}.rope.scaling.type"
    found = meta.get_str(key, "linear")
    if found not in ROPE_SCALING_TYPES:
        raise meta.fail(f"key '{key}': {quoted(found)} is not one of {', '.join(ROPE_SCALING_TYPES)}")
    return found


def _n_vocab(meta: Metadata, arch: str) -> int:
    """The length of the token list, or the stated size where there is no vocabulary."""
    if meta.get_str("tokenizer.ggml.model") in ("none", "no_vocab"):
        return _positive(meta, f"{arch}.vocab_size")
    n = len(meta.get_strings("tokenizer.ggml.tokens"))
    if n == 0:
        raise VizggmlError(f"{meta.file}: key 'tokenizer.ggml.tokens' has no tokens")
    return n


def _n_cls_out(meta: Metadata, arch: str) -> int:
    key = f"{arch}.classifier.output_labels"
    return len(meta.get_strings(key)) or 1 if key in meta.gguf.metadata else 1
