"""Exercises of chapter 9, scratch and attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from vizggml.ggml.cgraph import Graph
from vizggml.ggml.context import Context
from vizggml.ggml.cplan import graph_plan
from vizggml.ggml.ops import flash_attn_ext
from vizggml.ggml.types import CACHE_LINE_SIZE
from vizggml.lessons.exercise import Exercise, Text, call, whole

NEEDS, THREADS = (100, 3000, 500, 2000), 8
HEADS, TOKENS, CELLS = 32, 512, 16384
HEAD = 128


def _work(answer: Any) -> str:
    padding = CACHE_LINE_SIZE * THREADS
    got = whole(answer)
    if got == max(NEEDS) + padding:
        return ""
    if got in (sum(NEEDS), sum(NEEDS) + padding):
        return "sum"
    return {max(NEEDS): "padding", max(NEEDS) + CACHE_LINE_SIZE: "each"}.get(got, "maximum")


def _scores(answer: Any) -> str:
    pairs = TOKENS * CELLS
    got = whole(answer)
    if got == 4 * HEADS * pairs:
        return ""
    return {HEADS * pairs: "bytes", 2 * HEADS * pairs: "bytes", 4 * pairs: "heads"}.get(got, "pairs")


def tile_bytes() -> int:
    """The scratch of the exercise's node, asked of the plan."""
    ctx = Context(mem_size=1 << 18, no_alloc=True)
    q = ctx.new_tensor("F32", (HEAD, TOKENS, HEADS))
    k, v = (ctx.new_tensor("F16", (HEAD, 1024, HEADS)) for _ in range(2))
    graph = Graph(ctx)
    graph.build_forward_expand(flash_attn_ext(ctx, q, k, v, None, 1.0, 0.0, 0.0))
    found = graph_plan(graph, THREADS).work_sizes[0]
    ctx.free()
    return found


def _tiles(answer: Any) -> str:
    want, got = tile_bytes(), whole(answer)
    if got == want:
        return ""
    one_square = want - 4 * 64 * 64 * THREADS
    return {want // 4: "floats", want // THREADS: "threads", one_square: "mask"}.get(got, "parts")


Merge = Callable[..., tuple[Any, Any, Any]]


def _partial(scores: Any, values: Any) -> tuple[Any, Any, Any]:
    largest = scores.max()
    weights = np.exp(scores - largest)
    return largest, weights.sum(), weights @ values


def _close(found: Any, wanted: Any) -> bool:
    return bool(np.allclose(found, wanted, rtol=1e-9))


def _merge(answer: Merge) -> str:
    rng = np.random.default_rng(9)
    for shift in (0.0, 3.0, -3.0, 2000.0, -2000.0):
        scores, values = rng.normal(size=16), rng.normal(size=(16, 4))
        scores += 500 * (abs(shift) > 100)
        scores[8:] += shift
        with np.errstate(all="ignore"):
            M, S, out = call(answer, *_partial(scores[:8], values[:8]), *_partial(scores[8:], values[8:]))
        largest, total, weighted = _partial(scores, values)
        if abs(shift) > 100 and not np.all(np.isfinite(out)):
            return "overflow"
        if not _close(M, largest):
            return "largest"
        if not _close(S, total):
            return "sum"
        if not _close(out, weighted):
            return "divided" if _close(out, weighted / total) else "out"
    return ""


EXERCISES: dict[str, Exercise] = {
    "09.1": Exercise(
        _work,
        {
            "sum": Text(
                "The nodes run one after the other. Need they all have bytes at once?",
                "节点是一个接一个执行的。它们需要同时占着内存吗？",
            ),
            "padding": Text(
                "That is the maximum. The plan adds something so that threads keep out of each other's cache lines.",
                "这是最大值。为了让线程不写到同一条缓存行，规划还加了一点。",
            ),
            "each": Text("64 bytes for each thread.", "每个线程都要加 64 字节。"),
            "maximum": Text(
                "Which need is the largest? Then add 64 bytes a thread.", "哪个需求最大？再为每个线程加 64 字节。"
            ),
        },
        Text("3000 + 64 * 8 = 3512.", "3000 + 64 * 8 = 3512。"),
    ),
    "09.2": Exercise(
        _scores,
        {
            "bytes": Text("How many bytes has an F32?", "一个 F32 占几个字节？"),
            "heads": Text("That is one head.", "这是一个头的。"),
            "pairs": Text(
                "A score for each head, each token and each cell.", "每个头、每个 token、每个 cell 各有一个分数。"
            ),
        },
        Text("32 * 512 * 16384 * 4 = 1073741824: a GiB.", "32 * 512 * 16384 * 4 = 1073741824：1 GiB。"),
    ),
    "09.3": Exercise(
        _tiles,
        {
            "floats": Text("Those are floats. How many bytes?", "这是浮点数的个数。多少字节？"),
            "threads": Text("That is one thread.", "这是一个线程的。"),
            "mask": Text("Scores and mask have a square each.", "分数和 mask 各要一个方阵。"),
            "parts": Text(
                "Tiles of 64 x 64. Add up queries, keys, values, sums, scores, mask; then bytes, then threads.",
                "分块是 64 x 64。把 query、key、value、累加、分数、mask 加起来，再乘字节数和线程数。",
            ),
        },
        Text(
            "(4 * 64 * 128 + 2 * 64 * 64) floats, 4 bytes each, 8 threads: 1310720.",
            "(4 * 64 * 128 + 2 * 64 * 64) 个浮点数，每个 4 字节，8 个线程：1310720。",
        ),
    ),
    "09.4": Exercise(
        _merge,
        {
            "largest": Text("M must be the largest score of both halves.", "M 应当是两半里最大的分数。"),
            "sum": Text(
                "S is wrong. S1 was summed with exp(score - M1). By which factor is it too large for the common M?",
                "S 不对。S1 累加的是 exp(score - M1)。换成共同的 M，它大了多少倍？",
            ),
            "out": Text(
                "M and S are right. out needs the same factors as S.", "M 和 S 对了。out 要乘和 S 相同的系数。"
            ),
            "divided": Text("Nearly: out is not to be divided by S yet.", "差一点：out 这时还不要除以 S。"),
            "overflow": Text(
                "It overflows when scores are large. Take exp only of differences that are not above 0.",
                "分数很大时溢出了。只对不大于 0 的差取 exp。",
            ),
        },
        Text(
            "def merge(M1, S1, out1, M2, S2, out2):\n"
            "    M = max(M1, M2)\n"
            "    a, b = np.exp(M1 - M), np.exp(M2 - M)\n"
            "    return M, a * S1 + b * S2, a * out1 + b * out2\n"
            "ggml does so when one token meets a long cache: each thread takes a part of the cells.",
            "def merge(M1, S1, out1, M2, S2, out2):\n"
            "    M = max(M1, M2)\n"
            "    a, b = np.exp(M1 - M), np.exp(M2 - M)\n"
            "    return M, a * S1 + b * S2, a * out1 + b * out2\n"
            "一个 token 面对很长的缓存时，ggml 就是这样做的：每个线程负责一部分 cell。",
        ),
        "answer = merge",
    ),
}
