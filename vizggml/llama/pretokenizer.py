"""The pre-tokenizers: a text is cut into words before BPE merges anything, and no token crosses a cut."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import regex

from vizggml.errors import VizggmlError
from vizggml.llama.unicode_tables import LETTERS, NUMBERS

_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_LLAMA3 = (
    r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@dataclass(frozen=True, slots=True)
class PreTokenizer:
    """What a value of `tokenizer.ggml.pre` stands for. `llm_tokenizer_bpe`, `llama_vocab::impl::load`,
    src/llama-vocab.cpp.

    `patterns` cut one after the other; `ignore_merges` takes a word that is a token as it is; `clean_spaces` removes
    spaces before punctuation from a detokenized text.
    """

    patterns: tuple[str, ...]
    clean_spaces: bool = True
    ignore_merges: bool = False
    add_bos: bool = False

    def split(self, text: str) -> list[str]:
        """The words of `text`; joined, they are `text` again. `unicode_regex_split`, src/unicode.cpp."""
        words = [text] if text else []
        for pattern in self.patterns:
            compiled = _compiled(pattern)
            words = [word for whole in words for word in _cut(compiled, whole)]
        return words


_gpt2 = PreTokenizer((_GPT2,))
_smollm = PreTokenizer((r"\p{N}", _GPT2), clean_spaces=False)
_llama3 = PreTokenizer((_LLAMA3,), ignore_merges=True, add_bos=True)
_qwen2 = PreTokenizer((_LLAMA3.replace("{1,3}", ""),), clean_spaces=False)

PRE_TOKENIZERS: dict[str, PreTokenizer] = {
    "gpt-2": _gpt2,
    "smollm": _smollm,
    "llama-bpe": _llama3,
    "llama3": _llama3,
    "llama-v3": _llama3,
    "qwen2": _qwen2,
    "deepseek-r1-qwen": _qwen2,
}
"""By the value of `tokenizer.ggml.pre`."""


def pre_tokenizer(pre: str) -> PreTokenizer:
    """The pre-tokenizer of that name. VizggmlError if it is not supported."""
    found = PRE_TOKENIZERS.get(pre)
    if found is None:
        raise VizggmlError(
            f"key 'tokenizer.ggml.pre': {pre[:80]!r} is not supported, only {', '.join(PRE_TOKENIZERS)} are"
        )
    return found


@lru_cache
def _compiled(pattern: str) -> regex.Pattern[str]:
    r"""`pattern` with the tables of `\p{L}` and `\p{N}` written out; a class keeps its brackets."""
    inside = regex.sub(r"\[[^\]]*\]", lambda m: m[0].replace(r"\p{L}", LETTERS).replace(r"\p{N}", NUMBERS), pattern)
    return regex.compile(inside.replace(r"\p{L}", f"[{LETTERS}]").replace(r"\p{N}", f"[{NUMBERS}]"))


def _cut(compiled: regex.Pattern[str], text: str) -> Iterator[str]:
    """The matches, and what lies between them."""
    end = 0
    for m in compiled.finditer(text):
        if m.start() > end:
            yield text[end : m.start()]
        if m.end() > m.start():
            yield m[0]
        end = m.end()
    if end < len(text):
        yield text[end:]
