"""The blocks of quantized tensors that a trace holds, opened: a table, not a track, for bytes do not change.

They come from two sides: encoding and decoding tells of a tensor's first blocks in events, and a recording with values
keeps the first blocks of each quantized leaf that a node reads (`q.*`, in the trace). Columns of the table:

    blk.tensor, .block, .event (what told of it, -1 for a leaf), .type, .how (encoded, decoded, read)   one row a block
    blk.data.ptr/val                                     its bytes
    blk.field.ptr -> blkf.name, .start, .stop, .says, .meaning      its fields, from byte to byte
    blk.group.ptr -> blkg.scale, blkg.min                the elements that share a scale are one group
    blk.element.ptr -> blke.code, .value, .original, .importance    NaN where there is none
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from vizggml.errors import VizggmlError
from vizggml.ggml.quants import Field, open_block
from vizggml.ggml.types import TYPES
from vizggml.timeline.columns import Column

if TYPE_CHECKING:
    from vizggml.timeline.fold_graph import Handler
    from vizggml.timeline.trace import Trace

DTYPES = {
    **dict.fromkeys(("blk.tensor", "blk.event", "blk.type", "blk.how", "blkf.name", "blkf.says", "blkf.meaning"), "i4"),
    **dict.fromkeys(("blkf.start", "blkf.stop", "blke.code"), "i4"),
    **dict.fromkeys(("blk.data.ptr", "blk.field.ptr", "blk.group.ptr", "blk.element.ptr"), "u4"),
    **dict.fromkeys(("blkg.scale", "blkg.min", "blke.value", "blke.original", "blke.importance"), "f4"),
    **{"blk.block": "f8", "blk.data.val": "u1"},
}
TYPECODES = {"u1": "B", "i4": "i", "u4": "I", "f4": "f", "f8": "d"}
TEXTS = ("blk.type", "blk.how", "blkf.name", "blkf.says", "blkf.meaning")
PARTS = {"data": "blk.data.val", "field": "blkf.name", "group": "blkg.scale", "element": "blke.code"}
SHOWN_NUMBERS = 8


class BlockFold:
    """The blocks of one trace, in the order in which they were told."""

    def __init__(self, string: Callable[[int], str]) -> None:
        self._string = string
        self._columns: dict[str, array[Any]] = {name: array(TYPECODES[d]) for name, d in DTYPES.items()}
        self._texts: dict[str, int] = {}
        self._rows_read = 0
        for part in PARTS:
            self._columns[f"blk.{part}.ptr"].append(0)

    def handlers(self) -> dict[str, Handler]:
        return {"BlockEncoded": self._encoded, "BlockDecoded": self._decoded}

    def _encoded(self, i: int, node: int, tensor: int, type: int, block: int, *said: Any) -> None:
        data, original, importance = said[3:]
        self._open(tensor, self._string(type), block, data, i, "encoded", original, importance)

    def _decoded(self, i: int, node: int, tensor: int, type: int, block: int, *said: Any) -> None:
        self._open(tensor, self._string(type), block, said[3], i, "decoded")

    def read(self, trace: Trace) -> None:
        """The blocks of leafs that the trace has kept since the last time."""
        tensors, types = trace.column("q.tensor"), trace.column("q.type")
        ptr, val = trace.column("q.ptr"), trace.column("q.val")
        for row in range(self._rows_read, len(tensors)):
            name = trace.string(int(types[row]))
            size = TYPES[name].type_size if name in TYPES else 0
            data = val[ptr[row] : ptr[row + 1]]
            for block in range(len(data) // size if size else 0):
                self._open(int(tensors[row]), name, block, data[block * size :][:size].tolist(), -1, "read")
        self._rows_read = len(tensors)

    def _open(
        self,
        tensor: int,
        type: str,
        number: int,
        data: Sequence[int],
        event: int,
        how: str,
        original: Sequence[float] = (),
        importance: Sequence[float] = (),
    ) -> None:
        """Append a block. Bytes that are no block of their type, in a file that lies, are left out."""
        try:
            block = open_block(type, bytes(data))
        except (VizggmlError, ValueError):
            return
        c, n = self._columns, len(block.codes)
        for name, value in (("tensor", tensor), ("event", event), ("block", float(number))):
            c[f"blk.{name}"].append(value)
        c["blk.type"].append(self._text(type))
        c["blk.how"].append(self._text(how))
        c["blk.data.val"].extend(block.bytes)
        for f in block.fields:
            c["blkf.name"].append(self._text(f.name))
            c["blkf.start"].append(f.start)
            c["blkf.stop"].append(f.stop)
            c["blkf.says"].append(self._text(numbers(f)))
            c["blkf.meaning"].append(self._text(f.meaning))
        c["blkg.scale"].extend(block.scales.tolist())
        c["blkg.min"].extend(block.mins.tolist())
        c["blke.code"].extend(block.codes.tolist())
        c["blke.value"].extend(block.values.tolist())
        for name, found in (("original", original), ("importance", importance)):
            c[f"blke.{name}"].extend(found if len(found) == n else [float("nan")] * n)
        for part, column in PARTS.items():
            c[f"blk.{part}.ptr"].append(len(c[column]))

    def _text(self, text: str) -> int:
        return self._texts.setdefault(text, len(self._texts))

    def columns(self, strings: list[str]) -> dict[str, Column]:
        """The table; its texts are appended to `strings`. Nothing where the trace has no block."""
        if not len(self._columns["blk.tensor"]):
            return {}
        found = {name: np.array(column, DTYPES[name]) for name, column in self._columns.items()}
        for name in TEXTS:
            found[name] += len(strings)
        strings.extend(self._texts)
        return found


def numbers(field: Field) -> str:
    """What a field's bits are as numbers, the first few."""
    shown = [
        f"{x:.6g}" if field.numbers.dtype.kind == "f" else str(x)
        for x in field.numbers.ravel()[:SHOWN_NUMBERS].tolist()
    ]
    more = field.numbers.size - len(shown)
    return " ".join(shown) + (f" and {more} more" if more else "")
