"""The KV cache for print: cells from left to right, layers from top to bottom, K over V, coloured by sequence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vizggml.timeline.sentences import show_bytes
from vizggml.timeline.tracks import Tracks
from vizggml.views import sheet
from vizggml.views.details import DETAILS, field_at
from vizggml.views.sheet import INNER, Pane
from vizggml.views.svg import Svg, text_of

LEFT = 44.0
WIDE = INNER - LEFT
POSITIONS = 20.0
LAYER = 14.0
MOST = 150.0
FEWEST = 32
BETWEEN = 22.0
ROUND = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000)
CHARACTER = 7.0
SEQUENCES = (0, 3, 2, 1, 4)
"""Families whose colours sequences wear, as in the player."""


@dataclass(frozen=True)
class Cache:
    """A cache at one step. `seq` and `pos` are -1 where a cell is free; `slot` are runs of cells (first, how many) that
    the newest tokens went to, `pending` says for K and V which layers have not written them yet, and `left` marks cells
    that no later token sees, as they have left the window."""

    n_cells: int
    n_layer: int
    used: int
    seq: NDArray[np.int64]
    pos: NDArray[np.int64]
    slot: list[tuple[int, int]]
    pending: NDArray[np.bool_]
    left: NDArray[np.bool_]
    words: str


def caches_at(tracks: Tracks, step: int) -> list[Cache]:
    """The cache that the step is about, or both of a model whose layers see everything or a window."""
    made = tracks.track("cache")
    number = _number(tracks, step)
    windowed = np.flatnonzero((made["n_swa"][1:] > 0) & (made["n_swa"][:-1] <= 0))
    pairs = [made["cache"][r : r + 2].tolist() for r in windowed]
    numbers = next((pair for pair in pairs if number in pair), [number])
    found = [_cache(tracks, step, number, alone=len(numbers) == 1) for number in numbers]
    return [cache for cache in found if cache]


def cache_at(tracks: Tracks, step: int) -> Cache | None:
    """The cache that the step is about: its event's, else the one that took tokens last. None where there is none."""
    return _cache(tracks, step, _number(tracks, step), alone=True)


def _cache(tracks: Tracks, step: int, number: int, *, alone: bool) -> Cache | None:
    made = tracks.track("cache")
    found = np.flatnonzero(made["cache"] == number)
    cells = tracks.track("cell")
    mine = cells["cell"][cells["cache"] == number]
    if number < 0 or not (len(found) or len(mine)):
        return None
    used = int(mine.max(initial=-1)) + 1
    n_cells = int(made["n_cells"][found[0]]) if len(found) else max(FEWEST, used)
    n_layer = int(made["n_layer"][found[0]]) if len(found) else 1
    seq, pos = np.full(n_cells, -1), np.full(n_cells, -1)
    held = tracks.at("cell", step)
    rows = np.flatnonzero((held["cache"] == number) & (held["cell"] < n_cells))
    for r in rows[np.argsort(-held["seq"][rows], kind="stable")]:
        seq[held["cell"][r]], pos[held["cell"][r]] = held["seq"][r], held["pos"][r]
    slot, pending = _slot(tracks, step, number, n_layer)
    taken = int((seq >= 0).sum())
    nbytes = sum(int(made[f"nbytes_{side}"][found[0]]) for side in "kv") if len(found) else 0
    size = f", {show_bytes(round(nbytes / n_cells * taken))} of {show_bytes(nbytes)}" if nbytes else ""
    window = int(made["n_swa"][found[0]]) if len(found) else 0
    seen = f"the last {window:,} positions" if window > 0 else "every position"
    which = "" if alone else f"{_layers(tracks, number, n_layer)} {seen}: "
    words = f"{which}{taken:,} of {n_cells:,} cells taken{size}{_heads(tracks, number)}"
    return Cache(n_cells, n_layer, used, seq, pos, slot, pending, _left(seq, pos, slot, window), words)


def _left(
    seq: NDArray[np.int64], pos: NDArray[np.int64], slot: list[tuple[int, int]], window: int
) -> NDArray[np.bool_]:
    newest = next((c for first, n in slot[-1:] for c in reversed(range(first, first + n)) if seq[c] >= 0), -1)
    if window <= 0 or newest < 0:
        return np.zeros(len(seq), np.bool_)
    left: NDArray[np.bool_] = (seq == seq[newest]) & (pos[newest] - pos >= window)
    return left


def _layers(tracks: Tracks, number: int, n_layer: int) -> str:
    kept = tracks["cache_layer.layer"][tracks["cache_layer.cache"] == number].tolist() or list(range(n_layer))
    together = len(kept) > 2 and kept == list(range(kept[0], kept[-1] + 1))
    said = f"{kept[0]} to {kept[-1]}" if together else ", ".join(map(str, kept))
    return f"Layers {said} see" if len(kept) > 1 else f"Layer {said} sees"


def _number(tracks: Tracks, step: int) -> int:
    said = field_at(tracks, step, "cache")
    if said is not None:
        return int(said)
    slot = tracks.track("slot")
    at = int(np.searchsorted(slot["a"], step, side="right")) - 1
    if at >= 0:
        return int(slot["cache"][at])
    known = tracks["t.cache.cache"] if len(tracks["t.cache.cache"]) else tracks["t.cell.cache"]
    return int(known[-1]) if len(known) else -1


def _slot(tracks: Tracks, step: int, number: int, n_layer: int) -> tuple[list[tuple[int, int]], NDArray[np.bool_]]:
    held = tracks.at("slot", step)
    mine = np.flatnonzero(held["cache"] == number)
    slot = [(int(held["cell"][r]), int(held["n_cells"][r])) for r in mine]
    done = np.zeros((2, n_layer), np.int64)
    if slot:
        kv = tracks.track("kv")
        since = (kv["a"] >= held["a"][mine[0]]) & (kv["a"] <= step) & (kv["cache"] == number) & (kv["layer"] < n_layer)
        np.add.at(done, (kv["which"][since], kv["layer"][since]), kv["n_cells"][since])
    return slot, done < sum(n for _, n in slot)


def _heads(tracks: Tracks, number: int) -> str:
    mine = (tracks["cache_layer.cache"] == number) & (tracks["cache_layer.n_head"] > 0)
    asked, kept = (tracks[f"cache_layer.{name}"][mine].tolist() for name in ("n_head", "n_head_kv"))
    pairs = set(zip(asked, kept, strict=True))
    if len(pairs) != 1:
        return ""
    ((n_head, n_head_kv),) = pairs
    return f"; in each layer {n_head} query heads read {n_head_kv} KV heads"


def draw_cache(cache: Cache) -> Pane:
    """The cells that the trace uses, and under them the words."""
    shown = min(cache.n_cells, max(FEWEST, -(-cache.used // 8) * 8))
    room = WIDE / shown
    gap = 1.0 if room > 5 else 0.0
    high = min(MOST, cache.n_layer * LAYER)
    tops = {"pos": 0.0, "K": POSITIONS + 5, "V": POSITIONS + 10 + high}
    out = []
    for name, y in tops.items():
        h = POSITIONS if name == "pos" else high
        out.append(f'<text class="word soft end" x="{LEFT - 8:g}" y="{y + h / 2 + 4:g}">{name}</text>')
        out.append(f'<rect class="section" x="{LEFT:g}" y="{y:g}" width="{WIDE:g}" height="{h:g}"/>')
    for first, n, seq in _runs(cache.seq[:shown], room):
        colour = f"f{SEQUENCES[seq % len(SEQUENCES)]}"
        for name, y in tops.items():
            h, faint = (POSITIONS, "") if name == "pos" else (high, ' opacity="0.82"')
            x, w = LEFT + first * room, max(0.6, n * room - gap)
            out.append(f'<rect class="{colour}" x="{x:.2f}" y="{y:g}" width="{w:.2f}" height="{h:g}"{faint}/>')
    for first, n, _ in _runs(np.where(cache.left, 0, -1)[:shown], room):
        for y in (tops["K"], tops["V"]):
            box = f'x="{LEFT + first * room:.2f}" y="{y:g}" width="{n * room:.2f}" height="{high:g}"'
            out.append(f'<rect class="page" {box} opacity="0.62"/>')
    out += _positions(cache, shown, room)
    each = high / cache.n_layer
    if each >= 4:
        for y in (tops["K"], tops["V"]):
            lines = "".join(f"M{LEFT:g} {y + il * each:g}h{WIDE:g}" for il in range(1, cache.n_layer))
            out += [f'<path class="cut" fill="none" d="{lines}"/>'] if lines else []
    for side, y in enumerate((tops["K"], tops["V"])):
        for first, n in cache.slot:
            box = f'x="{LEFT + first * room:.2f}" width="{max(1.5, n * room):.2f}"'
            out += [
                f'<rect class="page" {box} y="{y + il * each:.2f}" height="{each:.2f}"/>'
                for il in np.flatnonzero(cache.pending[side]).tolist()
            ]
            out.append(f'<rect class="live" {box} y="{y:g}" height="{high:g}"/>')
    y = tops["V"] + high
    stride = next(s for s in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192) if s * room >= 50)
    for cell in range(0, shown, stride):
        out.append(f'<path class="axis" d="M{LEFT + cell * room:.1f} {y:g}v5"/>')
        out.append(f'<text class="small soft" x="{LEFT + cell * room + 2:.1f}" y="{y + 13:g}">{cell}</text>')
    out.append(f'<text class="small soft end" x="{LEFT - 8:g}" y="{y + 13:g}">cell</text>')
    return [*out, *_foot(cache, y + 34)], y + 44


def _runs(seq: NDArray[np.int64], room: float) -> list[tuple[int, int, int]]:
    """Taken cells: (first, how many, sequence), each alone where there is room to tell them apart."""
    runs: list[tuple[int, int, int]] = []
    for cell in np.flatnonzero(seq >= 0).tolist():
        last = runs[-1] if runs else None
        if room <= 5 and last and last[2] == seq[cell] and last[0] + last[1] == cell:
            runs[-1] = last[0], last[1] + 1, last[2]
        else:
            runs.append((cell, 1, int(seq[cell])))
    return runs


def _positions(cache: Cache, shown: int, room: float) -> list[str]:
    """Of each cell; where there is no room for that, at the beginning of each run and at round numbers."""
    pos, seq = cache.pos[:shown], cache.seq[:shown]
    need = CHARACTER * len(str(pos.max(initial=0)))
    taken = np.flatnonzero(seq >= 0).tolist()
    if room >= need:
        return [
            f'<text class="name on mid" x="{LEFT + (cell + 0.5) * room:.1f}" y="14">{pos[cell]}</text>'
            for cell in taken
        ]
    every = next((n for n in ROUND if n * room >= 1.6 * need), ROUND[-1])
    begins = np.append(True, (np.diff(pos) != 1) | (np.diff(seq) != 0))
    ends = [*np.flatnonzero(begins).tolist(), shown]
    out, free = [], -1.0
    for cell in taken:
        x = LEFT + cell * room + 2
        end = ends[int(np.searchsorted(ends, cell, side="right"))]
        if (begins[cell] or pos[cell] % every == 0) and x >= free and (end - cell) * room >= need:
            out.append(f'<text class="name on" x="{x:.1f}" y="14">{pos[cell]}</text>')
            free = x + need + 5
    return out


def _foot(cache: Cache, y: float) -> list[str]:
    x = 0.0
    out = []
    for seq in sorted(set(cache.seq[cache.seq >= 0].tolist()))[:6]:
        out.append(f'<rect class="f{SEQUENCES[seq % 5]}" x="{x:g}" y="{y - 9:g}" width="10" height="10" rx="2"/>')
        out.append(f'<text class="word soft" x="{x + 15:g}" y="{y:g}">sequence {seq}</text>')
        x += 96
    out.append(f'<text class="word" x="{x:g}" y="{y:g}">{text_of(cache.words)}</text>')
    return out


def kv_picture(tracks: Tracks, step: int, *, theme: str = "light") -> Svg:
    drawn = [draw_cache(cache) for cache in caches_at(tracks, step)]
    spaced = [(lines, high + BETWEEN) for lines, high in drawn[:-1]]
    empty = sheet.table(DETAILS["kv"].columns, [], empty="No cache stands at this step.")
    pane = sheet.stacked(*spaced, *drawn[-1:]) if drawn else empty
    return sheet.sheet(tracks, step, "KV cache", pane, theme=theme)
