"""Exercises of chapter 5, the graph allocator."""

from __future__ import annotations

from typing import Any

from vizggml.lessons.exercise import Exercise, Text
from vizggml.lessons.placing import peak_of

PEAK_SIZES = (64, 32, 96)
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
            "The first lies at 0, the second at 64. Then the first is freed: 64 bytes at 0, too small for 96. "
            "The end of the chunk, from 96 on, takes the third: 192 bytes.",
            "第一个在 0，第二个在 64。然后第一个被释放：0 处有 64 字节，放不下 96 字节。"
            "第三个从块末尾 96 处开始：共 192 字节。",
        ),
    )
}
