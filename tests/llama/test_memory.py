"""A long run grows nothing: neither the compute buffer nor the process, beyond the cells of the cache it fills."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

RUN = """
import gc, json, sys
import vizggml as vg

def resident():
    gc.collect()
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmRSS:"))

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
