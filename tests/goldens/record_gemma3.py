"""Record what a native build of the reference does with gemma3's sliding windows. Run by hand, never in CI.

    python tests/goldens/record_gemma3.py LIBLLAMA [OUT_DIR]      (or set VIZGGML_PIN to the library's path)

LIBLLAMA is as in record_llama.py. The files are those of `tests/llama/gemma3_made.py`, random weights. It writes

- gemma3_graphs.json.gz  every node of the graphs of a prompt and of one token, flash attention on and off, of seven
  layers with F16 weights, as in llama_graphs.json.gz;
- gemma3.json            by type of weights: the file's digest, and the spread of the reference's own logits as in
  experts.json; and for drawn shapes and settings the bytes of every buffer, as in llama_plan.json;
- gemma3_logits.npz      logits of texts that are longer than the caches of the layers with a window, by type, mode and
  ubatch.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent.parent))

from tests.goldens.record_llama import MODES, dump_gz, graphs, nmse, settings  # noqa: E402
from tests.llama.gemma3_made import (  # noqa: E402
    RUNS,
    SEED,
    SIX_TO_ONE,
    draw_settings,
    draw_shape,
    make,
    shown,
    tokens,
)
from tests.llama.made import write  # noqa: E402
from tests.llama.mixtures_made import WEIGHTS, digest  # noqa: E402
from tests.llama.native import Native, NativeContext, NativeModel  # noqa: E402
from vizggml.ggml.types import TYPES  # noqa: E402

N_CASES = 60


def logits(model: NativeModel) -> dict[str, NDArray[np.float32]]:
    out = {}
    for mode in MODES:
        for n_ubatch, (n_ctx, n_tokens) in RUNS.items():
            with model.context(**settings(n_ctx, n_ubatch, mode == "flash"), swa_full=False) as context:
                out[f"{mode}-{n_ubatch}"] = context.decode(tokens(n_tokens), [True] * n_tokens)
    return out


def measured(context: NativeContext) -> dict[str, Any]:
    """What a context holds, from the buffers of the tensors of one decode."""
    context.watch = True
    context.decode([1])
    at = {node["name"]: node["place"][0] for node in context.seen}
    cells = {name: place[0] for node in context.seen for name, place in node["leafs"].items() if "cache_k" in name}
    buffers = list(context.buffers.values())
    return {
        "nodes": len(context.seen),
        "splits": int(context.logged(r"splits = (\d+)")),
        "compute": buffers[at["result_norm"]][1],
        "kv": sorted(buffers[i][1] for i in set(cells.values())),
        "output_mib": float(context.logged(r"output buffer size = +([\d.]+) MiB")),
        "model": {name: size for name, size, _ in buffers if name in ("CPU_Mapped", "CPU_REPACK")},
    }


def record_plans(native: Native, folder: Path) -> list[dict[str, Any]]:
    rng = random.Random(23)
    cases: list[dict[str, Any]] = []
    while len(cases) < N_CASES:
        shape, given = draw_shape(rng), draw_settings(rng)
        path = write(folder / "drawn.gguf", shape, len(cases))
        params = dict(given)
        params["flash_attn_type"] = int(params.pop("flash_attn"))
        for key in ("type_k", "type_v"):
            params[key] = TYPES[params[key]].id
        try:
            with native.model(path) as model, model.context(**params) as context:
                found = measured(context)
        except (RuntimeError, LookupError) as error:
            print("refused", error, given)
            continue
        cases.append({"shape": asdict(shape), "settings": given, "found": found})
    return cases


def main() -> None:
    native = Native(sys.argv[1] if len(sys.argv) > 1 else os.environ["VIZGGML_PIN"])
    out = Path(sys.argv[2]) if len(sys.argv) > 2 else HERE
    facts: list[dict[str, Any]] = []
    arrays: dict[str, NDArray[np.float32]] = {}
    with tempfile.TemporaryDirectory() as tmp:
        folder = Path(tmp)
        with native.model(write(folder / "seven.gguf", SIX_TO_ONE, SEED)) as model:
            dump_gz(out / "gemma3_graphs.json.gz", graphs(model, "gemma3", tokens(17)))
        for type in WEIGHTS:
            path = make(folder, type)
            with native.model(path, use_extra_bufts=False) as model:
                rows = logits(model)
            spread = {
                f"{mode}-{n}": [nmse(*pair), nmse(*map(shown, pair))]
                for mode, other in (MODES, MODES[::-1])
                for n in RUNS
                if (pair := (rows[f"{other}-{n}"], rows[f"{mode}-{n}"]))
            }
            facts.append({"type": type, "digest": digest(path), "spread": spread})
            arrays |= {f"{type}-{how}": shown(found) for how, found in rows.items()}
        plans = record_plans(native, folder)
    golden = {"weights": facts, "plans": plans}
    (out / "gemma3.json").write_text(json.dumps(golden, separators=(",", ":")).replace('{"shape"', '\n{"shape"') + "\n")
    np.savez_compressed(out / "gemma3_logits.npz", **arrays)


if __name__ == "__main__":
    main()
