"""The last layers of a model on a device: their weights are copied there, and their part of the cache lies there.

The layers before, the token embedding and the inputs stay with the CPU. The output counts as one more layer, and one
that is tied to the token embedding is copied, so that each backend has its own.
"""

from __future__ import annotations

from collections.abc import Callable

from vizggml.events import WeightsPlaced, bus
from vizggml.ggml.backend import Backend
from vizggml.ggml.buffer import BufferType, alloc_ctx_tensors_from_buft
from vizggml.ggml.context import TENSOR_OVERHEAD, Context
from vizggml.ggml.sched import BackendSched
from vizggml.ggml.tensor import Tensor
from vizggml.llama.loader import Weights

Named = Callable[[Tensor, str, int], None]
"""Called with each tensor that a graph's builder names, the name and the layer."""

SMALL_BATCH = 32


def first_layer(n_layer: int, n_gpu_layers: int) -> int:
    """The first layer on the device, `n_layer` if only the output is; -1 means all. `load_tensors`, llama-model.cpp."""
    return 0 if n_gpu_layers < 0 else max(n_layer + 1 - n_gpu_layers, 0)


def is_offloaded(name: str, first: int) -> bool:
    """Whether a weight goes with the layers from `first` on."""
    return int(name.split(".")[1]) >= first if name.startswith("blk.") else name.startswith(("output", "cls"))


def offload(weights: Weights, first: int, buft: BufferType, backend: str) -> Weights:
    """The weights again, those of the layers from `first` on copied into `buft`.

    VizggmlError with the tensors that do not fit.
    """
    names = [name for name in weights if is_offloaded(name, first)]
    sources = {name: weights[name] for name in names}
    if weights.output.name not in sources:
        sources["output"] = weights.output
    ctx = Context(TENSOR_OVERHEAD * (len(sources) + 1), no_alloc=True)
    made = {name: ctx.new_tensor(t.type, t.ne, t.name) for name, t in sources.items()}
    buffers = alloc_ctx_tensors_from_buft(ctx, buft, "weights")
    for name, t in made.items():
        t.set(sources[name].array())
        if bus.on and t.buffer is not None and t.data is not None:
            offset = weights.file_offsets.get(t.name, -1)
            bus.emit(WeightsPlaced(t.id, t.buffer.id, t.data.offset, t.nbytes, offset, backend))
    output = made.pop("output", None) or made[weights.output.name]
    return Weights(ctx, {**weights.tensors, **made}, output, [*weights.buffers, *buffers], weights.file_offsets)


def keep_norms(sched: BackendSched, layers: list[Backend], n_tokens: int, full: bool) -> Named:
    """The first norm of each layer is computed where the layer is, not where the one before ended.

    `llama_context::graph_get_cb`, src/llama-context.cpp: only for small batches, or with all layers on the device.
    """

    def named(t: Tensor, name: str, il: int) -> None:
        if il >= 0 and name == "norm" and (n_tokens < SMALL_BATCH or full):
            sched.set_tensor_backend(t, layers[il])

    return named
