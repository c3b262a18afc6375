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
# file, builds a graph of a few hundred operations, decides where in memory every one of them may write, computes them
# in order, and picks a token. This notebook does all of that, in Python, with the names and the bytes of the real
# library, and lets you step through it, forwards and back.
#
# Run the cells from the top. Nothing here needs the network.

# %% [markdown]
# ## A model is a file
#
# `tiny` comes with vizggml: a llama with 4 layers and 3.4 million weights that tells very small stories. It is a GGUF
# file like any other. Nothing is read when it is opened: the file is *mapped*, and its pages arrive when they are used.

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
context = model.context(n_ctx=256, flash_attn=True, n_threads=1)
for token in context.generate("Once upon a time", max_tokens=60, temp=0):
    print(token.text, end="")

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
    story = "".join(
        token.text
        for token in context.generate(
            "Once upon a time", max_tokens=6, temp=0
        )
    )

print(story)
print(f"{len(trace):,} events")

# %% [markdown]
# ## Step through it
#
# This is the player. Click it once, then use the keys: **→** and **←** step, **space** plays, **?** lists the rest.
#
# - **Click a word** in the strip of tokens: the player goes to the step that produced it.
# - **Graph**: the operations in the order in which they run. The layers are folded; click one to open it.
# - **Memory map**: what stands in the compute buffer at this step, and what is free.
# - **Memory timeline**: the whole plan at once. Each rectangle is a tensor: left to right when it is alive, bottom to
#   top where it lies. When a single token is computed, its small tensors lie where the large plan put them: thin lines,
#   far apart.
# - **Events**: what just happened, in one sentence, and where that code is in ggml and in vizggml. The list beside the
#   title shows only one kind.
#
# A recording begins with a snapshot: what stood already, the weights for example, as the events that would have made it.
# (A *context* in these sentences is ggml's: an arena for records of tensors.) Three things to find:
#
# - Which tensors make the peak? The line under the memory timeline names them.
# - After which node is `attn_norm-0` freed in the first plan? Press **Home**, then **/**, type the name, take the first
#   one found with **Enter**, leave with **Esc**; then **t**, again and again, goes through all that happens to it.
# - Why did a tensor not go into a free block? Choose *BlockConsidered* in the list of events, and look for *too small*.

# %%
vg.view(trace)

# %% [markdown]
# ## Ask it something
#
# The player draws *tracks*: rows that say "this thing had this value from event a to event b". You can read them too.
# Where is the first plan of the compute buffer at its fullest, and what stands there? (The first plan is for the worst
# case: as many tokens at once as the context allows.)

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
# ## Change this and see
#
# 1. Set `flash_attn=False` above and record again. Which tensors appear between `Qcur` and `kqv_out`, and what do they
#    do to the plan?
# 2. Set `temp=0.8, seed=7`. The story changes; does the graph?
# 3. Record with `max_tokens=1`, then once more with the same context. Why are there so few events the second time?
#    (Look for *reuse*.)
#
# Then go on to [chapter 5, the graph allocator](05-galloc.ipynb).
