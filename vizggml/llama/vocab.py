"""The vocabulary: text to tokens and back, as llama.cpp's `gpt2` (byte-level BPE), `llama` (SentencePiece) and `none`
tokenizers do it.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from vizggml.errors import VizggmlError
from vizggml.events import NOTHING_TOLD, Tokenized, bus
from vizggml.ggml.gguf import GGUF, quoted
from vizggml.llama.bpe import BPE, decode_text, encode_bytes
from vizggml.llama.metadata import Metadata
from vizggml.llama.pretokenizer import PreTokenizer, pre_tokenizer
from vizggml.llama.spm import SPM, escape_whitespace, unescape_whitespace

UNKNOWN, UNUSED, NORMAL, CONTROL, USER_DEFINED, BYTE = 1, 2, 4, 8, 16, 32
"""`enum llama_token_attr`, include/llama.h: bits."""

_ATTR_OF_TYPE = np.array([0, NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE], np.uint8)
"""By `enum llama_token_type`; any other type is undefined, 0."""

NO_TOKEN = -1

_EOT = (
    "<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>", "<|end_of_text|>", "<EOT>", "_<EOT>",
    "[EOT]", "<｜end▁of▁sentence｜>", "<end_of_utterance>",
)  # fmt: skip
_EOG = (
    *_EOT, "<|return|>", "<|call|>", "<|flush|>", "<|calls|>", "</s>", "<|eom_id|>", "[EOS]", "<eos>", "<turn|>",
    "<|tool_response>", "[e~[",
)  # fmt: skip
_BY_TEXT: dict[str, tuple[str, ...]] = {
    "eot": _EOT,
    "eom": ("<|eom_id|>",),
    "fim_pre": (
        "<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<｜fim▁begin｜>", "<PRE>", "▁<PRE>", "<|code_prefix|>",
        "<|prefix|>",
    ),
    "fim_suf": (
        "<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<｜fim▁hole｜>", "<SUF>", "▁<SUF>", "<|code_suffix|>",
        "<|suffix|>",
    ),
    "fim_mid": (
        "<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<｜fim▁end｜>", "<MID>", "▁<MID>", "<|code_middle|>",
        "<|middle|>",
    ),
    "fim_pad": ("<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"),
    "fim_rep": ("<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"),
    "fim_sep": ("<|file_sep|>",),
}  # fmt: skip
"""The texts by which a special token is known when no key names it. Of several the first here is taken; llama.cpp takes
whichever its hash table yields first."""

_ALWAYS_SHOWN = ("<|channel|>", "<|message|>", "<|start|>", "<|constrain|>")

_ID_KEYS: dict[str, tuple[str, ...]] = {
    "bos": ("bos_token_id",),
    "eos": ("eos_token_id",),
    "eot": ("eot_token_id",),
    "eom": ("eom_token_id",),
    "unk": ("unknown_token_id",),
    "sep": ("seperator_token_id",),
    "pad": ("padding_token_id",),
    "mask": ("mask_token_id",),
    "fim_pre": ("fim_pre_token_id", "prefix_token_id"),
    "fim_suf": ("fim_suf_token_id", "suffix_token_id"),
    "fim_mid": ("fim_mid_token_id", "middle_token_id"),
    "fim_pad": ("fim_pad_token_id",),
    "fim_rep": ("fim_rep_token_id",),
    "fim_sep": ("fim_sep_token_id",),
}


_SPM_RULES = PreTokenizer((), clean_spaces=False, add_bos=True)


class Vocab:
    """The tokens of a model, and how a text becomes them. `llama_vocab`, src/llama-vocab.cpp.

    `texts` are the tokens as the file spells them, `attr` their bits, `special` the ids that have a role ("bos", "eos",
    "eot", ...; -1 for none), `eog` the ids that end a generation. A `none` model has ids but no texts.
    """

    MAX_CACHED_WORDS: ClassVar[int] = 1 << 16

    def __init__(self, model: str, pre: str, n_tokens: int) -> None:
        self.model = model
        self.pre = pre
        self.n_tokens = n_tokens
        self.told = NOTHING_TOLD
        self.texts: Sequence[str] = ()
        self.merges: Sequence[str] = ()
        self.scores: Sequence[float] = ()
        self.attr: NDArray[np.uint8] = np.zeros(0, np.uint8)
        self.ids: dict[str, int] = {}
        self.special = dict.fromkeys(_ID_KEYS, NO_TOKEN)
        self.eog: frozenset[int] = frozenset()
        self.add_bos = False
        self.add_eos = False
        self.add_space_prefix = False
        self._words: dict[str, list[int]] = {}
        self._pieces: dict[int, bytes] = {}

    @classmethod
    def from_gguf(cls, gguf: GGUF) -> Vocab:
        """`llama_vocab::impl::load`, src/llama-vocab.cpp.

        VizggmlError for a tokenizer that is not supported, missing keys or arrays that do not fit each other.
        """
        meta = Metadata(gguf)
        model = meta.get_str("tokenizer.ggml.model")
        if model in ("none", "no_vocab"):
            arch = meta.get_str("general.architecture", "")
            return cls("none", "", meta.get_u32(f"{arch}.vocab_size", 0))
        if model not in ("gpt2", "llama"):
            raise meta.fail(
                f"key 'tokenizer.ggml.model': {quoted(model)} is not supported, only gpt2, llama and none are"
            )
        return cls._load(meta, model)

    @classmethod
    def _load(cls, meta: Metadata, model: str) -> Vocab:
        texts = [text or f"[EMPTY_{i}]" for i, text in enumerate(meta.get_strings("tokenizer.ggml.tokens"))]
        is_spm = model == "llama"
        vocab = cls(model, "default" if is_spm else meta.get_str("tokenizer.ggml.pre"), len(texts))
        vocab.add_bos = vocab.rules.add_bos
        vocab.texts = texts
        vocab.scores = _scores(meta, len(texts)) if is_spm else ()
        vocab.merges = () if is_spm else meta.get_strings("tokenizer.ggml.merges")
        vocab.ids = dict(zip(texts, range(len(texts)), strict=True))
        if len(vocab.ids) != len(texts):
            twice = next(i for i, text in enumerate(texts) if vocab.ids[text] != i)
            raise meta.fail(f"key 'tokenizer.ggml.tokens': {quoted(texts[twice])} appears twice, first as {twice}")
        vocab.attr = _attributes(meta, len(texts))
        vocab._find_special(meta)
        vocab._find_eog()
        vocab.add_bos = meta.get_bool("tokenizer.ggml.add_bos_token", vocab.add_bos)
        vocab.add_eos = meta.get_bool("tokenizer.ggml.add_eos_token", vocab.add_eos)
        vocab.add_space_prefix = meta.get_bool("tokenizer.ggml.add_space_prefix", is_spm)
        for role, wanted in (("bos", vocab.add_bos), ("eos", vocab.add_eos)):
            if wanted and vocab.special[role] == NO_TOKEN:
                raise meta.fail(f"key 'tokenizer.ggml.add_{role}_token' asks for a {role} token, but there is none")
        return vocab

    def _find_special(self, meta: Metadata) -> None:
        defaults = {"bos": 1, "eos": 2, "unk": 0} if self.model == "llama" else {"bos": 11, "eos": 11}
        self.special |= {role: id for role, id in defaults.items() if id < self.n_tokens}
        for role, keys in _ID_KEYS.items():
            for key in keys:
                id = meta.get_u32(f"tokenizer.ggml.{key}", self.n_tokens)
                if id < self.n_tokens:
                    self.special[role] = id
        for role, texts in _BY_TEXT.items():
            if self.special[role] == NO_TOKEN:
                found = next((self.ids[text] for text in texts if text in self.ids), NO_TOKEN)
                if found != NO_TOKEN:
                    self.special[role] = found
                    self.attr[found] |= CONTROL
        for control in np.flatnonzero(self.attr & CONTROL).tolist():
            if "unused" in self.texts[control]:
                self.attr[control] |= UNUSED

    def _find_eog(self) -> None:
        found = {text: self.ids[text] for text in _EOG if text in self.ids}
        for id in found.values():
            self.attr[id] |= CONTROL
        for text in _ALWAYS_SHOWN:
            if text in self.ids:
                self.attr[self.ids[text]] = USER_DEFINED
        roles = ("fim_pad", "fim_rep", "fim_sep", "eos", "eot", "eom")
        eog = {*found.values(), *(self.special[role] for role in roles)} - {NO_TOKEN}
        texts = {self.texts[id] for id in eog}
        calls = "<|call|>" in texts or "<|calls|>" in texts
        if "<|end|>" in texts and calls and ("<|return|>" in texts or "<|flush|>" in texts):
            eog.discard(self.ids["<|end|>"])
            self.attr[self.ids["<|end|>"]] = USER_DEFINED
        if "</s>" in texts and ("<|tool_response>" in texts or "<|plamo:eos|>" in texts):
            eog.discard(self.ids["</s>"])
            self.attr[self.ids["</s>"]] = NORMAL
        self.eog = frozenset(eog)

    @cached_property
    def rules(self) -> PreTokenizer:
        """How a text is cut into words before tokens are looked for."""
        return _SPM_RULES if self.model == "llama" else pre_tokenizer(self.pre)

    @cached_property
    def bpe(self) -> BPE:
        """Joins bytes by the merges of the file."""
        return BPE(self.merges)

    @cached_property
    def spm(self) -> SPM:
        """Joins characters by the scores of the file."""
        return SPM(self.ids, self.scores)

    @cached_property
    def special_tokens(self) -> list[tuple[int, str, bool]]:
        """Id, text and whether `parse_special` is needed, of the tokens cut out before BPE; the longest text first."""
        ids = np.flatnonzero(self.attr & (CONTROL | USER_DEFINED | UNKNOWN)).tolist()
        ids.sort(key=lambda i: -len(self.texts[i].encode()))
        return [(id, self.texts[id], bool(self.attr[id] & (CONTROL | UNKNOWN))) for id in ids]

    def __len__(self) -> int:
        return self.n_tokens

    def __repr__(self) -> str:
        return f"<Vocab {self.model} {self.pre}: {self.n_tokens} tokens>"

    def is_eog(self, id: int) -> bool:
        """Whether the token ends a generation. `llama_vocab_is_eog`, src/llama-vocab.cpp."""
        return id in self.eog

    def tokenize(self, text: str, add_special: bool = True, parse_special: bool = False) -> list[int]:
        """The token ids of `text`. `llama_tokenize`, src/llama-vocab.cpp.

        `add_special` adds BOS and EOS where the model asks for them; with `parse_special` the texts of control tokens
        become those tokens. VizggmlError for a model without a vocabulary.
        """
        if self.model == "none":
            raise VizggmlError("this model has no vocabulary (tokenizer.ggml.model is none): give token ids, not text")
        # A lone surrogate has no UTF-8.
        text = re.sub("[\ud800-\udfff]", "\ufffd", text)
        ids = [self.special["bos"]] if add_special and self.add_bos else []
        after_special = True
        for fragment in self._partition(text, parse_special):
            if isinstance(fragment, int):
                ids.append(fragment)
            elif self.model == "llama":
                prefix = " " if self.add_space_prefix and after_special else ""
                ids += self.spm.tokenize(escape_whitespace(prefix + fragment))
            else:
                for word in self.rules.split(fragment):
                    ids += self._word(word)
            after_special = isinstance(fragment, int)
        if add_special and self.add_eos:
            ids.append(self.special["eos"])
        if bus.on:
            event = Tokenized(text, tuple(ids), tuple(self.token_to_piece(id) for id in ids))
            self.told = bus.remember(bus.emit(event))
        return ids

    def _partition(self, text: str, parse_special: bool) -> list[str | int]:
        """Cut special tokens out of the text. `tokenizer_st_partition`, src/llama-vocab.cpp."""
        fragments: list[str | int] = [text] if text else []
        for id, special, needs_parse in self.special_tokens:
            if (needs_parse and not parse_special) or special not in text:
                continue
            cut: list[str | int] = []
            for fragment in fragments:
                if isinstance(fragment, int) or special not in fragment:
                    cut.append(fragment)
                    continue
                for i, part in enumerate(fragment.split(special)):
                    cut += ([id] if i else []) + ([part] if part else [])
            fragments = cut
        return fragments

    def _word(self, word: str) -> list[int]:
        """The tokens of one word. `llm_tokenizer_bpe_session::tokenize`, src/llama-vocab.cpp."""
        known = self._words.get(word)
        if known is not None:
            return known
        encoded = encode_bytes(word)
        ids = []
        whole = self.rules.ignore_merges and encoded in self.ids
        for part in [encoded] if whole else self.bpe.merge(encoded):
            if part in self.ids:
                ids.append(self.ids[part])
            else:
                ids += [self.ids[c] for c in part if c in self.ids and c.isascii()]
        if len(self._words) >= self.MAX_CACHED_WORDS:
            self._words.clear()
        self._words[word] = ids
        return ids

    def token_bytes(self, id: int, special: bool = True) -> bytes:
        """The bytes a token stands for, maybe a part of a character. `llama_token_to_piece`, src/llama-vocab.cpp.

        Without `special`, control and unknown tokens stand for nothing. VizggmlError for an id out of range.
        """
        if not 0 <= id < self.n_tokens:
            raise VizggmlError(f"token {id} is not in the vocabulary of {self.n_tokens} tokens")
        if self.model == "none" or (not special and self.attr[id] & (CONTROL | UNKNOWN)):
            return b""
        piece = self._pieces.get(id)
        if piece is None:
            piece = self._pieces[id] = self._piece(id)
        return piece

    def _piece(self, id: int) -> bytes:
        attr, text = self.attr[id], self.texts[id]
        if attr & (CONTROL | UNKNOWN | USER_DEFINED):
            return text.encode()
        if attr & NORMAL:
            return unescape_whitespace(text).encode() if self.model == "llama" else decode_text(text)
        if attr & BYTE:
            hex_digits = re.match("[0-9a-fA-F]*", text[3:5])
            return bytes([int(hex_digits[0] or "0", 16)]) if hex_digits else b"\0"
        return b""

    def token_to_piece(self, id: int, special: bool = True) -> str:
        """The text of one token alone; bytes that are no whole character read as U+FFFD."""
        return self.token_bytes(id, special).decode("utf-8", "replace")

    def detokenize(self, ids: Iterable[int], remove_special: bool = False, unparse_special: bool = True) -> str:
        """The text of many tokens. `llama_detokenize`, src/llama-vocab.cpp.

        `remove_special` drops the BOS and EOS that `tokenize` adds; without `unparse_special` control tokens are
        silent.
        """
        ids = list(ids)
        remove_space = self.add_space_prefix
        if remove_special and self.add_bos and ids[:1] == [self.special["bos"]]:
            ids, remove_space = ids[1:], False
        if remove_special and self.add_eos and ids[-1:] == [self.special["eos"]]:
            ids = ids[:-1]
        pieces = [self.token_bytes(id, unparse_special) for id in ids]
        if remove_space and pieces:
            pieces[0] = pieces[0].removeprefix(b" ")
        raw = b"".join(pieces)
        if self.model != "none" and self.rules.clean_spaces:
            raw = re.sub(rb" (?=[?!.,])", b"", raw)
            raw = re.sub(rb" ' ", b"'", raw)
            raw = re.sub(rb" (?='(?:s|m|re|ve))", b"", raw)
        return raw.decode("utf-8", "replace")

    def stream(self, unparse_special: bool = False) -> PieceStream:
        """Text as tokens arrive, whole characters only."""
        return PieceStream(self, unparse_special)


class PieceStream:
    """Bytes of tokens to text, where a character may be spread over several tokens."""

    def __init__(self, vocab: Vocab, unparse_special: bool) -> None:
        self._vocab = vocab
        self._special = unparse_special
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, id: int) -> str:
        """The text that this token completes, "" while a character is unfinished."""
        return self._decoder.decode(self._vocab.token_bytes(id, self._special))

    def flush(self) -> str:
        """What the last token left unfinished, as U+FFFD."""
        return self._decoder.decode(b"", True)


def _scores(meta: Metadata, n_tokens: int) -> list[float]:
    """What each token is worth when neighbours are joined; 0 for all if the file does not say."""
    key = "tokenizer.ggml.scores"
    found = meta.gguf.metadata.get(key)
    if found is None:
        return [0.0] * n_tokens
    if not isinstance(found, np.ndarray) or found.dtype not in (np.float32, np.int32):
        raise meta.fail(f"key '{key}' has type {meta.gguf.types[key]}, it must be an array of f32 or i32")
    if found.size < n_tokens:
        raise meta.fail(f"key '{key}' has {found.size} values for {n_tokens} tokens")
    return [float(score) for score in found[:n_tokens].astype(np.float32)]


def _attributes(meta: Metadata, n_tokens: int) -> NDArray[np.uint8]:
    types = meta.get_ints("tokenizer.ggml.token_type")
    if types is None:
        return np.full(n_tokens, NORMAL, np.uint8)
    if types.size < n_tokens:
        raise meta.fail(f"key 'tokenizer.ggml.token_type' has {types.size} values for {n_tokens} tokens")
    types = types[:n_tokens]
    known = (types >= 0) & (types < _ATTR_OF_TYPE.size)
    return _ATTR_OF_TYPE[np.where(known, types, 0)]
