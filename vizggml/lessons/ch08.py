"""Exercises of chapter 8, the KV cache."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from vizggml.ggml.buffer import cpu_buffer_type
from vizggml.ggml.types import type_named
from vizggml.lessons.exercise import Exercise, Text, whole
from vizggml.llama.batch import Batch, split
from vizggml.llama.cparams import ContextParams, CParams
from vizggml.llama.hparams import HParams
from vizggml.llama.kv_cache import KVCache
from vizggml.llama.kv_cache_iswa import swa_cells
from vizggml.llama.plan import CountingBufferType
from vizggml.llama.shapes import Shape, hparams_of

SHAPE = Shape("qwen3", 28, 2048, 16, 8, 6144, 32000, 40960, 128)
N_TOKENS = 32768
N_SWA = 1000
WINDOWED = ContextParams(n_ctx=16384, n_ubatch=512, swa_full=False)
BEFORE, REMOVED, AFTER = 8, (2, 5), 4


def _hparams() -> HParams:
    return hparams_of("exercise", SHAPE)


def cache_bytes(kind: str) -> int:
    """What the cache of the exercise takes, asked of a cache that gets no memory."""
    params = ContextParams(n_ctx=N_TOKENS, type_k=kind, type_v=kind)
    hparams = _hparams()
    cache = KVCache(hparams, CParams.resolve(params, hparams), CountingBufferType("CPU"))
    found = sum(buffer.size for buffer in cache.buffers)
    cache.free()
    return found


def _half(answer: Any) -> str:
    want, got = cache_bytes("f16"), whole(answer)
    if got == want:
        return ""
    heads = SHAPE.n_head // SHAPE.n_head_kv
    return {want // 2: "half", want * heads: "heads", want * heads // 2: "heads", want // SHAPE.n_layer: "layers"}.get(
        got, "product"
    )


def _quantized(answer: Any) -> str:
    want, got = cache_bytes("q8_0"), whole(answer)
    if got == want:
        return ""
    half = cache_bytes("f16")
    return {half // 2: "scale", half: "same"}.get(got, "blocks")


def _cells(answer: Any) -> str:
    n = SHAPE.n_layer
    hparams = replace(_hparams(), n_swa=N_SWA, swa_layers=(True,) * n)
    want, got = swa_cells(hparams, CParams.resolve(WINDOWED, hparams)), whole(answer)
    if got == want:
        return ""
    if got in (N_SWA, 1024):
        return "step"
    return {N_SWA + WINDOWED.n_ubatch: "rounded", WINDOWED.n_ctx: "all"}.get(got, "sum")


def found_cells() -> list[int]:
    """Where the tokens of the exercise go, asked of a cache."""
    hparams = hparams_of("exercise", Shape("llama", 1, 64, 1, 1, 64, 32, 256, 64))
    cache = KVCache(hparams, CParams.resolve(ContextParams(n_ctx=256), hparams), cpu_buffer_type())
    slots = []
    for first, n in ((0, BEFORE), (BEFORE, AFTER)):
        if first:
            cache.seq_rm(0, *REMOVED)
        for ubatch in split(Batch.of([1] * n, first), 256):
            for met in cache.init_batch([ubatch]) or []:
                met.apply(ubatch)
                slots.append([*met.slot])
    cache.free()
    return slots[-1]


def _slot(answer: Any) -> str:
    if isinstance(answer, str):
        raise TypeError(answer)
    want, got = found_cells(), [whole(cell) for cell in answer]
    if got == want:
        return ""
    if len(got) != AFTER:
        return "four"
    if sorted(got) == want:
        return "order"
    return "end" if got == [*range(BEFORE, BEFORE + AFTER)] else "free"


EXERCISES: dict[str, Exercise] = {
    "08.1": Exercise(
        _half,
        {
            "half": Text(
                "That is K or V alone, or one byte a number. What else is kept?",
                "这只是 K 或 V 其中一个，要么就是每个数只算了一个字节。还少了什么？",
            ),
            "heads": Text("Which heads are kept: the 16 of the queries?", "缓存的是哪些头？是 query 的 16 个吗？"),
            "layers": Text("That is one layer.", "这是一层的。"),
            "product": Text(
                "Multiply: K and V, layers, tokens, heads that are kept, elements of a head, bytes of an element.",
                "依次相乘：K 和 V、层数、token 数、要缓存的头数、每个头的元素数、每个元素的字节数。",
            ),
        },
        Text(
            f"2 * 28 * 32768 * 8 * 128 * 2 = {2 * 28 * 32768 * 8 * 128 * 2}: 3.5 GiB. The 16 query heads do not count.",
            f"2 * 28 * 32768 * 8 * 128 * 2 = {2 * 28 * 32768 * 8 * 128 * 2}，即 3.5 GiB。16 个 query 头不算在内。",
        ),
    ),
    "08.2": Exercise(
        _quantized,
        {
            "scale": Text(
                "That is one byte a number. A Q8_0 block has 34 bytes for 32 numbers.",
                "这是每个数一个字节。Q8_0 每块 32 个数，占 34 个字节。",
            ),
            "same": Text("That is F16.", "这是 F16 的大小。"),
            "blocks": Text(
                "How many numbers are there? 32 of them make a block; how many bytes has a block?",
                "一共有多少个数？每 32 个是一块，一块有多少字节？",
            ),
        },
        Text(
            f"2 * 28 * 32768 * 8 * 128 numbers, each 32 in {type_named('Q8_0').type_size} bytes: 1996488704.",
            f"共 2 * 28 * 32768 * 8 * 128 个数，每 32 个占 {type_named('Q8_0').type_size} 字节：1996488704。",
        ),
    ),
    "08.3": Exercise(
        _cells,
        {
            "step": Text(
                "The tokens of a step are put in before the old ones are out of every window. How many come at once?",
                "一步的新 token 放进来时，旧的还没有全部离开窗口。一步最多来多少个？",
            ),
            "rounded": Text("Nearly. Cells come in multiples of 256.", "差一点。cell 的个数要取 256 的倍数。"),
            "all": Text("That is what swa_full would give it.", "打开 swa_full 才会有这么多。"),
            "sum": Text("Add the window and a step, then round up to 256.", "窗口加上一步，再向上取到 256 的倍数。"),
        },
        Text(
            "1000 + 512 = 1512, rounded up to a multiple of 256: 1536.",
            "1000 + 512 = 1512，向上取到 256 的倍数：1536。",
        ),
    ),
    "08.4": Exercise(
        _slot,
        {
            "four": Text("Four tokens need four cells.", "四个 token 要四个 cell。"),
            "order": Text(
                "Those are the cells. The search goes from the lowest free one upwards.",
                "cell 找对了。搜索从最小的空 cell 往上走。",
            ),
            "end": Text("There are free cells before these.", "在这些之前就有空的 cell。"),
            "free": Text(
                "Which cells are free after the removal? They need not be neighbours.",
                "删除之后哪些 cell 是空的？它们不必相邻。",
            ),
        },
        Text(
            "[2, 3, 4, 8]: after the removal the search begins at cell 2. The free cells from there on are taken.",
            "[2, 3, 4, 8]：删除之后，搜索的起点回到 cell 2，从那里开始依次取空的 cell。",
        ),
        "[0, 1, 2, 3]",
    ),
}
