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
# # 第 6 章：图与顺序
#
# [第 5 章](05-galloc.ipynb)的分配器是“按执行顺序”走过各个节点的。谁定的顺序？你从来没有给过。你只写下了一条条记录（[第 4 章](04-deferred.ipynb)），每条指向自己的来源，最后手里握着一个张量：结果。为了它要算哪些，先算哪个？

# %% [markdown]
# ## 顺着箭头走
#
# 从结果走到它的来源，再走到来源的来源；从一个张量**返回**的时候把它写下来：这时它需要的都已经写好了。这就是深度优先遍历，全部代码如下：

# %%
needs = {
    "out": ["sum", "x"],
    "sum": ["a", "b"],
    "a": ["x"],
    "b": ["x"],
    "x": [],
}


def visit(t, order):
    for source in needs[t]:
        visit(source, order)
    order.append(t)
    return order


print(visit("out", []))

# %% [markdown]
# 结果正确，但 `x` 出现了三次：有三条路通向它。三条不算什么。现在让一个张量加它自己，结果再加它自己，如此十六次：

# %%
needs = {f"t{k}": [f"t{k - 1}"] * 2 for k in range(1, 17)} | {"t0": []}
visits = len(visit("t16", []))
print(f"{visits:,} visits to {len(needs)} tensors")

# %% [markdown]
# 每多一个张量，工作量就翻一番。所以要记住遇到过谁：


# %%
def visit_once(t, order, seen):
    if t not in seen:
        seen.add(t)
        for source in needs[t]:
            visit_once(source, order, seen)
        order.append(t)
    return order


print(f"{len(visit_once('t16', [], set()))} visits")

# %% [markdown]
# `ggml_cgraph` 里有一个哈希集合（hash set），就是为了带 `seen` 的那两行。（它的槽还用来查为张量保存的东西：使用计数、梯度。）

# %% [markdown]
# ## ggml 的遍历
#
# 第一个例子，换成 ggml。不由任何 op 算出的张量是**叶子**（leaf），其余是**节点**（node）。

# %%
import vizggml as vg
from vizggml import ggml, lessons

c = ggml.Context(mem_size=1 << 20, no_alloc=True)
x = c.new_tensor("F32", (4,), name="x")
a = ggml.sqr(c, x).set_name("a")
b = ggml.relu(c, x).set_name("b")
total = ggml.add(c, a, b).set_name("sum")
out = ggml.mul(c, total, x).set_name("out")

g = ggml.Graph(c, 8)
with vg.record() as trace:
    g.build_forward_expand(out)
print("leafs:", [t.name for t in g.leafs])
print("nodes:", [t.name for t in g.nodes])

# %% [markdown]
# 一步步走：往下走到 `x`，再返回，再走另一条路。一条路通到已知的张量时，它会说明，并立刻掉头。

# %%
vg.view(trace, panes=["graph", "events"])

# %% [markdown]
# 不用播放器，把同样的过程打印出来：

# %%
walk = ("VisitEnter", "AlreadyVisited", "LeafAppended", "NodeAppended")
lessons.tell(*trace.sentences(*walk))

# %% [markdown]
# ## 哈希集合
#
# “这个张量见过吗？”要能立刻回答，不管有多少个张量。C 语言没有现成的 `set`。ggml 取记录的地址，除以 16，再对槽位数取余；如果那个槽里是别的张量，就看下一个槽。用 Python 写出来，地址按 arena 的样子，每 368 字节一条记录：

# %%
keys = [None] * 17


def find(address):
    slot = (address >> 4) % len(keys)
    while keys[slot] not in (None, address):
        slot = (slot + 1) % len(keys)
    return slot


for address in range(32, 32 + 6 * 368, 368):
    keys[find(address)] = address
print({slot: key for slot, key in enumerate(keys) if key is not None})

# %% [markdown]
# 相邻的两条记录隔 23 个槽（368 除以 16），一圈一圈地绕。槽位数是质数，所以要等所有的槽都占满，才会有两条碰到一起。ggml 从一张质数表里取：第一个不小于图的大小两倍的数。下面是上面那张图的槽位数，以及每个槽里是哪个张量：

# %%
print(f"size {g.size}, {g.hash_size} slots")
seats = enumerate(g.hash_keys)
print({slot: t.name for slot, t in seats if t is not None})

# %% [markdown]
# 两条记录的距离除以 16，如果是槽位数的倍数，就会冲突。我们来造一次：在两个要用的张量之间，放足够多的记录。

# %%
c = ggml.Context(mem_size=1 << 20, no_alloc=True)
first = c.new_tensor("F32", (4,), name="first")
for _ in range(10):
    c.new_tensor("F32", (4,))
late = c.new_tensor("F32", (4,), name="late")
g = ggml.Graph(c, 4)
with vg.record() as trace:
    g.build_forward_expand(ggml.add(c, first, late).set_name("out"))
print(f"{g.hash_size} slots")
lessons.tell(*trace.sentences("SlotTaken", "VisitEnter"))

# %% [markdown]
# （最先访问的 `out` 决定槽从哪里数起：我们没有真实的地址，假设所有记录都在一个长长的 arena 里。）一次冲突不过是多看几眼，答案不会因此出错：槽里存的是张量本身，不是它的哈希值。

# %% [markdown]
# ## 使用计数，以及它不管的事
#
# 遍历返回时，顺便数每个张量当了几次来源。`x * x` 算两次。

# %%
c = ggml.Context(mem_size=1 << 20, no_alloc=True)
x = c.new_tensor("F32", (4,), name="x")
square = ggml.mul(c, x, x).set_name("square")
out = ggml.add(c, square, x).set_name("out")
g = ggml.Graph(c)
with vg.record() as trace:
    g.build_forward_expand(out)
    ggml.GraphAllocator(ggml.cpu_buffer_type()).reserve(g)
print({t.name: g.use_count(t) for t in (*g.leafs, *g.nodes)})

# %% [markdown]
# 你也许读到过：图运行时，使用计数（use count）减到零的张量就会释放。其实 ggml 的使用计数从不减少。它是给后端用的：一个结果只用一次时，两个节点可以**融合**成一个（`ggml_can_fuse`，`ggml-impl.h`）。分配器自己另有计数（children 和 views），计算还没开始，就一路减到零了。下面停在规划快结束的地方：*children left* 已经减到 0，*uses* 没有动。往回走，可以看到它怎样减少。

# %%
kinds = [type(event).__name__ for event in trace.events]
freed = kinds.index("TensorFreed")
vg.view(trace, panes=["counts", "events"], step=freed, height=560)

# %% [markdown]
# 再验证一次：把图的计数改乱，规划仍旧不变。


# %%
def planned(g):
    galloc = ggml.GraphAllocator(ggml.cpu_buffer_type())
    return galloc.reserve_n_size(g)[0]


before = planned(g)
g.use_counts = [99] * g.hash_size
print("the same plan:", before == planned(g))

# %% [markdown]
# ## 环
#
# 构建函数只能以已有的张量为来源，所以箭头绕不成圈。但 `src` 只是一个普通字段。把一支箭头掰弯：让 `a` 去读由 `a` 算出来的东西。

# %%
c = ggml.Context(mem_size=1 << 20, no_alloc=True)
x = c.new_tensor("F32", (4,), name="x")
a = ggml.sqr(c, x).set_name("a")
b = ggml.add(c, a, x).set_name("b")
d = ggml.relu(c, b).set_name("d")
a.src[0] = d
try:
    ggml.Graph(c).build_forward_expand(d)
except vg.VizggmlError as error:
    print(error)

# %% [markdown]
# 在这一点上，我们的引擎比 ggml 严格。ggml 的遍历不检查：`d` 已在哈希集合里，它就掉头，给出的顺序里 `a` 排在它所需要的 `d` 之前。上面那个短短的 `visit_once` 也一样，一声不响：

# %%
needs = {"d": ["b"], "b": ["a", "x"], "a": ["d"], "x": []}
print(visit_once("d", [], set()))

# %% [markdown]
# ## 两种顺序，一个结果
#
# 遍历可以先走左边的来源，也可以先走右边的。两种顺序都合法，算出来的也一样。占的内存一样吗？
#
# `out` 需要两个结果。`slim` 来自一个很宽的张量，求和之后就变小了；`long` 则原样留着。


# %%
def two_branches(order, width=256, length=64):
    c = ggml.Context(mem_size=1 << 20, no_alloc=True)
    x = c.new_tensor("F32", (8,), name="x")
    ggml.alloc_ctx_tensors_from_buft(c, ggml.cpu_buffer_type())
    long = ggml.repeat_4d(c, x, length, 1, 1, 1).set_name("long")
    wide = ggml.repeat_4d(c, x, width, 1, 1, 1).set_name("wide")
    slim = ggml.sum_rows(c, wide).set_name("slim")
    g = ggml.Graph(c, 16)
    g.order = order
    g.build_forward_expand(ggml.concat(c, long, slim, 0).set_name("out"))
    return g


traces = {}
for order in ("left to right", "right to left"):
    g = two_branches(order)
    galloc = ggml.GraphAllocator(ggml.cpu_buffer_type())
    with vg.record() as traces[order]:
        galloc.reserve(g)
    print(f"{order}:", *(t.name for t in g.nodes))
    print(f"    {galloc.get_buffer_size():,} bytes")

# %% [markdown]
# 先左：`long` 躺在那里等它的同伴，`wide` 就在它旁边来了又走。

# %%
vg.view(traces["left to right"], panes=["timeline"], height=450)

# %% [markdown]
# 先右：`long` 到来之前，`wide` 已经不在了。没有一个张量变小，只是生命周期重叠得少了。

# %%
vg.view(traces["right to left"], panes=["timeline"], height=450)

# %% [markdown]
# 这背后的规则很老（Sethi 和 Ullman，1970）：先算占用多而留下少的分支。ggml 并不去找这样的顺序，它永远从左到右。`GGML_CGRAPH_EVAL_ORDER_RIGHT_TO_LEFT` 是有的，但 llama.cpp 的 `src/` 里没有一处用它。

# %% [markdown]
# ## 真正作决定的：模型的代码
#
# 有一个比左右更强的手段：**早一点** expand。先 expand 的就排在前面。llama.cpp 在每一层都这样做，理由有两个。先看看，如果只从 logits 顺着箭头走，会漏掉什么：

# %%
from collections import Counter

context = vg.load_model("tiny").context(
    n_ctx=256, n_ubatch=32, flash_attn=False, n_threads=1
)
step = context.step_graph(1)
alone = ggml.Graph(ggml.Context(mem_size=1 << 20), 1024)
alone.build_forward_expand(step.nodes[-1])
print(f"{len(step.nodes)} nodes in the step")
print(f"{len(alone.nodes)} from the logits alone")
missing = Counter(t.op for t in step.nodes)
missing.subtract(t.op for t in alone.nodes)
absent = [f"{n} {op}" for op, n in missing.items() if n]
print("missing:", ", ".join(absent))

# %% [markdown]
# 没有谁**读** `SET_ROWS`：它把新的 key 和 value 写进缓存，而注意力读的是缓存，不是它的结果。从 logits 没有箭头通向它，也没有箭头通向算出这些 key 和 value 的乘法。所以 `build_attn` 先 expand 这两次写入，然后才是必须看到这些写入的注意力。把两者联系在一起的，只有顺序。

# %%
writes = [step.index_of(t) for t in step.nodes if t.op == "SET_ROWS"]
reads = [step.index_of(t) for t in step.nodes if t.op == "SOFT_MAX"]
print("the cache is written at", writes)
print("attention's softmax at ", reads)

# %% [markdown]
# 第二个理由：q、k、v 一起 expand，中间就不会夹进别的节点；有几个后端时，图切出的 split 就少一些（[第 11 章](11-backends.ipynb)）。其中 k 排在最后，后端就可以把它的旋转和写入缓存融合成一步。这两点，`build_attn` 里都有注释。

# %% [markdown]
# ## 在真实的模型里，顺序有多大作用？
#
# `two_branches` 是特意造出来的。现在拿一个真实模型的一步（SmolLM2，32 个 token）重新遍历：只 expand 非写明不可的，也就是输入、缓存的写入和 logits，其余交给左和右。节点还是那些。


# %%
def again(step, order):
    c = ggml.Context(mem_size=1 << 20, no_alloc=True)
    g = ggml.Graph(c, step.size)
    g.order = order
    writes = [t for t in step.nodes if t.op == "SET_ROWS"]
    for t in (*step.leafs, *writes, step.nodes[-1]):
        g.build_forward_expand(t)
    return g


big = vg.load_model("smollm2").context(
    n_ctx=512, flash_attn=False, n_threads=1
)
step = big.step_graph(32, n_outputs=1)
graphs = {"model's order": step}
for order in ("left to right", "right to left"):
    graphs[order] = again(step, order)
for order, g in graphs.items():
    found = ggml.graph_liveness(g)
    where = g.nodes[found.bound_at].name
    print(f"{order}: {planned(g):>9,} bytes")
    print(f"      live at most: {found.bound:>9,} bytes, at {where}")

# %% [markdown]
# 最大的活跃集（live）三种顺序都一样：一层里最宽的地方是注意力分数，哪种顺序都得从那里过。几个规划的差别，只在分配器摆得紧不紧。所以别指望顺序能创造奇迹：一层接一层的链，没有多少可选的余地。

# %% [markdown]
# ## 在 llama.cpp 里
#
# `ggml/src/ggml.c` 里的 `ggml_visit_parents_graph` 和 `ggml_build_forward_expand`；哈希集合在 `ggml/src/ggml-impl.h`。一个真实的模型：左边是我们的遍历，右边是 llama.cpp 建的图。

# %%
with vg.record() as trace:
    graph = big.step_graph(1)
theirs = lessons.golden("smollm2.nodes.plain")
print(f"SmolLM2: {len(graph.nodes):,} nodes; llama.cpp: {theirs:,}")
print(f"room for {graph.size:,}, {graph.hash_size:,} slots")
taken = len(trace.sentences("SlotTaken"))
print(f"a taken slot was met {taken} times")

# %% [markdown]
# ## 改一改，看一看
#
# `width` 和 `length` 是 `wide` 和 `long` 的元素个数。最大的活跃集（*live*），任何分配器都低不过它。试试 (256, 8)，再试 (64, 32)。后一种情况下，从右到左同时存活的更少，规划却占得更多：留下的空洞太窄，放不下 `out`。生命周期由顺序决定；分配器摆得好不好，是另一回事。

# %%
width, length = 256, 64

# %%
for order in ("left to right", "right to left"):
    g = two_branches(order, width, length)
    live = ggml.graph_liveness(g).bound
    print(f"{order}: {planned(g):,} bytes, live {live:,}")

# %% [markdown]
# ## 练习
#
# 把 `...` 换成你的答案。答错会得到提示；`lessons.solution("06.1")` 打印解答。
#
# **06.1** `x` 和 `w` 是叶子；`p = sqr(x)`，`q = relu(w)`，`r = mul(q, p)`，`s = add(p, r)`，`t = add(r, s)`。`t` 的各个节点按什么顺序追加？写成字母组成的字符串。

# %%
answer = ...
lessons.check("06.1", answer)

# %% [markdown]
# **06.2** `y = mul(x, x)`，`z = add(y, y)`，`t = mul(z, x)`。x、y、z、t 的使用计数各是多少？写四个数。

# %%
answer = ...
lessons.check("06.2", answer)

# %% [markdown]
# **06.3** `two_branches("right to left", width=48, length=24)`：规划要占多少字节？请手算。一个 `F32` 是 4 字节，每个大小都向上取整到 32 的倍数，`out` 比 `long` 多一个元素。

# %%
answer = ...
lessons.check("06.3", answer)

# %% [markdown]
# **06.4** 写一个函数 `order(result, sources)`。`sources(t)` 给出一个张量的来源列表（这里张量就是字符串）。它返回 `result` 需要的所有张量：每个一次，每个都在它的来源之后，左边的来源在前。它会在好几张图上试用，其中一张就像上面的 `t16`。

# %%
answer = ...
lessons.check("06.4", answer)

# %% [markdown]
# ## 接下来读什么
#
# - `ggml/src/ggml.c` 里的 `ggml_visit_parents_graph`：整个遍历，一页就够。我们的实现在 `vizggml/ggml/cgraph.py`。
# - `src/llama-graph.cpp` 里的 `llm_graph_context::build_attn`：那几次 expand，和那两条注释。
# - 顺序给整个内存带来什么：见[第 7 章：静态规划](07-plan.ipynb)。
