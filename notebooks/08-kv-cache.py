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
# # Chapter 8: The KV cache
#
# A model writes one token, adds it to the text, and begins again. To choose the next token, attention looks at *all* tokens
# so far. Must the whole text go through the model each time? Let the tiny model write 64 tokens in this way.

# %%
import time
from dataclasses import replace

import numpy as np

import vizggml as vg
from vizggml import ggml, lessons

model = vg.load_model("tiny")
prompt = model.vocab.tokenize("Once upon a time")
ctx = model.context(n_ctx=256, n_ubatch=64, n_threads=1)


def write(n, cached):
    tokens, given, start = list(prompt), 0, time.perf_counter()
    ctx.memory.clear()
    while len(tokens) < n:
        if not cached:
            ctx.memory.clear()
        new = tokens[ctx.n_past :]
        tokens.append(int(ctx.decode(new)[-1].argmax()))
        given += len(new)
    return tokens, given, time.perf_counter() - start


write(8, cached=True)  # the first calls are slow in any case
story, given, seconds = write(64, cached=False)
print(f"{given:,} tokens went through the model, in {seconds:.2f} s")

# %% [markdown]
# The work grows with the square of the length. Now the same, but of each token only what was not given before:

# %%
again, fewer, faster = write(64, cached=True)
print(f"{fewer:,} tokens went through the model, in {faster:.2f} s")
print(f"{given / fewer:.0f} times fewer tokens")
print("the same text:", again == story)
print(model.vocab.detokenize(again))

# %% [markdown]
# ## What can be kept
#
# Why is that allowed? Here is one head in NumPy. Each token makes a query, a key and a value; the query is compared with
# the keys of all tokens so far, and the result is a mean of their values.

# %%
rng = np.random.default_rng(1)
x = rng.normal(size=(6, 8))
wq, wk, wv = rng.normal(size=(3, 8, 8))


def attend(q, keys, values):
    scores = keys @ q / np.sqrt(len(q))
    weights = np.exp(scores - scores.max())
    return weights / weights.sum() @ values


everything = [
    attend(x[t] @ wq, x[: t + 1] @ wk, x[: t + 1] @ wv) for t in range(6)
]

# %% [markdown]
# A token never looks at later ones. So a later token changes nothing about it: not its result, hence not what it gives to
# the next layer, hence not its key and value there. Keys and values of old tokens can be kept. Its query is used once, when
# the token is new; that is why there is no Q cache.

# %%
keys, values = np.zeros((6, 8)), np.zeros((6, 8))
results = []
for t in range(6):
    keys[t], values[t] = x[t] @ wk, x[t] @ wv
    results.append(attend(x[t] @ wq, keys[: t + 1], values[: t + 1]))
print("the same results:", np.allclose(results, everything))

# %% [markdown]
# ## In the engine
#
# The cache is made once, at its full size: for each layer a tensor of keys and one of values, with a row for each *cell*.
# A step writes its rows with `SET_ROWS`; attention reads views of the same tensors.

# %%
ctx.memory.clear()
with vg.record() as trace:
    ctx.decode(prompt)
    ctx.decode(story[len(prompt) : len(prompt) + 1])

kv = ctx.memory
print(
    f"{len(kv.k)} layers, each K {kv.k[0].ne[:2]} and V {kv.v[0].ne[:2]} of {kv.k[0].type}"
)
for sentence in trace.sentences("CellsFound", "KvWritten")[:3]:
    print(sentence)

# %% [markdown]
# A column is a cell, a line is a layer. You see the last step. Walk back with **←**, or drag the slider: the outlined cells
# belong to the tokens that are decoded, and fill up layer by layer as the graph is computed.

# %%
vg.view(trace, panes=["kv"], step=len(trace) - 1, height=480)

# %% [markdown]
# Attention looks at more cells than are taken. Their number is rounded up to a multiple of 256, so that the graph stays the
# same for many tokens and can be used again (chapter 4). A *mask* says which cells a token sees: 0 for those, minus
# infinity for the others.

# %% [markdown]
# ## Change this and watch
#
# Cells are not a queue. You can take positions out of the middle, and the next tokens go wherever cells are free. Change
# `removed`, run both cells: watch where the outlined cells are in the last step, and which positions stand above them.

# %%
removed = 2, 5

# %%
ctx.memory.clear()
ctx.decode(story[:8])
with vg.record() as trace:
    ctx.memory.seq_rm(0, *removed)
    ctx.decode(story[8:12])
print(trace.sentences("CellsFound")[0])
places = [int(np.flatnonzero(kv.cells.pos == p)[0]) for p in range(8, 12)]
print("cells of positions 8 to 11:", places)
vg.view(trace, panes=["kv"], step=len(trace) - 1, height=480)

# %% [markdown]
# ## Bytes by hand
#
# How large is it? For each layer, keys and values; for each token, one head after the other; for each number, two bytes
# in `F16`. Llama 2 with 7 billion parameters has 32 layers and 32 heads of 128. At 4,096 tokens:


# %%
def kv_bytes(n_layer, n_head_kv, n_embd_head, n_tokens, bytes_of_32=64):
    return (
        2
        * n_layer
        * n_tokens
        * n_head_kv
        * n_embd_head
        * bytes_of_32
        // 32
    )


by_hand = kv_bytes(32, 32, 128, 4096)
print(
    f"{by_hand:,} bytes, {by_hand / 2**30} GiB; {by_hand // 4096:,} for each token"
)

# %% [markdown]
# The engine agrees. It plans the model from its shape alone, no weight is read. In a shell, the same is
# `vizggml plan --shape llama-7b -c 4096`.

# %%
from vizggml.llama.cparams import ContextParams
from vizggml.llama.plan import plan_file, plan_shape

(planned,) = plan_shape("llama-7b", "F16", ContextParams(n_ctx=4096)).kv
print(f"{planned:,} bytes; the same: {planned == by_hand}")

# %% [markdown]
# This is memory of the *context*, not of the model. It is taken at once, when the context is made, whether you will write
# 4,096 tokens or ten.

# %% [markdown]
# ## Fewer heads to keep
#
# Llama 2 with 70 billion parameters has 80 layers and 64 heads of 128. Should its cache not be five times as large?

# %%
(planned,) = plan_shape("llama-70b", "F16", ContextParams(n_ctx=4096)).kv
all_heads, eight = kv_bytes(80, 64, 128, 4096), kv_bytes(80, 8, 128, 4096)
print(
    f"by hand, keys and values for all 64 heads: {all_heads / 2**30:>5.2f} GiB"
)
print(
    f"by hand, for 8 of them:                    {eight / 2**30:>5.2f} GiB"
)
print(
    f"planned:                                   {planned / 2**30:>5.2f} GiB"
)

# %% [markdown]
# It is smaller than that of the 7B. The query heads come in *groups*, and a group of 8 shares one head of keys and values:
# grouped-query attention. Nothing is copied to share it. `mul_mat` lets its second operand have more matrices than the
# first. In the next cell 8 query heads share 2: matrix `i` of `q` meets matrix `i // 4` of `k`.

# %%
c = ggml.Context(mem_size=1 << 20)
k = c.new_tensor("F32", (4, 3, 2), name="k").set(rng.normal(size=24))
q = c.new_tensor("F32", (4, 1, 8), name="q").set(rng.normal(size=32))
g = ggml.Graph(c)
kq = ggml.mul_mat(c, k, q)
g.build_forward_expand(kq)
ggml.graph_compute(g, ggml.graph_plan(g, n_threads=1))

by_group = [
    k.array()[0, head // 4] @ q.array()[0, head, 0] for head in range(8)
]
print(f"k {k.ne[:3]}, q {q.ne[:3]}, scores {kq.ne[:3]}")
print("the same:", np.allclose(kq.array()[0, :, 0], by_group))

# %% [markdown]
# ## Fewer tokens to keep
#
# Some models let most layers see only a *window* of the last tokens. Gemma 3 does so in five layers of six. A cell whose
# token has left the window can be given to a new one. So such layers need cells for the window and for the tokens of one
# step, rounded up to 256, however long the text is. You get two caches.
#
# No weights are needed to watch that. Here are the cells of a small model, with a window of 40 in three of its four layers,
# filled 64 tokens at a time.

# %%
from vizggml.ggml.buffer import cpu_buffer_type
from vizggml.llama.batch import Batch, split
from vizggml.llama.cparams import CParams
from vizggml.llama.kv_cache_iswa import create_memory

windowed = replace(
    model.hparams, n_swa=40, swa_layers=(True, True, True, False)
)
params = CParams.resolve(
    ContextParams(n_ctx=768, n_ubatch=64, swa_full=False), windowed
)
with vg.record() as trace:
    memory = create_memory(windowed, params, cpu_buffer_type())
    for first in range(0, 384, 64):
        for ubatch in split(Batch.of([5] * 64, first), 64):
            for met in memory.init_batch([ubatch]):
                met.apply(ubatch)

for cache in memory.caches:
    size = sum(buffer.size for buffer in cache.buffers)
    print(
        f"layers {cache.layers}: {cache.n_cells} cells each, {size:,} bytes"
    )
print(trace.sentences("WindowEvicted")[0])

# %%
vg.view(trace, panes=["kv"], step=len(trace) - 1, height=560)

# %% [markdown]
# In the lower cache the positions start again from the left, after cell 255: the oldest cells were given away. Pale cells
# have left the window and wait for that. The outlined ones would be written next; nothing is computed here.
#
# What does that save? Take 48 layers with 8 heads of 256 for keys and values, a window of 1,024, and 32,768 tokens: the
# shape of Gemma 3 with 12 billion parameters.

# %%
whole = kv_bytes(48, 8, 256, 32768)
windows = kv_bytes(8, 8, 256, 32768) + kv_bytes(40, 8, 256, 1024 + 512)
print(f"all layers see everything: {whole / 2**30:>5.2f} GiB")
print(f"40 of them see a window:   {windows / 2**30:>5.2f} GiB")

# %% [markdown]
# The price: what has left the window is gone. If you remove the last tokens of a text and go on from an earlier point, the
# window of that point may be missing. `swa_full` keeps all cells, for those who need to go back.

# %% [markdown]
# ## Fewer bytes a number
#
# A cache may be quantized, like weights. `Q8_0` keeps 32 numbers in 34 bytes, `Q4_0` in 18 (chapter 10). SmolLM2, at 2,048
# tokens, planned for three types:

# %%
for kind in ("f16", "q8_0", "q4_0"):
    plan = plan_file(
        "smollm2", ContextParams(n_ctx=2048, type_k=kind, type_v=kind)
    )
    print(f"{kind:>5} {plan.kv[0]:>12,} bytes {plan.nodes:>6,} nodes")

# %% [markdown]
# The last column is a surprise: a quantized cache has more nodes. What are they?

# %%
lists = {}
for kind in ("f16", "q8_0"):
    ctx2 = vg.load_model("smollm2").context(
        n_ctx=256, n_ubatch=32, type_k=kind, type_v=kind
    )
    lists[kind] = [t.op for t in ctx2.step_graph(1).nodes]
for op in sorted(set(lists["q8_0"])):
    more = lists["q8_0"].count(op) - lists["f16"].count(op)
    if more:
        print(f"{op:>8}: {more:+} in 30 layers")

# %% [markdown]
# Four matrix products more in each layer, for Q, K, V and the result: they are *rotated*. A block of 32 numbers has one
# scale, which the largest of them sets. Real keys have a few elements that are much larger than the rest, and those spoil
# the block for all others. So each head is first multiplied by a Hadamard matrix, which spreads every element over all.
# It is orthogonal: rotate the query alike, and `q @ k` is what it was. Its result is rotated back.
#
# Take the keys and values of a sentence out of SmolLM2, and encode them as `Q4_0`, straight and rotated (some seconds).

# %%
from vizggml.ggml.quants import dequantize, quantize
from vizggml.llama.hadamard import hadamard

smol = vg.load_model("smollm2")
ctx2 = smol.context(n_ctx=256, n_ubatch=64)
sentence = "Every day she walked to the well near the forest, and one day the well was dry."
ctx2.decode(smol.vocab.tokenize(sentence))


def error(rows):
    blocks = quantize("Q4_0", rows).reshape(len(rows), 2, 18)
    decoded = dequantize("Q4_0", blocks).reshape(rows.shape)
    return np.mean((decoded - rows) ** 2) / np.mean(rows**2)


for name, layers in (("K", ctx2.memory.k), ("V", ctx2.memory.v)):
    rows = np.concatenate(
        [t.array()[0, 0, : ctx2.n_past] for t in layers]
    )
    heads = rows.astype(np.float32).reshape(-1, 64)
    turned = heads @ hadamard(64)
    print(
        f"{name}: largest {abs(heads).max():.1f}, rotated {abs(turned).max():.1f};",
        end=" ",
    )
    print(
        f"mean square error {error(heads):.2%}, rotated {error(turned):.2%}"
    )

# %% [markdown]
# ## In llama.cpp
#
# `src/llama-kv-cache.cpp`: the constructor of `llama_kv_cache` makes the tensors, `find_slot` looks for cells, `cpy_k` and
# `cpy_v` add the `SET_ROWS`, `get_n_kv` rounds up to 256, and `ggml_gen_hadamard` makes the rotation (the environment
# variable `LLAMA_ATTN_ROT_DISABLE` switches it off). `src/llama-kv-cache-iswa.cpp` has the two caches for windows. What
# it took for SmolLM2 at 2,048 tokens, beside our plan:

# %%
for kind in ("f16", "q8_0"):
    plan = plan_file(
        "smollm2", ContextParams(n_ctx=2048, type_k=kind, type_v=kind)
    )
    theirs = (
        lessons.golden(f"smollm2.kv.{kind}"),
        lessons.golden(f"smollm2.kv.{kind}.nodes"),
    )
    same = (plan.kv[0], plan.nodes) == theirs
    print(
        f"{kind:>5}: {theirs[0]:>11,} bytes {theirs[1]:>6,} nodes; ours the same: {same}"
    )

# %% [markdown]
# ## Exercises
#
# Put your answer in place of the three dots. A wrong answer gets a hint; `lessons.solution("08.1")` prints the solution.
#
# **08.1** A model has 28 layers, 16 heads, 8 heads for keys and values, each of 128 elements. How many bytes does its cache
# take for 32,768 tokens, in `F16`?

# %%
answer = ...
lessons.check("08.1", answer)

# %% [markdown]
# **08.2** The same cache with `Q8_0` for keys and values: how many bytes?

# %%
answer = ...
lessons.check("08.2", answer)

# %% [markdown]
# **08.3** A layer has a window of 1,000 tokens. The context has 16,384 cells, a step up to 512 tokens, one sequence,
# `swa_full` is off. How many cells does the layer get?

# %%
answer = ...
lessons.check("08.3", answer)

# %% [markdown]
# **08.4** A fresh cache takes 8 tokens. Positions 2, 3 and 4 are removed (`seq_rm(0, 2, 5)`). Then 4 tokens come. Which
# cells do they go to? A list of four numbers.

# %%
answer = ...
lessons.check("08.4", answer)

# %% [markdown]
# ## What to read next
#
# - `llama_kv_cache::find_slot` in `src/llama-kv-cache.cpp`, and our `KVCache.find_slot` in `vizggml/llama/kv_cache.py`.
# - The cache is kept. What about the scores, a number for each pair of tokens? [Chapter 9, scratch and attention](09-attention.ipynb).
