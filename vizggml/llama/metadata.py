"""A GGUF file's values by key and type, as llama.cpp's loader asks for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from vizggml.errors import VizggmlError
from vizggml.ggml.gguf import GGUF, StringArray, Value

T = TypeVar("T")


class Metadata:
    """`llama_model_loader::get_key`, `get_arr`, src/llama-model-loader.cpp.

    A key of the wrong type is an error, as in llama.cpp; a missing one is an error only when no default is given.
    """

    def __init__(self, gguf: GGUF) -> None:
        self.gguf = gguf
        self.file = gguf.path.name

    def fail(self, message: str) -> VizggmlError:
        return VizggmlError(f"{self.file}: {message}")

    def value(self, key: str, type: str, required: bool) -> Value | None:
        if key not in self.gguf.metadata:
            if required:
                raise self.fail(f"key '{key}' is missing")
            return None
        found = self.gguf.types[key]
        if found != type:
            raise self.fail(f"key '{key}' has type {found}, it must be {type}")
        return self.gguf.metadata[key]

    def get_u32(self, key: str, default: int | None = None) -> int:
        found = self.value(key, "u32", default is None)
        return default if found is None and default is not None else int(found)  # type: ignore[arg-type]

    def get_f32(self, key: str, default: float | None = None) -> float:
        found = self.value(key, "f32", default is None)
        return default if found is None and default is not None else float(found)  # type: ignore[arg-type]

    def get_bool(self, key: str, default: bool) -> bool:
        found = self.value(key, "bool", False)
        return default if found is None else bool(found)

    def get_str(self, key: str, default: str | None = None) -> str:
        found = self.value(key, "str", default is None)
        return default if found is None and default is not None else str(found)

    def get_strings(self, key: str) -> Sequence[str]:
        """An array of strings. VizggmlError if it is missing."""
        found = self.gguf.metadata.get(key)
        if found is None:
            raise self.fail(f"key '{key}' is missing")
        if not isinstance(found, StringArray):
            raise self.fail(f"key '{key}' has type {self.gguf.types[key]}, it must be an array of str")
        return found

    def get_ints(self, key: str) -> NDArray[np.integer] | None:
        """An array of i32 or u32, None if there is no such key."""
        found = self.gguf.metadata.get(key)
        if found is None:
            return None
        if not isinstance(found, np.ndarray) or found.dtype not in (np.int32, np.uint32):
            raise self.fail(f"key '{key}' has type {self.gguf.types[key]}, it must be an array of i32 or u32")
        return found

    def get_per_layer(self, key: str, n_layer: int, default: tuple[int, ...]) -> tuple[int, ...]:
        """One number for all layers, or an array with one for each. `get_key_or_arr`, src/llama-model-loader.cpp."""
        if not isinstance(self.gguf.metadata.get(key), np.ndarray):
            one = self.value(key, "u32", False)
            return default if one is None else (int(one),) * n_layer  # type: ignore[arg-type]
        array = self.get_ints(key)
        assert array is not None
        if array.size < n_layer:
            raise self.fail(f"key '{key}' has {array.size} values, {n_layer} layers need one each")
        return tuple(int(n) for n in array[:n_layer])
