"""GGUF files: through the reader, and as models that are loaded and run."""

from __future__ import annotations

import functools
import os
import random
import re
import struct
import tempfile
from contextlib import nullcontext
from pathlib import Path

import numpy as np

from tests.fuzz.gguf_parts import ARRAY, SIZES, STRING, Info, Parts, gentle, mutated, parts_of, text
from tests.fuzz.judge import Target, WrongAnswerError
from tests.ggml.test_gguf import VALID, our_file, real_ggml_reads, touch_all
from tests.llama.made import Shape, write
from vizggml.errors import VizggmlError
from vizggml.ggml.gguf import read_gguf
from vizggml.ggml.types import TYPES, TYPES_BY_ID
from vizggml.llama.bpe import BYTE_TO_CHAR
from vizggml.llama.model import load_model
from vizggml.llama.models import resolve_model
from vizggml.timeline.record import record


@functools.cache
def folder() -> Path:
    """In memory where the system has such a place."""
    shm = Path("/dev/shm")
    return Path(tempfile.mkdtemp(dir=shm if os.access(shm, os.W_OK) else None))


def as_file(data: bytes) -> Path:
    path = folder() / "hostile.gguf"
    path.write_bytes(data)
    return path


def read(data: bytes) -> None:
    file = read_gguf(as_file(data))
    try:
        touch_all(file)
        repr(file.metadata)
    finally:
        file.close()


def every_value() -> Parts:
    """Each type of value, alone and in an array."""
    one = {type: bytes(range(1, size + 1)) for type, size in SIZES.items()} | {7: b"\1", STRING: text(b"word \xc3\xa9")}
    pairs = [(f"one.{type}".encode(), type, raw) for type, raw in one.items()]
    pairs += [(f"some.{type}".encode(), ARRAY, struct.pack("<IQ", type, 3) + 3 * raw) for type, raw in one.items()]
    pairs += [(b"none.8", ARRAY, struct.pack("<IQ", STRING, 0)), (b"none.4", ARRAY, struct.pack("<IQ", 4, 0))]
    return Parts(3, pairs)


def every_tensor(alignment: int = 32) -> Parts:
    """A tensor of each type."""
    infos = [Info(type.name.encode(), [type.blck_size, 2], id, bytes(range(7))) for id, type in TYPES_BY_ID.items()]
    parts = Parts(3, [], [*infos, Info(b"empty", [0, 3], 0, b""), Info(b"no dimensions", [], 0, b"abcd")])
    parts.set("general.alignment", 4, struct.pack("<I", alignment))
    return parts


def tiny_header() -> bytes:
    """The tiny model's file with tensors of one row."""
    parts = parts_of(resolve_model("tiny").read_bytes())
    assert parts is not None
    for info in parts.infos[:]:
        info.ne = info.ne[:1]
    return parts.build()


def reader_seeds() -> list[bytes]:
    our_file(folder() / "ours.gguf")
    ours = (folder() / "ours.gguf").read_bytes()
    return [
        VALID,
        ours,
        VALID[:4] + struct.pack("<I", 2) + VALID[8:],
        every_value().build(),
        every_tensor().build(),
        *(every_tensor(n).build() for n in (1, 8, 128, 512)),
        Parts().build(),
        tiny_header(),
    ]


VOCABULARY = [
    *BYTE_TO_CHAR[33:127],
    "he",
    "ll",
    "hell",
    "hello",
    "\u0120w",
    "<s>",
    "</s>",
    "<|im_end|>",
    "<unk>",
    "\u0120",
]
MERGES = ("h e", "l l", "he ll", "hell o", "\u0120 w")


def with_vocabulary(raw: bytes) -> bytes:
    """The model with a byte-level vocabulary of its own."""
    parts = parts_of(raw)
    assert parts is not None
    types = [3 if token.startswith("<") else 1 for token in VOCABULARY]
    for key, type, value in (
        ("model", STRING, text(b"gpt2")),
        ("pre", STRING, text(b"gpt-2")),
        ("tokens", ARRAY, struct.pack("<IQ", STRING, len(VOCABULARY)) + b"".join(text(t.encode()) for t in VOCABULARY)),
        ("merges", ARRAY, struct.pack("<IQ", STRING, len(MERGES)) + b"".join(text(t.encode()) for t in MERGES)),
        ("token_type", ARRAY, struct.pack(f"<IQ{len(types)}i", 5, len(types), *types)),
        ("bos_token_id", 4, struct.pack("<I", VOCABULARY.index("<s>"))),
        ("eos_token_id", 4, struct.pack("<I", VOCABULARY.index("</s>"))),
        ("add_bos_token", 7, b"\1"),
    ):
        parts.set(f"tokenizer.ggml.{key}", type, value)
    return parts.build()


LITTLE = {"n_layer": 1, "n_embd": 32, "n_head": 2, "n_head_kv": 1, "n_ff": 32, "n_vocab": len(VOCABULARY)}
RETYPED = (b"token_embd.weight", b"blk.0.attn_q.weight", b"blk.0.ffn_gate.weight")


def retyped(raw: bytes, name: str) -> bytes:
    """The model with some matrices of another type, their bytes as they come."""
    parts = parts_of(raw)
    assert parts is not None
    for info in parts.infos:
        if info.name in RETYPED:
            info.type, info.data = (
                TYPES[name].id,
                bytes(info.data[: 3 * TYPES[name].type_size]).replace(b"\x7c", b"\x2c"),
            )
    return parts.build()


def model_seeds() -> list[bytes]:
    made = [
        write(folder() / "made.gguf", Shape(**{**LITTLE, **more}, type=type)).read_bytes()
        for type, more in (
            ("F32", {}),
            ("Q8_0", {"tied": False}),
            ("F16", {"attn_bias": True, "rope_freqs": True}),
            ("Q4_0", {"arch": "qwen3", "head_dim": 32}),
            ("BF16", {"arch": "qwen3moe", "head_dim": 32, "n_expert": 4}),
            ("F16", {"n_expert": 4}),
            ("F32", {"n_layer": 2, "n_embd": 16, "n_ff": 16}),
            ("F16", {"arch": "gemma3", "n_layer": 2, "n_embd": 16, "n_ff": 16, "head_dim": 16}),
        )
    ]
    wide = write(
        folder() / "made.gguf", Shape(**{**LITTLE, "n_embd": 256, "n_ff": 16}, head_dim=8, type="F16")
    ).read_bytes()
    vocabularies = [with_vocabulary(raw) for raw in made[:4]]
    return (
        made + vocabularies + [retyped(wide, name) for name in ("Q4_K", "Q6_K", "IQ2_XS", "IQ4_NL", "IQ1_S", "TQ1_0")]
    )


def run(data: bytes) -> None:
    """Load, tokenize, decode: how is told by the bytes themselves."""
    dice = sum(data[-64:]) + len(data)
    model = load_model(as_file(data))
    try:
        hp, vocab = model.hparams, model.vocab
        if vocab.model != "none":
            ids = vocab.tokenize("hello wörld <s> 12\n", parse_special=bool(dice & 1))
            vocab.detokenize([*ids, *range(min(len(vocab), 200))])
            if not all(0 <= id < len(vocab) for id in ids):
                raise WrongAnswerError(f"tokens {ids} of {len(vocab)}")
        context = model.context(
            n_ctx=32, n_batch=8, n_threads=1, flash_attn=bool(dice & 2), fast=dice & 28 == 4, textbook=dice % 7 == 0
        )
        with record() if dice % 5 == 0 else nullcontext():
            logits = context.decode([0, hp.n_vocab - 1])
            if dice & 1:
                logits = context.decode([hp.n_vocab // 2])
        if np.shape(logits)[-1] != hp.n_vocab:
            raise WrongAnswerError(f"logits of shape {np.shape(logits)} for {hp.n_vocab} tokens")
    finally:
        model.close()


STRICTER = re.compile(
    "is not UTF-8|has a NUL in its name|tensor .* ends past the file|number of strings is .* the limit"
)
"""What ggml accepts alone; data that ends past the file it leaves to llama.cpp's loader."""


def model_mutated(raw: bytes, dice: random.Random) -> bytes:
    return (gentle if dice.random() < 0.6 else mutated)(raw, dice)


def compare(data: bytes) -> None:
    """What vizggml reads, ggml reads, with the same tensors."""
    path = as_file(data)
    try:
        file = read_gguf(path)
    except VizggmlError as error:
        if not STRICTER.search(str(error)) and real_ggml_reads(path) is not None:
            raise WrongAnswerError(f"ggml reads it, vizggml says: {error}") from None
        raise
    ours = [(t.name, t.type.id, t.offset) for t in file.tensors.values()]
    file.close()
    theirs = real_ggml_reads(path)
    if theirs != ours:
        raise WrongAnswerError(f"ggml reads {theirs}, vizggml {ours}")


GGUF = Target("gguf", read, reader_seeds, mutated, lambda n: (1 << 18) + 64 * n)
GGML = Target("ggml", compare, reader_seeds, mutated, lambda n: (1 << 18) + 64 * n)
MODEL = Target("model", run, model_seeds, model_mutated, lambda n: (32 << 20) + 64 * n, 1 << 17, weighed=4)
