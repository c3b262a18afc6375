"""Mixtures of experts: node for node, byte for byte and to the spread of its own numbers what the pin does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.llama.building import GOLDENS, golden, parts, ubatch_of
from tests.llama.made import Shape, write
from tests.llama.mixtures_made import digest, make, shown, tokens
from tests.llama.oracle import wheel
from tests.llama.test_context import nmse
from tests.llama.test_graph import described
from vizggml.ggml.quants import DECODERS
from vizggml.llama.cparams import ContextParams
from vizggml.llama.graph_input import MemoryContext
from vizggml.llama.model import load_model
from vizggml.llama.plan import plan_file

GRAPHS = golden("experts_graphs.json.gz")
FACTS = golden("experts.json")
LOGITS = np.load(GOLDENS / "experts_logits.npz")
COMPUTED = [fact for fact in FACTS if fact["type"] in DECODERS]


def label(fact: dict[str, Any]) -> str:
    return f"{fact['arch']}-{fact['type']}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mixtures")


@pytest.mark.parametrize("case", GRAPHS, ids=lambda c: f"{c['model']}-{c['what']}-{c['flash_attn']}")
def test_every_node_is_the_pins_and_lies_where_the_pin_has_it(case: dict[str, Any], folder: Path) -> None:
    path = make(folder, case["model"], "F16")
    settings = {key: case[key] for key in ("n_ctx", "n_ubatch", "flash_attn")}
    built = parts(path, **settings).build(ubatch_of(case["tokens"]), n_kv=256, n_outputs=1)
    assert [described(t) for t in built.gf.nodes] == [[*node[:8], node[9]] for node in case["nodes"]]
    ctx = load_model(path).context(**settings)
    res = ctx.get_gf_res_prev(1)
    mctx = MemoryContext(ctx.memory, tuple(range(case["tokens"])), 256)
    ctx.build_graph(res, ctx.graph_params(ubatch_of(case["tokens"]), mctx, 1))
    ctx.sched.alloc_graph(res.gf)
    theirs = {node[1]: node[8] for node in case["nodes"] if node[8] is not None}
    ours = {t.name: t.data.offset for t in res.gf.nodes if t.name in theirs and t.data is not None}
    assert ours == theirs


@pytest.mark.parametrize("fact", FACTS, ids=label)
def test_buffers_have_the_pins_sizes(fact: dict[str, Any], folder: Path) -> None:
    path = make(folder, fact["arch"], fact["type"])
    assert digest(path) == fact["digest"]
    for how, expected in fact["buffers"].items():
        mode, n_ubatch = how.split("-")
        params = ContextParams(n_ctx=512, n_ubatch=int(n_ubatch), flash_attn=mode == "flash")
        found = plan_file(path, params)
        assert (found.nodes, found.compute, found.kv) == (expected["nodes"], expected["compute"], [expected["kv"]])
        assert found.model == fact["repacked"]


@pytest.mark.parametrize("n_ubatch", [512, 1])
@pytest.mark.parametrize("mode", ["flash", "plain"])
@pytest.mark.parametrize("fact", COMPUTED, ids=label)
def test_logits_are_as_near_as_the_pins_modes_are(fact: dict[str, Any], mode: str, n_ubatch: int, folder: Path) -> None:
    how = f"{mode}-{n_ubatch}"
    model = load_model(make(folder, fact["arch"], fact["type"]))
    ctx = model.context(n_ctx=512, n_ubatch=n_ubatch, n_threads=2, flash_attn=mode == "flash")
    assert ctx.compute_buffer_size == fact["buffers"][how]["compute"]
    assert {b.buft.name: b.size for b in model.weights.buffers} == fact["buffers"][how]["weights"]
    ids = tokens()
    found = nmse(shown(ctx.decode(ids, range(len(ids)))), LOGITS[f"{label(fact)}-{how}"])
    assert found <= fact["spread"][how][1]


@pytest.mark.parametrize("arch", ["llama", "qwen3moe"])
@pytest.mark.parametrize("fast", [False, True])
def test_logits_are_the_newer_llama_cpps(arch: str, fast: bool, tmp_path: Path) -> None:
    shape = Shape(arch, n_embd=128, n_head=4, n_head_kv=2, n_layer=2, n_ff=64, n_expert=6, n_expert_used=2)
    path = write(tmp_path / "m.gguf", shape, seed=5)
    ids = [int(x) for x in np.random.default_rng(3).integers(0, 160, 20)]
    ours = load_model(path).context(n_threads=2, fast=fast, n_ctx=256)
    with wheel().model(path) as native, native.context(n_ctx=256, n_batch=2048) as theirs:
        assert nmse(ours.decode(ids, range(20)), theirs.decode(ids, [True] * 20)) < 1e-4
        assert nmse(ours.decode([7]), theirs.decode([7])) < 1e-4
