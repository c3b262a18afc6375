"""Blocks opened: bytes written by hand, one of each family, and what a person works out from them."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from vizggml.errors import VizggmlError
from vizggml.ggml import quants
from vizggml.ggml.quants.iq.grid import GRIDS
from vizggml.ggml.types import type_named


def half(x: float) -> bytes:
    return struct.pack("<e", x)


def word(x: int) -> bytes:
    return struct.pack("<H", x)


def test_q4_0() -> None:
    """Byte 0 is 0x3A: element 0 has code 10, that is 2, element 16 has code 3, that is -5. Scale 0.5."""
    block = quants.open_block("Q4_0", half(0.5) + bytes([0x3A]) + bytes([0x88]) * 15)
    assert [(f.name, f.start, f.stop) for f in block.fields] == [("d", 0, 2), ("qs", 2, 18)]
    assert block.scales.tolist() == [0.5]
    assert (block.codes[0], block.codes[16], block.levels[0], block.levels[16]) == (10, 3, 2, -5)
    assert (block.values[0], block.values[16], block.values[1]) == (1.0, -2.5, 0.0)
    assert block.group_size == 32


def test_q5_1() -> None:
    """qh bit 1 and bit 31 are set: element 1 has code 16 + 4, element 31 code 16 + 15. Scale 0.25, minimum -1."""
    qs = bytearray(16)
    qs[1], qs[15] = 0x04, 0xF0
    block = quants.open_block("Q5_1", half(0.25) + half(-1) + struct.pack("<I", 1 << 1 | 1 << 31) + bytes(qs))
    assert (block.codes[1], block.codes[31], block.codes[0]) == (20, 31, 0)
    assert (block.values[1], block.values[31], block.values[0]) == (4.0, 6.75, -1.0)
    assert block.mins.tolist() == [-1.0]


def test_q4_k() -> None:
    """Group 0: scale 3, minimum 5. Group 7: scale 0b10_1001 = 41, minimum 0b01_0110 = 22. d 0.5, dmin 0.25."""
    scales = bytearray(12)
    scales[0], scales[4] = 3, 5
    scales[3], scales[7], scales[11] = 0b10 << 6, 0b01 << 6, 0b0110_1001
    qs = bytearray(128)
    qs[0], qs[127] = 0x07, 0x90
    block = quants.open_block("Q4_K", half(0.5) + half(0.25) + bytes(scales) + bytes(qs))
    assert block.scales[[0, 3, 7]].tolist() == [1.5, 0.0, 20.5]
    assert block.mins[[0, 3, 7]].tolist() == [-1.25, 0.0, -5.5]
    assert (block.values[0], block.values[1], block.values[255]) == (7 * 1.5 - 1.25, -1.25, 9 * 20.5 - 5.5)
    assert [(f.name, f.stop - f.start) for f in block.fields] == [("d", 2), ("dmin", 2), ("scales", 12), ("qs", 128)]


def test_q3_k() -> None:
    """Element 33 is bit 1 of hmask byte 1 and bits 2, 3 of qs byte 1: code 4 + 2, that is 2. Group 2 has scale 5."""
    hmask, qs, scales = bytearray(32), bytearray(64), bytearray(12)
    hmask[1], qs[1] = 1 << 1, 2 << 2
    scales[2], scales[10] = (37 & 15), (37 >> 4)
    block = quants.open_block("Q3_K", bytes(hmask) + bytes(qs) + bytes(scales) + half(0.5))
    assert (block.codes[33], block.levels[33], block.levels[32]) == (6, 2, -4)
    assert block.scales[2] == 0.5 * (37 - 32)
    assert (block.values[33], block.values[32]) == (5.0, -10.0)
    assert block.scales[0] == 0.5 * -32


def test_iq4_xs() -> None:
    """Group 1 has scale 0b10_0101 - 32 = 5; codes 0 and 15 stand for -127 and 113."""
    qs = bytearray(128)
    qs[16] = 0xF0
    block = quants.open_block("IQ4_XS", half(2) + word(0b10 << 2) + bytes([0x50, 0, 0, 0]) + bytes(qs))
    assert block.scales[1] == 10.0
    assert (block.values[32], block.values[48]) == (-1270.0, 1130.0)


def test_iq2_xs() -> None:
    """Point 0 is all zeros: eight times 8. Seven signs 0b0000101 are two minus: the eighth is plus."""
    qs = [0b0000101 << 9] + [0] * 31
    block = quants.open_block("IQ2_XS", half(4) + struct.pack("<32H", *qs) + bytes([0x32]) + bytes(7))
    assert block.scales[:3].tolist() == [4 * 2.5 / 4, 4 * 3.5 / 4, 4 * 0.5 / 4]
    assert block.levels[:8].tolist() == [-8, 8, -8, 8, 8, 8, 8, 8]
    assert block.values[0] == -20.0
    assert block.points.tolist() == [0] * 32


def test_an_odd_number_of_signs_is_made_even_by_the_eighth() -> None:
    block = quants.open_block("IQ2_XS", half(4) + struct.pack("<H", 0b1000000 << 9) + bytes(62 + 8))
    assert block.levels[:8].tolist() == [8, 8, 8, 8, 8, 8, -8, -8]


def test_iq3_s() -> None:
    """Point 511, the last of the codebook: its ninth bit is in qh."""
    body = bytes([0xFF]) + bytes(63) + bytes([1]) + bytes(7) + bytes([0b0010]) + bytes(31) + bytes([0x02, 0, 0, 0])
    block = quants.open_block("IQ3_S", half(1) + body)
    last = 0o7700  # the last of kgrid_512
    assert block.points[0] == 511
    assert int(GRIDS["IQ3_S"].points[-1]) == last
    assert block.levels[:4].tolist() == [1, -1, 15, 15]
    assert block.values[:4].tolist() == [5, -5, 75, 75]


def test_iq1_m() -> None:
    """The scale 1.0 is 0x3C00: a digit in the upper four bits of each word. The second eight are moved down."""
    scales = [0x0000 | 0b001, 0x0000, 0xC000, 0x3000]
    block = quants.open_block("IQ1_M", bytes(32) + bytes([0x80]) + bytes(15) + struct.pack("<4H", *scales))
    assert block.scales[:2].tolist() == [3.0, 1.0]
    assert block.levels[[0, 8]].tolist() == [-0.875, -1.125]
    assert block.values[[0, 8]].tolist() == [3 * -0.875, 3 * -1.125]


def test_tq1_0() -> None:
    """2, 1, 0, 1, 2 in base 3 are 194: byte 205 is 194 / 243 of 256, rounded up (204.38). Byte 0 has 0, 32, 64, ..."""
    block = quants.open_block("TQ1_0", bytes([205]) + bytes(47) + bytes(4) + half(0.5))
    assert block.codes[[0, 32, 64, 96, 128]].tolist() == [2, 1, 0, 1, 2]
    assert block.values[[0, 32, 64, 96, 128]].tolist() == [0.5, 0.0, -0.5, 0.0, 0.5]


def test_mxfp4() -> None:
    """Exponent 128 is a scale of 2, halved for levels that are doubled. 0x7 is 6, 0xA is -1."""
    block = quants.open_block("MXFP4", bytes([128, 0xA7]) + bytes(15))
    assert (block.values[0], block.values[16]) == (12.0, -2.0)
    assert block.scales.tolist() == [1.0]


def test_nvfp4() -> None:
    """0x38 is exponent 7, that is 1: levels are half as much. 0x7F says not a number, which ggml takes as 0."""
    block = quants.open_block("NVFP4", bytes([0x38, 0x7F, 0x01, 0x39, 0x07]) + bytes(31))
    assert block.scales.tolist() == [0.5, 0.0, 2.0**-10, 0.5625]
    assert block.values[0] == 6.0


def test_q1_0_and_q2_0() -> None:
    block = quants.open_block("Q1_0", half(0.5) + bytes([0b101]) + bytes(15))
    assert block.values[:4].tolist() == [0.5, -0.5, 0.5, -0.5]
    block = quants.open_block("Q2_0", half(0.5) + bytes([0b11_10_01_00]) + bytes([0x55] * 15))
    assert block.values[:5].tolist() == [-0.5, 0.0, 0.5, 1.0, 0.0]


def test_errors_against_the_original() -> None:
    """Of 0..31 in Q4_1, scale 31 / 15 = 2.066 (in 16 bits), element 1 gets code 0 and element 2 code 1."""
    x = np.arange(32)
    block = quants.open_block("Q4_1", quants.quantize("Q4_1", x))
    np.testing.assert_allclose(block.errors(x)[:3], [0.0, -1.0, float(np.float16(31 / 15)) - 2], atol=1e-6)
    with pytest.raises(VizggmlError, match="type Q4_1: a block has 32 elements, the original 31"):
        block.errors(x[:31])


@pytest.mark.parametrize("name", list(quants.LAYOUTS))
def test_a_block_says_what_decoding_says(name: str) -> None:
    type = type_named(name)
    raw = np.random.default_rng(4).integers(0, 256, (20, type.type_size), np.uint8)
    for one in raw:
        block = quants.open_block(type, one.tobytes())
        np.testing.assert_array_equal(block.values, quants.dequantize(type, one[None]))
        assert b"".join(block.bytes[f.start : f.stop] for f in block.fields) == one.tobytes()
        assert len(block.codes) == len(block.levels) == len(block.values) == type.blck_size
        with np.errstate(all="ignore"):
            again = np.repeat(block.scales, block.group_size) * block.levels + np.repeat(block.mins, block.group_size)
        np.testing.assert_array_equal(again, block.values)


@pytest.mark.parametrize("name", list(quants.LAYOUTS))
def test_every_field_is_explained(name: str) -> None:
    layout = quants.LAYOUTS[name]
    assert set(layout.meaning) == set(layout.record.names or ())
    assert layout.record.itemsize == type_named(name).type_size
    assert all(text.strip() and not text.endswith(".") for text in layout.meaning.values())
