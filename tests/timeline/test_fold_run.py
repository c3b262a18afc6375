"""Scratch, threads, evaluations, tokens and reuse checks, from events written by hand."""

from __future__ import annotations

import math

import pytest

from tests.timeline.made import at, rows, trace_of
from vizggml.events import (
    BarrierWait,
    ChunksTaken,
    ComputeBegin,
    ComputeEnd,
    DecodeBegin,
    Event,
    ExpertsRouted,
    GraphFreed,
    GraphId,
    LogitsReady,
    NodeBegin,
    NodeEnd,
    NodePlanned,
    PlanEnd,
    PlanMaximum,
    ReuseChecked,
    ReuseDecided,
    SplitOpened,
    TensorId,
    Tokenized,
    TokenSampled,
    TokensHeld,
    UbatchSplit,
    WorkTaken,
)
from vizggml.timeline.tracks import Tracks

G = GraphId(0)
A, B = TensorId(0), TensorId(1)


def fold(*events: Event) -> Tracks:
    return trace_of(*events).tracks()


def test_scratch_keeps_the_running_maximum_and_begins_anew_with_each_plan() -> None:
    tracks = fold(
        NodePlanned(G, A, 2, 100, "f"),
        PlanMaximum(G, A, 100),
        NodePlanned(G, B, 1, 40, "f"),
        PlanEnd(G, 2, 228, 128),
        NodePlanned(G, A, 1, 0, "f"),
        GraphFreed(G),
    )
    assert at(tracks, "scratch", 0) == [(0, A, 2, 100, 0)]
    assert at(tracks, "scratch", 3) == [(0, A, 2, 100, 100), (0, B, 1, 40, 100)]
    assert at(tracks, "scratch", 4) == [(0, A, 1, 0, 0)]
    assert at(tracks, "scratch", 5) == []


def test_threads_of_an_evaluation_stand_until_the_next() -> None:
    tracks = fold(
        ComputeBegin(G, 2, 2),
        NodeBegin(G, A, 0, 10),
        NodeBegin(G, A, 1, 12),
        WorkTaken(G, A, 1, True),
        ChunksTaken(G, A, -1, 9, 64, 1, True, (5, 4)),
        NodeEnd(G, A, 0, 50),
        NodeEnd(G, A, 1, 45),
        BarrierWait(G, A, 1, 5),
        ComputeEnd(G, 60),
        ComputeBegin(G, 2, 2),
        NodeBegin(G, A, 0, 11),
    )
    assert rows(tracks, "thread") == [
        (1, 9, 0, A, 0, 10, 50, 0, 5, -1),
        (2, 9, 0, A, 1, 12, 45, 5, 4, 1),
        (10, 11, 1, A, 0, 11, 11, 0, -1, -1),
    ]


def test_the_chunks_of_all_experts_are_counted_together() -> None:
    tracks = fold(
        ComputeBegin(G, 2, 2),
        NodeBegin(G, A, 0, 10),
        NodeBegin(G, A, 1, 12),
        ChunksTaken(G, A, 3, 9, 64, 1, True, (5, 4)),
        ChunksTaken(G, A, 7, 9, 64, 1, True, (2, 7)),
    )
    assert [row[-2] for row in rows(tracks, "thread")] == [7, 11]


def test_a_layer_is_routed_until_it_is_routed_again() -> None:
    """Two layers of 4 experts, 100 bytes each; the second evaluation sends one token through the first layer."""
    tracks = fold(
        ComputeBegin(G, 1, 1),
        ExpertsRouted(A, 0, 2, 4, 2, 3, 400, 300, (0, 1), (0, 3, 3, 2), (0.5, 0.5, 0.75, 0.25)),
        ExpertsRouted(A, 1, 1, 4, 2, 2, 400, 200, (1,), (1, 2), (0.75, 0.25)),
        ComputeEnd(G, 5),
        ComputeBegin(G, 1, 1),
        ExpertsRouted(A, 0, 1, 4, 2, 2, 400, 200, (2,), (1, 0), (0.5, 0.5)),
    )
    assert rows(tracks, "route") == [
        (1, 5, 0, 0, 2, 4, 2, 3, 400, 300),
        (2, 6, 0, 1, 1, 4, 2, 2, 400, 200),
        (5, 6, 1, 0, 1, 4, 2, 2, 400, 200),
    ]


def test_a_graph_without_batches_is_an_evaluation() -> None:
    tracks = fold(ComputeBegin(G, 1, 1), ComputeEnd(G, 77), ComputeBegin(GraphId(1), 1, 1), ComputeEnd(GraphId(1), 5))
    assert rows(tracks, "eval") == [(0, 2, 0, 0, 0, -1, 0, 77), (2, 4, 1, 1, 0, -1, 0, 5)]


DECODE = [
    Tokenized("ab", (5, 6), ("a", "b")),
    DecodeBegin(0, 3, 1, 0),
    UbatchSplit(0, 2, 0, 0, (5, 6)),
    UbatchSplit(1, 1, 1, 2, (5,)),
    ReuseDecided(G, False, "no graph stands"),
    ComputeBegin(G, 3, 1),
    ComputeEnd(G, 10),
    ReuseChecked(G, "params", "n_tokens", "2", "1", False),
    ReuseDecided(G, False, "a condition does not hold"),
    ComputeBegin(GraphId(1), 3, 1),
    ComputeEnd(GraphId(1), 20),
    TokenSampled(7, "c", 0.5, 3),
    DecodeBegin(1, 1, 1, 3),
    UbatchSplit(0, 1, 1, 3, (7,)),
    ReuseChecked(GraphId(1), "params", "n_tokens", "1", "1", True),
    ReuseChecked(GraphId(1), "params", "n_kv", "256", "256", True),
    ReuseDecided(GraphId(1), True, "all conditions hold"),
    ComputeBegin(GraphId(1), 3, 1),
    ComputeEnd(GraphId(1), 30),
    TokenSampled(8, "d", 0.25, 4),
]


def test_an_evaluation_is_a_ubatch() -> None:
    tracks = fold(*DECODE)
    assert rows(tracks, "eval") == [
        (2, 7, 0, 0, 2, 0, 0, 10),
        (7, 13, 1, 1, 1, 2, 0, 20),
        (13, 20, 2, 1, 1, 3, 1, 30),
    ]


def test_candidates_stand_until_there_are_others() -> None:
    """exp(logit - log_sum): logits 0 and log(1/2) of a sum of 2 are a half and a quarter."""
    half, log_sum = math.log(0.5), math.log(2.0)
    tracks = fold(
        LogitsReady(2, (7, 9), ("c", "d"), (0.0, half), log_sum),
        TokenSampled(9, "d", 0.3, 3),
        LogitsReady(3, (5,), ("a",), (1.0,), 1.0),
    )
    assert [r[:5] for r in rows(tracks, "candidate")] == [(0, 2, 2, 0, 7), (0, 2, 2, 1, 9), (2, 3, 3, 0, 5)]
    assert tracks["t.candidate.p"].tolist() == pytest.approx([0.5, 0.25, 1.0])
    assert [tracks.string(i) for i in tracks["t.candidate.piece"].tolist()] == ["c", "d", "a"]


def test_reuse_checks_stand_until_the_next_evaluation_is_checked() -> None:
    tracks = fold(*DECODE)
    assert [(r[0], r[1], r[2], r[-1]) for r in rows(tracks, "reuse")] == [(7, 14, 1, 0), (14, 20, 2, 1), (15, 20, 2, 1)]
    texts = {c: [tracks.string(i) for i in tracks[f"t.reuse.{c}"].tolist()] for c in ("condition", "had", "needs")}
    assert texts == {
        "condition": ["n_tokens", "n_tokens", "n_kv"],
        "had": ["2", "1", "256"],
        "needs": ["1", "1", "256"],
    }


def test_tokens_are_read_or_sampled() -> None:
    tracks = fold(*DECODE)
    pieces = [tracks.string(i) for i in tracks["t.token.piece"].tolist()]
    found = [
        (*row[:2], row[2], piece, *row[4:6], row[7]) for row, piece in zip(rows(tracks, "token"), pieces, strict=True)
    ]
    assert found == [
        (2, 20, 5, "a", 0, 0, 0),
        (2, 20, 6, "b", 1, 0, 0),
        (7, 20, 5, "a", 2, 0, 1),
        (11, 20, 7, "c", 3, 1, 1),
        (19, 20, 8, "d", 4, 1, 2),
    ]
    assert tracks["t.token.p"].tolist() == [1, 1, 1, 0.5, 0.25]


def test_a_new_prompt_replaces_the_old_text() -> None:
    tracks = fold(*DECODE, DecodeBegin(2, 1, 1, 0), UbatchSplit(0, 1, 1, 0, (6,)), TokenSampled(5, "a", 1.0, 1))
    assert [(token, pos) for token, _, pos, *_ in at(tracks, "token", 19)] == [(5, 0), (6, 1), (5, 2), (7, 3), (8, 4)]
    assert [(token, pos) for token, _, pos, *_ in at(tracks, "token", 21)] == [(6, 0)]
    assert [(token, pos) for token, _, pos, *_ in at(tracks, "token", 22)] == [(6, 0), (5, 1)]


@pytest.mark.parametrize("events", [[ReuseDecided(G, True, "x")], [ComputeEnd(G, 1)], [NodeEnd(G, A, 0, 5)]])
def test_a_recording_may_begin_in_the_middle(events: list[Event]) -> None:
    assert fold(*events).n_events == 1


def test_the_splits_of_a_graph_are_one_evaluation_on_one_clock() -> None:
    first, second = GraphId(1), GraphId(2)
    tracks = fold(
        SplitOpened(G, 0, "CPU", 0, 0),
        SplitOpened(G, 1, "GPU", 1, 1),
        ComputeBegin(first, 1, 1),
        NodeBegin(first, A, 0, 10),
        NodeEnd(first, A, 0, 20),
        ComputeEnd(first, 100),
        ComputeBegin(second, 1, 1),
        NodeBegin(second, B, 0, 5),
        NodeEnd(second, B, 0, 7),
        ComputeEnd(second, 50),
        ComputeBegin(first, 1, 1),
        ComputeEnd(first, 30),
    )
    assert [row[:3] + row[-1:] for row in rows(tracks, "eval")] == [(2, 10, 0, 150), (10, 12, 1, 30)]
    assert tracks["t.thread.begin_ns"].tolist() == [10, 105]
    assert tracks["t.thread.end_ns"].tolist() == [20, 107]


def test_the_text_so_far_stands_and_is_not_read_again() -> None:
    """Read before the recording: no evaluation of the trace. The last was sampled and is read by the first one."""
    tracks = fold(
        TokensHeld((0, 1, 2), (5, 6, 5), ("a", "b", "a")),
        DecodeBegin(4, 1, 1, 2),
        UbatchSplit(0, 1, 1, 2, (5,)),
    )
    held = [(tracks.string(row[3]), *row[4:6], row[7]) for row in rows(tracks, "token")]
    assert held == [("a", 0, 0, -1), ("b", 1, 0, -1), ("a", 2, 0, -1)]
