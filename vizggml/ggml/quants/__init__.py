"""Quantization: rows of floats into blocks of bytes, and back.

`quantize` and `dequantize` are for people and files, and emit events; `open_block` takes one block apart. Kernels,
which run on several threads, take the raw functions: `encode`, `decode`, and `from_float`, which encodes activations
the way ggml's CPU backend does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vizggml.errors import VizggmlError
from vizggml.events import NO_TENSOR, BlockDecoded, BlockEncoded, RowsDecoded, RowsEncoded, TensorId, bus
from vizggml.ggml.quants import floats, parts
from vizggml.ggml.quants.block import Block, Field, open_block, summary
from vizggml.ggml.quants.parts import Layout
from vizggml.ggml.quants.rounding import Blocks, Floats
from vizggml.ggml.quants.table import ENCODERS, FROM_FLOAT, LAYOUTS, WEIGHTED
from vizggml.ggml.quants.validate import unsound
from vizggml.ggml.tensor import Tensor
from vizggml.ggml.types import Type, type_named

__all__ = [
    "DECODERS",
    "ENCODERS",
    "FROM_FLOAT",
    "LAYOUTS",
    "WEIGHTED",
    "Block",
    "Field",
    "decode",
    "dequantize",
    "encode",
    "from_float",
    "open_block",
    "quantize",
    "scaled_and_mins",
    "to_float",
    "unsound",
]

TOLD = 2
"""Blocks of a tensor that everybody is told of; those who ask for these events by name are told of all."""

Decoder = Callable[[Blocks], Floats]
_Codec = TypeVar("_Codec")


def _decoder(layout: Layout) -> Decoder:
    return lambda blocks: parts.values(layout.parts(parts.fields(blocks, layout.record)))


DECODERS: dict[str, Decoder] = {
    "F32": floats.decode_f32,
    "F16": floats.decode_f16,
    "BF16": floats.decode_bf16,
    **{name: _decoder(layout) for name, layout in LAYOUTS.items()},
}
"""`to_float` of ggml's type_traits, ggml/src/ggml.c: bytes (..., blocks, type_size) to float32 (..., ne0)."""


def _pick(table: Mapping[str, _Codec], type: Type, what: str) -> _Codec:
    found = table.get(type.name)
    if found is None:
        raise VizggmlError(f"type {type.name}: no {what}; there is one for {', '.join(table)}")
    return found


def encode(type: Type, x: Floats, importance: Floats | None = None) -> Blocks:
    """Rows (..., ne0) as `ggml_quantize_chunk` encodes them; bytes (..., blocks, type_size). No events."""
    n_blocks = type.row_size(x.shape[-1]) // type.type_size
    weighted = type.name in WEIGHTED
    if weighted and importance is None and type.name not in ENCODERS:
        raise VizggmlError(f"type {type.name}: cannot be encoded without importance, one number for each column")
    with np.errstate(all="ignore"):
        if not x.size and (weighted or type.name in ENCODERS):
            return np.zeros((*x.shape[:-1], n_blocks, type.type_size), np.uint8)
        if importance is not None and weighted:
            return WEIGHTED[type.name](x, importance)
        return _pick(ENCODERS, type, "quantizer")(x)


def from_float(type: Type, x: Floats) -> Blocks:
    """Rows (..., ne0) as the CPU backend encodes activations; bytes (..., blocks, type_size). No events."""
    with np.errstate(all="ignore"):
        return _pick(FROM_FLOAT, type, "quantizer")(x)


def decode(type: Type, blocks: Blocks) -> Floats:
    """Bytes (..., blocks, type_size) to rows (..., ne0). No events."""
    with np.errstate(all="ignore"):
        decoder = _pick(DECODERS, type, "dequantizer")
        # NumPy cannot tell the length of an axis from the others where one of these is 0.
        if not blocks.size:
            return np.zeros((*blocks.shape[:-2], blocks.shape[-2] * type.blck_size), np.float32)
        return decoder(blocks)


def scaled_and_mins(type: Type, blocks: Blocks) -> tuple[Floats, Floats]:
    """Rows (..., ne0) without their minimums, and the minimum of each block (..., blocks), for types with one of each.

    Where activations are taken in Q8_1, ggml multiplies the minimums by the activations' sums on their own.
    """
    layout = LAYOUTS[type.name]
    found = layout.parts(parts.fields(blocks, layout.record))
    if found.mins is None:
        raise VizggmlError(f"type {type.name}: has no minimums")
    with np.errstate(all="ignore"):
        return parts.scaled(found).reshape(*blocks.shape[:-2], -1), found.mins[..., 0]


def _importance(type: Type, rows: Floats, importance: ArrayLike | None) -> Floats | None:
    if importance is None:
        return None
    costs = np.asarray(importance, np.float32)
    if costs.shape[-1:] != rows.shape[-1:] or costs.ndim > rows.ndim:
        raise VizggmlError(f"type {type.name}: importance of shape {costs.shape} is not for rows of shape {rows.shape}")
    return costs


def quantize(
    type: Type | str,
    x: ArrayLike,
    importance: ArrayLike | None = None,
    *,
    tensor: TensorId = NO_TENSOR,
    first_block: int = 0,
) -> NDArray[np.uint8]:
    """Encode rows of floats (..., ne0): their bytes, (..., bytes of a row).

    `ggml_quantize_chunk`, ggml/src/ggml.c. `importance` says how much an error in each column costs, (ne0) or (...,
    ne0); some types demand it, some take no notice of it. `first_block` is the number of the first block in `tensor`,
    where its rows come a part at a time. VizggmlError if there is no quantizer for `type`, if `ne0` is not a whole
    number of its blocks, or if importance is missing or not for these rows.
    """
    type = type if isinstance(type, Type) else type_named(type)
    rows = np.ascontiguousarray(x, np.float32)
    rows = rows.reshape(1, -1) if rows.ndim == 0 else rows
    costs = _importance(type, rows, importance)
    blocks = encode(type, rows, costs)
    if bus.on:
        n_rows, n_blocks = _counts(blocks)
        weighted = costs is not None and type.name in WEIGHTED
        seq = bus.emit(RowsEncoded(tensor, type.name, n_rows, n_blocks, blocks.nbytes, weighted))
        told = n_blocks if bus.wants(BlockEncoded) else max(0, TOLD - first_block)
        if told and type.name in LAYOUTS:
            with bus.because(seq):
                _emit_encoded(tensor, type, blocks, rows, costs if weighted else None, first_block, told)
    return blocks.reshape(*rows.shape[:-1], type.row_size(rows.shape[-1]))


def dequantize(
    type: Type | str, blocks: NDArray[np.uint8], *, tensor: TensorId = NO_TENSOR, first_block: int = 0
) -> Floats:
    """Decode bytes (..., blocks of a row, type_size) to floats (..., ne0).

    `to_float` of ggml_type_traits, ggml/src/ggml.c. `first_block` is as in `quantize`. VizggmlError if there is no
    dequantizer for `type`, or if the last axis is not one block.
    """
    type = type if isinstance(type, Type) else type_named(type)
    if blocks.ndim < 2 or blocks.shape[-1] != type.type_size:
        raise VizggmlError(f"type {type.name}: bytes of shape {blocks.shape} are not blocks of {type.type_size} bytes")
    y = decode(type, np.ascontiguousarray(blocks))
    if bus.on:
        n_rows, n_blocks = _counts(blocks)
        seq = bus.emit(RowsDecoded(tensor, type.name, n_rows, n_blocks, blocks.nbytes))
        told = n_blocks if bus.wants(BlockDecoded) else max(0, TOLD - first_block)
        if told and type.name in LAYOUTS:
            with bus.because(seq):
                for i, said in enumerate(_told(type, blocks, told)):
                    bus.emit(BlockDecoded(tensor, type.name, first_block + i, *said))
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


Said = tuple[float, float, tuple[int, ...], tuple[int, ...]]


def _told(type: Type, blocks: Blocks, n: int) -> Iterator[Said]:
    """Of the first `n` blocks the scale, the minimum, the codes and the bytes."""
    flat = np.ascontiguousarray(blocks).reshape(-1, type.type_size)[:n]
    scales, mins, codes = summary(type, flat)
    for scale, low, row, data in zip(scales.tolist(), mins.tolist(), codes.tolist(), flat.tolist(), strict=True):
        yield float(scale), float(low), tuple(row), tuple(data)


def _emit_encoded(
    tensor: TensorId, type: Type, blocks: Blocks, rows: Floats, costs: Floats | None, first: int, n: int
) -> None:
    size = type.blck_size
    per_row = -(-n * size // rows.shape[-1]) if rows.shape[-1] else 0
    original = rows.reshape(-1, rows.shape[-1])[:per_row].reshape(-1, size)
    if costs is not None:
        costs = np.broadcast_to(costs, rows.shape).reshape(-1, rows.shape[-1])[:per_row].reshape(-1, size)
    for i, said in enumerate(_told(type, blocks, n)):
        importance = () if costs is None else tuple(costs[i].tolist())
        bus.emit(BlockEncoded(tensor, type.name, first + i, *said, tuple(original[i].tolist()), importance))
