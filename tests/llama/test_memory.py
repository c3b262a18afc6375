"""A long run grows nothing: neither the compute buffer nor the process, beyond the cells of the cache it fills."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.llama.made import Shape, write

RESIDENT = """
import gc, json, sys
import vizggml as vg

def resident():
    gc.collect()
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmRSS:"))
"""

RUN = (
    RESIDENT
    + """
model, n_ctx = sys.argv[1], 256
context = vg.load_model(model).context(n_ctx=n_ctx, flash_attn=True, n_threads=2)
hp = context.hparams
seen = {}
tokens = [int(t) for t in context.vocab.tokenize("Once upon a time")]
context.decode(tokens)
for n in range(1, 201):
    context.decode([int(context.logits[-1].argmax())])
    if n in (10, 200):
        seen[n] = (resident(), context.compute_buffer_size, context.n_past)
print(json.dumps({"seen": seen, "rows": sum(t.nb[1] for t in context.memory.k + context.memory.v)}))
"""
)


WINDOWS = (
    RESIDENT
    + """
from vizggml.events import WindowEvicted, bus

context = vg.load_model(sys.argv[1]).context(n_ctx=1024, n_ubatch=200, swa_full=False)
memory, seen, evicted, n_shifts = context.memory, {}, 0, 0

def count(event):
    global evicted
    evicted += 1

for n in range(20_000 // 200):
    if context.n_past + 200 > 1024:
        memory.seq_rm(0, 0, 512)
        memory.seq_add(0, 512, -1, -512)
        n_shifts += 1
    stop = bus.subscribe(WindowEvicted, count)
    context.decode([n % 160] * 200)
    stop()
    if n in (19, 99):
        seen[n] = (resident(), context.compute_buffer_size, [buffer.size for buffer in memory.buffers])
print(json.dumps({"seen": seen, "evicted": evicted, "n_shifts": n_shifts}))
"""
)


def test_twenty_thousand_tokens_through_windows_and_shifts_grow_nothing(tmp_path: Path) -> None:
    """From 4,000 tokens on: one layer sees 24 positions, in 256 cells, the other all of 1,024."""
    shape = Shape("gemma3", n_embd=32, n_head=2, n_head_kv=1, n_ff=32, n_swa=24, swa_pattern=2)
    path = write(tmp_path / "m.gguf", shape)
    done = subprocess.run([sys.executable, "-c", WINDOWS, path], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    (rss_4, *sizes_4), (rss_20, *sizes_20) = answer["seen"]["19"], answer["seen"]["99"]
    assert sizes_20 == sizes_4
    assert rss_20 - rss_4 < 1_000_000
    assert answer["evicted"] > 10_000
    assert answer["n_shifts"] == 38


@pytest.mark.parametrize("model", ["tiny", "smollm2"])
def test_two_hundred_tokens_grow_nothing(model: str) -> None:
    done = subprocess.run([sys.executable, "-c", RUN, model], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    (rss_10, compute_10, past_10), (rss_200, compute_200, past_200) = answer["seen"]["10"], answer["seen"]["200"]
    assert compute_200 == compute_10
    assert past_200 - past_10 == 190
    page = 4096
    cells = answer["rows"] * (past_200 - past_10)
    touched = cells + 2 * page * 64
    assert rss_200 - rss_10 < touched + 1_000_000
