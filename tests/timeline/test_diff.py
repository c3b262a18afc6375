"""Two traces compared: small graphs worked out by hand, and the tiny model with flash attention on and off."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import vizggml as vg
from tests.timeline.made import trace_of
from vizggml import ggml
from vizggml.errors import VizggmlError
from vizggml.events import (
    ComputeBegin,
    GraphCreated,
    NodeAppended,
    ReserveBegin,
    TensorAssigned,
    TensorNamed,
    TokenSampled,
)
from vizggml.ggml.tensor import Tensor
from vizggml.llama.cparams import ContextParams
from vizggml.llama.plan import plan_shape
from vizggml.timeline.diff import Diff, diff
from vizggml.timeline.diff_words import text
from vizggml.timeline.record import record
from vizggml.timeline.trace import Trace

GOLDENS = Path(__file__).parent.parent / "goldens"
Build = Callable[[ggml.Context], Tensor]


def planned(build: Build, in_place: bool = True) -> Trace:
    """A graph built and planned, alignment 32."""
    with record() as trace:
        ctx = ggml.Context(mem_size=1 << 20, no_alloc=True)
        g = ggml.Graph(ctx)
        g.build_forward_expand(build(ctx))
        ggml.GraphAllocator(ggml.cpu_buffer_type(32), in_place=in_place).alloc_graph(g)
    return trace


def lesson(n: int = 2, scaled: bool = False) -> Build:
    """relu(W x + b), or relu(2 (W x) + b); W is 3 x n."""

    def build(ctx: ggml.Context) -> Tensor:
        W, x, b = ctx.new_tensor("F32", (3, n), "W"), ctx.new_tensor("F32", (3,), "x"), ctx.new_tensor("F32", (n,), "b")
        wx = ggml.mul_mat(ctx, W, x).set_name("wx")
        if scaled:
            wx = ggml.scale(ctx, wx, 2.0).set_name("twice")
        return ggml.relu(ctx, ggml.add(ctx, wx, b).set_name("sum")).set_name("out")

    return build


def layers(numbers: list[int], wide: set[int] | frozenset[int] = frozenset()) -> Build:
    """A chain of layers, each a product, a sum and an activation; a wide one has one node more."""

    def build(ctx: ggml.Context) -> Tensor:
        h = ctx.new_tensor("F32", (4,), "inp")
        for il in numbers:
            w = ctx.new_tensor("F32", (4, 4), f"blk.{il}.w")
            y = ggml.mul_mat(ctx, w, h).set_name(f"y-{il}")
            if il in wide:
                y = ggml.sqr(ctx, y).set_name(f"square-{il}")
            h = ggml.add(ctx, ggml.relu(ctx, y).set_name(f"act-{il}"), h).set_name(f"h-{il}")
        return h

    return build


def told(found: Diff) -> dict[str, tuple[str, ...]]:
    assert found.main is not None
    return {change.name: change.kinds for change in found.main.changes}


def test_identical_traces_do_not_differ() -> None:
    found = diff(planned(lesson()), planned(lesson()))
    assert not found
    assert [pair.changes for pair in found.pairs] == [[]]
    assert found.summary() == ["The two traces are alike: same graphs, same plan of memory, same text."]
    n = found.a.n_events
    assert found.events.a.tolist() == found.events.b.tolist() == list(range(n))


def test_a_node_put_in_is_added_and_its_neighbours_stay() -> None:
    """W 24, x 12, b 8 and every node 8 bytes: places of 32. The new node takes over the place of wx."""
    found = diff(planned(lesson()), planned(lesson(scaled=True)))
    assert told(found) == {"twice": ("added",)}
    main = found.main
    assert main is not None
    assert (main.figures_a.nodes, main.figures_b.nodes) == (3, 4)
    assert (main.figures_a.peak, main.figures_b.peak) == (128, 128)
    assert (main.figures_a.no_reuse, main.figures_b.no_reuse) == (6 * 32, 7 * 32)
    assert found.summary()[0] == "1 node more, the same peak, 128 B"


def test_a_node_taken_out_is_removed() -> None:
    found = diff(planned(lesson(scaled=True)), planned(lesson()))
    assert told(found) == {"twice": ("removed",)}
    assert found.summary()[0] == "1 node fewer, the same peak, 128 B"


def test_grown_tensors_and_what_they_move() -> None:
    """W grows from 24 to 120 bytes, b and the nodes from 8 to 40: places of 128 and 64 where 32 were.

    x lay behind W at 32 and b at 64; now they lie at 128 and 160.
    """
    found = diff(planned(lesson()), planned(lesson(n=10)))
    assert told(found) == {
        "W": ("changed", "grown"),
        "b": ("changed", "grown", "moved"),
        "wx": ("changed", "grown", "moved"),
        "sum": ("changed", "grown", "moved"),
        "out": ("changed", "grown", "moved"),
        "x": ("moved",),
    }
    main = found.main
    assert main is not None
    by_name = {change.name: change for change in main.changes}
    assert (by_name["W"].bytes_a, by_name["W"].bytes_b) == (24, 120)
    assert by_name["W"].details == "ne 3 x 2 -> 3 x 10; 24 B -> 120 B"
    assert by_name["x"].details == "offset 32 -> 128"
    assert (main.figures_a.peak, main.figures_b.peak) == (128, 128 + 32 + 64 + 64)
    assert found.summary()[0] == "Peak 128 -> 288 B"


def test_a_place_that_is_not_taken_over_lives_and_lies_elsewhere() -> None:
    found = diff(planned(lesson()), planned(lesson(), in_place=False))
    assert found.main is not None
    assert {kind for change in found.main.changes for kind in change.kinds} <= {"moved", "longer", "shorter"}
    assert "moved" in told(found)["sum"]


def test_a_renumbered_layer_is_the_same_layer() -> None:
    """A layer of another make before the others: what was layer 0 is layer 1 now."""
    found = diff(planned(layers([0, 1])), planned(layers([0, 1, 2], wide={0})))
    main = found.main
    assert main is not None
    added = [change.name for change in main.changes if "added" in change.kinds]
    assert sorted(added) == ["act-0", "blk.0.w", "h-0", "square-0", "y-0"]
    assert not main.count("removed")
    names = [found.a.string(k) for k in found.a["tensor.name"].tolist()]
    names_b = [found.b.string(k) for k in found.b["tensor.name"].tolist()]
    twins = {names[t]: names_b[twin] for t, twin in enumerate(found.twin_a)}
    assert twins == {
        "inp": "inp",
        "blk.0.w": "blk.1.w",
        "y-0": "y-1",
        "act-0": "act-1",
        "h-0": "h-1",
        "blk.1.w": "blk.2.w",
        "y-1": "y-2",
        "act-1": "act-2",
        "h-1": "h-2",
    }


def test_the_other_side_waits_where_an_event_has_no_answer() -> None:
    found = diff(planned(lesson()), planned(lesson(scaled=True)))
    kinds = [kind["name"] for kind in found.a.meta["kinds"]]
    names = [found.b.string(k) for k in found.b["tensor.name"].tolist()]
    new = names.index("twice")
    about_new = [
        i for i, node in enumerate(found.b["ev.node"].tolist()) if node == new and i not in found.events.b.tolist()
    ]
    assert about_new
    for j in about_new:
        assert found.to_a(j) == found.to_a(j - 1)
    for i, j in zip(found.events.a.tolist(), found.events.b.tolist(), strict=True):
        assert kinds[found.a["ev.kind"][i]] == kinds[found.b["ev.kind"][j]]
        assert (found.to_b(i), found.to_a(j)) == (j, i)
    at = [found.to_b(i) for i in range(found.a.n_events)]
    assert at == sorted(at)
    assert at[0] == 0
    assert at[-1] == found.b.n_events - 1


@pytest.fixture(scope="module")
def flash() -> Iterator[Diff]:
    """The tiny model without and with flash attention, from the context to six tokens."""
    traces = []
    model = vg.load_model("tiny")
    for on in (False, True):
        with record() as trace:
            context = model.context(n_ctx=512, n_ubatch=64, flash_attn=on, n_threads=1)
            list(context.generate("Once upon a time", max_tokens=4, temp=0))
        traces.append(trace)
        del context
    yield diff(*traces)
    model.close()


def test_flash_attention_is_named_and_every_graph_finds_its_like(flash: Diff) -> None:
    assert flash.params == [("flash attention", "off", "on")]
    assert flash.summary()[0].startswith("flash attention off -> on: 20 nodes fewer, peak 1 MiB -> 897.75 KiB")
    assert [pair.role for pair in flash.pairs] == [
        "reserved for 64 tokens",
        "reserved for 1 token",
        "reserved for 64 tokens",
        "prompt, 5 tokens",
        "decode, 1 token",
    ]
    assert (flash.only_a, flash.only_b) == ([], [])


def test_flash_attention_takes_one_node_where_there_were_a_soft_max_and_two_products(flash: Diff) -> None:
    main = flash.main
    assert main is not None
    gone = Counter(change.op for change in main.changes if "removed" in change.kinds)
    new = Counter(change.op for change in main.changes if "added" in change.kinds)
    n_layer = 4
    assert (gone["SOFT_MAX"], gone["MUL_MAT"], new["FLASH_ATTN_EXT"]) == (n_layer, 2 * n_layer, n_layer)
    assert main.figures_b.nodes - main.figures_a.nodes == new.total() - gone.total()


def test_every_evaluation_steps_with_its_like(flash: Diff) -> None:
    kinds = [kind["name"] for kind in flash.a.meta["kinds"]]
    begins = [
        [i for i, kind in enumerate(tracks["ev.kind"].tolist()) if kinds[kind] == "ComputeBegin"]
        for tracks in (flash.a, flash.b)
    ]
    assert [flash.to_b(i) for i in begins[0]] == begins[1]
    assert [flash.to_a(j) for j in begins[1]] == begins[0]


def test_the_text_is_compared_by_position() -> None:
    """What is sampled from a recording that began two tokens later is held against the same positions."""

    def sampled(first: int, text: str) -> Trace:
        return trace_of(*(TokenSampled(ord(c), c, 1.0, first + k) for k, c in enumerate(text)))

    later = diff(sampled(5, "abcd"), sampled(7, "cdef")).summary()
    assert "The text is the same where both have it, at 2 positions." in later
    parted = diff(sampled(5, "abcd"), sampled(5, "abXd")).summary()
    assert "The text parts at position 7: 'c' in A, 'X' in B." in parted


def test_two_plans_of_a_shape_as_llama_cpp_has_them() -> None:
    """Node counts and compute buffers of the pinned llama.cpp, tests/goldens/llama_buffers.json."""
    golden = {
        entry["flash_attn"]: entry
        for entry in json.loads((GOLDENS / "llama_buffers.json").read_text())
        if (entry["model"], entry["n_ctx"], entry["n_ubatch"], entry["type_kv"]) == ("minimind", 512, 512, "F16")
    }
    traces = []
    for on in (False, True):
        with record() as trace:
            plan_shape("minimind-64m", "F16", ContextParams(n_ctx=512, n_ubatch=512, flash_attn=on))
        traces.append(trace)
    found = diff(*traces)
    main = found.main
    assert main is not None
    assert (main.figures_a.nodes, main.figures_b.nodes) == (golden[False]["nodes"], golden[True]["nodes"]) == (326, 286)
    assert (main.figures_a.buffer, main.figures_b.buffer) == (golden[False]["compute"], golden[True]["compute"])
    assert found.whole_a.kv == found.whole_b.kv == golden[True]["kv"][0]
    assert found.params == [("flash attention", "off", "on")]
    assert found.summary()[0] == "flash attention off -> on: 40 nodes fewer, peak 21.01 -> 18.51 MiB"


def test_it_reads_as_text_as_html_and_as_json() -> None:
    found = diff(planned(lesson()), planned(lesson(n=10)), labels=("small", "<b>large</b>"))
    assert "peak            128 B  288 B" in repr(found)
    assert "ne 3 x 2 -> 3 x 10; 24 B -> 120 B" in repr(found)
    page = found._repr_html_()
    assert "<b>large" not in page
    assert "&lt;b&gt;large" in page
    said = json.loads(json.dumps(found.answer()))
    assert said["pairs"][said["main"]]["a"]["peak"] == 128
    assert said["pairs"][0]["counts"]["grown"] == 5


def test_a_narrow_terminal_loses_no_word() -> None:
    found = diff(planned(lesson()), planned(lesson(n=10)))
    wide, narrow = text(found), text(found, width=60)
    assert max(map(len, narrow.splitlines())) <= 60
    assert max(map(len, wide.splitlines())) > 60
    assert {word.strip(",;") for word in narrow.split()} >= {word.strip(",;") for word in wide.split()} - {"how"}


def test_traces_without_anything_are_compared_too() -> None:
    empty = trace_of()
    found = diff(empty, empty)
    assert not found
    assert found.pairs == []
    assert found.to_b(0) == 0
    against = diff(empty, planned(lesson()))
    assert against
    assert against.main is None
    assert against.only_b == ["reserved"]
    assert "Only in B: 1 graph (reserved)." in against.summary()
    assert repr(against)
    assert against.to_b(0) == 0


def test_ids_that_nothing_explains_do_no_harm() -> None:
    """Events of tensors and graphs that were never made, with names to turn a terminal around."""
    strange = trace_of(
        GraphCreated(0, 0, 1, 1),
        TensorNamed(3, "\x1b[2J‮<script>"),
        NodeAppended(0, 3, 0),
        NodeAppended(0, 4, 1),
        ReserveBegin(0, 0, "asked", -1, 0, 0),
        TensorAssigned(0, 3, 0, 0, 64, 32),
        ComputeBegin(0, 2, 1),
    )
    found = diff(strange, planned(lesson()))
    for shown in (repr(found), found._repr_html_()):
        assert "\x1b" not in shown
        assert "‮" not in shown
    assert found.to_b(6) <= found.b.n_events
    assert not diff(strange, strange)


def test_what_is_no_trace_is_refused() -> None:
    with pytest.raises(VizggmlError, match="a is a str, a trace is needed"):
        diff("a.vgt", trace_of())  # type: ignore[arg-type]
    with pytest.raises(VizggmlError, match="two are needed"):
        diff(trace_of(), trace_of(), labels="AB")
    with pytest.raises(VizggmlError, match="event 9: A has events 0 to"):
        diff(trace_of(), trace_of()).to_b(9)


def decoded(flash_attn: bool, n_ctx: int = 256) -> Trace:
    """A context made, and one token decoded, while what stands stands."""
    model = vg.load_model("tiny")
    with record() as trace:
        context = model.context(n_ctx=n_ctx, n_ubatch=16, flash_attn=flash_attn, n_threads=1, fast=False)
        context.decode([1])
    return trace


def test_an_older_context_that_stands_is_not_what_is_compared() -> None:
    """The tiny model with flash attention has 5 nodes fewer in each of 4 layers, whatever else is in the kernel.

    With it a layer has FLASH_ATTN_EXT and a view; without, two products, SOFT_MAX, a permutation and three reshapes.
    """
    model = vg.load_model("tiny")
    old = model.context(n_ctx=512, flash_attn=True, n_threads=1, fast=False)
    old.decode([1])
    found = diff(decoded(False), decoded(True))
    assert old.n_decoded == 1
    assert found.params == [("flash attention", "off", "on")]
    assert found.summary()[0].startswith("flash attention off -> on: 20 nodes fewer")
    assert [pair.role for pair in found.pairs] == [
        "reserved for 16 tokens",
        "reserved for 1 token",
        "reserved for 16 tokens",
        "decode, 1 token",
    ]
    assert found.whole_a.graphs == found.whole_b.graphs == 4


def test_parameters_are_of_the_context_that_decoded() -> None:
    """Made first or last, alive or gone at the end: the one that decoded while it was recorded."""
    model = vg.load_model("tiny")
    first = model.context(n_ctx=512, flash_attn=True, n_threads=1, fast=False)
    second = model.context(n_ctx=256, flash_attn=False, n_threads=1, fast=False)
    traces = []
    for context in (first, second):
        with record() as trace:
            context.decode([1])
        traces.append(trace)
    assert [trace.meta["params"]["n_ctx"] for trace in traces] == [512, 256]
    with record() as trace:
        model.context(n_ctx=1024, n_threads=1, fast=False)
    assert trace.meta["params"]["n_ctx"] == 1024
    found = diff(traces[0], traces[1])
    assert ("context", "512", "256") in found.params
    assert found.whole_a.compute == first.compute_buffer_size
    assert found.whole_b.compute == second.compute_buffer_size
