"""Keys and values of every type: the graphs, places and logits are those of the live llama.cpp in the wheel."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.llama.building import parts, ubatch_of
from tests.llama.made import Shape, write
from tests.llama.oracle import wheel
from tests.llama.test_graph import NewerBuilder
from vizggml.errors import VizggmlError
from vizggml.ggml.buffer import cpu_buffer_type
from vizggml.ggml.gallocr import GraphAllocator
from vizggml.ggml.types import TYPES
from vizggml.llama.batch import reserve
from vizggml.llama.context import Context
from vizggml.llama.cparams import CACHE_TYPES
from vizggml.llama.hadamard import hadamard
from vizggml.llama.model import load_model

ROTATED = Shape("qwen3", n_embd=192, n_head=3, n_head_kv=3, n_layer=2)
UNROTATED = Shape("llama", n_embd=192, n_head=2, n_head_kv=1, n_layer=2)
WIDE = Shape("qwen3", n_embd=64, n_head=2, n_head_kv=1, head_dim=128, n_layer=1)


def nmse(a: NDArray[np.float32], b: NDArray[np.float32]) -> float:
    return float(((a.astype(np.float64) - b) ** 2).sum() / (b.astype(np.float64) ** 2).sum())


def draw(rng: random.Random) -> tuple[Shape, dict[str, Any]]:
    n_head_kv = rng.choice([1, 2])
    n_head, head, arch = (
        n_head_kv * rng.choice([1, 2, 3]),
        rng.choice([32, 64, 96, 128]),
        rng.choice(["llama", "qwen3"]),
    )
    shape = Shape(
        rng.choice([arch, "qwen3moe"]),
        n_layer=rng.randint(1, 3),
        n_embd=head * n_head,
        n_head=n_head,
        n_head_kv=n_head_kv,
        n_ff=32 * rng.randint(1, 5),
        n_vocab=rng.randint(50, 400),
        tied=rng.random() < 0.5,
        n_expert_used=rng.choice([1, 2, 3]),
    )
    if shape.arch == "qwen3moe":
        shape = Shape(**{f: getattr(shape, f) for f in Shape.__dataclass_fields__} | {"n_expert": 6})
    flash_attn = rng.random() < 0.75
    floats = [t for t in CACHE_TYPES if not TYPES[t].is_quantized]
    return shape, {
        "n_ctx": rng.choice([256, 700, 1024]),
        "n_ubatch": rng.choice([1, 7, 64, 512]),
        "flash_attn": flash_attn,
        "type_k": rng.choice(CACHE_TYPES),
        "type_v": rng.choice(CACHE_TYPES if flash_attn else floats),
    }


@pytest.mark.parametrize("seed", range(16))
def test_graphs_places_and_buffers_are_the_wheels(seed: int, tmp_path: Path) -> None:
    shape, given = draw(random.Random(seed))
    path = write(tmp_path / "m.gguf", shape, seed)
    model, n_tokens = parts(path, n_batch=2048, **given), min(3, given["n_ubatch"])
    with wheel().model(path) as native, native.context(**settings(**given)) as context:
        context.watch = True
        context.decode([1] * n_tokens)
        theirs = context.seen
        compute = {node["place"][0] for node in theirs if node["name"] == "result_norm"}.pop()
        cache = {place[0] for node in theirs if (place := node["leafs"].get("cache_k_l0"))}.pop()
        sizes = [size for _, size, _ in context.buffers.values()]
    galloc, cp = GraphAllocator(cpu_buffer_type()), model.cparams
    for n in (min(cp.n_ctx, cp.n_ubatch), 1, min(cp.n_ctx, cp.n_ubatch)):
        galloc.reserve(model.build(reserve(n, 1, n), cp.n_ctx, n, NewerBuilder).gf)
    res = model.build(ubatch_of(n_tokens), 256, 1, NewerBuilder)
    galloc.alloc_graph(res.gf)
    ours = [(t.op_desc, t.name, t.type.name, [*t.ne], [s.name if s else None for s in t.src]) for t in res.gf.nodes]
    assert ours == [(node["desc"], node["name"], node["type"], node["ne"], node["src"]) for node in theirs]
    for t, node in zip(res.gf.nodes, theirs, strict=True):
        assert [*t.op_params, *[0] * (16 - len(t.op_params))] == node["op_params"]
        if node["place"][0] == compute:
            assert t.data is not None
            assert (t.name, t.data.offset) == (node["name"], node["place"][1])
    assert galloc.get_buffer_size(0) == sizes[compute]
    assert sum(b.size for b in model.kv.buffers) == sizes[cache]


def settings(**given: Any) -> dict[str, Any]:
    """Ours in llama.cpp's words."""
    types = {name: TYPES[given[name].upper()].id for name in ("type_k", "type_v")}
    flash_attn = int(given.pop("flash_attn", True))
    return {"n_batch": 2048, **given, **types, "flash_attn_type": flash_attn}


def opened(path: Path, **given: Any) -> Context:
    return load_model(path).context(n_threads=1, fast=False, **given)


@pytest.mark.parametrize("shape", [ROTATED, UNROTATED, WIDE], ids=["heads of 64", "heads of 96", "heads of 128"])
@pytest.mark.parametrize(
    ("type_k", "type_v", "flash_attn"),
    [*((t, t, True) for t in CACHE_TYPES), ("Q8_0", "Q4_1", True), ("Q4_0", "F16", True), ("Q8_0", "F16", False)],
)
def test_logits_are_llama_cpps(shape: Shape, type_k: str, type_v: str, flash_attn: bool, tmp_path: Path) -> None:
    path = write(tmp_path / "m.gguf", shape, seed=3)
    tokens = [int(x) for x in np.random.default_rng(2).integers(0, 160, 20)]
    given = {"n_ctx": 256, "type_k": type_k, "type_v": type_v, "flash_attn": flash_attn}
    ours = opened(path, **given)
    with wheel().model(path) as native, native.context(**settings(**given)) as theirs:
        assert nmse(ours.decode(tokens, range(20)), theirs.decode(tokens, [True] * 20)) < 1e-4
        assert nmse(ours.decode([7]), theirs.decode([7])) < 1e-4


@pytest.mark.parametrize("type_k", ["Q8_0", "Q4_0", "Q5_1", "IQ4_NL"])
def test_quantized_keys_are_turned_when_positions_move(type_k: str, tmp_path: Path) -> None:
    path, tokens = write(tmp_path / "m.gguf", ROTATED, seed=4), list(range(20, 32))
    given = {"n_ctx": 256, "type_k": type_k, "type_v": "F16"}
    ours, native = opened(path, **given), wheel()
    with native.model(path) as other, other.context(**settings(**given)) as theirs:
        theirs.decode(tokens)
        ours.decode(tokens)
        memory = native.llama_get_memory(theirs.handle)
        native.llama_memory_seq_rm(memory, 0, 0, 3)
        native.llama_memory_seq_add(memory, 0, 3, -1, -3)
        ours.memory.seq_rm(0, 0, 3)
        ours.memory.seq_add(0, 3, -1, -3)
        theirs.n_past -= 3
        assert nmse(ours.decode([3]), theirs.decode([3])) < 1e-4


def test_without_rotation_keys_are_turned_all_the_same(tmp_path: Path) -> None:
    """llama.cpp has no case for it. Twelve tokens moved by nothing and back are the twelve tokens, but for rounding."""
    ours = opened(write(tmp_path / "m.gguf", UNROTATED, seed=4), n_ctx=256, type_k="q8_0", type_v="q8_0")
    ours.decode(list(range(20, 32)))
    stayed = ours.decode([3]).copy()
    ours.memory.seq_rm(0, 12, -1)
    ours.memory.seq_add(0, 0, -1, 5)
    ours.memory.seq_add(0, 0, -1, -5)
    assert nmse(ours.decode([3]), stayed) < 1e-3


def test_the_rotation_by_hand() -> None:
    assert (hadamard(4) == 0.5 * np.array([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]])).all()
    for n in (64, 128):
        assert np.abs(hadamard(n) @ hadamard(n) - np.eye(n)).max() < 1e-6


def test_what_is_planned_and_not_computed_is_refused_in_one_line(tmp_path: Path) -> None:
    path = write(tmp_path / "m.gguf", ROTATED)
    with pytest.raises(VizggmlError, match=r"^n_seq_max 2 with kv_unified off: streams of their own are planned, not "):
        opened(path, n_seq_max=2, kv_unified=False)
