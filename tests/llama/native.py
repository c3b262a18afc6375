"""A ctypes client of a native llama.cpp: what its graphs, buffers and logits are, seen from outside.

It reads the pin's `libllama.so` (to record goldens) and the oracle wheel (live, in tests). Structs are those of
`include/llama.h`.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from ctypes import POINTER, byref, c_bool, c_char, c_char_p, c_float, c_int8, c_int32, c_int64, c_size_t, c_uint32
from ctypes import c_void_p as ptr
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

GRAPH_OPS_NONE = 0
FLASH_OFF, FLASH_ON = 0, 1
MMAP = 1


class TensorStruct(ctypes.Structure):
    """`struct ggml_tensor`, ggml/include/ggml.h: 336 bytes."""


TensorStruct._fields_ = [
    ("type", c_int32),
    ("buffer", ptr),
    ("ne", c_int64 * 4),
    ("nb", c_size_t * 4),
    ("op", c_int32),
    ("op_params", c_int32 * 16),
    ("flags", c_int32),
    ("src", POINTER(TensorStruct) * 10),
    ("view_src", POINTER(TensorStruct)),
    ("view_offs", c_size_t),
    ("data", ptr),
    ("name", c_char * 64),
    ("extra", ptr),
    ("padding", c_char * 8),
]
assert ctypes.sizeof(TensorStruct) == 336


ROOM = ("room", c_char * 64)
"""Behind structs that are passed by value, last: a newer library may read or write more than is declared here."""


class ModelParams(ctypes.Structure):
    """`struct llama_model_params`, include/llama.h."""

    _fields_: ClassVar[list[tuple[str, Any]]] = [
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
        ("check_tensors", c_bool),
        ("use_extra_bufts", c_bool),
        ("no_host", c_bool),
        ("no_alloc", c_bool),
        ("load_mtp", c_bool),
        ROOM,
    ]


class ContextParams(ctypes.Structure):
    """`struct llama_context_params`, include/llama.h."""

    _fields_: ClassVar[list[tuple[str, Any]]] = [
        ("n_ctx", c_uint32),
        ("n_batch", c_uint32),
        ("n_ubatch", c_uint32),
        ("n_seq_max", c_uint32),
        ("n_rs_seq", c_uint32),
        ("n_outputs_max", c_uint32),
        ("n_outputs_max_per_seq", c_uint32),
        ("n_threads", c_int32),
        ("n_threads_batch", c_int32),
        ("ctx_type", c_int32),
        ("rope_scaling_type", c_int32),
        ("pooling_type", c_int32),
        ("attention_type", c_int32),
        ("flash_attn_type", c_int32),
        ("rope_freq_base", c_float),
        ("rope_freq_scale", c_float),
        ("yarn_ext_factor", c_float),
        ("yarn_attn_factor", c_float),
        ("yarn_beta_fast", c_float),
        ("yarn_beta_slow", c_float),
        ("yarn_orig_ctx", c_uint32),
        ("defrag_thold", c_float),
        ("cb_eval", ptr),
        ("cb_eval_user_data", ptr),
        ("type_k", c_int32),
        ("type_v", c_int32),
        ("abort_callback", ptr),
        ("abort_callback_data", ptr),
        ("embeddings", c_bool),
        ("offload_kqv", c_bool),
        ("no_perf", c_bool),
        ("op_offload", c_bool),
        ("swa_full", c_bool),
        ("kv_unified", c_bool),
        ("samplers", ptr),
        ("n_samplers", c_size_t),
        ("ctx_other", ptr),
        ROOM,
    ]


class NewerContextParams(ctypes.Structure):
    """The same in the wheel: one pointer more, before the booleans (seen from the bytes of the defaults)."""


_booleans = [name for name, _ in ContextParams._fields_].index("embeddings")
NewerContextParams._fields_ = [
    *ContextParams._fields_[:_booleans],
    ("newer", ptr),
    *ContextParams._fields_[_booleans:],
]


class Batch(ctypes.Structure):
    """`struct llama_batch`, include/llama.h."""

    _fields_ = [
        ("n_tokens", c_int32),
        ("token", POINTER(c_int32)),
        ("embd", POINTER(c_float)),
        ("pos", POINTER(c_int32)),
        ("n_seq_id", POINTER(c_int32)),
        ("seq_id", POINTER(POINTER(c_int32))),
        ("logits", POINTER(c_int8)),
    ]


class TokenData(ctypes.Structure):
    """`llama_token_data`, include/llama.h."""

    _fields_ = [("id", c_int32), ("logit", c_float), ("p", c_float)]


class TokenDataArray(ctypes.Structure):
    """`llama_token_data_array`, include/llama.h."""

    _fields_ = [("data", POINTER(TokenData)), ("size", c_size_t), ("selected", c_int64), ("sorted", c_bool)]


class PerfContextData(ctypes.Structure):
    """`struct llama_perf_context_data`, include/llama.h."""

    _fields_: ClassVar[list[tuple[str, Any]]] = [
        *((name, ctypes.c_double) for name in ("t_start_ms", "t_load_ms", "t_p_eval_ms", "t_eval_ms")),
        *((name, c_int32) for name in ("n_p_eval", "n_eval", "n_reused")),
    ]


class ChainParams(ctypes.Structure):
    """`llama_sampler_chain_params`, include/llama.h."""

    _fields_ = [("no_perf", c_bool)]


EvalCallback = ctypes.CFUNCTYPE(c_bool, POINTER(TensorStruct), c_bool, ptr)
LogCallback = ctypes.CFUNCTYPE(None, c_int32, c_char_p, ptr)


class Native:
    """The functions of one library, typed. `newer`: the oracle wheel's."""

    def __init__(self, library: str | Path, newer: bool = False) -> None:
        context_params = NewerContextParams if newer else ContextParams
        lib = ctypes.CDLL(str(library))
        self.lib = lib
        signatures: list[tuple[str, Any, list[Any]]] = [
            ("llama_model_default_params", ModelParams, []),
            ("llama_context_default_params", context_params, []),
            ("llama_model_load_from_file", ptr, [c_char_p, ModelParams]),
            ("llama_init_from_model", ptr, [ptr, context_params]),
            ("llama_model_get_vocab", ptr, [ptr]),
            ("llama_vocab_n_tokens", c_int32, [ptr]),
            ("llama_tokenize", c_int32, [ptr, c_char_p, c_int32, POINTER(c_int32), c_int32, c_bool, c_bool]),
            ("llama_token_to_piece", c_int32, [ptr, c_int32, c_char_p, c_int32, c_int32, c_bool]),
            ("llama_decode", c_int32, [ptr, Batch]),
            ("llama_get_logits", POINTER(c_float), [ptr]),
            ("llama_get_memory", ptr, [ptr]),
            ("llama_perf_context", PerfContextData, [ptr]),
            ("llama_memory_seq_rm", c_bool, [ptr, c_int32, c_int32, c_int32]),
            ("llama_memory_seq_cp", None, [ptr, c_int32, c_int32, c_int32, c_int32]),
            ("llama_memory_seq_keep", None, [ptr, c_int32]),
            ("llama_memory_seq_add", None, [ptr, c_int32, c_int32, c_int32, c_int32]),
            ("llama_memory_seq_pos_max", c_int32, [ptr, c_int32]),
            ("llama_sampler_chain_init", ptr, [ChainParams]),
            ("llama_sampler_chain_add", None, [ptr, ptr]),
            ("llama_sampler_init_top_k", ptr, [c_int32]),
            ("llama_sampler_init_top_p", ptr, [c_float, c_size_t]),
            ("llama_sampler_init_min_p", ptr, [c_float, c_size_t]),
            ("llama_sampler_init_temp", ptr, [c_float]),
            ("llama_sampler_init_dist", ptr, [c_uint32]),
            ("llama_sampler_init_greedy", ptr, []),
            ("llama_sampler_apply", None, [ptr, POINTER(TokenDataArray)]),
            ("llama_sampler_free", None, [ptr]),
            ("llama_free", None, [ptr]),
            ("llama_model_free", None, [ptr]),
            ("llama_log_set", None, [LogCallback, ptr]),
            ("ggml_op_desc", c_char_p, [POINTER(TensorStruct)]),
            ("ggml_op_name", c_char_p, [c_int32]),
            ("ggml_type_name", c_char_p, [c_int32]),
            ("ggml_backend_buffer_get_base", ptr, [ptr]),
            ("ggml_backend_buffer_get_size", c_size_t, [ptr]),
            ("ggml_backend_buffer_name", c_char_p, [ptr]),
        ]
        for name, restype, argtypes in signatures:
            function = getattr(lib, name)
            function.restype, function.argtypes = restype, argtypes
            setattr(self, name, function)
        self.log: list[str] = []
        self._log = LogCallback(lambda level, text, _: self.log.append(text.decode("utf-8", "replace")))
        lib.llama_log_set(self._log, None)
        lib.llama_backend_init()
        defaults = self.llama_context_default_params()
        assert (defaults.n_ctx, defaults.type_v, defaults.offload_kqv, defaults.kv_unified) == (512, 1, True, False)
        assert (defaults.samplers, defaults.ctx_other) == (None, None)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.lib, name)

    def chain(self, temp: float, top_k: int, top_p: float, min_p: float, seed: int) -> int:
        """llama.cpp's usual sampler chain."""
        chain: int = self.llama_sampler_chain_init(ChainParams(True))
        if temp <= 0:
            self.llama_sampler_chain_add(chain, self.llama_sampler_init_greedy())
            return chain
        for sampler in (
            self.llama_sampler_init_top_k(top_k),
            self.llama_sampler_init_top_p(top_p, 1),
            self.llama_sampler_init_min_p(min_p, 1),
            self.llama_sampler_init_temp(temp),
            self.llama_sampler_init_dist(seed),
        ):
            self.llama_sampler_chain_add(chain, sampler)
        return chain

    def sample(self, chain: int, logits: NDArray[np.float32]) -> tuple[int, float, list[int]]:
        """The token, its probability, and the candidates that were left."""
        data = (TokenData * len(logits))(*[(i, x, 0) for i, x in enumerate(logits.tolist())])
        array = TokenDataArray(data, len(logits), -1, False)
        self.llama_sampler_apply(chain, byref(array))
        chosen = array.data[array.selected]
        return chosen.id, chosen.p, [array.data[i].id for i in range(array.size)]

    @contextmanager
    def model(self, path: str | Path, **given: Any) -> Iterator[NativeModel]:
        params = self.llama_model_default_params()
        params.load_mode = MMAP
        for key, value in given.items():
            setattr(params, key, value)
        self.llama_log_set(self._log, None)  # another client of the library may have turned the log to itself
        handle = self.llama_model_load_from_file(str(path).encode(), params)
        if not handle:
            raise RuntimeError("".join(self.log[-5:]))
        model = NativeModel(self, handle)
        try:
            yield model
        finally:
            self.llama_model_free(handle)


class NativeModel:
    def __init__(self, native: Native, handle: int) -> None:
        self.native = native
        self.handle = handle
        self.vocab = native.llama_model_get_vocab(handle)
        self.n_vocab: int = native.llama_vocab_n_tokens(self.vocab)

    def tokenize(self, text: str) -> list[int]:
        raw = text.encode()
        out = (c_int32 * (len(raw) + 8))()
        n = self.native.llama_tokenize(self.vocab, raw, len(raw), out, len(out), True, False)
        return list(out[:n])

    def piece(self, token: int) -> str:
        buffer = ctypes.create_string_buffer(256)
        n = self.native.llama_token_to_piece(self.vocab, token, buffer, len(buffer), 0, True)
        return buffer.raw[:n].decode("utf-8", "replace")

    @contextmanager
    def context(self, **given: Any) -> Iterator[NativeContext]:
        context = NativeContext(self, **given)
        try:
            yield context
        finally:
            self.native.llama_free(context.handle)


class NativeContext:
    """`seen` lists every node of the graph of the last decode, in order, when `watch` is set.

    `peek` is called with each node before it is computed.
    """

    def __init__(self, model: NativeModel, **given: Any) -> None:
        self.model = model
        self.native = model.native
        self.watch = False
        self.seen: list[dict[str, Any]] = []
        self.peek: Callable[[TensorStruct], None] | None = None
        self.buffers: dict[int, tuple[str, int, int]] = {}
        self._callback = EvalCallback(self._on_tensor)
        params = self.native.llama_context_default_params()
        params.n_threads = params.n_threads_batch = 1
        params.cb_eval = ctypes.cast(self._callback, ptr)
        for key, value in given.items():
            setattr(params, key, value)
        self.log_begin = len(self.native.log)
        self.handle = self.native.llama_init_from_model(model.handle, params)
        if not self.handle:
            raise RuntimeError("".join(self.native.log[-5:]))
        self.n_past = 0

    @property
    def n_reused(self) -> int:
        """How many decodes have used the graph of the last one again."""
        count: int = self.native.llama_perf_context(self.handle).n_reused
        return count

    def logged(self, pattern: str) -> str:
        """The first group of `pattern` in what was logged since this context was made."""
        found = re.search(pattern, "".join(self.native.log[self.log_begin :]))
        if found is None:
            raise LookupError(pattern)
        return found.group(1)

    def decode(
        self, tokens: Sequence[int], outputs: Sequence[bool] | None = None, seq_id: int = 0, pos: int | None = None
    ) -> NDArray[np.float32]:
        """Append tokens to a sequence; the logits of those with an output (None: the last one).

        `pos` is the first one's position, None for after those that were decoded so far.
        """
        n = len(tokens)
        flags = outputs if outputs is not None else [i == n - 1 for i in range(n)]
        begin = self.n_past if pos is None else pos
        seq = c_int32(seq_id)
        batch = Batch(
            n,
            (c_int32 * n)(*tokens),
            None,
            (c_int32 * n)(*range(begin, begin + n)),
            (c_int32 * n)(*[1] * n),
            (POINTER(c_int32) * n)(*[ctypes.pointer(seq)] * n),
            (c_int8 * n)(*map(int, flags)),
        )
        self.seen = []
        status = self.native.llama_decode(self.handle, batch)
        if status:
            raise RuntimeError(f"llama_decode: {status}")
        self.n_past += n
        n_out = sum(map(int, flags))
        rows = np.ctypeslib.as_array(self.native.llama_get_logits(self.handle), (n_out, self.model.n_vocab))
        return np.array(rows)

    def _on_tensor(self, tensor: Any, ask: bool, _: Any) -> bool:
        if ask and self.peek is not None:
            self.peek(tensor.contents)
        if ask and self.watch:
            self.seen.append(self.describe(tensor.contents))
        return not ask

    def describe(self, t: TensorStruct) -> dict[str, Any]:
        """One node in plain values; `buffer`, `offset` say where its bytes are."""
        lib = self.native
        sources = []
        for s in t.src:
            sources.append(s.contents.name.decode() if s else None)
        while sources and sources[-1] is None:
            sources.pop()
        leaf_places = {}
        for s in t.src:
            if s and s.contents.op == GRAPH_OPS_NONE:
                leaf_places[s.contents.name.decode()] = self.place(s.contents)
        return {
            "op": lib.ggml_op_name(t.op).decode(),
            "desc": lib.ggml_op_desc(byref(t)).decode(),
            "name": t.name.decode(),
            "type": lib.ggml_type_name(t.type).decode().upper(),
            "ne": list(t.ne),
            "nb": list(t.nb),
            "op_params": list(t.op_params),
            "flags": t.flags,
            "src": sources,
            "view_src": t.view_src.contents.name.decode() if t.view_src else None,
            "view_offs": t.view_offs,
            "place": self.place(t),
            "leafs": leaf_places,
        }

    def place(self, t: TensorStruct) -> list[Any] | None:
        """Which buffer (numbered as met), and the offset there."""
        if not t.buffer:
            return None
        if t.buffer not in self.buffers:
            name = self.native.ggml_backend_buffer_name(t.buffer).decode()
            self.buffers[t.buffer] = (
                name,
                self.native.ggml_backend_buffer_get_size(t.buffer),
                self.native.ggml_backend_buffer_get_base(t.buffer),
            )
        index = list(self.buffers).index(t.buffer)
        return [index, (t.data or 0) - self.buffers[t.buffer][2]]
