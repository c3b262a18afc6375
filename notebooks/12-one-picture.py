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

# %% [markdown]
# ## One token, by hand
#
# Without any of the parts, a step is four lines. Text to numbers, numbers through the model, the highest score, back to text.

# %%
from textwrap import shorten

import vizggml as vg
from vizggml import lessons

smol = vg.load_model("smollm2")
context = smol.context(n_ctx=2048, n_threads=1)
prompt = "The capital of France is"
tokens = smol.vocab.tokenize(prompt)
logits = context.decode(tokens)
print(tokens, "->", smol.vocab.detokenize([int(logits[-1].argmax())]))

# %% [markdown]
# `decode` hides the rest. Let it write three tokens, and print what it passes through: of each stage the first event with its
# step in the recording, and once the function of llama.cpp where the same happens. (This takes a few seconds.)

# %%
from vizggml.timeline.sentences import render

STAGES = (
    *(
        "Tokenized",
        "DecodeBegin",
        "UbatchSplit",
        "CellsFound",
        "ReuseDecided",
        "GraphCreated",
    ),
    *(
        "NodeAppended",
        "AllocGraphEnd",
        "PlanEnd",
        "ComputeBegin",
        "KvWritten",
        "LogitsReady",
    ),
    *("SamplerApplied", "TokenSampled"),
)


def path(trace):
    tracks, met, ever = trace.tracks(), set(), set()
    for step, event in enumerate(trace.events):
        kind = type(event).__name__
        if step < tracks.opening or kind in met or kind not in STAGES:
            continue
        met.add(kind)
        print(f"{step:>6}  {shorten(render(tracks, step), 96)}")
        if kind not in ever:
            print(f"{'':12}{event.GGML}")
        ever.add(kind)
        if kind == "TokenSampled":
            met.clear()
            print()


context = smol.context(n_ctx=2048, n_threads=1)
with vg.record() as trace:
    text = "".join(
        token.text
        for token in context.generate(prompt, max_tokens=3, temp=0)
    )
path(trace)

# %% [markdown]
# The first block is the prompt. In the second the graph is *built* anew, as there is one token now. The third is the same path
# with the graph *reused*: nothing is made, appended or placed. A long text consists of the third block, again and again.
#
# Note what is not there: no stage says "allocate". The places were decided before any token came. *Placed* means: addresses
# are written into records.

# %%
kinds = [type(event).__name__ for event in trace.events][
    trace.tracks().opening :
]
first = kinds.index("DecodeBegin")
print(f"{len(kinds) - first:,} events since the first decode;", end=" ")
print("buffers allocated:", kinds[first:].count("BufferAllocated"))

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
    text = "".join(
        token.text
        for token in context.generate(
            "Once upon a time", max_tokens=3, temp=0
        )
    )

events = list(trace.events)
where = {}
for step, event in enumerate(events):
    where.setdefault(type(event).__name__, []).append(step)
print(f"{text!r}: {len(trace):,} events")

# %%
vg.view(trace, step=where["LogitsReady"][-1])

# %% [markdown]
# ## Decision 1: an arena, and no data in it
#
# Records of tensors are appended to one block of memory and thrown away together; with `no_alloc` their data lie elsewhere
# (chapter 3). Here is the graph of one step, a record beside the other.

# %%
appended = [
    step
    for step in where["ObjectAppended"]
    if step < where["ReuseDecided"][-1]
]
taken = sum(events[s].size for s in appended)
print(
    f"{len(appended):,} objects appended, {taken:,} bytes, for all graphs and weights"
)
vg.view(trace, panes=["arena"], step=appended[-1], height=420)

# %% [markdown]
# ## Decision 2: views
#
# Reshape, permute, transpose and view change `ne` and `nb`, and no byte (chapters 1 and 2). This one turns the queries of the
# prompt from "all heads of a token" to "all tokens of a head".

# %%
skipped = [
    step
    for step in where["NodeSkipped"]
    if step > where["ComputeBegin"][-1]
]
computed = [
    step
    for step in where["NodePlanned"]
    if step > where["ReuseDecided"][-1]
]
print(
    f"of the {len(computed)} nodes of the last step, {len(skipped)} have nothing to compute"
)
permuted = [
    s
    for s in where["StridesChanged"]
    if s > where["DecodeBegin"][0] and events[s].how == "permute"
]
vg.view(trace, panes=["tensor"], step=permuted[0], height=560)

# %% [markdown]
# ## Decision 3: first the graph, then the work
#
# A builder writes down what is to be done, and nothing is computed until the graph is whole (chapters 4 and 6). Only so
# can anyone know who is the last reader of a tensor.

# %%
begin, end = where["GraphCreated"][-1], where["ComputeBegin"][-2]
building = [type(event).__name__ for event in events[begin:end]]
print(
    f"{building.count('NodeAppended')} nodes appended, {building.count('NodeBegin')} computed meanwhile"
)
vg.view(
    trace, panes=["graph"], step=where["NodeAppended"][-1], height=560
)

# %% [markdown]
# ## Decision 4: one plan of memory
#
# The allocator plays the largest graph through once and gives every result its place; the buffer is as large as the
# highest byte (chapters 5 and 7). Steps that are smaller fit into the same plan.

# %%
from vizggml.views.memory import read_plan

plan = read_plan(trace.tracks(), 0)
alone = sum(life.size for life in plan.lives)
print(f"{alone:,} bytes if each rectangle had its own")
print(f"{plan.peak:,} as planned: {1 - plan.peak / alone:.0%} saved")
vg.view(
    trace, panes=["timeline"], step=where["ReserveEnd"][0], height=420
)

# %% [markdown]
# ## Decision 5: the file is the memory
#
# Weights are mapped. Loading copies nothing, and a page comes when a kernel touches it (chapter 3).

# %%
from vizggml.llama.residency import pages_watched

fresh = vg.load_model("tiny")
reader = fresh.context(n_ctx=256, n_ubatch=32, n_threads=1)
with (
    vg.record() as pages,
    pages_watched(reader, fresh.gguf.mapped, fresh.gguf),
):
    reader.decode([5])
for sentence in pages.sentences("PagesResident"):
    print(sentence)
vg.view(pages, panes=["pages"], step=len(pages) - 1, height=360)

# %% [markdown]
# ## Decision 6: blocks of quantized weights
#
# 32 or 256 weights share a scale, and the kernels multiply from the blocks; no full matrix of floats is ever made
# (chapter 10). This block is the first of a matrix of SmolLM2.

# %%
from IPython.display import SVG

from vizggml.ggml.quants import open_block

name = "blk.0.ffn_down.weight"
weight = smol.weights.tensors[name]
block = smol.gguf.tensor_bytes(name)[: weight.type.type_size]
bits = 8 * weight.type.type_size / weight.type.blck_size
print(
    f"{name}: {weight.type}, {bits} bits a weight, 16 in the F16 original"
)
SVG(str(vg.block_picture(open_block(weight.type.name, block))))

# %% [markdown]
# ## Decision 7: keep what would come out the same
#
# Keys and values of old tokens stay in the cache (chapter 8); the graph of the last step stays too, if the next would be
# built the same (chapter 4).

# %%
print(trace.sentences("CellsFound")[-1])
print(trace.sentences("ReuseDecided")[-1])
vg.view(
    trace,
    panes=["kv", "reuse"],
    step=where["ReuseDecided"][-1],
    height=700,
)

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


with vg.record() as trace:
    plan = planned("llama-7b", "F16")
lives = max(
    (read_plan(trace.tracks(), p) for p in plan_ids(trace.tracks())),
    key=lambda found: found.peak,
)
alone = sum(life.size for life in lives.lives)
print(
    f"weights    {gb(plan.mapped)}  mapped; {gb(2 * plan.mapped)} if they were copied to F32"
)
print(f"KV cache   {gb(sum(plan.kv))}  allocated")
print(
    f"compute    {gb(plan.compute)}  allocated; {gb(alone)} if every result had its own"
)
print(f"output     {plan.output:,} bytes, allocated")
print(
    f"allocated  {gb(plan.allocated)}, mapped {gb(plan.mapped)}, together {gb(plan.allocated + plan.mapped)}"
)

# %% [markdown]
# So the first answer is: most of the 14 GB is not allocated at all. It is a file that the system shows to the process, and
# whose pages it may drop without writing them back.
#
# A popular account stops there, as if a mapping made memory unnecessary. It does not. In a model like this every token
# reads every weight. If the pages do not stay in memory, each token fetches them from the disk again. It *runs* in little
# memory; it runs *fast* only if what a token reads stays there.
#
# The second answer is quantization. `allocated` does not fall with it; the mapping does.

# %%
for kind in ("F16", "Q8_0", "Q6_K", "Q5_K_M"):
    plan = planned("llama-7b", kind)
    together = plan.mapped + plan.allocated
    print(
        f"{kind:>7}: mapped {gb(plan.mapped)}, allocated {gb(plan.allocated)}, together {gb(together)}"
    )

# %% [markdown]
# A third is that not every model reads all its weights. Qwen3 with 30 billion parameters has 128 *experts* in each layer, of which a
# token uses 8. Quantized to `Q3_K_M`, it is a file of our size again. How much of it does one token read?

# %%
from vizggml.llama.plan import shape_model

hparams, table = shape_model("qwen3-30b-a3b", "Q3_K_M")
whole = sum(t.nbytes for t in table.tensors.values())
read = sum(
    t.nbytes * hparams.n_expert_used // hparams.n_expert
    if "_exps" in name
    else t.nbytes
    for name, t in table.tensors.items()
    if name != "token_embd.weight"
)
plan = planned("qwen3-30b-a3b", "Q3_K_M")
original = planned("qwen3-30b-a3b", "F16")
print(
    f"in F16 {gb(original.mapped)}; in Q3_K_M {gb(whole)}, of which a token reads {gb(read)}"
)
print(f"KV cache {gb(sum(plan.kv))}, compute {gb(plan.compute)}")

# %% [markdown]
# (Of the token embedding one row is looked up, so it is left out.) The next token may choose other experts; but those that
# are chosen often stay in memory, and the rest may wait on the disk.
#
# One more correction. On processors with AVX-512, llama.cpp lays out some types anew when it loads them (`CPU_REPACK`): these
# matrices *are* copied to allocated memory, and their pages of the file are not read again. `--no-repack` turns that off.

# %%
print("qwen3-30b-a3b, Q3_K_M")
for buffer, size in plan.model.items():
    print(f"{buffer:>10}: {gb(size)}")
print(f"of the mapped range, copied out of it: {gb(plan.copied)}")

# %% [markdown]
# ## Beside llama.cpp
#
# All these sums rest on plans. Are they right? Here is SmolLM2 at 2,048 tokens: what real llama.cpp took, recorded, and what
# the plan says, now.

# %%
from vizggml.llama.plan import plan_file

for mode in ("plain", "flash"):
    plan = plan_file(
        "smollm2", ContextParams(n_ctx=2048, flash_attn=mode == "flash")
    )
    ours = {
        f"smollm2.nodes.{mode}": plan.nodes,
        "smollm2.mapped": plan.mapped,
        "smollm2.kv.f16": sum(plan.kv),
        f"smollm2.compute.{mode}.2048": plan.compute,
    }
    for name, value in ours.items():
        theirs = lessons.golden(name)
        print(
            f"{name:>27}: llama.cpp {theirs:>11,}  ours {value:>11,}  the same: {theirs == value}"
        )

# %% [markdown]
# The order of it all is in `llama_context::decode` and `process_ubatch` (`src/llama-context.cpp`); you have seen the names of
# the rest beside the path.

# %% [markdown]
# ## Change this and watch
#
# Here are your laptop and a model. Watch which of the two lines grows with `n_ctx`, and which with `kind`. Try `llama-70b`,
# `Q2_K`, 32,768 tokens.

# %%
memory, shape, kind, n_ctx = 16e9, "llama-7b", "F16", 4096

# %%
plan = planned(shape, kind, n_ctx)
left = memory - plan.allocated
print(
    f"allocated {gb(plan.allocated)}, which must fit; {gb(left)} are left"
)
print(
    f"mapped    {gb(plan.mapped)}, {gb(plan.copied)} of it only to be copied"
)
print("the rest stays in memory, if it fits into what is left")
print(
    "it fits"
    if left >= plan.mapped - plan.copied
    else "it does not: pages will be fetched again"
)

# %% [markdown]
# ## Exercises
#
# Put your answer in place of the three dots. A wrong answer gets a hint; `lessons.solution("12.1")` prints the solution.
#
# **12.1** You start Llama 2 7B in `F16` twice, at 4,096 tokens each, from the same file. How many bytes do both take
# together once all weights have been read? `plan_shape("llama-7b", "F16", ContextParams(n_ctx=4096))` has what you need; an
# expression will do.

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
# ## What to read next
#
# - `llama_context::decode` in `src/llama-context.cpp`, from its first line to its last. You know every call in it. Ours
#   is in `vizggml/llama/context.py`.
# - Your own models: `vizggml plan FILE`, and `vg.load_model(FILE)` for those of a size that Python can bear.
# - The path backwards, for when a part has become dim: [the tour](00-tour.ipynb), and [the allocator](05-galloc.ipynb).
