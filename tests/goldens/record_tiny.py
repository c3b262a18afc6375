"""Record what the reference makes of the tiny model: its greedy stories, token by token.

`gaps` are how far the best logit was ahead of the second: a story may part where two were close.

python tests/goldens/record_tiny.py LIBLLAMA        # a native build of the pin, such as b/bin/libllama.so
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))

from tests.goldens.record_llama import settings  # noqa: E402
from tests.llama.native import Native  # noqa: E402
from vizggml.llama.models import resolve_model  # noqa: E402

PROMPTS = ("Once upon a time", "There was once a little bear", "Once upon a time, there was a brave mouse named Zoe.")
N_PREDICT = 100


def main() -> None:
    stories = []
    with Native(sys.argv[1]).model(resolve_model("tiny")) as model:
        for flash_attn in (True, False):
            for prompt in PROMPTS:
                tokens = model.tokenize(prompt)
                with model.context(**settings(256, 256, flash_attn)) as context:
                    logits = context.decode(tokens)
                    answer: list[int] = []
                    gaps: list[float] = []
                    while len(answer) < N_PREDICT:
                        second, first = np.sort(logits[-1])[-2:]
                        gaps.append(round(float(first - second), 3))
                        answer.append(int(logits[-1].argmax()))
                        logits = context.decode(answer[-1:])
                text = "".join(model.piece(token) for token in answer)
                story = {"prompt": prompt, "flash_attn": flash_attn, "ids": tokens, "tokens": answer, "text": text}
                stories.append(story | {"gaps": gaps})
    (HERE / "tiny.json").write_text(json.dumps(stories, indent=1) + "\n")


if __name__ == "__main__":
    main()
