"""The fold of the KV cache: which cells are taken, what has been written there, and where the current tokens go."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from vizggml.timeline.columns import Column
from vizggml.timeline.fold_graph import Handler, Tensors, small
from vizggml.timeline.track import Track

K, V = 0, 1
NONE = -1
HEADS = 2
"""The dimension of Q, K and V that counts heads, once they are permuted for attention."""


class CacheFold:
    """Folds the events of caches and their cells.

    A cell is taken for each sequence that sees it; `since` is the event from which it is taken without a break, so that
    what was written there earlier is known to be stale. A slot is the runs of cells that the newest tokens went to.
    The layer of a write is counted among those that its cache keeps: `cache_layer` says which of the model's it is.
    """

    def __init__(self, text: Callable[[int], str]) -> None:
        self.text = text
        kind = {"n_layer": "i", "n_cells": "i", "type_k": "i", "type_v": "i", "nbytes_k": "d", "nbytes_v": "d"}
        self.cache = Track("cache", {"cache": "i", **kind, "n_swa": "i"})
        self.cell = Track("cell", {"cache": "i", "cell": "i", "pos": "i", "seq": "i", "since": "i"})
        written = {"cache": "i", "layer": "i", "which": "i", "cell": "i", "n_cells": "i", "nbytes": "d"}
        self.kv = Track("kv", written)
        self.slot = Track("slot", {"cache": "i", "cell": "i", "n_cells": "i", "n_kv": "i"})
        self.tracks = (self.cache, self.cell, self.kv, self.slot)
        self._layers: list[tuple[int, int, int, int]] = []
        self._rows: dict[tuple[int, int], int] = {}
        self._taken: dict[tuple[int, int], tuple[int, int]] = {}
        self._found: dict[int, deque[tuple[tuple[int, ...], int]]] = {}
        self._n_runs: dict[int, int] = {}

    def handlers(self) -> dict[str, Handler]:
        return {
            "CacheCreated": self.cache_created,
            "DecodeBegin": self.decode_begin,
            "CellsFound": self.cells_found,
            "CellSet": self.cell_set,
            "CellFreed": self.cell_freed,
            "WindowEvicted": self.cell_freed,
            "KvWritten": self.kv_written,
        }

    def cache_created(
        self,
        i: int,
        node: int,
        cache: int,
        n_layer: int,
        n_cells: int,
        type_k: int,
        type_v: int,
        k: tuple[int, ...],
        v: tuple[int, ...],
        nbytes_k: int,
        nbytes_v: int,
        layers: tuple[int, ...],
        n_swa: int,
    ) -> None:
        sizes = small(n_layer), small(n_cells), type_k, type_v, nbytes_k, nbytes_v
        self.cache.set(i, cache, cache, *sizes, small(n_swa))
        numbers = [small(layer) for layer in layers] or range(len(k))
        self._layers += [(cache, *row) for row in zip(numbers, k, v, strict=False)]
        self._rows |= {(cache, layer): row for row, layer in enumerate(numbers)}

    def decode_begin(self, i: int, node: int, *rest: int) -> None:
        """Cells that were found for a batch before this one and never taken are forgotten."""
        self._found.clear()

    def cells_found(
        self, i: int, node: int, cache: int, head: int, n_tokens: int, cells: tuple[int, ...], n_kv: int
    ) -> None:
        self._found.setdefault(cache, deque()).append((cells, n_kv))

    def cell_set(self, i: int, node: int, cache: int, cell: int, pos: int, seq: int) -> None:
        found = self._found.get(cache)
        if found and found[0][0][:1] == (cell,):
            self._open_slot(i, cache, *found.popleft())
        n_seqs, since = self._taken.get((cache, cell), (0, i))
        if (cache, cell, seq) not in self.cell.open:
            self._taken[cache, cell] = n_seqs + 1, since
        self.cell.set(i, (cache, cell, seq), cache, small(cell), small(pos), small(seq), since)

    def cell_freed(self, i: int, node: int, cache: int, cell: int, pos: int, seq: int) -> None:
        if (cache, cell, seq) not in self.cell.open:
            return
        n_seqs, since = self._taken.pop((cache, cell), (1, i))
        if n_seqs > 1:
            self._taken[cache, cell] = n_seqs - 1, since
        self.cell.clear(i, (cache, cell, seq))

    def _open_slot(self, i: int, cache: int, cells: tuple[int, ...], n_kv: int) -> None:
        self.slot.clear_all(i, [(cache, run) for run in range(self._n_runs.get(cache, 0))])
        runs = runs_of(cells)
        self._n_runs[cache] = len(runs)
        for run, (first, n_cells) in enumerate(runs):
            self.slot.set(i, (cache, run), cache, small(first), n_cells, small(n_kv))

    def kv_written(
        self,
        i: int,
        node: int,
        cache: int,
        tensor: int,
        which: int,
        layer: int,
        cell: int,
        n_cells: int,
        n_head_kv: int,
        nbytes: int,
        type: int,
    ) -> None:
        side = V if self.text(which) == "V" else K
        key = (cache, layer, side, cell)
        row = self._rows.get((cache, layer), layer)
        self.kv.set(i, key, cache, small(row), side, small(cell), small(n_cells), nbytes)

    def columns(self, tensors: Tensors, strings: list[str]) -> dict[str, Column]:
        """One row for each layer of each cache: its tensors, and how many heads ask and are asked there.

        0 heads where no graph of the trace reads the layer's keys.
        """
        heads = heads_of({k for _, _, k, _ in self._layers}, tensors, strings) if self._layers else {}
        rows = [(*row, *heads.get(row[2], (0, 0))) for row in self._layers]
        table = np.array(rows, np.int32).reshape(-1, 6)
        names = ("cache", "layer", "k", "v", "n_head", "n_head_kv")
        return {f"cache_layer.{name}": np.ascontiguousarray(table[:, c]) for c, name in enumerate(names)}


def runs_of(cells: tuple[int, ...]) -> list[tuple[int, int]]:
    """Runs of neighbouring cells: the first of each, and how many."""
    runs: list[tuple[int, int]] = []
    for cell in cells:
        if runs and cell == runs[-1][0] + runs[-1][1]:
            runs[-1] = runs[-1][0], runs[-1][1] + 1
        else:
            runs.append((cell, 1))
    return runs


def heads_of(keys: set[int], tensors: Tensors, strings: list[str]) -> dict[int, tuple[int, int]]:
    """For each cache tensor of keys: the heads of the queries that are multiplied with it, and its own.

    Attention reads a view of the cache that is permuted so that `ne[2]` counts heads, beside queries permuted alike.
    """
    found: dict[int, tuple[int, int]] = {}
    products = {index for index, text in enumerate(strings) if text in ("MUL_MAT", "FLASH_ATTN_EXT")}
    for op, src in zip(tensors.op, tensors.src, strict=True):
        if op not in products or len(src) < 2 or src[0] < 0 or src[1] < 0:
            continue
        k, q = src[:2] if strings[op] == "MUL_MAT" else src[1::-1]
        owner = tensors.owner(k)
        if owner in keys and owner != k and owner not in found:
            found[owner] = small(tensors.ne[q][HEADS]), small(tensors.ne[k][HEADS])
            if len(found) == len(keys):
                break
    return found
