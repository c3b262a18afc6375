"""Codes of five bits, and codes that stand for levels: what `lanes` has for nibbles, for Q5_0, Q5_1 and IQ4_NL.

Thirty-two codes are the bytes at an address; the fifth bits of Q5_0 and Q5_1 are in the four bytes before it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np
from llvmlite import ir

from vizggml.ggml.kernels.fast.lanes import (
    ADDRESS,
    FEATURES,
    FLOAT,
    I32_8,
    NONE,
    EightInts,
    _all,
    _call,
    _f32,
    _fours,
    _i8,
    _i32,
    _instruction,
    _nibbles,
    _pick,
    _read,
    _signed_fours,
    _splat,
    _vector,
    _write,
)
from vizggml.ggml.quants.iq.iq4 import LEVELS as LEVELS_OF_CODES

UNSIGNED_FIVES, SIGNED_FIVES, LEVELS = range(3, 6)
"""Kinds of codes, after those of `lanes`: 0 to 31, -16 to 15, one of sixteen levels."""


def _fifth_bits(b: ir.IRBuilder, at: ir.Value, one: int, zero: int) -> ir.Value:
    """A byte for each of the 32 bits at an address."""
    ones = b.bitcast(_read(b, at, _i32), ir.VectorType(ir.IntType(1), 32))
    return b.select(ones, _all(_i8, one, 32), _all(_i8, zero, 32))


def _levels(b: ir.IRBuilder, codes: ir.Value) -> ir.Value:
    if FEATURES.get("avx2", False):
        table = ir.Constant(_vector(_i8, 32), [*LEVELS_OF_CODES.tolist()] * 2)
        return _call(b, "llvm.x86.avx2.pshuf.b", _vector(_i8, 32), table, codes)
    found = _all(_i8, int(LEVELS_OF_CODES[0]), 32)
    for code, level in enumerate(LEVELS_OF_CODES.tolist()):
        found = b.select(b.icmp_unsigned("==", codes, _all(_i8, code, 32)), _all(_i8, level, 32), found)
    return found


def _codes(b: ir.IRBuilder, at: ir.Value, kind: int) -> ir.Value:
    """Thirty-two bytes: the codes, or what they stand for."""
    low = _nibbles(b, at)
    if kind == LEVELS:
        return _levels(b, low)
    fifth = b.sub(at, ir.Constant(at.type, 4))
    return b.or_(low, _fifth_bits(b, fifth, 16, 0) if kind == UNSIGNED_FIVES else _fifth_bits(b, fifth, 0, -16))


def _products_of(kind: int) -> Callable[[int, int], EightInts]:
    """Thirty-two codes by int8 at another address, the products of four neighbours added."""

    def build(b: ir.IRBuilder, at: ir.Value, y_at: ir.Value) -> ir.Value:
        fours = _fours if kind == UNSIGNED_FIVES else _signed_fours
        return fours(b, _codes(b, at, kind), _read(b, y_at, _vector(_i8, 32)))

    return cast("Callable[[int, int], EightInts]", _instruction(I32_8, (ADDRESS, ADDRESS), build))


def _put_codes_of(kind: int) -> Callable[[int, int], None]:
    """Thirty-two codes from one address, a byte each to another: (to, from)."""

    def build(b: ir.IRBuilder, to: ir.Value, at: ir.Value) -> None:
        _write(b, to, _codes(b, at, kind))

    return cast("Callable[[int, int], None]", _instruction(NONE, (ADDRESS, ADDRESS), build))


def _put_floats_of(kind: int) -> Callable[[int, int, np.float32, np.float32], None]:
    """Thirty-two codes times a scale (and plus a minimum, where codes have no sign) as float32: (to, from, d, m)."""

    def build(b: ir.IRBuilder, to: ir.Value, at: ir.Value, d: ir.Value, m: ir.Value) -> None:
        codes = _codes(b, at, kind)
        for half in range(2):
            wide = b.sitofp(b.sext(_pick(b, codes, range(16 * half, 16 * half + 16)), _vector(_i32)), _vector(_f32))
            value = b.fmul(wide, _splat(b, d))
            value = b.fadd(value, _splat(b, m)) if kind == UNSIGNED_FIVES else value
            _write(b, b.add(to, ir.Constant(to.type, 64 * half)), value)

    made = _instruction(NONE, (ADDRESS, ADDRESS, FLOAT, FLOAT), build)
    return cast("Callable[[int, int, np.float32, np.float32], None]", made)


five_products, signed_five_products, level_products = map(_products_of, (UNSIGNED_FIVES, SIGNED_FIVES, LEVELS))
put_fives, put_signed_fives, put_levels = map(_put_codes_of, (UNSIGNED_FIVES, SIGNED_FIVES, LEVELS))
put_five_floats, put_signed_five_floats, put_level_floats = map(_put_floats_of, (UNSIGNED_FIVES, SIGNED_FIVES, LEVELS))
