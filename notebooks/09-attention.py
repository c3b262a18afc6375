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
# The compute buffer has a place for the result of each node. But a kernel may need memory on the way to its result. A matrix
# product with quantized weights first turns its activations into `Q8_0`. Softmax needs a row to work in. These bytes are no
# tensor, and nobody reads them when the node is done. Where do they lie?

# %% [markdown]
# ## Maximum, not sum
#
# Nodes are computed one after the other. So what one has done with leaves room for the next: one piece of memory serves all,
# if it is as large as the greediest needs.

# %%
needs = {
    "mul_mat": 17_408,
    "rope": 1_024,
    "soft_max": 4_096,
    "mul_mat of the values": 131_072,
}
print(f"a piece for each: {sum(needs.values()):>8,}")
print(f"one for all:      {max(needs.values()):>8,}")

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
plain = model.context(
    n_ctx=256, n_ubatch=64, flash_attn=False
).step_graph(64)
with vg.record() as trace:
    plan = ggml.graph_plan(plain, n_threads=4)

print(
    f"{sum(size > 0 for size in plan.work_sizes)} of {len(plain.nodes)} nodes need scratch"
)
print(
    f"sum {sum(plan.work_sizes):,}, maximum {max(plan.work_sizes):,} bytes"
)
print(f"planned {plan.work_size:,} bytes")

# %% [markdown]
# A bar is a node, the line above is the maximum so far. It rises where a node needs more than all before it. Walk back with
# **←** to read the reasons.

# %%
vg.view(trace, panes=["scratch"], step=len(trace) - 1, height=520)

# %% [markdown]
# What is planned is a bit more than the maximum: 64 bytes for each thread, so that two threads do not write in the same
# cache line.

# %% [markdown]
# ## The formulas
#
# There are two kinds. Some scratch is *shared*: all threads convert the activations of a matrix product together, wait for
# each other, and read all of them. Other scratch is for *each thread*: a row for softmax, a row for `ROPE`. The second kind
# grows with the threads. Three nodes by hand:

# %%
sized = zip(plain.nodes, plan.work_sizes, strict=True)
by_name = {(t.op, t.name): (t, size) for t, size in sized}
query, query_size = by_name["MUL_MAT", "Qcur-0"]
soft, soft_size = by_name["SOFT_MAX", "kq_soft_max-0"]
kqv, kqv_size = by_name["MUL_MAT", "kqv-0"]

print(
    "Q's activations as Q8_0, 34 bytes for 32:  ",
    query.src[1].nelements // 32 * 34 == query_size,
)
print(
    "softmax, a row of F32 on each of 4 threads:",
    4 * soft.ne[0] * 4 == soft_size,
)
print(
    "values times weights, the weights as F16:  ",
    2 * kqv.src[1].nelements == kqv_size,
)

# %% [markdown]
# The engine tells the same, with its numbers:

# %%
for sentence in trace.sentences("NodePlanned"):
    name, terms = sentence.split()[0], sentence.partition("work in: ")[2]
    if terms and name in ("kq-0", "kq_soft_max-0", "kqv-0"):
        print(f"{name:>13}: {terms}")

# %% [markdown]
# The largest need is part of attention. And attention has a larger problem, which is no scratch at all.

# %% [markdown]
# ## A number for each pair
#
# Each token of a step is compared with each cell, in each head. Written out, these scores are a tensor, `kq`. Plan MiniMind,
# a model of 8 layers and 8 heads, with 8,192 cells and steps of 512 tokens:

# %%
from vizggml.llama.cparams import ContextParams
from vizggml.llama.plan import plan_shape

big = plan_shape(
    "minimind-64m", "F16", ContextParams(n_ctx=8192, flash_attn=False)
)
for standing in sorted(big.peak, key=lambda s: -s["size"])[:3]:
    print(f"{standing['name']:>18} {standing['size']:>12,} bytes")
print(
    f"{'compute buffer':>18} {big.compute:>12,} bytes; scores by hand {8 * 512 * 8192 * 4:,}"
)

# %% [markdown]
# Twice the context, twice the scores. Yet each of them is used once: it becomes a weight, the weight multiplies a row of
# values, that is all. Can you get the result without ever holding a whole row?

# %% [markdown]
# ## Softmax, a tile at a time
#
# The obstacle is the softmax: it subtracts the largest score of the row, and divides by the sum. Both are known only at the
# end. So begin with what you know, and *correct* it: keep the largest score so far `M`, the sum `S` and the weighted values
# `out`. When a larger score comes, all that you have was too large by the same factor. Scale it down and go on.


# %%
def online(q, keys, values, tile):
    M, S, out = np.full((len(q), 1), -np.inf), 0, 0
    for first in range(0, len(keys), tile):
        scores = q @ keys[first : first + tile].T / np.sqrt(q.shape[1])
        largest = np.maximum(M, scores.max(axis=1, keepdims=True))
        weights, correction = (
            np.exp(scores - largest),
            np.exp(M - largest),
        )
        S = S * correction + weights.sum(axis=1, keepdims=True)
        out = out * correction + weights @ values[first : first + tile]
        M = largest
    return out / S


# %% [markdown]
# Ten lines. Is it the softmax of the textbook, whatever the tile?


# %%
def textbook(q, keys, values):
    scores = q @ keys.T / np.sqrt(q.shape[1])
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True) @ values


rng = np.random.default_rng(3)
q, keys, values = rng.normal(size=(3, 512, 64)).astype(np.float32)
for tile in (1, 64, 100, 512):
    difference = abs(
        online(q, keys, values, tile) - textbook(q, keys, values)
    ).max()
    print(
        f"tile {tile:>3}: {tile * len(q):>7,} scores at once, difference {difference:.1e}"
    )

# %% [markdown]
# Not bit for bit: sums in another order round differently. That is one reason why llama.cpp's text may change when
# you switch flash attention on, where two tokens are nearly as likely.

# %% [markdown]
# ## One node
#
# `FLASH_ATTN_EXT` is this loop, as one op in place of several: the scores are never a tensor. Give it the same numbers:

# %%
c = ggml.Context(mem_size=4 << 20)
given = {"q": q, "k": keys, "v": values}
tensors = [
    c.new_tensor("F32", (64, 512, 1), name=name).set(x)
    for name, x in given.items()
]
attended = ggml.flash_attn_ext(c, *tensors, None, 1 / 8, 0.0, 0.0)
g = ggml.Graph(c)
g.build_forward_expand(attended)
ggml.graph_compute(g, ggml.graph_plan(g, n_threads=1))

ours = attended.array()[0, :, 0]
difference = abs(ours - online(q, keys, values, 64)).max()
print(
    "ne:", attended.ne, f"difference from the ten lines {difference:.1e}"
)

# %% [markdown]
# ## The tiles are scratch
#
# A tile has to lie somewhere while a thread works on it, and this is scratch, for each thread. With *Q* queries and *C*
# cells in a tile, and heads of *D*: the queries, *QD* numbers; the keys and the values, *CD* each; the sums, *QD*; the
# scores and the mask, *QC* each. All in F32.
#
# A published description of ggml says that MiniMind takes 14 MB of scratch on 16 threads. Its heads have 96 elements. With
# tiles of 256 x 256 the sum is:


# %%
def tile_floats(queries, cells, head):
    return 2 * queries * head + 2 * cells * head + 2 * queries * cells


for side in (256, 64):
    floats = tile_floats(side, side, 96)
    print(
        f"{side:>3} x {side:<3} {floats:>8,} floats a thread, {4 * 16 * floats:>10,} bytes on 16 threads"
    )

# %% [markdown]
# So the description is of tiles of 256 x 256. llama.cpp as it is today has 64 x 64: `GGML_FA_TILE_Q` and `GGML_FA_TILE_KV`
# in `ggml/src/ggml-cpu/common.h`. The engine plans either.

# %%
c = ggml.Context(mem_size=1 << 18, no_alloc=True)
q8 = c.new_tensor("F32", (96, 512, 8), name="q")
k4, v4 = (c.new_tensor("F16", (96, 2048, 4), name=name) for name in "kv")
g = ggml.Graph(c)
g.build_forward_expand(
    ggml.flash_attn_ext(c, q8, k4, v4, None, 96**-0.5, 0.0, 0.0)
)
for flash_tile in ((256, 256), (64, 64)):
    with vg.record() as trace:
        plan = ggml.graph_plan(g, n_threads=16, flash_tile=flash_tile)
    (planned,) = trace.sentences("NodePlanned")
    print(
        f"{plan.work_sizes[0]:>10,}:", planned.partition("work in: ")[2]
    )

# %% [markdown]
# The formula asks neither for the cells nor for the tokens of the step: 512 tokens against 2,048 cells take what one token
# against a million takes. (A step of one token takes its cells singly. It has a formula of its own, and the plan keeps the
# larger of both.)

# %% [markdown]
# ## Change this and watch
#
# The tiny model again, now with flash attention. Change `side` and `n_threads`, run both cells. Watch which node is the
# greediest. From which `side` downwards is it no longer the attention? And does that depend on the threads?

# %%
side, n_threads = 64, 4

# %%
flash = model.context(n_ctx=256, n_ubatch=64, flash_attn=True).step_graph(
    64
)
with vg.record() as trace:
    plan = ggml.graph_plan(
        flash, n_threads=n_threads, flash_tile=(side, side)
    )
greediest = flash.nodes[int(np.argmax(plan.work_sizes))]
print(
    f"{greediest.op} ({greediest.name}) needs the most: {max(plan.work_sizes):,} bytes"
)
vg.view(trace, panes=["scratch"], step=len(trace) - 1, height=520)

# %% [markdown]
# ## What it saves
#
# MiniMind with more and more cells, 512 tokens in a step; bytes of the compute buffer:

# %%
for n_ctx in (512, 2048, 8192):
    both = [
        plan_shape(
            "minimind-64m",
            "F16",
            ContextParams(n_ctx=n_ctx, flash_attn=flash),
        ).compute
        for flash in (False, True)
    ]
    print(
        f"{n_ctx:>6} cells: plain {both[0]:>12,}   flash {both[1]:>12,}"
    )

# %% [markdown]
# With flash attention it still grows a little. That is the mask, a number for each token and cell, but not for each head.
#
# llama.cpp itself took these at 8,192 cells. And a case where nothing is saved: SmolLM2 at 2,048 cells.

# %%
for name, n_ctx in (
    ("minimind", 8192),
    ("smollm2", 8192),
    ("smollm2", 2048),
):
    of = f"{name}.compute"
    both = [
        lessons.golden(f"{of}.{kind}.{n_ctx}")
        for kind in ("plain", "flash")
    ]
    print(
        f"{name:>8} {n_ctx:>6,} cells: plain {both[0]:>12,}   flash {both[1]:>12,}"
    )
print(
    "ours, first line: ",
    big.compute == lessons.golden("minimind.compute.plain.8192"),
)
print("SmolLM2's logits: ", f"{512 * 49152 * 4:,} bytes")

# %% [markdown]
# The buffer is as large as its worst moment. For SmolLM2 with 2,048 cells that moment is not attention but the logits of
# 512 tokens, with either kind. A claim such as "flash attention halves the memory" needs a model and a context beside it.

# %% [markdown]
# ## In llama.cpp
#
# `ggml_graph_plan` in `ggml/src/ggml-cpu/ggml-cpu.c` is the switch with all the formulas.
# `ggml_compute_forward_flash_attn_ext_tiled` in `ggml/src/ggml-cpu/ops.cpp` is the loop over tiles; beside it lie the ways
# for few queries and for one. `llm_graph_context::build_attn_mha` in `src/llama-graph.cpp` builds the one node or the several.

# %% [markdown]
# ## Exercises
#
# Put your answer in place of the three dots. A wrong answer gets a hint; `lessons.solution("09.1")` prints the solution.
#
# **09.1** Four nodes need 100, 3,000, 500 and 2,000 bytes of scratch. How large is the work buffer on 8 threads?

# %%
answer = ...
lessons.check("09.1", answer)

# %% [markdown]
# **09.2** 32 heads, 512 tokens in a step, 16,384 cells: how many bytes do the scores of one layer take, written out in F32?

# %%
answer = ...
lessons.check("09.2", answer)

# %% [markdown]
# **09.3** How many bytes of scratch does `FLASH_ATTN_EXT` need with llama.cpp's tiles, heads of 128, on 8 threads? (Without
# the padding of the plan.)

# %%
answer = ...
lessons.check("09.3", answer)

# %% [markdown]
# **09.4** Two threads have each seen half of the cells. Each has its `M`, `S` and `out` (not yet divided by `S`), for one
# query. Write `merge(M1, S1, out1, M2, S2, out2)` that returns `M, S, out` for all cells.

# %%
answer = ...
lessons.check("09.4", answer)

# %% [markdown]
# ## What to read next
#
# - `vizggml/ggml/cplan.py`, a function for each formula, and `vizggml/ggml/kernels/flash_attn.py`.
# - Weights as `Q4_0`, activations as `Q8_0`: what is in such a block? [Chapter 10, quantization](10-quantization.ipynb).
