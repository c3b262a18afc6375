"""Record which files a native build of the reference makes when it quantizes. Run by hand only.

    python tests/goldens/record_quantize.py LIBLLAMA [OUT_DIR]      (or set VIZGGML_PIN to the library's path)

LIBLLAMA is as in record_llama.py. It writes llama_quantize.json.gz:

- types   for the shapes of record_plan.py, each mixture, with and without importance: the type of each tensor that is
          not left as it is, from the log of a dry run;
- files   for the models of tests/llama/quantize_made.py: the size of the file that comes out, and the beginning of its
          SHA-256.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
import tempfile
from collections.abc import Mapping
from ctypes import POINTER, byref, c_bool, c_char, c_char_p, c_float, c_int32, c_int64, c_size_t, c_void_p
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent.parent))

from tests.goldens.record_llama import dump_gz  # noqa: E402
from tests.goldens.record_plan import MIXED  # noqa: E402
from tests.llama.made import write  # noqa: E402
from tests.llama.native import Native  # noqa: E402
from tests.llama.quantize_made import CASES, IMATRIX, digest, importance_of, make  # noqa: E402
from vizggml.ggml.gguf import read_gguf  # noqa: E402
from vizggml.llama.mixtures import MIXTURES  # noqa: E402

CONVERTED = re.compile(r"\[ *\d+/ *\d+\] +(\S+) +- \[.*?\], type = +\S+, size = .*? MiB -> .*? MiB \((\S+)\)")
OVERRIDE_INT, OVERRIDE_STR = 0, 3


class ImatrixData(ctypes.Structure):
    """`llama_model_imatrix_data`, include/llama.h."""

    _fields_ = [("name", c_char_p), ("data", POINTER(c_float)), ("size", c_size_t)]


class Number(ctypes.Union):
    _fields_ = [("val_i64", c_int64), ("val_str", c_char * 128)]


class Override(ctypes.Structure):
    """`llama_model_kv_override`, include/llama.h."""

    _fields_ = [("tag", c_int32), ("key", c_char * 128), ("value", Number)]


class Params(ctypes.Structure):
    """`llama_model_quantize_params`, include/llama.h."""

    _fields_ = [
        *[(name, c_int32) for name in ("nthread", "ftype", "output_tensor_type", "token_embedding_type")],
        *[(name, c_bool) for name in ("allow_requantize", "quantize_output_tensor", "only_copy", "pure")],
        *[(name, c_bool) for name in ("keep_split", "dry_run")],
        ("imatrix", POINTER(ImatrixData)),
        ("kv_overrides", POINTER(Override)),
        *[(name, c_void_p) for name in ("tt_overrides", "prune_layers")],
        ("max_buf_size", c_size_t),
    ]


Importance = Mapping[str, NDArray[np.float32]]


def quantize(
    native: Native, source: Path, out: Path, mixture: str, importance: Importance | None, *, dry_run: bool = False
) -> bool:
    """As tools/quantize/quantize.cpp calls it. Whether it went well."""
    lib = native.lib
    lib.llama_model_quantize_default_params.restype = Params
    lib.llama_model_quantize.argtypes = [c_char_p, c_char_p, POINTER(Params)]
    params = lib.llama_model_quantize_default_params()
    params.nthread, params.ftype = 1, MIXTURES[mixture].ftype
    params.allow_requantize, params.dry_run = True, dry_run
    if importance is not None:
        rows = [
            ImatrixData(name.encode(), x.ctypes.data_as(POINTER(c_float)), x.size) for name, x in importance.items()
        ]
        params.imatrix = (ImatrixData * (len(rows) + 1))(*rows)
        said = [
            Override(OVERRIDE_STR, b"quantize.imatrix.file", Number(val_str=IMATRIX["file"].encode())),
            Override(OVERRIDE_STR, b"quantize.imatrix.dataset", Number(val_str=IMATRIX["dataset"].encode())),
            Override(OVERRIDE_INT, b"quantize.imatrix.entries_count", Number(val_i64=len(rows))),
            Override(OVERRIDE_INT, b"quantize.imatrix.chunks_count", Number(val_i64=IMATRIX["chunks"])),
        ]
        params.kv_overrides = (Override * (len(said) + 1))(*said)
    return lib.llama_model_quantize(str(source).encode(), str(out).encode(), byref(params)) == 0


def record_types(native: Native, folder: Path) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for name, shape in MIXED.items():
        source = write(folder / f"{name}.gguf", shape, 1)
        ones = {tensor: np.ones(1, np.float32) for tensor in read_gguf(source).tensors}
        for mixture in MIXTURES:
            for importance in (None, ones):
                begin = len(native.log)
                went = quantize(native, source, folder / "none", mixture, importance, dry_run=True)
                types = {t: kind.upper() for t, kind in CONVERTED.findall("".join(native.log[begin:]))}
                case = f"{name} {mixture} {'with' if importance else 'without'}"
                found[case] = types if went else {}
                print(case, went, sorted(set(types.values())))
    return found


def record_files(native: Native, folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for case in CASES:
        model, mixture, *weighed = case.split()
        source = make(folder, model)
        out = folder / "out.gguf"
        assert quantize(native, source, out, mixture, importance_of(source) if weighed else None), case
        found[case] = [out.stat().st_size, digest(out)]
        print(case, found[case])
    return found


def main() -> None:
    native = Native(sys.argv[1] if len(sys.argv) > 1 else os.environ["VIZGGML_PIN"])
    out = Path(sys.argv[2]) if len(sys.argv) > 2 else HERE
    with tempfile.TemporaryDirectory() as shapes, tempfile.TemporaryDirectory() as files:
        found = {"types": record_types(native, Path(shapes)), "files": record_files(native, Path(files))}
    dump_gz(out / "llama_quantize.json.gz", found)


if __name__ == "__main__":
    main()
