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
# 模型写出一个 token，接到文本后面，再从头来一遍。要选出下一个 token，注意力得看*之前所有的* token。那么每次都要让整段文本重新走一遍模型吗？先这样让 tiny 模型写 64 个 token。

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
# 计算量随长度的平方增长。再来一遍，这次每步只送入还没有算过的 token：

# %%
again, fewer, faster = write(64, cached=True)
print(f"{fewer:,} tokens went through the model, in {faster:.2f} s")
print(f"{given / fewer:.0f} times fewer tokens")
print("the same text:", again == story)
print(model.vocab.detokenize(again))

# %% [markdown]
# ## 什么可以留下来
#
# 凭什么可以这样做？下面用 NumPy 写一个注意力头。每个 token 产生一个 query、一个 key 和一个 value；query 与之前所有 token 的 key 比较，结果是这些 value 的加权平均。

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
# 一个 token 从不看它后面的 token。所以后来的 token 改变不了它的任何东西：它的结果不变，它传给下一层的东西不变，它在下一层的 key 和 value 也就不变。旧 token 的 key 和 value 因此可以留着。query 只在 token 刚来时用一次，所以没有 Q 缓存。

# %%
keys, values = np.zeros((6, 8)), np.zeros((6, 8))
results = []
for t in range(6):
    keys[t], values[t] = x[t] @ wk, x[t] @ wv
    results.append(attend(x[t] @ wq, keys[: t + 1], values[: t + 1]))
print("the same results:", np.allclose(results, everything))

# %% [markdown]
# ## 在引擎里
#
# 缓存一开始就按最大的尺寸建好：每层一个存 key 的张量，一个存 value 的张量，每个 *cell* 占一行。一步计算用 `SET_ROWS` 写入自己的那几行，注意力再通过视图读同样的张量。

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
# 一列是一个 cell，一行是一层。现在看到的是最后一步。按 **←** 往回走，或者拖动滑块：带框的 cell 属于正在解码的 token，随着计算图的执行一层一层填满。

# %%
vg.view(trace, panes=["kv"], step=len(trace) - 1, height=480)

# %% [markdown]
# 注意力看的 cell 比已占用的多：个数向上取到 256 的倍数，这样计算图在很多个 token 之内都不变，可以重用（第 4 章）。每个 token 看得见哪些 cell，由 *mask* 决定：看得见的是 0，看不见的是负无穷。

# %% [markdown]
# ## 改一改，看会怎样
#
# cell 不是队列。你可以从中间删掉一些位置，后来的 token 哪里有空就去哪里。修改 `removed`，运行两个单元格：看最后一步里带框的 cell 在哪里，上面标的是哪些位置。

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
# ## 手算字节数
#
# 缓存有多大？每层有 key 和 value；每个 token 依次排着各个头；每个数在 `F16` 里占两个字节。70 亿参数的 Llama 2 有 32 层，每层 32 个头，每头 128 个数。4,096 个 token 就是：


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
# 引擎算出来的一样。它只凭模型的形状做规划，不读任何权重。在命令行里，对应的是 `vizggml plan --shape llama-7b -c 4096`。

# %%
from vizggml.llama.cparams import ContextParams
from vizggml.llama.plan import plan_file, plan_shape

(planned,) = plan_shape("llama-7b", "F16", ContextParams(n_ctx=4096)).kv
print(f"{planned:,} bytes; the same: {planned == by_hand}")

# %% [markdown]
# 这块内存属于*上下文*，不属于模型。上下文一建立就全部占下，不管你要写 4,096 个 token 还是 10 个。

# %% [markdown]
# ## 少存几个头
#
# 700 亿参数的 Llama 2 有 80 层，每层 64 个头，每头 128 个数。它的缓存不是该有五倍大吗？

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
# 反而比 7B 的还小。query 头是*分组*的，8 个头为一组，共用一个 key 头和一个 value 头，这叫 grouped-query attention。共用并不需要复制：`mul_mat` 允许第二个操作数的矩阵比第一个多。下面的单元格里，8 个 query 头共用 2 个 key 头：`q` 的第 `i` 个矩阵对应 `k` 的第 `i // 4` 个。

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
# ## 少存几个 token
#
# 有些模型的大多数层只看最近的一个*窗口*。Gemma 3 每六层有五层是这样。token 离开了窗口，它的 cell 就可以给新的 token。所以不管文本多长，这种层只要够放一个窗口加上一步的 token 就行，再向上取到 256 的倍数。于是有了两个缓存。
#
# 看这个过程不需要权重。下面是一个小模型的 cell：四层中有三层的窗口是 40，每次填入 64 个 token。

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
# 下面那个缓存里，写到 cell 255 之后，位置又从左边开始：最旧的 cell 已经让给了新 token。颜色浅的 cell 已经离开窗口，等着让位。带框的本该接着写入，不过这里什么都没有计算。
#
# 这能省多少？取 48 层，每层 8 个 key/value 头，每头 256 个数，窗口 1,024，共 32,768 个 token：这是 120 亿参数的 Gemma 3 的形状。

# %%
whole = kv_bytes(48, 8, 256, 32768)
windows = kv_bytes(8, 8, 256, 32768) + kv_bytes(40, 8, 256, 1024 + 512)
print(f"all layers see everything: {whole / 2**30:>5.2f} GiB")
print(f"40 of them see a window:   {windows / 2**30:>5.2f} GiB")

# %% [markdown]
# 代价是：离开窗口的就没有了。如果删掉文本末尾，想从更早的地方接着写，那里的窗口可能已经不全。`swa_full` 会保留所有 cell，留给需要回头的人。

# %% [markdown]
# ## 每个数少存几个字节
#
# 缓存也可以像权重一样量化。`Q8_0` 用 34 个字节存 32 个数，`Q4_0` 用 18 个（第 10 章）。下面为 SmolLM2 规划 2,048 个 token，分别用三种类型：

# %%
for kind in ("f16", "q8_0", "q4_0"):
    plan = plan_file(
        "smollm2", ContextParams(n_ctx=2048, type_k=kind, type_v=kind)
    )
    print(f"{kind:>5} {plan.kv[0]:>12,} bytes {plan.nodes:>6,} nodes")

# %% [markdown]
# 最后一列有点意外：量化的缓存，节点反而多了。多出来的是什么？

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
# 每层多了四次矩阵乘法，分别作用在 Q、K、V 和结果上：它们被*旋转*了。32 个数的一块只有一个缩放系数，由其中最大的数决定。真实的 key 里总有几个元素比别的大得多，同一块的其他数都跟着遭殃。所以每个头先乘一个 Hadamard 矩阵，把每个元素摊到所有元素上。这个矩阵是正交的：query 也同样旋转，`q @ k` 就不变。最后的结果再转回来。
#
# 从 SmolLM2 里取出一句话的 key 和 value，编码成 `Q4_0`，一次直接编码，一次先旋转（要几秒钟）。

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
# ## 在 llama.cpp 里
#
# 都在 `src/llama-kv-cache.cpp`：`llama_kv_cache` 的构造函数建立张量，`find_slot` 找 cell，`cpy_k` 和 `cpy_v` 加入 `SET_ROWS`，`get_n_kv` 取到 256 的倍数，`ggml_gen_hadamard` 生成旋转矩阵（设环境变量 `LLAMA_ATTN_ROT_DISABLE` 可以关掉）。带窗口的两个缓存在 `src/llama-kv-cache-iswa.cpp`。下面是它为 SmolLM2 的 2,048 个 token 实际占用的，和我们的规划对照：

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
# ## 练习
#
# 把三个点换成你的答案。答错会得到提示；`lessons.solution("08.1")` 打印解答。
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
# **08.3** 某一层的窗口是 1,000 个 token。上下文有 16,384 个 cell，一步最多 512 个 token，只有一个序列，`swa_full` 关闭。这一层有多少个 cell？

# %%
answer = ...
lessons.check("08.3", answer)

# %% [markdown]
# **08.4** 一个空的缓存放入 8 个 token。删除位置 2、3、4（`seq_rm(0, 2, 5)`）。然后再来 4 个 token。它们放进哪些 cell？写成四个数的列表。

# %%
answer = ...
lessons.check("08.4", answer)

# %% [markdown]
# ## 接下来读什么
#
# - `src/llama-kv-cache.cpp` 里的 `llama_kv_cache::find_slot`，以及我们的 `vizggml/llama/kv_cache.py` 里的 `KVCache.find_slot`。
# - 缓存是留下来的。那么注意力的分数呢，每一对 token 一个？见[第 9 章：scratch 与注意力](09-attention.ipynb)。
