"""Record what the reference's tokenizer does. Run by hand, never in CI.

    python tests/goldens/record_vocab.py LIBLLAMA LLAMA_CPP

LIBLLAMA is the `libllama.so` of a build of the commit in `vizggml.ggml.types.REFERENCE_COMMIT`, LLAMA_CPP its source.
Writes vocab.json:

- "pin": for each pre-tokenizer, the reference's own cases (models/ggml-vocab-*.gguf.inp with .out) and that vocabulary
  cut down to the tokens and merges that these cases touch, with their ids. The cut vocabulary is given back to the
  reference, which must still answer as .out says.
- "spm": the same for models/ggml-vocab-llama-spm.gguf, cut down to the tokens that these cases look up and find, each
  with its text, score and type; and 150 awkward texts as below, with the cut vocabulary.
- "smollm2": texts made of awkward fragments, and what the reference makes of them with SmolLM2's whole vocabulary:
  [text, add_special, parse_special, ids, remove_special, unparse_special, detokenized].
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))

from tests.llama.awkward import text  # noqa: E402
from tests.oracle_vocab import OracleVocab  # noqa: E402
from vizggml.ggml.gguf import read_gguf, write_gguf  # noqa: E402
from vizggml.llama.models import resolve_model  # noqa: E402
from vizggml.llama.vocab import Vocab  # noqa: E402

N_TEXTS = 250
N_SPM_TEXTS = 150


class Noted(dict[str, int]):
    """A dict that remembers which of its keys were found."""

    def __init__(self, items: dict[str, int]) -> None:
        super().__init__(items)
        self.found: set[str] = set()

    def get(self, key: str, default: Any = None) -> Any:
        if key in self:
            self.found.add(key)
        return super().get(key, default)


def cases(base: Path) -> list[tuple[str, list[int]]]:
    texts = base.with_name(base.name + ".inp").read_bytes().decode().split("\n__ggml_vocab_test__\n")
    rows = base.with_name(base.name + ".out").read_text().splitlines()
    return [(case, [int(id) for id in row.split()]) for case, row in zip(texts, rows, strict=False)]


def reduced(base: Path, pre: str, library: str) -> dict[str, Any]:
    vocab = Vocab.from_gguf(read_gguf(base))
    vocab.bpe.ranks = noted = Noted(vocab.bpe.ranks)
    wanted: set[int] = set()
    found = cases(base)
    for case, ids in found:
        assert vocab.tokenize(case, add_special=False) == ids, case
        wanted.update(ids)
    tokens = {id: vocab.texts[id] for id in sorted(wanted)}
    merges = sorted(noted.found, key=noted.__getitem__)
    golden = {"n_tokens": vocab.n_tokens, "tokens": tokens, "merges": merges, "cases": found}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cut.gguf"
        write_cut(path, pre, json.loads(json.dumps(golden)))
        oracle = OracleVocab(path, library)
        for case, ids in found:
            assert oracle.tokenize(case, False, False) == ids, case
        oracle.close()
    return golden


def write_cut(path: Path, pre: str, golden: dict[str, Any]) -> None:
    """The cut vocabulary as a GGUF."""
    tokens = [""] * golden["n_tokens"]
    for id, token in golden["tokens"].items():
        tokens[int(id)] = token
    write_gguf(
        path,
        {
            "general.architecture": "llama",
            "tokenizer.ggml.model": "gpt2",
            "tokenizer.ggml.pre": pre,
            "tokenizer.ggml.tokens": tokens,
            "tokenizer.ggml.merges": golden["merges"],
        },
    )


def reduced_spm(base: Path, library: str) -> dict[str, Any]:
    gguf = read_gguf(base)
    vocab = Vocab.from_gguf(gguf)
    vocab.spm.ids = noted = Noted(vocab.ids)
    found = cases(base)
    for case, ids in found:
        assert vocab.tokenize(case, add_special=False) == ids, case
    dice = random.Random(2)
    for given in [text(dice) for _ in range(N_SPM_TEXTS)]:
        vocab.tokenize(given)
    kept = sorted(
        {noted[key] for key in noted.found} | {vocab.spm.byte_to_token(byte) for byte in range(256)} | {0, 1, 2}
    )
    types = gguf.metadata["tokenizer.ggml.token_type"]
    assert isinstance(types, np.ndarray)
    tokens = {id: [vocab.texts[id], vocab.scores[id], int(types[id])] for id in kept}
    golden = {"n_tokens": vocab.n_tokens, "tokens": tokens, "cases": found}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cut.gguf"
        write_cut_spm(path, json.loads(json.dumps(golden)))
        oracle = OracleVocab(path, library)
        for case, ids in found:
            assert oracle.tokenize(case, False, False) == ids, case
        oracle.close()
        golden["texts"] = awkward(path, library, 2, N_SPM_TEXTS)
    return golden


def write_cut_spm(path: Path, golden: dict[str, Any]) -> None:
    """The cut vocabulary as a GGUF."""
    tokens = [["", 0.0, 1] for _ in range(golden["n_tokens"])]
    for id, token in golden["tokens"].items():
        tokens[int(id)] = token
    texts, scores, types = zip(*tokens, strict=True)
    write_gguf(
        path,
        {
            "general.architecture": "llama",
            "tokenizer.ggml.model": "llama",
            "tokenizer.ggml.tokens": list(texts),
            "tokenizer.ggml.scores": np.array(scores, np.float32),
            "tokenizer.ggml.token_type": np.array(types, np.int32),
        },
    )


def awkward(path: Path, library: str, seed: int, n: int) -> list[list[Any]]:
    oracle = OracleVocab(path, library)
    dice = random.Random(seed)
    rows = []
    for _ in range(n):
        given, flags = text(dice), [dice.random() < 0.5 for _ in range(4)]
        ids = oracle.tokenize(given, flags[0], flags[1])
        back = oracle.detokenize(ids, flags[2], flags[3]).decode("utf-8", "replace")
        rows.append([given, flags[0], flags[1], ids, flags[2], flags[3], back])
    oracle.close()
    return rows


def main(library: str, source: Path) -> None:
    pin = {
        pre: reduced(source / f"models/ggml-vocab-{pre}.gguf", pre, library) for pre in ("gpt-2", "llama-bpe", "qwen2")
    }
    spm = reduced_spm(source / "models/ggml-vocab-llama-spm.gguf", library)
    smollm2 = awkward(resolve_model("smollm2"), library, 1, N_TEXTS)
    golden = {"pin": pin, "spm": spm, "smollm2": smollm2}
    (HERE / "vocab.json").write_text(json.dumps(golden, ensure_ascii=True, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
