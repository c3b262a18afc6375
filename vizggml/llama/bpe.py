"""Byte-level BPE: bytes written as printable characters, and neighbours merged, the best-ranked pair first."""

from __future__ import annotations

from collections.abc import Sequence

from vizggml.llama.merging import merge_symbols


def _byte_to_char() -> str:
    """Character `i` stands for byte `i`: itself where it is printable, else one from U+0100 on.

    `unicode_byte_to_utf8_map`, src/unicode.cpp.
    """
    itself = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return "".join(chr(b if b in itself else next(others)) for b in range(256))


BYTE_TO_CHAR = _byte_to_char()
_ENCODE = dict(enumerate(BYTE_TO_CHAR))
_DECODE = {ord(char): byte for byte, char in enumerate(BYTE_TO_CHAR)}


def encode_bytes(text: str) -> str:
    """The UTF-8 bytes of `text`, each as its character. `unicode_byte_encoding_process`, src/unicode.cpp."""
    return text.encode().decode("latin-1").translate(_ENCODE)


def decode_text(text: str) -> bytes:
    """The bytes that a token's text stands for. `llama_decode_text`, src/llama-vocab.cpp.

    A character that stands for no byte becomes `[UNK_BYTE_0x...]`, as there.
    """
    try:
        return bytes([_DECODE[ord(c)] for c in text])
    except KeyError:
        unknown = "[UNK_BYTE_0x{}" + text + "]"
        return b"".join(
            bytes([_DECODE[ord(c)]]) if ord(c) in _DECODE else unknown.replace("{}", c.encode().hex(), 1).encode()
            for c in text
        )


class BPE:
    """`llm_tokenizer_bpe_session`, src/llama-vocab.cpp. `merges` are "left right", the best rank first."""

    def __init__(self, merges: Sequence[str]) -> None:
        self.ranks = dict(zip(merges, range(len(merges)), strict=True))
        if len(self.ranks) < len(merges):
            # Of a pair that is listed twice, the first rank counts.
            self.ranks = {pair: rank for rank, pair in reversed([*enumerate(merges)])}

    def merge(self, word: str) -> list[str]:
        """The parts of a word (in byte characters) that no merge joins any more."""
        ranks = self.ranks
        return merge_symbols(word, lambda left, right: ranks.get(f"{left} {right}"))
