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
# # 第 4 章：延迟执行与图的复用
#
# 张量会建了（[第 1 章](01-tensors.ipynb)），视图会用了（[第 2 章](02-views.ipynb)），内存也会分了（[第 3 章](03-memory.ipynb)）。接下来你想让许多张量共用同一块内存。要把一块地方让出去，就得知道以后再没有人读它；而算到一半时，谁也不知道后面还有什么。NumPy 读到一行就算一行，代价是这样的：

# %%
import tracemalloc

import numpy as np

import vizggml as vg
from vizggml import ggml, lessons

v = np.ones(1_000_000, np.float32)
tracemalloc.start()
a = v + 1
b = a * 2
y = b - 3
held, peak = tracemalloc.get_traced_memory()
tracemalloc.stop()
print(f"the result: {y.nbytes:,} bytes")
print(f"held:       {held:,} bytes, {held / y.nbytes:.1f} times as many")

# %% [markdown]
# Python 无从知道 `a` 和 `b` 已经没用了：说不定下一行就要读。ggml 想先看到整个计算。所以写下计算的时候，什么都不能算。

# %% [markdown]
# ## 只写标签，不算结果
#
# 推迟计算很容易：每个操作只返回一张标签，写明**将要**做什么、对谁做。

# %%
OPS = {"add": np.add, "mul": np.multiply}


def label(op, *src):
    return {"op": op, "src": src}


def compute(t):
    if t["op"] is None:
        return t["value"]
    return OPS[t["op"]](*map(compute, t["src"]))


x = {"op": None, "value": np.array([1.0, 2.0])}
y = label("mul", label("add", x, x), x)
print("before:  ", y["op"], "of", [s["op"] for s in y["src"]])
print("computed:", compute(y))

# %% [markdown]
# ggml 的构建函数正是如此。`ggml_add` 一个数也不加：它在 arena 里追加一个张量，填好 `op` 和 `src`，就返回了。开了 `no_alloc`，连可供计算的字节都没有。所以，任何笔记本电脑的内存都装不下的乘法，也照样写得下来：

# %%
c = ggml.Context(mem_size=1 << 16, no_alloc=True)
with vg.record() as trace:
    W = c.new_tensor("F32", (100_000, 100_000), name="W")
    x = c.new_tensor("F32", (100_000,), name="x")
    wx = ggml.mul_mat(c, W, x).set_name("wx")
    y = ggml.relu(c, wx).set_name("y")

described = sum(t.nbytes for t in (W, x, wx, y))
print(f"described: {described:,} bytes of numbers")
print(f"in arena:  {c.used_mem:,} bytes of records")
print("y:  op", y.op, " src", [s.name for s in y.src], " data", y.data)

# %% [markdown]
# `data None`：谁也没有算过什么，结果也没有地方放。一步步走一遍。每个构建函数往 arena 里追加一个对象，此外什么也没发生。

# %%
vg.view(trace, panes=["arena", "events"])

# %% [markdown]
# ## 一张菜谱，反复使用
#
# 你写下的是一张菜谱：原料放在哪里写明了，原料是什么没有写。算一次，往输入里写别的数，再算同一张图：不用重建任何东西。

# %%
c = ggml.Context(mem_size=1 << 20)
x = c.new_tensor("F32", (3,), name="x")
y = ggml.sqr(c, x).set_name("y")
g = ggml.Graph(c)
g.build_forward_expand(y)
plan = ggml.graph_plan(g, n_threads=1)
for numbers in ([1, 2, 3], [10, 20, 30]):
    x.set(numbers)
    ggml.graph_compute(g, plan)
    print(numbers, "->", y.array().ravel())

# %% [markdown]
# 记住这一点，本章后半要用。

# %% [markdown]
# ## 原地：你说了算
#
# 计算既然事先写好，也就可以写明：结果直接盖在来源上。`ggml.sqr_inplace` 返回来源的一个**视图**，结果没有自己的字节。这等于你保证以后没有人再读来源；ggml 不检查。下面就违背了这个保证：最后一行又读了 `x`。


# %%
def squared_plus_itself(square):
    c = ggml.Context(mem_size=1 << 20)
    x = c.new_tensor("F32", (3,), name="x").set([1, 2, 3])
    out = ggml.add(c, square(c, x), x)
    g = ggml.Graph(c)
    g.build_forward_expand(out)
    ggml.graph_compute(g, ggml.graph_plan(g, n_threads=1))
    return out.array().ravel()


print("sqr:         ", squared_plus_itself(ggml.sqr))
print("sqr_inplace: ", squared_plus_itself(ggml.sqr_inplace))

# %% [markdown]
# 第二行是错的，却没有任何报错：它拿平方加了平方。

# %% [markdown]
# ## 原地：分配器判断可行才做
#
# 所以 llama.cpp 的模型代码几乎从不写 `_inplace`，只写普通的操作；图分配器看过整张菜谱，由它决定。对每个节点，它依次问每个来源：结果能放在你的位置上吗？
#
# 让它自己说出理由。下面的小图里，`w` 是权重，有自己的内存；`i` 是输入，位置由规划来找；请看节点 `n`。


# %%
def asked(build):
    c = ggml.Context(mem_size=1 << 20, no_alloc=True)
    w = c.new_tensor("F32", (8, 8), name="w")
    ggml.alloc_ctx_tensors_from_buft(c, ggml.cpu_buffer_type())
    i = c.new_tensor("F32", (8, 8), name="i")
    g = ggml.Graph(c)
    g.build_forward_expand(build(c, w, i))
    galloc = ggml.GraphAllocator(ggml.cpu_buffer_type())
    with vg.record() as trace:
        galloc.reserve(g)
    answers = trace.sentences("ParentReused", "ParentRefused")
    lessons.tell(*(told for told in answers if told.startswith("n ")))
    return trace


# %% [markdown]
# **op**：它必须能一边读一边盖掉所读的东西，逐个元素或者逐行（`ggml_op_can_inplace` 列出了这样的 op）。矩阵乘法要反复读各行，不行。


# %%
def product(c, w, i):
    return ggml.mul_mat(c, w, i).set_name("n")


_ = asked(product)

# %% [markdown]
# **内存归谁**：来源必须在规划可以分配的内存里。权重不是；那就问下一个来源。


# %%
def weight_first(c, w, i):
    return ggml.add(c, w, i).set_name("n")


_ = asked(weight_first)

# %% [markdown]
# **输出**：全部算完之后，你还要读它。


# %%
def output(c, w, i):
    p = ggml.sqr(c, i).set_name("p").set_output()
    return ggml.scale(c, p, 2.0).set_name("n")


_ = asked(output)

# %% [markdown]
# **布局**：类型、形状和步长都必须与结果相同。下面是把一行 `p` 加到 `w` 的每一行上。


# %%
def one_row(c, w, i):
    row = c.new_tensor("F32", (8,), name="row")
    return ggml.add(c, w, ggml.sqr(c, row).set_name("p")).set_name("n")


_ = asked(one_row)

# %% [markdown]
# **别的读者**：`n` 必须是最后一个读它的。这里后面的加法还要读 `p`。


# %%
def read_again(c, w, i):
    p = ggml.sqr(c, i).set_name("p")
    return ggml.add(c, ggml.scale(c, p, 2.0).set_name("n"), p)


_ = asked(read_again)

# %% [markdown]
# **视图**：也不能还有视图等着别人来读。


# %%
def viewed(c, w, i):
    p = ggml.sqr(c, i).set_name("p")
    row = ggml.view_1d(c, p, 8, 0).set_name("row of p")
    return ggml.mul_mat(c, row, ggml.scale(c, p, 2.0).set_name("n"))


trace = asked(viewed)

# %% [markdown]
# 把最后这张图走一遍。`i` 只有 `p` 一个读者，所以 `p` 占了它的位置：两者都活着的时候，矩形叠在一起，颜色更深。`n` 不能跟着放进去，只好另占一处。

# %%
vg.view(trace, panes=["timeline", "events"])

# %% [markdown]
# ## 建图没有开销吗？
#
# 一条记录很小，但一个模型有很多条；而且每一步的图在计算之前要先建、遍历、安排位置。和计算相比，这要多久？（时间每次不同；这个单元格要跑几秒钟。）

# %%
import time


def fastest(work, times=12):
    took = []
    for _ in range(times):
        begin = time.perf_counter()
        work()
        took.append(time.perf_counter() - begin)
    return min(took) * 1e3


def time_a_step():
    context = vg.load_model("tiny").context(n_ctx=512, n_threads=1)
    context.decode([5])
    graph = context.step_graph(1)
    galloc = ggml.GraphAllocator(ggml.cpu_buffer_type())
    built = fastest(context.step_graph)
    planned = fastest(lambda: galloc.reserve(graph))
    computed = fastest(lambda: context.decode([5]))
    print(f"build the graph  {built:.1f} ms")
    print(f"plan its places  {planned:.1f} ms")
    print(f"compute it       {computed:.1f} ms")


time_a_step()

# %% [markdown]
# Python 建图比 C++ 慢得多，tiny 模型要算的又少，所以这里的比重是夸大了的。但在 C++ 里，这也是每个 token 都要做的事，而且多半白做：下一个 token 的图，建出来还是一样。

# %% [markdown]
# ## 图能再用一次吗？
#
# 菜谱里没有 token，也没有位置：这些都写在输入张量里。所以下一个 token 可以用同一张图，**只要重建出来还是同样的图**。`can_reuse` 逐条判断。让它自己说：

# %%
context = vg.load_model("tiny").context(
    n_ctx=512, n_seq_max=2, n_threads=1
)


def decode(batch, outputs=None):
    with vg.record() as trace:
        context.decode(batch, outputs)
    lessons.tell(*trace.sentences("ReuseDecided"))
    return trace


prompt = context.vocab.tokenize("Once upon a time there was")
decode(prompt)
decode([5])
trace = decode([7])

# %% [markdown]
# 多个 token 的提示词和单个 token 不能共用一张图，两次单个 token 可以。下面的面板列出每个条件：现有的图当初是什么，这次需要什么。

# %%
kinds = [type(event).__name__ for event in trace.events]
decided = kinds.index("ReuseDecided")
vg.view(trace, panes=["reuse"], step=decided, height=780)

# %% [markdown]
# ## 逐个打破
#
# **token 的个数**：从一个变成两个。结果里每个 token 占一行，所以几乎每个结果都变了。

# %%
_ = decode([5, 7])

# %% [markdown]
# **输出的个数**：还是两个 token，但这次两个的 logits 你都要。最后一层只算要输出的那些行。

# %%
_ = decode([5, 7], outputs=[0, 1])

# %% [markdown]
# **没有输出**：这样的图另存一份。但检查时永远只看最近算过的那张图：另一张图的位置，早已给了别人。

# %%
_ = decode([5, 7], outputs=[])
_ = decode([5, 7], outputs=[0, 1])

# %% [markdown]
# **序列**：两个 token，分别是两段对话的下一个 token。这里看的是有**几个**不同的序列。（这里所有序列共用一个缓存，相当于 llama.cpp 的 `--kv-unified`。如果每个序列各有一个 stream，还要看是**哪几个**序列。）

# %%
from vizggml.llama.batch import Batch

batch = Batch()
batch.add(5, context.n_past, (0,), output=True)
batch.add(7, 0, (1,), output=True)
_ = decode(batch)

# %% [markdown]
# **缓存变大**：图并不看整个缓存，只看开头的一部分 cell，按 256 递增。把这些 cell 填满：每次批次的参数都一样，却总有一个 token 需要新的图。

# %%
while context.memory.caches[0].cells.used < 255:
    context.decode([5])
_ = decode([5])
trace = decode([5])
_ = decode([5])

# %% [markdown]
# 假如只比较批次，第 257 个 token 就会用 256 列的 mask 来算：它看不到自己。所以每个**输入**也要问一遍。这里最后说了算的是 `InputAttnKV`：

# %%
checked = trace.sentences("ReuseChecked")
lessons.tell(*(told for told in checked if "must be" in told))

# %% [markdown]
# ## 在 llama.cpp 里
#
# 这些条件在 `llm_graph_params::allow_reuse`（`src/llama-graph.h`）和各个输入的 `can_reuse`（`src/llama-graph.cpp`）里；作决定的是 `llama_context::process_ubatch`（`src/llama-context.cpp`）。llama.cpp 会计数：最后的计时信息里有一行 `graphs reused`。环境变量 `LLAMA_GRAPH_REUSE_DISABLE=1` 关掉复用，可以量一量它省了多少。
#
# 一个真实的模型，每次不能复用时，llama.cpp 为一个 token 要建这么多节点：

# %%
for mode in ("plain", "flash"):
    nodes = lessons.golden(f"smollm2.nodes.{mode}")
    print(f"SmolLM2, {mode} attention: {nodes:,} nodes")

# %% [markdown]
# 下面是它在 tiny 模型上为哪些 token 重建了图：先是 250 个 token 的提示词，然后每次一个。前一个，因为这一步不再是 250 个 token 宽；后一个，因为图所看到的 cell 里已经没有空的了。

# %%
print("llama.cpp built anew for", lessons.golden("tiny.anew.250"))

# %% [markdown]
# 有一种流行的说法：图只建一次，整场对话一直用它。你已经看到并非如此：只要有一个条件不再满足，就得重建。另外，复用的是图**连同各张量的位置**。新建的图要重新给定位置；但不一定要重新规划，更少需要新的缓冲区（见[第 7 章](07-plan.ipynb)）。

# %% [markdown]
# ## 改一改，看一看
#
# 在我们的引擎里看同一件事。`n_prompt` 是提示词的长度：看之后的第几个 token 让图重建。试试 100、255、256。

# %%
n_prompt = 250

# %%
context = vg.load_model("tiny").context(n_ctx=512, n_threads=1)
context.decode([5] * n_prompt)
anew = []
for k in range(1, 13):
    before = context.n_reused
    context.decode([5])
    if context.n_reused == before:
        anew.append(str(k))
print(f"after a prompt of {n_prompt}, built anew for", ", ".join(anew))

# %% [markdown]
# ## 练习
#
# 把 `...` 换成你的答案。答错会得到提示；`lessons.solution("04.1")` 打印解答。
#
# **04.1** 在开了 `no_alloc` 的 context 里，建两个 1,000 x 1,000 的 `F32` 张量 `a` 和 `b`，再写 `ggml.relu(c, ggml.add(c, a, b))`。arena 用了多少字节？一个张量的记录占 336 字节，装它的对象头另占 32 字节。

# %%
answer = ...
lessons.check("04.1", answer)

# %% [markdown]
# **04.2** `i` 是一个输入，在规划的内存里。然后：`p = sqr(i)`，`q = scale(p, 2)`，`r = add(q, p)`，`s = mul_mat(r, r)`，`t = scale(s, 3)`；都是同样大小的方阵，`t` 是结果。五个结果里，哪些占用了来源的位置？写成字母组成的字符串，比如 `"pq"`。

# %%
answer = ...
lessons.check("04.2", answer)

# %% [markdown]
# **04.3** 提示词有 200 个 token，`n_ctx` 是 1024，之后每次一个 token。第一个需要新的图，因为它是一个 token，不是 200 个。下一个需要新图的是第几个？

# %%
answer = ...
lessons.check("04.3", answer)

# %% [markdown]
# **04.4** 写一个函数 `can_reuse(had, now)`。两个参数都是字典，含有 `tokens` 和 `positions`（列表）、`sequences`（列表，每个 token 一个编号）、`n_outputs`，以及 `n_kv`（图看到的 cell 数）。返回值：为 `had` 建的图，能否用于 `now`。会用好几对批次来检验它。

# %%
answer = ...
lessons.check("04.4", answer)

# %% [markdown]
# ## 接下来读什么
#
# - `ggml/src/ggml.c` 里的 `ggml_add_impl`：一个构建函数，只有几行。`ggml/src/ggml-alloc.c` 里的 `ggml_op_can_inplace` 和 `ggml_gallocr_allocate_node`。我们的实现在 `vizggml/ggml/op_record.py` 和 `gallocr.py`。
# - `src/llama-graph.cpp` 里的 `llm_graph_result::can_reuse`。我们的实现在 `vizggml/llama/graph_input.py`。
# - 结果如果占不到来源的位置，谁来给它找地方？见[第 5 章：分配器](05-galloc.ipynb)。
