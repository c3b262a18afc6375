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
# # 第 3 章：arena、缓冲区与 mmap
#
# 每条[视图链](02-views.ipynb)的尽头，都是一个拥有字节的张量。它的字节又从哪里来？先看看要存的都是些什么：

# %%
import vizggml as vg
from vizggml import ggml, lessons


def to_keep(name):
    model = vg.load_model(name)
    context = model.context(n_ctx=512, n_ubatch=512, n_threads=1)
    nodes = context.step_graph(1).nodes
    return [t.nbytes for t in model.gguf.tensors.values()], len(nodes)


weights, n_nodes = to_keep("smollm2")
print(f"SmolLM2: {len(weights)} weights, {sum(weights):,} bytes of data;")
print(f"{n_nodes} nodes in the graph of a step")

# %% [markdown]
# 这里有三类东西，各是一道难题。**记录**（名字、`ne`、`nb`、`op`、`src`）：又多又小，成千上万地造出来，又一起扔掉。计算出来的**数据**：必须放在设备够得着的地方，还要对齐。**权重**：极大，从不改写，而且本来就在文件里。ggml 各有办法：arena、缓冲区、映射。

# %% [markdown]
# ## arena
#
# 对记录来说，通用的分配器太重了：没有人会单独释放其中一条。拿一整块内存，再用一个数记下已经用了多少。分配就是做加法；释放就是把这个数清零。


# %%
class Arena:
    def __init__(self, size):
        self.size, self.used = size, 0

    def take(self, n_bytes):
        n_bytes = -(-n_bytes // 16) * 16  # up to a multiple of 16
        if self.used + n_bytes > self.size:
            raise MemoryError(f"{self.used + n_bytes} of {self.size}")
        self.used += n_bytes
        return self.used - n_bytes


arena = Arena(100)
print("at", arena.take(20), arena.take(5), arena.take(40))
try:
    arena.take(1)
except MemoryError as error:
    print("too much:", error)

# %% [markdown]
# `ggml_context` 就是这样。在 64 位机器上，里面每个对象有 32 字节的头部，一条张量记录是 336 字节；如果 context 是带数据的，张量的数据就紧跟在记录后面。给它 1,504 字节，不断造张量，直到装满。

# %%
with vg.record() as trace:
    c = ggml.Context(mem_size=1504)
    try:
        for name in "abcd":
            c.new_tensor("F32", (10,), name=name)
            print(name, "used:", c.used_mem)
    except vg.VizggmlError as error:
        print(error)

# %% [markdown]
# 播放器停在最后，第四个张量放不下的地方。每个对象都按比例画出：头部、记录、数据、填充。点一下播放器，回到开头（**Home**）一步步走（**→**）：长条从左往右填满，里面的东西从不挪动。

# %%
vg.view(trace, panes=["arena", "events"], step=len(trace) - 1)

# %% [markdown]
# 没有留下半成品：第四个张量不存在，前三个完好。在 ggml 里，`ggml_new_object` 打印一条警告，带着同样的两个数，随后程序停在一个断言上。arena 不会变大：谁造它，谁就得知道要放多少东西。

# %% [markdown]
# ## 记录在这里，数据在别处
#
# 用 `no_alloc=True`，arena 只收记录。于是它的大小事先就能算出来：张量的个数乘以 `ggml_tensor_overhead()`，也就是 32 + 336。

# %%
c = ggml.Context(mem_size=3 * ggml.TENSOR_OVERHEAD, no_alloc=True)
for name in "abc":
    t = c.new_tensor("F32", (1000, 1000), name=name)
print(f"three records: {c.used_mem} of {c.mem_size} bytes used;")
print(f"each stands for {t.nbytes:,} bytes of data")
try:
    t.array()
except vg.VizggmlError as error:
    print(error)

# %% [markdown]
# llama.cpp 正是这样造 context 的，大小都是 `ggml_tensor_overhead()*n`：权重的在 `src/llama-model-loader.cpp`，缓存的在 `src/llama-kv-cache.cpp`，图节点的在 `src/llama-graph.cpp`。SmolLM2 的权重，光记录要占多少？

# %%
records = len(weights) * ggml.TENSOR_OVERHEAD
times = sum(weights) // records
print(f"records: {records:,} bytes")
print(f"data:    {sum(weights):,} bytes, {times} times as much")

# %% [markdown]
# ## 缓冲区：先量，再放
#
# 那么数据放在哪里？**缓冲区**（buffer）是某个设备上的一块内存。**缓冲区类型**（buffer type）说明这种内存有什么规矩：每个张量从 `alignment` 的倍数开始，一块不应超过 `max_size`。
#
# `ggml_backend_alloc_ctx_tensors_from_buft`（`ggml/src/ggml-alloc.c`）按顺序处理一个 context 里的张量，每个张量经过两遍。第一遍累加大小，加到下一个放不下为止；然后要一个恰好这么大的缓冲区；第二遍把这些张量依次放进去。接着是下一段。
#
# 为了让你看到不止一段，这里用一种块很小的缓冲区类型。


# %%
def place(max_size):
    c = ggml.Context(mem_size=1 << 16, no_alloc=True)
    for name, n in zip("abcde", (25, 15, 30, 10, 7), strict=True):
        c.new_tensor("F32", (n,), name=name)
    small = ggml.BufferType("small", alignment=32, max_size=max_size)
    with vg.record() as trace:
        ggml.alloc_ctx_tensors_from_buft(c, small)
    lessons.tell(*trace.sentences("PlacementPass", "TensorPlaced"))
    return trace


trace = place(max_size=256)

# %% [markdown]
# `a` 有 100 字节，却占 128，因为 `b` 必须从 32 的倍数开始。补齐之后 `a` 和 `b` 共占 192；加上 `c` 就是 320，超过 256，于是另起一段。在播放器里往前走，看一个缓冲区填满，再看另一个。

# %%
vg.view(trace, panes=["map", "events"])

# %% [markdown]
# ## 改一改，看一看
#
# 改成 320，`c` 就进了第一段。改成 100 呢？`a` 和 `c` 各自就比一块的上限大，你猜会怎样？（一段至少有一个张量。ggml 会照样去要一块过大的内存，由设备去拒绝。）

# %%
max_size = 320

# %%
trace = place(max_size)
vg.view(trace, panes=["map"], step=len(trace) - 1, height=330)

# %% [markdown]
# ## 把文件当作内存
#
# 权重不必复制到缓冲区里。系统可以**映射**（map）一个文件：它的字节有了地址，但什么也没读。当你第一次碰到某一**页**（一般是 4,096 字节）时，处理器停下，系统把这一页取来，你接着往下走，好像它一直就在那里。
#
# 拿 tiny 模型的一份副本来试。（这里逐页写入，因为一次写成的文件，Linux 可能按更大的块保存，取的时候也就整块取来。）

# %%
import tempfile
from pathlib import Path

from vizggml.llama.models import resolve_model

folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "copy.gguf"
data = resolve_model("tiny").read_bytes()
with path.open("wb", buffering=0) as file:
    for first in range(0, len(data), 4096):
        file.write(data[first : first + 4096])
print(f"{path.stat().st_size:,} bytes")

# %% [markdown]
# `residency()` 问系统，这个进程有哪些页在内存里（`/proc/self/smaps`；从这里往下都需要 Linux）。碰一个字节，再碰一百万字节以外的另一个，最后全部读一遍。

# %%
mapped = ggml.MappedFile(path)


def pages(when):
    found = mapped.residency()
    print(f"{when:24} {found.pages:4} of {found.of} pages")


pages("mapped, nothing touched:")
mapped.memory[0]
pages("one byte touched:")
mapped.memory[1_000_000]
pages("another, far away:")
mapped.memory.sum()
pages("all of it:")

# %% [markdown]
# 碰一个字节，来的不只是它自己的那一页：系统缓存里的邻近页也一并映射进来，因为你接下来多半用得到。

# %% [markdown]
# ## 看模型一页页进来
#
# 权重是映射的，所以一个权重都没读，模型就已经“加载”好了。到第一步计算，权重才一层接一层地进来：kernel 用到哪里，页就来到哪里。`pages_watched` 在每一层之后问一次。

# %%
from vizggml.llama.residency import pages_watched

model = vg.load_model(path)
context = model.context(n_ctx=256, n_ubatch=32, n_threads=1)
watched = pages_watched(context, model.gguf.mapped, model.gguf)
with vg.record() as trace, watched:
    context.decode([5])

lessons.tell(*trace.sentences("PagesResident"))

# %% [markdown]
# 只算了一个 token，所有的页就都来了：一步计算要读每一层的权重。所以比内存还大的模型，映射之后也能运行；但放不下的部分，每算一个 token 都要重新从磁盘读一遍。
#
# 播放器里的长条就是文件，从头到尾。播放器停在第二层之后；从 *Events* 旁边的列表选 *LayerResident*，按 **n** 从一个跳到下一个。

# %%
second = trace.steps("PagesResident")[1]
vg.view(trace, panes=["pages", "events"], step=second)

# %% [markdown]
# ## 两个进程，一份内存
#
# 这些页不属于这个进程，而是系统手里的那份文件：谁映射同一个文件，看到的就是同样的页。启动另一个程序，让它映射这个文件并读一半，再问**我们的**页里有多少是和它共享的。

# %%
import gc
import subprocess
import sys

other = """
import mmap, sys
with open(sys.argv[1], "rb") as file:
    memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
sum(memory[: len(memory) // 2 : 4096])
print("read", flush=True)
sys.stdin.read()
"""


def shared(when):
    found = mapped.residency()
    print(f"{when:19} {found.shared:3} of our {found.pages} pages shared")


model = context = watched = None  # it has a mapping of its own
gc.collect()

command = [sys.executable, "-c", other, str(path)]
pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
with subprocess.Popen(command, **pipes) as child:
    child.stdout.readline()
    shared("while it runs:")
    child.stdin.close()
shared("after it has ended:")

# %% [markdown]
# 所以十个进程用同一个模型，映射的权重只占一份内存。

# %% [markdown]
# ## 不用保存就能还回去
#
# 文件本身就是原件。系统需要腾地方时，可以直接丢掉这样的页，什么也不用写回：反正还能再读。`drop()` 把这个进程的页还回去，就像系统会做的那样。

# %%
before = int(mapped.memory[1_000_000])
mapped.drop()
pages("dropped:")
print("the same byte again:    ", int(mapped.memory[1_000_000]) == before)
pages("and its neighbours:")

# %% [markdown]
# ## 在 llama.cpp 里
#
# `llama_mmap`（`src/llama-mmap.cpp`）映射文件；`llama_model_loader::get_mapping_range` 找出张量所在的那一段；这一段就成为名叫 `CPU_Mapped` 的缓冲区。我们的加载器也这样做；两边放在一起看：

# %%
model = vg.load_model("smollm2")
(buffer,) = model.weights.buffers
theirs = lessons.golden("smollm2.mapped")
print(f"{buffer.buft.name}: {buffer.size:,} bytes")
print(f"llama.cpp:  {theirs:,} bytes")
del model, buffer  # a recording would begin with all its tensors

# %% [markdown]
# 没有复制任何权重：张量的数据就在映射的文件里；加载之后，文件的大部分还没有读过。（有些别的类型，例如 `Q4_0` 和 `Q4_K`，如果处理器对另一种布局有更快的 kernel，llama.cpp 会把权重复制到名叫 `CPU_REPACK` 的缓冲区里。`--no-repack` 可以关掉。）

# %%
import numpy as np

model = vg.load_model("smollm2")
file = model.gguf.mapped
up = model.weights["blk.0.ffn_up.weight"]
print("in the file:", np.shares_memory(up.data.memory, file.memory))
here = file.residency()
print(f"before any step: {here.pages} of {here.of} pages")
del model, file, up

# %% [markdown]
# （已经在内存里的那些页，装的是词表和其他元数据，这些早已读过。）
#
# 流行的说法是：llama.cpp 在用到权重之前什么也不读。映射**可以**做到这样，你刚才看到的也是这样。但 llama.cpp 默认要得更多：在 Linux 上，`llama_mmap` 用 `MAP_POPULATE` 映射，并给出 `POSIX_MADV_WILLNEED` 的建议，于是加载模型时就把页取来了。不过这些页仍然归系统：可以共享，需要地方时可以丢掉。vizggml 不做预取，好让你看得见。

# %% [markdown]
# ## 练习
#
# 把 `...` 换成你的答案。`lessons.solution("03.1")` 打印解答。
#
# **03.1** 一个带数据的 context（`no_alloc=False`）里有三个 `F32` 张量，`ne` 分别是 (10)、(3, 3) 和 (1)。`used_mem` 是多少？头部 32 字节，记录 336 字节，记录连同数据一起补齐到 16 的倍数。

# %%
answer = ...
lessons.check("03.1", answer)

# %% [markdown]
# **03.2** 大小为 100、60、120、40、200 字节的张量，放进对齐为 32、`max_size` 为 256 的缓冲区。各个缓冲区有多大？写一个列表。

# %%
answer = ...
lessons.check("03.2", answer)

# %% [markdown]
# **03.3** 一个张量从映射文件的偏移 5,000 处开始，有 8,000 字节。它落在多少个 4,096 字节的页上？

# %%
answer = ...
lessons.check("03.3", answer)

# %% [markdown]
# **03.4** 三个进程运行同一个 4 GiB 的模型，都是映射的。此外每个进程有 1 GiB 的 KV 缓存和计算缓冲区。要让任何一页都不必读第二次，机器需要多少 GiB 内存？

# %%
answer = ...
lessons.check("03.4", answer)

# %% [markdown]
# ## 接下来读什么
#
# - `ggml/src/ggml.c` 里的 `ggml_new_object`，`ggml/src/ggml-alloc.c` 里的 `ggml_backend_alloc_ctx_tensors_from_buft`，`src/llama-mmap.cpp` 里的 `llama_mmap::impl`。我们的实现在 `vizggml/ggml/context.py` 和 `buffer.py`。
# - 权重有文件，记录有 arena。上千个节点的结果两样都没有，而且到现在还什么都没算：见[第 4 章：延迟执行](04-deferred.ipynb)，然后是[第 5 章：图分配器](05-galloc.ipynb)。
