"""Exercises of chapter 2, views."""

from __future__ import annotations

from typing import Any

from vizggml.ggml.cgraph import Graph
from vizggml.ggml.context import Context
from vizggml.ggml.ops import cont, cpy, relu, reshape_1d, transpose, view_2d
from vizggml.ggml.tensor import Tensor
from vizggml.ggml.types import VIEW_OPS
from vizggml.lessons.exercise import Exercise, Text, whole


def _chain(ctx: Context) -> tuple[Tensor, Tensor, Tensor]:
    k = ctx.new_tensor("F16", (64, 100))
    first = view_2d(ctx, k, 64, 50, k.nb[1], 10 * k.nb[1])
    second = view_2d(ctx, first, 32, 50, first.nb[1], 16 * first.nb[0])
    return k, first, transpose(ctx, second)


def _offset(answer: Any) -> str:
    ctx = Context(mem_size=1 << 16, no_alloc=True)
    k, first, last = _chain(ctx)
    ctx.free()
    got = whole(answer)
    if got == last.view_offs:
        return ""
    size = k.type.type_size
    known = {
        last.view_offs - first.view_offs: "last",
        first.view_offs: "first",
        last.view_offs // size: "elements",
        10 + 16: "counts",
    }
    return known.get(got, "other")


def _gap(answer: Any) -> str:
    ctx = Context(mem_size=1 << 14, no_alloc=True)
    m = ctx.new_tensor("F32", (4, 4))
    v = view_2d(ctx, m, 3, 2, m.nb[1], 0)
    ctx.free()
    known = {v.nbytes: "", v.nelements * m.type.type_size: "packed", 2 * m.nb[1]: "tail", m.nbytes: "source"}
    return known.get(whole(answer), "other")


def _graph(ctx: Context) -> Graph:
    x = ctx.new_tensor("F32", (4, 4))
    b = ctx.new_tensor("F32", (8,))
    y = relu(ctx, x)
    turned = transpose(ctx, view_2d(ctx, y, 2, 4, y.nb[1], 0))
    graph = Graph(ctx, size=16)
    graph.build_forward_expand(cpy(ctx, reshape_1d(ctx, cont(ctx, turned), 8), b))
    return graph


def _computed(answer: Any) -> str:
    ctx = Context(mem_size=1 << 16, no_alloc=True)
    nodes = _graph(ctx).nodes
    ctx.free()
    known = {
        sum(t.op not in VIEW_OPS for t in nodes): "",
        len(nodes): "all",
        sum(not t.is_view for t in nodes): "in place",
        len(nodes) + 2: "leafs",
    }
    return known.get(whole(answer), "other")


EXERCISES: dict[str, Exercise] = {
    "02.1": Exercise(
        _offset,
        {
            "last": Text(
                "That is the offset of c2 in c1. view_offs counts from the tensor that owns the bytes.",
                "这是 c2 在 c1 里的偏移。view_offs 从拥有字节的那个张量数起。",
            ),
            "first": Text(
                "That is c1's. c2 begins 16 elements further; a transpose moves nothing.",
                "这是 c1 的。c2 还要往后 16 个元素；转置什么也不移动。",
            ),
            "elements": Text("Those are elements. Offsets are bytes.", "这是元素个数。偏移的单位是字节。"),
            "counts": Text(
                "10 rows and 16 elements are not the same unit. How many bytes is each?",
                "10 行和 16 个元素单位不同。各是多少字节？",
            ),
            "other": Text(
                "A row of k has 64 elements of 2 bytes. Add the offset of c1 in k and that of c2 in c1.",
                "k 的一行有 64 个 2 字节的元素。把 c1 在 k 里的偏移和 c2 在 c1 里的偏移相加。",
            ),
        },
        Text(
            "k.nb[1] is 128. c1 begins at 10 * 128 = 1280, c2 16 * 2 = 32 bytes further, c3 where c2 does: 1312.",
            "k.nb[1] 是 128。c1 从 10 * 128 = 1280 开始，c2 再往后 16 * 2 = 32 字节，c3 与 c2 同一处：1312。",
        ),
    ),
    "02.2": Exercise(
        _gap,
        {
            "packed": Text(
                "Six elements have so many bytes. But between the two rows of v there is an element of m.",
                "六个元素确实是这么多字节。但 v 的两行之间还隔着 m 的一个元素。",
            ),
            "tail": Text(
                "That counts the gap after the last row, too. The last element is the end.",
                "这把最后一行后面的空隙也算进去了。到最后一个元素为止。",
            ),
            "source": Text("That is the whole of m.", "这是整个 m 的大小。"),
            "other": Text(
                "At which byte does the second row begin? How many bytes of it belong to v?",
                "第二行从第几个字节开始？其中有几个字节属于 v？",
            ),
        },
        Text(
            "The second row begins at byte 16 and has 3 elements: 16 + 12 = 28, four more than six elements need.",
            "第二行从第 16 个字节开始，有 3 个元素：16 + 12 = 28，比六个元素所需的多 4 个字节。",
        ),
    ),
    "02.3": Exercise(
        _computed,
        {
            "all": Text("All are nodes, but four ops are empty.", "它们都是节点，但有四种 op 是空的。"),
            "in place": Text(
                "The result of cpy is a view of b, so it has a view_src. Is it empty?",
                "cpy 的结果是 b 的视图，所以有 view_src。可它是空的吗？",
            ),
            "leafs": Text("x and b are given; they are leafs, not nodes.", "x 和 b 是给定的，是叶子，不是节点。"),
            "other": Text(
                "Go line by line: does it write a byte, or only say how to read some?",
                "一行一行看：它写了字节，还是只说明怎样去读？",
            ),
        },
        Text(
            "Three: relu and cont write bytes of their own, cpy writes into b. View, transpose and reshape are empty.",
            "三个：relu 和 cont 写自己的字节，cpy 写进 b。view、transpose 和 reshape 是空的。",
        ),
    ),
}
