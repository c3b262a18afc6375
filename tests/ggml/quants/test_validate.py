"""Which blocks are refused: as `ggml_validate_row_data` of the wheel says, block by block."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from tests.oracle_quants import LIB
from vizggml.errors import VizggmlError
from vizggml.ggml import quants
from vizggml.ggml.types import I32, type_named

LIB.ggml_validate_row_data.restype = ctypes.c_bool
LIB.ggml_validate_row_data.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t)


@pytest.mark.parametrize("name", [n for n in quants.DECODERS if n != "Q8_1"])
def test_unsound_blocks_are_those_ggml_refuses(name: str) -> None:
    """Half of the bytes have all bits of a half's exponent set, so that many scales are infinite or NaN."""
    type, rng = type_named(name), np.random.default_rng(8)
    blocks = rng.integers(0, 256, (200, type.type_size), np.uint8)
    blocks[rng.random(blocks.shape) < 0.3] |= 0x7C
    blocks[rng.random(blocks.shape) < 0.1] = 0xFF
    refused = [not LIB.ggml_validate_row_data(type.id, one.ctypes.data, one.nbytes) for one in blocks]
    assert quants.unsound(type, blocks).tolist() == np.flatnonzero(refused).tolist()
    assert (name == "NVFP4") != any(refused)


def test_whole_numbers_are_always_sound() -> None:
    assert quants.unsound(I32, np.full((3, 4), 255, np.uint8)).tolist() == []


@pytest.mark.parametrize("name", ["Q4_0", "IQ1_M", "F16"])
def test_bytes_that_are_no_blocks_are_refused(name: str) -> None:
    size = type_named(name).type_size
    with pytest.raises(VizggmlError, match=f"type {name}: {size + 1} bytes are not blocks of {size} bytes"):
        quants.unsound(type_named(name), np.zeros(size + 1, np.uint8))
