"""Hostile GGUF files by the thousand, read by vizggml and by real ggml. Run by hand:

    python -m tests.ggml.fuzz_gguf [SECONDS] [SEED]

Every file must load whole or end in one VizggmlError, within a second. What loads must load in ggml with the same
tensors. What ggml alone accepts is counted by reason at the end: only text that is not UTF-8, a NUL in a name, and data
that ends past the file (which ggml leaves to llama.cpp's loader) may stand there. A file that breaks a rule is kept.
"""

from __future__ import annotations

import random
import re
import struct
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.ggml.test_gguf import VALID, our_file, real_ggml_reads, refusal, touch_all
from vizggml.ggml.gguf import read_gguf

EXTREMES = (
    0,
    1,
    3,
    8,
    9,
    13,
    31,
    33,
    255,
    *(2**n + d for n in (16, 31, 32, 40, 62, 63, 64) for d in (-33, -32, -1, 0)),
)
STRICTER = re.compile("is not UTF-8|has a NUL in its name|tensor .* ends past the file")


def mutated(raw: bytes, dice: random.Random) -> bytes:
    out = bytearray(raw)
    for _ in range(dice.choice((1, 1, 1, 2, 3, 6))):
        at, kind = dice.randrange(max(1, len(out) - 8)), dice.randrange(6)
        if kind == 0:
            out[at] = dice.randrange(256)
        elif kind == 1:
            out[at : at + 4] = struct.pack("<I", dice.choice(EXTREMES) % 2**32)
        elif kind == 2:
            out[at : at + 8] = struct.pack("<Q", dice.choice(EXTREMES) % 2**64)
        elif kind == 3:
            del out[at : at + dice.randrange(1, 40)]
        elif kind == 4:
            out[at:at] = out[max(0, at - dice.randrange(1, 60)) : at]
        else:
            out[at] ^= 1 << dice.randrange(8)
        out = out or bytearray(raw)
    return bytes(out)


def judge(path: Path) -> tuple[str, float]:
    """The error of one file ("" if it loaded), and the seconds it took. AssertionError if a rule is broken."""
    begin = time.perf_counter()
    error = refusal(lambda: read_gguf(path))
    seconds = time.perf_counter() - begin
    assert "\n" not in error
    assert seconds < 1, f"{seconds} s"
    theirs = real_ggml_reads(path)
    if error:
        assert theirs is None or STRICTER.search(error), f"ggml reads it, vizggml says: {error}"
        return (error if theirs is not None else "both refuse"), seconds
    file = read_gguf(path)
    unreadable = refusal(lambda: touch_all(file))
    assert not unreadable or "is not UTF-8" in unreadable
    ours = [(t.name, t.type.id, t.offset) for t in file.tensors.values()]
    assert theirs == ours, f"ggml reads {theirs}, vizggml {ours}"
    return "both read", seconds


def main(seconds: float, seed: int) -> None:
    dice, verdicts, worst = random.Random(seed), Counter[str](), 0.0
    folder = Path(tempfile.mkdtemp())
    our_file(folder / "ours.gguf")
    seeds = (VALID, (folder / "ours.gguf").read_bytes())
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        path = folder / "hostile.gguf"
        path.write_bytes(mutated(dice.choice(seeds), dice))
        try:
            verdict, took = judge(path)
        except BaseException:
            print(f"kept: {path}", file=sys.stderr)
            raise
        verdicts[re.sub(r"\d+|0x\w+|'.*?'", "_", verdict)] += 1
        worst = max(worst, took)
    print(f"{verdicts.total()} files, the slowest took {worst * 1000:.1f} ms")
    for verdict, n in verdicts.most_common():
        print(f"{n:8} {verdict}")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 10, int(sys.argv[2]) if len(sys.argv) > 2 else 0)
