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
# # Chapter 3: Arena, buffers and mmap
#
# Every [chain of views](02-views.ipynb) ends at a tensor that owns its bytes. Where does that one get them? Look at what
# there is to keep:

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
# Three kinds of things, and each is a problem of its own. *Records* (name, `ne`, `nb`, `op`, `src`): many and small, made
# by the thousand and thrown away together. *Data* that is computed: it must lie where the device can use it, and aligned.
# *Weights*: huge, never written, and already in a file. ggml has an answer for each: the arena, the buffer, the mapping.

# %% [markdown]
# ## An arena
#
# For records, a general allocator is too much: nobody frees a single one. Take one block of memory and a number that says
# how much of it is used. To allocate is to add. To free is to set the number back to 0.


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
# That is `ggml_context`. On a 64-bit machine each object in it has a header of 32 bytes, a tensor's record has 336, and if
# the context is made that way, the tensor's data follows its record at once. Give it 1,504 bytes and make tensors until it is full.

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
# The player opens at the end, where the fourth tensor does not fit. Each object is drawn to scale: header, record, data,
# padding. Click into the player, go to the beginning (**Home**) and step through it (**→**): the bar fills from the left, and nothing in it is
# ever moved.

# %%
vg.view(trace, panes=["arena", "events"], step=len(trace) - 1)

# %% [markdown]
# Nothing was half made: the fourth tensor does not exist, the other three are well. In ggml, `ggml_new_object` logs a warning
# with the same two numbers, and the program stops at an assertion. An arena does not grow: whoever makes one must know
# how much goes in.

# %% [markdown]
# ## Records here, data elsewhere
#
# With `no_alloc=True` the arena takes records alone. Then its size is known beforehand: so many tensors, times
# `ggml_tensor_overhead()`, which is 32 + 336.

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
# That is how llama.cpp makes its contexts: `ggml_tensor_overhead()*n` in `src/llama-model-loader.cpp` for the weights, in
# `src/llama-kv-cache.cpp` for the cache, in `src/llama-graph.cpp` for the nodes of a graph. What do the records of
# SmolLM2's weights cost?

# %%
records = len(weights) * ggml.TENSOR_OVERHEAD
times = sum(weights) // records
print(f"records: {records:,} bytes")
print(f"data:    {sum(weights):,} bytes, {times} times as much")

# %% [markdown]
# ## Buffers: first measure, then place
#
# Where, then, is the data? A *buffer* is one piece of memory from one device. A *buffer type* says what such pieces are
# like: every tensor begins at a multiple of `alignment`, and no piece should be larger than `max_size`.
#
# `ggml_backend_alloc_ctx_tensors_from_buft` (`ggml/src/ggml-alloc.c`) takes the tensors of a context in their order, and
# passes over each of them twice. The first pass adds sizes up until the next tensor would not fit. Then it gets a buffer
# of just that size, and the second pass places those tensors in it, one after the other. Then comes the next range.
#
# So that you see more than one range, here is a buffer type with very small pieces.


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
# `a` has 100 bytes and takes 128, as `b` must begin at a multiple of 32. Rounded up, `a` and `b` take 192; with `c` it would
# be 320, more than 256, so a new range begins. Step on in the player, and watch one buffer fill, then the other.

# %%
vg.view(trace, panes=["map", "events"])

# %% [markdown]
# ## Change this and watch
#
# At 320, `c` moves into the first range. What do you expect at 100, where `a` and `c` alone are larger than a piece may
# be? (A range holds at least one tensor. ggml asks for a piece that is too large, and leaves the refusal to the device.)

# %%
max_size = 320

# %%
trace = place(max_size)
vg.view(trace, panes=["map"], step=len(trace) - 1, height=330)

# %% [markdown]
# ## A file as memory
#
# Weights need no buffer to be copied to. The system can *map* a file: its bytes get addresses, and nothing is read. When you
# first touch a *page* (4,096 bytes as a rule), the processor stops, the system brings that page, and you go on as if it
# had always been there.
#
# Take a copy of the tiny model. (It is written page by page, because Linux may keep a file that is written at once in larger
# pieces, and then brings these.)

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
# `residency()` asks the system which of the pages this process has in memory (`/proc/self/smaps`; this and what follows
# need Linux). Touch one byte, then another a million bytes on, then all.

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
# A byte brings more than its own page: neighbours that are in the system's cache are mapped along, as you will likely
# want them next.

# %% [markdown]
# ## Watch a model arrive
#
# A model whose weights are mapped is "loaded" before any weight is read. The first step then pulls them in, layer by
# layer, as the kernels get to them. `pages_watched` asks after every layer.

# %%
from vizggml.llama.residency import pages_watched

model = vg.load_model(path)
context = model.context(n_ctx=256, n_ubatch=32, n_threads=1)
watched = pages_watched(context, model.gguf.mapped, model.gguf)
with vg.record() as trace, watched:
    context.decode([5])

lessons.tell(*trace.sentences("PagesResident"))

# %% [markdown]
# One token was computed, and all pages have come: a step reads the weights of every layer. So a model that is larger than your memory
# can run, mapped; but what does not fit is read from the disk again for each token.
#
# The bar in the player is the file from its beginning to its end. The player opens after the second layer; choose
# *LayerResident* in the list beside *Events*, and press **n** to go from one to the next.

# %%
second = trace.steps("PagesResident")[1]
vg.view(trace, panes=["pages", "events"], step=second)

# %% [markdown]
# ## Two processes, one copy
#
# The pages are not this process's own. They are the system's copy of the file, and whoever maps the same file is shown the
# same pages. Start another program, which maps the file and reads half of it, and ask how many of *our* pages it shares.

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
# So ten processes with the same model need memory for its mapped weights once.

# %% [markdown]
# ## Given back without being saved
#
# The file itself is the original. When the system needs room, it may drop such a page and write nothing: the page can be
# read again. `drop()` gives the pages of this process back, as the system would.

# %%
before = int(mapped.memory[1_000_000])
mapped.drop()
pages("dropped:")
print("the same byte again:    ", int(mapped.memory[1_000_000]) == before)
pages("and its neighbours:")

# %% [markdown]
# ## In llama.cpp
#
# `llama_mmap` (`src/llama-mmap.cpp`) maps the file; `llama_model_loader::get_mapping_range` finds the part where the tensors
# are; that part becomes a buffer named `CPU_Mapped`. Our loader does the same; here are both.

# %%
model = vg.load_model("smollm2")
(buffer,) = model.weights.buffers
theirs = lessons.golden("smollm2.mapped")
print(f"{buffer.buft.name}: {buffer.size:,} bytes")
print(f"llama.cpp:  {theirs:,} bytes")
del model, buffer  # a recording would begin with all its tensors

# %% [markdown]
# No weight is copied: a tensor's data lies in the mapped file itself, and after loading most of the file has not been read.
# (llama.cpp does copy weights of some other types, `Q4_0` and `Q4_K` among them, if the processor has faster kernels for
# another layout: into a buffer named `CPU_REPACK`. `--no-repack` turns that off.)

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
# (The pages that are here already hold the vocabulary and the other metadata, which were read.)
#
# A popular account says that llama.cpp reads nothing until a weight is used. That is what a mapping *can* do, and what you
# have just watched. By default llama.cpp asks for more: `llama_mmap` maps with `MAP_POPULATE` on Linux and advises
# `POSIX_MADV_WILLNEED`, so that the pages are fetched when the model is loaded. They are still the system's pages: shared,
# and dropped when room is needed. vizggml leaves the prefetch out, so that you can watch.

# %% [markdown]
# ## Exercises
#
# Put your answer in place of the three dots. `lessons.solution("03.1")` prints the solution.
#
# **03.1** A context with data (`no_alloc=False`) gets three `F32` tensors with `ne` (10), (3, 3) and (1). What is `used_mem`?
# A header is 32 bytes, a record 336, and record and data together are padded to a multiple of 16.

# %%
answer = ...
lessons.check("03.1", answer)

# %% [markdown]
# **03.2** Tensors of 100, 60, 120, 40 and 200 bytes go into buffers of alignment 32 and `max_size` 256. Which sizes do the
# buffers have? A list.

# %%
answer = ...
lessons.check("03.2", answer)

# %% [markdown]
# **03.3** A tensor begins at byte 5,000 of a mapped file and has 8,000 bytes. On how many pages of 4,096 bytes does it lie?

# %%
answer = ...
lessons.check("03.3", answer)

# %% [markdown]
# **03.4** Three processes run the same 4 GiB model, mapped. Each has 1 GiB of KV cache and compute buffer besides. How many
# GiB of memory does the machine need so that no page is ever read twice?

# %%
answer = ...
lessons.check("03.4", answer)

# %% [markdown]
# ## What to read next
#
# - `ggml_new_object` in `ggml/src/ggml.c`, `ggml_backend_alloc_ctx_tensors_from_buft` in `ggml/src/ggml-alloc.c`,
#   `llama_mmap::impl` in `src/llama-mmap.cpp`. Ours: `vizggml/ggml/context.py` and `buffer.py`.
# - Weights have a file, records have an arena. The results of a thousand nodes have neither, and nobody has computed
#   anything yet: [chapter 4, deferred execution](04-deferred.ipynb), then [chapter 5, the graph allocator](05-galloc.ipynb).
