"""Whether blocks are sound: a scale that is infinite or NaN makes every element of its block so."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vizggml.errors import VizggmlError
from vizggml.ggml.quants import floats
from vizggml.ggml.quants.iq.iq1 import block_scales
from vizggml.ggml.quants.parts import fields
from vizggml.ggml.quants.rounding import Blocks
from vizggml.ggml.quants.table import LAYOUTS
from vizggml.ggml.types import Type

DECODED = {"F32": floats.decode_f32, "F16": floats.decode_f16, "BF16": floats.decode_bf16}


def unsound(type: Type, blocks: Blocks) -> NDArray[np.int64]:
    """The numbers of the blocks that `ggml_validate_row_data`, ggml/src/ggml-quants.c, refuses, counted through.

    VizggmlError if the bytes are not whole blocks.
    """
    if blocks.size % type.type_size:
        raise VizggmlError(f"type {type.name}: {blocks.size} bytes are not blocks of {type.type_size} bytes")
    flat = np.ascontiguousarray(blocks).reshape(-1, type.type_size)
    if type.name in DECODED:
        return np.flatnonzero(~np.isfinite(DECODED[type.name](flat)))
    if type.name not in LAYOUTS:
        return np.zeros(0, np.int64)
    layout = LAYOUTS[type.name].record
    record = fields(flat, layout)
    if type.name == "MXFP4":
        return np.flatnonzero(record["e"] == 255)
    if type.name == "IQ1_M":
        return np.flatnonzero(~np.isfinite(block_scales(record)))
    bad = np.zeros(len(flat), bool)
    for name in layout.names or ():
        if layout[name].kind == "f":
            bad |= ~np.isfinite(record[name])
    return np.flatnonzero(bad)
