"""The exercise of the tour."""

from __future__ import annotations

from typing import Any

from vizggml.ggml.liveness import graph_liveness
from vizggml.lessons.exercise import Exercise, Text

ASKED = "attn_norm-0"
N_CTX = 256


def readers() -> list[str]:
    """Who reads the tensor of exercise 00.1 in the first plan of the tour, in the order of the plan."""
    from vizggml.llama.model import load_model

    step = load_model("tiny").context(n_ctx=N_CTX, flash_attn=True, n_threads=1).step_graph(N_CTX)
    life = next(life for life in graph_liveness(step).lives if life.tensor.name == ASKED)
    return [node.name for node in step.nodes[: life.died + 1] if any(src is life.tensor for src in node.src)]


def _freed(answer: Any) -> str:
    if not isinstance(answer, str):
        raise TypeError
    answer = answer.strip()
    *earlier, last = readers()
    if answer == last:
        return ""
    if answer == ASKED:
        return "itself"
    return "earlier" if answer in earlier else "life"


EXERCISES: dict[str, Exercise] = {
    "00.1": Exercise(
        _freed,
        {
            "itself": Text("That is the tensor itself. Who reads it last?", "这是它自己。最后读它的是谁？"),
            "earlier": Text(
                "That node reads it, but another one after it does so too.",
                "这个节点确实读它，但后面还有别的节点要读。",
            ),
            "life": Text(
                "Select attn_norm-0 and open Details: the tab Tensor has a section Life, and there a line freed.",
                "选中 attn_norm-0，打开 Details：Tensor 标签页里有 Life 一节，看 freed 那一行。",
            ),
        },
        Text(
            "Kcur-0. Three nodes read it: Qcur-0, Vcur-0 and Kcur-0, in this order. After the last, nobody needs it.",
            "Kcur-0。有三个节点读它：依次是 Qcur-0、Vcur-0、Kcur-0。最后一个算完，就没有人再需要它了。",
        ),
        "'embd'",
    )
}
