"""Feed mutated inputs to one of vizggml's readers: `python tests/fuzz/run.py gguf --runs 10000`. See README.md."""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import resource
import sys
import tempfile
import warnings
from pathlib import Path
from types import ModuleType

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

NAMES = ("gguf", "ggml", "model", "quants", "graph", "trace")
FAR_TOO_MUCH = 8 << 30
"""Bytes of address space: what asks for more is told that there is no memory."""


def guide() -> ModuleType | None:
    try:
        import atheris
    except ImportError:
        return None
    return atheris


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", choices=NAMES)
    parser.add_argument("--runs", type=int, default=10_000, help="how many inputs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, default=Path("fuzz-found"), help="the folder for what is found")
    parser.add_argument("--blind", action="store_true", help="without coverage, although atheris is there")
    parser.add_argument("--replay", type=Path, nargs="*", help="only these files")
    asked = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (FAR_TOO_MUCH, FAR_TOO_MUCH))
    warnings.simplefilter("ignore")
    atheris = None if asked.blind or asked.replay else guide()
    scope = (
        contextlib.nullcontext()
        if atheris is None
        else atheris.instrument_imports(include=["vizggml"], exclude=["vizggml.ggml.kernels.fast"])
    )
    with scope:
        from tests.fuzz.targets import TARGETS
    from tests.fuzz.blind import feed, warmed
    from tests.fuzz.judge import Tally, judge

    target, tally = TARGETS[asked.target], Tally()
    if asked.replay:
        warmed(target)
        for path in asked.replay:
            print(path, judge(target, path.read_bytes(), tally) or "served")
        return finish(tally, asked.keep)
    if atheris is None:
        with contextlib.suppress(KeyboardInterrupt):
            feed(target, asked.runs, asked.seed, tally)
        return finish(tally, asked.keep)
    corpus = Path(tempfile.mkdtemp())
    seeds = warmed(target)
    for i, data in enumerate(seeds):
        (corpus / f"seed{i}").write_bytes(data)

    def one(data: bytes) -> None:
        judge(target, data, tally)
        if tally.runs % 1000 == 0:
            print(tally.report(), flush=True)
        if tally.runs == asked.runs:
            # libFuzzer does not come back.
            code = finish(tally, asked.keep)
            sys.stdout.flush()
            os._exit(code)

    def mutated(data: bytes, max_size: int, seed: int) -> bytes:
        dice = random.Random(seed)
        # Most of what reaches a new line is broken: what is served has its turn, too.
        data = dice.choice(seeds) if dice.random() < 0.4 else data
        out = target.mutated(data, dice) if dice.random() < 0.8 else atheris.Mutate(data, max_size)
        return out[:max_size]

    options = [
        f"-max_len={target.max_bytes}",
        f"-seed={asked.seed + 1}",
        "-timeout=600",
        "-rss_limit_mb=0",
        "-len_control=0",
    ]
    atheris.Setup(
        [sys.argv[0], *options, "-verbosity=0", f"-artifact_prefix={corpus}/", str(corpus)], one, custom_mutator=mutated
    )
    atheris.Fuzz()
    return 0


def finish(tally: object, keep: Path) -> int:
    from tests.fuzz.judge import Tally

    assert isinstance(tally, Tally)
    print(tally.report())
    if tally.findings:
        tally.keep(keep)
        print(f"kept in {keep}")
    return 1 if tally.findings else 0


if __name__ == "__main__":
    sys.exit(main())
