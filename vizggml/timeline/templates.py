"""What each kind of event says to a reader who meets it once: a plain sentence with the numbers in it.

A template is text with fields in braces, or {"by": field, "cases": {value: template}, "else": template}.

    {size}              a field of the event, shown by its type
    {reuse_factor:size} a number as a size, without its sign
    {cause.tensor}      a field of the event that caused this one

A choice by `cause` is one by the kind of that event, so a field of it is named only where its kind is known. A case
`<0` is for the numbers below 0 that have no case of their own. The player fills in the same templates
(widgets/player/sentence.js): the two must give the same text.
"""

from __future__ import annotations

from typing import TypedDict, Union

Cases = TypedDict("Cases", {"by": str, "cases": "dict[str, Template]", "else": "Template"})
Template = Union[str, Cases]  # noqa: UP007


def by(field: str, otherwise: Template, **cases: Template) -> Cases:
    """A template for each value of `field`; an underscore in a case stands for a blank."""
    return {"by": field, "cases": {value.replace("_", " "): t for value, t in cases.items()}, "else": otherwise}


BUILDING: dict[str, Template] = {
    "SnapshotBegin": "The recording begins. What stands already comes first, as the events that would have made it.",
    "SnapshotEnd": "That is all that stood already: from here on events are told as they happen.",
    "ContextCreated": by(
        "no_alloc",
        "Context {context} opens an arena of {mem_size} for records of tensors and graphs, and for the tensors' data.",
        true="Context {context} opens an arena of {mem_size} for records of tensors and graphs; "
        "the tensors' data will lie elsewhere.",
    ),
    "ObjectAppended": by(
        "padding",
        "Context {context} appends a {object_type} object to its arena: {size} at offset {offset}, "
        "{padding} of it padding up to a round address.",
        **{"0": "Context {context} appends a {object_type} object to its arena: {size} at offset {offset}."},
    ),
    "ContextReset": "Context {context} forgets its {n_objects} objects: {used_mem} of its arena are free again.",
    "ContextFreed": "Context {context} is freed, and with it its {n_objects} objects, {used_mem} of its arena.",
    "ContextOverflow": "The arena of context {context} is full: {needed} would be needed, and it has {available}.",
    "TensorCreated": "{tensor} is made: type {type}, shape {ne} (a row's length first), {nbytes} of data.",
    "ViewCreated": "{tensor} is a view, without data of its own: it reads {view_src}, from byte {view_offs} on.",
    "StridesChanged": by(
        "how",
        "{tensor} reads the bytes of {src} with shape {ne} and strides {nb}; no byte moves.",
        permute="{tensor} reads {src} with its axes in another order: shape {ne}, was {ne_before}. "
        "Only the strides differ; no byte moves.",
        reshape="{tensor} reads {src} in shape {ne}, was {ne_before}; no byte moves.",
        transpose="{tensor} reads {src} with rows and columns exchanged: shape {ne}, was {ne_before}. "
        "Only the strides differ; no byte moves.",
        view="{tensor} reads a part of {src}: shape {ne} of {ne_before}; no byte moves.",
    ),
    "OpRecorded": by(
        "in_place",
        "{tensor} will be {desc} of {src}. This is only written down: nothing is computed yet.",
        true="{tensor} will be {desc} of {src}, written over its source. "
        "This is only written down: nothing is computed yet.",
    ),
    "TensorNamed": "The tensor is named {name}.",
    "FlagsSet": by(
        "flags",
        "{tensor} has the flags {flags}.",
        **{
            "1": "{tensor} is marked INPUT: it gets its memory before any result, so that none is written over it.",
            "2": "{tensor} is marked OUTPUT: somebody will read it, so its memory is kept to the end.",
            "16": "{tensor} is marked COMPUTE: it is needed for an output of the graph.",
            "17": "{tensor} is marked INPUT and COMPUTE: it gets its memory before any result, and an output needs it.",
            "18": "{tensor} is marked OUTPUT and COMPUTE: it is computed, and its memory is kept to the end.",
        },
    ),
    "GraphCreated": "Graph {graph} is made, with room for {size} nodes; "
    "its hash set of {hash_size} slots will tell which tensors it has already.",
    "GraphFreed": "Graph {graph} is gone with its context.",
    "ExpandBegin": "Graph {graph} is to hold {root} and all that it is computed from: "
    "each tensor's sources are visited before the tensor itself.",
    "ExpandEnd": "{root} is in graph {graph}, with all it needs: "
    "{n_nodes} nodes (to be computed) and {n_leafs} leafs (given) were added.",
    "VisitEnter": by(
        "probes",
        "{tensor} is met for the first time: {probes} slots of the hash set are taken, so it goes to slot {slot}.",
        **{"0": "{tensor} is met for the first time, and goes to slot {slot} of the hash set."},
    ),
    "AlreadyVisited": "{tensor} is in the hash set already, in slot {slot}: it is not visited again.",
    "LeafAppended": "{tensor} is computed from nothing (a weight, a cache or an input): it becomes leaf {index}.",
    "NodeAppended": "All that {tensor} reads is in the graph, so it follows: node {index} of the execution order.",
    "UseCountChanged": "The use count of {tensor}, how many nodes read it, is {use_count} now.",
    "BufferAllocated": by(
        "usage",
        "Buffer {buffer} of type {buft} is allocated: {size}.",
        compute="Buffer {buffer} of type {buft} is allocated for computing: {size}, as large as the plan.",
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

_FREE_BLOCK = "Free block {block} of chunk {chunk} ({size} at {offset})"
_FREE_END = "The free end of chunk {chunk}"
_GROWS = "the chunk grows by {reuse_factor:size}"
_LEAVES = "{reuse_factor:size} of the chunk stay unused"


def _end_serves(words: str) -> Cases:
    """The free end of a chunk is the best so far: what that costs."""
    return by("reuse_factor", f"{words}: {_LEAVES}.", **{"<0": f"{words}: {_GROWS}."})


CONSIDERED = by(
    "verdict",
    _FREE_BLOCK + ": {verdict}.",
    best_so_far=by(
        "phase",
        by(
            "cause",
            _FREE_BLOCK + " is the best so far.",
            SearchBegin=_FREE_BLOCK + " has room for {cause.size}: it is the smallest of those so far.",
        ),
        last_block=by(
            "cause",
            _end_serves(f"{_FREE_END} has room"),
            SearchBegin=by(
                "block",
                _end_serves("{cause.tensor} ({cause.size}) fits into no gap of chunk {chunk}, but at its free end"),
                **{
                    "0": _end_serves(
                        "Chunk {chunk} has no gaps, but at its free end {cause.tensor} ({cause.size}) has room"
                    )
                },
            ),
        ),
    ),
    too_small=by(
        "cause",
        _FREE_BLOCK + " is too small.",
        SearchBegin=by(
            "phase",
            _FREE_BLOCK + " is too small: {cause.tensor} needs {cause.size}.",
            last_block=_FREE_END + " is too small: {cause.tensor} needs {cause.size}, and {size} are left.",
        ),
    ),
    larger_than_the_best=_FREE_BLOCK + " has room too, but it is larger than the best so far.",
    not_better=by(
        "reuse_factor",
        f"{_FREE_END} is no better: {_LEAVES}.",
        **{"<0": f"{_FREE_END} is no better: {_GROWS}."},
    ),
)

_GOES = "{tensor} goes to offset {offset} of chunk {chunk}"

CHOSEN = by(
    "exact",
    by(
        "rule",
        _GOES + ": {rule}.",
        best_fit=_GOES + ": best fit, the smallest free block with room for it ({size}).",
        last_block=_GOES + ", its free end: no gap before it is large enough.",
        new_chunk=_GOES + ", which is new: no other chunk has room.",
    ),
    true=by(
        "rule",
        _GOES + ": best fit exact, a free block of just {size}.",
        last_block=_GOES + ", its free end, which has just {size}.",
        new_chunk=_GOES + ", a new one of just {size}.",
    ),
)

PLANNING: dict[str, Template] = {
    "AllocatorReset": "Allocator {allocator} forgets its chunks: planning begins with nothing taken.",
    "SearchBegin": by(
        "tensor",
        "A place for {tensor} is looked for. It needs {asked}; up to the alignment, that takes {size}.",
        **{"-1": "A place for {asked} is looked for; up to the alignment, that takes {size}."},
    ),
    "BlockConsidered": CONSIDERED,
    "BlockChosen": CHOSEN,
    "BlockSplit": by(
        "size",
        "{taken} are cut off the front of free block {block} of chunk {chunk}; the other {size}, from {offset} on, "
        "stay free.",
        **{
            "-1": "{taken} are cut off the front of the free end of chunk {chunk}; "
            "the rest, from {offset} on, stays free."
        },
    ),
    "BlockRemoved": "Free block {block} of chunk {chunk} is used up: all its {size} at offset {offset} are taken.",
    "BlockMerged": by(
        "side",
        "The freed {freed_size} at {freed_offset} join a free neighbour: {size} at {offset} are free.",
        previous="The freed {freed_size} at {freed_offset} join the free block before them: "
        "together {size} from {offset} on are free.",
        next=by(
            "size",
            "The freed {freed_size} at {freed_offset} join the free block after them: "
            "together {size} from {offset} on are free.",
            **{"-1": "The freed {freed_size} at {freed_offset} join the free end: all from {offset} on is free."},
        ),
        both=by(
            "size",
            "The freed {freed_size} at {freed_offset} close the gap between two free blocks: "
            "together {size} from {offset} on are free.",
            **{
                "-1": "The freed {freed_size} at {freed_offset} close the gap between a free block and the free end: "
                "all from {offset} on is free."
            },
        ),
    ),
    "BlockInserted": "No free block touches the freed {size} at offset {offset} of chunk {chunk}: "
    "they become free block {block}.",
    "ChunkGrown": "Chunk {chunk} grows from {size_before} to {size}: the buffer must be at least that large.",
    "ChunkOpened": by(
        "size",
        "Chunk {chunk} is opened: one free block of {size}.",
        **{"-1": "Chunk {chunk} is opened: one free block without an end. It will be as large as what is taken of it."},
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
        tensor_size="The memory of graph {graph} is planned anew: "
        "{tensor} needs {needed:size}, and {had:size} were planned.",
        backend="The memory of graph {graph} is planned anew: {tensor} is on backend {needed} now, on {had} before.",
    ),
    "ReserveEnd": by(
        "realloc",
        "The plan of graph {graph} is made; its chunks take {sizes:size}. The buffer that stands is large enough.",
        true="The plan of graph {graph} is made; its chunks take {sizes:size}, and a new buffer is allocated for them.",
    ),
    "ChildrenChanged": by(
        "n_views",
        "{tensor} is still needed: {n_children} of its readers and {n_views} of its views are yet to be planned.",
        **{
            "0": by(
                "n_children",
                "{tensor} is still needed: {n_children} nodes yet to be planned read it.",
                **{
                    "0": "Nobody needs {tensor} any more: all nodes that read it are planned.",
                    "1": "{tensor} is still needed: one node yet to be planned reads it.",
                },
            )
        },
    ),
    "ParentReused": "{tensor} is written over {parent}, which nobody else needs: "
    "it takes over offset {offset} of chunk {chunk}, and no place is looked for.",
    "ParentRefused": by(
        "why",
        "{tensor} cannot be written over {parent}: {why}.",
        external="{tensor} cannot be written over {parent}: "
        "the memory of {parent} is not this allocator's to give (a weight, a cache or a view).",
        output="{tensor} cannot be written over {parent}: {parent} is an output, and somebody will read it.",
        layout="{tensor} cannot be written over {parent}: they differ in type, shape or strides.",
        children="{tensor} cannot be written over {parent}: other nodes still read {parent}.",
        views="{tensor} cannot be written over {parent}: views of {parent} are still needed.",
        op_cannot="{tensor} cannot be written over {parent}: its op needs its sources until it is done.",
        reuse_off="{tensor} is not written over {parent}: in-place reuse is switched off.",
    ),
    "ExtraTailFreed": "{tensor} needs less than {parent} had: the {size} at {offset} of chunk {chunk} are given back.",
    "TensorAssigned": "{tensor} has its place in the plan: {size} at offset {offset} of chunk {chunk}.",
    "TensorFreed": "After {by} nobody needs {tensor}: its {size} at offset {offset} of chunk {chunk} are free again.",
    "OutputKept": "Nobody in the graph needs {tensor} any more, but it is an output, so its memory is kept.",
    "AllocGraphBegin": "The tensors of graph {graph} are to be placed where the plan says, if the plan fits it.",
    "AllocGraphEnd": by(
        "reserved",
        "Graph {graph} is placed: the plan that stood fits it.",
        true="Graph {graph} is placed, by a plan made for it just now.",
    ),
    "NodePlanned": by(
        "work_size",
        by(
            "n_tasks",
            "{tensor} may run on {n_tasks} threads and needs {work_size} of scratch, memory to work in: {terms}.",
            **{"1": "{tensor} runs on one thread and needs {work_size} of scratch, memory to work in: {terms}."},
        ),
        **{
            "0": by(
                "n_tasks",
                "{tensor} may run on {n_tasks} threads and needs no scratch, no memory to work in.",
                **{"1": "{tensor} runs on one thread and needs no scratch, no memory to work in."},
            )
        },
    ),
    "PlanMaximum": "{tensor} needs more scratch than any node before it: {work_size}.",
    "PlanEnd": by(
        "work_size",
        by(
            "n_threads",
            "Graph {graph} needs {work_size} of scratch for {n_threads} threads: the most that a node needs, "
            "and {padding} of padding.",
            **{
                "1": "Graph {graph} needs {work_size} of scratch: the most that a node needs, and {padding} of padding."
            },
        ),
        **{"0": "Graph {graph} needs no scratch: no node has use for it."},
    ),
}

RUNNING: dict[str, Template] = {
    "ComputeBegin": by(
        "n_threads",
        "Graph {graph} is computed: {n_nodes} nodes in order, each shared by up to {n_threads} threads.",
        **{"1": "Graph {graph} is computed: {n_nodes} nodes in order, by one thread."},
    ),
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
    "BarrierWait": "Thread {thread} waits {ns} for the others after {tensor}: all begin the next node together.",
    "Released": "The use count of {tensor} is 0: its {size} at {offset} of chunk {chunk} are given back at once.",
    "BackendAssigned": by(
        "why",
        "Backend {backend} gets {tensor}: {why}.",
        its_weights="Backend {backend} will compute {tensor}: the weights that it reads lie there.",
        its_memory="Backend {backend} gets {tensor}: it lies in that backend's memory already.",
        its_view_source="Backend {backend} gets {tensor}, as it has what this is a view of.",
        an_input="Backend {backend} gets {tensor}: it is an input, filled in from outside.",
        offloaded="Backend {backend} will compute {tensor}: for so many tokens its weights are copied there.",
        its_neighbour="Backend {backend} will compute {tensor}, as it computes the nodes beside it.",
        most_inputs="Backend {backend} will compute {tensor}: most of what it reads is there.",
        its_reader="Backend {backend} gets {tensor}, as it computes a node that reads it.",
        the_first_that_can="Backend {backend} will compute {tensor}: it is the first that can.",
        **{
            "preferred, same memory": "Backend {backend} will compute {tensor}: it can read all of it where it lies, "
            "and is preferred."
        },
    ),
    "SplitOpened": "Split {split} of graph {graph} begins at node {first_node}: "
    "from there {backend} computes, and {n_inputs} tensors are copied to it.",
    "CopyInserted": "{tensor} is needed on backend {backend}: split {split} gets the copy {copy}.",
    "RowsEncoded": by(
        "importance",
        "{n_rows} rows are encoded as {type}: {n_blocks} blocks, {nbytes}. Errors cost the same in every column.",
        true="{n_rows} rows are encoded as {type}: {n_blocks} blocks, {nbytes}. "
        "An error costs more in the columns that matter: there is an importance matrix.",
    ),
    "RowsDecoded": "{n_rows} rows are decoded from {type}: {n_blocks} blocks, {nbytes}.",
    "BlockEncoded": "Block {block} is encoded as {type}: scale {scale}, minimum {min}.",
    "BlockDecoded": "Block {block} is decoded from {type}: scale {scale}, minimum {min}.",
}

ALL_POSITIONS = str(2**31 - 1)
"""How an operation on a sequence says that it has no last position."""

DECODING: dict[str, Template] = {
    "WeightsPlaced": "Weight {tensor}, {size} at {file_offset} of the file, lies at {offset} of buffer {buffer}.",
    "CacheCreated": by(
        "n_swa",
        "KV cache {cache} is made for layers that see the last {n_swa} positions: {n_cells} cells in each of {n_layer} "
        "layers, K as {type_k} ({nbytes_k}), V as {type_v} ({nbytes_v}).",
        **{
            "0": "KV cache {cache} is made: {n_cells} cells in each of {n_layer} layers, "
            "K as {type_k} ({nbytes_k}), V as {type_v} ({nbytes_v})."
        },
    ),
    "CellsFound": by(
        "n_tokens",
        "{n_tokens} free cells are found, searched from cell {head} on; "
        "attention will look at the first {n_kv} cells of the cache.",
        **{
            "1": "A free cell is found, searched from cell {head} on; "
            "attention will look at the first {n_kv} cells of the cache."
        },
    ),
    "CellSet": "Cell {cell} of the cache holds position {pos} of sequence {seq_id} now.",
    "CellFreed": "Cell {cell} of the cache is free for sequence {seq_id}: it held position {pos}.",
    "SeqOp": by(
        "op",
        "{op} on sequence {seq_id} of the cache, positions {p0} to {p1}.",
        copy="Positions {p0} to {p1} of sequence {seq_id} are shared with sequence {seq_dst}.",
        keep="All sequences but {seq_id} are removed from the cache.",
        remove=by(
            "p1",
            "Positions {p0} to {p1} of sequence {seq_id} are removed from the cache.",
            **{
                ALL_POSITIONS: by(
                    "seq_id",
                    "All positions of sequence {seq_id} from {p0} on are removed from the cache.",
                    **{"-1": "All positions from {p0} on, of every sequence, are removed from the cache."},
                )
            },
        ),
        shift="Positions {p0} to {p1} of sequence {seq_id} are moved by {delta}.",
        add="Positions {p0} to {p1} of sequence {seq_id} are moved by {delta}.",
    ),
    "StateSaved": by(
        "seq_id",
        "Sequence {seq_id} is saved to a file: {n_cells} cells and {n_tokens} tokens, {nbytes}.",
        **{"-1": "The cache is saved to a file: {n_cells} cells and {n_tokens} tokens, {nbytes}."},
    ),
    "StateLoaded": by(
        "seq_id",
        "Sequence {seq_id} is loaded from a file: {n_cells} cells and {n_tokens} tokens, {nbytes}.",
        **{"-1": "The cache is loaded from a file: {n_cells} cells and {n_tokens} tokens, {nbytes}."},
    ),
    "KvWritten": by(
        "n_cells",
        "{which} of layer {layer}: {n_cells} cells from cell {cell} on are written, {nbytes} as {type}.",
        **{"1": "{which} of layer {layer}: cell {cell} is written, {nbytes} as {type}."},
    ),
    "WindowEvicted": "Position {pos} has left the attention window: its cell {cell} is given to a new token.",
    "ReuseChecked": by(
        "ok",
        "{owner}: {condition} was {had} and must be {needs}, so the graph cannot be used again.",
        true="{owner}: {condition} was {had}, and {needs} is needed: the graph can be used again as far as this goes.",
    ),
    "ReuseDecided": by(
        "reused",
        by(
            "cause",
            "The graph is built anew: {why}.",
            ReuseChecked="The graph is built anew: "
            "{cause.condition} ({cause.owner}) was {cause.had}, and {cause.needs} is needed.",
        ),
        true="The graph of the last evaluation is used again: nothing is built or planned.",
    ),
    "Tokenized": "The text becomes tokens: {pieces}.",
    "DecodeBegin": by(
        "n_tokens",
        "Decode {index}: {n_tokens} tokens from position {pos} on are computed, {n_outputs} of them with logits.",
        **{"1": "Decode {index}: one token, at position {pos}, is computed, {n_outputs} with logits."},
    ),
    "UbatchSplit": by(
        "n_tokens",
        "Ubatch {index}, what is computed at once, has {n_tokens} tokens from position {pos} on, "
        "{n_outputs} of them with logits.",
        **{"1": "Ubatch {index}, what is computed at once, has one token, at position {pos}."},
    ),
    "LogitsReady": "The logits after position {pos} are ready: a score for each token. "
    "The highest belong to {pieces}: {logits}.",
    "SamplerApplied": by(
        "sampler",
        "{sampler} ({param}) leaves {n_after} of {n_before} candidates for the next token.",
        temperature="{sampler} divides the logits by {param}: below 1 the likely gain, above 1 the unlikely.",
        dist=by(
            "n_before",
            "{sampler} draws one of {n_before} candidates, each with its probability.",
            **{"1": "{sampler} has one candidate left, and draws it."},
        ),
        greedy="{sampler} takes the highest of {n_before} candidates.",
    ),
    "TokenSampled": 'The token for position {pos} is "{piece}", with probability {p}.',
    "DecodeEnd": "Decode {index} is done. It took {ns}.",
}

LATER: dict[str, Template] = {
    "TensorCopied": "{tensor} is copied from {source} to {backend}, {nbytes}, for split {split} of graph {graph}.",
    "SlotTaken": "Slot {slot} of graph {graph}, where {tensor} belongs, is taken by {occupant}: the next one is tried.",
    "ChunksTaken": by(
        "handed_out",
        "{tensor} is cut into one share for each thread, of {rows} x {columns}: too few chunks to hand out.",
        true="{tensor} is cut into {n_chunks} chunks of {rows} x {columns}, and who is done takes the next. "
        "Threads 0, 1, ... took {taken} of them.",
    ),
    "WorkTaken": by(
        "polling",
        "Thread {thread} slept and was woken for {tensor}.",
        true="Thread {thread} was looking for work and took up {tensor} at once.",
    ),
    "ExpertsRouted": by(
        "n_tokens",
        "Layer {layer}: each of {n_tokens} tokens goes to {n_used} of {n_expert} experts. "
        "Together they read {n_read} experts, {nbytes_read} of {nbytes} of weights.",
        **{
            "1": "Layer {layer}: the token at position {positions} goes to {n_used} of {n_expert} experts: {experts}, "
            "with weights {weights}. Of {nbytes} of weights {nbytes_read} are read."
        },
    ),
    "TokensHeld": "The text so far: {pieces}.",
}

SENTENCES: dict[str, Template] = {**BUILDING, **PLANNING, **RUNNING, **DECODING, **LATER}
