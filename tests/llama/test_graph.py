"""The graphs: node for node those that the pinned llama.cpp builds, and, live, those of the newer one in the wheel."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tests.llama.building import golden, parts, ubatch_of
from tests.llama.made import Shape, write
from tests.llama.oracle import wheel
from vizggml.ggml import ops
from vizggml.ggml.buffer import cpu_buffer_type
from vizggml.ggml.gallocr import GraphAllocator
from vizggml.ggml.tensor import Tensor
from vizggml.ggml.types import F32, I32, I64
from vizggml.llama.batch import reserve
from vizggml.llama.graph import GraphBuilder

GRAPHS = golden("llama_graphs.json.gz")


def described(t: Tensor) -> list[Any]:
    params = [*t.op_params, *[0] * (16 - len(t.op_params))]
    sources = [s.name if s is not None else None for s in t.src]
    return [t.op_desc, t.name, t.type.name, [*t.ne], [*t.nb], sources, t.flags, t.view_offs, params]


@pytest.mark.parametrize(
    "case", GRAPHS, ids=lambda c: f"{c['model']}-{c['what']}-{'flash' if c['flash_attn'] else 'plain'}"
)
def test_every_node_is_the_pins(case: dict[str, Any], request: pytest.FixtureRequest) -> None:
    model = parts(request.getfixturevalue(case["model"]), n_ctx=case["n_ctx"], flash_attn=case["flash_attn"])
    res = model.build(ubatch_of(case["tokens"]), n_kv=256, n_outputs=1)
    assert [described(t) for t in res.gf.nodes] == [[*node[:8], node[9]] for node in case["nodes"]]
    expected = {("smollm2", True): 936, ("smollm2", False): 1086, ("minimind", True): 286, ("minimind", False): 326}
    assert len(res.gf.nodes) == expected[case["model"], case["flash_attn"]]


class NewerBuilder(GraphBuilder):
    """The wheel's `build_inp_embd` has a third way in, for batches that mix tokens and vectors.

    Three nodes more: GET_ROWS of the token embedding by `inp_mixed_tokens`, DUP of `inp_mixed_embd`, and SET_ROWS of
    the one into the other at `inp_mixed_slots`. Three inputs more: those. None of the nodes is computed.
    """

    def select_inp_embd(self, by_token: Tensor, by_vector: Tensor) -> Tensor:
        ctx0, n = self.ctx0, self.n_tokens
        tokens = ctx0.new_tensor(I32, (n,), "inp_mixed_tokens").set_input()
        slots = ctx0.new_tensor(I64, (n,), "inp_mixed_slots").set_input()
        embd = ctx0.new_tensor(F32, (self.hparams.n_embd, n), "inp_mixed_embd").set_input()
        rows = ops.get_rows(ctx0, self.weights["token_embd.weight"], tokens)
        self.gf.build_forward_expand(by_token)
        self.gf.build_forward_order(rows)
        self.gf.build_forward_order(by_vector)
        self.gf.build_forward_order(ops.set_rows(ctx0, ops.dup(ctx0, embd), rows, slots))
        return by_token


def random_shape(rng: random.Random) -> Shape:
    n_head_kv = rng.choice([1, 2, 3])
    n_head = n_head_kv * rng.choice([1, 2, 3])
    arch = rng.choice(["llama", "qwen3"])
    head = rng.choice([16, 32, 48])
    return Shape(
        arch,
        n_layer=rng.randint(1, 3),
        n_embd=head * n_head,
        n_head=n_head,
        n_head_kv=n_head_kv,
        n_ff=32 * rng.randint(1, 5),
        n_vocab=rng.randint(50, 400),
        head_dim=0 if arch == "llama" else rng.choice([0, 64]),
        tied=rng.random() < 0.5,
        type=rng.choice(["F32", "F16", "F16"]),
        attn_bias=rng.random() < 0.3,
        rope_freqs=arch == "llama" and rng.random() < 0.3,
    )


@pytest.mark.parametrize("seed", range(12))
def test_graphs_and_buffers_of_random_shapes_are_the_wheels(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    path = write(tmp_path / "m.gguf", random_shape(rng), seed)
    n_ctx, n_ubatch, flash_attn = rng.choice([256, 700, 1024]), rng.choice([1, 7, 64, 512]), rng.random() < 0.5
    model = parts(path, n_ctx=n_ctx, n_batch=2048, n_ubatch=n_ubatch, flash_attn=flash_attn)
    n_tokens = min(3, n_ubatch)
    settings = {"n_ctx": n_ctx, "n_batch": 2048, "n_ubatch": n_ubatch, "flash_attn_type": int(flash_attn)}
    with wheel().model(path) as native, native.context(**settings) as context:
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
        if node["place"][0] == compute:
            assert t.data is not None
            assert (t.name, t.data.offset) == (node["name"], node["place"][1])
    assert galloc.get_buffer_size(0) == sizes[compute]
    assert sum(b.size for b in model.kv.buffers) == sizes[cache]
    extra = {"inp_mixed_tokens", "inp_mixed_slots", "inp_mixed_embd"}
    assert len(ours) - len(model.build(ubatch_of(n_tokens), 256, 1).gf.nodes) == 3
    assert {s for node in theirs for s in node["leafs"] if s.startswith("inp_mixed")} == extra
