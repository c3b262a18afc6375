"""The graph file: what is read, what is refused, and where real ggml would place it."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.ggml.programs import Ours, Reals, program
from tests.ggml.seen import seen
from tests.oracle import all_tensors, allocated, graph_json, tensor_fields
from vizggml.errors import VizggmlError
from vizggml.events import NodeAppended, OpRecorded, StridesChanged, VisitEnter
from vizggml.ggml import graph_file, ops
from vizggml.ggml.buffer import SIZE_MAX, alloc_ctx_tensors_from_buft, cpu_buffer_type
from vizggml.ggml.context import Context
from vizggml.ggml.gallocr import GraphAllocator
from vizggml.ggml.graph_file import alloc_report, parse_graph, read_graph, report_of, write_graph
from vizggml.ggml.types import FLAG_COMPUTE, FLAG_OUTPUT

Change = Callable[[dict[str, Any]], object]

RELU: dict[str, Any] = {
    "vizggml_graph": 1,
    "tensors": [
        {"id": 10, "name": "W", "type": "F32", "ne": [3, 2, 1, 1]},
        {"id": 20, "name": "x", "type": "F32", "ne": [3]},
        {"id": 30, "name": "b", "type": "F32", "ne": [2, 1, 1, 1], "nb": [4, 8, 8, 8]},
        {"id": 40, "name": "wx", "type": "F32", "ne": [2, 1, 1, 1], "op": "MUL_MAT", "src": [10, 20]},
        {"id": 50, "name": "wx+b", "type": "F32", "ne": [2, 1, 1, 1], "op": "ADD", "src": [40, 30]},
        {"id": 60, "name": "out", "type": "F32", "ne": [2, 1, 1, 1], "op": "UNARY", "desc": "RELU", "src": [50]},
    ],
    "nodes": [40, 50, 60],
    "leafs": [10, 20, 30],
}


@pytest.fixture
def relu(tmp_path: Path) -> Path:
    path = tmp_path / "relu.json"
    path.write_text(json.dumps(RELU))
    return path


def test_the_first_lesson(relu: Path) -> None:
    """As real ggml places it: W 0, x 32, b 64, and 96 three times; 128 bytes."""
    assert alloc_report(relu) == {
        "size": 128,
        "buffers": [{"chunks": [128]}],
        "tensors": {
            "10": {"chunk": 0, "offset": 0, "size": 24, "reuses": None},
            "20": {"chunk": 0, "offset": 32, "size": 12, "reuses": None},
            "30": {"chunk": 0, "offset": 64, "size": 8, "reuses": None},
            "40": {"chunk": 0, "offset": 96, "size": 8, "reuses": None},
            "50": {"chunk": 0, "offset": 96, "size": 8, "reuses": 40},
            "60": {"chunk": 0, "offset": 96, "size": 8, "reuses": 50},
        },
    }


def test_the_teaching_trace(tmp_path: Path) -> None:
    document = copy.deepcopy(RELU)
    for record in document["tensors"][:3]:
        record["external"] = True
    path = tmp_path / "teaching.json"
    path.write_text(json.dumps(document))
    report = alloc_report(path, alignment=8, in_place=False)
    assert {id: place["offset"] for id, place in report["tensors"].items()} == {"40": 0, "50": 8, "60": 0}
    assert report["size"] == 16
    report = alloc_report(path, alignment=8, max_chunk=8, in_place=False)
    assert report["buffers"] == [{"chunks": [8, 8]}]
    assert [place["chunk"] for place in report["tensors"].values()] == [0, 1, 0]


def test_outputs_are_expanded_by_us(relu: Path) -> None:
    document = copy.deepcopy(RELU)
    document["outputs"] = [60]
    del document["nodes"], document["leafs"]
    with seen() as events:
        file = parse_graph(document)
    assert len(events.of(VisitEnter)) == 6
    assert [t.name for t in file.graph.nodes] == ["wx", "wx+b", "out"]
    assert [t.name for t in file.graph.leafs] == ["W", "x", "b"]
    assert report_of(file) == alloc_report(relu)


@pytest.mark.parametrize("block", range(6))
def test_random_graphs_of_real_ggml_are_placed_as_there(block: int, tmp_path: Path) -> None:
    for seed in range(block * 50, block * 50 + 50):
        reals = Reals(program(seed))
        rng = random.Random(seed + 1)
        alignment, max_size = rng.choice((8, 32, 32, 128)), rng.choice((SIZE_MAX, SIZE_MAX, 192, 2048))
        path = tmp_path / f"{seed}.json"
        path.write_text(json.dumps(graph_json(reals.graph)))
        report = alloc_report(path, alignment=alignment, max_chunk=None if max_size == SIZE_MAX else max_size)
        placed = {}
        fields = [tensor_fields(t) for t in all_tensors(reals.graph)]
        with allocated(reals.graph, alignment, max_size) as buft:
            for i, t in enumerate(all_tensors(reals.graph)):
                if not fields[i].data and not fields[i].view_src:
                    placed[str(3 * i + 1)] = buft.place_of(tensor_fields(t))
            chunks = buft.sizes()
        assert {id: (p["chunk"], p["offset"]) for id, p in report["tensors"].items()} == placed, seed
        assert report["buffers"] == [{"chunks": chunks}], seed
        assert report["size"] == sum(chunks)
        reals.free()


def test_a_graph_that_is_written_is_read_back_the_same(tmp_path: Path) -> None:
    for seed in range(40):
        ours = Ours(program(seed))
        path = tmp_path / "graph.json"
        write_graph(ours.graph, path)
        again = read_graph(path)
        for kind in ("nodes", "leafs"):
            before, after = getattr(ours.graph, kind), getattr(again, kind)
            assert [(t.name, t.type, t.ne, t.nb, t.op, t.op_params, t.view_offs, t.flags & 15) for t in before] == [
                (t.name, t.type, t.ne, t.nb, t.op, t.op_params, t.view_offs, t.flags & 15) for t in after
            ]
        report = alloc_report(path)
        galloc = GraphAllocator(cpu_buffer_type())
        galloc.reserve(ours.graph)
        assert report["size"] == galloc.get_buffer_size()
        # what was placed by the allocator is not external when written again
        galloc.alloc_graph(ours.graph)
        write_graph(ours.graph, path)
        assert alloc_report(path) == report


def test_weights_are_external_and_the_rest_is_not() -> None:
    own, ctx = Context(1 << 16, no_alloc=True), Context(1 << 16, no_alloc=True)
    w = own.new_tensor("F32", (4, 4), "w")
    alloc_ctx_tensors_from_buft(own, cpu_buffer_type(), "weights")
    part = ops.view_1d(ctx, w, 4, 0)
    graph = parse_graph({**RELU}).graph
    graph = type(graph)(ctx, 8)
    graph.build_forward_expand(ops.add(ctx, part, ctx.new_tensor("F32", (4,), "x")))
    written = graph_file.graph_json(graph)
    assert {t["name"]: t["external"] for t in written["tensors"]} == {
        "w": True,
        "w (view)": True,
        "x": False,
        "node_1": False,
    }


def test_what_is_read_is_told_as_if_it_were_built() -> None:
    document = copy.deepcopy(RELU)
    document["tensors"].append(
        {
            "id": 70,
            "name": "turned",
            "type": "F32",
            "ne": [2, 3, 1, 1],
            "nb": [12, 4, 24, 24],
            "op": "TRANSPOSE",
            "src": [10],
            "view_src": 10,
            "flags": ["OUTPUT"],
        }
    )
    document["nodes"].append(70)
    with seen() as events:
        file = parse_graph(document)
    assert [e.desc for e in events.of(OpRecorded)] == ["MUL_MAT", "ADD", "RELU", "TRANSPOSE"]
    change = events.one(StridesChanged)
    assert (change.how, change.src, change.nb) == ("transpose", file.tensors[10].id, (12, 4, 24, 24))
    assert len(events.of(NodeAppended)) == 4
    assert file.tensors[70].flags == FLAG_OUTPUT | FLAG_COMPUTE
    assert file.tensors[60].op_desc == "RELU"


def tensor(i: int, **fields: Any) -> Change:
    return lambda g: g["tensors"][i].update(fields)


def big_cycle(g: dict[str, Any]) -> None:
    n = 20_000
    g["tensors"] = [{"id": i, "type": "F32", "ne": [1], "op": "SQR", "src": [(i + 1) % n]} for i in range(n)]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (tensor(3, src=[10, 60]), "cycle of 3 tensors: wx <- out <- wx[+]b <- wx$"),
        (tensor(0, view_src=10), "cycle of 1 tensors: W <- W$"),
        (big_cycle, r"cycle of 20000 tensors: 0 <- 1 <- .* <- 10 <- \.\.\. <- 19999 <- 0$"),
        (tensor(3, src=[10, 77]), r"tensor 'wx' \(id 40\): src names tensor 77, which is not in the file"),
        (tensor(3, view_src="10"), "view_src names tensor '10'"),
        (tensor(1, id=10), r"'x' \(id 10\): its id is used twice, first by tensor 'W' \(id 10\)"),
        (tensor(1, id=-1), r"tensors\[1\] has no id"),
        (tensor(1, id=True), r"tensors\[1\] has no id"),
        (tensor(1, name=5), "name 5 is not text"),
        (tensor(1, type="F33"), "type 'F33' is not one of ggml's: F32, F16"),
        (tensor(1, type=None), "type None is not one of ggml's"),
        (tensor(3, op="MUL_MATE"), "op 'MUL_MATE' is not one of ggml's"),
        (tensor(3, op=["ADD"]), r"op \['ADD'\] is not one of ggml's"),
        (tensor(1, ne=[]), r"ne \[\] is not 1 to 4 whole numbers"),
        (tensor(1, ne=[3, 1, 1, 1, 1]), "is not 1 to 4 whole numbers"),
        (tensor(1, ne=[3.0]), r"ne \[3.0\]"),
        (tensor(1, ne=[-3]), r"ne \[-3\]"),
        (tensor(1, ne=[1 << 64]), "ne .18446744073709551616. is not"),
        (tensor(1, ne=[1 << 40, 1 << 40]), r"'x' \(id 20\): tensor: shape .* takes \d+ bytes, the limit is"),
        (tensor(1, nb=[4, 12]), r"nb \[4, 12\] is not 4 strides"),
        (tensor(1, nb=[4, 12, 12, -12]), "is not 4 strides"),
        (tensor(0, nb=[4, 4, 4, 4]), "span 16 bytes, its elements take 24"),
        (tensor(0, nb=[4, 1 << 62, 24, 24], ne=[3, 4, 1, 1]), "the limit is 9223372036854775807"),
        (tensor(5, op_params=[1 << 31]), "op_params .2147483648. are not up to 16 int32"),
        (tensor(5, op_params=[0] * 17), "are not up to 16 int32"),
        (tensor(5, op_params=[99]), r"UNARY needs op_params\[0\] from 0 to 21, or desc"),
        (tensor(5, desc="RELLU"), r"UNARY needs op_params\[0\] from 0 to 21, or desc"),
        (tensor(1, flags=["INPOT"]), r"flags \['INPOT'\] are not of INPUT, OUTPUT, PARAM, LOSS"),
        (tensor(1, flags="INPUT"), "flags 'INPUT' are not of"),
        (tensor(1, view_offs=-4), "view_offs -4 is not a number of bytes"),
        (tensor(1, external=1), "external 1 is neither true nor false"),
        (tensor(3, src=[10] * 11), "is not a list of up to 10 ids"),
        (tensor(3, src=10), "src 10 is not a list"),
        (tensor(3, ne=[3]), r"'wx' \(id 40\): MUL_MAT of \[3, 2, 1, 1\] and \[3, 1, 1, 1\] cannot give \[3, 1, 1, 1\]"),
        (tensor(4, src=[40]), "ADD needs 2 sources, it has 1"),
        (tensor(4, src=[40, None]), "ADD needs 2 sources, it has 1"),
        (tensor(5, op="VIEW"), "VIEW needs a view_src"),
        (tensor(5, op="VIEW", view_src=50, view_offs=4), r"view of 'wx\+b': offset 4 \+ 8 bytes ends past its 8 bytes"),
        (tensor(5, op="VIEW", view_src=50, nb=[8, 8, 8, 8]), r"offset 0 \+ 12 bytes ends past its source 'wx\+b' \(8"),
        (tensor(5, type="F16", op="VIEW", view_src=50), "a view has the type of its source, F32, not F16"),
        (lambda g: g.update(vizggml_graph=2), "not a graph file of version 1: vizggml_graph is 2"),
        (lambda g: g.update(tensors={}), "tensors is not a list"),
        (lambda g: g["tensors"].append(3), r"tensors\[6\] has no id"),
        (lambda g: g.update(outputs=[60]), "either nodes"),
        (lambda g: g.pop("nodes"), "either nodes"),
        (lambda g: g.update(nodes=7), "nodes is not a list of ids"),
        (lambda g: g.update(nodes=[41]), "nodes names tensor 41, which is not in the file"),
        (lambda g: g.update(nodes=[40, 40]), "'wx' is listed twice"),
        (lambda g: g.update(leafs=[10, 40]), "'wx' is listed twice"),
        (lambda g: g.update(nodes=[50, 40, 60]), r"'wx\+b' \(id 50\) stands at 0, before tensor 'wx' \(id 40\) at 1"),
    ],
)
def test_what_is_wrong_is_one_line_that_names_it(change: Change, says: str, tmp_path: Path) -> None:
    document = copy.deepcopy(RELU)
    change(document)
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(document))
    with pytest.raises(VizggmlError, match=says) as refused:
        alloc_report(path)
    assert "\n" not in str(refused.value)
    assert str(path) in str(refused.value)
    assert len(str(refused.value)) < 700


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"{", "not JSON"),
        (b"\xff\xfe{", "not JSON"),
        (b"[" * 200_000, "not JSON"),
        (b"1" * 5_000, "not JSON"),
        (b"[]", "vizggml_graph is 'list'"),
    ],
)
def test_what_is_no_graph_file(content: bytes, says: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    with pytest.raises(VizggmlError, match=says):
        read_graph(path)
    with pytest.raises(VizggmlError, match=r"none\.json: cannot be read: No such file"):
        read_graph(tmp_path / "none.json")
    with pytest.raises(VizggmlError, match=r"x\.json': cannot be written"):
        write_graph(parse_graph(RELU).graph, tmp_path / "no" / "x.json")


def test_huge_tensors_are_planned_without_memory() -> None:
    document = copy.deepcopy(RELU)
    n = 1 << 40
    document["tensors"][0]["ne"] = [3, n]
    for record in document["tensors"][2:]:
        if "op" in record or record["name"] == "b":
            record["ne"] = [n]
            record.pop("nb", None)
    report = report_of(parse_graph(document))
    assert report["size"] == 12 * n + 32 + 4 * n + 4 * n


def test_a_cast_may_be_its_own_second_source() -> None:
    document = copy.deepcopy(RELU)
    document["tensors"].append({"id": 70, "type": "F16", "ne": [2], "op": "CPY", "src": [60, 70]})
    document["nodes"].append(70)
    cast = parse_graph(document).tensors[70]
    assert cast.src[1] is cast
    document["tensors"][-1]["src"] = [70, 60]
    with pytest.raises(VizggmlError, match="cycle of 1 tensors: 70 <- 70"):
        parse_graph(document)


def test_a_chain_of_views_is_flattened_and_an_empty_slot_kept() -> None:
    document = copy.deepcopy(RELU)
    view = {"type": "F32", "ne": [1], "op": "VIEW"}
    document["tensors"] += [
        {"id": 70, **view, "ne": [2], "src": [10], "view_src": 10, "view_offs": 12},
        {"id": 80, **view, "src": [70], "view_src": 70, "view_offs": 4},
        {"id": 90, "type": "F32", "ne": [1], "op": "CUSTOM", "src": [80, None, 20]},
    ]
    document["nodes"] += [70, 80, 90]
    tensors = parse_graph(document).tensors
    assert tensors[80].view_src is tensors[10]
    assert tensors[80].view_offs == 16
    assert tensors[90].src == [tensors[80], None, tensors[20]]


def test_a_long_chain_is_read_without_recursion(tmp_path: Path) -> None:
    n = 20_000
    tensors = [{"id": 0, "type": "F32", "ne": [8]}]
    tensors += [{"id": i, "type": "F32", "ne": [8], "op": "SQR", "src": [i - 1]} for i in range(1, n)]
    path = tmp_path / "long.json"
    path.write_text(json.dumps({"vizggml_graph": 1, "tensors": tensors, "outputs": [n - 1]}))
    assert alloc_report(path)["size"] == 32
