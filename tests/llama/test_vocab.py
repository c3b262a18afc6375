"""The tokenizer against the reference's own cases, its recorded answers, and llama.cpp live."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.goldens.record_vocab import write_cut
from tests.llama.awkward import FRAGMENTS
from tests.oracle_vocab import OracleVocab, check_tokens
from vizggml.errors import VizggmlError
from vizggml.events import Event, Tokenized, bus
from vizggml.ggml.gguf import StringArray, read_gguf, write_gguf
from vizggml.llama.bpe import BPE, BYTE_TO_CHAR, decode_text, encode_bytes
from vizggml.llama.models import resolve_model
from vizggml.llama.pretokenizer import PRE_TOKENIZERS, pre_tokenizer
from vizggml.llama.vocab import Vocab

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parents[1] / "goldens" / "vocab.json").read_text())


@pytest.fixture(scope="module")
def smollm2() -> Vocab:
    return Vocab.from_gguf(read_gguf(resolve_model("smollm2")))


@pytest.mark.parametrize("pre", GOLDEN["pin"])
def test_the_cases_of_the_reference(pre: str, tmp_path: Path) -> None:
    write_cut(tmp_path / "cut.gguf", pre, GOLDEN["pin"][pre])
    vocab = Vocab.from_gguf(read_gguf(tmp_path / "cut.gguf"))
    assert len(GOLDEN["pin"][pre]["cases"]) == 46
    for text, ids in GOLDEN["pin"][pre]["cases"]:
        assert vocab.tokenize(text, add_special=False) == ids
        assert b"".join(map(vocab.token_bytes, ids)).decode() == text


def test_what_the_reference_made_of_awkward_texts(smollm2: Vocab) -> None:
    for text, add_special, parse_special, ids, remove_special, unparse_special, back in GOLDEN["smollm2"]:
        assert smollm2.tokenize(text, add_special, parse_special) == ids
        assert smollm2.detokenize(ids, remove_special, unparse_special) == back


PRES = ("gpt-2", "smollm", "llama-bpe", "qwen2")


@pytest.fixture(scope="module", params=PRES)
def twins(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Vocab, OracleVocab]]:
    """SmolLM2's tokens under each pre-tokenizer, here and in the wheel, with BOS, EOS and two user-defined tokens."""
    theirs = read_gguf(resolve_model("smollm2"))
    path = tmp_path_factory.mktemp("vocab") / f"{request.param}.gguf"
    tokens, types = theirs.metadata["tokenizer.ggml.tokens"], theirs.metadata["tokenizer.ggml.token_type"]
    assert isinstance(tokens, StringArray)
    assert isinstance(types, np.ndarray)
    types = types.copy()
    types[[tokens[:].index("ing"), tokens[:].index("1")]] = 4
    write_gguf(
        path,
        {
            "general.architecture": "llama",
            "tokenizer.ggml.model": "gpt2",
            "tokenizer.ggml.pre": request.param,
            "tokenizer.ggml.tokens": tokens,
            "tokenizer.ggml.token_type": types,
            "tokenizer.ggml.merges": theirs.metadata["tokenizer.ggml.merges"],
            "tokenizer.ggml.bos_token_id": 1,
            "tokenizer.ggml.eos_token_id": 2,
            "tokenizer.ggml.add_bos_token": request.param != "qwen2",
            "tokenizer.ggml.add_eos_token": request.param == "gpt-2",
            "tokenizer.ggml.add_space_prefix": request.param in ("gpt-2", "qwen2"),
        },
    )
    oracle = OracleVocab(path)
    yield Vocab.from_gguf(read_gguf(path)), oracle
    oracle.close()


texts = st.lists(
    st.one_of(st.sampled_from(FRAGMENTS), st.text(st.characters(exclude_categories=["Cs"]), max_size=6)), max_size=14
).map("".join)


@settings(max_examples=150, deadline=None)
@given(texts, st.booleans(), st.booleans(), st.booleans())
def test_tokens_as_llama_cpp_makes_them(
    twins: tuple[Vocab, OracleVocab], text: str, add: bool, parse: bool, remove: bool
) -> None:
    check_tokens(*twins, text, add, parse, remove)


def test_every_piece_as_llama_cpp_has_it(twins: tuple[Vocab, OracleVocab]) -> None:
    ours, theirs = twins
    assert len(ours) == theirs.n_tokens
    for id in range(0, theirs.n_tokens, 7):
        assert ours.token_bytes(id) == theirs.piece(id, True)
    for id in range(40):
        assert ours.token_bytes(id, special=False) == theirs.piece(id, False)
        assert ours.attr[id] == theirs.attr(id)


def test_what_ends_a_generation(smollm2: Vocab) -> None:
    oracle = OracleVocab(resolve_model("smollm2"))
    expected = [id for id in range(oracle.n_tokens) if oracle.is_eog(id)]
    assert [id for id in range(len(smollm2)) if smollm2.is_eog(id)] == expected
    assert (smollm2.special["bos"], smollm2.special["eos"]) == (
        oracle.lib.llama_vocab_bos(oracle.vocab),
        oracle.lib.llama_vocab_eos(oracle.vocab),
    )
    assert smollm2.add_bos == oracle.lib.llama_vocab_get_add_bos(oracle.vocab)
    oracle.close()


ODD_TOKENS = ("<|end|>", "<|return|>", "<|call|>", "<|channel|>", "</s>", "<|tool_response>", "<|fim_pad|>", "<PRE>")


@pytest.mark.parametrize("chosen", [ODD_TOKENS[:i] for i in range(1, 9)] + [ODD_TOKENS[i:] for i in range(1, 8)])
def test_special_tokens_known_by_their_text(chosen: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "odd.gguf"
    tokens = [*BYTE_TO_CHAR, "bad \U0001f600", "<0x41>", "<reserved_unused_1>", *chosen]
    types = [1] * 257 + [6, 3] + [1] * len(chosen)
    write_gguf(
        path,
        {
            "general.architecture": "llama",
            "tokenizer.ggml.model": "gpt2",
            "tokenizer.ggml.pre": "gpt-2",
            "tokenizer.ggml.tokens": tokens,
            "tokenizer.ggml.token_type": types,
            "tokenizer.ggml.merges": ["a b", "ab c", "a b", "b c"],
            "tokenizer.ggml.padding_token_id": 9999,
        },
    )
    ours, theirs = Vocab.from_gguf(read_gguf(path)), OracleVocab(path)
    for id in range(len(tokens)):
        assert (id, ours.attr[id], ours.is_eog(id)) == (id, theirs.attr(id), theirs.is_eog(id))
        for special in (True, False):
            assert ours.token_bytes(id, special) == theirs.piece(id, special)
    text = "abc bc " + " ".join(tokens[256:])
    assert ours.tokenize(text, True, True) == theirs.tokenize(text, True, True)
    theirs.close()


def test_a_vocabulary_without_all_bytes_falls_back_to_ascii_and_drops_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "few.gguf"
    write_gguf(
        path,
        {
            "general.architecture": "llama",
            "tokenizer.ggml.model": "gpt2",
            "tokenizer.ggml.pre": "gpt-2",
            "tokenizer.ggml.tokens": [*"abcdefghijklmnop", "Ċ"],
            "tokenizer.ggml.merges": ["b z", "a b"],
        },
    )
    ours, theirs = Vocab.from_gguf(read_gguf(path)), OracleVocab(path)
    for text in ("abz", "bza", "é", "cab\nz"):
        assert ours.tokenize(text) == theirs.tokenize(text, True, False)
    theirs.close()


def test_tokenizing_is_an_event(smollm2: Vocab) -> None:
    seen: list[Event] = []
    stop = bus.subscribe(Tokenized, seen.append)
    ids = smollm2.tokenize("Once upon a time")
    stop()
    assert [(e.text, e.ids, e.pieces) for e in seen if isinstance(e, Tokenized)] == [
        ("Once upon a time", tuple(ids), ("Once", " upon", " a", " time"))
    ]


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_bytes_and_characters_go_both_ways(text: str) -> None:
    assert decode_text(encode_bytes(text)) == text.encode()


def test_the_byte_alphabet() -> None:
    # The rule is GPT-2's: printable Latin-1 stands for itself, the 68 others count up from U+0100.
    assert len(set(BYTE_TO_CHAR)) == 256
    assert BYTE_TO_CHAR[0x20] == "Ġ"
    assert BYTE_TO_CHAR[0x0A] == "Ċ"
    assert BYTE_TO_CHAR[0xAD] == "\u0143"
    assert BYTE_TO_CHAR[ord("A")] == "A"


def test_merging_by_hand() -> None:
    bpe = BPE(["b c", "a b", "ab c", "aa a"])
    assert bpe.merge("abc") == ["a", "bc"]  # "b c" ranks first, and then nothing joins
    assert bpe.merge("abab") == ["ab", "ab"]
    assert bpe.merge("") == []
    assert BPE(["a a"]).merge("aaaaa") == ["aa", "aa", "a"]  # of equal ranks the leftmost


@pytest.mark.parametrize("pre", PRE_TOKENIZERS)
@given(st.text())
def test_words_join_to_the_text(pre: str, text: str) -> None:
    words = pre_tokenizer(pre).split(text)
    assert "".join(words) == text
    assert "" not in words


def test_a_long_prompt_of_one_word(smollm2: Vocab) -> None:
    ids = smollm2.tokenize("a" * 20_000)
    assert smollm2.detokenize(ids) == "a" * 20_000


def test_a_stream_holds_back_half_characters(smollm2: Vocab) -> None:
    text = "day 🦙 e\u0301 你\u200d!"
    ids = smollm2.tokenize(text)
    stream = smollm2.stream()
    parts = [stream.push(id) for id in ids]
    assert "".join(parts) + stream.flush() == text
    assert "" in parts
    assert not any("\ufffd" in part for part in parts)
    assert stream.push(smollm2.ids[BYTE_TO_CHAR[0xE4]]) == ""
    assert stream.flush() == "\ufffd"


def test_a_lone_surrogate_is_a_replacement_character(smollm2: Vocab) -> None:
    assert smollm2.tokenize("a\ud800b") == smollm2.tokenize("a\ufffdb")


def test_a_model_without_vocabulary(tmp_path: Path) -> None:
    path = tmp_path / "none.gguf"
    write_gguf(path, {"general.architecture": "llama", "tokenizer.ggml.model": "none", "llama.vocab_size": 5})
    vocab = Vocab.from_gguf(read_gguf(path))
    assert len(vocab) == 5
    assert vocab.detokenize([0, 4]) == ""
    assert not vocab.is_eog(0)
    with pytest.raises(VizggmlError, match="has no vocabulary"):
        vocab.tokenize("hello")


def test_an_id_out_of_range(smollm2: Vocab) -> None:
    for id in (-1, 49152):
        with pytest.raises(VizggmlError, match=f"token {id} is not in the vocabulary of 49152 tokens"):
            smollm2.token_to_piece(id)


GOOD: dict[str, Any] = {
    "general.architecture": "llama",
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "smollm",
    "tokenizer.ggml.tokens": ["a", "b"],
    "tokenizer.ggml.merges": ["a b"],
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tokenizer.ggml.model": None}, "key 'tokenizer.ggml.model' is missing"),
        ({"tokenizer.ggml.model": "bert"}, "'bert' is not supported, only gpt2, llama and none are"),
        ({"tokenizer.ggml.pre": None}, "key 'tokenizer.ggml.pre' is missing"),
        ({"tokenizer.ggml.pre": "tekken"}, "'tekken' is not supported, only gpt-2, smollm"),
        ({"tokenizer.ggml.tokens": None}, "key 'tokenizer.ggml.tokens' is missing"),
        ({"tokenizer.ggml.tokens": [1, 2]}, r"has type arr\[i32,2\], it must be an array of str"),
        ({"tokenizer.ggml.tokens": ["a", "b", "a"]}, "'a' appears twice, first as 0"),
        ({"tokenizer.ggml.merges": None}, "key 'tokenizer.ggml.merges' is missing"),
        ({"tokenizer.ggml.token_type": [1]}, "'tokenizer.ggml.token_type' has 1 values for 2 tokens"),
        ({"tokenizer.ggml.token_type": "x"}, "has type str, it must be an array of i32"),
        ({"tokenizer.ggml.add_bos_token": True}, "asks for a bos token, but there is none"),
        ({"tokenizer.ggml.bos_token_id": -1}, "'tokenizer.ggml.bos_token_id' has type i32, it must be u32"),
    ],
)
def test_what_is_no_vocabulary(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.gguf"
    write_gguf(path, {k: v for k, v in (GOOD | change).items() if v is not None})
    with pytest.raises(VizggmlError, match=message):
        Vocab.from_gguf(read_gguf(path))
