"""What each kind of event says to a reader, in one plain sentence; and a number, a size, a shape as text.

A template is text with fields in braces, or {"by": field, "cases": {value: template}, "else": template}. The player
fills in the same templates (widgets/player/sentence.js): the two must give the same text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypedDict, Union

if TYPE_CHECKING:
    from vizggml.timeline.tracks import Tracks

Cases = TypedDict("Cases", {"by": str, "cases": "dict[str, Template]", "else": "Template"})
Template = Union[str, Cases]  # noqa: UP007


def by(field: str, otherwise: Template, **cases: Template) -> Cases:
    """A template for each value of `field`; an underscore in a case stands for a blank."""
    return {"by": field, "cases": {value.replace("_", " "): t for value, t in cases.items()}, "else": otherwise}


BUILDING: dict[str, Template] = {
    "SnapshotBegin": "The recording begins. What stands already follows, as the events that would have made it.",
    "SnapshotEnd": "That is all that stood already: from here on events are told as they happen.",
    "ContextCreated": by(
        "no_alloc",
        "Context {context} opens an arena of {mem_size}; the data of its tensors lie in it too.",
        true="Context {context} opens an arena of {mem_size} for records of tensors; their data will lie elsewhere.",
    ),
    "ObjectAppended": by(
        "padding",
        "Context {context} appends a {object_type} object: {size} at offset {offset}, {padding} of it padding.",
        **{"0": "Context {context} appends a {object_type} object: {size} at offset {offset}."},
    ),
    "ContextReset": "Context {context} forgets its {n_objects} objects: {used_mem} of its arena are free again.",
    "ContextFreed": "Context {context} is freed, with {n_objects} objects in {used_mem}.",
    "ContextOverflow": "Context {context} is full: {needed} would be needed and the arena has {available}.",
    "TensorCreated": "{tensor} is made: {type}, shape {ne}, {nbytes} of data.",
    "ViewCreated": "{tensor} is a view: its bytes are those of {view_src}, from offset {view_offs} on.",
    "StridesChanged": by(
        "how",
        "{tensor} reads the bytes of {src} with shape {ne} and strides {nb}.",
        permute="{tensor} reads {src} with its axes in another order: shape {ne}, was {ne_before}; no byte moves.",
        reshape="{tensor} reads {src} as {ne}, was {ne_before}; no byte moves.",
        transpose="{tensor} reads {src} with rows and columns exchanged: {ne}, was {ne_before}; no byte moves.",
        view="{tensor} looks at a part of {src}: shape {ne} of {ne_before}; no byte moves.",
    ),
    "OpRecorded": by(
        "in_place",
        "{tensor} will be {desc} of {src}. This is only noted: nothing is computed yet.",
        true="{tensor} will be {desc} of {src}, written over its source. This is only noted: nothing is computed yet.",
    ),
    "TensorNamed": "The tensor is named {name}.",
    "FlagsSet": "{tensor} has the flags {flags}.",
    "GraphCreated": "Graph {graph} is made, with room for {size} nodes and {hash_size} slots in its hash set.",
    "GraphFreed": "Graph {graph} is gone with its context.",
    "ExpandBegin": "Graph {graph} is to hold all that {root} needs: the visit goes depth first from there.",
    "ExpandEnd": "{root} is in graph {graph}, with all it needs: {n_nodes} nodes and {n_leafs} leafs were added.",
    "VisitEnter": by(
        "probes",
        "{tensor} is met for the first time: after {probes} taken slots it goes to slot {slot} of the hash set.",
        **{"0": "{tensor} is met for the first time: slot {slot} of the hash set."},
    ),
    "AlreadyVisited": "{tensor} is in slot {slot} of the hash set already, so it is not visited again.",
    "LeafAppended": "{tensor} is computed from nothing: it becomes leaf {index}.",
    "NodeAppended": "All that {tensor} needs is in the graph, so it follows: node {index}.",
    "UseCountChanged": "The use count of {tensor} is {use_count} now.",
    "BufferAllocated": by(
        "usage",
        "Buffer {buffer} of type {buft} is allocated: {size}.",
        compute="Buffer {buffer} of type {buft} is allocated for computing: {size}.",
        weights="Buffer {buffer} of type {buft} holds weights: {size}.",
    ),
    "BufferFreed": "Buffer {buffer} is freed: {size}.",
    "PlacementPass": "Tensors {first} to {last} of context {context} go into one {buft} buffer of {size}.",
    "TensorPlaced": by(
        "view",
        "{tensor} has its memory: {size} at offset {offset} of buffer {buffer}.",
        true="{tensor} is a view, so it lies where its source does: at offset {offset} of buffer {buffer}.",
    ),
    "MmapOpened": "The file {path} is mapped: its {size} can be read as memory, and nothing is copied.",
    "PagesResident": "{pages} of {of} pages of {page_size} have been touched.",
    "LayerResident": "{pages} of the {of} pages of {name} are in memory.",
}

PLANNING: dict[str, Template] = {
    "AllocatorReset": "Allocator {allocator} forgets all its chunks.",
    "SearchBegin": by(
        "tensor",
        "A place for {tensor} is looked for: {asked}, which is {size} when rounded up to the alignment.",
        **{"-1": "A place for {asked} is looked for: {size} when rounded up to the alignment."},
    ),
    "BlockConsidered": by(
        "verdict",
        "Free block {block} of chunk {chunk} ({size} at offset {offset}): {verdict}.",
        best_so_far=by(
            "phase",
            "Free block {block} of chunk {chunk} ({size} at {offset}) is the best so far.",
            last_block="The free end of chunk {chunk} is best so far: reuse factor {reuse_factor} (below 0: to grow).",
        ),
        too_small="Free block {block} of chunk {chunk} ({size} at {offset}) is too small.",
        larger_than_the_best="Free block {block} of chunk {chunk} ({size} at {offset}) is larger than the best so far.",
        not_better="The free end of chunk {chunk} is no better: reuse factor {reuse_factor} (below 0: it must grow).",
    ),
    "BlockChosen": by(
        "exact",
        by(
            "rule",
            "{tensor} goes to offset {offset} of chunk {chunk}: {rule}.",
            best_fit="{tensor} goes to offset {offset} of chunk {chunk}: best fit, into a free block of {size}.",
            last_block="{tensor} goes to offset {offset} of chunk {chunk}: from the end, as no gap is large enough.",
            new_chunk="{tensor} goes to offset {offset} of chunk {chunk}, which is new: from the end.",
        ),
        true=by(
            "rule",
            "{tensor} goes to offset {offset} of chunk {chunk}: best fit exact, a free block of just {size}.",
            last_block="{tensor} goes to offset {offset} of chunk {chunk}: taken from the end, which has just {size}.",
            new_chunk="{tensor} goes to offset {offset} of chunk {chunk}, a new one of just {size}.",
        ),
    ),
    "BlockSplit": by(
        "size",
        "{taken} are cut off free block {block} of chunk {chunk}: {size}, from {offset} on, stay free.",
        **{"-1": "{taken} are cut off free block {block} of chunk {chunk}: the rest, from {offset} on, stays free."},
    ),
    "BlockRemoved": "Free block {block} of chunk {chunk} is used up: {size} at offset {offset}.",
    "BlockMerged": by(
        "side",
        "The freed {freed_size} at {freed_offset} join a free neighbour: {size} at {offset} are free.",
        previous="The freed {freed_size} at {freed_offset} join the free block before: {size} at {offset} are free.",
        next="The freed {freed_size} at {freed_offset} join the free block after: {size} from {offset} on are free.",
        both="The freed {freed_size} at {freed_offset} close the gap between two free blocks: "
        "{size} from {offset} on are free.",
    ),
    "BlockInserted": "No free neighbour: {size} at offset {offset} of chunk {chunk} become free block {block}.",
    "ChunkGrown": "Chunk {chunk} grows from {size_before} to {size}.",
    "ChunkOpened": by(
        "size",
        "Chunk {chunk} is opened: one free block of {size}.",
        **{"-1": "Chunk {chunk} is opened: one free block without an end."},
    ),
    "ReserveBegin": by(
        "why",
        "The memory of graph {graph} is planned: {why}.",
        asked="The memory of graph {graph} is planned, before anything is computed.",
        node_count=by(
            "had",
            "The memory of graph {graph} is planned anew: it has {needed} nodes, the last plan {had}.",
            **{"0": "The memory of graph {graph} is planned, before anything is computed: there is no plan yet."},
        ),
        leaf_count="The memory of graph {graph} is planned anew: it has {needed} leafs, the last plan {had}.",
        tensor_size="The memory of graph {graph} is planned anew: {tensor} needs {needed} bytes, {had} were planned.",
        backend="The memory of graph {graph} is planned anew: {tensor} is on backend {needed} now, on {had} before.",
    ),
    "ReserveEnd": by(
        "realloc",
        "The plan of graph {graph} is made; its chunks take {sizes} bytes; the buffer that stands is large enough.",
        true="The plan of graph {graph} is made; its chunks take {sizes} bytes, and a new buffer is allocated.",
    ),
    "ChildrenChanged": "Nodes still to be planned that read {tensor}: {n_children}, and views of it: {n_views}.",
    "ParentReused": "{tensor} is written over {parent}, which nobody else needs: at {offset} of chunk {chunk}.",
    "ParentRefused": by(
        "why",
        "{tensor} cannot be written over {parent}: {why}.",
        external="{tensor} cannot be written over {parent}: the memory of {parent} is not this allocator's to give.",
        output="{tensor} cannot be written over {parent}: {parent} is an output.",
        layout="{tensor} cannot be written over {parent}: they differ in type, shape or strides.",
        children="{tensor} cannot be written over {parent}: other nodes still read {parent}.",
        views="{tensor} cannot be written over {parent}: views of {parent} are still needed.",
        op_cannot="{tensor} cannot be written over {parent}: its op needs its sources until it is done.",
        reuse_off="{tensor} could be looked at for reuse of {parent}, but in-place reuse is switched off.",
    ),
    "ExtraTailFreed": "{tensor} needs less than {parent} had: {size} at {offset} of chunk {chunk} are given back.",
    "TensorAssigned": "{tensor} has its place: {size} at offset {offset} of chunk {chunk}.",
    "TensorFreed": "After {by} nobody needs {tensor}: its {size} at offset {offset} of chunk {chunk} are free again.",
    "OutputKept": "Nobody in the graph needs {tensor} any more, but it is an output, so its memory is kept.",
    "AllocGraphBegin": "The tensors of graph {graph} are to be placed where the plan says.",
    "AllocGraphEnd": by(
        "reserved",
        "Graph {graph} is placed: the plan that stood fits it.",
        true="Graph {graph} is placed, by a plan made for it just now.",
    ),
    "NodePlanned": by(
        "work_size",
        "{tensor} may run on {n_tasks} threads and needs {work_size} of scratch: {terms}.",
        **{
            "0": by(
                "n_tasks",
                "{tensor} may run on {n_tasks} threads and needs no scratch.",
                **{"1": "{tensor} runs on one thread and needs no scratch."},
            )
        },
    ),
    "PlanMaximum": "{tensor} needs more scratch than any node before it: {work_size}.",
    "PlanEnd": by(
        "work_size",
        "Graph {graph} needs {work_size} of scratch for {n_threads} threads, {padding} of it padding.",
        **{"0": "Graph {graph} needs no scratch."},
    ),
}

RUNNING: dict[str, Template] = {
    "ComputeBegin": "Graph {graph} is computed: {n_nodes} nodes, {n_threads} threads.",
    "ComputeEnd": "Graph {graph} is computed. It took {ns}.",
    "NodeBegin": "Thread {thread} begins {tensor}, {ns} into the graph.",
    "NodeEnd": "Thread {thread} has done its part of {tensor}, {ns} into the graph.",
    "NodeSkipped": by(
        "why",
        "{tensor} is not computed: {why}.",
        empty_op="{tensor} is not computed: its op moves no byte.",
        empty_tensor="{tensor} is not computed: it has no elements.",
        no_compute_flag="{tensor} is not computed: no output needs it.",
    ),
    "NodesFused": "{tensor} and {fused} are computed together in one pass.",
    "BarrierWait": "Thread {thread} waits {ns} for the others after {tensor}.",
    "Released": "The use count of {tensor} is 0: its {size} at {offset} of chunk {chunk} are given back at once.",
    "BackendAssigned": "{tensor} is given to backend {backend}: {why}.",
    "SplitOpened": "Split {split} of graph {graph} begins at node {first_node}, on {backend}, with {n_inputs} inputs.",
    "CopyInserted": "{tensor} is needed on backend {backend}: split {split} gets the copy {copy}.",
    "RowsEncoded": "{n_rows} rows are encoded as {type}: {n_blocks} blocks, {nbytes}.",
    "RowsDecoded": "{n_rows} rows are decoded from {type}: {n_blocks} blocks, {nbytes}.",
    "BlockEncoded": "Block {block} is encoded as {type}: scale {scale}, minimum {min}.",
    "BlockDecoded": "Block {block} is decoded from {type}: scale {scale}, minimum {min}.",
}

DECODING: dict[str, Template] = {
    "WeightsPlaced": "Weight {tensor}, {size} at {file_offset} of the file, lies at {offset} of buffer {buffer}.",
    "CacheCreated": "KV cache {cache} is made: {n_cells} cells in each of {n_layer} layers, "
    "K as {type_k} ({nbytes_k}), V as {type_v} ({nbytes_v}).",
    "CellsFound": "{n_tokens} free cells are found, searched from cell {head} on; attention will look at {n_kv} cells.",
    "CellSet": "Cell {cell} of the cache holds position {pos} of sequence {seq_id} now.",
    "CellFreed": "Cell {cell} of the cache is free for sequence {seq_id}: it held position {pos}.",
    "SeqOp": by(
        "op",
        "{op} on sequence {seq_id} of the cache, positions {p0} to {p1}.",
        copy="Positions {p0} to {p1} of sequence {seq_id} are shared with sequence {seq_dst}.",
        keep="All sequences but {seq_id} are removed from the cache.",
        remove="Positions {p0} to {p1} of sequence {seq_id} are removed from the cache.",
        shift="Positions {p0} to {p1} of sequence {seq_id} are moved by {delta}.",
        add="Positions {p0} to {p1} of sequence {seq_id} are moved by {delta}.",
    ),
    "KvWritten": "{which} of layer {layer}: {n_cells} cells from cell {cell} on are written, {nbytes} as {type}.",
    "WindowEvicted": "Position {pos} has left the attention window: its cell {cell} is given to a new token.",
    "ReuseChecked": by(
        "ok",
        "{owner}: {condition} was {had} and must be {needs}, so the graph cannot be used again.",
        true="{owner}: {condition} was {had}, and {needs} is needed: the graph can be used again as far as this goes.",
    ),
    "ReuseDecided": by(
        "reused",
        "The graph is built anew: {why}.",
        true="The graph of the last evaluation is used again: nothing is built or planned.",
    ),
    "Tokenized": "The text becomes tokens: {pieces}.",
    "DecodeBegin": "Decode {index}: {n_tokens} tokens from position {pos} on, {n_outputs} of them with logits.",
    "UbatchSplit": "Ubatch {index} has {n_tokens} tokens from position {pos} on, {n_outputs} of them with logits.",
    "LogitsReady": "The logits after position {pos} are ready; the highest are {logits}, of {pieces}.",
    "SamplerApplied": "{sampler} ({param}) leaves {n_after} of {n_before} candidates.",
    "TokenSampled": "The token for position {pos} is {piece}, with probability {p}.",
    "DecodeEnd": "Decode {index} is done. It took {ns}.",
}

LATER: dict[str, Template] = {
    "TensorCopied": "{tensor} is copied from {source} to {backend}, {nbytes}, for split {split} of graph {graph}.",
    "SlotTaken": "Slot {slot} of graph {graph}, where {tensor} belongs, is taken by {occupant}: the next one is tried.",
}

SENTENCES: dict[str, Template] = {**BUILDING, **PLANNING, **RUNNING, **DECODING, **LATER}

FIELD = re.compile(r"\{(\w+)\}")
FLAGS = ((1, "INPUT"), (2, "OUTPUT"), (4, "PARAM"), (8, "LOSS"), (16, "COMPUTE"))


def fields_in(template: Template) -> set[str]:
    """Every field that a template names."""
    if isinstance(template, str):
        return set(FIELD.findall(template))
    return {template["by"]}.union(*map(fields_in, (template["else"], *template["cases"].values())))


def render(tracks: Tracks, i: int) -> str:
    """The sentence of event `i`."""
    kind = tracks.meta["kinds"][int(tracks.columns["ev.kind"][i])]
    row = int(tracks.columns["ev.row"][i])
    types = dict(kind["fields"])
    template: Any = kind["sentence"]
    while not isinstance(template, str):
        value = read(tracks, kind["name"], template["by"], types[template["by"]], row)
        template = template["cases"].get(as_key(value), template["else"])

    def fill(found: re.Match[str]) -> str:
        field = found[1]
        if field not in types:
            return found[0]
        return show(tracks, types[field], read(tracks, kind["name"], field, types[field], row))

    return FIELD.sub(fill, template)


def read(tracks: Tracks, kind: str, field: str, ftype: str, row: int) -> Any:
    """A field as it is meant: text for str, whole numbers where they are whole."""
    value = tracks.field(kind, field, row)
    if ftype == "str":
        return tracks.string(value)
    if ftype == "strs":
        return [tracks.string(v) for v in value]
    if ftype == "bool":
        return bool(value)
    if ftype in ("float", "floats"):
        return value
    return [int(v) for v in value] if isinstance(value, list) else int(value)


def as_key(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def show(tracks: Tracks, ftype: str, value: Any) -> str:
    """A value of that type as a reader sees it."""
    if ftype == "tensor":
        return tensor_name(tracks, value)
    if ftype == "tensors":
        return ", ".join(tensor_name(tracks, t) for t in value)
    if ftype in ("ints", "strs"):
        return ", ".join(map(str, value))
    if ftype == "floats":
        return ", ".join(map(show_float, value))
    shower = {"bytes": show_bytes, "ns": show_ns, "dims": show_dims, "float": show_float, "flags": show_flags}.get(
        ftype
    )
    if shower is not None:
        return shower(value)  # type: ignore[operator, no-any-return]
    return ("yes" if value else "no") if ftype == "bool" else str(value)


def tensor_name(tracks: Tracks, tensor: int) -> str:
    if tensor < 0:
        return "none"
    return tracks.string(int(tracks.columns["tensor.name"][tensor])) or f"tensor {tensor}"


def trim(text: str) -> str:
    return re.sub(r"\.?0+$", "", text) if "." in text else text


def show_bytes(n: int) -> str:
    """`96 B`, `1.5 KiB`, `98.25 MiB`; below 0 is what has no end."""
    if n < 0:
        return "the rest"
    if n < 1024:
        return f"{n} B"
    value, units = n / 1024, ["KiB", "MiB", "GiB", "TiB"]
    while value >= 1024 and len(units) > 1:
        value /= 1024
        units.pop(0)
    return f"{trim(f'{value:.2f}')} {units[0]}"


def show_ns(ns: int) -> str:
    """`850 ns`, `12.5 us`, `1.2 ms`, `1.25 s`."""
    if ns < 1000:
        return f"{ns} ns"
    if ns < 1_000_000:
        return f"{trim(f'{ns / 1e3:.1f}')} us"
    if ns < 1_000_000_000:
        return f"{trim(f'{ns / 1e6:.1f}')} ms"
    return f"{trim(f'{ns / 1e9:.2f}')} s"


def show_dims(ne: Sequence[int]) -> str:
    """`3 x 2`: in ggml's order, ones at the end left off."""
    n = max((k + 1 for k in range(1, len(ne)) if any(d != 1 for d in ne[k:])), default=1)
    return " x ".join(map(str, ne[:n]))


def show_float(value: float) -> str:
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return trim(f"{value:.4f}")


def show_flags(flags: int) -> str:
    return ", ".join(name for bit, name in FLAGS if flags & bit) or "none"
