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
# # Chapter 7: The static plan
#
# You have an allocator ([chapter 5](05-galloc.ipynb)), and an order in which it goes through the graph
# ([chapter 6](06-graph.ipynb)). Together they give every result a place before the first number is computed. How good is
# such a plan? And what does it cost while computing?

# %% [markdown]
# ## Lives are rectangles
#
# A result is born at its own node, and dies at the last node that reads it. In between it takes so many bytes. Draw the
# position in the order to the right, and bytes upwards: a rectangle. Its width is given by the order, its height by its
# shape. The plan may only choose how high to hang it. Two that overlap in time may not overlap in bytes.
#
# Five results, as (born, died, size). Each goes as low as those before it allow:

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
# `c` hangs where `a` was, and `d` where `b` was. So they need less than their sum:

# %%
total = sum(size for _, _, size in lives.values())
height = max(placed[name] + lives[name][2] for name in lives)
print(f"{total} bytes of results in {height} bytes")

# %% [markdown]
# Could it be less? At position 4, `c`, `d` and `out` live at once. No plan can go below the largest such sum. It is the
# *lower bound* (in the player: a dotted line).


# %%
def alive(p):
    spans = lives.values()
    return sum(size for born, died, size in spans if born <= p <= died)


sums = [alive(p) for p in range(6)]
print("alive:", sums, " lower bound:", max(sums))

# %% [markdown]
# ## The plan of a real step
#
# The tiny model, 32 tokens at once. `graph_liveness` works out the lives from the graph alone, without any allocator;
# so it can judge the allocator.

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
# These are its rectangles. Point at one to see whose it is; step, and watch them come in order.

# %%
vg.view(trace, panes=["timeline"], height=560)

# %% [markdown]
# The plan is not perfect, and is not meant to be: to find the best packing of rectangles is NP-hard. ggml goes through
# once and decides at once.

# %% [markdown]
# ## A plan is a list of numbers
#
# What remains of all the searching is an offset for each node, and the bytes that are kept for it. Six of them:

# %%
pairs = list(zip(step.nodes, galloc.node_allocs, strict=True))
for node, (place_of_it, *_) in pairs[31:37]:
    offset, room = place_of_it.offset, place_of_it.size_max
    print(f"{node.name:>12} at {offset:>7,}, {room:>7,} bytes")

# %% [markdown]
# The next graph of the same shape gets its addresses from this list; nothing is searched again.

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
# ## While computing: nothing
#
# Now watch the memory during real work: twenty tokens, the graph in use again for each. How often is memory asked for, or
# given back?

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
# Those are our own events. Ask the operating system as well: how much memory of this process is resident, after each
# single node? Twenty steps of ten tokens each, twice: once as they are, and once with memory of its own for every node,
# which is kept, as NumPy kept it at the beginning of [chapter 4](04-deferred.ipynb).

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
# A flat line, but for the little that Python itself takes while it measures.

# %% [markdown]
# ## Are intermediate results freed while computing?
#
# So it is often told. You have just counted: not once. `TensorFreed` happens in the *plan*, where it means: from here
# on the bytes may be promised to somebody else. At run time nothing moves; a node simply writes where another has been.
#
# It could be done the other way. Our engine has a teaching mode that frees for real, as soon as the last reader is
# done. Here it is, on a small graph:

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
# That takes no more memory than a plan. But it searches the list of free blocks between the nodes, for every token, and
# the peak is known only afterwards. A plan knows it in advance: that is how llama.cpp can tell you at the start whether
# it fits.

# %% [markdown]
# ## One plan for all steps
#
# Steps differ: a prompt, a token, a longer cache. So when a context is made, the worst graphs are planned first: a full
# prompt, a single token, and the prompt again. The buffer is as large as the largest.

# %%
with vg.record() as trace:
    context = vg.load_model("tiny").context(
        n_ctx=512, n_ubatch=64, n_threads=1
    )
lessons.tell(*trace.sentences("ReserveEnd"))

# %% [markdown]
# The third is there so that the plan of a prompt is the one that stands. A graph for fewer tokens has the same nodes,
# none of which is larger: it takes the places of the prompt's plan (`ggml_gallocr_needs_realloc` checks just that). It
# leaves much of the buffer unused, and costs no search.

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
# ## Does it save 70 to 85 percent?
#
# A figure that you may read. Of what, and on which graphs? Saved is what a place for each would take, less the plan, as a
# share of the former. Cut the graph of a step after its first layer, its second, and so on, and plan each piece (the cell
# takes a few seconds):


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
# So the figure is about right for a graph of very few layers. With one layer less is saved, as little has been used twice.
# With each more it is more: a layer adds its results to the sum, while the plan hardly grows, since every layer finds its
# place where the one before has been.
#
# Then what of the whole model?

# %%
for n_outputs in (1, 32):
    share = saved(step_graph("smollm2", 32, n_outputs))
    print(f"SmolLM2, 32 tokens, logits of {n_outputs:>2}: {share:.1%}")
for mode in ("plain", "flash"):
    share = saved(step_graph("tiny", 32, flash_attn=mode == "flash"))
    print(f"tiny,    32 tokens, {mode} attention: {share:.1%}")

# %% [markdown]
# A single number for "what the allocator saves" does not exist: name the graph. And mind what it is a share of: of the
# results. The weights and the cache are not in it.

# %% [markdown]
# ## In llama.cpp
#
# `llama_context::sched_reserve` and `graph_reserve` in `src/llama-context.cpp`; the plan in
# `ggml_gallocr_reserve_n_impl`, `ggml/src/ggml-alloc.c`. At the start it logs `CPU compute buffer size`. The same
# model, the same parameters:

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
# What is it that takes so much at 512 tokens? Ask who lives at the peak:

# %%
found = ggml.graph_liveness(step_graph("smollm2", 512))
at_peak = found.at(found.bound_at)
for life in sorted(at_peak, key=lambda life: -life.size)[:3]:
    print(f"{life.tensor.name:>12} {life.size:>12,} bytes")

# %% [markdown]
# The logits of every token, in case you ask for all of them: so it is with the library's own settings. Nearly the whole
# buffer is kept for a case that most programs never meet. A program that needs fewer says so with `n_outputs_max` in
# `llama_context_params`, as `llama-server` does.

# %% [markdown]
# ## Change this and watch
#
# The number of tokens in a step. The plan grows with it; watch the share that is saved.

# %%
n_tokens = 128

# %%
for n in (1, n_tokens):
    step = step_graph("tiny", n)
    size, share = planned(step), saved(step)
    print(f"{n:>4} tokens: {size:>10,} bytes, {share:.1%} saved")

# %% [markdown]
# ## Exercises
#
# Put your answer in place of the three dots. A wrong answer gets a hint; `lessons.solution("07.1")` prints the solution.
#
# **07.1** Four results, as (born, died, size), both positions included: (0, 2, 64), (1, 3, 32), (2, 4, 96), (4, 5,
# 128). What is the lower bound of their memory?

# %%
answer = ...
lessons.check("07.1", answer)

# %% [markdown]
# **07.2** Each layer of a model has results of 10 MB, and the plan takes 4 MB, however many layers there are. With how
# many layers does the plan save 95 %, for the first time?

# %%
answer = ...
lessons.check("07.2", answer)

# %% [markdown]
# **07.3** Write a function `plan(lives)`. It gets a list of (born, died, size), in the order of birth, and returns a
# list of offsets. Results that live at a common position may not share a byte. It must not take more than `place` above
# would take. It will be tried on several lists.

# %%
answer = ...
lessons.check("07.3", answer)

# %% [markdown]
# ## What to read next
#
# - `ggml_gallocr_alloc_graph_impl` in `ggml/src/ggml-alloc.c`: the walk, in one page. Ours is
#   `vizggml/ggml/gallocr.py`; the lower bound is in `liveness.py`.
# - The compute buffer is small now. What still grows with every token? [Chapter 8, the KV cache](08-kv-cache.ipynb).
