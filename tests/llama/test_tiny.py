"""The tiny model tells the same stories here and in the reference, token for token."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.goldens.record_llama import settings
from tests.goldens.record_reuse import built_anew
from tests.llama.oracle import wheel
from vizggml.llama.model import load_model
from vizggml.llama.models import resolve_model

GOLDENS = Path(__file__).parents[1] / "goldens"
STORIES: list[dict[str, Any]] = json.loads((GOLDENS / "tiny.json").read_text())
REUSE: list[dict[str, Any]] = json.loads((GOLDENS / "llama_reuse.json").read_text())


@pytest.mark.parametrize("story", STORIES, ids=lambda s: f"{len(s['ids'])}-{'flash' if s['flash_attn'] else 'plain'}")
def test_the_story_is_the_references(story: dict[str, Any]) -> None:
    """Recorded from the pin."""
    model = load_model("tiny")
    assert model.vocab.tokenize(story["prompt"]) == story["ids"]
    context = model.context(n_ctx=256, flash_attn=story["flash_attn"], n_threads=1)
    told = list(context.generate(story["prompt"], max_tokens=len(story["tokens"]), temp=0))
    assert [token.id for token in told] == story["tokens"]
    assert "".join(token.text for token in told) == story["text"]


def test_the_wheel_loads_it_and_goes_on_the_same() -> None:
    """The live library, newer than the pin, agrees on the first words."""
    story = STORIES[0]
    with wheel().model(resolve_model("tiny")) as model:
        assert model.tokenize(story["prompt"]) == story["ids"]
        with model.context(**settings(256, 256, True)) as context:
            token, tokens = int(context.decode(story["ids"])[-1].argmax()), []
            for _ in range(16):
                tokens.append(token)
                token = int(context.decode([token])[-1].argmax())
    assert tokens == story["tokens"][:16]


@pytest.mark.parametrize("run", REUSE, ids=lambda run: run["n_prompt"])
def test_the_graph_is_built_anew_for_the_same_tokens(run: dict[str, Any]) -> None:
    """Recorded from the pin; one of them asked of the live library too."""
    context = load_model("tiny").context(n_ctx=512, n_threads=1)
    context.decode([5] * run["n_prompt"])
    counts = [context.n_reused]
    for _ in range(run["after"]):
        context.decode([5])
        counts.append(context.n_reused)
    assert [k for k in range(1, run["after"] + 1) if counts[k] == counts[k - 1]] == run["anew"]
    if run["n_prompt"] == 250:
        with wheel().model(resolve_model("tiny")) as model:
            assert built_anew(model, 250, 12) == run["anew"]


def test_it_fits() -> None:
    assert resolve_model("tiny").stat().st_size <= 4_000_000
    hparams = load_model("tiny").hparams
    assert (hparams.architecture, hparams.n_embd) == ("llama", 256)
