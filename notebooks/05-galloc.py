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
# # Chapter 5: The graph allocator
#
# You have written a computation down, and nothing has been computed yet
# ([chapter 4](04-deferred.ipynb)). Before anything can be, every result needs a place in memory. How much memory is that?

# %%
import vizggml as vg
from vizggml import ggml, lessons


def step_of(model, n_tokens, n_ctx=512, flash_attn=False):
    context = model.context(
        n_ctx=n_ctx, n_ubatch=512, flash_attn=flash_attn, n_threads=1
    )
    return context.step_graph(n_tokens)


step = step_of(vg.load_model("tiny"), 32)
own = [t for t in step.nodes if t.view_src is None]
print(f"{len(own)} results, {sum(t.nbytes for t in own):,} bytes")
del own, step

# %% [markdown]
# That is a toy model and a batch of 32 tokens. Most of these results are read by the next node or two, and then by nobody
# again. So you would like to use their memory again; but which, and where exactly?
#
# The *graph allocator* (`ggml_gallocr`) decides it before anything runs. It counts the readers of each result; then it goes
# through the graph node by node, takes a place for each result, and gives the place back after its last reader. It hands out offsets, not
# memory: at the end it knows how large the buffer must be.

# %% [markdown]
# ## A free list in 25 lines
#
# All that it needs is a list of what is free, sorted by offset. Here is one. To place a tensor, take the smallest block
# that has room (*best fit*), and cut the tensor off its front: the block is *split*. To free a tensor, put its bytes
# back, and *merge* them with a free block that ends where they begin, or begins where they end.

# %%
import bisect

END = 1 << 40


def best(fits):
    # the smallest; of equals the last, as in ggml
    return min(fits, key=lambda block: (block[1], -block[0]))


class FreeList:
    def __init__(self, choose=best):
        self.blocks = [(0, END)]  # (offset, size), sorted by offset
        self.choose = choose
        self.peak = 0

    def alloc(self, size):
        fits = [block for block in self.blocks if block[1] >= size]
        offset, room = self.choose(fits)
        self.blocks.remove((offset, room))
        if room > size:
            bisect.insort(self.blocks, (offset + size, room - size))
        self.peak = max(self.peak, offset + size)
        return offset

    def free(self, offset, size):
        for at, room in self.blocks[:]:
            if at + room == offset:
                self.blocks.remove((at, room))
                offset, size = at, room + size
            elif offset + size == at:
                self.blocks.remove((at, room))
                size += room
        bisect.insort(self.blocks, (offset, size))


# %% [markdown]
# The last block has no end: it is all that the buffer may still grow into. `peak` is how far it has grown.

# %% [markdown]
# ## Three tensors in 16 bytes
#
# Place the results of `relu(W x + b)`: 8 bytes each. When `out` is placed, who still needs `wx`? Only `wx+b` has read it.

# %%
pool = FreeList()
wx = pool.alloc(8)
wx_b = pool.alloc(8)
pool.free(wx, 8)
print("free before out is placed:", pool.blocks[:-1])
out = pool.alloc(8)
print(f"wx at {wx}, wx+b at {wx_b}, out at {out}; peak {pool.peak}")

# %% [markdown]
# Now the real thing. `W`, `x` and `b` have memory of their own, as weights do. For the same result as above we
# switch two things off that ggml does: a result may not be written over its source (`in_place=False`), and offsets are
# multiples of 8 instead of 32. (*Chunk 0* is the whole buffer here. A buffer may consist of several chunks; more below.)


# %%
def relu_graph(weights_have_memory):
    c = ggml.Context(mem_size=1 << 20, no_alloc=True)
    W = c.new_tensor("F32", (3, 2), name="W")
    x = c.new_tensor("F32", (3,), name="x")
    b = c.new_tensor("F32", (2,), name="b")
    if weights_have_memory:
        ggml.alloc_ctx_tensors_from_buft(c, ggml.cpu_buffer_type())
    wx = ggml.mul_mat(c, W, x).set_name("wx")
    wx_b = ggml.add(c, wx, b).set_name("wx+b")
    out = ggml.relu(c, wx_b).set_name("out")
    g = ggml.Graph(c)
    g.build_forward_expand(out)
    return g


g = relu_graph(weights_have_memory=True)
by_8 = ggml.cpu_buffer_type(alignment=8)
galloc = ggml.GraphAllocator(by_8, in_place=False)
with vg.record() as trace:
    galloc.reserve(g)
lessons.tell(*trace.sentences("BlockChosen", "TensorFreed"))
print("the buffer has", galloc.get_buffer_size(), "bytes")
del g, galloc  # so that the next recording begins with nothing

# %% [markdown]
# Click into the player, so that the keys go to it, and step with **→**. The *Memory map* is the buffer; the *Free list* is `pool.blocks`.
#
# - The search for `out`: choose *SearchBegin* in the list beside *Events* and click the last of them. With **→** you see
#   which free block is looked at, and why it is taken.
# - The last reader of `wx`: choose *TensorFreed* and click the first. Then press **w** twice, or the button **Why?** beside
#   the sentence at the top: it goes from a step to what caused it. These bytes are free because `wx+b` had got its place.

# %%
vg.view(trace, panes=["map", "free", "events"])

# %% [markdown]
# ## Splits and merges
#
# Three equal tensors never leave a remainder. Here are six of different sizes; `+` places one, `-` frees it. Write down
# which holes you expect after `+f`, after `-a` and after `-f`, before you scroll on: the answer stands under the second
# cell already.

# %%
SIZES = {"a": 64, "b": 96, "c": 64, "d": 32, "e": 32, "f": 32}
MOVES = "+a +b +c +d +e -b +f -c -a -f -e -d".split()

# %%
pool, at = FreeList(), {}
for sign, name in MOVES:
    if sign == "+":
        at[name] = pool.alloc(SIZES[name])
    else:
        pool.free(at[name], SIZES[name])
    *holes, (end, _) = pool.blocks
    shown = ", ".join(f"{size} at {o}" for o, size in holes)
    print(f"{sign}{name}  holes: {shown or 'none':22}  end: {end}")

# %% [markdown]
# `+f` splits the hole that `b` left. `-c` joins the rest of it. `-a` touches no hole, and becomes one. `-f` lies between
# two, and makes one of three. `-e` and `-d` touch the end, which swallows them.
#
# In ggml this list is a `ggml_dyn_tallocr`. It is what the graph allocator asks for each place. Give it the same moves:

# %%
c = ggml.Context(mem_size=1 << 16, no_alloc=True)
tensors = {
    name: c.new_tensor("F32", (size // 4,), name=name)
    for name, size in SIZES.items()
}
talloc, at = ggml.DynTallocr(alignment=32), {}
with vg.record() as trace:
    for sign, name in MOVES:
        if sign == "+":
            at[name] = talloc.alloc(SIZES[name], tensors[name])
        else:
            talloc.free_bytes(at[name], SIZES[name])
lessons.tell(*trace.sentences("BlockInserted", "BlockMerged"))
del c, tensors, talloc

# %% [markdown]
# Choose *BlockMerged* in the list beside *Events*, click the first of them, and go to the next with **n**. The neighbours are found at
# once, because the list is sorted by offset: whoever touches the freed bytes stands next to them.

# %%
vg.view(trace, panes=["map", "free", "events"])

# %% [markdown]
# ## Why the best fit?
#
# You could also take the first block that has room, or the largest. `place` tries such a rule on results of which each
# has a position at which it is made, one at which it is read for the last time, and a size.


# %%
def first(fits):
    return fits[0]


def worst(fits):  # the endless block only if no other has room
    return max(fits[:-1] or fits, key=lambda block: block[1])


def place(lives, choose):
    pool, at = FreeList(choose), {}
    last = max(died for _, died, _ in lives.values())
    for p in range(last + 1):
        for name, (born, _, size) in lives.items():
            if born == p:
                at[name] = pool.alloc(size)
        for name, (_, died, size) in lives.items():
            if died == p:
                pool.free(at[name], size)
    return pool.peak, at


# %% [markdown]
# Six results, and all three rules. In the pictures a row is 32 bytes, a column a position; a dot is room that nobody has. What lives at one position must
# lie somewhere, whatever the rule: so no rule takes less than the largest *live set*, the last line.


# %%
RULES = (best, first, worst)


def live_at(lives):
    last = max(died for _, died, _ in lives.values())
    for p in range(last + 1):
        yield sum(s for b, d, s in lives.values() if b <= p <= d)


def picture(lives, rule, rows, columns):
    peak, at = place(lives, rule)
    yield f"{rule.__name__}: {peak}"
    for row in rows:
        marks = ["." if row < peak else " "] * columns
        for name, (born, died, size) in lives.items():
            if at[name] <= row < at[name] + size:
                marks[born : died + 1] = [name] * (died + 1 - born)
        yield " ".join(marks)


def compare(lives):
    live = list(live_at(lives))
    top = max(place(lives, rule)[0] for rule in RULES)
    rows = range((top - 1) // 32 * 32, -1, -32)
    drawn = [picture(lives, rule, rows, len(live)) for rule in RULES]
    for row, *lines in zip(("", *rows), *drawn, strict=True):
        print(f"{row:>3}", *(f" {line:11}" for line in lines))
    print("the largest live set:", max(live))


lives = {
    "A": (0, 3, 64),
    "B": (1, 5, 32),
    "C": (2, 3, 32),
    "D": (3, 5, 32),
    "E": (4, 5, 32),
    "F": (5, 5, 64),
}
compare(lives)

# %% [markdown]
# After position 3 there are two holes: 64 bytes where `A` was, 32 where `C` was. Best fit puts `E` into the narrow one
# and keeps the wide one for `F`. The others spoil the wide one.
#
# ### Change this and watch
#
# Then is best fit always best? Here `D` ends one position earlier, and `F` is larger. Watch where `E` goes, and what is
# beside it when `D` has gone.

# %%
d_ends, f_size = 4, 96

# %%
compare(lives | {"D": (3, d_ends, 32), "F": (5, 5, f_size)})

# %% [markdown]
# With 4 and 96 best fit loses: it has put `E` where `C` was, so `F` can begin only above it. The others left that hole
# open; what `D` leaves joins it, and `F` begins a row lower. Change again: `5, 64` is the first picture. Does best fit
# still lose with `4, 64`? And with `3, 96`?
#
# No rule that must decide at once is best for every graph: it would have to know what comes later.
# Best fit is a rule of thumb. How much it matters on a real graph, you will measure below.

# %% [markdown]
# ## In place
#
# Back to three tensors, and ggml's own way. Offsets are now multiples of 32, and a result may be written over
# its source. `W`, `x` and `b` are placed in the same buffer this time.

# %%
g = relu_graph(weights_have_memory=False)
galloc = ggml.GraphAllocator(ggml.cpu_buffer_type())
with vg.record() as trace:
    galloc.alloc_graph(g)

for tensor in (*g.leafs, *g.nodes):
    print(f"{tensor.name:>5} at {tensor.data.offset:>3}")
print("the buffer has", galloc.get_buffer_size(), "bytes")

# %% [markdown]
# `wx`, `wx+b` and `out` share one place. No free list was asked for the last two: nobody else needed their source, and
# they took over its bytes.

# %%
lessons.tell(*trace.sentences("ParentReused", "ParentRefused"))

# %% [markdown]
# A source may refuse. This is the skeleton of a layer: `h` is normed and multiplied, and the result is added to `h`.

# %%
c = ggml.Context(mem_size=1 << 20, no_alloc=True)
W = c.new_tensor("F32", (8, 8), name="W")
ggml.alloc_ctx_tensors_from_buft(c, ggml.cpu_buffer_type())
h = c.new_tensor("F32", (8,), name="h")
norm = ggml.rms_norm(c, h, 1e-5).set_name("norm")
y = ggml.mul_mat(c, W, norm).set_name("y")
g = ggml.Graph(c)
g.build_forward_expand(ggml.add(c, y, h).set_name("out"))
with vg.record() as trace:
    ggml.GraphAllocator(ggml.cpu_buffer_type()).reserve(g)
lessons.tell(*trace.sentences("ParentReused", "ParentRefused"))

# %% [markdown]
# `norm` may not destroy `h`, which is read again. `y` may not be written over `norm`: a matrix product reads each row
# many times. `out` takes over `y`. The conditions, which
# [chapter 4](04-deferred.ipynb) breaks one by one:
#
# - the op can write over what it reads (`add`, `sqr`, `soft_max` can, a matrix product cannot);
# - the plan has placed the source: an input may be written over, a weight may not;
# - the source is not an output;
# - it has the type, the shape and the strides of the result;
# - nobody is left who reads it, or a view of it.

# %% [markdown]
# ## Why multiples of 32?
#
# A processor loads many bytes at once (a register of AVX2 has 32), and likes them to begin at a multiple. ggml's CPU buffers
# ask for 32, and for no more, since a GGUF file guarantees no more: a mapped weight lies where the file has it. So each size
# is rounded up. The price on our three small results, without taking over:

# %%
g = relu_graph(weights_have_memory=True)
for alignment in (8, 32, 128):
    buft = ggml.cpu_buffer_type(alignment=alignment)
    galloc = ggml.GraphAllocator(buft, in_place=False)
    size = galloc.reserve_n_size(g)[0]
    print(f"multiples of {alignment:3}: {size:3} bytes")

# %% [markdown]
# A real result has thousands of bytes; there, a few more do not matter.

# %% [markdown]
# ## A real step
#
# The step from the first cell. `ggml.graph_liveness` gives each result's first and last position and its bytes, rounded
# up. Taking over makes *one* life of two: it begins with the source and ends with the result. So your 25 lines can plan
# it as well. Do they come to the same size as ggml's allocator?


# %%
def lives_of(graph, in_place=True):
    lives, home = {}, {}
    found = ggml.graph_liveness(graph, in_place=in_place)
    for life in found.lives:
        born, t = life.born, life.tensor.id
        home[t] = t
        if life.reuses is not None:  # one life with its source's
            home[t] = home[life.reuses.id]
            born = lives[home[t]][0]
        lives[home[t]] = born, life.died, life.held
    return lives


# let go of the small graphs: they would stand in the recording
g = galloc = c = W = h = norm = y = tensor = None

tiny = vg.load_model("tiny")
step = step_of(tiny, 32)
galloc = ggml.GraphAllocator(ggml.cpu_buffer_type())
with vg.record() as trace:
    galloc.reserve(step)
mine, theirs = place(lives_of(step), best)[0], galloc.get_buffer_size()
print(f"mine {mine:,}, ggml's allocator {theirs:,}: {mine == theirs}")

# %%
vg.view(trace, height=900)

# %% [markdown]
# In the *Memory timeline* each rectangle is a result: left to right when it lives, bottom to top where it lies. The
# layers repeat, since each finds its places where the one before has been. The long bars at the bottom are
# inputs and the residual stream.
#
# - Step with **→**, or with **j** from node to node: the line that climbs and falls is the *live set*, what is needed at
#   that node.
# - Click a rectangle. In *Details* (**3**, where the panes share one place) the tab *Tensor* tells its **Life**: when it
#   got its memory, who had these bytes before it, and who gets them after. The tab *Free list* shows what is free now.
# - Press **Home**, then **P**: there the plan is fullest.

# %% [markdown]
# ## The peak and the live set
#
# How good is the plan? All that lives at one position must lie somewhere, whoever plans. So the largest live set is a
# *lower bound*, the dotted line in the timeline. Here is the buffer at the peak, from
# offset 0 on; the player tells these sizes in KiB. The scores of attention are `kq-0`, the mask and what begins with `inp`
# are inputs.

# %%
found = ggml.graph_liveness(step)
places = ggml.places_planned(galloc)  # each tensor's chunk and offset
plan = found.reached(places)


def row(offset, size, name):
    print(f"{offset:>9,} {size:>9,} {size / 1024:>7,.2f}  {name}")


print(f"position {plan.position}: {step.nodes[plan.position].name}")
print("   offset     bytes     KiB")
end = in_holes = 0
for life, _, offset in sorted(plan.standing, key=lambda s: s[2]):
    if offset > end:
        row(end, offset - end, "-- hole --")
        in_holes += offset - end
    row(offset, life.held, life.tensor.name)
    end = offset + life.held
over = plan.peak - plan.bound
print(f"peak {plan.peak:,}, lower bound {plan.bound:,}")
print(f"peak - bound {over:,}, in holes {in_holes:,} bytes")

# %% [markdown]
# Peak less bound is *fragmentation*: bytes that are free when the buffer is fullest, but lie in holes too narrow for
# what is wanted. ggml never moves a tensor to close a hole.
#
# In the player above, press **Home**, **P**, then twice **w** (*Why?*): you are at the search that made the buffer grow
# to its peak. Now **→**: the holes are looked at one by one, and each is too small.

# %% [markdown]
# ## The rivals on real graphs
#
# Now measure, on three steps. *No reuse* is a place for each, used once: for the results, which the first cell counted, and
# for the inputs, which lie in the same buffer. The last columns say by how much each rule misses the bound. (This cell
# takes a few seconds.)


# %%
def measure(graph, in_place):
    limits = ggml.graph_liveness(graph, in_place=in_place)
    planned = lives_of(graph, in_place)
    mib = limits.no_reuse / 2**20, limits.bound / 2**20
    peaks = [place(planned, rule)[0] for rule in RULES]
    over = [peak / limits.bound - 1 for peak in peaks]
    print("in place    " if in_place else "not in place", end="")
    print("{:9,.2f}{:6,.2f}".format(*mib), end="")
    print("{:6.1%}{:6.1%}{:6.1%}".format(*over))


print("             no reuse bound    over the bound")
print("                  MiB   MiB  best first worst")
for name, batch in (("tiny", 32), ("smollm2", 1), ("smollm2", 512)):
    print(f"{name}, n_tokens = {batch}")
    graph = step_of(vg.load_model(name), batch)
    for in_place in (True, False):
        measure(graph, in_place)

# %% [markdown]
# From *no reuse* to *bound* nearly everything is saved: it is the reuse that counts. Among the rules the difference
# is small. Best and first fit do not differ at all on these graphs, and worst fit is not always the worst: see where it
# has the smallest figure of its line. If you have read that best fit is what makes ggml's memory small: it is not. It is
# knowing the last readers.
#
# Compare *in place* with *not in place*, too. Taking over saves much where a source and its result make the peak together,
# as `kq` and its softmax do in tiny. In SmolLM2 it does hardly anything. Who stands at its largest live set?

# %%
large = step_of(vg.load_model("smollm2"), 512)
found = ggml.graph_liveness(large)
for life in found.at(found.bound_at)[:3]:
    t = life.tensor
    shape = f"{t.ne[1]} x {t.ne[0]:,}"
    print(f"{life.held:>11,} bytes  {t.name:13} {t.op:7} {shape}")

# %% [markdown]
# The *logits*: for each token of the batch a number for each word of the vocabulary. That is why the buffer is so large,
# and why taking over does not help: a matrix product makes them, which may be written over no source.

# %% [markdown]
# ## In llama.cpp
#
# All of this is in one file, `ggml/src/ggml-alloc.c`: the free list in `ggml_dyn_tallocr_alloc` and
# `ggml_dyn_tallocr_free_bytes`, the walk in `ggml_gallocr_alloc_graph_impl`, taking over in `ggml_gallocr_allocate_node`.
# When llama.cpp starts, it logs the result as `CPU compute buffer size`. SmolLM2, 512 tokens at once:

# %%
planner = ggml.GraphAllocator(ggml.cpu_buffer_type())
theirs = lessons.golden("smollm2.compute.plain.512x512")
print(f"llama.cpp:    {theirs:>12,} bytes")
print(f"vizggml:      {planner.reserve_n_size(large)[0]:>12,}")
print(f"your 25 lines:{place(lives_of(large), best)[0]:>12,}")

# %% [markdown]
# One thing your lines do not have: a buffer consists of several *chunks* where a device limits how large one can be.
# Then the holes of all of them are looked through before any grows.

# %% [markdown]
# ## Change this and watch
#
# The number of tokens in the batch (1 to 512), and the length of the cache. Watch who stands at the peak: double
# `n_tokens`, then `n_ctx`. Which of them grow with the tokens alone, and which with tokens times the length? Then set
# `flash_attn` to `True`.

# %%
n_tokens, n_ctx, flash_attn = 32, 512, False

# %%
graph = step_of(tiny, n_tokens, n_ctx, flash_attn)
found = ggml.graph_liveness(graph)
planner = ggml.GraphAllocator(ggml.cpu_buffer_type())
size = planner.reserve_n_size(graph)[0]
plan = found.reached(ggml.places_planned(planner))
print(f"{size:,} bytes, {size / found.bound - 1:.1%} above the bound")
for life, _, offset in plan.standing[:4]:
    print(f"{life.held:>11,} at {offset:>11,}  {life.tensor.name}")

# %% [markdown]
# ## Exercises
#
# Put your answer in place of the three dots. A wrong answer gets a hint; `lessons.solution("05.1")` prints the solution.
#
# **05.1** Three results of 96, 32 and 64 bytes in a chain: the second is made from the first, the third from the second.
# Nothing is written in place, offsets are multiples of 32. How many bytes does the buffer take?

# %%
answer = ...
lessons.check("05.1", answer)

# %% [markdown]
# **05.2** Sizes: `a` 96, `b` 32, `c` 64, `d` 96, `e` 32, `f` 40; each is rounded up to a multiple of 32. The moves: `+a
# +b +c +d +e -b -d +f -c`. Which holes are there then? A list of pairs `(offset, size)`, without the free end.

# %%
answer = ...
lessons.check("05.2", answer)

# %% [markdown]
# **05.3** `i` is an input of 100 `F32` numbers (4 bytes each) in the plan's memory. Then `a = sqr(i)`, `b = scale(a,
# 2)`, `c = add(b, a)`, `d = soft_max(c)`. All these may be written in place, if the source lets them. How many
# bytes does the buffer take, with ggml's alignment?

# %%
answer = ...
lessons.check("05.3", answer)

# %% [markdown]
# **05.4** Read the real plan, that of `step`: who had the bytes at `ffn_gate-1`'s offset just before it, and who before
# that? A list of the two names, the later first. (In the player of the real step: **/**, type the name, **Enter**,
# **Esc**, then **3** for *Details*; its tab *Tensor* has *Life*, further down. A name in *Life* can be clicked.)

# %%
answer = ...
lessons.check("05.4", answer)

# %% [markdown]
# **05.5** Make best fit lose although first fit is perfect. Give results like `lives` above, `(born, died, size)` by name, at
# most six, sizes multiples of 32, for which first fit takes just the largest live set, and best fit more. (`compare` is there to try.)

# %%
answer = ...
lessons.check("05.5", answer)

# %% [markdown]
# ## What to read next
#
# - `ggml/src/ggml-alloc.c`, up to `ggml_gallocr_alloc_graph_impl`; its tests in `tests/test-alloc.cpp`. Ours are
#   `vizggml/ggml/tallocr.py` (the free list) and `gallocr.py` (the walk).
# - The allocator goes through the nodes in order. Whose order? [Chapter 6, graph and order](06-graph.ipynb).
# - What the whole plan saves, and why nothing is freed while computing: [chapter 7, the static plan](07-plan.ipynb).
