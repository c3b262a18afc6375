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
# # 第 10 章：量化
#
# 一个 350 亿参数的模型，每个权重两个字节，文件就是 70 GB。可有人在笔记本上跑它，文件只有 21 GB，甚至 14 GB。前面各章省的都是权重**以外**的内存，现在轮到权重本身。
#
# 四个比特只能区分 16 个值。同一个矩阵里有大权重，也有极小的权重，该选哪 16 个？先从 tiny 模型里取一个矩阵。（它的文件是 `Q8_0`，本来就量化过，只是很精细。这里把权重读成浮点数，当作真值。）

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
# ## 一个缩放系数，还是许多个
#
# 4 比特的编码取 0 到 15，代表 -8 到 7 这 16 个**级别**（level），权重就是 `scale * level`。整个矩阵只用一个缩放系数（scale），最大的那个权重就决定了其余所有权重有多粗糙。如果一行里每几个相邻的权重组成一**块**（block），各有自己的缩放系数，级别就能贴合这一块；可缩放系数也是数，也要占比特：一个半精度浮点数是 16 比特。


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
# （误差是均方根，与权重的均方根相比。）只用一个缩放系数，许多权重都成了 0。每 8 个权重一个，效果好，存储却要多一半。`Q4_0` 取 32 个。
#
# ## 手算一个块
#
# 级别不对称：有 -8，没有 8。你会怎么取缩放系数？
#
# 许多文章写的是 `max|x| / 7` 或 `max|x| / 8`。ggml 取绝对值最大的那个权重，**连同它的符号**，除以 -8。于是这个权重总是落在 -8 级；它若为正，缩放系数就是负的。

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
# 符号有那么要紧吗？把三种缩放系数用到矩阵的每一块上试试。

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
# 除以 7，-8 级永远用不上。除以 8 又不带符号，最大的权重若为正，就需要 8 级，只能截到 7：差了整整一级，而多数权重最多差半级。ggml 用满 16 级，而且没有代价：浮点数本来就有符号位。
#
# ## 18 个字节
#
# 现在打包：先是缩放系数，半精度浮点，2 字节；再是 32 个编码，16 字节。一个字节里放的不是相邻的两个：第 `j` 个字节的低半是编码 `j`，高半是编码 `j + 16`。这样 kernel 做一次掩码、一次移位，就得到两段各 16 个相邻的编码。

# %%
codes = (levels + 8).astype(np.uint8)
low, high = codes[:16], codes[16:]
packed = np.float16(scale).tobytes() + (low | high << 4).tobytes()

print(f"{len(packed)} bytes, {8 * len(packed) / 32} bits a weight")
print("by hand:", packed.hex(" "))
print("engine: ", quantize("Q4_0", block).tobytes().hex(" "))

# %% [markdown]
# 字节完全一样。所谓“4 比特”其实是 4.5：每个权重多付半个比特，用在缩放系数上。
#
# 再看引擎。它编码这一行，前几块逐一说明，然后再解码回来。按 **→** 往前走；把鼠标指向一个编码，就能看到它代表的值，以及原来的权重。（*minimum* 是编码 0 所代表的值。）

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
# 在 llama.cpp 里，这个循环是 `ggml/src/ggml-quants.c` 中的 `quantize_row_q4_0_ref`，反方向是同一文件的 `dequantize_row_q4_0`；块的定义是 `ggml/src/ggml-common.h` 里的 `block_q4_0`。
#
# ## K 系列：缩放系数的缩放系数
#
# 既然有半个比特花在缩放系数上，能不能把缩放系数也量化？K 系列就是这么做的。256 个权重组成一个**超块**（super-block），在 `Q4_K` 里分成 8 组，每组 32 个。每组有一个缩放系数和一个最小值（所以级别不必以零为中心），二者都是 **6 比特**的整数。再用两个半精度浮点数 `d` 和 `dmin` 说明这些整数的单位是多少。

# %%
super_block = quantize("Q4_K", weights[0, :256]).ravel()
opened = open_block("Q4_K", super_block)
n = len(super_block)
print(f"{n} bytes for 256 weights: {8 * n / 256} bits a weight")
for f in opened.fields:
    where = f"bytes {f.start:>2} to {f.stop - 1:>3}"
    lessons.tell(f"{where}, {f.name}: {f.meaning}")

# %% [markdown]
# 还是 4.5 比特，却多出了最小值。常有人说 K 块“用 8 个字节存 8 个缩放系数”，或者说存的是浮点数。其实是 16 个 6 比特的数要放进 12 个字节。怎么放？问引擎就行：在一个全空的块里只把一个比特置 1，看哪个缩放系数（`s0` 到 `s7`）或最小值（`m0` 到 `m7`）不再是 0。


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
# 存放是交错的。前四个缩放系数和前四个最小值，各占一个字节的低 6 位；后四个先占半个字节，再借用前四个剩下的两个高位。拆开只要两行：

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
# 引擎里的同一个块。分别指向两个组里的编码：两个组各有自己的缩放系数和最小值。

# %%
with vg.record() as trace:
    quantize("Q4_K", weights[0])
vg.view(trace, ["block"], first(trace, "BlockEncoded"), height=760)

# %% [markdown]
# ## 缩放系数是试出来的
#
# `Q4_0` 的缩放系数有公式，`Q4_K` 没有：量化器在显而易见的那个值附近**试**二十来个，留下误差最小的（其他 K 类型也搜索，办法各有不同）。这样做能好多少？在 32 个一组的块上试试：

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
# 同样 18 个字节，权重更准：写文件慢一些，读的时候一样快。（ggml 对 `Q4_0` 也会搜索，前提是知道哪些权重要紧，下面会讲到。）`Q4_K` 的搜索在 `ggml/src/ggml-quants.c` 的 `make_qkx2_quants` 里。
#
# ## IQ 系列：码本
#
# 到这里，每个权重都有自己的编码，各级之间等距。`IQ4_NL` 和 `IQ4_XS` 保留了编码，但把级别改成不等距：大多数权重在零附近，那里就密一些。更小的 IQ 类型连单独的编码也不要了。在 `IQ3_S` 里，四个权重共用一个 9 比特的数，它指向一张固定的表（**码本**，codebook）里 512 个点中的一个；符号另存。

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
# 寻找最近的点很花时间，这就是这些类型的代价：主要付在制作文件的时候，kernel 查表时也付一点。码本不在文件里，它是程序里的一张表：`ggml/src/ggml-common.h` 中的 `iq3s_grid`，对所有模型都一样。
#
# ## 误差与比特数
#
# 真正的问题是：一个比特能换来什么？同一个矩阵，十一种类型：

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
# 从右往左看。误差轴是对数轴，各点接近一条直线：每拿掉一个比特，级与级的间距加倍，误差也就大约加倍。系列之间的差别，远小于比特数带来的差别：比较 4.5 比特处的 `Q4_0`、`Q4_K` 和 `IQ4_NL`。
#
# `IQ3_S` 在这里表现不好，同样大小，误差却比 `Q3_K` 大。它的量化器还缺一样东西。先问另一个问题：tiny 模型有代表性吗？
#
# ## 一次骗人的测量
#
# 拿 SmolLM2 的一些行来对照：一部分取自词嵌入，一部分取自第一层的一个矩阵。

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
# 凡是有数的地方，词嵌入那一列与 tiny 模型一致。它每行长 576，不是 256 的整数倍，任何 K 类型都放不下；llama.cpp 的量化器遇到这种情况，会退到 32 个一块的类型（`src/llama-quant.cpp` 中的 `tensor_type_fallback`）。
#
# 最后一列好得不像真的：`Q4_1` 毫无损失，`Q4_K` 的损失小得像 `Q6_K`。文件里写的是什么？

# %%
for name in ("token_embd.weight", "blk.0.ffn_down.weight"):
    print(f"{name:>21}: {smol.gguf.tensors[name].type}")

# %% [markdown]
# 那个矩阵**本来就是** `Q4_1`：每一块里只有 16 个不同的值，凡是给 32 个权重配一个缩放系数和一个最小值的类型，都能找回来，或者差不多找回来。损失在你测量之前就已经发生了。所以要和原始权重比，不要和与结果一样粗糙的文件比；量化也要从原始权重开始，因为损失会累加。源文件已经量化过时，llama.cpp 的量化器会拒绝工作，除非加上 `--allow-requantize`。
#
# ## 重要性
#
# 权重并非同样要紧。矩阵的第 `i` 列要乘激活值的第 `i` 个元素。如果这个元素总是接近零，这一列错一点毫无影响。所以先让模型读一段文字，把每一列所乘的数的平方累加起来，得到**重要性矩阵**（importance matrix）。（要跑几秒钟，时间花在生成那个故事上。）

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
# 量化器用它给误差加权。两种量法都看看：一种对所有误差一视同仁，一种按各自的代价。


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
# 按重要性来量，所有类型都有改善，比特少的改善最多。用一视同仁的量法，有几种反而**变差**了，因为放弃了不要紧的部分。而 `IQ3_S` 超过了 `Q3_K`：IQ 系列本来就是配合重要性设计的，其中最小的几种没有它就拒绝工作（`src/llama-quant.cpp` 中的 `tensor_requires_imatrix`）。读文件的程序不必知道这些：有没有用过重要性，块的格式都一样。
#
# ## 整个文件
#
# `Q4_K_M` 不是类型，而是**混合方案**：大多数矩阵用 `Q4_K`，有些更怕量化的用 `Q6_K`，向量保持 `F32`。在终端里这样写：
#
#     vizggml quantize tiny tiny-q4.gguf Q4_K_M --allow-requantize
#
# 用 Python 做同样的事，再与真正的 `llama_model_quantize` 写出的文件对照：

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
# 在 llama.cpp 里，`src/llama-quant.cpp` 的 `llama_model_quantize_impl` 处理整个文件，其中的 `llama_tensor_get_type` 决定哪个张量用哪种类型。
#
# ## 改一改，看一看
#
# 改 `mixture`：`Q6_K`、`Q3_K_M`、`Q2_K`、`TQ1_0`。看故事从哪里开始和原模型不同，到什么时候就不成故事了。最后一行是在一个给定的句子上，对下一个 token 的预测相差多少（Kullback-Leibler 散度，0 表示没有差别）。

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
# ## 350 亿权重：21 GB 与 14 GB
#
# 现在来算开头那道题：权重数乘比特数，除以 8。一种混合方案平均每个权重多少比特，取决于模型的形状。这里取一个 300 亿参数的混合专家模型，问每个张量分到什么类型，再把平均值用到 350 亿上。全程不需要权重。

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
# （这里的 GB 是 10⁹ 字节。）答案出来了：21 GB 是 `Q4_K_M`；14 GB 是一种三比特的码本类型，制作时用了重要性。从前者到后者付出了什么，回头看那张图。
#
# 权重之外，还要加上[第 8 章](08-kv-cache.ipynb)的缓存和[第 7 章](07-plan.ipynb)的计算缓冲区。

# %% [markdown]
# ## 练习
#
# 把 `...` 换成你的答案。答错会得到提示；`lessons.solution("10.1")` 打印解答。
#
# **10.1** 一个矩阵有 11,008 行，每行 4,096 个权重。用 `Q4_0` 占多少字节？

# %%
answer = ...
lessons.check("10.1", answer)

# %% [markdown]
# **10.2** 一个块里最小的权重是 -1.5，最大的是 4.0。它在 `Q4_0` 里的缩放系数是多少？

# %%
answer = ...
lessons.check("10.2", answer)

# %% [markdown]
# **10.3** 写一个函数 `encode(x)`，接收 32 个浮点数，返回对应的 `Q4_0` 块，共 18 个字节；答案就是这个函数。会用几个块来试，其中一个全是零。

# %%
answer = ...
lessons.check("10.3", answer)

# %% [markdown]
# **10.4** 一台笔记本有 32 GB 内存，其中 9 GB 留给系统、缓存和缓冲区。350 亿个权重全用同一种类型。`Q3_K`、`Q4_K`、`Q5_K`、`Q6_K` 里，放得下的最精细的是哪一种？用字符串写出它的名字。

# %%
answer = ...
lessons.check("10.4", answer)

# %% [markdown]
# ## 接下来读什么
#
# - `vizggml/ggml/quants/legacy.py` 里我们的 `Q4_0`；再对照着看 `k/q4.py`，以及讲码本的 `iq/iq3.py`。
# - llama.cpp 的 `src/llama-quant.cpp`：哪个张量多分几个比特，为什么。我们的实现在 `vizggml/llama/mixtures.py`。
# - 字节已经很少了。谁来做乘法，用几个线程，在哪个设备上？[第 11 章：线程与后端](11-backends.ipynb)。
