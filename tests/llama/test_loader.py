"""Weights lie where llama.cpp puts them, to the byte; a file that does not fit its own numbers is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.llama.made import MINIMIND, Shape, write
from tests.llama.oracle import wheel
from vizggml.errors import VizggmlError
from vizggml.events import Event, MmapOpened, TensorPlaced, WeightsPlaced, bus
from vizggml.ggml.gguf import TensorData, read_gguf, write_gguf
from vizggml.ggml.types import TYPES, Type
from vizggml.llama.hparams import HParams
from vizggml.llama.loader import Weights, load_weights
from vizggml.llama.models import resolve_model
from vizggml.llama.vocab import Vocab

BUFFERS = json.loads((Path(__file__).parents[1] / "goldens" / "llama_buffers.json").read_text())
F32, F16 = TYPES["F32"], TYPES["F16"]

Layout = dict[str, tuple[Type, tuple[int, ...]]]


def load(path: Path) -> Weights:
    file = read_gguf(path)
    return load_weights(file, HParams.from_gguf(file))


def mapped_bytes(model: str) -> list[int]:
    return next(run["mapped"] for run in BUFFERS if run["model"] == model)


def layout(shape: Shape) -> Layout:
    """Names, types and shapes of a model's tensors, in an order of its own: the file's need not be the loader's."""
    n_q, n_kv = shape.n_embd_head * shape.n_head, shape.n_embd_head * shape.n_head_kv
    tensors: Layout = {}
    for i in range(shape.n_layer):
        blk = f"blk.{i}."
        for name, rows, columns in (
            ("ffn_up", shape.n_ff, shape.n_embd),
            ("ffn_gate", shape.n_ff, shape.n_embd),
            ("ffn_down", shape.n_embd, shape.n_ff),
            ("attn_q", n_q, shape.n_embd),
            ("attn_k", n_kv, shape.n_embd),
            ("attn_v", n_kv, shape.n_embd),
            ("attn_output", shape.n_embd, n_q),
        ):
            tensors[f"{blk}{name}.weight"] = (F16, (columns, rows))
        for name in ("attn_norm", "ffn_norm"):
            tensors[f"{blk}{name}.weight"] = (F32, (shape.n_embd,))
        if shape.arch == "qwen3":
            for name in ("attn_q_norm", "attn_k_norm"):
                tensors[f"{blk}{name}.weight"] = (F32, (shape.n_embd_head,))
    tensors["output_norm.weight"] = (F32, (shape.n_embd,))
    tensors["token_embd.weight"] = (F16, (shape.n_embd, shape.n_vocab))
    return tensors


def write_zeros(path: Path, shape: Shape, tensors: Layout, alignment: int = 32) -> Path:
    """A model of zeros."""
    a = shape.arch
    write_gguf(
        path,
        {
            "general.architecture": a,
            "tokenizer.ggml.model": "none",
            f"{a}.vocab_size": shape.n_vocab,
            f"{a}.context_length": 512,
            f"{a}.embedding_length": shape.n_embd,
            f"{a}.block_count": shape.n_layer,
            f"{a}.feed_forward_length": shape.n_ff,
            f"{a}.attention.head_count": shape.n_head,
            f"{a}.attention.head_count_kv": shape.n_head_kv,
            f"{a}.attention.layer_norm_rms_epsilon": 1e-5,
        },
        [
            TensorData(name, type, ne, np.zeros(type.row_size(ne[0]) * int(np.prod(ne[1:])), np.uint8))
            for name, (type, ne) in tensors.items()
        ],
        alignment=alignment,
    )
    return path


def test_smollm2_takes_the_bytes_that_the_reference_logs() -> None:
    weights = load(resolve_model("smollm2"))
    assert [(b.buft.name, b.size, b.usage) for b in weights.buffers] == [
        ("CPU_Mapped", mapped_bytes("smollm2")[0], "weights")
    ]
    assert len(weights) == 272
    assert weights.output is weights["token_embd.weight"]


def test_minimind_takes_the_bytes_that_the_reference_logs(tmp_path: Path) -> None:
    weights = load(write_zeros(tmp_path / "m.gguf", MINIMIND, layout(MINIMIND)))
    assert [b.size for b in weights.buffers] == mapped_bytes("minimind")


def test_the_order_in_which_llama_cpp_makes_them() -> None:
    # src/models/llama.cpp, read line by line.
    names = list(load(resolve_model("smollm2")))
    layer = "attn_norm attn_q attn_k attn_v attn_output ffn_norm ffn_gate ffn_down ffn_up".split()
    assert names[:3] == ["token_embd.weight", "output_norm.weight", "blk.0.attn_norm.weight"]
    assert names[2:] == [f"blk.{i}.{name}.weight" for i in range(30) for name in layer]


SHAPES = [
    Shape(type="F16"),
    Shape(type="Q8_0", tied=False, rope_freqs=True),
    Shape(type="F32", attn_bias=True, n_layer=1),
    Shape("qwen3", type="F16", head_dim=32),
    Shape("qwen3", type="Q4_1", tied=False, n_layer=1),
]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: f"{s.arch}-{s.type}")
def test_every_weight_lies_where_llama_cpp_puts_it(shape: Shape, tmp_path: Path) -> None:
    path = write(tmp_path / "m.gguf", shape)
    weights = load(path)
    places: dict[str, int] = {}
    with wheel().model(path) as model, model.context(n_ctx=64) as context:
        context.watch = True
        context.decode([1, 2])
        for node in context.seen:
            for name, place in node["leafs"].items():
                if place is not None and list(context.buffers.values())[place[0]][0] == "CPU_Mapped":
                    places[name] = place[1]
        sizes = [size for name, size, _ in context.buffers.values() if name == "CPU_Mapped"]
    assert sizes == [b.size for b in weights.buffers]
    assert places == {name: weights[name].data.offset for name in weights}  # type: ignore[union-attr]
    assert set(places) == set(weights)


def test_the_bytes_of_a_weight(tmp_path: Path) -> None:
    path = write(tmp_path / "m.gguf", Shape(type="F32"))
    file = read_gguf(path)
    weights = load_weights(file, HParams.from_gguf(file))
    down = weights["blk.1.ffn_down.weight"]
    assert down.ne == (96, 64, 1, 1)
    assert np.array_equal(down.array().reshape(-1), file.tensor_bytes("blk.1.ffn_down.weight").view(np.float32))
    assert not down.array().flags.writeable
    assert np.shares_memory(down.array(), file.mapped.memory)


def test_placing_is_an_event(tmp_path: Path) -> None:
    path = write(tmp_path / "m.gguf", Shape(n_layer=1))
    seen: list[Event] = []
    stop = bus.subscribe(None, seen.append)
    file = read_gguf(path)
    weights = load_weights(file, HParams.from_gguf(file))
    stop()
    assert [e.size for e in seen if isinstance(e, MmapOpened)] == [path.stat().st_size]
    placed = [e for e in seen if isinstance(e, WeightsPlaced)]
    assert [(e.tensor, e.size) for e in placed] == [(t.id, t.nbytes) for t in weights.tensors.values()]
    assert [e.offset for e in seen if isinstance(e, TensorPlaced)] == [e.offset for e in placed]
    assert {e.file_offset - e.offset for e in placed} == {file.data_offset}
    assert {(e.buffer, e.backend) for e in placed} == {(weights.buffers[0].id, "CPU_Mapped")}


def test_the_arena_has_room_for_llama_cpps_duplicates(tmp_path: Path) -> None:
    weights = load(write(tmp_path / "m.gguf", Shape(n_layer=2)))
    assert weights.context.mem_size == 368 * (20 + 1 + 2 * 2)
    assert weights.context.used_mem == 368 * 20


SMALL = Shape(n_layer=1)


def refusal(tmp_path: Path, shape: Shape, tensors: Layout) -> str:
    path = write_zeros(tmp_path / "bad.gguf", shape, tensors)
    with pytest.raises(VizggmlError) as caught:
        load(path)
    return str(caught.value)


@pytest.mark.parametrize("name", layout(SMALL))
def test_a_missing_tensor(name: str, tmp_path: Path) -> None:
    tensors = layout(SMALL)
    del tensors[name]
    assert refusal(tmp_path, SMALL, tensors) == f"bad.gguf: tensor '{name}' is missing"


@pytest.mark.parametrize("name", layout(SMALL))
def test_a_wrong_shape(name: str, tmp_path: Path) -> None:
    tensors = layout(SMALL)
    type, ne = tensors[name]
    tensors[name] = (type, (*ne[:-1], ne[-1] + 1))
    said = refusal(tmp_path, SMALL, tensors)
    assert said.startswith(f"bad.gguf: tensor '{name}' has shape {' x '.join(map(str, tensors[name][1]))}, ")
    assert said.endswith(f"the hyper-parameters ask for {' x '.join(map(str, ne))}")


def test_an_optional_tensor_of_a_wrong_shape(tmp_path: Path) -> None:
    tensors = layout(SMALL) | {"rope_freqs.weight": (F32, (3,))}
    assert "tensor 'rope_freqs.weight' has shape 3, " in refusal(tmp_path, SMALL, tensors)


def test_a_tensor_that_belongs_nowhere(tmp_path: Path) -> None:
    tensors = layout(SMALL) | {"blk.1.attn_norm.weight": (F32, (64,)), "<script>": (F32, (1,))}
    assert refusal(tmp_path, SMALL, tensors) == (
        "bad.gguf: 2 of 13 tensors belong to no part of a llama model, the first is 'blk.1.attn_norm.weight'"
    )


def test_a_fused_projection(tmp_path: Path) -> None:
    tensors = layout(SMALL)
    for part in "qkv":
        del tensors[f"blk.0.attn_{part}.weight"]
    tensors |= {"blk.0.attn_qkv.weight": (F16, (64, 128)), "blk.0.attn_q.bias": (F32, (64,))}
    weights = load(write_zeros(tmp_path / "fused.gguf", SMALL, tensors))
    assert list(weights)[3:5] == ["blk.0.attn_qkv.weight", "blk.0.attn_q.bias"]


def test_longrope_factors(tmp_path: Path) -> None:
    tensors = layout(SMALL) | {"rope_factors_long.weight": (F32, (8,)), "rope_factors_short.weight": (F32, (8,))}
    file = read_gguf(write_zeros(tmp_path / "l.gguf", SMALL, tensors))
    hp = HParams.from_gguf(file)
    weights = load_weights(file, replace(hp, rope_scaling_type_train="longrope"))
    assert list(weights)[8:10] == ["rope_factors_long.weight", "rope_factors_short.weight"]
    with pytest.raises(VizggmlError, match="2 of 13 tensors belong to no part"):
        load_weights(file, hp)


def test_weights_that_no_mapping_aligns(tmp_path: Path) -> None:
    path = write_zeros(tmp_path / "a.gguf", SMALL, layout(SMALL), alignment=16)
    with pytest.raises(
        VizggmlError, match=r"'general\.alignment' is 16: weights can be mapped only at multiples of 32"
    ):
        load(path)
    assert load(write_zeros(tmp_path / "b.gguf", SMALL, layout(SMALL), alignment=128)).buffers[0].size > 0


TINY = Shape(n_layer=1, n_embd=32, n_head=2, n_head_kv=1, n_ff=32, n_vocab=2)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_mutated_model_loads_or_says_why(tmp_path: Path, data: st.DataObject) -> None:
    path = write_zeros(tmp_path / "tiny.gguf", TINY, layout(TINY))
    raw = bytearray(path.read_bytes()[: read_gguf(path).data_offset])
    rest = path.stat().st_size - len(raw)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(24, len(raw) - 8))
        size = data.draw(st.sampled_from([1, 4, 8]))
        value = data.draw(st.sampled_from([0, 1, 2, 3, 8, 31, 255, 2**16, 2**31, 2**32 - 1, 2**63, 2**64 - 1]))
        raw[at : at + size] = (value % 256**size).to_bytes(size, "little")
    path.write_bytes(bytes(raw) + bytes(rest))
    try:
        file = read_gguf(path)
        Vocab.from_gguf(file)
        weights = load_weights(file, HParams.from_gguf(file))
    except VizggmlError:
        return
    for tensor in weights.tensors.values():
        assert tensor.array().nbytes == tensor.nbytes
