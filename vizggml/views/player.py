"""The player's JavaScript: one ES module that exports `create`, read from the package."""

from __future__ import annotations

from functools import lru_cache
from importlib import resources

from vizggml.errors import VizggmlError

BUNDLE = "player.bundle.js"


@lru_cache(maxsize=1)
def player_module() -> str:
    """The source of the player."""
    try:
        return resources.files("vizggml").joinpath("widgets", BUNDLE).read_text("utf-8")
    except OSError as error:
        raise VizggmlError(f"the player's module {BUNDLE!r} is not in the package: {error.strerror}") from None
