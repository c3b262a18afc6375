"""Neighbouring symbols joined, the cheapest pair first: byte pair and SentencePiece vocabularies share it."""

from __future__ import annotations

import heapq
from collections.abc import Callable


def merge_symbols(text: str, cost: Callable[[str, str], float | None]) -> list[str]:
    """The symbols of `text` that join with no neighbour any more; each character is one at first.

    `cost` is asked for two neighbours, None where they do not join; of equals the leftmost is first. The work queues of
    `llm_tokenizer_bpe_session` and `llm_tokenizer_spm_session`, src/llama-vocab.cpp.
    """
    symbols = list(text)
    n = len(symbols)
    following, previous = list(range(1, n + 1)), list(range(-1, n - 1))
    queue: list[tuple[float, int, int, str, str]] = []

    def add(left: int, right: int) -> None:
        if left >= 0 and right < n:
            price = cost(symbols[left], symbols[right])
            if price is not None:
                heapq.heappush(queue, (price, left, right, symbols[left], symbols[right]))

    for i in range(n - 1):
        add(i, i + 1)
    while queue:
        _, left, right, left_text, right_text = heapq.heappop(queue)
        # A pair of which one has since been joined to another is stale.
        if symbols[left] != left_text or symbols[right] != right_text:
            continue
        symbols[left] += symbols[right]
        symbols[right] = ""
        following[left] = following[right]
        if following[left] < n:
            previous[following[left]] = left
        add(previous[left], left)
        add(left, following[left])
    return [symbol for symbol in symbols if symbol]
