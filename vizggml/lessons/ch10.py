"""Exercises of chapter 10, quantization."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from vizggml.ggml.quants import open_block, quantize
from vizggml.ggml.quants.rounding import Floats
from vizggml.ggml.types import type_named
from vizggml.lessons.exercise import AnswerError, Exercise, Text, call, whole

N_ROWS, N_COLUMNS = 11008, 4096
LOWEST, HIGHEST = -1.5, 4.0
N_WEIGHTS, ROOM, BESIDE = 35 * 10**9, 32 * 10**9, 9 * 10**9
KINDS = ("Q3_K", "Q4_K", "Q5_K", "Q6_K")


def _bytes(answer: Any) -> str:
    n, got = N_ROWS * N_COLUMNS, whole(answer)
    want = N_ROWS * type_named("Q4_0").row_size(N_COLUMNS)
    if got == want:
        return ""
    return {n // 2: "scale", n * 18: "blocks", want * 8: "bits", n // 32 * 20: "half"}.get(got, "product")


def _scale(answer: Any) -> str:
    block = np.linspace(LOWEST, HIGHEST, 32, dtype=np.float32)
    want, got = float(open_block("Q4_0", quantize("Q4_0", block)).scales[0]), float(answer)
    if np.isclose(got, want, rtol=1e-3):
        return ""
    known = {"sign": -want, "seven": HIGHEST / 7, "smallest": LOWEST / -8, "span": (HIGHEST - LOWEST) / 15}
    return next((hint for hint, wrong in known.items() if np.isclose(abs(got), abs(wrong), rtol=1e-2)), "rule")


def _blocks() -> Iterator[tuple[str, Floats]]:
    """Blocks, each with the hint for who stumbles over it."""
    rng = np.random.default_rng(10)
    x = rng.normal(size=32).astype(np.float32)
    x[3] = -6
    yield "negative", x
    yield "positive", -x
    yield "limit", np.where(np.arange(32) % 2 == 0, np.float32(4), np.float32(-4))
    yield "zeros", np.zeros(32, np.float32)


def _neighbours(block: bytes) -> bytes:
    """The block as one writes it who puts codes 0 and 1 into the first byte."""
    codes = open_block("Q4_0", block).codes.astype(np.uint8)
    return block[:2] + (codes[::2] | codes[1::2] << 4).tobytes()


def _swapped(block: bytes) -> bytes:
    return block[:2] + bytes((b & 15) << 4 | b >> 4 for b in block[2:])


def _tried(encode: Callable[[Any], Any], hint: str, x: Floats) -> str:
    want = quantize("Q4_0", x).tobytes()
    try:
        with np.errstate(all="ignore"):
            got = call(encode, x.copy())
    except AnswerError as error:
        if hint in ("limit", "zeros") and isinstance(error.__cause__, (ArithmeticError, ValueError)):
            return hint
        raise
    if isinstance(got, int):
        raise TypeError(got)
    got = bytes(got)
    if got == want or (hint == "zeros" and got == bytes(2) + want[2:]):
        return ""
    if len(got) != len(want):
        return "length"
    if got in (_neighbours(want), _swapped(want)):
        return "order"
    if hint not in ("limit", "zeros") and got[:2] == want[:2]:
        return "rounding"
    return hint


def _encode(answer: Callable[[Any], Any]) -> str:
    return next((found for hint, x in _blocks() if (found := _tried(answer, hint, x))), "")


def _nbytes(kind: str) -> int:
    type = type_named(kind)
    return N_WEIGHTS * type.type_size // type.blck_size


def _finest(answer: Any) -> str:
    want = max((kind for kind in KINDS if _nbytes(kind) <= ROOM - BESIDE), key=_nbytes)
    got = str(answer).strip().upper()
    if got == want:
        return ""
    if got not in KINDS:
        return "name"
    return "coarse" if _nbytes(got) < _nbytes(want) else "beside"


SOLVED = (
    "import numpy as np\n"
    "def encode(x):\n"
    "    x = np.asarray(x, np.float32)\n"
    "    d = x[abs(x).argmax()] / np.float32(-8)\n"
    "    inverse = 1 / d if d else np.float32(0)\n"
    "    codes = np.minimum(15, np.floor(x * inverse + np.float32(8.5))).astype(np.uint8)\n"
    "    return np.float16(d).tobytes() + (codes[:16] | codes[16:] << 4).tobytes()\n"
)

EXERCISES: dict[str, Exercise] = {
    "10.1": Exercise(
        _bytes,
        {
            "scale": Text("Those are the codes alone. What else is in a block?", "这只是编码。一个块里还有什么？"),
            "blocks": Text("18 bytes are for a block, not for a weight.", "18 字节是一个块的，不是一个权重的。"),
            "bits": Text("Those are bits.", "这是比特数。"),
            "half": Text(
                "The scale is a half float. How many bytes is that?", "缩放系数是半精度浮点数。它占几个字节？"
            ),
            "product": Text(
                "How many blocks of 32 has a row, and how many bytes has a block?",
                "一行有多少个 32 权重的块？一个块多少字节？",
            ),
        },
        Text(
            "A row is 4096 / 32 = 128 blocks of 18 bytes: 2304 bytes. 11008 * 2304 = 25362432.",
            "一行是 4096 / 32 = 128 块，每块 18 字节，共 2304 字节。11008 * 2304 = 25362432。",
        ),
    ),
    "10.2": Exercise(
        _scale,
        {
            "sign": Text(
                "The size is right. To which level must the weight 4.0 go? Then what is the sign?",
                "大小对了。权重 4.0 要落在哪个级别？那么符号是什么？",
            ),
            "seven": Text(
                "That is the popular account. Which level does ggml give the largest weight?",
                "这是流行的说法。ggml 把最大的权重放到哪一级？",
            ),
            "smallest": Text("Which of the two has the larger magnitude?", "这两个数，哪个的绝对值更大？"),
            "span": Text(
                "So Q4_1 does it, which keeps a minimum. Q4_0 has none.",
                "这是 Q4_1 的做法，它另存一个最小值。Q4_0 没有。",
            ),
            "rule": Text(
                "Take the weight of largest magnitude, with its sign, and divide.",
                "取绝对值最大的权重，连同符号，再做除法。",
            ),
        },
        Text(
            "The largest magnitude is 4.0, and it is to be level -8: 4.0 / -8 = -0.5.",
            "绝对值最大的是 4.0，它要成为 -8 级：4.0 / -8 = -0.5。",
        ),
        "0.25",
    ),
    "10.3": Exercise(
        _encode,
        {
            "negative": Text(
                "It fails where the largest magnitude is negative: there the scale is positive. Compare two bytes.",
                "绝对值最大的权重为负时不对：这时缩放系数为正。比较前两个字节。",
            ),
            "positive": Text(
                "It is right when the largest magnitude is negative, wrong when it is positive. Is the sign kept?",
                "绝对值最大的权重为负时正确，为正时不对。符号保留了吗？",
            ),
            "limit": Text(
                "Take 4 and -4 in one block: one of them comes to 16. The largest code is 15.",
                "一个块里既有 4 又有 -4：其中一个会得到 16。编码最大是 15。",
            ),
            "zeros": Text(
                "A block of zeros: its scale is 0, and there is nothing to divide by. Level 0 is code 8.",
                "全零的块：缩放系数是 0，不能做除数。0 级的编码是 8。",
            ),
            "order": Text(
                "The codes are right, not their places. Byte j has code j low and code j + 16 high.",
                "编码对了，位置不对。第 j 个字节的低半是编码 j，高半是编码 j + 16。",
            ),
            "rounding": Text(
                "The scale is right, the codes are not. Code 8 is level 0; add 8.5, then cut the fraction off.",
                "缩放系数对了，编码不对。0 级的编码是 8；加 8.5，再舍去小数。",
            ),
            "length": Text(
                "Two bytes of scale and 16 of codes, no others.", "两个字节的缩放系数，16 个字节的编码，此外没有。"
            ),
        },
        Text(
            f"{SOLVED}The code of the largest is 0; one of its size and the other sign would be 16: 15 is the limit.",
            f"{SOLVED}最大者的编码是 0；大小相同、符号相反的会得到 16，所以上限取 15。",
        ),
        "answer = encode",
    ),
    "10.4": Exercise(
        _finest,
        {
            "name": Text("One of Q3_K, Q4_K, Q5_K, Q6_K.", "从 Q3_K、Q4_K、Q5_K、Q6_K 里选一个。"),
            "coarse": Text("It fits, but a finer one fits, too.", "放得下，但还有更精细的也放得下。"),
            "beside": Text(
                "That is more than what the 9 GB leave. A byte is 8 bits: how many bits may a weight have?",
                "超过了除去 9 GB 之后的余量。一个字节 8 比特：每个权重最多几比特？",
            ),
        },
        Text(
            "23e9 * 8 / 35e9 = 5.26 bits a weight. Q4_K has 4.5 (19.7 GB), Q5_K 5.5 (24.1 GB).",
            "23e9 * 8 / 35e9 = 每个权重 5.26 比特。Q4_K 是 4.5（19.7 GB），Q5_K 是 5.5（24.1 GB）。",
        ),
        '"Q2_K"',
    ),
}
