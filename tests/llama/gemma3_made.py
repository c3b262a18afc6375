"""The gemma3 files that goldens are recorded of, and that tests compare with them."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.llama.made import Shape, write
from tests.llama.mixtures_made import quantizer

SIX_TO_ONE = Shape(
    "gemma3", n_layer=7, n_embd=128, n_ff=96, head_dim=32, n_swa=40, softcap=30.0, freq_base_swa=5000.0, tied=False
)
"""Layer 5 sees everything, the others 40 positions."""

EVERY_OTHER = Shape(
    "gemma3", n_layer=4, n_embd=256, n_ff=256, head_dim=64, n_swa=48, swa_pattern=2, freq_base_swa=1e4, softcap=25.0
)
"""Layers 1 and 3 see everything, layers 0 and 2 see 48 positions."""

SEED = 12
RUNS: dict[int, tuple[int, int]] = {512: (1024, 900), 1: (512, 280)}
"""By ubatch: n_ctx, and how many tokens. The cells of layers with a window, 768 and 256, are fewer."""


def tokens(n: int) -> list[int]:
    return [int(x) for x in np.random.default_rng(7).integers(0, EVERY_OTHER.n_vocab, n)]


def make(folder: Path, type: str) -> Path:
    path = folder / f"gemma3-{type}.gguf"
    return path if path.exists() else write(path, replace(EVERY_OTHER, type=type), SEED, quantizer)


def shown(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    """Of the logits, (tokens, 160), what is kept: more of the end, where cells have been given away."""
    return np.concatenate([logits[::47], logits[-6:]])[:, 1::3]


def draw_shape(rng: random.Random) -> Shape:
    n_head_kv = rng.choice([1, 2])
    head = rng.choice([32, 64, 96, 128])
    return Shape(
        "gemma3",
        n_layer=rng.choice([1, 2, 5, 7, 13]),
        n_embd=32 * rng.randint(1, 6),
        n_head=n_head_kv * rng.choice([1, 2, 3]),
        n_head_kv=n_head_kv,
        n_ff=32 * rng.randint(1, 5),
        n_vocab=rng.choice([160, 101]),
        head_dim=head,
        tied=rng.random() < 0.7,
        type=rng.choice(["F16", "F32", "Q8_0", "Q4_0"]),
        n_swa=rng.choice([0, 1, 33, 300, 512, 1024]),
        swa_pattern=rng.choice([-1, -1, 0, 2, 3, 6]),
        softcap=rng.choice([0.0, 30.0]),
        freq_base_swa=rng.choice([0.0, 5000.0]),
    )


def draw_settings(rng: random.Random) -> dict[str, Any]:
    flash = rng.random() < 0.6
    n_ctx = rng.choice([1, 300, 512, 2000, 4096, 9000])
    n_batch = rng.choice([16, 512, 2048])
    n_seq_max = rng.choice([1, 1, 2, 5]) if n_ctx >= 5 else 1
    types = ("F16", "F16", "F32", "BF16")
    quantized = ("Q8_0", "Q4_0", "IQ4_NL", "Q5_1")
    return {
        "n_ctx": n_ctx,
        "n_batch": n_batch,
        "n_ubatch": rng.choice([1, 7, 128, 512, 1000]),
        "n_seq_max": n_seq_max,
        "kv_unified": rng.random() < 0.5,
        "flash_attn": flash,
        "swa_full": rng.random() < 0.3,
        "type_k": rng.choice((*types, *quantized)),
        "type_v": rng.choice((*types, *quantized) if flash else types),
    }
