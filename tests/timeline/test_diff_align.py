"""Sequences side by side: what goes together when something was put in, taken out or put elsewhere."""

from __future__ import annotations

import numpy as np

from vizggml.timeline.diff_align import CELLS, align, best, longest_rise


def equal(a: str, b: str) -> list[tuple[int, int]]:
    return align(a, b, lambda i, j: float(a[i] == b[j]))


def test_what_is_put_in_or_taken_out_costs_its_neighbours_nothing() -> None:
    assert equal("abcd", "abXcd") == [(0, 0), (1, 1), (2, 3), (3, 4)]
    assert equal("abXcd", "abcd") == [(0, 0), (1, 1), (3, 2), (4, 3)]
    assert equal("", "abc") == equal("abc", "") == equal("abc", "xyz") == []


def test_equal_items_go_together_in_order() -> None:
    assert equal("aaab", "aab") == [(0, 0), (1, 1), (3, 2)]
    # of two crossing pairs one is kept
    assert len(equal("pq", "qp")) == 1


def test_the_best_total_score_wins() -> None:
    scores = {(0, 0): 1.0, (1, 0): 5.0, (2, 1): 2.0}
    assert best(0, 3, 0, 2, lambda i, j: scores.get((i, j), 0.0)) == [(1, 0), (2, 1)]


def test_too_many_pairings_to_weigh_go_by_rank() -> None:
    n = int(CELLS**0.5) + 50
    a, b = "y" + "x" * n + "z", "z" + "x" * (n + 1) + "y"
    assert equal(a, b) == [(1 + k, 1 + k) for k in range(n)]


def test_a_long_part_is_cut_at_what_each_side_has_once() -> None:
    n = int(CELLS**0.5) + 50
    a = [*range(n), "p", *range(n, 2 * n), "q"]
    b = [-1, *range(n), *range(n, 2 * n), "r", -2]
    pairs = align(a, b, lambda i, j: float(a[i] == b[j]))
    assert pairs == [(k if k < n else k + 1, k + 1) for k in range(2 * n)]


def test_the_longest_rise() -> None:
    assert longest_rise(np.array([3, 1, 2, 5, 4])).tolist() in ([1, 2, 3], [1, 2, 4])
    assert longest_rise(np.zeros(0, np.int64)).tolist() == []
    assert longest_rise(np.array([2, 2])).tolist() == [1]
