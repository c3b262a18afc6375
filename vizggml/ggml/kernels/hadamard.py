"""A MUL_MAT whose weights are said to be a Hadamard matrix: no multiplying, only sums and differences.

The matrix of 2n is made of four of n, [h, h] over [h, -h], so its product with a row is made of those with the row's
halves: n log n additions for n, and rounded otherwise than n products of each row would be.
"""

from __future__ import annotations

import numpy as np

from vizggml.errors import VizggmlError
from vizggml.ggml.kernels.params import ComputeParams
from vizggml.ggml.ops_model import HINT_SRC0_IS_HADAMARD
from vizggml.ggml.tensor import Tensor


def is_hadamard(params: ComputeParams, dst: Tensor) -> bool:
    """Whether this MUL_MAT is computed here; the textbook's way multiplies."""
    return dst.op_param_i32(1) == HINT_SRC0_IS_HADAMARD and not params.textbook


def forward_fwht(params: ComputeParams, dst: Tensor) -> None:
    """`ggml_compute_forward_fwht`, ggml/src/ggml-cpu/ops.cpp: rows of `src[1]`, of 2, 4, 8, ... elements."""
    src1 = dst.src[1]
    if src1 is None or src1.type.name not in ("F32", "F16") or src1.ne[0] & (src1.ne[0] - 1):
        of = "nothing" if src1 is None else f"{src1.type}, rows of {src1.ne[0]}"
        raise VizggmlError(f"mul_mat {dst.name!r}: a Hadamard matrix takes F32 or F16, rows of a power of 2, not {of}")
    n, share = src1.ne[0], -(-src1.nrows // params.nth)
    numbers = np.arange(params.ith * share, min((params.ith + 1) * share, src1.nrows))
    rows = np.unravel_index(numbers, src1.ne[:0:-1])
    y = src1.array()[rows].astype(np.float32) * (np.float32(1) / np.sqrt(np.float32(n)))
    half = 1
    while half < n:
        pairs = y.reshape(len(y), n // (2 * half), 2, half)
        u, v = pairs[:, :, 0].copy(), pairs[:, :, 1].copy()
        pairs[:, :, 0] = u + v
        pairs[:, :, 1] = u - v
        half *= 2
    dst.array()[rows] = y
