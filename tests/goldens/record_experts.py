"""Record what a native build of the reference does with mixtures of experts. Run by hand, never in CI.

    python tests/goldens/record_experts.py LIBLLAMA [OUT_DIR]      (or set VIZGGML_PIN to the library's path)

LIBLLAMA is as in record_llama.py. The files are those of `tests/llama/mixtures_made.py`: llama with experts and
qwen3moe, random weights of several types. It writes

- experts_graphs.json.gz  every node of the graphs of a prompt and of one token, flash attention on and off, with F16
  weights, as in llama_graphs.json.gz;
- experts.json            by architecture and type of weights: the file's digest, the bytes of each buffer (weights with
  and without repacking), and the spread of the reference's own logits: the normalized mean squared error between flash
  attention on and off, of all of them and of those that are kept;
- experts_logits.npz      logits of 20 tokens, every third column, by architecture, type, mode and ubatch.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent.parent))

from tests.goldens.record_llama import MODES, dump_gz, graphs, nmse, settings  # noqa: E402
from tests.llama.mixtures_made import ARCHITECTURES, WEIGHTS, digest, make, shown, tokens  # noqa: E402
from tests.llama.native import Native, NativeModel  # noqa: E402

UBATCHES = (512, 1)


def buffers(model: NativeModel, n_ubatch: int, flash_attn: bool) -> dict[str, Any]:
    with model.context(**settings(512, n_ubatch, flash_attn)) as context:
        context.watch = True
        context.decode([1])
        cache = {place[0] for node in context.seen if (place := node["leafs"].get("cache_k_l0"))}.pop()
        compute = {node["place"][0] for node in context.seen if node["name"] == "result_norm"}.pop()
        sizes = list(context.buffers.values())
        weights = {buft: size for i, (buft, size, _) in enumerate(sizes) if i not in (cache, compute)}
        return {"nodes": len(context.seen), "compute": sizes[compute][1], "kv": sizes[cache][1], "weights": weights}


def logits(model: NativeModel) -> dict[str, NDArray[np.float32]]:
    ids, out = tokens(), {}
    for mode in MODES:
        for n_ubatch in UBATCHES:
            with model.context(**settings(512, n_ubatch, mode == "flash")) as context:
                out[f"{mode}-{n_ubatch}"] = context.decode(ids, [True] * len(ids))
    return out


def main() -> None:
    library = sys.argv[1] if len(sys.argv) > 1 else os.environ["VIZGGML_PIN"]
    out = Path(sys.argv[2]) if len(sys.argv) > 2 else HERE
    native = Native(library)
    facts, arrays, all_graphs = [], {}, []
    with tempfile.TemporaryDirectory() as folder:
        for arch in ARCHITECTURES:
            for type in WEIGHTS:
                path = make(Path(folder), arch, type)
                with native.model(path) as model:
                    repacked = buffers(model, 512, True)["weights"]
                with native.model(path, use_extra_bufts=False) as model:
                    rows = logits(model)
                    sizes = {f"{m}-{n}": buffers(model, n, m == "flash") for m in MODES for n in UBATCHES}
                    if type == "F16":
                        all_graphs += graphs(model, arch, tokens())
                spread = {
                    f"{mode}-{n}": [nmse(*pair), nmse(*map(shown, pair))]
                    for mode, other in (MODES, MODES[::-1])
                    for n in UBATCHES
                    if (pair := (rows[f"{other}-{n}"], rows[f"{mode}-{n}"]))
                }
                facts.append(
                    {
                        **{"arch": arch, "type": type, "digest": digest(path)},
                        **{"repacked": repacked, "buffers": sizes, "spread": spread},
                    }
                )
                arrays |= {f"{arch}-{type}-{how}": shown(found) for how, found in rows.items()}
    (out / "experts.json").write_text(json.dumps(facts, indent=1) + "\n")
    np.savez_compressed(out / "experts_logits.npz", **arrays)
    dump_gz(out / "experts_graphs.json.gz", all_graphs)


if __name__ == "__main__":
    main()
