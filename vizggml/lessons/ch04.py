"""Exercises of chapter 4, deferred execution and reuse."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import Any

from vizggml.ggml.cgraph import Graph
from vizggml.ggml.context import TENSOR_OVERHEAD, Context
from vizggml.ggml.liveness import graph_liveness
from vizggml.ggml.ops import add, mul_mat, relu, scale, sqr
from vizggml.ggml.types import pad
from vizggml.lessons.exercise import Exercise, Text, call, code, whole
from vizggml.llama.kv_cache import N_KV_PAD

PROMPT = 200
Side = Mapping[str, Any]


def _arena(answer: Any) -> str:
    ctx = Context(mem_size=1 << 16, no_alloc=True)
    a, b = (ctx.new_tensor("F32", (1000, 1000)) for _ in range(2))
    sources = ctx.used_mem
    result = relu(ctx, add(ctx, a, b))
    want = ctx.used_mem
    ctx.free()
    given = whole(answer)
    if given == want:
        return ""
    if given >= result.nbytes:
        return "data"
    return {sources: "results", want - TENSOR_OVERHEAD: "both"}.get(given, "records")


def taken_over() -> str:
    """The results of exercise 04.2 that lie where a source lay."""
    ctx = Context(mem_size=1 << 20, no_alloc=True)
    i = ctx.new_tensor("F32", (8, 8), name="i")
    p = sqr(ctx, i).set_name("p")
    q = scale(ctx, p, 2.0).set_name("q")
    r = add(ctx, q, p).set_name("r")
    s = mul_mat(ctx, r, r).set_name("s")
    graph = Graph(ctx)
    graph.build_forward_expand(scale(ctx, s, 3.0).set_name("t"))
    takers = [life.tensor.name for life in graph_liveness(graph).lives if life.reuses is not None]
    ctx.free()
    return "".join(sorted(takers))


def _places(answer: Any) -> str:
    given, want = set("".join(answer).replace(" ", "").replace(",", "")), set(taken_over())
    if given == want:
        return ""
    if not given <= set("pqrst"):
        return "letters"
    for letter, hint in (("s", "op"), ("q", "children"), ("p", "input")):
        if (letter in given) != (letter in want):
            return hint
    return "each"


def _grown(answer: Any) -> str:
    first = pad(PROMPT + 1, N_KV_PAD)
    want = next(k for k in count(2) if pad(PROMPT + k, N_KV_PAD) != first)
    given = whole(answer)
    if given == want:
        return ""
    return {want - 1: "full", want + PROMPT: "counted", first: "cells"}.get(given, "grow")


def side(**changed: Any) -> Side:
    """A batch of two tokens as exercise 04.4 describes it, but for what is changed."""
    plain = {"tokens": [5, 7], "positions": [30, 31], "sequences": [0, 0], "n_outputs": 1, "n_kv": 256}
    return plain | changed


def pairs() -> Iterator[tuple[str, Side, Side, bool]]:
    """A hint, two batches, and whether the graph of one serves for the other."""
    yield "same", side(), side(), True
    yield "values", side(), side(tokens=[9, 9]), True
    yield "values", side(), side(positions=[32, 33]), True
    yield "n_tokens", side(), side(tokens=[5], positions=[30], sequences=[0]), False
    yield "outputs", side(), side(n_outputs=2), False
    yield "outputs", side(), side(n_outputs=0), False
    yield "n_kv", side(positions=[254, 255]), side(positions=[256, 257], n_kv=512), False
    yield "sequences", side(), side(sequences=[0, 1], positions=[30, 12]), False
    yield "which", side(), side(sequences=[1, 1]), True


def _can_reuse(answer: Callable[[Side, Side], Any]) -> str:
    return next((hint for hint, had, now, want in pairs() if bool(call(answer, had, now)) != want), "")


EXERCISES: dict[str, Exercise] = {
    "04.1": Exercise(
        _arena,
        {
            "data": Text(
                "With no_alloc the numbers themselves have no bytes in the arena. What has?",
                "no_alloc 时，数据本身不在 arena 里。那么 arena 里有什么？",
            ),
            "results": Text(
                "That is a and b. Where are add and relu written down?", "这只是 a 和 b。add 和 relu 记在哪里？"
            ),
            "both": Text("add and relu are two builders. Count again.", "add 和 relu 是两个构建函数，再数一遍。"),
            "records": Text(
                "How many tensors are there in all, results counted? Each takes 336 + 32 bytes.",
                "连同结果一共有几个张量？每个占 336 + 32 字节。",
            ),
        },
        Text(
            "Four tensors: a, b, the sum, its relu. 4 * (336 + 32) = 1472 bytes, whatever their shapes.",
            "四个张量：a、b、和、relu 的结果。4 * (336 + 32) = 1472 字节，与形状无关。",
        ),
    ),
    "04.2": Exercise(
        _places,
        {
            "letters": Text("Only the letters p, q, r, s, t.", "只写 p、q、r、s、t 这几个字母。"),
            "op": Text(
                "s is a matrix product. Could it write over r while rows of r are still to be read?",
                "s 是矩阵乘法。r 的各行还要读，它能一边算一边盖掉 r 吗？",
            ),
            "children": Text("When q is computed, who else has still to read p?", "计算 q 的时候，还有谁要读 p？"),
            "input": Text(
                "i lies in the plan's memory, and only p reads it. What speaks against it?",
                "i 在规划的内存里，而且只有 p 读它。有什么理由不行？",
            ),
            "each": Text(
                "Ask for each result: may its op do so, and does one of its sources have no other reader left?",
                "对每个结果问：它的 op 可以吗？它的来源里，有没有哪个已经没有别的读者？",
            ),
        },
        Text(
            "p takes the place of i, r that of q, t that of s: 'prt'. q may not, as r reads p too; s may not, as a "
            "matrix product needs its sources until it is done.",
            "p 占 i 的位置，r 占 q 的，t 占 s 的：'prt'。q 不行，因为 r 还要读 p；"
            "s 不行，矩阵乘法在算完之前一直需要来源。",
        ),
        "'pq'",
    ),
    "04.3": Exercise(
        _grown,
        {
            "full": Text("That token still finds a cell among the first 256.", "这个 token 还能放进前 256 个 cell。"),
            "counted": Text("Count from the end of the prompt.", "从提示词之后开始数。"),
            "cells": Text(
                "That is how many cells the graph looks at. The prompt already has some.",
                "这是图能看到的 cell 数。提示词已经占了一些。",
            ),
            "grow": Text(
                "The graph looks at cells in steps of 256. How many are free after the prompt?",
                "图看到的 cell 数按 256 递增。提示词之后还剩几个空 cell？",
            ),
        },
        Text(
            "256 - 200 = 56 tokens fit into the cells that the graph looks at. The 57th needs a mask of 512 columns.",
            "256 - 200 = 56 个 token 放得进图所看到的 cell。第 57 个需要 512 列的 mask。",
        ),
    ),
    "04.4": Exercise(
        _can_reuse,
        {
            "same": Text("It refuses two batches that are the same.", "两个完全相同的批次，它也拒绝了。"),
            "values": Text(
                "It refuses because a token or a position changed. Are those in the graph, or in its inputs?",
                "因为 token 或位置变了，它就拒绝。这些是在图里，还是在图的输入里？",
            ),
            "n_tokens": Text(
                "It lets one token use a graph built for two.", "为两个 token 建的图，它让一个 token 用了。"
            ),
            "outputs": Text("It overlooks the number of outputs.", "它漏掉了输出的个数。"),
            "n_kv": Text("It overlooks that the cache has grown: n_kv.", "它没有注意到缓存变大了：n_kv。"),
            "sequences": Text("It overlooks how many different sequences there are.", "它漏掉了有几个不同的序列。"),
            "which": Text(
                "Which sequence it is does not matter here, only how many different ones there are.",
                "是哪个序列在这里无关紧要，只看有几个不同的序列。",
            ),
        },
        code(
            "def can_reuse(had, now):\n"
            "    def shape(b):\n"
            "        return len(b['tokens']), len(set(b['sequences'])), b['n_outputs'], b['n_kv']\n"
            "    return shape(had) == shape(now)"
        ),
        "lambda had, now: True",
    ),
}
