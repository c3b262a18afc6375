"""Rows that quantizers stumble over: constant, all zero, tiny, huge, denormal, with ties and signed zeros."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

SCALES = (1.0, 0.02, 300.0, 6e4, 1e30, 1e-5, 1e-30, 1e-38, 1e-41)
KINDS: dict[str, Callable[[np.random.Generator, tuple[int, int]], NDArray[np.floating]]] = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "uniform": lambda rng, shape: rng.uniform(-1, 1, size=shape),
    "constant": lambda rng, shape: np.full(shape, rng.normal()),
    "zero": lambda rng, shape: np.zeros(shape),
    "signed zero": lambda rng, shape: rng.choice([0.0, -0.0], size=shape),
    "ties": lambda rng, shape: rng.integers(-254, 255, size=shape) / 2,
    "spikes": lambda rng, shape: np.where(
        rng.random(shape) < 0.05, rng.normal(size=shape) * 100, rng.normal(size=shape) / 100
    ),
    "positive": lambda rng, shape: rng.random(shape) + 2,
}


def all_kinds(seed: int, ne0: int, largest: float) -> NDArray[np.float32]:
    """A row of every kind at every scale up to `largest`."""
    rng = np.random.default_rng(seed)
    made = [make(rng, (1, ne0)) * scale for make in KINDS.values() for scale in SCALES if scale <= largest]
    return np.concatenate(made).astype(np.float32)


@st.composite
def rows(draw: st.DrawFn, multiple: int) -> NDArray[np.float32]:
    shape = (draw(st.integers(1, 3)), multiple * draw(st.integers(1, 3)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scale = draw(st.sampled_from(SCALES))
    x = KINDS[draw(st.sampled_from(tuple(KINDS)))](rng, shape)
    return (x * scale).astype(np.float32)


@st.composite
def importances(draw: st.DrawFn, n: int) -> NDArray[np.float32]:
    """What an error in each column costs: even, peaked, with columns that cost nothing, all the same."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    even = rng.random(n)
    kind = draw(st.sampled_from(("even", "peaked", "holes", "same")))
    made = {"even": even, "peaked": even**8 * 1e3, "holes": np.where(even < 0.5, 0, even), "same": np.ones(n)}[kind]
    return made.astype(np.float32)
