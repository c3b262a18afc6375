"""Tracks written down by hand, so that the pictures can be tested without an engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vizggml.timeline.columns import Columns, pack


@dataclass
class SyntheticTracks:
    meta: dict[str, Any]
    strings: list[str]
    columns: dict[str, NDArray[Any]]
    opening: int = 0
    start: int = 0

    def open_at(self, name: str, i: int) -> NDArray[Any]:
        a, b = self.columns[f"t.{name}.a"], self.columns[f"t.{name}.b"]
        return np.flatnonzero((a <= i) & (i < b))

    def to_bytes(self) -> bytes:
        return pack(Columns("tracks", 2, self.meta, self.strings, self.columns))

    def __len__(self) -> int:
        return int(self.meta["n_events"])


@dataclass
class Builder:
    """`tensor` adds a tensor (a leaf where it has no op), `tracks` closes the one graph with them."""

    strings: list[str] = field(default_factory=list)
    rows: list[tuple[str, str, str, tuple[int, ...], int]] = field(default_factory=list)
    edges: list[tuple[int, int, int]] = field(default_factory=list)
    nodes: list[int] = field(default_factory=list)

    known: dict[str, int] = field(default_factory=dict)

    def text(self, value: str) -> int:
        if value not in self.known:
            self.known[value] = len(self.strings)
            self.strings.append(value)
        return self.known[value]

    def leaf(self, name: str, ne: tuple[int, ...] = (8,), layer: int = -1, type: str = "F32") -> int:
        self.rows.append((name, type, "NONE", ne, layer))
        return len(self.rows) - 1

    def node(self, op: str, name: str, *src: int, ne: tuple[int, ...] = (8,), layer: int = -1) -> int:
        self.rows.append((name, "F32", op, ne, layer))
        tensor = len(self.rows) - 1
        self.edges += [(s, tensor, slot) for slot, s in enumerate(src)]
        self.nodes.append(tensor)
        return tensor

    def tracks(self) -> SyntheticTracks:
        n = len(self.rows)
        ne = np.ones((n, 4))
        for i, row in enumerate(self.rows):
            ne[i, : len(row[3])] = row[3]
        nodes = set(self.nodes)
        leafs = [i for i in range(n) if i not in nodes]
        i4, u4 = np.int32, np.uint32
        columns: dict[str, NDArray[Any]] = {
            "tensor.name": np.array([self.text(r[0]) for r in self.rows], i4),
            "tensor.type": np.array([self.text(r[1]) for r in self.rows], i4),
            "tensor.op": np.array([self.text(r[2]) for r in self.rows], i4),
            "tensor.desc": np.array([self.text(r[2]) for r in self.rows], i4),
            "tensor.ne": ne,
            "tensor.nb": ne * 4,
            "tensor.nbytes": ne.prod(axis=1) * 4,
            "tensor.view_src": np.full(n, -1, i4),
            "tensor.view_offs": np.zeros(n),
            "tensor.flags": np.zeros(n, i4),
            "tensor.layer": np.array([r[4] for r in self.rows], i4),
            "tensor.external": np.array([r[2] == "NONE" for r in self.rows], np.uint8),
            "tensor.created": np.zeros(n, i4),
            "edge.src": np.array([e[0] for e in self.edges], i4),
            "edge.dst": np.array([e[1] for e in self.edges], i4),
            "edge.slot": np.array([e[2] for e in self.edges], i4),
            "graph.ptr": np.array([0, len(self.nodes)], u4),
            "graph.node": np.array(self.nodes, i4),
            "graph.leaf_ptr": np.array([0, len(leafs)], u4),
            "graph.leaf": np.array(leafs, i4),
            "graph.created": np.zeros(1, i4),
        }
        meta: dict[str, Any] = {
            "n_events": 1,
            "kinds": [],
            "tracks": {},
            "reference": {"commit": "0c1e570", "version": "0.25.3"},
        }
        tracks = SyntheticTracks(meta, self.strings, columns)
        for track, fields in TRACKS.items():
            _hold(tracks, track, [], tuple(fields.split()))
        return tracks


TRACKS = {
    "block": "allocator chunk offset size owner",
    "chunk": "allocator chunk size",
    "node": "tensor status",
    "life": "plan tensor chunk offset size first last reuses freed_by allocator",
    "live": "plan position bytes bound",
}


def lesson() -> SyntheticTracks:
    """relu(W x + b), the first lesson."""
    b = Builder()
    W, x = b.leaf("W", (3, 2)), b.leaf("x", (3,))
    wx = b.node("MUL_MAT", "wx", W, x, ne=(2,))
    bias = b.leaf("b", (2,))
    total = b.node("ADD", "wx+b", wx, bias, ne=(2,))
    b.node("RELU", "out", total, ne=(2,))
    return b.tracks()


def llama(n_layers: int = 30, n_tokens: int = 32, n_embd: int = 576) -> SyntheticTracks:
    """A graph of the size and kind that llama.cpp builds without flash attention: 36 nodes a layer, 6 around them."""
    b = Builder()
    E = (n_embd, n_tokens)
    ids, pos, mask, out_ids = (
        b.leaf(n, (n_tokens,), type="I32") for n in ("inp_tokens", "inp_pos", "mask", "inp_out_ids")
    )
    cur = b.node("GET_ROWS", "inp_embd", b.leaf("token_embd.weight", (n_embd, 49152), type="Q4_1"), ids, ne=E)
    for il in range(n_layers):
        cur = _llama_layer(b, cur, il, pos, mask, out_ids if il == n_layers - 1 else -1, E)
    cur = b.node("RMS_NORM", "norm", cur, ne=E)
    cur = b.node("MUL", "result_norm", cur, b.leaf("output_norm.weight", (n_embd,)), ne=E)
    b.node("MUL_MAT", "result_output", b.leaf("output.weight", (n_embd, 49152), type="Q4_1"), cur, ne=(49152, n_tokens))
    return b.tracks()


def _llama_layer(b: Builder, inp: int, il: int, pos: int, mask: int, out_ids: int, E: tuple[int, int]) -> int:
    def w(name: str) -> int:
        return b.leaf(f"blk.{il}.{name}.weight", (E[0], E[0]), il, "Q4_1")

    def n(op: str, name: str, *src: int) -> int:
        return b.node(op, f"{name}-{il}", *src, ne=E, layer=il)

    cur = n("MUL", "attn_norm", n("RMS_NORM", "norm", inp), w("attn_norm"))
    q = n("ROPE", "Qcur", n("RESHAPE", "Qcur", n("MUL_MAT", "Qcur", w("attn_q"), cur)), pos)
    v = n("RESHAPE", "Vcur", n("MUL_MAT", "Vcur", w("attn_v"), cur))
    k = n("ROPE", "Kcur", n("RESHAPE", "Kcur", n("MUL_MAT", "Kcur", w("attn_k"), cur)), pos)
    k_cache, v_cache = b.leaf(f"cache_k_l{il}", E, il, "F16"), b.leaf(f"cache_v_l{il}", E, il, "F16")
    n("SET_ROWS", "k_write", k_cache, n("VIEW", "k_flat", k), ids := b.leaf("k_idxs", (E[1],), type="I64"))
    n("SET_ROWS", "v_write", n("RESHAPE", "v_rows", v_cache), n("TRANSPOSE", "v_flat", v), ids)
    keys = n("PERMUTE", "k", n("VIEW", "k_view", k_cache))
    values = n("PERMUTE", "v", n("VIEW", "v_view", v_cache))
    kq = n("SOFT_MAX", "kq_soft_max", n("MUL_MAT", "kq", keys, n("PERMUTE", "q", q)), mask)
    kqv = n("CONT", "kqv_out", n("PERMUTE", "kqv_merged", n("MUL_MAT", "kqv", values, kq)))
    cur = n("MUL_MAT", "attn_out", w("attn_output"), kqv)
    if out_ids >= 0:
        cur, inp = n("GET_ROWS", "attn_out_rows", cur, out_ids), n("GET_ROWS", "inp_rows", inp, out_ids)
    ffn_inp = n("ADD", "ffn_inp", cur, inp)
    normed = n("MUL", "ffn_norm", n("RMS_NORM", "norm", ffn_inp), w("ffn_norm"))
    gate, up = n("MUL_MAT", "ffn_gate", w("ffn_gate"), normed), n("MUL_MAT", "ffn_up", w("ffn_up"), normed)
    out = n("MUL_MAT", "ffn_out", w("ffn_down"), n("SWIGLU", "ffn_swiglu", gate, up))
    return n("ADD", "l_out", out, ffn_inp)


HOSTILE = (
    "<script>window.stranger=1</script>",
    '"><img src=x onerror="window.stranger=1">',
    "]]><svg onload='window.stranger=1'>",
    "</script><script>window.stranger=1</script>",
    "line\nbreak\r\x00\x1b[31m",
    "right\u202eto left\u2066\u200f",
    'quote" backslash\\ \\N \\" } ; subgraph x {',
    "&lt;b&gt; &#x3c;script&#x3e; ${1+1} {{7*7}} $x^2$",
)


def hostile() -> SyntheticTracks:
    """A graph whose tensors are called what a stranger who means harm would call them."""
    b = Builder()
    cur = b.leaf("x")
    for i, name in enumerate(HOSTILE):
        cur = b.node("ADD", name, cur, b.leaf(name + str(i)))
    return b.tracks()


ENDLESS = -1.0


def anonymous(tracks: SyntheticTracks) -> SyntheticTracks:
    """The same graph, as one whose tensors have no names to tell a layer by."""
    n = len(tracks.columns["tensor.name"])
    first = len(tracks.strings)
    tracks.strings.extend(f"t{i}" for i in range(n))
    tracks.columns["tensor.name"] = np.arange(first, first + n, dtype=np.int32)
    tracks.columns["tensor.layer"] = np.full(n, -1, np.int32)
    return tracks


def sliding(n_layers: int = 12, every: int = 6) -> SyntheticTracks:
    """Layers of five nodes; each `every`-th reads the mask of the whole context, the others that of a window."""
    b = Builder()
    whole, window = b.leaf("kq_mask"), b.leaf("kq_mask_swa")
    cur = b.node("GET_ROWS", "embd", b.leaf("w"), b.leaf("ids"))
    for il in range(n_layers):
        mask = whole if (il + 1) % every == 0 else window
        kq = b.node("MUL_MAT", f"kq-{il}", b.leaf(f"blk.{il}.attn_k.weight", layer=il), cur, layer=il)
        probs = b.node("SOFT_MAX", f"kq_soft_max-{il}", kq, mask, layer=il)
        attn = b.node("ADD", f"attn-{il}", probs, cur, layer=il)
        up = b.node("MUL_MAT", f"up-{il}", b.leaf(f"blk.{il}.up.weight", layer=il), attn, layer=il)
        cur = b.node("ADD", f"l_out-{il}", up, attn, layer=il)
    b.node("NORM", "norm", cur)
    return b.tracks()


def mixture(n_dense: int = 1, n_layers: int = 6) -> SyntheticTracks:
    """Layers of experts, the first of which are dense, as in DeepSeek."""
    b = Builder()
    cur = b.node("GET_ROWS", "embd", b.leaf("w"), b.leaf("ids"))
    for il in range(n_layers):

        def w(name: str, il: int = il) -> int:
            return b.leaf(f"blk.{il}.{name}.weight", layer=il)

        normed = b.node("RMS_NORM", f"norm-{il}", cur, layer=il)
        attn = b.node(
            "ADD", f"ffn_inp-{il}", b.node("MUL_MAT", f"attn-{il}", w("attn"), normed, layer=il), cur, layer=il
        )
        if il < n_dense:
            out = b.node("MUL_MAT", f"ffn_out-{il}", w("ffn_down"), attn, layer=il)
        else:
            logits = b.node("MUL_MAT", f"ffn_moe_logits-{il}", w("ffn_gate_inp"), attn, layer=il)
            chosen = b.node("ARGSORT", f"ffn_moe_argsort-{il}", logits, layer=il)
            out = b.node("MUL_MAT_ID", f"ffn_moe_out-{il}", w("ffn_down_exps"), attn, chosen, layer=il)
        cur = b.node("ADD", f"l_out-{il}", out, attn, layer=il)
    return b.tracks()


def teaching() -> SyntheticTracks:
    """relu(W x + b) with its teaching trace: three places of 8 bytes at 0, 8, 0, a peak of 16, in eight events.

    Tensors: W 0, x 1, wx 2, b 3, wx+b 4, out 5. Event 0 finds all free, 1 places wx, 2 places wx+b, 3 frees wx,
    4 places out in its stead, 5 frees wx+b, 6 and 7 do nothing.
    """
    tracks = lesson()
    n = 8
    free = -1
    blocks = [
        # a, b, offset, size, owner
        (0, 1, 0, ENDLESS, -1),
        (1, 2, 8, ENDLESS, free),
        (1, 3, 0, 8, 2),
        (2, n, 16, ENDLESS, free),
        (2, 5, 8, 8, 4),
        (3, 4, 0, 8, free),
        (4, n, 0, 8, 5),
        (5, n, 8, 8, free),
    ]  # fmt: skip
    chunks = [(0, 1, 0), (1, 2, 8), (2, n, 16)]
    lives = [(2, 0, 0, 1), (4, 8, 1, 2), (5, 0, 2, 2)]
    nodes = [(0, 6, 2, 3), (6, 7, 2, 5), (6, n, 4, 4)]
    _hold(tracks, "block", blocks, ("offset", "size", "owner"), allocator=0, chunk=0)
    _hold(tracks, "chunk", chunks, ("size",), allocator=0, chunk=0)
    _hold(tracks, "node", nodes, ("tensor", "status"))
    rows = [(5, n, tensor, offset, first, last) for tensor, offset, first, last in lives]
    _hold(
        tracks,
        "life",
        rows,
        ("tensor", "offset", "first", "last"),
        plan=0,
        chunk=0,
        size=8,
        reuses=-1,
        freed_by=-1,
        allocator=0,
    )
    live = [(1, n, 0, 8, 8), (2, n, 1, 16, 16), (4, n, 2, 16, 16)]
    _hold(tracks, "live", live, ("position", "bytes", "bound"), plan=0)
    tracks.meta["n_events"] = n
    tracks.columns["ev.kind"] = np.zeros(n, np.uint8)
    return tracks


def _hold(tracks: SyntheticTracks, track: str, rows: list[Any], fields: tuple[str, ...], **same: int) -> None:
    """Write an interval track from rows of (a, b, *fields) and the columns that are the same in every row."""
    table = np.array(sorted(rows), float).reshape(len(rows), 2 + len(fields))
    for i, name in enumerate(("a", "b", *fields)):
        whole = name not in ("offset", "size", "bytes", "bound")
        tracks.columns[f"t.{track}.{name}"] = table[:, i].astype(np.int32 if whole else float)
    for name, value in same.items():
        tracks.columns[f"t.{track}.{name}"] = np.full(len(rows), value, float if name == "size" else np.int32)
    tracks.columns[f"t.{track}.ck"] = np.array([0, len(rows)], np.uint32)
    tracks.columns[f"t.{track}.ckrow"] = np.arange(len(rows), dtype=np.int32)
    tracks.meta["tracks"][track] = {"stride": 1 << 20}
