"""The plain driver: seeds and their mutations in an order that the number of the dice decides."""

from __future__ import annotations

import random

from tests.fuzz.judge import Tally, Target, judge


def warmed(target: Target) -> list[bytes]:
    """The seeds, each served once: imports and compilation count for no input."""
    seeds = target.seeds()
    for data in seeds:
        target.act(data)
    return seeds


def feed(target: Target, runs: int, seed: int, tally: Tally) -> None:
    """A mutation that ends as none before it did is a seed of more."""
    dice = random.Random(seed)
    seeds = warmed(target)
    found: list[bytes] = []
    for _ in range(runs):
        data = target.mutated(dice.choice(found if found and dice.random() < 0.4 else seeds), dice)[: target.max_bytes]
        ways = len(tally.refused)
        judge(target, data, tally)
        if len(tally.refused) > ways:
            found.append(data)
