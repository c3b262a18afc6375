"""Whole files in other types: byte for byte what the pinned llama.cpp wrote (goldens/record_quantize.py)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.goldens.record_llama import settings
from tests.llama.building import golden
from tests.llama.oracle import wheel
from tests.llama.quantize_made import CASES, digest, imatrix_of, make
from tests.llama.test_mixtures import shape_of
from tests.llama.test_smollm2 import nmse
from vizggml.errors import VizggmlError
from vizggml.ggml.gguf import TensorData, read_gguf, write_gguf
from vizggml.llama.mixtures import MIXTURES, allows_quantization, tensor_types
from vizggml.llama.model import load_model
from vizggml.llama.quantize import quantize_file
from vizggml.llama.shapes import hparams_of, tensor_shapes

RECORDED: dict[str, Any] = golden("llama_quantize.json.gz")
SHARED = ("tiny IQ4_NL", "tiny Q4_K_M", "smollm2 Q5_0")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("quantized")


def made(folder: Path, case: str) -> Path:
    """Our file of that case."""
    model, mixture, *weighed = case.split()
    out = folder / f"{case}.gguf"
    if not out.exists():
        source = make(folder, model)
        quantize_file(source, out, mixture, imatrix=imatrix_of(source) if weighed else None, allow_requantize=True)
    return out


@pytest.mark.parametrize("case", CASES)
def test_the_file_is_llama_cpps_to_the_byte(case: str, folder: Path) -> None:
    out = made(folder, case)
    assert [out.stat().st_size, digest(out)] == RECORDED["files"][case]
    if case not in SHARED:
        out.unlink()


@pytest.mark.parametrize("name", sorted({case.split()[0] for case in RECORDED["types"]}))
def test_every_mixture_gives_each_tensor_the_type_that_llama_cpp_gives(name: str) -> None:
    shape = shape_of(name)
    hparams, shapes = hparams_of(name, shape), tensor_shapes(shape)
    for mixture in MIXTURES:
        for importance in (False, True):
            recorded = RECORDED["types"][f"{name} {mixture} {'with' if importance else 'without'}"]
            if not recorded and mixture != "F16":
                with pytest.raises(VizggmlError, match=f"are not whole blocks of 128 for {mixture}"):
                    tensor_types(hparams, shapes, mixture, importance=importance)
                continue
            types = tensor_types(hparams, shapes, mixture, importance=importance)
            found = {tensor: type.name for tensor, type in types.items() if allows_quantization(tensor, shapes[tensor])}
            # the shapes were F16: what stays so is not in the log
            assert {t: n for t, n in found.items() if n != "F16"} == {t: n for t, n in recorded.items() if n != "F16"}


PROMPT = "Once upon a time there was a little girl who"


@pytest.mark.parametrize("case", SHARED)
def test_our_file_runs_in_llama_cpp_with_our_logits(case: str, folder: Path) -> None:
    """In the newer library, too; the bar is what its own two attention modes differ by on these files, or less."""
    path = made(folder, case)
    model = load_model(path)
    tokens = model.vocab.tokenize(PROMPT)
    everywhere = range(len(tokens))
    ours = model.context(n_ctx=256, flash_attn=True, n_threads=1).decode(tokens, everywhere)
    with wheel().model(path) as theirs:
        assert theirs.tokenize(PROMPT) == tokens
        logits = {}
        for flash in (True, False):
            with theirs.context(**settings(256, 256, flash)) as context:
                logits[flash] = context.decode(tokens, [True] * len(tokens))
    between = nmse(logits[False], logits[True])
    assert nmse(ours, logits[True]) <= between
    best = np.sort(logits[True], axis=1)
    clear = best[:, -1] - best[:, -2] > 0.5
    assert clear.any()
    assert np.array_equal(ours.argmax(1)[clear], logits[True].argmax(1)[clear])


@pytest.mark.parametrize(
    ("model", "mixture", "options", "message"),
    [
        ("tiny", "Q5_K_M", {}, "tiny.gguf: tensor 'token_embd.weight' is Q8_0 already; --allow-requantize makes Q6_K"),
        ("small", "IQ2_XS", {}, "small.gguf: tensor 'blk.0.attn_k.weight': IQ2_XS in IQ2_XS is of no use without an"),
        ("small", "Q9", {}, "type 'Q9' is not one of F32, F16"),
    ],
)
def test_what_is_refused_is_refused_before_a_byte_is_written(
    model: str, mixture: str, options: dict[str, Any], message: str, folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.gguf"
    out.write_bytes(b"what was there")
    with pytest.raises(VizggmlError, match=f"^{re.escape(message)}"):
        quantize_file(make(folder, model), out, mixture, **options)
    assert out.read_bytes() == b"what was there"
    assert list(tmp_path.iterdir()) == [out]


def test_importance_of_another_width_is_refused(folder: Path, tmp_path: Path) -> None:
    source = make(folder, "small")
    matrix = imatrix_of(source)
    matrix.entries["blk.0.attn_q.weight"].sums = np.ones((1, 128), np.float32)
    said = "^small.gguf: tensor 'blk.0.attn_q.weight': the importance matrix has 128 numbers for it, it takes 256$"
    with pytest.raises(VizggmlError, match=said):
        quantize_file(source, tmp_path / "out.gguf", "Q4_K_M", imatrix=matrix)


def test_a_weight_that_is_no_number_leaves_no_file(folder: Path, tmp_path: Path) -> None:
    source = tmp_path / "bad.gguf"
    raw = bytearray(make(folder, "small").read_bytes())
    raw[-4:] = np.float32(np.nan).tobytes()
    source.write_bytes(raw)
    with pytest.raises(
        VizggmlError, match=r"^bad.gguf: tensor 'blk.0.ffn_down.weight': block 65535 of F32 is not sound"
    ):
        quantize_file(source, tmp_path / "out.gguf", "Q8_0")
    assert list(tmp_path.iterdir()) == [source]


def test_a_file_is_not_written_over_itself(tmp_path: Path) -> None:
    path = tmp_path / "tiny.gguf"
    path.write_bytes(make(tmp_path, "tiny").read_bytes())
    with pytest.raises(VizggmlError, match=r"it is the file that is read$"):
        quantize_file(path, path, "F16", allow_requantize=True)


def test_an_alignment_of_its_own_is_kept(folder: Path, tmp_path: Path) -> None:
    """What llama.cpp writes then, it cannot read."""
    with_64 = tmp_path / "64.gguf"
    gguf = read_gguf(make(folder, "odd"))
    tensors = [
        TensorData(t.name, t.type, t.ne[: 2 if t.ne[1] > 1 else 1], np.array(gguf.tensor_bytes(t.name)))
        for t in gguf.tensors.values()
    ]
    write_gguf(with_64, {"general.architecture": "llama", **gguf.metadata}, tensors, alignment=64)
    out = tmp_path / "out.gguf"
    quantize_file(with_64, out, "Q8_0")
    read = read_gguf(out)
    assert read.alignment == 64
    assert {t.offset % 64 for t in read.tensors.values()} == {0}


def test_progress_counts_the_tensors(folder: Path, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    report = quantize_file(
        make(folder, "odd"), tmp_path / "out.gguf", "Q4_0", progress=lambda done, total: told.append((done, total))
    )
    n = len(report.tensors)
    assert told == [(i, n) for i in range(1, n + 1)]
    # by hand: 64 x 72 and five of 72 x 72 or 24, three of 96 x 72, as F16 where rows are not whole blocks of 32
    assert {(t.name, t.type.name) for t in report.tensors if t.ne == (96, 72)} == {("blk.0.ffn_down.weight", "Q4_0")}
    assert {t.type.name for t in report.tensors if t.ne[0] == 72 and len(t.ne) == 2} == {"F16"}
