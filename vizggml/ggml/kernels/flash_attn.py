"""FLASH_ATTN_EXT: attention in one op, never holding more than a tile of the scores.

For every query row the softmax is kept online: `M` is the largest score so far, `S` the sum of exp(score - M), and
`VKQ` the sum of V rows weighted by them. A new largest score scales both sums down.

ggml has three ways, chosen by shape: tiles of queries by cells (prefill), rows one by one (few queries, or a quantized
cache), and rows with the cells split among threads (one query, a long cache).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vizggml.errors import VizggmlError
from vizggml.ggml import quants
from vizggml.ggml.kernels.params import ComputeParams
from vizggml.ggml.quants.floats import bf16_values
from vizggml.ggml.quants.legacy import sums_q8_1
from vizggml.ggml.quants.rounding import Floats
from vizggml.ggml.tensor import Tensor
from vizggml.ggml.types import CACHE_LINE_SIZE, TYPES

CACHE_LINE_SIZE_F32 = CACHE_LINE_SIZE // 4
SPLIT_KV_FROM = 512
"""Cells from which on a single query's cells are split among the threads."""

CELLS_AT_A_TIME = 256
"""Cells whose scores are held at once where ggml takes them singly."""

Rows = NDArray[np.intp]
Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Attention:
    """The operands of one FLASH_ATTN_EXT, and its parameters."""

    dst: Tensor
    q: Tensor
    k: Tensor
    v: Tensor
    mask: Tensor | None
    sinks: Floats | None
    scale: float
    softcap: float
    slopes: Floats

    @property
    def DK(self) -> int:  # noqa: N802
        return self.k.ne[0]

    @property
    def DV(self) -> int:  # noqa: N802
        return self.v.ne[0]

    @property
    def n_rows(self) -> int:
        return self.q.nrows

    def where(self, rows: Rows) -> tuple[Rows, Rows, Rows]:
        """Sequence, head and query of each row: rows run over queries first, then heads, then sequences."""
        n_q, n_head = self.q.ne[1], self.q.ne[2]
        return rows // (n_q * n_head), rows // n_q % n_head, rows % n_q

    def kv_plane(self, t: Tensor, i3: int, head: int) -> tuple[int, int]:
        """The plane of K or V that a query head reads: several heads may share one."""
        return i3 // (self.q.ne[3] // t.ne[3]), head // (self.q.ne[2] // t.ne[2])

    def scores(self, kq: Floats) -> Floats:
        """Scaled, and capped if asked."""
        kq = kq * np.float32(self.scale)
        return np.float32(self.softcap) * np.tanh(kq) if self.softcap else kq

    def mask_rows(self, i3: int, head: int, queries: slice | Rows, cells: slice) -> Floats | None:
        """The mask of some queries of a head, times the head's ALiBi slope."""
        if self.mask is None:
            return None
        a = self.mask.array()[i3 % self.mask.ne[3], head % self.mask.ne[2]]
        with np.errstate(invalid="ignore"):
            masked: Floats = self.slopes[head] * a[queries, cells].astype(np.float32)
        return masked


def attention(dst: Tensor) -> Attention:
    """Read the node. VizggmlError for sources it cannot have."""
    q, k, v, mask, sinks = (*dst.src, None, None, None)[:5]
    if q is None or k is None or v is None:
        raise VizggmlError(f"flash_attn_ext {dst.name!r}: needs Q, K and V")
    for t in (q, k, v):
        if t.nb[0] != t.type.type_size:
            raise VizggmlError(
                f"flash_attn_ext {dst.name!r}: rows of {t.name!r} are not contiguous "
                f"(nb[0] is {t.nb[0]}, must be {t.type.type_size})"
            )
    if q.type.name != "F32":
        raise VizggmlError(f"flash_attn_ext {dst.name!r}: Q must be F32, not {q.type}")
    if not k.type.vec_dot_type:
        raise VizggmlError(f"flash_attn_ext {dst.name!r}: type {k.type} of K has no dot product")
    for t in (k, v):
        if t.type.name not in quants.DECODERS:
            raise VizggmlError(
                f"flash_attn_ext {dst.name!r}: no kernel for {t.name!r} of type {t.type}; "
                f"there is one for {', '.join(n for n in quants.DECODERS if TYPES[n].vec_dot_type)}"
            )
    scale, max_bias, softcap = (dst.op_param_f32(i) for i in range(3))
    slopes = alibi_slopes(q.ne[2], max_bias)
    weights = None if sinks is None else sinks.array().reshape(-1).astype(np.float32)
    return Attention(dst, q, k, v, mask, weights, scale / softcap if softcap else scale, softcap, slopes)


def alibi_slopes(n_head: int, max_bias: float) -> Floats:
    """One factor of the mask for each head; 1 for all without `max_bias`."""
    if max_bias <= 0:
        return np.ones(n_head, np.float32)
    n_head_log2 = 1 << (n_head.bit_length() - 1)
    m0 = np.float32(2) ** np.float32(-max_bias / n_head_log2)
    m1 = np.float32(2) ** np.float32(-(max_bias / 2) / n_head_log2)
    return np.array(
        [m0 ** (h + 1) if h < n_head_log2 else m1 ** (2 * (h - n_head_log2) + 1) for h in range(n_head)], np.float32
    )


def forward_flash_attn_ext(params: ComputeParams, dst: Tensor) -> None:
    """`ggml_compute_forward_flash_attn_ext`, ggml/src/ggml-cpu/ops.cpp."""
    a = attention(dst)
    floats = a.k.type is a.v.type and a.k.type.name in ("F32", "F16")
    if floats and a.q.ne[1] == 1 and a.q.ne[3] == 1 and a.k.ne[1] >= SPLIT_KV_FROM:
        split_kv(params, a)
        return
    tiled = floats and a.q.ne[1] >= params.flash_tile[0]
    n_chunks = max(1, 4 * params.nth)
    size = -(-a.n_rows // n_chunks)
    if params.nth == 1 or -(-a.n_rows // size) < params.nth:
        size = -(-a.n_rows // params.nth)
    for chunk in range(params.ith, -(-a.n_rows // size), params.nth):
        first, last = chunk * size, min((chunk + 1) * size, a.n_rows)
        (tiles if tiled else one_by_one)(params, a, first, last)


def _wdata(params: ComputeParams, a: Attention, first: int, n: int) -> Floats:
    """`n` floats of the plan's scratch from float `first` on."""
    available = 0 if params.wdata is None else params.wdata.nbytes // 4
    if params.wdata is None or first + n > available:
        raise VizggmlError(
            f"flash_attn_ext {a.dst.name!r}: needs {4 * (first + n)} bytes of scratch, the plan has {4 * available}"
        )
    return params.wdata[4 * first : 4 * (first + n)].view(np.float32)


def _plane(t: Tensor, i3: int, i2: int, rows: slice) -> Floats:
    """Rows of a plane of K or V as float32 (cells, ne0)."""
    a = t.array()[i3, i2, rows]
    if t.type.name == "BF16":
        return bf16_values(a)
    return quants.decode(t.type, a) if t.type.is_quantized else a.astype(np.float32)


def tiles(params: ComputeParams, a: Attention, first: int, last: int) -> None:
    """`ggml_compute_forward_flash_attn_ext_tiled`, ggml/src/ggml-cpu/ops.cpp: everything in F32, from the scratch."""
    tile_q, tile_kv = params.flash_tile
    sizes = (tile_q * a.DK, tile_q * tile_kv, tile_q * tile_kv, tile_q * a.DV, tile_kv * a.DV, tile_kv * a.DK)
    per_thread = sum(sizes) + CACHE_LINE_SIZE_F32
    base = _wdata(params, a, params.ith * per_thread, sum(sizes))
    parts = np.split(base, np.cumsum(sizes)[:-1])
    row = first
    while row < last:
        i3, head, query = (int(i) for i in a.where(np.intp(row)))  # type: ignore[arg-type]
        n = min(tile_q, last - row, a.q.ne[1] - query)
        _tile(a, parts, (tile_q, tile_kv), i3, head, slice(query, query + n))
        row += n


def _tile(a: Attention, parts: list[Floats], tile: tuple[int, int], i3: int, head: int, queries: slice) -> None:
    """One tile of queries of one head against all cells, a tile of them at a time."""
    n, tile_kv = queries.stop - queries.start, tile[1]
    Q, KQ, mask32, VKQ = (p.reshape(tile[0], -1)[:n] for p in parts[:4])
    V32, K32 = parts[4].reshape(tile_kv, a.DV), parts[5].reshape(a.DK, tile_kv)
    Q[:] = a.q.array()[i3, head, queries]
    VKQ[:] = 0
    M, S = np.full(n, -np.inf, np.float32), np.zeros(n, np.float32)
    k_plane, v_plane = a.kv_plane(a.k, i3, head), a.kv_plane(a.v, i3, head)
    for first in range(0, a.k.ne[1], tile_kv):
        cells = slice(first, min(first + tile_kv, a.k.ne[1]))
        width = cells.stop - cells.start
        masked = a.mask_rows(i3, head, queries, cells)
        if masked is not None:
            mask32[:, :width] = masked
            if np.all(np.isneginf(masked)):
                continue
        K32[:, :width] = _plane(a.k, *k_plane, cells).T
        kq = KQ[:, :width]
        kq[:] = a.scores(Q @ K32[:, :width])
        if masked is not None:
            kq += mask32[:, :width]
        seen = np.asarray(kq.max(axis=1) > -np.inf)
        M_new = np.maximum(M, kq.max(axis=1))
        scale = np.where(seen, np.exp(np.where(seen, M - M_new, 0)), np.float32(1)).astype(np.float32)
        kq[:] = np.where(seen[:, None], np.exp(kq - np.where(seen, M_new, 0)[:, None]), np.float32(0))
        S = S * scale + kq.sum(axis=1)
        M = M_new
        V32[:width] = _plane(a.v, *v_plane, cells)
        VKQ *= scale[:, None]
        VKQ += kq @ V32[:width]
    S = _add_sinks(a, np.full(n, head), M, S, VKQ)[1]
    a.dst.array()[i3, queries, head] = VKQ * _inverse(S)[:, None]


def _inverse(S: Floats) -> Floats:
    return np.divide(np.float32(1), S, out=np.zeros_like(S), where=S != 0)


def _add_sinks(a: Attention, heads: Rows, M: Floats, S: Floats, VKQ: Floats) -> tuple[Floats, Floats]:
    """A sink is one more score of each head with no V row behind it."""
    if a.sinks is None:
        return M, S
    s = a.sinks[heads]
    M_new = np.maximum(M, s)
    scale = np.exp(M - M_new)
    VKQ *= scale[:, None]
    return M_new, S * scale + np.exp(s - M_new)


def one_by_one(params: ComputeParams, a: Attention, first: int, last: int) -> None:
    """`ggml_compute_forward_flash_attn_ext_f16_one_chunk`, ggml/src/ggml-cpu/ops.cpp.

    ggml takes one row after the other; here as many rows at a time as this thread's share of the scratch holds.
    """
    available = 0 if params.wdata is None else params.wdata.nbytes // 4
    per_row = a.DV + a.DK + CACHE_LINE_SIZE_F32
    share = available // params.nth
    step = max(1, share // per_row)
    for row in range(first, last, step):
        rows = np.arange(row, min(row + step, last))
        scratch = _wdata(params, a, params.ith * share, len(rows) * per_row).reshape(len(rows), per_row)
        VKQ = scratch[:, : a.DV]
        _, S = online_softmax(a, rows, (0, a.k.ne[1]), VKQ, scratch[:, a.DV :])
        i3, heads, queries = a.where(rows)
        a.dst.array()[i3, queries, heads] = VKQ * _inverse(S)[:, None]


def split_kv(params: ComputeParams, a: Attention) -> None:
    """`ggml_compute_forward_flash_attn_ext_f16` with its KV split, ggml/src/ggml-cpu/ops.cpp.

    Each thread takes a range of the cells for all heads and leaves [M, S, VKQ] of each head in the scratch; after the
    barrier the heads are shared out, and each head's parts are joined.
    """
    n_head, nth = a.q.ne[2], params.nth
    chunk = -(-a.k.ne[1] // nth)
    per_thread = a.DK + 2 * a.DV + CACHE_LINE_SIZE_F32
    partials = _wdata(params, a, nth * per_thread, n_head * nth * (2 + a.DV)).reshape(n_head, nth, 2 + a.DV)
    cells = (min(params.ith * chunk, a.k.ne[1]), min((params.ith + 1) * chunk, a.k.ne[1]))
    mine = partials[:, params.ith]
    Q_q = _wdata(params, a, params.ith * per_thread + 2 * a.DV, a.DK + CACHE_LINE_SIZE_F32)
    for head in range(n_head):
        VKQ = mine[head : head + 1, 2:]
        M, S = online_softmax(a, np.array([head]), cells, VKQ, Q_q.reshape(1, -1))
        mine[head, 0], mine[head, 1] = M[0], S[0]
    params.barrier()
    for head in range(params.ith, n_head, nth):
        _join_partials(a, head, partials[head])


def _join_partials(a: Attention, head: int, parts: Floats) -> None:
    """`ggml_flash_attn_ext_reduce_partials`, ggml/src/ggml-cpu/ops.cpp."""
    parts = parts[parts[:, 1] != 0]
    out = a.dst.array()[0, 0, head]
    out[:] = 0
    if len(parts) == 0:
        return
    weight = np.exp(parts[:, 0] - parts[:, 0].max())
    out[:] = weight @ parts[:, 2:] * np.float32(1 / (weight @ parts[:, 1]))


def online_softmax(a: Attention, rows: Rows, cells: Range, VKQ: Floats, Q_q: Floats) -> tuple[Floats, Floats]:
    """Attend from `rows` to `cells`, cell after cell: M and S of each row, and VKQ (rows, DV) filled in.

    Q goes through `Q_q` (rows, DK floats of scratch) in the type that K's dot product takes. With a V of F16 the sums
    are kept in F16, as ggml keeps them.
    """
    i3, heads, queries = a.where(rows)
    q, q_sums = _encoded_q(a, a.q.array()[i3, heads, queries], Q_q)
    planes = [a.kv_plane(a.v, *at) for at in zip(i3.tolist(), heads.tolist(), strict=True)]
    distinct = sorted(set(planes))
    plane = np.array([distinct.index(p) for p in planes])
    M, S = np.full(len(rows), -np.inf, np.float32), np.zeros(len(rows), np.float32)
    sums = np.zeros((len(rows), a.DV), np.float16 if a.v.type.name == "F16" else np.float32)
    for first in range(cells[0], cells[1], CELLS_AT_A_TIME):
        block = slice(first, min(first + CELLS_AT_A_TIME, cells[1]))
        V = np.stack([_plane(a.v, *p, block) for p in distinct])
        scores = _row_scores(a, (i3, heads, queries), block, q, q_sums)
        down, weight, M = _weights(scores, M)
        for i in range(scores.shape[1]):
            if np.any(down[:, i] != 1):
                sums = (sums.astype(np.float32) * down[:, i, None]).astype(sums.dtype)
            sums = (sums.astype(np.float32) + weight[:, i, None] * V[plane, i]).astype(sums.dtype)
            S = S * down[:, i] + weight[:, i]
    VKQ[:] = sums
    return _add_sinks(a, heads, M, S, VKQ) if cells[0] == 0 else (M, S)


def _weights(scores: Floats, M: Floats) -> tuple[Floats, Floats, Floats]:
    """What each cell does to each row: the factor for the sums so far, its own weight; and the new M."""
    M_at = np.maximum.accumulate(np.concatenate([M[:, None], scores], axis=1), axis=1)
    alive = ~np.isneginf(M_at[:, 1:])
    with np.errstate(invalid="ignore"):
        down = np.where(alive, np.exp(M_at[:, :-1] - M_at[:, 1:]), np.float32(1))
        weight = np.where(alive, np.exp(scores - M_at[:, 1:]), np.float32(0))
    return down, weight, M_at[:, -1]


def _encoded_q(a: Attention, q: Floats, Q_q: Floats) -> tuple[Floats, Floats | None]:
    """Q (rows, DK) as its encoding in the scratch says; and for a K of Q4_1 or Q5_1 the sums that meet K's minimums."""
    type = TYPES[a.k.type.vec_dot_type]
    n_bytes = type.row_size(a.DK)
    encoded = Q_q.view(np.uint8)[:, :n_bytes]
    encoded[:] = quants.from_float(type, q).reshape(len(q), n_bytes)
    blocks = np.ascontiguousarray(encoded).reshape(len(q), -1, type.type_size)
    return quants.decode(type, blocks), sums_q8_1(blocks) if type.name == "Q8_1" else None


def _row_scores(a: Attention, at: tuple[Rows, Rows, Rows], cells: slice, q: Floats, q_sums: Floats | None) -> Floats:
    """Scores (rows, cells), mask added: rows of one head go together."""
    i3, heads, queries = at
    scores = np.empty((len(heads), cells.stop - cells.start), np.float32)
    for s3, head in sorted(set(zip(i3.tolist(), heads.tolist(), strict=True))):
        own = (i3 == s3) & (heads == head)
        plane = a.kv_plane(a.k, s3, head)
        if q_sums is not None:
            K, mins = quants.scaled_and_mins(a.k.type, a.k.array()[plane][cells])
            kq = a.scores(q[own] @ K.T + q_sums[own] @ mins.T)
        else:
            kq = a.scores(q[own] @ _plane(a.k, *plane, cells).T)
        masked = a.mask_rows(s3, head, queries[own], cells)
        scores[own] = kq if masked is None else kq + masked
    return scores
