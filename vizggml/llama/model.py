"""A model: its file, numbers, vocabulary and weights; contexts run it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vizggml.errors import VizggmlError
from vizggml.events import Event, bus
from vizggml.ggml.gguf import GGUF, read_gguf
from vizggml.llama.context import Context
from vizggml.llama.cparams import ContextParams
from vizggml.llama.hparams import HParams
from vizggml.llama.loader import Weights, load_weights
from vizggml.llama.models import resolve_model
from vizggml.llama.vocab import Vocab


class Model:
    """What was read of a file: `gguf`, `hparams`, `vocab` and the mapped `weights`, for any number of contexts.

    `llama_model`, src/llama-model.h.
    """

    def __init__(self, gguf: GGUF, hparams: HParams, vocab: Vocab, weights: Weights) -> None:
        self.gguf = gguf
        self.hparams = hparams
        self.vocab = vocab
        self.weights = weights
        bus.standing.add(self)

    def snapshot(self) -> Iterator[Event]:
        """Nothing of its own: its tensors and buffers tell of themselves."""
        return iter(())

    def describe(self) -> dict[str, object]:
        """What a trace's header says of it."""
        return {"model": self.gguf.path.name}

    def __repr__(self) -> str:
        hp = self.hparams
        return f"<Model {self.gguf.path.name}: {hp.architecture}, {hp.n_layer} layers, width {hp.n_embd}>"

    def context(self, **params: Any) -> Context:
        """A context with these `ContextParams`. VizggmlError for one that it does not have, or a value out of range."""
        unknown = set(params) - set(ContextParams.__dataclass_fields__)
        if unknown:
            known = ", ".join(ContextParams.__dataclass_fields__)
            raise VizggmlError(f"context has no parameter {', '.join(sorted(unknown))}; it has {known}")
        return Context(self.hparams, self.vocab, self.weights, ContextParams(**params))

    def close(self) -> None:
        """Let go of the weights and unmap the file."""
        bus.standing.discard(self)
        for buffer in self.weights.buffers:
            buffer.free()
        self.weights.context.free()
        self.gguf.mapped.close()


def load_model(name: str | Path) -> Model:
    """Load "tiny", "smollm2" or the GGUF file at a path. `llama_model_load_from_file`, src/llama.cpp.

    The file is mapped, nothing of it is copied. VizggmlError if it is missing, damaged, or no model that can be run.
    """
    gguf = read_gguf(resolve_model(name))
    hparams = HParams.from_gguf(gguf)
    return Model(gguf, hparams, Vocab.from_gguf(gguf), load_weights(gguf, hparams))
