"""Blocks found in a graph whose names tell no layer: what is built the same way again and again.

Nodes are read as words (operation, number of sources) in execution order. A stretch that repeats with a period is cut
into blocks where the fewest tensors cross from one to the next: at the residual stream, as a person would.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vizggml.views.tables import GraphTable

LEAST = 4
"""Nodes in a block at least: shorter things that repeat are a chain."""

GRAM = 4
CANDIDATES = 24
ALIKE = 0.6
"""The share of a block that a stretch beside the blocks has to match, to be taken for one that is built otherwise."""

LONGEST_ALIGNED = 800

Words = NDArray[np.int64]


@dataclass(frozen=True)
class Piece:
    """Nodes `begin` to `end` (exclusive) of the execution order; `block` says that they are one of the repeats."""

    begin: int
    end: int
    block: bool


def pieces(graph: GraphTable) -> list[Piece]:
    """The graph cut at its blocks; one piece where nothing repeats."""
    words, last_read = read_words(graph)
    found = _pieces(words, last_read, 0, len(words))
    return found if any(p.block for p in found) else [Piece(0, len(words), False)]


def read_words(graph: GraphTable) -> tuple[Words, Words]:
    """A number for each node that is the same for nodes of the same kind; and the position that reads it last."""
    at = {node: i for i, node in enumerate(graph.nodes)}
    known: dict[object, int] = {}
    words = np.zeros(len(at), np.int64)
    last_read = np.full(len(at), -1, np.int64)
    for i, node in enumerate(graph.nodes):
        srcs = graph.srcs[node]
        words[i] = known.setdefault((graph.tensors.desc[node], len(srcs)), len(known))
        for s in srcs:
            if s in at:
                last_read[at[s]] = i
    return words, last_read


def _pieces(words: Words, last_read: Words, lo: int, hi: int) -> list[Piece]:
    """The pieces from `lo` to `hi`: the longest repeat there, what is built like it, and what lies around them."""
    if hi - lo < 2 * LEAST:
        return [Piece(lo, hi, False)] if hi > lo else []
    run = longest_run(words[lo:hi])
    if run is None:
        return [Piece(lo, hi, False)]
    begin, end, period = run[0] + lo, run[1] + lo, run[2]
    first = _phase(last_read, begin, end, period)
    motif = words[first : first + period]
    starts = _occurrences(words, motif, lo, hi, first)
    out = _before(words, last_read, motif, lo, starts[0])
    for k, start in enumerate(starts):
        stop = start + period
        after = starts[k + 1] if k + 1 < len(starts) else stop
        if 0 < after - stop < period // 2:
            stop = after
        out.append(Piece(start, stop, True))
        out += _between(words, last_read, stop, after, period)
    return out + _after(words, last_read, motif, starts[-1] + period, hi)


def _between(words: Words, last_read: Words, lo: int, hi: int, period: int) -> list[Piece]:
    if hi <= lo:
        return []
    if hi - lo <= period * 8 // 5:
        return [Piece(lo, hi, True)]
    return _pieces(words, last_read, lo, hi)


def _before(words: Words, last_read: Words, motif: Words, lo: int, hi: int) -> list[Piece]:
    """What stands before the first block; its end may be a block that is built otherwise."""
    out = _pieces(words, last_read, lo, hi)
    if any(p.block for p in out):
        return out
    cut = _aligned(words[max(lo, hi - 2 * len(motif)) : hi][::-1], motif[::-1])
    return _two(lo, hi - cut, hi, True) if cut else out


def _after(words: Words, last_read: Words, motif: Words, lo: int, hi: int) -> list[Piece]:
    out = _pieces(words, last_read, lo, hi)
    if any(p.block for p in out):
        return out
    cut = _aligned(words[lo : min(hi, lo + 2 * len(motif))], motif)
    return _two(lo, lo + cut, hi, False) if cut else out


def _two(lo: int, middle: int, hi: int, block_last: bool) -> list[Piece]:
    both = [Piece(lo, middle, not block_last), Piece(middle, hi, block_last)]
    return [p for p in both if p.end > p.begin]


def _aligned(words: Words, motif: Words) -> int:
    """How many of `words`, from the first on, are a block much like `motif`; 0 where they are none."""
    if not len(words) or len(motif) > LONGEST_ALIGNED:
        return 0
    matcher = difflib.SequenceMatcher(None, words.tolist(), motif.tolist(), autojunk=False)
    blocks = [b for b in matcher.get_matching_blocks() if b.size]
    matched = sum(b.size for b in blocks)
    if matched < ALIKE * len(motif) or blocks[-1].b + blocks[-1].size < len(motif):
        return 0
    return blocks[-1].a + blocks[-1].size


def longest_run(words: Words) -> tuple[int, int, int] | None:
    """(begin, end, period) of the longest stretch that repeats at least once more; None where nothing does."""
    best: tuple[int, int, int] | None = None
    for period in _periods(words):
        begin, length = _longest_true(words[:-period] == words[period:])
        if length < period or _is_chain(words[begin : begin + period]):
            continue
        if best is None or length + period > best[1] - best[0]:
            best = (begin, begin + length + period, period)
    return best


def _periods(words: Words) -> list[int]:
    """The distances at which the same few words come again most often, the shortest first."""
    n = len(words) - GRAM + 1
    if n < 2:
        return []
    grams = np.zeros(n, np.int64)
    for k in range(GRAM):
        grams = grams * 1_000_003 + words[k : k + n]
    order = np.argsort(grams, kind="stable")
    same = grams[order[1:]] == grams[order[:-1]]
    gaps, counts = np.unique((order[1:] - order[:-1])[same], return_counts=True)
    fits = (gaps >= LEAST) & (gaps <= len(words) // 2)
    gaps, counts = gaps[fits], counts[fits]
    often = np.argsort(-counts * gaps, kind="stable")[:CANDIDATES]
    return sorted(gaps[often].tolist())


def _longest_true(values: NDArray[np.bool_]) -> tuple[int, int]:
    edges = np.diff(np.concatenate(([0], values.astype(np.int8), [0])))
    begins, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    if not len(begins):
        return 0, 0
    k = int(np.argmax(ends - begins))
    return int(begins[k]), int(ends[k] - begins[k])


def _is_chain(motif: Words) -> bool:
    """Whether the motif itself repeats something shorter than a block."""
    return any(bool(np.all(motif[:-d] == motif[d:])) for d in range(1, LEAST) if len(motif) > d)


def _phase(last_read: Words, begin: int, end: int, period: int) -> int:
    """Where to cut: the first place in a period that the fewest tensors of one block cross."""
    last = min(begin + period, end - 2 * period + 1)
    starts = range(begin, max(begin + 1, last))
    crossing = [int(np.count_nonzero(last_read[c : c + period] >= c + period)) for c in starts]
    return begin + int(np.argmin(crossing))


def _occurrences(words: Words, motif: Words, lo: int, hi: int, first: int) -> list[int]:
    """Where the motif stands from `lo` to `hi`, none over another, `first` among them."""
    period = len(motif)
    at = np.arange(lo, hi - period + 1)
    for k in range(period):
        at = at[words[at + k] == motif[k]]
        if len(at) <= 1:
            break
    here = at.tolist()
    return [*_apart(here[::-1], first, -period)[::-1], first, *_apart(here, first, period)]


def _apart(at: Sequence[int], first: int, period: int) -> list[int]:
    out = [first]
    for i in at:
        if (i - out[-1]) * (1 if period > 0 else -1) >= abs(period):
            out.append(i)
    return out[1:]
