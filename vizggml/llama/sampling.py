"""Sampling: from one row of logits to one token, as llama.cpp's sampler chain does it, to the same token for a seed.

Each sampler takes the candidates left by the one before. Filters only drop candidates, so the order of the chain
matters: top-k, top-p, min-p, temperature, then the draw.
"""

from __future__ import annotations

import math
import secrets
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vizggml.errors import VizggmlError
from vizggml.events import NO_SEQ, SamplerApplied, Seq, bus

DEFAULT_SEED = 0xFFFFFFFF
"""`LLAMA_DEFAULT_SEED`, include/llama.h: a seed that asks for a new one each time."""

TEMP_MIN = 1e-30
"""Logits divided by less would leave F32's range: the draw is as good as certain."""

F32 = np.float32


@dataclass(slots=True)
class Candidates:
    """`llama_token_data_array`, include/llama.h. `sorted` is true once the logits are in descending order."""

    ids: NDArray[np.int32]
    logits: NDArray[np.float32]
    sorted: bool = False

    def keep(self, which: NDArray[np.intp] | slice) -> None:
        self.ids, self.logits = self.ids[which], self.logits[which]

    def sort(self) -> None:
        if not self.sorted:
            self.keep(np.argsort(-self.logits, kind="stable"))
            self.sorted = True

    def weights(self) -> NDArray[np.float32]:
        """The probabilities before they are divided by their sum."""
        weights: NDArray[np.float32] = np.exp(self.logits - self.logits.max())
        return weights


class Sampler(Protocol):
    """One link of the chain. `param` is what it was set to."""

    name: str
    param: float

    def apply(self, c: Candidates) -> None: ...


class TopK:
    """Keep the `k` highest logits; 0 keeps all. `llama_sampler_top_k_impl`, src/llama-sampler.cpp."""

    name = "top-k"

    def __init__(self, k: int) -> None:
        self.param = float(k)
        self.k = k

    def apply(self, c: Candidates) -> None:
        if self.k > 0:
            if not c.sorted and self.k < len(c.ids):
                highest = np.argpartition(-c.logits, self.k - 1)[: self.k]
                tied = c.logits >= c.logits[highest].min()
                c.keep(np.flatnonzero(tied))
            c.sort()
            c.keep(slice(self.k))


class TopP:
    """Keep the fewest candidates whose probabilities reach `p`. `llama_sampler_top_p_apply`, src/llama-sampler.cpp."""

    name = "top-p"

    def __init__(self, p: float) -> None:
        self.param = p

    def apply(self, c: Candidates) -> None:
        if self.param >= 1:
            return
        c.sort()
        weights = c.weights()
        total = np.cumsum(weights, dtype=F32)[-1]
        reached = np.flatnonzero(np.cumsum(weights / total, dtype=F32) >= F32(self.param))
        if reached.size:
            c.keep(slice(int(reached[0]) + 1))


class MinP:
    """Keep those at least `p` times as probable as the best. `llama_sampler_min_p_apply`, src/llama-sampler.cpp."""

    name = "min-p"

    def __init__(self, p: float) -> None:
        self.param = p

    def apply(self, c: Candidates) -> None:
        if self.param > 0:
            c.keep(np.flatnonzero(c.logits >= c.logits.max() + np.log(F32(self.param))))


class Temperature:
    """Divide the logits: below 1 sharper, above 1 flatter. `llama_sampler_temp_impl`, src/llama-sampler.cpp."""

    name = "temperature"

    def __init__(self, temp: float) -> None:
        self.param = temp

    def apply(self, c: Candidates) -> None:
        c.logits = c.logits / F32(self.param)


class Greedy:
    """Take the highest logit, the first of equals. `llama_sampler_greedy_apply`, src/llama-sampler.cpp."""

    name = "greedy"
    param = 0.0

    def select(self, c: Candidates) -> tuple[int, float]:
        """The index of the choice among the candidates, and its probability."""
        best = int(np.argmax(c.logits))
        weights = c.weights()
        return best, float(weights[best] / weights.sum(dtype=np.float64))


class Dist:
    """Draw in proportion to the probabilities. `llama_sampler_dist_apply`, src/llama-sampler.cpp.

    The generator is C++'s `mt19937`, and its two 32-bit draws make a uniform double as libstdc++ makes it, so a seed
    gives the same tokens here and there.
    """

    name = "dist"

    def __init__(self, seed: int = DEFAULT_SEED) -> None:
        if not 0 <= seed <= DEFAULT_SEED:
            raise VizggmlError(f"seed {seed}: must be 0 to {DEFAULT_SEED}")
        self.seed = secrets.randbits(32) if seed == DEFAULT_SEED else seed
        self.param = float(self.seed)
        self._rng = np.random.RandomState(self.seed)

    def uniform(self) -> float:
        """`std::uniform_real_distribution<double>` over `std::mt19937`."""
        low, high = (int(x) for x in self._rng.randint(0, 2**32, 2, dtype=np.uint32))
        return (low + high * 2**32) / 2**64

    def select(self, c: Candidates) -> tuple[int, float]:
        """The index of the choice among the candidates, and its probability."""
        weights = c.weights()
        running = np.cumsum(weights, dtype=np.float64)
        chosen = min(int(np.searchsorted(running, running[-1] * self.uniform())), len(weights) - 1)
        return chosen, float(weights[chosen] / running[-1])


class SamplerChain:
    """`llama_sampler_chain`, src/llama-sampler.cpp: filters, then one that selects."""

    def __init__(self, filters: list[Sampler], selector: Greedy | Dist) -> None:
        self.filters = filters
        self.selector = selector
        self.told: Seq = NO_SEQ
        """The event that tells of the last draw."""

    def sample(self, logits: NDArray[np.float32]) -> tuple[int, float]:
        """The token, and its probability among those left. `llama_sampler_sample`, src/llama-sampler.cpp."""
        highest = float(logits.max())
        if not np.isfinite(highest):
            raise VizggmlError(f"logits: the highest of {len(logits)} is {highest}, no token can be drawn from them")
        c = Candidates(np.arange(len(logits), dtype=np.int32), logits)
        because = bus.cause
        for sampler in self.filters:
            before = len(c.ids)
            sampler.apply(c)
            if bus.on:
                because = bus.emit(SamplerApplied(sampler.name, sampler.param, before, len(c.ids)), cause=because)
        index, p = self.selector.select(c)
        if bus.on:
            event = SamplerApplied(self.selector.name, self.selector.param, len(c.ids), 1)
            self.told = bus.emit(event, cause=because)
        return int(c.ids[index]), p


def default_chain(temp: float, top_k: int, top_p: float, min_p: float, seed: int) -> SamplerChain:
    """llama.cpp's usual order. `temp` 0 or below (or hardly above) takes the highest logit and needs no filter."""
    if not -math.inf < temp < math.inf:
        raise VizggmlError(f"temp {temp}: it must be a finite number")
    if temp <= TEMP_MIN:
        return SamplerChain([], Greedy())
    if not 0 <= top_p <= 1 or not 0 <= min_p <= 1:
        raise VizggmlError(f"top_p {top_p} and min_p {min_p} must be 0 to 1")
    return SamplerChain([TopK(top_k), TopP(top_p), MinP(min_p), Temperature(temp)], Dist(seed))
