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
# 一个 350 亿参数的模型，每个权重两个字节，文件就是 70 GB。可有人在笔记本上跑它，文件只有 21 GB，甚至 14 GB。前面各章省的都是权重以外的内存，现在轮到权重本身。
#
# 四个比特只能区分 16 个值。同一个矩阵里有大权重，也有极小的权重，该选哪 16 个？

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
# （tiny 模型的文件是 `Q8_0`，本来就量化过，只是很精细。这里把它的权重读成浮点数，当作真值。）
#
# 整个矩阵只用 16 级，大多数权重会挤在零附近的两三级上。所以要把每一行里相邻的权重切成**块**（block），每块有自己的**缩放系数**（scale）。`Q4_0` 的一块是 32 个权重。

# %% [markdown]
# ## 手算一个块
#
# 4 比特的编码取 0 到 15，代表 -8 到 7 级，权重就是 `scale * level`。级别不对称：有 -8，没有 8。你会怎么取缩放系数？
#
# 许多文章写的是 `max|x| / 7` 或 `max|x| / 8`。ggml 取绝对值最大的那个权重，*连同它的符号*，除以 -8。于是这个权重总是落在 -8 级；它若为正，缩放系数就是负的。

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
# 符号有那么要紧吗？把三种缩放系数用到矩阵的每一块上试试。误差是均方根，与权重的均方根相比。

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
# 除以 7，-8 级永远用不上。除以 8 又不带符号，最大的权重若为正，就需要 8 级，只能截到 7：差了整整一级，而别的权重最多差半级。ggml 用满 16 级，而且没有代价：浮点数本来就有符号位。

# %% [markdown]
# ## 18 个字节
#
# 现在打包：先是缩放系数，半精度浮点，2 字节；再是 32 个编码，16 字节。一个字节里放的不是相邻的两个：第 $j$ 个字节的低半是编码 $j$，高半是编码 $j + 16$。这样 kernel 做一次掩码、一次移位，就得到两段各 16 个相邻的编码。

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
# 字节完全一样。所谓“4 比特”其实是 4.5：每个权重多付半个比特，用在缩放系数上。`open_block` 能拆开任何一种块：


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
# 引擎用事件来讲述这件事：矩阵被编码，前几块逐一说明，解码时再来一遍。播放器打开时停在第一块，用 **←** 和 **→** 前后走。（更早的事件来自已载入的模型。*minimum* 是编码 0 所代表的值。）

# %%
with vg.record() as trace:
    data = quantize("Q4_0", weights)
    dequantize("Q4_0", data.reshape(len(weights), -1, 18))
for sentence in trace.sentences("BlockEncoded"):
    print(sentence)

vg.view(trace, panes=["events"], step=len(trace) - 5, height=320)

# %% [markdown]
# ## K 系列：缩放系数的缩放系数
#
# 既然有半个比特花在缩放系数上，能不能把缩放系数也量化？K 系列就是这么做的。256 个权重组成一个*超级块*（super-block），在 `Q4_K` 里分成 8 组，每组 32 个。每组有一个缩放系数和一个最小值（所以级别不必以零为中心），二者都是 **6 比特**的整数。再用一对半精度浮点数说明这些整数的单位是多少。

# %%
super_block = quantize("Q4_K", weights[0, :256]).ravel()
show("Q4_K", super_block)
print(8 * len(super_block) / 256, "bits a weight")

# %% [markdown]
# 还是 4.5 比特，分组也还是 32 个，却多出了最小值。常有人说 K 块“用 8 个字节存 8 个缩放系数”，或者说存的是浮点数。其实是 16 个 6 比特的数放在 12 个字节里，而且交错存放：前四对各占一个字节的低 6 位；后四对先占半个字节，再借用前四对剩下的两个高位。

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
# K 系列和 `Q4_0` 还有一处不同：缩放系数没有公式。量化器在显而易见的那个值附近*试*二十来个，留下误差最小的。写的时候慢一些，读的时候一样快。
#
# ## IQ 系列：码本
#
# 到这里，每个权重都有自己的编码，各级之间等距。`IQ4_NL` 和 `IQ4_XS` 保留了编码，但把级别改成不等距：大多数权重在零附近，那里就密一些。更小的 IQ 类型连单独的编码也不要了。在 `IQ3_S` 里，四个权重共用一个 9 比特的数，它指向一张固定的表（*码本*，codebook）里 512 个点中的一个；符号另存。

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
# 寻找最近的点很花时间，这就是这些类型的代价：主要付在制作文件的时候，kernel 查表时也付一点。码本属于程序，不在文件里。

# %% [markdown]
# ## 误差与比特数
#
# 真正的问题是：一个比特能换来什么？同一个矩阵，十一种类型（要几秒钟）：

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
# 从右往左看。误差轴是对数轴，各点接近一条直线：每拿掉一个比特，级与级的间距加倍，误差也就大约加倍。系列之间的差别，远小于比特数带来的差别：比较 4.5 比特处的 `Q4_0`、`Q4_K` 和 `IQ4_NL`。
#
# `IQ3_S` 在这里表现不好，同样大小，误差却在 `Q3_K` 之上。它的量化器还缺一样东西。先问另一个问题：tiny 模型有代表性吗？取 SmolLM2 词嵌入的一些行来看。它每行长 576，不是 256 的整数倍，任何 K 类型都放不下；llama.cpp 的量化器遇到这种情况，会退到 32 个一块的类型。

# %%
smol = floats(vg.load_model("smollm2"), "token_embd.weight")[:2048]
for kind in ("Q5_0", "Q4_0", "IQ4_NL"):
    print(
        f"{kind:>7}: SmolLM2 {error(there_and_back(kind, smol), smol):.2%}, tiny {errors[kind]:.2%}"
    )

# %% [markdown]
# ## 重要性
#
# 权重并非同样要紧。矩阵的第 $i$ 列要乘激活的第 $i$ 个元素。如果这个元素总是接近零，这一列错一点毫无影响。所以先让模型读一段文字，把每一列所乘的数的平方累加起来，得到*重要性矩阵*（importance matrix）。（下面要几秒钟，时间花在生成那个故事上。）

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
# 量化器用它给误差加权。两种量法都看看：一种对所有误差一视同仁，一种按各自的代价。


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
# 按重要性来量，所有类型都有改善，比特少的改善最多。用一视同仁的量法，`Q4_K` 和 `Q3_K` 反而*变差*了，因为它们放弃了不要紧的部分。而 `IQ3_S` 超过了 `Q3_K`：IQ 系列本来就是配合重要性设计的，其中最小的几种没有它就拒绝工作。读文件的程序不必知道这些：有没有用过重要性，块的格式都一样。

# %% [markdown]
# ## 整个文件
#
# `Q4_K_M` 不是类型，而是*混合方案*：大多数矩阵用 `Q4_K`，有些更怕量化的用 `Q6_K`，向量保持 `F32`。在终端里这样写：
#
#     vizggml quantize tiny tiny-q4.gguf Q4_K_M --allow-requantize
#
# （要加最后这个选项，因为文件已经是 `Q8_0` 了。）用 Python 做同样的事：

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
# ## 在 llama.cpp 里
#
# `ggml/src/ggml-quants.c` 里的 `quantize_row_q4_0_ref` 就是你手写的那个循环；同一文件的 `make_qkx2_quants` 为 K 系列试缩放系数；各种块定义在 `ggml/src/ggml-common.h`。`src/llama-quant.cpp` 里的 `llama_model_quantize_impl` 处理整个文件，上面的摘要就是从它的输出记录下来的。

# %% [markdown]
# ## 改一改，看看会怎样
#
# 改 `mixture`：`Q6_K`、`Q3_K_M`、`Q2_K`、`TQ1_0`。看故事从哪里开始和原模型不同，到什么时候就不成故事了。最后一行是在一个给定的句子上，对下一个 token 的预测相差多少（Kullback-Leibler 散度，0 表示没有差别）。

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
# ## 350 亿权重：21 GB 与 14 GB
#
# 现在来算开头那道题：权重数乘比特数，除以 8。一种混合方案平均每个权重多少比特，取决于模型的形状。这里取一个 300 亿参数的混合专家模型，问每个张量分到什么类型，再把平均值用到 350 亿上。全程不需要权重。

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
# 答案出来了：21 GB 是 `Q4_K_M`；14 GB 是三比特左右，用码本类型，并借助重要性来选。（这里的 GB 是 $10^9$ 字节。）从前者到后者付出了什么，回头看那张图。权重之外，还要加上第 8 章的缓存和第 5 章的计算缓冲区。

# %% [markdown]
# ## 练习
#
# 把三个点换成你的答案。答错会得到提示；`lessons.solution("10.1")` 打印解答。
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
# **10.3** 写一个函数 `encode(x)`，接收 32 个浮点数，返回它们的 `Q4_0` 块，共 18 个字节。会用几个块来试，其中一个全是零。

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
# - llama.cpp 的 `src/llama-quant.cpp`：哪个张量多分几个比特，为什么。我们的在 `vizggml/llama/mixtures.py`。
# - 字节已经很少了。谁来做乘法，用几个线程，在哪个设备上？
#   [第 11 章：线程与后端](11-backends.ipynb)。
