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
# # Chapter 9: Scratch and attention
#
# The compute buffer has a place for the result of each node ([chapter 7](07-plan.ipynb)). But a kernel may need memory
# on the way to its result. A matrix product with quantized weights first turns its other operand, the activations, into a
# type of 8 bits, here `Q8_0`. Softmax needs a row to work in. These bytes are no tensor, and nobody reads them when the node is done. Where
# do they lie?

# %% [markdown]
# ## Maximum, not sum
#
# Nodes are computed one after the other. What one has done with is free for the next. So one piece of memory serves
# all, if it is as large as the greediest needs. It is called *scratch*, or the work buffer.

# %%
needs = {"Q": 3_000, "ROPE": 1_000, "softmax": 4_000, "values": 9_000}
print(f"a piece for each: {sum(needs.values()):>6,} bytes")
print(f"one for all:      {max(needs.values()):>6,} bytes")

# %% [markdown]
# ## In the engine
#
# `ggml_graph_plan` walks over the graph before it is computed, and asks of each node: on how many threads, and how many
# bytes of scratch? Here is a step of 64 tokens of the tiny model, attention written out in single nodes.

# %%
import numpy as np

import vizggml as vg
from vizggml import ggml, lessons

model = vg.load_model("tiny")


def step_of_64(**settings):
    return model.context(n_ubatch=64, **settings).step_graph(64)


plain = step_of_64(n_ctx=256, flash_attn=False)
with vg.record() as trace:
    plan = ggml.graph_plan(plain, n_threads=4)

needing = sum(size > 0 for size in plan.work_sizes)
print(f"{needing} of {len(plain.nodes)} nodes need scratch")
print(f"sum     {sum(plan.work_sizes):>9,} bytes")
print(f"maximum {max(plan.work_sizes):>9,} bytes")
print(f"planned {plan.work_size:>9,} bytes")

# %% [markdown]
# A bar is a node, the line above is the maximum so far. It rises where a node needs more than all before it. Walk back
# with **←** to read the reasons.

# %%
vg.view(trace, panes=["scratch"], step=len(trace) - 1, height=520)

# %% [markdown]
# What is planned is a bit more than the maximum: 64 bytes for each thread, so that two threads do not write in the same
# cache line.

# %%
added = plan.work_size - max(plan.work_sizes)
print(f"{added} bytes more; 4 threads, 64 each: {4 * 64}")

# %% [markdown]
# ## The formulas
#
# There are two kinds of scratch. Some is *shared*: all threads convert the activations of a matrix product together,
# wait for each other, and read all of them. Some is for *each thread*: a row for softmax, a row for `ROPE`. Change
# `n_threads`, run both cells. Which kind grows?

# %%
n_threads = 8


# %%
def greediest_of_each_op(n_threads):
    found = {}
    sizes = ggml.graph_plan(plain, n_threads=n_threads).work_sizes
    for t, size in zip(plain.nodes, sizes, strict=True):
        found[t.op] = max(size, found.get(t.op, 0))
    return found


one, many = greediest_of_each_op(1), greediest_of_each_op(n_threads)
print(f"{'threads':>8} {1:>8} {n_threads:>8}")
for op in (op for op in many if many[op]):
    print(f"{op:>8} {one[op]:>8,} {many[op]:>8,} bytes")

# %% [markdown]
# Three nodes by hand. The model's weights are quantized, so 32 activations become a `Q8_0` block of 34 bytes. The
# values in the cache are F16, so the weights that softmax made become F16 too.

# %%
plan = ggml.graph_plan(plain, n_threads=4)
sized = zip(plain.nodes, plan.work_sizes, strict=True)
found = {(t.op, t.name): (t, size) for t, size in sized}

query, size = found["MUL_MAT", "Qcur-0"]
by_hand = query.src[1].nelements // 32 * 34
print(f"Q, activations as Q8_0: {by_hand:>7,}; planned {size:>7,}")

soft, size = found["SOFT_MAX", "kq_soft_max-0"]
by_hand = 4 * soft.ne[0] * 4
print(f"softmax, 4 rows of F32: {by_hand:>7,}; planned {size:>7,}")

kqv, size = found["MUL_MAT", "kqv-0"]
by_hand = kqv.src[1].nelements * 2
print(f"values, weights as F16: {by_hand:>7,}; planned {size:>7,}")

# %% [markdown]
# The engine tells the same, with its numbers:

# %%
for sentence in trace.sentences("NodePlanned"):
    name, terms = sentence.split()[0], sentence.partition("work in: ")[2]
    if terms and name in ("Qcur-0", "kq_soft_max-0", "kqv-0"):
        lessons.tell(f"{name}: {terms}")

# %% [markdown]
# The largest need is part of attention. And attention has a larger problem, which is no scratch at all.

# %% [markdown]
# ## A number for each pair
#
# Each token of a step is compared with each cell, in each head. Written out, these scores are a tensor, `kq`. Look at
# the plan of the tiny model's compute buffer with 1,024 cells: in each layer the scores stand out like a tower.


# %%
def reserved(graph):
    with vg.record() as trace:
        galloc = ggml.GraphAllocator(ggml.cpu_buffer_type())
        galloc.reserve(graph)
    print(f"{galloc.get_buffer_size():,} bytes")
    return trace


in_many = reserved(step_of_64(n_ctx=1024, flash_attn=False))
vg.view(in_many, panes=["timeline"], step=len(in_many) - 1, height=520)

# %% [markdown]
# In larger models it is worse. Plan MiniMind, of 8 layers and 8 heads, with 8,192 cells and steps of 512 tokens. Here
# is what lives at the peak:

# %%
from vizggml.llama.cparams import ContextParams
from vizggml.llama.plan import plan_shape


def minimind(n_ctx, flash_attn):
    settings = ContextParams(n_ctx=n_ctx, flash_attn=flash_attn)
    return plan_shape("minimind-64m", "F16", settings)


big = minimind(8192, flash_attn=False)
for t in sorted(big.peak, key=lambda t: -t["size"])[:3]:
    print(f"{t['name']:>16} {t['size']:>12,} bytes")
print(f"{'scores by hand':>16} {8 * 512 * 8192 * 4:>12,} bytes")
print(f"{'compute buffer':>16} {big.compute:>12,} bytes")

# %% [markdown]
# Twice the context, twice the scores. Yet each of them is used once: it becomes a weight, the weight multiplies a row
# of values, that is all. Can you get the result without ever holding a whole row?

# %% [markdown]
# ## Softmax, one score at a time
#
# The obstacle is the softmax: it subtracts the largest score of the row, and divides by the sum. Both are known only at
# the end. So begin with what you know, and *correct* it: keep the largest score so far `M`, the sum `S` and the
# weighted values `out`. When a larger score comes, all that you have was too large by the same factor. Scale it down
# and go on.

# %%
scores, values = np.array([1.0, 3, 2, 5]), np.array([10.0, 20, 30, 40])
M, S, out = -np.inf, 0, 0
for score, value in zip(scores, values, strict=True):
    largest = max(M, score)
    correction, weight = np.exp(M - largest), np.exp(score - largest)
    S = S * correction + weight
    out = out * correction + weight * value
    M = largest
    print(f"{score=:.0f} {M=:.0f} {correction=:.3f} {S=:.3f} {out=:.3f}")

weights = np.exp(scores)
in_one_go = weights @ values / weights.sum()
print(f"out / S: {out / S:.4f}, in one go: {in_one_go:.4f}")

# %% [markdown]
# Where a score is a new largest, the correction is below 1: at the first, second and last score. At the third it is 1,
# nothing changes.
#
# ## A tile at a time
#
# One score at a time is slow. Take a *tile* of cells, for all queries at once; the idea is the same.


# %%
def online(q, keys, values, tile):
    M, S, out = np.full((len(q), 1), -np.inf, q.dtype), 0, 0
    for first in range(0, len(keys), tile):
        part = slice(first, first + tile)
        scores = q @ keys[part].T / q.shape[1] ** 0.5
        largest = np.maximum(M, scores.max(axis=1, keepdims=True))
        correction = np.exp(M - largest)
        weights = np.exp(scores - largest)
        S = S * correction + weights.sum(axis=1, keepdims=True)
        out = out * correction + weights @ values[part]
        M = largest
    return out / S


# %% [markdown]
# A few lines. Is it the softmax of the textbook, whatever the tile?


# %%
def textbook(q, keys, values):
    scores = q @ keys.T / q.shape[1] ** 0.5
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True) @ values


rng = np.random.default_rng(3)
q, keys, values = rng.normal(size=(3, 512, 64)).astype(np.float32)
wanted = textbook(q, keys, values)
for tile in (1, 64, 100, 512):
    off = abs(online(q, keys, values, tile) - wanted).max()
    held = tile * len(q)
    print(f"tile {tile:>3}: {held:>7,} scores held, difference {off:.1e}")

# %% [markdown]
# You may read that flash attention is an approximation. It is not: what differs is how sums are rounded, here in the last
# bits of an F32. (Where ggml takes cells singly, and the values are F16, it also keeps `out` in F16, and rounds more.) That
# is enough for llama.cpp's text to change when you switch it on, where two tokens are nearly as likely.

# %% [markdown]
# ## One node
#
# `FLASH_ATTN_EXT` is this loop, as one op in place of several: the scores are never a tensor. Give it the same numbers:

# %%
c = ggml.Context(mem_size=4 << 20)
tensors = [
    c.new_tensor("F32", (64, 512, 1), name=name).set(numbers)
    for name, numbers in (("q", q), ("k", keys), ("v", values))
]
attended = ggml.flash_attn_ext(c, *tensors, None, 1 / 8, 0.0, 0.0)
g = ggml.Graph(c)
g.build_forward_expand(attended)
ggml.graph_compute(g, ggml.graph_plan(g, n_threads=1))

off = abs(attended.array()[0, :, 0] - online(q, keys, values, 64)).max()
print(f"ne {attended.ne}, difference {off:.1e}")

# %% [markdown]
# The tiny model's step of 64 tokens with 1,024 cells again, now with this node. The towers are gone. (Mind the axis: it
# reaches to the peak. The towers that you see now are the feed-forward network, and they were there before.)
# `vg.compare(in_many, in_one)` lays both side by side and lists what differs.

# %%
in_one = reserved(step_of_64(n_ctx=1024, flash_attn=True))
vg.view(in_one, panes=["timeline"], step=len(in_one) - 1, height=520)

# %% [markdown]
# ## The tiles are scratch
#
# A tile has to lie somewhere while a thread works on it, and this is scratch, for each thread. With *Q* queries and *C*
# cells in a tile, and heads of *D*: the queries, *QD* numbers; the keys and the values, *CD* each; the sums, *QD*; the
# scores and the mask, *QC* each. All in F32.
#
# A published description of ggml says that MiniMind takes 14 MB of scratch on 16 threads. Its heads have 96 elements.
# With tiles of 256 x 256 the sum is:


# %%
def tile_floats(Q, C, D):
    return Q * D + 2 * C * D + Q * D + 2 * Q * C


for side in (256, 64):
    floats = tile_floats(side, side, 96)
    print(f"tiles of {side} x {side}: {floats:,} floats a thread,")
    print(f"    {4 * 16 * floats:,} bytes on 16 threads")

# %% [markdown]
# So the description fits tiles of 256 x 256. The llama.cpp of this course has 64 x 64: `GGML_FA_TILE_Q` and
# `GGML_FA_TILE_KV` in `ggml/src/ggml-cpu/common.h`. The engine plans either.


# %%
def minimind_attention(n_tokens, n_cells):
    c = ggml.Context(mem_size=1 << 18, no_alloc=True)
    q = c.new_tensor("F32", (96, n_tokens, 8))
    k, v = (c.new_tensor("F16", (96, n_cells, 4)) for _ in "kv")
    g = ggml.Graph(c)
    node = ggml.flash_attn_ext(c, q, k, v, None, 96**-0.5, 0.0, 0.0)
    g.build_forward_expand(node)
    return g


def attention_scratch(n_tokens, n_cells, side):
    g = minimind_attention(n_tokens, n_cells)
    plan = ggml.graph_plan(g, n_threads=16, flash_tile=(side, side))
    return plan.work_sizes[0]


print(f"{attention_scratch(512, 2048, side=256):>10,} bytes")
print(f"{attention_scratch(512, 2048, side=64):>10,} bytes")

# %% [markdown]
# The formula asks neither for the tokens of the step nor for the cells:

# %%
for n_tokens, n_cells in ((512, 2048), (512, 32768), (1, 1048576)):
    size = attention_scratch(n_tokens, n_cells, side=64)
    print(f"tokens {n_tokens:>3}, cells {n_cells:>9,}: {size:,} bytes")

# %% [markdown]
# (Tiles are for steps of 64 tokens and more, with a cache of F16 or F32. Other steps take their cells singly, and one token
# with 512 cells or more shares them among the threads. That has a formula of its own, and the plan keeps the larger of both.
# Exercise 09.4 puts the threads' parts together.)

# %% [markdown]
# ## Change this and watch
#
# The tiny model again, now with flash attention. Change `side`, run both cells. Watch which node is the greediest. From
# which `side` downwards is it no longer the attention?

# %%
side = 64

# %%
flash = step_of_64(n_ctx=256, flash_attn=True)
with vg.record() as trace:
    plan = ggml.graph_plan(flash, n_threads=4, flash_tile=(side, side))
most = max(plan.work_sizes)
node = flash.nodes[plan.work_sizes.index(most)]
print(f"{node.op} ({node.name}) needs the most: {most:,} bytes")
vg.view(trace, panes=["scratch"], step=len(trace) - 1, height=520)

# %% [markdown]
# ## What it saves
#
# MiniMind with more and more cells, 512 tokens in a step; bytes of the compute buffer:


# %%
def both_ways(n_ctx):
    return [minimind(n_ctx, on).compute for on in (False, True)]


print(f"{'cells':>6} {'plain':>12} {'flash':>12}")
for cells in (512, 2048, 8192):
    bytes_plain, bytes_flash = both_ways(cells)
    print(f"{cells:>6,} {bytes_plain:>12,} {bytes_flash:>12,}")

# %% [markdown]
# With flash attention it still grows a little. That is the mask, a number for each token and cell, but not for each
# head. From 512 to 8,192 cells, in F16:

# %%
grown = both_ways(8192)[1] - both_ways(512)[1]
print(f"{grown:,} bytes; the mask: {512 * (8192 - 512) * 2:,}")

# %% [markdown]
# llama.cpp itself took the following. The last line is a case where nothing is saved.


# %%
def theirs(name, cells):
    kinds = ("plain", "flash")
    return [lessons.golden(f"{name}.compute.{k}.{cells}") for k in kinds]


print(f"{'':>9}{'cells':>6} {'plain':>12} {'flash':>12}")
cases = ("minimind", 8192), ("smollm2", 8192), ("smollm2", 2048)
for name, cells in cases:
    bytes_plain, bytes_flash = theirs(name, cells)
    print(f"{name:>9}{cells:>6,} {bytes_plain:>12,} {bytes_flash:>12,}")
print("MiniMind as planned:", theirs("minimind", 8192) == both_ways(8192))

# %% [markdown]
# Why? SmolLM2 has a large vocabulary: 49,152 tokens. The logits of 512 tokens take:

# %%
print(f"{512 * 49152 * 4:,} bytes")

# %% [markdown]
# The buffer is as large as its worst moment. For SmolLM2 with 2,048 cells that moment is not attention but the logits,
# with either kind.
#
# Then why does flash attention take less with 8,192 cells than with 2,048? The plan is no perfect packing ([chapter
# 7](07-plan.ipynb)). At the peak the same bytes live, but the logits found room at another place:

# %%
from vizggml.llama.plan import plan_file

for cells in (2048, 8192):
    peak = plan_file("smollm2", ContextParams(n_ctx=cells)).peak
    alive = sum(t["size"] for t in peak)
    at = max(peak, key=lambda t: t["size"])["offset"]
    print(f"{cells:>5,} cells: {alive:,} bytes live, logits at {at:,}")

# %% [markdown]
# A claim such as "flash attention halves the memory" needs a model and a context beside it.

# %% [markdown]
# ## In llama.cpp
#
# `ggml_graph_plan` in `ggml/src/ggml-cpu/ggml-cpu.c` is the switch with all the formulas.
# `ggml_compute_forward_flash_attn_ext_tiled` in `ggml/src/ggml-cpu/ops.cpp` is the loop over tiles; beside it lie the
# ways for few queries and for one. `llm_graph_context::build_attn_mha` in `src/llama-graph.cpp` builds the one node or
# the several.

# %% [markdown]
# ## Exercises
#
# Put your answer in place of the three dots. A wrong answer gets a hint; `lessons.solution("09.1")` prints the
# solution.
#
# **09.1** Four nodes need 100, 3,000, 500 and 2,000 bytes of scratch. How large is the work buffer on 8 threads?

# %%
answer = ...
lessons.check("09.1", answer)

# %% [markdown]
# **09.2** 32 heads, 512 tokens in a step, 16,384 cells: how many bytes do the scores of one layer take, written out in
# F32?

# %%
answer = ...
lessons.check("09.2", answer)

# %% [markdown]
# **09.3** How many bytes of scratch does `FLASH_ATTN_EXT` need with llama.cpp's tiles, heads of 128, on 8 threads?
# (Without the padding of the plan.)

# %%
answer = ...
lessons.check("09.3", answer)

# %% [markdown]
# **09.4** Two threads have each seen half of the cells. Each has its `M`, `S` and `out` (not yet divided by `S`), for
# one query. Write `merge(M1, S1, out1, M2, S2, out2)` that returns `M, S, out` for all cells.

# %%
answer = ...
lessons.check("09.4", answer)

# %% [markdown]
# ## What to read next
#
# - `vizggml/ggml/cplan.py`, a function for each formula, and `vizggml/ggml/kernels/flash_attn.py`.
# - Weights as `Q4_0`, activations as `Q8_0`: what is in such a block? [Chapter 10,
#   quantization](10-quantization.ipynb).
