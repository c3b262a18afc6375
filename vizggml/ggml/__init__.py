"""The engine alone, with ggml's names: `from vizggml import ggml; ggml.relu(c, ggml.add(c, ggml.mul_mat(c, W, x), b))`.

Names are resolved when they are first used; what is not listed below is one of the builders of ops.py.
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
    from vizggml.ggml.device import *  # noqa: F403
    from vizggml.ggml.gallocr import *  # noqa: F403
    from vizggml.ggml.gguf import *  # noqa: F403
    from vizggml.ggml.graph_file import *  # noqa: F403
    from vizggml.ggml.liveness import *  # noqa: F403
    from vizggml.ggml.ops import *  # noqa: F403
    from vizggml.ggml.sched import *  # noqa: F403
    from vizggml.ggml.tallocr import *  # noqa: F403
    from vizggml.ggml.tensor import *  # noqa: F403
    from vizggml.ggml.threadpool import *  # noqa: F403
    from vizggml.ggml.types import *  # noqa: F403

_HOMES = {
    "buffer": "Buffer BufferType MappedFile alloc_ctx_tensors_from_buft cpu_buffer_type view_init",
    "cgraph": "Graph graph_overhead graph_overhead_custom",
    "compute": "compute_releasing graph_compute",
    "context": "Context TENSOR_OVERHEAD",
    "device": "DeviceBackend DeviceBufferType",
    "cplan": "Plan graph_plan",
    "gallocr": "GraphAllocator",
    "gguf": "GGUF read_gguf write_gguf",
    "graph_file": "alloc_report read_graph write_graph",
    "liveness": "Liveness graph_liveness places_planned places_reported",
    "sched": "BackendSched CPUBackend",
    "tallocr": "DynTallocr",
    "tensor": "Address Tensor",
    "threadpool": "ThreadPool",
    "types": "TYPES Type type_named",
}
_MODULE_OF = {name: module for module, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module 'vizggml.ggml' has no attribute {name!r}")
    module = importlib.import_module(f"vizggml.ggml.{_MODULE_OF.get(name, 'ops')}")
    try:
        return getattr(module, name)
    except AttributeError:
        raise AttributeError(f"module 'vizggml.ggml' has no attribute {name!r}") from None
