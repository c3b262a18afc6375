"""Models that are known by their numbers alone: to plan for what has not been downloaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path

from vizggml.errors import VizggmlError
from vizggml.events import Dims
from vizggml.ggml.gguf import GGUF_DEFAULT_ALIGNMENT, TensorInfo
from vizggml.ggml.types import pad
from vizggml.llama.hparams import ROPE_TYPES, HParams
from vizggml.llama.mixtures import tensor_types


@dataclass(frozen=True, slots=True)
class Shape:
    """What decides a model's tensors and graph. `tied`: the output is the token embedding again."""

    architecture: str
    n_layer: int
    n_embd: int
    n_head: int
    n_head_kv: int
    n_ff: int
    n_vocab: int
    n_ctx_train: int
    n_embd_head: int
    tied: bool = False
    n_expert: int = 0
    n_expert_used: int = 0
    n_ff_exp: int = 0


SHAPES: dict[str, Shape] = {
    "minimind-64m": Shape("qwen3", 8, 768, 8, 4, 2048, 6400, 32768, 96, tied=True),
    "llama-7b": Shape("llama", 32, 4096, 32, 32, 11008, 32000, 4096, 128),
    "llama-70b": Shape("llama", 80, 8192, 64, 8, 28672, 32000, 4096, 128),
    "mixtral-8x7b": Shape(
        "llama", 32, 4096, 32, 8, 14336, 32000, 32768, 128, n_expert=8, n_expert_used=2, n_ff_exp=14336
    ),
    "qwen3-30b-a3b": Shape(
        "qwen3moe", 48, 2048, 32, 4, 6144, 151936, 40960, 128, n_expert=128, n_expert_used=8, n_ff_exp=768
    ),
}
"""MiniMind (57 million parameters with this width), Llama 2 of 7 and 70 billion, Mixtral of 8 x 7 billion, Qwen3 of
30 billion."""


@dataclass(frozen=True, slots=True)
class ShapeTable:
    """A shape's tensors as a file would have them, without the file."""

    path: Path
    tensors: Mapping[str, TensorInfo]


def shape_named(name: str) -> Shape:
    """The shape of a well-known model, such as "llama-7b". VizggmlError if there is none of that name."""
    if name not in SHAPES:
        raise VizggmlError(f"shape {name!r} is not one of {', '.join(SHAPES)}")
    return SHAPES[name]


def hparams_of(name: str, shape: Shape) -> HParams:
    """The numbers that a file of this shape would state."""
    n = shape.n_layer
    return HParams(
        architecture=shape.architecture,
        name=name,
        n_vocab=shape.n_vocab,
        n_ctx_train=shape.n_ctx_train,
        n_embd=shape.n_embd,
        n_layer=n,
        n_head=(shape.n_head,) * n,
        n_head_kv=(shape.n_head_kv,) * n,
        n_ff=(shape.n_ff,) * n,
        n_embd_head_k=shape.n_embd_head,
        n_embd_head_v=shape.n_embd_head,
        n_rot=shape.n_embd_head,
        f_norm_rms_eps=1e-6,
        rope_type=ROPE_TYPES[shape.architecture],
        rope_freq_base_train=10000.0,
        rope_freq_scale_train=1.0,
        rope_scaling_type_train="linear",
        rope_finetuned=False,
        rope_attn_factor=1.0,
        n_ctx_orig_yarn=shape.n_ctx_train,
        n_expert=shape.n_expert,
        n_expert_used=shape.n_expert_used,
        n_ff_exp=shape.n_ff_exp,
    )


def tensor_shapes(shape: Shape) -> dict[str, Dims]:
    """The tensors that a file of this shape has."""
    n_embd, n_q, n_kv = shape.n_embd, shape.n_embd_head * shape.n_head, shape.n_embd_head * shape.n_head_kv
    layer: dict[str, tuple[int, ...]] = {
        "attn_norm": (n_embd,),
        "attn_q": (n_embd, n_q),
        "attn_k": (n_embd, n_kv),
        "attn_v": (n_embd, n_kv),
        "attn_output": (n_q, n_embd),
        "ffn_norm": (n_embd,),
    }
    if shape.architecture != "llama":
        layer |= {"attn_q_norm": (shape.n_embd_head,), "attn_k_norm": (shape.n_embd_head,)}
    if shape.n_expert:
        wide, narrow = (n_embd, shape.n_ff_exp, shape.n_expert), (shape.n_ff_exp, n_embd, shape.n_expert)
        layer |= {"ffn_gate_inp": (n_embd, shape.n_expert)}
        layer |= {"ffn_gate_exps": wide, "ffn_up_exps": wide, "ffn_down_exps": narrow}
    else:
        layer |= {"ffn_gate": (n_embd, shape.n_ff), "ffn_up": (n_embd, shape.n_ff), "ffn_down": (shape.n_ff, n_embd)}
    found: dict[str, tuple[int, ...]] = {"token_embd.weight": (n_embd, shape.n_vocab), "output_norm.weight": (n_embd,)}
    if not shape.tied:
        found["output.weight"] = (n_embd, shape.n_vocab)
    found |= {f"blk.{i}.{name}.weight": ne for i in range(shape.n_layer) for name, ne in layer.items()}
    return {name: _dims(ne) for name, ne in found.items()}


def _dims(ne: tuple[int, ...]) -> Dims:
    a, b, c, d = (*ne, 1, 1, 1)[:4]
    return a, b, c, d


def table_of(name: str, hparams: HParams, shapes: Mapping[str, Dims], mixture: str) -> ShapeTable:
    """The tensors one after the other, as llama.cpp's quantizer writes them."""
    infos: dict[str, TensorInfo] = {}
    offset = 0
    for tensor, type in tensor_types(hparams, shapes, mixture).items():
        ne = shapes[tensor]
        nbytes = type.row_size(ne[0]) * prod(ne[1:])
        infos[tensor] = TensorInfo(tensor, type, ne, offset, nbytes)
        offset = pad(offset + nbytes, GGUF_DEFAULT_ALIGNMENT)
    return ShapeTable(Path(name), infos)
