"""The events, area by area: what each means, its fields, where it happens, and a sentence from a run."""

from __future__ import annotations

import inspect
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np
from markupsafe import Markup

import vizggml as vg
from reference.api import ROOT
from vizggml import ggml
from vizggml.errors import VizggmlError
from vizggml.events import KINDS, Event
from vizggml.events.meanings import meaning
from vizggml.ggml.quants import dequantize, quantize
from vizggml.timeline.schema import fields_of
from vizggml.timeline.sentences import SENTENCES, Template, render
from vizggml.timeline.trace import Trace

AREAS: dict[str, str] = {
    "snapshot": "A recording begins with what stands already.",
    "arena": "A context: one piece of memory in which records of tensors and graphs are appended.",
    "tensor": "Tensors are made, looked into, named, and told what they will be computed from.",
    "graph": "A depth-first visit puts tensors in their execution order.",
    "buffers": "Memory that tensors' bytes lie in, and files that are mapped.",
    "free list": "The free blocks of planned memory: which one is taken, what is left, what grows together again.",
    "galloc": "The graph allocator: a node takes over its parent's place, or is given one, and gives it back.",
    "plan": "How many threads each node has, and how much scratch memory the graph needs.",
    "compute": "Nodes are computed by threads that wait for each other.",
    "sched": "Nodes are shared out over backends; what lies elsewhere is copied.",
    "quant": "Floats become blocks of few bits, and blocks become floats.",
    "model": "Weights get their places.",
    "KV": "The cells of the KV cache, and the sequences that hold them.",
    "reuse": "Whether the graph of the last step serves again.",
    "tokens": "From a text to logits to the next token.",
}
FTYPES: dict[str, str] = {
    "tensor": "tensor id",
    "context": "context id",
    "graph": "graph id",
    "buffer": "buffer id",
    "allocator": "allocator id",
    "galloc": "graph allocator id",
    "cache": "cache id",
    "seq": "event number",
    "dims": "4 ints",
    "offset": "int, bytes",
    "bytes": "int, bytes",
    "ns": "int, ns",
    "flags": "int, bits",
    "ints": "ints",
    "floats": "floats",
    "strs": "texts",
    "str": "text",
    "tensors": "tensor ids",
}
FIELD = re.compile(r"\{((?:cause\.)?\w+(?::\w+)?)\}")


@dataclass(frozen=True)
class Told:
    """One kind of event as the page has it."""

    name: str
    text: str
    fields: list[tuple[str, str, str]]
    ggml: str
    ours: str
    sentences: list[tuple[str, Markup]]
    example: str


def told(kind: type[Event], example: str) -> Told:
    fields = [(f.name, FTYPES.get(f.ftype, f.ftype), meaning(kind, f.name)) for f in fields_of(kind)]
    sentences = list(cases(SENTENCES[kind.__name__]))
    return Told(kind.__name__, inspect.cleandoc(kind.__doc__ or ""), fields, kind.GGML, kind.OURS, sentences, example)


def cases(template: Template, when: str = "") -> Iterator[tuple[str, Markup]]:
    """Each sentence of a template, and when it is the one that is said."""
    if isinstance(template, str):
        yield when, Markup(FIELD.sub(r'<span class="field">\1</span>', escape(template, quote=False)))
        return
    by = template["by"]
    for value, case in template["cases"].items():
        said = f"the cause is {value}" if by == "cause" else f"`{by}` is {'below 0' if value == '<0' else value}"
        yield from cases(case, f"{when} and {said}" if when else said)
    yield from cases(template["else"], f"{when}, otherwise" if when else "otherwise")


def examples() -> dict[str, str]:
    """A sentence of each kind that happens in small recorded runs, by the kind's name."""
    found: dict[str, str] = {}
    for trace in (run(), run_on_a_device(), by_hand()):
        tracks = trace.tracks()
        kinds, first = tracks["ev.kind"].tolist(), tracks.opening
        for i in (*range(first, len(kinds)), *range(first)):
            found.setdefault(KINDS[kinds[i]].__name__, render(tracks, i).replace(f"{ROOT}/", ""))
    return found


def run() -> Trace:
    """The tiny model reads a prompt, makes two tokens, and is saved and loaded again."""
    with vg.record() as trace, tempfile.TemporaryDirectory() as folder:
        model = vg.load_model("tiny")
        context = model.context(n_ctx=256, n_ubatch=32, flash_attn=True, n_threads=2, fast=False)
        tokens = [token.id for token in context.generate("Once upon a time", max_tokens=3, temp=0.8, seed=1)]
        context.memory.seq_rm(0, context.n_past - 1, -1)
        context.save_state(Path(folder) / "state", tokens)
        context.load_state(Path(folder) / "state")
        model.gguf.mapped.residency()
    return trace


def run_on_a_device() -> Trace:
    """One decode with half of the layers on a second device."""
    with vg.record() as trace:
        vg.load_model("tiny").context(n_ctx=256, flash_attn=False, n_gpu_layers=2, fast=False).decode([1, 2, 3])
    return trace


def by_hand() -> Trace:
    """Small graphs: one computed with memory released on the way, one too large for its arena, one freed; a block."""
    with vg.record() as trace:
        c = ggml.Context(mem_size=1 << 20, no_alloc=True)
        x = c.new_tensor("F32", (64, 4), name="x")
        (buffer,) = ggml.alloc_ctx_tensors_from_buft(c, ggml.cpu_buffer_type())
        a = ggml.sum_rows(c, ggml.repeat_4d(c, x, 64, 8, 1, 1).set_name("repeated")).set_name("sums")
        g = ggml.Graph(c)
        g.build_forward_expand(ggml.sum_rows(c, a).set_name("y").set_output())
        ggml.compute_releasing(g)
        quantized = quantize("Q4_0", np.arange(64, dtype=np.float32).reshape(1, 64))
        dequantize("Q4_0", quantized.reshape(1, 2, 18))
        small = ggml.Context(mem_size=1000)
        small.new_tensor("F32", (16,), name="fits")
        try:
            small.new_tensor("F32", (256,), name="too large")
        except VizggmlError:
            small.reset()
        c.free()
        buffer.free()
    return trace
