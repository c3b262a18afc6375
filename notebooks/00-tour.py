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
# # A tour: what happens between a prompt and a word
#
# You give a language model some text, and a moment later it gives you the next word. In between, llama.cpp maps a
# file, builds a graph of some hundred or thousand operations, decides where in memory each may write, computes them
# in order, and picks a token. This notebook does all of that, in Python, with the names and the bytes of the real
# library, and lets you step through it, forwards and back.
#
# Run the cells from the top. Nothing here needs the network. （中文版：[zh/00-tour](zh/00-tour.ipynb)）

# %% [markdown]
# ## A model is a file
#
# `tiny` comes with vizggml: a llama with 4 layers and 3.4 million weights that tells very small stories. It is a GGUF
# file like any other. Opening it reads what it says about itself, the words for example; the weights are only *mapped*,
# and their pages arrive when they are used.

# %%
import vizggml as vg

model = vg.load_model("tiny")
model

# %% [markdown]
# ## It speaks
#
# A *context* holds what a conversation needs: the KV cache, the compute buffer, the threads. With temperature 0 it
# always takes the most likely token, so you will see the same story that we saw.

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
# ## Now watch it
#
# `vg.record()` listens to the engine. Everything that it does while we listen becomes an event: a tensor created, a
# node put into the graph, a free block looked at and refused, a kernel begun and ended, a token chosen. The context is
# made anew inside, so that we also see it plan its memory; the old one goes first, or its plan would be in the picture.

# %%
context = None

with vg.record() as trace:
    context = model.context(n_ctx=256, flash_attn=True, n_threads=1)
    tokens = list(context.generate(prompt, max_tokens=6, temp=0))

print(prompt + "".join(token.text for token in tokens))
print(f"{len(trace):,} events")

# %% [markdown]
# ## Step through it
#
# This is the player. Click it once, then use the keys: **→** and **←** step, **space** plays, **?** lists the rest.
#
# - On top: what just happened, in one sentence, and where that code is in ggml and in vizggml. **Why?** goes to what
#   caused it, **Back** returns.
# - **Click a word** in the strip of tokens: the player goes to the step that produced it.
# - **Graph**: the operations in the order in which they run. The layers are folded; click one to open it. **/** finds a
#   tensor by its name.
# - **Memory map**: what stands in the compute buffer at this step, and what is free. (*Chunk 0* is that
#   buffer; a large one may consist of several.)
# - **Memory timeline**: the whole plan at once. Each rectangle is a tensor: left to right when it is alive, bottom to
#   top where it lies. When a single token is computed, its small tensors lie where the large plan put them: thin lines,
#   far apart.
# - **Events**: all that happens, in order. The list beside the title shows only one kind.
# - **Details**: one thing closely, a tab for each. *Tensor* tells the shape, the strides, the values and the **Life** of
#   the one that you have clicked; *Free list* all that is free at this step. Others show the cache, the threads, and more.
#
# Where there is little room, memory, events and details share one place: **1**, **2** and **3** change between them.

# %%
vg.view(trace)

# %% [markdown]
# A recording begins with a snapshot: what stood already, the weights for example, as the events that would have made it.
# (A *context* in these sentences is ggml's: an arena for records of tensors.) Three things to find:
#
# - **Where does a search end?** Press **Home**, then **P**: the first plan is at its fullest. Press **Why?** twice (or the
#   key **w**): a place *is looked for*, for the tensor that makes it so full. Then **→**: each free block is looked at, and
#   the sentence says why it is not taken.
# - **What became of a tensor's memory?** Click a rectangle of the timeline, and read its *Life* in *Details*: who had
#   these bytes before, and who gets them after.
# - **What did it choose from?** Click a word, and look at the tokens that were nearly taken: the strip of tokens shows
#   them under the pointer.

# %% [markdown]
# ## While it speaks
#
# Put `vg.live(model)` into a cell of your own and run it: a box for a prompt, **Run**, and the player, which follows each
# token as it comes. Click one of the words, and the player stays there.

# %% [markdown]
# ## Ask it something
#
# The player draws *tracks*: rows that say "this thing had this value from event a to event b". You can read them too.
# Where is the first plan of the compute buffer at its fullest, and what stands there? (The first plan is for the worst
# case: as many tokens at once as one step may take, `n_ubatch`, and the whole cache in use.)

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
# ## Change this and see
#
# 1. Set `flash_attn=False` above and record again. Which tensors appear between `Qcur` and `kqv_out`, and what do they
#    do to the plan?
# 2. Set `temp=0.8, seed=7`. The story changes; does the graph?
# 3. Record with `max_tokens=1`, then once more with the same context. What is not done the second time? (Look for
#    *reuse*.)

# %% [markdown]
# ## An exercise
#
# Each chapter ends with some. Put your answer in place of the three dots and run the cell: a wrong answer gets a hint.
# `lessons.solution("00.1")` prints the solution.
#
# **00.1** After which node is `attn_norm-0` freed in the first plan? Its name, as a string. (In the player: **Home**,
# then **/**, type the name, **Enter**, **Esc**. Then read its *Life*, or press **t** again and again: that goes through
# all that happens to it.)

# %%
from vizggml import lessons

answer = ...
lessons.check("00.1", answer)

# %% [markdown]
# ## What to read next
#
# From the beginning: [chapter 1, tensors](01-tensors.ipynb), with the rows and strides of one. Or straight to the heart:
# [chapter 5, the graph allocator](05-galloc.ipynb), which made the plan that you have just seen.
