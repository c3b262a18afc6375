"""The arena: `struct ggml_context` hands out objects one after the other from one block of memory.

Every object has a 32-byte header and content padded to 16 bytes; the objects form a list that can be walked. Nothing is
freed singly: a context is reset or freed whole. The sizes are ggml's own, so `used_mem` is what ggml would report.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from vizggml.errors import VizggmlError
from vizggml.events import (
    ContextCreated,
    ContextFreed,
    ContextId,
    ContextOverflow,
    ContextReset,
    Dims,
    Event,
    FlagsSet,
    ObjectAppended,
    OpRecorded,
    TensorCreated,
    TensorId,
    TensorNamed,
    TensorPlaced,
    ViewCreated,
    bus,
)
from vizggml.ggml.tensor import Address, Memory, Tensor
from vizggml.ggml.types import GGML_MAX_DIMS, GGML_MEM_ALIGN, Type, pad, type_named

if TYPE_CHECKING:
    from vizggml.ggml.cgraph import Graph

GGML_OBJECT_SIZE = 32
GGML_TENSOR_SIZE = 336
TENSOR_OVERHEAD = GGML_OBJECT_SIZE + GGML_TENSOR_SIZE
"""`ggml_tensor_overhead`, ggml/src/ggml.c: the arena bytes of one tensor's record."""

INT64_MAX = 2**63 - 1
_ids = itertools.count()


@dataclass(slots=True)
class ArenaObject:
    """`struct ggml_object`, ggml/src/ggml.c. `offs` is where the content begins, `size` its padded bytes."""

    object_type: str
    offs: int
    size: int
    tensor: Tensor | None = None


class Context:
    """An arena of `mem_size` bytes, in which records of tensors and graphs are appended. `ggml_init`, ggml/src/ggml.c.

    With `no_alloc` tensors get no data here, only their records: their bytes come from a buffer later. Without it, each
    tensor's data follows its record in the arena.

    `graphs` are those that end with the context: its objects, and the views that have no object of their own. A graph
    keeps its context, not the context its graphs, so that what nobody holds any more is gone at once.
    """

    def __init__(self, mem_size: int, no_alloc: bool = False) -> None:
        if mem_size < 0:
            raise VizggmlError(f"context: mem_size {mem_size} is below 0")
        self.id = ContextId(next(_ids))
        self.mem_size = pad(mem_size or GGML_MEM_ALIGN, GGML_MEM_ALIGN)
        self.no_alloc = no_alloc
        self.objects: list[ArenaObject] = []
        self.graphs: weakref.WeakSet[Graph] = weakref.WeakSet()
        self.mem_buffer: Memory = np.zeros(0 if no_alloc else self.mem_size, np.uint8)
        bus.standing.add(self)
        if bus.on:
            bus.emit(ContextCreated(self.id, self.mem_size, no_alloc))

    @property
    def used_mem(self) -> int:
        """Bytes of the arena that its objects take, headers and padding with them. `ggml_used_mem`, ggml/src/ggml.c."""
        return self.objects[-1].offs + self.objects[-1].size if self.objects else 0

    @property
    def tensors(self) -> Iterator[Tensor]:
        """Its tensors, in the order in which they were made.

        `ggml_get_first_tensor`, `ggml_get_next_tensor`, ggml/src/ggml.c.
        """
        return (obj.tensor for obj in self.objects if obj.tensor is not None)

    def get_tensor(self, name: str) -> Tensor | None:
        """The first tensor of that name. `ggml_get_tensor`, ggml/src/ggml.c."""
        return next((t for t in self.tensors if t.name == name), None)

    def new_object(self, object_type: str, size: int) -> ArenaObject:
        """Append an object of `size` bytes. `ggml_new_object`, ggml/src/ggml.c. VizggmlError if the arena is full."""
        end = self.used_mem
        size_needed = pad(size, GGML_MEM_ALIGN)
        needed = end + size_needed + GGML_OBJECT_SIZE
        if needed > self.mem_size:
            if bus.on:
                bus.emit(ContextOverflow(self.id, needed, self.mem_size))
            raise VizggmlError(
                f"context {self.id}: not enough space for a {object_type} (needed {needed}, available {self.mem_size})"
            )
        obj = ArenaObject(object_type, end + GGML_OBJECT_SIZE, size_needed)
        self.objects.append(obj)
        if bus.on:
            bus.emit(ObjectAppended(self.id, object_type, obj.offs, size_needed, size_needed - size))
        return obj

    def new_tensor(self, type: Type | str, ne: Sequence[int], name: str = "") -> Tensor:
        """A tensor of 1 to 4 dimensions, `ne[0]` fastest. `ggml_new_tensor`, ggml/src/ggml.c."""
        tensor = self._new_tensor(type if isinstance(type, Type) else type_named(type), ne, None, 0)
        return tensor.set_name(name) if name else tensor

    def new_view(self, src: Tensor, ne: Sequence[int], offset: int = 0) -> Tensor:
        """A tensor over the bytes of `src` from `offset` on, contiguous until its `nb` is set.

        `ggml_new_tensor_impl` with a `view_src`, ggml/src/ggml.c: a view of a view becomes a view of the first source.
        VizggmlError if it would end past the source.
        """
        return self._new_tensor(src.type, ne, src, offset)

    def _new_tensor(self, type: Type, ne: Sequence[int], asked_src: Tensor | None, asked_offs: int) -> Tensor:
        if not 1 <= len(ne) <= GGML_MAX_DIMS or min(ne) < 0:
            raise VizggmlError(f"tensor: shape {tuple(ne)} needs 1 to {GGML_MAX_DIMS} dimensions, none below 0")
        view_src, view_offs = asked_src, asked_offs
        if view_src is not None and view_src.view_src is not None:
            view_offs += view_src.view_offs
            view_src = view_src.view_src
        data_size = type.row_size(ne[0])
        for n in ne[1:]:
            data_size *= n
        if data_size > INT64_MAX:
            raise VizggmlError(f"tensor: shape {tuple(ne)} of {type} takes {data_size} bytes, the limit is {INT64_MAX}")
        if view_src is not None and data_size and data_size + view_offs > view_src.nbytes:
            raise VizggmlError(
                f"view of {view_src.name!r}: offset {view_offs} + {data_size} bytes "
                f"ends past its {view_src.nbytes} bytes"
            )
        in_arena = data_size if view_src is None and not self.no_alloc else 0
        obj = self.new_object("TENSOR", GGML_TENSOR_SIZE + in_arena)
        data: Address | None = None
        if in_arena:
            data = Address(self.mem_buffer, obj.offs + GGML_TENSOR_SIZE)
        elif view_src is not None and view_src.data is not None:
            data = view_src.data + view_offs
        full: Dims = (ne[0], *ne[1:], *(1,) * (4 - len(ne)))  # type: ignore[assignment]
        tensor = Tensor(type, full, contiguous_strides(type, full), view_src, view_offs, data)
        obj.tensor = tensor
        if bus.on:
            bus.emit(TensorCreated(tensor.id, self.id, type.name, full, tensor.nb, tensor.nbytes))
            if view_src is not None and asked_src is not None:
                bus.emit(ViewCreated(tensor.id, view_src.id, view_offs, asked_src.id, asked_offs))
        return tensor

    def reset(self) -> None:
        """Forget every object. `ggml_reset`, ggml/src/ggml.c."""
        if bus.on:
            bus.emit(ContextReset(self.id, self.used_mem, len(self.objects)))
        self._drop()

    def free(self) -> None:
        """Give the arena back; the context and its tensors are of no use after that. `ggml_free`, ggml/src/ggml.c."""
        if bus.on:
            bus.emit(ContextFreed(self.id, self.used_mem, len(self.objects)))
        self._drop()
        self.mem_buffer = np.zeros(0, np.uint8)
        bus.standing.discard(self)

    def _drop(self) -> None:
        for graph in sorted(self.graphs, key=lambda graph: graph.id):
            graph.freed()
        self.objects, self.graphs = [], weakref.WeakSet()

    def snapshot(self) -> Iterator[Event]:
        yield ContextCreated(self.id, self.mem_size, self.no_alloc)
        for obj in self.objects:
            yield ObjectAppended(self.id, obj.object_type, obj.offs, obj.size, 0)
            if obj.tensor is not None:
                yield from tensor_snapshot(obj.tensor, self.id)


def tensor_snapshot(t: Tensor, context: ContextId) -> Iterator[Event]:
    """The events that would make `t` as it stands."""
    yield TensorCreated(t.id, context, t.type.name, t.ne, t.nb, t.nbytes)
    if t.view_src is not None:
        yield ViewCreated(t.id, t.view_src.id, t.view_offs, t.view_src.id, t.view_offs)
    if t.op != "NONE":
        src = tuple(TensorId(-1) if s is None else s.id for s in t.src)
        yield OpRecorded(t.id, t.op, t.op_desc, t.op_params, src, t.is_in_place)
    if t.name:
        yield TensorNamed(t.id, t.name)
    if t.flags:
        yield FlagsSet(t.id, t.flags)
    if t.buffer is not None and t.data is not None:
        yield TensorPlaced(t.id, t.buffer.id, t.data.offset, t.nbytes, t.view_src is not None)


def contiguous_strides(type: Type, ne: Dims) -> Dims:
    """`nb` of a tensor with no gaps: `nb[0]` is a block, `nb[1]` a row, and so on."""
    nb0 = type.type_size
    nb1 = nb0 * (ne[0] // type.blck_size)
    nb2 = nb1 * ne[1]
    return nb0, nb1, nb2, nb2 * ne[2]
