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
# of 14. Everything so far saved memory *beside* the weights. Now the weights themselves must shrink.
#
# Four bits distinguish 16 values. Which 16, when one matrix holds large weights and tiny ones? Take a matrix of the tiny
# model. (Its file is `Q8_0`, that is, quantized already, but finely. Here its weights are read as floats and taken for
# the truth.)

# %%
import numpy as np

import vizggml as vg
from vizggml import lessons
from vizggml.ggml.quants import dequantize, open_block, quantize
from vizggml.ggml.types import type_named


def floats(model, name):
    info = model.gguf.tensors[name]
    shape = info.ne[1], -1, info.type.type_size
    return dequantize(
        info.type, model.gguf.tensor_bytes(name).reshape(shape)
    )


model = vg.load_model("tiny")
weights = floats(model, "blk.0.ffn_down.weight")
most, median = abs(weights).max(), np.median(abs(weights))
print("rows, and weights in a row:", weights.shape)
print(f"the largest is {most:.3f}; half are within ±{median:.3f}")

# %% [markdown]
# ## One scale, or many
#
# A 4-bit code, 0 to 15, stands for a *level* from -8 to 7, and a weight is `scale * level`. With one scale for the whole
# matrix, its largest weight decides how coarse all others are. With a scale for every few neighbours in a row, each
# *block* has levels that fit it; but a scale is a number, too, and takes bits: 16, as a half float.


# %%
def error(back, x):
    return np.sqrt(np.mean((back - x) ** 2) / np.mean(x**2))


for n in (weights.size, 768, 32, 8):
    blocks = weights.reshape(-1, n)
    scale = abs(blocks).max(axis=1, keepdims=True) / 7
    levels = np.round(blocks / scale)
    print(
        f"a scale for {n:>7,} weights: {np.mean(levels == 0):4.0%} are 0,"
        f" error {error(levels * scale, blocks):6.2%},"
        f" {4 + 16 / n:.2f} bits"
    )

# %% [markdown]
# (The error is the root of the mean square, beside that of the weights.) With one scale for all, many weights become 0.
# A scale for eight weights is good, but half as much again to store. `Q4_0` takes 32.
#
# ## A block by hand
#
# The levels are lopsided: there is a -8, but no 8. Which scale would you take?
#
# Many accounts say `max|x| / 7`, or `max|x| / 8`. ggml takes the weight of largest magnitude *with its sign*, and divides
# it by -8. So that weight always becomes level -8, and the scale is negative when the weight is positive.

# %%
block = weights[3, :32]
largest = block[abs(block).argmax()]
scale = largest / np.float32(-8)
levels = np.clip(np.floor(block / scale + 8.5), 0, 15) - 8

print(f"largest by magnitude {largest:.4f}, so scale {scale:.6f}")
print("weights:", *(f"{x:7.3f}" for x in block[:7]), "...")
print("levels: ", *(f"{x:7.0f}" for x in levels[:7]), "...")
print("back:   ", *(f"{x:7.3f}" for x in levels[:7] * scale), "...")

# %% [markdown]
# Does the sign matter? Try the three scales on every block of the matrix.

# %%
blocks = weights.reshape(-1, 32)
at = abs(blocks).argmax(axis=1)[:, None]
top = np.take_along_axis(blocks, at, axis=1)

for name, d in (
    ("max|x| / 7", abs(top) / 7),
    ("max|x| / 8", abs(top) / 8),
    ("largest / -8", top / -8),
):
    back = np.clip(np.round(blocks / d), -8, 7) * d
    print(f"{name:>12}: error {error(back, blocks):.2%}")

# %% [markdown]
# Divided by 7, level -8 is never used. Divided by 8 without the sign, a positive largest weight would need level 8 and is
# cut to 7: it is off by a whole step, where most are off by half a step at most. ggml uses all 16 levels at no price:
# the sign of a float is there anyway.
#
# ## Eighteen bytes
#
# Now pack it: the scale as a half float, 2 bytes, then 32 codes in 16 bytes. A byte does not hold neighbours: byte `j`
# has code `j` in its low half and code `j + 16` in its high half. So one mask and one shift give a kernel two runs of 16
# neighbours.

# %%
codes = (levels + 8).astype(np.uint8)
low, high = codes[:16], codes[16:]
packed = np.float16(scale).tobytes() + (low | high << 4).tobytes()

print(f"{len(packed)} bytes, {8 * len(packed) / 32} bits a weight")
print("by hand:", packed.hex(" "))
print("engine: ", quantize("Q4_0", block).tobytes().hex(" "))

# %% [markdown]
# The same bytes. "4-bit" is 4.5: half a bit a weight pays for the scale.
#
# Now the engine. It encodes the row, tells of the first blocks one by one, and decodes the row again. **→** steps on. Point
# at a code: it says what it stands for, and which weight it was. (The *minimum* is what code 0 stands for.)

# %%
with vg.record() as trace:
    data = quantize("Q4_0", weights[3])
    dequantize("Q4_0", data.reshape(1, -1, 18))
lessons.tell(*trace.sentences("BlockEncoded"))


def first(trace, kind):
    kinds = [type(event).__name__ for event in trace.events]
    return kinds.index(kind)


vg.view(trace, ["block"], first(trace, "BlockEncoded"), height=520)

# %% [markdown]
# In llama.cpp this loop is `quantize_row_q4_0_ref`, and its way back `dequantize_row_q4_0`, both in
# `ggml/src/ggml-quants.c`; the block is `block_q4_0` in `ggml/src/ggml-common.h`.
#
# ## The K family: scales of scales
#
# If half a bit goes to the scales, can they be quantized as well? The K types do that. 256 weights are a *super-block*, of 8
# groups of 32 in `Q4_K`. Each group has a scale and a minimum (so its levels need not be centred on zero), and these are
# whole numbers of **6 bits**. Two half floats, `d` and `dmin`, say how much they count for.

# %%
super_block = quantize("Q4_K", weights[0, :256]).ravel()
opened = open_block("Q4_K", super_block)
n = len(super_block)
print(f"{n} bytes for 256 weights: {8 * n / 256} bits a weight")
for f in opened.fields:
    where = f"bytes {f.start:>2} to {f.stop - 1:>3}"
    lessons.tell(f"{where}, {f.name}: {f.meaning}")

# %% [markdown]
# Again 4.5 bits, but now with minimums. It is often said that a K block "stores 8 scales in 8 bytes", or in floats. But
# sixteen numbers of 6 bits are to fit into 12 bytes. How do they lie? Ask: in a block that is empty, set one bit, and look
# which scale (`s0` to `s7`) or minimum (`m0` to `m7`) is no longer 0.


# %%
def owner(byte, bit):
    data = np.zeros(144, np.uint8)
    data[:4] = np.ones(2, np.float16).view(np.uint8)
    data[4 + byte] = 1 << bit
    opened = open_block("Q4_K", data)
    j = int(np.flatnonzero(opened.scales + opened.mins)[0])
    return f"s{j}" if opened.scales[j] else f"m{j}"


print("   bit  7  6  5  4  3  2  1  0")
for byte in range(12):
    print(f"byte {byte:>2}", *(owner(byte, b) for b in range(7, -1, -1)))

# %% [markdown]
# They are woven. The first four scales and minimums have the low 6 bits of a byte each. The last four take half a byte,
# and the two high bits that the first four left over. You can undo that in two lines:

# %%
q = super_block[4:16].astype(int)
scales = [*(q[:4] & 63), *(q[8:] & 15 | q[:4] >> 6 << 4)]
minimums = [*(q[4:8] & 63), *(q[8:] >> 4 | q[4:8] >> 6 << 4)]
d, dmin = super_block[:4].view(np.float16).astype(np.float32)

print("scales:  ", *(f"{s:>2}" for s in scales), f" times {d:.6f}")
print("minimums:", *(f"{m:>2}" for m in minimums), f" times {dmin:.6f}")
same = np.allclose(opened.scales, d * np.array(scales))
same &= np.allclose(opened.mins, -dmin * np.array(minimums))
print("as open_block reads them:", same)

# %% [markdown]
# The same block in the engine. Point at codes of two groups: each says its own scale and minimum.

# %%
with vg.record() as trace:
    quantize("Q4_K", weights[0])
vg.view(trace, ["block"], first(trace, "BlockEncoded"), height=760)

# %% [markdown]
# ## The scale is searched for
#
# `Q4_0` has a formula for its scale. `Q4_K` has none: its quantizer *tries* some twenty scales around the obvious one and
# keeps that with the least error (the other K types search too, each in its way). How much is that worth? Try it on the blocks of 32:

# %%
least = np.full(len(blocks), np.inf)
for levels_used in np.linspace(6, 9, 21):
    d = top / -levels_used
    back = np.clip(np.round(blocks / d), -8, 7) * d
    least = np.minimum(least, np.sum((back - blocks) ** 2, axis=1))

formula = np.clip(np.round(blocks / (top / -8)), -8, 7) * (top / -8)
searched = np.sqrt(np.sum(least) / np.sum(blocks**2))
print(f"by the formula {error(formula, blocks):.2%}")
print(f"best of 21     {searched:.2%}")

# %% [markdown]
# Better weights in the same 18 bytes: a file takes longer to write, and reading costs the same. (ggml searches for
# `Q4_0` as well, once it knows which weights matter; that comes below.) The search of `Q4_K` is `make_qkx2_quants`
# in `ggml/src/ggml-quants.c`.
#
# ## The IQ family: codebooks
#
# So far each weight has a code of its own, and levels lie at equal distances. `IQ4_NL` and `IQ4_XS` keep the code but bend
# the levels: denser near zero, where most weights are. The smaller IQ types give up the code as well. In `IQ3_S` four
# weights share a number of 9 bits, which names one of 512 points of a fixed list, the *codebook*; signs are kept apart.

# %%
from vizggml.ggml.quants.iq.iq4 import LEVELS

print("the levels of IQ4_NL:")
print(*LEVELS)

opened = open_block("IQ3_S", quantize("IQ3_S", weights[0, :256]))
print("IQ3_S, ranks in the codebook:", *opened.points[:4], "...")
for i in range(2):
    four = opened.levels[4 * i : 4 * i + 4].astype(int)
    print(f"   rank {opened.points[i]}, with signs:", *four)

# %%
with vg.record() as trace:
    quantize("IQ3_S", weights[0])
vg.view(trace, ["block"], first(trace, "BlockEncoded"), height=760)

# %% [markdown]
# Finding the nearest point takes long, and that is the price of these types: paid when you make the file, and a
# little when a kernel looks points up. The codebook is no part of the file. It is a table in the program: `iq3s_grid` in
# `ggml/src/ggml-common.h`, the same for all models.
#
# ## Error against bits
#
# The real question is what you get for a bit. The same matrix in eleven types:

# %%
KINDS = "Q6_K Q5_K Q5_0 Q4_K Q4_0 IQ4_NL IQ4_XS Q3_K IQ3_S Q2_K Q1_0"


def there_and_back(kind, x, importance=None):
    data = quantize(kind, x, importance)
    size = type_named(kind).type_size
    return dequantize(kind, data.reshape(len(x), -1, size))


def bits(kind):
    return 8 * type_named(kind).type_size / type_named(kind).blck_size


errors = {}
for kind in KINDS.split():
    errors[kind] = error(there_and_back(kind, weights), weights)
for kind, e in errors.items():
    print(f"{kind:>7} {bits(kind):>7.4f} bits  error {e:>7.2%}")

# %%
import matplotlib.pyplot as plt
from matplotlib_inline.backend_inline import set_matplotlib_formats

set_matplotlib_formats("svg")
COLOURS = {"IQ": "#d9731a", "K": "#2f7fd1", "": "#8a8a8a"}
AWAY = {"Q4_0": (6, 4), "IQ4_NL": (7, -4), "IQ4_XS": (-46, -4)}
AWAY |= {"Q4_K": (-4, -15), "Q5_K": (-32, -8), "Q3_K": (-32, -8)}

figure, axes = plt.subplots(figsize=(6.6, 4.2))
for kind, e in errors.items():
    family = "IQ" if kind[0] == "I" else "K" if kind[-1] == "K" else ""
    point, colour = (bits(kind), 100 * e), COLOURS[family]
    away = {"xytext": AWAY.get(kind, (6, 2)), "color": colour}
    axes.scatter(*point, s=30, color=colour)
    axes.annotate(kind, point, textcoords="offset points", **away)

axes.set(yscale="log", xlim=(0.8, 7.2))
axes.set(xlabel="bits a weight", ylabel="error, % of the weights")
axes.set_yticks([2, 5, 10, 20, 50], ["2", "5", "10", "20", "50"])
axes.minorticks_off()
axes.spines[["top", "right"]].set_visible(False)
plt.show()

# %% [markdown]
# Read it from right to left. The error's axis is logarithmic, and the points are near a line: each bit that you take away
# doubles the distance between levels, and so about doubles the error. Families differ by much less than bits do: at 4.5
# bits compare `Q4_0`, `Q4_K` and `IQ4_NL`.
#
# `IQ3_S` looks bad here, above `Q3_K` at the same size. Its quantizer misses something. Before that: is the tiny model
# typical?
#
# ## A measurement that deceives
#
# Take rows of SmolLM2 beside it: of its embedding, and of a matrix in its first layer.

# %%
smol = vg.load_model("smollm2")
matrices = {
    "tiny": weights,
    "embedding": floats(smol, "token_embd.weight")[:512],
    "ffn_down": floats(smol, "blk.0.ffn_down.weight")[:512],
}
print(f"{'':>7}", *(f"{name:>10}" for name in matrices))
for kind in ("Q6_K", "Q5_0", "Q4_K", "Q4_0", "IQ4_NL", "Q4_1", "Q3_K"):
    cells = []
    for x in matrices.values():
        fits = x.shape[1] % type_named(kind).blck_size == 0
        e = f"{error(there_and_back(kind, x), x):.2%}" if fits else "-"
        cells.append(f"{e:>10}")
    print(f"{kind:>7}", *cells)

# %% [markdown]
# The embedding agrees with the tiny model, where there is a number. Its rows are 576 long, which is no whole number of 256,
# so no K type can hold them; llama.cpp's quantizer then falls back to a type with blocks of 32 (`tensor_type_fallback` in
# `src/llama-quant.cpp`).
#
# The last column is too good to be true: nothing lost in `Q4_1`, and in `Q4_K` as little as in `Q6_K`. What does the file say?

# %%
for name in ("token_embd.weight", "blk.0.ffn_down.weight"):
    print(f"{name:>21}: {smol.gguf.tensors[name].type}")

# %% [markdown]
# That matrix *is* `Q4_1`: in each of its blocks there are 16 values, and any type with a scale and a minimum for 32
# weights finds them again, or nearly. The loss was taken before you measured. So compare with the original, never with a file that is as
# coarse as the answer; and quantize from the original, as losses add up. llama.cpp's quantizer refuses a quantized source
# unless you say `--allow-requantize`.
#
# ## Importance
#
# Not every weight matters alike. Column `i` of a matrix is multiplied by element `i` of the activations. If that element is
# always near zero, an error in the column changes nothing. So run the model over some text, and sum up the squares of what
# each column is multiplied by: an *importance matrix*. (Some seconds, for the story it is taken from.)

# %%
from vizggml.llama.imatrix import compute_imatrix

prompt = "Once upon a time"
story = model.context(n_ctx=256).generate(
    prompt, max_tokens=128, seed=1, ignore_eos=True
)
text = model.vocab.tokenize(prompt) + [token.id for token in story]
imatrix = compute_imatrix(model, text, n_ctx=64)

importance = imatrix.importance()["blk.0.ffn_down.weight"].ravel()
ratio = importance.max() / np.median(importance)
print(f"of {len(importance)} columns the most important counts")
print(f"{ratio:.0f} times as much as the median")

# %% [markdown]
# The quantizer weighs its errors with it. Measure both ways: all errors alike, and each by what it costs.


# %%
def cost(back):
    off = np.sum(importance * (back - weights) ** 2)
    return np.sqrt(off / np.sum(importance * weights**2))


print(f"{'':>7}{'all alike':>20}{'by importance':>22}")
for kind in ("Q4_0", "Q4_K", "Q3_K", "IQ3_S", "Q2_K"):
    plain = there_and_back(kind, weights)
    given = there_and_back(kind, weights, importance)
    e, f = error(plain, weights), error(given, weights)
    c, d = cost(plain), cost(given)
    print(f"{kind:>7}  {e:7.2%} -> {f:6.2%}    {c:7.2%} -> {d:6.2%}")

# %% [markdown]
# By importance all of them gain, and those of few bits most. By the plain measure some get *worse*: they give up what
# does not matter. And `IQ3_S` passes `Q3_K`: the IQ types were made to be used with importance. The smallest refuse
# to do without it (`tensor_requires_imatrix` in `src/llama-quant.cpp`). A reader of the file need not know: the format of
# the blocks is the same with and without.
#
# ## A whole file
#
# `Q4_K_M` is not a type but a *mixture*: most matrices are `Q4_K`, some that suffer more are `Q6_K`, and vectors stay
# `F32`. In a terminal it would be
#
#     vizggml quantize tiny tiny-q4.gguf Q4_K_M --allow-requantize
#
# The same from Python, beside the file that the real `llama_model_quantize` wrote:

# %%
import hashlib
import tempfile
from collections import Counter
from pathlib import Path

from vizggml.llama.models import resolve_model
from vizggml.llama.quantize import quantize_file

source, folder = resolve_model("tiny"), Path(tempfile.mkdtemp())


def made(mixture):
    out = folder / f"{mixture}.gguf"
    report = quantize_file(source, out, mixture, allow_requantize=True)
    return out, report


path, report = made("Q4_K_M")
print(dict(Counter(t.type.name for t in report.tensors)))
print(f"tensors: {report.before:,} bytes -> {report.after:,},")
print(f"{report.bits_per_weight:.2f} bits a weight")

theirs = lessons.golden("tiny.quantize.Q4_K_M.bytes")
print(f"the file: {path.stat().st_size:,} bytes; llama.cpp's {theirs:,}")
digest = hashlib.sha256(path.read_bytes()).hexdigest()
same = digest[:16] == lessons.golden("tiny.quantize.Q4_K_M.sha256")
print("byte for byte the same:", same)

# %% [markdown]
# In llama.cpp `llama_model_quantize_impl` in `src/llama-quant.cpp` goes through the file, and `llama_tensor_get_type`
# there decides which tensor gets which type.
#
# ## Change this and watch
#
# Change `mixture`: `Q6_K`, `Q3_K_M`, `Q2_K`, `TQ1_0`. Watch where the story leaves that of the source, and where it stops
# being one. The last line says by how much the predictions of the next token differ, on a given sentence (the
# Kullback-Leibler divergence; 0 is no difference).

# %%
mixture = "Q3_K_M"

# %%
SENTENCE = (
    "A green frog and an old dog sat under the tree, "
    "and the rain fell on the hill all night."
)


def log_probabilities(model):
    tokens = model.vocab.tokenize(SENTENCE)
    context = model.context(n_ctx=64)
    logits = context.decode(tokens, range(len(tokens)))
    x = logits.astype(np.float64)
    return x - np.log(np.sum(np.exp(x), axis=1, keepdims=True))


def story(model):
    written = model.context(n_ctx=64).generate(
        prompt, max_tokens=30, temp=0
    )
    return prompt + "".join(token.text for token in written)


path, report = made(mixture)
other = vg.load_model(path)
lessons.tell(f"source: {story(model)}", f"{mixture}: {story(other)}")

p, q = log_probabilities(model), log_probabilities(other)
divergence = np.mean(np.sum(np.exp(p) * (p - q), axis=1))
print(f"{report.bits_per_weight:.2f} bits a weight, {divergence=:.4f}")

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
hparams, dims = hparams_of("30b", shape), tensor_shapes(shape)


def average(mixture):
    types = tensor_types(hparams, dims, mixture, importance=True)
    nbytes = 0
    for name, type in types.items():
        nbytes += type.row_size(dims[name][0]) * prod(dims[name][1:])
    return 8 * nbytes / sum(map(prod, dims.values()))


MIXTURES = "F16 Q8_0 Q6_K Q5_K_M Q4_K_M IQ4_XS Q3_K_M IQ3_XXS IQ2_XXS"
for mixture in MIXTURES.split():
    b = average(mixture)
    print(f"{mixture:>8}: {b:5.2f} bits a weight, {35 * b / 8:5.1f} GB")

# %% [markdown]
# (GB are 10⁹ bytes here.) There they are: 21 GB is `Q4_K_M`, 14 GB a codebook type of three bits, made with
# importance. Look back at the plot for what the step between them costs.
#
# Beside the weights you need the cache of [chapter 8](08-kv-cache.ipynb) and the compute buffer of
# [chapter 7](07-plan.ipynb).

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
# **10.3** Write a function `encode(x)` that takes 32 floats and returns the 18 bytes of their `Q4_0` block; the answer is the
# function. It will be tried on several blocks, and one of them is all zeros.

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
