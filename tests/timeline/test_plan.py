"""A plan that places tensors: what its chunks hold at each node."""

from __future__ import annotations

from vizggml.timeline.plan import Plan


def test_a_chunk_in_which_nothing_lives_is_free_from_end_to_end() -> None:
    plan = Plan(0, 0, 0, {})
    plan.begin_compute()
    assert plan.tiles(0, 96) == {0: (96, -1)}
    assert plan.tiles(0, 0) == {}
