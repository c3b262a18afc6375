"""What hooks that nobody listens to cost: call sites passed in a token, times the cost of one, over the token's time.

python bench/hooks.py [MODEL]        # default smollm2
"""

from __future__ import annotations

import sys
import timeit
from time import perf_counter

import vizggml as vg
from vizggml.events import Bus, bus


class CountingBus(Bus):
    """A bus that is off and counts how often it is asked."""

    asked = 0

    @property
    def on(self) -> bool:  # type: ignore[override]
        CountingBus.asked += 1
        return False


def main() -> None:
    name = sys.argv[1] if len(sys.argv) > 1 else "smollm2"
    context = vg.load_model(name).context(n_ctx=256, flash_attn=True, n_threads=2)
    stream = context.generate("1, 2, 3, 4, 5, 6,", max_tokens=60, temp=0)
    for _ in range(10):
        next(stream)
    times = []
    for _ in range(20):
        begin = perf_counter()
        next(stream)
        times.append(perf_counter() - begin)
    token = sorted(times)[len(times) // 2]

    bus.__class__ = CountingBus
    next(stream)
    CountingBus.asked = 0
    next(stream)
    sites = CountingBus.asked
    bus.__class__ = Bus

    loops = 2_000_000
    empty = min(timeit.repeat("pass", number=loops, repeat=5))
    one = max(0.0, min(timeit.repeat("if bus.on: pass", globals={"bus": bus}, number=loops, repeat=5)) - empty) / loops
    print(f"{name}: {sites} call sites a token, {one * 1e9:.1f} ns each, a token takes {token * 1e3:.2f} ms")
    print(f"hooks cost {100 * sites * one / token:.3f} % of decode time")


if __name__ == "__main__":
    main()
