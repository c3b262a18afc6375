"""One interval track while it is being folded: rows of "this had this value from event a to event b"."""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterable

import numpy as np
from numpy.typing import NDArray

MIN_STRIDE = 32
OPEN = -1


class Track:
    """Rows in the order in which they begin. At most one row is open for each key.

    `columns` gives each value's name and typecode: i for what fits 32 bits, d for bytes and times.
    """

    def __init__(self, name: str, columns: dict[str, str]) -> None:
        self.name = name
        self.begin = array("i")
        self.end = array("i")
        self.columns: dict[str, array[int] | array[float]] = {c: array(code) for c, code in columns.items()}
        self.open: dict[Hashable, int] = {}
        self._values = tuple(self.columns.values())

    def set(self, i: int, key: Hashable, *values: float) -> int:
        """From event `i` on, `key` has these values; the row. Nothing changes where they are what it has already."""
        row = self.open.get(key, OPEN)
        if row != OPEN:
            if all(column[row] == value for column, value in zip(self._values, values, strict=True)):
                return row
            if self.begin[row] == i:
                for column, value in zip(self._values, values, strict=True):
                    column[row] = value  # type: ignore[call-overload]
                return row
            self.end[row] = i
        row = self.open[key] = len(self.begin)
        self.begin.append(i)
        self.end.append(OPEN)
        for column, value in zip(self._values, values, strict=True):
            column.append(value)  # type: ignore[arg-type]
        return row

    def amend(self, row: int, column: str, value: float) -> None:
        """A fact of the row that only a later event tells."""
        self.columns[column][row] = value  # type: ignore[call-overload]

    def value(self, key: Hashable, column: str, default: float = -1) -> float:
        """What `key` has now, or `default`."""
        row = self.open.get(key, OPEN)
        return default if row == OPEN else self.columns[column][row]

    def clear(self, i: int, key: Hashable) -> None:
        """From event `i` on, `key` has nothing."""
        row = self.open.pop(key, OPEN)
        if row != OPEN:
            self.end[row] = i

    def clear_all(self, i: int, keys: Iterable[Hashable] | None = None) -> None:
        for key in list(self.open if keys is None else keys):
            self.clear(i, key)

    def finished(self, n_events: int) -> tuple[dict[str, NDArray[np.generic]], int]:
        """The track's columns at `n_events`, with its checkpoint index; and the index's stride."""
        a = np.array(self.begin, np.int32)
        b = np.array(self.end, np.int32)
        b[b == OPEN] = n_events
        holds = b > a
        out: dict[str, NDArray[np.generic]] = {"a": a[holds], "b": b[holds]}
        for name, column in self.columns.items():
            out[name] = np.array(column, np.int32 if column.typecode == "i" else np.float64)[holds]
        stride = checkpoint_stride(a[holds], b[holds])
        out["ck"], out["ckrow"] = checkpoints(a[holds], b[holds], n_events, stride)
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
