"""Colours that a colour-blind reader can tell apart, light and dark, and which operation wears which.

The hues follow Okabe and Ito's set; no meaning hangs on colour alone, the words stand beside it.
"""

from __future__ import annotations

from dataclasses import dataclass

from vizggml.errors import VizggmlError

FAMILIES = (
    "matrix product",
    "norm, soft max",
    "element by element",
    "position",
    "rows, copies",
    "view (nothing computed)",
    "leaf: weight, input, cache",
)


@dataclass(frozen=True)
class Theme:
    """Page, ink and lines of one theme; `families` colours the operations, in FAMILIES' order."""

    page: str
    panel: str
    box: str
    ink: str
    soft: str
    line: str
    edge: str
    free: str
    peak: str
    on_block: str
    families: tuple[str, ...]

    def colour(self, op: str) -> str:
        return self.families[FAMILIES.index(family(op))]


LIGHT = Theme(
    page="#ffffff",
    panel="#f7f8fa",
    box="#ffffff",
    ink="#1b2330",
    soft="#596476",
    line="#d3d8e0",
    edge="#98a2b3",
    free="#eef1f4",
    peak="#c2410c",
    on_block="#0f1520",
    families=("#3f8fc7", "#c27ba8", "#2f9f80", "#d98a5b", "#d9a12b", "#aab2bf", "#76808f"),
)

DARK = Theme(
    page="#12161d",
    panel="#181d26",
    box="#1f2530",
    ink="#e6eaf1",
    soft="#a0abbb",
    line="#343c4a",
    edge="#67738a",
    free="#232a35",
    peak="#ff8f57",
    on_block="#0f1520",
    families=("#4a9fd6", "#c886b0", "#35ab8a", "#dc8f5f", "#d3a23a", "#667184", "#8b96a8"),
)

THEMES = {"light": LIGHT, "dark": DARK}

_OPS = (
    "MUL_MAT MUL_MAT_ID OUT_PROD FLASH_ATTN_EXT CONV_2D IM2COL",
    "RMS_NORM NORM GROUP_NORM L2_NORM SOFT_MAX SOFT_MAX_BACK SUM SUM_ROWS MEAN ARGMAX ARGSORT",
    "",
    "ROPE ROPE_BACK TIMESTEP_EMBEDDING DIAG_MASK_INF",
    "GET_ROWS SET_ROWS CPY CONT DUP CONCAT REPEAT PAD SET",
    "VIEW RESHAPE PERMUTE TRANSPOSE",
    "NONE",
)
_FAMILY_OF = {op: FAMILIES[i] for i, ops in enumerate(_OPS) for op in ops.split()}


def theme_named(name: str) -> Theme:
    if name not in THEMES:
        raise VizggmlError(f"theme {name!r}: there are {' and '.join(THEMES)}")
    return THEMES[name]


def family(op: str) -> str:
    """The family that an operation is coloured by: element by element, where no other is known."""
    return _FAMILY_OF.get(op or "NONE", "element by element")


def family_class(name: str) -> str:
    """The family as a CSS class."""
    return f"f{FAMILIES.index(name)}"
