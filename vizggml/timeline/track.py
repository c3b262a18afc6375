"""One interval track while it is being folded: rows of "this had this value from event a to event b"."""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterable

import numpy as np
from numpy.typing import NDArray

MIN_STRIDE = 32
OPEN = -1

Values = tuple[float, ...]


class Track:
    """Rows in the order in which they begin. At most one row is open for each key.

    `columns` gives each value's name and typecode: i for what fits 32 bits, d for bytes and times. New rows are kept as
    they come and sorted into the columns when the track is read.
    """

    def __init__(self, name: str, columns: dict[str, str]) -> None:
        self.name = name
        self.columns: dict[str, array[int] | array[float]] = {c: array(code) for c, code in columns.items()}
        self.index = {column: k for k, column in enumerate(columns)}
        self.begin = array("i")
        self.end = array("i")
        self.open: dict[Hashable, tuple[int, Values]] = {}
        self._new: list[Values] = []
        self._amended: list[tuple[int, str, float]] = []

    def set(self, i: int, key: Hashable, *values: float) -> int:
        """From event `i` on, `key` has these values; the row. Nothing changes where they are what it has already."""
        held = self.open.get(key)
        if held is not None:
            row, before = held
            if before == values:
                return row
            self.end[row] = i
        row = len(self.begin)
        self.open[key] = row, values
        self.begin.append(i)
        self.end.append(OPEN)
        self._new.append(values)
        return row

    def amend(self, row: int, column: str, value: float) -> None:
        """A fact of the row that only a later event tells."""
        self._amended.append((row, column, value))

    def value(self, key: Hashable, column: str, default: float = -1) -> float:
        """What was set for `key`, or `default`."""
        held = self.open.get(key)
        return default if held is None else held[1][self.index[column]]

    def clear(self, i: int, key: Hashable) -> None:
        """From event `i` on, `key` has nothing."""
        held = self.open.pop(key, None)
        if held is not None:
            self.end[held[0]] = i

    def clear_all(self, i: int, keys: Iterable[Hashable] | None = None) -> None:
        for key in list(self.open if keys is None else keys):
            self.clear(i, key)

    def _settle(self) -> None:
        for column, values in zip(self.columns.values(), zip(*self._new, strict=True), strict=False):
            column.extend(values)
        for row, name, value in self._amended:
            self.columns[name][row] = value  # type: ignore[call-overload]
        self._new.clear()
        self._amended.clear()

    def finished(self, n_events: int) -> tuple[dict[str, NDArray[np.generic]], int]:
        """The track's columns at `n_events`, with its checkpoint index; and the index's stride."""
        self._settle()
        a = np.array(self.begin, np.int32)
        b = np.array(self.end, np.int32)
        b[b == OPEN] = n_events
        holds = b > a
        a, b = a[holds], b[holds]
        out: dict[str, NDArray[np.generic]] = {"a": a, "b": b}
        for name, column in self.columns.items():
            out[name] = np.array(column, np.int32 if column.typecode == "i" else np.float64)[holds]
        stride = checkpoint_stride(a, b)
        out["ck"], out["ckrow"] = checkpoints(a, b, n_events, stride)
        return out, stride


def checkpoint_stride(a: NDArray[np.int32], b: NDArray[np.int32]) -> int:
    """So far apart that no more than about four rows are listed for each row there is."""
    total = int((b.astype(np.int64) - a).sum())
    return max(MIN_STRIDE, -(-total // max(1, 3 * len(a))))


def checkpoints(
    a: NDArray[np.int32], b: NDArray[np.int32], n_events: int, stride: int
) -> tuple[NDArray[np.uint32], NDArray[np.int32]]:
    """`ckrow[ck[j]:ck[j + 1]]` are the rows that hold at event `j * stride`, in their order."""
    n = n_events // stride + 1
    first = -(-a.astype(np.int64) // stride)
    last = -(-b.astype(np.int64) // stride)
    counts = np.maximum(np.minimum(last, n) - first, 0)
    rows = np.repeat(np.arange(len(a), dtype=np.int32), counts)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    points = np.repeat(first, counts) + within
    order = np.argsort(points, kind="stable")
    ck = np.zeros(n + 1, np.uint32)
    ck[1:] = np.cumsum(np.bincount(points, minlength=n))
    return ck, rows[order]
