"""Exercises of chapter 6, graph and order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from vizggml.ggml.buffer import alloc_ctx_tensors_from_buft, cpu_buffer_type
from vizggml.ggml.cgraph import LEFT_TO_RIGHT, RIGHT_TO_LEFT, Graph
from vizggml.ggml.context import Context
from vizggml.ggml.gallocr import GraphAllocator
from vizggml.ggml.liveness import graph_liveness
from vizggml.ggml.ops import add, concat, mul, relu, repeat_4d, sqr, sum_rows
from vizggml.lessons.exercise import AnswerError, Exercise, Text, call, code, whole, wholes

WIDTH, LENGTH = 48, 24
MOST_ASKED = 10_000

Needs = Mapping[str, Sequence[str]]


def _graph(ctx: Context, order: str = LEFT_TO_RIGHT) -> Graph:
    graph = Graph(ctx, 64)
    graph.order = order
    return graph


def node_order(order: str) -> str:
    """The nodes of exercise 06.1."""
    ctx = Context(mem_size=1 << 20, no_alloc=True)
    x, w = (ctx.new_tensor("F32", (4,), name=name) for name in "xw")
    p, q = sqr(ctx, x).set_name("p"), relu(ctx, w).set_name("q")
    r = mul(ctx, q, p).set_name("r")
    s = add(ctx, p, r).set_name("s")
    graph = _graph(ctx, order)
    graph.build_forward_expand(add(ctx, r, s).set_name("t"))
    names = "".join(t.name for t in graph.nodes)
    ctx.free()
    return names


def _order(answer: Any) -> str:
    given = "".join(answer).replace(" ", "").replace(",", "")
    if given == node_order(LEFT_TO_RIGHT):
        return ""
    if sorted(given) != sorted("pqrst"):
        return "leafs" if set(given) & set("xw") else "each"
    if given == node_order(RIGHT_TO_LEFT) or given.startswith("pq"):
        return "left"
    return "down" if given.startswith("t") else "after"


def _counts(answer: Any) -> str:
    ctx = Context(mem_size=1 << 20, no_alloc=True)
    x = ctx.new_tensor("F32", (4,), name="x")
    y = mul(ctx, x, x)
    z = add(ctx, y, y)
    t = mul(ctx, z, x)
    graph = _graph(ctx)
    graph.build_forward_expand(t)
    want = tuple(graph.use_count(tensor) for tensor in (x, y, z, t))
    readers = tuple(sum(tensor in node.src for node in graph.nodes) for tensor in (x, y, z, t))
    ctx.free()
    given = wholes(answer)
    if given == want:
        return ""
    if given == readers:
        return "twice"
    return "result" if given[:3] == want[:3] else "sources"


def two_branches(order: str) -> dict[str, int]:
    """Bytes of `two_branches` of the chapter, with the sizes of exercise 06.3."""
    ctx = Context(mem_size=1 << 20, no_alloc=True)
    x = ctx.new_tensor("F32", (8,), name="x")
    buffers = alloc_ctx_tensors_from_buft(ctx, cpu_buffer_type())
    long = repeat_4d(ctx, x, LENGTH, 1, 1, 1)
    slim = sum_rows(ctx, repeat_4d(ctx, x, WIDTH, 1, 1, 1))
    graph = _graph(ctx, order)
    graph.build_forward_expand(concat(ctx, long, slim, 0))
    found = graph_liveness(graph)
    peak = GraphAllocator(cpu_buffer_type()).reserve_n_size(graph)[0]
    sizes = {"peak": peak, "live": found.bound, "sum": found.no_reuse}
    for buffer in buffers:
        buffer.free()
    ctx.free()
    return sizes


def _hole(answer: Any) -> str:
    sizes = two_branches(RIGHT_TO_LEFT)
    given = whole(answer)
    if given == sizes["peak"]:
        return ""
    if given == two_branches(LEFT_TO_RIGHT)["peak"]:
        return "left"
    return {sizes["live"]: "live", sizes["sum"]: "sum", WIDTH * 4 + 32: "out"}.get(given, "place")


CASES: tuple[tuple[str, Needs], ...] = (
    ("chain", {"r": ["b"], "b": ["a"], "a": []}),
    ("sides", {"r": ["a", "b"], "a": [], "b": []}),
    ("once", {"r": ["s", "x"], "s": ["a", "b"], "a": ["x"], "b": ["x"], "x": []}),
    ("after", {"r": ["x", "b"], "x": ["b"], "b": ["a"], "a": []}),
    ("seen", {"r": ["t40"], **{f"t{k}": [f"t{k - 1}"] * 2 for k in range(1, 41)}, "t0": []}),
)


def in_order(needs: Needs, t: str, done: dict[str, None]) -> list[str]:
    """What `t` needs and is not in `done`, and `t`."""
    if t not in done:
        for source in needs[t]:
            in_order(needs, source, done)
        done[t] = None
    return list(done)


class _AskedTooOftenError(Exception):
    pass


def _function(answer: Callable[[str, Callable[[str], list[str]]], Any]) -> str:
    if not callable(answer):
        raise TypeError(answer)
    for hint, needs in CASES:
        asked = 0

        def sources(t: str, needs: Needs = needs) -> list[str]:
            nonlocal asked
            asked += 1
            if asked > MOST_ASKED:
                raise _AskedTooOftenError
            return list(needs[t])

        def ordered(result: str, sources: Callable[[str], list[str]]) -> list[str] | None:
            found = answer(result, sources)
            return None if found is None else list(found)

        try:
            given = call(ordered, "r", sources)
        except AnswerError as error:
            if isinstance(error.__cause__, _AskedTooOftenError):
                return "seen"
            raise
        if given != in_order(needs, "r", {}):
            return hint
    return ""


EXERCISES: dict[str, Exercise] = {
    "06.1": Exercise(
        _order,
        {
            "leafs": Text("x and w are leafs; they are not among the nodes.", "x 和 w 是叶子，不在节点之列。"),
            "each": Text("Each of p, q, r, s, t once.", "p、q、r、s、t 各一次。"),
            "left": Text(
                "Which source of t is visited first? And which is the left source of r?",
                "t 的哪个来源先访问？r 的左边来源是哪个？",
            ),
            "down": Text(
                "A tensor is appended on the way back, when all its sources are there.",
                "张量是在返回时追加的，那时它的来源都已经在了。",
            ),
            "after": Text(
                "A tensor stands before one of its sources, or the left source is not first. Start at t and go down.",
                "有张量排在了自己的来源前面，或者左边的来源没有排在前面。从 t 开始往下走。",
            ),
        },
        Text(
            "From t to its left source r, from r to its left source q: q, then p, then r. The right source of t is "
            "s, whose sources are both there: s, and t last. qprst.",
            "从 t 到左边的 r，从 r 到左边的 q：先 q，再 p，再 r。t 右边的来源 s，它的来源都已经在了："
            "s，最后 t。qprst。",
        ),
        "'pqrst'",
    ),
    "06.2": Exercise(
        _counts,
        {
            "twice": Text(
                "Those are readers. If a node takes a tensor for both its sources, it counts twice.",
                "这是读者的个数。一个节点的两个来源都是它，要算两次。",
            ),
            "result": Text("Who has t as a source?", "谁把 t 当作来源？"),
            "sources": Text(
                "For each tensor: in how many places is it written as a source?", "对每个张量：它在几处写作来源？"
            ),
        },
        Text(
            "x: twice in y, once in t: 3. y: twice in z: 2. z: once in t: 1. Nobody reads t: 0.",
            "x：y 里两次，t 里一次：3。y：z 里两次：2。z：t 里一次：1。没有谁读 t：0。",
        ),
        "(1, 1, 1, 1)",
    ),
    "06.3": Exercise(
        _hole,
        {
            "left": Text("That is the other order.", "这是另一种顺序。"),
            "live": Text(
                "So much lives at once. But is there a hole that is wide enough for out?",
                "同时存活的确实是这么多。但有没有一个够宽的空洞放得下 out？",
            ),
            "sum": Text("That is the sum of all. When is wide freed?", "这是全部之和。wide 什么时候释放？"),
            "out": Text(
                "Up to slim that is right. Now place long, then out.", "到 slim 为止是对的。接着放 long，再放 out。"
            ),
            "place": Text(
                "Place one after the other: wide, slim; wide is freed; then long, then out (25 elements, padded).",
                "依次放置：wide、slim；wide 释放；然后 long，然后 out（25 个元素，要对齐）。",
            ),
        },
        Text(
            "wide at 0 (192 bytes), slim at 192. wide is freed, long takes 0 to 96. The hole from 96 to 192 has 96 "
            "bytes, and out needs 100, padded 128: it goes to 224. Peak 352: more than left to right, although less "
            "lives at once.",
            "wide 在 0（192 字节），slim 在 192。wide 释放后，long 占 0 到 96。96 到 192 的空洞有 96 字节，"
            "out 需要 100，对齐后 128：只能放在 224。峰值 352：虽然同时存活的少了，却比从左到右还多。",
        ),
    ),
    "06.4": Exercise(
        _function,
        {
            "chain": Text(
                "A chain r <- b <- a fails: a must come first, r last, and all of them must be there.",
                "链 r <- b <- a 不对：a 在最前，r 在最后，一个都不能少。",
            ),
            "sides": Text("The left source comes before the right one.", "左边的来源先于右边的。"),
            "once": Text(
                "A tensor with two readers is there twice, or late.", "有两个读者的张量出现了两次，或者出现晚了。"
            ),
            "after": Text(
                "A tensor stands before one of its sources. Append it on the way back, not on the way down.",
                "有张量排在了自己的来源前面。要在返回时追加，不是在往下走时。",
            ),
            "seen": Text(
                "It asks for the same sources thousands of times. Remember what you have met.",
                "它成千上万次地问同样的来源。要记住已经遇到过的张量。",
            ),
        },
        code(
            "def order(result, sources):\n"
            "    done = {}\n"
            "    def visit(t):\n"
            "        if t not in done:\n"
            "            for source in sources(t):\n"
            "                visit(source)\n"
            "            done[t] = True\n"
            "    visit(result)\n"
            "    return list(done)"
        ),
        "lambda result, sources: [result]",
    ),
}
