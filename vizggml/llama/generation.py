"""One text in the making: the prompt is read, then token after token is sampled, told and decoded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from vizggml.errors import VizggmlError
from vizggml.events import NOTHING_TOLD, TokenSampled, Told, bus
from vizggml.llama.kv_cache_iswa import Memory
from vizggml.llama.sampling import SamplerChain

if TYPE_CHECKING:
    from vizggml.llama.context import Context

LEAST_ROOM = 4
"""Positions that a shift must be able to win."""


@dataclass(frozen=True, slots=True)
class Token:
    """One generated token: `text` is what it completed, `p` its probability among the candidates that were left."""

    id: int
    text: str
    p: float
    pos: int


@dataclass(slots=True)
class Generation:
    """What `Context.generate` was asked for. `begin` is the position of the first of `tokens`.

    `n_keep` None: it ends when the context is full; else see `shift`. With `ignore_eos` no token ends the text.
    """

    context: Context
    number: int
    tokens: Sequence[int]
    begin: int
    max_tokens: int
    chain: SamplerChain
    told: Told
    n_keep: int | None
    ignore_eos: bool

    def check_still(self, pos: int) -> None:
        """VizggmlError if anything else has used the context, whose next position was `pos`."""
        ctx = self.context
        if self.number != ctx.generations:
            raise VizggmlError("generate: another generation has begun on this context")
        if ctx.n_past != pos:
            raise VizggmlError(f"generate: sequence 0 was left at position {pos}, something moved it to {ctx.n_past}")

    def run(self) -> Iterator[Token]:
        ctx, n_ctx = self.context, self.context.cparams.n_ctx
        stream, sampled = ctx.vocab.stream(), NOTHING_TOLD
        self.check_still(self.begin)
        self.read_prompt()
        for n in range(1, self.max_tokens + 1):
            pos = ctx.n_past
            id, p = self.sample()
            ctx.sampled = pos, id
            if bus.on:
                event = TokenSampled(id, ctx.vocab.token_to_piece(id), p, pos)
                sampled = bus.remember(bus.emit(event, cause=self.chain.told))
            if ctx.vocab.is_eog(id) and not self.ignore_eos:
                ctx.stopped = "end of text"
                return
            yield Token(id, stream.push(id), p, pos)
            self.check_still(pos)
            if n == self.max_tokens:
                break
            if self.n_keep is not None and pos + 1 >= n_ctx:
                shift(ctx.memory, self.n_keep, pos)
            elif pos >= n_ctx:
                ctx.stopped = f"the context is full: {pos} tokens"
                return
            with bus.because(bus.recall(sampled)):
                ctx.decode([id])
        ctx.stopped = "max_tokens"

    def read_prompt(self) -> None:
        n_batch = self.context.cparams.n_batch
        for begin in range(0, len(self.tokens), n_batch):
            last = begin + n_batch >= len(self.tokens)
            with bus.because(bus.recall(self.told)):
                self.context.decode(self.tokens[begin : begin + n_batch], None if last else [])

    def sample(self) -> tuple[int, float]:
        ctx = self.context
        logits = ctx.logits[-1]
        if self.ignore_eos:
            logits = logits.copy()
            logits[list(ctx.vocab.eog)] = -np.inf
        with bus.because(bus.recall(ctx.told_logits)):
            return self.chain.sample(logits)


def shift(memory: Memory, n_keep: int, n_past: int) -> int:
    """Make room: the first `n_keep` positions stay, of the rest the older half is removed, the newer moves up.

    How many were removed. What `main`, tools/completion/completion.cpp, does when the context is full.
    """
    n_discard = (n_past - n_keep) // 2
    memory.seq_rm(0, n_keep, n_keep + n_discard)
    memory.seq_add(0, n_keep + n_discard, n_past, -n_discard)
    return n_discard


def common_prefix(a: Sequence[int], b: Sequence[int]) -> int:
    """How many tokens both begin with."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
