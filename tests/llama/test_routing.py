"""Which experts the tokens go to, as it is told: what a soft max of the logits of the gate says, computed by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.llama.building import listening
from tests.llama.made import Shape, write
from vizggml.events import ExpertsRouted, NodeEnd
from vizggml.ggml.tensor import Tensor
from vizggml.llama.batch import Batch
from vizggml.llama.model import Model, load_model

SHAPE = Shape("qwen3moe", n_layer=2, n_expert=6, n_expert_used=2, type="F16")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return load_model(write(tmp_path_factory.mktemp("routing") / "m.gguf", SHAPE, seed=4))


@pytest.mark.parametrize("n_gpu_layers", [0, 2])
def test_each_layer_tells_where_its_tokens_go(model: Model, n_gpu_layers: int) -> None:
    ctx = model.context(n_ctx=64, n_threads=2, n_gpu_layers=n_gpu_layers)
    logits = {}

    def keep(t: Tensor) -> None:
        if t.name.startswith("ffn_moe_logits-"):
            logits[int(t.name[-1])] = t.array()[0, 0].astype(np.float64)

    ctx.after_node = keep
    with listening(ExpertsRouted, NodeEnd) as seen:
        ctx.decode(Batch.of([3, 1, 4, 1, 5], 0, outputs=[1, 4]))
    ends = {e.seq: e for e in seen if isinstance(e, NodeEnd)}
    told = [e for e in seen if isinstance(e, ExpertsRouted)]
    assert [(e.layer, e.positions) for e in told] == [(0, (0, 1, 2, 3, 4)), (1, (1, 4))]
    for e in told:
        experts, weights = (np.reshape(values, (e.n_tokens, 2)) for values in (e.experts, e.weights))
        assert np.array_equal(experts, np.argsort(-logits[e.layer], axis=1)[:, :2])
        chosen = np.exp(np.take_along_axis(logits[e.layer], experts, 1))
        assert weights == pytest.approx(chosen / chosen.sum(1, keepdims=True), rel=1e-5)
        assert (e.n_expert, e.n_used, e.n_read) == (6, 2, len(set(e.experts)))
        # 6 experts, each of three matrices of 64 x 96 values of 2 bytes
        assert (e.nbytes, e.nbytes_read) == (6 * 3 * 64 * 96 * 2, e.n_read * 3 * 64 * 96 * 2)
        assert (ends[e.cause].tensor, e.node) == (e.tensor, e.tensor)


def test_nothing_is_told_of_models_without_experts(small: Path) -> None:
    ctx = load_model(small).context(n_ctx=64, n_threads=1)
    with listening(ExpertsRouted) as seen:
        ctx.decode([1, 2])
    assert seen == []
