"""A trace as one HTML file: player, tracks and layout inside, nothing fetched, equal bytes for equal traces.

The page's content security policy lets one script run, the page's own, named by its hash, and refuses everything from
elsewhere; what the trace holds travels as compressed base64, so that no name in it is ever read as markup.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import zlib
from collections.abc import Iterable
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING

from markupsafe import Markup

import vizggml
from vizggml.export.tables import Drawable, tracks_of
from vizggml.files import write_whole
from vizggml.views.graph_layout import layout_json
from vizggml.views.memory import check_step
from vizggml.views.player import player_module
from vizggml.views.still import still

if TYPE_CHECKING:
    from jinja2 import Template


def html(
    source: Drawable, *, step: int | None = None, panes: Iterable[str] | None = None, title: str | None = None
) -> str:
    """The page of a trace (or of its tracks), opened at `step` (None: where its plan or its run begins).

    `#step=N` in its address takes it elsewhere. VizggmlError for a step outside the trace.
    """
    tracks = tracks_of(source)
    step = tracks.start if step is None else check_step(tracks, step)
    options: dict[str, object] = {"step": step}
    if panes is not None:
        options["panes"] = [panes] if isinstance(panes, str) else list(panes)
    script = script_of(options)
    picture = still(tracks, None if step == tracks.start else step)
    named = title or _title(str(tracks.meta.get("model", "")))
    return _template().render(
        title=named,
        alt=f"{named}: one step, as memory timeline, memory map and graph",
        version=vizggml.__version__,
        script=Markup(script),
        script_hash=Markup(hash_of(script)),
        layout=Markup(packed(layout_json(tracks).encode())),
        tracks=Markup(packed(tracks.to_bytes())),
        still=Markup(base64.b64encode(picture.encode("utf-8", "replace")).decode("ascii")),
    )


def to_html(
    source: Drawable,
    path: str | os.PathLike[str],
    *,
    step: int | None = None,
    panes: Iterable[str] | None = None,
    title: str | None = None,
) -> None:
    """Write a trace as one page with the player, which needs neither a network nor a kernel.

    `source` is a trace or its tracks; `step` where the page opens (None: where its plan or its run begins), `panes` the
    panes that are open (None: all), `title` that of the window. VizggmlError for a step outside the trace.
    """
    page = html(source, step=step, panes=panes, title=title)
    write_whole(path, page.encode("utf-8", "replace"), "page")


def packed(data: bytes) -> str:
    """zlib, then base64: what the page's DecompressionStream("deflate") opens."""
    return base64.b64encode(zlib.compress(data, 6)).decode("ascii")


def script_of(options: dict[str, object], start: str = "boot.js") -> str:
    """The page's one script: the player, the options, the start."""
    here = resources.files("vizggml").joinpath("export")
    unpack, boot = (here.joinpath(name).read_text("utf-8") for name in ("unpack.js", start))
    chosen = json.dumps(options, sort_keys=True)
    return safe_script(f"\n{player_module()}\nconst OPTIONS = {chosen};\n{unpack}{boot}")


def safe_script(source: str) -> str:
    """`source` with no end of script and no HTML comment in it for a parser to find; the JavaScript is the same."""
    source = source.replace("\r\n", "\n").replace("<!--", "\\x3c!--")
    return re.sub(r"</(script)", r"<\\/\1", source, flags=re.IGNORECASE)


def hash_of(script: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")


def _title(model: str) -> str:
    return f"{model}: a run, step by step" if model else "A run, step by step"


@lru_cache(maxsize=1)
def _template() -> Template:
    import jinja2

    text = resources.files("vizggml").joinpath("export", "page.html.j2").read_text("utf-8")
    return jinja2.Environment(autoescape=True, keep_trailing_newline=True).from_string(text)
