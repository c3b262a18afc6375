"""What each op asks of the shapes of its sources and its result: for graphs that did not come from the builders.

The rules are those that the builders of ops.py check. An op that is not listed is not judged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from vizggml.ggml.tensor import Tensor, can_repeat

Source = Callable[[int], Tensor]


class Rule(NamedTuple):
    """An op needs its first `n_src` sources, and `holds` of the result and them; `says` is that in words."""

    n_src: int
    says: str
    holds: Callable[[Tensor, Source], bool]


def _mul_mat(t: Tensor, src: Source) -> bool:
    a, b = src(0), src(1)
    broadcast = 0 not in a.ne[2:] and b.ne[2] % a.ne[2] == 0 and b.ne[3] % a.ne[3] == 0
    return a.ne[0] == b.ne[0] and broadcast and t.ne == (a.ne[1], b.ne[1], b.ne[2], b.ne[3])


def _mul_mat_id(t: Tensor, src: Source) -> bool:
    a, b, ids = src(0), src(1), src(2)
    return a.ne[0] == b.ne[0] and ids.ne[1] == b.ne[2] and t.ne == (a.ne[1], ids.ne[0], b.ne[2], 1)


def _out_prod(t: Tensor, src: Source) -> bool:
    a, b = src(0), src(1)
    return a.ne[1] == b.ne[1] and t.ne == (a.ne[0], b.ne[0], b.ne[2], b.ne[3])


def _get_rows(t: Tensor, src: Source) -> bool:
    a, rows = src(0), src(1)
    return a.ne[2:] == rows.ne[1:3] and t.ne == (a.ne[0], rows.ne[0], rows.ne[1], rows.ne[2])


def _set_rows(t: Tensor, src: Source) -> bool:
    b, rows, a = src(0), src(1), src(2)
    return t.ne == a.ne and a.ne[0] == b.ne[0] and a.ne[2:] == b.ne[2:] and b.ne[1] == rows.ne[0]


def _glu(t: Tensor, src: Source) -> bool:
    a = src(0)
    if len(t.src) > 1 and t.src[1] is not None:
        return t.ne == a.ne == src(1).ne
    return t.ne == (a.ne[0] // 2, *a.ne[1:])


def _concat(t: Tensor, src: Source) -> bool:
    a, b, dim = src(0), src(1), t.op_param_i32(0)
    return 0 <= dim < 4 and all(
        n == (m + k if d == dim else m) and (d == dim or m == k)
        for d, (n, m, k) in enumerate(zip(t.ne, a.ne, b.ne, strict=True))
    )


def _permute(t: Tensor, src: Source) -> bool:
    axes = [t.op_param_i32(i) for i in range(4)]
    if not t.op_params:
        return sorted(t.ne) == sorted(src(0).ne)
    return sorted(axes) == [0, 1, 2, 3] and all(t.ne[axis] == src(0).ne[i] for i, axis in enumerate(axes))


def _flash_attn_ext(t: Tensor, src: Source) -> bool:
    q, k, v = src(0), src(1), src(2)
    heads = 0 not in k.ne[2:] and q.ne[2] % k.ne[2] == 0 and q.ne[3] % k.ne[3] == 0
    return q.ne[0] == k.ne[0] and heads and t.ne == (v.ne[0], q.ne[2], q.ne[1], q.ne[3])


_SAME = Rule(1, "the result has the source's shape", lambda t, src: t.ne == src(0).ne)
_BINARY = Rule(
    2,
    "the result has the first source's shape, whole repetitions of the second's",
    lambda t, src: t.ne == src(0).ne and can_repeat(src(1), src(0)),
)
_COUNT = Rule(1, "the result has as many elements as the source", lambda t, src: t.nelements == src(0).nelements)
_ROWS = Rule(1, "the result has one element for each row", lambda t, src: t.ne == (1, *src(0).ne[1:]))

RULES: dict[str, Rule] = {
    **dict.fromkeys(("ADD", "SUB", "MUL", "DIV"), _BINARY),
    **dict.fromkeys(
        """
        DUP ADD_ID ADD1 ACC SQR SQRT LOG SIN COS CUMSUM NORM RMS_NORM GROUP_NORM L2_NORM SCALE SET DIAG_MASK_INF
        DIAG_MASK_ZERO SOFT_MAX ROPE CLAMP ARGSORT LEAKY_RELU FILL UNARY
        """.split(),
        _SAME,
    ),
    **dict.fromkeys(("CPY", "CONT", "RESHAPE"), _COUNT),
    **dict.fromkeys(("SUM_ROWS", "MEAN"), _ROWS),
    "SUM": Rule(1, "the result is one element", lambda t, src: t.ne == (1, 1, 1, 1)),
    "ARGMAX": Rule(1, "the result has one element for each row", lambda t, src: t.ne == (src(0).ne[1], 1, 1, 1)),
    "TOP_K": Rule(
        1, "the rows are shorter, as many", lambda t, src: t.ne[1:] == src(0).ne[1:] and t.ne[0] <= src(0).ne[0]
    ),
    "REPEAT": Rule(1, "the result is whole repetitions of the source", lambda t, src: can_repeat(src(0), t)),
    "CONCAT": Rule(2, "the sources agree but in the dimension that is joined", _concat),
    "MUL_MAT": Rule(2, "the sources agree in ne[0], the result is their ne[1]", _mul_mat),
    "MUL_MAT_ID": Rule(3, "matrices, rows and ids agree, the result is rows by used by tokens", _mul_mat_id),
    "OUT_PROD": Rule(2, "the sources agree in ne[1], the result is their ne[0]", _out_prod),
    "GET_ROWS": Rule(2, "the result has one row for each index", _get_rows),
    "SET_ROWS": Rule(3, "the result has the third source's shape, the rows as many as the indices", _set_rows),
    "GLU": Rule(1, "the result has the gate's shape, or half its row", _glu),
    "PERMUTE": Rule(1, "the dimensions change places", _permute),
    "TRANSPOSE": Rule(
        1,
        "the first two dimensions change places",
        lambda t, src: t.ne == (src(0).ne[1], src(0).ne[0], *src(0).ne[2:]),
    ),
    "VIEW": Rule(1, "the view has a source", lambda t, src: True),
    "FLASH_ATTN_EXT": Rule(3, "q, k and v agree, the result is v's row by heads by tokens", _flash_attn_ext),
}


def broken_rule(t: Tensor) -> str:
    """What is wrong with the shapes of `t` and its sources for its op; empty if nothing is."""
    rule = RULES.get(t.op)
    if rule is None:
        return ""
    given = sum(s is not None for s in t.src[: rule.n_src])
    if given < rule.n_src:
        return f"{t.op} needs {rule.n_src} sources, it has {given}"

    def src(i: int) -> Tensor:
        found = t.src[i]
        assert found is not None
        return found

    if rule.holds(t, src):
        return ""
    shapes = " and ".join(f"[{', '.join(map(str, s.ne))}]" for s in t.src if s is not None)
    return f"{t.op} of {shapes} cannot give [{', '.join(map(str, t.ne))}]: {rule.says}"
