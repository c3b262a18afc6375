"""Exercises of chapter 5, the graph allocator."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from vizggml.ggml.buffer import cpu_buffer_type
from vizggml.ggml.cgraph import Graph
from vizggml.ggml.context import Context
from vizggml.ggml.gallocr import GraphAllocator
from vizggml.ggml.liveness import graph_liveness, places_planned
from vizggml.ggml.ops import add, scale, soft_max, sqr
from vizggml.ggml.tallocr import DynTallocr
from vizggml.ggml.types import pad
from vizggml.lessons.exercise import Exercise, Text, code, whole
from vizggml.lessons.placing import peak_of

if TYPE_CHECKING:
    from vizggml.ggml.tallocr import Addr

PEAK_SIZES = (96, 32, 64)
"""Three results in a chain, each read only by the next, 32-byte alignment, nothing in place."""
ALIGNMENT = 32
SIZES = {"a": 96, "b": 32, "c": 64, "d": 96, "e": 32, "f": 40}
MOVES = "+a +b +c +d +e -b -d +f -c"
ELEMENTS = 100
READ = "ffn_gate-1"
MOST_LIVES = 6

Hole = tuple[int, int]
Lives = Sequence[tuple[int, int, int]]


def _peak(answer: Any) -> str:
    want = peak_of(PEAK_SIZES)
    given = whole(answer)
    if given == want:
        return ""
    return "sum" if given == sum(PEAK_SIZES) else "pairs"


def holes_after(moves: str, alignment: int = ALIGNMENT) -> list[Hole]:
    """The free blocks of exercise 05.2, the free end left out."""
    talloc = DynTallocr(alignment)
    at: dict[str, Addr] = {}
    for sign, name in map(tuple, moves.split()):
        if sign == "+":
            at[name] = talloc.alloc(SIZES[name])
        else:
            talloc.free_bytes(at[name], SIZES[name])
    return [(block.offset, block.size) for block in talloc.chunks[0].free_blocks[:-1]]


def _merged(holes: Sequence[Hole]) -> list[Hole]:
    done: list[Hole] = []
    for offset, size in sorted(holes):
        if done and sum(done[-1]) == offset:
            offset, before = done.pop()
            size += before
        done.append((offset, size))
    return done


def _holes(answer: Any) -> str:
    given = sorted((whole(offset), whole(size)) for offset, size in answer)
    want = holes_after(MOVES)
    top = sum(pad(size, ALIGNMENT) for name, size in SIZES.items() if name != "f")
    if given == want:
        return ""
    if any(offset >= top for offset, _ in given):
        return "end"
    if given == holes_after(MOVES, 8):
        return "align"
    if _merged(given) == want:
        return "merge"
    if given == holes_after(MOVES.removesuffix(" -c")):
        return "last"
    return "split" if len(given) < len(want) else "each"


def in_place_sizes() -> tuple[int, int, int]:
    """Bytes of the buffer of exercise 05.3; of one result, padded; and of its numbers alone."""
    ctx = Context(mem_size=1 << 20, no_alloc=True)
    i = ctx.new_tensor("F32", (ELEMENTS,), name="i").set_input()
    a = sqr(ctx, i)
    c = add(ctx, scale(ctx, a, 2.0), a)
    graph = Graph(ctx)
    graph.build_forward_expand(soft_max(ctx, c))
    [size] = GraphAllocator(cpu_buffer_type()).reserve_n_size(graph)
    ctx.free()
    return size, pad(4 * ELEMENTS, ALIGNMENT), 4 * ELEMENTS


def _in_place(answer: Any) -> str:
    want, one, own = in_place_sizes()
    given = whole(answer)
    if given == want:
        return ""
    places, rest = divmod(given, one)
    if rest:
        return "align" if given % own == 0 else "each"
    return {1: "children", 3: "input", 4: "input", 5: "sum"}.get(places, "each")


def lay_before(name: str) -> tuple[list[str], set[str]]:
    """Who lay where `name` begins, in the plan of exercise 05.4, the latest first; and who lay on its other bytes."""
    from vizggml.llama.model import load_model

    context = load_model("tiny").context(n_ctx=512, n_ubatch=512, flash_attn=False, n_threads=1)
    step = context.step_graph(32)
    galloc = GraphAllocator(cpu_buffer_type())
    galloc.reserve_n_size(step)
    places = places_planned(galloc)
    lives = graph_liveness(step).lives
    asked = next(life for life in lives if life.tensor.name == name)
    begin = places[asked.tensor.id][1]
    before = sorted((life for life in lives if life.died < asked.born), key=lambda life: -life.died)
    there = [life.tensor.name for life in before if 0 <= begin - places[life.tensor.id][1] < life.held]
    beside = {life.tensor.name for life in before if begin < places[life.tensor.id][1] < begin + asked.held}
    return there, beside - set(there)


def _read(answer: Any) -> str:
    there, beside = lay_before(READ)
    given = [name.strip() for name in ([answer] if isinstance(answer, str) else answer)]
    if given == there[:2]:
        return ""
    if given == there[1::-1]:
        return "order"
    if given == there[:1]:
        return "one"
    if len(given) == 2 and given[0] == there[0]:
        return _misread(given[1], there, beside)
    return _misread(given[0], there, beside) if given else "name"


def _misread(name: str, there: Sequence[str], beside: Collection[str]) -> str:
    if name in there:
        return "earlier"
    return "beside" if name in beside else "name"


def best_fit(lives: Lives) -> tuple[int, int]:
    """What best fit takes for results `(born, died, size)`, and the most that lives at once."""
    talloc = DynTallocr(ALIGNMENT)
    at: dict[int, Addr] = {}
    live = []
    for position in range(1 + max(died for _, died, _ in lives)):
        for number, (born, _, size) in enumerate(lives):
            if born == position:
                at[number] = talloc.alloc(size)
        live.append(sum(size for born, died, size in lives if born <= position <= died))
        for number, (_, died, size) in enumerate(lives):
            if died == position:
                talloc.free_bytes(at[number], size)
    return talloc.chunks[0].max_size, max(live)


def first_fit(lives: Lives) -> int:
    """What first fit takes: each goes to the lowest offset above which its size is free."""
    placed: list[tuple[int, int, int]] = []
    for born, died, size in sorted(lives, key=lambda life: life[0]):
        offset = 0
        for begin, end, until in sorted(placed):
            if until < born:
                continue
            if begin - offset >= size:
                break
            offset = max(offset, end)
        placed.append((offset, offset + size, died))
    return max(end for _, end, _ in placed)


def _lost(answer: Any) -> str:
    given = answer.values() if isinstance(answer, Mapping) else answer
    lives = [(whole(born), whole(died), whole(size)) for born, died, size in given]
    if not lives or any(not 0 <= born <= died < 1000 for born, died, _ in lives):
        return "positions"
    if any(size <= 0 or size % ALIGNMENT for _, _, size in lives):
        return "sizes"
    if len(lives) > MOST_LIVES:
        return "many"
    (best, bound), first = best_fit(lives), first_fit(lives)
    if best > bound == first:
        return ""
    if best > first:
        return "near"
    if best > bound:
        return "both"
    deaths = {died for _, died, _ in lives}
    later = any(born > min(deaths) for born, _, _ in lives)
    return "fits" if later else "hole"


EXERCISES: dict[str, Exercise] = {
    "05.1": Exercise(
        _peak,
        {
            "sum": Text(
                "That is the sum of all three. When the third is placed, who still needs the first?",
                "这是三个张量大小之和。放置第三个时，还有谁需要第一个？",
            ),
            "pairs": Text(
                "Place one after another by hand. Where is the free block when the third comes, is it wide enough?",
                "用手依次放置：放第三个时，空闲块在哪里？够宽吗？",
            ),
        },
        Text(
            "The first lies at 0, the second at 96. Then the first is freed: 96 bytes at 0, wide enough for 64. "
            "The third goes there, so nothing beyond 128 bytes is ever needed.",
            "第一个在 0，第二个在 96。然后第一个被释放：0 处有 96 字节，放得下 64 字节。"
            "第三个就放在那里，所以始终用不到 128 字节以外的地方。",
        ),
    ),
    "05.2": Exercise(
        _holes,
        {
            "end": Text(
                "One of them lies above all that was ever placed: that is the free end. Leave it out.",
                "其中一块在所有放过的张量之上：那是空闲的末尾，不要写。",
            ),
            "align": Text("How many bytes does f take, rounded up?", "f 取整之后占多少字节？"),
            "merge": Text(
                "The bytes are right. Two of your holes touch each other.", "字节都对。但你写的空洞里有两个是挨着的。"
            ),
            "last": Text("That is so before c is freed. What does it touch?", "那是释放 c 之前的样子。c 挨着什么？"),
            "split": Text(
                "f does not fill the hole that it goes into. Where is the rest?",
                "f 没有填满它放进的空洞。剩下的在哪里？",
            ),
            "each": Text(
                "Write the list down after each move. Which of two holes does f go into: which has room for it?",
                "每走一步都把空闲列表写下来。f 来的时候有两个空洞：哪一个放得下它？",
            ),
        },
        Text(
            "a to e lie at 0, 96, 128, 192 and 288. After -b and -d there are holes of 32 at 96 and of 96 at 192. "
            "f takes 64 and fits only the second, of which 32 at 256 are left. "
            "c, at 128, touches the hole before it, and f behind it: 32 + 64 = 96 at 96.\n"
            "[(96, 96), (256, 32)]",
            "a 到 e 依次在 0、96、128、192、288。-b 和 -d 之后有两个空洞：96 处 32 字节，192 处 96 字节。"
            "f 占 64 字节，只放得进第二个，剩下 256 处的 32 字节。"
            "c 在 128，前面挨着一个空洞，后面是 f：32 + 64 = 96 字节，从 96 起。\n"
            "[(96, 96), (256, 32)]",
        ),
        "[(0, 32), (64, 32)]",
    ),
    "05.3": Exercise(
        _in_place,
        {
            "align": Text(
                "100 numbers have 400 bytes. What is the next multiple of 32?",
                "100 个数是 400 字节。往上取 32 的倍数是多少？",
            ),
            "children": Text(
                "When b is made, who else will still read a? May b destroy it?",
                "算 b 的时候，还有谁要读 a？b 能覆盖它吗？",
            ),
            "input": Text(
                "Go through them again. Who reads i after a is made? "
                "An input may be written over as well; only an output refuses.",
                "再走一遍。算出 a 之后还有谁读 i？输入也可以被覆盖，只有输出会拒绝。",
            ),
            "sum": Text(
                "That is a place for each. Which may lie on a source?", "那是每个都有自己的位置。哪些可以盖在来源上？"
            ),
            "each": Text(
                "For each of a, b, c, d: does it take over a source's place? Count the places that remain.",
                "对 a、b、c、d 逐个问：它能不能占用某个来源的位置？再数一数一共剩几个位置。",
            ),
        },
        Text(
            "a takes over i, which nobody else reads. b cannot take over a, which c reads too: it gets a second place. "
            "c takes over b, its first source, and d takes over c. "
            "Two places of 416 bytes (400, rounded up to 32): 832.",
            "a 占用 i 的位置：没有别人读 i。b 不能占用 a，因为 c 还要读 a，所以得到第二个位置。"
            "c 占用它的第一个来源 b，d 再占用 c。两个位置，各 416 字节（400 取整到 32 的倍数）：832。",
        ),
    ),
    "05.4": Exercise(
        _read,
        {
            "one": Text(
                "That is the one just before it. And who had these bytes before that?",
                "紧挨在它之前的是它。再往前又是谁？",
            ),
            "order": Text("These are the two. The later comes first.", "就是这两个。后来的写在前面。"),
            "earlier": Text(
                "It did lie there, but somebody else has been there since.",
                "它确实在那里放过，但之后还有别人放过。",
            ),
            "beside": Text(
                "One of the two had some of these bytes, but not those where ffn_gate-1 begins. Compare the offsets.",
                "两个里有一个只用过其中一些字节，而不是 ffn_gate-1 开头的那些。比较一下偏移。",
            ),
            "name": Text(
                "Select ffn_gate-1 in the player of the real step (press /, type its name, Enter, Esc) "
                "and read Life in the tab Tensor: its bytes before. Then click that name, and read again.",
                "在真实一步的播放器里选中 ffn_gate-1（按 /，输入名字，按 Enter，再按 Esc），"
                "读 Tensor 标签页里 Life 一节的 its bytes before。然后点那个名字，再读一遍。",
            ),
        },
        code(
            "places = ggml.places_planned(galloc)  # galloc has planned step\n"
            "lives = ggml.graph_liveness(step).lives\n"
            "asked = next(l for l in lives if l.tensor.name == 'ffn_gate-1')\n"
            "begin = places[asked.tensor.id][1]\n"
            "for life in lives:\n"
            "    at = places[life.tensor.id][1]\n"
            "    if life.died < asked.born and at <= begin < at + life.held:\n"
            "        print(life.died, life.tensor.name)  # the two latest"
        ),
        "['embd', 'norm-0']",
    ),
    "05.5": Exercise(
        _lost,
        {
            "positions": Text(
                "Each result is (born, died, size), with 0 <= born <= died < 1000, and there is at least one.",
                "每个结果写成 (born, died, size)，并且 0 <= born <= died < 1000；至少要有一个。",
            ),
            "sizes": Text("Sizes are multiples of 32, above 0.", "大小要是 32 的倍数，且大于 0。"),
            "many": Text("At most six.", "最多六个。"),
            "hole": Text(
                "Nothing is placed after something has been freed, so no rule has a choice.",
                "释放之后再没有放置过什么，所以哪种规则都没得选。",
            ),
            "fits": Text(
                "Best fit loses nothing here. In which of the pictures above did it?",
                "这里 best fit 什么也没有浪费。上面哪一幅图里它浪费了？",
            ),
            "both": Text(
                "Best fit takes more than lives at once, but first fit does no better. "
                "The rules part only where two holes have room, and the lower is not the smaller.",
                "best fit 用的比同时活着的多，但 first fit 也没有更好。"
                "只有当两个空洞都放得下，而且靠下的不是较小的那个时，两种规则才会分开。",
            ),
            "near": Text(
                "First fit is better, but takes more than the largest live set, too. "
                "Which hole is a little too narrow for what comes last?",
                "first fit 更好，但也超过了最大的活跃集。对最后来的那个，哪个空洞还窄了一点？",
            ),
        },
        Text(
            "{'A': (0, 3, 64), 'B': (1, 5, 32), 'C': (2, 3, 32),\n"
            " 'D': (3, 4, 64), 'E': (4, 5, 32), 'F': (5, 5, 96)}\n"
            "At 3 all of A to D live: 192 bytes. Then E has two holes to choose from. First fit puts it where A was, "
            "and the hole of C grows to 96 bytes when D goes: room for F. "
            "Best fit puts E where C was, and F lies above it, up to 224.",
            "{'A': (0, 3, 64), 'B': (1, 5, 32), 'C': (2, 3, 32),\n"
            " 'D': (3, 4, 64), 'E': (4, 5, 32), 'F': (5, 5, 96)}\n"
            "序号 3 时 A 到 D 都存活：192 字节。然后 E 有两个空洞可选。first fit 把它放在 A 原来的地方，"
            "D 走后 C 留下的空洞扩大到 96 字节，正好放下 F。"
            "best fit 把 E 放在 C 原来的地方，F 只能放在它上面，直到 224。",
        ),
        "{'A': (0, 1, 32), 'B': (1, 2, 64)}",
    ),
}
