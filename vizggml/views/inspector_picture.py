"""The inspector of a tensor as a still figure: its facts, its strides as a walk through memory, its values."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from vizggml.timeline.sentences import show_bytes, show_flags, tensor_name
from vizggml.timeline.tracks import Tracks
from vizggml.views import labels
from vizggml.views.details import tensor_at
from vizggml.views.inspector import MAX_CHUNKS, Jump, Link, TensorFacts, ValueFacts, facts_of
from vizggml.views.sheet import INNER, Pane, sheet, stacked
from vizggml.views.svg import Svg, text_of

LABEL, RIGHT = 110.0, 364.0
LINE = 20.0
COLUMNS, ROWS, SLABS = 4, 4, 2
CELL_WIDTH, CELL_HEIGHT, SLAB_GAP = 40.0, 22.0, 14.0
BAR, BAR_ROW, STEPS = 14.0, 36.0, 5
MAP_HEIGHT, BINS_HEIGHT, LEGEND = 110.0, 44.0, 52.0
FACT_CHARACTERS = 78
BELOW, ABOVE = "f0", "f3"
"""Blue below zero, orange above: the further from zero, the stronger."""


def inspector_picture(tracks: Tracks, step: int, *, theme: str = "light", tensor: int | None = None) -> Svg:
    """The figure of `tensor` at `step`; without one, of the tensor that the step's event is about."""
    t = tensor_at(tracks, step) if tensor is None else tensor
    if t < 0:
        words = [f'<text class="word soft" x="0" y="14">{text_of("No tensor at this step.")}</text>'], 22.0
        return sheet(tracks, step, "Tensor", words, theme=theme)
    facts = facts_of(tracks, t, step)
    lines, high = _walk(facts)
    if facts.values is not None:
        values, more = _values(facts, facts.values)
        lines += [f'<g transform="translate({RIGHT:g},0)">', *values, "</g>"]
        high = max(high, more)
    return sheet(tracks, step, f"Tensor {facts.name}", stacked(_facts(tracks, facts), (lines, high)), theme=theme)


# facts


def _facts(tracks: Tracks, facts: TensorFacts) -> Pane:
    out, y = [], 0.0
    for head, pairs in (
        ("Shape and place", _shape(tracks, facts)),
        ("View chain", _chain(tracks, facts)),
        ("Life", _life(tracks, facts)),
        ("Graph", _kin(tracks, facts)),
    ):
        out += [f'<text class="head soft" x="0" y="{y + 13:g}">{head}</text>']
        out.append(f'<path class="axis" d="M0 {y + 18.5:g}H{INNER:g}"/>')
        y += 20
        for label, value in pairs:
            shown = text_of(labels.short(labels.visible(value), FACT_CHARACTERS))
            out.append(f'<text class="word soft" x="0" y="{y + 14:g}">{label}</text>')
            out.append(f'<text class="name" x="{LABEL:g}" y="{y + 14:g}">{shown}</text>')
            y += LINE
        y += 10
    return out, y


def _shape(tracks: Tracks, facts: TensorFacts) -> list[tuple[str, str]]:
    op = facts.op if not facts.is_leaf else "none: a leaf"
    each = "a weight" if facts.blck_size > 1 else "an element"
    place = facts.place
    lies = f"{place.offset} of buffer {place.buffer} ({place.buft})" if place else "no memory at this step"
    return [
        ("name", facts.name),
        ("op", op),
        ("status", facts.status),
        ("type", f"{facts.type} ({facts.bits_per_weight:g} bits {each})"),
        ("ne", f"[{', '.join(map(str, facts.ne))}]"),
        ("nb", f"[{', '.join(map(str, facts.nb))}]"),
        ("bytes", show_bytes(facts.nbytes)),
        ("layout", facts.layout.words),
        ("plan offset", _planned(facts)),
        ("buffer offset", lies),
        ("flags", show_flags(int(tracks["tensor.flags"][facts.tensor]))),
    ]


def _planned(facts: TensorFacts) -> str:
    life = facts.life
    if life is None:
        return "not planned"
    offset = life.offset + (facts.flat.offs if facts.flat else 0)
    padded = f", padded to {show_bytes(life.padded)}" if life.padded > life.size else ""
    return f"{offset} of chunk {life.chunk % MAX_CHUNKS}, {show_bytes(life.size)}{padded}"


def _chain(tracks: Tracks, facts: TensorFacts) -> list[tuple[str, str]]:
    def one(link: Link) -> str:
        return tensor_name(tracks, link.tensor) + (f" + {link.offs} B" if link.offs else "")

    asked = " → ".join(one(link) for link in facts.asked) or "nothing: bytes of its own"
    return [("view of", asked), ("flattened to", one(facts.flat) if facts.flat else "nothing to flatten")]


def _life(tracks: Tracks, facts: TensorFacts) -> list[tuple[str, str]]:
    life = facts.life
    out = [("created", _event(facts.created_at)), ("computed", _event(facts.computed_at))]
    if life is None:
        return out
    freed = f"after {tensor_name(tracks, life.freed_by)}" if life.freed_by >= 0 else "by nobody: kept to the end"
    at = f"event {life.freed_at}, " if life.freed_at >= 0 and life.freed_by >= 0 else ""
    out.append(("gets memory", _event(life.assigned_at)))
    out.append(("freed", at + freed))
    out.append(("lives", f"position {life.first} to {life.last}"))
    if life.reuses >= 0 or life.before >= 0:
        how = "in place" if life.reuses >= 0 else "after its end"
        out.append(("bytes before", f"{tensor_name(tracks, max(life.reuses, life.before))}, {how}"))
    heirs = ", ".join(tensor_name(tracks, t) for t in life.heirs)
    if heirs:
        out.append(("bytes after", f"{heirs}, in place"))
    elif life.after >= 0:
        out.append(("bytes after", f"{tensor_name(tracks, life.after)}, after its end"))
    return out


def _event(i: int) -> str:
    return f"event {i}" if i >= 0 else "not in this trace"


def _kin(tracks: Tracks, facts: TensorFacts) -> list[tuple[str, str]]:
    def names(tensors: Iterable[int]) -> str:
        return ", ".join(tensor_name(tracks, t) for t in tensors)

    return [("reads", names(facts.sources) or "nothing"), ("read by", names(facts.consumers) or "nobody")]


# strides


def _walk(facts: TensorFacts) -> Pane:
    """The byte where each of the first elements begins, and below it the jump of each dimension."""
    out, y = _cells(facts)
    y += 26
    for jump in facts.walk:
        out += _bar(jump, facts, y)
        y += BAR_ROW
    if not facts.walk:
        out.append(f'<text class="word soft" x="0" y="{y:g}">one element: nothing to walk</text>')
        y += LINE
    return out, y


def shown_dimensions(ne: tuple[int, int, int, int]) -> tuple[int, int]:
    """The dimensions that go down, and that give the second matrix: the first two with more than one step."""
    more = [d for d in (1, 2, 3) if ne[d] > 1]
    return (more[0] if more else 1), (more[1] if len(more) > 1 else 2)


def _cells(facts: TensorFacts) -> Pane:
    ne, nb = facts.ne, facts.nb
    down, slab = shown_dimensions(ne)
    across, slabs = min(COLUMNS, -(-ne[0] // facts.blck_size)), min(SLABS, ne[slab])
    what = f"blocks of {facts.blck_size}" if facts.blck_size > 1 else "elements"
    beside = f", i{slab} beside" if slabs > 1 else ""
    title = f"Strides: where each of the first {what} begins"
    out = [f'<text class="head soft" x="0" y="13">{title}</text>']
    out.append(f'<text class="small soft" x="0" y="28">i0 to the right, i{down} down{beside}</text>')
    cells = []
    for s in range(slabs):
        for j in range(min(ROWS, ne[down])):
            for i in range(across):
                byte = i * nb[0] + j * nb[down] + (s * nb[slab] if slabs > 1 else 0)
                cells.append((byte, s * (COLUMNS * CELL_WIDTH + SLAB_GAP) + i * CELL_WIDTH, 36 + j * CELL_HEIGHT))
    cells.sort()
    for rank, (byte, x, y) in enumerate(cells):
        strength = 0.15 + 0.5 * rank / max(1, len(cells) - 1)
        out.append(
            f'<rect class="f0" fill-opacity="{strength:.2f}" x="{x:g}" y="{y:g}" width="{CELL_WIDTH - 1:g}" '
            f'height="{CELL_HEIGHT - 1:g}"/>'
            f'<text class="note mid" x="{x + CELL_WIDTH / 2:g}" y="{y + 14:g}">{byte}</text>'
        )
    way = "".join(f"{'L' if k else 'M'}{x + 5:g} {y + CELL_HEIGHT - 5:g}" for k, (_, x, y) in enumerate(cells))
    out.append(f'<path class="peak" stroke-opacity=".45" d="{way}"/>')
    return out, 36 + min(ROWS, ne[down]) * CELL_HEIGHT


def _bar(jump: Jump, facts: TensorFacts, y: float) -> list[str]:
    unit = "blocks" if jump.dim == 0 and facts.blck_size > 1 else "steps"
    gap = jump.nb - jump.inner
    skipped = f", {show_bytes(gap)} of each skipped" if gap > 0 else ", overlapping" if gap < 0 else ""
    words = f"nb[{jump.dim}] = {jump.nb}: {jump.n} {unit} of {show_bytes(jump.nb)}{skipped}"
    out = [f'<text class="word" x="0" y="{y:g}">{words}</text>']
    wide = 64.0
    for k in range(min(STEPS, jump.n)):
        filled = max(1.5, (wide - 1) * min(1.0, jump.inner / jump.nb if jump.nb else 1.0))
        out.append(
            f'<rect class="free" x="{k * wide:g}" y="{y + 5:g}" width="{wide - 1:g}" height="{BAR:g}"/>'
            f'<rect class="f0" fill-opacity=".5" x="{k * wide:g}" y="{y + 5:g}" width="{filled:.1f}" height="{BAR:g}"/>'
            f'<text class="small" x="{k * wide + 4:g}" y="{y + 15.5:g}">i{jump.dim} = {k}</text>'
        )
    if jump.n > STEPS:
        out.append(f'<text class="small soft" x="{STEPS * wide + 4:g}" y="{y + 15:g}">…</text>')
    return out


# values


def _values(facts: TensorFacts, values: ValueFacts) -> Pane:
    low, high, mean, rms, bad = values.stats
    of = f" of evaluation {values.evaluation}" if values.evaluation >= 0 else ""
    title = f"Values{of}, taken after event {values.event}"
    figures = (
        f"minimum {low:.4g}, maximum {high:.4g}, mean {mean:.4g},",
        f"rms {rms:.4g}, {bad:.0f} not finite",
    )
    out = [f'<text class="head soft" x="0" y="13">{title}</text>']
    out += [f'<text class="word" x="0" y="{32 + 16 * k}">{line}</text>' for k, line in enumerate(figures)]
    heat, high = _heat(facts, values)
    bins, more = _bins(values)
    lines, height = stacked((heat, high + 12), (bins, more))
    return [*out, '<g transform="translate(0,58)">', *lines, "</g>"], 58 + height


def _heat(facts: TensorFacts, values: ValueFacts) -> Pane:
    grid = values.grid
    rows, columns = grid.shape
    room = INNER - RIGHT - LEGEND
    wide, high = min(22.0, room / max(1, columns)), min(22.0, MAP_HEIGHT / max(1, rows))
    finite = np.isfinite(grid)
    limit = float(np.abs(grid[finite]).max()) if finite.any() else 0.0
    out = [f'<rect class="section" x="0" y="0" width="{columns * wide:g}" height="{rows * high:g}"/>']
    for (j, i), value in np.ndenumerate(grid):
        at = f'x="{i * wide:.2f}" y="{j * high:.2f}" width="{wide:.2f}" height="{high:.2f}"'
        if not np.isfinite(value):
            out.append(f'<rect class="f6" {at}/>')
        elif limit and round(abs(value) / limit, 2):
            out.append(f'<rect class="{BELOW if value < 0 else ABOVE}" fill-opacity="{abs(value) / limit:.2f}" {at}/>')
    n_rows = facts.ne[1] * facts.ne[2] * facts.ne[3]
    down = "rows" if facts.ne[2] * facts.ne[3] > 1 else "i1"
    mean = "" if grid.size == facts.ne[0] * n_rows else "; a cell is a mean"
    words = f"i0: 0 to {facts.ne[0] - 1}, to the right; {down}: 0 to {n_rows - 1}, down{mean}"
    below = rows * high + 13
    out.append(f'<text class="small soft" x="0" y="{below:g}">{words}</text>')
    x = room + 8
    for k, word in enumerate((f"{limit:.3g}", "0", f"-{limit:.3g}")):
        tone = (f'class="{ABOVE}"', 'class="section"', f'class="{BELOW}"')[k]
        out.append(f'<rect {tone} x="{x:g}" y="{k * 16:g}" width="10" height="15"/>')
        out.append(f'<text class="small soft" x="{x + 14:g}" y="{k * 16 + 11:g}">{word}</text>')
    return out, max(below + 4, 52.0)


def _bins(values: ValueFacts) -> Pane:
    room = INNER - RIGHT - LEGEND
    most, wide = max(1, *values.bins), room / len(values.bins)
    out = []
    for k, count in enumerate(values.bins):
        high = max(1.0, BINS_HEIGHT * count / most) if count else 0.0
        at = f'x="{k * wide:.1f}" y="{BINS_HEIGHT - high:.1f}" width="{wide - 1:.1f}" height="{high:.1f}"'
        out.append(f'<rect class="f0" {at}/>')
    out.append(f'<path class="axis" d="M0 {BINS_HEIGHT:g}H{room:g}"/>')
    low, high = values.stats[:2]
    out.append(f'<text class="small soft" x="0" y="{BINS_HEIGHT + 12:g}">{low:.4g}</text>')
    out.append(f'<text class="small soft end" x="{room:g}" y="{BINS_HEIGHT + 12:g}">{high:.4g}</text>')
    out.append(f'<text class="small soft" x="{room + 8:g}" y="9">{most:,} in the</text>')
    out.append(f'<text class="small soft" x="{room + 8:g}" y="21">highest bin</text>')
    return out, BINS_HEIGHT + 18
