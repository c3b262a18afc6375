"""See how llama.cpp works: a GGML-style engine whose every step is an event, and a player that steps through them.

    import vizggml as vg
    model = vg.load_model("tiny")
    with vg.record() as trace:
        for token in model.context(n_ctx=256).generate("Once upon a time", max_tokens=8):
            print(token.text, end="")
    vg.view(trace)

Names are resolved when they are first used, so that `import vizggml` stays light.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from vizggml.errors import VizggmlError

if TYPE_CHECKING:
    from vizggml import ggml
    from vizggml.llama.model import load_model
    from vizggml.timeline.diff import diff
    from vizggml.timeline.record import record
    from vizggml.timeline.trace import load_trace
    from vizggml.views.block import block_picture
    from vizggml.widgets.compare import compare
    from vizggml.widgets.live import live
    from vizggml.widgets.view import view

__version__ = "0.1.0"
__all__ = [
    "VizggmlError",
    "block_picture",
    "compare",
    "diff",
    "ggml",
    "live",
    "load_model",
    "load_trace",
    "record",
    "view",
]

_HOMES = {
    "block_picture": ("vizggml.views.block", "block_picture"),
    "compare": ("vizggml.widgets.compare", "compare"),
    "diff": ("vizggml.timeline.diff", "diff"),
    "ggml": ("vizggml.ggml", None),
    "live": ("vizggml.widgets.live", "live"),
    "load_model": ("vizggml.llama.model", "load_model"),
    "load_trace": ("vizggml.timeline.trace", "load_trace"),
    "record": ("vizggml.timeline.record", "record"),
    "view": ("vizggml.widgets.view", "view"),
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'vizggml' has no attribute {name!r}")
    module, attribute = _HOMES[name]
    found = importlib.import_module(module)
    if module.startswith("vizggml.timeline.") or name == "compare":
        importlib.import_module("vizggml.export")  # which gives a trace its to_html, to_svg and their like
    return found if attribute is None else getattr(found, attribute)


def __dir__() -> list[str]:
    return sorted(__all__)
