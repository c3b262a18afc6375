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
# # Chapter 1: Tensors
#
# In [the tour](00-tour.ipynb) you stepped through a layer, and between the multiplications you met `RESHAPE`, `PERMUTE`
# and `VIEW`, again and again. They put heads where tokens were, and rows where columns were. How much of a step's work are
# they?

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
# ggml moves none of these bytes. To see how, forget matrices for a moment: memory has one dimension.

# %% [markdown]
# ## Strides, by hand
#
# Take twelve bytes, and two short lists of numbers. `ne` says how many elements a dimension has. `nb` says how many bytes
# you walk to get to its next element: the *stride*. Element `(i0, i1)` is at byte `i0 * nb[0] + i1 * nb[1]`.

# %%
memory = bytes(range(12))


def show(ne, nb):
    for i1 in range(ne[1]):
        row = [memory[i0 * nb[0] + i1 * nb[1]] for i0 in range(ne[0])]
        print(*(f"{value:3}" for value in row))


show(ne=(4, 3), nb=(1, 4))

# %% [markdown]
# The same bytes as 2 rows of 6: a *reshape*.

# %%
show(ne=(6, 2), nb=(1, 6))

# %% [markdown]
# The first matrix again, rows and columns exchanged: a *transpose*. Exchange the two sizes and the two strides.

# %%
show(ne=(3, 4), nb=(4, 1))

# %% [markdown]
# Every second column: a longer stride.

# %%
show(ne=(2, 3), nb=(2, 4))

# %% [markdown]
# Four matrices, and no byte has moved: `memory` is `bytes`, which cannot be written. Write a fifth yourself. What do
# you get with a stride of 0?

# %%
show(ne=(4, 3), nb=(0, 4))

# %% [markdown]
# ## ggml's tensor
#
# A `ggml_tensor` is this: four numbers `ne`, four strides `nb` in bytes, a type, and the address of the first element.
# It always has four dimensions; those that you do not name are 1.

# %%
c = ggml.Context(mem_size=1 << 20)
with vg.record() as trace:
    a = c.new_tensor("F32", (4, 3), name="a").set(range(12))
    r = ggml.reshape_2d(c, a, 6, 2).set_name("r")
    t = ggml.transpose(c, a).set_name("t")

for x in (a, r, t):
    print(x.name, "ne", x.ne, "nb", x.nb, "at", x.data.offset)

# %% [markdown]
# All three begin at the same byte: `at` counts from the beginning of the memory of `c`, of which
# [chapter 3](03-memory.ipynb) tells.
#
# The player opens at the last step; **←** goes back. The *Tensor* pane draws the walk: each square is an element, with the
# byte at which it begins, and the line joins the elements in the order of their bytes. Compare `t` with `a`: how far is
# it to the right neighbour, how far down?

# %%
vg.view(trace, panes=["tensor"], step=len(trace) - 1, height=740)

# %% [markdown]
# ## Which dimension comes first?
#
# In ggml `ne[0]` is the dimension whose elements are neighbours: the *length of a row*. NumPy writes it last. The memory
# is the same; only the list is read from the other end.

# %%
print("ggml's ne:     ", a.ne)
print("NumPy's shape: ", a.array().shape)
print("its strides:   ", a.array().strides)
print(a.array()[0, 0])

# %% [markdown]
# So a weight that a log calls `[576, 1536]` has 1,536 rows of 576 numbers. `mul_mat` wants just that: both operands lie
# as rows of length `ne[0]`, and each element of the result is the dot product of two rows, both read from left to
# right. So `mul_mat(a, b)` is not NumPy's `a @ b`, although it is often explained so. It is `b @ a.T`.

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
# ## Permute: a trap
#
# `permute` exchanges more than two dimensions. ggml's list says **where each dimension goes**: dimension `i` becomes
# dimension `axes[i]`. NumPy's `transpose` says **where each axis comes from**. For a plain exchange, such as (0, 2, 1, 3),
# both mean the same. For a rotation they do not.

# %%
heads = c.new_tensor("F32", (64, 4, 32), name="heads")
axes = (1, 2, 0, 3)
print("heads:                   ", heads.ne)
print("ggml.permute(1, 2, 0, 3):", ggml.permute(c, heads, *axes).ne)
print("NumPy's rule, same list: ", tuple(heads.ne[i] for i in axes))

# %% [markdown]
# ## When a copy is needed
#
# Strides can express every exchange of dimensions. Can they express a reshape of a transposed matrix? Read `t` row by
# row, and note the bytes that you pass.

# %%
n0, n1 = t.ne[:2]
s0, s1 = t.nb[:2]
passed = [i0 * s0 + i1 * s1 for i1 in range(n1) for i0 in range(n0)]
print("bytes:", *passed)
print("steps:", *np.diff(passed))

# %% [markdown]
# In one row of 12 there would be one stride, and here you need two, one of them backwards. So it cannot be done without
# a copy. NumPy then copies, and says nothing. ggml refuses: `ggml_reshape` asserts that its source is *contiguous*.
# That is: every stride along which there is a step to take is what it would be in a fresh tensor of that shape.

# %%
copied = t.array().reshape(12)
shared = np.shares_memory(copied, a.array())
print("NumPy's reshape still shares memory with a:", shared)
try:
    ggml.reshape_1d(c, t, 12)
except vg.VizggmlError as error:
    print("ggml:", error)

# %% [markdown]
# In ggml a copy is something you ask for. `cont` makes a tensor with bytes of its own, and a node in the graph that is
# computed: the elements are moved together, in the order in which `t` reads them.

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
# All three are nodes of the graph. When it was computed, which of them had nothing to do?

# %%
lessons.tell(*trace.sentences("NodeSkipped"))

# %% [markdown]
# The player opens where `cont` is made; compare its walk with that of `t` above. Step on to `row`, and then to the end,
# where the nodes take their turn.

# %%
made = trace.steps("OpRecorded")[-2]
vg.view(trace, panes=["tensor"], step=made, height=740)

# %% [markdown]
# ## A stride need not be an element
#
# In a quantized type, a number of weights (32 in some types, 256 in others) share a *block*, and the block is the least
# that has an address. Then `nb[0]` is the size of a block. A `Q4_0` block keeps 32 weights in 18 bytes, so a row of 64 is two blocks.

# %%
q = c.new_tensor("Q4_0", (64, 3), name="q")
print("ne", q.ne, "nb", q.nb, "bytes", q.nbytes)

# %% [markdown]
# A single weight has no byte of its own, so nobody can walk down a column. (`ggml_mul_mat` asserts, for every type, that its
# first operand is not transposed. [Chapter 10](10-quantization.ipynb) opens such a block.)

# %%
vector = c.new_tensor("F32", (3, 1))
try:
    ggml.mul_mat(c, ggml.transpose(c, q), vector)
except vg.VizggmlError as error:
    lessons.tell(error)

# %% [markdown]
# ## In llama.cpp
#
# `llm_graph_context::build_attn_mha` in `src/llama-graph.cpp` permutes q, k and v with (0, 2, 1, 3): from "all heads of a
# token" to "all tokens of a head". After the attention the result is permuted back, and there stands the one `CONT` of the
# layer: `ggml_cont_2d`. With flash attention the kernel writes its result in the right order, so that none is left.
#
# Count them in the graphs of SmolLM2, a real model (the cell takes a few seconds), and beside them what llama.cpp
# itself built.

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
# ## Change this and watch
#
# Change `axes`, run both cells. Watch `nb`: does it still grow from left to right? Watch the walk in the *Tensor* pane,
# and the marks *contiguous*, *permuted*, *transposed* below it. Besides (0, 1, 2, 3), which of the 24 orders leave this
# tensor contiguous, and why? (Exercise 01.4 asks the same in another way.)

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
# ## Exercises
#
# Put your answer in place of the three dots. A wrong answer gets a hint; `lessons.solution("01.1")` prints the solution.
#
# **01.1** An `F16` tensor (2 bytes an element) has `ne` (64, 9, 5, 1) and no gaps. What is its `nb`? Four numbers.

# %%
answer = ...
lessons.check("01.1", answer)

# %% [markdown]
# **01.2** `m` is `F32` with `ne` (8, 5). At which byte, counted from the first, is element `(i0, i1) = (3, 2)` of
# `ggml.transpose(c, m)`?

# %%
answer = ...
lessons.check("01.2", answer)

# %% [markdown]
# **01.3** With which four axes does `ggml.permute` make (5, 64, 9, 1) out of (64, 9, 5, 1)?

# %%
answer = ...
lessons.check("01.3", answer)

# %% [markdown]
# **01.4** Write a function `contiguous(ne, nb, size)` that says whether a tensor whose elements have `size` bytes is
# contiguous, and give it as the answer. It will be tried on several tensors. Mind dimensions with one element: nobody
# ever takes a step in them.

# %%
answer = ...
lessons.check("01.4", answer)

# %% [markdown]
# ## What to read next
#
# - `ggml_new_tensor_impl`, `ggml_permute` and `ggml_is_contiguous_m_n` in `ggml/src/ggml.c`: short, and
#   nothing in them is new to you now. Ours are in `vizggml/ggml/context.py`, `ops_view.py` and `tensor.py`.
# - A view of a view of a view: where are its bytes, and who owns them? [Chapter 2, views](02-views.ipynb).
