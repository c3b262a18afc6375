"""`vizggml quantize` and `vizggml imatrix` as a person types them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from tests.test_cli import failed, vizggml


def test_quantize_answers_in_json(tmp_path: Path) -> None:
    out = tmp_path / "q4.gguf"
    done = vizggml("quantize", "tiny", out, "q4_0", "--allow-requantize", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    # the size that llama.cpp's file has (goldens)
    assert out.stat().st_size == 1977504
    assert (told["type"], told["output"]) == ("Q4_0", str(out))
    first = told["tensors"][1]
    assert first == {
        "name": "token_embd.weight",
        "ne": [256, 832],
        "from": "Q8_0",
        "type": "Q6_K",
        "bytes": 832 * 210,
        "importance": False,
    }


def test_quantize_says_what_it_made(tmp_path: Path) -> None:
    told = vizggml("quantize", "tiny", tmp_path / "q4.gguf", "Q4_K_M", "--allow-requantize").stdout
    assert "Q4_K" in told
    assert told.splitlines()[-1].endswith(" bits a weight")


def test_quantize_fails_in_one_line(tmp_path: Path) -> None:
    said = failed(vizggml("quantize", "tiny", tmp_path / "q4.gguf", "Q4_0"))
    assert said.startswith("vizggml: tiny.gguf: tensor 'token_embd.weight' is Q8_0 already; --allow-requantize")
    said = failed(vizggml("quantize", "tiny", tmp_path / "nowhere" / "q4.gguf", "Q4_0", "--allow-requantize"))
    assert "cannot be written: No such file or directory" in said
    said = failed(vizggml("quantize", "tiny", tmp_path / "q.gguf", "Q4_0", "--imatrix", tmp_path / "none"))
    assert said == f"vizggml: {tmp_path / 'none'}: no such file"


def test_imatrix_and_then_quantize_with_it(tmp_path: Path) -> None:
    text, matrix, out = tmp_path / "text.txt", tmp_path / "imatrix.gguf", tmp_path / "out.gguf"
    text.write_text("Once upon a time there was a little girl. " * 8)
    done = vizggml("imatrix", "tiny", text, "-o", matrix, "-c", 32, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    # four layers of seven matrices
    assert (told["entries"], told["chunk_size"]) == (28, 32)
    assert told["chunks"] >= 2
    done = vizggml("quantize", "tiny", out, "Q4_K_M", "--imatrix", matrix, "--allow-requantize", "--json")
    tensors = json.loads(done.stdout)["tensors"]
    assert sum(t["importance"] for t in tensors) == 28
    shown = json.loads(vizggml("info", out, "--json").stdout)["metadata"]
    assert shown["quantize.imatrix.file"] == str(matrix)[:127]
    assert shown["quantize.imatrix.dataset"] == str(text)[:127]
    assert (shown["quantize.imatrix.entries_count"], shown["quantize.imatrix.chunks_count"]) == (28, told["chunks"])


def test_imatrix_of_too_short_a_text(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("Once")
    said = failed(vizggml("imatrix", "tiny", text, "-o", tmp_path / "i.gguf"))
    assert said == "vizggml: the text has 2 tokens: at least 1024, two chunks of 512, are needed"


def test_info_opens_a_block() -> None:
    asked = "blk.0.attn_q.weight:3"
    told = json.loads(vizggml("info", "tiny", "--block", asked, "--json").stdout)
    raw = bytes.fromhex(told["data"])
    # a block of Q8_0: a scale in F16, 32 codes of 8 bits
    d, codes = np.frombuffer(raw[:2], np.float16)[0], np.frombuffer(raw[2:], np.int8)
    assert (told["tensor"], told["block"], told["type"]) == ("blk.0.attn_q.weight", 3, "Q8_0")
    assert told["codes"] == codes.tolist()
    assert told["scales"] == [float(d)]
    assert told["values"] == [float(np.float32(d) * np.float32(q)) for q in codes]
    assert [(f["name"], f["bytes"]) for f in told["fields"]] == [("d", [0, 2]), ("qs", [2, 34])]
    printed = vizggml("info", "tiny", "--block", asked).stdout
    assert "block 3: Q8_0, 32 elements in 34 bytes, 8.5 bits each" in printed


def test_info_says_which_block_there_is_not() -> None:
    assert failed(vizggml("info", "tiny", "--block", "nobody")).startswith(
        "vizggml: tensor 'nobody': tiny.gguf has none of that name"
    )
    said = failed(vizggml("info", "tiny", "--block", "blk.0.attn_q.weight:2048"))
    assert said == "vizggml: tensor 'blk.0.attn_q.weight': block 2048, it has blocks 0 to 2047"
    assert "type F32: has no blocks" in failed(vizggml("info", "tiny", "--block", "output_norm.weight"))
