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
# # 第 12 章：七个决定，一张图
#
# 各个部件你都单独见过了。只剩开头那个问题：14 GB 的文件，一台笔记本，居然能答话。内存怎么够？先跟着一个 token 走完全程，再来算账。
#
# ## 一个 token，手工走一遍
#
# 不看内部，一步只有四行：文本变成编号，编号送进模型，取最高分，再变回文本。

# %%
from textwrap import shorten

import numpy as np

import vizggml as vg
from vizggml import lessons

smol = vg.load_model("smollm2")
context = smol.context(n_ctx=2048, n_threads=1)
prompt = "The capital of France is"

tokens = smol.vocab.tokenize(prompt)
logits = context.decode(tokens)
highest = int(logits[-1].argmax())
print(tokens, "->", highest, smol.vocab.detokenize([highest]))

# %% [markdown]
# 其余的都藏在 `decode` 里。让它写三个 token，打印途经之处：每个阶段的第一个事件和它在录制里的步号；llama.cpp 中做同一件事的函数，只在首次出现时列出。（要跑几秒钟。）

# %%
from vizggml.timeline.sentences import render

STAGES = (
    "Tokenized DecodeBegin UbatchSplit CellsFound ReuseDecided "
    "GraphCreated NodeAppended AllocGraphEnd PlanEnd ComputeBegin "
    "KvWritten LogitsReady SamplerApplied TokenSampled"
).split()


def path(trace):
    tracks, met, ever = trace.tracks(), set(), set()
    for step, event in enumerate(trace.events):
        kind = type(event).__name__
        if step < tracks.opening or kind in met or kind not in STAGES:
            continue
        met.add(kind)
        said = shorten(render(tracks, step), 66, placeholder=" …")
        yield f"{step:>6}  {said}"
        if kind not in ever:
            yield f"{'':11} {event.GGML}"
        ever.add(kind)
        if kind == "TokenSampled":
            met.clear()
            yield ""


def written(context, prompt, n):
    made = context.generate(prompt, max_tokens=n, temp=0)
    return "".join(token.text for token in made)


context = smol.context(n_ctx=2048, n_threads=1)
with vg.record() as trace:
    text = written(context, prompt, 3)
print(*path(trace), sep="\n")

# %% [markdown]
# 第一段是提示词。第二段里图要**重新建**，因为这回只有一个 token。第三段走同一条路，但图是**复用**的：没有新建，没有添加节点，也没有重新放置。长文本就是第三段一遍又一遍。
#
# 注意这里缺了什么：没有哪个阶段叫“分配内存”。token 还没来，位置就定好了。所谓**放置**（placed），只是把地址写进记录。

# %%
kinds = [type(event).__name__ for event in trace.events]
kinds = kinds[trace.tracks().opening :]
since = kinds[kinds.index("DecodeBegin") :]
print(f"{len(since):,} events since the first decode")
print(f"{since.count('BufferAllocated')} buffers allocated in them")

# %% [markdown]
# ## 一张图
#
# 现在看全貌。用 tiny 模型，好把规划的过程也录进来。这些面板你都认得。**点一个词**，跳到它那一步；**→** 往前走；在 *Events* 旁边的列表里依次选 *CellsFound*、*ReuseDecided*、*ComputeBegin*、*LogitsReady*，沿着上面那条路走一遍。

# %%
context = None
tiny = vg.load_model("tiny")
with vg.record() as trace:
    context = tiny.context(n_ctx=256, n_ubatch=64, n_threads=1)
    text = written(context, "Once upon a time", 3)

events = list(trace.events)
where = {}
for step, event in enumerate(events):
    where.setdefault(type(event).__name__, []).append(step)
print(f"{text!r}: {len(trace):,} events")

# %%
vg.view(trace, step=where["LogitsReady"][-1])

# %% [markdown]
# 在运行着的 notebook 里，`vg.live(tiny)` 给你同样的图，还带一个提示词输入框：文本一边增长，图一边跟着走。
#
# ## 决定一：arena，里面不放数据
#
# 张量的记录依次追加到一整块内存里，用完一起扔；设了 `no_alloc`，数据就放在别处（[第 3 章](03-memory.ipynb)）。这是一步计算的图，记录一个挨着一个。

# %%
reused = where["ReuseDecided"][-1]
appended = [step for step in where["ObjectAppended"] if step < reused]
taken = sum(events[step].size for step in appended)
print(f"{len(appended):,} objects appended, {taken:,} bytes in all")
vg.view(trace, panes=["arena"], step=appended[-1], height=430)

# %% [markdown]
# ## 决定二：视图
#
# reshape、permute、transpose 和 view 只改 `ne` 和 `nb`，不动一个字节（第 [1](01-tensors.ipynb)、[2](02-views.ipynb) 章）。图中这一个，把提示词的 query 从“一个 token 的所有头”换成“一个头的所有 token”。

# %%
last = where["ComputeBegin"][-1]
skipped = [step for step in where["NodeSkipped"] if step > last]
nodes = [step for step in where["NodePlanned"] if step > reused]
print(f"of the last step's {len(nodes)} nodes", end=" ")
print(f"{len(skipped)} have nothing to compute")

begun = where["DecodeBegin"][0]
changed = [step for step in where["StridesChanged"] if step > begun]
permuted = [s for s in changed if events[s].how == "permute"]
vg.view(trace, panes=["tensor"], step=permuted[0], height=600)

# %% [markdown]
# ## 决定三：先有图，再干活
#
# 构建函数只记下要做什么；图没建完，什么也不算（第 [4](04-deferred.ipynb)、[6](06-graph.ipynb) 章）。这样才有可能知道，谁是一个张量的最后一个读者。

# %%
begin, end = where["GraphCreated"][-1], where["ComputeBegin"][-2]
building = [type(event).__name__ for event in events[begin:end]]
print(building.count("NodeAppended"), "nodes appended,", end=" ")
print(building.count("NodeBegin"), "computed meanwhile")

complete = where["NodeAppended"][-1]
vg.view(trace, panes=["graph"], step=complete, height=560)

# %% [markdown]
# ## 决定四：内存只规划一次
#
# 分配器拿最大的图预演一遍，给每个结果定好位置；最高用到哪个字节，缓冲区就有多大（第 [5](05-galloc.ipynb)、[7](07-plan.ipynb) 章）。更小的步骤放得进同一份规划。

# %%
from vizggml.views.memory import read_plan

plan = read_plan(trace.tracks(), 0)
alone = sum(life.size for life in plan.lives)
print(f"{alone:,} bytes if each result had memory of its own")
print(f"{plan.peak:,} as planned: {1 - plan.peak / alone:.0%} saved")

reserved = where["ReserveEnd"][0]
vg.view(trace, panes=["timeline"], step=reserved, height=430)

# %% [markdown]
# ## 决定五：文件就是内存
#
# 权重是映射进来的。映射时什么也不复制；kernel 碰到哪一页，哪一页才进来，就像这里看到的。（llama.cpp 会请系统提前读进来：[第 3 章](03-memory.ipynb)。）

# %%
from vizggml.llama.residency import pages_watched

fresh = vg.load_model("tiny")
reader = fresh.context(n_ctx=256, n_ubatch=32, n_threads=1)
watched = pages_watched(reader, fresh.gguf.mapped, fresh.gguf)
with vg.record() as pages, watched:
    reader.decode([5])
lessons.tell(*pages.sentences("PagesResident"))
vg.view(pages, panes=["pages"], step=len(pages) - 1, height=360)

# %% [markdown]
# ## 决定六：量化权重按块存
#
# 32 个权重共用一个缩放系数，或者 256 个共用一个“缩放系数的缩放系数”；CPU 的 kernel 直接拿这些块做乘法，不先展开成浮点矩阵（[第 10 章](10-quantization.ipynb)）。下面是 SmolLM2 一个矩阵的第一块。

# %%
from vizggml.ggml.quants import open_block

name = "blk.0.ffn_down.weight"
type = smol.gguf.tensors[name].type
data = smol.gguf.tensor_bytes(name)[: type.type_size]
bits = 8 * type.type_size / type.blck_size
print(f"{name}: {type}, {bits} bits a weight; F16 has 16")
print("bytes: ", data.tobytes().hex(" "))

block = open_block(type, data)
print(f"scale {block.scales[0]:.5f}, minimum {block.mins[0]:.5f}")
print("codes: ", *block.codes[:8], "...")
print("values:", *(f"{x:.3f}" for x in block.values[:8]), "...")

# %% [markdown]
# ## 决定七：算出来还一样的，就留着
#
# 旧 token 的 key 和 value 留在缓存里（[第 8 章](08-kv-cache.ipynb)）；上一步的图也留着，只要下一步建出来会是同一张图（[第 4 章](04-deferred.ipynb)）。

# %%
lessons.tell(trace.sentences("CellsFound")[-1])
lessons.tell(trace.sentences("ReuseDecided")[-1])
vg.view(trace, panes=["kv", "reuse"], step=reused, height=780)

# %% [markdown]
# ## 14 GB 怎么放得下？
#
# 70 亿参数的 Llama 2，存成 `F16` 就是这样一个文件。按 4,096 个 token 规划，不读任何权重。（在命令行里：`vizggml plan --shape llama-7b -c 4096`。）

# %%
from vizggml.llama.cparams import ContextParams
from vizggml.llama.plan import plan_shape
from vizggml.views.memory import plan_ids


def gb(n):
    return f"{n / 1e9:6.2f} GB"


def planned(shape, kind, n_ctx=4096):
    return plan_shape(shape, kind, ContextParams(n_ctx=n_ctx))


with vg.record() as sums:
    plan = planned("llama-7b", "F16")
tracks = sums.tracks()
alone = max(
    sum(life.size for life in read_plan(tracks, p).lives)
    for p in plan_ids(tracks)
)

print(f"weights  {gb(plan.mapped)}  mapped")
print(f"KV cache {gb(sum(plan.kv))}  allocated")
print(f"compute  {gb(plan.compute)}  allocated")
print(f"output   {gb(plan.output)}  allocated")
print(f"together {gb(plan.mapped + plan.allocated)},", end=" ")
print(f"allocated of it {gb(plan.allocated).strip()}")
print()
print(f"weights if they were copied to F32:  {gb(2 * plan.mapped)}")
print(f"compute if each result had its own:  {gb(alone)}")

# %% [markdown]
# 所以第一个答案是：14 GB 的大部分根本没有分配。它是文件，由系统映射给进程看；要腾地方时，这些页不必写回就能丢掉。
#
# 流行的说法到此为止，好像有了映射就不需要内存。并非如此。这样的模型，每个 token 都要读全部权重。页留不住，每个 token 都得重新从磁盘取。内存小，**跑得动**；要**跑得快**，一个 token 读的东西就得留在内存里。
#
# 第二个答案是量化。分配的部分不随它变小，变小的是映射。

# %%
kinds = ("F16", "Q8_0", "Q6_K", "Q5_K_M")
plans = {kind: planned("llama-7b", kind) for kind in kinds}
for kind, p in plans.items():
    together = gb(p.mapped + p.allocated)
    print(f"{kind:>6}: mapped {gb(p.mapped)}, together {together}")

# %%
import matplotlib.pyplot as plt
from matplotlib_inline.backend_inline import set_matplotlib_formats

set_matplotlib_formats("svg")
rows = {"copied to F32,\nno plan": (2 * plan.mapped, sum(plan.kv), alone)}
for kind, p in plans.items():
    rows[kind] = (p.mapped, sum(p.kv), p.compute + p.output)

figure, axes = plt.subplots(figsize=(6.2, 3.4))
start = np.zeros(len(rows))
parts = ("weights", "KV cache", "compute and output")
colours = ("#2f7fd1", "#d9731a", "#2a9d72")
sizes = np.array(list(rows.values())).T / 1e9
for part, size, colour in zip(parts, sizes, colours, strict=True):
    axes.barh(list(rows), size, 0.7, start, label=part, color=colour)
    start += size
axes.axvline(16, color="#555", linestyle=":", label="a laptop's 16 GB")
axes.invert_yaxis()
axes.set(xlabel="GB, Llama 2 7B at 4,096 tokens")
axes.legend(loc="lower right")
axes.spines[["top", "right"]].set_visible(False)
figure.tight_layout()
plt.show()

# %% [markdown]
# 第三个答案：不是每个模型都要读全部权重。300 亿参数的 Qwen3，每层有 128 个**专家**，一个 token 只用 8 个。量化成 `Q3_K_M`，文件大小又和刚才差不多。一个 token 读其中多少？

# %%
from vizggml.llama.plan import shape_model

hparams, table = shape_model("qwen3-30b-a3b", "Q3_K_M")
whole, read = 0, 0
for name, t in table.tensors.items():
    whole += t.nbytes
    if "_exps" in name:
        read += t.nbytes * hparams.n_expert_used // hparams.n_expert
    elif name != "token_embd.weight":
        read += t.nbytes

experts = planned("qwen3-30b-a3b", "Q3_K_M")
print(f"in F16    {gb(planned('qwen3-30b-a3b', 'F16').mapped)}")
print(f"in Q3_K_M {gb(whole)}, of which a token reads {gb(read)}")
print(f"KV cache  {gb(sum(experts.kv))}")
print(f"compute   {gb(experts.compute)}")

# %% [markdown]
# （词嵌入只查一行，所以没有算进去。）下一个 token 可能选别的专家；但常被选中的会留在内存里，其余的可以在磁盘上等着。
#
# 还有一处要更正。如果处理器对另一种布局有更快的 kernel，llama.cpp 加载时会把某些类型重新排布（`CPU_REPACK`）：这些矩阵**确实**会复制到分配的内存里，文件中对应的页此后不再读。在 x86 上，有 AVX2 时是 `Q4_0`、`Q4_K` 等几种，有 AVX-512 时还有 `Q2_K`，我们的规划按后者计算；ARM 上又有别的类型。`--no-repack` 可以关掉它。

# %%
print("qwen3-30b-a3b, Q3_K_M")
for buffer, size in experts.model.items():
    print(f"{buffer:>10}: {gb(size)}")
print(f"of the mapped range, copied out of it: {gb(experts.copied)}")

# %% [markdown]
# ## 与 llama.cpp 对照
#
# 上面的账都靠规划。规划对不对？这是 2,048 个 token 的 SmolLM2：一边是真正的 llama.cpp 占用的量，事先录下；一边是规划此刻给出的量。

# %%
from vizggml.llama.plan import plan_file

ours = {}
for mode in ("plain", "flash"):
    flash = mode == "flash"
    params = ContextParams(n_ctx=2048, flash_attn=flash)
    plan = plan_file("smollm2", params)
    ours["smollm2.mapped"] = plan.mapped
    ours["smollm2.kv.f16"] = sum(plan.kv)
    ours[f"smollm2.nodes.{mode}"] = plan.nodes
    ours[f"smollm2.compute.{mode}.2048"] = plan.compute

print(f"{'':>26} {'llama.cpp':>12} {'ours':>12}")
for name, value in ours.items():
    theirs = lessons.golden(name)
    same = "the same" if theirs == value else "OTHER"
    print(f"{name:>26} {theirs:>12,} {value:>12,}  {same}")

# %% [markdown]
# 那么文本呢？如果你装了带 llama.cpp 的 wheel（`pip install "vizggml[oracle]"`），下面的单元格会在单独的进程里现场问它；没有装，就用录下的回答。两边接着写同一个提示词，24 个 token，这个提示词几乎没有别的接法。（大小以 MiB 为单位，与 llama.cpp 的日志一样。）

# %%
theirs = lessons.ask_llama_cpp("1, 2, 3, 4, 5, 6,", 24, n_ctx=2048)
context = smol.context(n_ctx=2048, n_threads=1)
text = written(context, "1, 2, 3, 4, 5, 6,", 24)


def mib(n):
    return f"{n / 2**20:.2f}"


print(f"{'':>8} {'llama.cpp':>27} {'ours':>27}")
for what, a, b in (
    ("text", repr(theirs.text), repr(text)),
    ("weights", theirs.mapped, mib(plan.mapped)),
    ("KV cache", theirs.kv, mib(sum(plan.kv))),
    ("output", theirs.output, mib(plan.output)),
):
    print(f"{what:>8} {a:>27} {b:>27}")
print("llama.cpp's side:", theirs.source)

# %% [markdown]
# （为什么用这个提示词？当两个 token 的概率几乎相等时，求和的顺序就能决定选哪个；llama.cpp 开不开 flash attention，自己和自己都会分道扬镳。只有在第二名远远落后的地方，比较文本才有意义。）
#
# 整个顺序就在 `llama_context::decode` 和 `process_ubatch` 里（`src/llama-context.cpp`）；其余函数的名字，上面那条路上都列着。
#
# ## 改一改，看一看
#
# 这是你的笔记本和一个模型。看两行里哪一行随 `n_ctx` 增长，哪一行随 `kind` 变化。试试 `llama-70b`、`Q2_K`、32,768 个 token。

# %%
memory, shape, kind, n_ctx = 16e9, "llama-7b", "F16", 4096

# %%
plan = planned(shape, kind, n_ctx)
left = memory - plan.allocated
print(f"allocated {gb(plan.allocated)}, which must fit;", end=" ")
print(f"{gb(left).strip()} are left")
print(f"mapped    {gb(plan.mapped)},", end=" ")
print(f"{gb(plan.copied).strip()} of it only to be copied")
fits = left >= plan.mapped - plan.copied
print("it fits" if fits else "it does not: pages are fetched again")

# %% [markdown]
# ## 练习
#
# 把 `...` 换成你的答案。答错会得到提示；`lessons.solution("12.1")` 打印解答。
#
# **12.1** 用同一个文件，把 `F16` 的 Llama 2 7B 启动两次，各 4,096 个 token。全部权重都读过以后，两个进程一共占多少字节？需要的数都在 `plans["F16"]` 里，写成表达式即可。

# %%
answer = ...
lessons.check("12.1", answer)

# %% [markdown]
# **12.2** 复用图的时候，一个 token 从 `DecodeBegin` 到得出 logits，经过哪些阶段？按顺序写出字母：`B` 建图，`C` 找到 cell，`L` logits 就绪，`P` 放置图，`R` 决定是否复用，`T` 分词，`U` 划出 ubatch，`X` 计算图。

# %%
answer = ...
lessons.check("12.2", answer)

# %% [markdown]
# **12.3** 你的内存每秒能送出 50 GB（50·10⁹ 字节），`Q8_0` 的 Llama 2 7B 就放在里面。不管核有多快，每秒最多能写几个 token？（缓存不计。误差在百分之五以内即可。）

# %%
answer = ...
lessons.check("12.3", answer)

# %% [markdown]
# ## 接下来读什么
#
# - `src/llama-context.cpp` 里的 `llama_context::decode`，从头读到尾。里面每个调用你都认识。我们的实现在 `vizggml/llama/context.py`。
# - 你自己的模型：`vizggml plan FILE`；只要 Python 吃得消，也可以 `vg.load_model(FILE)`。
# - 哪个部件记不清了，就往回走：[导览](00-tour.ipynb)，[分配器](05-galloc.ipynb)。
