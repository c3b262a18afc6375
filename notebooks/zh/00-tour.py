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
# # 导览：从提示词到下一个词，中间发生了什么
#
# 给语言模型一段文字，片刻之后它就接出下一个词。这期间，llama.cpp 映射一个文件，建起一张有几百到几千个操作的计算图，决定每个操作的结果写在内存的哪个位置，依次计算，最后选出一个 token。这本 notebook 用 Python 把这些全做一遍，名字和字节数都与真正的库一致；你可以一步一步往前走，也可以往回走。
#
# 从上往下依次运行单元格。全程不需要网络。（English: [00-tour](../00-tour.ipynb)）

# %% [markdown]
# ## 模型就是一个文件
#
# `tiny` 是 vizggml 自带的模型：4 层的 llama，340 万个权重，会讲很短的故事。它和别的模型一样，是一个 GGUF 文件。打开时只读它对自己的描述，例如词表；权重只是**映射**进来，用到哪一页，哪一页才进内存。

# %%
import vizggml as vg

model = vg.load_model("tiny")
model

# %% [markdown]
# ## 它会说话
#
# *context* 装着一次对话所需的一切：KV 缓存、计算缓冲区、线程。温度为 0 时它总是取最可能的 token，所以你看到的故事会和我们看到的一样。

# %%
prompt = "Once upon a time"
context = model.context(n_ctx=256, flash_attn=True, n_threads=1)

print(prompt, end="")
column = len(prompt)
for token in context.generate(prompt, max_tokens=240, temp=0):
    text = token.text
    if column > 60 and text.startswith(" "):
        text, column = "\n" + text[1:], 0
    print(text, end="", flush=True)
    column += len(text)

# %% [markdown]
# ## 再来一次，这回看着它
#
# `vg.record()` 监听引擎。监听期间引擎做的每件事都变成一个事件：创建一个张量，往图里放一个节点，看过一个空闲块却没有用，一个 kernel 开始和结束，选中一个 token。context 在录制中重新创建，这样也能看到它怎样规划内存；旧的要先释放，不然旧的规划也会出现在画面里。

# %%
context = None

with vg.record() as trace:
    context = model.context(n_ctx=256, flash_attn=True, n_threads=1)
    tokens = list(context.generate(prompt, max_tokens=6, temp=0))

print(prompt + "".join(token.text for token in tokens))
print(f"{len(trace):,} events")

# %% [markdown]
# ## 一步一步走
#
# 下面是播放器。先点它一下，然后用键盘：**→** 和 **←** 前后走一步，**空格**播放，**?** 列出其余的键。
#
# - 最上面：刚刚发生了什么，用一句话说明，并指出这段代码在 ggml 和 vizggml 里的位置。**Why?** 跳到引起它的那一步，**Back** 回来。
# - **点一个词**：在 token 条里点，播放器就跳到产生它的那一步。
# - **Graph**：各个操作，按执行的顺序。每一层是折叠起来的，点一下就展开。按 **/** 可以按名字找张量。
# - **Memory map**：这一步，计算缓冲区里放着什么，哪里空着。（*chunk 0* 就是这个缓冲区；很大的缓冲区可以由几个 chunk 组成。）
# - **Memory timeline**：整个规划的全貌。每个矩形是一个张量：从左到右是它存活的时间，从下到上是它所在的位置。只算一个 token 时，小张量仍放在大规划定好的位置上，所以看起来是几条细线，彼此隔得很远。
# - **Events**：发生的每件事，依次排列。标题旁的列表可以只看某一类。
# - **Details**：仔细看一样东西，每样一个标签页。*Tensor* 写着你点中的那个张量的形状、步长、数值和它的 **Life**（一生）；*Free list* 是这一步空着的全部内存。其余的有缓存、线程等等。
#
# 地方不够时，内存、事件和 Details 共用一处：按 **1**、**2**、**3** 切换。

# %%
vg.view(trace)

# %% [markdown]
# 录制以一张快照开头：已经存在的东西（比如权重），用当初产生的那些事件来表示。（这些句子里的 *context* 是 ggml 的 context：存放张量记录的一块 arena。）有三样东西可以找一找：
#
# - **一次查找是怎么结束的？** 按 **Home**，再按 **P**，跳到第一个规划最满的地方。然后按两次 **Why?**（或者 **w** 键）：这时正在找位置（*is looked for*）的，就是把它撑满的那个张量。再按 **→**：每个空闲块依次看一遍，那句话说明为什么没有用。
# - **一个张量的内存后来怎样了？** 点时间线上的一个矩形，在 *Details* 里读它的 *Life*：这些字节之前是谁的，之后给了谁。
# - **它是从哪些词里选的？** 点一个词，看看那些差一点被选中的 token：把指针放在 token 条上就能看到。

# %% [markdown]
# ## 边生成边看
#
# 在你自己的单元格里写 `vg.live(model)` 并运行：一个提示词输入框，一个 **Run** 按钮，还有跟着每个新 token 走的播放器。点其中一个词，播放器就停在那里。

# %% [markdown]
# ## 问它一个问题
#
# 播放器画的是**轨道**（track）：一行行记录，说的是“从事件 a 到事件 b，这个东西取这个值”。你也可以直接读。计算缓冲区的第一个规划，执行到哪个节点时占用最多？那时放着什么？（第一个规划针对最坏情况：一次算 `n_ubatch` 允许的最多 token，而且整个缓存都在用。）

# %%
from vizggml.views.memory import read_plan

tracks = trace.tracks()
plan = read_plan(tracks, 0)
peak = f"{plan.peak:,} bytes; at node {plan.peak_at}"
print(f"the plan takes {peak} it is fullest, with")
for life in plan.standing()[:5]:
    name = tracks.string(tracks["tensor.name"][life.tensor])
    print(f"  {life.size:>9,} bytes at {life.offset:>9,}  {name}")

# %% [markdown]
# ## 改一改，看一看
#
# 1. 把上面的 `flash_attn` 设为 `False`，重新录制。`Qcur` 和 `kqv_out` 之间多了哪些张量？规划因此有什么变化？
# 2. 设 `temp=0.8, seed=7`。故事变了，图变了吗？
# 3. 先用 `max_tokens=1` 录制，再用同一个 context 录一次。第二次少做了什么？（找 *reuse*。）

# %% [markdown]
# ## 一道练习
#
# 每一章的末尾都有练习。把 `...` 换成你的答案，运行单元格；答错会得到提示。`lessons.solution("00.1")` 打印解答。
#
# **00.1** 在第一个规划里，`attn_norm-0` 在哪个节点之后释放？写节点的名字（字符串）。（在播放器里：按 **Home**，再按 **/**，输入名字，按 **Enter**，按 **Esc**。然后读它的 *Life*；或者反复按 **t**，依次走过与它有关的每件事。）

# %%
from vizggml import lessons

answer = ...
lessons.check("00.1", answer)

# %% [markdown]
# ## 接下来读什么
#
# 从头开始：[第 1 章：张量](01-tensors.ipynb)，看一个张量的行和步长。或者直奔核心：[第 5 章：图分配器](05-galloc.ipynb)，你刚才看到的规划就是它做出来的。
