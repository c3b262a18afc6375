"""The sentences: one for every kind, only with fields that are there, and numbers as a reader expects them."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator

import pytest

from tests.timeline.made import SIZE_MAX_HALF, trace_of
from vizggml.events import (
    KINDS,
    AllocatorId,
    BackendAssigned,
    BlockChosen,
    BlockConsidered,
    BlockDecoded,
    BlockSplit,
    ChildrenChanged,
    ComputeBegin,
    ComputeEnd,
    ContextCreated,
    ContextId,
    Event,
    FlagsSet,
    GraphId,
    LogitsReady,
    NodePlanned,
    NodeSkipped,
    OpRecorded,
    ReserveEnd,
    ReuseChecked,
    SearchBegin,
    Seq,
    TensorCreated,
    TensorId,
    TensorNamed,
)
from vizggml.events.bus import GallocId
from vizggml.timeline.schema import fields_of
from vizggml.timeline.sentences import (
    SENTENCES,
    Template,
    fields_in,
    render,
    show_bytes,
    show_dims,
    show_flags,
    show_float,
    show_ns,
)

AL, G, W = AllocatorId(0), GraphId(0), TensorId(0)


def texts(template: Template) -> Iterator[str]:
    if isinstance(template, str):
        yield template
    else:
        for case in (template["else"], *template["cases"].values()):
            yield from texts(case)


def test_every_kind_has_a_sentence_and_no_other() -> None:
    assert list(SENTENCES) == [kind.__name__ for kind in KINDS]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_field_named_exists(kind: type[Event]) -> None:
    kinds = {k.__name__: k for k in KINDS}
    for of, field in fields_in(SENTENCES[kind.__name__]):
        assert field in {f.name for f in fields_of(kinds[of] if of else kind)}, of


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_sentence_is_one(kind: type[Event]) -> None:
    for text in texts(SENTENCES[kind.__name__]):
        assert text[0].isupper() or text[0] == "{"
        assert text.endswith(".")
        assert "\n" not in text
        assert not re.search(r"[{}]", re.sub(r"\{(cause\.)?\w+(:size)?\}", "", text))


def said(*events: Event) -> str:
    """The sentence of the last event."""
    tracks = trace_of(*events).tracks()
    return render(tracks, tracks.n_events - 1)


NAMED = TensorNamed(W, "W")


@pytest.mark.parametrize(
    ("event", "sentence"),
    [
        (
            TensorCreated(W, ContextId(0), "F32", (3, 2, 1, 1), (4, 12, 24, 24), 24),
            "W is made: type F32, shape 3 x 2 (a row's length first), 24 B of data.",
        ),
        (
            BlockConsidered(AL, "best fit", 0, 2, 0, 96, 0, "too small"),
            "Free block 2 of chunk 0 (96 B at 0) is too small.",
        ),
        (
            BlockConsidered(AL, "last block", 0, 2, 64, SIZE_MAX_HALF, -32, "best so far"),
            "The free end of chunk 0 has room: the chunk grows by 32 B.",
        ),
        (
            BlockConsidered(AL, "best fit", 0, 1, 64, 128, 0, "best so far"),
            "Free block 1 of chunk 0 (128 B at 64) is the best so far.",
        ),
        (
            BlockChosen(AL, W, 0, 0, 96, 2**63, "last block", False, -32),
            "W goes to offset 96 of chunk 0, its free end: no gap before it is large enough.",
        ),
        (
            BlockChosen(AL, W, 0, 0, 0, 1536, "best fit", False, 0),
            "W goes to offset 0 of chunk 0: best fit, the smallest free block with room for it (1.5 KiB).",
        ),
        (
            BlockChosen(AL, W, 0, 0, 0, 8, "best fit", True, 0),
            "W goes to offset 0 of chunk 0: best fit exact, a free block of just 8 B.",
        ),
        (
            BlockSplit(AL, 0, 0, 32, 96, 32),
            "32 B are cut off the front of free block 0 of chunk 0; the other 96 B, from 32 on, stay free.",
        ),
        (
            BlockSplit(AL, 0, 0, 32, SIZE_MAX_HALF - 32, 32),
            "32 B are cut off the front of the free end of chunk 0; the rest, from 32 on, stays free.",
        ),
        (NodePlanned(G, W, 1, 0, ""), "W runs on one thread and needs no scratch, no memory to work in."),
        (ComputeBegin(G, 3, 1), "Graph 0 is computed: 3 nodes in order, by one thread."),
        (
            BackendAssigned(G, W, "CPU", "its weights"),
            "Backend CPU will compute W: the weights that it reads lie there.",
        ),
        (
            ChildrenChanged(GallocId(0), W, 0, 1),
            "W is still needed: 0 of its readers and 1 of its views are yet to be planned.",
        ),
        (NodePlanned(G, W, 4, 0, ""), "W may run on 4 threads and needs no scratch, no memory to work in."),
        (
            NodePlanned(G, W, 4, 2048, "2 x 1024"),
            "W may run on 4 threads and needs 2 KiB of scratch, memory to work in: 2 x 1024.",
        ),
        (NodeSkipped(G, W, "empty op"), "W is not computed: its op moves no byte."),
        (NodeSkipped(G, W, "on strike"), "W is not computed: on strike."),
        (FlagsSet(W, 6), "W has the flags OUTPUT, PARAM."),
        (FlagsSet(W, 2), "W is marked OUTPUT: somebody will read it, so its memory is kept to the end."),
        (ComputeEnd(G, 1234567), "Graph 0 is computed. It took 1.2 ms."),
        (
            OpRecorded(TensorId(1), "MUL_MAT", "MUL_MAT", (), (W, TensorId(2)), False),
            "tensor 1 will be MUL_MAT of W, tensor 2. This is only written down: nothing is computed yet.",
        ),
        (
            ReserveEnd(GallocId(0), G, (128, 64), False),
            "The plan of graph 0 is made; its chunks take 128 B, 64 B. The buffer that stands is large enough.",
        ),
        (
            ReuseChecked(G, "params", "n_kv", "256", "512", False),
            "params: n_kv was 256 and must be 512, so the graph cannot be used again.",
        ),
        (
            LogitsReady(3, (1, 2), (" a", " the"), (1.5, -0.25), 2.0),
            "The logits after position 3 are ready: a score for each token. "
            "The highest belong to  a,  the: 1.5, -0.25.",
        ),
        (BlockDecoded(W, "Q4_0", 3, 0.125, 0.0, (1, 2), (7,)), "Block 3 is decoded from Q4_0: scale 0.125, minimum 0."),
        (
            ContextCreated(ContextId(0), 16 << 20, True),
            "Context 0 opens an arena of 16 MiB for records of tensors and graphs; "
            "the tensors' data will lie elsewhere.",
        ),
    ],
)
def test_what_is_said(event: Event, sentence: str) -> None:
    assert said(NAMED, event) == sentence


NEEDED = SearchBegin(AL, W, 100, 128)


@pytest.mark.parametrize(
    ("event", "sentence"),
    [
        (
            BlockConsidered(AL, "best fit", 0, 2, 0, 96, 0, "too small"),
            "Free block 2 of chunk 0 (96 B at 0) is too small: W needs 128 B.",
        ),
        (
            BlockConsidered(AL, "best fit", 0, 1, 64, 160, 0, "best so far"),
            "Free block 1 of chunk 0 (160 B at 64) has room for 128 B: it is the smallest of those so far.",
        ),
        (
            BlockConsidered(AL, "last block", 0, 1, 64, 96, -96, "too small"),
            "The free end of chunk 0 is too small: W needs 128 B, and 96 B are left.",
        ),
        (
            BlockConsidered(AL, "last block", 0, 1, 64, SIZE_MAX_HALF, -32, "best so far"),
            "W (128 B) fits into no gap of chunk 0, but at its free end: the chunk grows by 32 B.",
        ),
        (
            BlockConsidered(AL, "last block", 0, 0, 64, SIZE_MAX_HALF, -128, "best so far"),
            "Chunk 0 has no gaps, but at its free end W (128 B) has room: the chunk grows by 128 B.",
        ),
        (
            BlockConsidered(AL, "last block", 0, 1, 64, SIZE_MAX_HALF, 32, "not better"),
            "The free end of chunk 0 is no better: 32 B of the chunk stay unused.",
        ),
    ],
)
def test_a_block_is_held_against_what_its_search_needs(event: Event, sentence: str) -> None:
    """The numbers of the search that caused the event, in that event's sentence."""
    asked = 1
    tracks = trace_of(NAMED, NEEDED, dataclasses.replace(event, cause=Seq(asked))).tracks()
    assert render(tracks, 2) == sentence


def test_no_tensor_is_none() -> None:
    assert said(NodeSkipped(G, TensorId(-1), "empty tensor")) == "none is not computed: it has no elements."


def test_braces_in_a_name_are_only_a_name() -> None:
    assert said(TensorNamed(W, "{name}")) == "The tensor is named {name}."


@pytest.mark.parametrize(
    ("n", "text"),
    [(0, "0 B"), (96, "96 B"), (1023, "1023 B"), (1024, "1 KiB"), (1536, "1.5 KiB"), (103022592, "98.25 MiB"),
     (1024**3, "1 GiB"), (1024**5, "1024 TiB"), (-1, "the rest"), (1100, "1.07 KiB"), (1152, "1.12 KiB")],
)  # fmt: skip
def test_bytes(n: int, text: str) -> None:
    assert show_bytes(n) == text


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (1000, "1 us"),
        (12_540, "12.5 us"),
        (1_200_000, "1.2 ms"),
        (2_050_000_000, "2.05 s"),
    ],
)
def test_times(ns: int, text: str) -> None:
    assert show_ns(ns) == text


@pytest.mark.parametrize(
    ("ne", "text"),
    [
        ((3, 2, 1, 1), "3 x 2"),
        ((1, 1, 1, 1), "1"),
        ((1, 5, 1, 1), "1 x 5"),
        ((2, 1, 1, 4), "2 x 1 x 1 x 4"),
        ((0, 1), "0"),
    ],
)
def test_shapes(ne: tuple[int, ...], text: str) -> None:
    assert show_dims(ne) == text


def test_numbers_and_flags() -> None:
    assert [show_float(x) for x in (0.5, 1.0, 0.00004, -2.25, 1e20)] == [
        "0.5",
        "1",
        "0",
        "-2.25",
        "100000000000000000000",
    ]
    assert [show_float(float(x)) for x in ("inf", "-inf", "nan")] == ["Infinity", "-Infinity", "NaN"]
    assert [show_flags(f) for f in (0, 1, 6, 31)] == [
        "none",
        "INPUT",
        "OUTPUT, PARAM",
        "INPUT, OUTPUT, PARAM, LOSS, COMPUTE",
    ]
