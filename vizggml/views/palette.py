"""Colours that a colour-blind reader can tell apart, light and dark, and which operation wears which.

The hues follow Okabe and Ito's set; no meaning hangs on colour alone, the words stand beside it.
"""

from __future__ import annotations

from dataclasses import dataclass

from vizggml.errors import VizggmlError


@dataclass(frozen=True)
class Theme:
    """Page, ink and lines of one theme; `families` colour the operations, `blocks` neighbouring tensors in memory."""

    page: str
    panel: str
    box: str
    ink: str
    soft: str
    line: str
    edge: str
    free: str
    peak: str
    families: dict[str, str]
    blocks: tuple[str, ...]


LIGHT = Theme(
    page="#ffffff",
    panel="#f6f7f9",
    box="#ffffff",
    ink="#1c2330",
    soft="#5a6475",
    line="#d3d8e0",
    edge="#98a2b3",
    free="#eceff3",
    peak="#c2410c",
    families={
        "matrix product": "#0072b2",
        "norm, soft max": "#cc79a7",
        "element by element": "#009e73",
        "position": "#d55e00",
        "rows, copies": "#e69f00",
        "view (nothing computed)": "#aab2bf",
        "leaf: weight, input, cache": "#5b6475",
    },
    blocks=("#4c8fc4", "#e0a43b", "#3fa98a", "#c985ae", "#7f8ea6", "#d6804a"),
)

DARK = Theme(
    page="#11151c",
    panel="#181d26",
    box="#1f2530",
    ink="#e7ebf2",
    soft="#9aa5b6",
    line="#343c4a",
    edge="#67738a",
    free="#232a35",
    peak="#ff9d5c",
    families={
        "matrix product": "#56b4e9",
        "norm, soft max": "#e59ac4",
        "element by element": "#3ecfa3",
        "position": "#f0803c",
        "rows, copies": "#f0b93a",
        "view (nothing computed)": "#6b7688",
        "leaf: weight, input, cache": "#aeb8c8",
    },
    blocks=("#4790c9", "#c98f2c", "#2f9c7c", "#b8709c", "#71819b", "#c46f3a"),
)

THEMES = {"light": LIGHT, "dark": DARK}

_FAMILIES = {
    "matrix product": "MUL_MAT MUL_MAT_ID OUT_PROD FLASH_ATTN_EXT CONV_2D IM2COL",
    "norm, soft max": "RMS_NORM NORM GROUP_NORM L2_NORM SOFT_MAX SOFT_MAX_BACK SUM SUM_ROWS MEAN ARGMAX ARGSORT",
    "position": "ROPE ROPE_BACK TIMESTEP_EMBEDDING DIAG_MASK_INF",
    "rows, copies": "GET_ROWS SET_ROWS CPY CONT DUP CONCAT REPEAT PAD SET",
    "view (nothing computed)": "VIEW RESHAPE PERMUTE TRANSPOSE",
    "leaf: weight, input, cache": "NONE",
}
_FAMILY_OF = {op: family for family, ops in _FAMILIES.items() for op in ops.split()}


def theme_named(name: str) -> Theme:
    if name not in THEMES:
        raise VizggmlError(f"theme {name!r}: there are {' and '.join(THEMES)}")
    return THEMES[name]


def family(op: str) -> str:
    """The family that an operation is coloured by: element by element, where no other is known."""
    return _FAMILY_OF.get(op or "NONE", "element by element")


def family_class(name: str) -> str:
    """The family as a CSS class."""
    return "f-" + name.split(",")[0].split(":")[0].split(" ")[0]
