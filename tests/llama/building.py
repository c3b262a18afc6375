"""Building graphs of a model without a context: what tests of graphs and inputs share."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vizggml.events import Event, bus
from vizggml.ggml.buffer import cpu_buffer_type
from vizggml.ggml.gguf import read_gguf
from vizggml.llama.batch import Batch, Ubatch, split
from vizggml.llama.context import Context
from vizggml.llama.cparams import ContextParams, CParams
from vizggml.llama.graph import GraphBuilder, GraphResult
from vizggml.llama.graph_input import GraphParams
from vizggml.llama.hparams import HParams
from vizggml.llama.kv_cache import MemoryContext
from vizggml.llama.kv_cache_iswa import MemoryContextISWA, create_memory
from vizggml.llama.loader import Weights, load_weights
from vizggml.llama.reserve import ARCHITECTURES

GOLDENS = Path(__file__).parent.parent / "goldens"


def golden(name: str) -> Any:
    raw = (GOLDENS / name).read_bytes()
    return json.loads(gzip.decompress(raw) if name.endswith(".gz") else raw)


@dataclass
class Parts:
    hparams: HParams
    weights: Weights
    cparams: CParams
    kv: Any
    """A `KVCache`, or a `KVCacheISWA`."""

    def build(
        self, ubatch: Ubatch, n_kv: int, n_outputs: int, builder: type[GraphBuilder] = GraphBuilder
    ) -> GraphResult:
        """The graph that sees `n_kv` cells, of each cache if there are two."""
        res = GraphResult(max(1024, 8 * len(self.weights)))
        met = [MemoryContext(kv, tuple(range(ubatch.n_tokens)), n_kv) for kv in self.kv.caches]
        mctx = met[0] if len(met) == 1 else MemoryContextISWA(self.hparams, *met)
        params = GraphParams(self.hparams.architecture, self.hparams, self.cparams, ubatch, mctx, n_outputs)
        ARCHITECTURES[self.hparams.architecture](builder(params, self.weights, res))
        res.set_outputs()
        return res


def parts(path: Path, **params: Any) -> Parts:
    gguf = read_gguf(path)
    hparams = HParams.from_gguf(gguf)
    cparams = CParams.resolve(ContextParams(**params), hparams)
    return Parts(hparams, load_weights(gguf, hparams), cparams, create_memory(hparams, cparams, cpu_buffer_type()))


def ubatch_of(n_tokens: int, pos: int = 0) -> Ubatch:
    return next(split(Batch.of([1] * n_tokens, pos), n_tokens))


@contextmanager
def listening(*kinds: type[Event]) -> Iterator[list[Event]]:
    """The events of these kinds, in order."""
    seen: list[Event] = []
    stops = [bus.subscribe(kind, seen.append) for kind in kinds]
    try:
        yield seen
    finally:
        for stop in stops:
            stop()


def decode_two_sequences(context: Context) -> None:
    """Five tokens of sequence 0, three of sequence 1; two of the first are removed, and 11 takes their place."""
    context.decode(Batch.of([1, 5, 6, 7, 8], 0))
    context.decode(Batch.of([1, 9, 10], 0, seq_id=1))
    context.memory.seq_rm(0, 1, 3)
    context.decode(Batch.of([11], 3, seq_id=1))
