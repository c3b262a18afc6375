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
# # 第 5 章：图分配器
#
# 你已经把一次计算写了下来，但什么都还没有算（[第 4 章](04-deferred.ipynb)）。开始计算之前，每个结果都要在内存里占好位置。这一共需要多少内存？

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
# 这还只是一个玩具模型，一批 32 个 token。这些结果，大多数只有后面一两个节点来读，之后就再也没有人读了。所以这些内存最好能复用；可是复用哪些？放在哪里？
#
# **图分配器**（`ggml_gallocr`）在计算开始之前就把这些都决定好。它先数出每个结果有几个读者，再按顺序把图走一遍：给每个结果取一个位置；等最后一个读它的节点（下文称“读者”）用完，再把位置收回。它给出的是偏移，不是内存：走完以后，才知道缓冲区要多大。

# %% [markdown]
# ## 25 行的空闲列表
#
# 它需要的只是一张表：哪里空着，按偏移排好。下面就是一张。放一个张量时，在放得下的块里取最小的（*best fit*，最佳适应），从块的前端切下来，这叫**切分**（split）。释放一个张量时，把它的字节还回去；如果前面的空闲块正好在这里结束，或者后面的空闲块正好从这里开始，就与它**合并**（merge）。

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
# 最后一块没有尽头，代表缓冲区以后还能增长的部分。`peak` 是它已经长到了多高。

# %% [markdown]
# ## 16 字节放三个张量
#
# 来放 `relu(W x + b)` 的三个结果，每个 8 字节。放 `out` 的时候，还有谁需要 `wx`？只有 `wx+b` 读过它。

# %%
pool = FreeList()
wx = pool.alloc(8)
wx_b = pool.alloc(8)
pool.free(wx, 8)
print("free before out is placed:", pool.blocks[:-1])
out = pool.alloc(8)
print(f"wx at {wx}, wx+b at {wx_b}, out at {out}; peak {pool.peak}")

# %% [markdown]
# 再看真正的 ggml。`W`、`x` 和 `b` 像权重一样，已有自己的内存。为了得到和上面一样的结果，先关掉 ggml 的两项做法：结果不能盖在来源上（`in_place=False`），偏移取 8 的倍数而不是 32 的倍数。（这里的 *chunk 0* 就是整个缓冲区。缓冲区也可以由几个 chunk 组成，后面会说。）


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
# 先点一下播放器，让它接收按键（不然按键会改动单元格），再按 **→** 一步一步走。*Memory map* 是缓冲区；*Free list* 就是上面的 `pool.blocks`。
#
# - 给 `out` 找位置：在 *Events* 旁边的列表里选 *SearchBegin*，点最后一条。再按 **→**，就能看到查看了哪个空闲块，为什么选中它。
# - `wx` 的最后一个读者：选 *TensorFreed*，点第一条。然后按两次 **w**，或者点最上面那句话旁边的 **Why?** 按钮：它从一步跳到引起这一步的原因。这些字节空出来，是因为 `wx+b` 已经有了自己的位置。

# %%
vg.view(trace, panes=["map", "free", "events"])

# %% [markdown]
# ## 切分与合并
#
# 三个一样大的张量不会留下零碎的空隙。下面是六个大小不同的：`+` 是放，`-` 是释放。先别往下看，写下你的预期：`+f` 之后、`-a` 之后、`-f` 之后各有哪些空洞？答案已经印在第二个单元格下面了。

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
# `+f` 切分了 `b` 留下的空洞。`-c` 和空洞剩下的部分合并。`-a` 不挨着任何空洞，自己成了一个空洞。`-f` 在两个空洞中间，三块合成一块。`-e` 和 `-d` 挨着末尾，被末尾吞掉。
#
# 在 ggml 里，这张表叫 `ggml_dyn_tallocr`，图分配器要的每个位置都由它给出。让它走同样的几步：

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
# 在 *Events* 旁边的列表里选 *BlockMerged*，点第一条，再用 **n** 走到下一次合并。因为表是按偏移排好的，邻居马上就能找到：谁挨着刚释放的字节，谁在表里就与它相邻。

# %%
vg.view(trace, panes=["map", "free", "events"])

# %% [markdown]
# ## 为什么用 best fit？
#
# 也可以取第一个放得下的块（first fit，首次适应），或者最大的（worst fit，最坏适应）。`place` 用这样一条规则来放一组结果：每个结果有三个数：产生时的序号、最后一次被读的序号、大小。（**序号**就是 position：在执行顺序里排第几。）


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
# 六个结果，三种规则都试一遍。图里一行是 32 字节，一列是一个序号，点是没人用的空间。同一时刻存活的结果，无论用哪种规则，都必须各有地方放。所以哪种规则也少不过最大的**活跃集**（live set），就是最后一行。


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
# 序号 3 之后有两个空洞：`A` 留下的 64 字节，`C` 留下的 32 字节。best fit 把 `E` 放进窄的那个，宽的留给了 `F`。另外两种把宽的浪费了。
#
# ### 改一改，看一看
#
# 那么 best fit 总是最好吗？下面的 `D` 早一个序号结束，`F` 也大一些。看 `E` 去了哪里，`D` 走了以后它旁边是什么。

# %%
d_ends, f_size = 4, 96

# %%
compare(lives | {"D": (3, d_ends, 32), "F": (5, 5, f_size)})

# %% [markdown]
# 取 4 和 96 时，best fit 输了：它把 `E` 放进了 `C` 留下的空洞，`F` 只能从 `E` 的上面开始。另外两种没有占那个空洞，`D` 空出的字节与它合并，`F` 就能低一行开始。再改一改：`5, 64` 就是第一幅图。取 `4, 64`，best fit 还会输吗？取 `3, 96` 呢？
#
# 只能边走边决定的规则，没有哪一种对所有的图都最好：那得先知道后面会来什么。best fit 只是经验法则。它在真实的图上有多重要，下面你会自己测出来。

# %% [markdown]
# ## 原地写
#
# 回到三个张量，照 ggml 自己的做法来。偏移现在是 32 的倍数，结果可以盖在来源上。这次 `W`、`x` 和 `b` 也放在同一个缓冲区里。

# %%
g = relu_graph(weights_have_memory=False)
galloc = ggml.GraphAllocator(ggml.cpu_buffer_type())
with vg.record() as trace:
    galloc.alloc_graph(g)

for tensor in (*g.leafs, *g.nodes):
    print(f"{tensor.name:>5} at {tensor.data.offset:>3}")
print("the buffer has", galloc.get_buffer_size(), "bytes")

# %% [markdown]
# `wx`、`wx+b` 和 `out` 共用一个位置。后两个根本没有去问空闲列表：已经没有别人需要来源，于是接过了来源的字节。

# %%
lessons.tell(*trace.sentences("ParentReused", "ParentRefused"))

# %% [markdown]
# 来源也可以拒绝。下面是一层的骨架：`h` 先归一化，再做矩阵乘法，结果加回 `h`。

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
# `norm` 不能覆盖 `h`，后面还要读它。`y` 不能写在 `norm` 上：矩阵乘法要把每一行读很多遍。`out` 接过了 `y` 的位置。条件如下（[第 4 章](04-deferred.ipynb)把它们逐个打破）：
#
# - op 能一边读一边盖掉所读的东西（`add`、`sqr`、`soft_max` 可以，矩阵乘法不行）；
# - 来源由规划放置：输入可以被覆盖，权重不行；
# - 来源不是输出；
# - 来源的类型、形状和步长都与结果相同；
# - 再没有别人读它，或读它的视图。

# %% [markdown]
# ## 为什么是 32 的倍数？
#
# 处理器一次装载许多字节（AVX2 的一个寄存器是 32 字节），并且希望从它的倍数开始。ggml 的 CPU 缓冲区只要求 32，因为 GGUF 文件只保证 32：映射的权重在文件里哪里，就在哪里。所以每个大小都要向上取整。在三个小结果上，不原地写的话，代价是：

# %%
g = relu_graph(weights_have_memory=True)
for alignment in (8, 32, 128):
    buft = ggml.cpu_buffer_type(alignment=alignment)
    galloc = ggml.GraphAllocator(buft, in_place=False)
    size = galloc.reserve_n_size(g)[0]
    print(f"multiples of {alignment:3}: {size:3} bytes")

# %% [markdown]
# 真实的结果有成千上万字节，多出来的几个就无所谓了。

# %% [markdown]
# ## 真实的一步
#
# 第一个单元格里的那一步。`ggml.graph_liveness` 给出每个结果的第一个和最后一个序号，以及取整后的字节数。原地写把两段生命周期接成**一段**：从来源开始，到结果结束。所以你的 25 行也能规划它。得到的大小和 ggml 的分配器一样吗？


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
# 在 *Memory timeline* 里，每个矩形是一个结果：从左到右是它存活的时间，从下到上是它所在的位置。各层的图样重复出现，因为上一层用过的位置，下一层接着用。底部的长条是输入和残差流。
#
# - 用 **→** 一步步走，或者用 **j** 一个节点一个节点走：那条起起落落的线是**活跃集**（live set），也就是在这个节点上需要的全部字节。
# - 点一个矩形。在 *Details* 里（几个面板共用一处时按 **3**），*Tensor* 标签页写着它的 **Life**：什么时候得到内存，这些字节之前是谁的，之后给了谁。*Free list* 标签页是这一步空着的块。
# - 按 **Home**，再按 **P**：跳到规划最满的地方。

# %% [markdown]
# ## 峰值与活跃集
#
# 这个规划有多好？同一时刻存活的张量，无论谁来规划，都必须各有地方放。所以最大的活跃集是**下界**，就是时间线里的点线。下面是峰值时的缓冲区，从偏移 0 开始；播放器里这些大小以 KiB 为单位。`kq-0` 是注意力的分数，mask 和 `inp` 开头的是输入：

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
# 峰值减去下界就是**碎片**：缓冲区最满的时候仍然空着的字节，只是所在的空洞太窄，放不下要放的东西。ggml 从不搬动张量来填空洞。
#
# 在上面的播放器里按 **Home**，按 **P**，再按两次 **w**（*Why?*）：这就是让缓冲区长到峰值的那次查找。再按 **→**：一个空洞一个空洞地看过去，每个都太小。

# %% [markdown]
# ## 在真实的图上比一比
#
# 现在来测三个步骤。*no reuse* 是每个都有自己的位置，只用一次：不光是第一个单元格里数过的结果，还有放在同一个缓冲区里的输入。最后三列是每种规则超出下界多少。（这个单元格要跑几秒钟。）


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
# 从 *no reuse* 到 *bound*，省下了绝大部分内存：真正起作用的是复用。各种规则之间相差很小：在这些图上 best fit 和 first fit 完全一样，worst fit 也并非总是最差，看看它在哪一行数字最小。如果你读到过“ggml 省内存靠的是 best fit”，其实不是。靠的是知道每个结果最后由哪个节点读取。
#
# 再比较 *in place*（原地写）和 *not in place* 两行。如果峰值正好由一个来源和它的结果一起构成（tiny 里的 `kq` 和它的 softmax），原地写能省很多。在 SmolLM2 里几乎不省。它最大的活跃集里是谁？

# %%
large = step_of(vg.load_model("smollm2"), 512)
found = ggml.graph_liveness(large)
for life in found.at(found.bound_at)[:3]:
    t = life.tensor
    shape = f"{t.ne[1]} x {t.ne[0]:,}"
    print(f"{life.held:>11,} bytes  {t.name:13} {t.op:7} {shape}")

# %% [markdown]
# 是 *logits*：一批里的每个 token，对词表里的每个词都有一个数。所以缓冲区这么大，原地写也帮不上忙：logits 由矩阵乘法算出，不能盖在任何来源上。

# %% [markdown]
# ## 在 llama.cpp 里
#
# 这些都在一个文件里：`ggml/src/ggml-alloc.c`。空闲列表在 `ggml_dyn_tallocr_alloc` 和 `ggml_dyn_tallocr_free_bytes`，遍历在 `ggml_gallocr_alloc_graph_impl`，原地写在 `ggml_gallocr_allocate_node`。llama.cpp 启动时，把结果记在日志里：`CPU compute buffer size`。SmolLM2，一次 512 个 token：

# %%
planner = ggml.GraphAllocator(ggml.cpu_buffer_type())
theirs = lessons.golden("smollm2.compute.plain.512x512")
print(f"llama.cpp:    {theirs:>12,} bytes")
print(f"vizggml:      {planner.reserve_n_size(large)[0]:>12,}")
print(f"your 25 lines:{place(lives_of(large), best)[0]:>12,}")

# %% [markdown]
# 有一点你的代码没有：如果设备限制了一个缓冲区的大小，缓冲区就由几个 *chunk* 组成。这时 best fit 先看遍所有 chunk 里的空洞，然后才让某个 chunk 增长。

# %% [markdown]
# ## 改一改，看一看
#
# 一批里的 token 数（1 到 512），还有缓存的长度。看峰值处站着谁：先把 `n_tokens` 加倍，再把 `n_ctx` 加倍。哪些只随 token 数增长，哪些随 token 数乘缓存长度增长？然后把 `flash_attn` 设为 `True`。

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
# ## 练习
#
# 把 `...` 换成你的答案。答错会得到提示；`lessons.solution("05.1")` 打印解答。
#
# **05.1** 一条链上有三个结果，大小依次是 96、32 和 64 字节：第二个由第一个算出，第三个由第二个算出。都不原地写，偏移取 32 的倍数。缓冲区要占多少字节？

# %%
answer = ...
lessons.check("05.1", answer)

# %% [markdown]
# **05.2** 大小：`a` 96，`b` 32，`c` 64，`d` 96，`e` 32，`f` 40；每个都向上取整到 32 的倍数。依次做：`+a +b +c +d +e -b -d +f -c`。这时有哪些空洞？写成 `(offset, size)` 的列表，不写空闲的末尾。

# %%
answer = ...
lessons.check("05.2", answer)

# %% [markdown]
# **05.3** `i` 是一个输入，100 个 `F32`（每个 4 字节），放在规划的内存里。然后 `a = sqr(i)`，`b = scale(a, 2)`，`c = add(b, a)`，`d = soft_max(c)`。只要来源允许，这些都可以原地写。按 ggml 的对齐，缓冲区要占多少字节？

# %%
answer = ...
lessons.check("05.3", answer)

# %% [markdown]
# **05.4** 读一读真实的规划，也就是 `step` 的：`ffn_gate-1` 所在偏移处的字节，在它之前是谁的？再往前又是谁的？写成两个名字的列表，后来的在前。（在真实一步的播放器里按 **/**，输入名字，按 **Enter**，按 **Esc**，再按 **3** 到 *Details*：*Tensor* 标签页往下滚动就是 *Life*。*Life* 里的名字可以点。）

# %%
answer = ...
lessons.check("05.4", answer)

# %% [markdown]
# **05.5** 让 best fit 输，而 first fit 完美。照上面 `lives` 的样子（名字对应 `(born, died, size)`）写几个结果，最多六个，大小取 32 的倍数，使 first fit 用的内存正好等于最大的活跃集，而 best fit 用得更多。（可以用 `compare` 来试。）

# %%
answer = ...
lessons.check("05.5", answer)

# %% [markdown]
# ## 接下来读什么
#
# - `ggml/src/ggml-alloc.c`，读到 `ggml_gallocr_alloc_graph_impl` 为止；它的测试在 `tests/test-alloc.cpp`。我们的实现在 `vizggml/ggml/tallocr.py`（空闲列表）和 `gallocr.py`（遍历）。
# - 分配器按顺序走过各个节点。是谁定的顺序？[第 6 章：图与顺序](06-graph.ipynb)。
# - 整个规划省了多少，为什么计算时什么都不释放：[第 7 章：静态规划](07-plan.ipynb)。
