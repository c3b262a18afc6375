"""What `live` needs of whoever runs a model, and the runner for one of ours."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from vizggml.errors import VizggmlError
from vizggml.timeline.record import record
from vizggml.timeline.trace import Trace


@dataclass(frozen=True)
class Settings:
    """What a run is asked for."""

    max_tokens: int = 24
    temp: float = 0.8
    seed: int = 1


@dataclass(frozen=True)
class Sampled:
    """A token that was made: `top` are the likeliest, each with its probability at temperature 1.

    `p` is its own among those that the samplers left; `step` is where its trace tells of it.
    """

    text: str
    id: int = -1
    pos: int = -1
    p: float = 1.0
    top: tuple[tuple[str, float], ...] = ()
    step: int = 0


class Runner(Protocol):
    """Runs a model in the background. `changed` is called, on the runner's thread, whenever there is more to see."""

    changed: Callable[[], None]

    def start(self, prompt: str, settings: Settings) -> None:
        """Begin anew; a run that is still going is stopped first."""

    def resume(self, settings: Settings) -> None:
        """Go on where the last run ended, in the same context."""

    def stop(self, wait: bool = True) -> None:
        """Ask the run to end after the token that is being made, and wait for it unless told not to."""

    @property
    def running(self) -> bool: ...

    @property
    def can_resume(self) -> bool: ...

    @property
    def tokens(self) -> list[Sampled]:
        """The tokens made so far, by all runs since the last `start`."""

    @property
    def traces(self) -> list[Trace]:
        """What was recorded: one trace for each token."""

    @property
    def rate(self) -> float:
        """Tokens a second, after the first of the run; 0 where there are too few."""

    @property
    def ended(self) -> str:
        """Why the run is over; empty while it goes on."""

    @property
    def error(self) -> str:
        """Why the run ended before its time; empty when it did not."""


class ModelRunner:
    """Runs a model of ours, each evaluation recorded as a trace of its own that opens with what stands.

    `model` is anything with `context(**params)`, whose contexts have `generate` as ours do, with `max_tokens`, `temp`,
    `seed` and `keep`. The context stays when a run is stopped: `context` may be used, and `resume` goes on from there.
    """

    def __init__(self, model: Any, **params: Any) -> None:
        self.changed: Callable[[], None] = lambda: None
        self.tokens: list[Sampled] = []
        self.traces: list[Trace] = []
        self.error = self.ended = ""
        self.context: Any = None
        self._model, self._params = model, params
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._times: list[float] = []

    @property
    def running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    @property
    def can_resume(self) -> bool:
        return bool(self.tokens) and self.context is not None and not self.running and self.ended != "end of text"

    @property
    def rate(self) -> float:
        took = self._times[-1] - self._times[0] if len(self._times) > 1 else 0.0
        return (len(self._times) - 1) / took if took > 0 else 0.0

    def start(self, prompt: str, settings: Settings) -> None:
        self.stop()
        self.tokens, self.traces, self.context = [], [], None
        self._begin(lambda: self._first(prompt, settings))

    def resume(self, settings: Settings) -> None:
        """VizggmlError if there is nothing to go on from."""
        if not self.can_resume:
            raise VizggmlError("run: there is nothing to go on from")
        last = self.tokens[-1].id
        self._begin(lambda: self._generate([last], settings, keep=True))

    def stop(self, wait: bool = True) -> None:
        self._stop.set()
        thread = self._thread
        if wait and thread is not None and thread is not threading.current_thread():
            thread.join()

    def _first(self, prompt: str, settings: Settings) -> Iterable[Any]:
        self.context = self._model.context(**self._params)
        return self._generate(prompt, settings, keep=False)

    def _generate(self, prompt: str | list[int], settings: Settings, keep: bool) -> Iterable[Any]:
        made: Iterable[Any] = self.context.generate(
            prompt, max_tokens=settings.max_tokens, temp=settings.temp, seed=settings.seed, keep=keep
        )
        return made

    def _begin(self, make: Callable[[], Iterable[Any]]) -> None:
        self.error = self.ended = ""
        self._times = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(make, self._stop), name="vizggml run", daemon=True)
        self._thread.start()

    def _run(self, make: Callable[[], Iterable[Any]], stop: threading.Event) -> None:
        made: Iterator[Any] = iter(())
        try:
            made = iter(make())
            while not stop.is_set():
                with record() as trace:
                    token = next(made, None)
                if token is None:
                    break
                self.tokens.append(sampled(token, trace))
                self.traces.append(trace)
                self._times.append(time.perf_counter())
                self.changed()
        except Exception as error:
            self.error = one_line(error)
        finally:
            close = getattr(made, "close", None)
            if close is not None:
                close()
            self.ended = "stopped" if stop.is_set() else str(getattr(self.context, "stopped", "")) or "ended"
            self._thread = None
            self.changed()


def sampled(token: Any, trace: Trace) -> Sampled:
    """A token as the model gave it, with the candidates that its trace tells of."""
    tracks = trace.tracks()
    names = [kind["name"] for kind in tracks.meta["kinds"]]
    steps = (tracks["ev.kind"] == names.index("TokenSampled")).nonzero()[0]
    step = int(steps[-1]) if len(steps) else max(0, len(tracks) - 1)
    held = tracks.at("candidate", step)
    top = tuple((tracks.string(int(s)), float(p)) for s, p in zip(held["piece"], held["p"], strict=True))
    facts = {name: getattr(token, name) for name in ("id", "pos", "p") if hasattr(token, name)}
    return Sampled(token.text, top=top, step=step, **facts)


def one_line(error: Exception) -> str:
    """What went wrong, in a line: ours says all in one, of others the first stands with the error's name."""
    first = next(iter(str(error).splitlines()), "")
    return first if isinstance(error, VizggmlError) else f"{type(error).__name__}: {first}".removesuffix(": ")
