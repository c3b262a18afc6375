"""The cache: which cells are found, what sequence operations do to them, and what is told of it."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from tests.llama.building import Parts, listening, parts
from tests.llama.oracle import wheel
from vizggml.errors import VizggmlError
from vizggml.events import CacheCreated, CellFreed, CellSet, CellsFound, SeqOp
from vizggml.ggml.buffer import Buffer, BufferType, alloc_ctx_tensors_from_buft, cpu_buffer_type
from vizggml.ggml.context import Context
from vizggml.ggml.types import F32, I64
from vizggml.llama import kv_cache
from vizggml.llama.batch import Batch, split
from vizggml.llama.kv_cache import KVCache


@pytest.fixture
def model(small: Path) -> Parts:
    return parts(small, n_ctx=256, n_seq_max=3)


def put(kv: KVCache, n_tokens: int, pos: int = 0, seq_id: int = 0) -> tuple[int, ...]:
    ubatch = next(split(Batch.of([1] * n_tokens, pos, seq_id=seq_id), n_tokens))
    slot = kv.find_slot(ubatch)
    assert slot is not None
    kv.apply_ubatch(slot, ubatch)
    return slot


def test_a_new_cache_tells_its_tensors(small: Path) -> None:
    with listening(CacheCreated) as seen:
        kv = parts(small, n_ctx=256, type_k="f32").kv
    (e,) = seen
    assert isinstance(e, CacheCreated)
    # width 64, 4 heads, 2 KV heads: 32 elements a cell
    assert (e.n_layer, e.n_cells, e.type_k, e.type_v) == (2, 256, "F32", "F16")
    assert (e.nbytes_k, e.nbytes_v) == (2 * 256 * 32 * 4, 2 * 256 * 32 * 2)
    assert (e.k, e.v) == (tuple(t.id for t in kv.k), tuple(t.id for t in kv.v))
    assert [t.name for t in (*kv.k, *kv.v)] == ["cache_k_l0", "cache_k_l1", "cache_v_l0", "cache_v_l1"]


def test_tokens_take_the_cells_from_the_head_on(model: Parts) -> None:
    with listening(CellsFound, CellSet) as seen:
        assert put(model.kv, 3) == (0, 1, 2)
    assert [(e.head, e.n_tokens, e.cells, e.n_kv) for e in seen if isinstance(e, CellsFound)] == [
        (0, 3, (0, 1, 2), 256)
    ]
    assert [(e.cell, e.pos, e.seq_id) for e in seen if isinstance(e, CellSet)] == [(0, 0, 0), (1, 1, 0), (2, 2, 0)]
    assert put(model.kv, 2, 3) == (3, 4)


def test_freed_cells_are_filled_before_new_ones_and_may_be_scattered(model: Parts) -> None:
    kv = model.kv
    put(kv, 6)
    put(kv, 2, seq_id=1)
    with listening(SeqOp, CellFreed) as seen:
        kv.seq_rm(0, 2, 4)
        kv.seq_rm(1, 1, -1)
    assert [(e.op, e.seq_id, e.p0, e.p1) for e in seen if isinstance(e, SeqOp)] == [
        ("remove", 0, 2, 4),
        ("remove", 1, 1, 2**31 - 1),
    ]
    freed = [(e.cell, e.pos, e.seq_id) for e in seen if isinstance(e, CellFreed)]
    assert freed == [(2, 2, 0), (3, 3, 0), (7, 1, 1)]
    assert put(kv, 4, seq_id=2) == (2, 3, 7, 8)


def test_copies_share_cells_and_keep_drops_the_others(model: Parts) -> None:
    kv = model.kv
    put(kv, 4)
    with listening(SeqOp, CellSet, CellFreed) as seen:
        kv.seq_cp(0, 1, 1, 3)
        kv.seq_keep(1)
    assert [(e.op, e.seq_id, e.seq_dst) for e in seen if isinstance(e, SeqOp)] == [("copy", 0, 1), ("keep", 1, -1)]
    assert [(e.cell, e.pos, e.seq_id) for e in seen if isinstance(e, CellSet)] == [(1, 1, 1), (2, 2, 1)]
    freed = [(e.cell, e.pos, e.seq_id) for e in seen if isinstance(e, CellFreed)]
    assert freed == [(0, 0, 0), (1, 1, 0), (2, 2, 0), (3, 3, 0)]
    assert (kv.cells.used, kv.cells.sequences(1)) == (2, [1])


def test_shifted_positions_are_told_and_those_below_zero_freed(model: Parts) -> None:
    kv = model.kv
    put(kv, 4)
    with listening(SeqOp, CellSet, CellFreed) as seen:
        kv.seq_add(0, 0, -1, -2)
    assert [(e.op, e.delta) for e in seen if isinstance(e, SeqOp)] == [("shift", -2)]
    assert [(e.cell, e.pos) for e in seen if isinstance(e, CellFreed)] == [(0, 0), (1, 1)]
    assert [(e.cell, e.pos) for e in seen if isinstance(e, CellSet)] == [(2, 0), (3, 1)]
    assert kv.head == 0


def test_clear_empties_every_cell(model: Parts) -> None:
    put(model.kv, 4)
    with listening(CellFreed) as seen:
        model.kv.clear()
    assert len(seen) == 4
    assert (model.kv.cells.used, model.kv.head) == (0, 0)


def test_prepare_leaves_the_cells_as_they_were(model: Parts) -> None:
    kv = model.kv
    put(kv, 250)
    before = kv.cells.pos.copy(), kv.cells.seq.copy(), kv.head
    ubatches = list(split(Batch.of([1] * 6, 250), 4))
    with listening(CellSet) as seen:
        assert kv.prepare(ubatches) == [(250, 251, 252, 253), (254, 255)]
        assert kv.prepare(list(split(Batch.of([1] * 7, 250), 4))) is None
    assert not seen
    assert np.array_equal(kv.cells.pos, before[0])
    assert np.array_equal(kv.cells.seq, before[1])
    assert kv.head == before[2]


def test_n_kv_grows_in_steps_of_256_up_to_the_cache(small: Path) -> None:
    kv = parts(small, n_ctx=700).kv
    assert (len(kv.cells), kv.n_kv) == (768, 256)
    put(kv, 256)
    assert kv.n_kv == 256
    put(kv, 1, 256)
    assert kv.n_kv == 512
    put(kv, 400, 257)
    assert kv.n_kv == 768


def test_a_snapshot_makes_the_cache_as_it_stands(model: Parts) -> None:
    put(model.kv, 2)
    model.kv.seq_cp(0, 2, 1, 2)
    created, *cells = model.kv.snapshot()
    assert isinstance(created, CacheCreated)
    assert cells == [CellSet(model.kv.id, 0, 0, 0), CellSet(model.kv.id, 1, 1, 0), CellSet(model.kv.id, 1, 1, 2)]


@pytest.mark.parametrize(
    "what", [lambda kv: kv.seq_rm(3, 0, 1), lambda kv: kv.seq_cp(0, 3, 0, 1), lambda kv: kv.seq_keep(-1)]
)
def test_a_sequence_that_the_context_has_not_is_refused(model: Parts, what: object) -> None:
    with pytest.raises(VizggmlError, match=r"not one of 0 to 2 \(n_seq_max\)"):
        what(model.kv)  # type: ignore[operator]


def test_the_mask_and_the_indices_by_hand(small: Path) -> None:
    """Three tokens in cells 1, 3, 0, of which the last is another sequence; V transposed."""
    kv = parts(small, n_ctx=256, flash_attn=False, n_seq_max=2).kv
    batch = Batch([1, 1, 1], [0, 1, 0], [(0,), (0,), (1,)], [False] * 3)
    ubatch = next(split(batch, 3))
    kv.apply_ubatch((1, 3, 0), ubatch)
    ctx = Context(1 << 16, no_alloc=True)
    mask = ctx.new_tensor(F32, (256, 3))
    k_idxs, v_idxs = kv.build_input_k_idxs(ctx, ubatch), kv.build_input_v_idxs(ctx, ubatch)
    alloc_ctx_tensors_from_buft(ctx, cpu_buffer_type())
    kv.set_input_kq_mask(mask, ubatch, True)
    kv.set_input_k_idxs(k_idxs, (1, 3, 0))
    kv.set_input_v_idxs(v_idxs, (1, 3, 0))
    seen = [[int(j) for j in np.flatnonzero(row == 0)] for row in mask.array()[0, 0]]
    assert seen == [[1], [1, 3], [0]]
    assert np.all(np.isneginf(mask.array()[0, 0][mask.array()[0, 0] != 0]))
    assert k_idxs.type is I64
    assert k_idxs.array().ravel().tolist() == [1, 3, 0]
    assert v_idxs.array().reshape(3, 32)[:, :3].tolist() == [[1, 257, 513], [3, 259, 515], [0, 256, 512]]


def test_sequence_operations_leave_the_last_positions_that_llama_cpp_has(small: Path) -> None:
    """Random operations here and in the wheel; after each the highest position of every sequence is the same."""
    rng = random.Random(5)
    kv = parts(small, n_ctx=256, n_seq_max=3).kv
    native = wheel()
    with native.model(small) as other, other.context(n_ctx=256, n_seq_max=3, kv_unified=True) as context:
        memory = native.llama_get_memory(context.handle)
        context.decode([1] * 12)
        put(kv, 12)
        for _ in range(60):
            s, d, p0, p1 = rng.randrange(3), rng.randrange(3), rng.randrange(-1, 10), rng.randrange(-1, 14)
            op = rng.choice(["rm", "cp", "cp", "add", "keep"])
            if op == "rm":
                native.llama_memory_seq_rm(memory, s, p0, p1)
                kv.seq_rm(s, p0, p1)
            elif op == "cp":
                native.llama_memory_seq_cp(memory, s, d, p0, p1)
                kv.seq_cp(s, d, p0, p1)
            elif op == "add":
                delta = rng.choice([-1, 1])
                native.llama_memory_seq_add(memory, s, p0, p1, delta)
                kv.seq_add(s, p0, p1, delta)
            elif rng.random() < 0.1:
                native.llama_memory_seq_keep(memory, s)
                kv.seq_keep(s)
            theirs = [native.llama_memory_seq_pos_max(memory, i) for i in range(3)]
            assert [kv.cells.seq_pos_max(i) for i in range(3)] == theirs


def test_a_cache_beyond_the_memory_is_refused_before_its_cells_are_made(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = parts(small, n_ctx=256)

    class Full(BufferType):
        def alloc_buffer(self, size: int, usage: str = "any") -> Buffer:
            raise VizggmlError(f"the system has no {size} bytes")

    monkeypatch.setattr(kv_cache, "KVCells", lambda *sizes: pytest.fail("the cells were made"))
    with pytest.raises(VizggmlError, match=r"the system has no \d+ bytes"):
        KVCache(made.hparams, made.cparams, Full("CPU"))
