"""A trace has the exports as methods."""

from __future__ import annotations

import subprocess
import sys


def test_a_trace_is_given_its_exports_from_above() -> None:
    """In a process of its own: nothing here has imported the exports before."""
    code = """
from vizggml.timeline.trace import EXPORTERS, Trace, new_meta
trace = Trace(new_meta(), [], {})
try:
    trace.to_html
except AttributeError as error:
    assert "before vizggml.export is imported" in str(error)
import vizggml
vizggml.record
trace.to_html
print(sorted(EXPORTERS))
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "['csv', 'dot', 'gif', 'html', 'pdf', 'perfetto', 'png', 'svg']"
