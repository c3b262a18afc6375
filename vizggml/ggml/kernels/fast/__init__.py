"""The compiled twins of the kernels, in Numba. Importing this imports Numba: only who wants them does it."""

from __future__ import annotations

from collections.abc import Callable

from vizggml.ggml.kernels.fast.flash_attn import forward_flash_attn_ext
from vizggml.ggml.kernels.fast.mul_mat import forward_mul_mat
from vizggml.ggml.kernels.fast.mul_mat_id import forward_mul_mat_id
from vizggml.ggml.kernels.params import ComputeParams
from vizggml.ggml.tensor import Tensor

FAST: dict[str, Callable[[ComputeParams, Tensor], None]] = {
    "FLASH_ATTN_EXT": forward_flash_attn_ext,
    "MUL_MAT": forward_mul_mat,
    "MUL_MAT_ID": forward_mul_mat_id,
}
"""The compiled kernel of each op that has one, by `ggml_op_name`."""
