"""What holds for every test."""

from __future__ import annotations

import gc

import pytest


@pytest.fixture(autouse=True, scope="module")
def nothing_left_standing() -> None:
    """What the tests before have let go of is gone: a recording begins with what stands, until Python collects it."""
    gc.collect()
