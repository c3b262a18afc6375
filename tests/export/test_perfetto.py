"""Chrome trace JSON against the rules of its format.

The rules are those of Google's document "Trace Event Format" (linked from catapult's docs/trace-event-format.md); each
check names its section. The document is read as JSON, never through our own code.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from vizggml import ggml
from vizggml.export.perfetto import to_perfetto
from vizggml.llama.model import load_model
from vizggml.timeline.record import record
from vizggml.timeline.trace import Trace

Entry = dict[str, Any]


def check(document: Any) -> list[Entry]:
    """Raises AssertionError where a rule of the format is broken; the entries."""
    # "JSON Object Format": an object with traceEvents; displayTimeUnit is ms or ns; otherData is metadata.
    assert isinstance(document, dict)
    assert document["displayTimeUnit"] in ("ms", "ns")
    assert all(isinstance(value, str) for value in document["otherData"].values())
    entries: list[Entry] = document["traceEvents"]
    for entry in entries:
        # "Event Descriptions": ph is one letter, pid and tid are integers, name is text, args an object.
        assert entry["ph"] in "XCMsf"
        assert isinstance(entry["pid"], int)
        assert isinstance(entry["name"], str)
        assert isinstance(entry.get("args", {}), dict)
        CHECKS[entry["ph"]](entry)
    check_metadata(entries)
    check_nesting(entries)
    check_flows(entries)
    return entries


def is_time(value: Any) -> bool:
    """ "ts ... provided at microsecond granularity": a number; ours never goes below 0."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def check_complete(entry: Entry) -> None:
    """ "Complete Events": dur beside ts, both microseconds; cat is a comma separated list, so text."""
    assert is_time(entry["ts"])
    assert is_time(entry["dur"])
    assert isinstance(entry["tid"], int)
    assert isinstance(entry["cat"], str)


def check_counter(entry: Entry) -> None:
    """ "Counter Events": args holds one number for each series."""
    assert is_time(entry["ts"])
    assert entry["args"]
    assert all(isinstance(value, int | float) for value in entry["args"].values())


def check_meta(entry: Entry) -> None:
    """ "Metadata Events": of the five names there are, the four used; name and sort_index are in args."""
    argument = {
        "process_name": ("name", str),
        "thread_name": ("name", str),
        "process_sort_index": ("sort_index", int),
        "thread_sort_index": ("sort_index", int),
    }
    key, of = argument[entry["name"]]
    assert isinstance(entry["args"][key], of)


def check_flow(entry: Entry) -> None:
    """ "Flow Events": an id joins them; the arrow's end binds to the slice about it with bp "e"."""
    assert is_time(entry["ts"])
    assert isinstance(entry["id"], int)
    assert isinstance(entry["cat"], str)
    assert entry["ph"] == "s" or entry.get("bp") == "e"


CHECKS = {"X": check_complete, "C": check_counter, "M": check_meta, "s": check_flow, "f": check_flow}


def check_metadata(entries: list[Entry]) -> None:
    """Every process and thread that has events has a name."""
    named = {(e["pid"], e.get("tid")) for e in entries if e["ph"] == "M"}
    used = {(e["pid"], e["tid"]) for e in entries if e["ph"] == "X"}
    assert used <= named
    assert {pid for pid, _ in used} <= {pid for pid, tid in named if tid is None}


def check_nesting(entries: list[Entry]) -> None:
    """ "Duration Events", which complete events stand for: on one thread they nest or follow, and never cross."""
    threads = defaultdict(list)
    for e in entries:
        if e["ph"] == "X":
            threads[e["pid"], e["tid"]].append((e["ts"], e["ts"] + e["dur"]))
    for spans in threads.values():
        spans.sort(key=lambda span: (span[0], -span[1]))
        open_until: list[float] = []
        for begin, end in spans:
            while open_until and open_until[-1] <= begin + 1e-6:
                open_until.pop()
            assert not open_until or end <= open_until[-1] + 1e-6
            open_until.append(end)


def check_flows(entries: list[Entry]) -> None:
    """ "Flow Events": one s and one f for each id, of one cat and name, not back in time, each within a slice."""
    flows = defaultdict(list)
    slices = defaultdict(list)
    for e in entries:
        if e["ph"] in "sf":
            flows[e["id"]].append(e)
        elif e["ph"] == "X":
            slices[e["pid"], e["tid"]].append((e["ts"], e["ts"] + e["dur"]))
    for start, end in flows.values():
        assert (start["ph"], end["ph"]) == ("s", "f")
        assert (start["cat"], start["name"]) == (end["cat"], end["name"])
        assert start["ts"] <= end["ts"]
        for e in (start, end):
            assert any(a <= e["ts"] <= b for a, b in slices[e["pid"], e["tid"]])


@pytest.fixture(scope="module")
def run() -> Trace:
    context = load_model("tiny").context(n_ctx=64, n_threads=2)
    with record() as trace:
        list(context.generate("Once upon a time", max_tokens=3, temp=0))
    return trace


@pytest.fixture(scope="module")
def entries(run: Trace, tmp_path_factory: pytest.TempPathFactory) -> list[Entry]:
    path = tmp_path_factory.mktemp("perfetto") / "run.json"
    assert to_perfetto(run, path) > 0
    document = json.loads(path.read_text("utf-8"))
    assert document["otherData"]["commit"].startswith("0c1e57098")
    return check(document)


def of_kind(trace: Trace, name: str) -> Iterator[Any]:
    return (event for event in trace.events if type(event).__name__ == name)


def test_it_obeys_the_format(entries: list[Entry]) -> None:
    assert {entry["ph"] for entry in entries} == set("XCMsf")


def test_each_part_of_a_node_lasts_as_long_as_its_events_say(run: Trace, entries: list[Entry]) -> None:
    begun = {(e.tensor, e.thread): e.ns for e in of_kind(run, "NodeBegin")}
    ended = {(e.tensor, e.thread): e.ns for e in of_kind(run, "NodeEnd")}
    shown = [e for e in entries if e["ph"] == "X" and "op" in e["args"]]
    assert len(shown) == sum(1 for _ in of_kind(run, "NodeBegin"))
    last = {(e["args"]["tensor"], e["tid"] - 1): e["dur"] for e in shown}
    for key, dur in last.items():
        assert dur == pytest.approx((ended[key] - begun[key]) / 1e3, abs=1.0)


def test_names_shapes_and_bytes(run: Trace, entries: list[Entry]) -> None:
    (embedding, *_) = [e for e in entries if e["name"] == "embd" and e["ph"] == "X"]
    assert embedding["args"]["op"] == "GET_ROWS"
    assert embedding["args"]["shape"] == "256 x 5"
    assert embedding["args"]["bytes"] == 256 * 5 * 4


def test_counters_end_where_the_run_ends(run: Trace, entries: list[Entry]) -> None:
    """Five tokens of the prompt and two of the three sampled are in the cache; buffers are as large as allocated."""
    last = {e["name"]: e["args"] for e in entries if e["ph"] == "C"}
    assert last["KV cells"] == {"cells": 7}
    assert last["buffers"]["bytes"] == sum(e.size for e in of_kind(run, "BufferAllocated"))


def test_a_token_leads_to_the_evaluation_that_reads_it(run: Trace, entries: list[Entry]) -> None:
    sampled = [e.piece for e in of_kind(run, "TokenSampled")]
    assert [e["name"] for e in entries if e.get("cat") == "token"] == sampled
    assert sum(e["ph"] == "s" and e["name"] == "token" for e in entries) == 2
    begins = {e["ts"] for e in entries if e.get("cat") == "evaluation"}
    assert {e["ts"] for e in entries if e["ph"] == "f" and e["name"] == "token"} <= begins


def test_without_computing_the_number_of_the_event_is_its_time(tmp_path: Path) -> None:
    with record() as trace:
        ctx = ggml.Context(mem_size=1 << 20, no_alloc=True)
        x = ctx.new_tensor("F32", (3,), name='x"\u202e</script>')
        g = ggml.Graph(ctx)
        g.build_forward_expand(ggml.relu(ctx, x))
        ggml.GraphAllocator(ggml.cpu_buffer_type()).alloc_graph(g)
    to_perfetto(trace, tmp_path / "plan.json")
    document = json.loads((tmp_path / "plan.json").read_text("utf-8"))
    shown = [e for e in check(document) if e["ph"] == "X"]
    assert "ts is the number of the event" in document["otherData"]["note"]
    assert [(e["name"], e["ts"]) for e in shown] == [(type(e).__name__, i) for i, e in enumerate(trace.events)]
    assert all("\u202e" not in json.dumps(e, ensure_ascii=False) for e in shown)


def test_the_checks_find_what_is_wrong(entries: list[Entry]) -> None:
    some = [{"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "p"}}]
    some += [{"ph": "M", "pid": 1, "tid": 1, "name": "thread_name", "args": {"name": "t"}}]
    slice_ = {"ph": "X", "pid": 1, "tid": 1, "name": "n", "cat": "c", "ts": 0, "dur": 2, "args": {}}
    whole = {"displayTimeUnit": "ns", "otherData": {}, "traceEvents": [*some, slice_]}
    check(whole)
    for wrong in (
        {**slice_, "ts": 1, "dur": 5},
        {**slice_, "dur": -1},
        {**slice_, "tid": 2},
        {"ph": "C", "pid": 1, "name": "n", "ts": 0, "args": {}},
        {"ph": "f", "pid": 1, "tid": 1, "name": "n", "cat": "c", "ts": 0, "id": 1},
    ):
        with pytest.raises((AssertionError, ValueError)):
            check({**whole, "traceEvents": [*some, slice_, wrong]})
