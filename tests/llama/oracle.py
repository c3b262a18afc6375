"""The live oracle: the newer llama.cpp inside the xllamacpp wheel, loaded once."""

from __future__ import annotations

import functools
from pathlib import Path

import xllamacpp

from tests.llama.native import Native


@functools.cache
def wheel() -> Native:
    return Native(Path(xllamacpp.__file__).parent / "xllamacpp.abi3.so", newer=True)
