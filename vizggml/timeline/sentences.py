"""An event in one plain sentence, from the template of its kind; and a number, a size, a shape as text.

The player fills in the same templates (widgets/player/sentence.js): the two must give the same text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from vizggml.timeline.templates import SENTENCES, Template, by

if TYPE_CHECKING:
    from vizggml.timeline.tracks import Tracks

__all__ = ["SENTENCES", "Template", "by", "fields_in", "render"]

FIELD = re.compile(r"\{(cause\.)?(\w+)(?::(\w+))?\}")
FLAGS = ((1, "INPUT"), (2, "OUTPUT"), (4, "PARAM"), (8, "LOSS"), (16, "COMPUTE"))


def fields_in(template: Template, cause: str = "") -> set[tuple[str, str]]:
    """Every field that a template names, and whose: "" the event's own, else the kind of its cause."""
    if isinstance(template, str):
        return {(cause if of_cause else "", field) for of_cause, field, _ in FIELD.findall(template)}
    field = template["by"]
    found = set() if field == "cause" else {("", field)}
    for key, case in (("", template["else"]), *template["cases"].items()):
        found |= fields_in(case, key if field == "cause" and key else cause)
    return found


class Said:
    """One event of the tracks, to be read field by field."""

    def __init__(self, tracks: Tracks, i: int) -> None:
        self.tracks = tracks
        self.kind = tracks.meta["kinds"][int(tracks.columns["ev.kind"][i])]
        self.row = int(tracks.columns["ev.row"][i])
        self.types = dict(self.kind["fields"])
        self.cause_at = int(tracks.columns["ev.cause"][i])

    @property
    def cause(self) -> Said | None:
        return Said(self.tracks, self.cause_at) if self.cause_at >= 0 else None

    def key(self, field: str) -> Any:
        """What a choice by `field` goes by."""
        if field == "cause":
            cause = self.cause
            return cause.kind["name"] if cause is not None else ""
        return read(self.tracks, self.kind["name"], field, self.types[field], self.row)

    def show(self, field: str, as_type: str) -> str | None:
        """A field as text; None if there is none of that name."""
        if field not in self.types:
            return None
        value = read(self.tracks, self.kind["name"], field, self.types[field], self.row)
        return show_sizes(value) if as_type == "size" else show(self.tracks, self.types[field], value)


def render(tracks: Tracks, i: int) -> str:
    """The sentence of event `i`."""
    event = Said(tracks, i)
    template: Any = event.kind["sentence"]
    while not isinstance(template, str):
        template = choose(template, event.key(template["by"]))

    def fill(found: re.Match[str]) -> str:
        of = event.cause if found[1] else event
        text = of.show(found[2], found[3] or "") if of is not None else None
        return found[0] if text is None else text

    return FIELD.sub(fill, template)


def choose(template: Any, value: Any) -> Any:
    """The case of `value`; that of all numbers below 0, where it is one and has none of its own."""
    cases = template["cases"]
    key = as_key(value)
    if key not in cases and isinstance(value, int | float) and value < 0:
        key = "<0"
    return cases.get(key, template["else"])


def show_sizes(value: Any) -> str:
    """Numbers as sizes, without their signs."""
    return ", ".join(show_sizes(v) for v in value) if isinstance(value, list) else show_bytes(abs(value))


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
