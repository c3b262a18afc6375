"""Which type each tensor gets: as the pinned llama.cpp's quantizer decided, and wrote the file."""

from __future__ import annotations

from dataclasses import fields

import pytest

from tests.llama.building import golden
from tests.llama.made import Shape as Made
from vizggml.errors import VizggmlError
from vizggml.llama.cparams import ContextParams
from vizggml.llama.mixtures import MIXTURES, tensor_types, use_more_bits
from vizggml.llama.plan import plan
from vizggml.llama.shapes import Shape, hparams_of, table_of, tensor_shapes

RECORDED = golden("llama_quant_types.json.gz")


def shape_of(name: str) -> Shape:
    made = Made(**RECORDED["shapes"][name])
    same = {f.name: getattr(made, f.name) for f in fields(made) if f.name in {g.name for g in fields(Shape)}}
    ff = {"n_ff_exp": made.n_ff} if made.n_expert else {}
    return Shape(made.arch, n_ctx_train=4096, n_embd_head=made.n_embd_head, **same, **ff)


@pytest.mark.parametrize("case", RECORDED["types"])
def test_types_and_order_are_the_quantizers(case: str) -> None:
    name, mixture = case.split()
    shape = shape_of(name)
    types = tensor_types(hparams_of(name, shape), tensor_shapes(shape), mixture)
    assert [(tensor, type.name) for tensor, type in types.items()] == list(RECORDED["types"][case].items())


@pytest.mark.parametrize("case", RECORDED["weights"])
def test_the_loaded_file_lies_in_the_buffers_that_the_plan_says(case: str) -> None:
    name, mixture = case.split()
    shape = shape_of(name)
    hparams, shapes = hparams_of(name, shape), tensor_shapes(shape)
    found = plan(hparams, table_of(name, hparams, shapes, mixture), ContextParams(n_ctx=256))
    assert found.model == RECORDED["weights"][case]


def test_floats_stay_floats() -> None:
    shape = shape_of("tied")
    types = tensor_types(hparams_of("tied", shape), tensor_shapes(shape), "bf16")
    assert {name: type.name for name, type in types.items() if type.name != "BF16"} == {
        name: "F32" for name in types if name.endswith("norm.weight")
    }


def test_the_layers_with_more_bits() -> None:
    # of 16: the first two, the last two, and each third from the fifth on
    assert [i for i in range(16) if use_more_bits(i, 16)] == [0, 1, 4, 7, 10, 13, 14, 15]


def test_an_unknown_mixture_is_refused() -> None:
    shape = shape_of("tied")
    with pytest.raises(VizggmlError, match=f"^type 'Q9' is not one of {', '.join(MIXTURES)}$"):
        tensor_types(hparams_of("tied", shape), tensor_shapes(shape), "Q9")
