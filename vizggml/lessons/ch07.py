"""Exercises of chapter 7, the static plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, count
from typing import Any

from vizggml.lessons.exercise import Exercise, Text, call, code, whole

Lives = Sequence[tuple[int, int, int]]

BOUND: Lives = ((0, 2, 64), (1, 3, 32), (2, 4, 96), (4, 5, 128))
LAYER, PLAN, SHARE = 10, 4, 95
"""Megabytes of a layer's results and of the plan; per cent to be saved."""

LISTS: tuple[tuple[str, Lives], ...] = (
    ("one", ((0, 3, 64),)),
    ("apart", ((0, 1, 64), (1, 2, 64), (2, 3, 64), (3, 4, 64))),
    ("low", ((0, 1, 32), (1, 2, 64), (2, 3, 32), (3, 4, 96), (4, 5, 32))),
    ("between", ((0, 5, 32), (0, 1, 64), (0, 5, 32), (2, 5, 64))),
    ("low", BOUND),
)


def alive(lives: Lives) -> int:
    """The most bytes alive at one position."""
    end = max(died for _, died, _ in lives)
    return max(sum(size for born, died, size in lives if born <= p <= died) for p in range(end + 1))


def together(a: tuple[int, int, int], b: tuple[int, int, int]) -> bool:
    return a[0] <= b[1] and b[0] <= a[1]


def lowest(lives: Lives) -> list[int]:
    """The offsets of the chapter's `place`: each as low as those before it allow."""
    offsets: list[int] = []
    for i, life in enumerate(lives):
        offset = 0
        for start, j in sorted((offsets[j], j) for j in range(i) if together(lives[j], life)):
            if start < offset + life[2]:
                offset = max(offset, start + lives[j][2])
        offsets.append(offset)
    return offsets


def height(lives: Lives, offsets: Sequence[int]) -> int:
    return max(offset + life[2] for offset, life in zip(offsets, lives, strict=True))


def _bound(answer: Any) -> str:
    given, want = whole(answer), alive(BOUND)
    if given == want:
        return ""
    sizes = [size for _, _, size in BOUND]
    return {sum(sizes): "sum", max(sizes): "single", alive(BOUND[:3]): "reader"}.get(given, "positions")


def _layers(answer: Any) -> str:
    want = next(n for n in count(1) if (100 - SHARE) * LAYER * n >= 100 * PLAN)
    given = whole(answer)
    if given == want:
        return ""
    return "not yet" if given < want else "before"


def _plan(answer: Callable[[list[tuple[int, int, int]]], Sequence[int]]) -> str:
    for hint, lives in LISTS:
        offsets = [whole(offset) for offset in call(answer, list(lives))]
        if len(offsets) != len(lives) or min(offsets) < 0:
            return "one"
        for i, j in combinations(range(len(lives)), 2):
            apart = offsets[i] + lives[i][2] <= offsets[j] or offsets[j] + lives[j][2] <= offsets[i]
            if together(lives[i], lives[j]) and not apart:
                return "overlap"
        if height(lives, offsets) > height(lives, lowest(lives)):
            return hint
    return ""


EXERCISES: dict[str, Exercise] = {
    "07.1": Exercise(
        _bound,
        {
            "sum": Text(
                "That is all four together. Do they ever live all at once?", "这是四个之和。它们同时存活过吗？"
            ),
            "single": Text("That is the largest one. Who lives beside it?", "这是最大的一个。它旁边还有谁活着？"),
            "reader": Text(
                "Both positions are included: who is read at 4 for the last time still lives at 4.",
                "两端都包括在内：在位置 4 最后一次读到的，在位置 4 还活着。",
            ),
            "positions": Text(
                "Write down for each position from 0 to 5 who lives, and add their sizes.",
                "对 0 到 5 的每个位置，写下谁活着，把大小加起来。",
            ),
        },
        Text(
            "Alive at 0 to 5: 64, 96, 192, 128, 224, 128. The lower bound is 224, at position 4.",
            "位置 0 到 5 存活的字节：64、96、192、128、224、128。下界是 224，在位置 4。",
        ),
    ),
    "07.2": Exercise(
        _layers,
        {
            "not yet": Text(
                "With so many the plan is more than a twentieth of the sum.", "这么多层时，规划还超过总和的二十分之一。"
            ),
            "before": Text("So it does, but is it the first time?", "确实省了这么多，但这是第一次吗？"),
        },
        Text(
            "4 MB must be at most 5 % of the sum, so the sum at least 80 MB: 8 layers. The saving is 1 - 4 / (10 n).",
            "4 MB 最多占总和的 5%，所以总和至少 80 MB：8 层。节省的比例是 1 - 4 / (10 n)。",
        ),
    ),
    "07.3": Exercise(
        _plan,
        {
            "one": Text(
                "It must return one offset for each life, none below 0, and 0 for one that is alone.",
                "每个生命周期返回一个偏移，不能小于 0；只有一个时偏移是 0。",
            ),
            "overlap": Text(
                "Two results that live at a common position share bytes. Both positions of a life are included.",
                "有两个在同一位置存活的结果共用了字节。生命周期的两端都包括在内。",
            ),
            "apart": Text(
                "It takes more than needed for a chain. May the third lie where the first was?",
                "一条链上用得太多了。第三个能放在第一个原来的位置吗？",
            ),
            "low": Text(
                "It is valid, but takes more than place. Is there a lower offset where it fits?",
                "合法，但比 place 用得多。有没有更低的、放得下的偏移？",
            ),
            "between": Text(
                "It is valid, but a hole between two others is not used.", "合法，但两个张量之间的空洞没有用上。"
            ),
        },
        code(
            "def plan(lives):\n"
            "    offsets = []\n"
            "    for born, died, size in lives:\n"
            "        offset = 0\n"
            "        for start, (b, d, s) in sorted(zip(offsets, lives)):\n"
            "            if b <= died and born <= d and start < offset + size:\n"
            "                offset = max(offset, start + s)\n"
            "        offsets.append(offset)\n"
            "    return offsets"
        ),
        "answer = plan",
    ),
}
