"""Exercises of chapter 3, arena, buffers and mmap."""

from __future__ import annotations

from typing import Any

from vizggml.ggml.buffer import BufferType, alloc_ctx_tensors_from_buft
from vizggml.ggml.context import GGML_OBJECT_SIZE, GGML_TENSOR_SIZE, Context
from vizggml.ggml.types import GGML_MEM_ALIGN, pad
from vizggml.lessons.exercise import Exercise, Text, whole, wholes

SHAPES = ((10,), (3, 3), (1,))
SIZES, ALIGNMENT, MAX_SIZE = (100, 60, 120, 40, 200), 32, 256
FIRST, NBYTES, PAGE = 5000, 8000, 4096
PROCESSES, WEIGHTS_GIB, OWN_GIB = 3, 4, 1


def _used(answer: Any) -> str:
    ctx = Context(mem_size=1 << 14)
    data = [ctx.new_tensor("F32", ne).nbytes for ne in SHAPES]
    used = ctx.used_mem
    ctx.free()
    known = {
        used: "",
        sum(data): "data",
        len(data) * (GGML_OBJECT_SIZE + GGML_TENSOR_SIZE): "records",
        used - len(data) * GGML_OBJECT_SIZE: "headers",
        sum(GGML_OBJECT_SIZE + GGML_TENSOR_SIZE + n for n in data): "padding",
        pad(sum(GGML_OBJECT_SIZE + GGML_TENSOR_SIZE + n for n in data), GGML_MEM_ALIGN): "padding",
    }
    return known.get(whole(answer), "other")


def _passes(alignment: int, max_size: int) -> list[int]:
    """The sizes of the buffers that tensors of `SIZES` bytes go into."""
    ctx = Context(mem_size=1 << 14, no_alloc=True)
    for n in SIZES:
        ctx.new_tensor("F32", (n // 4,))
    buffers = alloc_ctx_tensors_from_buft(ctx, BufferType("exercise", alignment, max_size))
    sizes = [buffer.size for buffer in buffers]
    for buffer in buffers:
        buffer.free()
    ctx.free()
    return sizes


def _buffers(answer: Any) -> str:
    got = list(wholes(answer))
    if got == _passes(ALIGNMENT, MAX_SIZE):
        return ""
    if got == _passes(4, MAX_SIZE):
        return "alignment"
    if len(got) == 1:
        return "one"
    return "full" if set(got) == {MAX_SIZE} else "other"


def _pages(answer: Any) -> str:
    count = (FIRST + NBYTES - 1) // PAGE - FIRST // PAGE + 1
    known = {count: "", -(-NBYTES // PAGE): "begin", NBYTES // PAGE: "begin", -(-(FIRST + NBYTES) // PAGE): "before"}
    return known.get(whole(answer), "other")


def _processes(answer: Any) -> str:
    known = {
        WEIGHTS_GIB + PROCESSES * OWN_GIB: "",
        PROCESSES * (WEIGHTS_GIB + OWN_GIB): "copies",
        WEIGHTS_GIB + OWN_GIB: "own",
    }
    return known.get(whole(answer), "other")


EXERCISES: dict[str, Exercise] = {
    "03.1": Exercise(
        _used,
        {
            "data": Text("That is the data alone. Where are the records?", "这只是数据。记录在哪里？"),
            "records": Text("That is without data, as with no_alloc.", "这没有算数据，相当于 no_alloc。"),
            "headers": Text("Each object has a header, too.", "每个对象还有一个头部。"),
            "padding": Text(
                "Each record with its data is padded to a multiple of 16, not the sum of all.",
                "要把每条记录连同它的数据补齐到 16 的倍数，而不是补齐总和。",
            ),
            "other": Text(
                "For each tensor: 32, and 336 + its data up to the next multiple of 16.",
                "每个张量：32，再加上“336 + 数据”向上补齐到 16 的倍数。",
            ),
        },
        Text(
            "336 + 40 = 376 -> 384; 336 + 36 = 372 -> 384; 336 + 4 = 340 -> 352. With three headers of 32: 1216.",
            "336 + 40 = 376 -> 384；336 + 36 = 372 -> 384；336 + 4 = 340 -> 352。再加三个 32 字节的头部：1216。",
        ),
    ),
    "03.2": Exercise(
        _buffers,
        {
            "alignment": Text(
                "Each tensor begins at a multiple of 32, so each takes a multiple of 32.",
                "每个张量都从 32 的倍数开始，所以各占 32 的倍数。",
            ),
            "one": Text("All together are more than max_size.", "全部合起来超过了 max_size。"),
            "full": Text(
                "A buffer is as large as what goes in, not as large as it may be.",
                "缓冲区的大小等于放进去的东西，而不是允许的上限。",
            ),
            "other": Text(
                "Round each size up to 32, then add from the left; where the sum would pass 256, begin anew. "
                "The order is never changed.",
                "先把每个大小向上补到 32 的倍数，再从左往右加；快要超过 256 时另起一个。顺序不变。",
            ),
        },
        Text(
            "Rounded up: 128, 64, 128, 64, 224. 128 + 64 = 192, and 128 more are too many; 128 + 64 = 192; 224: "
            "[192, 192, 224].",
            "补齐后：128、64、128、64、224。128 + 64 = 192，再加 128 就超了；128 + 64 = 192；224：[192, 192, 224]。",
        ),
        "[100, 200]",
    ),
    "03.3": Exercise(
        _pages,
        {
            "begin": Text(
                "That would be so if it began where a page begins. On which page is byte 5,000?",
                "如果它正好从页首开始，才是这样。偏移 5,000 的字节在哪一页？",
            ),
            "before": Text(
                "That counts from the beginning of the file. The first page holds none of it.",
                "这是从文件开头数的。第一页里没有它的字节。",
            ),
            "other": Text(
                "Which page holds its first byte, and which its last? Count from one to the other.",
                "首字节在哪一页，末字节在哪一页？从前者数到后者。",
            ),
        },
        Text(
            "Counted from 0, its first byte, 5,000, is on page 1, its last, 12,999, on page 3: three pages, "
            "though 8,000 bytes would fit on two.",
            "页从 0 数起，首字节 5,000 在第 1 页，末字节 12,999 在第 3 页：共三页，虽然 8,000 字节两页就放得下。",
        ),
    ),
    "03.4": Exercise(
        _processes,
        {
            "copies": Text(
                "That is three copies of the weights. Whose are the pages of a mapped file?",
                "这是三份权重。映射文件的页归谁所有？",
            ),
            "own": Text(
                "The weights are shared. A KV cache is written, so it is each process's own.",
                "权重是共享的。KV 缓存要写入，所以每个进程各有一份。",
            ),
            "other": Text(
                "What can be shared is there once, what is written three times.", "能共享的只有一份，要写入的有三份。"
            ),
        },
        Text("4 + 3 * 1 = 7 GiB.", "4 + 3 * 1 = 7 GiB。"),
    ),
}
