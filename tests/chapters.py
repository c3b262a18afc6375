"""The chapters as the tests run them: each once a session, whoever asks."""

from __future__ import annotations

import sys
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "book"))

import build as build
import pages as pages

import book as book


def ran(source: Path) -> Any:
    """The chapter's notebook with its outputs, for the caller to change."""
    return deepcopy(_ran(source))


@cache
def _ran(source: Path) -> Any:
    return build.execute(source)
