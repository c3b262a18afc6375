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
# # 第 2 章：视图
#
# 一层把所有 token 的 key 放在同一个张量里：每个 token 一行，行内依次排着各个头。一步计算只要其中几行，几行里的一个头，而且还要行列互换。[第 1 章](01-tensors.ipynb)说，这些都不移动一个字节。可现在视图一层套一层：取一部分，再取一部分，再转置。最后那个张量到哪里去找它的字节？这些字节又要到什么时候，才可以给别人用？

# %% [markdown]
# ## 一串链接，还是一个和
#
# 最直接的办法：每个视图记住自己是从谁那里来的、往后挪了多少字节。谁要字节，就得沿着链接走一遍，每次都走。

# %%
cache = {"name": "cache"}
window = {"name": "window", "source": cache, "offset": 32}
head = {"name": "head", "source": window, "offset": 8}

place, offset, steps = head, 0, 0
while "source" in place:
    offset += place["offset"]
    place = place["source"]
    steps += 1
print(f"head: byte {offset} of {place['name']}, found in {steps} steps")

# %% [markdown]
# 但偏移只要加起来就行。在**造出**视图的时候就加好，记住链条尽头的那个张量，而不是下一个。这样不管前面有多少层视图，每个视图离它的字节都只有一步。


# %%
def view(source, offset):
    root, before = source.get("view", (source, 0))
    return {"view": (root, before + offset)}


window = view(cache, 32)
head = view(window, 8)
print(head)

# %% [markdown]
# ## ggml 的两个字段
#
# 这就是 `view_src` 和 `view_offs`。`ggml_new_tensor_impl` 开头几行做的正是这个加法。来搭一条链：一个 16 行的缓存，每行两个头，每个头四个数；从缓存里取 6 行作窗口；从窗口里取第二个头；再转置。

# %%
import vizggml as vg
from vizggml import ggml, lessons


def chain(c, first):
    cache = c.new_tensor("F16", (8, 16), name="cache")
    number, row = cache.nb[:2]
    window = ggml.view_2d(c, cache, 8, 6, row, first * row)
    window.set_name("window")
    head = ggml.view_2d(c, window, 4, 6, row, 4 * number)
    head.set_name("head")
    turned = ggml.transpose(c, head).set_name("turned")
    return cache, window, head, turned


c = ggml.Context(mem_size=1 << 20)
with vg.record() as trace:
    cache, *views = chain(c, first=2)

for t in views:
    print(
        f"{t.name:6}  made from {t.src[0].name:6}",
        f" view_src {t.view_src.name}  view_offs {t.view_offs}",
    )

# %% [markdown]
# 有两种链接，各有各的用处。`src[0]` 是你写下的来源：图沿着它走，才知道什么必须先算。`view_src` 是字节所在的地方：内存沿着它走，从来只走一步。
#
# *Tensor* 面板里的 *View chain* 写着你要的是什么、真正留下的是什么；按 **←** 回到前面的张量。最下面那条长条显示 `head` 各行之间的空隙：每一行有一半属于另一个头。

# %%
vg.view(trace, panes=["tensor"], step=len(trace) - 1, height=740)

# %% [markdown]
# 位置对吗？给缓存编上号，读出来看看。应该正是第 2 到第 7 行的后半，一列一列地读。

# %%
cache.set(range(128))
turned = views[-1]
print(turned.array()[0, 0])

# %% [markdown]
# 视图不能超出来源的边界。这在造视图时就检查。缓存有 16 行；从第 11 行起取六行，就多了一行。（ggml 检查时步长还没有设好，只当视图的元素紧挨在一起：行距太大而越界，它看不出来。我们的引擎连这个也查。）

# %%
row = cache.nb[1]
try:
    ggml.view_2d(c, cache, 8, 6, row, 11 * row)
except vg.VizggmlError as error:
    print(error)

# %% [markdown]
# ## 字节归谁所有？
#
# 归没有 `view_src` 的那个张量，再没有别人。一个视图只占 arena 里的一条记录（见[第 3 章](03-memory.ipynb)），数据一个字节也不占。

# %%
before = c.used_mem
whole = ggml.view_2d(c, cache, 8, 16, row, 0)
print(f"the view shows {whole.nbytes} bytes of the cache;")
print(f"the arena grew by {c.used_mem - before}: a header and a record")

# %% [markdown]
# 往视图里写，就是往来源里写。

# %%
turned.array()[0, 0, 0, 0] = -1
print("row 2 of the cache:", cache.array()[0, 0, 2])

# %% [markdown]
# 这里没有引用计数：`view_src` 只是一个裸指针，在 ggml 里也一样。拥有者的缓冲区释放了，它的视图一无所知。

# %%
c = ggml.Context(mem_size=1 << 20, no_alloc=True)
keys = c.new_tensor("F32", (4,), name="keys")
tail = ggml.view_1d(c, keys, 2, 8).set_name("tail")
(buffer,) = ggml.alloc_ctx_tensors_from_buft(c, ggml.cpu_buffer_type())

buffer.free()
print("bytes in the buffer:", buffer.size)
print("where tail lies:    ", tail.data)

# %% [markdown]
# 那 32 字节已经还回去了，`tail` 却仍然指着其中第 8 字节往后的部分。（在 Python 里，只要还有人指着，这些字节就留着；在 C 里，下一个要内存的人就可能写到这里。）所以拥有者必须活到它的最后一个读者之后。
#
# 要知道内存什么时候可以再用，图分配器在规划时清点读者（[第 5 章](05-galloc.ipynb)）。下面的 `x` 有两个视图。除了这两个视图，没有谁直接读 `x`；即便如此，在**最后一个视图的最后一个读者**之前，它的内存不能让出去。

# %%
c = ggml.Context(mem_size=1 << 20, no_alloc=True)
a = c.new_tensor("F32", (8, 4), name="a")
w = c.new_tensor("F32", (4, 4), name="w")
ggml.alloc_ctx_tensors_from_buft(c, ggml.cpu_buffer_type())

x = ggml.sqr(c, a).set_name("x")
left = ggml.view_2d(c, x, 4, 4, x.nb[1], 0).set_name("left")
right = ggml.view_2d(c, x, 4, 4, x.nb[1], 16).set_name("right")
y = ggml.mul_mat(c, left, w).set_name("y")
z = ggml.mul_mat(c, right, y).set_name("z")
out = ggml.mul_mat(c, z, w).set_name("out")

g = ggml.Graph(c)
g.build_forward_expand(out)
galloc = ggml.GraphAllocator(ggml.cpu_buffer_type())
with vg.record() as trace:
    galloc.alloc_graph(g)

print(trace.sentences("TensorFreed")[0])
for t in (x, left, right, out):
    print(f"{t.name:>5} at {t.data.offset}")

# %% [markdown]
# `y` 读过了 `left`，`x` 还在。`z` 读过了 `right`，`x` 才走，随后 `out` 得到同一片字节。
#
# 播放器停在 `y` 刚放好的那一步。点一下播放器，再往前走（**→**），直到 `x` 释放，看 *Counts* 里它那一行：剩下的视图一个一个减下去。内存图上找不到任何视图，因为视图没有自己的字节。

# %%
placed = trace.steps("TensorAssigned")[1]
vg.view(trace, panes=["map", "counts"], step=placed, height=640)

# %% [markdown]
# ## 四种空 op
#
# `VIEW`、`RESHAPE`、`PERMUTE` 和 `TRANSPOSE` 都是图的节点。计算轮到时，什么也不做：该做的，创建时就已经写进 `ne`、`nb` 和 `view_offs` 了。

# %%
with vg.record() as trace:
    ggml.graph_compute(g, ggml.graph_plan(g, n_threads=1))
lessons.tell(*trace.sentences("NodeSkipped"))

# %% [markdown]
# 那为什么还要当节点？因为图沿着 `src` 走。`y` 是经过 `left` 才找到 `x` 的；少了这一环，就没人知道 `x` 必须先算。
#
# “是视图”和“是空 op”，人们常常混为一谈。原地写入的 op 也有 `view_src`：结果就在目标所在的地方。这样的节点是要实实在在计算的。数一数 tiny 模型的一步里有 `view_src` 的节点，找出第五种 op：

# %%
from collections import Counter


def step_nodes():
    model = vg.load_model("tiny")
    context = model.context(n_ctx=256, n_ubatch=32, n_threads=1)
    return context.step_graph(32).nodes


with_source = Counter(t.op for t in step_nodes() if t.is_view)
for op, count in with_source.most_common():
    print(f"{count:3} {op}")

# %% [markdown]
# ## 图看到的是 `src`，不是字节
#
# 这里有个容易踩的坑。一个节点往缓存里写，另一个节点读同一个缓存的视图。两者的字节重叠，却没有任何 `src` 从一个通到另一个。谁先算？谁先放进图里，谁先算。


# %%
def read_the_cache(*order):
    c = ggml.Context(mem_size=1 << 20)
    cache = c.new_tensor("F32", (4,), name="cache").set([0, 0, 0, 0])
    new = c.new_tensor("F32", (2,), name="new").set([7, 7])
    nodes = {
        "write": ggml.cpy(c, new, ggml.view_1d(c, cache, 2, 8)),
        "read": ggml.cont(c, ggml.view_1d(c, cache, 4, 0)),
    }
    g = ggml.Graph(c)
    for name in order:
        g.build_forward_expand(nodes[name])
    ggml.graph_compute(g, ggml.graph_plan(g, n_threads=1))
    return nodes["read"].array().ravel()


print("write, then read:", read_the_cache("write", "read"))
print("read, then write:", read_the_cache("read", "write"))
print("read alone:      ", read_the_cache("read"))

# %% [markdown]
# ## 在 llama.cpp 里
#
# 所以 `src/llama-graph.cpp` 的 `llm_graph_context::build_attn` 先把新 key 和 value 的写入放进图里，**然后**才搭建读缓存的注意力。读取从 `llama_kv_cache::get_k`（`src/llama-kv-cache.cpp`）开始：对这一层的缓存做 `ggml_view_4d`，再由 `build_attn_mha` 调换维度。最后那个视图的字节，一步就到缓存：


# %%
def made_from(t):
    owner = t.view_src.name if t.is_view else "of its own"
    print(f"{t.op:8} {t.name:30} bytes: {owner}")
    if t.src:
        made_from(t.src[0])


name = "cache_k_l0 (view) (permuted)"
made_from(next(t for t in step_nodes() if t.name == name))

# %% [markdown]
# 计算节点时，`ggml_graph_compute_thread`（`ggml/src/ggml-cpu/ggml-cpu.c`）问一声 `ggml_op_is_empty`，是空的就去下一个节点：不调用 kernel，线程之间也不设屏障。这有多常见？在 llama.cpp 为 SmolLM2 建的图里：

# %%
for mode in ("plain", "flash"):
    empty = lessons.golden(f"smollm2.empty.{mode}")
    nodes = lessons.golden(f"smollm2.nodes.{mode}")
    share = f"{100 * empty / nodes:.0f} %"
    print(
        f"{mode} attention: {empty} of {nodes} nodes are empty, {share}"
    )

# %% [markdown]
# （`ggml_op_is_empty` 还认第五种：`NONE`，即权重、缓存和输入。它们是叶子，不是这些图的节点。）

# %% [markdown]
# ## 改一改，看一看
#
# `first` 是窗口从第几行开始。看最后那个视图的 `view_offs`：每多一行，它增加多少？从哪个值起 ggml 会拒绝，`chain` 里是哪一行拒绝的？

# %%
first = 5

# %%
c = ggml.Context(mem_size=1 << 20)
with vg.record() as trace:
    *_, turned = chain(c, first)
print("view_offs:", turned.view_offs)
vg.view(trace, panes=["tensor"], step=len(trace) - 1, height=740)

# %% [markdown]
# ## 练习
#
# 把 `...` 换成你的答案。`lessons.solution("02.1")` 打印解答。
#
# **02.1** `c3` 的 `view_offs` 是多少？先算出来，再运行。
#
#     k  = c.new_tensor("F16", (64, 100))
#     c1 = ggml.view_2d(c, k, 64, 50, k.nb[1], 10 * k.nb[1])
#     c2 = ggml.view_2d(c, c1, 32, 50, c1.nb[1], 16 * c1.nb[0])
#     c3 = ggml.transpose(c, c2)

# %%
answer = ...
lessons.check("02.1", answer)

# %% [markdown]
# **02.2** `m` 是 `F32`，`ne` 是 (4, 4)。令 `v = ggml.view_2d(c, m, 3, 2, m.nb[1], 0)`，`v.nbytes` 是多少字节？（`nbytes` 是从第一个元素的首字节到最后一个元素的末字节。）

# %%
answer = ...
lessons.check("02.2", answer)

# %% [markdown]
# **02.3** 这张图里有几个节点会真的**计算**，而不是跳过？`x` 和 `b` 是叶子。
#
#     y   = ggml.relu(c, x)
#     h   = ggml.view_2d(c, y, 2, 4, y.nb[1], 0)
#     t   = ggml.transpose(c, h)
#     k   = ggml.cont(c, t)
#     r   = ggml.reshape_1d(c, k, 8)
#     out = ggml.cpy(c, r, b)
#     g.build_forward_expand(out)

# %%
answer = ...
lessons.check("02.3", answer)

# %% [markdown]
# ## 接下来读什么
#
# - `ggml/src/ggml.c` 里的 `ggml_new_tensor_impl` 和 `ggml_view_impl`；`ggml/src/ggml-backend.cpp` 里的 `ggml_backend_view_init`，来源有了地址以后，由它给视图地址。我们的实现在 `vizggml/ggml/context.py` 和 `buffer.py`。
# - 拥有字节的那个张量，**它**的字节又从哪里来？见[第 3 章：arena、缓冲区与 mmap](03-memory.ipynb)。
