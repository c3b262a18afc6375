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
# # Chapter 10: Quantization
#
# A model of 35 billion weights, two bytes each, is a file of 70 GB. People run it on a laptop, from a file of 21 GB, or
# of 14. Everything so far saved memory beside the weights. Now the weights themselves must shrink.
#
# Four bits distinguish 16 values. Which 16, when one matrix holds
# large weights and tiny ones?

# %%
import tempfile
import textwrap
from pathlib import Path

import numpy as np

import vizggml as vg
from vizggml import lessons
from vizggml.ggml.quants import dequantize, open_block, quantize
from vizggml.ggml.types import type_named

model = vg.load_model("tiny")


def floats(model, name):
    info = model.gguf.tensors[name]
    return dequantize(
        info.type,
        model.gguf.tensor_bytes(name).reshape(
            info.ne[1], -1, info.type.type_size
        ),
    )


weights = floats(model, "blk.0.ffn_down.weight")
print(
    f"{weights.shape[0]} rows of {weights.shape[1]} weights; the largest is {abs(weights).max():.3f},"
)
print(f"and half of them are within ±{np.median(abs(weights)):.3f}.")

# %% [markdown]
# (The tiny model's file is `Q8_0`, that is, quantized already, but finely. Here its weights are read as floats and taken
# for the truth.)
#
# With 16 levels for the whole matrix most weights would land on the two or three around zero. So a matrix is cut into
# **blocks** of neighbours in a row, and each block gets a **scale** of its own. In `Q4_0` a block is 32 weights.

# %% [markdown]
# ## A block by hand
#
# A 4-bit code, 0 to 15, stands for a level of -8 to 7, and a weight is `scale * level`. The levels are lopsided: there is
# a -8, but no 8. Which scale would you take?
#
# Many accounts say `max|x| / 7`, or `max|x| / 8`. ggml takes the weight of largest magnitude *with its sign*, and divides
# it by -8. So that weight always becomes level -8, and the scale is negative when the weight is positive.

# %%
block = weights[3, :32]
largest = block[abs(block).argmax()]
scale = largest / np.float32(-8)
levels = np.clip(np.floor(block / scale + 8.5), 0, 15) - 8

print(
    f"the largest by magnitude is {largest:.4f}, so the scale is {scale:.6f}"
)
print("weights:", *(f"{x:7.3f}" for x in block[:8]), "...")
print("levels: ", *(f"{x:7.0f}" for x in levels[:8]), "...")
print("back:   ", *(f"{x:7.3f}" for x in levels[:8] * scale), "...")

# %% [markdown]
# Does the sign matter? Try the three scales on every block of the matrix. The error is the root of the mean square,
# beside that of the weights.

# %%
blocks = weights.reshape(-1, 32)
top = np.take_along_axis(
    blocks, abs(blocks).argmax(axis=1)[:, None], axis=1
)


def error(back, x):
    return np.sqrt(np.mean((back - x) ** 2) / np.mean(x**2))


for name, d in (
    ("max|x| / 7", abs(top) / 7),
    ("max|x| / 8", abs(top) / 8),
    ("ggml: largest / -8", top / -8),
):
    back = np.clip(np.round(blocks / d), -8, 7) * d
    print(f"{name:>20}: {error(back, blocks):.2%}")

# %% [markdown]
# Divided by 7, level -8 is never used. Divided by 8 without the sign, a positive largest weight would need level 8 and is
# cut to 7: it is off by a whole step, where others are off by half a step at most. ggml uses all 16 levels at no price:
# the sign of a float is there anyway.

# %% [markdown]
# ## Eighteen bytes
#
# Now pack it: the scale as a half float, 2 bytes, then 32 codes in 16 bytes. Byte $j$ does not hold neighbours: code $j$ is in
# its low half, code $j + 16$ in its high half. So one mask and one shift give a kernel two runs of 16 neighbours.

# %%
codes = (levels + 8).astype(np.uint8)
packed = (
    np.float16(scale).tobytes() + (codes[:16] | codes[16:] << 4).tobytes()
)

print(
    len(packed),
    "bytes for 32 weights:",
    8 * len(packed) / 32,
    "bits a weight",
)
print("by hand:", packed.hex(" "))
print("engine: ", quantize("Q4_0", block).tobytes().hex(" "))

# %% [markdown]
# The same bytes. "4-bit" is 4.5: half a bit a weight pays for the scale. `open_block` takes any block apart:


# %%
def show(type, data):
    opened = open_block(type, data)
    print(
        f"{type}: {len(opened.codes)} weights in {len(opened.bytes)} bytes"
    )
    for field in opened.fields:
        said = f"{field.start:>5} to {field.stop:>3}  {field.name}: {field.meaning}"
        print(textwrap.fill(said, 88, subsequent_indent=" " * 14))


show("Q4_0", packed)
back = dequantize("Q4_0", np.frombuffer(packed, np.uint8).reshape(1, 18))
print(
    "back as by hand:",
    np.array_equal(
        back, levels.astype(np.float32) * np.float32(np.float16(scale))
    ),
)

# %% [markdown]
# The engine tells of it in events: the matrix is encoded, its first blocks are told one by one, then the same for the way
# back. The player opens at the first block; **←** and **→** step. (The events before come from the
# model that is loaded. The *minimum* is what code 0 stands for.)

# %%
with vg.record() as trace:
    data = quantize("Q4_0", weights)
    dequantize("Q4_0", data.reshape(len(weights), -1, 18))
for sentence in trace.sentences("BlockEncoded"):
    print(sentence)

vg.view(trace, panes=["events"], step=len(trace) - 5, height=320)

# %% [markdown]
# ## The K family: scales of scales
#
# If half a bit goes to the scales, can they be quantized as well? The K types do that. 256 weights are a *super-block*, of 8
# groups of 32 in `Q4_K`. Each group has a scale and a minimum (so its levels need not be centred on zero), and these are
# whole numbers of **6 bits**. One pair of half floats says how much they count for.

# %%
super_block = quantize("Q4_K", weights[0, :256]).ravel()
show("Q4_K", super_block)
print(8 * len(super_block) / 256, "bits a weight")

# %% [markdown]
# Again 4.5 bits, but now with minimums, and scales for the same groups of 32. It is often said that a K block "stores 8 scales
# in 8 bytes", or in floats. Sixteen numbers of 6 bits lie in 12 bytes, and they are woven: the first four pairs have the
# low 6 bits of a byte each; the last four take half a byte, and the two high bits that the others left over.

# %%
q = super_block[4:16].tolist()
scales, minimums = [], []
for j in range(8):
    if j < 4:
        s, m = q[j] & 63, q[j + 4] & 63
    else:
        s = q[j + 4] & 15 | q[j - 4] >> 6 << 4
        m = q[j + 4] >> 4 | q[j] >> 6 << 4
    scales, minimums = [*scales, s], [*minimums, m]

d, dmin = super_block[:4].view(np.float16).astype(np.float32)
opened = open_block("Q4_K", super_block)
print("scales:  ", scales, f"times {d:.6f}")
print("minimums:", minimums, f"times {dmin:.6f}")
same = np.allclose(opened.scales, d * np.array(scales)) and np.allclose(
    opened.mins, -dmin * np.array(minimums)
)
print("the same as open_block's:", same)

# %% [markdown]
# The K types differ from `Q4_0` in one more way: there is no formula for their scale. The quantizer *tries* some twenty
# scales around the obvious one, and keeps that with the least error. Slower to write; reading costs the same.
#
# ## The IQ family: codebooks
#
# So far each weight has a code of its own, and levels lie at equal distances. `IQ4_NL` and `IQ4_XS` keep the code but bend
# the levels: denser near zero, where most weights are. The smaller IQ types give up the code as well. In `IQ3_S` four
# weights share a number of 9 bits, which names one of 512 points of a fixed list, the *codebook*; signs are kept apart.

# %%
from vizggml.ggml.quants.iq.iq4 import LEVELS

print("levels of IQ4_NL:", *LEVELS)
opened = open_block("IQ3_S", quantize("IQ3_S", weights[0, :256]))
print("IQ3_S, ranks in the codebook:", *opened.points[:4], "...")
print(
    "the levels they name, signed:",
    *opened.levels[:16].astype(int),
    "...",
)
show("IQ3_S", opened.bytes)

# %% [markdown]
# Finding the nearest point takes long, and that is the price of these types: paid when you make the file, and a
# little when a kernel looks points up. The codebook itself is part of the program, not of the file.

# %% [markdown]
# ## Error against bits
#
# The real question is what you get for a bit. The same matrix in eleven types (a few seconds):

# %%
KINDS = (
    "Q6_K Q5_K Q5_0 Q4_K Q4_0 IQ4_NL IQ4_XS Q3_K IQ3_S Q2_K Q1_0".split()
)


def there_and_back(kind, x, importance=None):
    return dequantize(
        kind,
        quantize(kind, x, importance).reshape(
            len(x), -1, type_named(kind).type_size
        ),
    )


def bits(kind):
    return 8 * type_named(kind).type_size / type_named(kind).blck_size


errors = {
    kind: error(there_and_back(kind, weights), weights) for kind in KINDS
}
for kind in KINDS:
    print(
        f"{kind:>7} {bits(kind):>7.4f} bits  error {errors[kind]:>7.2%}"
    )

# %%
import matplotlib.pyplot as plt
from matplotlib_inline.backend_inline import set_matplotlib_formats

set_matplotlib_formats("svg")
COLOURS = {"Q": "#8a8a8a", "K": "#2f7fd1", "IQ": "#d9731a"}
SIDE = {
    "Q5_0": (6, 4),
    "Q4_0": (6, 5),
    "IQ4_NL": (7, -3),
    "IQ4_XS": (-44, -3),
    "Q4_K": (-4, -14),
    "IQ3_S": (6, 3),
}
figure, axes = plt.subplots(figsize=(7.4, 3.8))
for kind in KINDS:
    family = (
        "IQ"
        if kind.startswith("IQ")
        else "K"
        if kind.endswith("_K")
        else "Q"
    )
    axes.scatter(
        bits(kind), 100 * errors[kind], s=36, color=COLOURS[family]
    )
    place = SIDE.get(kind, (6, 3) if kind != "Q3_K" else (-30, -10))
    axes.annotate(
        kind,
        (bits(kind), 100 * errors[kind]),
        place,
        textcoords="offset points",
        color=COLOURS[family],
    )
axes.set(
    yscale="log",
    xlabel="bits a weight",
    ylabel="error, % of the weights",
    xlim=(0.8, 7.2),
)
axes.set_yticks([2, 5, 10, 20, 50], ["2", "5", "10", "20", "50"])
axes.minorticks_off()
axes.spines[["top", "right"]].set_visible(False)
plt.show()

# %% [markdown]
# Read it from right to left. The error's axis is logarithmic, and the points are near a line: each bit that you take away
# doubles the distance between levels, and so about doubles the error. Families differ by much less than bits do: at 4.5 bits compare `Q4_0`, `Q4_K` and `IQ4_NL`.
#
# `IQ3_S` looks bad here, above `Q3_K` at the same size. Its quantizer misses something. Before that: is the tiny model
# typical? Rows from SmolLM2's embedding. They are 576 long, which is no whole number of 256, so no K type can hold them;
# llama.cpp's quantizer then falls back to a type with blocks of 32.

# %%
smol = floats(vg.load_model("smollm2"), "token_embd.weight")[:2048]
for kind in ("Q5_0", "Q4_0", "IQ4_NL"):
    print(
        f"{kind:>7}: SmolLM2 {error(there_and_back(kind, smol), smol):.2%}, tiny {errors[kind]:.2%}"
    )

# %% [markdown]
# ## Importance
#
# Not every weight matters alike. Column $i$ of a matrix is multiplied by element $i$ of the activations. If that element is
# always near zero, an error in the column changes nothing. So run the model over some text, and sum up the squares of what
# each column is multiplied by: an *importance matrix* (some seconds, for the story it is taken from).

# %%
from vizggml.llama.imatrix import compute_imatrix

prompt = "Once upon a time"
told = [
    t.id
    for t in model.context(n_ctx=256).generate(
        prompt, max_tokens=128, seed=1, ignore_eos=True
    )
]
imatrix = compute_imatrix(
    model, model.vocab.tokenize(prompt) + told, n_ctx=64
)
importance = imatrix.importance()["blk.0.ffn_down.weight"].ravel()
print(
    f"{len(importance)} columns; the most important counts {importance.max() / np.median(importance):.0f} times the median."
)

# %% [markdown]
# The quantizer weighs its errors with it. Measure both ways: all errors alike, and each by what it costs.


# %%
def cost(back):
    return np.sqrt(
        np.sum(importance * (back - weights) ** 2)
        / np.sum(importance * weights**2)
    )


for kind in ("Q4_0", "Q4_K", "Q3_K", "IQ3_S", "Q2_K"):
    plain, weighed = (
        there_and_back(kind, weights),
        there_and_back(kind, weights, importance),
    )
    print(
        f"{kind:>6}: error {error(plain, weights):6.2%} -> {error(weighed, weights):6.2%}",
        end=";  ",
    )
    print(f"by importance {cost(plain):6.2%} -> {cost(weighed):6.2%}")

# %% [markdown]
# By importance all of them gain, and those of few bits most. `Q4_K` and `Q3_K` get *worse* by the plain measure, as they give up
# what does not matter. And `IQ3_S` passes `Q3_K`: the IQ types were made to be used with importance. The smallest refuse
# to do without it. A reader of the file need not know: the format of the blocks is the same with and without.

# %% [markdown]
# ## A whole file
#
# `Q4_K_M` is not a type but a *mixture*: most matrices are `Q4_K`, some that suffer more are `Q6_K`, and vectors stay
# `F32`. In a terminal it would be
#
#     vizggml quantize tiny tiny-q4.gguf Q4_K_M --allow-requantize
#
# (the last word since the file is `Q8_0` already). The same from Python:

# %%
import hashlib
from collections import Counter

from vizggml.llama.models import resolve_model
from vizggml.llama.quantize import quantize_file

folder = Path(tempfile.mkdtemp())


def made(mixture):
    out = folder / f"{mixture}.gguf"
    return out, quantize_file(
        resolve_model("tiny"), out, mixture, allow_requantize=True
    )


path, report = made("Q4_K_M")
print(dict(Counter(t.type.name for t in report.tensors)))
print(
    f"{report.before:,} -> {report.after:,} bytes of tensors, {report.bits_per_weight:.2f} bits a weight"
)

size, digest = (
    path.stat().st_size,
    hashlib.sha256(path.read_bytes()).hexdigest()[:16],
)
print(
    f"the file: {size:,} bytes; llama.cpp's: {lessons.golden('tiny.quantize.Q4_K_M.bytes'):,}"
)
print(
    "byte for byte the same:",
    digest == lessons.golden("tiny.quantize.Q4_K_M.sha256"),
)

# %% [markdown]
# ## In llama.cpp
#
# `quantize_row_q4_0_ref` in `ggml/src/ggml-quants.c` is the loop that you wrote by hand; `make_qkx2_quants` there tries the
# scales of the K types; the blocks are in `ggml/src/ggml-common.h`. `llama_model_quantize_impl` in `src/llama-quant.cpp`
# goes through a file. The digest above was recorded from it.

# %% [markdown]
# ## Change this and watch
#
# Change `mixture`: `Q6_K`, `Q3_K_M`, `Q2_K`, `TQ1_0`. Watch where the story leaves that of the source, and where it stops
# being one. The last line says by how much the predictions of the next token differ, on a given sentence (the
# Kullback-Leibler divergence; 0 is no difference).

# %%
mixture = "Q3_K_M"

# %%
SENTENCE = "A green frog and an old dog sat under the tree, and the rain fell on the hill all night."


def log_probabilities(model):
    tokens = model.vocab.tokenize(SENTENCE)
    logits = (
        model.context(n_ctx=64)
        .decode(tokens, range(len(tokens)))
        .astype(np.float64)
    )
    return logits - np.log(np.sum(np.exp(logits), axis=1, keepdims=True))


path, report = made(mixture)
other = vg.load_model(path)
for name, m in (("source", model), (mixture, other)):
    print(
        f"{name}:",
        prompt
        + "".join(
            t.text
            for t in m.context(n_ctx=64).generate(
                prompt, max_tokens=30, temp=0
            )
        ),
    )

ours, theirs = log_probabilities(model), log_probabilities(other)
print(
    f"{report.bits_per_weight:.2f} bits a weight; divergence {np.mean(np.sum(np.exp(ours) * (ours - theirs), axis=1)):.4f}"
)

# %% [markdown]
# ## 35 billion weights in 21 GB, and in 14
#
# Now the sum from the beginning: weights times bits, over 8. How many bits a mixture has on average depends on the shape of
# the model. Take that of a mixture of experts with 30 billion weights, ask which type each tensor gets, and carry the
# average over to 35 billion. No weights are needed.

# %%
from math import prod

from vizggml.llama.mixtures import tensor_types
from vizggml.llama.shapes import hparams_of, shape_named, tensor_shapes

shape = shape_named("qwen3-30b-a3b")
dims = tensor_shapes(shape)
for name in ("F16", "Q8_0", "Q4_K_M", "Q3_K_M", "IQ3_XXS", "IQ2_XXS"):
    types = tensor_types(
        hparams_of("30b", shape), dims, name, importance=True
    )
    nbytes = sum(
        type.row_size(dims[t][0]) * prod(dims[t][1:])
        for t, type in types.items()
    )
    average = 8 * nbytes / sum(map(prod, dims.values()))
    print(
        f"{name:>8}: {average:5.2f} bits a weight, 35 billion in {35 * average / 8:5.1f} GB"
    )

# %% [markdown]
# There they are: 21 GB is `Q4_K_M`, 14 GB about three bits, in a codebook type chosen with importance. (GB are $10^9$
# bytes here.) Look back at the plot for what the step between them costs. Beside the weights you need the cache of
# chapter 8 and the compute buffer of chapter 5.

# %% [markdown]
# ## Exercises
#
# Put your answer in place of the three dots. A wrong answer gets a hint; `lessons.solution("10.1")` prints the solution.
#
# **10.1** A matrix has 11,008 rows of 4,096 weights. How many bytes does it take in `Q4_0`?

# %%
answer = ...
lessons.check("10.1", answer)

# %% [markdown]
# **10.2** In a block the smallest weight is -1.5 and the largest 4.0. What is its scale in `Q4_0`?

# %%
answer = ...
lessons.check("10.2", answer)

# %% [markdown]
# **10.3** Write a function `encode(x)` that takes 32 floats and returns the 18 bytes of their `Q4_0` block. It will be tried on
# several blocks, and one of them is all zeros.

# %%
answer = ...
lessons.check("10.3", answer)

# %% [markdown]
# **10.4** A laptop has 32 GB, of which 9 GB go to the system, the cache and buffers. All of 35 billion weights are to be
# of one type. Which of `Q3_K`, `Q4_K`, `Q5_K`, `Q6_K` is the finest that fits? Its name, as a text.

# %%
answer = ...
lessons.check("10.4", answer)

# %% [markdown]
# ## What to read next
#
# - `vizggml/ggml/quants/legacy.py`, our `Q4_0`; then `k/q4.py` beside it, and `iq/iq3.py` for a codebook.
# - `src/llama-quant.cpp` in llama.cpp: which tensor gets more bits, and why. Ours is `vizggml/llama/mixtures.py`.
# - The bytes are small now. Who multiplies them, on how many threads, and on which device?
#   [Chapter 11, threads and backends](11-backends.ipynb).
