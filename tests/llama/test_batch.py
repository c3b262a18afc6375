"""Batches and how they are split."""

from __future__ import annotations

import pytest

from tests.llama.building import listening
from vizggml.errors import VizggmlError
from vizggml.events import UbatchSplit
from vizggml.llama.batch import Batch, check, reserve, split


def test_a_batch_is_cut_every_n_ubatch_tokens_in_order() -> None:
    """`split_simple`: 7 tokens by 3 are 3, 3 and 1."""
    batch = Batch.of([10, 11, 12, 13, 14, 15, 16], pos=5, outputs=[1, -1])
    with listening(UbatchSplit) as seen:
        parts = list(split(batch, 3))
    assert [p.token for p in parts] == [(10, 11, 12), (13, 14, 15), (16,)]
    assert [p.pos for p in parts] == [(5, 6, 7), (8, 9, 10), (11,)]
    assert [p.n_outputs for p in parts] == [1, 0, 1]
    assert [p.output for p in parts] == [(False, True, False), (False, False, False), (True,)]
    assert [(e.index, e.n_tokens, e.n_outputs, e.pos, e.tokens) for e in seen if isinstance(e, UbatchSplit)] == [
        (0, 3, 1, 5, (10, 11, 12)),
        (1, 3, 0, 8, (13, 14, 15)),
        (2, 1, 1, 11, (16,)),
    ]


def test_each_token_is_a_sequence_set_of_its_own_in_a_simple_split() -> None:
    ubatch = next(split(Batch.of([1, 2, 3], 0), 8))
    assert (ubatch.equal_seqs, ubatch.n_seqs, ubatch.n_seq_tokens, ubatch.n_seqs_unq) == (False, 3, 1, 1)


def test_a_reserved_ubatch_has_equal_sequences() -> None:
    ubatch = reserve(n_seq_tokens=4, n_seqs=2, n_outputs=3)
    assert (ubatch.equal_seqs, ubatch.n_tokens, ubatch.n_seqs, ubatch.n_seq_tokens) == (True, 8, 2, 4)
    assert (ubatch.n_seqs_unq, ubatch.n_outputs) == (2, 3)


def test_the_last_token_has_the_output_unless_others_are_named() -> None:
    assert Batch.of([1, 2, 3], 0).output == [False, False, True]
    assert Batch.of([1, 2, 3], 0, outputs=[]).n_outputs == 0
    assert Batch.of([1, 2, 3], 0, outputs=range(3)).n_outputs == 3


def broken(**changes: list[object]) -> Batch:
    batch = Batch.of([1, 2], 4)
    for name, value in changes.items():
        setattr(batch, name, value)
    return batch


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (Batch(), "no tokens"),
        (broken(token=[1, 99]), "token 1 is 99, the vocabulary has 0 to 9"),
        (broken(token=[-1, 1]), "token 0 is -1"),
        (broken(seq_id=[(0,), ()]), "token 1 is in no sequence"),
        (broken(seq_id=[(0,), (2,)]), "sequence 2, the context has 0 to 1"),
        (broken(pos=[4, 6]), "position 6, the one before it at 4"),
        (broken(pos=[5, 6]), "position 5, the one before it at 3"),
        (broken(seq_id=[(1,), (1,)], pos=[-2, -1]), "position -2, not one of 0 to 2147483647"),
    ],
)
def test_a_batch_that_cannot_be_decoded_is_refused(batch: Batch, message: str) -> None:
    with pytest.raises(VizggmlError, match=message):
        check(batch, n_vocab=10, n_seq_max=2, last_pos=[3, -1])


def test_a_batch_that_follows_the_cache_is_accepted() -> None:
    check(Batch.of([1, 2], 4), n_vocab=10, n_seq_max=2, last_pos=[3, -1])


@pytest.mark.parametrize("output", [2, -3])
def test_an_output_that_is_no_token_is_refused(output: int) -> None:
    with pytest.raises(VizggmlError, match=f"output {output} is asked for, it has tokens 0 to 1"):
        Batch.of([1, 2], 0, [output])
