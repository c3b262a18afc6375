"""Sixteen numbers at a time: the vector instructions that the compiled kernels are written in.

Numba knows no vector types, so this adds three (`F32`, `I32`, `I16`: sixteen lanes each) and the few instructions the
kernels need, as LLVM's own vector operations; LLVM makes of them what the machine has (one AVX-512 register, two of
AVX2, four of NEON). Addresses are plain integers.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba import cfunc, njit
from numba.core import types
from numba.core.cgutils import get_or_insert_function
from numba.extending import intrinsic, models, register_model

from vizggml.ggml.kernels.fast.stale import forget_stale

LANES = 16
_F = TypeVar("_F", bound=Callable[..., object])
_Build = Callable[..., ir.Value]


def compiled(*signatures: object) -> Callable[[_F], _F]:
    """Compile a function that holds no lock, once for each of `signatures` (none: when first called), and keep it."""
    make = njit(list(signatures) or None, nogil=True, cache=True, error_model="numpy")
    return cast("Callable[[_F], _F]", make)


def address_of(function: Callable[..., object], signature: object) -> int:
    """Compile a function to be called by its address, and keep it: callers need not be compiled with all they call."""
    return cast("int", cfunc(signature, cache=True, error_model="numpy")(function).address)


def machine_is_able(machine: str, features: Mapping[str, bool]) -> bool:
    """Whether F16 is turned into F32 by an instruction: on x86 that is F16C, which processors have since 2013."""
    return machine.lower() not in ("x86_64", "amd64") or features.get("f16c", False)


if not machine_is_able(platform.machine(), get_host_cpu_features()):
    raise ImportError("the compiled kernels need a processor with F16C")
forget_stale(Path(__file__).parent)


class Vector(types.Type):
    """The Numba type of several elements."""

    def __init__(self, name: str, element: ir.Type, lanes: int = LANES) -> None:
        self.type = ir.VectorType(element, lanes)
        super().__init__(name=name)


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: object, vector: Vector) -> None:
        super().__init__(manager, vector, vector.type)  # type: ignore[no-untyped-call]


class Floats:
    """Sixteen float32, to a type checker."""


class Ints:
    """Sixteen int32."""


class Shorts:
    """Sixteen int16."""


class EightFloats:
    """Eight float32."""


class EightInts:
    """Eight int32."""


_i8, _i16, _i32, _f16, _f32 = ir.IntType(8), ir.IntType(16), ir.IntType(32), ir.HalfType(), ir.FloatType()
F32, I32, I16 = Vector("f32x16", _f32), Vector("i32x16", _i32), Vector("i16x16", _i16)
F32_8, I32_8 = Vector("f32x8", _f32, 8), Vector("i32x8", _i32, 8)
UNSIGNED_NIBBLES, SIGNED_NIBBLES, BYTES = range(3)
"""Kinds of codes: 0 to 15, -8 to 7, -128 to 127."""
FEATURES: Mapping[str, bool] = get_host_cpu_features()
ADDRESS, INT, FLOAT = types.int64, types.int64, types.float32

# for signatures
NONE = types.void
DIMS = types.UniTuple(types.int64, 4)  # type: ignore[no-untyped-call]
TWO, FIVE, SIX, SEVEN, TWELVE = (types.UniTuple(types.int64, n) for n in (2, 5, 6, 7, 12))  # type: ignore[no-untyped-call]
THREE_FLOATS = types.UniTuple(types.float64, 3)  # type: ignore[no-untyped-call]
READ = types.Array(types.uint8, 1, "C", readonly=True)
WRITE = types.Array(types.uint8, 1, "C")
FLOATS = types.Array(types.float32, 1, "C")


ROUNDER = 1.5 * 2**23
"""Added to a float32 and taken away again, it leaves the nearest whole number."""
LOG2_E = float.fromhex("0x1.715476p+0")
LN2_HIGH, LN2_LOW = float.fromhex("0x1.62e4p-1"), float.fromhex("0x1.7f7d1cp-20")
EXP_TERMS = tuple(
    float.fromhex(x) for x in ("0x1.0e4020p-7", "0x1.573e2ep-5", "0x1.555e66p-3", "0x1.fffdb6p-2", "0x1.ffffecp-1")
)
"""ln 2 in two parts, and the polynomial of e**r: the numbers of `ggml_v_expf`, ggml/src/ggml-cpu/vec.h."""
EXP_ENDS = 192
"""Powers of two beyond which `ggml_v_expf` says 0 or infinity."""


def _vector(element: ir.Type, lanes: int = LANES) -> ir.VectorType:
    return ir.VectorType(element, lanes)


def _instruction(result: types.Type, arguments: tuple[types.Type, ...], build: _Build) -> Any:
    """A function for compiled code, written out by `build` from the builder and the arguments."""

    def typed(*_: object) -> tuple[object, Callable[..., object]]:
        def generate(context: object, builder: ir.IRBuilder, signature: object, values: list[ir.Value]) -> ir.Value:
            made = build(builder, *values)
            return context.get_dummy_value() if result is types.void else made  # type: ignore[attr-defined]

        return result(*arguments), generate

    by_arity: dict[int, Callable[..., object]] = {
        0: lambda typing: typed(),
        1: lambda typing, a: typed(a),
        2: lambda typing, a, b: typed(a, b),
        3: lambda typing, a, b, c: typed(a, b, c),
        4: lambda typing, a, b, c, d: typed(a, b, c, d),
        5: lambda typing, a, b, c, d, e: typed(a, b, c, d, e),
    }
    return intrinsic(by_arity[len(arguments)])


def _splat(b: ir.IRBuilder, value: ir.Value, lanes: int = LANES) -> ir.Value:
    blank = ir.Constant(_vector(value.type, lanes), ir.Undefined)
    return _pick(b, b.insert_element(blank, value, _i32(0)), [0] * lanes)


def _all(element: ir.Type, value: float, lanes: int = LANES) -> ir.Constant:
    return ir.Constant(_vector(element, lanes), [value] * lanes)


def _pick(b: ir.IRBuilder, x: ir.Value, lanes: Sequence[int], y: ir.Value | None = None) -> ir.Value:
    """Lanes of x, then of y."""
    blank = ir.Constant(x.type, ir.Undefined) if y is None else y
    return b.shuffle_vector(x, blank, ir.Constant(_vector(_i32, len(lanes)), list(lanes)))


def _pointer(b: ir.IRBuilder, address: ir.Value, type: ir.Type) -> ir.Value:
    return b.inttoptr(address, type.as_pointer())


def _read(b: ir.IRBuilder, address: ir.Value, type: ir.Type) -> ir.Value:
    return b.load(_pointer(b, address, type), align=1)


def _write(b: ir.IRBuilder, address: ir.Value, value: ir.Value) -> None:
    b.store(value, _pointer(b, address, value.type), align=1)


def _call(b: ir.IRBuilder, name: str, result: ir.Type, *values: ir.Value, fastmath: tuple[str, ...] = ()) -> ir.Value:
    type = ir.FunctionType(result, [v.type for v in values])
    function = get_or_insert_function(b.module, type, name)  # type: ignore[no-untyped-call]
    return b.call(function, values, fastmath=fastmath)


def _bf16(b: ir.IRBuilder, bits: ir.Value, to: ir.Type, wide: ir.Type, sixteen: ir.Value) -> ir.Value:
    return b.bitcast(b.shl(b.zext(bits, wide), sixteen), to)


def _call_at(result: types.Type, arguments: tuple[types.Type, ...], ir_result: ir.Type) -> Any:
    def build(b: ir.IRBuilder, address: ir.Value, *values: ir.Value) -> ir.Value:
        type = ir.FunctionType(ir_result, [v.type for v in values])
        return b.call(b.inttoptr(address, type.as_pointer()), values)

    return _instruction(result, (ADDRESS, *arguments), build)


VEC_DOT, FROM_FLOAT, TO_FLOAT = FLOAT(INT, INT, INT), NONE(INT, INT, INT), NONE(INT, INT, INT)
"""Signatures of what types bring: see `traits`."""
call_vec_dot: Callable[[int, int, int, int], np.float32] = _call_at(FLOAT, VEC_DOT.args, _f32)
call_from_float: Callable[[int, int, int, int], None] = _call_at(NONE, FROM_FLOAT.args, ir.VoidType())
call_to_float: Callable[[int, int, int, int], None] = _call_at(NONE, TO_FLOAT.args, ir.VoidType())
"""Call the function at the first argument, an address from `address_of`."""

# one number

single: Callable[[int], np.float32] = _instruction(FLOAT, (ADDRESS,), lambda b, at: _read(b, at, _f32))
"""The float32 at an address."""
half: Callable[[int], np.float32] = _instruction(FLOAT, (ADDRESS,), lambda b, at: b.fpext(_read(b, at, _f16), _f32))
"""The float16 at an address, as float32."""
brain: Callable[[int], np.float32] = _instruction(
    FLOAT, (ADDRESS,), lambda b, at: _bf16(b, _read(b, at, _i16), _f32, _i32, _i32(16))
)
"""The bfloat16 at an address, as float32."""
byte: Callable[[int], int] = _instruction(INT, (ADDRESS,), lambda b, at: b.sext(_read(b, at, _i8), ir.IntType(64)))
"""The int8 at an address."""
put_single: Callable[[int, np.float32], None] = _instruction(types.void, (ADDRESS, FLOAT), _write)
put_half: Callable[[int, np.float32], None] = _instruction(
    types.void, (ADDRESS, FLOAT), lambda b, at, x: _write(b, at, b.fptrunc(x, _f16))
)
put_byte: Callable[[int, int], None] = _instruction(
    types.void, (ADDRESS, INT), lambda b, at, x: _write(b, at, b.trunc(x, _i8))
)
put_short: Callable[[int, int], None] = _instruction(
    types.void, (ADDRESS, INT), lambda b, at, x: _write(b, at, b.trunc(x, _i16))
)
fma_single: Callable[[np.float32, np.float32, np.float32], np.float32] = _instruction(
    FLOAT, (FLOAT, FLOAT, FLOAT), lambda b, x, y, z: _call(b, "llvm.fma.f32", _f32, x, y, z)
)
"""x * y + z, rounded once."""
bits: Callable[[np.float32], int] = _instruction(INT, (FLOAT,), lambda b, x: b.zext(b.bitcast(x, _i32), ir.IntType(64)))
"""A float32's bits, 0 to 2**32 - 1."""

# sixteen from memory, and back

load_f32: Callable[[int], Floats] = _instruction(F32, (ADDRESS,), lambda b, at: _read(b, at, _vector(_f32)))
load_f16: Callable[[int], Floats] = _instruction(
    F32, (ADDRESS,), lambda b, at: b.fpext(_read(b, at, _vector(_f16)), _vector(_f32))
)
load_bf16: Callable[[int], Floats] = _instruction(
    F32,
    (ADDRESS,),
    lambda b, at: _bf16(b, _read(b, at, _vector(_i16)), _vector(_f32), _vector(_i32), _all(_i32, 16)),
)
load_i8: Callable[[int], Shorts] = _instruction(
    I16, (ADDRESS,), lambda b, at: b.sext(_read(b, at, _vector(_i8)), _vector(_i16))
)


def _low_nibbles(b: ir.IRBuilder, at: ir.Value) -> ir.Value:
    return b.zext(b.and_(_read(b, at, _vector(_i8)), _all(_i8, 15)), _vector(_i16))


def _high_nibbles(b: ir.IRBuilder, at: ir.Value) -> ir.Value:
    return b.zext(b.lshr(_read(b, at, _vector(_i8)), _all(_i8, 4)), _vector(_i16))


low_nibbles: Callable[[int], Shorts] = _instruction(I16, (ADDRESS,), _low_nibbles)
high_nibbles: Callable[[int], Shorts] = _instruction(I16, (ADDRESS,), _high_nibbles)
low_signed: Callable[[int], Shorts] = _instruction(
    I16, (ADDRESS,), lambda b, at: b.sub(_low_nibbles(b, at), _all(_i16, 8))
)
high_signed: Callable[[int], Shorts] = _instruction(
    I16, (ADDRESS,), lambda b, at: b.sub(_high_nibbles(b, at), _all(_i16, 8))
)
"""The 4-bit codes of sixteen bytes; signed, they are -8 to 7."""
store_f32: Callable[[int, Floats], None] = _instruction(types.void, (ADDRESS, F32), _write)
store_i32: Callable[[int, Ints], None] = _instruction(types.void, (ADDRESS, I32), _write)
store_i32_8: Callable[[int, EightInts], None] = _instruction(types.void, (ADDRESS, I32_8), _write)
store_f16: Callable[[int, Floats], None] = _instruction(
    types.void, (ADDRESS, F32), lambda b, at, x: _write(b, at, b.fptrunc(x, _vector(_f16)))
)
store_i8: Callable[[int, Ints], None] = _instruction(
    types.void, (ADDRESS, I32), lambda b, at, x: _write(b, at, b.trunc(x, _vector(_i8)))
)
put_shorts_i8: Callable[[int, Shorts], None] = _instruction(
    types.void, (ADDRESS, I16), lambda b, at, x: _write(b, at, b.trunc(x, _vector(_i8)))
)


def _six_bits(b: ir.IRBuilder, low: ir.Value, low_shift: ir.Value, high: ir.Value, high_shift: ir.Value) -> ir.Value:
    def bits_at(address: ir.Value, shift: ir.Value, mask: int) -> ir.Value:
        wide = b.zext(_read(b, address, _vector(_i8)), _vector(_i16))
        return b.and_(b.lshr(wide, _splat(b, b.trunc(shift, _i16))), _all(_i16, mask))

    four, two = bits_at(low, low_shift, 15), bits_at(high, high_shift, 3)
    return b.sub(b.or_(four, b.shl(two, _all(_i16, 4))), _all(_i16, 32))


six_bits: Callable[[int, int, int, int], Shorts] = _instruction(I16, (ADDRESS, INT, ADDRESS, INT), _six_bits)
"""Codes -32 to 31: four bits of the bytes at one address, two of those at another, each after a shift."""

# arithmetic

zeros: Callable[[], Floats] = _instruction(F32, (), lambda b: _all(_f32, 0.0))
zeros_i32: Callable[[], Ints] = _instruction(I32, (), lambda b: _all(_i32, 0))
fma: Callable[[Floats, Floats, Floats], Floats] = _instruction(
    F32, (F32, F32, F32), lambda b, x, y, z: _call(b, "llvm.fma.v16f32", _vector(_f32), x, y, z)
)
"""x * y + z"""


def _fma_bf16(b: ir.IRBuilder, x_at: ir.Value, y_at: ir.Value, z: ir.Value) -> ir.Value:
    x, y = (_read(b, at, _vector(_i16, 2 * LANES)) for at in (x_at, y_at))
    for first in (1, 0):
        u, v = (
            _bf16(b, _pick(b, t, range(first, 2 * LANES, 2)), _vector(_f32), _vector(_i32), _all(_i32, 16))
            for t in (x, y)
        )
        z = _call(b, "llvm.fma.v16f32", _vector(_f32), u, v, z)
    return z


fma_bf16: Callable[[int, int, Floats], Floats] = _instruction(F32, (ADDRESS, ADDRESS, F32), _fma_bf16)
"""Thirty-two bfloat16 by thirty-two, added to sixteen: to each two neighbours' products, the second's first, as
`_mm512_dpbf16_ps` does."""
fma_by: Callable[[Floats, np.float32, Floats], Floats] = _instruction(
    F32, (F32, FLOAT, F32), lambda b, x, s, z: _call(b, "llvm.fma.v16f32", _vector(_f32), x, _splat(b, s), z)
)
"""x * s + z, s one number"""
times: Callable[[Floats, np.float32], Floats] = _instruction(F32, (F32, FLOAT), lambda b, x, s: b.fmul(x, _splat(b, s)))
plus: Callable[[Floats, np.float32], Floats] = _instruction(F32, (F32, FLOAT), lambda b, x, s: b.fadd(x, _splat(b, s)))
add: Callable[[Floats, Floats], Floats] = _instruction(F32, (F32, F32), lambda b, x, y: b.fadd(x, y))
half_rounded: Callable[[Floats], Floats] = _instruction(
    F32, (F32,), lambda b, x: b.fpext(b.fptrunc(x, _vector(_f16)), _vector(_f32))
)
"""Each rounded to float16."""
widen: Callable[[Shorts], Floats] = _instruction(F32, (I16,), lambda b, x: b.sitofp(x, _vector(_f32)))


def _fours(b: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
    """Bytes x, unsigned, by bytes y, signed, four neighbours' products added: an int32 for each four.

    Two neighbours' products must fit 16 bits.
    """
    n = x.type.count
    if n == 64 and not FEATURES.get("avx512bw", False):
        halves = [_fours(b, *(_pick(b, v, range(at, at + 32)) for v in (x, y))) for at in (0, 32)]
        return _pick(b, halves[0], range(16), halves[1])
    shorts, ints = _vector(_i16, n // 2), _vector(_i32, n // 4)
    if FEATURES.get("avx2", False):
        by_two, by_four = ("pmaddubs.w.512", "pmaddw.d.512") if n == 64 else ("pmadd.ub.sw", "pmadd.wd")
        family = "llvm.x86.avx512." if n == 64 else "llvm.x86.avx2."
        return _call(b, family + by_four, ints, _call(b, family + by_two, shorts, x, y), _all(_i16, 1, n // 2))
    wide = b.mul(b.zext(x, _vector(_i32, n)), b.sext(y, _vector(_i32, n)))
    first, second, third, fourth = (_pick(b, wide, range(i, n, 4)) for i in range(4))
    return b.add(b.add(first, second), b.add(third, fourth))


def _signed_fours(b: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
    """The same of signed x, by moving its signs to y, as `mul_sum_i8_pairs` does."""
    none = _all(_i8, 0, x.type.count)
    below = b.icmp_signed("<", x, none)
    return _fours(b, b.select(below, b.sub(none, x), x), b.select(below, b.sub(none, y), y))


def _nibbles(b: ir.IRBuilder, at: ir.Value) -> ir.Value:
    """The 4-bit codes of sixteen bytes, lower ones first."""
    packed = _read(b, at, _vector(_i8))
    low, high = b.and_(packed, _all(_i8, 15)), b.lshr(packed, _all(_i8, 4))
    return _pick(b, low, range(32), high)


def code_products(kind: int) -> Callable[[int, int], EightInts]:
    """Thirty-two codes of `kind` at one address by int8 at another, the products of four neighbours added."""

    def build(b: ir.IRBuilder, at: ir.Value, y_at: ir.Value) -> ir.Value:
        y = _read(b, y_at, _vector(_i8, 32))
        if kind == UNSIGNED_NIBBLES:
            return _fours(b, _nibbles(b, at), y)
        x = b.sub(_nibbles(b, at), _all(_i8, 8, 32)) if kind == SIGNED_NIBBLES else _read(b, at, _vector(_i8, 32))
        return _signed_fours(b, x, y)

    return cast("Callable[[int, int], EightInts]", _instruction(I32_8, (ADDRESS, ADDRESS), build))


def pair_products_of(kind: int) -> Callable[[int, int], Ints]:
    """The same of two rows of codes, a byte each, 32 of one before 32 of the other: eight sums of each."""

    def build(b: ir.IRBuilder, at: ir.Value, y_at: ir.Value) -> ir.Value:
        y = _pick(b, _read(b, y_at, _vector(_i8, 32)), [*range(32), *range(32)])
        fours = _fours if kind == UNSIGNED_NIBBLES else _signed_fours
        return fours(b, _read(b, at, _vector(_i8, 64)), y)

    return cast("Callable[[int, int], Ints]", _instruction(I32, (ADDRESS, ADDRESS), build))


nibble_products, signed_nibble_products, byte_products = (
    code_products(kind) for kind in (UNSIGNED_NIBBLES, SIGNED_NIBBLES, BYTES)
)
pair_products, signed_pair_products = pair_products_of(UNSIGNED_NIBBLES), pair_products_of(BYTES)
zeros_8: Callable[[], EightFloats] = _instruction(F32_8, (), lambda b: _all(_f32, 0.0, 8))
fma_8: Callable[[EightInts, np.float32, EightFloats], EightFloats] = _instruction(
    F32_8,
    (I32_8, FLOAT, F32_8),
    lambda b, x, s, z: _call(b, "llvm.fma.v8f32", _vector(_f32, 8), b.sitofp(x, _vector(_f32, 8)), _splat(b, s, 8), z),
)
"""x * s + z, s one number"""


def _madd(b: ir.IRBuilder, x: ir.Value, y: ir.Value, z: ir.Value) -> ir.Value:
    return b.add(b.mul(b.sext(x, _vector(_i32)), b.sext(y, _vector(_i32))), z)


madd: Callable[[Shorts, Shorts, Ints], Ints] = _instruction(I32, (I16, I16, I32), _madd)
"""x * y + z in 32 bits"""
madd_by: Callable[[Ints, int, Ints], Ints] = _instruction(
    I32, (I32, INT, I32), lambda b, x, s, z: b.add(b.mul(x, _splat(b, b.trunc(s, _i32))), z)
)
to_f32: Callable[[Ints], Floats] = _instruction(F32, (I32,), lambda b, x: b.sitofp(x, _vector(_f32)))
rounded: Callable[[Floats], Ints] = _instruction(
    I32, (F32,), lambda b, x: b.fptosi(_call(b, "llvm.rint.v16f32", _vector(_f32), x), _vector(_i32))
)
"""The nearest whole numbers, halves to even. For what fits an int32."""


def _exp(b: ir.IRBuilder, x: ir.Value) -> ir.Value:
    def fma3(x: ir.Value, y: ir.Value, z: ir.Value) -> ir.Value:
        return _call(b, "llvm.fma.v16f32", _vector(_f32), x, y, z)

    def power(n: ir.Value) -> ir.Value:
        return b.bitcast(b.shl(b.add(n, _all(_i32, 127)), _all(_i32, 23)), _vector(_f32))

    p7, p5, p3, p2, p1 = (_all(_f32, term) for term in EXP_TERMS)
    n = b.fsub(fma3(x, _all(_f32, LOG2_E), _all(_f32, ROUNDER)), _all(_f32, ROUNDER))
    r = fma3(n, _all(_f32, -LN2_LOW), fma3(n, _all(_f32, -LN2_HIGH), x))
    square = b.fmul(r, r)
    p = fma3(fma3(fma3(p7, r, p5), square, fma3(p3, r, p2)), square, fma3(p1, r, _all(_f32, 1.0)))
    vanishes = b.fcmp_ordered("<", n, _all(_f32, -EXP_ENDS))
    explodes = b.fcmp_ordered(">", n, _all(_f32, EXP_ENDS))
    within = b.select(b.fcmp_unordered("uno", n, n), _all(_f32, 0.0), n)
    whole = b.fptosi(b.select(b.or_(vanishes, explodes), _all(_f32, 0.0), within), _vector(_i32))
    # two powers of two, each a float32 of its own: only the last product may have to be rounded
    most = b.ashr(whole, _all(_i32, 1))
    made = b.fmul(b.fmul(p, power(most)), power(b.sub(whole, most)))
    return b.select(vanishes, _all(_f32, 0.0), b.select(explodes, _all(_f32, float("inf")), made))


exp: Callable[[Floats], Floats] = _instruction(F32, (F32,), _exp)
"""e to the power of each. `ggml_v_expf` for AVX-512, ggml/src/ggml-cpu/vec.h."""


def _swiglu(b: ir.IRBuilder, x: ir.Value, gate: ir.Value) -> ir.Value:
    e = _exp(b, b.fsub(_all(_f32, 0.0), x))
    return b.fmul(b.fdiv(x, b.fadd(_all(_f32, 1.0), e)), gate)


swiglu: Callable[[Floats, Floats], Floats] = _instruction(F32, (F32, F32), _swiglu)
"""x / (1 + e**-x) times the other. `ggml_v_silu`, ggml/src/ggml-cpu/vec.h."""

# sixteen to one


def _total(b: ir.IRBuilder, x: ir.Value) -> ir.Value:
    n = x.type.count
    while n > 1:
        n //= 2
        x = b.fadd(_pick(b, x, range(n)), _pick(b, x, range(n, 2 * n)))
    return b.extract_element(x, _i32(0))


total: Callable[[Floats], np.float32] = _instruction(FLOAT, (F32,), _total)
"""The upper half added to the lower until one is left, as `_mm512_reduce_add_ps` does."""
total_8: Callable[[EightFloats], np.float32] = _instruction(FLOAT, (F32_8,), _total)
"""`hsum_float_8`, ggml/src/ggml-cpu/arch/x86/quants.c."""


def _add_pair(b: ir.IRBuilder, at: ir.Value, above: ir.Value, x: ir.Value) -> None:
    for address, lanes in ((at, range(8)), (b.add(at, above), range(8, 16))):
        _write(b, address, b.fadd(_total(b, _pick(b, x, lanes)), _read(b, address, _f32)))


add_pair: Callable[[int, int, Floats], None] = _instruction(types.void, (ADDRESS, INT, F32), _add_pair)
"""The sum of the first eight to the float at an address, that of the others to the one so many bytes above."""
add_8: Callable[[EightFloats, EightFloats], EightFloats] = _instruction(
    F32_8, (F32_8, F32_8), lambda b, x, y: b.fadd(x, y)
)
total_i32_8: Callable[[EightInts], int] = _instruction(
    INT, (I32_8,), lambda b, x: b.sext(_call(b, "llvm.vector.reduce.add.v8i32", _i32, x), ir.IntType(64))
)
total_i32: Callable[[Ints], int] = _instruction(
    INT, (I32,), lambda b, x: b.sext(_call(b, "llvm.vector.reduce.add.v16i32", _i32, x), ir.IntType(64))
)


def _largest(b: ir.IRBuilder, x: ir.Value) -> ir.Value:
    return _call(b, "llvm.vector.reduce.fmax.v16f32", _f32, x, fastmath=("nnan",))


largest: Callable[[Floats], np.float32] = _instruction(FLOAT, (F32,), _largest)
largest_magnitude: Callable[[Floats], np.float32] = _instruction(
    FLOAT, (F32,), lambda b, x: _largest(b, _call(b, "llvm.fabs.v16f32", _vector(_f32), x))
)
