"""SmolLM2 with its cache in every type: the best token after each of 2,048 positions against the pin's.

    python bench/cache_types.py [--only NAME] [--positions N]

The pin's are in tests/goldens/llama_cache.npz (recorded by record_cache.py there), for flash attention on and off and
each type of K and V, in ubatches of 512. Where the pin's two best differ by more than 0.5 ours must be its best.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vizggml.llama.model import Model, load_model

GOLDEN = Path(__file__).parent.parent / "tests" / "goldens" / "llama_cache.npz"
CLEAR = 0.5


def best_tokens(model: Model, tokens: list[int], name: str, n_ctx: int, n_threads: int) -> NDArray[np.int64]:
    """The best token after each, decoded in ubatches of 512."""
    mode, type_k, type_v = name.split(".")
    given = {"n_ctx": n_ctx, "flash_attn": mode == "flash", "type_k": type_k, "type_v": type_v, "n_threads": n_threads}
    context = model.context(**given)
    parts = (tokens[begin : begin + 512] for begin in range(0, len(tokens), 512))
    return np.concatenate([context.decode(part, range(len(part))).argmax(1) for part in parts])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="runs whose name has this, such as flash.Q8_0")
    parser.add_argument("--positions", type=int, default=2048)
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    pin, model, n = np.load(GOLDEN), load_model("smollm2"), given.positions
    tokens, wrong = pin["tokens"][:n].tolist(), 0
    for name in sorted(key[:-4] for key in pin.files if key.endswith(".top") and given.only in key):
        begin = time.perf_counter()
        differs = best_tokens(model, tokens, name, 2048, given.threads) != pin[f"{name}.top"][:n]
        clear = pin[f"{name}.gap"][:n] > CLEAR
        wrong += int((differs & clear).sum())
        widest = float(pin[f"{name}.gap"][:n][differs].max(initial=0))
        print(
            f"{name:20s} {clear.sum():5d} of {n} clear, {(differs & clear).sum()} of them differ; "
            f"{differs.sum():3d} differ in all, the widest gap {widest:.3f}; {time.perf_counter() - begin:.0f} s",
            flush=True,
        )
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
