"""The figures that chapters quote are those that were recorded."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from vizggml.errors import VizggmlError
from vizggml.ggml.types import VIEW_OPS
from vizggml.lessons import asking, golden

RECORDED = Path(__file__).parents[1] / "goldens"


def smollm2_ops(flash: bool) -> list[str]:
    """The op of each node of SmolLM2's graph for a prompt."""
    graphs: list[dict[str, Any]] = json.loads(gzip.decompress((RECORDED / "llama_graphs.json.gz").read_bytes()))
    wanted = ("smollm2", "prefill", flash)
    found = next(g for g in graphs if (g["model"], g["what"], g["flash_attn"]) == wanted)
    return [node[0] for node in found["nodes"]]


@pytest.mark.parametrize(("mode", "flash"), [("plain", False), ("flash", True)])
def test_nodes_of_smollm2(mode: str, flash: bool) -> None:
    ops = smollm2_ops(flash)
    assert golden(f"smollm2.nodes.{mode}") == len(ops)
    assert golden(f"smollm2.cont.{mode}") == ops.count("CONT")
    assert golden(f"smollm2.empty.{mode}") == sum(op in VIEW_OPS for op in ops)


def test_mapped_bytes_of_smollm2() -> None:
    runs: list[dict[str, Any]] = json.loads((RECORDED / "llama_buffers.json").read_text())
    assert {tuple(run["mapped"]) for run in runs if run["model"] == "smollm2"} == {(golden("smollm2.mapped"),)}


def run(model: str, n_ctx: int, flash: bool, kind: str = "F16") -> dict[str, Any]:
    """The buffers of a context with ubatches of 512."""
    runs: list[dict[str, Any]] = json.loads((RECORDED / "llama_buffers.json").read_text())
    wanted = (model, n_ctx, 512, flash, kind)
    return next(
        r for r in runs if tuple(r[k] for k in ("model", "n_ctx", "n_ubatch", "flash_attn", "type_kv")) == wanted
    )


def test_output_buffer_of_smollm2_to_two_decimals() -> None:
    assert round(float(golden("smollm2.output")) / 2**20, 2) == run("smollm2", 2048, True)["output_mib"]


def test_text_that_smollm2_wrote() -> None:
    found: dict[str, Any] = json.loads((RECORDED / "llama_logits.json").read_text())
    assert found["prompt"] == asking.PROMPT
    for mode in ("flash", "plain"):
        greedy = found["greedy"][mode]
        assert (golden("smollm2.counting"), asking.MAX_TOKENS) == (greedy["text"], len(greedy["tokens"]))


@pytest.mark.parametrize("kind", ["f16", "q8_0"])
def test_cache_of_smollm2(kind: str) -> None:
    found = run("smollm2", 2048, True, kind.upper())
    assert [golden(f"smollm2.kv.{kind}")] == found["kv"]
    assert golden(f"smollm2.kv.{kind}.nodes") == found["nodes"]


def test_caches_of_a_model_with_windows() -> None:
    plans: list[dict[str, Any]] = json.loads((RECORDED / "gemma3.json").read_text())["plans"]
    shape = {"n_layer": 5, "n_head_kv": 1, "head_dim": 128, "n_swa": 1024, "swa_pattern": 2}
    settings = {"n_ctx": 2000, "n_ubatch": 512, "type_k": "F16", "type_v": "BF16", "swa_full": False}
    found = [
        p["found"]["kv"]
        for p in plans
        if shape.items() <= p["shape"].items() and settings.items() <= p["settings"].items()
    ]
    assert found == [[golden("gemma3.kv.whole"), golden("gemma3.kv.window")]]


@pytest.mark.parametrize(("model", "n_ctx"), [("smollm2", 2048), ("smollm2", 8192), ("minimind", 8192)])
@pytest.mark.parametrize(("mode", "flash"), [("plain", False), ("flash", True)])
def test_compute_buffers(model: str, n_ctx: int, mode: str, flash: bool) -> None:
    assert golden(f"{model}.compute.{mode}.{n_ctx}") == run(model, n_ctx, flash)["compute"]


@pytest.mark.parametrize(("n_ctx", "n_ubatch"), [(512, 512), (2048, 1)])
def test_compute_buffer_of_smollm2_by_ubatch(n_ctx: int, n_ubatch: int) -> None:
    runs: list[dict[str, Any]] = json.loads((RECORDED / "llama_buffers.json").read_text())
    wanted = ("smollm2", n_ctx, n_ubatch, False, "F16")
    names = ("model", "n_ctx", "n_ubatch", "flash_attn", "type_kv")
    found = [run["compute"] for run in runs if tuple(run[name] for name in names) == wanted]
    assert found == [golden(f"smollm2.compute.plain.{n_ctx}x{n_ubatch}")]


def test_a_figure_that_is_not_there_is_said_to_be() -> None:
    with pytest.raises(VizggmlError, match=r"golden 'smollm2\.x': there are smollm2\."):
        golden("smollm2.x")


def test_a_file_that_llama_cpp_quantized() -> None:
    files: dict[str, Any] = json.loads(gzip.decompress((RECORDED / "llama_quantize.json.gz").read_bytes()))["files"]
    assert [golden(f"tiny.quantize.Q4_K_M.{what}") for what in ("bytes", "sha256")] == files["tiny Q4_K_M"]


def test_the_cpu_alone_has_one_split() -> None:
    runs: list[dict[str, Any]] = json.loads((RECORDED / "llama_plan.json").read_text())
    assert {r["found"]["splits"] for r in runs} == {golden("cpu.splits")}


def test_graphs_built_anew_after_a_prompt() -> None:
    runs: list[dict[str, Any]] = json.loads((RECORDED / "llama_reuse.json").read_text())
    anew = {run["n_prompt"]: run["anew"] for run in runs}
    assert golden("tiny.anew.250") == ", ".join(map(str, anew[250]))
