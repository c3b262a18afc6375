"""Blocks of every type, graph files and trace files."""

from __future__ import annotations

import copy
import json
import random
import struct
from typing import Any

import numpy as np

from tests import oracle_quants
from tests.fuzz.gguf_parts import EXTREMES, scrambled
from tests.fuzz.gguf_targets import LITTLE, folder
from tests.fuzz.judge import Target, WrongAnswerError
from tests.ggml.programs import Ours, program
from tests.llama.made import Shape, write
from vizggml.ggml import quants
from vizggml.ggml.graph_file import graph_json, load_graph, report_of
from vizggml.ggml.types import TYPES_BY_ID
from vizggml.llama.model import load_model
from vizggml.timeline.columns import ALIGNMENT, HEADER_START, MAGIC
from vizggml.timeline.record import record
from vizggml.timeline.sentences import render
from vizggml.timeline.trace import load_trace

TYPE_IDS = sorted(TYPES_BY_ID)


def blocks(data: bytes) -> None:
    """First a type, then what to do, then bytes, as many as there are."""
    type = TYPES_BY_ID[TYPE_IDS[data[0] % len(TYPE_IDS)]] if data else TYPES_BY_ID[0]
    how, raw = data[1] if len(data) > 1 else 0, np.frombuffer(data[2:], np.uint8)
    whole = raw[: len(raw) // type.type_size * type.type_size].reshape(-1, type.type_size)
    if how & 3 == 0:
        opened = quants.open_block(type, data[2:])
        if not np.array_equal(opened.values, quants.dequantize(type, whole), equal_nan=True):
            raise WrongAnswerError(f"type {type}: the values of the open block are not the decoded ones")
    elif how & 3 == 1:
        bad = quants.unsound(type, raw if how & 4 else whole)
        if len(bad) and not 0 <= int(bad.max()) < len(raw):
            raise WrongAnswerError(f"type {type}: unsound blocks {bad} of {len(whole)}")
    elif how & 3 == 2:
        quants.dequantize(type, raw[None] if how & 4 else raw)
    else:
        ours = quants.dequantize(type, whole[None])[0]
        theirs = (
            ours
            if type.name in NO_ROWS or not len(whole)
            else oracle_quants.to_float(type, whole.reshape(1, -1), ours.size)[0]
        )
        if not np.array_equal(ours, theirs, equal_nan=True):
            raise WrongAnswerError(f"type {type}: decoded otherwise than by ggml")


NO_ROWS = ("F32", "Q8_1")
"""The types for which ggml has no row function of its own."""


def block_seeds() -> list[bytes]:
    seeds = []
    for i, id in enumerate(TYPE_IDS):
        size = TYPES_BY_ID[id].type_size
        if TYPES_BY_ID[id].name in quants.DECODERS:
            seeds += [bytes([i, 3]) + bytes(range(60)) * (1 + size // 30), bytes([i, 1]) + bytes(size)]
        if TYPES_BY_ID[id].name in quants.LAYOUTS:
            seeds.append(bytes([i, 0]) + bytes(range(size % 250)) + bytes(size - size % 250))
    return seeds


def block_mutated(raw: bytes, dice: random.Random) -> bytes:
    """Another type, other bytes of the right or a wrong length."""
    type = dice.randrange(len(TYPE_IDS))
    size = TYPES_BY_ID[TYPE_IDS[type]].type_size
    n = max(0, size * dice.choice((0, 1, 1, 1, 1, 2, 3)) + dice.choice((0, 0, 0, 0, -1, 1)))
    out = bytearray(dice.randbytes(n))
    for _ in range(dice.randrange(4) if n > 2 else 0):
        at = dice.randrange(min(n - 1, 8))
        out[at : at + 2] = struct.pack(
            "<H", dice.choice((0, 0x8000, 1, 0x3FF, 0x7BFF, 0x7C00, 0xFC00, 0x7E00, 0xFFFF, 0x7F80))
        )
    return bytes([type, dice.randrange(8)]) + bytes(out[:n])


def graph(data: bytes) -> None:
    path = folder() / "hostile.json"
    path.write_bytes(data)
    file = load_graph(path)
    report = report_of(file, max_chunk=(1 << 20 if len(data) % 3 == 0 else None), in_place=bool(len(data) % 2))
    json.dumps(report)
    again = graph_json(file.graph)
    if len(again["nodes"]) != len(file.graph.nodes):
        raise WrongAnswerError("a graph that is written has not the nodes of the one that was read")


def graph_seeds() -> list[bytes]:
    documents: list[dict[str, Any]] = [graph_json(Ours(program(seed)).graph) for seed in (1, 2, 3, 5, 8)]
    relu = copy.deepcopy(documents[0])
    relu["outputs"] = relu.pop("nodes")[-1:]
    relu.pop("leafs")
    return [json.dumps(d).encode() for d in (*documents, relu)]


LEAVES: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        2,
        3,
        4,
        31,
        2**31,
        2**32,
        2**62,
        2**63 - 1,
        2**63,
        2**64,
        10**40,
        0.5,
        1e400,
        "",
        "x",
    ),
    *(
        "MUL_MAT",
        "CPY",
        "VIEW",
        "RESHAPE",
        "PERMUTE",
        "NONE",
        "SET_ROWS",
        "FLASH_ATTN_EXT",
        "MUL_MAT_ID",
        "CONCAT",
        "ROPE",
    ),
    *(
        "F32",
        "F16",
        "Q4_0",
        "Q4_K",
        "I32",
        "I64",
        "OUTPUT",
        "INPUT",
        "\ud800",
        "\n",
        [],
        {},
        [0, 0, 0, 0],
        [1] * 4,
        [[]],
    ),
)


def _places(node: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    for key, value in list(node.items() if isinstance(node, dict) else enumerate(node)):
        found.append((node, key))
        if isinstance(value, (dict, list)):
            _places(value, found)
    return found


def tree_changed(tree: Any, dice: random.Random) -> None:
    """A few places of a JSON document changed, emptied, or taken from elsewhere in it."""
    for _ in range(dice.choice((1, 1, 1, 2, 4))):
        places = _places(tree, [])
        if not places:
            return
        node, key = dice.choice(places)
        how = dice.randrange(6)
        if how < 3:
            node[key] = (
                dice.choice(LEAVES) if not isinstance(node[key], int) or dice.random() < 0.4 else dice.randrange(24)
            )
        elif how == 3:
            del node[key]
        elif how == 4:
            other, at = dice.choice(places)
            if isinstance(other, dict) == (at in other if isinstance(other, dict) else False) or not isinstance(
                other, dict
            ):
                node[key] = copy.deepcopy(other[at]) if isinstance(other, dict) or at < len(other) else 0
        elif isinstance(node, list):
            node.insert(key, copy.deepcopy(node[key]))


def _bendable(record: dict[str, Any]) -> bool:
    return all(isinstance(record.get(key, []), list) for key in ("src", "op_params", "ne"))


def graph_bent(document: dict[str, Any], dice: random.Random) -> None:
    """Changes that mostly leave the file a graph: other sources, parameters, flags, places, orders, sizes."""
    listed = document.get("tensors")
    records = [r for r in listed if isinstance(r, dict) and _bendable(r)] if isinstance(listed, list) else []
    for _ in range(dice.choice((1, 1, 2, 3)) if records else 0):
        r, other = dice.choice(records), dice.choice(records)
        how = dice.randrange(8)
        if how == 0 and r.get("src"):
            r["src"][dice.randrange(len(r["src"]))] = other.get("id")
        elif how == 1:
            r["flags"] = dice.choice((["INPUT"], ["OUTPUT"], ["PARAM", "LOSS"], []))
        elif how == 2:
            r["external"] = not r.get("external")
        elif how == 3 and r.get("op_params"):
            r["op_params"][dice.randrange(len(r["op_params"]))] = dice.choice((0, 1, 2, 3, -1, 2**31 - 1, -(2**31)))
        elif how == 4 and r.get("view_src") is not None:
            r["view_offs"] = dice.choice((0, 4, 8, 16, 64, 2**62))
        elif how == 5:
            for same in records:
                if same.get("ne") == r.get("ne") and same is not r:
                    same["ne"] = [dice.choice((0, 1, 2**20, 2**31)) if n == 1 else n for n in same["ne"]]
        elif how == 6 and isinstance(document.get("nodes"), list) and document["nodes"]:
            dice.choice((dice.shuffle, list.pop, list.reverse))(document["nodes"])
        elif how == 7:
            r["op"] = dice.choice(("ADD", "MUL", "SUB", "DUP", "CONT", "SQR", "CPY", r.get("op", "NONE")))


def graph_mutated(raw: bytes, dice: random.Random) -> bytes:
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError):
        return scrambled(raw, dice)
    if not isinstance(document, dict) or dice.random() < 0.1:
        return scrambled(raw, dice)
    if dice.random() < 0.6:
        graph_bent(document, dice)
    else:
        tree_changed(document, dice)
    return json.dumps(document).encode()


def trace(data: bytes) -> None:
    path = folder() / "hostile.trace"
    path.write_bytes(data)
    found = load_trace(path)
    n = sum(1 for _ in found.events)
    tracks = found.tracks()
    tracks.to_bytes()
    step = max(1, n // 300)
    for i in range(0, n, step):
        if not render(tracks, i):
            raise WrongAnswerError(f"event {i} has no sentence")
    for name in tracks.names:
        a, b = tracks[f"t.{name}.a"], tracks[f"t.{name}.b"]
        if (np.diff(a) < 0).any() or not ((a >= 0) & (a < b) & (b <= n)).all():
            raise WrongAnswerError(f"track {name} has rows that are not in order, or empty")


def trace_seeds() -> list[bytes]:
    with record() as small:
        ours = Ours(program(3))
    del ours
    model = load_model(write(folder() / "made.gguf", Shape(**{**LITTLE, "n_embd": 16, "n_ff": 16})))
    with record() as one:
        context = model.context(n_ctx=32, n_batch=8, n_threads=1, fast=False)
        context.decode([1, 2])
    model.close()
    seeds = []
    for found in (small, one):
        found.save(folder() / "seed.trace")
        seeds.append((folder() / "seed.trace").read_bytes())
    return seeds


def trace_mutated(raw: bytes, dice: random.Random) -> bytes:
    """The header's JSON changed, or numbers in the columns."""
    try:
        length = int.from_bytes(raw[8:12], "little")
        header = json.loads(raw[HEADER_START : HEADER_START + length])
        start = HEADER_START + length + -(HEADER_START + length) % ALIGNMENT
        columns = [
            (np.dtype("<" + e["dtype"]), int(np.prod(e["shape"])), int(e["offset"]), name)
            for name, e in header["columns"].items()
            if all(isinstance(n, int) and 0 < n < len(raw) for n in e["shape"])
        ]
        columns = [c for c in columns if c[0].kind in "iuf" and 0 <= c[2] <= len(raw) - start - c[1] * c[0].itemsize]
        assert columns
    except (ValueError, KeyError, TypeError, AssertionError, RecursionError, AttributeError, OverflowError):
        return scrambled(raw, dice)
    if dice.random() < 0.05:
        return scrambled(raw, dice)
    data = bytearray(raw[start:])
    if dice.random() < 0.6:
        for _ in range(dice.choice((1, 1, 2, 6))):
            _change_order(data, dice.choice(columns), dice)
    elif dice.random() < 0.2:
        tree_changed(header, dice)
    else:
        for _ in range(dice.choice((1, 1, 2, 4, 8))):
            _change_column(data, *dice.choice(columns)[:3], dice)
    text = json.dumps(header).encode("utf-8", "replace")
    head = MAGIC + len(text).to_bytes(4, "little") + bytes(4) + text
    return head + bytes(-len(head) % ALIGNMENT) + data


Place = tuple[np.dtype[Any], int, int, str]
"""Where a column is in the data: its numbers, how many, from which byte, and its name."""


def _change_order(data: bytearray, place: Place, dice: random.Random) -> None:
    """Some numbers of a column in another order, or one in the place of others: each is one that may stand there."""
    dtype, items, offset, name = place
    if name.endswith(".ptr") or name == "ev.cause":
        return
    numbers = np.frombuffer(data, dtype, items, offset).tolist()
    at = dice.randrange(items)
    part = numbers[at : at + dice.choice((2, 8, 64, 1000))]
    if name == "ev.kind" or dice.random() < 0.5:
        dice.shuffle(part)
    else:
        n = min(len(part), dice.choice((1, 2, 64)))
        part[:n] = [dice.choice(numbers)] * n
    numbers[at : at + len(part)] = part
    data[offset : offset + dtype.itemsize * items] = np.array(numbers[:items], dtype).tobytes()


def _change_column(data: bytearray, dtype: np.dtype[Any], items: int, offset: int, dice: random.Random) -> None:
    numbers, size = np.frombuffer(data, dtype, items, offset).copy(), dtype.itemsize
    at, how = dice.randrange(items), dice.randrange(4)
    if how == 0:
        value = (dice.choice(EXTREMES) % 2 ** (8 * size)).to_bytes(size, "little")
        numbers[at] = np.frombuffer(value, dtype)[0]
    elif how == 1:
        numbers[at] = numbers[dice.randrange(items)]
    elif how == 2:
        numbers[at : at + dice.randrange(1, 40)] = numbers[dice.randrange(items)]
    elif dtype.kind != "f":
        numbers[at] = min(max(int(numbers[at]) + dice.choice((-1, 1)), 0), 2**31 - 1 if size > 1 else 255)
    data[offset : offset + size * items] = numbers.tobytes()


QUANTS = Target("quants", blocks, block_seeds, block_mutated, lambda n: (1 << 20) + 256 * n, 1 << 12)
GRAPH = Target("graph", graph, graph_seeds, graph_mutated, lambda n: (1 << 20) + 128 * n)
TRACE = Target("trace", trace, trace_seeds, trace_mutated, lambda n: (4 << 20) + 128 * n, 1 << 19)
