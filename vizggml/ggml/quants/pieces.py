"""A search over many blocks goes piece by piece, so that its arrays stay in the processor's cache."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from vizggml.ggml.quants.rounding import Blocks, Floats

PIECE = 1 << 17
"""Elements searched at a time."""

Encoder = Callable[[Floats], Blocks]
Weighted = Callable[[Floats, Floats], Blocks]


def _joined(found: list[Blocks], x: Floats, size: int) -> Blocks:
    blocks = np.concatenate(found) if found else np.zeros((0, 0), np.uint8)
    return blocks.reshape(*x.shape[:-1], x.shape[-1] // size, -1)


def by_blocks(encode: Encoder, size: int) -> Encoder:
    """An encoder of (blocks, size) as one of rows (..., ne0)."""

    def encode_rows(x: Floats) -> Blocks:
        flat, step = x.reshape(-1, size), max(1, PIECE // size)
        return _joined([encode(flat[i : i + step]) for i in range(0, len(flat), step)], x, size)

    return encode_rows


def by_blocks_weighted(encode: Weighted, size: int) -> Weighted:
    """An encoder of (blocks, size) with importance of the same shape as one of rows (..., ne0)."""

    def encode_rows(x: Floats, importance: Floats) -> Blocks:
        flat, step = x.reshape(-1, size), max(1, PIECE // size)
        costs = np.broadcast_to(importance, x.shape).reshape(-1, size)
        each = range(0, len(flat), step)
        return _joined([encode(flat[i : i + step], costs[i : i + step]) for i in each], x, size)

    return encode_rows


def by_rows_weighted(encode: Weighted, size: int) -> Weighted:
    """An encoder with importance that looks at whole rows, on some rows at a time."""

    def encode_rows(x: Floats, importance: Floats) -> Blocks:
        ne0 = x.shape[-1]
        rows, step = x.reshape(-1, ne0), max(1, PIECE // ne0)
        costs = np.broadcast_to(importance, x.shape).reshape(-1, ne0)
        found = [encode(rows[i : i + step], costs[i : i + step]) for i in range(0, len(rows), step)]
        return _joined(found, x, size)

    return encode_rows
