"""The cases of importance that goldens are recorded of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.llama.made import Shape, write
from vizggml.llama.models import resolve_model

CASES: dict[str, dict[str, Any]] = {
    "smollm2": {"n_ctx": 64, "n_chunks": 2},
    "tiny": {"n_ctx": 32, "n_chunks": 3},
    "experts": {"n_ctx": 32, "n_chunks": 2},
}
EXPERTS = Shape("qwen3moe", n_layer=2, n_ff=64, type="F16", n_expert=5, n_expert_used=2)
SHOWN = 8


def make(folder: Path, case: str) -> Path:
    return write(folder / "experts.gguf", EXPERTS, 3) if case == "experts" else resolve_model(case)


def drawn_tokens(n: int) -> list[int]:
    """For the model without a vocabulary."""
    return [int(x) for x in np.random.default_rng(9).integers(0, EXPERTS.n_vocab, n)]


def shown(sums: NDArray[np.float32]) -> list[float]:
    """Of all experts' sums, the whole and a few."""
    flat = sums.ravel().astype(np.float64)
    return [float(f"{x:.7g}") for x in (flat.sum(), *flat[:: max(1, len(flat) // SHOWN)][:SHOWN])]
