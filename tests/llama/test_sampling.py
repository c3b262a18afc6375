"""Sampling, held to llama.cpp's own sampler chain: the same candidates, the same token for a seed."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.llama.oracle import wheel
from vizggml.errors import VizggmlError
from vizggml.events import Event, SamplerApplied, bus
from vizggml.llama.sampling import Dist, Greedy, SamplerChain, TopP, default_chain


def some_logits(seed: int, n: int = 500) -> NDArray[np.float32]:
    return (np.random.default_rng(seed).standard_normal(n) * 3).astype(np.float32)


@pytest.mark.parametrize(
    ("temp", "top_k", "top_p", "min_p"),
    [
        (0.8, 40, 0.95, 0.05),
        (1.5, 0, 0.9, 0.0),
        (1.0, 5, 1.0, 0.0),
        (0.3, 0, 1.0, 0.1),
        (2.0, 1000, 0.5, 0.2),
        (0.7, 1, 0.95, 0.05),
        (0.0, 40, 0.95, 0.05),
    ],
)
def test_a_seed_gives_the_tokens_that_llama_cpp_gives(temp: float, top_k: int, top_p: float, min_p: float) -> None:
    native = wheel()
    theirs = native.chain(temp, top_k, top_p, min_p, seed=7)
    ours = default_chain(temp, top_k, top_p, min_p, seed=7)
    for step in range(25):
        logits = some_logits(step)
        token, p, _ = native.sample(theirs, logits)
        got, got_p = ours.sample(logits)
        assert got == token
        if temp > 0:
            assert got_p == pytest.approx(p, rel=1e-5)
    native.llama_sampler_free(theirs)


def test_the_generator_is_mt19937_as_cpp_seeds_it() -> None:
    """The first 32-bit draws of `std::mt19937(5489)`, its default seed, are in the C++ standard's own example."""
    first, second = 3499211612, 581869302
    assert Dist(5489).uniform() == (first + second * 2**32) / 2**64


def test_greedy_takes_the_first_of_equals() -> None:
    logits = np.array([1, 3, 2, 3], np.float32)
    token, p = SamplerChain([], Greedy()).sample(logits)
    assert token == 1
    weights = np.exp(np.array([1, 3, 2, 3]) - 3.0)
    assert p == pytest.approx(weights[1] / weights.sum())


def test_top_p_keeps_all_when_it_is_one() -> None:
    token, p = SamplerChain([TopP(1.0)], Greedy()).sample(np.zeros(4, np.float32))
    assert (token, p) == (0, 0.25)


def test_each_sampler_tells_how_many_it_left() -> None:
    # probabilities 0.5, 0.25, 0.125, 0.0625, 0.0625
    logits = np.log(np.array([0.0625, 0.25, 0.5, 0.125, 0.0625])).astype(np.float32)
    seen: list[Event] = []
    stop = bus.subscribe(SamplerApplied, seen.append)
    default_chain(0.5, 4, 0.9, 0.3, seed=1).sample(logits)
    stop()
    told = [(e.sampler, round(e.param, 3), e.n_before, e.n_after) for e in seen if isinstance(e, SamplerApplied)]
    # top-p over the four left: 8/15, 4/15, 2/15 reach 0.93; min-p 0.3 of 0.5 leaves 0.5 and 0.25
    assert told == [
        ("top-k", 4.0, 5, 4),
        ("top-p", 0.9, 4, 3),
        ("min-p", 0.3, 3, 2),
        ("temperature", 0.5, 2, 2),
        ("dist", 1.0, 2, 1),
    ]


@pytest.mark.parametrize("wrong", [{"seed": -1}, {"seed": 2**32}, {"top_p": 1.5}, {"min_p": -0.1}])
def test_values_out_of_range_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(VizggmlError, match="must be 0 to"):
        default_chain(**{"temp": 1.0, "top_k": 0, "top_p": 0.9, "min_p": 0.0, "seed": 0, **wrong})  # type: ignore[arg-type]


@pytest.mark.parametrize("temp", [1e-300, 1e-39])
def test_a_temperature_that_no_division_survives_takes_the_highest(temp: float) -> None:
    logits = np.array([1.0, 80.0, 3.0], np.float32)
    assert default_chain(temp, 40, 0.95, 0.05, 1).sample(logits)[0] == 1


@pytest.mark.parametrize("temp", [float("nan"), float("inf")])
def test_a_temperature_is_a_finite_number(temp: float) -> None:
    with pytest.raises(VizggmlError, match=f"temp {temp}: it must be a finite number"):
        default_chain(temp, 40, 0.95, 0.05, 1)


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
@pytest.mark.parametrize("temp", [0.0, 0.8])
def test_nothing_is_drawn_from_logits_that_are_no_numbers(temp: float, wrong: float) -> None:
    logits = np.array([1.0, wrong, 3.0], np.float32)
    with pytest.raises(VizggmlError, match=f"logits: the highest of 3 is {wrong}"):
        default_chain(temp, 40, 0.95, 0.05, 1).sample(logits)
