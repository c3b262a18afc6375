"""Random graphs, by our builders and by real ggml's: everything that can be observed is the same.

python -m tests.ggml.test_programs 300 5300      checks the programs of these seeds and says how many there were
"""

from __future__ import annotations

import ctypes
import random
import sys
from ctypes import c_int, c_void_p

import pytest

from tests import oracle_backend  # noqa: F401  (declares ggml_gallocr_new_n and ggml_gallocr_reserve_n)
from tests.ggml.programs import Ours, Program, Reals, Step, program
from tests.oracle import LIB, BufferType, tensor_fields
from tests.oracle_graph import CPlan
from vizggml.errors import VizggmlError
from vizggml.ggml import buffer
from vizggml.ggml.buffer import SIZE_MAX
from vizggml.ggml.cplan import graph_plan
from vizggml.ggml.gallocr import GraphAllocator
from vizggml.ggml.tensor import Tensor

THREADS = (1, 2, 4, 16)

LIB.ggml_graph_plan.restype = CPlan
LIB.ggml_graph_plan.argtypes = (c_void_p, c_int, c_void_p)


def varied(steps: Program, rng: random.Random) -> Program:
    """Nearly the same program: other types, memory given or taken, other roots. Sometimes exactly the same."""
    chance = rng.choice((0.0, 0.1, 0.4))

    def change(step: Step) -> Step:
        if rng.random() >= chance:
            return step
        if step[0] == "leaf":
            _, type, ne, name, external = step
            return "leaf", type, ne, name, not external and ne != ()
        if step[0] == "op" and step[1] == "cast":
            return *step[:2], (step[2][0], rng.choice(("F32", "F16"))), step[3]
        return step

    # a cast that something reads must stay what it is
    roots = list(steps.roots)
    if rng.random() < 0.3:
        rng.shuffle(roots)
    if len(roots) > 1 and rng.random() < 0.2:
        roots.pop()
    return Program([change(step) if _free(step, i, steps) else step for i, step in enumerate(steps.steps)], roots)


def _free(step: Step, i: int, steps: Program) -> bool:
    """Whether nothing in the program depends on what the step's tensor is."""
    if step[0] != "op" or step[1] != "cast":
        return True
    number = sum(s[0] != "flag" for s in steps.steps[:i])
    return not any(s[0] == "op" and number in [s[2][r] for r in s[3]] for s in steps.steps)


def grown(steps: Program) -> Program:
    """Each leaf that is not read with a view's strides: the same graph, F32 where F16 was."""
    made = [
        (*step[:1], "F32", *step[2:]) if step[0] == "leaf" and step[1] == "F16" and _only_multiplied(i, steps) else step
        for i, step in enumerate(steps.steps)
    ]
    return Program(made, steps.roots)


def _only_multiplied(i: int, steps: Program) -> bool:
    number = sum(s[0] != "flag" for s in steps.steps[:i])
    readers = [s[1] for s in steps.steps if s[0] == "op" and number in [s[2][r] for r in s[3]]]
    return bool(readers) and set(readers) <= {"mul_mat", "cpy"}


class Pair:
    """One program on both sides."""

    def __init__(self, steps: Program) -> None:
        self.ours, self.reals = Ours(steps), Reals(steps)
        self.mine = [t for t in self.ours.tensors if t.data is None]

    def free(self) -> None:
        self.reals.free()

    def check_graph(self) -> None:
        """Order, leafs, use counts, flags, names and bytes of the arena."""
        ours, reals = self.ours, self.reals
        number = {address: i for i, address in enumerate(reals.tensors)}
        place = {t.id: i for i, t in enumerate(ours.tensors)}
        assert [place[t.id] for t in ours.graph.nodes] == [number[t] for t in reals.graph.nodes]
        assert [place[t.id] for t in ours.graph.leafs] == [number[t] for t in reals.graph.leafs]
        assert ours.ctx.used_mem == reals.real.used_mem()
        assert ours.own.used_mem == reals.own.used_mem()
        for t, address in zip(ours.tensors, reals.tensors, strict=True):
            f = tensor_fields(address)
            assert (t.name, t.flags, t.ne, t.nb, t.op) == (f.name, f.flags, f.ne, f.nb, f.op)
            assert t.view_offs == f.view_offs
        for t in (*ours.graph.nodes, *ours.graph.leafs):
            assert ours.graph.use_count(t) == reals.graph.use_count(reals.tensors[place[t.id]]), t

    def check_plans(self) -> None:
        for n_threads in THREADS:
            theirs = LIB.ggml_graph_plan(self.reals.graph.address, n_threads, None)
            assert graph_plan(self.ours.graph, n_threads).work_size == theirs.work_size, n_threads

    def check_places(self, galloc: GraphAllocator, buft: BufferType) -> None:
        """Chunk and offset of each tensor; that reuse is the same follows."""
        chunks = galloc.buffers[0]
        assert chunks is not None
        for t, address in zip(self.ours.tensors, self.reals.tensors, strict=True):
            f = tensor_fields(address)
            if t in self.mine and t.buffer is not None:
                assert (chunks.index(t.buffer), offset(t)) == buft.place_of(f), t
            elif t in self.mine and t.view_src in self.mine:
                assert not f.buffer, t
        assert [chunk.size for chunk in chunks] == buft.sizes()


def offset(t: Tensor) -> int:
    assert t.data is not None
    return t.data.offset


Answer = tuple[bool, bool] | None


def check_second(first: Program, second: Program, alignment: int, max_size: int) -> Answer:
    """A plan for the first graph meets the second: whether it serves, and whether the memory does.

    With two buffer types real ggml says whether the plan serves; with one it plans anew at once. None where it
    seems to serve but has too little for the leaf that is now in that place: real ggml, which compares what nodes read
    and not the list of leafs, would end the process or write anywhere.
    """
    pairs = [Pair(first), Pair(second), Pair(first), Pair(second)]
    ours = GraphAllocator([buffer.BufferType("CPU", alignment, max_size), buffer.BufferType("other", alignment)])
    bufts = BufferType(alignment, max_size), BufferType(alignment)
    galloc = LIB.ggml_gallocr_new_n((c_void_p * 2)(*(b.address for b in bufts)), 2)
    none = ctypes.POINTER(c_int)()
    ours.reserve_n(pairs[0].ours.graph)
    assert LIB.ggml_gallocr_reserve_n(galloc, pairs[0].reals.graph.address, none, none)
    try:
        serves = ours.alloc_graph(pairs[1].ours.graph)
    except VizggmlError:
        leafs = zip(pairs[1].ours.graph.leafs, ours.leaf_allocs, strict=True)
        assert any(leaf.nbytes > planned.size_max for leaf, planned in leafs)
        return None
    assert serves == LIB.ggml_gallocr_alloc_graph(galloc, pairs[1].reals.graph.address)
    LIB.ggml_gallocr_free(galloc)
    ours = GraphAllocator(buffer.BufferType("CPU", alignment, max_size))
    buft = BufferType(alignment, max_size)
    galloc = LIB.ggml_gallocr_new(buft.address)
    ours.alloc_graph(pairs[2].ours.graph)
    assert LIB.ggml_gallocr_alloc_graph(galloc, pairs[2].reals.graph.address)
    standing, held = ours.buffers[0], list(buft.buffers)
    ours.alloc_graph(pairs[3].ours.graph)
    assert LIB.ggml_gallocr_alloc_graph(galloc, pairs[3].reals.graph.address)
    kept = ours.buffers[0] is standing
    assert kept == (buft.buffers == held)
    if not kept:
        del buft.buffers[: len(held)]
    pairs[3].check_places(ours, buft)
    LIB.ggml_gallocr_free(galloc)
    for pair in pairs:
        pair.free()
    return serves, kept


def check(seed: int) -> Answer:
    """The program of a seed; of the graph that follows it, whether the plan and the memory serve."""
    rng = random.Random(seed)
    steps = program(seed)
    alignment, max_size = rng.choice((8, 32, 32, 64)), rng.choice((SIZE_MAX, SIZE_MAX, 256, 1024))
    pair = Pair(steps)
    pair.check_graph()
    pair.check_plans()
    galloc, buft = GraphAllocator(buffer.BufferType("CPU", alignment, max_size)), BufferType(alignment, max_size)
    galloc.alloc_graph(pair.ours.graph)
    real = LIB.ggml_gallocr_new(buft.address)
    assert LIB.ggml_gallocr_alloc_graph(real, pair.reals.graph.address)
    pair.check_places(galloc, buft)
    LIB.ggml_gallocr_free(real)
    pair.free()
    other = rng.choice((varied(steps, rng), varied(steps, rng), grown(steps), program(seed + 1)))
    first, second = (steps, other) if rng.random() < 0.7 else (other, steps)
    return check_second(first, second, alignment, max_size)


@pytest.mark.parametrize("block", range(6))
def test_random_programs(block: int) -> None:
    answers = [check(seed) for seed in range(block * 50, block * 50 + 50)]
    # both answers come up, in every combination that there is
    assert {(True, True), (False, True), (False, False)} <= set(answers)


if __name__ == "__main__":
    seeds = range(int(sys.argv[1]), int(sys.argv[2]))
    answers = [check(seed) for seed in seeds]
    found = [answer for answer in answers if answer]
    print(
        f"{len(answers)} graphs alike; of {len(found)} the second graphs the plan served {sum(s for s, _ in found)}",
        end="",
    )
    print(f", the memory {sum(k for _, k in found)}")
