"""The scheduler against real ggml's: for random graphs over two backends, every assignment, split, copy and address."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from tests.ggml.programs import Ours, Program, Reals, Step, program
from tests.oracle import LIB, Real, tensor_fields
from tests.oracle_backend import WEIGHTS, RealDevice, RealSched
from vizggml.errors import VizggmlError
from vizggml.ggml.backend import CPUBackend
from vizggml.ggml.buffer import Buffer, BufferType, alloc_ctx_tensors_from_buft
from vizggml.ggml.context import Context
from vizggml.ggml.device import DeviceBackend
from vizggml.ggml.sched import BackendSched
from vizggml.ggml.tensor import Tensor

OPS = ["MUL_MAT", "ADD", "MUL", "SUB", "DIV", "UNARY", "RMS_NORM", "SCALE", "SOFT_MAX", "CONT", "CPY", "ROPE", "SQR"]
VIEWS = ("NONE", "VIEW", "RESHAPE", "PERMUTE", "TRANSPOSE")


class Device(DeviceBackend):
    """A device that computes some ops, and asks for some whose weights the CPU has."""

    def __init__(self, ops: list[str], offloads: list[str], max_size: int) -> None:
        super().__init__("DEV0", fast=False)
        # like ggml's own tests' backend, it lets a single tensor be larger
        self.buft = BufferType("DEV0", 128, max_size)
        self.ops, self.offloads = ops, offloads

    def supports_op(self, t: Tensor) -> bool:
        return t.op in self.ops or t.op in VIEWS

    def offload_op(self, t: Tensor) -> bool:
        return t.op in self.offloads


@dataclass
class Setting:
    """What is drawn at random beside the program: `homes` are the backends of the tensors that have memory."""

    ops: list[str]
    offloads: list[str]
    parallel: bool
    max_size: int
    asked: dict[int, int]
    homes: list[int]

    @classmethod
    def drawn(cls, rng: random.Random, steps: Program) -> Setting:
        n_leafs = sum(step[0] == "leaf" for step in steps.steps)
        n = sum(step[0] != "flag" for step in steps.steps)
        return cls(
            rng.sample(OPS, rng.randint(3, len(OPS))),
            rng.sample(OPS, rng.choice((0, 0, 3))),
            rng.random() < 0.25,
            rng.choice((2**64 - 1, 2**64 - 1, 1024)),
            {i: rng.randrange(2) for i in range(n) if rng.random() < 0.04},
            [rng.randrange(2) for _ in range(n_leafs)],
        )


class OursPlaced(Ours):
    """The tensors that have memory are weights, in a device's buffer or the CPU's."""

    def __init__(self, program: Program, setting: Setting, bufts: list[BufferType]) -> None:
        self.homes = iter(setting.homes)
        self.owns = [Context(1 << 20, no_alloc=True) for _ in bufts]
        super().__init__(program)
        for own, buft in zip(self.owns, bufts, strict=True):
            alloc_ctx_tensors_from_buft(own, buft, "weights")

    def run(self, step: Step) -> Tensor | None:
        if step[0] == "leaf":
            self.own = self.owns[next(self.homes)]
        return super().run(step)


class RealsPlaced(Reals):
    def __init__(self, program: Program, setting: Setting, devices: list[RealDevice]) -> None:
        self.homes = iter(setting.homes)
        self.owns = [Real(1 << 20) for _ in devices]
        super().__init__(program)
        for own, device in zip(self.owns, devices, strict=True):
            held = LIB.ggml_backend_alloc_ctx_tensors_from_buft(own.ctx, device.buft)
            if held:
                LIB.ggml_backend_buffer_set_usage(held, WEIGHTS)
            device.buffers.clear()

    def run(self, step: Step) -> None:
        if step[0] == "leaf":
            self.own = self.owns[next(self.homes)]
        super().run(step)


Seen = tuple[object, ...]


def our_places(sched: BackendSched, tensors: list[Tensor]) -> list[Seen]:
    """Name, op, sources and place of each tensor: backend, chunk and offset, -1 for what was not planned here."""
    chunks: dict[Buffer, tuple[int, int]] = {}
    for id, buffers in enumerate(sched.galloc.buffers):
        chunks.update({b: (id, c) for c, b in enumerate(buffers or [])})
    found: list[Seen] = []
    for t in tensors:
        at = chunks.get(t.buffer, (-1, -1)) if t.buffer is not None else (-1, -1)
        offset = t.data.offset if t.data is not None and at[0] >= 0 else -1
        found.append((t.name, t.op, [s.name for s in t.src if s], t.flags, *at, offset))
    return found


def real_places(devices: list[RealDevice], tensors: list[int]) -> list[Seen]:
    found: list[Seen] = []
    for t in tensors:
        f = tensor_fields(t)
        homes = [(id, *d.place_of(f)) for id, d in enumerate(devices) if f.buffer in d.buffers]
        sources = [tensor_fields(s).name for s in f.src if s]
        found.append((f.name, f.op, sources, f.flags, *(homes[0] if homes else (-1, -1, -1))))
    return found


def check(seed: int) -> bool:
    """Whether the program can be scheduled; if so, that real ggml schedules it in the same way."""
    rng = random.Random(seed)
    steps = program(seed)
    setting = Setting.drawn(rng, steps)
    device, cpu = Device(setting.ops, setting.offloads, setting.max_size), CPUBackend(1, fast=False)
    ours = OursPlaced(steps, setting, [device.buft, cpu.buft])
    sched = BackendSched([device, cpu], 512, parallel=setting.parallel)
    for i, id in setting.asked.items():
        sched.set_tensor_backend(ours.tensors[i], sched.backends[id])
    try:
        sched.alloc_graph(ours.graph)
    except VizggmlError:
        # real ggml would end the process
        return False
    real_device = RealDevice("DEV0", False, 128, setting.max_size, setting.ops, setting.offloads)
    devices = [real_device, RealDevice("CPU", cpu=True)]
    reals = RealsPlaced(steps, setting, devices)
    real = RealSched(devices, 512, parallel=setting.parallel)
    for i, id in setting.asked.items():
        real.set_backend(reals.tensors[i], devices[id])
    real.alloc_graph(reals.graph)
    splits = [(sched.backends[s.backend_id].name, s.i_start, s.i_end, [t.name for t in s.inputs]) for s in sched.splits]
    assert splits == [(*s[:3], [tensor_fields(t).name for t in s.inputs]) for s in real.splits]
    for t, address in zip(ours.tensors, reals.tensors, strict=True):
        backend = sched.get_tensor_backend(t)
        assert (backend.name if backend else "") == real.backend_of(address), (seed, t)
    planned = sched.graph
    assert planned is not None
    assert our_places(sched, planned.nodes) == real_places(devices, real.graph.nodes)
    assert our_places(sched, planned.leafs) == real_places(devices, real.graph.leafs)
    assert [sched.get_buffer_size(b) for b in sched.backends] == real.buffer_sizes()
    real.free()
    reals.free()
    return True


@pytest.mark.parametrize("block", range(4))
def test_random_programs_are_scheduled_as_in_real_ggml(block: int) -> None:
    done = sum(check(seed) for seed in range(block * 25, block * 25 + 25))
    assert done > 15
