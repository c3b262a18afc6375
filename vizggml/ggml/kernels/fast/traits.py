"""What each type brings: the addresses of its dot product, encoder and decoder, compiled when first asked for.

`type_traits_cpu`, ggml/src/ggml-cpu/ggml-cpu.c. Kernels get these addresses as arguments, so that a kernel is compiled
once for all types.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from vizggml.ggml.kernels.fast import decode, dots, encode
from vizggml.ggml.kernels.fast.lanes import FROM_FLOAT, TO_FLOAT, VEC_DOT, address_of

VEC_DOTS: dict[str, Callable[..., object]] = {
    "F32": dots.dot_f32,
    "F16": dots.dot_f16,
    "BF16": dots.dot_bf16,
    "Q4_0": dots.dot_q4_0,
    "Q4_1": dots.dot_q4_1,
    "Q5_0": dots.dot_q5_0,
    "Q5_1": dots.dot_q5_1,
    "Q8_0": dots.dot_q8_0,
    "IQ4_NL": dots.dot_iq4_nl,
    "Q6_K": dots.dot_q6_k,
}

FROM_FLOATS: dict[str, Callable[..., object]] = {
    "F32": encode.from_float_f32,
    "F16": encode.from_float_f16,
    "BF16": encode.from_float_bf16,
    "Q8_0": encode.from_float_q8_0,
    "Q8_1": encode.from_float_q8_1,
    "Q8_K": encode.from_float_q8_k,
}

TO_FLOATS: dict[str, Callable[..., object]] = {
    "F32": decode.to_float_f32,
    "F16": decode.to_float_f16,
    "BF16": decode.to_float_bf16,
    "Q4_0": decode.to_float_q4_0,
    "Q4_1": decode.to_float_q4_1,
    "Q5_0": decode.to_float_q5_0,
    "Q5_1": decode.to_float_q5_1,
    "Q8_0": decode.to_float_q8_0,
    "IQ4_NL": decode.to_float_iq4_nl,
    "Q8_1": decode.to_float_q8_1,
    "Q6_K": decode.to_float_q6_k,
    "Q8_K": decode.to_float_q8_k,
}


@cache
def vec_dot(type: str) -> int:
    return address_of(VEC_DOTS[type], VEC_DOT)


@cache
def from_float(type: str) -> int:
    return address_of(FROM_FLOATS[type], FROM_FLOAT)


@cache
def to_float(type: str) -> int:
    return address_of(TO_FLOATS[type], TO_FLOAT)
