"""Which functions serve which type."""

from __future__ import annotations

from vizggml.ggml.quants import few, floats, fp4, legacy, q5, ternary
from vizggml.ggml.quants.iq import iq1, iq2, iq3, iq4
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
    **iq1.LAYOUTS,
    **iq2.LAYOUTS,
    **iq3.LAYOUTS,
    **iq4.LAYOUTS,
    **ternary.LAYOUTS,
    **fp4.LAYOUTS,
    **few.LAYOUTS,
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
    "IQ1_M": by_blocks(iq1.quantize_iq1_m, QK_K),
    "IQ2_S": by_blocks(iq2.quantize_iq2_s, QK_K),
    "IQ3_XXS": by_blocks(iq3.quantize_iq3_xxs, QK_K),
    "IQ3_S": by_blocks(iq3.quantize_iq3_s, QK_K),
    "IQ4_NL": by_blocks(iq4.quantize_iq4_nl, legacy.QK),
    "IQ4_XS": by_blocks(iq4.quantize_iq4_xs, QK_K),
    "TQ1_0": by_blocks(ternary.quantize_tq1_0, QK_K),
    "TQ2_0": by_blocks(ternary.quantize_tq2_0, QK_K),
    "MXFP4": by_blocks(fp4.quantize_mxfp4, fp4.QK_MXFP4),
    "NVFP4": by_blocks(fp4.quantize_nvfp4, fp4.QK_NVFP4),
    "Q1_0": by_blocks(few.quantize_q1_0, few.QK1_0),
    "Q2_0": by_blocks(few.quantize_q2_0, few.QK2_0),
}
"""Without importance, `ggml_quantize_chunk`, ggml/src/ggml.c: float32 (..., ne0) to bytes (..., blocks, type_size)."""

WEIGHTED: dict[str, Weighted] = {
    **{name: by_rows_weighted(encode, legacy.QK) for name, encode in {**legacy.WEIGHTED, **q5.WEIGHTED}.items()},
    "Q2_K": by_blocks_weighted(q2.weighted_q2_k, QK_K),
    "Q3_K": by_blocks_weighted(q3.weighted_q3_k, QK_K),
    "Q4_K": by_blocks_weighted(q4.weighted_q4_k, QK_K),
    "Q5_K": by_blocks_weighted(q4.weighted_q5_k, QK_K),
    "Q6_K": by_blocks_weighted(q6.quantize_q6_k, QK_K),
    "IQ1_S": by_blocks_weighted(iq1.weighted_iq1_s, QK_K),
    "IQ1_M": by_blocks_weighted(iq1.quantize_iq1_m, QK_K),
    "IQ2_XXS": by_blocks_weighted(iq2.weighted_iq2_xxs, QK_K),
    "IQ2_XS": by_blocks_weighted(iq2.weighted_iq2_xs, QK_K),
    "IQ2_S": by_blocks_weighted(iq2.quantize_iq2_s, QK_K),
    "IQ3_XXS": by_blocks_weighted(iq3.quantize_iq3_xxs, QK_K),
    "IQ3_S": by_blocks_weighted(iq3.quantize_iq3_s, QK_K),
    "IQ4_NL": by_blocks_weighted(iq4.quantize_iq4_nl, legacy.QK),
    "IQ4_XS": by_blocks_weighted(iq4.quantize_iq4_xs, QK_K),
}
"""With importance. The types that are not here take no notice of it, as in ggml."""

NOT_WHILE_COMPUTING = ("IQ1_M", "IQ2_S", "IQ3_XXS", "IQ3_S")
"""Types that can be encoded without importance, but not by the CPU backend while it computes."""

FROM_FLOAT: dict[str, Encoder] = {
    **{name: encode for name, encode in ENCODERS.items() if name not in NOT_WHILE_COMPUTING},
    "Q8_0": legacy.from_float_q8_0,
    "Q8_1": legacy.from_float_q8_1,
    "IQ4_NL": by_blocks(iq4.from_float_iq4_nl, legacy.QK),
}
"""`from_float` of the CPU's type_traits_cpu, ggml/src/ggml-cpu/ggml-cpu.c, with AVX2."""
