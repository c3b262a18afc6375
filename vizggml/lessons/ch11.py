"""Exercises of chapter 11, threads and backends."""

from __future__ import annotations

from typing import Any

from vizggml.ggml.kernels.chunks import CHUNK_SIZE, CHUNK_SIZE_OF_ONE, chunk_grid
from vizggml.ggml.types import type_named
from vizggml.lessons.exercise import Exercise, Text, whole
from vizggml.llama.offload import first_layer

PROMPT_ROWS, PROMPT_TOKENS, PROMPT_THREADS = 1000, 8, 4
TOKEN_ROWS, TOKEN_THREADS = 4000, 16
N_LAYER, N_GPU_LAYERS = 32, 10
WIDTH, TOKENS, TERMS = 4096, 8, 2


def _handed_out(answer: Any) -> str:
    known = {
        chunk_grid(PROMPT_ROWS, PROMPT_TOKENS, PROMPT_THREADS).n_chunks: "",
        PROMPT_ROWS // CHUNK_SIZE: "last",
        PROMPT_THREADS: "shares",
        -(-PROMPT_ROWS // CHUNK_SIZE_OF_ONE): "one",
    }
    return known.get(whole(answer), "rows")


def _shares(answer: Any) -> str:
    known = {
        chunk_grid(TOKEN_ROWS, 1, TOKEN_THREADS).n_chunks: "",
        -(-TOKEN_ROWS // CHUNK_SIZE_OF_ONE): "few",
        TOKEN_ROWS // CHUNK_SIZE_OF_ONE: "few",
        TOKEN_ROWS // CHUNK_SIZE: "one",
    }
    return known.get(whole(answer), "other")


def _first(answer: Any) -> str:
    first = first_layer(N_LAYER, N_GPU_LAYERS)
    known = {first: "", first - 1: "output", N_GPU_LAYERS: "begin", N_GPU_LAYERS - 1: "begin", 0: "begin"}
    return known.get(whole(answer), "count")


def _copied(answer: Any) -> str:
    f32 = type_named("F32").type_size
    both = TERMS * WIDTH * TOKENS * f32
    known = {
        both: "",
        both // TERMS: "sum",
        both // TOKENS: "tokens",
        both // TOKENS // TERMS: "tokens",
        both // f32: "elements",
    }
    return known.get(whole(answer), "product")


EXERCISES: dict[str, Exercise] = {
    "11.1": Exercise(
        _handed_out,
        {
            "last": Text(
                "Nearly: the rows that are left over at the end make a chunk, too.", "差一点：最后剩下的几行也算一块。"
            ),
            "shares": Text(
                "That would be one share for each thread. Are there too few chunks to hand out?",
                "这是每个线程一份。chunk 真的少到不值得分发吗？",
            ),
            "one": Text(
                "Chunks of 64 are for a product with one row or one column.", "取 64 是只有一行或一列时的做法。"
            ),
            "rows": Text(
                "How many chunks of 16 do 1,000 rows make, how many do 8 columns?",
                "1,000 行按 16 切成几块？8 列切成几块？",
            ),
        },
        Text(
            "1,000 rows make 63 chunks of 16 (the last has 8 rows), 8 columns make one: 63 in all. "
            "Four for each thread would be 16, so they are handed out.",
            "1,000 行按 16 切成 63 块（最后一块 8 行），8 列是一块：共 63 块。每个线程四块只要 16 块，所以逐块分发。",
        ),
    ),
    "11.2": Exercise(
        _shares,
        {
            "few": Text(
                "So many chunks of 64 would there be. Are they at least four for each thread?",
                "按 64 切确实是这么多块。平均每个线程有四块吗？",
            ),
            "one": Text("There is only one column. Which size have chunks then?", "只有一列。这时 chunk 取多大？"),
            "other": Text(
                "Count the chunks of 64, then compare with four for each thread.",
                "先数按 64 切有几块，再与每个线程四块比较。",
            ),
        },
        Text(
            "63 chunks of 64 rows, one fewer than 4 * 16: every thread gets one share, 16 pieces of 250 rows.",
            "按 64 行切是 63 块，比 4 * 16 少一块：每个线程一份，共 16 块，每块 250 行。",
        ),
    ),
    "11.3": Exercise(
        _first,
        {
            "output": Text("One of the 10 is not a layer with a number.", "这 10 层里有一个不是带编号的层。"),
            "begin": Text("It is the last layers that go to the device.", "放到设备上的是最后那些层。"),
            "count": Text(
                "Count from the end: first the output, then layer 31, then 30.",
                "从末尾数起：先是输出，然后是第 31 层、第 30 层。",
            ),
        },
        Text(
            "The output is one of the ten, so nine layers: 23 to 31. 32 + 1 - 10 = 23.",
            "十个里输出占一个，还剩九层：第 23 到 31 层。32 + 1 - 10 = 23。",
        ),
    ),
    "11.4": Exercise(
        _copied,
        {
            "sum": Text(
                "That would be the sum at the end of the layer. On which side is it computed?",
                "这是层末那个和的大小。那个和是在哪一边算的？",
            ),
            "tokens": Text("That is for one token.", "这是一个 token 的。"),
            "elements": Text("Those are elements. An F32 has four bytes.", "这是元素个数。一个 F32 占四个字节。"),
            "product": Text(
                "Multiply: tensors that cross, tokens, width, bytes of an element.",
                "依次相乘：要过去的张量个数、token 数、宽度、每个元素的字节数。",
            ),
        },
        Text(
            f"Both terms of the sum cross: 2 * 8 * 4096 * 4 = {2 * 8 * 4096 * 4}.",
            f"和的两个加数都要过去：2 * 8 * 4096 * 4 = {2 * 8 * 4096 * 4}。",
        ),
    ),
}
