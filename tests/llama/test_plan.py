"""The plan: what the pinned llama.cpp allocates, to the byte, without reading a weight."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.llama.building import golden
from vizggml.errors import VizggmlError
from vizggml.ggml.gguf import read_gguf
from vizggml.llama.cparams import ContextParams
from vizggml.llama.plan import plan_file

BUFFERS = golden("llama_buffers.json")


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
