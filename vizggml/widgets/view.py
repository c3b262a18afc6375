"""`view(trace)`: the player in a notebook. A thin shell around the one front end; the trace travels once, as bytes."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import resources
from typing import TYPE_CHECKING, Any, cast

import anywidget
import traitlets

from vizggml.errors import VizggmlError
from vizggml.export.saved import saved_player
from vizggml.timeline.trace import Trace
from vizggml.views.graph_layout import layout_json
from vizggml.views.memory import check_step
from vizggml.views.pictures import PICTURES, picture
from vizggml.views.player import player_module
from vizggml.views.still import still

if TYPE_CHECKING:
    from vizggml.timeline.tracks import Tracks as Recorded
    from vizggml.views.tables import Tracks

PANES = ("tokens", "graph", "map", "timeline", "events", "tables")
DETAILS = (
    "tensor",
    "block",
    "free",
    "counts",
    "scratch",
    "kv",
    "routing",
    "reuse",
    "arena",
    "splits",
    "pages",
    "threads",
)
HEIGHT = 760
HEAD_HEIGHT, PANE_HEIGHT = 130, 250


def _esm() -> str:
    return player_module() + "\n" + resources.files("vizggml").joinpath("widgets", "glue.js").read_text("utf-8")


class Player(anywidget.AnyWidget):
    """The player on one trace.

    `step` and `selected` (a tensor's id, -1 for none) follow what the person does, and may be set. `panes` names the
    panes that are open, None for all. Where no widget can run, a still picture of the step stands in its place.
    """

    _esm = _esm()
    tracks = traitlets.Bytes(b"").tag(sync=True)
    graph_layout = traitlets.Unicode('{"graphs":[]}').tag(sync=True)
    step = traitlets.Int(0).tag(sync=True)
    selected = traitlets.Int(-1).tag(sync=True)
    panes = traitlets.List(traitlets.Unicode(), allow_none=True, default_value=None).tag(sync=True)
    height = traitlets.Unicode(f"{HEIGHT}px").tag(sync=True)
    theme = traitlets.Enum(("auto", "light", "dark"), "auto").tag(sync=True)

    def __init__(self, tracks: Tracks | None = None, **traits: Any) -> None:
        self._shown = tracks
        super().__init__(**traits | ({} if tracks is None else sent(tracks)))

    def show(self, tracks: Tracks, step: int | None = None) -> None:
        """Put another trace on the player; None opens it where its own events begin."""
        self._shown = tracks
        with self.hold_sync():
            self.selected = -1
            self.step = tracks.start if step is None else step
            for name, value in sent(tracks).items():
                setattr(self, name, value)

    def still(self, step: int | None = None) -> str:
        """The picture of `step`, as SVG, of a pane that is open alone (or with the events), or else of the whole.

        None for where the player is or, if it was not moved, for the step that says most.
        """
        if self._shown is None:
            raise VizggmlError("player: there is no trace on it yet")
        here = None if self.step == self._shown.start else self.step
        wanted = here if step is None else step
        drawn = [pane for pane in self.panes or () if pane != "events"] or self.panes or []
        if len(drawn) == 1 and drawn[0] in PICTURES:
            return str(picture(cast("Recorded", self._shown), drawn[0], wanted, theme="auto"))
        return still(self._shown, wanted)

    def _repr_mimebundle_(self, **options: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
        bundle = super()._repr_mimebundle_(**options)
        if bundle is None or self._shown is None:
            return None if bundle is None else (bundle[0], bundle[1])
        words = f"vizggml player: {len(self._shown)} steps"
        return bundle[0] | {"image/svg+xml": str(self.still()), "text/plain": words}, bundle[1]

    def _ipython_display_(self) -> None:
        """Two outputs: the widget, and what the notebook keeps of it for when there is no kernel."""
        bundle = self._repr_mimebundle_()
        if bundle is not None:
            publish_display_data(*bundle)
            if self._shown is not None:
                publish_display_data({"text/html": self.kept(), "text/plain": ""})

    def kept(self) -> str:
        """The HTML of the player as a notebook keeps it. VizggmlError if there is no trace on it."""
        if self._shown is None:
            raise VizggmlError("player: there is no trace on it yet")
        tracks = cast("Recorded", self._shown)
        carried = self.tracks, self.graph_layout
        return saved_player(
            tracks, step=self.step, panes=self.panes, height=self.height, theme=self.theme, carried=carried
        )


def publish_display_data(data: dict[str, Any], metadata: dict[str, Any] | None = None, **options: Any) -> None:
    """An output of the cell that runs, or another in the place of one."""
    from IPython import display

    publish: Any = display.publish_display_data
    publish(data, metadata or {}, **options)


def sent(tracks: Tracks) -> dict[str, Any]:
    """The traits that carry a trace to the page."""
    return {"graph_layout": layout_json(tracks), "tracks": tracks.to_bytes()}


def check_panes(panes: Iterable[str] | None) -> list[str] | None:
    """The panes asked for, a detail by its own name alone. VizggmlError for one that there is not."""
    if panes is None:
        return None
    wanted = [panes] if isinstance(panes, str) else list(panes)
    for pane in wanted:
        if pane not in PANES + DETAILS:
            raise VizggmlError(f"pane {pane!r}: there are {', '.join(PANES + DETAILS)}")
    return wanted


def css_height(height: int | str | None, panes: list[str] | None) -> str:
    """The height as CSS: pixels or a CSS length; None for what the panes need, as far as a screen goes."""
    if height is None:
        height = HEIGHT if panes is None else min(HEIGHT, HEAD_HEIGHT + PANE_HEIGHT * len(panes))
    return f"{height}px" if isinstance(height, int) else height


def view(
    trace: Trace | Tracks,
    panes: Iterable[str] | None = None,
    step: int | None = None,
    *,
    height: int | str | None = None,
    theme: str = "auto",
) -> Player:
    """The player on `trace`, at `step` (None: where its plan or its run begins), with the panes named (None: all).

    `height` is pixels, or a CSS length; None for what the panes need. VizggmlError for a step outside the trace or an
    unknown pane.
    """
    tracks: Tracks = trace.tracks() if isinstance(trace, Trace) else trace
    step = tracks.start if step is None else check_step(tracks, step)
    shown = check_panes(panes)
    return Player(tracks, panes=shown, step=step, height=css_height(height, shown), theme=theme)
