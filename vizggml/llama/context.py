"""A context: one running conversation with a model. It owns the cache, the compute buffer and the standing graph.

`decode` is the whole loop: the batch is split into ubatches, each finds its cells, gets a graph (the standing one, if
it still fits), has its inputs written, is computed, and leaves its logits in the output buffer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vizggml.errors import VizggmlError
from vizggml.events import (
    NO_SEQ,
    NOTHING_TOLD,
    DecodeBegin,
    DecodeEnd,
    Event,
    LogitsReady,
    NodeEnd,
    ReuseChecked,
    ReuseDecided,
    Seq,
    TokensHeld,
    bus,
)
from vizggml.ggml import ops
from vizggml.ggml.buffer import SIZE_MAX, Buffer, cpu_buffer_type
from vizggml.ggml.cgraph import Graph
from vizggml.ggml.context import Context as ArenaContext
from vizggml.ggml.device import DeviceBackend
from vizggml.ggml.sched import CPUBackend
from vizggml.ggml.tensor import Tensor
from vizggml.ggml.types import F32, I32
from vizggml.llama import state
from vizggml.llama.architectures.llama import rope_factors
from vizggml.llama.batch import Batch, Ubatch, check, reserve, split
from vizggml.llama.cparams import ContextParams, CParams
from vizggml.llama.experts import routes
from vizggml.llama.generation import LEAST_ROOM, Generation, Token, common_prefix
from vizggml.llama.graph import GraphResult, rope_freqs
from vizggml.llama.graph_input import GraphParams, InputKShift, checked
from vizggml.llama.hadamard import mul_mat_hadamard
from vizggml.llama.hparams import HParams
from vizggml.llama.kv_cache import KVCache
from vizggml.llama.kv_cache_iswa import AnyMemoryContext
from vizggml.llama.loader import Weights
from vizggml.llama.offload import first_layer, offload
from vizggml.llama.reserve import Reservation
from vizggml.llama.sampling import DEFAULT_SEED, default_chain
from vizggml.llama.vocab import Vocab

LOGITS_SHOWN = 10

Hook = Callable[[Tensor], None]


def _computable(cparams: CParams) -> CParams:
    """VizggmlError for what can be planned and not computed."""
    if not cparams.kv_unified and cparams.n_seq_max > 1:
        raise VizggmlError(
            f"n_seq_max {cparams.n_seq_max} with kv_unified off: streams of their own are planned, not computed"
        )
    return cparams


class Context(Reservation):
    """One running conversation: the cache, the compute buffer, the standing graph and the logits of the last batch.

    `llama_context`, src/llama-context.cpp. `before_node` and `after_node` are called with each tensor that is computed.
    `n_decoded` counts decodes, `n_reused` the graphs that served again; `stopped` says how `generate` ended.
    """

    def __init__(self, hparams: HParams, vocab: Vocab, weights: Weights, params: ContextParams) -> None:
        self.vocab = vocab
        self.stopped = ""
        self.generations = 0
        self.sampled: tuple[int, int] | None = None
        """Position and id of the token that was sampled last."""
        self.before_node: Hook | None = None
        self.after_node: Hook | None = None
        cp = _computable(CParams.resolve(params, hparams))
        self.backend = CPUBackend(cp.n_threads, textbook=cp.textbook, fast=cp.fast)
        self.device: DeviceBackend | None = None
        backends: list[CPUBackend] = [self.backend]
        of_layer = backends * hparams.n_layer
        if cp.n_gpu_layers:
            capacity = cp.device_memory or SIZE_MAX
            self.device = DeviceBackend("DEV0", cp.n_threads, capacity=capacity, textbook=cp.textbook, fast=cp.fast)
            first = first_layer(hparams.n_layer, cp.n_gpu_layers)
            weights = offload(weights, first, self.device.buft, self.device.name)
            backends.insert(0, self.device)
            of_layer[first:] = [self.device] * len(of_layer[first:])
        super().__init__(hparams, weights, cp, backends, [backend.buft for backend in of_layer])
        self.layer_backends = [*of_layer] if self.device is not None else []
        self.buf_output: Buffer | None = None
        self.n_outputs = 0
        self.output_reserve(cp.n_seq_max)
        self.gf_res_prev: list[GraphResult | None] = [None, None]
        self.gf_res_prev_active: GraphResult | None = None
        self.n_decoded = 0
        self.n_reused = 0
        self.told_logits = self._told_verdict = NOTHING_TOLD
        bus.standing.add(self)
        if bus.on:
            bus.acts(self)
        self.sched_reserve()

    def snapshot(self) -> Iterator[Event]:
        """The text so far; its cache, graphs and buffers tell of themselves."""
        held = self.memory.caches[-1].cells.tokens_of(0)
        if held:
            if self.sampled is not None and self.sampled[0] == held[-1][0] + 1:
                held.append(self.sampled)
            positions, ids = zip(*held, strict=True)
            yield TokensHeld(positions, ids, tuple(map(self.vocab.token_to_piece, ids)))

    def describe(self) -> dict[str, object]:
        """What a trace's header says of it."""
        return {"params": asdict(self.cparams)}

    # Memory.

    def output_reserve(self, n_outputs: int) -> None:
        """Room for the logits of `n_outputs` tokens. `llama_context::output_reserve`, src/llama-context.cpp."""
        size = self.output_size(n_outputs)
        if self.buf_output is None or self.buf_output.size < size:
            if self.buf_output is not None:
                self.buf_output.free()
            self.buf_output = cpu_buffer_type().alloc_buffer(size)
        self._logits = self.buf_output.memory[:size].view(np.float32).reshape(-1, self.hparams.n_vocab)
        self.n_outputs = 0

    def graph_reserve(self, n_tokens: int, n_outputs: int) -> None:
        """Reserve for a graph of so many tokens and outputs; no standing graph is trusted any more."""
        self._forget_graphs()
        super().graph_reserve(n_tokens, n_outputs)

    def _forget_graphs(self) -> None:
        for res in self.gf_res_prev:
            if res is not None:
                res.reset()
        self.gf_res_prev_active = None

    @property
    def compute_buffer_size(self) -> int:
        """Bytes of the CPU's compute buffer. `ggml_backend_sched_get_buffer_size`, ggml/src/ggml-backend.cpp."""
        return self.sched.get_buffer_size(self.backend)

    # Graphs.

    def step_graph(self, n_tokens: int = 1, n_outputs: int | None = None) -> Graph:
        """The graph of a step of `n_tokens` that sees the whole cache, built anew and not allocated: to look at.

        `n_outputs` is how many of the tokens want logits, None for all. VizggmlError beyond the ubatch.
        """
        limit = min(self.cparams.n_ctx, self.cparams.n_ubatch)
        if not 1 <= n_tokens <= limit:
            raise VizggmlError(f"a step of {n_tokens} tokens: one ubatch holds 1 to {limit}")
        outputs = n_tokens if n_outputs is None else n_outputs
        mctx = self.memory.init_full()
        res = GraphResult(self.max_nodes)
        self.build_graph(res, self.graph_params(reserve(n_tokens, 1, outputs), mctx, outputs))
        return res.gf

    def get_gf_res_prev(self, n_outputs: int) -> GraphResult:
        """The standing result for ubatches with or without outputs. `llama_context::get_gf_res_prev`."""
        i = int(n_outputs > 0)
        res = self.gf_res_prev[i]
        if res is None:
            res = self.gf_res_prev[i] = GraphResult(self.max_nodes)
        return res

    def process_ubatch(self, ubatch: Ubatch, mctx: AnyMemoryContext) -> GraphResult:
        """Compute one ubatch. `llama_context::process_ubatch`, src/llama-context.cpp."""
        mctx.apply(ubatch)
        res = self.get_gf_res_prev(ubatch.n_outputs)
        params = self.graph_params(ubatch, mctx, ubatch.n_outputs)
        if self.can_reuse(res, params):
            self.n_reused += 1
        else:
            self.gf_res_prev_active = None
            with bus.because(bus.recall(self._told_verdict)):
                res.reset()
                self.sched.reset()
                self.build_graph(res, params)
                self.sched.alloc_graph(res.gf)
            self.gf_res_prev_active = res
        res.set_inputs(ubatch)
        with self._telling_after(res, ubatch, mctx):
            self.graph_compute(res)
        return res

    def can_reuse(self, res: GraphResult, params: GraphParams) -> bool:
        """Whether the standing graph serves; the verdict is told."""
        refused: list[Seq] = []

        def hear(event: Event) -> None:
            if isinstance(event, ReuseChecked) and not event.ok:
                refused.append(event.seq)

        with bus.overhear(ReuseChecked, hear):
            active, reused, why = self._verdict(res, params)
        if bus.on:
            cause = refused[0] if refused else None
            self._told_verdict = bus.remember(bus.emit(ReuseDecided(active.gf.id, reused, why), cause=cause))
        return reused

    def _verdict(self, res: GraphResult, params: GraphParams) -> tuple[GraphResult, bool, str]:
        """The result that was looked at, whether it serves, and why."""
        active = self.gf_res_prev_active
        if active is None or active.params is None:
            return res, False, "no graph stands"
        if not checked(active.gf.id, "context", [("has outputs", active.params.n_outputs > 0, params.n_outputs > 0)]):
            return active, False, "the standing graph is the other one"
        reused = res.can_reuse(params)
        return active, reused, "all conditions hold" if reused else "a condition does not hold"

    def graph_compute(self, res: GraphResult) -> None:
        """Compute a graph that is allocated and has its inputs, on the backends that its splits are for.

        `llama_context::graph_compute`, src/llama-context.cpp.
        """
        for backend in (self.backend, self.device):
            if backend is not None:
                backend.before_node, backend.after_node = self.before_node, self.after_node
        self.sched.graph_compute(res.gf)

    @contextmanager
    def _telling_after(self, res: GraphResult, ubatch: Ubatch, mctx: AnyMemoryContext) -> Iterator[None]:
        """While somebody listens, tell what a computed node did: its writes into the cache, its tokens' experts."""
        tell: dict[int, Callable[[], Iterable[Event]]] = {}
        if bus.on:
            for t, il, which in res.written():
                of_layer = mctx.of_layer(il)
                tell[t.id] = partial(of_layer.kv.written, t, of_layer.slot, il, which)
            for route in routes(res.gf.nodes):
                tell[route.weights.id] = partial(route.told, ubatch)

        def ended(event: Event) -> None:
            if isinstance(event, NodeEnd) and event.thread == 0 and event.tensor in tell:
                for told in tell[event.tensor]():
                    bus.emit(told, cause=event.seq)

        with bus.overhear(NodeEnd, ended):
            yield

    # Decoding.

    @property
    def n_past(self) -> int:
        """The position that the next token of sequence 0 takes."""
        return self.memory.seq_pos_max(0) + 1

    @property
    def logits(self) -> NDArray[np.float32]:
        """The logits of the last batch, one row for each output. `llama_get_logits`, src/llama-context.cpp.

        The rows are the output buffer itself: the next decode writes over them.
        """
        return self._logits[: self.n_outputs]

    def decode(self, batch: Batch | Sequence[int], outputs: Sequence[int] | None = None) -> NDArray[np.float32]:
        """Compute a batch; its logits (see `logits`). `llama_context::decode`, src/llama-context.cpp.

        Token ids alone follow what sequence 0 holds; `outputs` are then the indices of those whose logits are wanted,
        None for the last one. VizggmlError if the batch is malformed or finds no room; then nothing of the ubatch that
        failed stays in the cache.
        """
        if not isinstance(batch, Batch):
            batch = Batch.of(batch, self.n_past, outputs)
        cp = self.cparams
        cells, n_seq = self.memory.caches[-1].cells, cp.n_seq_max
        first, last = map(cells.seq_pos_min, range(n_seq)), map(cells.seq_pos_max, range(n_seq))
        check(batch, self.hparams.n_vocab, n_seq, [*last], [*first])
        if len(batch) > cp.n_batch:
            raise VizggmlError(f"batch: {len(batch)} tokens, the limit is n_batch {cp.n_batch}")
        if bus.on:
            bus.acts(self)
        begin, index = time.perf_counter_ns(), self.n_decoded
        seq = bus.emit(DecodeBegin(index, len(batch), batch.n_outputs, batch.pos[0])) if bus.on else NO_SEQ
        with bus.because(seq):
            self._decode(batch)
            if bus.on:
                self._tell_logits(batch)
        self.n_decoded += 1
        if bus.on:
            bus.emit(DecodeEnd(index, time.perf_counter_ns() - begin), cause=seq)
        return self.logits

    def _decode(self, batch: Batch) -> None:
        self.memory_update()
        ubatches = list(split(batch, self.cparams.n_ubatch))
        mctxs: Sequence[AnyMemoryContext] | None = self.memory.init_batch(ubatches)
        if mctxs is None:
            free = " and ".join(f"{kv.n_cells - kv.cells.used} of {kv.n_cells}" for kv in self.memory.caches)
            raise VizggmlError(f"batch: {len(batch)} tokens, the cache has {free} free")
        self.output_reserve(batch.n_outputs)
        done = 0
        for ubatch, mctx in zip(ubatches, mctxs, strict=True):
            try:
                res = self.process_ubatch(ubatch, mctx)
            except BaseException:
                self._undo(ubatch)
                raise
            n = ubatch.n_outputs
            if n and res.t_logits is not None:
                self._logits[done : done + n] = res.t_logits.array()[0, 0]
            done += n
        self.n_outputs = done

    def _undo(self, ubatch: Ubatch) -> None:
        """Take a ubatch that failed or was interrupted out of the cache, and trust no graph."""
        self.gf_res_prev_active = None
        for s in {s for seqs in ubatch.seq_id for s in seqs}:
            self.memory.seq_rm(s, min(p for p, seqs in zip(ubatch.pos, ubatch.seq_id, strict=True) if s in seqs), -1)

    def _tell_logits(self, batch: Batch) -> None:
        positions = [pos for pos, output in zip(batch.pos, batch.output, strict=True) if output]
        for pos, row in zip(positions, self.logits, strict=True):
            top = np.argsort(-row, kind="stable")[:LOGITS_SHOWN]
            pieces = tuple(self.vocab.token_to_piece(int(i)) for i in top)
            highest = float(row[top[0]])
            with np.errstate(invalid="ignore"):
                log_sum = highest + float(np.log(np.exp(row - highest, dtype=np.float64).sum()))
            event = LogitsReady(pos, tuple(map(int, top)), pieces, tuple(map(float, row[top])), log_sum)
            self.told_logits = bus.remember(bus.emit(event))

    def memory_update(self) -> None:
        """Turn the keys of moved positions to match. `llama_context::memory_update`, src/llama-context.cpp."""
        moved, cp = [kv for kv in self.memory.caches if kv.cells.has_shift], self.cparams
        if not moved:
            return
        self._forget_graphs()
        for kv in moved:
            self.sched.reset()
            res = self.gf_res_reserve
            res.reset()
            inp = self.build_graph_shift(res, kv)
            self.sched.alloc_graph(res.gf)
            inp.set_input()
            self.graph_compute(res)
            kv.cells.reset_shift()
        n_tokens = min(cp.n_ctx, cp.n_ubatch)
        self.graph_reserve(n_tokens, min(n_tokens, cp.n_outputs_max))

    def build_graph_shift(self, res: GraphResult, kv: KVCache) -> InputKShift:
        """Rotate every cell's key by how far its position was moved. `llama_kv_cache::build_graph_shift`."""
        hp, cp = self.hparams, self.cparams
        n_cells = len(kv.cells)
        k_shift = res.ctx.new_tensor(I32, (n_cells,)).set_input()
        k_rot = kv.build_input_k_rot(res.ctx)
        for il, k in zip(kv.layers, kv.k, strict=True):
            nb1, nb2 = k.type.row_size(hp.n_embd_head_k), k.type.row_size(k.ne[0])
            view = ops.view_3d(res.ctx, k, hp.n_rot, hp.n_head_kv[il], n_cells, nb1, nb2, 0)
            freqs = rope_freqs(hp, cp, il)
            yarn = cp.yarn_ext_factor, cp.yarn_attn_factor, cp.yarn_beta_fast, cp.yarn_beta_slow
            factors = rope_factors(self.weights, cp, hp)
            rope = hp.n_rot, hp.rope_type, cp.n_ctx_orig_yarn, *freqs, *yarn
            res.gf.build_forward_expand(build_rope_shift(res.ctx, view, k_shift, k_rot, factors, *rope))
        return InputKShift(kv, k_shift, k_rot)

    # Generating.

    def generate(
        self,
        prompt: str | Sequence[int],
        max_tokens: int = 128,
        temp: float = 0.8,
        top_k: int = 40,
        top_p: float = 0.95,
        min_p: float = 0.05,
        seed: int = DEFAULT_SEED,
        keep: bool = False,
        past: Sequence[int] = (),
        n_keep: int | None = None,
        ignore_eos: bool = False,
    ) -> Iterator[Token]:
        """Forget what the cache holds, read the prompt, and yield token after token.

        With `keep` nothing is forgotten: the prompt follows what sequence 0 holds. `past` says which tokens sequence 0
        holds (`load_state` tells): what the prompt begins with is kept, and not read again. It ends after `max_tokens`,
        at a token that ends a text (not with `ignore_eos`), or when the context is full: `stopped` says which. With
        `n_keep` a full context makes room: the first `n_keep` tokens stay, and of the rest the newer half.
        `temp` 0 takes the likeliest token each time. VizggmlError if the prompt does not fit into the context.
        """
        chain, n_ctx = default_chain(temp, top_k, top_p, min_p, seed), self.cparams.n_ctx
        held = self.n_past if keep else 0
        tokens = self.vocab.tokenize(prompt, add_special=not held) if isinstance(prompt, str) else list(prompt)
        if not tokens:
            raise VizggmlError("prompt: it has no tokens")
        if held + len(tokens) > n_ctx:
            more = f" after the {held} that it has" if held else ""
            raise VizggmlError(f"prompt: {len(tokens)} tokens{more}, the context holds {n_ctx} (n_ctx)")
        if n_keep is not None and not 0 <= n_keep <= n_ctx - LEAST_ROOM:
            raise VizggmlError(f"n_keep {n_keep}: it must be from 0 to {n_ctx - LEAST_ROOM}, the context holds {n_ctx}")
        self.generations += 1
        self.stopped = ""
        if not keep:
            held = self._keep_prefix(tokens, past)
            tokens = tokens[held:]
        told = self.vocab.told if isinstance(prompt, str) else NOTHING_TOLD
        number = self.generations
        return Generation(self, number, tokens, held, max_tokens, chain, told, n_keep, ignore_eos).run()

    def _keep_prefix(self, tokens: Sequence[int], past: Sequence[int]) -> int:
        """Forget all but what sequence 0 holds of `tokens`, up to the last one; how many that is."""
        held = min(common_prefix(tokens, past), len(tokens) - 1)
        if not held or not all(kv.holds(0, held) for kv in self.memory.caches):
            self.memory.clear()
            return 0
        if self.cparams.n_seq_max > 1:
            self.memory.seq_keep(0)
        self.memory.seq_rm(0, held, -1)
        return held

    # State in files.

    def save_state(
        self, path: state.FilePath, tokens: Sequence[int] = (), seq_id: int = state.ALL, newer: bool = False
    ) -> None:
        """Write what the cache holds to a file that llama.cpp reads, with the tokens that led there.

        All sequences, or one; `newer` for a llama.cpp whose files are of the next version. `llama_state_save_file`,
        `llama_state_seq_save_file`, src/llama-context.cpp.
        """
        self.memory_update()
        state.save(path, self.hparams, self.memory.caches, tokens, seq_id, newer)

    def load_state(self, path: state.FilePath, seq_id: int = state.ALL) -> list[int]:
        """Read such a file, llama.cpp's or ours; the tokens that it was saved with. No logits come with it.

        `llama_state_load_file`, `llama_state_seq_load_file`, src/llama-context.cpp. VizggmlError if it is damaged, or
        from another model, mode or type of cache; then nothing is changed.
        """
        tokens = state.load(path, self.hparams, self.memory.caches, seq_id)
        self.generations += 1
        self.n_outputs = 0
        return tokens


def build_rope_shift(
    ctx: ArenaContext,
    cur: Tensor,
    shift: Tensor,
    rot: Tensor | None,
    factors: Tensor | None,
    *rope: Any,
) -> Tensor:
    """Turn keys by how far they were moved: quantized ones are decoded, turned and encoded again.

    `llama_kv_cache::build_rope_shift`, src/llama-kv-cache.cpp, which has no case for quantized heads without rotation.
    """
    turn: Callable[..., Tensor] = ops.rope_ext
    if not cur.type.is_quantized:
        return turn(ctx, cur, shift, factors, *rope, in_place=True)
    tmp = ops.cast(ctx, cur, F32)
    tmp = tmp if rot is None else mul_mat_hadamard(ctx, tmp, rot)
    tmp = turn(ctx, tmp, shift, factors, *rope)
    tmp = tmp if rot is None else mul_mat_hadamard(ctx, tmp, rot)
    return ops.cpy(ctx, tmp, cur)
