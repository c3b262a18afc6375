from __future__ import annotations

from pathlib import Path

import pytest

from tests.llama.made import MINIMIND, Shape, write
from vizggml.llama.models import resolve_model


@pytest.fixture(scope="session")
def smollm2() -> Path:
    return resolve_model("smollm2")


@pytest.fixture(scope="session")
def minimind(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("made") / "minimind.gguf", MINIMIND)


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two layers, width 64, F16."""
    return write(tmp_path_factory.mktemp("made") / "small.gguf", Shape())
