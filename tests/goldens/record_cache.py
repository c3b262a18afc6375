"""Record the top tokens of a native build of the reference for every type of cache. Run by hand, never in CI.

    python tests/goldens/record_cache.py LIBLLAMA [OUT_DIR]      (or set VIZGGML_PIN to the library's path)
    python tests/goldens/record_cache.py LIBLLAMA --session      only the session

What llama_cache.npz has already is not recorded again: delete it to record it anew.

LIBLLAMA is the `libllama.so` of a build of the commit in `vizggml.ggml.types.REFERENCE_COMMIT`, CPU backend, without
AMX. It writes

- llama_cache.npz   2,048 tokens (`text.txt`, and what SmolLM2 went on with, sampled at temperature 0.8 from
  the likeliest 40), and for each
  run (flash attention on or off, the types of K and V; ubatches of 512) the best token after each position and by how
  much its logit is above the second's;
- llama_session.bin, llama_session.json   the state of the tiny model after a few tokens, as `llama_state_save_file`
  writes it, and the tokens with which it went on.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent.parent))

from tests.goldens.record_llama import SMOLLM2, settings  # noqa: E402
from tests.llama.native import Native, NativeModel  # noqa: E402
from vizggml.ggml.types import TYPES  # noqa: E402
from vizggml.llama.cparams import CACHE_TYPES  # noqa: E402
from vizggml.llama.models import resolve_model  # noqa: E402

N_POSITIONS = 2048
FROM_TEXT = 512
SEED = 1


def runs() -> list[tuple[str, str, str]]:
    """Mode, type of K, type of V. Quantized values need flash attention: without it they stay F16."""
    flash = [("flash", t, t) for t in CACHE_TYPES]
    return flash + [("plain", t, "F16" if TYPES[t].is_quantized else t) for t in CACHE_TYPES]


def text(model: NativeModel) -> list[int]:
    tokens = model.tokenize((HERE / "text.txt").read_text())[:FROM_TEXT]
    assert len(tokens) == FROM_TEXT
    rng = np.random.default_rng(SEED)
    with model.context(**settings(N_POSITIONS, 512, True) | {"n_threads": 1}) as context:
        logits = context.decode(tokens)
        while len(tokens) < N_POSITIONS:
            likeliest = np.argpartition(logits[-1], -40)[-40:]
            p = np.exp((logits[-1, likeliest] - logits[-1].max()) / 0.8, dtype=np.float64)
            tokens.append(int(rng.choice(likeliest, p=p / p.sum())))
            logits = context.decode(tokens[-1:])
    return tokens


def best(
    model: NativeModel, tokens: list[int], mode: str, k: str, v: str
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    given = settings(N_POSITIONS, 512, mode == "flash") | {
        "type_k": TYPES[k].id,
        "type_v": TYPES[v].id,
        "n_threads_batch": 1,
    }
    ids, gaps = [], []
    with model.context(**given) as context:
        for begin in range(0, N_POSITIONS, 512):
            logits = context.decode(tokens[begin : begin + 512], [True] * 512)
            two = np.sort(np.partition(logits, -2, axis=1)[:, -2:], axis=1)
            ids.append(logits.argmax(1).astype(np.int32))
            gaps.append(two[:, 1] - two[:, 0])
    return np.concatenate(ids), np.concatenate(gaps)


def record_session(native: Native, out: Path) -> None:
    given = settings(256, 512, True) | {"n_threads": 1, "n_threads_batch": 1}
    with native.model(resolve_model("tiny")) as model, model.context(**given) as context:
        *tokens, last = model.tokenize("Once upon a time, there was")
        context.decode(tokens)
        ids, name = (ctypes.c_int32 * len(tokens))(*tokens), str(out / "llama_session.bin").encode()
        assert native.lib.llama_state_save_file(ctypes.c_void_p(context.handle), name, ids, ctypes.c_size_t(len(ids)))
        greedy = [last]
        while len(greedy) <= 16:
            greedy.append(int(context.decode(greedy[-1:])[-1].argmax()))
    facts = {"tokens": tokens, "next": last, "greedy": greedy[1:]}
    (out / "llama_session.json").write_text(json.dumps(facts) + "\n")


def main() -> None:
    arguments = [a for a in sys.argv[1:] if a != "--session"]
    native = Native(arguments[0] if arguments else os.environ["VIZGGML_PIN"])
    out = Path(arguments[1]) if len(arguments) > 1 else HERE
    record_session(native, out)
    if "--session" in sys.argv:
        return
    path = out / "llama_cache.npz"
    with native.model(SMOLLM2) as model:
        arrays: dict[str, NDArray[np.generic]] = dict(np.load(path)) if path.exists() else {}
        if "tokens" not in arrays:
            arrays["tokens"] = np.array(text(model), np.int32)
            np.savez_compressed(path, **arrays)  # type: ignore[arg-type]
        for mode, k, v in runs():
            name = f"{mode}.{k}.{v}"
            if f"{name}.top" in arrays:
                continue
            ids, gaps = best(model, arrays["tokens"].tolist(), mode, k, v)
            arrays |= {f"{name}.top": ids, f"{name}.gap": gaps.astype(np.float16)}
            np.savez_compressed(path, **arrays)  # type: ignore[arg-type]
            print(f"{name}: {(gaps > 0.5).sum()} of {N_POSITIONS} are clear", flush=True)


if __name__ == "__main__":
    main()
