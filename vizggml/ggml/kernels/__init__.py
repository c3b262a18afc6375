"""The kernels: for each op a function that reads and writes the planned bytes, one thread's share at a time."""

from __future__ import annotations

from collections.abc import Callable

from vizggml.ggml.kernels import copy, elementwise, mask, norm, place, reduce, rope, rows, softmax
from vizggml.ggml.kernels.flash_attn import forward_flash_attn_ext
from vizggml.ggml.kernels.mul_mat import forward_mul_mat
from vizggml.ggml.kernels.mul_mat_id import forward_mul_mat_id
from vizggml.ggml.kernels.params import ComputeParams
from vizggml.ggml.tensor import Tensor

Kernel = Callable[[ComputeParams, Tensor], None]
FusedKernel = Callable[[ComputeParams, Tensor, Tensor], None]

KERNELS: dict[str, Kernel] = {
    "ADD": elementwise.forward_add,
    "ADD1": elementwise.forward_add,
    "SUB": elementwise.forward_sub,
    "MUL": elementwise.forward_mul,
    "DIV": elementwise.forward_div,
    "SCALE": elementwise.forward_scale,
    "SQR": elementwise.forward_sqr,
    "SQRT": elementwise.forward_sqrt,
    "LOG": elementwise.forward_log,
    "SIN": elementwise.forward_sin,
    "COS": elementwise.forward_cos,
    "CLAMP": elementwise.forward_clamp,
    "FILL": elementwise.forward_fill,
    "LEAKY_RELU": elementwise.forward_leaky_relu,
    "UNARY": elementwise.forward_unary,
    "GLU": elementwise.forward_glu,
    "NORM": norm.forward_norm,
    "RMS_NORM": norm.forward_rms_norm,
    "L2_NORM": norm.forward_l2_norm,
    "GROUP_NORM": norm.forward_group_norm,
    "ROPE": rope.forward_rope,
    "ROPE_BACK": rope.forward_rope_back,
    "SOFT_MAX": softmax.forward_soft_max,
    "GET_ROWS": rows.forward_get_rows,
    "SET_ROWS": rows.forward_set_rows,
    "SET": place.forward_set,
    "ADD_ID": place.forward_add_id,
    "DUP": copy.forward_dup,
    "CPY": copy.forward_dup,
    "CONT": copy.forward_dup,
    "CONCAT": copy.forward_concat,
    "REPEAT": copy.forward_repeat,
    "SUM": reduce.forward_sum,
    "SUM_ROWS": reduce.forward_sum_rows,
    "MEAN": reduce.forward_mean,
    "CUMSUM": reduce.forward_cumsum,
    "ARGMAX": reduce.forward_argmax,
    "ARGSORT": reduce.forward_argsort,
    "TOP_K": reduce.forward_top_k,
    "DIAG_MASK_INF": mask.forward_diag_mask_inf,
    "DIAG_MASK_ZERO": mask.forward_diag_mask_zero,
    "MUL_MAT": forward_mul_mat,
    "MUL_MAT_ID": forward_mul_mat_id,
    "FLASH_ATTN_EXT": forward_flash_attn_ext,
}
"""The reference kernel of each op, by `ggml_op_name`. `ggml_compute_forward`, ggml/src/ggml-cpu/ggml-cpu.c."""

FUSED: dict[tuple[str, str], FusedKernel] = {("RMS_NORM", "MUL"): norm.forward_rms_norm_mul}
"""Kernels that compute a node and the one after it. `ggml_cpu_try_fuse_ops`, ggml/src/ggml-cpu/ggml-cpu.c."""
