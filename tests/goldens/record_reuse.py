"""Record for which tokens the reference builds a graph of the tiny model anew: a prompt, then one token at a time.

python tests/goldens/record_reuse.py LIBLLAMA        # a native build of the pin, such as b/bin/libllama.so
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))

from tests.llama.native import Native, NativeModel  # noqa: E402
from vizggml.llama.models import resolve_model  # noqa: E402

PROMPTS = (1, 100, 200, 250, 255, 256)
AFTER = 60


def built_anew(model: NativeModel, n_prompt: int, after: int = AFTER) -> list[int]:
    """Which of the `after` tokens that follow a prompt of `n_prompt` get a graph of their own."""
    anew = []
    with model.context(n_ctx=512, n_batch=512, n_ubatch=512) as context:
        context.decode([5] * n_prompt)
        for k in range(1, after + 1):
            before = context.n_reused
            context.decode([5])
            if context.n_reused == before:
                anew.append(k)
    return anew


def main() -> None:
    with Native(sys.argv[1]).model(resolve_model("tiny")) as model:
        found = [{"n_prompt": n, "after": AFTER, "anew": built_anew(model, n)} for n in PROMPTS]
    (HERE / "llama_reuse.json").write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
