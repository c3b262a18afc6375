"""Animations, read by Pillow: how many frames, how long each stands, what is in them."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from PIL import Image, ImageSequence

from tests.export.test_picture import recorded as recorded
from vizggml.errors import VizggmlError
from vizggml.export.gif import frames, sampling, to_gif
from vizggml.timeline.trace import Trace


def steps_where_blocks_change(trace: Trace) -> list[int]:
    """By the track of blocks alone: those at which a row begins or ends."""
    tracks = trace.tracks()
    changed = {int(i) for c in ("a", "b") for i in tracks[f"t.block.{c}"]}
    return sorted(i for i in changed if i < len(tracks))


def test_a_frame_for_each_step_at_which_the_map_changes(recorded: Trace, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    n = to_gif(recorded, tmp_path / "map.gif", fps=5, progress=lambda done, of: told.append((done, of)))
    found = [f.step for f in frames(recorded.tracks(), "map", 0, len(recorded) - 1)]
    assert set(found) <= {0, *steps_where_blocks_change(recorded)}
    assert n == len(found) > 3
    with Image.open(tmp_path / "map.gif") as gif:
        assert gif.n_frames == n
        assert gif.info["loop"] == 0
        lasting = [frame.info["duration"] for frame in ImageSequence.Iterator(gif)]
        assert lasting == [200] * (n - 1) + [600]
    assert told[len(recorded) - 1] == (len(recorded), len(recorded))
    assert told[-1] == (n, n)


def test_frames_differ_and_all_are_of_one_size(recorded: Trace, tmp_path: Path) -> None:
    to_gif(recorded, tmp_path / "free.gif", 30, 74, pane="free")
    with Image.open(tmp_path / "free.gif") as gif:
        pages = [frame.convert("RGB") for frame in ImageSequence.Iterator(gif)]
    assert len({page.size for page in pages}) == 1
    assert all(a.tobytes() != b.tobytes() for a, b in pairwise(pages))
    assert pages[0].getpixel((2, 2)) == (255, 255, 255)
    assert all(len(page.getcolors(1 << 20) or []) <= 64 for page in pages)


def test_equal_traces_have_equal_bytes(recorded: Trace, tmp_path: Path) -> None:
    for name in ("a", "b"):
        to_gif(recorded, tmp_path / f"{name}.gif", 50, 70)
    assert (tmp_path / "a.gif").read_bytes() == (tmp_path / "b.gif").read_bytes()


def test_what_makes_no_animation_is_refused(recorded: Trace, tmp_path: Path) -> None:
    with pytest.raises(VizggmlError, match="steps 9 to 3: the first comes after the last"):
        to_gif(recorded, tmp_path / "x.gif", 9, 3)
    with pytest.raises(VizggmlError, match=r"fps 99: it must be 0\.1 to 50"):
        to_gif(recorded, tmp_path / "x.gif", fps=99)
    assert list(tmp_path.iterdir()) == []


def test_of_too_many_changes_some_are_chosen_evenly(recorded: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The events pane changes at every step."""
    tracks = recorded.tracks()
    assert sampling(10, 10) == ""
    monkeypatch.setattr("vizggml.export.gif.MOST_FRAMES", 4)
    assert [f.step for f in frames(tracks, "events", 0, 9)] == [0, 3, 6, 9]
    assert sampling(10, 4) == "4 of its changes, evenly chosen"
    monkeypatch.setattr("vizggml.export.gif.MOST_STEPS", 8)
    told: list[tuple[int, int]] = []
    found = frames(tracks, "events", 10, 70, progress=lambda done, of: told.append((done, of)))
    assert [f.step for f in found] == [10, 30, 50, 70]
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert sampling(61, 4) == "one step in 15 was looked at"
