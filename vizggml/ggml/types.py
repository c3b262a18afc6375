"""The type table: what ggml's `type_traits` says of every tensor type, and the names of the ops."""

from __future__ import annotations

from dataclasses import dataclass

from vizggml.errors import VizggmlError

REFERENCE_COMMIT = "0c1e57098bba43ac29e6e3b677cdceebdd22334f"
REFERENCE_VERSION = "ggml 0.25.3"

GGML_MAX_DIMS = 4
GGML_MAX_SRC = 10
GGML_MAX_NAME = 64
GGML_MAX_OP_PARAMS = 64
GGML_MEM_ALIGN = 16
TENSOR_ALIGNMENT = 32
CACHE_LINE_SIZE = 64

FLAG_INPUT = 1
FLAG_OUTPUT = 2
FLAG_PARAM = 4
FLAG_LOSS = 8
FLAG_COMPUTE = 16


@dataclass(frozen=True, slots=True, eq=False)
class Type:
    """One row of ggml's `type_traits` (ggml/src/ggml.c) and of the CPU's (ggml/src/ggml-cpu/ggml-cpu.c).

    `blck_size` counts elements in a block, `type_size` its bytes. `vec_dot_type` is the type in which a matrix product
    with rows of this type takes the other side's rows ("" where ggml has no dot product). `numpy` is the NumPy name of
    one element, "" for blocks; BF16 is carried as uint16.
    """

    name: str
    id: int
    blck_size: int
    type_size: int
    vec_dot_type: str = ""
    numpy: str = ""

    @property
    def is_quantized(self) -> bool:
        """Whether elements are kept in blocks of bytes, not one by one as numbers.

        `ggml_is_quantized`, ggml/src/ggml.c.
        """
        return self.numpy == ""

    def row_size(self, ne0: int) -> int:
        """Bytes of `ne0` elements. `ggml_row_size`, ggml/src/ggml.c. VizggmlError if `ne0` is not whole blocks."""
        if ne0 % self.blck_size:
            raise VizggmlError(f"type {self.name}: a row of {ne0} elements is not a multiple of {self.blck_size}")
        return self.type_size * ne0 // self.blck_size

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return self.name


F32 = Type("F32", 0, 1, 4, "F32", "float32")
F16 = Type("F16", 1, 1, 2, "F16", "float16")
Q4_0 = Type("Q4_0", 2, 32, 18, "Q8_0")
Q4_1 = Type("Q4_1", 3, 32, 20, "Q8_1")
Q5_0 = Type("Q5_0", 6, 32, 22, "Q8_0")
Q5_1 = Type("Q5_1", 7, 32, 24, "Q8_1")
Q8_0 = Type("Q8_0", 8, 32, 34, "Q8_0")
Q8_1 = Type("Q8_1", 9, 32, 36, "Q8_1")
Q2_K = Type("Q2_K", 10, 256, 84, "Q8_K")
Q3_K = Type("Q3_K", 11, 256, 110, "Q8_K")
Q4_K = Type("Q4_K", 12, 256, 144, "Q8_K")
Q5_K = Type("Q5_K", 13, 256, 176, "Q8_K")
Q6_K = Type("Q6_K", 14, 256, 210, "Q8_K")
Q8_K = Type("Q8_K", 15, 256, 292)
IQ2_XXS = Type("IQ2_XXS", 16, 256, 66, "Q8_K")
IQ2_XS = Type("IQ2_XS", 17, 256, 74, "Q8_K")
IQ3_XXS = Type("IQ3_XXS", 18, 256, 98, "Q8_K")
IQ1_S = Type("IQ1_S", 19, 256, 50, "Q8_K")
IQ4_NL = Type("IQ4_NL", 20, 32, 18, "Q8_0")
IQ3_S = Type("IQ3_S", 21, 256, 110, "Q8_K")
IQ2_S = Type("IQ2_S", 22, 256, 82, "Q8_K")
IQ4_XS = Type("IQ4_XS", 23, 256, 136, "Q8_K")
I8 = Type("I8", 24, 1, 1, "", "int8")
I16 = Type("I16", 25, 1, 2, "", "int16")
I32 = Type("I32", 26, 1, 4, "", "int32")
I64 = Type("I64", 27, 1, 8, "", "int64")
F64 = Type("F64", 28, 1, 8, "", "float64")
IQ1_M = Type("IQ1_M", 29, 256, 56, "Q8_K")
BF16 = Type("BF16", 30, 1, 2, "BF16", "uint16")
TQ1_0 = Type("TQ1_0", 34, 256, 54, "Q8_K")
TQ2_0 = Type("TQ2_0", 35, 256, 66, "Q8_K")
MXFP4 = Type("MXFP4", 39, 32, 17, "Q8_0")
NVFP4 = Type("NVFP4", 40, 64, 36, "Q8_0")
Q1_0 = Type("Q1_0", 41, 128, 18, "Q8_0")
Q2_0 = Type("Q2_0", 42, 64, 18, "Q8_0")

TYPES: dict[str, Type] = {t.name: t for t in list(globals().values()) if isinstance(t, Type)}
"""Every type by its name in ggml: `TYPES["Q4_0"]`. `type_traits`, ggml/src/ggml.c."""
TYPES_BY_ID: dict[int, Type] = {t.id: t for t in TYPES.values()}


def type_named(name: str) -> Type:
    """The type of that name, in any case. VizggmlError if ggml has none."""
    found = TYPES.get(name.upper())
    if found is None:
        raise VizggmlError(f"type {name!r} is not one of ggml's: {', '.join(TYPES)}")
    return found


OPS: tuple[str, ...] = tuple(
    """
    NONE DUP ADD ADD_ID ADD1 ACC SUB MUL DIV SQR SQRT LOG SIN COS SUM SUM_ROWS CUMSUM MEAN ARGMAX COUNT_EQUAL REPEAT
    REPEAT_BACK CONCAT SILU_BACK NORM RMS_NORM RMS_NORM_BACK GROUP_NORM L2_NORM MUL_MAT MUL_MAT_ID OUT_PROD SCALE SET
    CPY CONT RESHAPE VIEW PERMUTE TRANSPOSE GET_ROWS GET_ROWS_BACK SET_ROWS DIAG DIAG_MASK_INF DIAG_MASK_ZERO SOFT_MAX
    SOFT_MAX_BACK ROPE ROPE_BACK CLAMP CONV_TRANSPOSE_1D IM2COL IM2COL_BACK IM2COL_3D COL2IM_1D CONV_2D CONV_3D
    CONV_2D_DW CONV_TRANSPOSE_2D POOL_1D POOL_2D POOL_2D_BACK UPSCALE PAD PAD_REFLECT_1D ROLL ARANGE
    TIMESTEP_EMBEDDING ARGSORT TOP_K LEAKY_RELU TRI FILL FLASH_ATTN_EXT FLASH_ATTN_BACK SSM_CONV SSM_SCAN WIN_PART
    WIN_UNPART GET_REL_POS ADD_REL_POS RWKV_WKV6 GATED_LINEAR_ATTN RWKV_WKV7 SOLVE_TRI GATED_DELTA_NET
    LIGHTNING_INDEXER DSV4_HC_COMB DSV4_HC_PRE DSV4_HC_POST UNARY MAP_CUSTOM1 MAP_CUSTOM2 MAP_CUSTOM3 CUSTOM
    CROSS_ENTROPY_LOSS CROSS_ENTROPY_LOSS_BACK OPT_STEP_ADAMW OPT_STEP_SGD GLU
    """.split()
)
"""`GGML_OP_NAME`, ggml/src/ggml.c, in the order of `enum ggml_op`."""

VIEW_OPS = frozenset({"RESHAPE", "VIEW", "PERMUTE", "TRANSPOSE"})
"""The ops that only describe bytes anew: with NONE, those that compute nothing."""

UNARY_OPS: tuple[str, ...] = tuple(
    """
    ABS SGN NEG STEP TANH ELU RELU SIGMOID GELU GELU_QUICK SILU HARDSWISH HARDSIGMOID EXP EXPM1 SOFTPLUS GELU_ERF
    XIELU FLOOR CEIL ROUND TRUNC
    """.split()
)
"""`GGML_UNARY_OP_NAME`, ggml/src/ggml.c; `op_params[0]` of UNARY is an index into it."""

GLU_OPS: tuple[str, ...] = ("REGLU", "GEGLU", "SWIGLU", "SWIGLU_OAI", "GEGLU_ERF", "GEGLU_QUICK", "SWIGLU_CLAMP")
"""`GGML_GLU_OP_NAME`, ggml/src/ggml.c; `op_params[0]` of GLU is an index into it."""


def pad(x: int, n: int) -> int:
    """`x` rounded up to a multiple of `n`. `GGML_PAD`, ggml/include/ggml.h."""
    return (x + n - 1) // n * n
