"""What holds for every test."""

from __future__ import annotations

import gc

import pytest

from vizggml.events import bus


@pytest.fixture(autouse=True, scope="module")
def nothing_left_standing() -> None:
    """A recording begins with what stands: of a module's tests that is what they make, not what others still hold."""
    gc.collect()
    bus.standing.clear()
