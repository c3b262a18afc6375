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
# # 第 7 章：静态规划
#
# 分配器有了（[第 5 章](05-galloc.ipynb)），它走过图的顺序也有了（[第 6 章](06-graph.ipynb)）。两者合起来，在算出第一个数之前，就给每个结果安排好了位置。这样的规划有多好？计算的时候，又要为它付出什么？

# %% [markdown]
# ## 生命周期是矩形
#
# 一个结果在它自己的节点上出生，在最后一个读它的节点上死去，其间占着若干字节。向右画执行顺序里的位置，向上画字节：得到一个矩形。它的宽由顺序决定，高由形状决定；规划能决定的，只是把它挂多高。时间上重叠的两个，字节上不能重叠。
#
# 五个结果，写成（出生，死亡，大小）。每一个都放在先来者允许的最低处：

# %%
lives = {
    "a": (0, 1, 64),
    "b": (1, 2, 32),
    "c": (2, 4, 64),
    "d": (3, 4, 32),
    "out": (4, 5, 96),
}


def place(lives):
    placed = {}
    for name, (born, died, size) in lives.items():
        offset = 0
        for start, other in sorted((placed[o], o) for o in placed):
            begin, end, height = lives[other]
            meet = begin <= died and born <= end
            if meet and start < offset + size:
                offset = max(offset, start + height)
        placed[name] = offset
    return placed


placed = place(lives)
print(placed)

# %%
import matplotlib.pyplot as plt
from matplotlib_inline.backend_inline import set_matplotlib_formats

set_matplotlib_formats("svg")
figure, axes = plt.subplots(figsize=(7.4, 3.4))
for name, (born, died, size) in lives.items():
    left, wide, low = born - 0.5, died + 1 - born, placed[name]
    axes.bar(left, size, wide, low, align="edge", fc="#a9d8c8", ec="w")
    axes.text(left + 0.1, low + size / 2, name, va="center", size=13)
axes.set(xlim=(-0.5, 5.5), ylim=(0, 200), yticks=range(0, 200, 32))
axes.set(xlabel="position in the order", ylabel="offset in bytes")
axes.spines[["top", "right"]].set_visible(False)
plt.show()

# %% [markdown]
# `c` 挂在 `a` 待过的地方，`d` 挂在 `b` 待过的地方。所以用不着各占一处：

# %%
total = sum(size for _, _, size in lives.values())
height = max(placed[name] + lives[name][2] for name in lives)
print(f"{total} bytes of results in {height} bytes")

# %% [markdown]
# 能更少吗？在位置 4，`c`、`d` 和 `out` 同时活着。任何规划都不能低于这种和的最大值，它叫**下界**（lower bound；在播放器里是一条点线）。


# %%
def alive(p):
    spans = lives.values()
    return sum(size for born, died, size in spans if born <= p <= died)


sums = [alive(p) for p in range(6)]
print("alive:", sums, " lower bound:", max(sums))

# %% [markdown]
# ## 真实一步的规划
#
# tiny 模型，一次 32 个 token。`graph_liveness` 只凭图算出各个生命周期，不用任何分配器，所以可以拿它来评判分配器。

# %%
import vizggml as vg
from vizggml import ggml, lessons


def step_graph(name, n_tokens, n_outputs=None, flash_attn=False):
    context = vg.load_model(name).context(
        n_ctx=512, n_ubatch=512, flash_attn=flash_attn, n_threads=1
    )
    return context.step_graph(n_tokens, n_outputs)


step = step_graph("tiny", 32)
galloc = ggml.GraphAllocator(ggml.cpu_buffer_type())
with vg.record() as trace:
    galloc.reserve(step)
found = ggml.graph_liveness(step)
print(f"a place for each:  {found.no_reuse:>10,} bytes")
print(f"the plan:          {galloc.get_buffer_size():>10,} bytes")
print(f"the lower bound:   {found.bound:>10,} bytes")

# %% [markdown]
# 这就是它的矩形。把鼠标移到一个矩形上，看它是谁；再一步步走，看一个个矩形依次出现。

# %%
vg.view(trace, panes=["timeline"], height=560)

# %% [markdown]
# 规划并不完美，也无意完美：要找出矩形的最佳摆法，是 NP 难的问题。ggml 只走一遍，当场决定。

# %% [markdown]
# ## 规划就是一串数
#
# 一番查找之后，留下的是每个节点一个偏移，和为它留的字节数。下面是其中六个：

# %%
pairs = list(zip(step.nodes, galloc.node_allocs, strict=True))
for node, (place_of_it, *_) in pairs[31:37]:
    offset, room = place_of_it.offset, place_of_it.size_max
    print(f"{node.name:>12} at {offset:>7,}, {room:>7,} bytes")

# %% [markdown]
# 下一个同样形状的图，地址直接从这张表里取，什么都不再查找。

# %%
from collections import Counter


def happened(trace):
    kinds = [type(event).__name__ for event in trace.events]
    return Counter(kinds[kinds.index("SnapshotEnd") + 1 :])


another = step_graph("tiny", 32)
with vg.record() as trace:
    galloc.alloc_graph(another)
seen = happened(trace)
print("places given:", seen["TensorPlaced"])
print("searches:    ", seen["SearchBegin"])

# %% [markdown]
# ## 计算的时候：什么也不做
#
# 现在看真正干活时的内存：二十个 token，每次都复用同一张图。其间申请了几次内存，归还了几次？

# %%
context = vg.load_model("tiny").context(n_ctx=512, n_threads=1)
context.decode(context.vocab.tokenize("Once upon a time"))
context.decode([5])
with vg.record() as trace:
    for _ in range(20):
        context.decode([5])
seen = happened(trace)
kinds = "NodeEnd BufferAllocated BufferFreed SearchBegin TensorFreed"
for kind in kinds.split():
    print(f"{kind:16}{seen[kind]:>6}")

# %% [markdown]
# 以上是我们自己的事件。再问问操作系统：每算完一个节点，这个进程有多少内存驻留？二十步，每步十个 token，算两遍：一遍照原样；另一遍给每个节点单独申请一块内存，并且一直留着，就像[第 4 章](04-deferred.ipynb)开头的 NumPy 那样。

# %%
from itertools import count

import numpy as np
import psutil

process = psutil.Process()


def resident(keep):
    context = vg.load_model("tiny").context(n_ctx=512, n_threads=1)
    context.decode([5] * 10)
    line, kept, sample = np.ones(2000), [], count()

    def after(node):
        if keep:
            kept.append(np.ones(node.nbytes, np.uint8))
        line[next(sample)] = process.memory_info().rss

    context.after_node = after
    for _ in range(20):
        context.decode([5] * 10)
    return (line[: next(sample)] - line[0]) / 2**20


planned_line, kept_line = resident(keep=False), resident(keep=True)
print(f"{len(planned_line):,} samples each, MiB above the first:")
print(f"as planned        up to {planned_line.max():6.2f}")
print(f"each node its own up to {kept_line.max():6.2f}")

# %%
figure, axes = plt.subplots(figsize=(7.4, 3))
axes.plot(kept_line, color="#c1440e")
axes.plot(planned_line, color="#2a7f62", linewidth=2.5)
middle = len(kept_line) // 2
axes.text(middle, kept_line[middle] + 3, "each node its own", ha="right")
axes.text(middle, 1, "as planned")
axes.set(xlabel="nodes computed", ylabel="MiB above the first")
axes.spines[["top", "right"]].set_visible(False)
plt.show()

# %% [markdown]
# 一条平线；那一点起伏，是测量时 Python 自己用掉的。

# %% [markdown]
# ## 计算过程中会释放中间结果吗？
#
# 常常有人这么讲。你刚刚数过：一次也没有。`TensorFreed` 发生在**规划**里，意思是：从这里起，这些字节可以许给别人了。运行时什么也不动，一个节点只是写在别人待过的地方。
#
# 换一种做法也行。我们的引擎有一个教学模式：最后一个读者一结束，就真的释放。用一张小图来看：

# %%
c = ggml.Context(mem_size=1 << 20, no_alloc=True)
x = c.new_tensor("F32", (8, 8), name="x")
ggml.alloc_ctx_tensors_from_buft(c, ggml.cpu_buffer_type())
x.set(range(64))
t = x
for k in range(4):
    t = ggml.mul_mat(c, x, t).set_name(f"t{k}")
g = ggml.Graph(c)
g.build_forward_expand(t)
with vg.record() as trace:
    ggml.compute_releasing(g)
lessons.tell(*trace.sentences("Released"))

# %% [markdown]
# 这样并不比规划多占内存。但每个 token 都要在节点之间查找空闲块，而且峰值要到算完才知道。规划事先就知道峰值：所以 llama.cpp 一启动就能告诉你装不装得下。

# %% [markdown]
# ## 一个规划管所有的步
#
# 每一步不尽相同：有提示词，有单个 token，缓存会变长。所以建 context 的时候，先规划最坏的图：一段最长的提示词，一个 token，再来一次提示词。缓冲区取其中最大的。

# %%
with vg.record() as trace:
    context = vg.load_model("tiny").context(
        n_ctx=512, n_ubatch=64, n_threads=1
    )
lessons.tell(*trace.sentences("ReserveEnd"))

# %% [markdown]
# 第三次是为了让提示词的规划留到最后。token 少一些的图，节点还是那些，而且没有一个更大：它直接用提示词的规划里的位置（`ggml_gallocr_needs_realloc` 检查的正是这个）。缓冲区大半空着，但不用查找。

# %%
size = context.compute_buffer_size
with vg.record() as trace:
    context.decode([5] * 64)
    context.decode([5])
    context.decode([5, 6, 7])
seen = happened(trace)
print("steps:      ", seen["ReuseDecided"])
print("plans:      ", seen["ReserveEnd"])
print("new buffers:", seen["BufferAllocated"])
print("the buffer is as it was:", context.compute_buffer_size == size)

# %% [markdown]
# ## 真能省 70% 到 85% 吗？
#
# 你可能读到过这个数字。是什么的 70%，在什么图上？节省的比例，是“各占一处”减去规划，再除以前者。把一步的图在第一层之后截断，在第二层之后截断，依此类推，逐段规划（这个单元格要跑几秒钟）：


# %%
def planned(g):
    galloc = ggml.GraphAllocator(ggml.cpu_buffer_type())
    return galloc.reserve_n_size(g)[0]


def saved(g):
    return 1 - planned(g) / ggml.graph_liveness(g).no_reuse


def first_layers(step, n):
    names = [t.name for t in step.nodes]
    c = ggml.Context(mem_size=1 << 20, no_alloc=True)
    g = ggml.Graph(c, step.size)
    for t in step.nodes[: names.index(f"l_out-{n - 1}") + 1]:
        g.build_forward_expand(t)
    return g


layers = (1, 2, 3, 4, 8, 16, 30)
print("layers", *(f"{n:>6}" for n in layers))
for mode in ("plain", "flash"):
    step = step_graph("smollm2", 32, flash_attn=mode == "flash")
    shares = {n: saved(first_layers(step, n)) for n in layers}
    print(f"{mode} ", *(f"{s:6.0%}" for s in shares.values()))
    fits = [n for n, share in shares.items() if 0.7 <= share <= 0.85]
    print("    between 70 and 85 % with this many layers:", *fits)

# %% [markdown]
# 所以这个数字大致适合层数很少的图。只有一层时少一些，因为还没有多少东西用过两次。每多一层就更多：总和里又添了一层的结果，规划却几乎不长，因为每一层都放在前一层待过的地方。
#
# 那么整个模型呢？

# %%
for n_outputs in (1, 32):
    share = saved(step_graph("smollm2", 32, n_outputs))
    print(f"SmolLM2, 32 tokens, logits of {n_outputs:>2}: {share:.1%}")
for mode in ("plain", "flash"):
    share = saved(step_graph("tiny", 32, flash_attn=mode == "flash"))
    print(f"tiny,    32 tokens, {mode} attention: {share:.1%}")

# %% [markdown]
# “分配器节省多少”没有一个统一的数字：要说明是哪张图。还要留意这是谁的比例：只是中间结果的，不包括权重和缓存。

# %% [markdown]
# ## 在 llama.cpp 里
#
# `src/llama-context.cpp` 里的 `llama_context::sched_reserve` 和 `graph_reserve`；规划在 `ggml/src/ggml-alloc.c` 的 `ggml_gallocr_reserve_n_impl`。启动时它打印 `CPU compute buffer size`。同一个模型，同样的参数：

# %%
for n_ctx, n_ubatch in ((512, 512), (2048, 1)):
    context = vg.load_model("smollm2").context(
        n_ctx=n_ctx, n_ubatch=n_ubatch, flash_attn=False, n_threads=1
    )
    theirs = lessons.golden(f"smollm2.compute.plain.{n_ctx}x{n_ubatch}")
    print(f"n_ubatch {n_ubatch}")
    print(f"    ours:      {context.compute_buffer_size:>11,} bytes")
    print(f"    llama.cpp: {theirs:>11,} bytes")

# %% [markdown]
# 512 个 token 时，是什么占了这么多？问问峰值处有谁活着：

# %%
found = ggml.graph_liveness(step_graph("smollm2", 512))
at_peak = found.at(found.bound_at)
for life in sorted(at_peak, key=lambda life: -life.size)[:3]:
    print(f"{life.tensor.name:>12} {life.size:>12,} bytes")

# %% [markdown]
# 是每个 token 的 logits，以防你全都要：库的默认设置就是这样。几乎整个缓冲区，都留给了多数程序碰不到的情况。用不着这么多的程序，可以设 `llama_context_params` 里的 `n_outputs_max`，`llama-server` 就是这样做的。

# %% [markdown]
# ## 改一改，看一看
#
# 一步里的 token 数。规划随之变大；看节省的比例变不变。

# %%
n_tokens = 128

# %%
for n in (1, n_tokens):
    step = step_graph("tiny", n)
    size, share = planned(step), saved(step)
    print(f"{n:>4} tokens: {size:>10,} bytes, {share:.1%} saved")

# %% [markdown]
# ## 练习
#
# 把 `...` 换成你的答案。答错会得到提示；`lessons.solution("07.1")` 打印解答。
#
# **07.1** 四个结果，写成（出生，死亡，大小），两端的位置都包括在内：(0, 2, 64)、(1, 3, 32)、(2, 4, 96)、(4, 5, 128)。所需内存的下界是多少？

# %%
answer = ...
lessons.check("07.1", answer)

# %% [markdown]
# **07.2** 一个模型每层的结果有 10 MB；不论多少层，规划都占 4 MB。从多少层起，规划能节省 95%？

# %%
answer = ...
lessons.check("07.2", answer)

# %% [markdown]
# **07.3** 写一个函数 `plan(lives)`。参数是按出生顺序排列的 (born, died, size) 列表，返回偏移的列表。在某个位置同时存活的结果不能共用任何字节。占用不能比上面的 `place` 多。它会在好几个列表上试用。

# %%
answer = ...
lessons.check("07.3", answer)

# %% [markdown]
# ## 接下来读什么
#
# - `ggml/src/ggml-alloc.c` 里的 `ggml_gallocr_alloc_graph_impl`：整个遍历，一页就够。我们的实现在 `vizggml/ggml/gallocr.py`，下界在 `liveness.py`。
# - 现在计算缓冲区已经很小。还有什么会随每个 token 增长？见[第 8 章：KV 缓存](08-kv-cache.ipynb)。
