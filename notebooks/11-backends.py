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
# # Chapter 11: Threads and backends
#
# So far one thread has computed one node after the other, out of one memory. Your machine has more to give: several cores,
# and perhaps a graphics card that is fast, with memory of its own that is too small for the whole model. Start with the
# cores. Two threads compute a prompt of 64 tokens; how much faster is that than one?

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
# Hardly ever twice; on a machine that has other things to do it can even be slower. (The figure is that of the machine on
# which this page was made; run it on yours.) The first half of this chapter says where the time goes. But the logits are
# the same, which is worth a question: how do threads that know nothing of each other keep out of each other's way?
#
# ## A barrier, by hand
#
# Two layers, two threads, each computes half of the rows. Every row of `y` needs *all* of `h`. Let somebody else use the
# core of thread 0 for a moment.

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
# Thread 1 ran ahead and read rows of `h` that were not there yet. At a *barrier* everybody waits for the last. ggml puts one
# after each node that computes something: the next may need any row of it. Within a node a thread seldom needs what another
# one writes; where it does, as with the activations that a product converts first, the node has a barrier inside.
#
# ## Who is done takes the next chunk
#
# Now a barrier makes the slowest thread everybody's speed. Halves are fair only if both cores are equally fast, and they
# never are: one of them is showing you this page. So cut the work smaller, and let whoever is done take the next piece.
# Here one thread is half as fast as the other:


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
# ggml cuts a matrix product into chunks of 16 rows by 16 columns, or of 64 where there is only one row or column. "The next
# one" is a counter that all threads add to. With fewer than four chunks for each thread that is not worth the while: then
# every thread gets one share. (That is the way which every type can go. For some types llama.cpp has faster kernels, such as
# those of llamafile, which cut the work in their own way.)

# %%
from vizggml.ggml.kernels.chunks import chunk_grid

print("256 rows, 2 threads")
for n_tokens in (1, 16, 64):
    grid = chunk_grid(256, n_tokens, nth=2)
    size = f"{grid.n_chunks:>2} pieces of {grid.dr0:>3} x {grid.dr1:>2}"
    how = "handed out" if grid.handed_out else "a share each"
    print(f"{n_tokens:>2} tokens: {size}, {how}")

# %% [markdown]
# ## A pool, by hand
#
# A step has a hundred nodes and more. Who would start new threads for each? Compare: a thread made anew each time, and one
# that stands and is woken.


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
# So there is a *pool*: threads that are made once and stay. (llama.cpp's programs make one and give it to the context, with
# `llama_attach_threadpool`; who gives none gets one for each graph.) And even waking a thread takes time. Therefore one that
# is done does not sleep at once: for a while it looks again and again whether there is work (it *polls*). That costs a core,
# and pays only where one is to spare.
#
# ## The engine's threads
#
# One evaluation of 16 tokens, on two threads. (A compiled kernel works in larger tiles, so its chunks may have more rows than
# ggml's.)

# %%
ctx = model.context(n_ctx=256, n_ubatch=64, n_threads=2)
ctx.decode(tokens[:16])
ctx.memory.clear()
with vg.record() as trace:
    ctx.decode(tokens[:16])

lessons.tell(*trace.sentences("ChunksTaken")[:4])
lessons.tell(*trace.sentences("WorkTaken")[:2])

# %% [markdown]
# Each lane is a thread. A coloured bar is a node; the hatched stretch after it is waiting at the barrier. **→** goes from event
# to event. Some nodes stand in one lane alone: they are so small that our engine leaves them
# to one thread. (ggml goes by the op: `ggml_get_n_tasks`.)

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
# In llama.cpp: `ggml_graph_compute_thread`, `ggml_barrier` and `ggml_compute_forward_mul_mat` in
# `ggml/src/ggml-cpu/ggml-cpu.c`. There every thread walks the whole graph and meets the others at the barrier of each node,
# where it spins and never sleeps; only between graphs it polls a while and then sleeps
# (`ggml_graph_compute_check_for_work`). So it is in a build without OpenMP. With it, the usual case on Linux and Windows, the
# threads and the barrier are OpenMP's, which decides when they spin and when they sleep. Our threads may sleep between
# nodes, as Python's are dearer to keep awake.
#
# ## A second memory
#
# A *backend* is something that can compute nodes, and a memory that it reads. Here is a second one: `DEV0` stands for a
# graphics card. It computes with the same kernels, but its memory is real in what matters: it is limited, and neither side
# reads the other's. Put the last layer of four on it. The output counts as one more layer, so that makes two.


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
# The graph is cut into *splits*: runs of nodes on one backend. At the beginning of a split, what its backend cannot read is
# copied. Nobody said for each node where it belongs. The weights decide: a product goes to where its weights lie. What has
# no weights follows its neighbours.

# %%
for sentence in trace.sentences("BackendAssigned"):
    if " l_out-2" in sentence or " ffn_out-2" in sentence:
        lessons.tell(sentence)

# %% [markdown]
# That explains the two copies of the same size. The last node of layer 2, `l_out-2`, adds `ffn_out-2` to `ffn_inp-2`. It has
# no weights and is computed beside the layer that follows, so that its two terms cross, and not their sum. "One hidden
# state crosses" is the usual account; ggml copies two.
#
# In the player: the last copy before the second split begins.

# %%
tracks = trace.tracks()
copied = int(tracks.track("copy")["a"].max())
vg.view(trace, panes=["splits"], step=copied, height=280)

# %% [markdown]
# The cutting is `ggml_backend_sched_split_graph` in `ggml/src/ggml-backend.cpp`, ours `vizggml/ggml/sched.py`; the tests of
# vizggml give graphs like this to the real scheduler and compare every split, every copy and the size of both compute
# buffers. With the CPU alone there is one split and nothing to copy:

# %%
theirs = lessons.golden("cpu.splits")
print(f"splits, CPU alone: {cpu.sched.n_splits}, llama.cpp {theirs}")

# %% [markdown]
# ## Change this and watch
#
# Set `n_gpu_layers` to 0, 1, 3, 5 and -1 (all). Watch the node at which the second split begins, and which copies are left
# when all layers are on the device.

# %%
n_gpu_layers = 3

# %%
changed = on_device(n_gpu_layers)
changed.decode([5])
show_splits(changed.sched)
changed = None

# %% [markdown]
# ## Does a layer in the CPU's memory compute on the CPU?
#
# So it is usually said: "the layers that do not fit are computed by the CPU". Try it with batches of several sizes.

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
# From 32 tokens on, the weights travel: every weight of the layers on the CPU is copied to the device, used there once, and
# forgotten. Look at some of the splits:

# %%
for split in shared.sched.splits[3:9]:
    name = shared.sched.backends[split.backend_id].name
    names = ", ".join(t.name for t in split.inputs)
    lessons.tell(f"{name:>4}: {names or 'nothing copied'}")

# %% [markdown]
# (The cache stays where it is: new keys and values are sent back to the CPU, then what attention reads is copied over.) For
# one token that would not pay: each weight is used once, and the CPU reads it as quickly to multiply as to send it away.
# For a long prompt the copy serves all tokens. The limit is the device's own (`offload_op`; CUDA's is 32 unless
# `GGML_OP_OFFLOAD_MIN_BATCH` says otherwise).
#
# ## What fits where
#
# A memory holds the weights of its layers, their part of the KV cache, and a compute buffer. Too much for it is refused, with
# what is lacking.

# %%
try:
    model.context(n_ctx=256, n_gpu_layers=-1, device_memory=2_000_000)
except vg.VizggmlError as error:
    lessons.tell(error)

# %% [markdown]
# You can ask before you buy. The plan needs only a model's shape: here a 7B in `Q4_K_M`, in two memories of 4 GiB. The first
# takes as many of the first layers as it holds; the second gets the rest, and the output. On the command line:
# `vizggml plan --shape llama-7b --type Q4_K_M -c 4096 --fit 4G,4G`. (llama.cpp divides layers among devices in proportion
# to their free memory, unless `--tensor-split` says otherwise.)

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
# The weights have not changed; what a longer context takes is the cache, and it takes it from every layer. So the number of
# layers that fit is no property of the model alone: [chapter 8](08-kv-cache.ipynb)'s bytes decide it as much as
# [chapter 10](10-quantization.ipynb)'s. And at some length both memories together are too small:

# %%
try:
    fitted(16384, "4G,4G")
except vg.VizggmlError as error:
    lessons.tell(error)

# %% [markdown]
# ## Exercises
#
# Put your answer in place of the three dots. A wrong answer gets a hint; `lessons.solution("11.1")` prints the solution.
#
# **11.1** A product of 1,000 weight rows with 8 tokens, on 4 threads, as ggml cuts it: into how many pieces?

# %%
answer = ...
lessons.check("11.1", answer)

# %% [markdown]
# **11.2** 4,000 weight rows, one token, 16 threads: into how many pieces?

# %%
answer = ...
lessons.check("11.2", answer)

# %% [markdown]
# **11.3** A model has 32 layers, numbered from 0. With `n_gpu_layers=10`, which is the first layer on the device?

# %%
answer = ...
lessons.check("11.3", answer)

# %% [markdown]
# **11.4** A model of width 4,096 is cut between two layers, as above. A batch has 8 tokens. How many bytes of activations
# (F32; without positions, mask and the other inputs) are copied?

# %%
answer = ...
lessons.check("11.4", answer)

# %% [markdown]
# ## What to read next
#
# - `ggml_backend_sched_split_graph` in `ggml/src/ggml-backend.cpp`: six passes, each a few lines of what you have seen.
#   Ours are in `vizggml/ggml/sched_assign.py` and `sched.py`; the pool is `vizggml/ggml/threadpool.py`.
# - What attention needs for each thread beside its result: [chapter 9, scratch and attention](09-attention.ipynb).
# - Everything together: [chapter 12, seven decisions, one picture](12-one-picture.ipynb).
