"""gemma3: layers with a sliding window beside layers that see everything, as the pin and the wheel compute them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.llama.building import GOLDENS, golden, parts, ubatch_of
from tests.llama.gemma3_made import RUNS, SEED, SIX_TO_ONE, make, shown, tokens
from tests.llama.made import Shape, write
from tests.llama.mixtures_made import digest
from tests.llama.oracle import wheel
from tests.llama.test_context import nmse
from tests.llama.test_graph import described
from vizggml.llama.cparams import ContextParams
from vizggml.llama.kv_cache import MemoryContext
from vizggml.llama.kv_cache_iswa import MemoryContextISWA
from vizggml.llama.model import load_model
from vizggml.llama.plan import plan_file

GOLDEN = golden("gemma3.json")
LOGITS = np.load(GOLDENS / "gemma3_logits.npz")
SLOW = [("IQ2_XS", 1)]
TEXTS = [(fact, n) for fact in GOLDEN["weights"] for n in RUNS if (fact["type"], n) not in SLOW]
"""IQ2_XS token by token takes 10 s in each mode, and says nothing that the others do not."""


@pytest.fixture(scope="module")
def seven(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("gemma3") / "seven.gguf", SIX_TO_ONE, SEED)


@pytest.mark.parametrize("case", golden("gemma3_graphs.json.gz"), ids=lambda c: f"{c['what']}-{c['flash_attn']}")
def test_every_node_is_the_pins_and_lies_where_the_pin_has_it(case: dict[str, Any], seven: Path) -> None:
    settings = {key: case[key] for key in ("n_ctx", "n_ubatch", "flash_attn")}
    ubatch = ubatch_of(case["tokens"])
    built = parts(seven, **settings).build(ubatch, n_kv=256, n_outputs=1)
    assert [described(t) for t in built.gf.nodes] == [[*node[:8], node[9]] for node in case["nodes"]]
    ctx = load_model(seven).context(**settings)
    res = ctx.get_gf_res_prev(1)
    met = [MemoryContext(kv, tuple(range(case["tokens"])), 256) for kv in ctx.memory.caches]
    ctx.build_graph(res, ctx.graph_params(ubatch, MemoryContextISWA(ctx.hparams, *met), 1))
    ctx.sched.alloc_graph(res.gf)
    theirs = {node[1]: node[8] for node in case["nodes"] if node[8] is not None}
    ours = {t.name: t.data.offset for t in res.gf.nodes if t.name in theirs and t.data is not None}
    assert ours == theirs


@pytest.mark.parametrize("i", range(len(GOLDEN["plans"])))
def test_drawn_shapes_and_settings(i: int, tmp_path: Path) -> None:
    """Windows of many sizes, patterns, streams, sequences, cache types: all as the pin allocates them."""
    shape, settings, expected = (GOLDEN["plans"][i][key] for key in ("shape", "settings", "found"))
    found = plan_file(write(tmp_path / "m.gguf", Shape(**shape), i), ContextParams(**settings))
    assert (found.nodes, found.splits, found.compute) == (expected["nodes"], expected["splits"], expected["compute"])
    assert (sorted(found.kv), found.model) == (expected["kv"], expected["model"])
    assert round(found.output / 2**20, 2) == expected["output_mib"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("gemma3")


@pytest.mark.parametrize("mode", ["flash", "plain"])
@pytest.mark.parametrize(("fact", "n_ubatch"), TEXTS, ids=lambda x: x["type"] if isinstance(x, dict) else str(x))
def test_logits_are_as_near_as_the_pins_modes_are(fact: dict[str, Any], n_ubatch: int, mode: str, folder: Path) -> None:
    """Over texts that fill the layers with a window more than once."""
    path, (n_ctx, n_tokens) = make(folder, fact["type"]), RUNS[n_ubatch]
    assert digest(path) == fact["digest"]
    ctx = load_model(path).context(n_ctx=n_ctx, n_ubatch=n_ubatch, flash_attn=mode == "flash", swa_full=False)
    assert [kv.n_cells for kv in ctx.memory.caches] == [n_ctx, {512: 768, 1: 256}[n_ubatch]]
    found = shown(ctx.decode(tokens(n_tokens), range(n_tokens)))
    assert nmse(found, LOGITS[f"{fact['type']}-{mode}-{n_ubatch}"]) <= fact["spread"][f"{mode}-{n_ubatch}"][1]


@pytest.mark.parametrize("flash_attn", [True, False])
@pytest.mark.parametrize("swa_full", [True, False])
def test_logits_are_the_newer_llama_cpps_far_beyond_the_window(flash_attn: bool, swa_full: bool, seven: Path) -> None:
    ids = tokens(500)
    ours = load_model(seven).context(n_ctx=512, n_ubatch=64, flash_attn=flash_attn, swa_full=swa_full)
    settings = {"n_ctx": 512, "n_batch": 2048, "n_ubatch": 64, "flash_attn_type": int(flash_attn)}
    with wheel().model(seven) as native, native.context(**settings, swa_full=swa_full) as theirs:
        assert nmse(ours.decode(ids[:480], range(480)), theirs.decode(ids[:480], [True] * 480)) < 1e-5
        for token in ids[480:]:
            assert nmse(ours.decode([token]), theirs.decode([token])) < 1e-5
