"""All that can be fed."""

from __future__ import annotations

from tests.fuzz import gguf_targets, other_targets
from tests.fuzz.judge import Target

TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        gguf_targets.GGUF,
        gguf_targets.GGML,
        gguf_targets.MODEL,
        other_targets.QUANTS,
        other_targets.GRAPH,
        other_targets.TRACE,
    )
}
