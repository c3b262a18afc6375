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
# # Chapter 2: Views
#
# A layer keeps the keys of all tokens in one tensor: a row for each token, the heads one after the other in the row. A step
# wants some of the rows, of these one head, and that with rows and columns exchanged. [Chapter 1](01-tensors.ipynb) says
# that none of this moves a byte. But now tensors are stacked on each other: a transpose of a part of a part. Where does
# the last one find its bytes? And when may they be given to somebody else?

# %% [markdown]
# ## A link, or a sum
#
# The obvious way is that each view remembers what it was made from, and by how many bytes it is further on. Then whoever
# wants the bytes walks along the links, every time.

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
# But offsets only add up. Add them when the view is *made*, and remember the tensor at the end of the chain instead of the
# next one. Then every view is one step from its bytes, however many views came before it.


# %%
def view(source, offset):
    root, before = source.get("view", (source, 0))
    return {"view": (root, before + offset)}


window = view(cache, 32)
head = view(window, 8)
print(head)

# %% [markdown]
# ## ggml's two fields
#
# These are `view_src` and `view_offs`. The first lines of `ggml_new_tensor_impl` add the offsets up, just so. Build the
# chain: a cache of 16 rows, each with 2 heads of 4 numbers; of the cache a window of 6 rows; of the window the second
# head; of that the transpose.

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
# Two links, for two purposes. `src[0]` is what you named: the graph follows it, to know what must be computed before.
# `view_src` is where the bytes are: memory follows that, and never takes more than one step.
#
# In the *Tensor* pane, *View chain* says what was asked for, and what is kept of it; **←** leads to the tensors before.
# The lowest bar shows the gaps between the rows of `head`: half of every row belongs to the other head.

# %%
vg.view(trace, panes=["tensor"], step=len(trace) - 1, height=740)

# %% [markdown]
# Is it the right place? Number the cache, and read. You should find the second half of rows 2 to 7, column by column.

# %%
cache.set(range(128))
turned = views[-1]
print(turned.array()[0, 0])

# %% [markdown]
# A view may not reach past its source. That is checked when it is made. The cache has 16 rows; six of them from row 11 on
# are one too many. (ggml checks before the strides are set, as if the elements of the view lay together: rows that are too
# far apart go unnoticed there. Our engine looks at these, too.)

# %%
row = cache.nb[1]
try:
    ggml.view_2d(c, cache, 8, 6, row, 11 * row)
except vg.VizggmlError as error:
    print(error)

# %% [markdown]
# ## Who owns the bytes?
#
# The tensor that has no `view_src`; nobody else. A view costs the arena a record ([chapter 3](03-memory.ipynb)), and not one
# byte of data.

# %%
before = c.used_mem
whole = ggml.view_2d(c, cache, 8, 16, row, 0)
print(f"the view shows {whole.nbytes} bytes of the cache;")
print(f"the arena grew by {c.used_mem - before}: a header and a record")

# %% [markdown]
# To write into a view is to write into its source.

# %%
turned.array()[0, 0, 0, 0] = -1
print("row 2 of the cache:", cache.array()[0, 0, 2])

# %% [markdown]
# Nothing counts references here: `view_src` is a bare pointer, in ggml too. When the owner's buffer is freed, nobody tells
# its views.

# %%
c = ggml.Context(mem_size=1 << 20, no_alloc=True)
keys = c.new_tensor("F32", (4,), name="keys")
tail = ggml.view_1d(c, keys, 2, 8).set_name("tail")
(buffer,) = ggml.alloc_ctx_tensors_from_buft(c, ggml.cpu_buffer_type())

buffer.free()
print("bytes in the buffer:", buffer.size)
print("where tail lies:    ", tail.data)

# %% [markdown]
# `tail` still points at bytes 8 and on of 32 that were given back. (Python keeps them for as long as somebody points at
# them. In C whoever asks for memory next may write there.) So the owner must live for as long as its last reader.
#
# To know when memory may be used again, the graph allocator counts readers while it plans ([chapter 5](05-galloc.ipynb)). Here
# `x` has two views. Nobody but them reads `x` itself, and still its memory must not be given away before the *last reader of
# the last view*.

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
# `y` has read `left`, and `x` stays. `z` has read `right`, and `x` goes; `out` then gets the same bytes.
#
# The player opens where `y` has just been placed. Click into it and step on (**→**) to where `x` goes, and watch its row in *Counts*: the
# views left are counted down. In the memory map you find no view at all, as they have no bytes.

# %%
placed = trace.steps("TensorAssigned")[1]
vg.view(trace, panes=["map", "counts"], step=placed, height=640)

# %% [markdown]
# ## Four empty ops
#
# `VIEW`, `RESHAPE`, `PERMUTE` and `TRANSPOSE` are nodes of the graph. When it is computed their turn comes, and nothing is
# done: all that they do was done when they were built, in `ne`, `nb` and `view_offs`.

# %%
with vg.record() as trace:
    ggml.graph_compute(g, ggml.graph_plan(g, n_threads=1))
lessons.tell(*trace.sentences("NodeSkipped"))

# %% [markdown]
# Why are they nodes, then? Because the graph follows `src`. `left` is how `y` reaches `x`; without the link nobody would know
# that `x` must come first.
#
# Do not mix up *is a view* and *is empty*, as is often done. An op that writes in place has a `view_src`, too: its result
# lies where its target does. Such a node is very much computed. Count the nodes of a step of the tiny model that have a
# `view_src`, and look for a fifth op:

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
# ## The graph sees `src`, not bytes
#
# This has a sharp edge. One node writes into a cache, another reads a view of the same cache. Their bytes overlap, but no
# `src` leads from one to the other. Which comes first? Whichever you put into the graph first.


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
# ## In llama.cpp
#
# `llm_graph_context::build_attn` in `src/llama-graph.cpp` therefore puts the writes of new keys and values into the graph
# *before* it builds the attention that reads them. The reading begins in `llama_kv_cache::get_k` (`src/llama-kv-cache.cpp`):
# a `ggml_view_4d` of the layer's cache, which `build_attn_mha` then permutes. The last view's bytes are the cache's, in one
# step:


# %%
def made_from(t):
    owner = t.view_src.name if t.is_view else "of its own"
    print(f"{t.op:8} {t.name:30} bytes: {owner}")
    if t.src:
        made_from(t.src[0])


name = "cache_k_l0 (view) (permuted)"
made_from(next(t for t in step_nodes() if t.name == name))

# %% [markdown]
# When nodes are computed, `ggml_graph_compute_thread` (`ggml/src/ggml-cpu/ggml-cpu.c`) asks `ggml_op_is_empty` and goes to
# the next node: no kernel, no barrier among threads. How often? In the graphs that llama.cpp built for SmolLM2:

# %%
for mode in ("plain", "flash"):
    empty = lessons.golden(f"smollm2.empty.{mode}")
    nodes = lessons.golden(f"smollm2.nodes.{mode}")
    share = f"{100 * empty / nodes:.0f} %"
    print(
        f"{mode} attention: {empty} of {nodes} nodes are empty, {share}"
    )

# %% [markdown]
# (`ggml_op_is_empty` knows a fifth, `NONE`: weights, caches and inputs. Those are leafs, and no nodes of these graphs.)

# %% [markdown]
# ## Change this and watch
#
# `first` is the row at which the window begins. Watch `view_offs` of the last view: by how much does it grow for each row?
# From which value on does ggml refuse, and which line of `chain` refuses?

# %%
first = 5

# %%
c = ggml.Context(mem_size=1 << 20)
with vg.record() as trace:
    *_, turned = chain(c, first)
print("view_offs:", turned.view_offs)
vg.view(trace, panes=["tensor"], step=len(trace) - 1, height=740)

# %% [markdown]
# ## Exercises
#
# Put your answer in place of the three dots. `lessons.solution("02.1")` prints the solution.
#
# **02.1** What is `view_offs` of `c3`? Work it out before you run anything.
#
#     k  = c.new_tensor("F16", (64, 100))
#     c1 = ggml.view_2d(c, k, 64, 50, k.nb[1], 10 * k.nb[1])
#     c2 = ggml.view_2d(c, c1, 32, 50, c1.nb[1], 16 * c1.nb[0])
#     c3 = ggml.transpose(c, c2)

# %%
answer = ...
lessons.check("02.1", answer)

# %% [markdown]
# **02.2** `m` is `F32` with `ne` (4, 4). How many bytes is `v.nbytes`, where `v = ggml.view_2d(c, m, 3, 2, m.nb[1], 0)`?
# (`nbytes` is what lies between the first byte of the first element and the last byte of the last.)

# %%
answer = ...
lessons.check("02.2", answer)

# %% [markdown]
# **02.3** How many nodes of this graph are *computed*, not skipped? `x` and `b` are leafs.
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
# ## What to read next
#
# - `ggml_new_tensor_impl` and `ggml_view_impl` in `ggml/src/ggml.c`; `ggml_backend_view_init` in `ggml/src/ggml-backend.cpp`,
#   which gives a view its address when the source has got one. Ours: `vizggml/ggml/context.py` and `buffer.py`.
# - The owner of the bytes: where does *it* get them? [Chapter 3, arena, buffers and mmap](03-memory.ipynb).
