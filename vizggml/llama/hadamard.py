"""The rotation that keys and values get before they are stored quantized: what stood out in one element is spread."""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from vizggml.ggml import ops
from vizggml.ggml.context import Context
from vizggml.ggml.ops_model import HINT_SRC0_IS_HADAMARD
from vizggml.ggml.tensor import Tensor

ROTATED = 64
"""Heads of a multiple of this are rotated when they are stored quantized."""


@functools.cache
def hadamard(n: int) -> NDArray[np.float32]:
    """The orthonormal Walsh-Hadamard matrix of `n`, a power of 2, its own inverse. `ggml_gen_hadamard`."""
    h = np.full((1, 1), 1.0 / float(np.sqrt(np.float32(n))), np.float32)
    while len(h) < n:
        h = np.block([[h, h], [h, -h]])
    h.flags.writeable = False
    return h


def mul_mat_hadamard(ctx: Context, cur: Tensor, rot: Tensor) -> Tensor:
    """Rotate each `rot.ne[0]` elements of `cur`'s rows. `llama_mul_mat_hadamard`, src/llama-impl.h."""
    n = rot.ne[0]
    merge = ops.reshape_2d if cur.is_contiguous() else ops.cont_2d
    res = ops.mul_mat(ctx, rot, merge(ctx, cur, n, cur.nelements // n))
    ops.mul_mat_set_hint(res, HINT_SRC0_IS_HADAMARD)
    return ops.reshape_4d(ctx, res, *cur.ne)
