"""The tokenizer of a native llama.cpp: the oracle wheel's in tests, the pin's when goldens are recorded."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import POINTER, c_bool, c_char_p, c_int32
from ctypes import c_void_p as ptr
from pathlib import Path

import xllamacpp

from vizggml.llama.vocab import Vocab

WHEEL = next(Path(xllamacpp.__file__).parent.glob("*.so"))
LogCallback = ctypes.CFUNCTYPE(None, c_int32, c_char_p, ptr)


class ModelParams(ctypes.Structure):
    """`struct llama_model_params`, include/llama.h."""

    _fields_ = (
        ("devices", ptr),
        ("tensor_buft_overrides", ptr),
        ("n_gpu_layers", c_int32),
        ("split_mode", c_int32),
        ("load_mode", c_int32),
        ("lazy_mode", c_int32),
        ("main_gpu", c_int32),
        ("tensor_split", ptr),
        ("progress_callback", ptr),
        ("progress_callback_user_data", ptr),
        ("kv_overrides", ptr),
        ("vocab_only", c_bool),
        ("others", c_bool * 5),
    )


SIGNATURES = {
    "llama_backend_init": (None, []),
    "llama_log_set": (None, [LogCallback, ptr]),
    "llama_model_default_params": (ModelParams, []),
    "llama_model_load_from_file": (ptr, [c_char_p, ModelParams]),
    "llama_model_free": (None, [ptr]),
    "llama_model_get_vocab": (ptr, [ptr]),
    "llama_vocab_n_tokens": (c_int32, [ptr]),
    "llama_tokenize": (c_int32, [ptr, c_char_p, c_int32, POINTER(c_int32), c_int32, c_bool, c_bool]),
    "llama_detokenize": (c_int32, [ptr, POINTER(c_int32), c_int32, c_char_p, c_int32, c_bool, c_bool]),
    "llama_token_to_piece": (c_int32, [ptr, c_int32, c_char_p, c_int32, c_int32, c_bool]),
    "llama_vocab_get_attr": (c_int32, [ptr, c_int32]),
    "llama_vocab_is_eog": (c_bool, [ptr, c_int32]),
    "llama_vocab_bos": (c_int32, [ptr]),
    "llama_vocab_eos": (c_int32, [ptr]),
    "llama_vocab_get_add_bos": (c_bool, [ptr]),
    "llama_vocab_get_add_eos": (c_bool, [ptr]),
}


class OracleVocab:
    """The vocabulary of one file, as `library` reads it."""

    def __init__(self, path: str | Path, library: str | Path = WHEEL) -> None:
        self.lib = ctypes.CDLL(str(library))
        for name, (restype, argtypes) in SIGNATURES.items():
            function = getattr(self.lib, name)
            function.restype, function.argtypes = restype, argtypes
        self.log: list[str] = []
        self._callback = LogCallback(lambda level, text, _: self.log.append(text.decode("utf-8", "replace")))
        self.lib.llama_log_set(self._callback, None)
        self.lib.llama_backend_init()
        params = self.lib.llama_model_default_params()
        params.vocab_only = True
        self.model = self.lib.llama_model_load_from_file(str(path).encode(), params)
        if not self.model:
            raise RuntimeError("".join(self.log[-5:]))
        self.vocab = self.lib.llama_model_get_vocab(self.model)
        self.n_tokens: int = self.lib.llama_vocab_n_tokens(self.vocab)

    def tokenize(self, text: str, add_special: bool, parse_special: bool) -> list[int]:
        raw = text.encode()
        out = (c_int32 * (len(raw) + 8))()
        n = self.lib.llama_tokenize(self.vocab, raw, len(raw), out, len(out), add_special, parse_special)
        return list(out[:n])

    def detokenize(self, ids: Sequence[int], remove_special: bool, unparse_special: bool) -> bytes:
        out = ctypes.create_string_buffer(64 + 1024 * len(ids))
        given = (c_int32 * len(ids))(*ids)
        n = self.lib.llama_detokenize(self.vocab, given, len(ids), out, len(out), remove_special, unparse_special)
        return out.raw[:n]

    def piece(self, id: int, special: bool) -> bytes:
        out = ctypes.create_string_buffer(2048)
        n = self.lib.llama_token_to_piece(self.vocab, id, out, len(out), 0, special)
        return out.raw[:n]

    def attr(self, id: int) -> int:
        return int(self.lib.llama_vocab_get_attr(self.vocab, id))

    def is_eog(self, id: int) -> bool:
        return bool(self.lib.llama_vocab_is_eog(self.vocab, id))

    def close(self) -> None:
        self.lib.llama_log_set(LogCallback(), None)
        self.lib.llama_model_free(self.model)


def check_tokens(ours: Vocab, theirs: OracleVocab, text: str, add: bool, parse: bool, remove: bool) -> None:
    """`text` gives the same tokens, and these the same text again."""
    ids = theirs.tokenize(text, add, parse)
    assert ours.tokenize(text, add, parse) == ids
    back = theirs.detokenize(ids, remove, parse).decode("utf-8", "replace")
    assert ours.detokenize(ids, remove_special=remove, unparse_special=parse) == back
