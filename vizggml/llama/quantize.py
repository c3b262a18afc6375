"""A whole model file into other types: `llama_model_quantize`, src/llama-quant.cpp.

The file comes out as llama.cpp's would, to the byte: which type each tensor gets (mixtures.py), their order, the
metadata. Tensors are taken one after the other, in slabs of whole rows, so that memory does not grow with the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vizggml.errors import VizggmlError
from vizggml.events import TensorId
from vizggml.files import written_whole
from vizggml.ggml.context import TENSOR_OVERHEAD, Context
from vizggml.ggml.gguf import GGUF, SCALARS, StringArray, TensorInfo, Value, Writable, gguf_head, quoted, read_gguf
from vizggml.ggml.quants import dequantize, quantize, unsound
from vizggml.ggml.types import GGML_MAX_NAME, Type, pad
from vizggml.llama.hparams import HParams
from vizggml.llama.imatrix_file import Imatrix
from vizggml.llama.mixtures import (
    MIXTURES,
    allows_quantization,
    demands_importance,
    mixture_named,
    tensor_types,
)

GGML_QNT_VERSION = 2
SLAB = 1 << 22
"""Elements that are decoded and encoded at a time."""

FILE_TYPE, QUANTIZATION_VERSION = "general.file_type", "general.quantization_version"
SPLIT_KEYS = ("split.no", "split.count", "split.tensors.count")
MAX_OVERRIDE = 127
"""The most bytes of a text that llama.cpp's quantize adds to the metadata."""

DTYPES = {name: np.dtype(dtype) for name, _, dtype in SCALARS.values()}

Progress = Callable[[int, int], None]
Rows = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Quantized:
    """One tensor of the file: what it was and what it became. `importance`: it was weighed with the matrix."""

    name: str
    ne: tuple[int, ...]
    source: Type
    type: Type
    importance: bool
    nbytes_before: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class Report:
    """What came of a file; sizes are those of the tensors' data."""

    mixture: str
    tensors: tuple[Quantized, ...]

    @property
    def before(self) -> int:
        return sum(t.nbytes_before for t in self.tensors)

    @property
    def after(self) -> int:
        return sum(t.nbytes for t in self.tensors)

    @property
    def bits_per_weight(self) -> float:
        return 8 * self.after / max(1, sum(prod(t.ne) for t in self.tensors))


def quantize_file(
    source: str | Path,
    output: str | Path,
    mixture: str,
    *,
    imatrix: Imatrix | None = None,
    allow_requantize: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Write `source` as `mixture` to `output`, whole or not at all. `llama_model_quantize_impl`, src/llama-quant.cpp.

    `progress` is told the tensors done and their number. VizggmlError if the file or the mixture is not known, a type
    needs importance that is not there, or a tensor is quantized already and `allow_requantize` is not set.
    """
    mixture = mixture_named(mixture)
    if Path(output).exists() and Path(source).exists() and Path(output).samefile(source):
        raise VizggmlError(f"output {str(output)!r}: it is the file that is read")
    gguf = read_gguf(source)
    try:
        work = _Work(gguf, mixture, imatrix, allow_requantize)
        with written_whole(output, "output") as file:
            file.write(work.head(Path(output).name))
            tensors = []
            for i, name in enumerate(work.types):
                for part in work.rows(name):
                    file.write(part.data)
                tensors.append(work.quantized(name))
                file.write(bytes(pad(tensors[-1].nbytes, gguf.alignment) - tensors[-1].nbytes))
                if progress is not None:
                    progress(i + 1, len(work.types))
    finally:
        gguf.close()
    return Report(mixture, tuple(tensors))


class _Work:
    """A file on its way to other types; all that can be refused is refused before a byte is written."""

    def __init__(self, gguf: GGUF, mixture: str, imatrix: Imatrix | None, allow_requantize: bool) -> None:
        self.gguf = gguf
        self.mixture = mixture
        self.imatrix = imatrix
        self.costs: Mapping[str, NDArray[np.float32]] = {} if imatrix is None else imatrix.importance()
        infos = gguf.tensors
        hparams = HParams.from_gguf(gguf)
        self.types = tensor_types(
            hparams,
            {name: info.ne for name, info in infos.items()},
            mixture,
            sources={name: info.type for name, info in infos.items()},
            importance=bool(self.costs),
        )
        self.context = Context(2 * len(infos) * TENSOR_OVERHEAD, no_alloc=True)
        for name, type in self.types.items():
            self._check(infos[name], type, allow_requantize)

    def fail(self, message: str) -> VizggmlError:
        return VizggmlError(f"{self.gguf.path.name}: {message}")

    def _check(self, info: TensorInfo, type: Type, allow_requantize: bool) -> None:
        what = f"tensor {quoted(info.name)}"
        costs = self.costs.get(info.name)
        if (
            costs is None
            and allows_quantization(info.name, info.ne)
            and demands_importance(info.name, type, self.mixture)
        ):
            raise self.fail(f"{what}: {type} in {self.mixture} is of no use without an importance matrix (--imatrix)")
        if type is info.type:
            return
        if info.type.is_quantized and not allow_requantize:
            raise self.fail(f"{what} is {info.type} already; --allow-requantize makes {type} of it, with a loss")
        wanted = info.ne[0] * info.ne[2]
        if costs is not None and costs.size != wanted and info.name != "token_embd.weight":
            raise self.fail(f"{what}: the importance matrix has {costs.size} numbers for it, it takes {wanted}")

    def head(self, file: str) -> bytes:
        """The output up to its tensors' data."""
        tensors = [(name, type, _dims(self.gguf.tensors[name])) for name, type in self.types.items()]
        head = gguf_head(file, self.metadata(), tensors, alignment=self.gguf.alignment)
        return head + bytes(pad(len(head), self.gguf.alignment) - len(head))

    def metadata(self) -> dict[str, Writable]:
        """The source's, in its order; what is set anew comes last, as in `gguf_set_val_*`."""
        found: dict[str, Writable] = {key: _kept(self.gguf, key) for key in self.gguf.metadata if key not in SPLIT_KEYS}
        new: dict[str, Writable] = {
            QUANTIZATION_VERSION: np.uint32(GGML_QNT_VERSION),
            FILE_TYPE: np.uint32(MIXTURES[self.mixture].ftype),
        }
        if self.imatrix is not None and self.costs:
            new["quantize.imatrix.file"] = _cut(str(self.imatrix.path))
            if self.imatrix.datasets:
                new["quantize.imatrix.dataset"] = _cut(self.imatrix.datasets[0])
            new["quantize.imatrix.entries_count"] = np.uint32(len(self.costs))
            if self.imatrix.chunk_count > 0:
                new["quantize.imatrix.chunks_count"] = np.uint32(self.imatrix.chunk_count)
        for key, value in new.items():
            found.pop(key, None)
            found[key] = value
        return found

    def cost_of(self, name: str) -> NDArray[np.float32] | None:
        """The importance of the tensor's columns, a row for each of its experts."""
        info, costs = self.gguf.tensors[name], self.costs.get(name)
        if costs is None or costs.size != info.ne[0] * info.ne[2]:
            return None
        return costs.reshape(info.ne[2], info.ne[0])

    def quantized(self, name: str) -> Quantized:
        info, type = self.gguf.tensors[name], self.types[name]
        nbytes = type.row_size(info.ne[0]) * prod(info.ne[1:])
        weighed = type is not info.type and self.cost_of(name) is not None
        return Quantized(name, _dims(info), info.type, type, weighed, info.nbytes, nbytes)

    def rows(self, name: str) -> Iterator[Rows]:
        """The tensor's bytes in its new type, a slab of rows at a time."""
        info, type = self.gguf.tensors[name], self.types[name]
        n0, per_expert = info.ne[0], info.ne[1]
        data = self.gguf.tensor_bytes(name).reshape(prod(info.ne[1:]), info.type.row_size(n0))
        step, costs = max(1, SLAB // max(1, n0)), self.cost_of(name)
        if type is info.type:
            for first in range(0, len(data), step):
                self._sound(info.name, info.type, data[first : first + step], "is not sound")
                yield np.ascontiguousarray(data[first : first + step])
            return
        source, target = self._tensors(info, type)
        for expert in range(len(data) // max(1, per_expert)):
            for first in range(expert * per_expert, (expert + 1) * per_expert, step):
                part = data[first : min(first + step, (expert + 1) * per_expert)]
                self._sound(name, info.type, part, "is not sound")
                x = _floats(info.type, part, source, first)
                cost = None if costs is None else costs[expert % len(costs)]
                out = quantize(type, x, cost, tensor=target, first_block=first * n0 // type.blck_size)
                self._sound(name, type, out, f"is not sound as {type}")
                yield out

    def _tensors(self, info: TensorInfo, type: Type) -> tuple[TensorId, TensorId]:
        """Tensors that events can name: what is read, and what is made of it."""
        made = self.context.new_tensor(type, _dims(info), info.name)
        read = self.context.new_tensor(info.type, _dims(info), f"{info.name} as {info.type}"[: GGML_MAX_NAME - 1])
        return read.id, made.id

    def _sound(self, name: str, type: Type, rows: Rows, what: str) -> None:
        """`ggml_validate_row_data`: what has no finite value is refused."""
        bad = unsound(type, rows)
        if len(bad):
            raise self.fail(
                f"tensor {quoted(name)}: block {bad[0]} of {type} {what}: its scale is infinite or no number"
            )


def _dims(info: TensorInfo) -> tuple[int, ...]:
    """The shape without the dimensions of 1 at its end. `ggml_n_dims`, ggml/src/ggml.c."""
    n = max((i + 1 for i, n in enumerate(info.ne) if n > 1), default=1)
    return info.ne[:n]


def _floats(type: Type, rows: Rows, tensor: TensorId, first_row: int) -> NDArray[np.float32]:
    if type.name == "F32":
        return np.ascontiguousarray(rows).view(np.float32)
    blocks = rows.reshape(len(rows), -1, type.type_size)
    return dequantize(type, blocks, tensor=tensor, first_block=first_row * blocks.shape[1])


def _cut(text: str) -> str:
    return text.encode()[:MAX_OVERRIDE].decode("utf-8", "ignore")


def _kept(gguf: GGUF, key: str) -> Writable:
    """A value with the type that it has in the file. A text ends at its first NUL, as in llama.cpp."""
    value: Value = gguf.metadata[key]
    if isinstance(value, str):
        return value.split("\0")[0]
    if isinstance(value, StringArray):
        return [s.split("\0")[0] for s in value] if any(b"\0" in value.raw(i) for i in range(len(value))) else value
    if isinstance(value, np.ndarray):
        return value
    number: np.generic = DTYPES[gguf.types[key]].type(value)
    return number
