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
# # 第 11 章：线程与后端
#
# 到现在为止，一直是一个线程逐个计算节点，用的是同一块内存。你的机器还有别的本钱：好几个核，也许还有一块显卡，它很快，却有自己的内存，而且装不下整个模型。先看核。两个线程算一段 64 个 token 的提示词，比一个线程快多少？

# %%
import threading
import time

import numpy as np

import vizggml as vg
from vizggml import lessons

model = vg.load_model("tiny")
tokens = [(7 * i) % 500 + 3 for i in range(64)]


def logits_and_ms(*n_threads, times=12):
    sizes = {"n_ctx": 256, "n_ubatch": 64}
    contexts = [model.context(n_threads=n, **sizes) for n in n_threads]
    logits, ms = {}, {}
    for _ in range(times):
        for n, ctx in zip(n_threads, contexts, strict=True):
            ctx.memory.clear()
            start = time.perf_counter()
            logits[n] = ctx.decode(tokens).copy()
            took = 1000 * (time.perf_counter() - start)
            ms[n] = min(took, ms.get(n, took))
    return logits, ms


logits, ms = logits_and_ms(1, 2)
print(f"1 thread:  {ms[1]:.1f} ms")
print(f"2 threads: {ms[2]:.1f} ms, {ms[1] / ms[2]:.2f} times as fast")
same = np.array_equal(logits[1], logits[2])
print("the same logits, bit for bit:", same)

# %% [markdown]
# 很少能到两倍；机器还在忙别的事时，甚至会更慢。（这是制作本页的机器上的数，请在你的机器上再跑一遍。）时间花到哪里去了，本章前半就讲这个。不过 logits 一模一样，这就值得一问：这些互不知情的线程，怎样才不会互相妨碍？
#
# ## 手写一个屏障
#
# 两层，两个线程，各算一半的行。`y` 的每一行都需要**整个** `h`。让别人把线程 0 的核占用一小会儿。

# %%
rng = np.random.default_rng(3)
W1, W2 = rng.normal(size=(2, 8, 8))
x = rng.normal(size=8)


def two_layers(with_barrier):
    h, y = np.zeros(8), np.zeros(8)
    barrier = threading.Barrier(2)

    def work(ith):
        mine = slice(4 * ith, 4 * ith + 4)
        if ith == 0:
            time.sleep(0.05)
        h[mine] = W1[mine] @ x
        if with_barrier:
            barrier.wait()
        y[mine] = W2[mine] @ h

    threads = [threading.Thread(target=work, args=(i,)) for i in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return np.isclose(y, W2 @ (W1 @ x)).sum()


print("right rows without a barrier:", two_layers(False), "of 8")
print("right rows with a barrier:   ", two_layers(True), "of 8")

# %% [markdown]
# 线程 1 跑到前面，读到了 `h` 里还没有写好的行。在**屏障**（barrier）处，大家都等最后一个。凡是有计算的节点，ggml 都在它之后放一个：下一个节点可能需要其中任何一行。在节点内部，线程很少需要别的线程写的东西；真的需要时，比如矩阵乘法先要转换激活值，节点内部自有一个屏障。
#
# ## 谁做完，谁取下一块
#
# 可是有了屏障，最慢的线程就决定了所有人的速度。对半分只有在两个核一样快时才公平，而实际上从来不一样快：其中一个正在给你显示这个页面。那就把活切得更小，谁做完谁取下一块。下面假设一个线程的速度只有另一个的一半：


# %%
def time_needed(n_chunks, speeds=(1.0, 0.5)):
    done_at = [0.0, 0.0]
    for _ in range(n_chunks):
        ith = done_at.index(min(done_at))
        done_at[ith] += 1 / n_chunks / speeds[ith]
    return max(done_at)


for n_chunks in (2, 4, 16, 64):
    print(f"{n_chunks:>2} chunks: time {time_needed(n_chunks):.2f}")
print(f"best possible:  {1 / 1.5:.2f}")

# %% [markdown]
# ggml 把矩阵乘法切成 16 行 × 16 列的 chunk；只有一行或一列时，取 64。“下一块”就是一个计数器，所有线程都往上加。如果平均每个线程不到四块，就不值得这样做，每个线程直接拿一份。（这是所有类型都能走的路。llama.cpp 为一些类型备有更快的 kernel，比如 llamafile 的，切法各有不同。）

# %%
from vizggml.ggml.kernels.chunks import chunk_grid

print("256 rows, 2 threads")
for n_tokens in (1, 16, 64):
    grid = chunk_grid(256, n_tokens, nth=2)
    size = f"{grid.n_chunks:>2} pieces of {grid.dr0:>3} x {grid.dr1:>2}"
    how = "handed out" if grid.handed_out else "a share each"
    print(f"{n_tokens:>2} tokens: {size}, {how}")

# %% [markdown]
# ## 手写一个线程池
#
# 一步有一百多个节点。难道每个节点都新建线程？比较一下：每次新建一个线程，和一个站着待命、一叫就醒的线程。


# %%
def made_anew(times):
    for _ in range(times):
        thread = threading.Thread(target=int)
        thread.start()
        thread.join()


def from_a_pool(times):
    work, done = threading.Semaphore(0), threading.Semaphore(0)

    def worker():
        for _ in range(times):
            work.acquire()
            done.release()

    thread = threading.Thread(target=worker)
    thread.start()
    for _ in range(times):
        work.release()
        done.acquire()
    thread.join()


for how in (made_anew, from_a_pool):
    start = time.perf_counter()
    how(1000)
    us = 1000 * (time.perf_counter() - start)
    print(f"{how.__name__:>11}: {us:6.1f} µs each time")

# %% [markdown]
# 所以要有**线程池**（pool）：线程只创建一次，一直留着。（llama.cpp 的程序建好线程池，用 `llama_attach_threadpool` 交给 context；没有交的，每张图临时建一个。）但叫醒一个线程也要时间，因此做完的线程不会马上去睡，而是先反复看一阵有没有活（*poll*，轮询）。轮询占着一个核，只有核有富余时才划算。
#
# ## 引擎里的线程
#
# 用两个线程算 16 个 token，一次求值。（编译过的 kernel 以更大的分块（tile）为单位，它的 chunk 可能比 ggml 的行数多。）

# %%
ctx = model.context(n_ctx=256, n_ubatch=64, n_threads=2)
ctx.decode(tokens[:16])
ctx.memory.clear()
with vg.record() as trace:
    ctx.decode(tokens[:16])

lessons.tell(*trace.sentences("ChunksTaken")[:4])
lessons.tell(*trace.sentences("WorkTaken")[:2])

# %% [markdown]
# 每条泳道是一个线程。彩色的条是节点；后面带斜线的一段是在屏障处等待。按 **→** 逐个事件往前走。有些节点只出现在一条泳道里：这样的节点太小，我们的引擎只交给一个线程。（ggml 看的是操作：`ggml_get_n_tasks`。）

# %%
track = trace.tracks().track("thread")
helped = track["a"][track["thread"] == 1]
middle = int(helped[len(helped) // 2])
vg.view(trace, panes=["threads"], step=middle, height=360)

# %%
waiting = track["wait_ns"].sum()
working = (track["end_ns"] - track["begin_ns"]).sum()
share = waiting / (waiting + working)
print(f"of their time in nodes the threads waited {share:.0%}")

nodes_of = [set(track["tensor"][track["thread"] == i]) for i in (0, 1)]
print(f"computed by thread 0: {len(nodes_of[0])} nodes")
print(f"by thread 1 as well:  {len(nodes_of[1])}")

# %% [markdown]
# 在 llama.cpp 里：`ggml/src/ggml-cpu/ggml-cpu.c` 中的 `ggml_graph_compute_thread`、`ggml_barrier` 和 `ggml_compute_forward_mul_mat`。那里每个线程都走完整张图，在每个节点的屏障处与其他线程会合；等待时空转，从不睡眠；只有在两张图之间，才先轮询一阵再睡（`ggml_graph_compute_check_for_work`）。这说的是不带 OpenMP 的构建。带 OpenMP 时（Linux 和 Windows 上通常如此），线程和屏障都是 OpenMP 的，何时空转、何时睡眠由它决定。我们的线程在节点之间就可能会睡，因为让 Python 线程一直醒着代价更大。
#
# ## 第二块内存
#
# **后端**（backend）是能计算节点的东西，加上它读的那块内存。这里有第二个：`DEV0` 代表一块显卡。它用同样的 kernel 计算，但它的内存在要紧的地方是真的：容量有限，两边谁也读不到对方的。把四层中的最后一层放上去。输出也算一层，所以一共是两层。


# %%
def on_device(n_gpu_layers):
    return model.context(
        n_ctx=256, n_ubatch=64, n_threads=1, n_gpu_layers=n_gpu_layers
    )


def show_splits(sched):
    for split in sched.splits:
        name = sched.backends[split.backend_id].name
        print(f"{name:>4}: nodes {split.i_start} to {split.i_end - 1}")
        for t in split.inputs:
            print(f"      copied before: {t.name}, {t.nbytes:,} bytes")


ctx = None
shared = on_device(2)
with vg.record() as trace:
    logits = shared.decode([5]).copy()

cpu = model.context(n_ctx=256, n_ubatch=64, n_threads=1)
print("the same logits:", np.array_equal(logits, cpu.decode([5])))
show_splits(shared.sched)

# %% [markdown]
# 图切成几个 *split*：同一后端上连续的一串节点。每个 split 开始时，把它的后端读不到的东西复制过来。没有人给每个节点指定去处，是权重决定的：乘法去权重所在的地方。没有权重的，跟着相邻的节点走。

# %%
for sentence in trace.sentences("BackendAssigned"):
    if " l_out-2" in sentence or " ffn_out-2" in sentence:
        lessons.tell(sentence)

# %% [markdown]
# 这就解释了为什么有两次同样大小的复制。第 2 层的最后一个节点 `l_out-2` 把 `ffn_out-2` 加到 `ffn_inp-2` 上。它没有权重，于是跟着后一层去算，传过去的就是两个加数，而不是相加的结果。常见的说法是“只传一个隐藏状态”；ggml 传的是两个。
#
# 在播放器里看：第二个 split 开始之前的最后一次复制。

# %%
tracks = trace.tracks()
copied = int(tracks.track("copy")["a"].max())
vg.view(trace, panes=["splits"], step=copied, height=280)

# %% [markdown]
# 切图的是 `ggml/src/ggml-backend.cpp` 中的 `ggml_backend_sched_split_graph`，我们的实现在 `vizggml/ggml/sched.py`；vizggml 的测试把这样的图交给真正的调度器，逐个比较每个 split、每次复制和两个计算缓冲区的大小。只有 CPU 时，只有一个 split，什么都不用复制：

# %%
theirs = lessons.golden("cpu.splits")
print(f"splits, CPU alone: {cpu.sched.n_splits}, llama.cpp {theirs}")

# %% [markdown]
# ## 改一改，看一看
#
# 把 `n_gpu_layers` 设为 0、1、3、5 和 -1（全部）。看第二个 split 从哪个节点开始；当所有层都在设备上时，还剩哪些复制。

# %%
n_gpu_layers = 3

# %%
changed = on_device(n_gpu_layers)
changed.decode([5])
show_splits(changed.sched)
changed = None

# %% [markdown]
# ## 放在 CPU 内存里的层，就由 CPU 计算吗？
#
# 通常都这么说：“放不下的层由 CPU 计算。”用几种大小的批次试一试。

# %%
print("tokens  splits    weights copied      the rest")
for n_tokens in (1, 31, 32, 64):
    shared.memory.clear()
    shared.decode(tokens[:n_tokens])
    weights, rest = 0, 0
    for split in shared.sched.splits:
        for t in split.inputs:
            if t.name.endswith(".weight"):
                weights += t.nbytes
            else:
                rest += t.nbytes
    n = shared.sched.n_splits
    print(f"{n_tokens:>6}  {n:>6}  {weights:>9,} bytes  {rest:>7,} bytes")

# %% [markdown]
# 从 32 个 token 起，权重开始搬家：CPU 上那些层的每个权重都复制到设备上，用一次就丢。看看其中几个 split：

# %%
for split in shared.sched.splits[3:9]:
    name = shared.sched.backends[split.backend_id].name
    names = ", ".join(t.name for t in split.inputs)
    lessons.tell(f"{name:>4}: {names or 'nothing copied'}")

# %% [markdown]
# （缓存不搬家：新的 key 和 value 送回 CPU，注意力要读的部分再复制过来。）只算一个 token 时这样做不划算：每个权重只用一次，CPU 读它来做乘法，和读它送出去一样快。提示词很长时，一次复制供所有 token 使用。这个界限由设备自己定（`offload_op`；CUDA 是 32，除非 `GGML_OP_OFFLOAD_MIN_BATCH` 另有规定）。
#
# ## 什么放得进哪里
#
# 一块内存要装下分给它的那些层的权重、对应的那部分 KV 缓存，还有一个计算缓冲区。放不下就拒绝，并说明差多少。

# %%
try:
    model.context(n_ctx=256, n_gpu_layers=-1, device_memory=2_000_000)
except vg.VizggmlError as error:
    lessons.tell(error)

# %% [markdown]
# 买之前可以先问一问。规划只需要模型的形状：这里是 `Q4_K_M` 的 7B，两块 4 GiB 的内存。第一块从第一层起，能装几层就装几层；其余的层和输出归第二块。命令行上这样写：`vizggml plan --shape llama-7b --type Q4_K_M -c 4096 --fit 4G,4G`。（llama.cpp 在几个设备之间分层，默认按各自的空闲内存成比例，也可以用 `--tensor-split` 指定。）

# %%
from vizggml.llama.cparams import ContextParams
from vizggml.llama.fit import fit, memory_sizes
from vizggml.llama.plan import shape_model

PARTS = ("model", "kv", "compute", "left")


def fitted(n_ctx, sizes):
    shape = shape_model("llama-7b", "Q4_K_M")
    params = ContextParams(n_ctx=n_ctx)
    return fit(*shape, params, memory_sizes(sizes))


fits = {n_ctx: fitted(n_ctx, "4G,4G") for n_ctx in (512, 2048, 4096)}
for n_ctx, found in fits.items():
    print(f"{n_ctx:,} tokens: {found.splits} splits, in MiB")
    for share in found.shares:
        first, end = share["layers"]
        parts = (f"{name} {share[name] / 2**20:,.0f}" for name in PARTS)
        print(f"  {end - first:>2} layers:", ", ".join(parts))

# %%
import matplotlib.pyplot as plt
from matplotlib_inline.backend_inline import set_matplotlib_formats

set_matplotlib_formats("svg")
COLOURS = ("#2f7fd1", "#d9731a", "#2a9d72", "#d5d9df")

figure, axes = plt.subplots(figsize=(6.2, 3.4))
shares = [(n, s) for n, found in fits.items() for s in found.shares]
labels, start = [], np.zeros(len(shares))
for n_ctx, share in shares:
    first, end = share["layers"]
    labels.append(f"{n_ctx:,} tokens: {end - first} layers")
for part, colour in zip(PARTS, COLOURS, strict=True):
    size = np.array([share[part] / 2**30 for _, share in shares])
    axes.barh(range(len(shares)), size, 0.7, start, color=colour)
    start += size
axes.set_yticks(range(len(shares)), labels)
axes.set(xlabel="GiB", xlim=(0, 4))
axes.invert_yaxis()
axes.legend(PARTS, ncols=4, loc="lower left", bbox_to_anchor=(0, 1))
axes.spines[["top", "right"]].set_visible(False)
figure.tight_layout()
plt.show()

# %% [markdown]
# 权重没有变；更长的上下文占的是缓存，而且每一层都要多占。所以放得下几层，并不是模型自身的性质：[第 8 章](08-kv-cache.ipynb)的字节和[第 10 章](10-quantization.ipynb)的字节一样起作用。上下文长到一定程度，两块内存加起来也不够：

# %%
try:
    fitted(16384, "4G,4G")
except vg.VizggmlError as error:
    lessons.tell(error)

# %% [markdown]
# ## 练习
#
# 把 `...` 换成你的答案。答错会得到提示；`lessons.solution("11.1")` 打印解答。
#
# **11.1** 1,000 行权重乘 8 个 token，4 个线程，按 ggml 的切法：切成几块？

# %%
answer = ...
lessons.check("11.1", answer)

# %% [markdown]
# **11.2** 4,000 行权重，一个 token，16 个线程：切成几块？

# %%
answer = ...
lessons.check("11.2", answer)

# %% [markdown]
# **11.3** 模型有 32 层，从 0 编号。`n_gpu_layers=10` 时，设备上的第一层是第几层？

# %%
answer = ...
lessons.check("11.3", answer)

# %% [markdown]
# **11.4** 宽度为 4,096 的模型，像上面那样从两层之间切开。一批有 8 个 token。要复制多少字节的激活值（F32；不算位置、mask 等输入）？

# %%
answer = ...
lessons.check("11.4", answer)

# %% [markdown]
# ## 接下来读什么
#
# - `ggml/src/ggml-backend.cpp` 中的 `ggml_backend_sched_split_graph`：分六遍，每一遍都是你见过的几行。我们的实现在 `vizggml/ggml/sched_assign.py` 和 `sched.py`；线程池在 `vizggml/ggml/threadpool.py`。
# - 注意力除了结果之外，每个线程还要多少内存：[第 9 章：scratch 与注意力](09-attention.ipynb)。
# - 把一切合在一起：[第 12 章：七个决定，一张图](12-one-picture.ipynb)。
