"""`live(model)`: a prompt, a run, the text as it comes, and the player on what each evaluation did."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from importlib import resources
from typing import Any

import anywidget
import ipywidgets
import traitlets

from vizggml.errors import VizggmlError
from vizggml.views.player import player_module
from vizggml.widgets.runner import ModelRunner, Runner, Sampled, Settings, one_line
from vizggml.widgets.view import Player, check_panes, css_height, publish_display_data

PROMPT = "Once upon a time"
MAX_TOKENS = 24
MOST_TOKENS = 4096
SHOWN_PANES = ("graph", "map", "timeline", "events", "tables")
"""The text stands in the controls."""
FOLLOW_S = 0.5
"""The player goes to the newest token no more often than this: a trace takes a moment to be drawn."""


class Panel(anywidget.AnyWidget):
    """The controls, and the text: each token with what it was chosen from.

    `shown` is the token whose step the player shows, -1 for none; `read` the prompt that was read.
    """

    _esm = player_module() + "\n" + resources.files("vizggml").joinpath("widgets", "glue_live.js").read_text("utf-8")
    prompt = traitlets.Unicode(PROMPT).tag(sync=True)
    max_tokens = traitlets.Int(MAX_TOKENS, min=1, max=MOST_TOKENS).tag(sync=True)
    temp = traitlets.Float(0.8, min=0.0).tag(sync=True)
    seed = traitlets.Int(1, min=0, max=2**32 - 1).tag(sync=True)
    running = traitlets.Bool(False).tag(sync=True)
    resumable = traitlets.Bool(False).tag(sync=True)
    status = traitlets.Unicode("").tag(sync=True)
    error = traitlets.Unicode("").tag(sync=True)
    shown = traitlets.Int(-1).tag(sync=True)
    read = traitlets.Unicode("").tag(sync=True)

    def tell(self, start: int, tokens: list[Sampled]) -> None:
        """Send the tokens from number `start` on."""
        self.send({"from": start, "tokens": [token_message(token) for token in tokens[start:]]})


def token_message(token: Sampled) -> dict[str, Any]:
    return {"text": token.text, "id": token.id, "pos": token.pos, "p": token.p, "top": [list(t) for t in token.top]}


class Live(ipywidgets.VBox):  # type: ignore[misc]
    """The controls and the player.

    While a run goes, the player follows the newest token until the person chooses one; then it stays there.
    """

    def __init__(self, runner: Runner, prompt: str, settings: Settings, player: Player) -> None:
        self.runner, self.player = runner, player
        self.panel = Panel(prompt=prompt, max_tokens=settings.max_tokens, temp=settings.temp, seed=settings.seed)
        self.follow = True
        self._told = 0
        self._followed = 0.0
        self._kept = ""
        self._lock = threading.RLock()
        super().__init__([self.panel, self.player])
        self.panel.on_msg(lambda _, content, __: self.asked(content))
        self.runner.changed = self.refresh

    def asked(self, content: dict[str, Any]) -> None:
        """What the controls ask for: run, resume, stop, show a token, or all tokens again."""
        what = content.get("do")
        if what in ("run", "resume"):
            for name in ("prompt", "max_tokens", "temp", "seed"):
                if name in content:
                    setattr(self.panel, name, content[name])
            self.run() if what == "run" else self.resume()
        elif what == "stop":
            self.panel.status = "stopping after the token in hand"
            self.runner.stop(wait=False)
        elif what == "show":
            self.show(int(content.get("token", -1)))
        elif what == "all":
            self.panel.tell(0, self.runner.tokens)

    def run(self) -> None:
        """Read the prompt that stands in the box in a fresh context, and go on from it."""
        with self._lock:
            self.follow, self._told = True, 0
            self.panel.read, self.panel.shown = self.panel.prompt, -1
            self.runner.start(self.panel.prompt, self.settings)
            self.panel.tell(0, [])
        self.refresh()

    def resume(self) -> None:
        """Go on where the last run ended."""
        try:
            self.follow = True
            self.runner.resume(self.settings)
        except VizggmlError as error:
            self.panel.error = one_line(error)
        else:
            self.refresh()

    @property
    def settings(self) -> Settings:
        """Tokens, temperature and seed as they stand in the controls."""
        return Settings(self.panel.max_tokens, self.panel.temp, self.panel.seed)

    def refresh(self) -> None:
        """Bring what is shown up to what the runner has."""
        with self._lock:
            running, tokens = self.runner.running, self.runner.tokens
            if len(tokens) > self._told:
                self.panel.tell(self._told, tokens)
                self._told = len(tokens)
            with self.panel.hold_sync():
                self.panel.running, self.panel.resumable = running, self.runner.can_resume
                self.panel.error = self.runner.error
                self.panel.status = status_words(self.runner)
            newest = len(self.runner.traces) - 1
            due = not running or time.monotonic() - self._followed >= FOLLOW_S
            if self.follow and newest >= 0 and newest != self.panel.shown and due:
                self._put(newest)
            if not running:
                self._keep()

    def show(self, token: int) -> None:
        """Open the step that made a token, and stay there."""
        if 0 <= token < len(self.runner.traces):
            with self._lock:
                self.follow = False
                self._put(token)

    def _put(self, token: int) -> None:
        self.player.show(self.runner.traces[token].tracks(), self.runner.tokens[token].step)
        self.panel.shown = token
        self._followed = time.monotonic()

    def _repr_mimebundle_(self, **options: Any) -> Any:
        bundle = super()._repr_mimebundle_(**options)
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
        data = dict(data) | {"text/plain": "vizggml live: run the cell to type a prompt and step through the run"}
        if self.runner.traces:
            data["image/svg+xml"] = self.player.still()
        return data, metadata

    def _ipython_display_(self) -> None:
        """Two outputs: the widget, and what the notebook keeps of it, which each run brings up to date."""
        data, metadata = self._repr_mimebundle_()
        publish_display_data(data, metadata)
        self._kept = f"vizggml-{self.panel.model_id}"
        self._keep(update=False)

    def _keep(self, update: bool = True) -> None:
        if self._kept and (self.runner.traces or not update):
            kept = self.player.kept() if self.runner.traces else ""
            data = {"text/html": kept, "text/plain": ""}
            publish_display_data(data, {}, transient={"display_id": self._kept}, update=update)


def status_words(runner: Runner) -> str:
    """`12 tokens · 31.4 tokens/s`, and how the run ended."""
    n = len(runner.tokens)
    if runner.running and not n:
        return "reading the prompt"
    words = [f"{n} token{'s' if n != 1 else ''}"] if n else []
    if runner.rate:
        words.append(f"{runner.rate:.1f} tokens/s")
    ended = {"max_tokens": "", "stopped": "stopped", "ended": ""}.get(runner.ended, runner.ended)
    if ended and not runner.error:
        words.append(ended)
    return " · ".join(words)


def live(
    model: Any,
    prompt: str = PROMPT,
    *,
    max_tokens: int = MAX_TOKENS,
    temp: float = 0.8,
    seed: int = 1,
    panes: Iterable[str] | None = None,
    height: int | str | None = None,
    **params: Any,
) -> Live:
    """A prompt to run `model` on, and the player on every evaluation of the run.

    `temp` 0 takes the likeliest token each time; the same `seed` draws the same tokens. `model` is a model of ours, or
    any `Runner`; `params` go to the model's context.
    """
    runner = model if hasattr(model, "start") and hasattr(model, "traces") else ModelRunner(model, **params)
    shown = check_panes(SHOWN_PANES if panes is None else panes)
    player = Player(panes=shown, height=css_height(height, None if panes is None else shown))
    return Live(runner, prompt, Settings(max_tokens, temp, seed), player)
