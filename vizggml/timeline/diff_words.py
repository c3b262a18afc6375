"""A comparison in words: what was set differently, what that did, as sentences, tables and plain values."""

from __future__ import annotations

import html as markup
import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from vizggml.timeline.diff_plan import KINDS, Group, grouped
from vizggml.timeline.sentences import show_bytes
from vizggml.timeline.tracks import Tracks

if TYPE_CHECKING:
    from vizggml.timeline.diff import Diff, PairDiff
    from vizggml.timeline.diff_graph import Side

PARAMS = {
    "flash_attn": "flash attention",
    "n_ctx": "context",
    "n_batch": "batch",
    "n_ubatch": "ubatch",
    "n_seq_max": "sequences",
    "n_threads": "threads",
    "type_k": "type of K",
    "type_v": "type of V",
    "kv_unified": "unified cache",
    "n_gpu_layers": "layers on the device",
    "device_memory": "memory of the device",
    "textbook": "textbook products",
    "fast": "compiled kernels",
}
FOLLOWING = {"n_ctx_seq": "n_ctx", "n_outputs_max": "n_batch", "n_ctx_orig_yarn": "n_ctx"}
"""Parameters that are worked out from another: where that one differs, these say nothing more."""
SHOWN = 12
SAID_OPS = 6
LONGEST_NAMES = 4
NARROWEST = 16
"""Columns that a line is never broken within."""


def differing_params(a: Side, b: Side) -> list[tuple[str, str, str]]:
    """What was set differently, as (name, in A, in B): what the traces say of it, else what can be seen in them."""
    found = []
    models = [str(side.tracks.meta.get("model") or "") for side in (a, b)]
    if all(models) and models[0] != models[1]:
        found.append(("model", models[0], models[1]))
    said_a, said_b = ({**_seen(side), **_params(side.tracks)} for side in (a, b))
    names = [n for n in (*PARAMS, *sorted({*said_a, *said_b} - PARAMS.keys())) if n in said_a and n in said_b]
    differ = {n for n in names if said_a[n] != said_b[n]}
    found += [
        (PARAMS.get(n, n), _value(said_a[n]), _value(said_b[n]))
        for n in names
        if n in differ and FOLLOWING.get(n) not in differ
    ]
    return found


def _seen(side: Side) -> dict[str, Any]:
    """Parameters that show in what was made with them: in the operations, the cache, the graphs reserved for."""
    seen: dict[str, Any] = {}
    ops = set(side.op)
    if ops & {"FLASH_ATTN_EXT", "SOFT_MAX"}:
        seen["flash_attn"] = "FLASH_ATTN_EXT" in ops
    tokens = [side.n_tokens(graph) for graph in side.graphs if side.role(graph)[0] == "reserved"]
    if max(tokens, default=0):
        seen["n_ubatch"] = max(tokens)
    tracks = side.tracks
    if len(tracks.columns.get("k.CacheCreated.n_cells", ())) == 1:
        seen["n_ctx"] = int(tracks["k.CacheCreated.n_cells"][0])
        for name in ("type_k", "type_v"):
            seen[name] = tracks.string(int(tracks[f"k.CacheCreated.{name}"][0]))
    return seen


def _params(tracks: Tracks) -> dict[str, Any]:
    said = tracks.meta.get("params")
    return said if isinstance(said, dict) else {}


def _value(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "on", False: "off", None: "if installed"}[value]
    return f"{value:,}" if isinstance(value, int) else str(value)


def summary(found: Diff) -> list[str]:
    """The sentences, the most telling first."""
    if not found:
        return ["The two traces are alike: same graphs, same plan of memory, same text."]
    main = found.main
    figures = (_memory(main), _fate(main), _buffers(found)) if main is not None else ()
    return [*headline(found), *(line for line in figures if line)]


def headline(found: Diff) -> list[str]:
    """What was set differently and what it did; then what no figure says: operations, graphs, the text."""
    if not found:
        return summary(found)
    others = (_ops(found.main) if found.main is not None else "", _alone(found), _text(found))
    return [_headline(found), *(line for line in others if line)]


def _headline(found: Diff) -> str:
    set_to = ", ".join(f"{name} {a} -> {b}" for name, a, b in found.params)
    main = found.main
    did = []
    if main is not None:
        a, b = main.figures_a, main.figures_b
        if a.nodes != b.nodes:
            n = abs(b.nodes - a.nodes)
            did.append(f"{n:,} node{'s' if n != 1 else ''} {'fewer' if b.nodes < a.nodes else 'more'}")
        if a.peak != b.peak and min(a.peak, b.peak) >= 0:
            did.append(f"peak {bytes_pair(a.peak, b.peak)}")
        elif did and a.peak > 0:
            did.append(f"the same peak, {show_bytes(a.peak)}")
    if found.whole_a.kv != found.whole_b.kv:
        did.append(f"KV cache {bytes_pair(found.whole_a.kv, found.whole_b.kv)}")
    effect = ", ".join(did) or ("the same nodes and the same peak" if main is not None else "no graph to compare")
    return f"{set_to}: {effect}" if set_to else effect[0].upper() + effect[1:]


def _ops(pair: PairDiff) -> str:
    gone, new = (
        Counter(change.op or "NONE" for change in pair.changes if kind in change.kinds) for kind in ("removed", "added")
    )
    parts = [f"{word} {_counted(ops)}" for word, ops in (("loses", gone - new), ("gains", new - gone)) if ops]
    return f"The graph {pair.role} {' and '.join(parts)}." if parts else ""


def _counted(ops: Counter[str]) -> str:
    said = [f"{n:,} {('leafs' if n > 1 else 'leaf') if op == 'NONE' else op}" for op, n in ops.most_common(SAID_OPS)]
    more = len(ops) - SAID_OPS
    return ", ".join(said) + (f" and {more} more operation{'s' if more > 1 else ''}" if more > 0 else "")


def _memory(pair: PairDiff) -> str:
    a, b = pair.figures_a, pair.figures_b
    if min(a.bound, b.bound) < 0:
        return ""
    parts = []
    if a.bound != b.bound:
        parts.append(f"lower bound {bytes_pair(a.bound, b.bound)}")
    if a.no_reuse != b.no_reuse:
        parts.append(f"without sharing places {bytes_pair(a.no_reuse, b.no_reuse)}")
    if a.scratch != b.scratch and min(a.scratch, b.scratch) >= 0:
        parts.append(f"scratch {bytes_pair(a.scratch, b.scratch)}")
    if a.splits != b.splits:
        parts.append(f"splits {a.splits} -> {b.splits}")
    return f"Its plan: {', '.join(parts)}." if parts else ""


def _fate(pair: PairDiff) -> str:
    kinds = [k for k in KINDS if k not in ("added", "removed")]
    parts = [f"{pair.count(kind):,} {_words(kind)}" for kind in kinds if pair.count(kind)]
    return f"Of the tensors that both have: {', '.join(parts)}." if parts else ""


def _words(kind: str) -> str:
    return {"longer": "live longer", "shorter": "live shorter"}.get(kind, kind)


def _buffers(found: Diff) -> str:
    """Where they are not what the plan of the headline takes."""
    a, b = found.whole_a.compute, found.whole_b.compute
    main = found.main
    if main is not None and (a, b) == (main.figures_a.peak, main.figures_b.peak):
        return ""
    return f"Compute buffers: {bytes_pair(a, b)}." if a != b and min(a, b) > 0 else ""


def _alone(found: Diff) -> str:
    sides = zip(found.labels, (found.only_a, found.only_b), strict=True)
    parts = []
    for label, roles in sides:
        counted = Counter(roles)
        named = ", ".join(f"{n} x {role}" if n > 1 else role for role, n in counted.most_common(LONGEST_NAMES))
        if roles:
            more = ", ..." if len(counted) > LONGEST_NAMES else ""
            parts.append(f"only in {label}: {len(roles)} graph{'s' if len(roles) > 1 else ''} ({named}{more})")
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}." if text else ""


def _text(found: Diff) -> str:
    a, b = (dict(whole.sampled) for whole in (found.whole_a, found.whole_b))
    both = sorted(a.keys() & b.keys())
    for pos in both:
        if a[pos] != b[pos]:
            return (
                f"The text parts at position {pos}: {a[pos]!r} in {found.labels[0]}, {b[pos]!r} in {found.labels[1]}."
            )
    if not both:
        return ""
    if len(a) == len(b) == len(both):
        return "The text is the same."
    return f"The text is the same where both have it, at {len(both):,} position{'s' if len(both) > 1 else ''}."


def bytes_pair(a: int, b: int) -> str:
    """`166.4 -> 98.3 MiB`: the unit once where it is the same."""
    shown_a, shown_b = show_bytes(a), show_bytes(b)
    if shown_a.split()[-1] == shown_b.split()[-1]:
        shown_a = shown_a.rsplit(" ", 1)[0]
    return f"{shown_a} -> {shown_b}"


FIGURES = (
    ("nodes", "nodes", False),
    ("leafs", "leafs", False),
    ("peak", "peak", True),
    ("buffer", "compute buffer", True),
    ("bound", "lower bound", True),
    ("no_reuse", "without reuse", True),
    ("scratch", "scratch", True),
    ("splits", "splits", False),
)


def figure_rows(found: Diff, pair: PairDiff | None) -> list[tuple[str, str, str, str]]:
    """(figure, in A, in B, difference) of a pair of graphs, and of the traces as wholes, in words."""
    rows = []
    if pair is not None:
        for name, title, is_bytes in FIGURES:
            a, b = getattr(pair.figures_a, name), getattr(pair.figures_b, name)
            if a >= 0 or b >= 0:
                rows.append((title, *_shown(a, b, is_bytes)))
    rows.append(("KV cache", *_shown(found.whole_a.kv, found.whole_b.kv, True)))
    rows.append(("evaluations", *_shown(found.whole_a.evaluations, found.whole_b.evaluations, False)))
    rows.append(("events", *_shown(found.whole_a.events, found.whole_b.events, False)))
    return rows


def _shown(a: int, b: int, is_bytes: bool) -> tuple[str, str, str]:
    def one(n: int) -> str:
        return "unknown" if n < 0 else show_bytes(n) if is_bytes else f"{n:,}"

    if a == b or min(a, b) < 0:
        return one(a), one(b), "" if min(a, b) < 0 else "same"
    sign = "-" if b < a else "+"
    share = f" ({sign}{100 * abs(b - a) / a:.0f} %)" if is_bytes and a else ""
    return one(a), one(b), sign + one(abs(b - a)) + share


WORDS = {
    "lower bound": "the most bytes that live at once, no plan takes less",
    "without reuse": "what it would take if no two tensors shared memory",
    "scratch": "memory for intermediate results, beside the tensors",
}
"""What the figures mean that do not say so themselves."""


def text(found: Diff, limit: int | None = SHOWN, more: str = ".main.changes", width: int | None = None) -> str:
    """The comparison as a person reads it in a terminal: sentences, figures, and `limit` of the weightiest changes.

    None is all of them; `more` says where the others are found. Lines are as long as they come (`width` None), or
    broken for a terminal of so many columns.
    """
    main = found.main
    lines = [part for line in summary(found) for part in _broken(plain(line), width)]
    if not found:
        return lines[0]
    figures = figure_rows(found, main)
    lines += ["", *_columns([("", *found.labels, "difference"), *_with_bytes(figures, main)])]
    words = [f"{title}: {WORDS[title]}" for title, *_ in figures if title in WORDS]
    told = [line for meaning in words for line in _broken(meaning, width)]
    lines += ["", *told] if told else []
    if main is not None and main.changes:
        groups = grouped(main.changes)
        rows = [("what", "tensor", "layer", "op", "bytes each", "how"), *map(_row, groups[:limit])]
        lines += ["", f"{main.role}:", *_within(rows, width)]
        if limit is not None and len(groups) > limit:
            lines.append(f"... {len(groups) - limit:,} more: {more}")
    return "\n".join(lines)


def _with_bytes(rows: Sequence[tuple[str, ...]], pair: PairDiff | None) -> list[tuple[str, ...]]:
    """The peak once more, to the byte."""
    if pair is None or min(pair.figures_a.peak, pair.figures_b.peak) < 0:
        return list(rows)
    a, b = pair.figures_a.peak, pair.figures_b.peak
    exact = ("  in bytes", f"{a:,}", f"{b:,}", f"{b - a:+,}" if a != b else "same")
    at = [title for title, *_ in rows].index("peak") + 1
    return [*rows[:at], exact, *rows[at:]]


def _row(group: Group) -> tuple[str, ...]:
    first, n = group.first, len(group.members)
    layers = f"{group.layers} ({n})" if n > 1 else group.layers
    each = f"{'-' if group.each < 0 else '+'}{show_bytes(abs(group.each))}" if group.each else ""
    return ", ".join(map(_words, first.kinds)), group.name or "unnamed", layers, first.op, each, group.details


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    safe = [[plain(cell) for cell in row] for row in rows]
    widths = [max(len(row[k]) for row in safe) for k in range(len(safe[0]))]
    return ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in safe]


def _within(rows: Sequence[Sequence[str]], width: int | None) -> list[str]:
    """The rows of changes; where they are wider than `width`, each says in a second line what its last column has."""
    lines = _columns(rows)
    if width is None or max(map(len, lines)) <= width:
        return lines
    kinds = [row[0].split(", ") for row in rows]
    below = [", ".join(kind[1:]) + ("; " if kind[1:] else "") + row[-1] for kind, row in zip(kinds, rows, strict=True)]
    short = _columns([(kind[0], *row[1:-1]) for kind, row in zip(kinds, rows, strict=True)])
    head, *firsts = short
    pairs = zip(firsts, below[1:], strict=True)
    return [head, *(line for first, how in pairs for line in (first, *_broken("    " + plain(how), width, "    ")))]


def _broken(line: str, width: int | None, indent: str = "  ") -> list[str]:
    return [line] if width is None else textwrap.wrap(line, max(width, NARROWEST), subsequent_indent=indent)


def plain(text: str) -> str:
    """Text on one line: what cannot be printed becomes an escape."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "replace").decode("ascii") for c in text)


def html(found: Diff) -> str:
    """The same for a notebook."""
    first, *others = (markup.escape(plain(line)) for line in summary(found))
    labels = [markup.escape(plain(label)) for label in found.labels]
    head = "".join(
        f"<th style='text-align:{'left' if k == 0 else 'right'}'>{c}</th>"
        for k, c in enumerate(("", *labels, "difference"))
    )
    rows = "".join(
        "<tr>"
        + f"<td style='text-align:left'>{title}</td>"
        + "".join(f"<td>{markup.escape(c)}</td>" for c in cells)
        + "</tr>"
        for title, *cells in figure_rows(found, found.main)
    )
    said = "".join(f"<li>{line}</li>" for line in others)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    return f"<p><strong>{first}</strong></p><ul>{said}</ul>{table}"


def answer(found: Diff) -> dict[str, Any]:
    """The comparison as plain values: what `vizggml diff --json` prints."""

    def pair(p: PairDiff) -> dict[str, Any]:
        return {
            "role": p.role,
            "graphs": [p.a, p.b],
            "tokens": list(p.n_tokens),
            "a": asdict(p.figures_a),
            "b": asdict(p.figures_b),
            "counts": {kind: p.count(kind) for kind in KINDS},
            "changes": [{**asdict(c), "kinds": list(c.kinds)} for c in p.changes],
        }

    return {
        "labels": list(found.labels),
        "summary": summary(found),
        "params": {name: [a, b] for name, a, b in found.params},
        "a": asdict(found.whole_a),
        "b": asdict(found.whole_b),
        "main": found.pairs.index(found.main) if found.main is not None else None,
        "pairs": [pair(p) for p in found.pairs],
        "only": [found.only_a, found.only_b],
        "events": {"paired": len(found.events.a)},
    }
