"""Shapes without a file: planned as a file of the same numbers is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.llama.made import MINIMIND, Shape, write
from vizggml.errors import VizggmlError
from vizggml.llama.cparams import ContextParams
from vizggml.llama.plan import plan_file, plan_shape
from vizggml.llama.shapes import SHAPES, hparams_of, shape_named, table_of, tensor_shapes


def parameters(name: str) -> int:
    table = table_of(name, hparams_of(name, SHAPES[name]), tensor_shapes(SHAPES[name]), "F32")
    return sum(t.nbytes // 4 for t in table.tensors.values())


def test_parameters_are_those_that_the_models_are_published_with() -> None:
    # Touvron et al. 2023: 6.7e9 and 69.0e9; Jiang et al. 2024: 46.7e9; Qwen3's card: 30.5e9
    billions = {name: parameters(name) / 1e9 for name in SHAPES}
    assert billions["llama-7b"] == pytest.approx(6.738, abs=0.001)
    assert billions["llama-70b"] == pytest.approx(68.977, abs=0.001)
    assert billions["mixtral-8x7b"] == pytest.approx(46.703, abs=0.001)
    assert billions["qwen3-30b-a3b"] == pytest.approx(30.532, abs=0.001)


@pytest.mark.parametrize("flash_attn", [True, False])
def test_minimind_is_the_file_of_its_shape(minimind: Path, flash_attn: bool) -> None:
    params = ContextParams(n_ctx=2048, flash_attn=flash_attn)
    assert plan_shape("minimind-64m", "F16", params) == plan_file(minimind, params)


def test_minimind_in_several_types(tmp_path: Path) -> None:
    """A file of one type for all matrices, in the order in which they are made: not the mixture's, nor its order."""
    shape = Shape(**{**{f: getattr(MINIMIND, f) for f in MINIMIND.__dataclass_fields__}, "type": "Q8_0"})
    found = plan_file(write(tmp_path / "m.gguf", shape), ContextParams())
    assert found == plan_shape("minimind-64m", "q8_0", ContextParams())


def test_an_unknown_shape_is_refused() -> None:
    with pytest.raises(
        VizggmlError,
        match=r"^shape 'gpt' is not one of minimind-64m, llama-7b, llama-70b, mixtral-8x7b, qwen3-30b-a3b$",
    ):
        shape_named("gpt")
