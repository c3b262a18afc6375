"""The weights: tensors in the order llama.cpp makes them, placed where they lie in the mapped file.

Nothing is read or copied. llama.cpp's CPU backend repacks the matrices of some types (Q4_0, Q4_K, Q2_K, IQ4_NL, MXFP4
with AVX2 or AVX-512; others elsewhere) into a second buffer, `CPU_REPACK`, in an order its kernels like. F32, F16, BF16
and Q4_1 are never repacked, nor are Q8_0 and Q6_K on x86, so a model of these is in `CPU_Mapped` alone. Here all
weights stay as the file has them, as in llama.cpp with `use_extra_bufts` off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from vizggml.errors import VizggmlError
from vizggml.events import WeightsPlaced, bus
from vizggml.ggml.buffer import Buffer
from vizggml.ggml.context import TENSOR_OVERHEAD, Context
from vizggml.ggml.gguf import GGUF, TensorInfo, quoted
from vizggml.ggml.tensor import Tensor
from vizggml.ggml.types import TENSOR_ALIGNMENT
from vizggml.llama.hparams import HParams


@dataclass(slots=True)
class Weights:
    """The model's tensors by their names in the file, in the order they were made, and the buffers they lie in.

    `output` is the tensor that makes logits: `output.weight`, or the token embedding where the file has none.
    `file_offsets` says where in the file each begins, if it has been placed.
    """

    context: Context
    tensors: dict[str, Tensor]
    output: Tensor
    buffers: list[Buffer]
    file_offsets: dict[str, int] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Tensor:
        return self.tensors[name]

    def __contains__(self, name: object) -> bool:
        return name in self.tensors

    def __iter__(self) -> Iterator[str]:
        return iter(self.tensors)

    def __len__(self) -> int:
        return len(self.tensors)

    def get(self, name: str) -> Tensor | None:
        return self.tensors.get(name)


class TensorTable(Protocol):
    """What is asked of a file to make its tensors: a `GGUF`, or a shape that has no file."""

    @property
    def path(self) -> Path: ...
    @property
    def tensors(self) -> Mapping[str, TensorInfo]: ...


def make_weights(table: TensorTable, hparams: HParams) -> Weights:
    """Make every tensor and place none: the buffers are still to be found.

    VizggmlError as from `load_weights`.
    """
    loader = _Loader(table, hparams)
    ARCHITECTURES[hparams.architecture](loader)
    loader.done_getting_tensors()
    output = loader.made.get("output.weight") or loader.made["token_embd.weight"]
    return Weights(loader.context, loader.made, output, [])


def load_weights(gguf: GGUF, hparams: HParams) -> Weights:
    """Make every tensor and point it into the map. `llama_model_base::load_tensors`, src/llama-model.cpp.

    VizggmlError if a tensor is missing, has another shape than the hyper-parameters ask for, or belongs to no part of
    the model.
    """
    weights = make_weights(gguf, hparams)
    weights.buffers = load_all_data(gguf, weights)
    return weights


class _Loader:
    """`llama_model_loader`, src/llama-model-loader.cpp."""

    def __init__(self, gguf: TensorTable, hparams: HParams) -> None:
        self.gguf = gguf
        self.hparams = hparams
        # One more for a duplicated output, two a layer for duplicated rope factors.
        max_n_tensors = len(gguf.tensors) + 1 + 2 * hparams.n_layer
        self.context = Context(TENSOR_OVERHEAD * max_n_tensors, no_alloc=True)
        self.made: dict[str, Tensor] = {}

    def create_tensor(self, name: str, *ne: int, required: bool = True) -> Tensor | None:
        """Make the tensor of that name, or answer with the one made before. `create_tensor`."""
        if name in self.made:
            return self.made[name]
        info = self.check_tensor_dims(name, ne, required)
        if info is None:
            return None
        n_dims = max((i + 1 for i in range(4) if info.ne[i] > 1), default=1)
        tensor = self.made[name] = self.context.new_tensor(info.type, info.ne[:n_dims], name)
        return tensor

    def check_tensor_dims(self, name: str, ne: tuple[int, ...], required: bool) -> TensorInfo | None:
        """`check_tensor_dims`: the tensor's info if it has the shape it must have."""
        info = self.gguf.tensors.get(name)
        if info is None:
            if required:
                raise VizggmlError(f"{self.gguf.path.name}: tensor '{name}' is missing")
            return None
        if info.ne != (*ne, *(1,) * (4 - len(ne))):
            raise VizggmlError(
                f"{self.gguf.path.name}: tensor '{name}' has shape {_shape(info.ne)}, "
                f"the hyper-parameters ask for {_shape(ne)}"
            )
        return info

    def done_getting_tensors(self) -> None:
        """`done_getting_tensors`: every tensor of the file must have found its place."""
        unused = [name for name in self.gguf.tensors if name not in self.made]
        if unused:
            raise VizggmlError(
                f"{self.gguf.path.name}: {len(unused)} of {len(self.gguf.tensors)} tensors belong to no part of a "
                f"{self.hparams.architecture} model, the first is {quoted(unused[0])}"
            )


def mapping_range(infos: Iterable[TensorInfo]) -> tuple[int, int]:
    """From the first tensor's first byte to the last one's last, counted from the file's data. `get_mapping_range`."""
    infos = list(infos)
    return min(info.offset for info in infos), max(info.offset + info.nbytes for info in infos)


def load_all_data(gguf: GGUF, weights: Weights) -> list[Buffer]:
    """Place the tensors in a buffer over the map. `load_all_data`, src/llama-model-loader.cpp."""
    infos = [gguf.tensors[name] for name in weights]
    if gguf.alignment < TENSOR_ALIGNMENT:
        raise VizggmlError(
            f"{gguf.path.name}: key 'general.alignment' is {gguf.alignment}: "
            f"weights can be mapped only at multiples of {TENSOR_ALIGNMENT} bytes"
        )
    first, last = mapping_range(infos)
    buffer = gguf.mapped.buffer(gguf.data_offset + first, gguf.data_offset + last, "CPU_Mapped")
    for info in infos:
        tensor, file_offset = weights[info.name], gguf.data_offset + info.offset
        buffer.tensor_alloc(tensor, info.offset - first)
        weights.file_offsets[info.name] = file_offset
        if bus.on:
            bus.emit(
                WeightsPlaced(tensor.id, buffer.id, info.offset - first, info.nbytes, file_offset, buffer.buft.name)
            )
    return [buffer]


def _shape(ne: tuple[int, ...]) -> str:
    n_dims = max((i + 1 for i in range(len(ne)) if ne[i] != 1), default=1)
    return " x ".join(map(str, ne[:n_dims]))


def _embeddings(ml: _Loader) -> None:
    """What comes before the layers: the token embedding, the last norm, the output if it is not the embedding again."""
    hp = ml.hparams
    ml.create_tensor("token_embd.weight", hp.n_embd, hp.n_vocab)
    ml.create_tensor("output_norm.weight", hp.n_embd)
    ml.create_tensor("output.weight", hp.n_embd, hp.n_vocab, required=False)


def _qkv(ml: _Loader, blk: str) -> None:
    """`create_tensor_qkv`, src/llama-model.cpp: one fused projection, or three, with or without biases."""
    hp = ml.hparams
    n_q, n_k, n_v = hp.n_embd_head_k * hp.n_head[0], hp.n_embd_k_gqa(), hp.n_embd_v_gqa()
    fused = ml.create_tensor(f"{blk}.attn_qkv.weight", hp.n_embd, n_q + n_k + n_v, required=False)
    if fused is not None and ml.create_tensor(f"{blk}.attn_qkv.bias", n_q + n_k + n_v, required=False) is not None:
        return
    parts = (("q", n_q), ("k", n_k), ("v", n_v))
    if fused is None:
        for part, n in parts:
            ml.create_tensor(f"{blk}.attn_{part}.weight", hp.n_embd, n)
    for part, n in parts:
        ml.create_tensor(f"{blk}.attn_{part}.bias", n, required=False)


def _llama(ml: _Loader) -> None:
    """`llama_model_llama::load_arch_tensors`, src/models/llama.cpp."""
    hp = ml.hparams
    _embeddings(ml)
    longrope = hp.rope_scaling_type_train == "longrope"
    for i in range(hp.n_layer):
        blk = f"blk.{i}"
        ml.create_tensor(f"{blk}.attn_norm.weight", hp.n_embd)
        _qkv(ml, blk)
        ml.create_tensor(f"{blk}.attn_output.weight", hp.n_embd_head_k * hp.n_head[0], hp.n_embd)
        ml.create_tensor(f"{blk}.attn_output.bias", hp.n_embd, required=False)
        ml.create_tensor(f"{blk}.ffn_norm.weight", hp.n_embd)
        for name in ("rope_factors_long", "rope_factors_short") if longrope else ("rope_freqs",):
            ml.create_tensor(f"{name}.weight", hp.n_rot // 2, required=False)
        if hp.n_expert:
            _experts(ml, blk, gate_required=False)
            continue
        _ffn(ml, blk)
        ml.create_tensor(f"{blk}.ffn_gate.bias", hp.n_ff[0], required=False)
        ml.create_tensor(f"{blk}.ffn_down.bias", hp.n_embd, required=False)
        ml.create_tensor(f"{blk}.ffn_up.bias", hp.n_ff[0], required=False)


def _qwen3(ml: _Loader) -> None:
    """`llama_model_qwen3::load_arch_tensors`, src/models/qwen3.cpp."""
    hp = ml.hparams
    _embeddings(ml)
    ml.create_tensor("cls.output.weight", hp.n_embd, hp.n_cls_out, required=False)
    _qwen3_layers(ml, _ffn)


def _qwen3moe(ml: _Loader) -> None:
    """`llama_model_qwen3moe::load_arch_tensors`, src/models/qwen3moe.cpp."""
    _embeddings(ml)
    _qwen3_layers(ml, _experts)


def _qwen3_layers(ml: _Loader, ffn: Callable[[_Loader, str], None]) -> None:
    hp = ml.hparams
    for i in range(hp.n_layer):
        blk = f"blk.{i}"
        ml.create_tensor(f"{blk}.attn_norm.weight", hp.n_embd)
        _qkv(ml, blk)
        ml.create_tensor(f"{blk}.attn_output.weight", hp.n_embd_head_k * hp.n_head[0], hp.n_embd)
        ml.create_tensor(f"{blk}.attn_k_norm.weight", hp.n_embd_head_k)
        ml.create_tensor(f"{blk}.attn_q_norm.weight", hp.n_embd_head_k)
        ml.create_tensor(f"{blk}.ffn_norm.weight", hp.n_embd)
        ffn(ml, blk)


def _gemma3(ml: _Loader) -> None:
    """`llama_model_gemma3::load_arch_tensors`, src/models/gemma3.cpp."""
    hp = ml.hparams
    _embeddings(ml)
    for i in range(hp.n_layer):
        blk = f"blk.{i}"
        ml.create_tensor(f"{blk}.attn_norm.weight", hp.n_embd)
        _qkv(ml, blk)
        ml.create_tensor(f"{blk}.attn_output.weight", hp.n_embd_head_k * hp.n_head[0], hp.n_embd)
        ml.create_tensor(f"{blk}.post_attention_norm.weight", hp.n_embd)
        ml.create_tensor(f"{blk}.attn_k_norm.weight", hp.n_embd_head_k)
        ml.create_tensor(f"{blk}.attn_q_norm.weight", hp.n_embd_head_k)
        ml.create_tensor(f"{blk}.ffn_norm.weight", hp.n_embd)
        _ffn(ml, blk)
        ml.create_tensor(f"{blk}.post_ffw_norm.weight", hp.n_embd)


def _ffn(ml: _Loader, blk: str) -> None:
    n_embd, n_ff = ml.hparams.n_embd, ml.hparams.n_ff[0]
    ml.create_tensor(f"{blk}.ffn_gate.weight", n_embd, n_ff)
    ml.create_tensor(f"{blk}.ffn_down.weight", n_ff, n_embd)
    ml.create_tensor(f"{blk}.ffn_up.weight", n_embd, n_ff)


def _experts(ml: _Loader, blk: str, gate_required: bool = True) -> None:
    n_embd, n_ff, n_expert = ml.hparams.n_embd, ml.hparams.n_ff_exp, ml.hparams.n_expert
    ml.create_tensor(f"{blk}.ffn_gate_inp.weight", n_embd, n_expert)
    ml.create_tensor(f"{blk}.ffn_gate_exps.weight", n_embd, n_ff, n_expert, required=gate_required)
    ml.create_tensor(f"{blk}.ffn_down_exps.weight", n_ff, n_embd, n_expert)
    ml.create_tensor(f"{blk}.ffn_up_exps.weight", n_embd, n_ff, n_expert)


ARCHITECTURES: dict[str, Callable[[_Loader], None]] = {
    "llama": _llama,
    "qwen3": _qwen3,
    "qwen3moe": _qwen3moe,
    "gemma3": _gemma3,
}
