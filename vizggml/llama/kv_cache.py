"""The KV cache: the keys and values of every token so far, one pair of tensors a layer, in cells.

A cell is one row of every layer's K (and, with flash attention, of V; without it V is stored transposed, so a cell is a
column). New tokens take the first empty cells from `head` on, wherever they are: `set_rows` writes scattered rows, and
the mask says which cells a token sees.

Quantized keys and values are rotated first, by a Hadamard matrix for every 64 (or more) elements of a head: what stood
out in one element is spread over all, and the blocks lose less. Queries are rotated alike, results back.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from vizggml.errors import VizggmlError
from vizggml.events import (
    NO_SEQ,
    CacheCreated,
    CacheId,
    CellFreed,
    CellSet,
    CellsFound,
    Event,
    KvWritten,
    SeqOp,
    WindowEvicted,
    bus,
)
from vizggml.ggml import ops
from vizggml.ggml.buffer import BufferType, alloc_ctx_tensors_from_buft
from vizggml.ggml.context import TENSOR_OVERHEAD, Context
from vizggml.ggml.tensor import Tensor
from vizggml.ggml.types import F32, I64, TYPES, pad
from vizggml.llama.batch import Ubatch
from vizggml.llama.cparams import CParams
from vizggml.llama.hadamard import ROTATED, hadamard
from vizggml.llama.hparams import HParams
from vizggml.llama.kv_cells import KVCells, is_masked_swa

POS_MAX = 2**31 - 1
N_KV_PAD = 256
_ids = itertools.count()

Slot = tuple[int, ...]
"""The cells that the tokens of one ubatch go to."""


@dataclass(slots=True)
class MemoryContext:
    """`llama_kv_cache_context`, src/llama-kv-cache.h: the cache as one ubatch meets it."""

    kv: KVCache
    slot: Slot
    n_kv: int

    def apply(self, ubatch: Ubatch) -> None:
        """Put the ubatch into the cache. `llama_kv_cache_context::apply`, src/llama-kv-cache.cpp."""
        self.kv.apply_ubatch(self.slot, ubatch)
        self.n_kv = self.kv.n_kv

    def of_layer(self, il: int) -> MemoryContext:
        """What a layer meets."""
        return self


class KVCache:
    """`llama_kv_cache`, src/llama-kv-cache.cpp. `bufts` is where each layer lies, or all of them.

    `k[il]` has shape (n_embd_k_gqa, n_cells, n_stream). `v[il]` has shape (n_embd_v_gqa, n_cells, n_stream); when
    `v_trans`, its bytes are used as (n_cells, n_embd_v_gqa). The cells are those of one stream that all sequences
    share; of several streams only the memory and the graphs are known, not which cells they fill.

    With `swa` the cache is one of two (kv_cache_iswa.py): it keeps the layers that are alike in that, False those that
    see everything, True those with a window, where a cell that has left the window is given to a new token.
    """

    def __init__(
        self,
        hparams: HParams,
        cparams: CParams,
        bufts: BufferType | Sequence[BufferType],
        n_cells: int | None = None,
        swa: bool | None = None,
    ) -> None:
        self.id = CacheId(next(_ids))
        self.hparams = hparams
        self.v_trans = not cparams.flash_attn
        self.n_seq_max = cparams.n_seq_max
        self.n_stream = 1 if cparams.kv_unified else cparams.n_seq_max
        self.head = 0
        self.n_cells = n_cells = n_cells or cparams.n_ctx_seq
        self.n_swa = hparams.n_swa if swa else 0
        n_layer = hparams.n_layer
        self.layers = [il for il in range(n_layer) if swa is None or hparams.is_swa(il) == swa]
        self.types = TYPES[cparams.type_k], TYPES[cparams.type_v]
        of_layer = [bufts] * n_layer if isinstance(bufts, BufferType) else list(bufts)
        self.ctxs = {
            buft: Context(2 * (1 + self.n_stream) * n_layer * TENSOR_OVERHEAD, no_alloc=True)
            for buft in sorted({of_layer[il] for il in self.layers}, key=lambda buft: buft.name)
        }
        self.n_embd_v = max(map(hparams.n_embd_v_gqa, range(n_layer)))
        self.k: list[Tensor] = []
        self.v: list[Tensor] = []
        for il in self.layers:
            ctx = self.ctxs[of_layer[il]]
            n_v = self.n_embd_v if self.v_trans else hparams.n_embd_v_gqa(il)
            self.k.append(self._new(ctx, cparams.type_k, hparams.n_embd_k_gqa(il), n_cells, f"cache_k_l{il}"))
            self.v.append(self._new(ctx, cparams.type_v, n_v, n_cells, f"cache_v_l{il}"))
            for s in range(self.n_stream):
                for t in (self.k[-1], self.v[-1]):
                    ops.view_2d(ctx, t, t.ne[0], n_cells, t.nb[1], s * t.nb[2])
        self.buffers = [b for buft, ctx in self.ctxs.items() for b in alloc_ctx_tensors_from_buft(ctx, buft)]
        rotated = [type.is_quantized and bool(self.layers) for type in self.types]
        self.attn_rot_k = rotated[0] and hparams.n_embd_head_k % ROTATED == 0
        self.attn_rot_v = rotated[1] and hparams.n_embd_head_v % ROTATED == 0
        bus.standing.add(self)
        if bus.on:
            bus.emit(self._created())

    @functools.cached_property
    def cells(self) -> KVCells:
        """What the cells hold: made when it is first asked for, so that a plan of a million cells makes none."""
        return KVCells(self.n_cells, self.n_seq_max)

    def _new(self, ctx: Context, type: str, n_embd: int, n_cells: int, name: str) -> Tensor:
        return ctx.new_tensor(type, (n_embd, n_cells, self.n_stream), name)

    def _created(self) -> CacheCreated:
        return CacheCreated(
            self.id,
            len(self.k),
            self.n_cells,
            self.types[0].name,
            self.types[1].name,
            tuple(t.id for t in self.k),
            tuple(t.id for t in self.v),
            sum(t.nbytes for t in self.k),
            sum(t.nbytes for t in self.v),
            tuple(self.layers) if self.layers != list(range(len(self.layers))) else (),
            self.n_swa,
        )

    @property
    def caches(self) -> tuple[KVCache, ...]:
        """The caches that a memory is made of: here this one."""
        return (self,)

    def layer(self, il: int) -> tuple[Tensor, Tensor]:
        """Keys and values of a layer of the model."""
        i = self.layers.index(il)
        return self.k[i], self.v[i]

    def snapshot(self) -> Iterator[Event]:
        yield self._created()
        for i in np.flatnonzero(self.cells.pos >= 0):
            for s in self.cells.sequences(int(i)):
                yield CellSet(self.id, int(i), int(self.cells.pos[i]), s)

    def free(self) -> None:
        """Give the cache's memory back."""
        bus.standing.discard(self)
        for buffer in self.buffers:
            buffer.free()
        for ctx in self.ctxs.values():
            ctx.free()

    # Sequences.

    def clear(self) -> None:
        """Empty every cell; the bytes stay. `llama_kv_cache::clear`, src/llama-kv-cache.cpp."""
        self.seq_rm(-1, -1, -1)
        self.head = 0

    def seq_rm(self, seq_id: int, p0: int, p1: int) -> None:
        """Remove positions `p0` to below `p1` of a sequence, -1 for all of them and for no limit.

        `llama_kv_cache::seq_rm`, src/llama-kv-cache.cpp.
        """
        p0, p1 = self._range("seq_rm", seq_id, p0, p1, any_seq=True)
        self._op("remove", seq_id, -1, p0, p1, 0)
        freed: list[int] = []
        for i in self.cells.in_range(p0, p1):
            pos = int(self.cells.pos[i])
            if seq_id < 0:
                seqs = self.cells.sequences(i)
                self.cells.rm(i)
                empty = True
            elif self.cells.seq[seq_id, i]:
                seqs = [seq_id]
                empty = self.cells.seq_rm(i, seq_id)
            else:
                continue
            self._freed(i, pos, seqs)
            if empty:
                freed.append(i)
        if freed:
            self.head = min(self.head, freed[0])

    def seq_cp(self, seq_src: int, seq_dst: int, p0: int, p1: int) -> None:
        """Let `seq_dst` see positions `p0` to below `p1` of `seq_src`.

        `llama_kv_cache::seq_cp`, src/llama-kv-cache.cpp.
        """
        p0, p1 = self._range("seq_cp", seq_src, p0, p1)
        self._range("seq_cp", seq_dst, p0, p1)
        if seq_src == seq_dst:
            return
        self._op("copy", seq_src, seq_dst, p0, p1, 0)
        for i in self.cells.in_range(p0, p1):
            if self.cells.seq[seq_src, i] and not self.cells.seq[seq_dst, i]:
                self.cells.seq[seq_dst, i] = True
                if bus.on:
                    bus.emit(CellSet(self.id, i, int(self.cells.pos[i]), seq_dst))

    def seq_keep(self, seq_id: int) -> None:
        """Remove every other sequence. `llama_kv_cache::seq_keep`, src/llama-kv-cache.cpp."""
        self._range("seq_keep", seq_id, -1, -1)
        self._op("keep", seq_id, -1, 0, POS_MAX, 0)
        freed: list[int] = []
        for i in self.cells.in_range(0, POS_MAX):
            pos, others = int(self.cells.pos[i]), [s for s in self.cells.sequences(i) if s != seq_id]
            for s in others:
                self.cells.seq_rm(i, s)
            self._freed(i, pos, others)
            if self.cells.is_empty(i):
                freed.append(i)
        if freed:
            self.head = min(self.head, freed[0])

    def seq_add(self, seq_id: int, p0: int, p1: int, delta: int) -> None:
        """Move positions `p0` to below `p1` of a sequence by `delta`; those that fall below 0 are removed.

        `llama_kv_cache::seq_add`, src/llama-kv-cache.cpp. The keys are turned to match before the next decode.
        """
        p0, p1 = self._range("seq_add", seq_id, p0, p1)
        if delta == 0 or p0 == p1:
            return
        self._op("shift", seq_id, -1, p0, p1, delta)
        freed: list[int] = []
        for i in self.cells.in_range(p0, p1):
            if not self.cells.seq[seq_id, i]:
                continue
            pos, seqs = int(self.cells.pos[i]), self.cells.sequences(i)
            if self.cells.pos_add(i, delta):
                freed.append(i)
                self._freed(i, pos, seqs)
            elif bus.on:
                for s in seqs:
                    bus.emit(CellSet(self.id, i, pos + delta, s))
        self.head = freed[0] if freed else 0

    def holds(self, seq_id: int, n: int) -> bool:
        """Whether a sequence has, once, each position that a token at position `n` sees."""
        pos = self.cells.pos[self.cells.seq[seq_id]]
        first = max(0, n - self.n_swa + 1) if self.n_swa else 0
        return bool(np.array_equal(np.sort(pos[(pos >= first) & (pos < n)]), np.arange(first, n)))

    def _range(self, what: str, seq_id: int, p0: int, p1: int, any_seq: bool = False) -> tuple[int, int]:
        if not (-1 if any_seq else 0) <= seq_id < self.n_seq_max:
            raise VizggmlError(f"{what}: sequence {seq_id} is not one of 0 to {self.n_seq_max - 1} (n_seq_max)")
        return max(p0, 0), POS_MAX if p1 < 0 else p1

    def _op(self, op: str, seq_id: int, seq_dst: int, p0: int, p1: int, delta: int) -> None:
        if bus.on:
            bus.emit(SeqOp(self.id, op, seq_id, seq_dst, p0, p1, delta))

    def _freed(self, cell: int, pos: int, seqs: Sequence[int]) -> None:
        if bus.on:
            for s in seqs:
                bus.emit(CellFreed(self.id, cell, pos, s))

    def seq_pos_max(self, seq_id: int) -> int:
        """The highest position of a sequence, -1 if it has none."""
        return self.cells.seq_pos_max(seq_id)

    # Slots.

    def find_slot(self, ubatch: Ubatch) -> Slot | None:
        """Free cells for the tokens, from `head` on and around. `llama_kv_cache::find_slot`, src/llama-kv-cache.cpp.

        A cell is free that is empty or has left the window. Nothing is changed. None if there are too few.
        """
        n_tokens, n_cells = ubatch.n_tokens, self.n_cells
        head = self.head if self.head <= self.cells.used + 2 * n_tokens else 0
        free = np.flatnonzero((self.cells.pos < 0) | self.cells.out_of_window(self.n_swa))
        if len(free) < n_tokens:
            return None
        from_head = int(np.searchsorted(free, head % n_cells))
        order = np.concatenate((free[from_head:], free[:from_head]))
        slot = tuple(int(i) for i in order[:n_tokens])
        if bus.on:
            bus.emit(CellsFound(self.id, head, n_tokens, slot, self._n_kv(max(self.cells.used_max_p1, max(slot) + 1))))
        return slot

    def prepare(self, ubatches: Sequence[Ubatch]) -> list[Slot] | None:
        """A slot for each ubatch, as if the ones before were in place; then all is put back.

        `llama_kv_cache::prepare`, src/llama-kv-cache.cpp. None if not all of them fit.
        """
        slots: list[Slot] = []
        head, cells = self.head, self.cells.copy()
        for ubatch in ubatches:
            slot = self.find_slot(ubatch)
            if slot is None:
                break
            slots.append(slot)
            for s, p0, p1 in self._outlived(self._place(slot, ubatch)):
                for i in self.cells.in_range(p0, p1):
                    self.cells.seq_rm(i, s)
            self.head = slot[-1] + 1
        self.head = head
        self.cells.restore(cells)
        return slots if len(slots) == len(ubatches) else None

    def init_batch(self, ubatches: Sequence[Ubatch]) -> list[MemoryContext] | None:
        """The cache as each ubatch will meet it. `llama_kv_cache::init_batch`, src/llama-kv-cache.cpp."""
        slots = self.prepare(ubatches)
        return None if slots is None else [MemoryContext(self, slot, 0) for slot in slots]

    def init_full(self) -> MemoryContext:
        """The cache as a graph that sees all of it meets it. `llama_kv_cache::init_full`, src/llama-kv-cache.cpp."""
        return MemoryContext(self, (0,), self.n_cells)

    def _place(self, slot: Slot, ubatch: Ubatch) -> dict[int, tuple[int, int]]:
        """Put the tokens into their cells: the position and the sequence of each that had left the window."""
        evicted: dict[int, tuple[int, int]] = {}
        for i, pos, seqs, token in zip(slot, ubatch.pos, ubatch.seq_id, ubatch.token, strict=True):
            if not self.cells.is_empty(i):
                evicted[i] = int(self.cells.pos[i]), self.cells.sequences(i)[0]
                self.cells.rm(i)
            self.cells.set(i, pos, seqs, token)
        return evicted

    def _outlived(self, evicted: dict[int, tuple[int, int]]) -> Iterator[tuple[int, int, int]]:
        """For each sequence the positions before its last evicted one, that are still there: none shall be missing
        between those that a sequence has."""
        last: dict[int, int] = {}
        for pos, s in evicted.values():
            last[s] = max(last.get(s, pos), pos)
        for s, pos in sorted(last.items()):
            if 0 <= (first := self.cells.seq_pos_min(s)) <= pos:
                yield s, first, pos + 1

    def apply_ubatch(self, slot: Slot, ubatch: Ubatch) -> None:
        """Put the ubatch's tokens into their cells. `llama_kv_cache::apply_ubatch`, src/llama-kv-cache.cpp."""
        evicted = self._place(slot, ubatch)
        seq = NO_SEQ
        if bus.on:
            for i, pos, seqs in zip(slot, ubatch.pos, ubatch.seq_id, strict=True):
                if i in evicted:
                    seq = bus.emit(WindowEvicted(self.id, i, *evicted[i]))
                for s in seqs:
                    bus.emit(CellSet(self.id, i, pos, s))
        with bus.because(seq):
            for s, p0, p1 in self._outlived(evicted):
                self.seq_rm(s, p0, p1)
        self.head = slot[-1] + 1

    @property
    def n_kv(self) -> int:
        """The cells that attention looks at: those in use, padded, so that a graph fits for many tokens.

        `llama_kv_cache::get_n_kv`, src/llama-kv-cache.cpp.
        """
        return self._n_kv(self.cells.used_max_p1)

    def _n_kv(self, used: int) -> int:
        return min(self.n_cells, max(N_KV_PAD, pad(used, N_KV_PAD)))

    # What a graph needs of the cache.

    def get_k(self, ctx: Context, il: int, n_kv: int) -> Tensor:
        """The first `n_kv` keys of each stream, (n_embd_head, n_head_kv, n_kv, n_stream).

        `llama_kv_cache::get_k`, src/llama-kv-cache.cpp.
        """
        k, hp = self.layer(il)[0], self.hparams
        return ops.view_4d(
            ctx,
            k,
            hp.n_embd_head_k,
            hp.n_head_kv[il],
            n_kv,
            self.n_stream,
            k.type.row_size(hp.n_embd_head_k),
            k.type.row_size(k.ne[0]),
            k.type.row_size(k.ne[0] * self.n_cells),
            0,
        )

    def get_v(self, ctx: Context, il: int, n_kv: int) -> Tensor:
        """The first `n_kv` values of each stream: (n_embd_head, n_head_kv, n_kv, n_stream).

        When `v_trans`, (n_kv, n_head_kv, n_embd_head, n_stream). `llama_kv_cache::get_v`, src/llama-kv-cache.cpp.
        """
        v, hp, n_cells = self.layer(il)[1], self.hparams, self.n_cells
        n_head, n_embd, row_size = hp.n_head_kv[il], hp.n_embd_head_v, v.type.row_size
        if not self.v_trans:
            nb = row_size(n_embd), row_size(v.ne[0]), row_size(v.ne[0] * n_cells)
            return ops.view_4d(ctx, v, n_embd, n_head, n_kv, self.n_stream, *nb, 0)
        nb = row_size(n_cells * n_embd), row_size(n_cells), row_size(n_cells * v.ne[0])
        return ops.view_4d(ctx, v, n_kv, n_head, n_embd, self.n_stream, *nb, 0)

    def cpy_k(self, ctx: Context, k_cur: Tensor, k_idxs: Tensor, il: int) -> Tensor:
        """Write the new keys into their cells. `llama_kv_cache::cpy_k`, src/llama-kv-cache.cpp."""
        n_embd_head, n_head, n_tokens = k_cur.ne[:3]
        k_cur = ops.view_2d(ctx, k_cur, n_embd_head * n_head, n_tokens, k_cur.nb[2], 0)
        return ops.set_rows(ctx, self._all_streams(ctx, self.layer(il)[0]), k_cur, k_idxs)

    def _all_streams(self, ctx: Context, t: Tensor) -> Tensor:
        """The cells of all streams in a row: indices count through them."""
        return ops.reshape_2d(ctx, t, t.ne[0], t.ne[1] * t.ne[2]) if self.n_stream > 1 else t

    def cpy_v(self, ctx: Context, v_cur: Tensor, v_idxs: Tensor, il: int) -> Tensor:
        """Write the new values into their cells, transposed element by element. `llama_kv_cache::cpy_v`."""
        n_embd_head, n_head, n_tokens = v_cur.ne[:3]
        n_embd, v = n_embd_head * n_head, self.layer(il)[1]
        if not self.v_trans:
            v_cur = ops.view_2d(ctx, v_cur, n_embd, n_tokens, v_cur.nb[2], 0)
            return ops.set_rows(ctx, self._all_streams(ctx, v), v_cur, v_idxs)
        merge = ops.reshape_2d if v_cur.type.row_size(n_embd) == v_cur.nb[2] else ops.cont_2d
        v_cur = merge(ctx, v_cur, n_embd, n_tokens)
        v_view = ops.reshape_2d(ctx, v, 1, v.nelements)
        v_cur = ops.reshape_2d(ctx, v_cur, 1, v_cur.nelements)
        return ops.set_rows(ctx, v_view, v_cur, v_idxs)

    def build_input_k_idxs(self, ctx: Context, ubatch: Ubatch) -> Tensor:
        """`llama_kv_cache::build_input_k_idxs`, src/llama-kv-cache.cpp."""
        return ctx.new_tensor(I64, (ubatch.n_tokens,)).set_input().set_name("attn_inp_k_idxs")

    def build_input_v_idxs(self, ctx: Context, ubatch: Ubatch) -> Tensor:
        """`llama_kv_cache::build_input_v_idxs`, src/llama-kv-cache.cpp: one index a token, or one an element."""
        n = ubatch.n_tokens * (self.n_embd_v if self.v_trans else 1)
        return ctx.new_tensor(I64, (n,)).set_input().set_name("attn_inp_v_idxs")

    def build_input_k_rot(self, ctx: Context) -> Tensor | None:
        """The largest Hadamard matrix that fits a head of K. `llama_kv_cache::build_input_k_rot`."""
        return self._rotation(ctx, self.rotations[0], "attn_inp_k_rot") if self.attn_rot_k else None

    def build_input_v_rot(self, ctx: Context) -> Tensor | None:
        """The smallest one, for V. `llama_kv_cache::build_input_v_rot`, src/llama-kv-cache.cpp."""
        return self._rotation(ctx, ROTATED, "attn_inp_v_rot") if self.attn_rot_v else None

    @property
    def rotations(self) -> tuple[int, int]:
        """How large the matrices are that K and V are rotated by; 0 for what is not."""
        n = ROTATED
        while self.hparams.n_embd_head_k % (2 * n) == 0:
            n *= 2
        return n * self.attn_rot_k, ROTATED * self.attn_rot_v

    def _rotation(self, ctx: Context, n: int, name: str) -> Tensor:
        return ctx.new_tensor(F32, (n, n)).set_input().set_name(name)

    def set_input_rot(self, dst: Tensor) -> None:
        """`llama_kv_cache::set_input_k_rot`, `set_input_v_rot`, src/llama-kv-cache.cpp."""
        dst.array()[0, 0] = hadamard(dst.ne[0])

    def set_input_k_idxs(self, dst: Tensor, slot: Slot) -> None:
        dst.set(slot)

    def set_input_v_idxs(self, dst: Tensor, slot: Slot) -> None:
        """`llama_kv_cache::set_input_v_idxs`, src/llama-kv-cache.cpp."""
        if self.v_trans:
            element = np.arange(self.n_embd_v, dtype=np.int64) * self.n_cells
            dst.set(np.add.outer(np.asarray(slot, np.int64), element))
        else:
            dst.set(slot)

    def set_input_kq_mask(self, dst: Tensor, ubatch: Ubatch, causal_attn: bool) -> None:
        """0 where a token sees a cell, -inf where not. `llama_kv_cache::set_input_kq_mask`, src/llama-kv-cache.cpp."""
        n_kv = dst.ne[0]
        seqs = np.fromiter((s[0] for s in ubatch.seq_id), np.intp, ubatch.n_tokens)
        seen = self.cells.seq[seqs, :n_kv]
        p0, p1 = self.cells.pos[None, :n_kv], np.asarray(ubatch.pos)[:, None]
        if causal_attn:
            seen = seen & (p0 <= p1)
        if self.n_swa:
            seen = seen & ~is_masked_swa(self.n_swa, p0, p1)
        dst.array()[0, 0] = np.where(seen, np.float32(0), np.float32(-np.inf))

    def written(self, t: Tensor, slot: Slot, il: int, which: str) -> Iterator[KvWritten]:
        """The events of a computed `set_rows` into this cache: one for each run of neighbouring cells."""
        cache = self.layer(il)[which == "V"]
        n_embd = cache.ne[0]
        runs = np.split(np.asarray(slot), np.flatnonzero(np.diff(slot) != 1) + 1)
        for run in runs:
            nbytes = len(run) * cache.type.row_size(n_embd)
            n_head = self.hparams.n_head_kv[il]
            yield KvWritten(self.id, t.id, which, il, int(run[0]), len(run), n_head, nbytes, cache.type.name)
