"""Record what a native build of the reference allocates for shapes and settings of many sorts. Run by hand only.

    python tests/goldens/record_plan.py LIBLLAMA [OUT_DIR]      (or set VIZGGML_PIN to the library's path)

LIBLLAMA is as in record_llama.py. It writes

- llama_plan.json  for drawn shapes, weight types, lengths, batches, cache types, sequences and streams: node and
  split counts, and the bytes of the compute, KV, output and weight buffers;
- llama_quant_types.json.gz  the type that the reference's quantizer gives to each tensor, in the order of the file, for
  some shapes and mixtures; and for some of these the bytes of the weights by buffer type, once loaded.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import sys
import tempfile
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent.parent))

from tests.goldens.record_llama import dump_gz  # noqa: E402
from tests.llama.made import Shape, write  # noqa: E402
from tests.llama.native import ROOM, Native, NativeContext  # noqa: E402
from vizggml.ggml.gguf import read_gguf  # noqa: E402
from vizggml.ggml.types import TYPES  # noqa: E402

N_CASES = 90
FLOATS = ("F32", "F16", "BF16")
QUANTIZED = ("Q8_0", "Q4_0", "Q4_1", "IQ4_NL", "Q5_0", "Q5_1")
FLASH = {"auto": -1, "off": 0, "on": 1}
FTYPES = {
    **{"Q4_0": 2, "Q4_1": 3, "Q8_0": 7, "Q5_0": 8, "Q5_1": 9, "Q2_K": 10, "Q3_K_S": 11, "Q3_K_M": 12, "Q3_K_L": 13},
    **{"Q4_K_S": 14, "Q4_K_M": 15, "Q5_K_S": 16, "Q5_K_M": 17, "Q6_K": 18},
}
"""`enum llama_ftype`, include/llama.h."""


def draw_shape(rng: random.Random) -> Shape:
    arch = rng.choice(["llama", "qwen3", "qwen3moe"])
    n_head_kv = rng.choice([1, 2, 4])
    n_head = n_head_kv * rng.choice([1, 2, 3])
    head = rng.choice([32, 64, 96, 128])
    type = rng.choice(["F16", "F16", "F32", "Q4_1", "Q8_0", "Q4_0", "Q4_0", "Q5_0", "IQ4_NL", "MXFP4"])
    return Shape(
        arch,
        n_layer=rng.randint(1, 4),
        n_embd=head * n_head,
        n_head=n_head,
        n_head_kv=n_head_kv,
        n_ff=32 * rng.randint(1, 9),
        n_vocab=rng.choice([160, 101, 512, 3000]),
        head_dim=0 if arch == "llama" else rng.choice([0, 64, 128]),
        tied=rng.random() < 0.5,
        type=type,
        attn_bias=arch != "qwen3moe" and rng.random() < 0.3,
        rope_freqs=arch == "llama" and rng.random() < 0.3,
        n_expert=rng.choice([4, 16]) if arch == "qwen3moe" else 0,
        n_expert_used=rng.choice([1, 2, 4]),
    )


def draw_settings(rng: random.Random, shape: Shape) -> dict[str, Any]:
    flash = rng.choice(["on", "on", "off", "auto"])
    n_ctx = rng.choice([1, 100, 256, 300, 512, 1000, 2048, 3000, 4096, 9000])
    n_batch = rng.choice([1, 16, 100, 512, 2048, 4096])
    n_seq_max = rng.choice([1, 1, 1, 2, 3, 5]) if min(n_ctx, n_batch) >= 5 else 1
    return {
        "n_ctx": n_ctx,
        "n_batch": n_batch,
        "n_ubatch": rng.choice([1, 7, 32, 128, 512, 1000, 5000]),
        "n_seq_max": n_seq_max,
        "kv_unified": rng.random() < 0.5,
        "flash_attn": flash,
        "type_k": rng.choice([*FLOATS, "F16", *QUANTIZED]),
        "type_v": rng.choice(FLOATS if flash == "off" else (*FLOATS, "F16", *QUANTIZED)),
    }


def measured(context: NativeContext) -> dict[str, Any]:
    """What a context holds, from the buffers of the tensors of one decode, and from the log."""
    context.watch = True
    context.decode([1])
    at = {node["name"]: node["place"][0] for node in context.seen}
    caches = {place[0] for node in context.seen if (place := node["leafs"].get("cache_k_l0"))}
    buffers = list(context.buffers.values())
    weights = {name: size for name, size, _ in buffers if name in ("CPU_Mapped", "CPU_REPACK")}
    return {
        "nodes": len(context.seen),
        "splits": int(context.logged(r"splits = (\d+)")),
        "compute": buffers[at["result_norm"]][1],
        "kv": [buffers[i][1] for i in sorted(caches)],
        "output_mib": float(context.logged(r"output buffer size = +([\d.]+) MiB")),
        "model": weights,
    }


def record_plans(native: Native, folder: Path) -> list[dict[str, Any]]:
    rng = random.Random(20)
    cases: list[dict[str, Any]] = []
    while len(cases) < N_CASES:
        shape = draw_shape(rng)
        settings = draw_settings(rng, shape)
        given = {
            **settings,
            "flash_attn_type": FLASH[settings["flash_attn"]],
            "type_k": TYPES[settings["type_k"]].id,
            "type_v": TYPES[settings["type_v"]].id,
        }
        del given["flash_attn"]
        path = write(folder / f"{len(cases)}.gguf", shape, len(cases))
        with native.model(path) as model, model.context(**given) as context:
            found = measured(context)
        path.unlink()
        cases.append({"shape": asdict(shape), "settings": settings, "found": found})
        print(len(cases), shape.arch, settings, found)
    return cases


class QuantizeParams(ctypes.Structure):
    """`llama_model_quantize_params`, include/llama.h: its first fields, and room for the rest."""

    _fields_ = [("nthread", ctypes.c_int32), ("ftype", ctypes.c_int32), ("rest", ctypes.c_char * 88), ROOM]


MIXED = {
    "llama-32": Shape("llama", n_layer=32, n_embd=256, n_head=4, n_head_kv=4, n_ff=256, n_vocab=64, tied=False),
    "llama-80": Shape("llama", n_layer=80, n_embd=256, n_head=8, n_head_kv=1, n_ff=256, n_vocab=64, tied=False),
    "tied": Shape("qwen3", n_layer=8, n_embd=768, n_head=8, n_head_kv=4, n_ff=2048, n_vocab=64),
    "narrow": Shape("llama", n_layer=10, n_embd=96, n_head=3, n_head_kv=3, n_ff=160, n_vocab=64, tied=False),
    "moe": Shape(
        "qwen3moe", n_layer=48, n_embd=256, n_head=8, n_head_kv=1, n_ff=256, n_vocab=64, tied=False, n_expert=16
    ),
    "moe-8": Shape(
        "qwen3moe", n_layer=9, n_embd=256, n_head=8, n_head_kv=1, n_ff=256, n_vocab=64, tied=False, n_expert=8
    ),
}

WEIGHED = ("tied", "moe-8")
"""The shapes whose weights are also loaded, to see which buffers they come to lie in."""


def record_types(native: Native, folder: Path) -> dict[str, Any]:
    lib = native.lib
    lib.llama_model_quantize_default_params.restype = QuantizeParams
    lib.llama_model_quantize.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.POINTER(QuantizeParams)]
    found: dict[str, Any] = {}
    weights: dict[str, Any] = {}
    for name, shape in MIXED.items():
        source = write(folder / f"{name}.gguf", shape, 1)
        for mixture, ftype in FTYPES.items():
            params = lib.llama_model_quantize_default_params()
            params.nthread, params.ftype = 1, ftype
            out = folder / "out.gguf"
            assert lib.llama_model_quantize(str(source).encode(), str(out).encode(), ctypes.byref(params)) == 0
            if name in WEIGHED:
                with native.model(out) as model, model.context(n_ctx=256) as context:
                    weights[f"{name} {mixture}"] = measured(context)["model"]
            gguf = read_gguf(out)
            types = {tensor: info.type.name for tensor, info in gguf.tensors.items()}
            gguf.close()
            found[f"{name} {mixture}"] = types
            print(name, mixture, Counter(types.values()))
    return {"shapes": {name: asdict(shape) for name, shape in MIXED.items()}, "types": found, "weights": weights}


def main() -> None:
    native = Native(sys.argv[1] if len(sys.argv) > 1 else os.environ["VIZGGML_PIN"])
    out = Path(sys.argv[2]) if len(sys.argv) > 2 else HERE
    with tempfile.TemporaryDirectory() as tmp:
        plans = record_plans(native, Path(tmp))
        types = record_types(native, Path(tmp))
    (out / "llama_plan.json").write_text(
        json.dumps(plans, separators=(",", ":")).replace('{"shape"', '\n{"shape"') + "\n"
    )
    dump_gz(out / "llama_quant_types.json.gz", types)


if __name__ == "__main__":
    main()
