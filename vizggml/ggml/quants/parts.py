"""What a block says: scales, minimums, codes. Decoding is the same for all types once these are known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vizggml.ggml.quants.rounding import Blocks, Floats


class Parts(NamedTuple):
    """Blocks taken apart: each element is `scale * level + minimum`, with the scale and minimum of its group.

    `scales` and `mins` are (..., blocks, groups), `mins` None where a type has none. `codes` are (..., blocks, n), as
    the bits say; `levels`, of the same shape, what they stand for. `points` are the indices into a codebook, for the
    types that have one.
    """

    scales: Floats
    mins: Floats | None
    codes: NDArray[np.integer]
    levels: NDArray[np.int8] | Floats
    points: NDArray[np.integer] | None = None


@dataclass(frozen=True)
class Layout:
    """One type's block: its record of fields, what each of them means, and how it is taken apart."""

    record: np.dtype[np.void]
    meaning: Mapping[str, str]
    parts: Callable[[NDArray[np.void]], Parts]


def fields(blocks: Blocks, record: np.dtype[np.void]) -> NDArray[np.void]:
    """The blocks' bytes as records, shape (..., blocks)."""
    return blocks.view(record)[..., 0]


def as_bytes(records: NDArray[np.void]) -> Blocks:
    return records.view(np.uint8).reshape(*records.shape, records.dtype.itemsize)


def scaled(parts: Parts) -> Floats:
    """Scale times level for every element (..., blocks, groups, elements of a group)."""
    levels = parts.levels.reshape(*parts.scales.shape, -1)
    y: Floats = np.multiply(levels, parts.scales[..., None], dtype=np.float32)
    return y


def values(parts: Parts) -> Floats:
    """The floats of rows (..., ne0)."""
    y = scaled(parts)
    if parts.mins is not None:
        y += parts.mins[..., None]
    return y.reshape(*y.shape[:-3], -1)


def one(d: NDArray[np.generic]) -> Floats:
    """A number of each block as that of its only group."""
    return d.astype(np.float32)[..., None]
