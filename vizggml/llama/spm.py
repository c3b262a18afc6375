"""SentencePiece: neighbours are joined while what they make is a token, the token with the best score first.

Nothing is cut beforehand: a text is one run of characters, its spaces written as U+2581. A character that is no token
becomes one token for each of its bytes.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence

from vizggml.errors import VizggmlError

SPACE = "\u2581"


def escape_whitespace(text: str) -> str:
    """`llama_escape_whitespace`, src/llama-vocab.cpp."""
    return text.replace(" ", SPACE)


def unescape_whitespace(text: str) -> str:
    """`llama_unescape_whitespace`, src/llama-vocab.cpp."""
    return text.replace(SPACE, " ")


class SPM:
    """`llm_tokenizer_spm_session`, src/llama-vocab.cpp. `ids` are the tokens by text, `scores` by id."""

    def __init__(self, ids: Mapping[str, int], scores: Sequence[float]) -> None:
        self.ids = ids
        self.scores = scores

    def tokenize(self, text: str) -> list[int]:
        """The token ids of a text whose spaces are escaped. VizggmlError for a byte that has no token."""
        ids: list[int] = []
        for symbol in self.merge(text):
            id = self.ids.get(symbol)
            if id is not None:
                ids.append(id)
            else:
                ids += [self.byte_to_token(byte) for byte in symbol.encode()]
        return ids

    def merge(self, text: str) -> list[str]:
        """The parts of the text that make no token with a neighbour any more."""
        symbols = list(text)
        n = len(symbols)
        following, previous = list(range(1, n + 1)), list(range(-1, n - 1))
        queue = list[tuple[float, int, int, int]]()

        def try_add_bigram(left: int, right: int) -> None:
            if left < 0 or right >= n:
                return
            both = symbols[left] + symbols[right]
            id = self.ids.get(both)
            if id is not None:
                heapq.heappush(queue, (-self.scores[id], left, right, len(both)))

        for i in range(n - 1):
            try_add_bigram(i, i + 1)
        while queue:
            _, left, right, size = heapq.heappop(queue)
            # A pair of which one has since been joined to another is stale.
            if not symbols[left] or not symbols[right] or len(symbols[left]) + len(symbols[right]) != size:
                continue
            symbols[left] += symbols[right]
            symbols[right] = ""
            following[left] = following[right]
            if following[left] < n:
                previous[following[left]] = left
            try_add_bigram(previous[left], left)
            try_add_bigram(left, following[left])
        return [symbol for symbol in symbols if symbol]

    def byte_to_token(self, byte: int) -> int:
        """`llama_vocab::byte_to_token`, src/llama-vocab.cpp."""
        id = self.ids.get(f"<0x{byte:02X}>")
        if id is None and byte < 0x80:
            id = self.ids.get(chr(byte))
        if id is None:
            raise VizggmlError(f"the vocabulary has no token for byte 0x{byte:02X}")
        return id
