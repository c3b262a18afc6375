"""SentencePiece against the reference's own cases, its recorded answers, and llama.cpp live."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.goldens.record_vocab import write_cut_spm
from tests.llama.awkward import FRAGMENTS
from tests.oracle_vocab import OracleVocab, check_tokens
from vizggml.errors import VizggmlError
from vizggml.ggml.gguf import Value, read_gguf, write_gguf
from vizggml.llama.spm import SPACE, SPM
from vizggml.llama.vocab import Vocab

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parents[1] / "goldens" / "vocab.json").read_text())["spm"]


@pytest.fixture(scope="module")
def cut(tmp_path_factory: pytest.TempPathFactory) -> Vocab:
    path = tmp_path_factory.mktemp("spm") / "cut.gguf"
    write_cut_spm(path, GOLDEN)
    return Vocab.from_gguf(read_gguf(path))


def test_the_cases_of_the_reference(cut: Vocab) -> None:
    assert len(GOLDEN["cases"]) == 46
    for text, ids in GOLDEN["cases"]:
        assert cut.tokenize(text, add_special=False) == ids
        assert cut.detokenize(ids) == text


def test_what_the_reference_made_of_awkward_texts(cut: Vocab) -> None:
    for text, add_special, parse_special, ids, remove_special, unparse_special, back in GOLDEN["texts"]:
        assert cut.tokenize(text, add_special, parse_special) == ids
        assert cut.detokenize(ids, remove_special, unparse_special) == back


def test_the_best_score_is_joined_first_by_hand() -> None:
    """a b c d: "bc" is worth most, then "abc", so that "ab" and "cd" are never joined."""
    ids = {text: i for i, text in enumerate(["a", "b", "c", "d", "ab", "bc", "cd", "abc", "<0x78>", "y"])}
    spm = SPM(ids, [0, 0, 0, 0, -2, -1, -1, -3, 0, 0])
    assert spm.merge("abcd") == ["abc", "d"]
    assert spm.merge("abab") == ["ab", "ab"]
    assert spm.merge("bcd") == ["bc", "d"]  # as good as "cd", and further left
    assert spm.tokenize("abxy") == [4, 8, 9]
    with pytest.raises(VizggmlError, match="no token for byte 0xC3"):
        spm.tokenize("é")


def made_vocabulary() -> tuple[list[str], list[float], list[int]]:
    """Special tokens, bytes, characters, and words that lead to one another, with scores of which many are equal."""
    dice = random.Random(3)
    tokens = {"<unk>": 2, "<bos>": 3, "<eos>": 3, "<start_of_turn>": 3, "<end_of_turn>": 3}
    tokens |= {f"<0x{byte:02X}>": 6 for byte in range(256)}
    tokens |= {"\n\n": 4, SPACE * 3: 4, "<|im_end|>": 4, "[multi]": 4, "<unused1>": 5}
    text = "".join(FRAGMENTS) + "abcabc the then there hello world  "
    text = text.replace(" ", SPACE).replace("\x00", "")  # a token ends at a NUL there
    for _ in range(900):
        begin, length = dice.randrange(len(text)), dice.choice([1, 1, 2, 2, 3, 4, 5])
        tokens.setdefault(text[begin : begin + length], 1)
    return [*tokens], [-float(dice.randrange(40)) for _ in tokens], [*tokens.values()]


@pytest.fixture(scope="module", params=[(True, True, False), (False, True, True), (False, False, False)])
def twins(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Vocab, OracleVocab]]:
    """With a space before the text or, as gemma has it, without; with and without BOS and EOS."""
    prefix, bos, eos = request.param
    tokens, scores, types = made_vocabulary()
    path = tmp_path_factory.mktemp("spm") / "made.gguf"
    metadata: dict[str, Value] = {
        "general.architecture": "llama",
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": tokens,  # type: ignore[dict-item]
        "tokenizer.ggml.scores": np.array(scores, np.float32),
        "tokenizer.ggml.token_type": np.array(types, np.int32),
        "tokenizer.ggml.add_bos_token": bos,
        "tokenizer.ggml.add_eos_token": eos,
    }
    if not prefix:
        metadata["tokenizer.ggml.add_space_prefix"] = False
    write_gguf(path, metadata)
    oracle = OracleVocab(path)
    yield Vocab.from_gguf(read_gguf(path)), oracle
    oracle.close()


SPECIAL = ("<bos>", "<start_of_turn>", "<end_of_turn>", "[multi]", "<unk>", "<0x41>", "\n\n", "   ", "▁", "hello world")
texts = st.lists(
    st.one_of(
        st.sampled_from((*FRAGMENTS, *SPECIAL)),
        st.text(st.sampled_from("abchelotrn ")),
        st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
    ),
    max_size=14,
).map("".join)


@settings(max_examples=150, deadline=None)
@given(texts, st.booleans(), st.booleans(), st.booleans())
def test_tokens_as_llama_cpp_makes_them(
    twins: tuple[Vocab, OracleVocab], text: str, add: bool, parse: bool, remove: bool
) -> None:
    check_tokens(*twins, text, add, parse, remove)


def test_every_piece_and_role_as_llama_cpp_has_it(twins: tuple[Vocab, OracleVocab]) -> None:
    ours, theirs = twins
    assert len(ours) == theirs.n_tokens
    for id in range(len(ours)):
        assert (ours.attr[id], ours.is_eog(id)) == (theirs.attr(id), theirs.is_eog(id))
        for special in (True, False):
            assert ours.token_bytes(id, special) == theirs.piece(id, special)
    assert ours.special["bos"] == theirs.lib.llama_vocab_bos(theirs.vocab) == 1
    assert ours.special["eos"] == theirs.lib.llama_vocab_eos(theirs.vocab) == 2
    assert ours.add_bos == theirs.lib.llama_vocab_get_add_bos(theirs.vocab)
    assert ours.add_eos == theirs.lib.llama_vocab_get_add_eos(theirs.vocab)


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (np.zeros(2, np.float32), "key 'tokenizer.ggml.scores' has 2 values for 3 tokens"),
        ("high", "key 'tokenizer.ggml.scores' has type str, it must be an array of f32 or i32"),
    ],
)
def test_scores_that_do_not_fit_are_refused(scores: Value, message: str, tmp_path: Path) -> None:
    write_gguf(
        tmp_path / "m.gguf",
        {
            "general.architecture": "llama",
            "tokenizer.ggml.model": "llama",
            "tokenizer.ggml.tokens": ["<unk>", "<s>", "</s>"],  # type: ignore[dict-item]
            "tokenizer.ggml.scores": scores,
        },
    )
    with pytest.raises(VizggmlError, match=message):
        Vocab.from_gguf(read_gguf(tmp_path / "m.gguf"))


def test_a_line_has_the_same_tokens_at_the_head_of_a_long_text(cut: Vocab) -> None:
    """No token of this vocabulary crosses the end of a line."""
    part = GOLDEN["cases"][-1][0] + "\n"
    ids = cut.tokenize(part, add_special=False)
    assert cut.tokenize(part * 20, add_special=False)[: len(ids)] == ids
