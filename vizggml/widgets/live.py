"""`live(model)`: a prompt, a run, the text as it comes, and the player on what each evaluation did."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

import ipywidgets

from vizggml.views.labels import visible
from vizggml.widgets.runner import ModelRunner, Runner
from vizggml.widgets.view import Player, check_panes, css_height

PROMPT = "Once upon a time"
MAX_TOKENS = 24
LIMIT = 4096
KEPT = "\n\t\u200c\u200d"


class Live(ipywidgets.VBox):  # type: ignore[misc]
    """The prompt, the buttons, the text and the player.

    While a run goes, the player follows the newest evaluation until the person chooses one; `evaluation` counts from 0.
    """

    def __init__(self, runner: Runner, prompt: str, max_tokens: int, player: Player) -> None:
        self.runner, self.player = runner, player
        self.prompt = ipywidgets.Textarea(
            prompt, placeholder="a prompt", rows=2, layout={"width": "auto", "flex": "1 1 16rem"}
        )
        self.max_tokens = ipywidgets.BoundedIntText(
            max_tokens, min=1, max=LIMIT, description="tokens", layout={"width": "10rem"}
        )
        self.run = ipywidgets.Button(description="Run", icon="play", button_style="primary")
        self.stop = ipywidgets.Button(description="Stop", icon="stop", disabled=True)
        self.text = ipywidgets.HTML()
        self.evaluation = ipywidgets.IntSlider(
            0, 0, 0, description="evaluation", disabled=True, continuous_update=False, layout={"width": "100%"}
        )
        self.follow = ipywidgets.Checkbox(True, description="follow the run", indent=False, layout={"width": "11rem"})
        self._setting = False
        super().__init__(
            [
                ipywidgets.HBox([self.prompt, self.max_tokens, self.run, self.stop], layout={"flex_flow": "row wrap"}),
                self.text,
                ipywidgets.HBox([self.evaluation, self.follow]),
                self.player,
            ]
        )
        self.run.on_click(lambda _: self.begin())
        self.stop.on_click(lambda _: self.runner.stop())
        self.evaluation.observe(self._chosen, "value")
        self.runner.changed = self.refresh

    def begin(self) -> None:
        """Run the prompt that stands in the box."""
        self.runner.stop()
        self.follow.value = True
        self.runner.start(self.prompt.value, self.max_tokens.value)
        self.refresh()

    def refresh(self) -> None:
        """Bring what is shown up to what the runner has."""
        running = self.runner.running
        self.run.disabled, self.stop.disabled = running, not running
        self.text.value = text_html(self.prompt.value, self.runner.tokens, self.runner.error)
        n = len(self.runner.traces)
        if not n:
            self.evaluation.disabled = True
            return
        self._setting = True
        self.evaluation.max, self.evaluation.disabled = n - 1, False
        if self.follow.value:
            self.evaluation.value = n - 1
        self._setting = False
        if self.follow.value:
            self._show(n - 1)

    def _chosen(self, change: dict[str, Any]) -> None:
        if not self._setting and change["new"] < len(self.runner.traces):
            self.follow.value = False
            self._show(change["new"])

    def _show(self, evaluation: int) -> None:
        self.player.show(self.runner.traces[evaluation].tracks())

    def _repr_mimebundle_(self, **options: Any) -> Any:
        bundle = super()._repr_mimebundle_(**options)
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
        data = dict(data) | {"text/plain": "vizggml live: run the cell to type a prompt and step through the run"}
        if self.runner.traces:
            data["image/svg+xml"] = self.player.still()
        return data, metadata


def text_html(prompt: str, tokens: Iterable[str], error: str = "") -> str:
    """The prompt and what followed it, as text: markup in it is shown, not obeyed."""
    told = f'<div style="color:var(--jp-error-color1,#b3261e)">{escape_text(error)}</div>' if error else ""
    return (
        '<div style="white-space:pre-wrap;line-height:1.5;max-height:12em;overflow:auto">'
        f"<b>{escape_text(prompt)}</b>{escape_text(''.join(tokens))}</div>{told}"
    )


def escape_text(text: str) -> str:
    """`text` for HTML; line breaks, tabs and joiners stay."""
    return "".join(c if c in KEPT else escape(visible(c)) for c in text)


def live(
    model: Any,
    prompt: str = PROMPT,
    *,
    max_tokens: int = MAX_TOKENS,
    panes: Iterable[str] | None = None,
    height: int | str | None = None,
    **params: Any,
) -> Live:
    """A prompt to run `model` on, and the player on every evaluation of the run.

    `model` is a model of ours, or any `Runner`; `params` go to the model's context.
    """
    runner = model if hasattr(model, "start") and hasattr(model, "traces") else ModelRunner(model, **params)
    shown = check_panes(panes)
    return Live(runner, prompt, max_tokens, Player(panes=shown, height=css_height(height, shown)))
