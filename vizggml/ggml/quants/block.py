"""One block opened: its bytes, what each field of them means, and what they say."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vizggml.errors import VizggmlError
from vizggml.ggml.quants.parts import fields, values
from vizggml.ggml.quants.rounding import Blocks, Floats
from vizggml.ggml.quants.table import LAYOUTS
from vizggml.ggml.types import Type, type_named


@dataclass(frozen=True)
class Field:
    """Bytes `start` to `stop` (not included) of a block: `numbers` as the record has them, and what they mean."""

    name: str
    start: int
    stop: int
    numbers: NDArray[np.generic]
    meaning: str


@dataclass(frozen=True)
class Block:
    """A block taken apart. Element i, of group i // (elements / groups), is `scale * level + minimum`.

    `scales` and `mins` have one entry a group; `codes`, `levels` and `values` one an element. A code is what the bits
    say, a level what it stands for. `points` are the indices into the codebook, for the types that have one.
    """

    type: Type
    bytes: bytes
    fields: tuple[Field, ...]
    scales: Floats
    mins: Floats
    codes: NDArray[np.integer]
    levels: Floats
    values: Floats
    points: NDArray[np.integer]

    @property
    def group_size(self) -> int:
        """Elements that share a scale."""
        return len(self.codes) // len(self.scales)

    def errors(self, original: ArrayLike) -> Floats:
        """What each element is too large by, beside the floats that were encoded."""
        x = np.asarray(original, np.float32).ravel()
        if x.shape != self.values.shape:
            raise VizggmlError(f"type {self.type}: a block has {len(self.values)} elements, the original {len(x)}")
        return self.values - x


def _block_bytes(type: Type, data: bytes | NDArray[np.uint8]) -> Blocks:
    raw = np.frombuffer(data, np.uint8) if isinstance(data, bytes) else np.ascontiguousarray(data, np.uint8).ravel()
    if len(raw) != type.type_size:
        raise VizggmlError(f"type {type.name}: a block has {type.type_size} bytes, not {len(raw)}")
    return raw[None]


def open_block(type: Type | str, data: bytes | NDArray[np.uint8]) -> Block:
    """Take the bytes of one block apart. VizggmlError if the type has no blocks or the bytes are not one."""
    type = type if isinstance(type, Type) else type_named(type)
    layout = LAYOUTS.get(type.name)
    if layout is None:
        raise VizggmlError(f"type {type.name}: has no blocks; those that have are {', '.join(LAYOUTS)}")
    raw = _block_bytes(type, data)
    record = fields(raw, layout.record)
    with np.errstate(all="ignore"):
        parts = layout.parts(record)
        decoded = values(parts)
    scales = parts.scales[0]
    return Block(
        type=type,
        bytes=raw.tobytes(),
        fields=tuple(_field(layout.record, name, record, layout.meaning[name]) for name in layout.record.names or ()),
        scales=scales,
        mins=np.zeros_like(scales) if parts.mins is None else parts.mins[0],
        codes=parts.codes[0],
        levels=parts.levels[0].astype(np.float32),
        values=decoded,
        points=np.zeros(0, np.int64) if parts.points is None else parts.points[0],
    )


def _field(layout: np.dtype[np.void], name: str, record: NDArray[np.void], meaning: str) -> Field:
    assert layout.fields is not None
    kind, start = layout.fields[name][:2]
    return Field(name, start, start + kind.itemsize, np.atleast_1d(record[name][0]), meaning)


def summary(type: Type, blocks: Blocks) -> tuple[Floats, Floats, NDArray[np.integer]]:
    """One scale and one minimum for each block, and the codes: what an event has room for.

    Where a block has one scale, an element is scale * code + minimum. Where it has many, these are the numbers that
    they are multiples of.
    """
    layout = LAYOUTS[type.name]
    record = fields(np.ascontiguousarray(blocks), layout.record)
    with np.errstate(all="ignore"):
        parts = layout.parts(record)
    scales, zero = parts.scales[..., 0], np.zeros(record.shape, np.float32)
    if parts.scales.shape[-1] > 1:
        names = layout.record.names or ()
        if "d" in names and record["d"].ndim == record.ndim:
            scales = record["d"].astype(np.float32)
        return scales, -record["dmin"].astype(np.float32) if "dmin" in names else zero, parts.codes
    if parts.mins is not None:
        return scales, parts.mins[..., 0], parts.codes
    away = parts.levels - parts.codes.astype(np.float32)
    same = (away == away[..., :1]).all(axis=-1)
    return scales, np.where(same & (away[..., 0] != 0), away[..., 0] * scales, zero), parts.codes
