"""Devices made for real ggml, from the xllamacpp wheel, as tables of functions; and its scheduler over them.

A device here has its own buffer type over the CPU's memory, says which ops it computes, and computes with the CPU's
kernels. Where a function stands in a table differs between versions of ggml: it is found by calling it through ggml.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Collection, Sequence
from ctypes import c_bool, c_char_p, c_int, c_size_t, c_uint64, c_void_p
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.oracle import LIB, Fields, RealGraph, tensor_fields

for _name, (_result, *_arguments) in {
    "ggml_backend_cpu_init": (c_void_p,),
    "ggml_backend_get_device": (c_void_p, c_void_p),
    "ggml_backend_name": (c_char_p, c_void_p),
    "ggml_backend_free": (None, c_void_p),
    "ggml_backend_graph_compute_async": (c_int, c_void_p, c_void_p),
    "ggml_backend_buft_name": (c_char_p, c_void_p),
    "ggml_backend_buft_alloc_buffer": (c_void_p, c_void_p, c_size_t),
    "ggml_backend_buft_get_alignment": (c_size_t, c_void_p),
    "ggml_backend_buft_get_max_size": (c_size_t, c_void_p),
    "ggml_backend_buft_get_alloc_size": (c_size_t, c_void_p, c_void_p),
    "ggml_backend_buft_is_host": (c_bool, c_void_p),
    "ggml_backend_dev_supports_op": (c_bool, c_void_p, c_void_p),
    "ggml_backend_dev_supports_buft": (c_bool, c_void_p, c_void_p),
    "ggml_backend_dev_offload_op": (c_bool, c_void_p, c_void_p),
    "ggml_backend_dev_type": (c_int, c_void_p),
    "ggml_backend_buffer_set_usage": (None, c_void_p, c_int),
    "ggml_backend_sched_new": (c_void_p, c_void_p, c_void_p, c_int, c_size_t, c_bool, c_bool),
    "ggml_backend_sched_free": (None, c_void_p),
    "ggml_backend_sched_reset": (None, c_void_p),
    "ggml_backend_sched_reserve": (c_bool, c_void_p, c_void_p),
    "ggml_backend_sched_alloc_graph": (c_bool, c_void_p, c_void_p),
    "ggml_backend_sched_graph_compute": (c_int, c_void_p, c_void_p),
    "ggml_backend_sched_get_n_splits": (c_int, c_void_p),
    "ggml_backend_sched_get_n_copies": (c_int, c_void_p),
    "ggml_backend_sched_get_buffer_size": (c_size_t, c_void_p, c_void_p),
    "ggml_backend_sched_get_tensor_backend": (c_void_p, c_void_p, c_void_p),
    "ggml_backend_sched_set_tensor_backend": (None, c_void_p, c_void_p, c_void_p),
    "ggml_gallocr_new_n": (c_void_p, ctypes.POINTER(c_void_p), c_int),
    "ggml_gallocr_reserve_n": (c_bool, c_void_p, c_void_p, ctypes.POINTER(c_int), ctypes.POINTER(c_int)),
}.items():
    getattr(LIB, _name).restype = _result
    getattr(LIB, _name).argtypes = _arguments

N_WORDS = 40
WEIGHTS, COMPUTE = 1, 2
"""`enum ggml_backend_buffer_usage`, ggml/include/ggml-backend.h."""

Words = ctypes.Array[c_uint64]
ANSWER = ctypes.CFUNCTYPE(c_uint64, c_void_p, c_void_p, c_void_p)


def slot_of(call: Callable[[int], object], n: int = N_WORDS) -> int:
    """Which word of a table of functions `call` goes to first."""
    called: list[int] = []

    def noted(i: int) -> Any:
        def function(*_: object) -> int:
            called.append(i)
            return 0

        return ANSWER(function)

    callbacks = [noted(i) for i in range(n)]
    table = (c_uint64 * n)(*(ctypes.cast(c, c_void_p).value or 0 for c in callbacks))
    call(ctypes.addressof(table))
    return called[0]


def words_at(address: int, n: int) -> list[int]:
    return list((c_uint64 * n).from_address(address))


CPU = int(LIB.ggml_backend_cpu_init())
"""A CPU backend; its tables are what the devices start from."""

CPU_DEVICE = int(LIB.ggml_backend_get_device(CPU))
CPU_BUFT = int(LIB.ggml_backend_cpu_buffer_type())
TENSOR = ctypes.create_string_buffer(336)

BUFT_NAME = slot_of(LIB.ggml_backend_buft_name)
BUFT_ALLOC = slot_of(lambda a: LIB.ggml_backend_buft_alloc_buffer(a, 64))
BUFT_ALIGNMENT = slot_of(LIB.ggml_backend_buft_get_alignment)
BUFT_MAX_SIZE = slot_of(LIB.ggml_backend_buft_get_max_size)
BUFT_IS_HOST = slot_of(LIB.ggml_backend_buft_is_host)
DEV_SUPPORTS_OP = slot_of(lambda a: LIB.ggml_backend_dev_supports_op(a, TENSOR))
DEV_SUPPORTS_BUFT = slot_of(lambda a: LIB.ggml_backend_dev_supports_buft(a, CPU_BUFT))
DEV_OFFLOAD_OP = slot_of(lambda a: LIB.ggml_backend_dev_offload_op(a, TENSOR))
DEV_TYPE = slot_of(LIB.ggml_backend_dev_type)
BACKEND_NAME = slot_of(LIB.ggml_backend_name)
BACKEND_COMPUTE = slot_of(lambda a: LIB.ggml_backend_graph_compute_async(a, None))
BACKEND_OPTIMIZE = BACKEND_COMPUTE + 3
"""After it come event_record, event_wait and graph_optimize; a test of allocation dependencies would fail otherwise."""

BACKEND_DEVICE = words_at(CPU, N_WORDS).index(CPU_DEVICE)

Deps = Callable[[list[int]], list[tuple[int, int]]]
"""Nodes of a split -> pairs of a node and the one until which it must stay allocated."""


@dataclass
class RealDevice:
    """A backend whose memory only it reads, unless it is the CPU. It computes `ops`, all if None, with CPU kernels."""

    name: str
    cpu: bool = False
    alignment: int = 32
    max_size: int = 2**64 - 1
    ops: Collection[str] | None = None
    offloads: Collection[str] = ()
    deps: Deps | None = None
    computed: list[list[int]] = field(default_factory=list)
    buffers: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._keep: list[Any] = []
        self._name = ctypes.create_string_buffer(self.name.encode())
        self._buft = self._make_buft()
        self.buft = ctypes.addressof(self._buft)
        self._device = self._make_device()
        self._backend = self._make_backend()
        self.address = ctypes.addressof(self._backend)

    def _call(self, result: Any, arguments: Sequence[Any], function: Callable[..., Any]) -> int:
        callback = ctypes.CFUNCTYPE(result, *arguments)(function)
        self._keep.append(callback)
        return ctypes.cast(callback, c_void_p).value or 0

    def _make_buft(self) -> Words:
        words = words_at(CPU_BUFT, 10)
        alloc = ctypes.CFUNCTYPE(c_void_p, c_void_p, c_size_t)(words[BUFT_ALLOC])

        def give(buft: int, size: int) -> int:
            # the CPU aligns to 64 bytes: among a few of its buffers one begins where this device wants it
            tried = [int(alloc(buft, size))]
            while LIB.ggml_backend_buffer_get_base(tried[-1]) % self.alignment:
                tried.append(int(alloc(buft, size)))
            for buffer in tried[:-1]:
                LIB.ggml_backend_buffer_free(buffer)
            self.buffers.append(tried[-1])
            return tried[-1]

        words[BUFT_NAME] = self._call(c_void_p, [c_void_p], lambda _: ctypes.addressof(self._name))
        words[BUFT_ALLOC] = self._call(c_void_p, [c_void_p, c_size_t], give)
        words[BUFT_ALIGNMENT] = self._call(c_size_t, [c_void_p], lambda _: self.alignment)
        words[BUFT_MAX_SIZE] = self._call(c_size_t, [c_void_p], lambda _: self.max_size)
        words[BUFT_IS_HOST] = self._call(c_bool, [c_void_p], lambda _: self.cpu)
        return (c_uint64 * 10)(*words)

    def _make_device(self) -> Words:
        words = words_at(CPU_DEVICE, 24)

        def supports_op(_: int, t: int) -> bool:
            op = tensor_fields(t).op
            return self.ops is None or op in self.ops or op in ("NONE", "VIEW", "RESHAPE", "PERMUTE", "TRANSPOSE")

        words[DEV_SUPPORTS_OP] = self._call(c_bool, [c_void_p, c_void_p], supports_op)
        if not self.cpu:
            # 1: a graphics card; the scheduler wants the last backend to be 0, a CPU
            words[DEV_TYPE] = self._call(c_int, [c_void_p], lambda _: 1)
            words[DEV_SUPPORTS_BUFT] = self._call(c_bool, [c_void_p, c_void_p], lambda _, b: b == self.buft)
            offloads = self._call(c_bool, [c_void_p, c_void_p], lambda _, t: tensor_fields(t).op in self.offloads)
            words[DEV_OFFLOAD_OP] = offloads
        return (c_uint64 * 24)(*words)

    def _make_backend(self) -> Words:
        words = words_at(CPU, N_WORDS)
        compute = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p)(words[BACKEND_COMPUTE])

        def noted(_: int, graph: int) -> int:
            self.computed.append(RealGraph(graph).nodes)
            return int(compute(CPU, graph))

        def optimize(_: int, graph: int, params: int) -> None:
            add, user_data = words_at(params, 2)
            add_alloc_dep = ctypes.CFUNCTYPE(None, c_void_p, c_void_p, c_void_p)(add)
            for t, until in self.deps(RealGraph(graph).nodes) if self.deps else ():
                add_alloc_dep(user_data, t, until)

        words[BACKEND_NAME] = self._call(c_void_p, [c_void_p], lambda _: ctypes.addressof(self._name))
        words[BACKEND_COMPUTE] = self._call(c_int, [c_void_p, c_void_p], noted)
        words[BACKEND_OPTIMIZE] = self._call(None, [c_void_p, c_void_p, c_void_p], optimize)
        words[BACKEND_DEVICE] = ctypes.addressof(self._device)
        return (c_uint64 * N_WORDS)(*words)

    def place_of(self, t: Fields) -> tuple[int, int]:
        """Chunk and offset of a tensor in the buffers that this device gave."""
        return self.buffers.index(t.buffer), t.data - int(LIB.ggml_backend_buffer_get_base(t.buffer))


GRAPH_AT, SPLITS_AT, SPLIT_SIZE = 344, 440, 128
"""Where `struct ggml_backend_sched` keeps the graph that it plans and the splits, with their number."""


class RealSplit(NamedTuple):
    backend: str
    i_start: int
    i_end: int
    inputs: list[int]


class RealSched:
    """`ggml_backend_sched` over devices."""

    def __init__(
        self, devices: Sequence[RealDevice], size: int = 2048, *, parallel: bool = False, offload: bool = True
    ):
        self.devices = devices
        backends = (c_void_p * len(devices))(*(d.address for d in devices))
        bufts = (c_void_p * len(devices))(*(d.buft for d in devices))
        self.address = LIB.ggml_backend_sched_new(backends, bufts, len(devices), size, parallel, offload)

    def alloc_graph(self, graph: RealGraph) -> None:
        assert LIB.ggml_backend_sched_alloc_graph(self.address, graph.address)

    def compute(self, graph: RealGraph) -> None:
        assert LIB.ggml_backend_sched_graph_compute(self.address, graph.address) == 0

    def reserve(self, graph: RealGraph) -> None:
        assert LIB.ggml_backend_sched_reserve(self.address, graph.address)

    def reset(self) -> None:
        LIB.ggml_backend_sched_reset(self.address)

    @property
    def graph(self) -> RealGraph:
        """The graph that was planned, copies among its nodes."""
        return RealGraph(self.address + GRAPH_AT)

    @property
    def splits(self) -> list[RealSplit]:
        at, n = struct.unpack("<Qi", ctypes.string_at(self.address + SPLITS_AT, 12))
        assert n == LIB.ggml_backend_sched_get_n_splits(self.address), "struct ggml_backend_sched has changed"
        found = []
        for i in range(n):
            id, first, last, inputs, n_inputs = struct.unpack("<3i4xQi", ctypes.string_at(at + i * SPLIT_SIZE, 28))
            found.append(RealSplit(self.devices[id].name, first, last, words_at(inputs, n_inputs) if n_inputs else []))
        return found

    def buffer_sizes(self) -> list[int]:
        return [int(LIB.ggml_backend_sched_get_buffer_size(self.address, d.address)) for d in self.devices]

    def backend_of(self, t: int) -> str:
        at = LIB.ggml_backend_sched_get_tensor_backend(self.address, t)
        return next((d.name for d in self.devices if d.address == at), "")

    def set_backend(self, t: int, device: RealDevice) -> None:
        LIB.ggml_backend_sched_set_tensor_backend(self.address, t, device.address)

    def free(self) -> None:
        LIB.ggml_backend_sched_free(self.address)
