"""SmolLM2 with keys and values of every type, flash attention on and off, against goldens of the pinned llama.cpp.

Recorded by goldens/record_cache.py; bench/cache_types.py checks all 2,048 positions of each run, this the first 256.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench.cache_types import CLEAR, GOLDEN, best_tokens
from vizggml.llama.cparams import CACHE_TYPES
from vizggml.llama.model import Model, load_model

N_POSITIONS = 256
PIN = np.load(GOLDEN)
RUNS = sorted(key[: -len(".top")] for key in PIN.files if key.endswith(".top"))


@pytest.fixture(scope="module")
def model(smollm2: Path) -> Model:
    return load_model(smollm2)


def test_every_type_is_recorded_in_both_modes() -> None:
    assert {tuple(name.split(".")[:2]) for name in RUNS} == {(m, t) for m in ("flash", "plain") for t in CACHE_TYPES}


@pytest.mark.parametrize("name", RUNS)
def test_where_the_pin_is_clear_ours_is_its_best(name: str, model: Model) -> None:
    clear = PIN[f"{name}.gap"][:N_POSITIONS] > CLEAR
    assert clear.sum() > N_POSITIONS // 2
    ours = best_tokens(model, PIN["tokens"][:N_POSITIONS].tolist(), name, n_ctx=256, n_threads=2)
    assert np.array_equal(ours[clear], PIN[f"{name}.top"][:N_POSITIONS][clear])
