"""The players of a page: what their frames have in common is in the page once, and a script of the page fills them.

A kept player (vizggml.export.saved) is a frame that carries the player's script, a trace and a layout, packed. Of a
chapter's players the script is the same, and often the trace: here each such part is moved out of its frame and
named by its digest. What is left of the frame's page, a few hundred bytes, waits in an attribute until a reader comes
near; then page.js puts the parts back.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from dataclasses import dataclass, field
from html import escape
from html.parser import HTMLParser

from vizggml.timeline.tracks import Tracks

BLOCK = re.compile(r'(<script type="text/plain" id="[a-z]+")>([A-Za-z0-9+/=]{200,})</script>')
POLICY = re.compile(r"script-src ([^;]*);")


class Kept(HTMLParser):
    """What a notebook keeps of a player: the page in its frame, "" when the trace was too large, and its height."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.page, self.height = "", ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "iframe":
            said = dict(attrs)
            self.page, self.height = said["srcdoc"] or "", (said["style"] or "").removeprefix("height:")

    @property
    def panes(self) -> list[str]:
        """The panes that are open; none for all."""
        return list(json.loads(self.block("options")).get("panes", [])) if self.page else []

    def tracks(self) -> Tracks:
        return Tracks.from_bytes(zlib.decompress(base64.b64decode(self.block("tracks"))))

    def block(self, name: str) -> str:
        """A part of the page. ValueError if it is not there."""
        found = re.search(f'<script type="[a-z/]+" id="{name}">([^<]*)</script>', self.page)
        if found is None:
            raise ValueError(f"kept player: there is no part {name!r}")
        return found[1]


def image(svg: str, alt: str) -> str:
    """An SVG as an image of the page: nothing in it has a say outside."""
    data = base64.b64encode(svg.encode("utf-8", "replace")).decode("ascii")
    return f'<img alt="{escape(alt)}" src="data:image/svg+xml;base64,{data}">'


@dataclass
class Players:
    """The parts of a page's players by digest, and the sources of script that its frames need."""

    parts: dict[str, str] = field(default_factory=dict)
    sources: set[str] = field(default_factory=set)

    def figure(self, kept: Kept, picture: str) -> str:
        """HTML for the player that was kept so; `picture`, an SVG, stands for it until it starts, and on paper."""
        drawn = image(picture, "one step of the player, as a picture")
        if not kept.page:
            return f'<figure class="still">{drawn}</figure>'
        page = escape(BLOCK.sub(self._moved, kept.page))
        for sources in POLICY.findall(kept.page):
            self.sources.update(sources.split())
        return (
            f'<figure class="player" style="--height:{escape(kept.height)}">{drawn}'
            f'<iframe sandbox="allow-scripts" title="vizggml player" data-page="{page}" hidden></iframe></figure>'
        )

    def _moved(self, block: re.Match[str]) -> str:
        digest = hashlib.sha256(block[2].encode()).hexdigest()[:16]
        self.parts[digest] = block[2]
        return f'{block[1]} data-part="{digest}"></script>'
