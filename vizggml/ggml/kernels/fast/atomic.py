"""Numbers in memory that several threads read and write at once, for compiled code."""

from __future__ import annotations

import platform
from collections.abc import Callable

from llvmlite import ir

from vizggml.ggml.kernels.fast.lanes import ADDRESS, INT, NONE, _call, _instruction, _pointer

_i64 = ir.IntType(64)


def _pause(b: ir.IRBuilder) -> None:
    if platform.machine().lower() in ("x86_64", "amd64"):
        _call(b, "llvm.x86.sse2.pause", ir.VoidType())
    elif platform.machine().lower() in ("aarch64", "arm64"):
        _call(b, "llvm.aarch64.hint", ir.VoidType(), ir.Constant(ir.IntType(32), 1))


fetch_add: Callable[[int, int], int] = _instruction(
    INT, (ADDRESS, INT), lambda b, at, n: b.atomic_rmw("add", _pointer(b, at, _i64), n, "monotonic")
)
"""Add to the int64 at an address; what it was before. No two threads see the same."""
load: Callable[[int], int] = _instruction(
    INT, (ADDRESS,), lambda b, at: b.load_atomic(_pointer(b, at, _i64), "acquire", 8)
)
pause: Callable[[], None] = _instruction(NONE, (), _pause)
"""`ggml_thread_cpu_relax`, ggml/src/ggml-cpu/ggml-cpu.c: tells the processor that this is a loop that only waits."""
