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
# # Chapter 12: Seven decisions, one picture
#
# You have met the parts one at a time. One question is left from the beginning: a file of 14 GB, a laptop, and it answers.
# How does that fit? First you follow one token through everything; then you add up.
#
# ## One token, by hand
#
# Without any of the parts, a step is four lines. Text to numbers, numbers through the model, the highest score, back to text.

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
# `decode` hides the rest. Let it write three tokens, and print what it passes through: of each stage the first event with its
# step in the recording, and once the function of llama.cpp where the same happens. (This takes a few seconds.)

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
# The first block is the prompt. In the second the graph is *built* anew, as there is one token now. The third is the same path
# with the graph *reused*: nothing is made, appended or placed. A long text consists of the third block, again and again.
#
# Note what is not there: no stage says "allocate". The places were decided before any token came. *Placed* means: addresses
# are written into records.

# %%
kinds = [type(event).__name__ for event in trace.events]
kinds = kinds[trace.tracks().opening :]
since = kinds[kinds.index("DecodeBegin") :]
print(f"{len(since):,} events since the first decode")
print(f"{since.count('BufferAllocated')} buffers allocated in them")

# %% [markdown]
# ## The one picture
#
# Now the whole of it, on the tiny model, so that the planning is in the recording too. The panes are the parts you know.
# **Click a word** to get to its step; **→** walks; in the list beside *Events* choose *CellsFound*, *ReuseDecided*,
# *ComputeBegin*, *LogitsReady*, and go along the path above.

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
# In a notebook that runs, `vg.live(tiny)` gives you the same with a prompt to write in: the picture follows as the text
# grows.
#
# ## Decision 1: an arena, and no data in it
#
# Records of tensors are appended to one block of memory and thrown away together; with `no_alloc` their data lie elsewhere
# ([chapter 3](03-memory.ipynb)). Here is the graph of one step, a record beside the other.

# %%
reused = where["ReuseDecided"][-1]
appended = [step for step in where["ObjectAppended"] if step < reused]
taken = sum(events[step].size for step in appended)
print(f"{len(appended):,} objects appended, {taken:,} bytes in all")
vg.view(trace, panes=["arena"], step=appended[-1], height=430)

# %% [markdown]
# ## Decision 2: views
#
# Reshape, permute, transpose and view change `ne` and `nb`, and no byte (chapters [1](01-tensors.ipynb) and
# [2](02-views.ipynb)). This one turns the queries of the prompt from "all heads of a token" to "all tokens of a head".

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
# ## Decision 3: first the graph, then the work
#
# A builder writes down what is to be done, and nothing is computed until the graph is whole (chapters
# [4](04-deferred.ipynb) and [6](06-graph.ipynb)). Only so can anyone know who is the last reader of a tensor.

# %%
begin, end = where["GraphCreated"][-1], where["ComputeBegin"][-2]
building = [type(event).__name__ for event in events[begin:end]]
print(building.count("NodeAppended"), "nodes appended,", end=" ")
print(building.count("NodeBegin"), "computed meanwhile")

complete = where["NodeAppended"][-1]
vg.view(trace, panes=["graph"], step=complete, height=560)

# %% [markdown]
# ## Decision 4: one plan of memory
#
# The allocator plays the largest graph through once and gives every result its place; the buffer is as large as the
# highest byte (chapters [5](05-galloc.ipynb) and [7](07-plan.ipynb)). Steps that are smaller fit into the same plan.

# %%
from vizggml.views.memory import read_plan

plan = read_plan(trace.tracks(), 0)
alone = sum(life.size for life in plan.lives)
print(f"{alone:,} bytes if each result had memory of its own")
print(f"{plan.peak:,} as planned: {1 - plan.peak / alone:.0%} saved")

reserved = where["ReserveEnd"][0]
vg.view(trace, panes=["timeline"], step=reserved, height=430)

# %% [markdown]
# ## Decision 5: the file is the memory
#
# Weights are mapped. Mapping copies nothing, and a page comes when a kernel touches it, as you see here. (llama.cpp asks the
# system to bring the pages ahead of that: [chapter 3](03-memory.ipynb).)

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
# ## Decision 6: blocks of quantized weights
#
# 32 weights share a scale, or 256 share a scale of scales, and the CPU's kernels multiply from the blocks, without making a
# matrix of floats first ([chapter 10](10-quantization.ipynb)). This block is the first of a matrix of SmolLM2.

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
# ## Decision 7: keep what would come out the same
#
# Keys and values of old tokens stay in the cache ([chapter 8](08-kv-cache.ipynb)); the graph of the last step stays too,
# if the next would be built the same ([chapter 4](04-deferred.ipynb)).

# %%
lessons.tell(trace.sentences("CellsFound")[-1])
lessons.tell(trace.sentences("ReuseDecided")[-1])
vg.view(trace, panes=["kv", "reuse"], step=reused, height=780)

# %% [markdown]
# ## How does 14 GB fit?
#
# Llama 2 with 7 billion parameters is such a file in `F16`. Plan it, at 4,096 tokens; no weight is read. (In a shell:
# `vizggml plan --shape llama-7b -c 4096`.)

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
# So the first answer is: most of the 14 GB is not allocated at all. It is a file that the system shows to the process, and
# whose pages it may drop without writing them back.
#
# A popular account stops there, as if a mapping made memory unnecessary. It does not. In a model like this every token
# reads every weight. If the pages do not stay in memory, each token fetches them from the disk again. It *runs* in little
# memory; it runs *fast* only if what a token reads stays there.
#
# The second answer is quantization. What is allocated does not fall with it; the mapping does.

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
# A third answer is that not every model reads all its weights. Qwen3 with 30 billion parameters has 128 *experts* in each
# layer, of which a token uses 8. Quantized to `Q3_K_M`, it is a file of our size again. How much of it does one token read?

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
# (Of the token embedding one row is looked up, so it is left out.) The next token may choose other experts; but those that
# are chosen often stay in memory, and the rest may wait on the disk.
#
# One more correction. Where the processor has faster kernels for another layout, llama.cpp lays out some types anew when it
# loads them (`CPU_REPACK`): these matrices *are* copied to allocated memory, and their pages of the file are not read again.
# On x86 these are `Q4_0`, `Q4_K` and a few more with AVX2, `Q2_K` too with AVX-512, for which our plan reckons; ARM has
# others. `--no-repack` turns that off.

# %%
print("qwen3-30b-a3b, Q3_K_M")
for buffer, size in experts.model.items():
    print(f"{buffer:>10}: {gb(size)}")
print(f"of the mapped range, copied out of it: {gb(experts.copied)}")

# %% [markdown]
# ## Beside llama.cpp
#
# All these sums rest on plans. Are they right? Here is SmolLM2 at 2,048 tokens: what real llama.cpp took, recorded, and what
# the plan says, now.

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
# And the text? If you have llama.cpp in a wheel (`pip install "vizggml[oracle]"`), the next cell asks it now, in a process
# of its own; else it takes the answer that was recorded. Both models go on with a prompt that leaves little choice, 24 tokens
# long. (Sizes are MiB, as in llama.cpp's log.)

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
# (Why this prompt? Where two tokens are nearly as probable, the order of a sum decides, and llama.cpp parts from itself, with
# flash attention and without. Compare texts only where no second token comes close.)
#
# The order of it all is in `llama_context::decode` and `process_ubatch` (`src/llama-context.cpp`); you have seen the names of
# the rest beside the path.
#
# ## Change this and watch
#
# Here are your laptop and a model. Watch which of the two lines grows with `n_ctx`, and which with `kind`. Try `llama-70b`,
# `Q2_K`, 32,768 tokens.

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
# ## Exercises
#
# Put your answer in place of the three dots. A wrong answer gets a hint; `lessons.solution("12.1")` prints the solution.
#
# **12.1** You start Llama 2 7B in `F16` twice, at 4,096 tokens each, from the same file. How many bytes do both take
# together once all weights have been read? `plans["F16"]` has what you need; an expression will do.

# %%
answer = ...
lessons.check("12.1", answer)

# %% [markdown]
# **12.2** Which stages does a token go through whose graph is reused, from `DecodeBegin` to the logits? Write the letters in
# order: `B` a graph is built, `C` cells are found, `L` the logits are ready, `P` the graph is placed, `R` reuse is
# decided, `T` text is tokenized, `U` a ubatch is split off, `X` the graph is computed.

# %%
answer = ...
lessons.check("12.2", answer)

# %% [markdown]
# **12.3** Your memory delivers 50 GB (50·10⁹ bytes) a second, and Llama 2 7B in `Q8_0` lies in it. However fast the
# cores are: how many tokens a second can it write at most? (Leave the cache aside. Within five in a hundred will do.)

# %%
answer = ...
lessons.check("12.3", answer)

# %% [markdown]
# ## What to read next
#
# - `llama_context::decode` in `src/llama-context.cpp`, from its first line to its last. You know every call in it. Ours
#   is in `vizggml/llama/context.py`.
# - Your own models: `vizggml plan FILE`, and `vg.load_model(FILE)` for those of a size that Python can bear.
# - The path backwards, for when a part has become dim: [the tour](00-tour.ipynb), and [the allocator](05-galloc.ipynb).
