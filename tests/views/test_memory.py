"""Memory maps and timelines, held to the teaching trace: three places of 8 bytes, 0, 8, 0, and a peak of 16."""

from __future__ import annotations

import numpy as np
import pytest

from tests.views.synthetic import lesson, teaching
from vizggml.errors import VizggmlError
from vizggml.views.memory import Bar, Block, check_step, fullest_step, memory_at, plan_at, read_plan

WX, TOTAL, OUT, FREE = 2, 4, 5, -1


@pytest.mark.parametrize(
    ("step", "size", "blocks"),
    [
        (0, 0, []),
        (1, 8, [(0, 8, WX)]),
        (2, 16, [(0, 8, WX), (8, 8, TOTAL)]),
        (3, 16, [(0, 8, FREE), (8, 8, TOTAL)]),
        (4, 16, [(0, 8, OUT), (8, 8, TOTAL)]),
        (7, 16, [(0, 8, OUT), (8, 8, FREE)]),
    ],
)
def test_the_map_at_each_step(step: int, size: int, blocks: list[tuple[int, int, int]]) -> None:
    """The endless free block behind the chunk is not memory, so it is not drawn."""
    assert memory_at(teaching(), step) == [Bar(0, 0, size, tuple(Block(*b) for b in blocks))]


def test_the_plan_and_its_peak() -> None:
    plan = read_plan(teaching(), 0)
    assert (plan.peak, plan.peak_at, plan.n_positions, plan.chunk_ends) == (16, 1, 3, (16,))
    assert [life.tensor for life in plan.standing()] == [WX, TOTAL]
    assert [(life.offset, life.first, life.last) for life in plan.lives] == [(0, 0, 1), (8, 1, 2), (0, 2, 2)]


def test_what_lives_and_the_lower_bound() -> None:
    tracks = teaching()
    plan = read_plan(tracks, 0)
    assert (plan.live, plan.bound) == ((8, 16, 16), 16)
    for name in [name for name in tracks.columns if name.startswith("t.live.")]:
        del tracks.columns[name]
    assert (read_plan(tracks, 0).live, read_plan(tracks, 0).bound) == ((), 0)


def test_a_second_chunk_stands_on_the_first() -> None:
    tracks = teaching()
    tracks.columns["t.life.chunk"][2] = 1
    plan = read_plan(tracks, 0)
    assert plan.chunk_ends == (16, 24)
    assert plan.lives[2].offset == 16


def test_another_allocator_s_chunk_is_not_this_plan_s() -> None:
    """While the plan of 16 bytes stands, another allocator has a chunk 0 of 1 KiB."""
    tracks = teaching()
    for column, value in (("a", 0), ("b", 8), ("allocator", 1), ("chunk", 0), ("size", 1024)):
        name = f"t.chunk.{column}"
        tracks.columns[name] = np.append(tracks.columns[name], np.array([value], tracks.columns[name].dtype))
    assert read_plan(tracks, 0).chunk_ends == (16,)
    assert [(bar.allocator, bar.size) for bar in memory_at(tracks, 6)] == [(0, 16), (1, 1024)]


def test_the_plan_of_a_step() -> None:
    tracks = teaching()
    assert plan_at(tracks, 0) == 0
    assert plan_at(tracks, 7) == 0


def test_steps_outside_the_trace_are_refused() -> None:
    assert check_step(teaching(), None) == 7
    with pytest.raises(VizggmlError, match="step 8: the trace has steps 0 to 7"):
        check_step(teaching(), 8)
    with pytest.raises(VizggmlError, match="plan 3: the trace has 1"):
        read_plan(teaching(), 3)
    assert check_step(lesson(), None) == 0


def test_the_fullest_step_is_the_last_that_holds_the_most() -> None:
    """Events 2 and 4 hold 16 bytes; events 3 and from 5 on hold 8."""
    assert fullest_step(teaching()) == 4
    assert fullest_step(lesson()) == 0
