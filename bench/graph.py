"""Graph building, reserve and plan of an 80-layer llama graph (70 B, no weights), hooks off, beside real ggml's.

python bench/graph.py [N_TOKENS]        # default 512

Real ggml gets the same builder calls, replayed through ctypes from arguments made ready before; what the calls
themselves cost, measured with a function that does nothing, is taken off.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import c_char_p, c_float, c_int, c_int64, c_size_t, c_void_p
from pathlib import Path
from time import perf_counter
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.oracle import LIB, InitParams, RealGraph, tensor_fields
from tests.oracle_backend import CPU
from tests.oracle_graph import DATA, CPlan
from vizggml.ggml import ops
from vizggml.ggml.buffer import cpu_buffer_type
from vizggml.ggml.cgraph import Graph
from vizggml.ggml.context import Context
from vizggml.ggml.cplan import graph_plan
from vizggml.ggml.gallocr import GraphAllocator
from vizggml.ggml.tensor import Tensor
from vizggml.llama.batch import reserve
from vizggml.llama.cparams import ContextParams, CParams
from vizggml.llama.loader import make_weights
from vizggml.llama.plan import CountingBackend, place_all, shape_model
from vizggml.llama.reserve import Reservation

SHAPE, MIXTURE = "llama-70b", "Q4_K_M"
N_CTX, N_THREADS = 2048, 16
REPEAT = 9
TARGET = 0.6

PARTS = ("build", "reserve", "plan", "sched")
"""Building the graph, the graph allocator's reserve, the plan of the computation; and the scheduler's reserve."""

Split = tuple[float, ...]
Call = tuple[str, tuple[Any, ...], Any]
"""A function of ggml, its arguments as ours had them, and what ours gave."""

LIB.ggml_graph_plan.restype = CPlan
LIB.ggml_graph_plan.argtypes = (c_void_p, c_int, c_void_p)


def reservation() -> Reservation:
    """A model and a cache that count and hold nothing."""
    hparams, table = shape_model(SHAPE, MIXTURE)
    weights = make_weights(table, hparams)
    backend = CountingBackend("CPU")
    weights.buffers.append(place_all(list(weights.tensors.values()), backend.buft))
    params = CParams.resolve(ContextParams(n_ctx=N_CTX, n_threads=N_THREADS, flash_attn=True), hparams)
    return Reservation(hparams, weights, params, [backend], backend.buft)


def build(made: Reservation, n_tokens: int) -> Graph:
    """The graph that sees the whole cache, into the standing result, as `graph_reserve` builds it."""
    ubatch = reserve(n_tokens, 1, 1)
    mctx = made.memory.init_full()
    result = made.gf_res_reserve
    result.reset()
    made.build_graph(result, made.graph_params(ubatch, mctx, 1))
    return result.gf


def ours(made: Reservation, n_tokens: int) -> Split:
    gc.collect()
    begin = perf_counter()
    graph = build(made, n_tokens)
    built = perf_counter()
    galloc = GraphAllocator(cpu_buffer_type())
    galloc.reserve(graph)
    reserved = perf_counter()
    graph_plan(graph, N_THREADS)
    planned = perf_counter()
    galloc.free()
    made.sched.reset()
    reset = perf_counter()
    made.sched.reserve(graph)
    return built - begin, reserved - built, planned - reserved, perf_counter() - reset


@contextmanager
def written() -> Iterator[list[Call]]:
    """Every builder call made inside, those of the builders themselves left out."""
    calls: list[Call] = []
    inside = False

    def wrap(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def outer(*arguments: Any) -> Any:
            nonlocal inside
            if inside:
                return function(*arguments)
            inside = True
            try:
                made = function(*arguments)
            finally:
                inside = False
            calls.append((name, arguments, made))
            return made

        return outer

    builders = [name for name in vars(ops) if callable(getattr(ops, name)) and hasattr(LIB, f"ggml_{name}")]
    patched: list[tuple[Any, str, str]] = [(ops, name, f"ggml_{name}") for name in builders]
    patched += [(Context, "new_tensor", "new_tensor"), (Graph, "build_forward_expand", "ggml_build_forward_expand")]
    patched += [(Graph, "build_forward_select", "ggml_build_forward_select")]
    patched += [(Tensor, name, f"ggml_{name}") for name in ("set_name", "set_input", "set_output")]
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in patched]
    for (owner, name, called), (_, _, function) in zip(patched, before, strict=True):
        setattr(owner, name, wrap(called, function))
    try:
        yield calls
    finally:
        for owner, name, function in before:
            setattr(owner, name, function)


class Real:
    """The same calls for real ggml: its arena is memory of ours, so that each run gives the same addresses."""

    def __init__(self, graph: Graph, calls: list[Call]) -> None:
        self.arena = ctypes.create_string_buffer(graph.ctx.mem_size + 64)
        self.own = LIB.ggml_init(InitParams(64 << 20, None, True))
        self.size = graph.size
        self.address: dict[int, int] = {}
        self.ctx = graph.ctx
        self.c = LIB.ggml_init(InitParams(len(self.arena) - 64, ctypes.addressof(self.arena), True))
        self.begin()
        self.calls = [self.resolve(*call) for call in calls]
        self.sched = LIB.ggml_backend_sched_new((c_void_p * 1)(CPU), None, 1, self.size, False, False)
        self.names = [t.name for t in graph.nodes]
        self.check()

    def begin(self) -> None:
        LIB.ggml_reset(self.c)
        self.graph = RealGraph(int(LIB.ggml_new_graph_custom(self.c, self.size, False)))

    def of(self, t: Tensor) -> int:
        """Its address; a weight or a cache gets a record elsewhere, with memory as far as the allocator can see."""
        if t.id not in self.address:
            assert t.data is not None, f"{t.name}: no builder call gave it"
            address = LIB.ggml_new_tensor(self.own, t.type.id, 4, (c_int64 * 4)(*t.ne))
            LIB.ggml_set_name(address, t.name.encode())
            c_size_t.from_address(address + DATA).value = 64
            self.address[t.id] = int(address)
        return self.address[t.id]

    def resolve(self, name: str, arguments: tuple[Any, ...], made: Any) -> tuple[Any, tuple[Any, ...]]:
        """The function and its arguments as ctypes wants them, called once to know what it gives."""
        given: list[Any]
        if name == "new_tensor":
            _, type, ne, *_ = arguments
            name, given = (
                "ggml_new_tensor",
                [c_void_p(self.c), c_int(type.id), c_int(len(ne)), (c_int64 * len(ne))(*ne)],
            )
        elif name == "ggml_build_forward_select":
            listed = (c_void_p * len(arguments[1]))(*(self.of(t) for t in arguments[1]))
            given = [c_void_p(self.graph.address), listed, c_int(len(arguments[1])), c_int(arguments[2])]
        else:
            given = [self.value(a) for a in arguments]
        function = LIB[name]
        function.restype = c_void_p
        answer = function(*given)
        if isinstance(made, Tensor) and made.id not in self.address:
            self.address[made.id] = int(answer)
        return function, tuple(given)

    def value(self, a: Any) -> Any:
        if isinstance(a, Tensor):
            return c_void_p(self.of(a))
        if isinstance(a, Context):
            return c_void_p(self.c)
        if isinstance(a, Graph):
            return c_void_p(self.graph.address)
        if isinstance(a, float):
            return c_float(a)
        if isinstance(a, str):
            return c_char_p(a.encode())
        return c_int64(getattr(a, "id", a) or 0)

    def check(self) -> None:
        assert [tensor_fields(t).name for t in self.graph.nodes] == self.names, "the two graphs differ"

    def replay(self, function: Any = None) -> float:
        begin = perf_counter()
        for called, arguments in self.calls:
            (function or called)(*arguments)
        return perf_counter() - begin

    def split(self) -> Split:
        begin = perf_counter()
        self.begin()
        made = perf_counter() - begin
        built = made + self.replay()
        self.check()
        idle = LIB["ggml_get_mem_size"]
        idle.restype = c_void_p
        built -= min(self.replay(idle) for _ in range(5))
        galloc = LIB.ggml_gallocr_new(LIB.ggml_backend_cpu_buffer_type())
        begin = perf_counter()
        assert LIB.ggml_gallocr_reserve(galloc, self.graph.address)
        reserved = perf_counter()
        self.plan = LIB.ggml_graph_plan(self.graph.address, N_THREADS, None)
        planned = perf_counter()
        self.compute_size = int(LIB.ggml_gallocr_get_buffer_size(galloc, 0))
        LIB.ggml_gallocr_free(galloc)
        LIB.ggml_backend_sched_reset(self.sched)
        reset = perf_counter()
        assert LIB.ggml_backend_sched_reserve(self.sched, self.graph.address)
        return built, reserved - begin, planned - reserved, perf_counter() - reset


def best(splits: list[Split]) -> Split:
    """The shortest time of each part: what is left when nothing else ran."""
    return tuple(min(part) for part in zip(*splits, strict=True))


def main() -> int:
    n_tokens = int(sys.argv[1]) if len(sys.argv) > 1 else 512
    made = reservation()
    with written() as calls:
        graph = build(made, n_tokens)
    real = Real(graph, calls)
    runs = [ours(made, n_tokens) for _ in range(REPEAT)]
    mine, theirs = best(runs), best([real.split() for _ in range(REPEAT)])
    graph = made.gf_res_reserve.gf
    (compute_size,) = GraphAllocator(cpu_buffer_type()).reserve_n_size(graph)
    assert compute_size == real.compute_size, "the two plans of memory differ"
    assert graph_plan(graph, N_THREADS).work_size == real.plan.work_size, "the two plans of scratch differ"
    print(f"{SHAPE}, {n_tokens} tokens: {len(graph.nodes)} nodes, {len(graph.leafs)} leafs, {len(calls)} builder calls")
    print(f"compute buffer {compute_size:,} B and scratch {real.plan.work_size:,} B, the same in both")
    for what, mine_s, theirs_s in zip(PARTS, mine, theirs, strict=True):
        print(f"{what:8} {mine_s * 1e3:8.2f} ms, {mine_s / theirs_s:6.1f} times real ggml's")
    total, real_total = sum(mine[:3]), sum(theirs[:3])
    print(f"build, reserve and plan: {total * 1e3:.2f} ms, {total / real_total:.1f} times real ggml's")
    slowest = max(map(sum, runs))
    print(f"the slowest of {REPEAT} runs, the scheduler's reserve too: {slowest * 1e3:.1f} ms of {TARGET * 1e3:g}")
    return 0 if slowest < TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
