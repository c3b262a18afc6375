"""Exercises of chapter 5, the graph allocator."""

from __future__ import annotations

from typing import Any

from vizggml.lessons.exercise import Exercise, Text
from vizggml.lessons.placing import peak_of

PEAK_SIZES = (96, 32, 64)
"""Three results in a chain, each read only by the next, 32-byte alignment, nothing in place."""


def _peak(answer: Any) -> str:
    want = peak_of(PEAK_SIZES)
    if int(answer) == want:
        return ""
    return "sum" if int(answer) == sum(PEAK_SIZES) else "pairs"


EXERCISES: dict[str, Exercise] = {
    "05.1": Exercise(
        _peak,
        {
            "sum": Text(
                "That is the sum of all three. When the third is placed, who still needs the first?",
                "这是三个张量大小之和。放置第三个时，还有谁需要第一个？",
            ),
            "pairs": Text(
                "Place one after another by hand. Where is the free block when the third comes, is it wide enough?",
                "用手依次放置：放第三个时，空闲块在哪里？够宽吗？",
            ),
        },
        Text(
            "The first lies at 0, the second at 96. Then the first is freed: 96 bytes at 0, wide enough for 64. "
            "The third goes there, so nothing beyond 128 bytes is ever needed.",
            "第一个在 0，第二个在 96。然后第一个被释放：0 处有 96 字节，放得下 64 字节。"
            "第三个就放在那里，所以始终用不到 128 字节以外的地方。",
        ),
    )
}
