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
LLAMA_BUFFERS = "tests/goldens/llama_buffers.json"
LLAMA_QUANTIZE = "tests/goldens/llama_quantize.json.gz"
LLAMA_PLAN = "tests/goldens/llama_plan.json"
LLAMA_LOGITS = "tests/goldens/llama_logits.json"
LLAMA_REUSE = "tests/goldens/llama_reuse.json"
GEMMA3 = "tests/goldens/gemma3.json"

GOLDENS: dict[str, Golden] = {
    "smollm2.nodes.plain": Golden(1086, "nodes", LLAMA_GRAPHS),
    "smollm2.nodes.flash": Golden(936, "nodes", LLAMA_GRAPHS),
    "smollm2.cont.plain": Golden(30, "nodes", LLAMA_GRAPHS),
    "smollm2.cont.flash": Golden(0, "nodes", LLAMA_GRAPHS),
    "smollm2.empty.plain": Golden(420, "nodes", LLAMA_GRAPHS),
    "smollm2.empty.flash": Golden(360, "nodes", LLAMA_GRAPHS),
    "smollm2.compute.plain.512x512": Golden(103024640, "bytes", "tests/goldens/llama_buffers.json"),
    "smollm2.compute.plain.2048x1": Golden(203552, "bytes", "tests/goldens/llama_buffers.json"),
    "smollm2.mapped": Golden(96576768, "bytes", LLAMA_BUFFERS),
    "smollm2.kv.f16": Golden(47185920, "bytes", LLAMA_BUFFERS),
    "smollm2.output": Golden(196608, "bytes: a score for each of 49,152 tokens", LLAMA_BUFFERS),
    "smollm2.counting": Golden(" 7, 8, 9, 10, 11, 12, 13", "24 tokens of text", LLAMA_LOGITS),
    "smollm2.kv.f16.nodes": Golden(936, "nodes", LLAMA_BUFFERS),
    "smollm2.kv.q8_0": Golden(25067520, "bytes", LLAMA_BUFFERS),
    "smollm2.kv.q8_0.nodes": Golden(1296, "nodes", LLAMA_BUFFERS),
    "gemma3.kv.whole": Golden(2097152, "bytes, of 2 layers that see everything", GEMMA3),
    "gemma3.kv.window": Golden(2359296, "bytes, of 3 layers with a window of 1,024", GEMMA3),
    "minimind.compute.flash.8192": Golden(27277312, "bytes", LLAMA_BUFFERS),
    "minimind.compute.plain.8192": Golden(160442368, "bytes", LLAMA_BUFFERS),
    "smollm2.compute.flash.2048": Golden(107493376, "bytes", LLAMA_BUFFERS),
    "smollm2.compute.plain.2048": Golden(104204288, "bytes", LLAMA_BUFFERS),
    "smollm2.compute.flash.8192": Golden(103024640, "bytes", LLAMA_BUFFERS),
    "smollm2.compute.plain.8192": Golden(174467072, "bytes", LLAMA_BUFFERS),
    "tiny.quantize.Q4_K_M.bytes": Golden(2095776, "bytes", LLAMA_QUANTIZE),
    "tiny.quantize.Q4_K_M.sha256": Golden("319da9f1dd9dc601", "digits of SHA-256", LLAMA_QUANTIZE),
    "tiny.anew.250": Golden("1, 7", "numbers of the tokens after a prompt of 250", LLAMA_REUSE),
    "cpu.splits": Golden(1, "splits of every graph, with the CPU alone", LLAMA_PLAN),
}


def golden(name: str) -> int | float | str:
    """The recorded figure of that name. VizggmlError if there is none."""
    if name not in GOLDENS:
        raise VizggmlError(f"golden {name!r}: there are {', '.join(GOLDENS) or 'none'}")
    return GOLDENS[name].value
