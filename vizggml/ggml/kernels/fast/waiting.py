"""Waiting for a number to change, without Python's lock: others run meanwhile."""

from __future__ import annotations

from vizggml.ggml.kernels.fast.atomic import load, pause
from vizggml.ggml.kernels.fast.lanes import INT, compiled


@compiled(INT(INT, INT, INT))
def wait_for(address: int, seen: int, n_rounds: int) -> int:
    """Look up to `n_rounds` times whether the int64 at `address` is no longer `seen`; how often it still was."""
    for i in range(n_rounds):
        if load(address) != seen:
            return i
        pause()
    return n_rounds
