"""`import vizggml` stays light, and so does everything that draws nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("matplotlib", "ipywidgets", "anywidget", "numba", "graphviz", "jinja2", "IPython")


@pytest.mark.parametrize(
    "line",
    [
        "import vizggml",
        "import vizggml; vizggml.ggml, vizggml.record, vizggml.load_trace, vizggml.load_model",
        "import vizggml.views.graph_layout, vizggml.views.svg, vizggml.views.pictures, vizggml.views.paint",
    ],
)
def test_nothing_heavy_is_loaded(line: str) -> None:
    code = f"import sys; {line}; print([m for m in {HEAVY} if m in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
