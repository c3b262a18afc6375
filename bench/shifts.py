"""A long text through a small context: what is resident, as the cache is shifted again and again.

    python bench/shifts.py [MODEL] [--tokens 20000] [--n-ctx 256] [--n-keep 8]

Each time the context is full, the first tokens stay, the older half of the others is removed, and the newer half moves
up. The same run must end with no more memory than it had after the first few shifts.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

from vizggml.llama.context import Context
from vizggml.llama.model import load_model

PAGE = 4096
WARM_UP = 1000
"""Tokens after which all that a run allocates once has been allocated."""


def resident() -> int:
    """Bytes of this process that lie in memory. Linux."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def long_run(context: Context, n_tokens: int, n_keep: int, every: int) -> Iterator[tuple[int, int]]:
    """Generate; after each `every` tokens how many there are, and the bytes resident then."""
    stream = context.generate("Once upon a time", n_tokens, n_keep=n_keep, ignore_eos=True, seed=3)
    for n, _ in enumerate(stream, 1):
        if n % every == 0:
            yield n, resident()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="tiny")
    parser.add_argument("--tokens", type=int, default=20_000)
    parser.add_argument("--n-ctx", type=int, default=256)
    parser.add_argument("--n-keep", type=int, default=8)
    given = parser.parse_args()
    context = load_model(given.model).context(n_ctx=given.n_ctx, n_threads=1)
    begin, seen = time.perf_counter(), {}
    for n, now in long_run(context, given.tokens, given.n_keep, WARM_UP):
        seen[n] = now
        print(
            f"{n:6d} tokens, {now / 2**20:.2f} MiB resident, {n / (time.perf_counter() - begin):.0f} tokens/s",
            flush=True,
        )
    print(f"from {WARM_UP} tokens to {given.tokens}: {(seen[max(seen)] - seen[WARM_UP]) / 1024:+.0f} KiB")


if __name__ == "__main__":
    main()
