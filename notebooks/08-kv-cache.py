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
# A model writes one token, adds it to the text, and begins again. To choose the next token, attention looks at *all*
# tokens so far. Must the whole text go through the model each time? Try it: let the tiny model write like that.
# `decode` takes tokens and gives the scores of what may follow, `clear` makes the model forget what it was given.

# %%
import time

import numpy as np

import vizggml as vg
from vizggml import ggml, lessons

model = vg.load_model("tiny")
prompt = model.vocab.tokenize("Once upon a time")
ctx = model.context(n_ctx=256, n_ubatch=64, n_threads=1)


# %%
def write_anew(n):
    tokens, given = list(prompt), 0
    while len(tokens) < n:
        ctx.memory.clear()
        given += len(tokens)
        tokens.append(int(ctx.decode(tokens)[-1].argmax()))
    return tokens, given


# %%
def measure(way, n):
    start = time.perf_counter()
    tokens, given = way(n)
    seconds = time.perf_counter() - start
    print(f"text of {n}: {given:>5,} tokens given, {seconds:.2f} s")
    return tokens


write_anew(8)  # the first calls are slow in any case
for n in (16, 32, 64):
    story = measure(write_anew, n)

# %% [markdown]
# Twice the text, four times the tokens. Now the same, but of each token only what was not given before:


# %%
def write(n):
    tokens, new, given = list(prompt), list(prompt), 0
    ctx.memory.clear()
    while len(tokens) < n:
        given += len(new)
        new = [int(ctx.decode(new)[-1].argmax())]
        tokens += new
    return tokens, given


for n in (16, 32, 64):
    again = measure(write, n)
print("the same text:", again == story)
lessons.tell(model.vocab.detokenize(again[1:]))

# %% [markdown]
# ## What can be kept
#
# Why is that allowed? Here is one head in NumPy. Each token makes a query, a key and a value; the query is compared
# with the keys of all tokens so far, and the result is a mean of their values.

# %%
rng = np.random.default_rng(1)
x = rng.normal(size=(6, 8))
wq, wk, wv = rng.normal(size=(3, 8, 8))


def attend(q, keys, values):
    scores = keys @ q / np.sqrt(len(q))
    weights = np.exp(scores - scores.max())
    return weights / weights.sum() @ values


everything = []
for t in range(6):
    seen = x[: t + 1]
    everything.append(attend(x[t] @ wq, seen @ wk, seen @ wv))

# %% [markdown]
# A token never looks at later ones. So a later token changes nothing about it: not its result, hence not what it gives
# to the next layer, hence not its key and value there. Keys and values of old tokens can be kept. Its query is used
# once, when the token is new; that is why there is no Q cache.

# %%
keys, values = np.zeros((6, 8)), np.zeros((6, 8))
results = []
for t in range(6):
    keys[t], values[t] = x[t] @ wk, x[t] @ wv
    results.append(attend(x[t] @ wq, keys[: t + 1], values[: t + 1]))
print("the same results:", np.allclose(results, everything))

# %% [markdown]
# Does a whole model keep to that? Take the keys that the last layer makes of the prompt: once of the prompt alone, once
# with the rest of the story behind it. (Flash attention is off here. It takes a long step by tiles, which round
# differently: [chapter 9](09-attention.ipynb).)


# %%
def keys_of_prompt(tokens):
    plain = model.context(n_ctx=256, n_ubatch=64, flash_attn=False)
    plain.decode(tokens)
    return plain.memory.k[-1].array()[0, 0, : len(prompt)]


alone, followed = keys_of_prompt(prompt), keys_of_prompt(story)
print("the same, bit for bit:", np.array_equal(alone, followed))

# %% [markdown]
# You may read that a cache makes writing *linear*. That is true of the tokens that go through the model. It is not true
# of attention: a new token is still compared with all before it. Scores of one head in one layer, counted:

# %%
for n in (64, 128, 256):
    cached = sum(range(1, n + 1))
    anew = sum(sum(range(1, m + 1)) for m in range(1, n + 1))
    print(f"{n:>3} tokens: anew {anew:>9,}, with a cache {cached:>6,}")

# %% [markdown]
# ## In the engine
#
# The cache is made once, at its full size: for each layer a tensor of keys and one of values, with a row for each
# *cell*. A step writes its rows with `SET_ROWS`.

# %%
ctx.memory.clear()
with vg.record() as trace:
    ctx.decode(prompt)
    ctx.decode(story[len(prompt) : len(prompt) + 1])

kv = ctx.memory
layers, k, v = len(kv.k), kv.k[0], kv.v[0]
print(f"{layers} layers, each K {k.ne[:2]} and V {v.ne[:2]} of {k.type}")
lessons.tell(*trace.sentences("CellsFound", "KvWritten")[:3])

# %% [markdown]
# A column is a cell, a line is a layer. You see the last step. Walk back with **←**, or drag the slider: the outlined
# cells belong to the tokens that are decoded, and fill up layer by layer as the graph is computed.

# %%
vg.view(trace, panes=["kv"], step=len(trace) - 1, height=480)

# %% [markdown]
# Attention copies nothing out of the cache. Its keys and values are views ([chapter 2](02-views.ipynb)) of the same
# tensors:

# %%
nodes = ctx.step_graph(1).nodes
attention = next(t for t in nodes if t.op == "FLASH_ATTN_EXT")
for t in attention.src[1:3]:
    print(f"{t.name}: ne {t.ne[:3]}, bytes of {t.view_src.name}")

# %% [markdown]
# These views hold 256 cells, and far fewer are taken. The number is rounded up to a multiple of 256, so that the graph
# stays the same for many tokens and can be used again ([chapter 4](04-deferred.ipynb)). Which of the cells does a token
# really see? You will meet the answer in the next section.

# %% [markdown]
# ## Change this and watch
#
# Cells are not a queue. You can take positions out of the middle, and the next tokens go wherever cells are free.
# Change `removed`, run the cells down to the mask. Watch where the outlined cells are in the last step, and which
# positions stand above them.

# %%
removed = 2, 4

# %%
ctx.memory.clear()
ctx.decode(story[:6])
with vg.record() as trace:
    ctx.memory.seq_rm(0, *removed)
    new = range(ctx.n_past, ctx.n_past + 4)
    ctx.decode(story[6:10])
lessons.tell(trace.sentences("CellsFound")[0])
positions = kv.cells.pos.tolist()
places = [positions.index(position) for position in new]
print(f"cells of positions {new[0]} to {new[-1]}:", places)

# %%
vg.view(trace, panes=["kv"], step=len(trace) - 1, height=480)

# %% [markdown]
# The order of cells is no order of the text. What a token sees is said by the *mask*, an input of the graph: 0 for a
# cell that it sees, minus infinity for the others. Here are the first columns, a row for each of the four new tokens.
# Find the rule: each sees itself, and what is before it in *position*.

# %%
inputs = ctx.gf_res_prev_active.gf.leafs
mask = next(t for t in inputs if t.name == "attn_inp_kq_mask")
print("cell        ", *(f"{cell:>4}" for cell in range(10)))
print("position    ", *(f"{p:>4}" for p in positions[:10]))
for position, row in zip(new, mask.array()[0, 0], strict=True):
    print(f"new token, {position}", *(f"{x:>4.0f}" for x in row[:10]))

# %% [markdown]
# (At -1 the cell is free.) Where a token stands in the text is not lost: `ROPE` has turned its key by the position
# before it was stored.

# %% [markdown]
# ## Bytes by hand
#
# How large is it? For each layer, keys and values; for each token, one head after the other; for each number, two bytes
# in `F16`. Llama 2 with 7 billion parameters has 32 layers and 32 heads of 128. At 4,096 tokens:


# %%
def kv_bytes(layers, heads, size, tokens, bytes_of_32=64):
    numbers = 2 * layers * tokens * heads * size
    return numbers // 32 * bytes_of_32


by_hand = kv_bytes(32, 32, 128, 4096)
print(f"{by_hand:,} bytes: {by_hand / 2**30} GiB")
print(f"{by_hand // 4096:,} bytes for each token")

# %% [markdown]
# The engine agrees. It plans the model from its shape alone, no weight is read. In a shell, the same is `vizggml plan
# --shape llama-7b -c 4096`.

# %%
from vizggml.llama.cparams import ContextParams
from vizggml.llama.plan import plan_file, plan_shape

(planned,) = plan_shape("llama-7b", "F16", ContextParams(n_ctx=4096)).kv
print(f"{planned:,} bytes; the same: {planned == by_hand}")

# %% [markdown]
# You may read that the cache grows as the text does. What is *used* of it grows. The memory is taken at once, when the
# context is made, whether you will write 4,096 tokens or ten:


# %%
def taken_and_used():
    taken = sum(buffer.size for buffer in ctx.memory.buffers)
    used = int((ctx.memory.cells.pos >= 0).sum())
    print(f"{taken:,} bytes taken, {used:>3} of {kv.n_cells} cells used")


ctx.memory.clear()
taken_and_used()
write(64)
taken_and_used()

# %% [markdown]
# ## Fewer heads to keep
#
# Llama 2 with 70 billion parameters has 80 layers and 64 heads of 128. Should its cache not be five times as large?

# %%
(planned,) = plan_shape("llama-70b", "F16", ContextParams(n_ctx=4096)).kv
for what, size in (
    ("by hand, all 64 heads", kv_bytes(80, 64, 128, 4096)),
    ("by hand, 8 heads", kv_bytes(80, 8, 128, 4096)),
    ("planned", planned),
):
    print(f"{what:>21}: {size / 2**30:>5.2f} GiB")

# %% [markdown]
# It is smaller than that of the 7B. The query heads come in *groups*, and a group of 8 shares one head of keys and
# values: grouped-query attention. Nothing is copied to share it. `mul_mat` lets its second operand have more matrices
# than the first. In the next cell 8 query heads share 2: matrix `i` of `q` meets matrix `i // 4` of `k`.

# %%
c = ggml.Context(mem_size=1 << 20)
k = c.new_tensor("F32", (4, 3, 2), name="k").set(rng.normal(size=24))
q = c.new_tensor("F32", (4, 1, 8), name="q").set(rng.normal(size=32))
g = ggml.Graph(c)
kq = ggml.mul_mat(c, k, q)
g.build_forward_expand(kq)
ggml.graph_compute(g, ggml.graph_plan(g, n_threads=1))

heads = zip(q.array()[0, :, 0], range(8), strict=True)
by_group = [k.array()[0, i // 4] @ head for head, i in heads]
print(f"k {k.ne[:3]}, q {q.ne[:3]}, scores {kq.ne[:3]}")
print("the same:", np.allclose(kq.array()[0, :, 0], by_group))

# %% [markdown]
# ## Fewer tokens to keep
#
# Some models let most layers see only a *window* of the last tokens. Gemma 3 does so in five layers of six. A cell
# whose token has left the window can be given to a new one. So such layers need cells for the window and for the tokens
# of one step, rounded up to 256, however long the text is. You get two caches.
#
# No weights are needed to watch that: here are the cells of a small model with a window in three of its four layers,
# filled 64 tokens at a time. Change `window` too. How wide may it be before the second cache needs more cells?

# %%
window = 40

# %%
from dataclasses import replace

from vizggml.ggml.buffer import cpu_buffer_type
from vizggml.llama.batch import Batch, split
from vizggml.llama.cparams import CParams
from vizggml.llama.kv_cache_iswa import create_memory

see_a_window = True, True, True, False
windowed = replace(model.hparams, n_swa=window, swa_layers=see_a_window)
settings = ContextParams(n_ctx=768, n_ubatch=64, swa_full=False)
params = CParams.resolve(settings, windowed)
with vg.record() as trace:
    memory = create_memory(windowed, params, cpu_buffer_type())
    for first in range(0, 384, 64):
        for ubatch in split(Batch.of([5] * 64, first), 64):
            for met in memory.init_batch([ubatch]):
                met.apply(ubatch)

# %%
for cache in memory.caches:
    size = sum(buffer.size for buffer in cache.buffers)
    print(f"layers {cache.layers}: {cache.n_cells} cells, {size:,} bytes")
lessons.tell(*trace.sentences("WindowEvicted")[:1])
vg.view(trace, panes=["kv"], step=len(trace) - 1, height=560)

# %% [markdown]
# In the lower cache the positions start again from the left, after cell 255: the oldest cells were given away. Pale
# cells have left the window and wait for that; in the player the line above the positions is what the newest token sees. The outlined
# ones would be written next; nothing is computed here.
#
# What does that save? Take 48 layers with 8 heads of 256 for keys and values, a window of 1,024, and 32,768 tokens: the
# shape of Gemma 3 with 12 billion parameters.

# %%
whole = kv_bytes(48, 8, 256, 32768)
narrow = kv_bytes(8, 8, 256, 32768) + kv_bytes(40, 8, 256, 1024 + 512)
print(f"all layers see everything: {whole / 2**30:>5.2f} GiB")
print(f"40 of them see a window:   {narrow / 2**30:>5.2f} GiB")

# %% [markdown]
# The price: what has left the window is overwritten sooner or later. If you remove the last tokens of a text and go on
# from an earlier point, the window of that point may be missing. `swa_full` keeps all cells, for those who need to go
# back. (In llama.cpp's library it is on unless you say otherwise; its programs switch it off unless you say `--swa-full`.)

# %%
for cache in memory.caches:
    kept = cache.cells.pos[cache.cells.pos >= 0]
    first, last = kept.min(), kept.max()
    print(f"layers {cache.layers}: positions {first} to {last}")

# %% [markdown]
# ## Fewer bytes a number
#
# Groups and windows are decided when a model is trained. What can you save with any model? A cache may be quantized,
# like weights. `Q8_0` keeps 32 numbers in 34 bytes, `Q4_0` in 18 ([chapter 10](10-quantization.ipynb)). SmolLM2, at
# 2,048 tokens, planned for three types:


# %%
def plan_with(kind):
    settings = ContextParams(n_ctx=2048, type_k=kind, type_v=kind)
    return plan_file("smollm2", settings)


for kind in ("f16", "q8_0", "q4_0"):
    plan = plan_with(kind)
    print(f"{kind:>5} {plan.kv[0]:>12,} bytes {plan.nodes:>6,} nodes")

# %% [markdown]
# The last column is a surprise: a quantized cache has more nodes. What are they?

# %%
smol = vg.load_model("smollm2")


def context_with(kind):
    sizes = {"n_ctx": 256, "n_ubatch": 64}
    return smol.context(type_k=kind, type_v=kind, **sizes)


def ops_with(kind):
    return [t.op for t in context_with(kind).step_graph(1).nodes]


half, eight = ops_with("f16"), ops_with("q8_0")
for op in sorted(set(eight)):
    if more := eight.count(op) - half.count(op):
        print(f"{op}: {more / smol.hparams.n_layer:+.0f} in each layer")

# %% [markdown]
# Four matrix products more in each layer, for Q, K, V and the result: they are *rotated*. A block of 32 numbers has one
# scale, which the largest of them sets. Real keys have a few elements that are much larger than the rest, and those
# spoil the block for all others. So each head is first multiplied by a Hadamard matrix, which spreads every element
# over all. Here is a head with one such element:

# %%
from vizggml.llama.hadamard import hadamard

key, query = rng.normal(size=(2, 64))
key[5] = 20
H = hadamard(64)
print(f"largest {abs(key).max():.1f}, rotated {abs(key @ H).max():.1f}")
print(f"query @ key {query @ key:.4f}")
print(f"both rotated {(query @ H) @ (key @ H):.4f}")

# %% [markdown]
# The matrix is orthogonal: rotate the query alike, and `q @ k` is what it was. The result of attention, made of rotated
# values, is rotated back. (llama.cpp rotates only where a head's length is a multiple of 64, and values in pieces of 64. Its
# CPU knows by a mark on the node what matrix it is, and takes a fast transform in place of the product.)
#
# Does it help with real keys? Take keys and values of a sentence out of SmolLM2, and encode them as `Q4_0`, straight
# and rotated. The error is the mean square of what is lost, as a part of the mean square of all.

# %%
from vizggml.ggml.quants import dequantize, quantize


def error(rows):
    blocks = quantize("Q4_0", rows).reshape(len(rows), 2, 18)
    decoded = dequantize("Q4_0", blocks).reshape(rows.shape)
    return np.mean((decoded - rows) ** 2) / np.mean(rows**2)


sentence = smol.vocab.tokenize(
    "Every day she walked to the well near the forest, and one day the"
    " well was dry. She asked the old man by the road why that was so."
)
half = context_with("f16")
from_half = half.decode(sentence, range(len(sentence))).copy()
for name, layers in (("K", half.memory.k), ("V", half.memory.v)):
    rows = [t.array()[0, 0, : len(sentence)] for t in layers]
    heads = np.concatenate(rows).astype(np.float32).reshape(-1, 64)
    straight, rotated = error(heads), error(heads @ H)
    print(f"{name}: error {straight:.2%}, rotated {rotated:.2%}")

# %% [markdown]
# And what does the text notice of it? Change `kind`, run both cells: `q8_0`, `q5_0`, `q4_0`. At each token of the
# sentence the model chooses among all tokens of its vocabulary. Watch how often its first choice stays, and how much
# probability moves to others. Some moves in any case: the first line has an `F16` cache too, only flash attention is
# off, which rounds differently. Read the second line against it.

# %%
kind = "q4_0"


# %%
def chances(logits):
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def show(name, context):
    found = context.decode(sentence, range(len(sentence)))
    stay = (found.argmax(1) == from_half.argmax(1)).sum()
    moved = abs(chances(found) - chances(from_half)).sum(1).mean() / 2
    choices = f"{stay} of {len(found)} first choices stay"
    print(f"{name:>8}: {choices}, {moved:.1%} of the probability moves")


show("rounding", smol.context(n_ctx=256, n_ubatch=64, flash_attn=False))
show(kind, context_with(kind))

# %% [markdown]
# One condition: quantized *values* need flash attention ([chapter 9](09-attention.ipynb)). Without it V is stored
# transposed, a cell is a column, and a block of 32 would hold one number each of 32 tokens: a new token could not be
# written alone.

# %%
try:
    smol.context(n_ctx=256, flash_attn=False, type_v="q8_0")
except vg.VizggmlError as refused:
    lessons.tell(refused)

# %% [markdown]
# ## In llama.cpp
#
# `src/llama-kv-cache.cpp`: the constructor of `llama_kv_cache` makes the tensors, `find_slot` looks for cells, `cpy_k`
# and `cpy_v` add the `SET_ROWS`, `get_n_kv` rounds up to 256, and `ggml_gen_hadamard` makes the rotation (the
# environment variable `LLAMA_ATTN_ROT_DISABLE` switches it off). What it took for SmolLM2 at 2,048 tokens, beside our
# plan and the sum by hand (30 layers, 9 heads that share 3, of 64 elements):

# %%
print(f"{'bytes':>5} {'llama.cpp':>12} {'ours':>12} {'by hand':>12}")
for kind, of_32 in (("f16", 64), ("q8_0", 34)):
    theirs = lessons.golden(f"smollm2.kv.{kind}")
    ours = plan_with(kind).kv[0]
    by_hand = kv_bytes(30, 3, 64, 2048, of_32)
    print(f"{kind:>5} {theirs:>12,} {ours:>12,} {by_hand:>12,}")

print(f"{'nodes':>5} {'llama.cpp':>12} {'ours':>12}")
for kind in ("f16", "q8_0"):
    theirs = lessons.golden(f"smollm2.kv.{kind}.nodes")
    print(f"{kind:>5} {theirs:>12,} {plan_with(kind).nodes:>12,}")

# %% [markdown]
# `src/llama-kv-cache-iswa.cpp` has the two caches for windows. llama.cpp loaded a small file of Gemma 3's kind, of 5
# layers with one head of 128 for keys and values; layers 0, 2 and 4 have a window of 1,024. With 2,048 cells and steps
# of 512 tokens it took:

# %%
for which, by_hand in (
    ("whole", kv_bytes(2, 1, 128, 2048)),
    ("window", kv_bytes(3, 1, 128, 1024 + 512)),
):
    theirs = lessons.golden(f"gemma3.kv.{which}")
    print(f"{which:>6}: {theirs:,} bytes, by hand {by_hand:,}")

# %% [markdown]
# ## Exercises
#
# Put your answer in place of the three dots. A wrong answer gets a hint; `lessons.solution("08.1")` prints the
# solution.
#
# **08.1** A model has 28 layers, 16 heads, 8 heads for keys and values, each of 128 elements. How many bytes does its
# cache take for 32,768 tokens, in `F16`?

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
# - The cache is kept. What about the scores, a number for each pair of tokens? [Chapter 9, scratch and
#   attention](09-attention.ipynb).
