"""The events of computing: nodes, threads, backends, quantized rows.

Sizes and offsets are bytes. `ne` and `nb` are in ggml's order, `ne[0]` fastest. An id of -1 means none.
"""

from __future__ import annotations

from vizggml.events.bus import Event, GraphId, TensorId, event


@event("compute", "ggml_graph_compute, ggml/src/ggml-cpu/ggml-cpu.c", "vizggml/ggml/compute.py: graph_compute")
class ComputeBegin(Event):
    """The threads start on the graph."""

    graph: GraphId
    n_nodes: int
    n_threads: int


@event("compute", "ggml_graph_compute, ggml/src/ggml-cpu/ggml-cpu.c", "vizggml/ggml/compute.py: graph_compute")
class ComputeEnd(Event):
    """Every node is computed; `ns` is how long it took."""

    graph: GraphId
    ns: int


@event("compute", "ggml_graph_compute_thread, ggml/src/ggml-cpu/ggml-cpu.c", "vizggml/ggml/compute.py: graph_compute")
class NodeBegin(Event):
    """A thread begins its part of a node. `ns` counts from the graph's begin."""

    graph: GraphId
    tensor: TensorId
    thread: int
    ns: int


@event("compute", "ggml_graph_compute_thread, ggml/src/ggml-cpu/ggml-cpu.c", "vizggml/ggml/compute.py: graph_compute")
class NodeEnd(Event):
    """A thread has done its part of a node. `ns` counts from the graph's begin."""

    graph: GraphId
    tensor: TensorId
    thread: int
    ns: int


@event("compute", "ggml_graph_compute_thread, ggml/src/ggml-cpu/ggml-cpu.c", "vizggml/ggml/compute.py: graph_compute")
class NodeSkipped(Event):
    """The node needs no computing. `why` is empty op, empty tensor or no compute flag."""

    graph: GraphId
    tensor: TensorId
    why: str


@event("compute", "ggml_cpu_try_fuse_ops, ggml/src/ggml-cpu/ggml-cpu.c", "vizggml/ggml/compute.py: graph_compute")
class NodesFused(Event):
    """One kernel computes several nodes."""

    graph: GraphId
    tensor: TensorId
    fused: tuple[TensorId, ...]


@event("compute", "ggml_barrier, ggml/src/ggml-cpu/ggml-cpu.c", "vizggml/ggml/threadpool.py: ThreadPool.barrier")
class BarrierWait(Event):
    """A thread was done with its part, and waited so long for the others."""

    graph: GraphId
    tensor: TensorId
    thread: int
    ns: int


@event(
    "compute",
    "ggml_graph_compute_check_for_work, ggml/src/ggml-cpu/ggml-cpu.c",
    "vizggml/ggml/threadpool.py: ThreadPool.run",
)
class WorkTaken(Event):
    """A thread took up its part of a node. `polling`: it was looking for work; otherwise it slept and had to be woken.

    Like a time, this differs from run to run.
    """

    graph: GraphId
    tensor: TensorId
    thread: int
    polling: bool


@event(
    "compute",
    "ggml_compute_forward_mul_mat, ggml/src/ggml-cpu/ggml-cpu.c",
    "vizggml/ggml/kernels/chunks.py: chunk_grid",
)
class ChunksTaken(Event):
    """A matrix product was cut into `n_chunks`, each of `rows` rows of the weights by `columns` columns of the result.

    `handed_out`: whoever was done took the next one. Otherwise each thread had one share, along the longer side.
    `taken` is how many each thread took, in thread order: like a time, it differs from run to run. `expert` is -1
    unless the product is that of one expert.
    """

    graph: GraphId
    tensor: TensorId
    expert: int
    n_chunks: int
    rows: int
    columns: int
    handed_out: bool
    taken: tuple[int, ...]


@event("compute", "", "vizggml/ggml/releasing.py: compute_releasing")
class Released(Event):
    """Teaching mode: the use count reached zero, so the memory is given back while computing."""

    graph: GraphId
    tensor: TensorId
    chunk: int
    offset: int
    size: int


@event(
    "sched",
    "ggml_backend_sched_split_graph, ggml/src/ggml-backend.cpp",
    "vizggml/ggml/sched_assign.py: Assignment.assign_all",
)
class BackendAssigned(Event):
    """The tensor is to be computed, or lies, on this backend."""

    graph: GraphId
    tensor: TensorId
    backend: str
    why: str


@event(
    "sched",
    "ggml_backend_sched_split_graph, ggml/src/ggml-backend.cpp",
    "vizggml/ggml/sched.py: BackendSched.split_graph",
)
class SplitOpened(Event):
    """A run of nodes that one backend computes."""

    graph: GraphId
    split: int
    backend: str
    first_node: int
    n_inputs: int


@event(
    "sched",
    "ggml_backend_sched_split_graph, ggml/src/ggml-backend.cpp",
    "vizggml/ggml/sched.py: BackendSched.split_graph",
)
class CopyInserted(Event):
    """A split reads a tensor that lies elsewhere: it gets a copy on its own backend."""

    graph: GraphId
    split: int
    tensor: TensorId
    copy: TensorId
    backend: str


@event(
    "sched",
    "ggml_backend_sched_compute_splits, ggml/src/ggml-backend.cpp",
    "vizggml/ggml/sched.py: BackendSched.compute_splits",
)
class TensorCopied(Event):
    """What the split needs was brought to its backend. Of a matrix of experts, `nbytes` are only those in use."""

    graph: GraphId
    split: int
    tensor: TensorId
    copy: TensorId
    source: str
    backend: str
    nbytes: int


@event("quant", "ggml_quantize_chunk, ggml/src/ggml.c", "vizggml/ggml/quants/__init__.py: quantize")
class RowsEncoded(Event):
    """Floats became rows of blocks. `tensor` is -1 when the rows belong to none."""

    tensor: TensorId
    type: str
    n_rows: int
    n_blocks: int
    nbytes: int
    importance: bool


@event("quant", "to_float of ggml_type_traits, ggml/src/ggml.c", "vizggml/ggml/quants/__init__.py: dequantize")
class RowsDecoded(Event):
    """Rows of blocks became floats. `tensor` is -1 when the rows belong to none."""

    tensor: TensorId
    type: str
    n_rows: int
    n_blocks: int
    nbytes: int


@event("quant", "quantize_row_*_ref, ggml/src/ggml-quants.c", "vizggml/ggml/quants/__init__.py: quantize")
class BlockEncoded(Event):
    """One block: of each tensor's rows the first two, but all of them where a sink asked for this kind by name.

    `data` are its bytes, `original` the floats that it was made of, `importance` what an error in each of them costs
    (empty where none was given).
    """

    tensor: TensorId
    type: str
    block: int
    scale: float
    min: float
    codes: tuple[int, ...]
    data: tuple[int, ...]
    original: tuple[float, ...]
    importance: tuple[float, ...]


@event("quant", "dequantize_row_*, ggml/src/ggml-quants.c", "vizggml/ggml/quants/__init__.py: dequantize")
class BlockDecoded(Event):
    """One block: of each tensor's rows the first two, but all of them where a sink asked for this kind by name."""

    tensor: TensorId
    type: str
    block: int
    scale: float
    min: float
    codes: tuple[int, ...]
    data: tuple[int, ...]
