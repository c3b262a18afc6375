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
# # Chapter 6: Graph and order
#
# The allocator of [chapter 5](05-galloc.ipynb) went through the nodes "in execution order". Whose order? You have never
# given one. You wrote down records ([chapter 4](04-deferred.ipynb)), each of which points to its sources, and in the end
# you hold one tensor: the result. What must be computed for it, and what first?

# %% [markdown]
# ## Follow the arrows
#
# Go from the result to its sources, from these to theirs, and write a tensor down when you come *back* from it: then all
# that it needs is written down already. That is a depth-first visit, and this is all of it:

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
# Correct, but `x` is there three times, once for each way that leads to it. Three ways are nothing. Now add a tensor to
# itself, and the result to itself, sixteen times:

# %%
needs = {f"t{k}": [f"t{k - 1}"] * 2 for k in range(1, 17)} | {"t0": []}
visits = len(visit("t16", []))
print(f"{visits:,} visits to {len(needs)} tensors")

# %% [markdown]
# Each tensor doubles the work. So remember what you have met:


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
# The two lines with `seen` are why a `ggml_cgraph` has a hash set. (Its slots then also serve to look up what is kept for a
# tensor: use counts, gradients.)

# %% [markdown]
# ## ggml's visit
#
# The first example again, in ggml. Tensors that nothing computes become *leafs*; the others become *nodes*.

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
# Step through it: down to `x`, up again, and down the next way. Where a way leads to something known, it says so and
# turns back at once.

# %%
vg.view(trace, panes=["graph", "events"])

# %% [markdown]
# Without the player, the same walk as text:

# %%
walk = ("VisitEnter", "AlreadyVisited", "LeafAppended", "NodeAppended")
lessons.tell(*trace.sentences(*walk))

# %% [markdown]
# ## The hash set
#
# "Have I met this tensor?" must be answered in no time, however many there are. C has no `set`. ggml takes the address of
# the record, divides it by 16, and takes the remainder by the number of slots. If that slot holds another tensor, it
# tries the next one. In Python, with addresses as the arena gives them, one record every 368 bytes:

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
# Neighbours come to lie 23 slots apart (368 divided by 16), around and around. The number of slots is a prime, so they
# fill all of them before one meets another. ggml takes it from a list of primes: the first that is at least twice the
# size of the graph. Here is that of the graph above, and who sits where:

# %%
print(f"size {g.size}, {g.hash_size} slots")
seats = enumerate(g.hash_keys)
print({slot: t.name for slot, t in seats if t is not None})

# %% [markdown]
# A collision takes two records whose distance, divided by 16, is a multiple of the number of slots. Make one: put enough
# records between two that are needed.

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
# (`out`, visited first, decides where our slots begin to count: we have no real addresses, and take those of one long
# arena.) A collision costs a few more looks, no more: the answer is never wrong, as the slot keeps the tensor itself and
# not its hash.

# %% [markdown]
# ## Use counts, and what they are not for
#
# On its way back the visit counts how often each tensor is a source. `x * x` counts twice.

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
# You may read that a tensor is freed when its use count reaches zero while the graph runs. ggml's counts never go down.
# They serve the backends: if a result is used once only, two nodes can be *fused* into one (`ggml_can_fuse`,
# `ggml-impl.h`). The allocator keeps counts of its own (children and views), and plays them down to zero before anything
# runs. Here the plan is nearly done: *children left* has come down to 0, *uses* has not moved. Step back to see it go.

# %%
kinds = [type(event).__name__ for event in trace.events]
freed = kinds.index("TensorFreed")
vg.view(trace, panes=["counts", "events"], step=freed, height=560)

# %% [markdown]
# Another proof: spoil the graph's counts, and its plan stays as it is.


# %%
def planned(g):
    galloc = ggml.GraphAllocator(ggml.cpu_buffer_type())
    return galloc.reserve_n_size(g)[0]


before = planned(g)
g.use_counts = [99] * g.hash_size
print("the same plan:", before == planned(g))

# %% [markdown]
# ## A cycle
#
# A builder can only take sources that exist already, so the arrows cannot lead in a circle. But `src` is a field like any
# other. Bend an arrow: `a` reads what is computed from `a`.

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
# Here our engine is stricter than ggml, whose visit does not look: `d` is in the hash set, so it turns back, and gives an
# order in which `a` comes before the `d` that it needs. The short `visit_once` from above does the same, without a word:

# %%
needs = {"d": ["b"], "b": ["a", "x"], "a": ["d"], "x": []}
print(visit_once("d", [], set()))

# %% [markdown]
# ## Two orders, one result
#
# A visit may go to the left source first, or to the right one. Both orders are valid; both compute the same. Do they take
# the same memory?
#
# `out` needs two results. `slim` comes from a wide tensor that is summed up; `long` is simply kept.


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
# Left first: `long` lies there, waiting for its partner, while `wide` comes and goes beside it.

# %%
vg.view(traces["left to right"], panes=["timeline"], height=450)

# %% [markdown]
# Right first: `wide` is gone before `long` comes. No tensor has become smaller; only their lives overlap less.

# %%
vg.view(traces["right to left"], panes=["timeline"], height=450)

# %% [markdown]
# The rule behind it is old (Sethi and Ullman, 1970): first the branch that needs much and leaves little. ggml does not
# search for such an order: it goes from left to right, always. `GGML_CGRAPH_EVAL_ORDER_RIGHT_TO_LEFT` is there, but
# nothing in llama.cpp's `src/` asks for it.

# %% [markdown]
# ## Who really decides: the model's code
#
# There is a stronger means than left and right: to expand *earlier*. What is expanded first comes first. llama.cpp does
# this in every layer, and for two reasons. See what is missing if you follow the arrows from the logits alone:

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
# Nobody *reads* `SET_ROWS`: it writes the new keys and values into the cache, and attention reads the cache, not its
# result. No arrow leads from the logits to it, nor to the products that made these keys and values. So `build_attn`
# expands both writes, before the attention that must see them. The order is the only thing that ties them together.

# %%
writes = [step.index_of(t) for t in step.nodes if t.op == "SET_ROWS"]
reads = [step.index_of(t) for t in step.nodes if t.op == "SOFT_MAX"]
print("the cache is written at", writes)
print("attention's softmax at ", reads)

# %% [markdown]
# The second reason: q, k and v are expanded together, so that no node of another kind comes between; with several
# backends, this makes for fewer splits ([chapter 11](11-backends.ipynb)). And k is the last of them, so that a backend may
# fuse its rotation with the write into the cache. You find both as comments in `build_attn`.

# %% [markdown]
# ## What does the order amount to in a model?
#
# `two_branches` was made for the purpose. Take the step of a real model, SmolLM2 with 32 tokens, and visit it again: expand
# only what must be expanded, the inputs, the writes and the logits, and leave the rest to left and right. The nodes are
# the same.


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
# The most that is alive at once is the same in all three: it is where a layer has its attention scores, and every order
# must pass through them. The plans differ only in how well the allocator packs. So do not expect wonders from an
# order: a chain of layers leaves it little choice.

# %% [markdown]
# ## In llama.cpp
#
# `ggml_visit_parents_graph` and `ggml_build_forward_expand` in `ggml/src/ggml.c`; the hash set in
# `ggml/src/ggml-impl.h`. A real model: our visit beside what llama.cpp built.

# %%
with vg.record() as trace:
    graph = big.step_graph(1)
theirs = lessons.golden("smollm2.nodes.plain")
print(f"SmolLM2: {len(graph.nodes):,} nodes; llama.cpp: {theirs:,}")
print(f"room for {graph.size:,}, {graph.hash_size:,} slots")
taken = len(trace.sentences("SlotTaken"))
print(f"a taken slot was met {taken} times")

# %% [markdown]
# ## Change this and watch
#
# `width` and `length` are the sizes of `wide` and `long`, in elements. No allocator can go below what is *live* at once.
# Try (256, 8), then (64, 32). In the last one, less is alive at once from right to left, and yet the plan takes more: a
# hole is left that is too narrow for `out`. The order gives the lives; what the allocator makes of them is another matter.

# %%
width, length = 256, 64

# %%
for order in ("left to right", "right to left"):
    g = two_branches(order, width, length)
    live = ggml.graph_liveness(g).bound
    print(f"{order}: {planned(g):,} bytes, live {live:,}")

# %% [markdown]
# ## Exercises
#
# Put your answer in place of the three dots. A wrong answer gets a hint; `lessons.solution("06.1")` prints the solution.
#
# **06.1** `x` and `w` are leafs; `p = sqr(x)`, `q = relu(w)`, `r = mul(q, p)`, `s = add(p, r)`, `t = add(r, s)`. In
# which order are the nodes of `t` appended? A string of their letters.

# %%
answer = ...
lessons.check("06.1", answer)

# %% [markdown]
# **06.2** `y = mul(x, x)`, `z = add(y, y)`, `t = mul(z, x)`. What are the use counts of x, y, z, t? Four numbers.

# %%
answer = ...
lessons.check("06.2", answer)

# %% [markdown]
# **06.3** `two_branches("right to left", width=48, length=24)`: how many bytes does the plan take? Work it out by hand.
# An `F32` has 4 bytes, every size is rounded up to a multiple of 32, and `out` has one element more than `long`.

# %%
answer = ...
lessons.check("06.3", answer)

# %% [markdown]
# **06.4** Write a function `order(result, sources)`. `sources(t)` gives the list of sources of a tensor (here just
# strings). It returns all tensors that `result` needs, each once, each after its sources, the left source first. It
# will be tried on several graphs, one of which is like `t16` above.

# %%
answer = ...
lessons.check("06.4", answer)

# %% [markdown]
# ## What to read next
#
# - `ggml_visit_parents_graph` in `ggml/src/ggml.c`: the visit, in one page. Ours is `vizggml/ggml/cgraph.py`.
# - `llm_graph_context::build_attn` in `src/llama-graph.cpp`: the expansions, and the comments.
# - What the order makes of memory as a whole: [Chapter 7, the static plan](07-plan.ipynb).
