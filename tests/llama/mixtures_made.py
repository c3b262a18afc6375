"""The mixtures of experts that goldens are recorded of, and that tests compare with them."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tests.llama.made import Shape, write
from tests.oracle_quants import quantize
from vizggml.ggml.types import Type

ARCHITECTURES = ("llama", "qwen3moe")
WEIGHTS = ("F32", "F16", "Q8_0", "Q4_K", "IQ4_NL", "IQ2_XS")
SEARCHED = ("IQ4_NL", "IQ2_XS")
POOL = 512
"""Encoding these is slow: so many rows are encoded, the others are drawn from them."""

SHAPE = Shape(n_embd=256, n_head=4, n_head_kv=2, n_layer=2, n_ff=256, n_expert=8, n_expert_used=3)
SEED = 14
N_TOKENS = 20
SHOWN_COLUMNS = slice(1, None, 3)
"""Of the logits, (20, 160), what is kept."""


def tokens() -> list[int]:
    return [int(x) for x in np.random.default_rng(7).integers(0, SHAPE.n_vocab, N_TOKENS)]


def make(folder: Path, arch: str, type: str) -> Path:
    """The file of that architecture and type of weights, quantized by real ggml."""
    path = folder / f"{arch}-{type}.gguf"
    return path if path.exists() else write(path, replace(SHAPE, arch=arch, type=type), SEED, quantizer)


def quantizer(type: Type, x: NDArray[np.float32]) -> NDArray[np.uint8]:
    """As real ggml encodes rows; what is searched for long is encoded for some rows only, and these drawn again."""
    if type.name not in SEARCHED:
        return quantize(type, x)
    pool = quantize(type, x[:POOL], np.ones(x.shape[1], np.float32))
    rest = np.random.default_rng(len(x)).integers(0, len(pool), len(x) - len(pool))
    return np.concatenate([pool, pool[rest]])


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def shown(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    return logits[:, SHOWN_COLUMNS]
