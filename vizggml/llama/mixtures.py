"""Which type llama.cpp's quantizer gives to each tensor: "Q4_K_M" is a mixture, not a type.

Some tensors suffer more from few bits than others: the output, the values, the way down of a feed-forward network in
the first and last layers. They get more. The rules here are those without an importance matrix.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from vizggml.errors import VizggmlError
from vizggml.events import Dims
from vizggml.ggml.types import TYPES, Type
from vizggml.llama.hparams import HParams

MIXTURES: dict[str, str] = {
    **{name: name for name in ("F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q6_K")},
    **{"Q3_K_S": "Q3_K", "Q3_K_M": "Q3_K", "Q3_K_L": "Q3_K", "Q4_K_S": "Q4_K", "Q4_K_M": "Q4_K"},
    **{"Q5_K_S": "Q5_K", "Q5_K_M": "Q5_K"},
}
"""The type that most tensors of a mixture have. `llama_ftype_get_default_type`, src/llama-quant.cpp."""

FALLBACKS = {"Q2_K": "Q4_0", "Q3_K": "Q4_0", "Q4_K": "Q5_0", "Q5_K": "Q5_1", "Q6_K": "Q8_0"}
"""What rows that are not whole blocks of 256 get instead. `tensor_type_fallback`, src/llama-quant.cpp."""


def mixture_named(name: str) -> str:
    """The mixture of that name, in any case. VizggmlError if it is not known."""
    if name.upper() not in MIXTURES:
        raise VizggmlError(f"type {name!r} is not one of {', '.join(MIXTURES)}")
    return name.upper()


def use_more_bits(i_layer: int, n_layers: int) -> bool:
    """The first and last eighth of the layers, and every third between them."""
    eighth = n_layers // 8
    return i_layer < eighth or i_layer >= 7 * n_layers // 8 or (i_layer - eighth) % 3 == 2


def file_order(names: Iterable[str]) -> list[str]:
    """As the quantizer writes them: those of no layer, then layer by layer, each by name. `weight_name_comparer`."""
    return sorted(names, key=lambda name: (_layer(name), name))


def _layer(name: str) -> int:
    return int(name.split(".")[1]) if name.startswith("blk.") else -1


@dataclass(slots=True)
class Chooser:
    """`quantize_state_impl`, src/llama-quant.cpp: the mixture, and how many tensors of each sort there are."""

    hparams: HParams
    mixture: str
    tied: bool
    n_attention_wv: int
    i_attention_wv: int = 0

    def choose(self, name: str, ne: Dims) -> Type:
        """`llama_tensor_get_type`, src/llama-quant.cpp. Tensors must come in the order of the file."""
        if ne[1:] == (1, 1, 1) or "_norm.weight" in name or "ffn_gate_inp.weight" in name:
            return TYPES["F32"]
        type = TYPES[MIXTURES[self.mixture]]
        if not type.is_quantized:
            return type
        chosen = TYPES[self._rule(name, ne, type)]
        if ne[0] % chosen.blck_size == 0:
            return chosen
        fallback = TYPES[FALLBACKS.get(chosen.name, chosen.name)]
        return fallback if ne[0] % fallback.blck_size == 0 else TYPES["F16"]

    def _rule(self, name: str, ne: Dims, type: Type) -> str:
        """`llama_tensor_get_type_impl`, src/llama-quant.cpp."""
        what = name.removesuffix(".weight").rpartition(".")[2]
        if what == "output" or (what == "token_embd" and self.tied):
            return "Q8_0" if ne[0] % type.blck_size or type.name == "Q8_0" else "Q6_K"
        if what in ("attn_v", "attn_qkv"):
            return self._attention_v(type.name)
        eight = self.hparams.n_expert == 8
        if what == "attn_k" and eight:
            return "Q8_0"
        if what.startswith("ffn_down"):
            return self._ffn_down(_layer(name), type.name)
        if what == "attn_output":
            if eight:
                return "Q5_K" if self.mixture in ("Q2_K", "Q3_K_S", "Q3_K_M", "Q4_K_S", "Q4_K_M") else type.name
            return {"Q2_K": "Q3_K", "Q3_K_M": "Q4_K", "Q3_K_L": "Q5_K"}.get(self.mixture, type.name)
        return type.name

    def _attention_v(self, chosen: str) -> str:
        i, hp = self.i_attention_wv, self.hparams
        self.i_attention_wv += 1
        match self.mixture:
            case "Q2_K":
                chosen = "Q4_K" if hp.n_gqa() >= 4 else "Q3_K"
            case "Q3_K_M":
                chosen = "Q5_K" if i < 2 else "Q4_K"
            case "Q3_K_L":
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
        match self.mixture:
            case "Q2_K":
                return "Q3_K"
            case "Q3_K_M":
                return "Q5_K" if i < n // 16 else "Q4_K"
            case "Q3_K_L":
                return "Q5_K"
            case "Q4_K_M" | "Q5_K_M" if use_more_bits(i, n):
                return "Q6_K"
            case "Q4_K_S" if i < n // 8:
                return "Q5_K"
        return chosen


def tensor_types(hparams: HParams, shapes: Mapping[str, Dims], mixture: str) -> dict[str, Type]:
    """The type of each tensor, in the order of the file. VizggmlError for a mixture that is not known."""
    names = file_order(shapes)
    n_attention_wv = sum(name.endswith(("attn_v.weight", "attn_qkv.weight")) for name in names)
    chooser = Chooser(hparams, mixture_named(mixture), "output.weight" not in shapes, n_attention_wv)
    return {name: chooser.choose(name, shapes[name]) for name in names}
