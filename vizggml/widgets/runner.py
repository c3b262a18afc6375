"""What `live` needs of whoever runs a model, and the runner for one of ours."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from vizggml.errors import VizggmlError
from vizggml.timeline.record import record
from vizggml.timeline.trace import Trace


class Runner(Protocol):
    """Runs a model in the background. `changed` is called, on the runner's thread, whenever there is more to see."""

    changed: Callable[[], None]

    def start(self, prompt: str, max_tokens: int) -> None:
        """Begin; a run that is still going is stopped first."""

    def stop(self) -> None:
        """Ask the run to end after the token that is being made, and wait for it."""

    @property
    def running(self) -> bool: ...

    @property
    def tokens(self) -> list[str]:
        """The pieces of text made so far."""

    @property
    def traces(self) -> list[Trace]:
        """What was recorded: one trace for each evaluation that has ended."""

    @property
    def error(self) -> str:
        """Why the run ended before its time; empty when it did not."""


class ModelRunner:
    """Runs a model of ours, each evaluation recorded as a trace of its own that opens with what stands.

    `model` is anything with `context(**params)` whose contexts have `generate(prompt, max_tokens=...)`.
    """

    def __init__(self, model: Any, **params: Any) -> None:
        self.changed: Callable[[], None] = lambda: None
        self.tokens: list[str] = []
        self.traces: list[Trace] = []
        self.error = ""
        self._model, self._params = model, params
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def start(self, prompt: str, max_tokens: int) -> None:
        self.stop()
        self.tokens, self.traces, self.error = [], [], ""
        self._stop = threading.Event()
        arguments = (prompt, max_tokens, self._stop)
        self._thread = threading.Thread(target=self._run, args=arguments, name="vizggml run", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self, prompt: str, max_tokens: int, stop: threading.Event) -> None:
        try:
            made = iter(self._model.context(**self._params).generate(prompt, max_tokens=max_tokens))
            while not stop.is_set():
                with record() as trace:
                    token = next(made, None)
                if token is None:
                    break
                trace.tracks()
                self.traces.append(trace)
                self.tokens.append(token.text)
                self.changed()
        except Exception as error:
            self.error = one_line(error)
        finally:
            self._close(locals().get("made"))

    def _close(self, made: Iterator[Any] | None) -> None:
        close = getattr(made, "close", None)
        if close is not None:
            close()
        self._thread = None
        self.changed()


def one_line(error: Exception) -> str:
    """What went wrong, in a line: ours says all in one, of others the first stands with the error's name."""
    first = next(iter(str(error).splitlines()), "")
    return first if isinstance(error, VizggmlError) else f"{type(error).__name__}: {first}".removesuffix(": ")
