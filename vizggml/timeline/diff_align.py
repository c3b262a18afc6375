"""Two sequences side by side: which item of one answers which item of the other, both in their order.

What is alike from the beginning and from the end goes together first. Of what is left a short part gets the best
pairing by score; a long one is cut at items that each side has once. So an item put in between costs its neighbours
nothing, and the work stays about linear.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

Pairs = list[tuple[int, int]]
Score = Callable[[int, int], float]
"""Of an item of A with one of B: how well they answer each other; 0 for not at all."""

CELLS = 10_000
"""Up to so many pairings are weighed one by one; beyond it equal items go together by their rank."""


def align(a: Sequence[Hashable], b: Sequence[Hashable], score: Score) -> Pairs:
    """The pairs (i, j), rising in both. Equal items are tokens of one meaning; `score` weighs those that differ."""
    pairs: Pairs = []
    work = [(0, len(a), 0, len(b))]
    while work:
        i0, i1, j0, j1 = work.pop()
        while i0 < i1 and j0 < j1 and a[i0] == b[j0]:
            pairs.append((i0, j0))
            i0, j0 = i0 + 1, j0 + 1
        while i0 < i1 and j0 < j1 and a[i1 - 1] == b[j1 - 1]:
            i1, j1 = i1 - 1, j1 - 1
            pairs.append((i1, j1))
        if i0 == i1 or j0 == j1:
            continue
        if (i1 - i0) * (j1 - j0) <= CELLS:
            pairs += best(i0, i1, j0, j1, score)
            continue
        anchors = _anchors(a, b, (i0, i1, j0, j1))
        if not anchors:
            pairs += _by_rank(a, b, (i0, i1, j0, j1))
            continue
        pairs += anchors
        for (i, j), (i_next, j_next) in zip([(i0 - 1, j0 - 1), *anchors], [*anchors, (i1, j1)], strict=True):
            if i + 1 < i_next and j + 1 < j_next:
                work.append((i + 1, i_next, j + 1, j_next))
    return sorted(pairs)


def best(i0: int, i1: int, j0: int, j1: int, score: Score) -> Pairs:
    """The pairing of A[i0:i1] with B[j0:j1], in order, of the highest total score."""
    n, m = i1 - i0, j1 - j0
    weight = [[score(i0 + i, j0 + j) for j in range(m)] for i in range(n)]
    total = [[0.0] * (m + 1) for _ in range(n + 1)]
    for i in range(n - 1, -1, -1):
        row, below, w = total[i], total[i + 1], weight[i]
        for j in range(m - 1, -1, -1):
            found = max(below[j], row[j + 1])
            row[j] = max(found, w[j] + below[j + 1]) if w[j] > 0 else found
    pairs: Pairs = []
    i = j = 0
    while i < n and j < m:
        if weight[i][j] > 0 and total[i][j] == weight[i][j] + total[i + 1][j + 1]:
            pairs.append((i0 + i, j0 + j))
            i, j = i + 1, j + 1
        elif total[i][j] == total[i + 1][j]:
            i += 1
        else:
            j += 1
    return pairs


def _anchors(a: Sequence[Hashable], b: Sequence[Hashable], part: tuple[int, int, int, int]) -> Pairs:
    """Items that both sides have exactly once, in one order; none where most of them are in another."""
    i0, i1, j0, j1 = part
    at_a, at_b = _once(a, i0, i1), _once(b, j0, j1)
    common = [(i, at_b[item]) for item, i in at_a.items() if item in at_b]
    kept = rising(common)
    return kept if 2 * len(kept) > len(common) else []


def _once(items: Sequence[Hashable], begin: int, end: int) -> dict[Hashable, int]:
    seen: dict[Hashable, int] = {}
    for k in range(begin, end):
        seen[items[k]] = -1 if items[k] in seen else k
    return {item: k for item, k in seen.items() if k >= 0}


def _by_rank(a: Sequence[Hashable], b: Sequence[Hashable], part: tuple[int, int, int, int]) -> Pairs:
    """The k-th of equal items with the k-th, as far as their order agrees."""
    i0, i1, j0, j1 = part
    where: dict[Hashable, list[int]] = defaultdict(list)
    for j in range(j1 - 1, j0 - 1, -1):
        where[b[j]].append(j)
    return rising([(i, where[a[i]].pop()) for i in range(i0, i1) if where.get(a[i])])


def rising(pairs: Pairs) -> Pairs:
    """Of pairs that rise in the first number, the most that rise in the second too."""
    firsts = np.array([i for i, _ in pairs], np.int64)
    seconds = np.array([j for _, j in pairs], np.int64)
    kept = longest_rise(seconds)
    return list(zip(firsts[kept].tolist(), seconds[kept].tolist(), strict=True))


def longest_rise(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where the longest strictly rising part of `values` stands."""
    n = len(values)
    if n < 2 or bool((np.diff(values) > 0).all()):
        return np.arange(n)
    ends: list[int] = []
    end_at: list[int] = []
    before = [-1] * n
    for k, value in enumerate(values.tolist()):
        at = bisect_left(ends, value)
        before[k] = end_at[at - 1] if at else -1
        if at == len(ends):
            ends.append(value)
            end_at.append(k)
        else:
            ends[at], end_at[at] = value, k
    found = []
    k = end_at[-1]
    while k >= 0:
        found.append(k)
        k = before[k]
    return np.array(found[::-1], np.int64)
