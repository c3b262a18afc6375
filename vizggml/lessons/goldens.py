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


GOLDENS: dict[str, Golden] = {}


def golden(name: str) -> int | float | str:
    """The recorded figure of that name. VizggmlError if there is none."""
    if name not in GOLDENS:
        raise VizggmlError(f"golden {name!r}: there are {', '.join(GOLDENS) or 'none'}")
    return GOLDENS[name].value
