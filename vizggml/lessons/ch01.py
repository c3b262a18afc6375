"""Exercises of chapter 1, tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from vizggml.ggml.context import Context, contiguous_strides
from vizggml.ggml.ops import cont, permute, transpose, view_1d, view_2d
from vizggml.ggml.tensor import Tensor
from vizggml.ggml.types import type_named
from vizggml.lessons.exercise import Exercise, Text, call, whole, wholes

HALF = (64, 9, 5, 1)
MATRIX, ELEMENT = (8, 5), (3, 2)
TURNED = (5, 64, 9, 1)


def _numbers(answer: Any) -> tuple[int, ...]:
    numbers = wholes(answer)
    if len(numbers) != 4:
        raise ValueError("four numbers")
    return numbers


def _strides(answer: Any) -> str:
    half = type_named("F16")
    want = contiguous_strides(half, HALF)
    got = _numbers(answer)
    if got == want:
        return ""
    if got == tuple(n // half.type_size for n in want):
        return "elements"
    # what NumPy shows for shape (64, 9, 5, 1): the last dimension fastest
    return "order" if got[3] == half.type_size else "product"


def _byte(answer: Any) -> str:
    ctx = Context(mem_size=1 << 14)
    matrix = ctx.new_tensor("F32", MATRIX)
    turned = transpose(ctx, matrix)
    i0, i1 = ELEMENT
    want = i0 * turned.nb[0] + i1 * turned.nb[1]
    untouched = i0 * matrix.nb[0] + i1 * matrix.nb[1]
    ctx.free()
    given = whole(answer)
    if given == want:
        return ""
    return {untouched: "before", want // 4: "elements"}.get(given, "strides")


def _axes(answer: Any) -> str:
    axes = _numbers(answer)
    if sorted(axes) != [0, 1, 2, 3]:
        return "once"
    ctx = Context(mem_size=1 << 16, no_alloc=True)
    got = permute(ctx, ctx.new_tensor("F16", HALF), axes[0], axes[1], axes[2], axes[3]).ne
    ctx.free()
    if got == TURNED:
        return ""
    return "numpy" if tuple(HALF[axis] for axis in axes) == TURNED else "where"


def _layouts(ctx: Context) -> Iterator[tuple[str, Tensor]]:
    """Tensors of every kind of layout, each with the hint for who judges it wrongly."""
    a = ctx.new_tensor("F32", (4, 3, 2))
    yield "fresh", a
    yield "fresh", ctx.new_tensor("F16", (7,))
    yield "fresh", view_1d(ctx, a, 5, 8)
    yield "exchanged", transpose(ctx, a)
    yield "exchanged", permute(ctx, a, 0, 2, 1, 3)
    yield "gaps", view_2d(ctx, a, 3, 3, a.nb[1], 0)
    yield "ones", permute(ctx, a, 0, 1, 3, 2)
    yield "ones", view_2d(ctx, a, 1, 3, 4, 0)
    yield "ones", transpose(ctx, ctx.new_tensor("F32", (1, 6)))
    yield "ones", transpose(ctx, ctx.new_tensor("F32", (6, 1)))
    yield "fresh", cont(ctx, transpose(ctx, a))


def _contiguous(answer: Callable[[Any, Any, int], Any]) -> str:
    ctx = Context(mem_size=1 << 16, no_alloc=True)
    wrong = (hint for hint, t in _layouts(ctx) if bool(call(answer, t.ne, t.nb, t.type.type_size)) != t.is_contiguous())
    found = next(wrong, "")
    ctx.free()
    return found


EXERCISES: dict[str, Exercise] = {
    "01.1": Exercise(
        _strides,
        {
            "elements": Text("Those are counted in elements. nb counts bytes.", "这是按元素数的。nb 的单位是字节。"),
            "order": Text(
                "That is NumPy's order. In ggml, which dimension has neighbours in memory?",
                "这是 NumPy 的顺序。在 ggml 里，哪一维的元素在内存中相邻？",
            ),
            "product": Text(
                "nb[0] is one element. For each next one: how many bytes does the whole of the dimension before take?",
                "nb[0] 是一个元素的大小。往后每一项：前一维整个占多少字节？",
            ),
        },
        Text(
            "nb[0] = 2; nb[1] = 64 * 2 = 128, a row; nb[2] = 9 * 128 = 1152, a matrix; nb[3] = 5 * 1152 = 5760.",
            "nb[0] = 2；nb[1] = 64 * 2 = 128，一行；nb[2] = 9 * 128 = 1152，一个矩阵；nb[3] = 5 * 1152 = 5760。",
        ),
        "(1, 2, 3, 4)",
    ),
    "01.2": Exercise(
        _byte,
        {
            "before": Text(
                "That is where (3, 2) of m lies. What does a transpose do to nb?",
                "那是 m 的 (3, 2) 所在的位置。转置对 nb 做了什么？",
            ),
            "elements": Text(
                "That counts elements of F32. How many bytes has each?", "这是元素个数。一个 F32 占几个字节？"
            ),
            "strides": Text(
                "Write down nb of m, exchange the first two, then add i0 * nb[0] and i1 * nb[1].",
                "先写下 m 的 nb，交换前两项，再把 i0 * nb[0] 和 i1 * nb[1] 相加。",
            ),
        },
        Text(
            "m has nb (4, 32), its transpose (32, 4). 3 * 32 + 2 * 4 = 104: the byte of element (2, 3) of m.",
            "m 的 nb 是 (4, 32)，转置后是 (32, 4)。3 * 32 + 2 * 4 = 104：正是 m 的元素 (2, 3) 所在的字节。",
        ),
    ),
    "01.3": Exercise(
        _axes,
        {
            "once": Text("Each of 0, 1, 2, 3 must be there once.", "0、1、2、3 各出现一次。"),
            "numpy": Text(
                "So NumPy would write it: where each axis comes from. ggml says where each dimension goes.",
                "这是 NumPy 的写法：每一维从哪里来。ggml 写的是每一维到哪里去。",
            ),
            "where": Text(
                "Where must the 64 stand afterwards? That is axes[0]. Then the 9, then the 5.",
                "64 最后要在第几维？那就是 axes[0]。然后看 9，再看 5。",
            ),
        },
        Text(
            "The 64 goes to dimension 1, the 9 to 2, the 5 to 0, and the 1 stays: (1, 2, 0, 3).",
            "64 到第 1 维，9 到第 2 维，5 到第 0 维，1 不动：(1, 2, 0, 3)。",
        ),
        "(0, 1, 2, 3)",
    ),
    "01.4": Exercise(
        _contiguous,
        {
            "fresh": Text(
                "It refuses a tensor without gaps. What must nb[1] be when nb[0] and ne[0] are given?",
                "它拒绝了一个没有空隙的张量。已知 nb[0] 和 ne[0]，nb[1] 应当是多少？",
            ),
            "exchanged": Text(
                "It takes a permuted tensor for contiguous. Compare every stride, from nb[0] on.",
                "它把换过维的张量当成了连续的。从 nb[0] 开始，每个步长都要比较。",
            ),
            "gaps": Text(
                "It takes rows with a gap between them for contiguous. Is nb[1] just ne[0] elements?",
                "它把行间有空隙的张量当成了连续的。nb[1] 正好是 ne[0] 个元素吗？",
            ),
            "ones": Text(
                "It refuses a tensor that is contiguous: the stride of a dimension with one element does not matter.",
                "它拒绝了一个连续的张量：只有一个元素的维，步长是多少都没关系。",
            ),
        },
        Text(
            "def contiguous(ne, nb, size):\n"
            "    for n, stride in zip(ne, nb):\n"
            "        if n != 1 and stride != size:\n"
            "            return False\n"
            "        size *= n\n"
            "    return True\n"
            "A dimension of one element is passed over; every other stride must be what all dimensions before it take.",
            "def contiguous(ne, nb, size):\n"
            "    for n, stride in zip(ne, nb):\n"
            "        if n != 1 and stride != size:\n"
            "            return False\n"
            "        size *= n\n"
            "    return True\n"
            "只有一个元素的维跳过；其余每个步长必须等于前面各维合起来的字节数。",
        ),
        "lambda ne, nb, size: True",
    ),
}
