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
# # 第 5 章：图分配器
#
# 小模型解码一步，也要算出几百个张量，其中大多数只在很短的时间里有用。如果每个都独占一块内存，计算缓冲区就会大上许多倍。所以在开始计算之前，ggml 的*图分配器*（`ggml_gallocr`）先把图走一遍，规划好每个张量放在哪里：一个张量的最后一个读者用完它，它的内存马上就能再用。
#
# 先在三个张量上手工走一遍，再看真实一步的图。

# %% [markdown]
# ## 三次分配
#
# 这张图是 `relu(W x + b)`。`W`、`x` 和 `b` 像权重一样，已有自己的内存。剩下三个结果，每个 8 字节：`wx`、`wx+b` 和 `out`。
#
# 为了得到教科书里的样子，先关掉 ggml 的两项做法：结果不能占用父节点的位置（`in_place=False`），偏移取 8 字节的倍数而不是 32。

# %%
import vizggml as vg
from vizggml import ggml, lessons


def relu_graph(weights_have_memory):
    c = ggml.Context(mem_size=1 << 20, no_alloc=True)
    W = c.new_tensor("F32", (3, 2), name="W")
    x = c.new_tensor("F32", (3,), name="x")
    b = c.new_tensor("F32", (2,), name="b")
    if weights_have_memory:
        ggml.alloc_ctx_tensors_from_buft(c, ggml.cpu_buffer_type())
    wx = ggml.mul_mat(c, W, x).set_name("wx")
    out = ggml.relu(c, ggml.add(c, wx, b).set_name("wx+b")).set_name(
        "out"
    )
    g = ggml.Graph(c)
    g.build_forward_expand(out)
    return g


g = relu_graph(weights_have_memory=True)
[node.name for node in g.nodes], [leaf.name for leaf in g.leafs]

# %%
galloc = ggml.GraphAllocator(
    ggml.cpu_buffer_type(alignment=8), in_place=False
)
with vg.record() as trace:
    galloc.reserve(g)

for sentence in trace.sentences("BlockChosen", "TensorFreed"):
    print(sentence)
print("the buffer has", galloc.get_buffer_size(), "bytes")

# %% [markdown]
# 前两个块取自 chunk 的末尾。然后 `wx` 被释放：不会再有人读它。它的 8 个字节成了偏移 0 处的空洞，而 `out` 正好需要 8 字节：*best fit，恰好*。三个张量，一共 16 字节。
#
# 一步一步走一遍，看 Memory map 里的空闲列表：0 处的块出现，又消失。

# %%
vg.view(trace, panes=["map", "timeline", "events"])

# %% [markdown]
# ## ggml 实际怎么做
#
# 现在照 ggml 的做法来。偏移是 32 的倍数；`ADD` 和 `UNARY` 属于可以直接写在自己父节点上的那些 op，只要没有别人还需要这个父节点。

# %%
g = relu_graph(weights_have_memory=False)
galloc = ggml.GraphAllocator(ggml.cpu_buffer_type())
with vg.record() as trace:
    galloc.alloc_graph(g)

for tensor in (*g.leafs, *g.nodes):
    print(f"{tensor.name:>5} at {tensor.data.offset:>3}")
print("the buffer has", galloc.get_buffer_size(), "bytes")

# %% [markdown]
# `wx`、`wx+b` 和 `out` 共用一个位置。原因写在事件里：

# %%
for sentence in trace.sentences("ParentReused", "ParentRefused"):
    print(sentence)

# %% [markdown]
# ## 真实的一步解码
#
# 还是这个分配器，这次用在 tiny 模型为一批 32 个 token 建的图上。先丢掉前面的小图，让录制里只有这一个规划。

# %%
g = tensor = None
model = vg.load_model("tiny")
context = model.context(
    n_ctx=256, n_ubatch=32, flash_attn=False, n_threads=1
)
step = context.step_graph(32)
galloc = ggml.GraphAllocator(ggml.cpu_buffer_type())
with vg.record() as trace:
    galloc.reserve(step)

own = sum(t.nbytes for t in step.nodes if t.view_src is None)
print(
    f"{len(step.nodes)} nodes; {own:,} bytes if each had its own memory, {galloc.get_buffer_size():,} as planned"
)

# %%
vg.view(trace, panes=["timeline", "map", "events"])

# %% [markdown]
# 时间线上，各层的图样重复出现：第一层释放的，第二层接着用。那四座“塔”是前馈网络：`ffn_gate`、`ffn_up` 和 `ffn_swiglu` 同时存在，每个的宽度都是其他张量的三倍，峰值就由它们构成。底部的长条是输入和残差流，每一层都要用到。
#
# ## 改一改再看
#
# 1. `ggml.GraphAllocator(ggml.cpu_buffer_type(), in_place=False)`：就地复用在这里省了多少？
# 2. `flash_attn=True`：哪些矩形不见了？
# 3. `context.step_graph(1)`：哪些张量随批的大小缩小，哪些不变？

# %% [markdown]
# ## 练习
#
# 把答案写在三个点的位置。答错了会有提示；`lessons.solution("05.1")` 显示解答。
#
# **05.1** 一条链上有三个结果，大小依次是 96、32 和 64 字节：第二个由第一个算出，第三个由第二个算出。都不就地写，偏移取 32 的倍数。缓冲区要占多少字节？

# %%
answer = ...
lessons.check("05.1", answer)
