"""A mixture of experts: its logits are those of the live llama.cpp in the wheel."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.llama.made import Shape, write
from tests.llama.oracle import wheel
from tests.llama.test_quantized_cache import nmse
from vizggml.llama.model import load_model

MIXTURES = {
    arch: Shape(arch, n_embd=128, n_head=4, n_head_kv=2, n_layer=2, n_ff=64, n_expert=6, n_expert_used=2)
    for arch in ("llama", "qwen3moe")
}


@pytest.mark.parametrize("arch", MIXTURES)
@pytest.mark.parametrize("fast", [False, True])
def test_logits_are_llama_cpps(arch: str, fast: bool, tmp_path: Path) -> None:
    path = write(tmp_path / "m.gguf", MIXTURES[arch], seed=5)
    tokens = [int(x) for x in np.random.default_rng(3).integers(0, 160, 20)]
    ours = load_model(path).context(n_threads=2, fast=fast, n_ctx=256)
    with wheel().model(path) as native, native.context(n_ctx=256, n_batch=2048) as theirs:
        assert nmse(ours.decode(tokens, range(20)), theirs.decode(tokens, [True] * 20)) < 1e-4
        assert nmse(ours.decode([7]), theirs.decode([7])) < 1e-4
