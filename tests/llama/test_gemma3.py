"""gemma3: layers with a sliding window beside layers that see everything, against the live llama.cpp in the wheel."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.llama.made import Shape, write
from tests.llama.oracle import wheel
from tests.llama.test_quantized_cache import nmse
from vizggml.llama.model import load_model

GEMMA = Shape("gemma3", n_layer=7, n_embd=128, n_ff=96, head_dim=32, n_swa=40, softcap=30.0, freq_base_swa=5000.0)


@pytest.mark.parametrize("flash_attn", [True, False])
@pytest.mark.parametrize("swa_full", [True, False])
def test_logits_are_llama_cpps_far_beyond_the_window(flash_attn: bool, swa_full: bool, tmp_path: Path) -> None:
    path = write(tmp_path / "m.gguf", GEMMA, seed=5)
    tokens = [int(x) for x in np.random.default_rng(3).integers(0, 160, 500)]
    ours = load_model(path).context(n_ctx=512, n_ubatch=64, flash_attn=flash_attn, swa_full=swa_full)
    settings = {"n_ctx": 512, "n_batch": 2048, "n_ubatch": 64, "flash_attn_type": int(flash_attn)}
    with wheel().model(path) as native, native.context(**settings, swa_full=swa_full) as theirs:
        assert nmse(ours.decode(tokens[:480], range(480)), theirs.decode(tokens[:480], [True] * 480)) < 1e-5
        for token in tokens[480:]:
            assert nmse(ours.decode([token]), theirs.decode([token])) < 1e-5
