"""Tensors for kernel tests: filled with real encodings, as views with gaps and permuted dimensions."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from vizggml.errors import VizggmlError
from vizggml.ggml import quants
from vizggml.ggml.kernels.chunks import Chunks
from vizggml.ggml.kernels.params import ComputeParams
from vizggml.ggml.tensor import Address, Memory, Tensor, f32_bits
from vizggml.ggml.types import Type, type_named

Kernel = Callable[[ComputeParams, Tensor], None]


def blocks_of(type: Type, x: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Bytes (..., blocks, type_size); all columns are equally important to the types that ask."""
    return quants.encode(type, x, None if type.name in quants.ENCODERS else np.ones(x.shape[-1], np.float32))


def tensor(
    type: Type | str, x: NDArray[np.float32], *, gap: int = 0, order: tuple[int, int, int] = (1, 2, 3)
) -> Tensor:
    """A tensor of x (ne3, ne2, ne1, ne0), rows `gap` blocks apart, dimensions laid out in `order`, innermost first.

    `order` (2, 1, 3) lies in memory as a KV cache does: heads within a token.
    """
    type = type if isinstance(type, Type) else type_named(type)
    encoded = blocks_of(type, np.asarray(x, np.float32))
    ne = (x.shape[3], x.shape[2], x.shape[1], x.shape[0])
    nb = [type.type_size, 0, 0, 0]
    step = (type.row_size(ne[0])) + gap * type.type_size
    for dim in order:
        nb[dim] = step
        step *= ne[dim]
    t = Tensor(type, ne, (nb[0], nb[1], nb[2], nb[3]))
    memory: Memory = np.full(step + 64, 0xFF, np.uint8)
    whole = np.ndarray(encoded.shape, np.uint8, memory, 32, (nb[3], nb[2], nb[1], nb[0], 1))  # type: ignore[arg-type]
    whole[:] = encoded
    t.data = Address(memory, 32)
    return t


def node(op: str, ne: tuple[int, int, int, int], *src: Tensor | None, params: tuple[float | int, ...] = ()) -> Tensor:
    """An F32 node over `src`; its bytes are NaN until computed. Floats in `params` are kept as bits."""
    t = tensor("F32", np.full(ne[::-1], np.nan, np.float32))
    t.op, t.name, t.src = op, op.lower(), list(src)
    t.op_params = tuple(f32_bits(p) if isinstance(p, float) else p for p in params)
    return t


def mul_mat(src0: Tensor, src1: Tensor) -> Tensor:
    return node("MUL_MAT", (src0.ne[1], src1.ne[1], src1.ne[2], src1.ne[3]), src0, src1)


def run(
    kernel: Kernel, dst: Tensor, *, nth: int = 1, wsize: int = 1 << 22, textbook: bool = False
) -> NDArray[np.float32]:
    """Run a kernel on `nth` real threads; what it put into `dst`, and the scratch poisoned before."""
    wdata: Memory = np.full(wsize, 0xFF, np.uint8)
    barrier = threading.Barrier(nth)
    failed: list[VizggmlError] = []
    chunks = Chunks(nth)

    def work(ith: int) -> None:
        try:
            kernel(ComputeParams(ith, nth, wdata, textbook, lambda: (barrier.wait(), None)[1], chunks=chunks), dst)
        except VizggmlError as e:
            failed.append(e)
            barrier.abort()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(nth)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if failed:
        raise failed[0]
    return np.array(dst.array(), np.float32)
