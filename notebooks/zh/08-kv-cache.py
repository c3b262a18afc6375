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
# # 第 8 章：KV 缓存
#
# 模型写出一个 token，接到文本后面，再从头来一遍。要选出下一个 token，注意力得看**之前所有的** token。那么每次都要让整段文本重新走一遍模型吗？先照这样让 tiny 模型写写看。`decode` 收下 token，给出下一个 token 的分数；`clear` 让模型忘掉之前收下的。

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
# 文本长一倍，要算的 token 变成四倍。再来一遍，这次每步只送入还没有算过的 token：


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
# ## 什么可以留下来
#
# 凭什么可以这样做？下面用 NumPy 写一个注意力头。每个 token 产生一个 query、一个 key 和一个 value；query 与到它为止所有 token 的 key 比较，结果是这些 value 的加权平均。

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
# 一个 token 从不看它后面的 token。所以后来的 token 改变不了它的任何东西：它的结果不变，它传给下一层的东西不变，它在下一层的 key 和 value 也就不变。旧 token 的 key 和 value 因此可以留着。query 只在 token 刚来时用一次，所以没有 Q 缓存。

# %%
keys, values = np.zeros((6, 8)), np.zeros((6, 8))
results = []
for t in range(6):
    keys[t], values[t] = x[t] @ wk, x[t] @ wv
    results.append(attend(x[t] @ wq, keys[: t + 1], values[: t + 1]))
print("the same results:", np.allclose(results, everything))

# %% [markdown]
# 整个模型也守这个规矩吗？取最后一层为提示词算出的 key：一次只给提示词，一次后面接着整篇故事。（这里关掉了 flash attention：一步的 token 多时，它按分块计算，舍入会有不同，见[第 9 章](09-attention.ipynb)。）


# %%
def keys_of_prompt(tokens):
    plain = model.context(n_ctx=256, n_ubatch=64, flash_attn=False)
    plain.decode(tokens)
    return plain.memory.k[-1].array()[0, 0, : len(prompt)]


alone, followed = keys_of_prompt(prompt), keys_of_prompt(story)
print("the same, bit for bit:", np.array_equal(alone, followed))

# %% [markdown]
# 常有人说，有了缓存，生成的开销就是**线性**的。就走过模型的 token 而言，没错；就注意力而言，不对：新来的 token 还是要和之前的每一个比较。数一数一层里一个头的分数：

# %%
for n in (64, 128, 256):
    cached = sum(range(1, n + 1))
    anew = sum(sum(range(1, m + 1)) for m in range(1, n + 1))
    print(f"{n:>3} tokens: anew {anew:>9,}, with a cache {cached:>6,}")

# %% [markdown]
# ## 在引擎里
#
# 缓存一开始就按最大的尺寸建好：每层一个存 key 的张量，一个存 value 的张量，每个 *cell* 占一行。一步计算用 `SET_ROWS` 写入自己的那几行。

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
# 一列是一个 cell，一行是一层。现在看到的是最后一步。按 **←** 往回走，或者拖动滑块：带框的 cell 属于正在解码的 token，随着计算图的执行一层一层填满。

# %%
vg.view(trace, panes=["kv"], step=len(trace) - 1, height=480)

# %% [markdown]
# 注意力并不从缓存里复制什么。它读的 key 和 value 就是同样张量的视图（[第 2 章](02-views.ipynb)）：

# %%
nodes = ctx.step_graph(1).nodes
attention = next(t for t in nodes if t.op == "FLASH_ATTN_EXT")
for t in attention.src[1:3]:
    print(f"{t.name}: ne {t.ne[:3]}, bytes of {t.view_src.name}")

# %% [markdown]
# 这些视图有 256 个 cell，已占用的远没有这么多。个数向上取到 256 的倍数，这样计算图在很多个 token 之内都不变，可以复用（[第 4 章](04-deferred.ipynb)）。那么一个 token 究竟看得见哪些 cell？下一节就有答案。

# %% [markdown]
# ## 改一改，看一看
#
# cell 不是队列。你可以从中间删掉一些位置，后来的 token 哪里有空就去哪里。修改 `removed`，把下面几个单元格一直运行到 mask。看最后一步里带框的 cell 在哪里，上面标的是哪些位置。

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
# cell 的顺序并不是文本的顺序。token 看得见什么，由 *mask* 说了算，它是计算图的一个输入：看得见的 cell 是 0，看不见的是负无穷。下面是它开头的几列，四个新 token 各占一行。找找规律：每个 token 看得见它自己，以及**位置**在它之前的。

# %%
inputs = ctx.gf_res_prev_active.gf.leafs
mask = next(t for t in inputs if t.name == "attn_inp_kq_mask")
print("cell        ", *(f"{cell:>4}" for cell in range(10)))
print("position    ", *(f"{p:>4}" for p in positions[:10]))
for position, row in zip(new, mask.array()[0, 0], strict=True):
    print(f"new token, {position}", *(f"{x:>4.0f}" for x in row[:10]))

# %% [markdown]
# （-1 表示 cell 是空的。）token 在文本中的位置并没有丢：key 存进去之前，`ROPE` 已经按位置把它转过了。

# %% [markdown]
# ## 手算字节数
#
# 缓存有多大？每层有 key 和 value；每个 token 依次排着各个头；每个数在 `F16` 里占两个字节。70 亿参数的 Llama 2 有 32 层，每层 32 个头，每头 128 个数。4,096 个 token 就是：


# %%
def kv_bytes(layers, heads, size, tokens, bytes_of_32=64):
    numbers = 2 * layers * tokens * heads * size
    return numbers // 32 * bytes_of_32


by_hand = kv_bytes(32, 32, 128, 4096)
print(f"{by_hand:,} bytes: {by_hand / 2**30} GiB")
print(f"{by_hand // 4096:,} bytes for each token")

# %% [markdown]
# 引擎算出来的一样。它只凭模型的形状做规划，不读任何权重。在命令行里，对应的是 `vizggml plan --shape llama-7b -c 4096`。

# %%
from vizggml.llama.cparams import ContextParams
from vizggml.llama.plan import plan_file, plan_shape

(planned,) = plan_shape("llama-7b", "F16", ContextParams(n_ctx=4096)).kv
print(f"{planned:,} bytes; the same: {planned == by_hand}")

# %% [markdown]
# 常有人说，缓存随着文本变大。变大的是**用到**的部分。内存在创建 context 时就全部占下，不管你要写 4,096 个 token 还是 10 个：


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
# ## 少存几个头
#
# 700 亿参数的 Llama 2 有 80 层，每层 64 个头，每头 128 个数。它的缓存不该是 7B 的五倍大吗？

# %%
(planned,) = plan_shape("llama-70b", "F16", ContextParams(n_ctx=4096)).kv
for what, size in (
    ("by hand, all 64 heads", kv_bytes(80, 64, 128, 4096)),
    ("by hand, 8 heads", kv_bytes(80, 8, 128, 4096)),
    ("planned", planned),
):
    print(f"{what:>21}: {size / 2**30:>5.2f} GiB")

# %% [markdown]
# 反而比 7B 的还小。query 头是**分组**的，8 个头为一组，共用一个 key 头和一个 value 头，这叫分组查询注意力（grouped-query attention，GQA）。共用并不需要复制：`mul_mat` 允许第二个操作数的矩阵比第一个多。下面的单元格里，8 个 query 头共用 2 个 key 头：`q` 的第 `i` 个矩阵对应 `k` 的第 `i // 4` 个。

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
# ## 少存几个 token
#
# 有些模型的大多数层只看最近的一个**窗口**。Gemma 3 每六层有五层是这样。token 离开了窗口，它的 cell 就可以给新的 token。所以不管文本多长，这种层只要够放一个窗口加上一步的 token 就行，再向上取到 256 的倍数。于是有了两个缓存。
#
# 看这个过程不需要权重：下面是一个小模型的 cell，四层中有三层带窗口，每次填入 64 个 token。`window` 也改一改：宽到多少，第二个缓存才需要更多的 cell？

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
# 下面那个缓存里，写到 cell 255 之后，位置又从左边开始：最旧的 cell 已经让给了新 token。颜色浅的 cell 已经离开窗口，等着让位；在播放器里，位置上方的横线是最新的 token 看得见的范围。带框的本该接着写入，不过这里什么都没有计算。
#
# 这能省多少？取 48 层，每层 8 个 key/value 头，每头 256 个数，窗口 1,024，共 32,768 个 token：这是 120 亿参数的 Gemma 3 的形状。

# %%
whole = kv_bytes(48, 8, 256, 32768)
narrow = kv_bytes(8, 8, 256, 32768) + kv_bytes(40, 8, 256, 1024 + 512)
print(f"all layers see everything: {whole / 2**30:>5.2f} GiB")
print(f"40 of them see a window:   {narrow / 2**30:>5.2f} GiB")

# %% [markdown]
# 代价是：离开窗口的迟早会被覆盖。如果删掉文本末尾，想从更早的地方接着写，那里的窗口可能已经不全。`swa_full` 会保留所有 cell，留给需要回头的人。（llama.cpp 的库默认打开它；它的程序默认关闭，加上 `--swa-full` 才打开。）

# %%
for cache in memory.caches:
    kept = cache.cells.pos[cache.cells.pos >= 0]
    first, last = kept.min(), kept.max()
    print(f"layers {cache.layers}: positions {first} to {last}")

# %% [markdown]
# ## 每个数少存几个字节
#
# 分组和窗口是训练模型时就定下的。有什么办法对任何模型都管用？缓存也可以像权重一样量化。`Q8_0` 用 34 个字节存 32 个数，`Q4_0` 用 18 个（[第 10 章](10-quantization.ipynb)）。下面为 SmolLM2 规划 2,048 个 token，分别用三种类型：


# %%
def plan_with(kind):
    settings = ContextParams(n_ctx=2048, type_k=kind, type_v=kind)
    return plan_file("smollm2", settings)


for kind in ("f16", "q8_0", "q4_0"):
    plan = plan_with(kind)
    print(f"{kind:>5} {plan.kv[0]:>12,} bytes {plan.nodes:>6,} nodes")

# %% [markdown]
# 最后一列有点意外：量化的缓存，节点反而多了。多出来的是什么？

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
# 每层多了四次矩阵乘法，分别作用在 Q、K、V 和结果上：这是在做**旋转**。32 个数的一块只有一个缩放系数，由其中最大的数决定。真实的 key 里总有几个元素比别的大得多，同一块的其他数都跟着遭殃。所以每个头先乘一个 Hadamard 矩阵，把每个元素摊到所有元素上。下面的头里就有这样一个元素：

# %%
from vizggml.llama.hadamard import hadamard

key, query = rng.normal(size=(2, 64))
key[5] = 20
H = hadamard(64)
print(f"largest {abs(key).max():.1f}, rotated {abs(key @ H).max():.1f}")
print(f"query @ key {query @ key:.4f}")
print(f"both rotated {(query @ H) @ (key @ H):.4f}")

# %% [markdown]
# 这个矩阵是正交的：query 也同样旋转，`q @ k` 就不变。注意力的结果由旋转过的 value 得来，最后再转回来。（llama.cpp 只在头的长度是 64 的倍数时旋转，value 按 64 个一段来转。它的 CPU 从节点上的标记认出这个矩阵，用快速变换代替矩阵乘法。）
#
# 对真实的 key 有用吗？从 SmolLM2 里取出一句话的 key 和 value，编码成 `Q4_0`，一次直接编码，一次先旋转。误差取均方误差，相对于这些数本身的均方。

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
# 那么文本会受多大影响？修改 `kind`，运行两个单元格：`q8_0`、`q5_0`、`q4_0`。在这句话的每个 token 上，模型都要在整个词表里选。看看首选有多少次不变，有多少概率移到了别的 token 上。总会有一些移动：第一行用的也是 `F16` 缓存，只是关掉了 flash attention，舍入不同而已。第二行要和它比着看。

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
# 有一个条件：量化的 *value* 离不开 flash attention（[第 9 章](09-attention.ipynb)）。不用它的时候，V 是转置存放的，一个 cell 是一列，32 个数的一块就会装着 32 个 token 各自的一个数：没法单独写入一个新的 token。

# %%
try:
    smol.context(n_ctx=256, flash_attn=False, type_v="q8_0")
except vg.VizggmlError as refused:
    lessons.tell(refused)

# %% [markdown]
# ## 在 llama.cpp 里
#
# 都在 `src/llama-kv-cache.cpp`：`llama_kv_cache` 的构造函数建立张量，`find_slot` 找 cell，`cpy_k` 和 `cpy_v` 加入 `SET_ROWS`，`get_n_kv` 取到 256 的倍数，`ggml_gen_hadamard` 生成旋转矩阵（设环境变量 `LLAMA_ATTN_ROT_DISABLE` 可以关掉）。下面是它为 SmolLM2 的 2,048 个 token 实际占用的，和我们的规划、手算的结果对照（30 层，9 个 query 头共用 3 个头，每头 64 个元素）：

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
# 带窗口的两个缓存在 `src/llama-kv-cache-iswa.cpp`。我们让 llama.cpp 加载一个 Gemma 3 那样的小文件：5 层，key 和 value 各一个头，每头 128 个数；第 0、2、4 层的窗口是 1,024。2,048 个 cell，一步 512 个 token，它占了：

# %%
for which, by_hand in (
    ("whole", kv_bytes(2, 1, 128, 2048)),
    ("window", kv_bytes(3, 1, 128, 1024 + 512)),
):
    theirs = lessons.golden(f"gemma3.kv.{which}")
    print(f"{which:>6}: {theirs:,} bytes, by hand {by_hand:,}")

# %% [markdown]
# ## 练习
#
# 把 `...` 换成你的答案。答错会得到提示；`lessons.solution("08.1")` 打印解答。
#
# **08.1** 一个模型有 28 层，16 个头，其中 key 和 value 各 8 个头，每头 128 个元素。用 `F16`，32,768 个 token 的缓存占多少字节？

# %%
answer = ...
lessons.check("08.1", answer)

# %% [markdown]
# **08.2** 同一个缓存，key 和 value 都用 `Q8_0`：占多少字节？

# %%
answer = ...
lessons.check("08.2", answer)

# %% [markdown]
# **08.3** 某一层的窗口是 1,000 个 token。context 有 16,384 个 cell，一步最多 512 个 token，只有一个序列，`swa_full` 关闭。这一层有多少个 cell？

# %%
answer = ...
lessons.check("08.3", answer)

# %% [markdown]
# **08.4** 一个空的缓存放入 8 个 token。删除位置 2、3、4（`seq_rm(0, 2, 5)`）。然后再来 4 个 token。这 4 个 token 放进哪些 cell？写成四个数的列表。

# %%
answer = ...
lessons.check("08.4", answer)

# %% [markdown]
# ## 接下来读什么
#
# - `src/llama-kv-cache.cpp` 里的 `llama_kv_cache::find_slot`，以及我们的 `vizggml/llama/kv_cache.py` 里的 `KVCache.find_slot`。
# - 缓存是留下来的。那么注意力的分数呢，每一对 token 一个？见[第 9 章：scratch 与注意力](09-attention.ipynb)。
