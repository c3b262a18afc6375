"""Two caches: their sizes, and which cells are given away, against the wheel and by hand."""

from __future__ import annotations

import ctypes
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.llama.building import listening, parts, ubatch_of
from tests.llama.made import Shape, write
from tests.llama.native import NativeContext, TensorStruct
from tests.llama.oracle import wheel
from vizggml.errors import VizggmlError
from vizggml.events import CacheCreated, CellFreed, CellSet, Event, KvWritten, ReuseChecked, SeqOp, WindowEvicted
from vizggml.ggml.tensor import Tensor
from vizggml.llama.batch import Batch, split
from vizggml.llama.context import Context
from vizggml.llama.cparams import ContextParams, CParams
from vizggml.llama.kv_cache import KVCache
from vizggml.llama.kv_cache_iswa import KVCacheISWA, cells_of_layer, swa_cells
from vizggml.llama.model import load_model
from vizggml.timeline.schema import fields_of

PAIR = Shape("gemma3", n_layer=2, n_embd=32, n_head=2, n_head_kv=1, n_ff=32, n_swa=24, swa_pattern=2)
"""Layer 0 sees 24 positions, layer 1 all."""

WINDOW, ALL = 0, 1


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("iswa") / "pair.gguf", PAIR)


def caches(path: Path, **params: Any) -> KVCacheISWA:
    memory = parts(path, n_ctx=1024, swa_full=False, **params).kv
    assert isinstance(memory, KVCacheISWA)
    return memory


def put(kv: KVCache, pos: range, n_ubatch: int = 512, seq_id: int = 0) -> list[tuple[int, ...]]:
    """Tokens at these positions, in ubatches; the cells they went to."""
    mctxs = kv.init_batch(ubatches := list(split(Batch.of([1] * len(pos), pos[0], seq_id=seq_id), n_ubatch)))
    assert mctxs is not None
    for mctx, ubatch in zip(mctxs, ubatches, strict=True):
        mctx.apply(ubatch)
    return [mctx.slot for mctx in mctxs]


def told(events: list[Event]) -> list[tuple[Any, ...]]:
    """Kinds and fields."""
    return [(type(e).__name__, *(getattr(e, f.name) for f in fields_of(type(e)))) for e in events]


# Sizes.


@pytest.mark.parametrize(
    ("given", "n_cells"),
    [
        ({"n_ubatch": 1}, 256),
        ({"n_ubatch": 232}, 256),
        ({"n_ubatch": 233}, 512),
        ({"n_ubatch": 512, "n_seq_max": 4}, 768),
        ({"n_ubatch": 512, "n_seq_max": 4, "kv_unified": False}, 512),
        ({"n_ubatch": 2048, "n_batch": 2048}, 2048),
        ({"swa_full": True}, 2048),
    ],
)
def test_a_window_needs_the_windows_of_all_sequences_and_one_ubatch(
    pair: Path, given: dict[str, Any], n_cells: int
) -> None:
    """24 for each sequence that shares the cells, and n_ubatch, in steps of 256, and never more than the others."""
    hparams = parts(pair).hparams
    cparams = CParams.resolve(ContextParams(**{"n_ctx": 2048, "swa_full": False, **given}), hparams)
    assert swa_cells(hparams, cparams) == n_cells
    n_stream = 1 if given.get("kv_unified", True) else given["n_seq_max"]
    assert cells_of_layer(hparams, cparams, ALL) == 2048
    assert cells_of_layer(hparams, cparams, WINDOW) == n_stream * n_cells


def test_each_cache_tells_its_layers_and_its_window(pair: Path) -> None:
    with listening(CacheCreated) as seen:
        caches(pair, n_ubatch=1)
    found = [(e.n_layer, e.n_cells, e.layers, e.n_swa) for e in seen if isinstance(e, CacheCreated)]
    assert found == [(1, 1024, (1,), 0), (1, 256, (), 24)]


# Cells that have left the window.


def test_a_cell_that_left_the_window_is_given_to_a_new_token(pair: Path) -> None:
    """256 cells are full; 233 of them hold positions before 256 - 23, and the next token takes the first."""
    kv = caches(pair, n_ubatch=1).swa
    put(kv, range(256), 1)
    with listening(WindowEvicted, CellSet, CellFreed, SeqOp) as seen:
        assert put(kv, range(256, 257)) == [(0,)]
    assert told(seen) == [("WindowEvicted", kv.id, 0, 0, 0), ("CellSet", kv.id, 0, 256, 0)]
    assert put(kv, range(257, 259)) == [(1, 2)]
    with pytest.raises(AssertionError):
        put(kv, range(259, 259 + 234))
    assert put(kv, range(259, 259 + 233))[0] == tuple(range(3, 236))


def test_positions_before_one_that_is_given_away_are_removed(pair: Path) -> None:
    """The token at 42 will see 19 to 42. The search begins at cell 17, so that those before are left over."""
    kv = caches(pair, n_ubatch=1).swa
    put(kv, range(42))
    kv.head = 17
    with listening(WindowEvicted, CellSet, CellFreed, SeqOp) as seen:
        assert put(kv, range(42, 43)) == [(17,)]
    assert told(seen) == [
        ("WindowEvicted", kv.id, 17, 17, 0),
        ("CellSet", kv.id, 17, 42, 0),
        ("SeqOp", kv.id, "remove", 0, -1, 0, 18, 0),
        *(("CellFreed", kv.id, pos, pos, 0) for pos in range(17)),
    ]
    assert {e.cause for e in seen[2:]} == {seen[0].seq}
    assert (kv.head, kv.cells.used, kv.cells.seq_pos_min(0)) == (18, 25, 18)


def test_a_shared_cell_stays(pair: Path) -> None:
    kv = caches(pair, n_ubatch=1, n_seq_max=2).swa
    put(kv, range(256), 1)
    kv.seq_cp(0, 1, 0, 2)
    assert put(kv, range(256, 257)) == [(2,)]


def test_a_batch_that_finds_no_room_changes_neither_cache(pair: Path) -> None:
    memory = caches(pair, n_ubatch=64, n_seq_max=2)
    for kv in memory.caches:
        put(kv, range(250), 64)
        kv.seq_cp(0, 1, 0, -1)
    before = [(kv.cells.copy(), kv.head) for kv in memory.caches]
    with listening(WindowEvicted, CellFreed, CellSet) as seen:
        assert memory.init_batch(list(split(Batch.of([1] * 7, 250), 4))) is None
    assert not seen
    for kv, (cells, head) in zip(memory.caches, before, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(kv.cells.copy(), cells, strict=True))
        assert kv.head == head


def test_a_full_window_is_one_clear_error(pair: Path) -> None:
    ctx = load_model(pair).context(n_ctx=1024, n_ubatch=64, n_seq_max=2, swa_full=False)
    ctx.decode([1] * 250)
    ctx.memory.seq_cp(0, 1, 0, -1)
    with pytest.raises(VizggmlError, match="batch: 7 tokens, the cache has 774 of 1024 and 6 of 256 free"):
        ctx.decode([1] * 7)


# The cells and the masks that the wheel has.


def theirs(context: NativeContext, seen: list[Any]) -> None:
    """Note the cells that layer 0 and 1 write their keys to, and what their tokens see."""

    def peek(t: TensorStruct) -> None:
        name, view = t.name.decode(), t.view_src
        op = context.native.ggml_op_name(t.op).decode()
        if op == "SET_ROWS" and view and view.contents.name.decode().startswith("cache_k_l"):
            idxs = t.src[1].contents
            seen.append([*(ctypes.c_int64 * idxs.ne[0]).from_address(idxs.data)])
        elif name.startswith("kq_soft_max"):
            mask = t.src[1].contents
            values = np.ctypeslib.as_array((ctypes.c_float * (mask.ne[0] * mask.ne[1])).from_address(mask.data))
            seen.append(positions(values.reshape(mask.ne[1], mask.ne[0])))

    context.peek = peek


def ours(context: Context, seen: list[Any]) -> None:
    def before(t: Tensor) -> None:
        if t.op == "SET_ROWS" and t.view_src is not None and t.view_src.name.startswith("cache_k_l"):
            assert t.src[1] is not None
            seen.append(t.src[1].array().ravel().tolist())
        elif t.name.startswith("kq_soft_max"):
            assert t.src[1] is not None
            seen.append(positions(t.src[1].array()[0, 0]))

    context.before_node = before


def positions(mask: NDArray[np.float32]) -> list[list[int]]:
    assert np.all((mask == 0) | np.isneginf(mask))
    return [np.flatnonzero(row == 0).tolist() for row in mask]


@pytest.mark.parametrize(("seed", "swa_full"), [(0, False), (1, False), (2, False), (3, True)])
def test_cells_and_masks_are_llama_cpps_over_random_operations(pair: Path, seed: int, swa_full: bool) -> None:
    """Texts of three sequences many windows long; removals, copies, shifts: every cell written and every mask."""
    rng = random.Random(seed)
    model = load_model(pair)
    mine = model.context(n_ctx=1024, n_ubatch=32, n_seq_max=3, flash_attn=False, swa_full=swa_full)
    settings = {"n_ctx": 1024, "n_ubatch": 32, "n_seq_max": 3, "kv_unified": True, "flash_attn_type": 0}
    native = wheel()
    with native.model(pair) as other, other.context(**settings, swa_full=swa_full) as context:
        memory = native.llama_get_memory(context.handle)
        found: tuple[list[Any], list[Any]] = ([], [])
        ours(mine, found[0])
        theirs(context, found[1])
        n_evicted = 0
        for _ in range(70):
            s, op = rng.randrange(3), rng.random()
            last = [mine.memory.seq_pos_max(i) for i in range(3)]
            if last[s] > 300:
                op = 1.0
            if op < 0.7:
                n = rng.choice([1, 1, 7, 50])
                with listening(WindowEvicted) as evicted:
                    mine.decode(Batch.of([1] * n, last[s] + 1, seq_id=s))
                n_evicted += len(evicted)
                context.decode([1] * n, seq_id=s, pos=last[s] + 1)
            elif op < 0.8:
                p0, p1 = rng.choice([(last[s] - rng.randrange(9), -1), (0, rng.randrange(20)), (-1, -1)])
                native.llama_memory_seq_rm(memory, s, p0, p1)
                mine.memory.seq_rm(s, p0, p1)
            elif op < 0.9:
                d = (s + 1) % 3
                native.llama_memory_seq_rm(memory, d, -1, -1)
                mine.memory.seq_rm(d, -1, -1)
                native.llama_memory_seq_cp(memory, s, d, last[s] - 30, -1)
                mine.memory.seq_cp(s, d, last[s] - 30, -1)
            elif last[s] > 250:
                native.llama_memory_seq_rm(memory, s, 0, 100)
                native.llama_memory_seq_add(memory, s, 100, -1, -100)
                mine.memory.seq_rm(s, 0, 100)
                mine.memory.seq_add(s, 100, -1, -100)
            assert found[0] == found[1]
            found[0].clear()
            found[1].clear()
            theirs_last = [native.llama_memory_seq_pos_max(memory, i) for i in range(3)]
            assert [mine.memory.seq_pos_max(i) for i in range(3)] == theirs_last
    assert swa_full or n_evicted > 50


# Graphs.


def test_both_caches_are_asked_whether_a_graph_serves_again(pair: Path) -> None:
    model = parts(pair, n_ctx=512)
    res = model.build(ubatch_of(2), 256, 1)
    assert res.params is not None
    with listening(ReuseChecked) as seen:
        assert res.can_reuse(res.params)
    found = [(e.condition, e.had) for e in seen if isinstance(e, ReuseChecked) and e.owner == "InputAttnKVISWA"]
    each = [
        ("k_idxs{}.ne[0]", "2"),
        *zip([f"kq_mask{{}}.ne[{i}]" for i in range(4)], ("256", "2", "1", "1"), strict=True),
    ]
    assert found == [(name.format(suffix), had) for suffix in ("", "_swa") for name, had in each]


def test_writes_are_told_of_the_cache_of_their_layer(pair: Path) -> None:
    ctx = load_model(pair).context(n_ctx=512)
    with listening(KvWritten) as seen:
        ctx.decode([1, 2, 3])
    base, swa = (kv.id for kv in ctx.memory.caches)
    found = [(e.cache, e.layer, e.which, e.cell, e.n_cells) for e in seen if isinstance(e, KvWritten)]
    assert found == [(cache, il, which, 0, 3) for cache, il in ((swa, 0), (base, 1)) for which in "KV"]
