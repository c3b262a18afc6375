"""The same run in real llama.cpp: the one inside the oracle wheel, asked now, else what was recorded with the pin."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from importlib import metadata

from vizggml.errors import VizggmlError
from vizggml.lessons.goldens import golden
from vizggml.llama.models import resolve_model

PROMPT, MAX_TOKENS, N_CTX = "1, 2, 3, 4, 5, 6,", 24, 2048
"""A question whose answer is recorded; at none of its tokens does a second one come close to the best."""

WHEEL = "xllamacpp"
SECONDS = 60
SCRIPT = """
import json, sys, xllamacpp
path, prompt, n_predict, n_ctx = json.loads(sys.argv[1])
params = xllamacpp.CommonParams()
params.model.path, params.n_ctx, params.n_parallel = path, n_ctx, 1
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
params.warmup, params.verbosity = False, 4
server = xllamacpp.Server(params)
answer = server.handle_completions({"prompt": prompt, "n_predict": n_predict, "temperature": 0})
answer = answer if isinstance(answer, dict) else json.loads(answer)
print(json.dumps(answer["choices"][0]["text"]))
"""
SIZE = re.compile(r"(CPU_Mapped model|KV|output) buffer size = +([0-9.]+) MiB")


@dataclass(frozen=True, slots=True)
class Answer:
    """What llama.cpp wrote after a prompt with SmolLM2, and what it says its buffers have, in MiB to two decimals."""

    source: str
    text: str
    mapped: str
    kv: str
    output: str


def ask_llama_cpp(prompt: str = PROMPT, max_tokens: int = MAX_TOKENS, n_ctx: int = N_CTX) -> Answer:
    """Ask SmolLM2 in llama.cpp, greedily: live where the oracle wheel is installed, else as it was recorded.

    VizggmlError if there is no wheel and the question is not the recorded one.
    """
    try:
        return _live(prompt, max_tokens, n_ctx)
    except (metadata.PackageNotFoundError, OSError, subprocess.SubprocessError, ValueError, LookupError):
        if (prompt, max_tokens, n_ctx) != (PROMPT, MAX_TOKENS, N_CTX):
            raise VizggmlError(f"{prompt!r}: no answer is recorded; pip install 'vizggml[oracle]' to ask now") from None
    return recorded()


def _live(prompt: str, max_tokens: int, n_ctx: int) -> Answer:
    """In a process of its own: what goes wrong in a wheel must not end a notebook."""
    source = f"asked now, {WHEEL} {metadata.version(WHEEL)}"
    question = json.dumps([str(resolve_model("smollm2")), prompt, max_tokens, n_ctx])
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, question], capture_output=True, text=True, check=True, timeout=SECONDS
    )
    sizes = dict(SIZE.findall(done.stderr))
    text = json.loads(done.stdout.splitlines()[-1])
    return Answer(source, text, sizes["CPU_Mapped model"], sizes["KV"], sizes["output"])


def mib(nbytes: float) -> str:
    return f"{nbytes / (1 << 20):.2f}"


def recorded() -> Answer:
    """The answer of the pinned version."""
    mapped, kv, output = (float(golden(f"smollm2.{name}")) for name in ("mapped", "kv.f16", "output"))
    return Answer("recorded", str(golden("smollm2.counting")), mib(mapped), mib(kv), mib(output))
