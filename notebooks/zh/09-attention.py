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
# 计算缓冲区里，每个节点的结果都有位置。但是 kernel 在算出结果之前，自己可能也要用内存。权重是量化的矩阵乘法，先要把激活值转成 `Q8_0`；softmax 要有一行的地方来算。这些字节不是张量，节点算完就没有人再读。它们放在哪里？

# %% [markdown]
# ## 取最大值，不是求和
#
# 节点是一个接一个计算的。前一个用完的地方，后一个可以接着用：只要一块内存够最能吃的那个节点用，就够所有节点用。

# %%
needs = {
    "mul_mat": 17_408,
    "rope": 1_024,
    "soft_max": 4_096,
    "mul_mat of the values": 131_072,
}
print(f"a piece for each: {sum(needs.values()):>8,}")
print(f"one for all:      {max(needs.values()):>8,}")

# %% [markdown]
# ## 在引擎里
#
# 计算之前，`ggml_graph_plan` 把整个图走一遍，对每个节点问两件事：用几个线程？要多少字节的 scratch？下面是 tiny 模型一步 64 个 token 的计算图，注意力拆成一个个单独的节点。

# %%
import numpy as np

import vizggml as vg
from vizggml import ggml, lessons

model = vg.load_model("tiny")
plain = model.context(
    n_ctx=256, n_ubatch=64, flash_attn=False
).step_graph(64)
with vg.record() as trace:
    plan = ggml.graph_plan(plain, n_threads=4)

print(
    f"{sum(size > 0 for size in plan.work_sizes)} of {len(plain.nodes)} nodes need scratch"
)
print(
    f"sum {sum(plan.work_sizes):,}, maximum {max(plan.work_sizes):,} bytes"
)
print(f"planned {plan.work_size:,} bytes")

# %% [markdown]
# 一根柱子是一个节点，上面的线是到此为止的最大值。哪个节点比之前的都要得多，线就在哪里抬高。按 **←** 往回走，可以读到原因。

# %%
vg.view(trace, panes=["scratch"], step=len(trace) - 1, height=520)

# %% [markdown]
# 规划出来的比最大值多一点：每个线程多 64 字节，免得两个线程写到同一条缓存行里。

# %% [markdown]
# ## 公式
#
# 公式有两类。一类 scratch 是*共用*的：矩阵乘法的激活值由所有线程一起转换，互相等齐了，再一起读全部。另一类是*每个线程*一份：softmax 一行，`ROPE` 一行。后一类随线程数增长。手算三个节点：

# %%
sized = zip(plain.nodes, plan.work_sizes, strict=True)
by_name = {(t.op, t.name): (t, size) for t, size in sized}
query, query_size = by_name["MUL_MAT", "Qcur-0"]
soft, soft_size = by_name["SOFT_MAX", "kq_soft_max-0"]
kqv, kqv_size = by_name["MUL_MAT", "kqv-0"]

print(
    "Q's activations as Q8_0, 34 bytes for 32:  ",
    query.src[1].nelements // 32 * 34 == query_size,
)
print(
    "softmax, a row of F32 on each of 4 threads:",
    4 * soft.ne[0] * 4 == soft_size,
)
print(
    "values times weights, the weights as F16:  ",
    2 * kqv.src[1].nelements == kqv_size,
)

# %% [markdown]
# 引擎给出的相同，还带着具体的数：

# %%
for sentence in trace.sentences("NodePlanned"):
    name, terms = sentence.split()[0], sentence.partition("work in: ")[2]
    if terms and name in ("kq-0", "kq_soft_max-0", "kqv-0"):
        print(f"{name:>13}: {terms}")

# %% [markdown]
# 要得最多的属于注意力。而注意力还有一个更大的问题，那根本不是 scratch。

# %% [markdown]
# ## 每一对，一个数
#
# 一步里的每个 token，要在每个头里与每个 cell 比较。全部写出来，这些分数就是一个张量 `kq`。规划一下 MiniMind：8 层，8 个头，8,192 个 cell，一步 512 个 token。

# %%
from vizggml.llama.cparams import ContextParams
from vizggml.llama.plan import plan_shape

big = plan_shape(
    "minimind-64m", "F16", ContextParams(n_ctx=8192, flash_attn=False)
)
for standing in sorted(big.peak, key=lambda s: -s["size"])[:3]:
    print(f"{standing['name']:>18} {standing['size']:>12,} bytes")
print(
    f"{'compute buffer':>18} {big.compute:>12,} bytes; scores by hand {8 * 512 * 8192 * 4:,}"
)

# %% [markdown]
# 上下文加倍，分数也加倍。可是每个分数只用一次：变成权重，权重乘上一行 value，就完了。能不能从头到尾不存一整行，也得到结果？

# %% [markdown]
# ## softmax，一次一块
#
# 难处在 softmax：它要减去整行的最大分数，还要除以总和，这两个数到最后才知道。那就先用手上有的，过后再*修正*：记下目前的最大分数 `M`、总和 `S`、加权后的 value `out`。一旦来了更大的分数，之前攒下的一切都大了同样的倍数。把它们缩小，接着往下算。


# %%
def online(q, keys, values, tile):
    M, S, out = np.full((len(q), 1), -np.inf), 0, 0
    for first in range(0, len(keys), tile):
        scores = q @ keys[first : first + tile].T / np.sqrt(q.shape[1])
        largest = np.maximum(M, scores.max(axis=1, keepdims=True))
        weights, correction = (
            np.exp(scores - largest),
            np.exp(M - largest),
        )
        S = S * correction + weights.sum(axis=1, keepdims=True)
        out = out * correction + weights @ values[first : first + tile]
        M = largest
    return out / S


# %% [markdown]
# 十行。不管一块多大，它和教科书上的 softmax 一样吗？


# %%
def textbook(q, keys, values):
    scores = q @ keys.T / np.sqrt(q.shape[1])
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True) @ values


rng = np.random.default_rng(3)
q, keys, values = rng.normal(size=(3, 512, 64)).astype(np.float32)
for tile in (1, 64, 100, 512):
    difference = abs(
        online(q, keys, values, tile) - textbook(q, keys, values)
    ).max()
    print(
        f"tile {tile:>3}: {tile * len(q):>7,} scores at once, difference {difference:.1e}"
    )

# %% [markdown]
# 并不是每一位都相同：求和的顺序不同，舍入就不同。打开 flash attention 之后，遇到两个 token 几乎同样可能的地方，llama.cpp 写出的文本可能会变，这是原因之一。

# %% [markdown]
# ## 一个节点
#
# `FLASH_ATTN_EXT` 就是这个循环，一个 op 代替了好几个，分数从不成为张量。给它同样的数：

# %%
c = ggml.Context(mem_size=4 << 20)
given = {"q": q, "k": keys, "v": values}
tensors = [
    c.new_tensor("F32", (64, 512, 1), name=name).set(x)
    for name, x in given.items()
]
attended = ggml.flash_attn_ext(c, *tensors, None, 1 / 8, 0.0, 0.0)
g = ggml.Graph(c)
g.build_forward_expand(attended)
ggml.graph_compute(g, ggml.graph_plan(g, n_threads=1))

ours = attended.array()[0, :, 0]
difference = abs(ours - online(q, keys, values, 64)).max()
print(
    "ne:", attended.ne, f"difference from the ten lines {difference:.1e}"
)

# %% [markdown]
# ## 块就是 scratch
#
# 线程处理一块的时候，这块总得放在什么地方：这就是 scratch，每个线程一份。设一块有 *Q* 个 query、*C* 个 cell，头的大小是 *D*：query 要 *QD* 个数，key 和 value 各 *CD*，累加的结果 *QD*，分数和 mask 各 *QC*。全部是 F32。
#
# 有一篇公开的 ggml 介绍说，MiniMind 用 16 个线程时要 14 MB 的 scratch。它的头有 96 个元素。按 256 x 256 的块来算：


# %%
def tile_floats(queries, cells, head):
    return 2 * queries * head + 2 * cells * head + 2 * queries * cells


for side in (256, 64):
    floats = tile_floats(side, side, 96)
    print(
        f"{side:>3} x {side:<3} {floats:>8,} floats a thread, {4 * 16 * floats:>10,} bytes on 16 threads"
    )

# %% [markdown]
# 可见那篇介绍说的是 256 x 256 的块。如今的 llama.cpp 用 64 x 64，即 `ggml/src/ggml-cpu/common.h` 里的 `GGML_FA_TILE_Q` 和 `GGML_FA_TILE_KV`。两种引擎都能规划。

# %%
c = ggml.Context(mem_size=1 << 18, no_alloc=True)
q8 = c.new_tensor("F32", (96, 512, 8), name="q")
k4, v4 = (c.new_tensor("F16", (96, 2048, 4), name=name) for name in "kv")
g = ggml.Graph(c)
g.build_forward_expand(
    ggml.flash_attn_ext(c, q8, k4, v4, None, 96**-0.5, 0.0, 0.0)
)
for flash_tile in ((256, 256), (64, 64)):
    with vg.record() as trace:
        plan = ggml.graph_plan(g, n_threads=16, flash_tile=flash_tile)
    (planned,) = trace.sentences("NodePlanned")
    print(
        f"{plan.work_sizes[0]:>10,}:", planned.partition("work in: ")[2]
    )

# %% [markdown]
# 公式既不问有多少 cell，也不问这一步有多少 token：512 个 token 对 2,048 个 cell，和一个 token 对一百万个 cell，要的一样多。（只有一个 token 的一步是逐个处理 cell 的，另有一个公式，plan 取两者中较大的。）

# %% [markdown]
# ## 改一改，看会怎样
#
# 还是 tiny 模型，这次用 flash attention。修改 `side` 和 `n_threads`，运行两个单元格，看哪个节点要得最多。`side` 小到多少，最多的就不再是注意力了？这和线程数有关吗？

# %%
side, n_threads = 64, 4

# %%
flash = model.context(n_ctx=256, n_ubatch=64, flash_attn=True).step_graph(
    64
)
with vg.record() as trace:
    plan = ggml.graph_plan(
        flash, n_threads=n_threads, flash_tile=(side, side)
    )
greediest = flash.nodes[int(np.argmax(plan.work_sizes))]
print(
    f"{greediest.op} ({greediest.name}) needs the most: {max(plan.work_sizes):,} bytes"
)
vg.view(trace, panes=["scratch"], step=len(trace) - 1, height=520)

# %% [markdown]
# ## 省了多少
#
# MiniMind，cell 越来越多，一步 512 个 token，计算缓冲区的字节数：

# %%
for n_ctx in (512, 2048, 8192):
    both = [
        plan_shape(
            "minimind-64m",
            "F16",
            ContextParams(n_ctx=n_ctx, flash_attn=flash),
        ).compute
        for flash in (False, True)
    ]
    print(
        f"{n_ctx:>6} cells: plain {both[0]:>12,}   flash {both[1]:>12,}"
    )

# %% [markdown]
# 用了 flash attention 也还是会长一点，那是 mask：每个 token、每个 cell 一个数，但不用每个头都有一份。
#
# llama.cpp 自己在 8,192 个 cell 时占用的如下。还有一个什么都没省下的例子：SmolLM2，2,048 个 cell。

# %%
for name, n_ctx in (
    ("minimind", 8192),
    ("smollm2", 8192),
    ("smollm2", 2048),
):
    of = f"{name}.compute"
    both = [
        lessons.golden(f"{of}.{kind}.{n_ctx}")
        for kind in ("plain", "flash")
    ]
    print(
        f"{name:>8} {n_ctx:>6,} cells: plain {both[0]:>12,}   flash {both[1]:>12,}"
    )
print(
    "ours, first line: ",
    big.compute == lessons.golden("minimind.compute.plain.8192"),
)
print("SmolLM2's logits: ", f"{512 * 49152 * 4:,} bytes")

# %% [markdown]
# 缓冲区的大小取决于最吃紧的那一刻。对 2,048 个 cell 的 SmolLM2 来说，那一刻不在注意力，而在 512 个 token 的 logits，两种注意力都是如此。“flash attention 省一半内存”这样的话，要同时说明是什么模型、多长的上下文才有意义。

# %% [markdown]
# ## 在 llama.cpp 里
#
# `ggml/src/ggml-cpu/ggml-cpu.c` 里的 `ggml_graph_plan` 就是装着全部公式的那个 switch。`ggml/src/ggml-cpu/ops.cpp` 里的 `ggml_compute_forward_flash_attn_ext_tiled` 是逐块的循环，旁边还有 query 很少和只有一个 query 时的做法。`src/llama-graph.cpp` 里的 `llm_graph_context::build_attn_mha` 决定建那一个节点，还是那好几个。

# %% [markdown]
# ## 练习
#
# 把三个点换成你的答案。答错会得到提示；`lessons.solution("09.1")` 打印解答。
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
# **09.3** 用 llama.cpp 的分块，头大小 128，8 个线程，`FLASH_ATTN_EXT` 要多少字节的 scratch？（不算 plan 加的填充。）

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
