"""A run beside the player: the text grows, each token has its trace, the player follows until someone chooses."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tests.widgets.test_view import lesson
from vizggml.errors import VizggmlError
from vizggml.llama.model import load_model
from vizggml.timeline.trace import Trace
from vizggml.widgets.live import Live, live
from vizggml.widgets.runner import ModelRunner, Sampled, Settings, one_line


class FakeRunner:
    """A runner that is moved by hand."""

    def __init__(self) -> None:
        self.changed = lambda: None
        self.running = self.can_resume = False
        self.tokens: list[Sampled] = []
        self.traces: list[Trace] = []
        self.error = self.ended = ""
        self.rate = 0.0
        self.asked: list[tuple[str, Settings]] = []

    def start(self, prompt: str, settings: Settings) -> None:
        self.asked.append((prompt, settings))
        self.running, self.tokens, self.traces = True, [], []

    def resume(self, settings: Settings) -> None:
        if not self.can_resume:
            raise VizggmlError("run: there is nothing to go on from")
        self.asked.append(("", settings))
        self.running, self.can_resume = True, False

    def stop(self, wait: bool = True) -> None:
        self.running, self.can_resume = False, bool(self.tokens)
        self.ended = "stopped"
        self.changed()

    def make(self, text: str) -> None:
        self.tokens.append(Sampled(text, 7, len(self.tokens), 0.25, ((text, 0.5), (" z", 0.25)), 3))
        self.traces.append(lesson())
        self.changed()


@dataclass
class Token:
    text: str
    id: int = 5
    pos: int = 9
    p: float = 0.5


class Model:
    """Generates three tokens, each by a tensor of its own, as long as `gate` lets it."""

    stopped = ""

    def __init__(self, gate: threading.Semaphore, fails: bool = False) -> None:
        self.gate, self.fails = gate, fails
        self.params: dict[str, Any] = {}
        self.asked: list[dict[str, Any]] = []

    def context(self, **params: Any) -> Model:
        self.params = params
        return self

    def generate(self, prompt: str | list[int], **options: Any) -> Iterator[Token]:
        self.asked.append({"prompt": prompt, **options})
        for piece in (" a", " b", " c")[: options["max_tokens"]]:
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
def shown(monkeypatch: pytest.MonkeyPatch) -> tuple[Live, FakeRunner]:
    """The player follows without the pause that it makes between two traces."""
    monkeypatch.setattr("vizggml.widgets.live.FOLLOW_S", 0.0)
    runner = FakeRunner()
    return live(runner), runner


def sent_by(widget: Live, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = []
    monkeypatch.setattr(widget.panel, "send", told.append)
    return told


def run_to_the_end(runner: ModelRunner, begin: Callable[[], None]) -> None:
    done = threading.Event()
    runner.changed = lambda: done.set() if not runner.running else None
    begin()
    assert done.wait(60)


def test_run_starts_what_the_controls_say(shown: tuple[Live, FakeRunner]) -> None:
    widget, runner = shown
    widget.asked({"do": "run", "prompt": "There was", "max_tokens": 7, "temp": 0.5, "seed": 9})
    assert runner.asked == [("There was", Settings(7, 0.5, 9))]
    assert (widget.panel.running, widget.panel.read, widget.panel.status) == (True, "There was", "reading the prompt")
    widget.asked({"do": "stop"})
    assert not widget.panel.running


def test_the_text_streams_and_the_player_follows(
    shown: tuple[Live, FakeRunner], monkeypatch: pytest.MonkeyPatch
) -> None:
    widget, runner = shown
    told = sent_by(widget, monkeypatch)
    widget.run()
    assert told.pop() == {"from": 0, "tokens": []}
    for i, piece in enumerate((" there", " was", " a fox")):
        runner.make(piece)
        top = [[piece, 0.5], [" z", 0.25]]
        assert told == [{"from": i, "tokens": [{"text": piece, "id": 7, "pos": i, "p": 0.25, "top": top}]}]
        told.clear()
        assert (widget.panel.shown, widget.player.step) == (i, 3)
        assert widget.player.tracks == runner.traces[i].tracks().to_bytes()
    widget.asked({"do": "all"})
    assert (told[0]["from"], [t["text"] for t in told[0]["tokens"]]) == (0, [" there", " was", " a fox"])


def test_whoever_chooses_a_token_stays_at_its_step(shown: tuple[Live, FakeRunner]) -> None:
    widget, runner = shown
    widget.run()
    runner.make(" a")
    runner.make(" b")
    widget.asked({"do": "show", "token": 0})
    runner.make(" c")
    assert (widget.panel.shown, widget.player.step) == (0, 3)
    assert widget.player.tracks == runner.traces[0].tracks().to_bytes()
    widget.asked({"do": "show", "token": 99})
    assert widget.panel.shown == 0


def test_the_player_goes_to_the_newest_no_more_often_than_it_can_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = FakeRunner()
    widget = live(runner)
    widget.run()
    runner.make(" a")
    runner.make(" b")
    assert widget.panel.shown == 0
    runner.stop()
    assert widget.panel.shown == 1


def test_continue_goes_on_and_says_when_it_cannot(shown: tuple[Live, FakeRunner]) -> None:
    widget, runner = shown
    widget.asked({"do": "resume"})
    assert widget.panel.error == "run: there is nothing to go on from"
    widget.run()
    runner.make(" a")
    runner.stop()
    assert (widget.panel.resumable, widget.panel.status) == (True, "1 token · stopped")
    widget.asked({"do": "resume", "max_tokens": 3})
    assert runner.asked[-1] == ("", Settings(3, 0.8, 1))
    assert [t.text for t in runner.tokens] == [" a"]


def test_a_model_runs_in_the_background_one_trace_for_each_token() -> None:
    model = Model(threading.Semaphore(3))
    runner = ModelRunner(model, n_ctx=64)
    run_to_the_end(runner, lambda: runner.start("Once", Settings(3, 0.7, 4)))
    assert [t.text for t in runner.tokens] == [" a", " b", " c"]
    assert [len(t) > 0 for t in runner.traces] == [True] * 3
    assert model.params == {"n_ctx": 64}
    assert model.asked == [{"prompt": "Once", "max_tokens": 3, "temp": 0.7, "seed": 4, "keep": False}]
    assert runner.rate > 0


def test_stop_ends_after_the_token_in_hand() -> None:
    gate = threading.Semaphore(1)
    runner = ModelRunner(Model(gate))
    first = threading.Event()
    runner.changed = first.set
    runner.start("Once", Settings(3))
    assert first.wait(10)
    runner.stop(wait=False)
    gate.release()
    runner.stop()
    assert not runner.running
    assert len(runner.tokens) <= 2
    assert runner.ended == "stopped"


@pytest.fixture(autouse=True)
def nothing_stands_after() -> Iterator[None]:
    """What a context leaves in a cycle would be in the snapshot of the next recording."""
    yield
    gc.collect()


def test_a_stopped_run_goes_on_as_if_it_had_not_been() -> None:
    """Greedy: three tokens and three more are the six that the model makes without a break."""
    tiny = load_model("tiny")
    whole = [t.text for t in tiny.context(n_ctx=64, fast=False).generate("Once upon a time", 6, temp=0)]
    runner = ModelRunner(tiny, n_ctx=64, fast=False)
    run_to_the_end(runner, lambda: runner.start("Once upon a time", Settings(3, 0.0)))
    run_to_the_end(runner, lambda: runner.resume(Settings(3, 0.0)))
    assert [t.text for t in runner.tokens] == whole
    assert [t.pos for t in runner.tokens] == list(range(5, 11))
    assert runner.context.n_past == 10


def test_candidates_are_the_softmax_of_the_logits() -> None:
    tiny = load_model("tiny")
    runner = ModelRunner(tiny, n_ctx=64, fast=False)
    run_to_the_end(runner, lambda: runner.start("Once upon a time", Settings(1, 0.0)))
    (token,) = runner.tokens
    context = tiny.context(n_ctx=64, fast=False)
    logits = context.decode(tiny.vocab.tokenize("Once upon a time"))[-1].astype(np.float64)
    p = np.exp(logits - logits.max())
    p /= p.sum()
    order = np.argsort(-p)[:10]
    assert [piece for piece, _ in token.top] == [tiny.vocab.token_to_piece(int(i)) for i in order]
    assert [q for _, q in token.top] == pytest.approx(p[order].tolist(), rel=1e-5)
    kinds = [type(event).__name__ for event in runner.traces[0].events]
    assert kinds[token.step] == "TokenSampled"


def test_a_failure_is_told_in_one_line() -> None:
    runner = ModelRunner(Model(threading.Semaphore(1), fails=True))
    widget = live(runner)
    done = threading.Event()
    runner.changed = lambda: (widget.refresh(), done.set() if not runner.running else None)  # type: ignore
    widget.run()
    assert done.wait(10)
    assert widget.panel.error == "prompt: 300 tokens, the context has 256"
    assert widget.panel.status == ""


def test_anothers_failure_is_named_and_cut_to_a_line() -> None:
    assert one_line(ValueError("this\nand\nthat")) == "ValueError: this"
    assert one_line(KeyboardError()) == "KeyboardError"


class KeyboardError(Exception):
    pass
