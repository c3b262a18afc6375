"""Which functions serve which type."""

from __future__ import annotations

from vizggml.ggml.quants import floats, legacy, q5
from vizggml.ggml.quants.k import q2, q3, q4, q6, q8
from vizggml.ggml.quants.k.shared import QK_K
from vizggml.ggml.quants.parts import Layout
from vizggml.ggml.quants.pieces import Encoder, Weighted, by_blocks, by_blocks_weighted, by_rows_weighted

LAYOUTS: dict[str, Layout] = {
    **legacy.LAYOUTS,
    **q5.LAYOUTS,
    "Q2_K": q2.LAYOUT,
    "Q3_K": q3.LAYOUT,
    "Q4_K": q4.LAYOUT_Q4_K,
    "Q5_K": q4.LAYOUT_Q5_K,
    "Q6_K": q6.LAYOUT,
    "Q8_K": q8.LAYOUT,
}
"""The block of every quantized type: `block_*`, ggml/src/ggml-common.h."""

ENCODERS: dict[str, Encoder] = {
    "F32": floats.encode_f32,
    "F16": floats.encode_f16,
    "BF16": floats.encode_bf16,
    **legacy.ENCODERS,
    **q5.ENCODERS,
    "Q2_K": by_blocks(q2.quantize_q2_k, QK_K),
    "Q3_K": by_blocks(q3.quantize_q3_k, QK_K),
    "Q4_K": by_blocks(q4.quantize_q4_k, QK_K),
    "Q5_K": by_blocks(q4.quantize_q5_k, QK_K),
    "Q6_K": by_blocks(q6.quantize_q6_k, QK_K),
    "Q8_K": q8.quantize_q8_k,
}
"""Without importance, `ggml_quantize_chunk`, ggml/src/ggml.c: float32 (..., ne0) to bytes (..., blocks, type_size)."""

WEIGHTED: dict[str, Weighted] = {
    **{name: by_rows_weighted(encode, legacy.QK) for name, encode in {**legacy.WEIGHTED, **q5.WEIGHTED}.items()},
    "Q2_K": by_blocks_weighted(q2.weighted_q2_k, QK_K),
    "Q3_K": by_blocks_weighted(q3.weighted_q3_k, QK_K),
    "Q4_K": by_blocks_weighted(q4.weighted_q4_k, QK_K),
    "Q5_K": by_blocks_weighted(q4.weighted_q5_k, QK_K),
    "Q6_K": by_blocks_weighted(q6.quantize_q6_k, QK_K),
}
"""With importance. The types that are not here take no notice of it, as in ggml."""

FROM_FLOAT: dict[str, Encoder] = {
    **ENCODERS,
    "Q8_0": legacy.from_float_q8_0,
    "Q8_1": legacy.from_float_q8_1,
}
"""`from_float` of the CPU's type_traits_cpu, ggml/src/ggml-cpu/ggml-cpu.c, with AVX2."""
