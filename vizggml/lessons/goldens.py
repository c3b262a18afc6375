"""Figures of real llama.cpp that chapters quote, each with how it was obtained; recorded with the pinned version."""

from __future__ import annotations

from dataclasses import dataclass

from vizggml.errors import VizggmlError


@dataclass(frozen=True, slots=True)
class Golden:
    """`value` in `unit`; `where` names the recorded file that a test holds it equal to."""

    value: int | float | str
    unit: str
    where: str


LLAMA_GRAPHS = "tests/goldens/llama_graphs.json.gz"

GOLDENS: dict[str, Golden] = {
    "smollm2.nodes.plain": Golden(1086, "nodes", LLAMA_GRAPHS),
    "smollm2.nodes.flash": Golden(936, "nodes", LLAMA_GRAPHS),
    "smollm2.cont.plain": Golden(30, "nodes", LLAMA_GRAPHS),
    "smollm2.cont.flash": Golden(0, "nodes", LLAMA_GRAPHS),
    "smollm2.empty.plain": Golden(420, "nodes", LLAMA_GRAPHS),
    "smollm2.empty.flash": Golden(360, "nodes", LLAMA_GRAPHS),
    "smollm2.mapped": Golden(96576768, "bytes", "tests/goldens/llama_buffers.json"),
}


def golden(name: str) -> int | float | str:
    """The recorded figure of that name. VizggmlError if there is none."""
    if name not in GOLDENS:
        raise VizggmlError(f"golden {name!r}: there are {', '.join(GOLDENS) or 'none'}")
    return GOLDENS[name].value
