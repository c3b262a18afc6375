"""A block as a still picture."""

from __future__ import annotations

import re

import numpy as np
import pytest

import vizggml as vg
from vizggml.errors import VizggmlError
from vizggml.ggml import quants
from vizggml.timeline.record import record
from vizggml.views.pictures import picture

X = np.linspace(-1, 1, 64, dtype=np.float32)


def texts(svg: str) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg)


def test_bytes_fields_codes_and_error_are_there() -> None:
    raw = quants.quantize("Q4_1", X)[:20]
    block = quants.open_block("Q4_1", raw)
    found = texts(vg.block_picture(block, X[:32]))
    at = found.index("Bytes, coloured by field")
    assert found[at + 1 : at + 21] == [f"{byte:02x}" for byte in raw.tolist()]
    at = next(i for i, text in enumerate(found) if text.startswith("Codes"))
    assert found[at + 1 : at + 33] == [str(code) for code in block.codes.tolist()]
    errors = block.values - X[:32]
    assert f"at most {np.abs(errors).max():.4g}." in found[-1]
    assert found[-2].startswith(f"One scale for all: {block.scales[0]:.4g}, and a minimum: -1.")


def test_it_shows_itself_in_a_notebook() -> None:
    block = quants.open_block("Q8_0", quants.quantize("Q8_0", X)[:34])
    svg = vg.block_picture(block)
    assert svg._repr_svg_() == str(svg)
    assert "Error" not in svg
    with pytest.raises(VizggmlError, match="a block has 32 elements, the original 3"):
        vg.block_picture(block, [1, 2, 3])


def test_the_pane_for_print_shows_the_block_that_was_told_of_last() -> None:
    with record() as trace:
        quants.quantize("Q5_0", X)
    tracks = trace.tracks()
    last = len(tracks) - 1
    assert any("block 1: encoded as Q5_0, 32 elements in 22 bytes" in text for text in texts(picture(tracks, "block")))
    assert any("block 0: encoded" in text for text in texts(picture(tracks, "block", last - 1)))
    assert "No block is known at this step." in picture(tracks, "block", last - 2)
