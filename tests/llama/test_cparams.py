"""A context's parameters, resolved as llama.cpp resolves them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.llama.building import parts
from tests.llama.oracle import wheel
from vizggml.errors import VizggmlError
from vizggml.llama.cparams import ContextParams, CParams


@pytest.mark.parametrize(
    ("n_ctx", "n_batch", "n_ubatch"), [(512, 2048, 512), (300, 2048, 512), (0, 100, 0), (1000, 7, 64), (1, 1, 1)]
)
def test_sizes_are_what_llama_cpp_makes_of_them(small: Path, n_ctx: int, n_batch: int, n_ubatch: int) -> None:
    ours = parts(small, n_ctx=n_ctx, n_batch=n_batch, n_ubatch=n_ubatch).cparams
    with wheel().model(small) as model, model.context(n_ctx=n_ctx, n_batch=n_batch, n_ubatch=n_ubatch) as theirs:
        logged = [int(theirs.logged(rf"{name} += (\d+)")) for name in ("n_ctx", "n_batch", "n_ubatch", "n_outputs_max")]
    assert [ours.n_ctx, ours.n_batch, ours.n_ubatch, ours.n_outputs_max] == logged


def test_yarn_factors(small: Path) -> None:
    """A context four times the training's: magnitude 0.1 ln 4 + 1, less what rope itself will put in."""
    hparams = replace(parts(small).hparams, rope_scaling_type_train="yarn", rope_freq_scale_train=0.25)
    cparams = CParams.resolve(ContextParams(), hparams)
    assert (cparams.yarn_ext_factor, cparams.rope_freq_scale) == (1.0, 0.25)
    assert cparams.yarn_attn_factor == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_ctx": -1}, "n_ctx -1: it must be at least 0"),
        ({"n_ctx": 2**40}, "n_ctx 1099511627776: the limit is 2147483392"),
        ({"n_ctx": 1.5}, "n_ctx 1.5: it must be a whole number"),
        ({"n_ctx": True}, "n_ctx True: it must be a whole number"),
        ({"n_threads": None}, "n_threads None: it must be a whole number"),
        ({"n_threads": 513}, "n_threads 513: the limit is 512"),
        ({"flash_attn": "off"}, "flash_attn 'off': it must be True, False or 'auto'"),
        ({"flash_attn": 1}, "flash_attn 1: it must be True, False or 'auto'"),
        ({"rope_freq_base": float("nan")}, "rope_freq_base nan: it must be a finite number"),
        ({"rope_freq_scale": -1.0}, "rope_freq_scale -1.0: it must be a finite number"),
        ({"type_k": None}, "type_k None: it must be the name of a type"),
        ({"n_threads": 0}, "n_threads 0: it must be at least 1"),
        ({"n_seq_max": 257}, "n_seq_max 257: the limit is 256"),
        ({"type_k": "q4_k"}, "type_k Q4_K: the KV cache holds F32, F16, BF16, Q8_0, Q4_0, Q4_1, IQ4_NL, Q5_0, Q5_1"),
        ({"type_k": "q8_0"}, "type_k Q8_0: heads of 16 are not whole blocks of 32"),
        ({"type_v": "q8_0", "flash_attn": False}, "type_v Q8_0: quantized values need flash attention, it is off"),
        ({"type_v": "nonsense"}, "type 'nonsense' is not one of ggml's"),
    ],
)
def test_values_that_cannot_be_are_refused(small: Path, given: dict[str, Any], message: str) -> None:
    with pytest.raises(VizggmlError, match=message):
        parts(small, **given)


def test_flash_attention_is_on_where_it_is_left_to_us(small: Path) -> None:
    assert parts(small, flash_attn="auto").cparams.flash_attn is True
    assert parts(small, flash_attn=False).cparams.flash_attn is False


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"rope_freq_base_train": 0.0}, "rope_freq_base 0.0"),
        ({"rope_freq_scale_train": 1e45}, r"rope_freq_scale 1e\+45"),
    ],
)
def test_a_model_whose_rope_is_no_rope_is_refused(small: Path, changed: dict[str, Any], message: str) -> None:
    hparams = replace(parts(small).hparams, **changed)
    with pytest.raises(VizggmlError, match=f"{message}: it must be above 0 and at most 3.4e\\+38"):
        CParams.resolve(ContextParams(), hparams)
