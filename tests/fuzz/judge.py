"""What every hostile input is held to: a result or one VizggmlError, in a second, in memory that its length allows."""

from __future__ import annotations

import contextlib
import re
import signal
import sys
import time
import traceback
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import vizggml
from vizggml.errors import VizggmlError

SECONDS = 1.0
"""The most CPU time that one input may take."""
PACKAGE = str(Path(vizggml.__file__).parent)
HANG = 20.0
"""CPU seconds after which an input is given up."""


class WrongAnswerError(AssertionError):
    """An answer that is wrong."""


class Hang(BaseException):
    """Nothing under test may catch this."""


@dataclass(frozen=True)
class Target:
    """What is fed. `act` takes the input; `memory` is the bytes it may have at once, by the input's length.

    `seeds` are inputs that must be served; `mutated` is a change that knows the input's structure.
    """

    name: str
    act: Callable[[bytes], object]
    seeds: Callable[[], list[bytes]]
    mutated: Callable[..., bytes]
    memory: Callable[[int], int]
    max_bytes: int = 1 << 16
    weighed: int = 1
    """The memory of every so many-th input is looked at: it makes an input take twice as long."""


@dataclass
class Tally:
    """What came of the inputs so far. `findings` has one input for each way to be wrong, the shortest."""

    runs: int = 0
    served: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    slowest: float = 0.0
    largest: int = 0
    findings: dict[str, bytes] = field(default_factory=dict)

    def found(self, what: str, data: bytes) -> None:
        if what not in self.findings or len(data) < len(self.findings[what]):
            self.findings[what] = data

    def report(self) -> str:
        lines = [
            f"{self.runs} inputs: {self.served} served, {self.refused.total()} refused in {len(self.refused)} ways; "
            f"the slowest took {self.slowest:.2f} s of CPU time, the largest {self.largest / 2**20:.1f} MiB at once",
        ]
        lines += [f"FOUND {what} ({len(data)} bytes)" for what, data in self.findings.items()]
        return "\n".join(lines)

    def keep(self, folder: Path) -> None:
        """Write what was found, one file each."""
        folder.mkdir(parents=True, exist_ok=True)
        for i, (what, data) in enumerate(self.findings.items()):
            (folder / f"{i}.input").write_bytes(data)
            (folder / f"{i}.txt").write_text(what + "\n")


def _given_up(number: int, frame: FrameType | None) -> None:
    raise Hang


@contextlib.contextmanager
def _limits() -> Iterator[None]:
    before = signal.signal(signal.SIGVTALRM, _given_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, HANG)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _place(error: BaseException) -> str:
    """Where in vizggml it went wrong: the same fault is one finding."""
    frames = traceback.extract_tb(error.__traceback__)
    last = ([f for f in frames if f.filename.startswith(PACKAGE)] or frames)[-1]
    return f"{Path(last.filename).name}:{last.lineno} in {last.name}"


def judge(target: Target, data: bytes, tally: Tally) -> str:
    """Feed one input; what it ended in, "" if it was served. What breaks a rule is told to `tally`."""
    weigh = tally.runs % target.weighed == 0
    ended, wrong, seconds, peak = _acted(target, data, weigh)
    if not wrong and seconds > SECONDS:
        # A kernel is compiled only once.
        ended, wrong, seconds, peak = _acted(target, data, weigh)
    if not wrong and seconds > SECONDS:
        wrong = f"slow: more than {int(seconds)} s until {kind_of(ended) or 'served'}"
    if not wrong and peak > target.memory(len(data)):
        wrong = f"large: 2**{peak.bit_length() - 1} bytes until {kind_of(ended) or 'served'}"
    if wrong:
        if wrong not in tally.findings:
            print("FOUND", wrong, file=sys.stderr, flush=True)
        tally.found(wrong, data)
    tally.runs += 1
    tally.slowest, tally.largest = max(tally.slowest, seconds), max(tally.largest, peak)
    if ended:
        tally.refused[kind_of(ended)] += 1
    else:
        tally.served += 1
    return ended


def _acted(target: Target, data: bytes, weigh: bool) -> tuple[str, str, float, int]:
    """What it ended in, what is wrong with that, CPU seconds, and the most bytes at once (0 if not weighed)."""
    if weigh:
        tracemalloc.start()
    ended, wrong = "", ""
    begin = time.process_time()
    try:
        with _limits():
            target.act(data)
    except VizggmlError as error:
        ended = str(error)
        if "\n" in ended or not ended:
            wrong = f"an error of {ended.count(chr(10)) + 1} lines from {_place(error)}"
        ended = ended or "no words"
    except (Hang, Exception) as error:
        ended = wrong = f"{type(error).__name__}: {kind_of(str(error))!r} at {_place(error)}"
    seconds = time.process_time() - begin
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return ended, wrong, seconds, peak


def kind_of(message: str) -> str:
    """A message without what differs from file to file."""
    return re.sub(r"'(?:[^'\\]|\\.)*'|\"[^\"]*\"|0x[0-9a-f]+|-?\d[\d.e+]*|inf|nan", "_", message)[:160]
