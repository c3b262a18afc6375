"""Quantization: rows of floats into blocks of bytes, and back.

`quantize` and `dequantize` are for people and files, and emit events. Kernels, which run on several threads, take the
raw functions: `encode`, `decode`, and `from_float`, which encodes activations the way ggml's CPU backend does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vizggml.errors import VizggmlError
from vizggml.events import NO_TENSOR, BlockDecoded, BlockEncoded, RowsDecoded, RowsEncoded, TensorId, bus
from vizggml.ggml.quants import floats, k, legacy
from vizggml.ggml.quants.rounding import Blocks, Floats
from vizggml.ggml.tensor import Tensor
from vizggml.ggml.types import Type, type_named

Encoder = Callable[[Floats], Blocks]
Decoder = Callable[[Blocks], Floats]
_Codec = TypeVar("_Codec")
Parts = Callable[[Blocks], tuple[Floats, Floats, NDArray[np.generic]]]

ENCODERS: dict[str, Encoder] = {
    "F32": floats.encode_f32,
    "F16": floats.encode_f16,
    "BF16": floats.encode_bf16,
    "Q4_0": legacy.quantize_q4_0,
    "Q4_1": legacy.quantize_q4_1,
    "Q8_0": legacy.quantize_q8_0,
    "Q8_1": legacy.quantize_q8_1,
    "Q8_K": k.quantize_q8_k,
}
"""`from_float_ref` of ggml's type_traits, ggml/src/ggml.c: float32 (..., ne0) to bytes (..., blocks, type_size)."""

FROM_FLOAT: dict[str, Encoder] = {
    **ENCODERS,
    "Q8_0": legacy.from_float_q8_0,
    "Q8_1": legacy.from_float_q8_1,
}
"""`from_float` of the CPU's type_traits_cpu, ggml/src/ggml-cpu/ggml-cpu.c, with AVX2."""

DECODERS: dict[str, Decoder] = {
    "F32": floats.decode_f32,
    "F16": floats.decode_f16,
    "BF16": floats.decode_bf16,
    "Q4_0": legacy.dequantize_q4_0,
    "Q4_1": legacy.dequantize_q4_1,
    "Q8_0": legacy.dequantize_q8_0,
    "Q8_1": legacy.dequantize_q8_1,
    "Q6_K": k.dequantize_q6_k,
    "Q8_K": k.dequantize_q8_k,
}
"""`to_float` of ggml's type_traits, ggml/src/ggml.c: bytes (..., blocks, type_size) to float32 (..., ne0)."""

PARTS: dict[str, Parts] = {
    "Q4_0": legacy.parts_q4_0,
    "Q4_1": legacy.parts_q4_1,
    "Q8_0": legacy.parts_q8_0,
    "Q8_1": legacy.parts_q8_1,
    "Q6_K": k.parts_q6_k,
    "Q8_K": k.parts_q8_k,
}
"""Scale, minimum and codes of each block."""


def _pick(table: Mapping[str, _Codec], type: Type, what: str) -> _Codec:
    found = table.get(type.name)
    if found is None:
        raise VizggmlError(f"type {type.name}: no {what}; there is one for {', '.join(table)}")
    return found


def encode(type: Type, x: Floats) -> Blocks:
    """Rows (..., ne0) as `quantize_row_*_ref` encodes them; bytes (..., blocks, type_size). No events."""
    type.row_size(x.shape[-1])
    return _pick(ENCODERS, type, "quantizer")(x)


def from_float(type: Type, x: Floats) -> Blocks:
    """Rows (..., ne0) as the CPU backend encodes activations; bytes (..., blocks, type_size). No events."""
    return _pick(FROM_FLOAT, type, "quantizer")(x)


def decode(type: Type, blocks: Blocks) -> Floats:
    """Bytes (..., blocks, type_size) to rows (..., ne0). No events."""
    return _pick(DECODERS, type, "dequantizer")(blocks)


def quantize(type: Type | str, x: ArrayLike, *, tensor: TensorId = NO_TENSOR) -> NDArray[np.uint8]:
    """Encode rows of floats (..., ne0): their bytes, (..., bytes of a row).

    `ggml_quantize_chunk` without an importance matrix, ggml/src/ggml.c. VizggmlError if there is no quantizer for
    `type`, or if `ne0` is not a whole number of its blocks.
    """
    type = type if isinstance(type, Type) else type_named(type)
    rows = np.asarray(x, np.float32)
    rows = rows.reshape(1, -1) if rows.ndim == 0 else rows
    blocks = encode(type, rows)
    if bus.on:
        n_rows, n_blocks = _counts(blocks)
        bus.emit(RowsEncoded(tensor, type.name, n_rows, n_blocks, blocks.nbytes, False))
        if bus.wants(BlockEncoded) and type.name in PARTS:
            _emit_blocks(BlockEncoded, tensor, type, blocks)
    return blocks.reshape(*rows.shape[:-1], type.row_size(rows.shape[-1]))


def dequantize(type: Type | str, blocks: NDArray[np.uint8], *, tensor: TensorId = NO_TENSOR) -> Floats:
    """Decode bytes (..., blocks of a row, type_size) to floats (..., ne0).

    `to_float` of ggml_type_traits, ggml/src/ggml.c. VizggmlError if there is no dequantizer for `type`, or if the last
    axis is not one block.
    """
    type = type if isinstance(type, Type) else type_named(type)
    if blocks.ndim < 2 or blocks.shape[-1] != type.type_size:
        raise VizggmlError(f"type {type.name}: bytes of shape {blocks.shape} are not blocks of {type.type_size} bytes")
    y = decode(type, np.ascontiguousarray(blocks))
    if bus.on:
        n_rows, n_blocks = _counts(blocks)
        bus.emit(RowsDecoded(tensor, type.name, n_rows, n_blocks, blocks.nbytes))
        if bus.wants(BlockDecoded) and type.name in PARTS:
            _emit_blocks(BlockDecoded, tensor, type, blocks)
    return y


def to_float(t: Tensor) -> Floats:
    """A tensor's elements as float32 (ne3, ne2, ne1, ne0), whatever its type and strides."""
    a = t.array()
    if t.type.name == "BF16":
        a = np.ascontiguousarray(a).view(np.uint8).reshape(*a.shape, 2)
    elif not t.type.is_quantized:
        return a.astype(np.float32)
    return dequantize(t.type, a, tensor=t.id)


def _counts(blocks: Blocks) -> tuple[int, int]:
    n_blocks = blocks.size // blocks.shape[-1]
    return n_blocks // max(1, blocks.shape[-2]), n_blocks


def _emit_blocks(kind: type[BlockEncoded] | type[BlockDecoded], tensor: TensorId, type: Type, blocks: Blocks) -> None:
    scales, mins, codes = PARTS[type.name](np.ascontiguousarray(blocks))
    each = zip(scales.ravel(), mins.ravel(), codes.reshape(-1, codes.shape[-1]), strict=True)
    for i, (scale, low, row) in enumerate(each):
        bus.emit(kind(tensor, type.name, i, float(scale), float(low), tuple(row.tolist())))
