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
# # 导览：从提示到下一个词，中间发生了什么
#
# 给语言模型一段文字，片刻之后它就接出下一个词。这期间，llama.cpp 映射一个文件，建起一张有几百个操作的图，决定每个操作可以写在内存的哪个位置，依次计算，最后选出一个 token。这本 notebook 用 Python 把这些全做一遍，名字和字节数都与真正的库一致；你可以一步一步往前走，也可以往回走。
#
# 从上往下依次运行单元格。全程不需要网络。

# %% [markdown]
# ## 模型就是一个文件
#
# `tiny` 是 vizggml 自带的模型：4 层的 llama，340 万个权重，会讲很短的故事。它和别的模型一样，是一个 GGUF 文件。打开时并不读取内容，只是把文件*映射*进来；哪一页被用到，哪一页才到内存。

# %%
import vizggml as vg

model = vg.load_model("tiny")
model

# %% [markdown]
# ## 它会说话
#
# *context* 装着一次对话所需的一切：KV 缓存、计算缓冲区、线程。温度为 0 时它总是取最可能的 token，所以你看到的故事会和我们看到的一样。

# %%
context = model.context(n_ctx=256, flash_attn=True, n_threads=1)
for token in context.generate("Once upon a time", max_tokens=60, temp=0):
    print(token.text, end="")

# %% [markdown]
# ## 再来一次，这回看着它
#
# `vg.record()` 监听引擎。监听期间引擎做的每件事都变成一个事件：创建一个张量，往图里放一个节点，看了一个空闲块又放弃，一个 kernel 开始和结束，选中一个 token。context 在里面重新创建，这样也能看到它怎样规划内存；旧的要先释放，不然旧的规划也会出现在画面里。

# %%
context = None

with vg.record() as trace:
    context = model.context(n_ctx=256, flash_attn=True, n_threads=1)
    story = "".join(
        token.text
        for token in context.generate(
            "Once upon a time", max_tokens=6, temp=0
        )
    )

print(story)
print(f"{len(trace):,} events")

# %% [markdown]
# ## 一步一步走
#
# 下面是播放器。先点它一下，然后用键盘：**→** 和 **←** 前后走一步，**空格**播放，**?** 列出其余的键。
#
# - **点一个词**：在 token 条里点，播放器就跳到产生它的那一步。
# - **Graph**：各个操作，按执行的顺序。每一层是折叠起来的，点一下就展开。
# - **Memory map**：这一步，计算缓冲区里放着什么，哪里空着。
# - **Memory timeline**：整个规划的全貌。每个矩形是一个张量：从左到右是它存活的时间，从下到上是它所在的位置。只算一个 token 时，那些小张量放在大规划给它们的位置上，所以看起来是几条细线，彼此隔得很远。
# - **Events**：刚刚发生了什么，用一句话说明，并指出这段代码在 ggml 和 vizggml 里的位置。标题旁的列表可以只看某一类事件。
#
# 录制以一张快照开头：已经存在的东西（比如权重），写成当初产生它们的那些事件。（这些句子里的 *context* 是 ggml 的 context：存放张量记录的一块 arena。）有三样东西可以找一找：
#
# - 峰值由哪些张量构成？Memory timeline 下面的那行字会告诉你。
# - 在第一个规划里，`attn_norm-0` 在哪个节点之后被释放？按 **Home**，再按 **/**，输入名字，按 **Enter** 取第一个结果，按 **Esc** 离开；然后反复按 **t**，就会依次走过与它有关的每件事。
# - 某个张量为什么没有放进某个空闲块？在事件列表里选 *BlockConsidered*，找 *too small*。

# %%
vg.view(trace)

# %% [markdown]
# ## 问它一个问题
#
# 播放器画的是*轨道*（track）：一行行记录，说的是“从事件 a 到事件 b，这个东西取这个值”。你也可以直接读。计算缓冲区的第一个规划，哪里最满？那时放着什么？（第一个规划针对最坏情况：一次算 context 允许的最多 token。）

# %%
from vizggml.views.memory import read_plan

tracks = trace.tracks()
plan = read_plan(tracks, 0)
print(
    f"the plan takes {plan.peak:,} bytes; at node {plan.peak_at}, where it is fullest, these stand:"
)
for life in plan.standing()[:5]:
    print(
        f"  {life.size:>9,} bytes at {life.offset:>9,}  {tracks.string(tracks['tensor.name'][life.tensor])}"
    )

# %% [markdown]
# ## 改一改再看
#
# 1. 把上面的 `flash_attn` 设为 `False`，重新录制。`Qcur` 和 `kqv_out` 之间多了哪些张量？它们使规划有了什么变化？
# 2. 设 `temp=0.8, seed=7`。故事变了，图变了吗？
# 3. 先用 `max_tokens=1` 录制，再用同一个 context 录一次。第二次的事件为什么这么少？（找 *reuse*。）
#
# 接下来读[第 5 章：图分配器](05-galloc.ipynb)。
