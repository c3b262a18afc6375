"""Rows that quantizers stumble over: constant, all zero, tiny, huge, denormal, with ties and signed zeros."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

SCALES = (1.0, 0.02, 300.0, 6e4, 1e30, 1e-5, 1e-30, 1e-38, 1e-41)


@st.composite
def rows(draw: st.DrawFn, multiple: int) -> NDArray[np.float32]:
    shape = (draw(st.integers(1, 3)), multiple * draw(st.integers(1, 3)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scale = draw(st.sampled_from(SCALES))
    kind = draw(st.sampled_from(("normal", "uniform", "constant", "zero", "signed zero", "ties", "spikes", "positive")))
    x = {
        "normal": lambda: rng.normal(size=shape),
        "uniform": lambda: rng.uniform(-1, 1, size=shape),
        "constant": lambda: np.full(shape, rng.normal()),
        "zero": lambda: np.zeros(shape),
        "signed zero": lambda: rng.choice([0.0, -0.0], size=shape),
        "ties": lambda: rng.integers(-254, 255, size=shape) / 2,
        "spikes": lambda: np.where(
            rng.random(shape) < 0.05, rng.normal(size=shape) * 100, rng.normal(size=shape) / 100
        ),
        "positive": lambda: rng.random(shape) + 2,
    }[kind]()
    return (x * scale).astype(np.float32)


@st.composite
def importances(draw: st.DrawFn, n: int) -> NDArray[np.float32]:
    """What an error in each column costs: even, peaked, with columns that cost nothing, all the same."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    even = rng.random(n)
    kind = draw(st.sampled_from(("even", "peaked", "holes", "same")))
    made = {"even": even, "peaked": even**8 * 1e3, "holes": np.where(even < 0.5, 0, even), "same": np.ones(n)}[kind]
    return made.astype(np.float32)
