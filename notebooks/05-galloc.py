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
# # Chapter 5: The graph allocator
#
# A decode step of a small model computes hundreds of tensors, and most of them are needed only for a moment. If each
# had memory of its own, the compute buffer would be many times larger than it is. Before anything is computed, ggml's
# *graph allocator* (`ggml_gallocr`) plays the graph through once and plans where every tensor will lie, so that memory
# is used again as soon as the last reader of a tensor is done.
#
# First on three tensors, by hand; then on the graph of a real step.

# %% [markdown]
# ## Three allocations
#
# The graph is `relu(W x + b)`. `W`, `x` and `b` have memory of their own, as weights do. That leaves three
# results of 8 bytes each: `wx`, `wx+b` and `out`.
#
# For the textbook's version we switch two things off that ggml does: a result may not take the place of its parent
# (`in_place=False`), and offsets are rounded to 8 bytes instead of 32.

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
# Two blocks are taken from the end of the chunk. Then `wx` is freed: nobody will read it again. Its 8 bytes are a hole at
# offset 0, and `out` needs just 8 bytes: *best fit, exactly*. Three tensors, 16 bytes.
#
# Step through it. Watch the free list in the memory map: the block at 0 appears, and disappears.

# %%
vg.view(trace, panes=["map", "timeline", "events"])

# %% [markdown]
# ## What ggml really does
#
# Now ggml's way. Offsets are multiples of 32, and `ADD` and `UNARY` are among the ops that may write over their own
# parent, when nobody else needs it.

# %%
g = relu_graph(weights_have_memory=False)
galloc = ggml.GraphAllocator(ggml.cpu_buffer_type())
with vg.record() as trace:
    galloc.alloc_graph(g)

for tensor in (*g.leafs, *g.nodes):
    print(f"{tensor.name:>5} at {tensor.data.offset:>3}")
print("the buffer has", galloc.get_buffer_size(), "bytes")

# %% [markdown]
# `wx`, `wx+b` and `out` share one place. The reason is in the events:

# %%
for sentence in trace.sentences("ParentReused", "ParentRefused"):
    print(sentence)

# %% [markdown]
# ## A real decode step
#
# The same allocator, on the graph that the tiny model builds for a batch of 32 tokens. The small graph goes first, so
# that the recording holds this plan alone.

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
# In the timeline, the layers repeat: what the first layer has freed, the second uses again. The four towers are the
# feed-forward networks: `ffn_gate`, `ffn_up` and `ffn_swiglu` stand at the same time, and each is three times as wide as
# the rest. They make the peak. The long bars at the bottom are inputs and the residual stream, which every layer needs.
#
# ## Change this and see
#
# 1. `ggml.GraphAllocator(ggml.cpu_buffer_type(), in_place=False)`: how much does reuse in place save here?
# 2. `flash_attn=True`: which rectangles are gone?
# 3. `context.step_graph(1)`: which tensors shrink with the batch, and which do not?

# %% [markdown]
# ## Exercise
#
# Put your answer in place of the three dots. A wrong answer gets a hint; `lessons.solution("05.1")` prints the solution.
#
# **05.1** Three results of 96, 32 and 64 bytes in a chain: the second is made from the first, the third from the second.
# Nothing is written in place, offsets are multiples of 32. How many bytes does the buffer take?

# %%
answer = ...
lessons.check("05.1", answer)
