"""The player as a notebook keeps it: an output that stands beside the widget and shows itself where no widget comes.

JupyterLab prefers a widget to every other form of an output, and without the kernel that made it there is only an error
in its place. So the page goes into an output of its own, as a frame that may run its script and nothing else. Its style
sheet asks whether a player of the kernel stands in the same output area: then the frame is not displayed; if not, the
widget's error is not. In a notebook that is not trusted JupyterLab takes frame and style sheet away: a picture stays.
"""

from __future__ import annotations

import base64
import json
from functools import lru_cache
from html import escape
from importlib import resources

from vizggml.export.html import hash_of, packed, script_of
from vizggml.timeline.tracks import Tracks
from vizggml.views.graph_layout import layout_json
from vizggml.views.pictures import PICTURES, picture
from vizggml.views.still import still

HERE = "vg-here"
"""The class of an element about a player that a kernel stands behind."""
LIMIT = 6_000_000
"""Bytes of a frame that a notebook is given; of a larger trace it keeps the picture alone."""

NO_MODEL = ".jp-OutputArea-child:has(>.jp-OutputArea-output.jupyter-widgets)"
"""What JupyterLab puts in a widget's place when it finds no model; of a widget the class is further in."""
STYLE = (
    f".jp-OutputArea:has(.{HERE}) .jp-OutputArea-child:has(.vg-saved){{display:none}}"
    f".jp-OutputArea:has(.vg-saved) {NO_MODEL}{{display:none}}"
    ".vg-saved{height:0;overflow:hidden;animation:vg-saved 0s 1.2s forwards}.vg-saved+img{display:none}"
    ".vg-saved iframe{display:block;width:100%;border:0}@keyframes vg-saved{to{height:auto}}"
)
"""The wait is the widget's: a kernel that is there has its player up by then."""


def saved_player(
    tracks: Tracks,
    *,
    step: int,
    panes: list[str] | None = None,
    height: str = "760px",
    theme: str = "auto",
    carried: tuple[bytes, str] | None = None,
) -> str:
    """HTML for an output of a notebook: the player on `tracks`, opened at `step`, and the step's picture.

    `carried` are the bytes of `tracks` and their layout, from who has them already.
    """
    alone = panes[0] if panes and len(panes) == 1 else ""
    drawing = picture(tracks, alone, step, theme="auto") if alone in PICTURES else still(tracks, step)
    drawn = base64.b64encode(str(drawing).encode("utf-8", "replace")).decode("ascii")
    image = f'<img class="vg-kept" alt="one step of the player, as a picture" src="data:image/svg+xml;base64,{drawn}">'
    data, layout = carried or (tracks.to_bytes(), layout_json(tracks))
    page = saved_page(data, layout, step=step, panes=panes, theme=theme)
    if len(page) > LIMIT:
        return image
    frame = (
        f'<iframe sandbox="allow-scripts" title="vizggml player" loading="lazy" style="height:{escape(height)}" '
        f'srcdoc="{escape(page)}"></iframe>'
    )
    return f'<style>{STYLE}</style><div class="vg-saved">{frame}</div>{image}'


def saved_page(data: bytes, layout: str, *, step: int, panes: list[str] | None, theme: str = "auto") -> str:
    """The page in the frame: its script is packed as its data are, and the same for every player."""
    options: dict[str, object] = {"step": step, "theme": theme, "hash": False, "fill": True}
    if panes is not None:
        options["panes"] = panes
    script = saved_script()
    start = resources.files("vizggml").joinpath("export", "saved.js").read_text("utf-8")
    policy = (
        f"default-src 'none'; script-src '{hash_of(start)}' '{hash_of(script)}'; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    parts = {"layout": packed(layout.encode()), "tracks": packed(data), "script": packed(script.encode())}
    blocks = "".join(f'<script type="text/plain" id="{name}">{block}</script>' for name, block in parts.items())
    chosen = json.dumps(options, sort_keys=True).replace("<", "\\u003c")
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        "<title>vizggml player</title><style>html,body{margin:0;height:100%;color-scheme:light dark}"
        '#player{position:fixed;inset:0}</style><div id="player"></div><div id="told" role="alert" hidden></div>'
        f'{blocks}<script type="application/json" id="options">{chosen}</script><script>{start}</script></html>'
    )


@lru_cache(maxsize=1)
def saved_script() -> str:
    return script_of({}, "boot_saved.js")
