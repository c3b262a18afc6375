"""The engine alone, with ggml's names: `from vizggml import ggml; ggml.relu(c, ggml.add(c, ggml.mul_mat(c, W, x), b))`.

Names are resolved when they are first used. The builders have ggml's names without its prefix, the context first.
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
    "ops_math": """
        add add_inplace sub sub_inplace mul mul_inplace div div_inplace add1 add_id
        sqr sqr_inplace sqrt sqrt_inplace log log_inplace sin sin_inplace cos cos_inplace
        unary unary_inplace abs abs_inplace sgn neg neg_inplace step tanh tanh_inplace elu relu relu_inplace
        sigmoid sigmoid_inplace gelu gelu_inplace gelu_erf gelu_quick silu silu_inplace hardswish hardsigmoid
        exp exp_inplace expm1 softplus floor ceil round trunc leaky_relu
        glu glu_split reglu reglu_split geglu geglu_split geglu_erf geglu_erf_split geglu_quick geglu_quick_split
        swiglu swiglu_split scale scale_inplace scale_bias clamp fill
        norm rms_norm rms_norm_inplace group_norm l2_norm sum sum_rows cumsum mean argmax count_equal argsort top_k
        diag_mask_inf diag_mask_zero
    """,
    "ops_model": """
        mul_mat mul_mat_set_prec mul_mat_set_hint mul_mat_id out_prod
        soft_max soft_max_inplace soft_max_ext soft_max_add_sinks rope rope_inplace rope_ext
        flash_attn_ext flash_attn_ext_set_prec flash_attn_ext_add_sinks
        PREC_UNDEFINED PREC_F32 HINT_SRC0_IS_HADAMARD ROPE_TYPE_NORMAL ROPE_TYPE_NEOX ROPE_TYPE_MROPE
    """,
    "ops_view": """
        reshape reshape_1d reshape_2d reshape_3d reshape_4d view view_1d view_2d view_3d view_4d permute transpose
        dup dup_inplace cpy cast cont cont_1d cont_2d cont_3d cont_4d concat repeat repeat_4d
        get_rows set_rows set set_inplace
    """,
}
_MODULE_OF = {name: module for module, names in _HOMES.items() for name in names.split()}
__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'vizggml.ggml' has no attribute {name!r}")
    return getattr(importlib.import_module(f"vizggml.ggml.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return __all__
