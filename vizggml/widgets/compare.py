"""`compare(a, b)`: two traces side by side in a notebook, what differs above them. Both travel once, as bytes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any

import anywidget
import traitlets

from vizggml.timeline.diff import LABELS, Diff, diff
from vizggml.views.compare import comparison, opening
from vizggml.views.graph_layout import layout_json
from vizggml.views.memory import check_step
from vizggml.views.player import player_module
from vizggml.widgets.view import check_panes

if TYPE_CHECKING:
    from vizggml.timeline.trace import Trace
    from vizggml.timeline.tracks import Tracks


def _esm() -> str:
    glue = resources.files("vizggml").joinpath("widgets", "glue_compare.js").read_text("utf-8")
    return player_module() + "\n" + glue


class Comparison(anywidget.AnyWidget):
    """Two players with what differs. `step` and `step_b` follow what the person does; setting `step` moves both.

    `diff` is the comparison itself. Where no widget can run, its tables stand in place of the players.
    """

    _esm = _esm()
    comparison = traitlets.Bytes(b"").tag(sync=True)
    tracks_a = traitlets.Bytes(b"").tag(sync=True)
    tracks_b = traitlets.Bytes(b"").tag(sync=True)
    layout_a = traitlets.Unicode('{"graphs":[]}').tag(sync=True)
    layout_b = traitlets.Unicode('{"graphs":[]}').tag(sync=True)
    step = traitlets.Int(0).tag(sync=True)
    step_b = traitlets.Int(0).tag(sync=True)
    panes = traitlets.List(traitlets.Unicode(), allow_none=True, default_value=None).tag(sync=True)
    height = traitlets.Unicode("").tag(sync=True)
    theme = traitlets.Enum(("auto", "light", "dark"), "auto").tag(sync=True)

    def __init__(self, found: Diff, **traits: Any) -> None:
        self.diff = found
        sides = zip("ab", (found.a, found.b), strict=True)
        sent = {f"tracks_{name}": tracks.to_bytes() for name, tracks in sides}
        drawn = {f"layout_{name}": layout_json(tracks) for name, tracks in (("a", found.a), ("b", found.b))}
        super().__init__(comparison=comparison(found), **sent, **drawn, **traits)

    def to_html(self, path: str | os.PathLike[str], **options: Any) -> None:
        """Write the comparison as one page, opened at the step where it is."""
        self.diff.to_html(path, **{"step": self.step, "panes": self.panes} | options)

    def __repr__(self) -> str:
        return repr(self.diff)

    def _repr_mimebundle_(self, **options: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
        bundle = super()._repr_mimebundle_(**options)
        if bundle is None:
            return None
        return bundle[0] | {"text/html": self.diff._repr_html_(), "text/plain": repr(self.diff)}, bundle[1]


def compare(
    a: Trace | Tracks,
    b: Trace | Tracks,
    *,
    labels: Sequence[str] = LABELS,
    panes: Iterable[str] | None = None,
    step: int | None = None,
    height: int | str | None = None,
    theme: str = "auto",
) -> Comparison:
    """The traces `a` and `b` side by side, aligned by structure, with what differs above them.

    A opens at `step` (None: where it holds the most memory), B where it answers. `panes` and `height` (of both players)
    are as in `view`. VizggmlError for a step outside of A, or what is no trace.
    """
    found = diff(a, b, labels=labels)
    step = opening(found) if step is None else check_step(found.a, step)
    high = "" if height is None else f"{height}px" if isinstance(height, int) else height
    shown = check_panes(panes)
    return Comparison(found, panes=shown, step=step, step_b=found.to_b(step), height=high, theme=theme)
