"""Two memories: what each holds adds up, nothing is over, one layer more would not fit."""

from __future__ import annotations

import pytest

from vizggml.errors import VizggmlError
from vizggml.llama.cparams import ContextParams
from vizggml.llama.fit import Fit, fit, memory_sizes
from vizggml.llama.plan import plan, shape_model

MIB = 1 << 20
PARAMS = ContextParams(n_ctx=4096)
MODEL = shape_model("minimind-64m", "Q4_K_M")
WHOLE = plan(*MODEL, PARAMS)


def fitted(first: int, second: int = 1024) -> Fit:
    return fit(*MODEL, PARAMS, (first * MIB, second * MIB))


def test_layers_are_shared_out_and_the_cache_with_them() -> None:
    found = fitted(64)
    first, second = found.shares
    assert first["layers"][0] == 0
    assert first["layers"][1] == second["layers"][0]
    assert second["layers"][1] == 8
    # 4096 cells of 4 heads of 96, K and V in F16, a layer
    a_layer = 4096 * 4 * 96 * 2 * 2
    assert [s["kv"] for s in found.shares] == [a_layer * (s["layers"][1] - s["layers"][0]) for s in found.shares]
    assert sum(s["kv"] for s in found.shares) == sum(WHOLE.kv)
    for share in found.shares:
        assert share["left"] == share["size"] - share["model"] - share["kv"] - share["output"] - share["compute"] >= 0
    assert (first["output"], second["output"]) == (0, WHOLE.output)


def test_one_layer_more_would_not_fit() -> None:
    """To the byte: with one byte less than it takes, the first memory gets a layer less."""
    first = fitted(64).shares[0]
    taken = first["size"] - first["left"]
    exact, less = (fit(*MODEL, PARAMS, (size, 1024 * MIB)).shares[0] for size in (taken, taken - 1))
    assert exact["layers"] == first["layers"]
    assert exact["left"] == 0
    assert less["layers"][1] == first["layers"][1] - 1


def test_splits_and_the_tied_output_in_both() -> None:
    found = fitted(64)
    assert found.splits == 2
    assert found.copies > 0
    embedding = MODEL[1].tensors["token_embd.weight"].nbytes
    stored = sum(t.nbytes for t in MODEL[1].tensors.values())
    assert sum(s["model"] for s in found.shares) == stored + embedding


def test_everything_in_one_memory_leaves_the_other_empty() -> None:
    for sizes, full in (((1024, 1), 0), ((1, 1024), 1)):
        found = fitted(*sizes)
        empty = found.shares[1 - full]
        assert (found.splits, found.copies) == (1, 0)
        assert (empty["model"], empty["kv"], empty["output"], empty["compute"]) == (0, 0, 0, 0)
        assert found.shares[full]["layers"] == (0, 8)
        assert found.shares[full]["compute"] == WHOLE.compute


def test_what_does_not_fit_says_by_how_much() -> None:
    with pytest.raises(
        VizggmlError, match=r"^qwen3 of 8 layers does not fit: with layers 0 to \d+ in the first memory "
    ) as e:
        fitted(64, 8)
    needs, has, short = [int(word.rstrip(":,")) for word in str(e.value).split() if word.rstrip(":,").isdigit()][-3:]
    assert has == 8 * MIB
    assert needs - has == short


@pytest.mark.parametrize("text", ["15G", "15G,12G,1G", "x,1G", "-1,2", "1e400,1", "nan,1", "", "0,1"])
def test_sizes_that_are_none(text: str) -> None:
    with pytest.raises(VizggmlError, match=r"^fit"):
        memory_sizes(text)


def test_sizes() -> None:
    assert memory_sizes("15G, 1.5M") == (15 << 30, 3 << 19)
    assert memory_sizes("1000,2k") == (1000, 2048)
