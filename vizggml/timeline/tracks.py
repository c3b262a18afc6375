"""Tracks: what the player, the figures, the exports and the diff read. A seek costs O(log n + what is visible)."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vizggml.timeline.columns import Column, Columns, pack, unpack, write_file
from vizggml.timeline.schema import KIND_INDEX, SCHEMA


class Tracks:
    """A folded trace: the events' columns, the static tables and the interval tracks, by name.

    `meta` says how many events there are, the reference, the model, the kinds and their sentences, and each track's
    stride. Text is an index into `strings`, -1 for none.
    """

    def __init__(self, meta: dict[str, Any], strings: list[str], columns: dict[str, Column]) -> None:
        self.meta = meta
        self.strings = strings
        self.columns = columns

    @property
    def n_events(self) -> int:
        """How many events the trace had when it was folded."""
        return int(self.meta["n_events"])

    def __len__(self) -> int:
        return self.n_events

    def __repr__(self) -> str:
        return f"<Tracks of {self.n_events} events>"

    def __getitem__(self, column: str) -> Column:
        return self.columns[column]

    def string(self, index: int) -> str:
        """The text at `index` of the string table; -1 is the empty one."""
        return self.strings[index] if index >= 0 else ""

    @property
    def opening(self) -> int:
        """The first event after the snapshot of what stood: where a reader begins. 0 when nothing stood."""
        ends = np.flatnonzero(self.columns["ev.kind"] == KIND_INDEX["SnapshotEnd"])
        if len(ends) == 0 or ends[0] <= 1:
            return 0
        return min(int(ends[0]) + 1, max(0, self.n_events - 1))

    @property
    def start(self) -> int:
        """Where a player opens: `opening`; in a recorded run of a model at the first place looked for in a plan.

        Where the run planned nothing, at its first decode.
        """
        kinds, opening = self.columns["ev.kind"], self.opening
        decodes = np.flatnonzero(kinds[opening:] == KIND_INDEX["DecodeBegin"])
        if not len(decodes):
            return opening
        searches = np.flatnonzero(kinds[opening:] == KIND_INDEX["SearchBegin"])
        return opening + int(searches[0] if len(searches) and searches[0] < decodes[0] else decodes[0])

    @property
    def names(self) -> list[str]:
        """The interval tracks there are."""
        return list(self.meta["tracks"])

    def track(self, name: str) -> dict[str, Column]:
        """A track's columns by their short names: a, b and its values."""
        prefix = f"t.{name}."
        return {c[len(prefix) :]: v for c, v in self.columns.items() if c.startswith(prefix)}

    def open_at(self, name: str, i: int) -> NDArray[np.int64]:
        """The rows of a track that hold at event `i`, in order."""
        a, b = self.columns[f"t.{name}.a"], self.columns[f"t.{name}.b"]
        stride = int(self.meta["tracks"][name]["stride"])
        ck, ckrow = self.columns[f"t.{name}.ck"], self.columns[f"t.{name}.ckrow"]
        j = i // stride
        standing = ckrow[ck[j] : ck[j + 1]].astype(np.int64)
        first, last = np.searchsorted(a, [j * stride, i], side="right")
        begun = np.arange(first, last)
        return np.concatenate([standing[b[standing] > i], begun[b[begun] > i]])

    def at(self, name: str, i: int) -> dict[str, Column]:
        """The values of the rows of a track that hold at event `i`, by column."""
        rows = self.open_at(name, i)
        skipped = ("ck", "ckrow")
        return {c: v[rows] for c, v in self.track(name).items() if c not in skipped}

    def field(self, kind: str, field: str, row: int) -> Any:
        """One field of the event in `row` of its kind: a number, a str, or a list of them."""
        name = f"k.{kind}.{field}"
        if f"{name}.ptr" in self.columns:
            ptr = self.columns[f"{name}.ptr"]
            return self.columns[f"{name}.val"][ptr[row] : ptr[row + 1]].tolist()
        value = self.columns[name][row]
        return value.tolist()

    def to_bytes(self) -> bytes:
        """The tracks as one container, as the player takes them."""
        return pack(Columns("tracks", SCHEMA, self.meta, self.strings, self.columns))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tracks as one container, whole or not at all."""
        write_file(path, Columns("tracks", SCHEMA, self.meta, self.strings, self.columns))

    @classmethod
    def from_bytes(cls, data: bytes | memoryview, name: str = "tracks") -> Tracks:
        """The inverse of `to_bytes`. VizggmlError if they are no tracks."""
        content = unpack(data, "tracks", SCHEMA, name)
        return cls(content.meta, content.strings, content.columns)
