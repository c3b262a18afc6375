"""What a kernel is told besides its tensor: which thread it is, of how many, and where its scratch lies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from vizggml.ggml.kernels.chunks import Chunks
from vizggml.ggml.tensor import Memory

FA_TILE_Q = 64
"""`GGML_FA_TILE_Q`, ggml/src/ggml-cpu/common.h: query rows of one flash-attention tile."""

FA_TILE_KV = 64
"""`GGML_FA_TILE_KV`, ggml/src/ggml-cpu/common.h: cells of one flash-attention tile."""


def alone() -> None:
    """The barrier of a kernel that runs on one thread: nobody to wait for."""


@dataclass(slots=True)
class ComputeParams:
    """`struct ggml_compute_params`, ggml/src/ggml-cpu/ggml-cpu-impl.h.

    Thread `ith` of `nth` does its share of the work. `wdata` is the plan's scratch, shared by all threads (None where
    the plan has none). `barrier` returns when every thread of the node has called it. With `textbook` a matrix product
    takes its activations as they are, in F32, instead of in the weights' `vec_dot_type`. `flash_tile` is (query rows,
    cells) of a flash-attention tile. `chunks` is the counter from which the threads of the node take their chunks.
    """

    ith: int = 0
    nth: int = 1
    wdata: Memory | None = None
    textbook: bool = False
    barrier: Callable[[], None] = alone
    flash_tile: tuple[int, int] = (FA_TILE_Q, FA_TILE_KV)
    chunks: Chunks | None = None
