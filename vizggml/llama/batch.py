"""Batches: what the caller wants decoded, and the ubatches it is split into."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from vizggml.errors import VizggmlError
from vizggml.events import UbatchSplit, bus

POS_MAX = 2**31 - 1


@dataclass(slots=True)
class Batch:
    """`llama_batch`, include/llama.h: for each token its id, position, sequences, and whether its logits are wanted."""

    token: list[int] = field(default_factory=list)
    pos: list[int] = field(default_factory=list)
    seq_id: list[tuple[int, ...]] = field(default_factory=list)
    output: list[bool] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.token)

    def add(self, token: int, pos: int, seq_id: Sequence[int] = (0,), output: bool = False) -> None:
        """Append one token of the sequences `seq_id`; `output`: its logits are wanted.

        `common_batch_add`, common/common.cpp.
        """
        self.token.append(token)
        self.pos.append(pos)
        self.seq_id.append(tuple(seq_id))
        self.output.append(output)

    @classmethod
    def of(cls, tokens: Sequence[int], pos: int, outputs: Sequence[int] | None = None, seq_id: int = 0) -> Batch:
        """Consecutive tokens of one sequence from position `pos` on.

        `outputs` are the indices of the tokens whose logits are wanted; None is the last one only.
        """
        n = len(tokens)
        for i in outputs or ():
            if not -n <= i < n:
                raise VizggmlError(f"batch: output {i} is asked for, it has tokens 0 to {n - 1}")
        wanted = {i % n for i in outputs} if outputs is not None and n else {n - 1}
        batch = cls()
        for i, token in enumerate(tokens):
            batch.add(token, pos + i, (seq_id,), i in wanted)
        return batch

    @property
    def n_outputs(self) -> int:
        """How many tokens' logits are wanted."""
        return sum(self.output)


@dataclass(frozen=True, slots=True)
class Ubatch:
    """`llama_ubatch`, src/llama-batch.h: at most `n_ubatch` tokens, computed by one graph.

    With `equal_seqs` the tokens are `n_seqs` sets of `n_seq_tokens`; without, each token is a set of its own.
    """

    token: tuple[int, ...]
    pos: tuple[int, ...]
    seq_id: tuple[tuple[int, ...], ...]
    output: tuple[bool, ...]
    n_seqs_unq: int
    equal_seqs: bool = False
    n_seqs: int = 0

    @property
    def n_tokens(self) -> int:
        return len(self.token)

    @property
    def n_seq_tokens(self) -> int:
        return self.n_tokens // self.n_seqs

    @property
    def n_outputs(self) -> int:
        return sum(self.output)


def check(
    batch: Batch, n_vocab: int, n_seq_max: int, last_pos: Sequence[int], first_pos: Sequence[int] | None = None
) -> None:
    """`llama_batch_allocr::init`, src/llama-batch.cpp: VizggmlError if the batch cannot be decoded.

    `last_pos[s]` is the last position of sequence `s` in the cache, -1 if it has none, and `first_pos[s]` its first
    (None: not looked at). Sequences that share a token must hold the same positions.
    """
    held = list(zip(first_pos or last_pos, last_pos, strict=True))
    if not batch.token:
        raise VizggmlError("batch: it has no tokens")
    expected = list(last_pos)
    for i, (token, pos, seqs) in enumerate(zip(batch.token, batch.pos, batch.seq_id, strict=True)):
        if not 0 <= token < n_vocab:
            raise VizggmlError(f"batch: token {i} is {token}, the vocabulary has 0 to {n_vocab - 1}")
        if not seqs:
            raise VizggmlError(f"batch: token {i} is in no sequence")
        for s in seqs:
            if not 0 <= s < n_seq_max:
                raise VizggmlError(f"batch: token {i} is in sequence {s}, the context has 0 to {n_seq_max - 1}")
            if expected[s] >= 0 and pos != expected[s] + 1:
                raise VizggmlError(
                    f"batch: token {i} of sequence {s} is at position {pos}, the one before it at {expected[s]}"
                )
            if not 0 <= pos <= POS_MAX:
                raise VizggmlError(f"batch: token {i} is at position {pos}, not one of 0 to {POS_MAX}")
            expected[s] = pos
        for s in seqs[1:]:
            if held[s] != held[seqs[0]]:
                (a, b), (c, d) = held[seqs[0]], held[s]
                raise VizggmlError(
                    f"batch: token {i} is in sequences {seqs[0]} and {s}, which have diverged: "
                    f"the cache holds positions {a} to {b}, and {c} to {d}"
                )


def split(batch: Batch, n_ubatch: int) -> Iterator[Ubatch]:
    """The batch in pieces of up to `n_ubatch` tokens. `llama_batch_allocr::split_simple`, src/llama-batch.cpp."""
    for index, begin in enumerate(range(0, len(batch), n_ubatch)):
        part = slice(begin, begin + n_ubatch)
        seq_id = tuple(batch.seq_id[part])
        ubatch = Ubatch(
            tuple(batch.token[part]),
            tuple(batch.pos[part]),
            seq_id,
            tuple(batch.output[part]),
            len({s for seqs in seq_id for s in seqs}),
            n_seqs=len(seq_id),
        )
        if bus.on:
            bus.emit(UbatchSplit(index, ubatch.n_tokens, ubatch.n_outputs, ubatch.pos[0], ubatch.token))
        yield ubatch


def reserve(n_seq_tokens: int, n_seqs: int, n_outputs: int) -> Ubatch:
    """A ubatch of that shape for a worst-case graph. `llama_batch_allocr::ubatch_reserve`, src/llama-batch.cpp."""
    n = n_seq_tokens * n_seqs
    seq_id = tuple((i // n_seq_tokens,) for i in range(n))
    return Ubatch((0,) * n, (0,) * n, seq_id, tuple(i < n_outputs for i in range(n)), n_seqs, True, n_seqs)
