"""The engine alone, with ggml's names: `from vizggml import ggml; ggml.relu(c, ggml.add(c, ggml.mul_mat(c, W, x), b))`.

Names are looked up in the engine's modules when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vizggml.ggml.buffer import *  # noqa: F403
    from vizggml.ggml.cgraph import *  # noqa: F403
    from vizggml.ggml.compute import *  # noqa: F403
    from vizggml.ggml.context import *  # noqa: F403
    from vizggml.ggml.cplan import *  # noqa: F403
    from vizggml.ggml.gallocr import *  # noqa: F403
    from vizggml.ggml.gguf import *  # noqa: F403
    from vizggml.ggml.ops import *  # noqa: F403
    from vizggml.ggml.sched import *  # noqa: F403
    from vizggml.ggml.tallocr import *  # noqa: F403
    from vizggml.ggml.tensor import *  # noqa: F403
    from vizggml.ggml.threadpool import *  # noqa: F403
    from vizggml.ggml.types import *  # noqa: F403

_MODULES = (
    "types",
    "tensor",
    "context",
    "ops",
    "cgraph",
    "buffer",
    "tallocr",
    "gallocr",
    "cplan",
    "threadpool",
    "compute",
    "sched",
    "gguf",
)


def __getattr__(name: str) -> Any:
    if not name.startswith("_"):
        for module in _MODULES:
            found = getattr(importlib.import_module(f"vizggml.ggml.{module}"), name, None)
            if found is not None:
                return found
    raise AttributeError(f"module 'vizggml.ggml' has no attribute {name!r}")
