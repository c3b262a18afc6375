"""Exercises of chapter 12, the whole path."""

from __future__ import annotations

from functools import cache
from math import isclose
from typing import Any

from vizggml.lessons.exercise import Exercise, Text, whole
from vizggml.llama.cparams import ContextParams
from vizggml.llama.model import load_model
from vizggml.llama.plan import plan_shape
from vizggml.timeline.record import record

STAGES = {
    "Tokenized": "T",
    "UbatchSplit": "U",
    "CellsFound": "C",
    "ReuseDecided": "R",
    "GraphCreated": "B",
    "AllocGraphEnd": "P",
    "ComputeBegin": "X",
    "LogitsReady": "L",
}
"""Kinds of events that begin or end a stage, each with the stage's letter."""

BANDWIDTH = 50e9


def _two(answer: Any) -> str:
    plan = plan_shape("llama-7b", "F16", ContextParams(n_ctx=4096))
    hints = {
        plan.mapped + 2 * plan.allocated: "",
        2 * (plan.mapped + plan.allocated): "twice",
        plan.mapped + plan.allocated: "one",
        2 * plan.allocated: "mapped",
    }
    return hints.get(whole(answer), "sum")


@cache
def reused_path() -> str:
    """The stages of a token whose graph stands, as the engine goes through them."""
    context = load_model("tiny").context(n_ctx=256, n_threads=1)
    context.decode([5])
    with record() as trace:
        context.decode([7])
    events = list(trace.events)
    names = [type(event).__name__ for event in events]
    return "".join(STAGES.get(name, "") for name in names[names.index("DecodeBegin") :])


def _path(answer: Any) -> str:
    got, want = "".join(filter(str.isalpha, "".join(answer).upper())), reused_path()
    if got == want:
        return ""
    if "T" in got:
        return "text"
    if set("BP") & set(got):
        return "built"
    return "order" if sorted(got) == sorted(want) else "missing"


def _speed(answer: Any) -> str:
    got = float(answer)
    f16, q8_0 = (plan_shape("llama-7b", kind, ContextParams(n_ctx=4096)) for kind in ("F16", "Q8_0"))
    known = {
        "": BANDWIDTH / q8_0.mapped,
        "type": BANDWIDTH / f16.mapped,
        "inverse": q8_0.mapped / BANDWIDTH,
        "cache": BANDWIDTH / (q8_0.mapped + q8_0.allocated),
    }
    return next((hint for hint, value in known.items() if isclose(got, value, rel_tol=0.05)), "divide")


EXERCISES: dict[str, Exercise] = {
    "12.1": Exercise(
        _two,
        {
            "twice": Text(
                "Both map the same file. How often are its pages in memory?",
                "两个进程映射的是同一个文件。它的页在内存里有几份？",
            ),
            "one": Text(
                "That is one process. What does the second need for itself?",
                "这是一个进程的量。第二个进程自己还要什么？",
            ),
            "mapped": Text(
                "And the weights? They must be somewhere while they are read.", "那权重呢？读的时候它们总得在内存里。"
            ),
            "sum": Text(
                "Take the two numbers of the F16 line. Which belongs to a process, which to the file?",
                "看 F16 那一行的两个数：哪个属于进程，哪个属于文件？",
            ),
        },
        Text(
            "The mapping once, what is allocated twice: plan.mapped + 2 * plan.allocated.",
            "映射算一份，分配的算两份：plan.mapped + 2 * plan.allocated。",
        ),
        'plans["F16"].mapped',
    ),
    "12.2": Exercise(
        _path,
        {
            "text": Text(
                "A sampled token is a number already. What is there to tokenize?",
                "采样得到的 token 已经是编号了，还要分什么词？",
            ),
            "built": Text(
                "The graph stands, and so does its plan. Look at Decode 2 again.",
                "图还在，它的规划也还在。再看一遍 Decode 2 那一段。",
            ),
            "order": Text(
                "The right stages, in a wrong order. Does the decision about reuse need to know the cells?",
                "阶段都对，顺序不对。还不知道注意力要看多少个 cell 时，能决定是否复用吗？",
            ),
            "missing": Text(
                "Go through the printed path of Decode 2, line by line.", "把打印出来的 Decode 2 一行一行对一遍。"
            ),
        },
        Text(
            "UCRXL: ubatch, cells, the decision, computing, logits. Nothing is tokenized, built or placed.",
            "UCRXL：ubatch、cell、复用的决定、计算、logits。没有分词、建图和放置。",
        ),
        '"TUX"',
    ),
    "12.3": Exercise(
        _speed,
        {
            "type": Text(
                "That would be F16. How large is the mapping in Q8_0?", "这是 F16 的结果。Q8_0 的映射有多大？"
            ),
            "inverse": Text("Those are seconds a token.", "这是每个 token 要几秒。"),
            "cache": Text(
                "Leave out what is allocated: it is the weights that every token reads.",
                "分配的部分不要算：每个 token 都要读的是权重。",
            ),
            "divide": Text(
                "Every token reads every weight. How often does the mapping in Q8_0 go into 50 GB?",
                "每个 token 都要读全部权重。50 GB 里有几个 Q8_0 的映射？",
            ),
        },
        Text(
            '50e9 / plans["Q8_0"].mapped: about 7 tokens a second. Fewer bits are not only less memory '
            "but more tokens a second.",
            '50e9 / plans["Q8_0"].mapped，大约每秒 7 个 token。比特少，不只省内存，也写得更快。',
        ),
        "2.5",
    ),
}
