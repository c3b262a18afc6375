"""Which type llama.cpp's quantizer gives to each tensor: "Q4_K_M" is a mixture, not a type.

Some tensors suffer more from few bits than others: the output, the values, the way down of a feed-forward network in
the first and last layers. They get more. A few rules ask whether there is an importance matrix.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from vizggml.errors import VizggmlError
from vizggml.events import Dims
from vizggml.ggml.types import TYPES, Type
from vizggml.llama.hparams import HParams


@dataclass(frozen=True, slots=True)
class Mixture:
    """`ftype` is its number in `enum llama_ftype`, include/llama.h; `type` what most of its tensors have."""

    ftype: int
    type: str


MIXTURES: dict[str, Mixture] = {
    "F32": Mixture(0, "F32"),
    "F16": Mixture(1, "F16"),
    "BF16": Mixture(32, "BF16"),
    "Q4_0": Mixture(2, "Q4_0"),
    "Q4_1": Mixture(3, "Q4_1"),
    "Q5_0": Mixture(8, "Q5_0"),
    "Q5_1": Mixture(9, "Q5_1"),
    "Q8_0": Mixture(7, "Q8_0"),
    "Q2_K": Mixture(10, "Q2_K"),
    "Q2_K_S": Mixture(21, "Q2_K"),
    "Q3_K_S": Mixture(11, "Q3_K"),
    "Q3_K_M": Mixture(12, "Q3_K"),
    "Q3_K_L": Mixture(13, "Q3_K"),
    "Q4_K_S": Mixture(14, "Q4_K"),
    "Q4_K_M": Mixture(15, "Q4_K"),
    "Q5_K_S": Mixture(16, "Q5_K"),
    "Q5_K_M": Mixture(17, "Q5_K"),
    "Q6_K": Mixture(18, "Q6_K"),
    "IQ1_S": Mixture(24, "IQ1_S"),
    "IQ1_M": Mixture(31, "IQ1_M"),
    "IQ2_XXS": Mixture(19, "IQ2_XXS"),
    "IQ2_XS": Mixture(20, "IQ2_XS"),
    "IQ2_S": Mixture(28, "IQ2_XS"),
    "IQ2_M": Mixture(29, "IQ2_S"),
    "IQ3_XXS": Mixture(23, "IQ3_XXS"),
    "IQ3_XS": Mixture(22, "IQ3_S"),
    "IQ3_S": Mixture(26, "IQ3_S"),
    "IQ3_M": Mixture(27, "IQ3_S"),
    "IQ4_NL": Mixture(25, "IQ4_NL"),
    "IQ4_XS": Mixture(30, "IQ4_XS"),
    "TQ1_0": Mixture(36, "TQ1_0"),
    "TQ2_0": Mixture(37, "TQ2_0"),
    "MXFP4_MOE": Mixture(38, "MXFP4"),
    "Q1_0": Mixture(40, "Q1_0"),
    "Q2_0": Mixture(41, "Q2_0"),
}
"""`llama_ftype_get_default_type`, src/llama-quant.cpp."""

SAME = {"Q3_K": "Q3_K_M", "Q4_K": "Q4_K_M", "Q5_K": "Q5_K_M"}
"""Other names, as llama.cpp's quantize takes them."""

FALLBACKS = {
    **dict.fromkeys(("IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ4_XS"), "IQ4_NL"),
    **dict.fromkeys(("Q2_0", "Q2_K", "Q3_K", "TQ1_0", "TQ2_0"), "Q4_0"),
    **{"Q4_K": "Q5_0", "Q5_K": "Q5_1", "Q6_K": "Q8_0"},
}
"""What rows that are not whole blocks of the type get instead. `tensor_type_fallback`, src/llama-quant.cpp."""

DEMANDING = ("IQ3_XXS", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ1_M", "IQ1_S")
"""Types that are of no use without importance. `tensor_requires_imatrix`, src/llama-quant.cpp."""

VERY_FEW = ("IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ2_M", "IQ1_S", "IQ1_M")
"""The mixtures of about two bits and less, which have rules of their own."""

LEFT_ALONE = re.compile(
    r"_norm\.weight|ffn_gate_inp\.weight|ffn_gate_tid2eid\.weight|altup|laurel|per_layer_model_proj|ssm_conv1d"
    r"|shortconv\.conv\.weight|indexer\.[kq]_proj\.weight|time_mix_(first|w[012]|v[012]|a[012]|g[12])\.weight"
    r"|time_mix_decay_w[12]\.weight|time_mix_lerp_fused\.weight|attn_rel_b\.weight|\.position_embd|sam\.pos_embd"
    r"|sam\.neck\.|sam\.net_|\.rel_pos|\.patch_embd|\.patch_merger|a\.rvq\.codebook|mm\.a\.code_embd"
    r"|^position_embd\.weight$|^token_types\.weight$"
)
"""Names of matrices that are too small or too delicate. `tensor_allows_quantization`, src/llama-quant.cpp."""

CATEGORIES: tuple[str, ...] = (
    *("attn_qkv.weight", "attn_kv_b.weight", "attn_v.weight", "attn_k.weight", "attn_q.weight"),
    *("attn_output.weight", "ffn_up", "ffn_gate", "ffn_down"),
)
LIKE_VALUES = ("attn_v", "attn_qkv", "attn_kv_b")
EMBEDDINGS = ("token_embd.weight", "per_layer_token_embd.weight")


def mixture_named(name: str) -> str:
    """The mixture of that name, in any case. VizggmlError if it is not known."""
    known = SAME.get(name.upper(), name.upper())
    if known not in MIXTURES:
        raise VizggmlError(f"type {name!r} is not one of {', '.join(MIXTURES)}")
    return known


def use_more_bits(i_layer: int, n_layers: int) -> bool:
    """The first and last eighth of the layers, and every third between them."""
    eighth = n_layers // 8
    return i_layer < eighth or i_layer >= 7 * n_layers // 8 or (i_layer - eighth) % 3 == 2


def file_order(names: Iterable[str]) -> list[str]:
    """As the quantizer writes them: those of no layer, then layer by layer, each by name. `weight_name_comparer`."""
    return sorted(names, key=lambda name: (_layer(name), name.encode()))


def _layer(name: str) -> int:
    found = re.match(r"blk\.(\d{1,9})", name)
    return int(found[1]) if found else -1


def category(name: str) -> str:
    """What the tensor is for: "output", "token_embd", "attn_v", ..., or "". `tensor_get_category`, the same file."""
    if name == "output.weight" or name in EMBEDDINGS:
        return "output" if name == "output.weight" else "token_embd"
    return next((part.removesuffix(".weight") for part in CATEGORIES if part in name), "")


def allows_quantization(name: str, ne: Dims) -> bool:
    """Whether the tensor is a matrix that may be quantized. `tensor_allows_quantization`, the same file."""
    return ne[1:] != (1, 1, 1) and name.endswith("weight") and not LEFT_ALONE.search(name)


def demands_importance(name: str, type: Type, mixture: str) -> bool:
    """Whether the result would be of no use without importance. `tensor_requires_imatrix`, the same file."""
    if name in EMBEDDINGS or name == "output.weight":
        return False
    return type.name in DEMANDING or (type.name == "Q2_K" and mixture == "Q2_K_S")


@dataclass(slots=True)
class Chooser:
    """`quantize_state_impl`, src/llama-quant.cpp: the mixture, and how many tensors of each sort have been met."""

    hparams: HParams
    mixture: str
    tied: bool
    n_attention_wv: int
    importance: bool = False
    met: dict[str, int] = field(default_factory=dict)

    def choose(self, name: str, ne: Dims, source: Type) -> Type:
        """`llama_tensor_get_type`, src/llama-quant.cpp. Tensors must come in the order of the file."""
        if not allows_quantization(name, ne):
            return source
        type = TYPES[MIXTURES[self.mixture].type]
        if not type.is_quantized:
            return type
        chosen = TYPES[self._rule(name, ne, type)]
        if ne[0] % chosen.blck_size == 0:
            return chosen
        if chosen.blck_size > 32 and chosen.name not in FALLBACKS:
            raise VizggmlError(
                f"tensor {name!r}: rows of {ne[0]} are not whole blocks of {chosen.blck_size} for {chosen}, "
                "and no other type is meant for that"
            )
        fallback = TYPES[FALLBACKS.get(chosen.name, chosen.name)]
        return fallback if ne[0] % fallback.blck_size == 0 else TYPES["F16"]

    def _count(self, sort: str) -> int:
        """How many tensors of this sort came before."""
        self.met[sort] = self.met.get(sort, 0) + 1
        return self.met[sort] - 1

    def _rule(self, name: str, ne: Dims, type: Type) -> str:
        """`llama_tensor_get_type_impl`, src/llama-quant.cpp."""
        what = category(name)
        if what == "output" or (what == "token_embd" and self.tied):
            return self._output(ne, type)
        if self.mixture == "MXFP4_MOE":
            return "MXFP4" if ne[2] > 1 else "Q8_0"
        if what == "token_embd":
            return self._token_embd(type.name)
        if self.mixture in VERY_FEW:
            return self._very_few(what, type.name)
        if what in LIKE_VALUES:
            return self._attention_v(type.name)
        if what in ("attn_k", "attn_q"):
            if what == "attn_k" and self.hparams.n_expert == 8:
                return "Q8_0"
            return {"IQ3_XS": "IQ3_XXS", "IQ3_XXS": "IQ2_S"}.get(self.mixture, type.name)
        if what == "attn_output":
            return self._attention_output(type.name)
        if what.startswith("ffn_"):
            i = self._count(what)
            i, n = (_layer(name) if self.hparams.n_expert > 1 else i), self.hparams.n_layer
            if what == "ffn_down":
                return self._ffn_down(i, type.name)
            return "IQ3_XXS" if self.mixture == "IQ3_XS" and n // 8 <= i < 7 * n // 8 else type.name
        return type.name

    def _output(self, ne: Dims, type: Type) -> str:
        if self.mixture == "MXFP4_MOE" or ne[0] % type.blck_size:
            return "Q8_0"
        if self.mixture in (*VERY_FEW, "IQ3_XXS"):
            return "Q5_K"
        return "Q8_0" if type.name == "Q8_0" else "Q6_K"

    def _token_embd(self, chosen: str) -> str:
        if self.mixture in ("IQ2_XXS", "IQ2_XS", "IQ1_S", "IQ1_M"):
            return "Q2_K"
        if self.mixture in ("IQ2_S", "IQ2_M", "IQ3_XXS"):
            return "IQ3_S"
        return "Q4_K" if self.mixture in ("TQ1_0", "TQ2_0", "Q2_0") else chosen

    def _very_few(self, what: str, chosen: str) -> str:
        hp, roomy = self.hparams, self.mixture in ("IQ2_S", "IQ2_M")
        more = "IQ3_S" if roomy else "Q2_K"
        if what in LIKE_VALUES:
            return "Q4_K" if hp.n_gqa() >= 4 or hp.n_expert >= 4 else more
        if what == "attn_k" and hp.n_expert == 8:
            return "Q4_K"
        if what == "ffn_down":
            return more if self._count(what) < hp.n_layer // 8 else chosen
        if what != "attn_output":
            return chosen
        if hp.n_expert == 8:
            return "Q5_K"
        if self.mixture in ("IQ1_S", "IQ1_M"):
            return "IQ2_XXS"
        return "IQ3_S" if roomy else chosen

    def _attention_v(self, chosen: str) -> str:
        i, hp = self._count("attn_v"), self.hparams
        shared = hp.n_gqa() >= 4
        match self.mixture:
            case "Q2_K":
                chosen = "Q4_K" if shared else "Q3_K"
            case "Q2_K_S" | "IQ3_XS" | "IQ3_S" if shared:
                chosen = "Q4_K"
            case "IQ3_XXS":
                chosen = "Q4_K" if shared else "IQ3_XXS" if self.importance else "IQ3_S"
            case "IQ3_M":
                chosen = "Q4_K"
            case "Q3_K_M":
                chosen = "Q5_K" if i < 2 else "Q4_K"
            case "Q3_K_L":
                chosen = "Q5_K"
            case "IQ4_NL" | "IQ4_XS" if shared:
                chosen = "Q5_K"
            case "Q4_K_M" | "Q5_K_M" if use_more_bits(i, self.n_attention_wv):
                chosen = "Q6_K"
            case "Q4_K_S" if i < 4:
                chosen = "Q5_K"
        is_70b = hp.architecture == "llama" and hp.n_layer == 80 and hp.n_gqa() > 1
        if is_70b and chosen in ("Q3_K", "Q4_K"):
            chosen = "Q5_K"
        return "Q8_0" if hp.n_expert == 8 else chosen

    def _ffn_down(self, i: int, chosen: str) -> str:
        n = self.hparams.n_layer
        early = i < n // 8
        match self.mixture:
            case "Q2_K":
                return "Q3_K"
            case "Q2_K_S" if early:
                return "Q4_K"
            case "IQ3_XXS" if not self.importance:
                return "Q4_K" if early else "Q3_K"
            case "Q3_K_M":
                return "Q5_K" if i < n // 16 else "Q4_K"
            case "IQ3_M" if early or (self.hparams.n_expert == 8 and use_more_bits(i, n)):
                return "Q4_K"
            case "Q3_K_L":
                return "Q5_K"
            case "Q4_K_M" | "Q5_K_M" if use_more_bits(i, n):
                return "Q6_K"
            case "IQ4_NL" | "IQ4_XS" if early and not self.importance:
                return "Q5_K"
            case "Q4_K_S" if early:
                return "Q5_K"
            case "Q4_0" | "Q5_0" if early and self.importance:
                return "Q4_1" if self.mixture == "Q4_0" else "Q5_1"
        return chosen

    def _attention_output(self, chosen: str) -> str:
        if self.hparams.n_expert == 8:
            five = ("Q2_K", "IQ3_XS", "IQ3_XXS", "Q3_K_S", "Q3_K_M", "IQ4_NL", "Q4_K_S", "Q4_K_M", "IQ3_S", "IQ3_M")
            return "Q5_K" if self.mixture in (*five, "IQ4_XS") else chosen
        more = {"Q2_K": "Q3_K", "IQ3_XXS": "IQ3_S", "Q3_K_M": "Q4_K", "Q3_K_L": "Q5_K", "IQ3_M": "Q4_K"}
        return more.get(self.mixture, chosen)


def tensor_types(
    hparams: HParams,
    shapes: Mapping[str, Dims],
    mixture: str,
    *,
    sources: Mapping[str, Type] | None = None,
    importance: bool = False,
) -> dict[str, Type]:
    """The type of each tensor, in the order of the file.

    What is left alone keeps its type of `sources`, F32 where none is given. VizggmlError for a mixture that is not
    known, or rows that no type of it can hold.
    """
    names = file_order(shapes)
    n_attention_wv = sum(category(name) in LIKE_VALUES for name in names)
    chooser = Chooser(hparams, mixture_named(mixture), "output.weight" not in shapes, n_attention_wv, importance)
    f32 = TYPES["F32"]
    return {name: chooser.choose(name, shapes[name], sources[name] if sources else f32) for name in names}
