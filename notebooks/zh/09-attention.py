# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 第 9 章：scratch 与注意力
#
# 计算缓冲区里，每个节点的结果都有位置（[第 7 章](07-plan.ipynb)）。但是 kernel 在算出结果之前，自己可能也要用内存。权重是量化的矩阵乘法，先要把另一个操作数，也就是激活值，转成一种 8 比特的类型，这里是 `Q8_0`；softmax 要有一行的空间来算。这些字节不是张量，节点算完就没有人再读。那么放在哪里？

# %% [markdown]
# ## 取最大值，不是求和
#
# 节点是一个接一个计算的，前一个用完的地方，后一个可以接着用。所以一块内存只要够最能吃的那个节点用，就够所有节点用。这块内存叫 *scratch*，也叫工作缓冲区。

# %%
needs = {"Q": 3_000, "ROPE": 1_000, "softmax": 4_000, "values": 9_000}
print(f"a piece for each: {sum(needs.values()):>6,} bytes")
print(f"one for all:      {max(needs.values()):>6,} bytes")

# %% [markdown]
# ## 在引擎里
#
# 计算之前，`ggml_graph_plan` 把整张图走一遍，对每个节点问两件事：用几个线程？要多少字节的 scratch？下面是 tiny 模型一步 64 个 token 的计算图，注意力拆成一个个单独的节点。

# %%
import numpy as np

import vizggml as vg
from vizggml import ggml, lessons

model = vg.load_model("tiny")


def step_of_64(**settings):
    return model.context(n_ubatch=64, **settings).step_graph(64)


plain = step_of_64(n_ctx=256, flash_attn=False)
with vg.record() as trace:
    plan = ggml.graph_plan(plain, n_threads=4)

needing = sum(size > 0 for size in plan.work_sizes)
print(f"{needing} of {len(plain.nodes)} nodes need scratch")
print(f"sum     {sum(plan.work_sizes):>9,} bytes")
print(f"maximum {max(plan.work_sizes):>9,} bytes")
print(f"planned {plan.work_size:>9,} bytes")

# %% [markdown]
# 一根柱子是一个节点，上面的线是到此为止的最大值。哪个节点比之前的都要得多，线就在哪里抬高。按 **←** 往回走，可以读到原因。

# %%
vg.view(trace, panes=["scratch"], step=len(trace) - 1, height=520)

# %% [markdown]
# 规划出来的比最大值多一点：每个线程多 64 字节，免得两个线程写到同一条缓存行里。

# %%
added = plan.work_size - max(plan.work_sizes)
print(f"{added} bytes more; 4 threads, 64 each: {4 * 64}")

# %% [markdown]
# ## 公式
#
# scratch 有两类。一类是**共用**的：矩阵乘法的激活值由所有线程一起转换，互相等齐了，再一起读全部。另一类是**每个线程**一份：softmax 一行，`ROPE` 一行。修改 `n_threads`，运行两个单元格：哪一类会变大？

# %%
n_threads = 8


# %%
def greediest_of_each_op(n_threads):
    found = {}
    sizes = ggml.graph_plan(plain, n_threads=n_threads).work_sizes
    for t, size in zip(plain.nodes, sizes, strict=True):
        found[t.op] = max(size, found.get(t.op, 0))
    return found


one, many = greediest_of_each_op(1), greediest_of_each_op(n_threads)
print(f"{'threads':>8} {1:>8} {n_threads:>8}")
for op in (op for op in many if many[op]):
    print(f"{op:>8} {one[op]:>8,} {many[op]:>8,} bytes")

# %% [markdown]
# 手算三个节点。模型的权重是量化的，所以每 32 个激活值变成一个 34 字节的 `Q8_0` 块。缓存里的 value 是 F16，所以 softmax 算出的权重也要转成 F16。

# %%
plan = ggml.graph_plan(plain, n_threads=4)
sized = zip(plain.nodes, plan.work_sizes, strict=True)
found = {(t.op, t.name): (t, size) for t, size in sized}

query, size = found["MUL_MAT", "Qcur-0"]
by_hand = query.src[1].nelements // 32 * 34
print(f"Q, activations as Q8_0: {by_hand:>7,}; planned {size:>7,}")

soft, size = found["SOFT_MAX", "kq_soft_max-0"]
by_hand = 4 * soft.ne[0] * 4
print(f"softmax, 4 rows of F32: {by_hand:>7,}; planned {size:>7,}")

kqv, size = found["MUL_MAT", "kqv-0"]
by_hand = kqv.src[1].nelements * 2
print(f"values, weights as F16: {by_hand:>7,}; planned {size:>7,}")

# %% [markdown]
# 引擎给出的相同，还带着具体的数：

# %%
for sentence in trace.sentences("NodePlanned"):
    name, terms = sentence.split()[0], sentence.partition("work in: ")[2]
    if terms and name in ("Qcur-0", "kq_soft_max-0", "kqv-0"):
        lessons.tell(f"{name}: {terms}")

# %% [markdown]
# 要得最多的属于注意力。而注意力还有一个更大的问题，那根本不是 scratch。

# %% [markdown]
# ## 每一对，一个分数
#
# 一步里的每个 token，要在每个头里与每个 cell 比较。全部写出来，这些分数就是一个张量 `kq`。看看 tiny 模型有 1,024 个 cell 时计算缓冲区的规划：每一层里，分数都像一座塔一样立着。


# %%
def reserved(graph):
    with vg.record() as trace:
        galloc = ggml.GraphAllocator(ggml.cpu_buffer_type())
        galloc.reserve(graph)
    print(f"{galloc.get_buffer_size():,} bytes")
    return trace


in_many = reserved(step_of_64(n_ctx=1024, flash_attn=False))
vg.view(in_many, panes=["timeline"], step=len(in_many) - 1, height=520)

# %% [markdown]
# 模型大了更糟。规划一下 MiniMind：8 层，8 个头，8,192 个 cell，一步 512 个 token。下面是峰值那一刻活着的张量：

# %%
from vizggml.llama.cparams import ContextParams
from vizggml.llama.plan import plan_shape


def minimind(n_ctx, flash_attn):
    settings = ContextParams(n_ctx=n_ctx, flash_attn=flash_attn)
    return plan_shape("minimind-64m", "F16", settings)


big = minimind(8192, flash_attn=False)
for t in sorted(big.peak, key=lambda t: -t["size"])[:3]:
    print(f"{t['name']:>16} {t['size']:>12,} bytes")
print(f"{'scores by hand':>16} {8 * 512 * 8192 * 4:>12,} bytes")
print(f"{'compute buffer':>16} {big.compute:>12,} bytes")

# %% [markdown]
# 上下文加倍，分数也加倍。可是每个分数只用一次：变成权重，权重乘上一行 value，就完了。能不能从头到尾不存一整行，也得到结果？

# %% [markdown]
# ## softmax，一次一个分数
#
# 难处在 softmax：它要减去整行的最大分数，还要除以总和，这两个数到最后才知道。那就先用手上有的，过后再**修正**：记下目前的最大分数 `M`、总和 `S`、加权后的 value `out`。一旦来了更大的分数，之前攒下的一切都大了同样的倍数。那就按这个倍数缩小，接着往下算。

# %%
scores, values = np.array([1.0, 3, 2, 5]), np.array([10.0, 20, 30, 40])
M, S, out = -np.inf, 0, 0
for score, value in zip(scores, values, strict=True):
    largest = max(M, score)
    correction, weight = np.exp(M - largest), np.exp(score - largest)
    S = S * correction + weight
    out = out * correction + weight * value
    M = largest
    print(f"{score=:.0f} {M=:.0f} {correction=:.3f} {S=:.3f} {out=:.3f}")

weights = np.exp(scores)
in_one_go = weights @ values / weights.sum()
print(f"out / S: {out / S:.4f}, in one go: {in_one_go:.4f}")

# %% [markdown]
# 哪个分数成了新的最大值，修正系数就小于 1：第一个、第二个和最后一个都是。第三个的系数是 1，什么都没变。
#
# ## 一次一个分块
#
# 一次一个分数太慢。改成所有的 query 一起，每次取一个**分块**（tile）的 cell，想法不变。


# %%
def online(q, keys, values, tile):
    M, S, out = np.full((len(q), 1), -np.inf, q.dtype), 0, 0
    for first in range(0, len(keys), tile):
        part = slice(first, first + tile)
        scores = q @ keys[part].T / q.shape[1] ** 0.5
        largest = np.maximum(M, scores.max(axis=1, keepdims=True))
        correction = np.exp(M - largest)
        weights = np.exp(scores - largest)
        S = S * correction + weights.sum(axis=1, keepdims=True)
        out = out * correction + weights @ values[part]
        M = largest
    return out / S


# %% [markdown]
# 就这么几行。不管分块多大，它和教科书上的 softmax 一样吗？


# %%
def textbook(q, keys, values):
    scores = q @ keys.T / q.shape[1] ** 0.5
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True) @ values


rng = np.random.default_rng(3)
q, keys, values = rng.normal(size=(3, 512, 64)).astype(np.float32)
wanted = textbook(q, keys, values)
for tile in (1, 64, 100, 512):
    off = abs(online(q, keys, values, tile) - wanted).max()
    held = tile * len(q)
    print(f"tile {tile:>3}: {held:>7,} scores held, difference {off:.1e}")

# %% [markdown]
# 常有人以为 flash attention 是一种近似。并不是：不同的只是求和时的舍入，这里差在 F32 的最后几位。（ggml 逐个处理 cell、而 value 又是 F16 时，`out` 也用 F16 存放，舍入更多。）不过，遇到两个 token 几乎同样可能的地方，这一点差别已经足以让 llama.cpp 在打开它之后写出不同的文本。

# %% [markdown]
# ## 一个节点
#
# `FLASH_ATTN_EXT` 就是这个循环，一个 op 代替了好几个，分数从不成为张量。给它同样的数：

# %%
c = ggml.Context(mem_size=4 << 20)
tensors = [
    c.new_tensor("F32", (64, 512, 1), name=name).set(numbers)
    for name, numbers in (("q", q), ("k", keys), ("v", values))
]
attended = ggml.flash_attn_ext(c, *tensors, None, 1 / 8, 0.0, 0.0)
g = ggml.Graph(c)
g.build_forward_expand(attended)
ggml.graph_compute(g, ggml.graph_plan(g, n_threads=1))

off = abs(attended.array()[0, :, 0] - online(q, keys, values, 64)).max()
print(f"ne {attended.ne}, difference {off:.1e}")

# %% [markdown]
# 再来看 tiny 模型一步 64 个 token、1,024 个 cell，这次用上这个节点。塔不见了。（注意纵轴只画到峰值。现在看到的塔是前馈网络，原来就在。）用 `vg.compare(in_many, in_one)` 可以把两边并排摆开，并列出差别。

# %%
in_one = reserved(step_of_64(n_ctx=1024, flash_attn=True))
vg.view(in_one, panes=["timeline"], step=len(in_one) - 1, height=520)

# %% [markdown]
# ## 分块就是 scratch
#
# 线程处理一个分块的时候，它总得放在什么地方：这就是 scratch，每个线程一份。设一个分块有 *Q* 个 query、*C* 个 cell，头的大小是 *D*：query 要 *QD* 个数，key 和 value 各 *CD*，累加的结果 *QD*，分数和 mask 各 *QC*。全部是 F32。
#
# 有一篇公开的 ggml 介绍说，MiniMind 用 16 个线程时要 14 MB 的 scratch。它的头有 96 个元素。按 256 x 256 的分块来算：


# %%
def tile_floats(Q, C, D):
    return Q * D + 2 * C * D + Q * D + 2 * Q * C


for side in (256, 64):
    floats = tile_floats(side, side, 96)
    print(f"tiles of {side} x {side}: {floats:,} floats a thread,")
    print(f"    {4 * 16 * floats:,} bytes on 16 threads")

# %% [markdown]
# 可见那篇介绍的数与 256 x 256 的分块相符。本教程所用的 llama.cpp 是 64 x 64，即 `ggml/src/ggml-cpu/common.h` 里的 `GGML_FA_TILE_Q` 和 `GGML_FA_TILE_KV`。这两种，引擎都能规划。


# %%
def minimind_attention(n_tokens, n_cells):
    c = ggml.Context(mem_size=1 << 18, no_alloc=True)
    q = c.new_tensor("F32", (96, n_tokens, 8))
    k, v = (c.new_tensor("F16", (96, n_cells, 4)) for _ in "kv")
    g = ggml.Graph(c)
    node = ggml.flash_attn_ext(c, q, k, v, None, 96**-0.5, 0.0, 0.0)
    g.build_forward_expand(node)
    return g


def attention_scratch(n_tokens, n_cells, side):
    g = minimind_attention(n_tokens, n_cells)
    plan = ggml.graph_plan(g, n_threads=16, flash_tile=(side, side))
    return plan.work_sizes[0]


print(f"{attention_scratch(512, 2048, side=256):>10,} bytes")
print(f"{attention_scratch(512, 2048, side=64):>10,} bytes")

# %% [markdown]
# 公式既不问这一步有多少 token，也不问有多少 cell：

# %%
for n_tokens, n_cells in ((512, 2048), (512, 32768), (1, 1048576)):
    size = attention_scratch(n_tokens, n_cells, side=64)
    print(f"tokens {n_tokens:>3}, cells {n_cells:>9,}: {size:,} bytes")

# %% [markdown]
# （分块用于 64 个 token 以上、缓存是 F16 或 F32 的一步。其余的逐个处理 cell；只有一个 token、而 cell 不少于 512 个时，由各个线程分担。这另有一个公式，规划取两者中较大的。练习 09.4 就是把各线程的结果合起来。）

# %% [markdown]
# ## 改一改，看一看
#
# 还是 tiny 模型，这次用 flash attention。修改 `side`，运行两个单元格，看哪个节点要得最多。`side` 小到多少，最多的就不再是注意力了？

# %%
side = 64

# %%
flash = step_of_64(n_ctx=256, flash_attn=True)
with vg.record() as trace:
    plan = ggml.graph_plan(flash, n_threads=4, flash_tile=(side, side))
most = max(plan.work_sizes)
node = flash.nodes[plan.work_sizes.index(most)]
print(f"{node.op} ({node.name}) needs the most: {most:,} bytes")
vg.view(trace, panes=["scratch"], step=len(trace) - 1, height=520)

# %% [markdown]
# ## 省了多少
#
# MiniMind，cell 越来越多，一步 512 个 token，计算缓冲区的字节数：


# %%
def both_ways(n_ctx):
    return [minimind(n_ctx, on).compute for on in (False, True)]


print(f"{'cells':>6} {'plain':>12} {'flash':>12}")
for cells in (512, 2048, 8192):
    bytes_plain, bytes_flash = both_ways(cells)
    print(f"{cells:>6,} {bytes_plain:>12,} {bytes_flash:>12,}")

# %% [markdown]
# 用了 flash attention 也还是会长一点，那是 mask：每个 token、每个 cell 一个数，但不用每个头都有一份。从 512 到 8,192 个 cell，按 F16 算：

# %%
grown = both_ways(8192)[1] - both_ways(512)[1]
print(f"{grown:,} bytes; the mask: {512 * (8192 - 512) * 2:,}")

# %% [markdown]
# llama.cpp 自己占用的如下。最后一行是一个什么都没省下的例子。


# %%
def theirs(name, cells):
    kinds = ("plain", "flash")
    return [lessons.golden(f"{name}.compute.{k}.{cells}") for k in kinds]


print(f"{'':>9}{'cells':>6} {'plain':>12} {'flash':>12}")
cases = ("minimind", 8192), ("smollm2", 8192), ("smollm2", 2048)
for name, cells in cases:
    bytes_plain, bytes_flash = theirs(name, cells)
    print(f"{name:>9}{cells:>6,} {bytes_plain:>12,} {bytes_flash:>12,}")
print("MiniMind as planned:", theirs("minimind", 8192) == both_ways(8192))

# %% [markdown]
# 为什么？SmolLM2 的词表很大，有 49,152 个 token。512 个 token 的 logits 要占：

# %%
print(f"{512 * 49152 * 4:,} bytes")

# %% [markdown]
# 缓冲区的大小取决于最吃紧的那一刻。对 2,048 个 cell 的 SmolLM2 来说，那一刻不在注意力，而在 logits，两种注意力都是如此。
#
# 那么同样用 flash attention，8,192 个 cell 怎么反而比 2,048 个占得少？规划并不是完美的装箱（[第 7 章](07-plan.ipynb)）。峰值那一刻活着的字节一样多，只是 logits 找到的位置不同：

# %%
from vizggml.llama.plan import plan_file

for cells in (2048, 8192):
    peak = plan_file("smollm2", ContextParams(n_ctx=cells)).peak
    alive = sum(t["size"] for t in peak)
    at = max(peak, key=lambda t: t["size"])["offset"]
    print(f"{cells:>5,} cells: {alive:,} bytes live, logits at {at:,}")

# %% [markdown]
# “flash attention 省一半内存”这样的话，要同时说明是什么模型、多长的上下文才有意义。

# %% [markdown]
# ## 在 llama.cpp 里
#
# `ggml/src/ggml-cpu/ggml-cpu.c` 里的 `ggml_graph_plan` 就是装着全部公式的那个 switch。`ggml/src/ggml-cpu/ops.cpp` 里的 `ggml_compute_forward_flash_attn_ext_tiled` 是逐块的循环，旁边还有 query 很少和只有一个 query 时的做法。`src/llama-graph.cpp` 里的 `llm_graph_context::build_attn_mha` 决定建那一个节点，还是那好几个。

# %% [markdown]
# ## 练习
#
# 把 `...` 换成你的答案。答错会得到提示；`lessons.solution("09.1")` 打印解答。
#
# **09.1** 四个节点分别要 100、3,000、500、2,000 字节的 scratch。8 个线程时，工作缓冲区多大？

# %%
answer = ...
lessons.check("09.1", answer)

# %% [markdown]
# **09.2** 32 个头，一步 512 个 token，16,384 个 cell：一层的分数用 F32 全部写出来，占多少字节？

# %%
answer = ...
lessons.check("09.2", answer)

# %% [markdown]
# **09.3** 用 llama.cpp 的分块，头大小 128，8 个线程，`FLASH_ATTN_EXT` 要多少字节的 scratch？（不算规划加的填充。）

# %%
answer = ...
lessons.check("09.3", answer)

# %% [markdown]
# **09.4** 两个线程各看了一半的 cell，对同一个 query 各有自己的 `M`、`S` 和 `out`（还没有除以 `S`）。写一个 `merge(M1, S1, out1, M2, S2, out2)`，返回全部 cell 的 `M, S, out`。

# %%
answer = ...
lessons.check("09.4", answer)

# %% [markdown]
# ## 接下来读什么
#
# - `vizggml/ggml/cplan.py`，每个公式一个函数；还有 `vizggml/ggml/kernels/flash_attn.py`。
# - 权重是 `Q4_0`，激活值是 `Q8_0`：这样的一块里装着什么？见[第 10 章：量化](10-quantization.ipynb)。
