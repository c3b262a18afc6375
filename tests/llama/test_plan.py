"""The plan: what the pinned llama.cpp allocates, to the byte, without reading a weight."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from tests.llama.building import golden
from tests.llama.made import Shape, write
from vizggml.errors import VizggmlError
from vizggml.ggml.gguf import read_gguf
from vizggml.llama import kv_cache
from vizggml.llama.cparams import ContextParams
from vizggml.llama.plan import plan_file

BUFFERS = golden("llama_buffers.json")
PLANS = golden("llama_plan.json")


@pytest.mark.parametrize(
    "run",
    BUFFERS,
    ids=lambda r: f"{r['model']}-{r['n_ctx']}-{r['n_ubatch']}-{r['type_kv']}-{'flash' if r['flash_attn'] else 'plain'}",
)
def test_the_pins_buffers(run: dict[str, Any], request: pytest.FixtureRequest) -> None:
    given = {key: run[key] for key in ("n_ctx", "n_ubatch", "flash_attn")}
    found = plan_file(
        request.getfixturevalue(run["model"]), ContextParams(type_k=run["type_kv"], type_v=run["type_kv"], **given)
    )
    assert (found.nodes, found.splits, found.compute, found.kv) == (run["nodes"], 1, run["compute"], run["kv"])
    assert list(found.model.values()) == run["mapped"]
    assert round(found.output / 2**20, 2) == run["output_mib"]


def test_the_header_alone_is_enough(minimind: Path, tmp_path: Path) -> None:
    whole = plan_file(minimind, ContextParams())
    gguf = read_gguf(minimind)
    begun = tmp_path / "begun.gguf"
    begun.write_bytes(minimind.read_bytes()[: gguf.data_offset])
    assert plan_file(begun, ContextParams()) == whole
    with pytest.raises(
        VizggmlError, match=r"tensor 'token_embd.weight': offset \d+ \+ 9830400 bytes ends past the file"
    ):
        read_gguf(begun)


@pytest.mark.parametrize("i", range(len(PLANS)))
def test_drawn_shapes_and_settings(i: int, tmp_path: Path) -> None:
    """Lengths, batches, cache types, sequences, streams, weight types, experts: all as the pin allocates them."""
    shape, settings, expected = PLANS[i]["shape"], dict(PLANS[i]["settings"]), PLANS[i]["found"]
    settings["flash_attn"] = settings["flash_attn"] != "off"
    found = plan_file(write(tmp_path / "m.gguf", Shape(**shape), i), ContextParams(**settings))
    assert (found.nodes, found.splits) == (expected["nodes"], expected["splits"])
    assert (found.compute, found.kv, found.model) == (expected["compute"], expected["kv"], expected["model"])
    assert round(found.output / 2**20, 2) == expected["output_mib"]


def test_what_stands_at_the_peak(minimind: Path) -> None:
    """The last tensor ends where the buffer does, and no two lie on each other."""
    found = plan_file(minimind, ContextParams(n_ctx=2048, flash_attn=False))
    places = [(t["offset"], t["offset"] + t["size"]) for t in found.peak]
    assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(places))
    assert places[-1][1] == found.compute
    assert {"attn_inp_kq_mask", "kq-0"} <= {t["name"] for t in found.peak}


def test_what_cannot_be_planned_is_refused_in_one_line(minimind: Path) -> None:
    for params, message in (
        (
            ContextParams(type_v="q8_0", flash_attn=False),
            "type_v Q8_0: quantized values need flash attention, it is off",
        ),
        (ContextParams(n_seq_max=9, n_batch=8), "n_seq_max 9: a batch of 8 has no token for each sequence"),
    ):
        with pytest.raises(VizggmlError, match=f"^{message}$"):
            plan_file(minimind, params)


def test_a_plan_of_many_cells_makes_none(minimind: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two hundred million tokens are counted as two thousand are, and nothing of their size is made."""
    monkeypatch.setattr(kv_cache, "KVCells", lambda *sizes: pytest.fail("the cells were made"))
    few, many = (plan_file(minimind, ContextParams(n_ctx=n)) for n in (2048, 2048 * 100_000))
    assert many.kv == [few.kv[0] * 100_000]
    assert many.model == few.model


def test_more_tokens_than_a_position_counts_are_refused(tmp_path: Path) -> None:
    hostile = write(tmp_path / "m.gguf", Shape(context_length=2**31 - 1))
    with pytest.raises(VizggmlError, match=r"^n_ctx 2147483648: the limit is 2147483392$"):
        plan_file(hostile, ContextParams(n_ctx=0))
