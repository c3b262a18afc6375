"""Which layers have a window, as a file states it. The wheel's log says the same of the values that it reads."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.llama.made import Shape, write
from tests.llama.oracle import wheel
from vizggml.errors import VizggmlError
from vizggml.ggml.gguf import Value, read_gguf, write_gguf
from vizggml.llama.hparams import HParams

SHAPE = Shape("gemma3", n_layer=7, n_embd=32, n_head=2, n_head_kv=1, n_ff=32, n_swa=24)


def hparams(folder: Path, shape: Shape, changed: dict[str, Value] | None = None) -> HParams:
    gguf = read_gguf(write(folder / "m.gguf", shape))
    metadata = {**gguf.metadata, **(changed or {})}
    write_gguf(folder / "head.gguf", metadata)
    return HParams.from_gguf(read_gguf(folder / "head.gguf"))


@pytest.mark.parametrize(
    ("pattern", "windows"),
    [(-1, "1111101"), (0, "1111111"), (2, "1010101"), (3, "1101101"), (6, "1111101"), (7, "1111110"), (9, "1111111")],
)
def test_all_layers_but_every_nth_have_a_window(pattern: int, windows: str, tmp_path: Path) -> None:
    """As `set_swa_pattern` counts: with n, layer n - 1 is the first without; gemma3's own is 6, 0 is all."""
    found = hparams(tmp_path, replace(SHAPE, swa_pattern=pattern))
    assert "".join(str(int(found.is_swa(il))) for il in range(7)) == windows
    assert (found.n_swa, found.rope_freq_base_train_swa) == (24, 10000.0)


@pytest.mark.parametrize(
    "stated", [np.array([1, 0, 1, 0, 0, 1, 1], np.int32), np.array([1, 0, 1, 0, 0, 1, 1], np.bool_)]
)
def test_windows_stated_layer_by_layer(stated: np.ndarray[Any, Any], tmp_path: Path) -> None:
    found = hparams(tmp_path, SHAPE, {"gemma3.attention.sliding_window_pattern": stated})
    assert [found.is_swa(il) for il in range(7)] == [True, False, True, False, False, True, True]


def test_without_a_window_no_layer_has_one(tmp_path: Path) -> None:
    found = hparams(tmp_path, replace(SHAPE, n_swa=0))
    assert (found.n_swa, [found.is_swa(il) for il in range(7)]) == (0, [False] * 7)


def test_numbers_as_llama_cpp_reads_them(tmp_path: Path) -> None:
    path = write(tmp_path / "m.gguf", replace(SHAPE, freq_base_swa=5000.0, softcap=30.0))
    found = HParams.from_gguf(read_gguf(path))
    native = wheel()
    with native.model(path):
        log = "".join(native.log)
    said = {name: float(re.findall(rf"{name} += ([\d.]+)", log)[-1]) for name in ("n_swa", "freq_base_swa")}
    assert (
        said
        == {"n_swa": found.n_swa, "freq_base_swa": found.rope_freq_base_train_swa}
        == {
            "n_swa": 24,
            "freq_base_swa": 5000.0,
        }
    )
    assert (found.f_final_logit_softcapping, found.f_attention_scale) == (30.0, 0.25)  # heads of 16: 1 / sqrt(16)


def test_the_largest_gemma_scales_by_width_over_heads(tmp_path: Path) -> None:
    """62 layers are the 27B model: 1 / sqrt(n_embd / n_head), whatever the size of a head."""
    found = hparams(tmp_path, replace(SHAPE, n_layer=62, n_embd=128, head_dim=32))
    assert found.f_attention_scale == 0.125  # 128 / 2 = 64


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"sliding_window_pattern": 1}, "key 'gemma3.attention.sliding_window' is 24, but no layer has a window"),
        ({"sliding_window": 2**31}, f"'gemma3.attention.sliding_window' is {2**31}, it must be below {2**31}"),
        ({"sliding_window_pattern": np.ones(7, np.float32)}, "it must be an array of bool, i32 or u32"),
        ({"sliding_window_pattern": "most"}, "has type str, it must be u32"),
        ({"key_length_swa": 8}, "'gemma3.attention.key_length_swa': heads of another size in layers with a window"),
    ],
)
def test_windows_that_cannot_be(changed: dict[str, Any], message: str, tmp_path: Path) -> None:
    keyed: dict[str, Value] = {f"gemma3.attention.{key}": value for key, value in changed.items()}
    with pytest.raises(VizggmlError, match=message):
        hparams(tmp_path, SHAPE, keyed)
