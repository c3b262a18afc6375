"""Random programs of builder calls, run by our builders and by real ggml's.

A program is a list of steps that name earlier tensors by number, so that both sides get the same calls. It uses views,
in-place ops, inputs, outputs, parameters, casts, and tensors that have memory of their own.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.oracle import LIB, Real, RealGraph
from vizggml.ggml import ops
from vizggml.ggml.cgraph import Graph
from vizggml.ggml.context import Context, contiguous_strides
from vizggml.ggml.tensor import Tensor
from vizggml.ggml.types import FLAG_PARAM, TYPES

Step = tuple[Any, ...]
"""("leaf", type, ne, name, external) | ("op", name, arguments, which of them are tensors) | ("flag", what, number)"""

SIDE = 1 << 20


@dataclass
class Program:
    """`roots` are expanded in order, those marked False only for their order."""

    steps: list[Step] = field(default_factory=list)
    roots: list[tuple[int, bool]] = field(default_factory=list)


class Ours:
    """The program through our builders."""

    def __init__(self, program: Program, mem_size: int = 1 << 20) -> None:
        self.ctx = Context(mem_size, no_alloc=True)
        self.own = Context(SIDE, no_alloc=False)
        self.tensors: list[Tensor] = []
        for step in program.steps:
            self.run(step)
        self.graph = Graph(self.ctx, 512)
        for root, compute in program.roots:
            build = self.graph.build_forward_expand if compute else self.graph.build_forward_order
            build(self.tensors[root])

    def run(self, step: Step) -> Tensor | None:
        made: Tensor
        if step[0] == "leaf":
            _, type, ne, name, external = step
            made = (self.own if external else self.ctx).new_tensor(type, ne, name)
        elif step[0] == "op":
            _, name, arguments, refs = step
            given = [self.tensors[a] if i in refs else a for i, a in enumerate(arguments)]
            made = getattr(ops, name)(self.ctx, *given)
        else:
            t = self.tensors[step[2]]
            {"input": t.set_input, "output": t.set_output, "param": lambda: t.set_flag(FLAG_PARAM)}[step[1]]()
            return None
        self.tensors.append(made)
        return made


class Reals:
    """The program through real ggml's."""

    def __init__(self, program: Program) -> None:
        self.real, self.own = Real(1 << 20), Real(SIDE, no_alloc=False)
        self.tensors: list[int] = []
        for step in program.steps:
            self.run(step)
        self.graph: RealGraph = self.real.graph(512)
        for root, compute in program.roots:
            build = self.graph.build_forward_expand if compute else self.graph.build_forward_order
            build(self.tensors[root])

    def run(self, step: Step) -> None:
        if step[0] == "leaf":
            _, type, ne, name, external = step
            self.tensors.append((self.own if external else self.real).new_tensor(type, ne, name))
        elif step[0] == "op":
            _, name, arguments, refs = step
            given = [self.tensors[a] if i in refs else a for i, a in enumerate(arguments)]
            given = [TYPES[a].id if isinstance(a, str) else a for a in given]
            self.tensors.append(self.real.op(name, *given))
        else:
            LIB[f"ggml_set_{step[1]}"](LIB.ggml_set_input.argtypes[0](self.tensors[step[2]]))

    def free(self) -> None:
        self.real.free()
        self.own.free()


class Maker:
    """Makes a program, looking at the shapes that our builders give."""

    def __init__(self, rng: random.Random, n_steps: int) -> None:
        self.rng = rng
        self.program = Program()
        self.ours = Ours(self.program)
        self.leaf("F32", self.shape())
        while len(self.program.steps) < n_steps:
            rng.choice(CHOICES)(self)
        n = len(self.ours.tensors)
        roots = [n - 1, *rng.choices(range(n), k=rng.choice((0, 0, 1, 3)))]
        rng.shuffle(roots)
        self.program.roots = [(root, rng.random() < 0.9) for root in roots]

    def add(self, *step: Any) -> Tensor | None:
        made = self.ours.run(step)
        self.program.steps.append(step)
        return made

    def op(self, name: str, *arguments: Any, refs: tuple[int, ...] = (0,)) -> int:
        self.add("op", name, arguments, refs)
        if self.rng.random() < 0.08:
            self.add("flag", "output", len(self.ours.tensors) - 1)
        return len(self.ours.tensors) - 1

    def leaf(self, type: str, ne: tuple[int, ...]) -> int:
        external = self.rng.random() < 0.3 and math.prod(ne) < 4000
        name = self.rng.choice(("", f"t{len(self.ours.tensors)}"))
        self.add("leaf", type, ne, name, external)
        number = len(self.ours.tensors) - 1
        if self.rng.random() < 0.2:
            self.add("flag", self.rng.choice(("input", "input", "output", "param")), number)
        return number

    def shape(self) -> tuple[int, ...]:
        rng = self.rng
        return tuple(rng.choice((1, 2, 3, 4, 6, 8, 16, 24)) for _ in range(rng.choice((1, 2, 2, 3, 4))))

    def t(self, number: int) -> Tensor:
        return self.ours.tensors[number]

    def pick(self, ok: Callable[[Tensor], bool] = lambda t: True) -> int:
        """A tensor, rather a late one, that is F32 and `ok`; a new leaf if there is none."""
        found = [i for i, t in enumerate(self.ours.tensors) if t.type.name == "F32" and ok(t)]
        if not found:
            return self.leaf("F32", self.shape())
        return self.rng.choice(found[-6:] if self.rng.random() < 0.7 else found)


def contiguous(t: Tensor) -> bool:
    """No gaps, and strides that say so even where a dimension is 1."""
    return t.nb == contiguous_strides(t.type, t.ne)


def binary(m: Maker) -> None:
    a = m.pick(contiguous)
    ne = m.t(a).ne
    same = m.pick(lambda t: t.ne == ne)
    b = same if m.t(same).ne == ne and m.rng.random() < 0.6 else m.leaf("F32", (ne[0],))
    m.op(m.rng.choice(("add", "mul", "sub", "div", "add_inplace", "mul_inplace")), a, b, refs=(0, 1))


def unary(m: Maker) -> None:
    a = m.pick(lambda t: t.is_contiguous_rows)
    m.op(m.rng.choice(("relu", "silu", "gelu", "tanh", "exp", "relu_inplace", "silu_inplace")), a)


def elementwise(m: Maker) -> None:
    m.op(m.rng.choice(("sqr", "sqrt", "log", "sin", "dup", "sum", "sum_rows", "mean", "cont", "sqr_inplace")), m.pick())


def rows(m: Maker) -> None:
    a = m.pick(contiguous)
    name, arguments = m.rng.choice(
        (
            ("rms_norm", (1e-5,)),
            ("norm", (1e-5,)),
            ("scale", (0.5,)),
            ("scale_inplace", (2.0,)),
            ("clamp", (-1.0, 1.0)),
            ("soft_max", ()),
            ("soft_max_inplace", ()),
            ("diag_mask_inf", (1,)),
            ("rms_norm_inplace", (1e-6,)),
        )
    )
    m.op(name, a, *arguments)


def mul_mat(m: Maker) -> None:
    b = m.pick()
    ne = m.t(b).ne
    w = m.leaf(m.rng.choice(("F32", "F16")), (ne[0], m.rng.choice((1, 4, 10))))
    m.op("mul_mat", w, b, refs=(0, 1))


def reshape(m: Maker) -> None:
    a = m.pick(contiguous)
    n = m.t(a).nelements
    d = m.rng.choice([d for d in (1, 2, 3, 4) if n % d == 0])
    m.op("reshape_2d", a, n // d, d)


def view(m: Maker) -> None:
    a = m.pick(lambda t: t.is_contiguous() and not t.is_empty)
    t, rng = m.t(a), m.rng
    if rng.random() < 0.4:
        ne0 = rng.randint(1, t.nelements)
        m.op("view_1d", a, ne0, 4 * rng.randint(0, t.nelements - ne0))
    else:
        ne0, ne1 = rng.randint(1, t.ne[0]), rng.randint(1, t.ne[1])
        offset = t.nb[1] * rng.randint(0, t.ne[1] - ne1) + 4 * rng.randint(0, t.ne[0] - ne0)
        m.op("view_2d", a, ne0, ne1, t.nb[1], offset)


def permute(m: Maker) -> None:
    if m.rng.random() < 0.3:
        m.op("transpose", m.pick())
    else:
        axes = m.rng.sample(range(4), 4)
        m.op("permute", m.pick(), *axes)


def cont_2d(m: Maker) -> None:
    a = m.pick()
    m.op("cont_2d", a, m.t(a).ne[0], m.t(a).nrows)


def copy(m: Maker) -> None:
    a = m.pick()
    if m.rng.random() < 0.4:
        m.op("cpy", a, m.leaf(m.rng.choice(("F32", "F16")), m.t(a).ne), refs=(0, 1))
    else:
        b = m.pick(lambda t: t.nelements == m.t(a).nelements)
        if m.t(b).nelements == m.t(a).nelements:
            m.op("cpy", a, b, refs=(0, 1))


def cast(m: Maker) -> None:
    m.op("cast", m.pick(), m.rng.choice(("F32", "F16")))


def get_rows(m: Maker) -> None:
    a = m.pick(lambda t: t.ne[2:] == (1, 1) and t.is_contiguous())
    if m.t(a).ne[2:] == (1, 1):
        m.op("get_rows", a, m.leaf("I32", (m.rng.randint(1, 5),)), refs=(0, 1))


def set_rows(m: Maker) -> None:
    b = m.pick(lambda t: t.ne[2:] == (1, 1) and t.is_contiguous())
    if m.t(b).ne[2:] == (1, 1):
        ne = m.t(b).ne
        cache = m.leaf("F32", (ne[0], ne[1] + 3))
        m.op("set_rows", cache, b, m.leaf("I64", (ne[1],)), refs=(0, 1, 2))


def joined(m: Maker) -> None:
    a = m.pick(contiguous)
    m.op("concat", a, m.leaf("F32", m.t(a).ne), m.rng.randint(0, 3), refs=(0, 1))


def repeat(m: Maker) -> None:
    a = m.pick(contiguous)
    ne = m.t(a).ne
    if m.t(a).nelements < 3000:
        m.op("repeat_4d", a, ne[0] * 2, ne[1], ne[2] * 2, ne[3])


def rope(m: Maker) -> None:
    a = m.pick(lambda t: t.is_contiguous() and t.ne[0] % 2 == 0)
    if m.t(a).ne[0] % 2 == 0:
        pos = m.leaf("I32", (m.t(a).ne[2],))
        m.op("rope_ext", a, pos, None, m.t(a).ne[0], 0, 0, 1e4, 1.0, 0.0, 1.0, 32.0, 1.0, refs=(0, 1))


def glu(m: Maker) -> None:
    a = m.pick(contiguous)
    m.op("swiglu_split", a, m.leaf("F32", m.t(a).ne), refs=(0, 1))


def attention(m: Maker) -> None:
    d, n, kv = m.rng.choice((4, 8)), m.rng.choice((1, 3)), m.rng.choice((4, 16))
    q, k, v = m.leaf("F32", (d, n, 2)), m.leaf("F16", (d, kv, 1)), m.leaf("F16", (d, kv, 1))
    m.op("flash_attn_ext", q, k, v, m.leaf("F16", (kv, n)), 0.5, 0.0, 0.0, refs=(0, 1, 2, 3))


CHOICES = (
    *(binary, unary, elementwise, rows, mul_mat, reshape, view, permute, cont_2d, copy),
    *(cast, get_rows, set_rows, joined, repeat, rope, glu, attention),
    *(binary, unary, rows, view, reshape, binary),
)


def program(seed: int) -> Program:
    """The program of a seed, of 4 to 60 steps."""
    rng = random.Random(seed)
    return Maker(rng, rng.randint(4, 60)).program
