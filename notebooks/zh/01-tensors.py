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
# # 第 1 章：张量
#
# 在[导览](00-tour.ipynb)里你一步步走过了一层，在一次次乘法之间反复遇到 `RESHAPE`、`PERMUTE` 和 `VIEW`：注意力头和 token 换了位置，行和列换了位置。这些操作在一步计算里占多大比重？

# %%
import numpy as np

import vizggml as vg
from vizggml import ggml, lessons

REARRANGING = ("RESHAPE", "VIEW", "PERMUTE", "TRANSPOSE")


def step(name, n_tokens, **params):
    """The op of each node of a step, and the bytes of its result."""
    context = vg.load_model(name).context(n_threads=1, **params)
    nodes = context.step_graph(n_tokens).nodes
    return [(t.op, t.nelements * t.type.type_size) for t in nodes]


nodes = step("tiny", 32, n_ctx=256, n_ubatch=32, flash_attn=False)
sizes = [size for op, size in nodes if op in REARRANGING]
print(f"{len(sizes)} of the {len(nodes)} nodes of a step only rearrange;")
print(f"their results hold {sum(sizes):,} bytes.")

# %% [markdown]
# 这些字节，ggml 一个也没有移动。想知道怎么做到的，先忘掉矩阵：内存只有一维。

# %% [markdown]
# ## 手写步长
#
# 取 12 个字节，再加两组数。`ne` 是每一维有多少个元素；`nb` 是要走到这一维的下一个元素，得跨过多少字节，也就是**步长**（stride）。元素 `(i0, i1)` 在第 `i0 * nb[0] + i1 * nb[1]` 个字节。

# %%
memory = bytes(range(12))


def show(ne, nb):
    for i1 in range(ne[1]):
        row = [memory[i0 * nb[0] + i1 * nb[1]] for i0 in range(ne[0])]
        print(*(f"{value:3}" for value in row))


show(ne=(4, 3), nb=(1, 4))

# %% [markdown]
# 同样的字节，看成 2 行、每行 6 个：这就是 *reshape*。

# %%
show(ne=(6, 2), nb=(1, 6))

# %% [markdown]
# 再看第一个矩阵，行列互换：这就是**转置**。把两个长度对调，两个步长也对调。

# %%
show(ne=(3, 4), nb=(4, 1))

# %% [markdown]
# 隔一列取一列：步长变长就行。

# %%
show(ne=(2, 3), nb=(2, 4))

# %% [markdown]
# 四个矩阵，没有一个字节动过：`memory` 是 `bytes`，想写也写不了。第五个由你来写。步长为 0 会得到什么？

# %%
show(ne=(4, 3), nb=(0, 4))

# %% [markdown]
# ## ggml 的张量
#
# `ggml_tensor` 就是这些东西：四个 `ne`，四个以字节为单位的步长 `nb`，一个类型，以及首元素的地址。它永远是四维，没有写出来的维都是 1。

# %%
c = ggml.Context(mem_size=1 << 20)
with vg.record() as trace:
    a = c.new_tensor("F32", (4, 3), name="a").set(range(12))
    r = ggml.reshape_2d(c, a, 6, 2).set_name("r")
    t = ggml.transpose(c, a).set_name("t")

for x in (a, r, t):
    print(x.name, "ne", x.ne, "nb", x.nb, "at", x.data.offset)

# %% [markdown]
# 三个张量从同一个字节开始：`at` 从 `c` 的内存开头数起，那片内存到[第 3 章](03-memory.ipynb)再讲。
#
# 播放器停在最后一步，按 **←** 往回走。*Tensor* 面板画出行走的路线：每个方格是一个元素，里面写着它从第几个字节开始，连线按字节的先后把元素串起来。拿 `t` 和 `a` 比一比：到右边的邻居要走多远，到下面的呢？

# %%
vg.view(trace, panes=["tensor"], step=len(trace) - 1, height=740)

# %% [markdown]
# ## 哪一维在前？
#
# 在 ggml 里，`ne[0]` 是元素彼此相邻的那一维，也就是**一行的长度**。NumPy 把它写在最后。内存完全相同，只是这串数从另一头读起。

# %%
print("ggml's ne:     ", a.ne)
print("NumPy's shape: ", a.array().shape)
print("its strides:   ", a.array().strides)
print(a.array()[0, 0])

# %% [markdown]
# 所以日志里写成 `[576, 1536]` 的权重，是 1,536 行，每行 576 个数。`mul_mat` 要的正是这种排列：两个操作数都按长度为 `ne[0]` 的行存放，结果的每个元素是两行的点积，两行都从左到右连续地读。所以 `mul_mat(a, b)` 不是 NumPy 的 `a @ b`，虽然常有人这样解释；它是 `b @ a.T`。

# %%
b = c.new_tensor("F32", (4, 2), name="b").set(range(8))
g = ggml.Graph(c)
product = ggml.mul_mat(c, a, b)
g.build_forward_expand(product)
ggml.graph_compute(g, ggml.graph_plan(g, n_threads=1))

expected = b.array()[0, 0] @ a.array()[0, 0].T
print("ne:", product.ne)
same = np.array_equal(product.array()[0, 0], expected)
print("the same as b @ a.T:", same)

# %% [markdown]
# ## permute 里的陷阱
#
# `permute` 可以一次调换好几维。ggml 的参数说的是**每一维到哪里去**：第 `i` 维变成第 `axes[i]` 维。NumPy 的 `transpose` 说的是**每一维从哪里来**。如果只是两维对调，比如 (0, 2, 1, 3)，两种说法一样；如果是轮换，就不一样了。

# %%
heads = c.new_tensor("F32", (64, 4, 32), name="heads")
axes = (1, 2, 0, 3)
print("heads:                   ", heads.ne)
print("ggml.permute(1, 2, 0, 3):", ggml.permute(c, heads, *axes).ne)
print("NumPy's rule, same list: ", tuple(heads.ne[i] for i in axes))

# %% [markdown]
# ## 什么时候必须复制
#
# 任何维度的调换，都能用步长表达。那么，转置过的矩阵能再 reshape 吗？逐行读 `t`，记下经过的字节。

# %%
n0, n1 = t.ne[:2]
s0, s1 = t.nb[:2]
passed = [i0 * s0 + i1 * s1 for i1 in range(n1) for i0 in range(n0)]
print("bytes:", *passed)
print("steps:", *np.diff(passed))

# %% [markdown]
# 排成一行 12 个，只能有一个步长；这里却要两个，其中一个还是倒着走。不复制就做不到。遇到这种情况，NumPy 一声不响地复制一份；ggml 则拒绝：`ggml_reshape` 断言它的来源是**连续的**（contiguous），也就是说，凡是有步可走的维，步长都和一个同样形状的新张量相同。

# %%
copied = t.array().reshape(12)
shared = np.shares_memory(copied, a.array())
print("NumPy's reshape still shares memory with a:", shared)
try:
    ggml.reshape_1d(c, t, 12)
except vg.VizggmlError as error:
    print("ggml:", error)

# %% [markdown]
# 在 ggml 里，复制要你自己提出来。`cont` 造一个有自己字节的张量，它是图里一个真要计算的节点：按 `t` 读取的顺序，把元素搬到一起。

# %%
with vg.record() as trace:
    together = ggml.cont(c, t).set_name("cont")
    row = ggml.reshape_1d(c, together, 12).set_name("row")
    g = ggml.Graph(c)
    g.build_forward_expand(row)
    ggml.graph_compute(g, ggml.graph_plan(g, n_threads=1))

print("row:", *row.array().ravel().astype(int))
for x in (a, t, together, row):
    fresh = "contiguous" if x.is_contiguous() else "not contiguous"
    print(f"{x.name:>4}  at {x.data.offset:>5}  nb {x.nb}  {fresh}")

# %% [markdown]
# 三个都是图的节点。计算的时候，其中哪些无事可做？

# %%
lessons.tell(*trace.sentences("NodeSkipped"))

# %% [markdown]
# 播放器停在造出 `cont` 的那一步。把它的路线和上面 `t` 的比一比。往前走到 `row`，再一直走到最后，就能看到各个节点依次轮到。

# %%
made = trace.steps("OpRecorded")[-2]
vg.view(trace, panes=["tensor"], step=made, height=740)

# %% [markdown]
# ## 步长不一定是一个元素
#
# 在量化类型里，若干个权重（有的类型 32 个，有的 256 个）合成一个**块**（block），块是有地址的最小单位。这时 `nb[0]` 是一个块的大小。一个 `Q4_0` 块用 18 个字节存 32 个权重，所以一行 64 个权重是两块。

# %%
q = c.new_tensor("Q4_0", (64, 3), name="q")
print("ne", q.ne, "nb", q.nb, "bytes", q.nbytes)

# %% [markdown]
# 单个权重没有自己的字节，谁也没法沿着一列走下去。（不论什么类型，`ggml_mul_mat` 都断言第一个操作数没有转置过。[第 10 章](10-quantization.ipynb)会打开这样一个块。）

# %%
vector = c.new_tensor("F32", (3, 1))
try:
    ggml.mul_mat(c, ggml.transpose(c, q), vector)
except vg.VizggmlError as error:
    lessons.tell(error)

# %% [markdown]
# ## 在 llama.cpp 里
#
# `src/llama-graph.cpp` 的 `llm_graph_context::build_attn_mha` 用 (0, 2, 1, 3) 调换 q、k、v：从“一个 token 的所有头”变成“一个头的所有 token”。算完注意力再换回来，这一层唯一的 `CONT` 就在这里：`ggml_cont_2d`。用 flash attention 时，kernel 直接按正确的顺序写出结果，于是一个 `CONT` 也不剩。
#
# 在真实模型 SmolLM2 的图里数一数（这个单元格要跑几秒钟），旁边是 llama.cpp 自己建的图。

# %%
for mode, flash in (("plain", False), ("flash", True)):
    nodes = step("smollm2", 17, n_ctx=512, n_ubatch=512, flash_attn=flash)
    copies = sum(op == "CONT" for op, size in nodes)
    theirs = lessons.golden(f"smollm2.cont.{mode}")
    of = lessons.golden(f"smollm2.nodes.{mode}")
    print(
        f"{mode} attention: {copies} CONT in {len(nodes)} nodes;",
        f"llama.cpp: {theirs} in {of}",
    )

# %% [markdown]
# ## 改一改，看一看
#
# 改动 `axes`，然后运行下面两个单元格。看 `nb`：从左到右还是递增的吗？看 *Tensor* 面板里的路线，和下面 *contiguous*、*permuted*、*transposed* 三个标记。24 种顺序里，除了 (0, 1, 2, 3)，还有哪些使这个张量仍然连续，为什么？（练习 01.4 换个方式问同一件事。）

# %%
axes = (0, 2, 1, 3)

# %%
c = ggml.Context(mem_size=1 << 20)
with vg.record() as trace:
    x = c.new_tensor("F32", (4, 2, 3), name="x")
    p = ggml.permute(c, x, *axes).set_name("p")
print("ne", p.ne, "nb", p.nb, "contiguous:", p.is_contiguous())
vg.view(trace, panes=["tensor"], step=len(trace) - 1, height=740)

# %% [markdown]
# ## 练习
#
# 把 `...` 换成你的答案。答错会得到提示；`lessons.solution("01.1")` 打印解答。
#
# **01.1** 一个 `F16` 张量（每个元素 2 字节），`ne` 是 (64, 9, 5, 1)，没有空隙。它的 `nb` 是什么？写四个数。

# %%
answer = ...
lessons.check("01.1", answer)

# %% [markdown]
# **01.2** `m` 是 `F32`，`ne` 是 (8, 5)。`ggml.transpose(c, m)` 的元素 `(i0, i1) = (3, 2)` 在第几个字节？从首字节数起，首字节是 0。

# %%
answer = ...
lessons.check("01.2", answer)

# %% [markdown]
# **01.3** `ggml.permute` 用哪四个参数，能把 (64, 9, 5, 1) 变成 (5, 64, 9, 1)？

# %%
answer = ...
lessons.check("01.3", answer)

# %% [markdown]
# **01.4** 写一个函数 `contiguous(ne, nb, size)`，判断一个每元素 `size` 字节的张量是否连续，把这个函数作为答案。它会在好几个张量上试用。留意只有一个元素的维：谁也不会沿着它走一步。

# %%
answer = ...
lessons.check("01.4", answer)

# %% [markdown]
# ## 接下来读什么
#
# - `ggml/src/ggml.c` 里的 `ggml_new_tensor_impl`、`ggml_permute` 和 `ggml_is_contiguous_m_n`：都很短，里面已经没有你没见过的东西。我们的实现在 `vizggml/ggml/context.py`、`ops_view.py` 和 `tensor.py`。
# - 视图的视图的视图：字节在哪里，归谁所有？见[第 2 章：视图](02-views.ipynb)。
