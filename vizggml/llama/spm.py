"""SentencePiece: neighbours are joined while what they make is a token, the token with the best score first.

Nothing is cut beforehand: a text is one run of characters, its spaces written as U+2581. A character that is no token
becomes one token for each of its bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vizggml.errors import VizggmlError
from vizggml.llama.merging import merge_symbols

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

        def cost(left: str, right: str) -> float | None:
            id = self.ids.get(left + right)
            return None if id is None else -self.scores[id]

        return merge_symbols(text, cost)

    def byte_to_token(self, byte: int) -> int:
        """`llama_vocab::byte_to_token`, src/llama-vocab.cpp."""
        id = self.ids.get(f"<0x{byte:02X}>")
        if id is None and byte < 0x80:
            id = self.ids.get(chr(byte))
        if id is None:
            raise VizggmlError(f"the vocabulary has no token for byte 0x{byte:02X}")
        return id
