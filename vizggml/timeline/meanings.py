"""What each track and each static table of the tracks holds, in words, column by column.

"text" is an index into the string table. Positions are places in a graph's execution order, from 0 on.
"""

from __future__ import annotations

INTERVAL: dict[str, str] = {
    "a": "the first event at which the row holds",
    "b": "the first event at which it holds no longer; the number of events if it holds to the end",
    "ck": "`ckrow[ck[j]:ck[j + 1]]` are the rows that hold at event `j * stride`",
    "ckrow": "numbers of rows, see `ck`",
}
"""The columns that every track has."""

TRACKS: dict[str, tuple[str, dict[str, str]]] = {
    "node": (
        "How far each tensor of a graph is.",
        {
            "tensor": "the tensor",
            "status": "1 visited, 2 appended, 3 has its memory, 4 being computed, 5 computed, 6 freed, 7 skipped",
        },
    ),
    "count": (
        "The counts that decide when memory is free.",
        {"tensor": "the tensor", "which": "0 use_count, 1 n_children, 2 n_views", "value": "the count"},
    ),
    "arena": (
        "How full each context is.",
        {
            "context": "the context",
            "used": "bytes that its objects take",
            "n_objects": "how many objects it has",
            "mem_size": "bytes of the arena",
            "no_alloc": "1 if its tensors' data lies elsewhere",
        },
    ),
    "object": (
        "The records in each arena.",
        {
            "context": "the context",
            "kind": "text: TENSOR or GRAPH",
            "offset": "where the record begins in the arena",
            "size": "bytes of the record",
            "padding": "how many of them are padding",
            "tensor": "the tensor that it is of, or -1",
            "graph": "the graph that it is of, or -1",
        },
    ),
    "split": (
        "The splits of a graph over several backends.",
        {
            "graph": "the graph",
            "split": "which one of it",
            "backend": "text: the backend's name",
            "first_node": "index of its first node",
            "n_inputs": "tensors that are brought to its backend",
        },
    ),
    "copy": (
        "Tensors that a split needs and that lie elsewhere.",
        {
            "graph": "the graph",
            "split": "which one of it",
            "tensor": "the tensor that is copied",
            "copy": "the tensor that gets the bytes",
            "backend": "text: the backend that it lies on",
            "nbytes": "bytes that were copied last; -1 before the first time",
        },
    ),
    "buffer": (
        "The buffers that are there.",
        {
            "buffer": "the buffer",
            "size": "its bytes",
            "usage": "text: any, weights or compute",
            "buft": "text: the buffer type",
        },
    ),
    "place": (
        "Where each tensor's bytes lie.",
        {"tensor": "the tensor", "buffer": "the buffer", "offset": "where it begins in it", "size": "its bytes"},
    ),
    "pages": (
        "Pages of a mapped file that are in memory.",
        {
            "buffer": "the mapping",
            "name": "text: a layer or a tensor; -1 for the whole file",
            "offset": "where it begins in the file",
            "pages": "pages that are in memory",
            "of": "pages that it has",
        },
    ),
    "block": (
        "Each chunk of planned memory from end to end, free blocks and taken ones.",
        {
            "allocator": "the allocator",
            "chunk": "its chunk",
            "offset": "where the block begins",
            "size": "its bytes; -1 without an end",
            "owner": "the tensor that has it; -1 free, -2 taken by none that is known",
        },
    ),
    "chunk": (
        "How large each chunk must be.",
        {"allocator": "the allocator", "chunk": "its chunk", "size": "bytes: the high-water mark so far"},
    ),
    "life": (
        "The rectangles of the memory timeline: a place, and the part of the execution order for which it is kept.",
        {
            "plan": "which plan, from 0 on",
            "tensor": "the tensor",
            "chunk": "the chunk; that of buffer type b is 16 b higher",
            "offset": "where it begins",
            "size": "its bytes",
            "first": "the position at which it gets its place",
            "last": "the last position at which it is needed",
            "reuses": "the parent whose place it takes over, or -1",
            "freed_by": "the node after which it is not needed, or -1",
            "allocator": "the allocator",
        },
    ),
    "live": (
        "What lives while each node is computed, by the plan.",
        {
            "plan": "which plan, as in `life`",
            "position": "of the execution order",
            "bytes": "of all that lives there, padded as it lies",
            "bound": "the largest of these up to here: no plan of the same graph takes less",
        },
    ),
    "reserve": (
        "While a graph's memory is planned: for which graph, and why.",
        {
            "galloc": "the graph allocator",
            "graph": "the graph",
            "why": "text: asked, node count, leaf count, tensor size or backend",
            "tensor": "the tensor that did not fit, or -1",
            "had": "what was planned",
            "needed": "what is needed",
            "size": "bytes of the whole plan",
            "anew": "1 if a buffer was allocated anew",
        },
    ),
    "scratch": (
        "What each planned node needs to work in.",
        {
            "graph": "the graph",
            "tensor": "the node",
            "n_tasks": "between how many threads it is shared out",
            "work_size": "bytes that it needs",
            "maximum": "the largest of these so far",
        },
    ),
    "thread": (
        "What each thread did in the evaluation that is computed.",
        {
            "eval": "the evaluation",
            "tensor": "the node",
            "thread": "the thread",
            "begin_ns": "when it began, from the begin of the evaluation's computing",
            "end_ns": "when it was done",
            "wait_ns": "how long it then waited for the others",
            "chunks": "chunks of a matrix product that it took; -1 where there were none",
            "polling": "1 if it was looking for work, 0 if it had to be woken, -1 if nobody said",
        },
    ),
    "reuse": (
        "The conditions of graph reuse, as they were checked last.",
        {
            "eval": "the evaluation",
            "owner": "text: params, or the class of the input that has the condition",
            "condition": "text: what was asked",
            "had": "text: what the standing graph was built for",
            "needs": "text: what is needed",
            "ok": "1 if it holds",
        },
    ),
    "token": (
        "The text: the token at each position.",
        {
            "token": "its id",
            "piece": "text: what it says",
            "pos": "its position",
            "sampled": "1 if it was sampled, 0 if it was read",
            "p": "its probability when it was sampled",
            "eval": "the evaluation that it came from; -1 before the recording",
        },
    ),
    "candidate": (
        "The likeliest tokens of the last logits.",
        {
            "pos": "the position whose logits they are",
            "rank": "from 0 on, the likeliest first",
            "token": "its id",
            "piece": "text: what it says",
            "p": "its probability at temperature 1",
        },
    ),
    "eval": (
        "The evaluation that is going on: one ubatch, or one computed graph where there are no batches.",
        {
            "index": "which one, from 0 on",
            "graph": "the graph that is computed, or -1",
            "n_tokens": "tokens of the ubatch",
            "pos": "position of its first token",
            "reused": "1 if the standing graph served",
            "ns": "how long computing took",
        },
    ),
    "route": (
        "How the tokens of each layer were shared out over experts.",
        {
            "eval": "the evaluation",
            "layer": "the layer",
            "n_tokens": "how many tokens",
            "n_expert": "experts of the layer",
            "n_used": "experts of a token",
            "n_read": "experts that have a token",
            "nbytes": "bytes of all experts' matrices",
            "nbytes_read": "bytes of those that have a token",
        },
    ),
    "cache": (
        "The KV caches.",
        {
            "cache": "the cache",
            "n_layer": "how many layers",
            "n_cells": "how many cells",
            "type_k": "text: the type of the keys",
            "type_v": "text: the type of the values",
            "nbytes_k": "bytes of all keys",
            "nbytes_v": "bytes of all values",
            "n_swa": "how many positions a token sees; 0 for all",
        },
    ),
    "cell": (
        "The cells that are taken, once for each sequence that sees them.",
        {
            "cache": "the cache",
            "cell": "the cell",
            "pos": "the position of its token",
            "seq": "the sequence",
            "since": "the event from which it is taken without a break",
        },
    ),
    "kv": (
        "What was last written into the cells of each layer.",
        {
            "cache": "the cache",
            "layer": "which of the layers that this cache keeps; `cache_layer` says which of the model's it is",
            "which": "0 keys, 1 values",
            "cell": "the first cell",
            "n_cells": "how many",
            "nbytes": "bytes that were written",
        },
    ),
    "slot": (
        "The runs of cells that the newest tokens went to.",
        {
            "cache": "the cache",
            "cell": "the first cell of the run",
            "n_cells": "how many",
            "n_kv": "cells that attention looks at",
        },
    ),
}

TABLES: dict[str, tuple[str, dict[str, str]]] = {
    "ev": (
        "A row for each event.",
        {
            "kind": "index into `meta.kinds`",
            "node": "the tensor that is being worked on, or -1",
            "cause": "the event that it follows from, or -1",
            "row": "which event of its kind it is",
        },
    ),
    "tensor": (
        "A row for each tensor, as it is at the end.",
        {
            "name": "text: its name",
            "type": "text: its type",
            "op": "text: the op that computes it",
            "desc": "text: the op as it is shown",
            "ne": "shape, 4 a row",
            "nb": "strides in bytes, 4 a row",
            "nbytes": "its bytes",
            "view_src": "the tensor whose bytes it looks into, or -1",
            "view_offs": "from which byte on",
            "flags": "ggml's bits",
            "layer": "the layer that its name tells, or -1",
            "external": "1 if its memory is not planned: weights, caches, inputs that lie in an arena",
            "created": "the event that made it, or -1",
            "blck_size": "elements of a block of its type",
            "type_size": "bytes of a block of its type",
        },
    ),
    "edge": (
        "A row for each source of each tensor.",
        {"src": "what is read", "dst": "what reads it", "slot": "which source it is"},
    ),
    "graph": (
        "The graphs' tensors, in order.",
        {
            "ptr": "the nodes of graph g are `node[ptr[g]:ptr[g + 1]]`",
            "node": "tensors in execution order",
            "leaf_ptr": "the same of its leafs",
            "leaf": "leafs in their order",
            "created": "the event that made graph g, or -1",
            "part_of": "the graph of which g is one split, or -1",
        },
    ),
    "cache_layer": (
        "A row for each layer of each cache.",
        {
            "cache": "the cache",
            "layer": "the model's layer",
            "k": "the tensor of its keys",
            "v": "the tensor of its values",
            "n_head": "heads that ask",
            "n_head_kv": "heads of keys and values; 0 where no graph of the trace reads them",
        },
    ),
}
"""The static tables, which hold for the whole trace."""
