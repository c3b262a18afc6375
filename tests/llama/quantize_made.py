"""The files that goldens of quantizing are recorded of, and the importance that they are quantized with."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tests.llama.made import Shape, write
from vizggml.ggml.gguf import read_gguf
from vizggml.llama.imatrix_file import Entry, Imatrix
from vizggml.llama.models import resolve_model

SHAPES = {
    "small": Shape(n_layer=1, n_embd=256, n_head=2, n_head_kv=1, n_ff=256, n_vocab=64, type="F32", tied=False),
    "narrow": Shape(n_layer=2, n_embd=96, n_head=3, n_head_kv=3, n_ff=160, n_vocab=64, type="F16"),
    "odd": Shape(n_layer=1, n_embd=72, n_head=3, n_head_kv=1, n_ff=96, n_vocab=64, type="F32"),
    "experts": Shape(
        "qwen3moe", n_layer=1, n_embd=256, n_head=2, n_head_kv=1, n_ff=256, n_vocab=64, type="BF16", n_expert=2
    ),
}
QUICK = ("F32", "F16", "BF16", "Q4_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K_M", "Q4_K_S", "Q4_K_M", "Q5_K_M", "Q6_K", "TQ1_0")
CASES = (
    *(f"tiny {mixture}" for mixture in (*QUICK, "IQ4_NL")),
    *(f"small {mixture} with" for mixture in ("Q4_0", "Q2_K_S", "Q4_K_M", "IQ1_M", "IQ2_XXS", "IQ2_M", "IQ3_XXS")),
    *("small Q2_0", "small Q1_0", "small IQ4_XS with", "smollm2 Q5_0"),
    *("narrow Q4_K_M", "narrow Q6_K", "narrow IQ4_XS", "narrow Q2_K with", "odd Q4_K_M", "odd Q4_0"),
    *("experts Q4_K_M with", "experts MXFP4_MOE", "experts Q3_K_L with", "experts IQ4_NL with"),
)
"""Model, mixture, and "with" where there is importance."""

IMATRIX = {"file": "made.imatrix", "dataset": "no text at all", "chunks": 7}


def make(folder: Path, model: str) -> Path:
    if model not in SHAPES:
        return resolve_model(model)
    path = folder / f"{model}.gguf"
    return path if path.exists() else write(path, SHAPES[model], 5)


def imatrix_of(source: Path) -> Imatrix:
    """An importance matrix, drawn, for the matrices of the layers; an expert that was never used is among them."""
    gguf = read_gguf(source)
    matrix = Imatrix(Path(IMATRIX["file"]), {}, [IMATRIX["dataset"]], IMATRIX["chunks"], 512)
    for i, (name, info) in enumerate(gguf.tensors.items()):
        if info.ne[1] == 1 or name in ("token_embd.weight", "output.weight"):
            continue
        rng = np.random.default_rng(i)
        counts = rng.integers(0 if info.ne[2] > 1 else 1, 3, info.ne[2])
        matrix.entries[name] = Entry(rng.gamma(0.3, 2.0, (info.ne[2], info.ne[0])).astype(np.float32), counts)
    gguf.close()
    return matrix


def importance_of(source: Path) -> dict[str, NDArray[np.float32]]:
    """The means, worked here: what `load_imatrix` of tools/quantize/quantize.cpp hands to the library."""
    found = {}
    for name, entry in imatrix_of(source).entries.items():
        rows = [
            sums / np.float32(n) if n else np.ones_like(sums) for sums, n in zip(entry.sums, entry.counts, strict=True)
        ]
        found[name] = np.concatenate(rows)
    return found


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
