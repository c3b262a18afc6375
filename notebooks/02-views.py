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
# wants some of the rows, of these one head, and that with rows and columns exchanged. Chapter 1 says that none of this
# moves a byte. But now tensors are stacked on each other: a transpose of a part of a part. Where does the last one find its
# bytes? And when may they be given to somebody else?

# %% [markdown]
# ## A link, or a sum
#
# The obvious way is that each view remembers what it was made from, and by how many bytes it is further on. Then whoever
# wants the bytes walks along the links, every time.

# %%
cache = {"name": "cache"}
window = {"name": "window", "source": cache, "offset": 32}
head = {"name": "head", "source": window, "offset": 8}

place, steps = head, 0
total = 0
while "source" in place:
    total, steps, place = (
        total + place["offset"],
        steps + 1,
        place["source"],
    )
print(
    f"head begins {total} bytes into {place['name']}, found in {steps} steps"
)

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
# chain: a cache of 16 rows, each with 2 heads of 4 numbers.

# %%
import vizggml as vg
from vizggml import ggml, lessons

c = ggml.Context(mem_size=1 << 20)
with vg.record() as trace:
    cache = c.new_tensor("F16", (8, 16), name="cache").set(range(128))
    window = ggml.view_2d(
        c, cache, 8, 6, cache.nb[1], 2 * cache.nb[1]
    ).set_name("window")
    head = ggml.view_2d(
        c, window, 4, 6, window.nb[1], 4 * window.nb[0]
    ).set_name("head")
    turned = ggml.transpose(c, head).set_name("turned")

for t in (window, head, turned):
    print(
        f"{t.name:>6}: made from {t.src[0].name:6}  view_src {t.view_src.name}  view_offs {t.view_offs}  nb {t.nb}"
    )

# %% [markdown]
# Two links, for two purposes. `src[0]` is what you named: the graph follows it, to know what must be computed before.
# `view_src` is where the bytes are: memory follows that, and never takes more than one step.
#
# In the *Tensor* pane look at the *View chain*, and step back (**←**) to the tensors before: what was asked for, and what is kept. The walk shows
# the gaps between the rows of `head`: half of every row belongs to the other head.

# %%
vg.view(trace, panes=["tensor"], step=len(trace) - 1, height=620)

# %% [markdown]
# The numbers are those of the second half of rows 2 to 7, column by column:

# %%
print(turned.array()[0, 0])

# %% [markdown]
# A view may not reach past its source. That is checked when it is made, so that nobody needs to check it later. The cache
# has 16 rows; six of them from row 11 on are one too many.

# %%
try:
    ggml.view_2d(c, cache, 8, 6, cache.nb[1], 11 * cache.nb[1])
except vg.VizggmlError as error:
    print(error)

# %% [markdown]
# ## Who owns the bytes?
#
# The tensor that has no `view_src`; nobody else. A view costs the arena a record and not one byte of data. To write into
# a view is to write into its source.

# %%
before = c.used_mem
whole = ggml.view_2d(c, cache, 8, 16, cache.nb[1], 0)
print(
    f"the view shows {whole.nbytes} bytes; the arena grew by {c.used_mem - before}, an object header and a record"
)

turned.array()[0, 0, 0, 0] = -1
print("row 2 of the cache:", cache.array()[0, 0, 2])

# %% [markdown]
# Nothing counts references here: `view_src` is a bare pointer, in ggml too. When the owner's buffer is freed, its views point
# at nothing good, and nobody tells them.
#
# One party does count: the graph allocator, while it plans (chapter 5). Here `x` has two views. `x` itself is read by nobody
# but them, and still its memory must not be given away before the *last reader of the last view*.

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

for sentence in trace.sentences("TensorFreed"):
    print(sentence)
for t in (x, left, right, out):
    print(f"{t.name:>5} at {t.data.offset}")

# %% [markdown]
# `y` has read `left`, and `x` stays. `z` has read `right`, and `x` goes; `out` then gets the same bytes. In the player: the
# views are not in the memory map at all, as they have no bytes. Watch the counts of `x` in the events.

# %%
vg.view(trace, panes=["map", "graph", "events"])

# %% [markdown]
# ## Four empty ops
#
# `VIEW`, `RESHAPE`, `PERMUTE` and `TRANSPOSE` are nodes of the graph. When it is computed their turn comes, and nothing is
# done: all that they do was done when they were built, in `ne`, `nb` and `view_offs`.

# %%
with vg.record() as trace:
    ggml.graph_compute(g, ggml.graph_plan(g, n_threads=1))
for sentence in trace.sentences("NodeSkipped"):
    print(sentence)

# %% [markdown]
# Why are they nodes, then? Because the graph follows `src`. `left` is how `y` reaches `x`; without the link nobody would know
# that `x` must come first.
#
# Do not mix up *is a view* and *is empty*. An op that writes in place has a `view_src`, too: its result lies where
# its target does. Such a node is very much computed. Here it is in a step of the tiny model:

# %%
step = (
    vg.load_model("tiny")
    .context(n_ctx=256, n_ubatch=32, flash_attn=True, n_threads=1)
    .step_graph(32)
)
views = [t for t in step.nodes if t.is_view]
empty = [
    t
    for t in views
    if t.op in ("VIEW", "RESHAPE", "PERMUTE", "TRANSPOSE")
]
writing = {t.op for t in views if t not in empty}
print(
    f"{len(step.nodes)} nodes, {len(views)} of them views; {len(empty)} are empty, {len(views) - len(empty)} write: {writing}"
)

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
last = next(
    t for t in step.nodes if t.name == "cache_k_l0 (view) (permuted)"
)
link = last
while link is not None:
    print(
        f"{link.name:30} {link.op:8} ne {link.ne}  view_src {link.view_src.name if link.view_src else '-'}"
    )
    link = link.src[0] if link.src else None

# %% [markdown]
# When nodes are computed, `ggml_graph_compute_thread` (`ggml/src/ggml-cpu/ggml-cpu.c`) asks `ggml_op_is_empty` and goes to
# the next node: no kernel, no barrier among threads. How often? In the graphs that llama.cpp built for SmolLM2:

# %%
for mode in ("plain", "flash"):
    skipped, nodes = (
        lessons.golden(f"smollm2.empty.{mode}"),
        lessons.golden(f"smollm2.nodes.{mode}"),
    )
    print(
        f"{mode} attention: {skipped} of {nodes} nodes are empty, {100 * skipped / nodes:.0f} %"
    )

# %% [markdown]
# (`ggml_op_is_empty` knows a fifth, `NONE`. Those are leafs: weights, caches and inputs, which are no nodes anyway.)
#
# ## Change this and watch
#
# `first` is the row at which the window begins. Watch `view_offs` of the last view: by how much does it grow for each row?
# From which value on does ggml refuse, and which of the three lines refuses?

# %%
first = 2

# %%
step = views = empty = last = link = t = (
    None  # what is recorded begins with what stands: let the model go
)
c = ggml.Context(mem_size=1 << 20)
with vg.record() as trace:
    cache = c.new_tensor("F16", (8, 16), name="cache")
    window = ggml.view_2d(
        c, cache, 8, 6, cache.nb[1], first * cache.nb[1]
    ).set_name("window")
    head = ggml.view_2d(
        c, window, 4, 6, window.nb[1], 4 * window.nb[0]
    ).set_name("head")
    turned = ggml.transpose(c, head).set_name("turned")
print("view_offs:", turned.view_offs)
vg.view(trace, panes=["tensor"], step=len(trace) - 1, height=620)

# %% [markdown]
# ## Exercises
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
#   which gives a view its address when the source has got one.
# - The owner of the bytes: where does *it* get them? [Chapter 3, arena, buffers and mmap](03-memory.ipynb).
