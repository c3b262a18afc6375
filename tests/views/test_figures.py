"""Figures: what they say, read from matplotlib's own objects, and that names in them stay names."""

from __future__ import annotations

import io
import struct
from typing import Any

import pytest
from matplotlib.patches import StepPatch

from tests.views.synthetic import HOSTILE, SyntheticTracks, teaching
from vizggml.errors import VizggmlError
from vizggml.views.figures import Picture, memory_map, memory_timeline

PNG = b"\x89PNG\r\n\x1a\n"


def words(picture: Picture) -> list[str]:
    axes = picture.figure.axes[0]
    drawn = [t.get_text() for t in axes.texts]
    return [*drawn, axes.get_xlabel(), axes.get_ylabel(), axes.get_title(loc="left")]


@pytest.fixture(params=["light", "dark"])
def theme(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_the_timeline_marks_its_peak_and_names_what_stands_there(theme: str) -> None:
    text = "\n".join(words(memory_timeline(teaching(), theme=theme)))
    assert "peak 16 B at position 1 = lower bound" in text
    assert "standing at the peak\nwx 8 B\nwx+b 8 B" in text
    assert "position in the execution order (not time)" in text


def test_the_timeline_draws_what_lives_and_a_line_at_the_most_of_it() -> None:
    """Had the plan left a hole of 4 bytes, 12 would have done."""
    tracks = teaching()
    tracks.columns["t.live.bytes"][:] = (8, 12, 8)
    picture = memory_timeline(tracks)
    axes = picture.figure.axes[0]
    (steps,) = [patch for patch in axes.patches if isinstance(patch, StepPatch)]
    assert list(steps.get_data().values) == [8, 12, 8]
    assert [12, 12] in [list(line.get_ydata()) for line in axes.lines]
    assert "lower bound 12 B" in words(picture)
    assert "peak 16 B at position 1" in words(picture)


def test_the_timeline_draws_each_lifetime_to_scale() -> None:
    axes = memory_timeline(teaching()).figure.axes[0]
    boxes = [path.get_extents().extents.tolist() for path in axes.collections[0].get_paths()]
    assert boxes == [[0, 0, 2, 8], [1, 8, 3, 16], [2, 0, 3, 8]]


def test_the_map_draws_each_block_and_says_its_size(theme: str) -> None:
    picture = memory_map(teaching(), 3, theme=theme)
    assert {"free\n8 B", "wx+b\n8 B", "Memory at step 3"} <= set(words(picture))
    axes = picture.figure.axes[0]
    extents = [path.get_extents().extents.tolist() for path in axes.collections[0].get_paths()]
    assert [(e[0], e[2]) for e in extents] == [(0, 8), (8, 16)]


def test_before_anything_is_planned_the_map_says_so() -> None:
    assert "nothing is planned yet" in words(memory_map(teaching(), 0))


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_equal_figures_have_equal_bytes(suffix: str, tmp_path: Any) -> None:
    paths = [tmp_path / f"{i}.{suffix}" for i in range(2)]
    for path in paths:
        memory_timeline(teaching()).save(path)
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_a_notebook_shows_it_as_png() -> None:
    data = memory_map(teaching())._repr_png_()
    assert data.startswith(PNG)
    width, height = struct.unpack(">II", data[16:24])
    assert width > 1200
    assert height > 200


def test_a_dollar_or_a_script_in_a_name_is_only_a_name() -> None:
    tracks: SyntheticTracks = teaching()
    for tensor, name in zip((2, 4, 5), ("$x^{2$", HOSTILE[0], HOSTILE[5]), strict=True):
        tracks.strings.append(name)
        tracks.columns["tensor.name"][tensor] = len(tracks.strings) - 1
    out = io.StringIO()
    memory_timeline(tracks).figure.savefig(out, format="svg")
    assert "<script" not in out.getvalue()
    assert "\u202e" not in "".join(words(memory_map(tracks, 4)))
    assert any(r"\$x" in text for text in words(memory_map(tracks, 2)))


def test_an_unknown_theme_is_refused() -> None:
    with pytest.raises(VizggmlError, match="theme 'sepia': there are light and dark"):
        memory_map(teaching(), theme="sepia")
