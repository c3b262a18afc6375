"""A run beside the player: the text grows, each evaluation is a trace, the player follows until someone chooses."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.widgets.test_view import lesson
from vizggml.errors import VizggmlError
from vizggml.timeline.trace import Trace
from vizggml.widgets.live import Live, live, text_html
from vizggml.widgets.runner import ModelRunner, one_line


class FakeRunner:
    """A runner that is moved by hand."""

    def __init__(self) -> None:
        self.changed = lambda: None
        self.running = False
        self.tokens: list[str] = []
        self.traces: list[Trace] = []
        self.error = ""
        self.asked: list[tuple[str, int]] = []

    def start(self, prompt: str, max_tokens: int) -> None:
        self.asked.append((prompt, max_tokens))
        self.running, self.tokens, self.traces = True, [], []

    def stop(self) -> None:
        self.running = False
        self.changed()

    def make(self, text: str) -> None:
        self.tokens.append(text)
        self.traces.append(lesson())
        self.changed()


@dataclass
class Token:
    text: str


class Model:
    """Generates three tokens, each by the lesson's graph, as long as `gate` lets it."""

    def __init__(self, gate: threading.Semaphore, fails: bool = False) -> None:
        self.gate, self.fails = gate, fails
        self.params: dict[str, Any] = {}

    def context(self, **params: Any) -> Model:
        self.params = params
        return self

    def generate(self, prompt: str, max_tokens: int) -> Iterator[Token]:
        for piece in (" a", " b", " c")[:max_tokens]:
            assert self.gate.acquire(timeout=10)
            lesson_events()
            if self.fails:
                raise VizggmlError("prompt: 300 tokens, the context has 256")
            yield Token(piece)


def lesson_events() -> None:
    from vizggml import ggml

    ctx = ggml.Context(mem_size=1 << 16, no_alloc=True)
    ctx.new_tensor("F32", (3,), name="x")


@pytest.fixture
def shown() -> tuple[Live, FakeRunner]:
    runner = FakeRunner()
    return live(runner), runner


def test_run_starts_what_the_box_says(shown: tuple[Live, FakeRunner]) -> None:
    widget, runner = shown
    widget.prompt.value, widget.max_tokens.value = "There was", 7
    widget.run.click()
    assert runner.asked == [("There was", 7)]
    assert (widget.run.disabled, widget.stop.disabled) == (True, False)
    widget.stop.click()
    assert (widget.run.disabled, widget.stop.disabled) == (False, True)


def test_the_text_streams_and_the_player_follows(shown: tuple[Live, FakeRunner]) -> None:
    widget, runner = shown
    widget.run.click()
    for i, piece in enumerate((" there", " was", " a fox")):
        runner.make(piece)
        assert "".join(runner.tokens) in widget.text.value
        assert (widget.evaluation.value, widget.evaluation.max) == (i, i)
        assert widget.player.tracks == runner.traces[i].tracks().to_bytes()


def test_whoever_chooses_an_evaluation_stays_there(shown: tuple[Live, FakeRunner]) -> None:
    widget, runner = shown
    widget.run.click()
    runner.make(" a")
    runner.make(" b")
    widget.evaluation.value = 0
    runner.make(" c")
    assert (widget.evaluation.value, widget.evaluation.max, widget.follow.value) == (0, 2, False)
    assert widget.player.tracks == runner.traces[0].tracks().to_bytes()


def test_a_model_runs_in_the_background_one_trace_for_each_evaluation() -> None:
    gate = threading.Semaphore(3)
    runner = ModelRunner(Model(gate), n_ctx=64)
    done = threading.Event()
    runner.changed = lambda: done.set() if not runner.running else None
    runner.start("Once", 3)
    assert done.wait(10)
    assert runner.tokens == [" a", " b", " c"]
    assert [len(t) > 0 for t in runner.traces] == [True] * 3
    assert runner._model.params == {"n_ctx": 64}


def test_stop_ends_after_the_token_in_hand() -> None:
    gate = threading.Semaphore(1)
    runner = ModelRunner(Model(gate))
    first = threading.Event()
    runner.changed = first.set
    runner.start("Once", 3)
    assert first.wait(10)
    runner._stop.set()
    gate.release()
    runner.stop()
    assert not runner.running
    assert len(runner.tokens) <= 2


def test_a_failure_is_told_in_one_line() -> None:
    runner = ModelRunner(Model(threading.Semaphore(1), fails=True))
    widget = live(runner)
    done = threading.Event()
    refresh = widget.refresh
    runner.changed = lambda: (refresh(), done.set())  # type: ignore[assignment, return-value, func-returns-value]
    widget.run.click()
    assert done.wait(10)
    assert ">prompt: 300 tokens, the context has 256</div>" in widget.text.value


def test_anothers_failure_is_named_and_cut_to_a_line() -> None:
    assert one_line(ValueError("this\nand\nthat")) == "ValueError: this"
    assert one_line(KeyboardError()) == "KeyboardError"


class KeyboardError(Exception):
    pass


def test_what_the_model_says_is_text() -> None:
    shown = text_html("<b>", ["<script>alert(1)</script>", "\n", "\u202e&"])
    assert "<script" not in shown
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\n\\u202e&amp;" in shown
