"""Real ggml's quantizers, from the xllamacpp wheel."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import xllamacpp
from numpy.typing import NDArray

from vizggml.ggml.types import Type

LIB = ctypes.CDLL(str(next(Path(xllamacpp.__file__).parent.glob("*.so"))))
LIB.ggml_quantize_chunk.restype = ctypes.c_size_t
LIB.ggml_quantize_chunk.argtypes = (
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_int64,
    ctypes.c_int64,
    ctypes.c_int64,
    ctypes.c_void_p,
)
REF = {"Q8_1": "quantize_row_q8_1_ref", "Q8_K": "quantize_row_q8_K_ref"}
FROM_FLOAT = {
    "IQ4_NL": "quantize_row_iq4_nl",
    "F16": "ggml_cpu_fp32_to_fp16",
    "BF16": "ggml_cpu_fp32_to_bf16",
    "Q8_0": "quantize_row_q8_0",
    "Q8_1": "quantize_row_q8_1",
    "Q8_K": "quantize_row_q8_K",
}
TO_FLOAT = {"F16": "ggml_fp16_to_fp32_row", "BF16": "ggml_bf16_to_fp32_row"}


def _decoder(name: str) -> str:
    """`dequantize_row_q4_0`, `dequantize_row_q4_K`, `dequantize_row_iq2_xxs`, ..."""
    return TO_FLOAT.get(name, f"dequantize_row_{name.lower().removesuffix('_k')}{'_K' * name.endswith('_K')}")


def _row_function(name: str, source: NDArray[np.generic], target: NDArray[np.generic], n: int) -> None:
    function = getattr(LIB, name)
    function.restype = None
    function.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    function(source.ctypes.data, target.ctypes.data, n)


def quantize(type: Type, x: NDArray[np.float32], importance: NDArray[np.float32] | None = None) -> NDArray[np.uint8]:
    """Rows (n, ne0) encoded by `ggml_quantize_chunk`; by the reference row function where that knows no such type."""
    x = np.ascontiguousarray(x, np.float32)
    out = np.zeros((x.shape[0], type.row_size(x.shape[1])), np.uint8)
    if type.name in REF:
        _row_function(REF[type.name], x, out, x.size)
    else:
        costs = None if importance is None else np.ascontiguousarray(importance, np.float32)
        pointer = None if costs is None else costs.ctypes.data
        n = LIB.ggml_quantize_chunk(type.id, x.ctypes.data, out.ctypes.data, 0, x.shape[0], x.shape[1], pointer)
        assert n == out.nbytes
    return out


def from_float(type: Type, x: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Rows encoded as the CPU backend encodes activations."""
    x = np.ascontiguousarray(x, np.float32)
    out = np.zeros((x.shape[0], type.row_size(x.shape[1])), np.uint8)
    _row_function(FROM_FLOAT[type.name], x, out, x.size)
    return out


def to_float(type: Type, rows: NDArray[np.uint8], ne0: int) -> NDArray[np.float32]:
    rows = np.ascontiguousarray(rows)
    out = np.zeros((rows.shape[0], ne0), np.float32)
    _row_function(_decoder(type.name), rows, out, out.size)
    return out
