"""The builders that transformers are made of: matrix products, softmax, rotary positions, attention."""

from __future__ import annotations

from vizggml.errors import VizggmlError
from vizggml.ggml.context import Context
from vizggml.ggml.op_record import record_op, require, result_tensor, set_op_param
from vizggml.ggml.tensor import Tensor, f32_bits
from vizggml.ggml.types import F16, F32, I32

PREC_UNDEFINED = 0
"""The precision that a kernel takes by itself. `enum ggml_prec`, ggml/include/ggml.h."""
PREC_F32 = 10
"""Sums in F32 where a kernel could take less. `enum ggml_prec`, ggml/include/ggml.h."""

HINT_SRC0_IS_HADAMARD = 1
"""`enum ggml_op_hint`, ggml/include/ggml.h: the product may be taken by adding and subtracting alone."""

ROPE_TYPE_NORMAL = 0
"""Pairs are neighbours: elements 2 i and 2 i + 1. `GGML_ROPE_TYPE_NORMAL`, ggml/include/ggml.h."""
ROPE_TYPE_NEOX = 2
"""Pairs are half a head apart: elements i and i + n_dims / 2. `GGML_ROPE_TYPE_NEOX`, ggml/include/ggml.h."""
ROPE_TYPE_MROPE = 8
"""Four positions a token: `pos` has 4 times a.ne[2]. `GGML_ROPE_TYPE_MROPE`, ggml/include/ggml.h."""


def can_mul_mat(a: Tensor, b: Tensor) -> bool:
    """Whether rows of `a` and `b` have one length, and `b` whole repetitions of `a`'s higher dimensions.

    `ggml_can_mul_mat`, ggml/src/ggml.c.
    """
    return a.ne[0] == b.ne[0] and 0 not in a.ne[2:] and b.ne[2] % a.ne[2] == 0 and b.ne[3] % a.ne[3] == 0


def mul_mat(ctx: Context, a: Tensor, b: Tensor) -> Tensor:
    """Every row of `a` times every row of `b`: shape (a.ne1, b.ne1, b.ne2, b.ne3), in NumPy `b @ a.T`.

    `ggml_mul_mat`, ggml/src/ggml.c. The higher dimensions of `a` are broadcast to those of `b`.
    """
    require(can_mul_mat(a, b), "mul_mat", "ne[0] must agree and b's ne[2], ne[3] be multiples of a's", a, b)
    require(not a.is_transposed, "mul_mat", "a must not be transposed", a)
    return record_op(ctx.new_tensor(F32, (a.ne[1], b.ne[1], b.ne[2], b.ne[3])), "MUL_MAT", (), a, b)


def mul_mat_set_prec(a: Tensor, prec: int) -> Tensor:
    """Ask for a precision, such as `PREC_F32`, of a product that is recorded; the product.

    `ggml_mul_mat_set_prec`, ggml/src/ggml.c.
    """
    require(a.op == "MUL_MAT", "mul_mat_set_prec", "a must be the result of mul_mat", a)
    return set_op_param(a, 0, prec)


def mul_mat_set_hint(a: Tensor, hint: int) -> Tensor:
    """Say something of a product that is recorded, such as `HINT_SRC0_IS_HADAMARD`; the product.

    `ggml_mul_mat_set_hint`, ggml/src/ggml.c.
    """
    require(a.op == "MUL_MAT", "mul_mat_set_hint", "a must be the result of mul_mat", a)
    return set_op_param(a, 1, hint)


def mul_mat_id(ctx: Context, as_: Tensor, b: Tensor, ids: Tensor) -> Tensor:
    """Each row of `b` times the matrices of `as_` that `ids` (I32) chose for it. `ggml_mul_mat_id`, ggml/src/ggml.c."""
    ok = not as_.is_transposed and ids.type is I32 and as_.ne[3] == b.ne[3] == ids.ne[2] == ids.ne[3] == 1
    ok = ok and ids.ne[1] == b.ne[2] and as_.ne[0] == b.ne[0] and b.ne[1] != 0 and ids.ne[0] % b.ne[1] == 0
    require(ok, "mul_mat_id", "needs as [cols, rows, n], b [cols, used, tokens], I32 ids [used, tokens]", as_, b, ids)
    return record_op(ctx.new_tensor(F32, (as_.ne[1], ids.ne[0], b.ne[2], 1)), "MUL_MAT_ID", (), as_, b, ids)


def out_prod(ctx: Context, a: Tensor, b: Tensor) -> Tensor:
    """The sum over dimension 1 of the products of `a`'s and `b`'s rows: shape (a.ne0, b.ne0, b.ne2, b.ne3).

    `ggml_out_prod`, ggml/src/ggml.c.
    """
    ok = a.ne[1] == b.ne[1] and 0 not in a.ne[2:] and b.ne[2] % a.ne[2] == 0 and b.ne[3] % a.ne[3] == 0
    require(ok and not a.is_transposed, "out_prod", "ne[1] must agree, a not be transposed", a, b)
    return record_op(ctx.new_tensor(F32, (a.ne[0], b.ne[0], b.ne[2], b.ne[3])), "OUT_PROD", (), a, b)


def soft_max_ext(
    ctx: Context,
    a: Tensor,
    mask: Tensor | None = None,
    scale: float = 1.0,
    max_bias: float = 0.0,
    in_place: bool = False,
) -> Tensor:
    """The softmax of each row of `a * scale + mask`. `ggml_soft_max_ext`, ggml/src/ggml.c."""
    require(a.is_contiguous(), "soft_max", "a must be contiguous", a)
    if mask is not None:
        require(
            mask.type in (F16, F32) and mask.is_contiguous(), "soft_max", "mask must be contiguous F16 or F32", mask
        )
        ok = mask.ne[0] == a.ne[0] and mask.ne[1] >= a.ne[1] and 0 not in mask.ne[2:]
        ok = ok and a.ne[2] % mask.ne[2] == 0 and a.ne[3] % mask.ne[3] == 0
        require(ok, "soft_max", "mask must cover a's rows", a, mask)
    elif max_bias > 0:
        raise VizggmlError(f"soft_max: max_bias {max_bias} needs a mask")
    return record_op(result_tensor(ctx, a, in_place), "SOFT_MAX", (f32_bits(scale), f32_bits(max_bias)), a, mask)


def soft_max(ctx: Context, a: Tensor) -> Tensor:
    """The softmax of each row of `a`. `ggml_soft_max`, ggml/src/ggml.c."""
    return soft_max_ext(ctx, a)


def soft_max_inplace(ctx: Context, a: Tensor) -> Tensor:
    """The same, written over `a`. `ggml_soft_max_inplace`, ggml/src/ggml.c."""
    return soft_max_ext(ctx, a, in_place=True)


def soft_max_add_sinks(a: Tensor, sinks: Tensor | None) -> Tensor:
    """Give each head one more logit, `sinks` (F32), that takes a share and has no value; the softmax.

    `ggml_soft_max_add_sinks`, ggml/src/ggml.c.
    """
    require(a.op == "SOFT_MAX", "soft_max_add_sinks", "a must be the result of soft_max", a)
    x, mask = a.src[0], a.src[1] if len(a.src) > 1 else None
    if sinks is not None:
        ok = x is not None and x.ne[2] == sinks.ne[0] and sinks.type is F32
        require(ok, "soft_max_add_sinks", "sinks must be F32, one for each head", a, sinks)
    return record_op(a, a.op, a.op_params, x, mask, sinks)


def rope_ext(
    ctx: Context,
    a: Tensor,
    pos: Tensor,
    freq_factors: Tensor | None,
    n_dims: int,
    mode: int,
    n_ctx_orig: int,
    freq_base: float,
    freq_scale: float,
    ext_factor: float,
    attn_factor: float,
    beta_fast: float,
    beta_slow: float,
    in_place: bool = False,
) -> Tensor:
    """Turn pairs of elements by an angle that grows with `pos` (I32, one for each of a.ne[2]).

    `ggml_rope_ext`, ggml/src/ggml.c.
    """
    require(mode & 1 == 0, "rope", f"mode {mode} must be even", a)
    ok = pos.ne[1:] == (1, 1, 1) and pos.type is I32
    n_pos = a.ne[2] * 4 if mode & ROPE_TYPE_MROPE else a.ne[2]
    require(ok and pos.ne[0] == n_pos, "rope", f"pos must be a vector of {n_pos} I32", a, pos)
    if freq_factors is not None:
        ok = freq_factors.type is F32 and freq_factors.ne[0] >= n_dims // 2
        require(ok, "rope", f"freq_factors must be F32, at least {n_dims // 2}", freq_factors)
    floats = (freq_base, freq_scale, ext_factor, attn_factor, beta_fast, beta_slow)
    params = (0, n_dims, mode, 0, n_ctx_orig, *map(f32_bits, floats), 0, 0, 0, 0, 0)
    return record_op(result_tensor(ctx, a, in_place), "ROPE", params, a, pos, freq_factors)


def rope(ctx: Context, a: Tensor, pos: Tensor, n_dims: int, mode: int) -> Tensor:
    """Rotary positions with base 10,000 and no scaling; `mode` is a `ROPE_TYPE_*`. `ggml_rope`, ggml/src/ggml.c."""
    return rope_ext(ctx, a, pos, None, n_dims, mode, 0, 10000.0, 1.0, 0.0, 1.0, 0.0, 0.0)


def rope_inplace(ctx: Context, a: Tensor, pos: Tensor, n_dims: int, mode: int) -> Tensor:
    """The same, written over `a`. `ggml_rope_inplace`, ggml/src/ggml.c."""
    return rope_ext(ctx, a, pos, None, n_dims, mode, 0, 10000.0, 1.0, 0.0, 1.0, 0.0, 0.0, True)


def flash_attn_ext(
    ctx: Context,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    scale: float,
    max_bias: float,
    logit_softcap: float,
) -> Tensor:
    """softmax(q k^T * scale + mask) v without the matrix in between: shape (v.ne0, heads, tokens, q.ne3).

    `ggml_flash_attn_ext`, ggml/src/ggml.c. `q` is (n_embd, tokens, heads), `k` and `v` (n_embd, n_kv, heads_kv).
    """
    require(can_mul_mat(k, q), "flash_attn_ext", "q and k must agree in ne[0], q's heads be multiples of k's", q, k)
    require(q.ne[3] == k.ne[3] == v.ne[3], "flash_attn_ext", "q, k and v must agree in ne[3]", q, k, v)
    if mask is not None:
        require(mask.type is F16 and mask.is_contiguous(), "flash_attn_ext", "mask must be contiguous F16", mask)
        ok = 0 not in mask.ne[2:] and q.ne[2] % mask.ne[2] == 0 and q.ne[3] % mask.ne[3] == 0
        require(ok, "flash_attn_ext", "q's ne[2], ne[3] must be multiples of the mask's", q, mask)
    elif max_bias > 0:
        raise VizggmlError(f"flash_attn_ext: max_bias {max_bias} needs a mask")
    params = (f32_bits(scale), f32_bits(max_bias), f32_bits(logit_softcap))
    t = ctx.new_tensor(F32, (v.ne[0], q.ne[2], q.ne[1], q.ne[3]))
    return record_op(t, "FLASH_ATTN_EXT", params, q, k, v, mask)


def flash_attn_ext_set_prec(a: Tensor, prec: int) -> Tensor:
    """Ask for a precision of an attention that is recorded; the attention.

    `ggml_flash_attn_ext_set_prec`, ggml/src/ggml.c.
    """
    require(a.op == "FLASH_ATTN_EXT", "flash_attn_ext_set_prec", "a must be the result of flash_attn_ext", a)
    return set_op_param(a, 3, prec)


def flash_attn_ext_add_sinks(a: Tensor, sinks: Tensor | None) -> Tensor:
    """Give each head one more logit, `sinks` (F32), that takes a share and has no value; the attention.

    `ggml_flash_attn_ext_add_sinks`, ggml/src/ggml.c.
    """
    require(a.op == "FLASH_ATTN_EXT", "flash_attn_ext_add_sinks", "a must be the result of flash_attn_ext", a)
    q, k, v, *rest = a.src
    if sinks is not None:
        ok = q is not None and q.ne[2] == sinks.ne[0] and sinks.type is F32
        require(ok, "flash_attn_ext_add_sinks", "sinks must be F32, one for each head", a, sinks)
    return record_op(a, a.op, a.op_params, q, k, v, rest[0] if rest else None, sinks)
