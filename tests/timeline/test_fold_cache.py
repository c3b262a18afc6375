"""The cache's cells, slots, writes and heads, from events written by hand and from a run of two sequences."""

from __future__ import annotations

import numpy as np
import pytest

from tests.llama.building import decode_two_sequences
from tests.timeline.made import at, rows, trace_of
from vizggml.events import (
    CacheCreated,
    CacheId,
    CellFreed,
    CellSet,
    CellsFound,
    DecodeBegin,
    Event,
    KvWritten,
    SeqOp,
    TensorId,
    WindowEvicted,
)
from vizggml.llama.model import load_model
from vizggml.timeline.record import record
from vizggml.timeline.tracks import Tracks

CACHE = CacheId(0)
A, B = TensorId(0), TensorId(1)


def fold(*events: Event) -> Tracks:
    return trace_of(*events).tracks()


def test_cells() -> None:
    tracks = fold(
        CellSet(CACHE, 0, 0, 0),
        CellSet(CACHE, 1, 1, 0),
        CellSet(CACHE, 1, 1, 3),
        CellSet(CACHE, 0, 7, 0),
        CellFreed(CACHE, 1, 1, 0),
        WindowEvicted(CACHE, 0, 7, 0),
    )
    assert rows(tracks, "cell") == [
        (0, 3, 0, 0, 0, 0, 0),
        (1, 4, 0, 1, 1, 0, 1),
        (2, 6, 0, 1, 1, 3, 1),
        (3, 5, 0, 0, 7, 0, 0),
    ]


def test_writes_into_the_cache() -> None:
    tracks = fold(
        KvWritten(CACHE, A, "K", 2, 0, 32, 3, 12288, "F16"),
        KvWritten(CACHE, B, "V", 2, 0, 32, 3, 12288, "F16"),
        KvWritten(CACHE, A, "K", 2, 32, 1, 3, 384, "F16"),
        KvWritten(CACHE, A, "K", 2, 32, 2, 3, 768, "F16"),
    )
    assert rows(tracks, "kv") == [
        (0, 4, 0, 2, 0, 0, 32, 12288),
        (1, 4, 0, 2, 1, 0, 32, 12288),
        (2, 3, 0, 2, 0, 32, 1, 384),
        (3, 4, 0, 2, 0, 32, 2, 768),
    ]


def test_a_cell_that_was_free_in_between_is_taken_anew() -> None:
    """Cell 1 is shared, then left by one, then by both, and given to another token."""
    tracks = fold(
        CellSet(CACHE, 1, 4, 0),
        SeqOp(CACHE, "copy", 0, 1, 0, 9, 0),
        CellSet(CACHE, 1, 4, 1),
        CellFreed(CACHE, 1, 4, 0),
        CellSet(CACHE, 1, 3, 1),
        CellFreed(CACHE, 1, 3, 1),
        CellFreed(CACHE, 1, 3, 1),
        CellSet(CACHE, 1, 8, 1),
    )
    assert [(a, seq, since) for a, _, _, _, _, seq, since in rows(tracks, "cell")] == [
        (0, 0, 0),
        (2, 1, 0),
        (4, 1, 0),
        (7, 1, 7),
    ]


def test_a_slot_holds_from_the_first_token_that_takes_it_to_the_next() -> None:
    tracks = fold(
        DecodeBegin(0, 3, 1, 0),
        CellsFound(CACHE, 0, 3, (0, 1, 5), 256),
        CellsFound(CACHE, 6, 1, (6,), 512),
        CellSet(CACHE, 0, 0, 0),
        CellSet(CACHE, 1, 1, 0),
        CellSet(CACHE, 5, 2, 0),
        CellSet(CACHE, 6, 3, 0),
        CellsFound(CACHE, 7, 1, (7,), 512),
        DecodeBegin(1, 1, 1, 4),
        CellSet(CACHE, 7, 4, 0),
    )
    assert rows(tracks, "slot") == [(3, 6, 0, 0, 2, 256), (3, 6, 0, 5, 1, 256), (6, 10, 0, 6, 1, 512)]


def test_a_cache_tells_its_size_and_layers() -> None:
    tracks = fold(CacheCreated(CACHE, 1, 64, "F16", "Q8_0", (A,), (B,), 24576, 13056))
    assert [(row[0], *row[2:5], *row[7:]) for row in rows(tracks, "cache")] == [(0, 0, 1, 64, 24576, 13056, 0)]
    names = [tracks.string(int(tracks[f"t.cache.{c}"][0])) for c in ("type_k", "type_v")]
    assert names == ["F16", "Q8_0"]
    layer = [int(tracks[f"cache_layer.{c}"][0]) for c in ("cache", "layer", "k", "v", "n_head", "n_head_kv")]
    assert layer == [0, 0, A, B, 0, 0]


def test_two_caches_tell_their_layers_and_the_window() -> None:
    """Layer 2 sees everything, layers 0 and 1 the last 40 positions."""
    base, swa = CacheId(0), CacheId(1)
    k, v = (TensorId(0), TensorId(1), TensorId(2)), (TensorId(3), TensorId(4), TensorId(5))
    tracks = fold(
        CacheCreated(base, 1, 512, "F16", "F16", k[2:], v[2:], 0, 0, (2,)),
        CacheCreated(swa, 2, 256, "F16", "F16", k[:2], v[:2], 0, 0, (), 40),
        KvWritten(base, A, "K", 2, 0, 4, 1, 64, "F16"),
        KvWritten(swa, A, "K", 1, 0, 4, 1, 64, "F16"),
    )
    assert tracks["t.kv.layer"].tolist() == [0, 1]
    assert tracks["t.cache.n_swa"].tolist() == [0, 40]
    table = [tracks[f"cache_layer.{c}"].tolist() for c in ("cache", "layer", "k")]
    assert list(zip(*table, strict=True)) == [(0, 2, 2), (1, 0, 0), (1, 1, 1)]


@pytest.mark.parametrize("flash_attn", [True, False])
def test_two_sequences_and_a_removal(flash_attn: bool) -> None:
    """Five tokens of sequence 0, three of sequence 1; two of the first go, and the next token takes their place."""
    model = load_model("tiny")
    context = model.context(n_ctx=64, n_seq_max=2, flash_attn=flash_attn, n_threads=1)
    with record() as trace:
        decode_two_sequences(context)
    hparams = model.hparams
    model.close()
    tracks = trace.tracks()
    last = tracks.n_events - 1
    cells = {(cell, seq): pos for _, cell, pos, seq, _ in at(tracks, "cell", last)}
    assert cells == {(0, 0): 0, (3, 0): 3, (4, 0): 4, (5, 1): 0, (6, 1): 1, (7, 1): 2, (1, 1): 3}
    assert [row[1:] for row in at(tracks, "slot", last)] == [(1, 1, 256)]
    heads = {name: tracks[f"cache_layer.{name}"].tolist() for name in ("layer", "n_head", "n_head_kv")}
    mine = np.flatnonzero(tracks["cache_layer.cache"] == tracks["t.slot.cache"][-1])
    assert [heads["layer"][r] for r in mine] == list(range(hparams.n_layer))
    assert {heads["n_head"][r] for r in mine} == set(hparams.n_head)
    assert {heads["n_head_kv"][r] for r in mine} == set(hparams.n_head_kv)
