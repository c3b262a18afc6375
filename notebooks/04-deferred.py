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
# # Chapter 4: Deferred execution and reuse
#
# You can make tensors ([chapter 1](01-tensors.ipynb)), view them ([2](02-views.ipynb)), and give them memory
# ([3](03-memory.ipynb)). Now you would like many of them to share the same memory. Whoever gives a place away must know
# that nobody will read it any more; and halfway through a computation nobody knows that. NumPy computes each line when it
# meets it. This is the price:

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
# Python cannot know that `a` and `b` are done with: perhaps your next line reads them. ggml wants to see the whole
# computation first. So nothing may be computed while you write it down.

# %% [markdown]
# ## Labels, not results
#
# Deferring is easy. An operation returns a label that says what it *would* do, and to what.

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
# ggml's builders do just that. `ggml_add` adds nothing: it appends a tensor to the arena, writes `op` and `src` into
# it, and returns. With `no_alloc` there are not even bytes to compute with. So you can write down a product that no
# laptop could hold:

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
# `data None`: nobody has computed anything, and there is nowhere to put it. Step through it. Each builder appends one
# object to the arena; nothing else happens.

# %%
vg.view(trace, panes=["arena", "events"])

# %% [markdown]
# ## The recipe, again and again
#
# What you have written down is a recipe. It says where the ingredients will lie, not what they are. Compute it, write
# another number into the input, and compute the same graph again: no line of it is built anew.

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
# Keep this in mind; it makes the second half of the chapter.

# %% [markdown]
# ## In place, when you say so
#
# A recipe known in advance can also say: write the result over its source. `ggml.sqr_inplace` returns a *view* of its
# source, so the result has no bytes of its own. This is a promise from you that nobody reads the source afterwards, and
# ggml does not check it. Here the promise is broken: `x` is read again by the last line.


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
# The second line is wrong, and nothing complains: it added the square to the square.

# %% [markdown]
# ## In place, when the allocator finds it safe
#
# So the models of llama.cpp almost never say `_inplace`. They write plain operations, and the graph allocator, which has
# seen the whole recipe, decides for itself. For every node it asks each source in turn: may the result lie where you lie?
#
# Let it tell you its reasons. In the small graphs below, `w` is a weight with memory of its own, `i` is an input that the
# plan must find a place for, and `n` is the node to watch.


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
# **The op.** It must be able to write over what it reads, element by element or a row at a time (`ggml_op_can_inplace`
# lists the ops that can). A matrix product reads its rows again and again.


# %%
def product(c, w, i):
    return ggml.mul_mat(c, w, i).set_name("n")


_ = asked(product)

# %% [markdown]
# **Whose memory.** The source must lie in memory that the plan gives away. Weights do not; the next source may.


# %%
def weight_first(c, w, i):
    return ggml.add(c, w, i).set_name("n")


_ = asked(weight_first)

# %% [markdown]
# **An output.** You want to read it when all is done.


# %%
def output(c, w, i):
    p = ggml.sqr(c, i).set_name("p").set_output()
    return ggml.scale(c, p, 2.0).set_name("n")


_ = asked(output)

# %% [markdown]
# **The layout.** Type, shape and strides must be those of the result. Here one row `p` is added to all rows of `w`.


# %%
def one_row(c, w, i):
    row = c.new_tensor("F32", (8,), name="row")
    return ggml.add(c, w, ggml.sqr(c, row).set_name("p")).set_name("n")


_ = asked(one_row)

# %% [markdown]
# **Other readers.** `n` must be the last to read it. Here the sum still wants `p`.


# %%
def read_again(c, w, i):
    p = ggml.sqr(c, i).set_name("p")
    return ggml.add(c, ggml.scale(c, p, 2.0).set_name("n"), p)


_ = asked(read_again)

# %% [markdown]
# **Views.** Nor may a view be left that somebody will read.


# %%
def viewed(c, w, i):
    p = ggml.sqr(c, i).set_name("p")
    row = ggml.view_1d(c, p, 8, 0).set_name("row of p")
    return ggml.mul_mat(c, row, ggml.scale(c, p, 2.0).set_name("n"))


trace = asked(viewed)

# %% [markdown]
# Step through this last one. `p` takes over the place of `i`, whose only reader it is: where both live, their rectangles
# lie on each other and look darker. `n` may not follow, and needs a second place.

# %%
vg.view(trace, panes=["timeline", "events"])

# %% [markdown]
# ## Is building free?
#
# A record is small, but a model has many of them, and the graph of a step must be built, visited and given its places
# before it is computed. How long does this take, beside the computing? (Times vary; this cell takes some seconds.)

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
# Building in Python is much slower than in C++, and the tiny model has little to compute, so this exaggerates. But in
# C++ too it is work done for each token, and mostly for nothing: a token later, the graph would come out the same.

# %% [markdown]
# ## May the graph be used again?
#
# The recipe does not hold the tokens or their positions: those are written into input tensors. So for the next token the
# same graph serves, *if it would be built the same*. `can_reuse` decides that, condition by condition. Let it tell:

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
# A prompt of several tokens and a single token do not share a graph. Two single tokens do. The pane below shows every
# condition: what the standing graph had, and what is needed now.

# %%
kinds = [type(event).__name__ for event in trace.events]
decided = kinds.index("ReuseDecided")
vg.view(trace, panes=["reuse"], step=decided, height=780)

# %% [markdown]
# ## Break them one by one
#
# **The number of tokens.** Two in place of one: the results have a row for each token, so nearly all of them change.

# %%
_ = decode([5, 7])

# %% [markdown]
# **The number of outputs.** Again two tokens, but this time you want the logits of both. The last layer works only on
# rows that are asked for.

# %%
_ = decode([5, 7], outputs=[0, 1])

# %% [markdown]
# **No output at all.** Such graphs are kept apart. Only the graph that was computed last is ever looked at, though: the
# places of the other have been given away since.

# %%
_ = decode([5, 7], outputs=[])
_ = decode([5, 7], outputs=[0, 1])

# %% [markdown]
# **The sequences.** Two tokens, each the next of a conversation of its own. The *number* of different sequences counts. (Here
# all share one cache, as in llama.cpp with `--kv-unified`. Where each has a stream of its own, it counts which they are, too.)

# %%
from vizggml.llama.batch import Batch

batch = Batch()
batch.add(5, context.n_past, (0,), output=True)
batch.add(7, 0, (1,), output=True)
_ = decode(batch)

# %% [markdown]
# **The cache grows.** The graph does not look at the whole cache, but at its first cells, in steps of 256. Fill them up:
# the parameters of the batch are the same each time, and still one token comes that needs a new graph.

# %%
while context.memory.caches[0].cells.used < 255:
    context.decode([5])
_ = decode([5])
trace = decode([5])
_ = decode([5])

# %% [markdown]
# If only the batch had been compared, token 257 would have been computed with a mask of 256 columns: it would not have
# seen itself. That is why each *input* is asked too. `InputAttnKV` has the last word here:

# %%
checked = trace.sentences("ReuseChecked")
lessons.tell(*(told for told in checked if "must be" in told))

# %% [markdown]
# ## In llama.cpp
#
# The conditions stand in `llm_graph_params::allow_reuse` (`src/llama-graph.h`) and in the `can_reuse` of every input
# (`src/llama-graph.cpp`); the decision is in `llama_context::process_ubatch` (`src/llama-context.cpp`). llama.cpp
# counts them: the line `graphs reused` at the end of its timings. The environment variable
# `LLAMA_GRAPH_REUSE_DISABLE=1` turns it off, to measure what it saves.
#
# So many nodes llama.cpp makes for one token of a real model, each time that it cannot reuse them:

# %%
for mode in ("plain", "flash"):
    nodes = lessons.golden(f"smollm2.nodes.{mode}")
    print(f"SmolLM2, {mode} attention: {nodes:,} nodes")

# %% [markdown]
# And this is for which tokens it did so, with the tiny model: first a prompt of 250, then one token at a time. The first of
# them is the first step that is not 250 tokens wide. For the other the cache has no cell left among those that the graph
# looks at.

# %%
print("llama.cpp built anew for", lessons.golden("tiny.anew.250"))

# %% [markdown]
# A popular account says that a graph is built once and then serves for the whole conversation. You have seen that it is
# not so: it serves until something breaks. Also, what is reused is the graph *with its places*. A new graph
# must be given its places again. That need not mean a new plan, and seldom means a new buffer
# ([chapter 7](07-plan.ipynb)).

# %% [markdown]
# ## Change this and watch
#
# The same in our engine. `n_prompt` is the length of the prompt: watch for which of the tokens after it the graph is built
# anew. Try 100, 255, 256.

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
# ## Exercises
#
# Put your answer in place of the three dots. A wrong answer gets a hint; `lessons.solution("04.1")` prints the solution.
#
# **04.1** In a context with `no_alloc` you make two tensors `a` and `b`, of 1,000 x 1,000 `F32` each, then
# `ggml.relu(c, ggml.add(c, a, b))`. How many bytes of the arena are used? A tensor's record takes 336 bytes, and 32 more
# for the object that it lies in.

# %%
answer = ...
lessons.check("04.1", answer)

# %% [markdown]
# **04.2** `i` is an input in the plan's memory. Then: `p = sqr(i)`, `q = scale(p, 2)`, `r = add(q, p)`, `s = mul_mat(r,
# r)`, `t = scale(s, 3)`; all are square matrices of one size, and `t` is the result. Which of the five results take
# over the place of a source? A string of their letters, such as `"pq"`.

# %%
answer = ...
lessons.check("04.2", answer)

# %% [markdown]
# **04.3** A prompt of 200 tokens, `n_ctx` 1024, then one token at a time. The first of them needs a new graph, as it is
# one token and not 200. Which is the next that does?

# %%
answer = ...
lessons.check("04.3", answer)

# %% [markdown]
# **04.4** Write a function `can_reuse(had, now)`. Each is a dictionary with `tokens` and `positions` (lists),
# `sequences` (a list with one number for each token), `n_outputs`, and `n_kv`, the cells that the graph looks at. The
# answer is whether the graph that was built for `had` serves for `now`. It will be tried on several pairs.

# %%
answer = ...
lessons.check("04.4", answer)

# %% [markdown]
# ## What to read next
#
# - `ggml_add_impl` in `ggml/src/ggml.c`: a builder, a few lines. `ggml_op_can_inplace` and
#   `ggml_gallocr_allocate_node` in `ggml/src/ggml-alloc.c`. Ours are in `vizggml/ggml/op_record.py` and `gallocr.py`.
# - `llm_graph_result::can_reuse` in `src/llama-graph.cpp`. Ours is in `vizggml/llama/graph_input.py`.
# - Who finds the place for a result that takes over none? [Chapter 5, the allocator](05-galloc.ipynb).
