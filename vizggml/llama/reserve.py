"""The memory that a context needs, reserved before anything is decoded: for the worst graphs that may come.

A context that computes and a plan that only counts are made of this; they differ in the buffer types they are given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from vizggml.ggml.buffer import BufferType
from vizggml.ggml.sched import Backend, BackendSched
from vizggml.llama.architectures import gemma3, llama, qwen3, qwen3moe
from vizggml.llama.batch import Ubatch, reserve
from vizggml.llama.cparams import CParams
from vizggml.llama.graph import GraphBuilder, GraphResult
from vizggml.llama.graph_input import GraphParams
from vizggml.llama.hparams import HParams
from vizggml.llama.kv_cache_iswa import AnyMemoryContext, create_memory
from vizggml.llama.loader import Weights
from vizggml.llama.offload import Named, first_layer, keep_norms

ARCHITECTURES: dict[str, Callable[[GraphBuilder], None]] = {
    "llama": llama.build,
    "qwen3": qwen3.build,
    "qwen3moe": qwen3moe.build,
    "gemma3": gemma3.build,
}


class Reservation:
    """What `llama_context`, src/llama-context.cpp, sets up: the cache, the scheduler, the graph to reserve with.

    `kv_bufts` is where each layer's cache lies, or all of them.
    """

    def __init__(
        self,
        hparams: HParams,
        weights: Weights,
        cparams: CParams,
        backends: Sequence[Backend],
        kv_bufts: BufferType | Sequence[BufferType],
    ) -> None:
        self.hparams = hparams
        self.weights = weights
        self.cparams = cparams
        self.memory = create_memory(hparams, cparams, kv_bufts)
        self.max_nodes = max(1024, 8 * len(weights))
        self.sched = BackendSched(backends, self.max_nodes)
        self.gf_res_reserve = GraphResult(self.max_nodes)
        self.layer_backends: list[Backend] = []

    def output_size(self, n_outputs: int) -> int:
        """Bytes of the logits of `n_outputs` tokens, of one a sequence at least. `llama_context::output_reserve`."""
        return self.hparams.n_vocab * max(n_outputs, self.cparams.n_seq_max) * 4

    def sched_reserve(self) -> None:
        """Plan the worst graphs, so that no later one needs more: a prompt, a token, and the prompt again.

        `llama_context::sched_reserve`, src/llama-context.cpp.
        """
        cp = self.cparams
        n_tokens = min(cp.n_ctx, cp.n_ubatch)
        n_outputs = min(n_tokens, cp.n_outputs_max)
        self.graph_reserve(n_tokens, n_outputs)
        self.graph_reserve(cp.n_seq_max, cp.n_seq_max)
        self.graph_reserve(n_tokens, n_outputs)

    def graph_reserve(self, n_tokens: int, n_outputs: int) -> None:
        """Build a graph that sees the whole cache, and reserve for it. `llama_context::graph_reserve`."""
        n_seqs = self.cparams.n_seq_max
        n_seq_tokens = -(-n_tokens // n_seqs)
        self.sched.reset()
        ubatch = reserve(n_seq_tokens, n_seqs, n_outputs)
        mctx = self.memory.init_full()
        res = self.gf_res_reserve
        res.reset()
        self.build_graph(res, self.graph_params(ubatch, mctx, n_outputs))
        self.sched.reserve(res.gf)

    def graph_params(self, ubatch: Ubatch, mctx: AnyMemoryContext, n_outputs: int) -> GraphParams:
        """What a graph is built from, and what a later ubatch must agree with to reuse it.

        `llama_context::graph_params`, src/llama-context.cpp.
        """
        return GraphParams(self.hparams.architecture, self.hparams, self.cparams, ubatch, mctx, n_outputs)

    def named(self, ubatch: Ubatch) -> Named | None:
        """What is to be done with each tensor that is named. `llama_context::graph_get_cb`, src/llama-context.cpp."""
        if not self.layer_backends:
            return None
        full = first_layer(self.hparams.n_layer, self.cparams.n_gpu_layers) == 0
        return keep_norms(self.sched, self.layer_backends, ubatch.n_tokens, full)

    def build_graph(self, res: GraphResult, params: GraphParams) -> None:
        """Record the architecture's graph for a ubatch into `res`; nothing is allocated.

        `llama_model::build_graph`, src/llama-model.cpp.
        """
        ARCHITECTURES[params.arch](GraphBuilder(params, self.weights, res, self.named(params.ubatch)))
        res.set_outputs()
