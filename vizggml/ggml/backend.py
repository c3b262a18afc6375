"""Backends: what computes, and in which memory. The CPU's is here; device.py has one with memory of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from vizggml.errors import VizggmlError
from vizggml.events import bus
from vizggml.ggml.buffer import BufferType, cpu_buffer_type
from vizggml.ggml.cgraph import Graph
from vizggml.ggml.compute import graph_compute
from vizggml.ggml.cplan import Plan, graph_plan
from vizggml.ggml.tensor import Tensor
from vizggml.ggml.threadpool import ThreadPool

Hook = Callable[[Tensor], None]

AddAllocDep = Callable[[Tensor, Tensor], None]
"""`add_alloc_dep(tensor, until)`: `tensor` stays allocated until the node `until` has been computed."""


class Backend(Protocol):
    """`ggml_backend`, ggml/src/ggml-backend-impl.h: something that computes, with memory of its own."""

    name: str
    buft: BufferType

    def supports_op(self, t: Tensor) -> bool: ...

    def supports_buft(self, buft: BufferType) -> bool:
        """Whether it reads and writes tensors in such buffers."""
        ...

    def offload_op(self, t: Tensor) -> bool:
        """Whether it wants to compute `t` although the weights lie where it cannot read them."""
        ...

    def graph_optimize(self, graph: Graph, add_alloc_dep: AddAllocDep) -> None:
        """Reorder the nodes of a split if it likes, and name what must stay allocated for longer."""
        ...

    def copy_tensor(self, src: Tensor, dst: Tensor) -> None:
        """Bring the bytes of `src`, which may lie on another backend, to `dst`, which lies here."""
        ...

    def compute(self, graph: Graph) -> None: ...


class CPUBackend:
    """`ggml_backend_cpu_init`, ggml/src/ggml-cpu/ggml-cpu.cpp: our kernels, threads, and the plan of the last graph.

    `poll` is that of the thread pool; `textbook` and `fast` are those of `graph_compute`. So are the hooks, which may
    be set at any time.
    """

    def __init__(
        self, n_threads: int = 4, *, textbook: bool = False, fast: bool | None = None, poll: int | None = None
    ) -> None:
        self.name = "CPU"
        self.buft = cpu_buffer_type()
        self.threadpool = ThreadPool(n_threads, poll)
        self.textbook = textbook
        self.fast = fast
        self.before_node: Hook | None = None
        self.after_node: Hook | None = None
        self._plan: Plan | None = None

    def supports_op(self, t: Tensor) -> bool:
        """The CPU computes every op."""
        return True

    def supports_buft(self, buft: BufferType) -> bool:
        """Its own buffers, and whatever lies in the host's memory."""
        return buft is self.buft or buft.is_host

    def offload_op(self, t: Tensor) -> bool:
        """Never: it takes no weights over from others."""
        return False

    def graph_optimize(self, graph: Graph, add_alloc_dep: AddAllocDep) -> None:
        """The CPU keeps the order."""

    def copy_tensor(self, src: Tensor, dst: Tensor) -> None:
        """Bring the bytes of `src` to `dst`. VizggmlError if the two are laid out differently."""
        copy_bytes(src, dst)

    def compute(self, graph: Graph) -> None:
        """`ggml_backend_cpu_graph_compute`, ggml/src/ggml-cpu/ggml-cpu.cpp.

        The plan of a graph that is computed again is kept; while somebody listens it is made again, to be heard.
        """
        kept = self._plan
        if kept is None or kept.graph is not graph or len(kept.n_tasks) != len(graph.nodes):
            self._plan = kept = graph_plan(graph, threadpool=self.threadpool)
        elif bus.on:
            graph_plan(graph, threadpool=self.threadpool)
        graph_compute(
            graph,
            kept,
            textbook=self.textbook,
            fast=self.fast,
            before_node=self.before_node,
            after_node=self.after_node,
        )


def copy_bytes(src: Tensor, dst: Tensor) -> None:
    """From the first byte of `src` to its last, gaps among them. `ggml_backend_tensor_copy`, ggml/src/ggml-backend.cpp.

    VizggmlError if the two are laid out differently, or one has no memory.
    """
    if (src.type, src.ne, src.nb) != (dst.type, dst.ne, dst.nb):
        raise VizggmlError(f"tensor {src.name!r} cannot be copied to {dst.name!r}: they are laid out differently")
    if src.data is None or dst.data is None:
        raise VizggmlError(f"tensor {src.name!r} cannot be copied to {dst.name!r}: one of them has no memory")
    n, to, fro = src.nbytes, dst.data, src.data
    to.memory[to.offset : to.offset + n] = fro.memory[fro.offset : fro.offset + n]
