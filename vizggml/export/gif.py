"""A range of steps as an animated GIF: a frame for each step at which the figure of a pane changes."""

from __future__ import annotations

import io
import os
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vizggml.errors import VizggmlError
from vizggml.export.tables import Drawable, figured
from vizggml.files import write_whole
from vizggml.timeline.tracks import Tracks
from vizggml.views import paint
from vizggml.views.memory import check_step
from vizggml.views.pictures import picture

if TYPE_CHECKING:
    from PIL.Image import Image

FPS = 4.0
MOST_FRAMES = 400
MOST_STEPS = 2000
"""Of a longer range only as many steps are looked at as may be frames, evenly chosen: to draw each takes minutes."""
COLOURS = 64
APART = 12
"""Colours of the palette are at least so far from one another, in steps of 255."""
SAMPLED = 8
LAST_HOLDS = 3
"""Frames' time that the last one stands before it begins again."""

Progress = Callable[[int, int], None]
"""Told how many of how many pieces of the work are done."""


@dataclass(frozen=True)
class Frame:
    step: int
    packed: bytes

    @property
    def svg(self) -> str:
        return zlib.decompress(self.packed).decode("utf-8", "surrogatepass")


def frames(
    tracks: Tracks, pane: str, first: int, last: int, *, theme: str = "light", progress: Progress | None = None
) -> list[Frame]:
    """The steps from `first` to `last` at which the figure changes, but for its caption. The first is always one.

    Of more than MOST_FRAMES changes these many are chosen evenly, of more than MOST_STEPS steps as many. VizggmlError
    for steps outside the trace.
    """
    first, last = check_step(tracks, first), check_step(tracks, last)
    if first > last:
        raise VizggmlError(f"steps {first} to {last}: the first comes after the last")
    found: list[Frame] = []
    before = ""
    n = last - first + 1
    steps = [first + k for k in (range(n) if n <= MOST_STEPS else evenly(n, MOST_FRAMES))]
    for k, step in enumerate(steps):
        svg = picture(tracks, pane, step, theme=theme)
        drawn = without_caption(svg)
        if drawn != before:
            found.append(Frame(step, zlib.compress(svg.encode("utf-8", "surrogatepass"), 1)))
        before = drawn
        if progress is not None:
            progress(k + 1, len(steps))
    return found if len(found) <= MOST_FRAMES else [found[k] for k in evenly(len(found), MOST_FRAMES)]


def evenly(n: int, k: int) -> list[int]:
    """`k` of the numbers 0 to `n` - 1, the first and the last among them."""
    return [round(i * (n - 1) / max(1, k - 1)) for i in range(k)]


def sampling(n_steps: int, n_frames: int) -> str:
    """That an animation of so many steps does not show every change, in words; nothing where it does."""
    if n_steps > MOST_STEPS:
        return f"one step in {n_steps / MOST_FRAMES:.0f} was looked at"
    return f"{MOST_FRAMES} of its changes, evenly chosen" if n_frames == MOST_FRAMES else ""


def without_caption(svg: str) -> str:
    """What is drawn, without the words that differ at every step."""
    body = svg[svg.find("<style>") :]
    return re.sub(r'<text class="[^"]*\bcaption\b[^"]*"[^>]*>[^<]*</text>\n?', "", body)


def to_gif(
    source: Drawable,
    path: str | os.PathLike[str],
    first: int = 0,
    last: int | None = None,
    *,
    fps: float = FPS,
    pane: str = "map",
    theme: str = "light",
    scale: float = 1.0,
    progress: Progress | None = None,
) -> int:
    """Write the steps from `first` to `last` (None: the trace's last) as a GIF that repeats; how many frames it has.

    `source`, `pane` and `theme` are those of `to_png`. VizggmlError for a pane, a step or an `fps` that there is not.
    `fps` frames a second, 0.1 to 50. A palette of 64 colours serves all frames. `progress` is told how far it is: over
    the steps, then over the frames.
    """
    if not 0.1 <= fps <= 50:
        raise VizggmlError(f"fps {fps:g}: it must be 0.1 to 50")
    tracks = figured(source)
    found = frames(tracks, pane, first, check_step(tracks, last), theme=theme, progress=progress)
    images = _images(found, scale, progress)
    lasting = [round(100 / fps) * 10] * len(found)  # a GIF counts in hundredths of a second
    lasting[-1] *= LAST_HOLDS
    out = io.BytesIO()
    options = {"save_all": True, "append_images": images, "duration": lasting, "loop": 0, "optimize": False}
    next(images).save(out, format="GIF", disposal=1, **options)
    write_whole(path, out.getvalue(), "animation")
    return len(found)


def _images(found: list[Frame], scale: float, progress: Progress | None) -> Iterator[Image]:
    """The frames painted, all as large as the largest, in one palette."""
    from PIL import Image

    sizes = [tuple(float(n) for n in re.findall(r' (?:width|height)="([\d.]+)"', f.svg[:600])[:2]) for f in found]
    size = round(max(s[0] for s in sizes) * scale), round(max(s[1] for s in sizes) * scale)

    def whole(frame: Frame) -> Image.Image:
        painted = paint.image(frame.svg, scale)
        page = Image.new("RGB", size, painted.getpixel((0, 0)))
        page.paste(painted, (0, 0))
        return page

    sampled = [whole(f) for f in found[:: max(1, -(-len(found) // SAMPLED))]]
    palette = Image.new("P", (1, 1))
    palette.putpalette([value for colour in _palette(sampled) for value in colour])
    for k, frame in enumerate(found):
        if progress is not None:
            progress(k + 1, len(found))
        yield whole(frame).quantize(palette=palette, dither=Image.Dither.NONE)


def _palette(samples: list[Image]) -> list[tuple[int, int, int]]:
    """The commonest colours, each far enough from those before it: flat areas keep theirs exactly."""
    counts: Counter[tuple[int, int, int]] = Counter()
    for sample in samples:
        colours: Any = sample.getcolors(sample.width * sample.height)
        counts.update({colour: n for n, colour in colours})
    chosen: list[tuple[int, int, int]] = []
    for colour, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        if all(sum((a - b) ** 2 for a, b in zip(colour, other, strict=True)) >= APART**2 for other in chosen):
            chosen.append(colour)
        if len(chosen) == COLOURS:
            break
    return chosen
