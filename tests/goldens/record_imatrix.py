"""Record the importance that a native build of the reference computes. Run by hand only.

    python tests/goldens/record_imatrix.py LIBLLAMA [OUT_DIR]      (or set VIZGGML_PIN to the library's path)

LIBLLAMA is as in record_llama.py. Its tool for importance is not in the library: what it adds up is added up here, from
the operands that `cb_eval` shows. It writes llama_imatrix.json.gz: for each case of tests/llama/imatrix_made.py the
tokens, and for each matrix the counts, the whole of its sums and a few of them.
"""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent.parent))

from tests.goldens.record_llama import dump_gz, settings  # noqa: E402
from tests.llama.imatrix_made import CASES, drawn_tokens, make, shown  # noqa: E402
from tests.llama.native import Native, NativeContext, TensorStruct  # noqa: E402

F32, I32 = 0, 26


def rows_of(t: TensorStruct, dtype: str) -> NDArray[Any]:
    """A tensor's elements (ne3, ne2, ne1, ne0), strides and all."""
    span = sum((n - 1) * step for n, step in zip(t.ne, t.nb, strict=True)) + 4
    raw = (ctypes.c_char * span).from_address(t.data)
    return np.array(np.ndarray(tuple(t.ne)[::-1], dtype, raw, 0, tuple(t.nb)[::-1]))


class Watching(NativeContext):
    """Adds up squares as tools/imatrix/imatrix.cpp does, element after element in F32."""

    def __init__(self, *args: Any, **given: Any) -> None:
        self.sums: dict[str, NDArray[np.float32]] = {}
        self.counts: dict[str, NDArray[np.int64]] = {}
        super().__init__(*args, **given)

    def _on_tensor(self, tensor: Any, ask: bool, _: Any) -> bool:
        t = tensor.contents
        op = self.native.ggml_op_name(t.op).decode()
        if op not in ("MUL_MAT", "MUL_MAT_ID"):
            return not ask
        w, x = t.src[0].contents, t.src[1].contents
        name = w.name.decode()
        wanted = op == "MUL_MAT_ID" or (x.ne[1] >= 16 and x.type == F32 and name.startswith("blk."))
        if ask or not wanted:
            return wanted if ask else True
        n = w.ne[2] if op == "MUL_MAT_ID" else 1
        sums = self.sums.setdefault(name, np.zeros((n, x.ne[0]), np.float32))
        counts = self.counts.setdefault(name, np.zeros(n, np.int64))
        a = rows_of(x, "<f4")[0]
        if op == "MUL_MAT":
            for row in a.reshape(-1, x.ne[0]):
                sums[0] += row * row
                counts[0] += 1
            return True
        ids = rows_of(t.src[2].contents, "<i4")[0, 0]
        for slot in range(ids.shape[1]):
            for token in range(ids.shape[0]):
                row = a[token, slot % x.ne[1]]
                sums[ids[token, slot]] += row * row
                counts[ids[token, slot]] += 1
        return True


def record(native: Native, folder: Path, case: str) -> dict[str, Any]:
    n_ctx, n_chunks = CASES[case]["n_ctx"], CASES[case]["n_chunks"]
    with native.model(make(folder, case)) as model:
        text = (HERE / "text.txt").read_text().removesuffix("\n")
        tokens = drawn_tokens(n_ctx * n_chunks) if case == "experts" else model.tokenize(text)
        bos = native.llama_vocab_bos(model.vocab) if native.llama_vocab_get_add_bos(model.vocab) else -1
        context = Watching(model, **settings(n_ctx, n_ctx, True))
        for i in range(n_chunks):
            chunk = tokens[i * n_ctx : (i + 1) * n_ctx]
            native.llama_memory_seq_rm(native.llama_get_memory(context.handle), -1, -1, -1)
            context.n_past = 0
            context.decode([bos if bos >= 0 else chunk[0], *chunk[1:]], [True] * n_ctx)
        native.llama_free(context.handle)
    entries = {name: [context.counts[name].tolist(), shown(sums)] for name, sums in sorted(context.sums.items())}
    print(case, len(entries), next(iter(entries.items())))
    return {"n_tokens": len(tokens), "first": tokens[: n_ctx * n_chunks], "bos": bos, "entries": entries}


def main() -> None:
    native = Native(sys.argv[1] if len(sys.argv) > 1 else os.environ["VIZGGML_PIN"])
    native.lib.llama_vocab_get_add_bos.argtypes = native.lib.llama_vocab_bos.argtypes = [ctypes.c_void_p]
    native.lib.llama_vocab_get_add_bos.restype = ctypes.c_bool
    out = Path(sys.argv[2]) if len(sys.argv) > 2 else HERE
    with tempfile.TemporaryDirectory() as tmp:
        dump_gz(out / "llama_imatrix.json.gz", {case: record(native, Path(tmp), case) for case in CASES})


if __name__ == "__main__":
    main()
