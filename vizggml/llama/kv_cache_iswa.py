"""Two KV caches for a model whose layers differ: some see every token, the others only a window of the last ones.

The layers with a window need no more cells than the window and one ubatch, because a cell that has left the window is
given to a new token. Both caches hold the same sequences; only the cells differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vizggml.ggml.buffer import Buffer, BufferType
from vizggml.ggml.types import pad
from vizggml.llama.batch import Ubatch
from vizggml.llama.cparams import CParams
from vizggml.llama.hparams import HParams
from vizggml.llama.kv_cache import N_KV_PAD, KVCache, MemoryContext


@dataclass(slots=True)
class MemoryContextISWA:
    """`llama_kv_cache_iswa_context`, src/llama-kv-cache-iswa.h."""

    hparams: HParams
    base: MemoryContext
    swa: MemoryContext

    def apply(self, ubatch: Ubatch) -> None:
        """Put the ubatch into both caches. `llama_kv_cache_iswa_context::apply`, src/llama-kv-cache-iswa.cpp."""
        self.base.apply(ubatch)
        self.swa.apply(ubatch)

    def of_layer(self, il: int) -> MemoryContext:
        """What a layer meets."""
        return self.swa if self.hparams.is_swa(il) else self.base


class KVCacheISWA:
    """`llama_kv_cache_iswa`, src/llama-kv-cache-iswa.cpp. `bufts` is where each layer lies, or all of them."""

    def __init__(self, hparams: HParams, cparams: CParams, bufts: BufferType | Sequence[BufferType]) -> None:
        self.hparams = hparams
        self.base = KVCache(hparams, cparams, bufts, cparams.n_ctx_seq, swa=False)
        self.swa = KVCache(hparams, cparams, bufts, swa_cells(hparams, cparams), swa=True)

    @property
    def caches(self) -> tuple[KVCache, ...]:
        return self.base, self.swa

    @property
    def buffers(self) -> list[Buffer]:
        return [*self.base.buffers, *self.swa.buffers]

    def free(self) -> None:
        """Give the memory of both back."""
        self.base.free()
        self.swa.free()

    def clear(self) -> None:
        """`llama_kv_cache_iswa::clear`, src/llama-kv-cache-iswa.cpp."""
        self.base.clear()
        self.swa.clear()

    def seq_rm(self, seq_id: int, p0: int, p1: int) -> None:
        """`llama_kv_cache_iswa::seq_rm`, src/llama-kv-cache-iswa.cpp."""
        self.base.seq_rm(seq_id, p0, p1)
        self.swa.seq_rm(seq_id, p0, p1)

    def seq_cp(self, seq_src: int, seq_dst: int, p0: int, p1: int) -> None:
        """`llama_kv_cache_iswa::seq_cp`, src/llama-kv-cache-iswa.cpp."""
        self.base.seq_cp(seq_src, seq_dst, p0, p1)
        self.swa.seq_cp(seq_src, seq_dst, p0, p1)

    def seq_keep(self, seq_id: int) -> None:
        """`llama_kv_cache_iswa::seq_keep`, src/llama-kv-cache-iswa.cpp."""
        self.base.seq_keep(seq_id)
        self.swa.seq_keep(seq_id)

    def seq_add(self, seq_id: int, p0: int, p1: int, delta: int) -> None:
        """`llama_kv_cache_iswa::seq_add`, src/llama-kv-cache-iswa.cpp."""
        self.base.seq_add(seq_id, p0, p1, delta)
        self.swa.seq_add(seq_id, p0, p1, delta)

    def seq_pos_max(self, seq_id: int) -> int:
        """`llama_kv_cache_iswa::seq_pos_max`, src/llama-kv-cache-iswa.cpp."""
        return self.swa.seq_pos_max(seq_id)

    def init_batch(self, ubatches: Sequence[Ubatch]) -> list[MemoryContextISWA] | None:
        """Both caches as each ubatch will meet them. `llama_kv_cache_iswa::init_batch`, src/llama-kv-cache-iswa.cpp."""
        base = self.base.init_batch(ubatches)
        swa = self.swa.init_batch(ubatches) if base is not None else None
        if base is None or swa is None:
            return None
        return [MemoryContextISWA(self.hparams, *both) for both in zip(base, swa, strict=True)]

    def init_full(self) -> MemoryContextISWA:
        """`llama_kv_cache_iswa::init_full`, src/llama-kv-cache-iswa.cpp."""
        return MemoryContextISWA(self.hparams, self.base.init_full(), self.swa.init_full())


Memory = KVCache | KVCacheISWA
"""`llama_memory_i`, src/llama-memory.h."""

AnyMemoryContext = MemoryContext | MemoryContextISWA
"""`llama_memory_context_i`, src/llama-memory.h."""


def swa_cells(hparams: HParams, cparams: CParams) -> int:
    """How many cells the layers with a window have: those of the window of each sequence, and one ubatch."""
    if cparams.swa_full:
        return cparams.n_ctx_seq
    n_windows = cparams.n_seq_max if cparams.kv_unified else 1
    return pad(min(cparams.n_ctx_seq, hparams.n_swa * n_windows + cparams.n_ubatch), N_KV_PAD)


def cells_of_layer(hparams: HParams, cparams: CParams, il: int) -> int:
    """How many cells a layer has, of all streams together."""
    n_stream = cparams.n_ctx // cparams.n_ctx_seq
    return n_stream * (swa_cells(hparams, cparams) if hparams.is_swa(il) else cparams.n_ctx_seq)


def create_memory(hparams: HParams, cparams: CParams, bufts: BufferType | Sequence[BufferType]) -> Memory:
    """One cache, or two if layers have windows. `llama_model::create_memory`, src/llama-model.cpp."""
    return (KVCacheISWA if hparams.n_swa else KVCache)(hparams, cparams, bufts)
