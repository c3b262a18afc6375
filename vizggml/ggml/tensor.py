"""The tensor: ggml's fields, and the bytes behind them as NumPy arrays.

A tensor describes memory, it does not own any: `ne` counts elements, `nb` strides in bytes, and `data` is where the
first element is. Reshapes, views, permutes and transposes are tensors with another `ne`/`nb` over the same bytes.
"""

from __future__ import annotations

import itertools
import struct
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vizggml.errors import VizggmlError
from vizggml.events import Dims, FlagsSet, TensorId, TensorNamed, bus
from vizggml.ggml.types import FLAG_INPUT, FLAG_OUTPUT, GGML_MAX_NAME, GLU_OPS, UNARY_OPS, VIEW_OPS, Type

if TYPE_CHECKING:
    from vizggml.ggml.buffer import Buffer

Memory = NDArray[np.uint8]
_ids = itertools.count()


class Address:
    """Where bytes are: an `offset` into `memory`. Two addresses are equal when both are the same."""

    __slots__ = ("memory", "offset")

    def __init__(self, memory: Memory, offset: int) -> None:
        self.memory = memory
        self.offset = offset

    def __add__(self, n_bytes: int) -> Address:
        return Address(self.memory, self.offset + n_bytes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Address) and self.memory is other.memory and self.offset == other.offset

    def __hash__(self) -> int:
        return hash((id(self.memory), self.offset))

    def __repr__(self) -> str:
        return f"Address({self.offset} of {self.memory.nbytes})"


class Tensor:
    """A shape `ne`, strides `nb`, the op that computes it and what it reads; its bytes lie where it was placed.

    `struct ggml_tensor`, ggml/include/ggml.h.

    `src` holds up to 10 tensors, None for an empty slot. `op_params` are up to 16 int32; floats among them are kept as
    their bits. `id` is a counter: the order in which tensors were made in this process.
    """

    __slots__ = (
        "__weakref__",
        "buffer",
        "data",
        "flags",
        "id",
        "name",
        "nb",
        "ne",
        "op",
        "op_params",
        "src",
        "type",
        "view_offs",
        "view_src",
    )

    def __init__(
        self,
        type: Type,
        ne: Dims,
        nb: Dims,
        view_src: Tensor | None = None,
        view_offs: int = 0,
        data: Address | None = None,
    ) -> None:
        self.id = TensorId(next(_ids))
        self.type = type
        self.buffer: Buffer | None = None
        self.ne = ne
        self.nb = nb
        self.op = "NONE"
        self.op_params: tuple[int, ...] = ()
        self.flags = 0
        self.src: list[Tensor | None] = []
        self.view_src = view_src
        self.view_offs = view_offs
        self.data = data
        self.name = ""

    def __repr__(self) -> str:
        shape = ", ".join(map(str, self.ne))
        return f"<Tensor {self.name or self.id} {self.type} [{shape}] {self.op_desc}>"

    def set_name(self, name: str) -> Tensor:
        """Name the tensor, cut to ggml's 63 bytes. `ggml_set_name`, ggml/src/ggml.c."""
        if len(name) >= GGML_MAX_NAME // 4:
            name = name.encode("utf-8", "replace")[: GGML_MAX_NAME - 1].decode("utf-8", "ignore")
        self.name = name
        if bus.on:
            bus.emit(TensorNamed(self.id, name))
        return self

    def set_flag(self, flag: int) -> Tensor:
        """Add a flag. `ggml_set_input`, `ggml_set_output`, `ggml_set_param`, `ggml_set_loss`, ggml/src/ggml.c."""
        self.flags |= flag
        if bus.on:
            bus.emit(FlagsSet(self.id, self.flags))
        return self

    def set_input(self) -> Tensor:
        """Give it memory before any result, so that none is written over it. `ggml_set_input`, ggml/src/ggml.c."""
        return self.set_flag(FLAG_INPUT)

    def set_output(self) -> Tensor:
        """Keep the tensor, and what it is a view of. `ggml_set_output`, ggml/src/ggml.c."""
        self.set_flag(FLAG_OUTPUT)
        if self.view_src is not None:
            self.view_src.set_output()
        return self

    def op_param_i32(self, i: int) -> int:
        """The op's parameter `i`, an int32; 0 where it has none. `ggml_get_op_params_i32`, ggml/src/ggml-impl.h."""
        return self.op_params[i] if i < len(self.op_params) else 0

    def op_param_f32(self, i: int) -> float:
        """The bits of the op's parameter `i` read as a float. `ggml_get_op_params_f32`, ggml/src/ggml-impl.h."""
        return bits_f32(self.op_param_i32(i))

    @property
    def op_desc(self) -> str:
        """The op's name, or the unary or gated one behind it. `ggml_op_desc`, ggml/src/ggml.c."""
        if self.op == "UNARY":
            return UNARY_OPS[self.op_param_i32(0)]
        if self.op == "GLU":
            return GLU_OPS[self.op_param_i32(0)]
        return self.op

    @property
    def nelements(self) -> int:
        """How many elements it has: the product of `ne`. `ggml_nelements`, ggml/src/ggml.c."""
        ne = self.ne
        return ne[0] * ne[1] * ne[2] * ne[3]

    @property
    def nrows(self) -> int:
        """How many rows of `ne[0]` elements it has. `ggml_nrows`, ggml/src/ggml.c."""
        return self.ne[1] * self.ne[2] * self.ne[3]

    @property
    def nbytes(self) -> int:
        """Bytes from the first element to the end of the last. `ggml_nbytes`, ggml/src/ggml.c."""
        ne, nb, blck_size = self.ne, self.nb, self.type.blck_size
        if 0 in ne:
            return 0
        if blck_size == 1:
            first = self.type.type_size + (ne[0] - 1) * nb[0]
        else:
            first = ne[0] * nb[0] // blck_size
        return first + (ne[1] - 1) * nb[1] + (ne[2] - 1) * nb[2] + (ne[3] - 1) * nb[3]

    @property
    def n_dims(self) -> int:
        """`ggml_n_dims`, ggml/src/ggml.c: 1 for a scalar."""
        return max((i + 1 for i in range(1, 4) if self.ne[i] > 1), default=1)

    @property
    def is_view(self) -> bool:
        """Whether it has no bytes of its own and looks into another tensor's. `ggml_is_view`, ggml/src/ggml.c."""
        return self.view_src is not None

    @property
    def is_in_place(self) -> bool:
        """Its op writes into the bytes of another tensor."""
        return self.view_src is not None and self.op not in VIEW_OPS

    @property
    def is_empty(self) -> bool:
        """Whether it has no elements. `ggml_is_empty`, ggml/src/ggml.c."""
        return 0 in self.ne

    def is_contiguous(self, from_dim: int = 0, to_dim: int = 4) -> bool:
        """Elements follow each other without gaps in the dimensions above `from_dim` and below `to_dim`.

        `ggml_is_contiguous_m_n`, ggml/src/ggml.c: `from_dim` 1 is `ggml_is_contiguous_1`.
        """
        ne, nb, type = self.ne, self.nb, self.type
        next_nb = type.type_size
        if ne[0] != type.blck_size and nb[0] != next_nb:
            return False
        next_nb *= ne[0] // type.blck_size
        for i in range(1, to_dim):
            if i > from_dim:
                if ne[i] != 1 and nb[i] != next_nb:
                    return False
                next_nb *= ne[i]
            else:
                next_nb = ne[i] * nb[i]
        return True

    @property
    def is_contiguous_rows(self) -> bool:
        """Whether the elements of a row follow each other without gaps. `ggml_is_contiguous_rows`, ggml/src/ggml.c."""
        return self.ne[0] == self.type.blck_size or self.nb[0] == self.type.type_size

    @property
    def is_permuted(self) -> bool:
        """Whether a dimension has a larger stride than the one after it. `ggml_is_permuted`, ggml/src/ggml.c."""
        return self.nb[0] > self.nb[1] or self.nb[1] > self.nb[2] or self.nb[2] > self.nb[3]

    @property
    def is_transposed(self) -> bool:
        """Whether dimension 0 has a larger stride than dimension 1. `ggml_is_transposed`, ggml/src/ggml.c."""
        return self.nb[0] > self.nb[1]

    def array(self) -> NDArray[Any]:
        """The elements where they lie, nothing copied: shape (ne3, ne2, ne1, ne0) with this tensor's strides.

        BF16 comes as its uint16 bits. A quantized tensor comes as the bytes of its blocks, uint8 of shape
        (ne3, ne2, ne1, blocks, type_size). VizggmlError if the tensor has no memory, or reaches beyond it.
        """
        if self.data is None:
            raise VizggmlError(f"tensor {self.name!r} has no memory yet: allocate its graph or its context first")
        memory, offset = self.data.memory, self.data.offset
        if offset < 0 or offset + self.nbytes > memory.nbytes:
            raise VizggmlError(
                f"tensor {self.name!r}: offset {offset} + {self.nbytes} bytes "
                f"ends past its memory ({memory.nbytes} bytes)"
            )
        ne, nb, type = self.ne, self.nb, self.type
        if type.numpy:
            shape, strides = (ne[3], ne[2], ne[1], ne[0]), (nb[3], nb[2], nb[1], nb[0])
            return np.ndarray(shape, type.numpy, memory, offset, strides)
        blocks = ne[0] // type.blck_size
        return np.ndarray(
            (ne[3], ne[2], ne[1], blocks, type.type_size),
            np.uint8,
            memory,
            offset,
            (nb[3], nb[2], nb[1], nb[0], 1),
        )

    def set(self, values: object) -> Tensor:
        """Write values, in NumPy's order, into its memory. `ggml_backend_tensor_set`, ggml/src/ggml-backend.cpp."""
        out = self.array()
        given = np.asarray(values)
        if given.size != out.size:
            raise VizggmlError(f"tensor {self.name!r} holds {out.size} elements, got {given.size}")
        out[...] = given.reshape(out.shape)
        return self


def same_shape(a: Tensor, b: Tensor) -> bool:
    """`ggml_are_same_shape`, ggml/src/ggml.c."""
    return a.ne == b.ne


def same_stride(a: Tensor, b: Tensor) -> bool:
    """`ggml_are_same_stride`, ggml/src/ggml.c."""
    return a.nb == b.nb


def can_repeat(a: Tensor, b: Tensor) -> bool:
    """Whether `b` is a whole number of repetitions of `a`. `ggml_can_repeat`, ggml/src/ggml.c."""
    if a.is_empty:
        return b.is_empty
    return all(nb % na == 0 for na, nb in zip(a.ne, b.ne, strict=True))


def f32_bits(x: float) -> int:
    """The float32 `x` as the int32 with the same bits, as op_params keep it."""
    return int(struct.unpack("<i", struct.pack("<f", x))[0])


def bits_f32(i: int) -> float:
    """The inverse of `f32_bits`."""
    return float(struct.unpack("<f", struct.pack("<i", i))[0])
