"""A chapter asks real llama.cpp where it can, and says where an answer comes from."""

from __future__ import annotations

from importlib import metadata

import pytest

from vizggml.errors import VizggmlError
from vizggml.lessons import asking


def test_the_wheel_answers_as_the_pin_did() -> None:
    now, then = asking.ask_llama_cpp(), asking.recorded()
    assert "asked now" in now.source
    assert then.source == "recorded"
    assert (now.text, now.mapped, now.kv, now.output) == (then.text, then.mapped, then.kv, then.output)


def test_without_the_wheel_the_recorded_answer_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "WHEEL", "no-such-wheel")
    assert asking.ask_llama_cpp() == asking.recorded()
    with pytest.raises(VizggmlError, match="no answer is recorded"):
        asking.ask_llama_cpp("Hello")


def test_a_wheel_that_breaks_breaks_no_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "SCRIPT", "import os; os.kill(os.getpid(), 4)")
    metadata.version(asking.WHEEL)
    assert asking.ask_llama_cpp() == asking.recorded()
