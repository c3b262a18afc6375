"""A second backend, real in memory and behaviour: it stands for a graphics card.

Its memory is its own: a capacity that can run out, a largest buffer, an alignment of 128 bytes. The CPU does not read
it, nor it the CPU's, so what crosses is copied. It computes with the same kernels, so that it gives the same numbers.
"""

from __future__ import annotations

from vizggml.errors import VizggmlError
from vizggml.ggml.backend import CPUBackend
from vizggml.ggml.buffer import SIZE_MAX, Buffer, BufferType
from vizggml.ggml.tensor import Tensor

DEVICE_ALIGNMENT = 128
"""What CUDA's buffer type aligns to: `ggml_backend_cuda_buffer_type_get_alignment`, ggml/src/ggml-cuda/ggml-cuda.cu."""

MIN_BATCH_SIZE = 32
"""From how many tokens on it pays to bring weights over: `GGML_OP_OFFLOAD_MIN_BATCH`'s default there."""


class DeviceBufferType(BufferType):
    """Memory of `capacity` bytes, of which the buffers take their share and give it back when they are freed."""

    def __init__(
        self, name: str, capacity: int = SIZE_MAX, alignment: int = DEVICE_ALIGNMENT, max_size: int = SIZE_MAX
    ) -> None:
        super().__init__(name, alignment, max_size, is_host=False)
        if capacity < 1:
            raise VizggmlError(f"buffer type {name}: capacity {capacity} is below 1")
        self.capacity = capacity
        self.used = 0

    @property
    def free(self) -> int:
        """Bytes of the capacity that no buffer has."""
        return self.capacity - self.used

    def alloc_buffer(self, size: int, usage: str = "any") -> Buffer:
        """VizggmlError if it is more than is free, or than one buffer may have."""
        if size > self.max_size:
            raise VizggmlError(
                f"{self.name}: a buffer of {size} bytes ({usage}) does not fit: one buffer holds "
                f"{self.max_size} bytes, {size - self.max_size} too few"
            )
        if size > self.free:
            raise VizggmlError(
                f"{self.name}: a buffer of {size} bytes ({usage}) does not fit: {self.free} of {self.capacity} bytes "
                f"are free, {size - self.free} too few"
            )
        buffer = super().alloc_buffer(size, usage)
        self.used += size
        return buffer

    def buffer_freed(self, size: int) -> None:
        """Take back the bytes of a buffer that is freed."""
        self.used -= size


class DeviceBackend(CPUBackend):
    """A second device with memory of its own, computed by the CPU's kernels: what lies elsewhere must be copied to it.

    `ggml_backend_i`, `ggml_backend_device_i`, ggml/src/ggml-backend-impl.h.
    """

    def __init__(
        self,
        name: str = "DEV0",
        n_threads: int = 1,
        *,
        capacity: int = SIZE_MAX,
        max_size: int = SIZE_MAX,
        textbook: bool = False,
        fast: bool | None = None,
    ) -> None:
        super().__init__(n_threads, textbook=textbook, fast=fast)
        self.name = name
        self.memory = DeviceBufferType(name, capacity, max_size=max_size)
        self.buft = self.memory

    def supports_buft(self, buft: BufferType) -> bool:
        """Its own buffers alone: the host's memory is out of its reach."""
        return buft is self.buft

    def offload_op(self, t: Tensor) -> bool:
        """With a batch large enough. `ggml_backend_cuda_device_offload_op`, ggml/src/ggml-cuda/ggml-cuda.cu."""
        return batch_size(t) >= MIN_BATCH_SIZE


def batch_size(t: Tensor) -> int:
    """`get_op_batch_size`, ggml/src/ggml-cuda/ggml-cuda.cu: 0 for what is never worth it."""
    if t.op == "GET_ROWS":
        return 0
    if t.op == "MUL_MAT":
        return t.ne[1]
    return t.ne[2] if t.op in ("MUL_MAT_ID", "ROPE", "ROPE_BACK") else t.nrows
