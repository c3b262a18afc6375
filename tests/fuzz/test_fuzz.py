"""A few hundred hostile inputs for each reader, the same ones every time; ten thousand are `run.py`'s to feed."""

from __future__ import annotations

import time

import pytest

from tests.fuzz.blind import feed
from tests.fuzz.judge import Tally, Target, judge, kind_of
from tests.fuzz.targets import TARGETS
from vizggml.errors import VizggmlError

RUNS = {"gguf": 400, "ggml": 150, "model": 60, "quants": 400, "graph": 250, "trace": 60}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", TARGETS)
def test_hostile_inputs_end_in_a_result_or_one_line(name: str) -> None:
    tally = Tally()
    feed(TARGETS[name], RUNS[name], 0, tally)
    assert tally.findings == {}
    assert tally.runs == RUNS[name]
    assert tally.served > 0
    assert len(tally.refused) > 5


def faulty(data: bytes) -> None:
    """One fault for each first byte."""
    if data == b"crash":
        raise KeyError(7)
    if data == b"lines":
        raise VizggmlError("one\ntwo")
    if data == b"large":
        bytearray(1 << 20)
    if data == b"slow":
        begin = time.process_time()
        while time.process_time() < begin + 0.05:
            pass
    if data == b"refused":
        raise VizggmlError("tensor 'x': 7 is past 6")


@pytest.mark.parametrize("what", ["crash", "lines", "large", "slow"])
def test_the_judge_sees_each_fault(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fuzz.judge.SECONDS", 0.04)
    target = Target("faulty", faulty, lambda: [b""], lambda raw, dice: raw, lambda n: 1 << 16)
    tally = Tally()
    judge(target, what.encode(), tally)
    (found,) = tally.findings
    assert {"crash": "KeyError", "lines": "an error of 2 lines", "large": "large: 2**20", "slow": "slow"}[what] in found
    judge(target, b"refused", tally)
    assert tally.refused["tensor _: _ is past _"] == 1
    assert kind_of("'a b': 0x1f -3.5e9") == "_: _ _"
