"""One block of a quantized tensor as a still picture: its bytes by field, what they say, its codes and its error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vizggml.ggml.quants import Block
from vizggml.timeline.fold_blocks import numbers
from vizggml.timeline.sentences import tensor_name
from vizggml.timeline.tracks import Tracks
from vizggml.views import labels
from vizggml.views.sheet import INNER, MARGIN, Pane, sheet
from vizggml.views.still import WIDTH
from vizggml.views.svg import Svg, check_theme, document, text_of

ACROSS, ACROSS_WIDE = 32, 16
"""Cells in a row, and where a cell has more than `SHORT` characters."""
SHORT = 3
HIGH = 18.0
FIELD_COLOURS = (4, 0, 2, 3, 1, 5, 6)
"""Field k of a block has this one of the families' colours: neighbours differ."""
NEGATIVE, POSITIVE = "f0", "f4"
STRONGEST = 0.7

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class FieldFacts:
    name: str
    start: int
    stop: int
    says: str
    meaning: str


@dataclass(frozen=True)
class BlockFacts:
    """A block as the tracks or a reader have it; `original` is empty where it is not known."""

    title: str
    data: bytes
    fields: tuple[FieldFacts, ...]
    scales: Floats
    mins: Floats
    codes: NDArray[np.integer]
    values: Floats
    original: Floats

    @property
    def words(self) -> list[str]:
        """What is to be said of scales and error."""
        said = [_scale_words(self.scales, self.mins, len(self.codes))]
        if len(self.original):
            errors = (self.values - self.original).astype(np.float64)
            rms, size = (float(np.sqrt(np.mean(x.astype(np.float64) ** 2))) for x in (errors, self.original))
            share = f" ({100 * rms / size:.1f} % of the original's)" if size else ""
            most = float(np.abs(errors).max())
            said.append(f"Error beside the original: root mean square {rms:.4g}{share}, at most {most:.4g}.")
        return said


def _scale_words(scales: Floats, mins: Floats, n: int) -> str:
    def span(x: Floats) -> str:
        return f"{float(x.min()):.4g}" if len(x) == 1 else f"{float(x.min()):.4g} to {float(x.max()):.4g}"

    each = (
        "One scale for all" if len(scales) == 1 else f"{len(scales)} groups of {n // len(scales)}, each with its scale"
    )
    low = f", and {'a' if len(scales) == 1 else 'its'} minimum: {span(mins)}" if mins.any() else ""
    return f"{each}: {span(scales)}{low}."


def facts_of_block(block: Block, original: ArrayLike | None = None, title: str = "") -> BlockFacts:
    """VizggmlError if `original` has not as many elements as the block."""
    found = np.zeros(0, np.float32) if original is None else np.asarray(original, np.float32).ravel()
    if original is not None:
        block.errors(found)
    n, size = len(block.codes), len(block.bytes)
    fields = tuple(FieldFacts(f.name, f.start, f.stop, numbers(f), f.meaning) for f in block.fields)
    title = title or f"A block of {block.type}: {n} elements in {size} bytes, {8 * size / n:g} bits each"
    return BlockFacts(title, block.bytes, fields, block.scales, block.mins, block.codes, block.values, found)


def block_picture(block: Block, original: ArrayLike | None = None, *, theme: str = "auto", title: str = "") -> Svg:
    """An opened block as SVG: `block_picture(ggml.quants.open_block("Q4_K", bytes), floats)`.

    VizggmlError for an unknown theme, or an original of another length.
    """
    check_theme(theme)
    facts = facts_of_block(block, original, title)
    drawn, height = draw_block(facts)
    head = f'<text class="title" x="{MARGIN:g}" y="31">{text_of(facts.title)}</text>'
    body = [head, f'<g transform="translate({MARGIN:g},48)">', *drawn, "</g>"]
    return document(WIDTH, height + 64, body, theme=theme, title=facts.title)


def draw_block(facts: BlockFacts) -> Pane:
    """Bytes, fields, codes and words, one under the other."""
    out, y = [_head("Bytes, coloured by field", 10)], 18.0
    colours = [f"f{FIELD_COLOURS[k % len(FIELD_COLOURS)]}" for k in range(len(facts.fields))]
    of_byte = {i: colour for colour, f in zip(colours, facts.fields, strict=True) for i in range(f.start, f.stop)}
    cells = [(f"{byte:02x}", of_byte.get(i, "free"), 1.0) for i, byte in enumerate(facts.data)]
    out += _cells(cells, y, "name on")
    y += HIGH * _rows(cells) + 10
    for colour, f in zip(colours, facts.fields, strict=True):
        where = f"bytes {f.start}–{f.stop - 1}" if f.stop - f.start > 1 else f"byte {f.start}"
        out.append(f'<rect class="{colour}" x="0" y="{y + 4:g}" width="10" height="10" rx="2"/>')
        texts = [(18, "name", f.name, 10), (96, "small soft", where, 16), (186, "small soft", f.says, 86)]
        out += [
            f'<text class="{c}" x="{x}" y="{y + 13:g}">{text_of(labels.short(t, n))}</text>' for x, c, t, n in texts
        ]
        out.append(f'<text class="small" x="96" y="{y + 29:g}">{text_of(labels.short(f.meaning, 104))}</text>')
        y += HIGH + 16
    out.append(_head("Codes, coloured by the value that each stands for: below 0, above 0", y + 18))
    y += 26
    finite = np.where(np.isfinite(facts.values), facts.values, 0)
    limit = float(np.abs(finite).max(initial=0)) or 1.0
    shown = zip(facts.codes.tolist(), finite.tolist(), strict=True)
    cells = [(str(code), NEGATIVE if v < 0 else POSITIVE, STRONGEST * abs(v) / limit) for code, v in shown]
    out += _cells(cells, y, "name")
    y += HIGH * _rows(cells) + 6
    for said in facts.words:
        out.append(f'<text class="word" x="0" y="{y + 13:g}">{text_of(said)}</text>')
        y += HIGH
    return out, y + 4


def _head(text: str, y: float) -> str:
    return f'<text class="small soft" x="0" y="{y:g}">{text_of(text)}</text>'


def _cells(cells: Sequence[tuple[str, str, float]], y: float, ink: str) -> list[str]:
    out, across = [], _across(cells)
    cell = INNER / across
    for i, (text, colour, share) in enumerate(cells):
        left, top = cell * (i % across), y + HIGH * (i // across)
        opacity = f' fill-opacity="{share:.2f}"' if share < 1 else ""
        place = f'x="{left:.1f}" y="{top:g}" width="{cell - 1:.1f}" height="{HIGH - 1:g}"'
        out.append(f'<rect class="{colour}"{opacity} {place}/>')
        out.append(f'<text class="{ink} mid" x="{left + cell / 2:.1f}" y="{top + 13:g}">{text}</text>')
    return out


def _across(cells: Sequence[tuple[str, str, float]]) -> int:
    return ACROSS if max((len(text) for text, _, _ in cells), default=0) <= SHORT else ACROSS_WIDE


def _rows(cells: Sequence[tuple[str, str, float]]) -> int:
    return -(-len(cells) // _across(cells))


def block_at(tracks: Tracks, step: int) -> BlockFacts | None:
    """The block that an event up to `step` told of last, or the first of a leaf; None where the trace has none."""
    if "blk.tensor" not in tracks.columns:
        return None
    event = tracks["blk.event"]
    known = np.flatnonzero(event <= step)
    if not len(known):
        return None
    row = int(known[np.argmax(event[known])])

    def part(name: str, column: str) -> NDArray[Any]:
        ptr = tracks[f"blk.{name}.ptr"]
        found: NDArray[Any] = tracks[column][ptr[row] : ptr[row + 1]]
        return found

    names = zip(
        *(part("field", f"blkf.{c}").tolist() for c in ("name", "start", "stop", "says", "meaning")), strict=True
    )
    fields = tuple(
        FieldFacts(tracks.string(n), start, stop, tracks.string(s), tracks.string(m)) for n, start, stop, s, m in names
    )
    original = part("element", "blke.original")
    data = bytes(part("data", "blk.data.val"))
    codes = part("element", "blke.code")
    words = f"{tracks.string(int(tracks['blk.how'][row]))} as {tracks.string(int(tracks['blk.type'][row]))}"
    size = f"{len(codes)} elements in {len(data)} bytes"
    t = int(tracks["blk.tensor"][row])
    name = labels.visible(tensor_name(tracks, t)) if 0 <= t < len(tracks["tensor.name"]) else "rows of no tensor"
    return BlockFacts(
        f"{name}, block {int(tracks['blk.block'][row])}: {words}, {size}",
        data,
        fields,
        part("group", "blkg.scale"),
        part("group", "blkg.min"),
        codes,
        part("element", "blke.value"),
        original if not np.isnan(original).all() else np.zeros(0, np.float32),
    )


def block_pane_picture(tracks: Tracks, step: int, *, theme: str = "light") -> Svg:
    """The pane "block" for print."""
    facts = block_at(tracks, step)
    if facts is None:
        words = "No block is known at this step."
        return sheet(
            tracks, step, "Block", ([f'<text class="word soft" x="0" y="14">{words}</text>'], 22.0), theme=theme
        )
    return sheet(tracks, step, facts.title, draw_block(facts), theme=theme)
