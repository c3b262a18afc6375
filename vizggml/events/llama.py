"""The events of what llama.cpp adds to ggml: weights, the KV cache, graph reuse, batches and tokens."""

from __future__ import annotations

from vizggml.events.bus import BufferId, CacheId, Event, GraphId, TensorId, event


@event(
    "model",
    "llama_model_loader::load_all_data, src/llama-model-loader.cpp",
    "vizggml/llama/loader.py: load_weights",
)
class WeightsPlaced(Event):
    """A weight tensor points into the mapped file, or was copied into a buffer."""

    tensor: TensorId
    buffer: BufferId
    offset: int
    size: int
    file_offset: int
    backend: str


@event("KV", "llama_kv_cache::llama_kv_cache, src/llama-kv-cache.cpp", "vizggml/llama/kv_cache.py: KVCache.__init__")
class CacheCreated(Event):
    """A KV cache was made. `k`, `v` are the tensors of each of `layers`, empty where these are 0 to `n_layer` - 1.

    `n_swa` is how many positions a token sees in a cache for sliding windows, 0 for all.
    """

    cache: CacheId
    n_layer: int
    n_cells: int
    type_k: str
    type_v: str
    k: tuple[TensorId, ...]
    v: tuple[TensorId, ...]
    nbytes_k: int
    nbytes_v: int
    layers: tuple[int, ...] = ()
    n_swa: int = 0


@event("KV", "llama_kv_cache::find_slot, src/llama-kv-cache.cpp", "vizggml/llama/kv_cache.py: KVCache.find_slot")
class CellsFound(Event):
    """The cells that a ubatch's tokens will have."""

    cache: CacheId
    head: int
    n_tokens: int
    cells: tuple[int, ...]
    n_kv: int


@event("KV", "llama_kv_cache::apply_ubatch, src/llama-kv-cache.cpp", "vizggml/llama/kv_cache.py: KVCache.apply_ubatch")
class CellSet(Event):
    """The cell holds a token of the sequence, at this position."""

    cache: CacheId
    cell: int
    pos: int
    seq_id: int


@event("KV", "llama_kv_cells::seq_rm, src/llama-kv-cells.h", "vizggml/llama/kv_cache.py: KVCache.seq_rm")
class CellFreed(Event):
    """The cell holds the sequence no longer."""

    cache: CacheId
    cell: int
    pos: int
    seq_id: int


@event(
    "KV",
    "llama_kv_cache::seq_rm, seq_cp, seq_keep, seq_add, src/llama-kv-cache.cpp",
    "vizggml/llama/kv_cache.py: KVCache.seq_rm, seq_cp, seq_keep, seq_add",
)
class SeqOp(Event):
    """The cells of a sequence, or a range of them, were changed. `op` is add, copy, keep, remove or shift."""

    cache: CacheId
    op: str
    seq_id: int
    seq_dst: int
    p0: int
    p1: int
    delta: int


@event("KV", "llama_kv_cache::cpy_k, cpy_v, src/llama-kv-cache.cpp", "vizggml/llama/context.py: Context.process_ubatch")
class KvWritten(Event):
    """A `set_rows` put new rows into the cache. `which` is K or V."""

    cache: CacheId
    tensor: TensorId
    which: str
    layer: int
    cell: int
    n_cells: int
    n_head_kv: int
    nbytes: int
    type: str


@event("compute", "llm_graph_context::build_moe_ffn, src/llama-graph.cpp", "vizggml/llama/experts.py: moe_ffn")
class ExpertsRouted(Event):
    """The tokens of a layer have their experts: `experts` and `weights` hold `n_used` for each token, in their order.

    `tensor` holds the weights. `n_read` experts have a token at least; of the `nbytes` of all experts' matrices in this
    layer theirs are `nbytes_read`.
    """

    tensor: TensorId
    layer: int
    n_tokens: int
    n_expert: int
    n_used: int
    n_read: int
    nbytes: int
    nbytes_read: int
    positions: tuple[int, ...]
    experts: tuple[int, ...]
    weights: tuple[float, ...]


@event("KV", "llama_kv_cache::apply_ubatch, src/llama-kv-cache.cpp", "vizggml/llama/kv_cache.py: KVCache.apply_ubatch")
class WindowEvicted(Event):
    """A cell outside the sliding window was given to a new token."""

    cache: CacheId
    cell: int
    pos: int
    seq_id: int


@event(
    "KV",
    "llama_context::state_save_file, state_seq_save_file, src/llama-context.cpp",
    "vizggml/llama/state.py: save",
)
class StateSaved(Event):
    """The cache was saved to a file. `seq_id` -1: the cells of every sequence."""

    seq_id: int
    n_tokens: int
    n_cells: int
    nbytes: int


@event(
    "KV",
    "llama_context::state_load_file, state_seq_load_file, src/llama-context.cpp",
    "vizggml/llama/state.py: load",
)
class StateLoaded(Event):
    """A saved state was read. `seq_id` -1: the cells of every sequence."""

    seq_id: int
    n_tokens: int
    n_cells: int
    nbytes: int


@event(
    "reuse",
    "llm_graph_params::allow_reuse, llm_graph_input_i::can_reuse, src/llama-graph.h",
    "vizggml/llama/graph_input.py: can_reuse",
)
class ReuseChecked(Event):
    """One condition: `owner` is params or the input's class, `had` is what the standing graph was built for."""

    graph: GraphId
    owner: str
    condition: str
    had: str
    needs: str
    ok: bool


@event("reuse", "llm_graph_result::can_reuse, src/llama-graph.cpp", "vizggml/llama/context.py: Context.process_ubatch")
class ReuseDecided(Event):
    """Whether the standing graph serves for this ubatch, or one is built anew."""

    graph: GraphId
    reused: bool
    why: str


@event("tokens", "llama_tokenize, src/llama-vocab.cpp", "vizggml/llama/vocab.py: Vocab.tokenize")
class Tokenized(Event):
    """A text became tokens."""

    text: str
    ids: tuple[int, ...]
    pieces: tuple[str, ...]


@event("tokens", "llama_kv_cache::apply_ubatch, src/llama-kv-cache.cpp", "vizggml/llama/context.py: Context.snapshot")
class TokensHeld(Event):
    """The tokens of sequence 0 in the cache, by rising position, and one that was sampled and not yet read.

    Only a snapshot tells it.
    """

    positions: tuple[int, ...]
    ids: tuple[int, ...]
    pieces: tuple[str, ...]


@event("tokens", "llama_context::decode, src/llama-context.cpp", "vizggml/llama/context.py: Context.decode")
class DecodeBegin(Event):
    """A batch is to be computed."""

    index: int
    n_tokens: int
    n_outputs: int
    pos: int


@event("tokens", "llama_batch_allocr::split_simple, src/llama-batch.cpp", "vizggml/llama/batch.py: split")
class UbatchSplit(Event):
    """A part of the batch that one graph computes."""

    index: int
    n_tokens: int
    n_outputs: int
    pos: int
    tokens: tuple[int, ...]


@event("tokens", "llama_context::decode, src/llama-context.cpp", "vizggml/llama/context.py: Context.decode")
class LogitsReady(Event):
    """The highest logits of one output row. `exp(logit - log_sum)` is a token's probability at temperature 1."""

    pos: int
    ids: tuple[int, ...]
    pieces: tuple[str, ...]
    logits: tuple[float, ...]
    log_sum: float


@event("tokens", "llama_sampler_apply, src/llama-sampler.cpp", "vizggml/llama/sampling.py: SamplerChain.sample")
class SamplerApplied(Event):
    """One sampler of the chain dropped candidates, changed their logits, or chose."""

    sampler: str
    param: float
    n_before: int
    n_after: int


@event("tokens", "llama_sampler_sample, src/llama-sampler.cpp", "vizggml/llama/context.py: Context.generate")
class TokenSampled(Event):
    """The next token is chosen."""

    token: int
    piece: str
    p: float
    pos: int


@event("tokens", "llama_context::decode, src/llama-context.cpp", "vizggml/llama/context.py: Context.decode")
class DecodeEnd(Event):
    """The batch is computed; `ns` is how long it took."""

    index: int
    ns: int
